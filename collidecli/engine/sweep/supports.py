"""Support heights of shapes in float64: certified separations of two shapes along a direction.

Two sets are separated by at least min n.q - max n.p over the points p of one and q of the other, for every unit
vector n. That bound needs no trust in a distance query, and holds for shapes that are not convex.
"""

from __future__ import annotations

import numpy as np

from collidecli.numerics.matrices import cross, dot, norm
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

ROUNDING = 128.0 * np.finfo(np.float64).eps
"""Of a support height and of an interpolated pose, as a fraction of the coordinates and sizes; a bound of the sums."""
HULL_VERTICES = 64
"""Meshes with more vertices are replaced by the vertices of their hull."""
PRODUCTS = 1 << 20
"""Dot products of directions and vertices that are held at a time."""


class Supports:
    """Support heights of the shapes of a model; sizes [m].

    radius: float64[S], of the ball about the shape's origin that contains it; infinite for a plane. half: float64[S,
    3], half extents of a box in the shape's frame that contains it. is_ball, is_convex: bool[S].
    """

    def __init__(self, model: Model) -> None:
        shapes = model.shapes
        self.type, self.size = shapes.type, shapes.size
        self.half = _half_extents(shapes.type, shapes.size)
        self.radius = np.where(shapes.type == ShapeType.CAPSULE, self.size[:, 0] + self.size[:, 1], norm(self.half))
        self.radius = np.where(shapes.type == ShapeType.ELLIPSOID, self.size.max(axis=1), self.radius)
        self.radius = np.where(shapes.type == ShapeType.SPHERE, self.size[:, 0], self.radius)
        self.is_ball = shapes.type == ShapeType.SPHERE
        self.is_convex = shapes.type <= ShapeType.CONVEX_MESH
        self._points: dict[tuple[int, int], np.ndarray] = {}
        self._key = np.where(shapes.type == ShapeType.CONVEX_MESH, shapes.hull, shapes.mesh)
        for row in np.flatnonzero((shapes.type == ShapeType.CONVEX_MESH) | (shapes.type == ShapeType.MESH)):
            key = int(shapes.type[row]), int(self._key[row])
            if key not in self._points:
                is_hull = shapes.type[row] == ShapeType.CONVEX_MESH
                self._points[key] = model.hulls[key[1]].vertex if is_hull else _extreme(model.meshes[key[1]].vertex)

    def height(self, row: np.ndarray, pose: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """float64[n]: greatest direction.(p - origin) over the points p of each shape [m]; infinite for a plane.

        Of a heightfield that of its box.

        row: int[n]. pose: float64[n, 7], of the shapes in world. direction: float64[n, 3], unit, in world.
        """
        local = rotated_inverse(pose[:, 3:], direction)
        kind, size = self.type[row], self.size[row]
        across = norm(local[:, :2])
        along = np.abs(local[:, 2])
        in_box = dot(size, np.abs(local))
        found = np.full(len(row), np.inf)
        for shape_type, values in (
            (ShapeType.SPHERE, size[:, 0]),
            (ShapeType.CAPSULE, size[:, 0] + size[:, 1] * along),
            (ShapeType.BOX, in_box),
            (ShapeType.HEIGHTFIELD, in_box),
            (ShapeType.CYLINDER, size[:, 0] * across + size[:, 1] * along),
            (ShapeType.CONE, np.maximum(size[:, 1] * local[:, 2], size[:, 0] * across - size[:, 1] * local[:, 2])),
            (ShapeType.ELLIPSOID, norm(size * local)),
        ):
            found = np.where(kind == shape_type, values, found)
        for (shape_type, number), points in self._points.items():
            held = np.flatnonzero((kind == shape_type) & (self._key[row] == number))
            step = max(1, PRODUCTS // len(points))
            for first in range(0, len(held), step):
                rows = held[first : first + step]
                found[rows] = dot(local[rows, None, :], points).max(axis=1)
        return found

    def separation(
        self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray, normal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower bound of the distance of two shapes along a direction, float64[n] [m], and the directions.

        rows: int[n, 2]. normal: float64[n, 3], from the first shape to the second, any lengths; that of a plane is
        replaced by the plane's own normal. -inf where there is no bound.
        """
        length = norm(normal)
        with np.errstate(invalid="ignore", divide="ignore"):
            direction = np.where(length[:, None] > 0.0, normal / length[:, None], np.array([0.0, 0.0, 1.0]))
        direction = np.where(np.isfinite(direction), direction, 0.0)
        is_plane = self.type[rows] == ShapeType.PLANE
        for side, pose, sign in ((0, pose0, 1.0), (1, pose1, -1.0)):
            up = rotated(pose[:, 3:], np.broadcast_to(np.array([0.0, 0.0, sign]), direction.shape))
            direction = np.where(is_plane[:, side, None], up, direction)
        return self.along(rows, pose0, pose1, direction), direction

    def along(self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """float64[n]: lower bound of the distance of two shapes by their extents along unit directions [m].

        The direction of a pair with a plane is the plane's own normal.
        """
        is_plane = self.type[rows] == ShapeType.PLANE
        height0 = np.where(is_plane[:, 0], 0.0, self.height(rows[:, 0], pose0, direction))
        height1 = np.where(is_plane[:, 1], 0.0, self.height(rows[:, 1], pose1, -direction))
        offset = dot(direction, pose1[:, :3] - pose0[:, :3])
        return offset - height0 - height1 - self.rounding(rows, pose0, pose1)

    def rounding(self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray) -> np.ndarray:
        """float64[n]: bound of the rounding of poses and heights [m]."""
        size = np.where(np.isfinite(self.radius), self.radius, 0.0)[rows].sum(axis=1)
        return ROUNDING * (size + np.abs(pose0[:, :3]).sum(axis=1) + np.abs(pose1[:, :3]).sum(axis=1))


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[n, 3]: vectors rotated by unit quaternions float64[n, 4], xyzw."""
    twice = 2.0 * cross(q[..., :3], v)
    return v + q[..., 3:] * twice + cross(q[..., :3], twice)


def rotated_inverse(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[n, 3]: vectors rotated by the inverses of unit quaternions."""
    twice = 2.0 * cross(v, q[..., :3])
    return v + q[..., 3:] * twice + cross(twice, q[..., :3])


def _half_extents(kind: np.ndarray, size: np.ndarray) -> np.ndarray:
    """float64[S, 3] [m]; infinite for planes."""
    half = size.copy()
    half[kind == ShapeType.SPHERE] = size[kind == ShapeType.SPHERE, :1]
    for shape_type, end in ((ShapeType.CAPSULE, size[:, 0] + size[:, 1]), (ShapeType.CYLINDER, size[:, 1])):
        held = kind == shape_type
        half[held] = np.stack([size[held, 0], size[held, 0], end[held]], axis=1)
    held = kind == ShapeType.CONE
    half[held] = size[held][:, [0, 0, 1]]
    half[kind == ShapeType.PLANE] = np.inf
    return half


def _extreme(points: np.ndarray) -> np.ndarray:
    """The vertices of the convex hull of points; all points where Qhull finds no hull."""
    if len(points) <= HULL_VERTICES:
        return points
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[np.sort(ConvexHull(points).vertices)]
    except QhullError:
        return points
