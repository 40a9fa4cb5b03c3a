"""Answers of a collider at found poses: their forms, and the rules that they must keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product

import numpy as np

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import COPLANAR
from collidecli.scene.convex_surface import convex_surface
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.meshes import (
    Mesh,
    Terrain,
    blob,
    box,
    channel,
    grid,
    joined,
    knot,
    point_distances,
    prism,
    rough,
    smooth,
    strip,
    torus,
    tube,
)
from tests.support.oracle import rotation_of
from tests.support.poses import FEATURES, FeatureSample, HullSet, facing_poses, sample_feature

GAPS = (0.0, 1e-3, 1e-2, 0.1, 1.0)
"""Of the unit size."""
SWEEP_TOLERANCE = 1e-6
"""At this distance or less a sweep has a touch, of the unit size."""
LEAST = 1e-9
MOST = 0.3
"""Distances of facing features, of the unit size."""


@dataclass(frozen=True)
class PairCase:
    """Two shapes, `scale` times as large, at poses [P, 2, 7] of the unit size."""

    first: Form
    second: Form
    scale: float
    poses: np.ndarray

    def __str__(self) -> str:
        return f"{self.first.name} and {self.second.name} at {self.scale:g} m"


@dataclass(frozen=True)
class Answers:
    """Of N configurations, lengths in parts of their scale; G gaps.

    case, row: of each configuration. least: float64[G, N], of the contacts; inf without any.
    normal: float64[G, N, 3], point: float64[G, N, 2, 3], of the deepest contact. touch_only:
    bool[G, N]. clearance, error: float64[N]. nearest, toward: float64[N, 2, 3], float64[N, 3], the
    witness points and the normal of `clearance`, in world. swept: int[N], of a sweep at rest: 1
    touches, 0 apart, -1 undecided.
    """

    case: np.ndarray
    row: np.ndarray
    least: np.ndarray
    normal: np.ndarray
    point: np.ndarray
    touch_only: np.ndarray
    clearance: np.ndarray
    error: np.ndarray
    nearest: np.ndarray
    toward: np.ndarray
    swept: np.ndarray


def random_case(
    rng: np.random.Generator, first: Form, second: Form, scale: float, count: int
) -> PairCase:
    """A case of `count` poses: features that face each other, apart, touching and overlapping; some
    anywhere."""
    apart = 10.0 ** rng.uniform(np.log10(LEAST), np.log10(MOST), count)
    kind = rng.uniform(size=count)
    apart = np.where(kind < 0.1, 0.0, np.where(kind < 0.5, -apart, apart))
    a = first.sample(count, rng)
    b = second.sample(count, rng)
    side = np.where(rng.uniform(size=count) < (0.3 if first.mesh is not None else 0.0), -1.0, 1.0)[
        :, None
    ]
    spin = np.where(rng.uniform(size=count) < 0.2, 0.0, rng.uniform(0.0, 2.0 * np.pi, count))
    pose_b = facing_poses(
        a.point, side * a.normal, b.point, b.normal, spin, apart, a.tangent, b.tangent
    )
    anywhere = rng.uniform(size=count) < 0.15
    turn = rng.normal(size=(count, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    place = rng.uniform(-1.2, 1.2, (count, 3)) * (first.extent + second.extent)
    pose_b[anywhere] = np.concatenate([place, turn], 1)[anywhere]
    poses = np.zeros((count, 2, 7))
    poses[:, 0, 6] = 1.0
    poses[:, 1] = pose_b
    return PairCase(first, second, scale, poses)


def model_of(cases: Sequence[PairCase], *gaps: float) -> Model:
    """A world per configuration, of two bodies; all configurations again for each gap."""
    builder = collidecli.ModelBuilder()
    for gap, case in product(gaps, cases):
        one = collidecli.ModelBuilder()
        for form in (case.first, case.second):
            form.add(one, one.add_body(), case.scale, gap)
        builder.add_world(one, count=len(case.poses))
    return builder.finalize()


def placed(cases: Sequence[PairCase]) -> np.ndarray:
    """float64[1, worlds, bodies, 7]; the bodies of other templates are not in a world."""
    worlds = sum(len(case.poses) for case in cases)
    body_q = np.zeros((1, worlds, 2 * len(cases), 7))
    body_q[..., 6] = 1.0
    begin = 0
    for k, case in enumerate(cases):
        here = case.poses * [*[case.scale] * 3, 1.0, 1.0, 1.0, 1.0]
        body_q[0, begin : begin + len(here), 2 * k : 2 * k + 2] = here
        begin += len(here)
    return body_q


def deepest(contacts: collidecli.Contacts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least distance of each cell, inf without a contact, and that contact's normal and
    points."""
    count = len(contacts.cell_start) - 1
    least = np.full(count, np.inf)
    normal = np.zeros((count, 3))
    point = np.zeros((count, 2, 3))
    cell = np.repeat(np.arange(count), np.diff(contacts.cell_start))
    order = np.lexsort((contacts.distance, cell))
    found, first = np.unique(cell[order], return_index=True)
    rows = order[first]
    least[found] = contacts.distance[rows]
    normal[found] = contacts.normal[rows]
    point[found] = np.stack([contacts.point0[rows], contacts.point1[rows]], 1)
    return least, normal, point


def answers(cases: Sequence[PairCase], gaps: Sequence[float] = GAPS) -> Answers:
    """What contacts, touch_only, clearance and sweep return."""
    counts = [len(case.poses) for case in cases]
    scale = np.repeat([case.scale for case in cases], counts)
    model = model_of(cases, *gaps)
    body_q = placed([*cases] * len(gaps))
    shape = len(gaps), len(scale)
    least, normal, point = deepest(collidecli.collide(model, body_q))
    pairs = collidecli.collide(model, body_q, touch_only=True).groups["touches"]
    near, world, item = clearances(cases)
    return Answers(
        case=np.repeat(np.arange(len(cases)), counts),
        row=np.concatenate([np.arange(count) for count in counts]),
        least=least.reshape(shape) / scale,
        normal=normal.reshape(*shape, 3),
        point=point.reshape(*shape, 2, 3) / scale[:, None, None],
        touch_only=np.reshape(pairs.cell_counts, shape) > 0,
        clearance=near.distance[0, world, item] / scale,
        error=near.error[0, world, item] / scale,
        nearest=np.stack([near.point0[0, world, item], near.point1[0, world, item]], 1)
        / scale[:, None, None],
        toward=near.normal[0, world, item],
        swept=swept_at_rest(cases, scale),
    )


def clearances(cases: Sequence[PairCase]) -> tuple[collidecli.Clearances, np.ndarray, np.ndarray]:
    """The distances of all pairs in all worlds; the worlds, and the item of the pair of each."""
    near = collidecli.clearance(model_of(cases, 0.0), placed(cases), by="pair")
    item = np.nanargmin(near.distance[0], axis=1)
    return near, np.arange(len(item)), item


def swept_at_rest(cases: Sequence[PairCase], scale: np.ndarray) -> np.ndarray:
    """See `Answers`. scale: of each configuration; those of one scale are swept together, with one
    tolerance."""
    swept = np.zeros(len(scale), int)
    for one in np.unique(scale):
        chosen = [case for case in cases if case.scale == one]
        rest = np.repeat(placed(chosen), 2, axis=0)
        rows = collidecli.sweep(model_of(chosen, 0.0), rest, tolerance=SWEEP_TOLERANCE * one)
        swept[np.flatnonzero(scale == one)[rows.world]] = np.where(rows.touches, 1, -1)
    return swept


SIZES = {
    ShapeType.SPHERE: ("radius",),
    ShapeType.CAPSULE: ("radius", "half_height"),
    ShapeType.BOX: ("hx", "hy", "hz"),
    ShapeType.CYLINDER: ("radius", "half_height"),
    ShapeType.CONE: ("radius", "half_height"),
    ShapeType.ELLIPSOID: ("rx", "ry", "rz"),
}
"""Arguments of `ModelBuilder.add_shape_<kind>`."""


@dataclass(frozen=True, eq=False)
class Form:
    """A shape of about unit size. size: of a convex one. mesh: triangles of the surface, in the
    body's frame.

    terrain: of a heightfield, whose solid `mesh` is. voxels: along the longest side, of a signed
    distance field.
    """

    name: str
    type: ShapeType
    size: tuple[float, ...] = ()
    mesh: Mesh | None = None
    terrain: Terrain | None = None
    two_sided: bool = True
    is_solid: bool = True
    voxels: int = 0

    def add(self, builder: ModelBuilder, body: int, scale: float, gap: float) -> int:
        """Adds the shape, `scale` times as large, with a gap of `gap` of the unit size."""
        cfg = ShapeConfig(gap=gap * scale, is_solid=self.is_solid)
        if self.voxels:
            cfg = cfg.changed(
                sdf_max_resolution=self.voxels, sdf_narrow_band_range=(-0.4 * scale, 0.4 * scale)
            )
        if self.terrain is not None:
            here = self.terrain.scaled(scale)
            return builder.add_shape_heightfield(
                body, here.heights, here.hx, here.hy, here.base, cfg=cfg
            )
        if self.type == ShapeType.CONVEX_MESH:
            return builder.add_shape_convex_hull(body, scale * self.vertices, cfg=cfg)
        if self.mesh is not None:
            return builder.add_shape_mesh(
                body, scale * self.vertices, self.mesh[1], cfg=cfg, two_sided=self.two_sided
            )
        return builder.add_shape(body, self.type, [scale * one for one in self.size], cfg=cfg)

    def shape(self, scale: float) -> collidecli.Shape:
        """The shape of `collidecli.distance` and `signed_distance`."""
        if self.terrain is not None:
            here = self.terrain.scaled(scale)
            return collidecli.Shape(
                "heightfield", heights=here.heights, hx=here.hx, hy=here.hy, base=here.base
            )
        if self.type == ShapeType.CONVEX_MESH:
            return collidecli.Shape("convex_hull", vertices=scale * self.vertices)
        if self.mesh is not None:
            given = {
                "vertices": scale * self.vertices,
                "faces": self.mesh[1],
                "two_sided": self.two_sided,
            }
            return collidecli.Shape("mesh", **given, cfg=ShapeConfig(is_solid=self.is_solid))
        return collidecli.Shape(
            self.type.label,
            **{k: scale * v for k, v in zip(SIZES[self.type], self.size, strict=True)},
        )

    @property
    def is_convex(self) -> bool:
        """Whether it is convex by its type."""
        return self.type not in (ShapeType.MESH, ShapeType.HEIGHTFIELD)

    @property
    def full_size(self) -> np.ndarray:
        return np.array([*self.size, 0.0, 0.0, 0.0][:3])

    @property
    def voxel(self) -> float:
        """Side of a voxel of its signed distance field; 0 without one."""
        return 2.0 * self.extent / self.voxels if self.voxels else 0.0

    @cached_property
    def flattened(self) -> float:
        """How far triangles may be out of the faces of the hull that a convex mesh collides as; 0
        of other shapes."""
        if self.type != ShapeType.MESH or self.voxels:
            return 0.0
        builder = collidecli.ModelBuilder()
        self.add(builder, builder.add_body(), 1.0, 0.0)
        is_hull = convex_surface(builder.finalize().meshes[0]) is not None
        return 2.0 * COPLANAR * self.extent if is_hull else 0.0

    @property
    def vertices(self) -> np.ndarray:
        assert self.mesh is not None
        return np.asarray(self.mesh[0], np.float64)

    @property
    def corners(self) -> np.ndarray:
        """float64[F, 3, 3] of a mesh's triangles."""
        assert self.mesh is not None
        return self.vertices[np.asarray(self.mesh[1])]

    @property
    def extent(self) -> float:
        """The largest half extent."""
        if self.mesh is not None:
            return 0.5 * float(np.ptp(self.vertices, axis=0).max())
        return float(sum(self.size)) if self.type == ShapeType.CAPSULE else float(max(self.size))

    @cached_property
    def _hull(self) -> HullSet:
        return HullSet([self.vertices])

    def sample(self, count: int, rng: np.random.Generator) -> FeatureSample:
        """Points of faces, edges and vertices, or of the primitive's features, in equal parts."""
        if self.type == ShapeType.CONVEX_MESH:
            kinds = [
                self._hull.sample(one, np.zeros(count, int), rng) for one in FEATURES[self.type]
            ]
        elif self.mesh is not None:
            kinds = [triangle_features(self.corners, corner, count, rng) for corner in (1, 2, 3)]
        else:
            size = np.tile(self.full_size, (count, 1))
            kinds = [sample_feature(self.type, one, size, rng) for one in FEATURES[self.type]]
        which = rng.integers(len(kinds), size=count)
        row = np.arange(count)
        columns = (
            np.stack([getattr(one, name) for one in kinds])[which, row]
            for name in ("point", "normal", "tangent")
        )
        return FeatureSample.of(*columns)


def triangle_features(
    corners: np.ndarray, dimension: int, count: int, rng: np.random.Generator
) -> FeatureSample:
    """Points inside faces (3), on edges (2) and at vertices (1) of triangles [F, 3, 3].

    The normal is that of the face; off an edge or a vertex, a mean of those of all faces there by
    random weights.
    """
    row = rng.integers(len(corners), size=count)
    weight = np.zeros((count, 3))
    weight[:, :dimension] = rng.dirichlet(np.ones(dimension), count)
    weight = np.take_along_axis(weight, np.argsort(rng.uniform(size=(count, 3)), 1), 1)
    chosen = corners[row]
    point = (weight[:, :, None] * chosen).sum(1)
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    normal = np.empty((count, 3))
    for k in range(count):
        shared = np.ones(len(corners), bool)
        for corner in chosen[k][weight[k] > 0.0]:
            shared &= (corners == corner).all(2).any(1)
        normal[k] = rng.dirichlet(np.ones(int(shared.sum()))) @ across[shared]
        if np.linalg.norm(normal[k]) < 1e-3:
            normal[k] = across[row[k]]
    return FeatureSample.of(point, normal, chosen[:, 1] - chosen[:, 0])


def _mesh(name: str, mesh: Mesh, **fields: object) -> Form:
    return Form(
        name, ShapeType.MESH, mesh=(np.asarray(mesh[0], np.float64), np.asarray(mesh[1])), **fields
    )


def _terrain(name: str, terrain: Terrain) -> Form:
    return Form(name, ShapeType.HEIGHTFIELD, mesh=terrain.solid(), terrain=terrain)


ELBOW = prism([(0.0, 0.0), (1.0, 0.0), (1.0, 0.4), (0.4, 0.4), (0.4, 1.0), (0.0, 1.0)], 0.2)
FOLD = strip(np.array([[-1.0, 0.3], [-0.3, 0.0], [0.3, 0.0], [0.5, 0.6], [1.0, 0.5]]), -0.8, 0.8)
SPHERE = Form("sphere", ShapeType.SPHERE, (0.4,))


@cache
def forms() -> dict[str, tuple[Form, ...]]:
    """Shapes by class."""
    rng = np.random.default_rng(8)
    hull = rng.normal(size=(14, 3))
    dented = ("dented", blob(rng, 6, 8, 0.4))
    ring = ("ring", torus(12, 7))
    elbow = ("elbow", ELBOW)
    sheets = (
        ("flat", grid(4, 2.0)),
        ("waves", grid(5, 2.0, lambda x, y: 0.25 * np.sin(3.0 * x) * np.cos(2.0 * y))),
        ("fold", FOLD),
    )
    return {
        "convex": (
            SPHERE,
            Form("capsule", ShapeType.CAPSULE, (0.2, 0.3)),
            Form("box", ShapeType.BOX, (0.4, 0.3, 0.2)),
            Form("cylinder", ShapeType.CYLINDER, (0.3, 0.3)),
            Form("cone", ShapeType.CONE, (0.3, 0.4)),
            Form("ellipsoid", ShapeType.ELLIPSOID, (0.4, 0.3, 0.2)),
            Form(
                "hull",
                ShapeType.CONVEX_MESH,
                mesh=(0.4 * hull / np.abs(hull).max(), np.zeros((0, 3), int)),
            ),
        ),
        "closed": tuple(_mesh(*one) for one in (dented, ring, elbow)),
        "crossing": (
            _mesh("knot", (0.5 * knot()[0], knot()[1])),
            _mesh(
                "pierced", joined((0.5 * knot()[0], knot()[1]), box(0.2, 0.1, 0.1, (1.5, 0.0, 0.5)))
            ),
        ),
        "open": (
            *(_mesh(*one) for one in sheets),
            _mesh("tube", tube(0.7, 0.6, 9)),
            _mesh("channel", channel(0.7, 0.6, 0.8)),
            _mesh("hollow", ring[1], is_solid=False),
        ),
        "one-sided": tuple(_mesh(*one, two_sided=False) for one in sheets),
        "heightfield": (_terrain("rough", rough(4, 5, 6)), _terrain("smooth", smooth(8, 10))),
        "field": tuple(_mesh(*one, voxels=32) for one in (ring, elbow)),
    }


ROUNDING = 1e-9
"""Of the size: docs/howto/measure-clearance.md bounds the certified error of a distance by it."""
CERTIFIED = 1e-8
RARELY_CERTIFIED = 1e-6
FEW = 0.005
RARE = 2
"""Of the size: the same bound for FEW of the shapes that are apart, and for RARE ones of a case.
Where GJK of a round shape and an edge ends by rounding it certifies no more."""
DEPTH_IN_SURFACE = 1e-6
"""Of the size: depths of a convex shape in triangles that differ by no more are equal
(EQUAL_DEPTH of `convex_region_depths`)."""
CONTACT = 1e-7
"""Of the size: the bound of a contact's distance in docs/explanation/accuracy.md."""
TOUCH_FROM_BEHIND = 1e-8
"""Of the size: an overlap of a one-sided triangle up to twice the error of the depth of touching
shapes, which is 2e-9 of the sum of their sizes, is a touch."""
FLOAT32 = 2.0**-23
"""Of a number: one unit in the last place of a contact's distance; a rounded float64 may fall to
either side."""
LISTED = 6
"""Configurations of a message."""
Broken = tuple[str, np.ndarray]
"""A rule and where it does not hold, bool[N]."""


def rules(
    cases: Sequence[PairCase], found: Answers, gaps: Sequence[float] = GAPS
) -> Iterator[Broken]:
    """Every rule of shapes against each other, and where it does not hold.

    A shape that touches a one-sided mesh from behind is free of it or deep in it: at a touch to
    rounding only the rule of touch_only holds.
    """
    judged = ~touches_a_back(cases, found)
    for rule, where in all_rules(cases, found, gaps):
        yield rule, where & (judged | rule.startswith("touch_only"))


def touches_a_back(cases: Sequence[PairCase], found: Answers) -> np.ndarray:
    """bool[N]: of pairs with a one-sided mesh, whether they touch to rounding if it has two
    sides."""
    sided = [k for k, case in enumerate(cases) if not case.first.two_sided]
    result = np.zeros(len(found.case), bool)
    if sided:
        twins = [replace(cases[k], first=replace(cases[k].first, two_sided=True)) for k in sided]
        near, world, item = clearances(twins)
        scale = np.repeat([case.scale for case in twins], [len(case.poses) for case in twins])
        result[np.isin(found.case, sided)] = (
            np.abs(near.distance[0, world, item]) <= TOUCH_FROM_BEHIND * scale
        )
    return result


def _rules_of_gaps(
    found: Answers,
    gaps: Sequence[float],
    slack: np.ndarray,
    must: np.ndarray,
    behind: np.ndarray,
) -> Iterator[Broken]:
    """Which pairs have contacts within each gap. must: bool[N], pairs that have a contact if they
    are near enough. behind: bool[G, N], see `contacts_behind`."""
    present = np.isfinite(found.least)
    for k, gap in enumerate(gaps):
        yield (
            f"a contact within the gap {gap:g}",
            must & ~present[k] & (found.clearance < gap - slack),
        )
        yield f"no contact beyond the gap {gap:g}", present[k] & (found.clearance > gap + slack)
        yield (
            f"no contact behind a front, gap {gap:g}",
            present[k] & behind[k] & (found.least[k] > slack),
        )
        yield (
            f"no distance of the gap {gap:g} or more",
            present[k] & (found.least[k] >= gap + slack),
        )
        yield (
            f"touch_only has the pairs of contacts, gap {gap:g}",
            found.touch_only[k] != present[k],
        )


def _rules_of_inner_points(
    cases: Sequence[PairCase], found: Answers, slack: np.ndarray
) -> Iterator[Broken]:
    """The clearance against balls around inner points of the shapes."""
    present = np.isfinite(found.least)
    inner, radius, within = inner_distances(cases, found)
    yield "no farther than a point of the shape", found.clearance > inner - radius + slack
    least = np.where(present, found.least, np.inf).min(0)
    deep = present.any(0) & (inner - radius < -slack)
    yield "no less deep than a point of the shape", deep & (least > inner - radius + slack)
    yield (
        "a sphere is its centre and radius",
        (within & (inner > radius)) & (np.abs(found.clearance - (inner - radius)) > slack),
    )


def _rules_of_errors(found: Answers, rounding: np.ndarray) -> Iterator[Broken]:
    """The certified errors of distances. rounding: ROUNDING of the sizes."""
    apart = found.clearance > 0.0
    share = found.error / rounding * ROUNDING
    yield "the error of a distance is certified", apart & (share > RARELY_CERTIFIED)
    for bound, most in ((CERTIFIED, RARE), (ROUNDING, max(RARE, FEW * apart.sum()))):
        beyond = apart & (share > bound)
        yield f"few errors of distances are above {bound:g}", beyond & (beyond.sum() > most)


def all_rules(cases: Sequence[PairCase], found: Answers, gaps: Sequence[float]) -> Iterator[Broken]:
    """See `rules`."""
    voxel = np.array([0.5 * max(case.first.voxel, case.second.voxel) for case in cases])[found.case]
    rounding = np.array(
        [ROUNDING * max(1.0, case.first.extent, case.second.extent) for case in cases]
    )[found.case]
    flattened = np.array([case.first.flattened + case.second.flattened for case in cases])
    slack = rounding + FLOAT32 * np.abs(found.clearance) + voxel + flattened[found.case]
    present = np.isfinite(found.least)
    hidden = np.array([not case.first.two_sided for case in cases])[found.case]
    must = ~hidden
    is_nearest = np.ones_like(hidden)
    behind = np.zeros(found.least.shape, bool)
    if hidden.any():
        front, back = sides(cases, found)
        must[hidden] = front[hidden]
        is_nearest[hidden] = ~back[hidden]
        behind[:, hidden] = contacts_behind(cases, found)[:, hidden]
    yield from _rules_of_gaps(found, gaps, slack, must, behind)
    reach = np.array([*gaps])[:, None]
    off = np.where(present, np.abs(np.where(present, found.least, 0.0) - found.clearance), 0.0)
    yield (
        "contacts have the clearance",
        is_nearest & (off > slack + CONTACT / ROUNDING * rounding).any(0),
    )
    yield from _rules_of_errors(found, rounding)
    overlap = (found.least < -slack).any(0) | (found.clearance < -slack)
    depth = np.where(present, found.least, np.where(reach > 0.0, np.inf, 0.0))
    is_searched = np.array([case.second.is_convex and not case.first.is_convex for case in cases])
    equal = rounding * np.where(is_searched[found.case], DEPTH_IN_SURFACE / ROUNDING, 1.0)
    for k in range(1, len(gaps)):
        differs = np.abs(depth[k] - depth[0]) > equal + FLOAT32 * np.abs(depth[0])
        yield f"the depth at gap {gaps[k]:g} is that without a gap", overlap & differs
    yield (
        "the sign of contacts is that of the clearance",
        (
            ((found.least < -slack) & (found.clearance > slack))
            | ((found.least > slack) & (found.clearance < -slack))
        ).any(0),
    )
    yield (
        "a distance of 0 is a touch",
        (
            (found.clearance == 0.0)
            & present[-1]
            & (np.abs(np.where(present[-1], found.least[-1], 0.0)) > slack)
        ),
    )
    yield (
        "a sweep at rest touches",
        (found.swept != 1) & (found.clearance < SWEEP_TOLERANCE - rounding),
    )
    yield (
        "a sweep at rest is apart",
        (found.swept != 0) & (found.clearance > SWEEP_TOLERANCE + rounding),
    )
    yield from _rules_of_inner_points(cases, found, slack)


def sides(cases: Sequence[PairCase], found: Answers) -> tuple[np.ndarray, np.ndarray]:
    """Whether the second shape is in front of all triangles at the nearest point of the first mesh;
    behind all."""
    front = np.zeros(len(found.case), bool)
    back = np.zeros(len(found.case), bool)
    for row, case in enumerate(found.case):
        form = cases[case].first
        if form.type != ShapeType.MESH:
            continue
        height = triangle_heights(form, found.nearest[row, 0], found.toward[row])
        crosses = found.clearance[row] < 0.0
        front[row] = crosses or bool((height > 1e-6).all())
        back[row] = not crosses and bool((height < -1e-6).all())
    return front, back


def contacts_behind(cases: Sequence[PairCase], found: Answers) -> np.ndarray:
    """bool[G, N]: whether the deepest contact at each gap, from its one point to the other, leads
    off the back of all triangles of the first mesh at its own point.

    A part of the second shape may be in front, within a large gap, while its nearest one is behind.
    """
    behind = np.zeros(found.least.shape, bool)
    for k, row in np.argwhere(np.isfinite(found.least)):
        form = cases[found.case[row]].first
        if form.type == ShapeType.MESH:
            first, second = found.point[k, row]
            length = found.least[k, row]
            toward = (second - first) / length if length else found.normal[k, row]
            height = triangle_heights(form, first, toward)
            behind[k, row] = (height < -1e-6).all()
    return behind


def triangle_heights(form: Form, point: np.ndarray, toward: np.ndarray) -> np.ndarray:
    """How much a direction rises off each triangle that a point is on."""
    distance = point_distances(form.corners, point)
    corners = form.corners[distance < distance.min() + 1e-7]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return normal @ toward / np.linalg.norm(normal, axis=1)


def inner_distances(
    cases: Sequence[PairCase], found: Answers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least signed distance from the first shape of points of the second, the radius of a ball
    about each, and whether that ball is the whole shape.

    The points are the centre of a convex shape and the vertices of a mesh.
    """
    least = np.full(len(found.case), np.inf)
    radius = np.zeros(len(found.case))
    whole = np.zeros(len(found.case), bool)
    for k, case in enumerate(cases):
        rows = np.flatnonzero(found.case == k)
        second = case.second
        points = (
            np.zeros((1, 3)) if second.mesh is None else second.vertices[np.unique(second.mesh[1])]
        )
        if second.type == ShapeType.CONVEX_MESH:
            points = second.vertices
        pose = case.poses[found.row[rows], 1]
        world = np.einsum("pij,vj->pvi", rotation_of(pose), points) + pose[:, None, :3]
        distance = collidecli.signed_distance(
            case.scale * world.reshape(-1, 3), case.first.shape(case.scale)
        )
        least[rows] = np.asarray(distance).reshape(len(rows), -1).min(1) / case.scale
        radius[rows], whole[rows] = (
            (second.size[0], True) if second.type == ShapeType.SPHERE else (0.0, False)
        )
    return least, radius, whole


def report(cases: Sequence[PairCase], found: Answers, broken: Iterator[Broken]) -> list[str]:
    """A line for each rule that is broken, and for the first configurations at which it is."""
    lines = []
    for rule, where in broken:
        rows = np.flatnonzero(where)
        if len(rows):
            lines.append(f"{len(rows)} of {len(where)}: {rule}")
            lines += [described(cases, found, row) for row in rows[:LISTED].tolist()]
    return lines


def described(cases: Sequence[PairCase], found: Answers, row: int) -> str:
    case = cases[found.case[row]]
    pose = case.poses[found.row[row], 1].tolist()
    return (
        f"  {case}: contacts {found.least[:, row].tolist()}, clearance {found.clearance[row]:.17g} "
        f"(error {found.error[row]:.2g}), sweep {found.swept[row]}, pose {pose}"
    )
