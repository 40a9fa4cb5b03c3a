"""Proofs of reported distances that need no search, for arrays of poses of two convex shapes;
float64 NumPy.

For unit n from a to b, s(n) = min of n.x over b - max of n.x over a is at most the signed distance.
The distance of a point of a and a point of b is at least the distance of shapes that are apart.
Where both are the reported distance, it is exact. Shapes overlap where some point is in both; s(n)
then bounds the depth from above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull as Qhull

from collidecli.engine.narrowphase.collider_factory import collider
from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import rotation_of, unit
from tests.support.pair_runner import PairContacts, launch_collider
from tests.support.poses import FEATURES, FeatureSample, HullSet, facing_poses, sample_feature
from tests.support.supports import support_height, support_point, surface_residual


@dataclass(frozen=True)
class Shapes:
    """P shapes of one type. size: float64[P, 3]. which: their number in `hulls`, for convex
    meshes."""

    type: ShapeType
    size: np.ndarray
    hulls: HullSet | None = None
    which: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.size)

    def __getitem__(self, rows) -> Shapes:
        return Shapes(
            self.type, self.size[rows], self.hulls, None if self.which is None else self.which[rows]
        )

    def height(self, n: np.ndarray) -> np.ndarray:
        """The largest n.x over each shape [P, D], n [P, D, 3] in its frame; infinite for planes
        unless n is up."""
        if self.type == ShapeType.PLANE:
            return np.where(n[..., 2] > 1.0 - 1e-14, 0.0, np.inf)
        if self.type != ShapeType.CONVEX_MESH:
            return support_height(self.type, self.size, n)
        return np.stack(
            [(m @ self.hulls.vertex[w].T).max(1) for m, w in zip(n, self.which, strict=True)]
        )

    def farthest(self, n: np.ndarray) -> np.ndarray:
        """Points [D, 3] of the first shape that are farthest along n [D, 3]."""
        if self.type == ShapeType.CONVEX_MESH:
            vertex = self.hulls.vertex[self.which[0]]
            return vertex[(n @ vertex.T).argmax(1)]
        return support_point(self.type, self.size[:1], n[None])[0]

    def outside(self, point: np.ndarray) -> np.ndarray:
        """How far points [P, 3], in the shapes' frames, are from the surfaces: above 0 outside,
        negative inside."""
        if self.type != ShapeType.CONVEX_MESH:
            return surface_residual(self.type, self.size, point)
        plane = self.hulls.plane[self.which]
        return (np.einsum("pfi,pi->pf", plane[..., :3], point) + plane[..., 3]).max(1)

    def extent(self) -> np.ndarray:
        """Largest half extent [P]; 0 of planes."""
        if self.type == ShapeType.PLANE:
            return np.zeros(len(self))
        if self.type == ShapeType.CONVEX_MESH:
            return self.hulls.half[self.which].max(1)
        axes = np.broadcast_to(np.eye(3), (len(self), 3, 3))
        return support_height(self.type, self.size, axes).max(1)


@dataclass(frozen=True)
class Scene:
    """P pairs of shapes; pose [P, 7] of b in a's frame.

    apart: the distance [m] where it is not negative; below 0, the shapes are at least that far
    apart, or no deeper.
    """

    a: Shapes
    b: Shapes
    pose: np.ndarray
    apart: np.ndarray

    def __getitem__(self, rows) -> Scene:
        return Scene(self.a[rows], self.b[rows], self.pose[rows], self.apart[rows])

    def scale(self) -> np.ndarray:
        return np.maximum(self.a.extent(), self.b.extent())

    def gap_along(self, n: np.ndarray) -> np.ndarray:
        """s(n) [P, D] of unit directions [P, D, 3], a's frame."""
        into_b = np.einsum("pji,pdj->pdi", rotation_of(self.pose), n)
        return (
            np.einsum("pdi,pi->pd", n, self.pose[:, :3]) - self.b.height(-into_b) - self.a.height(n)
        )

    def in_b(self, point: np.ndarray) -> np.ndarray:
        return np.einsum("pji,pj->pi", rotation_of(self.pose), point - self.pose[:, :3])

    def run(self, max_separation, method: str = "gjk") -> PairContacts:
        """The contacts that the engine's own kernel writes."""
        kernel = collider(self.a.type, self.b.type, method)
        hulls = self.b.hulls if self.a.hulls is None else self.a.hulls
        number_a = -1 if self.a.which is None else self.a.which
        number_b = -1 if self.b.which is None else self.b.which
        return launch_collider(
            kernel.kernel,
            kernel.max_contacts,
            int(self.a.type),
            self.a.size,
            int(self.b.type),
            self.b.size,
            self.pose,
            max_separation,
            hulls=() if hulls is None else hulls.hulls,
            hull_a=number_a,
            hull_b=number_b,
        )


@dataclass(frozen=True)
class Report:
    """What the engine reported of P pairs, beside what is proved; lengths are shares of the pairs'
    sizes.

    missed, phantom: bool[P]. unproved: overlaps for which no point in both shapes was found.
    distance: error of the distance where the construction gives it. short: by how much the gap
    along the normal misses the distance. too_deep: by how much a depth is above the one that the
    construction proves. off_surface: of the witness points. coincident: the least distance of two
    contacts, on both shapes; infinite where there are none.
    """

    least: np.ndarray
    missed: np.ndarray
    phantom: np.ndarray
    unproved: np.ndarray
    distance: np.ndarray
    short: np.ndarray
    too_deep: np.ndarray
    off_surface: np.ndarray
    coincident: np.ndarray
    inexact: int


EVERY = 1e30
PROVED = 1e-8
"""Share of the size by which the best point found may be outside one of two shapes that overlap."""


def examine(scene: Scene, contacts: PairContacts) -> Report:
    """Holds contacts that were asked for at any distance against what can be proved of them."""
    scale = scene.scale()
    rows = np.arange(len(scene.pose))
    separation = np.where(contacts.used, contacts.separation, np.inf)
    best = separation.argmin(1)
    least = separation[rows, best]
    normal = contacts.normal[rows, best]
    point = contacts.point[rows, best]
    missed = contacts.count == 0
    present = ~missed
    along = scene.gap_along(np.where(present[:, None], normal, [0.0, 0.0, 1.0])[:, None])[:, 0]
    short = np.abs(np.where(present, least - along, 0.0))
    distance = np.where(present & (scene.apart >= 0.0), np.abs(least - scene.apart), 0.0)
    off, pair = _off_surface(scene, contacts)
    off_surface = np.zeros(len(rows))
    np.maximum.at(off_surface, pair, off / scale[pair])
    phantom = present & (least < -1e-7 * scale) & (scene.apart >= 0.0)
    doubtful = np.flatnonzero(present & (least < -1e-7 * scale) & (scene.apart < 0.0))
    in_common = (
        _common(scene[doubtful], point[doubtful], normal[doubtful], least[doubtful])
        / scale[doubtful]
    )
    unproved = np.zeros(len(rows), bool)
    unproved[doubtful] = in_common > PROVED
    # Distances that the construction leaves open: apart, the witnesses bound them from above.
    too_deep = np.where(present & (scene.apart < 0.0), np.maximum(scene.apart - least, 0.0), 0.0)
    return Report(
        least,
        missed,
        phantom,
        unproved,
        distance / scale,
        short / scale,
        too_deep / scale,
        off_surface,
        _least_between(contacts) / scale,
        contacts.inexact,
    )


def _off_surface(scene: Scene, contacts: PairContacts) -> tuple[np.ndarray, np.ndarray]:
    """How far every witness is from its shape's surface [m], and of which pair it is."""
    pair, _ = np.nonzero(contacts.used)
    point = contacts.point[contacts.used]
    normal = contacts.normal[contacts.used]
    here = scene[pair]
    off_a = np.abs(here.a.outside(point)) if len(pair) else np.zeros(0)
    point_b = here.in_b(point + contacts.separation[contacts.used][:, None] * normal)
    off_b = np.abs(here.b.outside(point_b)) if len(pair) else np.zeros(0)
    return np.maximum(off_a, off_b), pair


def _common(scene: Scene, point: np.ndarray, normal: np.ndarray, least: np.ndarray) -> np.ndarray:
    """How far the best point that is found is outside of a or of b [m]: at most 0 proves that they
    overlap."""
    best = np.full(len(point), np.inf)
    for t in np.linspace(0.0, 1.0, 33):
        at = point + (t * least)[:, None] * normal
        best = np.minimum(best, np.maximum(scene.a.outside(at), scene.b.outside(scene.in_b(at))))
    for i in np.flatnonzero(best > 1e-10 * scene.scale()):
        best[i] = min(best[i], _origin_outside(scene[[i]], normal[i]))
    return best


def _origin_outside(scene: Scene, normal: np.ndarray) -> float:
    """How far the origin is outside the hull of points of a - b [m]: at most 0 proves that one pair
    overlaps.

    The hull is of points farthest along normal, near it and all around; then, while the origin is
    outside, of those farthest along the face that it is farthest from.
    """
    if scene.a.type == ShapeType.PLANE:
        return float(scene.gap_along(np.array([[[0.0, 0.0, 1.0]]]))[0, 0])
    rng = np.random.default_rng(0)
    around = normal + 10.0 ** rng.uniform(-8.0, 0.5, (1500, 1)) * rng.normal(size=(1500, 3))
    n = unit(np.concatenate([around, rng.normal(size=(500, 3))]))
    points = _farthest_differences(scene, n)
    size = np.abs(points).max()
    outside = np.inf
    for _ in range(40):
        faces = Qhull(np.unique(points / size, axis=0)).equations
        farthest = faces[:, 3].argmax()
        outside = min(outside, float(faces[farthest, 3] * size))
        if outside <= 0.0:
            break
        points = np.concatenate([points, _farthest_differences(scene, faces[[farthest], :3])])
    return outside


def _farthest_differences(scene: Scene, n: np.ndarray) -> np.ndarray:
    """Points [D, 3] of a - b of one pair that are farthest along n [D, 3], a's frame."""
    rotation = rotation_of(scene.pose)[0]
    of_b = scene.b.farthest(-n @ rotation) @ rotation.T
    return scene.a.farthest(n) - of_b - scene.pose[0, :3]


def _least_between(contacts: PairContacts) -> np.ndarray:
    """The least distance of two contacts of a pair, on both shapes [P] [m]; infinite for fewer than
    two."""
    point = np.where(contacts.used[..., None], contacts.point, np.nan)
    point_b = point + contacts.separation[..., None] * contacts.normal
    least = np.full(len(point), np.inf)
    for i in range(point.shape[1]):
        for j in range(i + 1, point.shape[1]):
            if not (contacts.used[:, i] & contacts.used[:, j]).any():
                continue
            both = contacts.used[:, i] & contacts.used[:, j]
            length_a = np.linalg.norm(point[:, i] - point[:, j], axis=1)
            length_b = np.linalg.norm(point_b[:, i] - point_b[:, j], axis=1)
            least = np.minimum(least, np.where(both, np.maximum(length_a, length_b), np.inf))
    return least


def better_direction(
    scene: Scene, contacts: PairContacts, rng: np.random.Generator, count: int = 400
) -> np.ndarray:
    """By how much some direction passes the reported distances [P], as a share of the sizes: all
    around, and near."""
    rows = np.arange(len(scene.pose))
    separation = np.where(contacts.used, contacts.separation, np.inf)
    best = separation.argmin(1)
    normal = contacts.normal[rows, best]
    least = separation[rows, best]
    noise = rng.normal(size=(len(rows), count, 3))
    step = np.where(np.arange(count) % 2 == 0, np.inf, 10.0 ** rng.uniform(-6.0, -0.5, count))[
        None, :, None
    ]
    tried = np.where(
        np.isinf(step), noise, normal[:, None] + np.where(np.isinf(step), 0.0, step) * noise
    )
    tried /= np.linalg.norm(tried, axis=-1, keepdims=True)
    return np.maximum(scene.gap_along(tried).max(1) - least, 0.0) / scene.scale()


OFFSETS = (0.0, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2, 0.1, 0.3)


def resting_scene(
    type_a: ShapeType,
    feature_a: str,
    type_b: ShapeType,
    feature_b: str,
    count: int,
    rng: np.random.Generator,
    hulls: HullSet | None = None,
) -> Scene:
    """Pairs at which the two features face each other, apart or overlapping by OFFSETS of the size;
    see FEATURES."""
    unit = rng.choice([1e-3, 1.0, 1e3], count)
    a, sample_a = _drawn(type_a, feature_a, count, rng, hulls, unit)
    b, sample_b = _drawn(type_b, feature_b, count, rng, hulls, unit)
    spin = rng.uniform(0.0, 2.0 * np.pi, count)
    aligned = np.round(spin / (np.pi / 2)) * (np.pi / 2)
    kind = rng.uniform(size=count)
    spin = np.where(kind < 0.3, aligned, spin)
    spin = np.where(
        (kind > 0.3) & (kind < 0.4), aligned + 10.0 ** rng.uniform(-10.0, -2.0, count), spin
    )
    scale = np.maximum(a.extent(), b.extent())
    apart = scale * rng.choice(OFFSETS, count) * np.where(rng.uniform(size=count) < 0.3, -1.0, 1.0)
    apart *= np.where(rng.uniform(size=count) < 0.5, 1.0, rng.uniform(0.3, 1.0, count))
    pose = facing_poses(
        *(sample_a.point, sample_a.normal, sample_b.point, sample_b.normal),
        *(spin, apart, sample_a.tangent, sample_b.tangent),
    )
    return Scene(a, b, pose, apart)


def _drawn(
    kind: ShapeType, feature: str, count: int, rng: np.random.Generator, hulls: HullSet | None, unit
):
    if kind == ShapeType.CONVEX_MESH:
        kinds = len(hulls.hulls) // 3
        which = rng.integers(0, kinds, count) + kinds * np.searchsorted([1e-3, 1.0, 1e3], unit)
        return Shapes(kind, hulls.half[which], hulls, which), hulls.sample(feature, which, rng)
    size = unit[:, None] * rng.uniform(0.1, 1.0, (count, 3))
    if kind == ShapeType.PLANE:
        size = np.zeros((count, 3))
    shapes = Shapes(kind, size)
    sample = sample_feature(kind, feature, size, rng)
    if kind == ShapeType.PLANE:
        sample = FeatureSample.of(unit[:, None] * sample.point, sample.normal, sample.tangent)
    return shapes, sample


def feature_pairs(type_a: ShapeType, type_b: ShapeType) -> list[tuple[str, str]]:
    """Every combination of two features of two types."""
    return [(x, y) for x in FEATURES[type_a] for y in FEATURES[type_b]]
