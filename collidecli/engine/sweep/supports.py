"""Support heights of the shapes of a model, and separations of pairs along directions."""

from __future__ import annotations

import numpy as np

from collidecli.engine.sweep.motion import PairSteps, rotated_inverse
from collidecli.numerics.poses import rotated
from collidecli.numerics.products import dot, norm
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import ball_radius, half_extents, has_support, support_heights

ROUNDING = 128.0 * np.finfo(np.float64).eps
"""Of a support height and of an interpolated pose, as a fraction of the coordinates and sizes; a
bound of the sums."""
HULL_VERTICES = 64
"""Meshes with more vertices are replaced by the vertices of their hull."""
PRODUCTS = 1 << 20
"""Dot products of directions and vertices that are held at a time."""


class Supports:
    """Support heights of the shapes of a model; sizes [m].

    radius: float64[S], of the ball about the shape's origin that contains it; infinite for a plane.
    half: float64[S, 3], half extents of a box in the shape's frame that contains it. is_ball,
    is_convex, is_one_sided: bool[S].
    """

    def __init__(self, model: Model) -> None:
        shapes = model.shapes
        self.type = shapes.type
        self.size = shapes.size
        self.half = half_extents(shapes.type, shapes.size)
        self.radius = ball_radius(shapes.type, self.size, self.half)
        self.is_ball = shapes.type == ShapeType.SPHERE
        self.is_convex = has_support(shapes.type)
        one_sided = [mesh.has_front and not mesh.is_closed for mesh in model.meshes]
        self.is_one_sided = np.array([*one_sided, False])[
            np.where(shapes.type == ShapeType.MESH, shapes.mesh, -1)
        ]
        self.has_closed_exits = bool(
            self.is_one_sided.any() or np.any(shapes.type == ShapeType.HEIGHTFIELD)
        )
        self._points: dict[tuple[int, int], np.ndarray] = {}
        self._key = np.where(shapes.type == ShapeType.CONVEX_MESH, shapes.hull, shapes.mesh)
        for row in np.flatnonzero(
            (shapes.type == ShapeType.CONVEX_MESH) | (shapes.type == ShapeType.MESH)
        ):
            key = int(shapes.type[row]), int(self._key[row])
            if key not in self._points:
                is_hull = shapes.type[row] == ShapeType.CONVEX_MESH
                self._points[key] = (
                    model.hulls[key[1]].vertex if is_hull else _extreme(model.meshes[key[1]].vertex)
                )

    def height(self, row: np.ndarray, pose: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """float64[n]: greatest direction.(p - origin) over the points p of each shape [m]; infinite
        for a plane.

        Of a heightfield that of its box.

        row: int[n]. pose: float64[n, 7], of the shapes in world. direction: float64[n, 3], unit, in
        world.
        """
        local = rotated_inverse(pose[:, 3:], direction)
        kind = self.type[row]
        height = support_heights(kind, self.size[row], local)
        for (shape_type, number), points in self._points.items():
            of_surface = np.flatnonzero((kind == shape_type) & (self._key[row] == number))
            step = max(1, PRODUCTS // len(points))
            for first in range(0, len(of_surface), step):
                rows = of_surface[first : first + step]
                height[rows] = dot(local[rows, None, :], points).max(axis=1)
        return height

    def separation(
        self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray, normal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower bound of the distance of two shapes along a direction, float64[n] [m], and the
        directions.

        rows: int[n, 2]. normal: float64[n, 3], from the first shape to the second, any lengths;
        that of a plane is replaced by the plane's own normal. -inf where there is no bound.
        """
        length = norm(normal)
        with np.errstate(invalid="ignore", divide="ignore"):
            direction = np.where(
                length[:, None] > 0.0, normal / length[:, None], np.array([0.0, 0.0, 1.0])
            )
        direction = np.where(np.isfinite(direction), direction, 0.0)
        is_plane = self.type[rows] == ShapeType.PLANE
        for side, pose, sign in ((0, pose0, 1.0), (1, pose1, -1.0)):
            up = rotated(pose[:, 3:], np.array([0.0, 0.0, sign]))
            direction = np.where(is_plane[:, side, None], up, direction)
        return self.along(rows, pose0, pose1, direction), direction

    def along(
        self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray, direction: np.ndarray
    ) -> np.ndarray:
        """float64[n]: lower bound of the distance of two shapes by their extents along unit
        directions [m]. The direction of a pair with a plane is the plane's own normal."""
        is_plane = self.type[rows] == ShapeType.PLANE
        height0 = np.where(is_plane[:, 0], 0.0, self.height(rows[:, 0], pose0, direction))
        height1 = np.where(is_plane[:, 1], 0.0, self.height(rows[:, 1], pose1, -direction))
        offset = dot(direction, pose1[:, :3] - pose0[:, :3])
        return offset - height0 - height1 - self.rounding(rows, pose0, pose1)

    def with_exits(
        self,
        pairs: PairSteps,
        poses: tuple[np.ndarray, np.ndarray],
        separation: np.ndarray,
        direction: np.ndarray,
    ) -> np.ndarray:
        """float64[n]: lower bounds of signed distances that change at most by `PairSteps.speed`
        over the step [m].

        separation: along `direction`. Shapes that overlap do not leave a one-sided mesh by its
        back, nor a heightfield by its base while their middle is above it: their distance jumps,
        and is bounded without that exit.
        """
        if not self.has_closed_exits:
            return separation
        is_field = self.type[pairs.rows] == ShapeType.HEIGHTFIELD
        has_plane = (self.type[pairs.rows] == ShapeType.PLANE).any(axis=1)
        whole = np.where(
            self.is_one_sided[pairs.rows].any(axis=1),
            -2.0 * self.radius[pairs.rows].sum(axis=1),
            np.inf,
        )
        result = np.where(has_plane, separation, np.minimum(separation, whole))
        for field, other, sign in ((0, 1, 1.0), (1, 0, -1.0)):
            of = np.flatnonzero(is_field[:, field] & ~is_field[:, other] & ~has_plane)
            taken = pairs.take(of)
            at = (poses[0][of], poses[1][of])
            radius = self.radius[pairs.rows[of, other]]
            up = rotated(at[field][:, 3:], np.array([0.0, 0.0, sign]))
            half = self.half[pairs.rows[of, field], 2]
            lowest = sign * dot(up, at[other][:, :3] - at[field][:, :3]) + half - radius
            stays = (lowest > taken.speed) & (norm((taken.of0, taken.of1)[field].turn) == 0.0)
            along = np.where(
                dot(direction[of], up) >= 0.0, separation[of], self.along(taken.rows, *at, up)
            )
            result[of] = np.where(stays, along, -2.0 * (half + radius))
        return result

    def rounding(self, rows: np.ndarray, pose0: np.ndarray, pose1: np.ndarray) -> np.ndarray:
        """float64[n]: bound of the rounding of poses and heights [m]."""
        size = np.where(np.isfinite(self.radius), self.radius, 0.0)[rows].sum(axis=1)
        return ROUNDING * (
            size + np.abs(pose0[:, :3]).sum(axis=1) + np.abs(pose1[:, :3]).sum(axis=1)
        )


def _extreme(points: np.ndarray) -> np.ndarray:
    """The vertices of the convex hull of points; all points where Qhull finds no hull."""
    if len(points) <= HULL_VERTICES:
        return points
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[np.sort(ConvexHull(points).vertices)]
    except QhullError:
        return points
