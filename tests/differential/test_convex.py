"""Convex pairs in every combination of nearest features, hulls, convex meshes and deep overlaps
against oracles."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, HalfspaceIntersection

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_surface import convex_surface
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.certificates import (
    EVERY,
    Report,
    Scene,
    Shapes,
    better_direction,
    examine,
    feature_pairs,
    resting_scene,
)
from tests.support.hydroelastic import RIGID, rotated, surface
from tests.support.meshes import blob, box, cut
from tests.support.oracle import check_contract, directions_on_sphere, rotation_of, unit
from tests.support.piles import SettledPile, settled_pile
from tests.support.poses import (
    FEATURES,
    Convex,
    HullSet,
    collided,
    collided_on_terrain,
    convex_shapes,
    deep_terrain,
    dented_meshes,
    hull_mesh,
    hull_set,
    measure,
    poses_of_two,
    random_quaternions,
    relative_pose,
    solid_without_base,
)
from tests.support.poses import random_deep_poses as deep_poses_of
from tests.unit.engine.hydroelastic.test_polytopes import hull_pair

TYPES = tuple(FEATURES)
PAIRS = [(a, b) for i, a in enumerate(TYPES) for b in TYPES[i:] if b != ShapeType.PLANE]
ROUND = (ShapeType.CYLINDER, ShapeType.CONE, ShapeType.ELLIPSOID)
SAMPLE = 300
FULL = 20_000
DISTANCE = 1e-7
"""Share of the size by which a distance may be off."""
SHORT = 2e-7
SHORT_OF_ROUND = 2e-5
"""Share of the size by which the gap along the normal may miss the distance: GJK of a round shape
and one with corners, 1e-5 of the size apart, may end at a sliver, whose normal is rounding."""
SURFACE = 2e-6
EXACT_SURFACE = 1e-7
MERGED_SURFACE = 5e-7
"""Share of the size by which a witness may be off its surface: of round shapes, of polytopes, and
of polytopes with faces that are merged of triangles out of one plane by COPLANAR."""
RARE = 2000
RARE_OF_HULLS = 500
"""Poses, of which one may have a witness off its surface by as much as the bounds below; some of
the hulls have merged faces."""
SUPPORTED = 1e-9
ACROSS = 1e-6
"""GJK ends where a plane supports v to SUPPORTED of the size, or, mostly, where v is known to ACROSS
of itself. Of two flat surfaces a witness is then off by ACROSS of the cores' distance at most, and
the gap along the normal, which is off by ACROSS [rad], by that of both sizes. On a
round surface of radius R, two points whose distance is longer than the least by g are up to
sqrt(2 g R) from those that attain it."""
COINCIDENT = 1e-9
"""Share of the size at which two contacts of a pair are in one place."""


@cache
def hulls() -> HullSet:
    return hull_set(np.random.default_rng(1))


def has_hull(type_a: ShapeType, type_b: ShapeType) -> bool:
    return ShapeType.CONVEX_MESH in (type_a, type_b)


def check(
    scene: Scene, type_a: ShapeType, type_b: ShapeType, what: str, surface: float = 0.0
) -> Report:
    """Asserts what is proved of every pair; pairs that the engine itself counts as inexact may be
    off."""
    contacts = scene.run(EVERY)
    report = examine(scene, contacts)
    assert not report.missed.any(), f"{what}: {scene.pose[report.missed][:1]!r}"
    assert not report.phantom.any(), f"{what}: {scene.pose[report.phantom][:1]!r}"
    assert not report.unproved.any(), f"{what}: {scene.pose[report.unproved][:1]!r}"
    assert report.distance.max() <= DISTANCE, f"{what}: {scene.pose[report.distance.argmax()]!r}"
    assert report.too_deep.max() <= DISTANCE, f"{what}: {scene.pose[report.too_deep.argmax()]!r}"
    is_round = type_a in ROUND or type_b in ROUND
    short = report.short > (SHORT_OF_ROUND if is_round else SHORT)
    message = f"{what}: {report.short.max()}, {scene.pose[report.short.argmax()]!r}"
    assert short.sum() <= len(short) // RARE, message
    assert report.short.max() <= max(SHORT_OF_ROUND * is_round, 2.0 * ACROSS), message
    surface = surface or (EXACT_SURFACE if has_hull(type_a, type_b) and not is_round else SURFACE)
    off = report.off_surface > surface
    message = f"{what}: {report.off_surface.max()}, {scene.pose[off][:1]!r}"
    rare_count = len(off) // (RARE_OF_HULLS if has_hull(type_a, type_b) else RARE)
    assert off.sum() <= report.inexact + rare_count, message
    # GJK is between cores, at most a radius, which is part of the size, farther apart.
    of_cores = 1.0 + np.abs(report.least) / scene.scale()
    rare = MERGED_SURFACE + ((2.0 * SUPPORTED) ** 0.5 if is_round else ACROSS * of_cores)
    assert (report.off_surface > rare).sum() <= report.inexact, message
    assert report.coincident.min() > COINCIDENT, (
        f"{what}: {scene.pose[report.coincident.argmin()]!r}"
    )
    return report


def check_presence(scene: Scene) -> None:
    """A contact is there where the distance is below the reach, and none where it is not; by 1e-6
    of the size."""
    here = scene[scene.apart > 1e-5 * scene.scale()]
    level = 1e-6 * here.scale()
    assert np.all(here.run(here.apart + level).count > 0)
    assert np.all(here.run(here.apart - level).count == 0)


@pytest.mark.share(15, 3)
@pytest.mark.parametrize("count", [SAMPLE, pytest.param(FULL, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].label}-{pair[1].label}")
def test_nearest_features_of_each_kind(pair, count):
    combinations = feature_pairs(*pair)
    for k, (feature_a, feature_b) in enumerate(combinations):
        rng = np.random.default_rng([*map(int, pair), k])
        scene = resting_scene(
            pair[0], feature_a, pair[1], feature_b, count // len(combinations), rng, hulls()
        )
        report = check(scene, *pair, f"{feature_a} and {feature_b}")
        check_presence(scene)
        if pair[0] != ShapeType.PLANE:
            better = better_direction(scene, scene.run(EVERY), rng, 60)
            assert np.sum(better > DISTANCE) <= report.inexact


@pytest.mark.parametrize("other", [ShapeType.BOX, ShapeType.CONVEX_MESH], ids=["box", "hull"])
def test_thin_hulls_have_their_contacts_on_their_surfaces(other):
    """Plates and slabs down to a thousandth of their width, faces, edges and corners against each
    other."""
    rng = np.random.default_rng(23)
    clouds = [
        rng.normal(size=(n, 3)) * [1.0, 0.7, h] for n in (6, 12, 30, 60) for h in (1e-3, 1e-2, 0.05)
    ]
    thin = HullSet([size * one / np.abs(one).max() for size in (1e-3, 1.0, 1e3) for one in clouds])
    are_merged = [k for k, hull in enumerate(thin.hulls) if max(map(len, hull.face)) > 3]
    assert 0 < len(are_merged) < len(thin.hulls)
    for feature_a in FEATURES[other]:
        for feature_b in FEATURES[ShapeType.CONVEX_MESH]:
            scene = resting_scene(
                other, feature_a, ShapeType.CONVEX_MESH, feature_b, 150, rng, thin
            )
            what = f"{feature_a} and {feature_b}"
            report = check(scene, other, ShapeType.CONVEX_MESH, what, MERGED_SURFACE)
            merged = np.isin(scene.b.which, are_merged)
            if other == ShapeType.CONVEX_MESH:
                merged |= np.isin(scene.a.which, are_merged)
            assert report.off_surface[~merged].max() <= EXACT_SURFACE, what


MIXES = [
    ("sphere", "capsule", "box", "cylinder", "ellipsoid"),
    ("box", "cylinder"),
    ("capsule", "cylinder", "ellipsoid"),
    ("box", "hull", "cone"),
    ("cylinder", "cone", "hull", "capsule", "sphere"),
]
LABELS = {"hull": ShapeType.CONVEX_MESH} | {
    kind.label: kind for kind in TYPES if kind != ShapeType.CONVEX_MESH
}
GAP = 0.01


def check_pile(pile: SettledPile) -> tuple[int, int]:
    """Examines every pair of a pile whose bounding balls are within GAP; returns pairs and touching
    ones."""
    kinds = np.array([LABELS[kind] for kind in pile.types])
    order = sorted(pile.hulls)
    set_of_hulls = HullSet([pile.hulls[index] for index in order]) if order else None
    number = np.full(len(kinds), -1)
    number[order] = np.arange(len(order))
    poses = pile.poses.copy()
    sizes = pile.sizes.copy()
    for index in order:
        # The engine's hulls have the centre of their box at the origin.
        hull = set_of_hulls.hulls[number[index]]
        turn = rotation_of(poses[:, index])
        poses[:, index, :3] += turn @ hull.center
        sizes[index] = hull.half_extents
    radius = np.linalg.norm(sizes, axis=1)
    radius[kinds == ShapeType.CAPSULE] = sizes[kinds == ShapeType.CAPSULE, :2].sum(1)
    contacts = run_pile(pile)
    expected = set()
    optional = set()
    pairs = 0
    touching = 0
    for frame, pose in enumerate(poses):
        apart = (
            np.linalg.norm(pose[:, None, :3] - pose[None, :, :3], axis=-1)
            - radius[:, None]
            - radius[None]
        )
        i, j = np.nonzero(np.triu(apart < GAP, 1))
        swap = kinds[i] > kinds[j]
        i, j = np.where(swap, j, i), np.where(swap, i, j)
        for type_a, type_b in sorted(set(zip(kinds[i].tolist(), kinds[j].tolist(), strict=True))):
            rows = (kinds[i] == type_a) & (kinds[j] == type_b)
            a = i[rows]
            b = j[rows]
            shapes = [
                Shapes(ShapeType(kind), sizes[index], set_of_hulls, number[index])
                for kind, index in ((type_a, a), (type_b, b))
            ]
            scene = Scene(*shapes, relative_pose(pose[a], pose[b]), np.full(len(a), -1e9))
            report = check(scene, ShapeType(type_a), ShapeType(type_b), f"frame {frame}")
            pairs = pairs + len(a)
            touching = touching + int((report.least < 0.0).sum())
            for one, other, distance in zip(a, b, report.least, strict=True):
                key = (frame, min(one, other), max(one, other))
                if abs(distance - GAP) <= 1e-6 * radius.max():
                    optional.add(key)
                elif distance < GAP:
                    expected.add(key)
    assert expected <= contacts
    assert contacts <= expected | optional
    return pairs, touching


def run_pile(pile: SettledPile) -> set[tuple[int, int, int]]:
    """The pairs that a run with a gap of GAP reports: frame and the two bodies."""
    builder = ModelBuilder()
    for index, kind in enumerate(pile.types):
        body = builder.add_body()
        if kind == "hull":
            builder.add_shape_convex_hull(body, pile.hulls[index])
        else:
            count = {"sphere": 1, "capsule": 2, "cylinder": 2, "cone": 2}.get(kind, 3)
            builder.add_shape(body, LABELS[kind], pile.sizes[index, :count])
    contacts = collidecli.collide(builder.finalize(), pile.poses[:, None], gap=GAP)
    found = set()
    for frame in range(len(pile.poses)):
        cell = contacts.cell(frame)
        found |= {(frame, int(x), int(y)) for x, y in zip(cell.shape0, cell.shape1, strict=True)}
    return found


@pytest.mark.share(4, 2)
@pytest.mark.parametrize(
    ("pile", "least"),
    [((250, 3, 40), 50), pytest.param((500, 15, 4), 10_000, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("mix", MIXES, ids=["-".join(mix) for mix in MIXES])
def test_settled_piles(mix, pile, least):
    pairs, touching = check_pile(settled_pile(60 if least == 50 else 1000, mix, *pile))
    assert pairs > touching > least


# Convex hulls against what settles the question without any search, and against primitives that are
# the same solid.

CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))
POSES = 150
SIZES = [1e-3, 1.0, 1e3]


def cloud(rng: np.random.Generator, size: float) -> np.ndarray:
    return size * rng.normal(size=(rng.integers(5, 90), 3)) * rng.uniform(0.3, 1.0, 3)


def poses(rng: np.random.Generator, size: float, max_separation: float = 3.0) -> np.ndarray:
    """float64[POSES, 1, 2, 7]: two bodies, from deep in each other to well apart."""
    out = np.zeros((POSES, 1, 2, 7))
    out[..., 3:] = random_quaternions(rng, POSES, 1, 2)
    away = rng.normal(size=(POSES, 3))
    away *= rng.uniform(0.0, max_separation * size, (POSES, 1)) / np.linalg.norm(
        away, axis=1, keepdims=True
    )
    out[:, 0, 1, :3] = away
    return out


def found(add_first, add_second, body_q: np.ndarray, gap: float):
    builder = ModelBuilder()
    add_first(builder, builder.add_body())
    add_second(builder, builder.add_body())
    return collidecli.collide(builder.finalize(), body_q, gap=gap)


def nearest(contacts, frame: int):
    """Distance, normal and witnesses of a frame's nearest contact."""
    cell = contacts.cell(frame)
    i = int(np.argmin(cell.distance))
    return float(cell.distance[i]), cell.normal[i].astype(float), cell.point0[i], cell.point1[i]


def in_world(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    return points @ rotation_of(pose[None])[0].T + pose[:3]


def check_hulls(p: np.ndarray, q: np.ndarray, contact, size: float = 1.0) -> float:
    """The distance of two hulls of points in world, once it is bounded from both sides by no
    search."""
    distance, normal, point0, point1 = contact
    # Along the normal q is at least `distance` beyond p, whatever its sign: a lower bound.
    assert (q @ normal).min() - (p @ normal).max() == pytest.approx(distance, abs=1e-6 * size)
    if distance < 0.0:  # the nearest face of the Minkowski difference
        difference = (q[:, None] - p[None]).reshape(-1, 3) / size
        assert -distance == pytest.approx(
            -ConvexHull(difference).equations[:, 3].max() * size, abs=1e-6 * size
        )
    else:  # the witnesses are in the hulls, that far apart: an upper bound
        assert np.linalg.norm(point1 - point0) == pytest.approx(distance, abs=1e-6 * size)
        for point, points in ((point0, p), (point1, q)):
            planes = ConvexHull(points / size).equations
            assert (planes[:, :3] @ point / size + planes[:, 3]).max() < 1e-6
    return distance


def hulls_of(a: np.ndarray, b: np.ndarray, body_q: np.ndarray, gap: float):
    return found(
        lambda to, body: to.add_shape_convex_hull(body, a),
        lambda to, body: to.add_shape_convex_hull(body, b),
        body_q,
        gap,
    )


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_two_hulls(seed, size):
    rng = np.random.default_rng(seed)
    a = cloud(rng, size)
    b = cloud(rng, size)
    body_q = poses(rng, size, 6.0)
    contacts = hulls_of(a, b, body_q, 100 * size)
    world = [(in_world(a, first), in_world(b, second)) for first, second in body_q[:, 0]]
    distances = [
        check_hulls(p, q, nearest(contacts, frame), size) for frame, (p, q) in enumerate(world)
    ]
    assert 20 < np.sum(np.array(distances) < 0.0) < POSES - 20


@pytest.mark.parametrize(
    "stretch", [(1.0, 1.0, 1.0), (0.2, 0.3, 1.0), (1.0, 1.0, 0.1)], ids=["ball", "rod", "plate"]
)
def test_dense_hulls_nearer_to_each_other_than_their_vertices(stretch):
    """Apart by a millionth to a twentieth of their size along some line; vertices are some 0.15
    apart."""
    rng = np.random.default_rng(11)
    points = unit(rng.normal(size=(300, 3))) * stretch
    body_q = poses(rng, 1.0)
    apart = 10.0 ** rng.uniform(-6.0, -1.3, POSES)
    world = []
    for pose, distance in zip(body_q[:, 0], apart, strict=True):
        away = unit(pose[1:, :3])[0]
        pose[:, :3] = 0.0
        p, q = (in_world(points, one) for one in pose)
        pose[1, :3] = ((p @ away).max() - (q @ away).min() + distance) * away
        world.append((p, q + pose[1, :3]))
    contacts = hulls_of(points, points, body_q, 1.0)
    for frame, (p, q) in enumerate(world):
        assert check_hulls(p, q, nearest(contacts, frame)) > 0.99 * apart[frame]


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "turn", [(0.0, 0.0, 0.0, 1.0), (0.5, 0.5, 0.5, 0.5), (1e-5, 0.0, 0.0, 1.0)]
)
@pytest.mark.parametrize("offset", [0.0, 1e-12, 0.05])
def test_round_hulls_one_in_the_other(offset, turn):
    """Nearly every direction is as good as the best: more than EPA's capacity."""
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6], body_q[0, 0, 1, 0], body_q[0, 0, 1, 3:] = (
        1.0,
        offset,
        turn / np.linalg.norm(turn),
    )
    for counts in ((200, 200), (200, 150), (150, 200)):
        points, other = map(directions_on_sphere, counts)
        contact = nearest(hulls_of(points, other, body_q, 1.0), 0)
        assert check_hulls(points, in_world(other, body_q[0, 0, 1]), contact) < 0.0


def test_a_hull_on_the_ground_has_the_corners_of_its_face():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_convex_hull(builder.add_body(), CUBE)
    resting = np.array([[[[0.0, 0.0, 0.99, 0.0, 0.0, 0.0, 1.0]]]])
    contacts = collidecli.collide(builder.finalize(), resting)
    np.testing.assert_allclose(contacts.distance, [-0.01] * 4, atol=1e-6)
    corners = {(float(x), float(y)) for x, y, _ in np.round(contacts.point1, 6)}
    assert corners == set(product([-1.0, 1.0], repeat=2))


def uneven_prism(rng: np.random.Generator) -> np.ndarray:
    """A prism of 64 sides whose corners, and points between them, are up to 2e-7 off its caps."""
    angle = np.linspace(0.0, 2.0 * np.pi, 65)[:-1]
    rim = np.stack([np.cos(angle), np.sin(angle), np.zeros(64)], axis=1)
    rim = np.concatenate([rim, 0.5 * (rim + np.roll(rim, -1, axis=0))])
    points = np.concatenate([rim + np.array([0.0, 0.0, z]) for z in (-0.5, 0.5)])
    return points + rng.uniform(-2e-7, 2e-7, points.shape)


@pytest.mark.parametrize("dense", [True, False])
def test_the_farthest_vertex_of_a_large_hull_is_climbed_to(dense):
    """Hulls of more vertices than are looked through, in directions all around: as heights over a
    plane."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(2000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    body_q = poses(rng, 1.0, 0.5)
    if not dense:
        points = uneven_prism(rng)
        # Planes all but level with a cap, at angles that its corners' unevenness makes too.
        body_q[..., 3:] = 0.0
        body_q[..., 6] = 1.0
        body_q[:, 0, 1, 3:5] = rng.normal(size=(POSES, 2)) * 10.0 ** rng.uniform(
            -7.0, -3.0, (POSES, 1)
        )
        body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    contacts = found(
        lambda to, body: to.add_shape_plane(body),
        lambda to, body: to.add_shape_convex_hull(body, points),
        body_q,
        10.0,
    )
    for frame in range(POSES):
        plane = body_q[frame, 0, 0]
        height = (in_world(points, body_q[frame, 0, 1]) - plane[:3]) @ rotation_of(plane[None])[0][
            :, 2
        ]
        assert contacts.cell(frame).distance.min() == pytest.approx(height.min(), abs=1e-6)


# Triangle meshes that are convex meet as hulls: their features are still the mesh's. Depths are in
# tests/matrix.

FRAMES = 40
BALL = blob(np.random.default_rng(0), 6, 9, 0.0)


def ball_and_box(as_mesh: bool, first: bool, size: float):
    """The ball, as a mesh or as a hull, and a box, in either order."""
    builder = ModelBuilder()
    for is_ball in (first, not first):
        if not is_ball:
            builder.add_shape_box(builder.add_body(), hx=0.2 * size, hy=0.3 * size, hz=0.1 * size)
        elif as_mesh:
            builder.add_shape_mesh(builder.add_body(), size * BALL[0], BALL[1])
        else:
            builder.add_shape_convex_hull(builder.add_body(), size * BALL[0])
    return builder.finalize()


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("first", [True, False])
def test_a_convex_mesh_has_the_contacts_of_its_hull(size, first):
    """Named as the mesh's: `tests/unit/scene/test_convex_surface.py` holds the names against its
    vertices and sides."""
    surface = convex_surface(triangle_mesh(size * BALL[0], BALL[1], "ball"))
    assert surface is not None
    body_q = poses_of_two(np.random.default_rng(9), FRAMES, 1.4)
    body_q[..., :3] *= size
    mesh, hull = (
        collidecli.collide(ball_and_box(kind, first, size), body_q, gap=0.2 * size)
        for kind in (True, False)
    )
    np.testing.assert_array_equal(mesh.cell_start, hull.cell_start)
    kinds = set()
    for frame in range(FRAMES):
        ours = mesh.cell(frame)
        theirs = hull.cell(frame)
        check_contract(ours, size)
        named = [theirs.feature0, theirs.feature1]
        named[0 if first else 1] = surface.name[named[0 if first else 1]]
        order = np.lexsort(named[::-1])
        np.testing.assert_array_equal(ours.feature0, named[0][order])
        np.testing.assert_array_equal(ours.feature1, named[1][order])
        np.testing.assert_allclose(ours.distance, theirs.distance[order], atol=1e-6 * size)
        np.testing.assert_allclose(ours.point0, theirs.point0[order], atol=1e-5 * size)
        kinds |= set((named[0 if first else 1] % 3).tolist())
    assert kinds == {0, 1, 2}


def test_faces_are_whole_however_they_are_cut():
    """A box on a box, both of triangles: the corners of what they share, none of the diagonals'."""
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *box(1.0, 1.0, 0.2))
    builder.add_shape_mesh(builder.add_body(), *box(0.3, 0.2, 0.1))
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.2, hz=0.1)
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, :, :3] = [[0.3, 0.2, 0.299], [-0.5, 0.2, 0.299]]
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.01)
    assert list(zip(contacts.shape0, contacts.shape1, strict=True)) == [(0, 1)] * 4 + [(0, 2)] * 4
    np.testing.assert_allclose(contacts.distance, -0.001, atol=1e-8)
    np.testing.assert_allclose(contacts.normal, np.tile([0.0, 0.0, 1.0], (8, 1)), atol=1e-9)


# Surfaces of hulls against the volumes of polyhedra: exact, by another algorithm and another
# library.


def face_planes(builder: ModelBuilder) -> list[np.ndarray]:
    """float64[faces, 4] of both hulls: unit normal and offset; normal . x + offset is the distance
    from a face."""
    model = builder.finalize()
    found = []
    for row in range(2):
        hull = model.hulls[model.shapes.hull[row]]
        pose = model.bodies.pose[model.shapes.body[row]]
        shift = rotated(pose[3:], model.shapes.pose[row, :3]) + pose[:3]
        normal = rotated(pose[3:], hull.face_normal)
        height = [
            (hull.vertex[list(f)] @ n).max()
            for f, n in zip(hull.face, hull.face_normal, strict=True)
        ]
        found.append(np.column_stack([normal, -(np.array(height) + normal @ shift)]))
    return found


def volume_and_moment(half_spaces: np.ndarray) -> tuple[float, np.ndarray]:
    """Integrals of 1 and of the position over the points with normal . x + offset <= 0 for all
    rows."""
    rows = half_spaces / np.linalg.norm(half_spaces[:, :3], axis=1)[:, None]
    widest = linprog(
        [0, 0, 0, -1],
        A_ub=np.column_stack([rows[:, :3], np.ones(len(rows))]),
        b_ub=-rows[:, 3],
        bounds=[(None, None)] * 3 + [(0, None)],
    )
    if widest.status != 0 or widest.x[3] < 1e-7:
        return 0.0, np.zeros(3)
    hull = ConvexHull(HalfspaceIntersection(rows, widest.x[:3]).intersections)
    corner = hull.points[hull.simplices] - widest.x[:3]
    volume = np.abs(np.linalg.det(corner)) / 6.0
    middle = corner.sum(axis=1) / 4.0 + widest.x[:3]
    return volume.sum(), volume @ middle


def wrench(builder: ModelBuilder, k0: float, k1: float) -> tuple[np.ndarray, np.ndarray]:
    """Force on shape 1 and its moment about the origin, by the divergence theorem.

    The integral of p n over the surface is that of -grad p0 over the part of the overlap where p0 <
    p1, which is a convex polyhedron for each face of shape 0.
    """
    first, second = face_planes(builder)
    weight0, weight1 = (k0 / (k0 + k1), k1 / (k0 + k1)) if np.isfinite(k1) else (0.0, 1.0)
    force = np.zeros(3)
    moment = np.zeros(3)
    for number, plane in enumerate(first):
        rows = [
            plane[None],
            np.delete(first, number, axis=0) - plane,
            weight1 * second - weight0 * plane,
        ]
        volume, position = volume_and_moment(np.concatenate(rows))
        force += k0 * volume * plane[:3]
        moment += k0 * np.cross(position, plane[:3])
    return force, moment


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k1", [1e6, 4e6, 1e12, RIGID])
def test_hulls_against_volumes(seed, k1):
    builder = hull_pair(seed, 1e6, k1)
    found = surface(builder)
    force, moment = wrench(builder, 1e6, k1)
    scale = np.linalg.norm(force)
    assert scale > 1e3
    np.testing.assert_allclose(found.force, force, atol=1e-9 * scale)
    np.testing.assert_allclose(
        found.torque + np.cross(found.center, found.force), moment, atol=1e-9 * scale
    )


# Convex shapes deep in meshes and heightfields with dents: the depth is the least translation, and
# it separates.

DIRECTIONS = directions_on_sphere(300)
ALLOWED = 1.05


def check_deep(found: list) -> None:
    """Depths of overlaps that are one region, in which every pose is free after the translation
    that is reported."""
    overlapping = [one for one in found if one.least > 0.0]
    assert overlapping
    for one in overlapping:
        assert one.separates, one
        assert one.ratio <= ALLOWED, one


@pytest.mark.share(6, 2)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("surface", ["blob", "torus", "star", "bend"])
def test_convex_shapes_in_dented_meshes(surface, scale):
    vertices, faces = dented_meshes()[surface]
    mesh = scale * vertices, faces
    for size in (0.3, 1.0) if scale == 1.0 else (0.5,):
        for k, convex in enumerate(convex_shapes(size * scale)[: 2 if scale == 1.0 else 1]):
            poses = deep_poses_of(40 + k, 3, 0.8) * [*[scale] * 3, 1.0, 1.0, 1.0, 1.0]
            found = measure(mesh, convex, poses, collided(mesh, convex, poses), DIRECTIONS)
            check_deep([one for one in found if one.regions < 2])


def test_what_leaves_triangles_across_their_sides():
    """Off each single triangle the least translation crosses a side; it is 2 to 22 times as long as
    the others."""
    angle = np.linspace(0.0, 2.0 * np.pi, 64, endpoint=False)
    rim = 0.3 * np.stack([np.cos(angle), np.sin(angle), np.full(64, -1.0)], axis=1)
    mesh = hull_mesh(np.concatenate([rim, [[0.0, 0.0, 0.3]]]))
    cone = Convex(
        "cone", lambda b, body: b.add_shape_cone(body, radius=0.3, half_height=0.3), mesh, False
    )
    brick = Convex(
        "box", lambda b, body: b.add_shape_box(body, hx=0.3, hy=0.2, hz=0.15), box(0.3, 0.2, 0.15)
    )
    poses = (
        (cone, (-0.347, 0.194, 0.79, -0.191, -0.538, -0.769, 0.288), 0.19248),
        (cone, (-0.001, -0.084, -1.021, -0.156, 0.705, -0.491, -0.487), 0.02916),
        (cone, (-0.668, 0.109, 0.124, -0.766, 0.454, 0.052, 0.452), 0.24309),
        (
            brick,
            (-0.6826874, -0.4991643, -0.3941948, 0.907303, -0.1154098, -0.4035318, 0.0253779),
            3.459e-5,
        ),
    )
    surface = dented_meshes()["blob"]
    for convex, pose, depth in poses:
        placed = np.array([[*pose[:3], *unit(np.array([pose[3:]]))[0]]])
        found = measure(surface, convex, placed, collided(surface, convex, placed), DIRECTIONS)
        assert found[0].reported == pytest.approx(depth, rel=1e-3, abs=1e-6)
        check_deep(found)


@pytest.mark.share(2, 2)
@pytest.mark.parametrize("size", [0.2, 0.5])
def test_boxes_in_a_terrain(size):
    """The base does not count: what is in the ground is lifted, or leaves through a wall."""
    terrain = deep_terrain()
    convex = convex_shapes(size)[0]
    poses = deep_poses_of(int(10 * size), 5, 0.9)
    poses[:, 2] = 0.6 * poses[:, 2] - 0.2
    contacts = collided_on_terrain(terrain, convex, poses)
    found = measure(solid_without_base(terrain), convex, poses, contacts, DIRECTIONS)
    check_deep([one for one in found if one.regions < 2])


def test_a_box_over_the_rim_of_a_slab_is_lifted():
    """Half of it hangs over the edge of a finely meshed slab: it leaves upwards, by its
    penetration."""
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *cut(box(0.5, 0.5, 0.15), 10))
    builder.add_shape_box(builder.add_body(), hx=0.11, hy=0.12, hz=0.1)
    body_q = np.tile([0.0, 0.013, 0.24, 0.0, 0.0, 0.0, 1.0], (9, 1, 1, 1))
    body_q[:, 0, 0, 0] = 0.5 + np.linspace(-0.05, 0.05, 9)
    model = builder.finalize()
    assert model.meshes[0].is_closed
    contacts = collidecli.collide(model, body_q, gap=0.0)
    np.testing.assert_allclose(
        contacts.normal, np.tile([0.0, 0.0, 1.0], (len(contacts.normal), 1)), atol=1e-3
    )
    for frame in range(9):
        assert contacts.cell(frame).distance.min() == pytest.approx(-0.01, abs=1e-6)
