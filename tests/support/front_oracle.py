"""Least translations of convex shapes to the front of one-sided sheets, in float64, without the
engine.

A sheet is closed by walls and a base far below it. A shape that crosses the sheet far from its
border is in front of it where it overlaps that solid no longer: of polytopes FCL tells, and of what
is round, a row of balls about the points of its core, their signed distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull as Qhull

from collidecli.scene.shape_types import ShapeType
from tests.support.answers import Form
from tests.support.mesh_pairs import FclPair, posed
from tests.support.meshes import Mesh, box, hull_mesh, point_distances, strip

SIDES = 32
"""Of the polygon inscribed in a circle."""
BALLS = 8
"""Spaces between balls along the core of a capsule."""
BELOW = 8.0
REACH = 1.0
"""Distances up to here are known; a ball's radius is less."""
OFF_EDGES = np.array([1.7e-10, 1.1e-10])
"""Where vertical rays pass beside a point, so that they hit no edge of an aligned pose."""
FREE = 1e-7
"""Of the unit size: a ball is free where it has no more than this to go."""


def closed_below(mesh: Mesh) -> Mesh:
    """A sheet with a front upwards, and walls from its border down to a base."""
    vertices = np.asarray(mesh[0], np.float64)
    faces = np.asarray(mesh[1])
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ahead = {tuple(edge) for edge in edges.tolist()}
    border = np.array([edge for edge in sorted(ahead) if edge[::-1] not in ahead])
    count = len(vertices)
    low = vertices * [1.0, 1.0, 0.0] - [0.0, 0.0, BELOW]
    p, q = border.T
    middle = np.full(len(border), 2 * count)
    walls = [np.stack([q, p, p + count], 1), np.stack([q, p + count, q + count], 1)]
    base = np.stack([q + count, p + count, middle], 1)
    return np.concatenate([vertices, low, [[0.0, 0.0, -BELOW]]]), np.concatenate(
        [faces, *walls, base]
    )


def folded(outline: list[tuple[float, float]]) -> Mesh:
    """A sheet over a polyline of (x, z), 5 m wide, with its front upwards where x rises."""
    return strip(np.array(outline, np.float64), -2.5, 2.5)


@dataclass(frozen=True)
class FrontOracle:
    """A convex shape, placed, against a sheet closed below: a polytope of these points, or balls
    about them.

    The shape contains them: their translations are no more than `short` less than its own.
    """

    solid: Mesh
    pair: FclPair | None
    points: np.ndarray
    radius: float
    short: float

    @staticmethod
    def of(form: Form, pose: np.ndarray, solid: Mesh) -> FrontOracle:
        if form.type in (ShapeType.SPHERE, ShapeType.CAPSULE):
            radius = form.size[0]
            half = (*form.size, 0.0)[1]
            along = np.linspace(-half, half, BALLS + 1 if half else 1)
            core = np.stack([0 * along, 0 * along, along], 1)
            short = radius - np.sqrt(radius**2 - (half / BALLS) ** 2)
            return FrontOracle(solid, None, posed(core, pose), radius, short)
        polytope = outline(form)
        is_round = form.type in (ShapeType.CYLINDER, ShapeType.CONE)
        short = form.size[0] * (1.0 - np.cos(np.pi / SIDES)) if is_round else 0.0
        pair = FclPair(solid, polytope, np.array([0.0] * 6 + [1.0]), pose, (True, True))
        return FrontOracle(solid, pair, posed(polytope[0], pose), 0.0, short)

    def are_free(self, shifts: np.ndarray) -> np.ndarray:
        """bool[D]: whether the shape, moved by each of the vectors [D, 3], is in front."""
        if self.pair is not None:
            return np.array([not self.pair.overlaps(shift) for shift in shifts])
        corners = self.solid[0][self.solid[1]]
        places = (self.points + shifts[:, None]).reshape(-1, 3)
        needed = (self.radius - signed_distances(corners, places)).reshape(len(shifts), -1).max(1)
        return needed < FREE

    def crossed_parts(self) -> int:
        """Connected parts of the surface inside the shape: of several, a contact leaves one.

        Crossed triangles are connected where the shape overlaps a side or a corner that they share.
        """
        if self.pair is not None:
            crossed = np.unique(self.pair.crossing_pairs()[:, 0])
        else:
            corners = self.solid[0][self.solid[1]]
            apart = np.stack([point_distances(corners, point) for point in self.points]).min(0)
            crossed = np.flatnonzero(apart < self.radius)
        faces = self.solid[1][crossed]
        joined = np.eye(len(faces), dtype=bool)
        for i, j in zip(
            *np.nonzero((faces[:, None, :, None] == faces[None, :, None, :]).any((2, 3))),
            strict=True,
        ):
            shared = np.intersect1d(faces[i], faces[j])
            joined[i, j] = self._overlaps(*self.solid[0][shared[[0, -1]]])
        return int(connected_components(csr_matrix(joined), directed=False)[0])

    def _overlaps(self, start: np.ndarray, end: np.ndarray) -> bool:
        """Whether the shape overlaps a segment, or a point twice."""
        if self.pair is None:
            along = end - start
            t = np.clip(
                (self.points - start) @ along / max(along @ along, np.finfo(float).tiny), 0.0, 1.0
            )
            return bool(
                np.linalg.norm(self.points - start - t[:, None] * along, axis=1).min() < self.radius
            )
        planes = Qhull(self.points).equations
        at_start = planes @ [*start, 1.0]
        rate = planes[:, :3] @ (end - start)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = -at_start / rate
        low = max(0.0, crossing[rate < 0.0].max(initial=0.0))
        high = min(1.0, crossing[rate > 0.0].min(initial=1.0))
        return bool(low <= high and (at_start[rate == 0.0] <= 0.0).all())


def outline(form: Form) -> Mesh:
    """A polytope, or that inscribed in a cylinder or a cone."""
    if form.type == ShapeType.BOX:
        return box(*form.size)
    if form.mesh is not None:
        return hull_mesh(form.vertices)
    radius, half = form.size
    turn = np.arange(SIDES) / SIDES * 2.0 * np.pi
    low = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full(SIDES, -half)], 1)
    here = np.arange(SIDES)
    after = np.roll(np.arange(SIDES), -1)
    middle = np.full(SIDES, SIDES)
    top = np.full(SIDES, SIDES + 1)
    ends = np.array([[0.0, 0.0, -half], [0.0, 0.0, half]])
    base = np.stack([after, here, middle], 1)
    if form.type == ShapeType.CONE:
        return np.concatenate([low, ends]), np.concatenate([base, np.stack([here, after, top], 1)])
    high = SIDES + 2
    sides = [
        np.stack([here, after, after + high], 1),
        np.stack([here, after + high, here + high], 1),
    ]
    lid = np.stack([here + high, after + high, top], 1)
    return np.concatenate([low, ends, low * [1.0, 1.0, -1.0]]), np.concatenate([base, *sides, lid])


def signed_distances(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[P]: of points [P, 3] from a closed surface [T, 3, 3], negative inside.

    Of triangles that no point is within REACH of there may be no distance; a point is inside by
    those above it.
    """
    low = points.min(0) - REACH
    high = points.max(0) + REACH
    near = corners[((corners.min(1) <= high) & (corners.max(1) >= low)).all(1)]
    best = np.full(len(points), REACH)
    p, q, r = (near[None, :, k] for k in range(3))
    normal = np.cross(q - p, r - p)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    height = points @ normal[0].T - (p * normal).sum(-1)
    over = np.ones(height.shape, bool)
    for a, b in ((p, q), (q, r), (r, p)):
        side = (b - a)[0]
        along = points @ side.T - (a[0] * side).sum(-1)
        across = np.cross(normal[0], side)
        over &= points @ across.T - (a[0] * across).sum(-1) >= 0.0
        length = (side * side).sum(-1)
        square = (points * points).sum(-1)[:, None] - 2.0 * points @ a[0].T + (a[0] * a[0]).sum(-1)
        t = np.clip(along / length, 0.0, 1.0)
        square = np.maximum(square + t * (t * length - 2.0 * along), 0.0)
        best = np.minimum(best, np.sqrt(square.min(1)))
    best = np.minimum(best, np.where(over, np.abs(height), np.inf).min(1, initial=np.inf))
    return np.where(is_below(corners, points), -best, best)


def is_below(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """bool[P]: whether the triangles above each point, counted by their orientation, are more than
    none."""
    flat = corners[:, :, :2]
    area = _cross(flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0])
    seen = np.abs(area) > 1e-12
    flat = flat[seen]
    area = area[seen]
    corners = corners[seen]
    places = points[:, :2] + OFF_EDGES
    weights = [
        _cross(flat[:, (k + 2) % 3] - flat[:, (k + 1) % 3], places[:, None] - flat[:, (k + 1) % 3])
        / area
        for k in range(3)
    ]
    height = sum(weight * corners[:, k, 2] for k, weight in enumerate(weights))
    above = (np.minimum(np.minimum(weights[0], weights[1]), weights[2]) > 0.0) & (
        height > points[:, 2:]
    )
    return (above * np.sign(area)).sum(1) > 0.5


def _cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
