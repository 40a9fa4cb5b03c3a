"""Least translations of convex shapes to the front of one-sided sheets, in float64, without the engine.

A sheet is closed by walls and a base far below it. A shape that crosses the sheet far from its border is in front of
it where it overlaps that solid no longer. Polytopes are moved by `Translations`, exactly; what is round is a row of
balls about the points of its core, by conservative advancement: a point at the signed distance s from the solid is in
the radius r of it until it has moved by r - s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull as Qhull

from collidecli.scene.shape_types import ShapeType
from tests.support.answers import Form
from tests.support.meshes import box, point_distances, strip
from tests.support.translation_oracle import Translations, posed

Mesh = tuple[np.ndarray, np.ndarray]
SIDES = 32
"""Of the polygon inscribed in a circle."""
BALLS = 8
"""Spaces between balls along the core of a capsule."""
BELOW = 8.0
STEPS = 200
REACH = 1.0
"""Distances up to here are known; a ball's radius is less."""
OFF_EDGES = np.array([1.7e-10, 1.1e-10])
"""Where vertical rays pass beside a point, so that they hit no edge of an aligned pose."""
FREE = 1e-7
"""Of the unit size: a ball is free where it has no more than this to go."""


def closed_below(mesh: Mesh) -> Mesh:
    """A sheet with a front upwards, and walls from its border down to a base."""
    vertices, faces = np.asarray(mesh[0], np.float64), np.asarray(mesh[1])
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ahead = {tuple(edge) for edge in edges.tolist()}
    border = np.array([edge for edge in sorted(ahead) if edge[::-1] not in ahead])
    count = len(vertices)
    low = vertices * [1.0, 1.0, 0.0] - [0.0, 0.0, BELOW]
    p, q = border.T
    middle = np.full(len(border), 2 * count)
    walls = [np.stack([q, p, p + count], 1), np.stack([q, p + count, q + count], 1)]
    base = np.stack([q + count, p + count, middle], 1)
    return np.concatenate([vertices, low, [[0.0, 0.0, -BELOW]]]), np.concatenate([faces, *walls, base])


def folded(outline: list[tuple[float, float]]) -> Mesh:
    """A sheet over a polyline of (x, z), 5 m wide, with its front upwards where x rises."""
    return strip(np.array(outline, np.float64), -2.5, 2.5)


@dataclass(frozen=True)
class FrontOracle:
    """A convex shape, placed, against a sheet closed below.

    Translations are those of the polytope or of the balls, which the shape contains: no more than `short` less than its
    own.
    """

    solid: Mesh
    polytope: Translations | None
    points: np.ndarray
    radius: float
    short: float

    @staticmethod
    def of(form: Form, pose: np.ndarray, solid: Mesh) -> FrontOracle:
        if form.type in (ShapeType.SPHERE, ShapeType.CAPSULE):
            radius, half = form.size[0], (*form.size, 0.0)[1]
            along = np.linspace(-half, half, BALLS + 1 if half else 1)
            core = np.stack([0 * along, 0 * along, along], 1)
            short = radius - np.sqrt(radius**2 - (half / BALLS) ** 2)
            return FrontOracle(solid, None, posed(core, pose), radius, short)
        vertices, faces = outline(form)
        is_round = form.type in (ShapeType.CYLINDER, ShapeType.CONE)
        short = form.size[0] * (1.0 - np.cos(np.pi / SIDES)) if is_round else 0.0
        moved = Translations(posed(vertices, pose), faces, solid[0], solid[1], True, True)
        return FrontOracle(solid, moved, np.zeros((0, 3)), 0.0, short)

    def crossed_parts(self) -> int:
        """Connected parts of the surface inside the shape: of several, a contact leaves one.

        Crossed triangles are connected where the shape overlaps a side or a corner that they share.
        """
        if self.polytope is not None:
            crossed = np.unique(self.polytope.crossing_pairs()[1])
        else:
            corners = self.solid[0][self.solid[1]]
            apart = np.stack([point_distances(corners, point) for point in self.points]).min(0)
            crossed = np.flatnonzero(apart < self.radius)
        faces = self.solid[1][crossed]
        joined = np.eye(len(faces), dtype=bool)
        for i, j in zip(*np.nonzero((faces[:, None, :, None] == faces[None, :, None, :]).any((2, 3))), strict=True):
            shared = np.intersect1d(faces[i], faces[j])
            joined[i, j] = self._overlaps(*self.solid[0][shared[[0, -1]]])
        return int(connected_components(csr_matrix(joined), directed=False)[0])

    def _overlaps(self, start: np.ndarray, end: np.ndarray) -> bool:
        """Whether the shape overlaps a segment, or a point twice."""
        if self.polytope is None:
            along = end - start
            t = np.clip((self.points - start) @ along / max(along @ along, np.finfo(float).tiny), 0.0, 1.0)
            return bool(np.linalg.norm(self.points - start - t[:, None] * along, axis=1).min() < self.radius)
        planes = Qhull(self.polytope.vertices_a).equations
        at_start, rate = planes @ [*start, 1.0], planes[:, :3] @ (end - start)
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = -at_start / rate
        low = max(0.0, crossing[rate < 0.0].max(initial=0.0))
        high = min(1.0, crossing[rate > 0.0].min(initial=1.0))
        return bool(low <= high and (at_start[rate == 0.0] <= 0.0).all())

    def along(self, direction: np.ndarray) -> float:
        """The first translation along a unit direction at which the shape is in front."""
        if self.polytope is not None:
            return self.polytope.first_free(direction)
        return float(self._advance(direction[None], np.inf)[0])

    def least(self, directions: np.ndarray) -> float:
        """The least one of unit directions [D, 3]."""
        if self.polytope is not None:
            return self.polytope.least(directions)[0]
        return float(self._advance(directions, np.inf).min())

    def _advance(self, directions: np.ndarray, most: float) -> np.ndarray:
        """float64[D]: of each direction; inf where another direction is known to be shorter."""
        t, going, best = np.zeros(len(directions)), np.ones(len(directions), bool), most
        corners = self.solid[0][self.solid[1]]
        for _ in range(STEPS):
            rows = np.flatnonzero(going & (t < best))
            if not len(rows):
                break
            places = (self.points + t[rows, None, None] * directions[rows, None]).reshape(-1, 3)
            needed = (self.radius - signed_distances(corners, places)).reshape(len(rows), -1).max(1)
            t[rows] += np.maximum(needed, 0.0)
            done = needed < FREE
            going[rows] = ~done
            best = min(best, t[rows[done]].min(initial=np.inf))
        return np.where(going, np.inf, t)


def outline(form: Form) -> Mesh:
    """A polytope, or that inscribed in a cylinder or a cone."""
    if form.type == ShapeType.BOX:
        return box(*form.size)
    if form.mesh is not None:
        found = Qhull(form.vertices)
        corners = found.points[found.simplices]
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        outward = (across * found.equations[:, :3]).sum(1) > 0.0
        return found.points, np.where(outward[:, None], found.simplices, found.simplices[:, ::-1])
    radius, half = form.size
    turn = np.arange(SIDES) / SIDES * 2.0 * np.pi
    low = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.full(SIDES, -half)], 1)
    here, after = np.arange(SIDES), np.roll(np.arange(SIDES), -1)
    middle, top = np.full(SIDES, SIDES), np.full(SIDES, SIDES + 1)
    ends = np.array([[0.0, 0.0, -half], [0.0, 0.0, half]])
    base = np.stack([after, here, middle], 1)
    if form.type == ShapeType.CONE:
        return np.concatenate([low, ends]), np.concatenate([base, np.stack([here, after, top], 1)])
    high = SIDES + 2
    sides = [np.stack([here, after, after + high], 1), np.stack([here, after + high, here + high], 1)]
    lid = np.stack([here + high, after + high, top], 1)
    return np.concatenate([low, ends, low * [1.0, 1.0, -1.0]]), np.concatenate([base, *sides, lid])


def signed_distances(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[P]: of points [P, 3] from a closed surface [T, 3, 3], negative inside.

    Of triangles that no point is within REACH of there may be no distance; a point is inside by those above it.
    """
    low, high = points.min(0) - REACH, points.max(0) + REACH
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
    """bool[P]: whether the triangles above each point, counted by their orientation, are more than none."""
    flat = corners[:, :, :2]
    area = _cross(flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0])
    seen = np.abs(area) > 1e-12
    flat, area, corners = flat[seen], area[seen], corners[seen]
    places = points[:, :2] + OFF_EDGES
    weights = [
        _cross(flat[:, (k + 2) % 3] - flat[:, (k + 1) % 3], places[:, None] - flat[:, (k + 1) % 3]) / area
        for k in range(3)
    ]
    height = sum(weight * corners[:, k, 2] for k, weight in enumerate(weights))
    above = (np.minimum(np.minimum(weights[0], weights[1]), weights[2]) > 0.0) & (height > points[:, 2:])
    return (above * np.sign(area)).sum(1) > 0.5


def _cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
