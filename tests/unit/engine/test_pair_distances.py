"""Least distances of pairs without a cutoff: against a float64 oracle, brute force and exact
gaps."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.engine.distances import pairs as pair_distances
from collidecli.engine.distances.pairs import PairDistances
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.errors import InputError
from collidecli.numerics.poses import compose_poses
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.property.test_touch_only import pairs_of_contacts, touches
from tests.support.device_traffic import counted_traffic
from tests.support.engine_runs import add_planes, add_shapes, random_poses
from tests.support.mesh_pairs import mesh_distance
from tests.support.meshes import blob, box, point_distances, segment_distances, torus
from tests.support.oracle import rotation_of, signed_distance
from tests.support.pair_runner import SHAPES
from tests.support.sheets import (
    PROPORTIONS,
    add_convex,
    add_sheet,
    exact_rotations,
    gap_above,
    local_poses_above,
    poses_above,
    sheet_poses,
)
from tests.support.sheets import TYPES as TYPES_ABOVE_SHEETS

IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
TYPES = [t for t in SHAPES if t != ShapeType.PLANE]
CUBE = box(0.3, 0.3, 0.3)


def at(*position: float) -> np.ndarray:
    """float64[7]: a pose without rotation."""
    return np.array([*position, 0.0, 0.0, 0.0, 1.0])


def measured(builder: ModelBuilder, poses, rows=None, **options):
    """Distances of rows (0, 1), or of the given ones, at shape poses [N, 2, 7]."""
    model = builder.finalize()
    poses = np.asarray(poses, np.float64).reshape(-1, 2, 7)
    rows = np.tile([0, 1], (len(poses), 1)) if rows is None else rows
    return PairDistances(model, find_device("cpu"), np.unique(rows, axis=0), **options).measure(
        rows, poses
    )


def add(builder: ModelBuilder, kind: str, size: float = 1.0) -> int:
    """A body with one shape of a kind, around 1 m times `size`."""
    body = builder.add_body()
    if kind == "mesh":
        vertices, faces = torus(7, 5)
        return builder.add_shape_mesh(body, size * vertices, faces)
    if kind == "cube":
        return builder.add_shape_mesh(body, *box(size, size, size))
    if kind == "hull":
        return builder.add_shape_convex_hull(body, size * blob(np.random.default_rng(3), 4, 5)[0])
    shape_type = ShapeType[kind.upper()]
    return builder.add_shape(
        body, shape_type, size * np.array([x for x in SHAPES[shape_type] if x > 0.0])
    )


def corners_of(builder: ModelBuilder, row: int, pose: np.ndarray) -> np.ndarray:
    """float64[F, 3, 3]: the triangles of a mesh in the world."""
    mesh = builder.finalize().meshes[row]
    return mesh.vertex[mesh.face] @ rotation_of(pose).T + pose[:3]


def spread_poses(seed: int, count: int, spread: float) -> np.ndarray:
    """float64[count, 2, 7]: random poses of both shapes."""
    return random_poses(np.random.default_rng(seed), (count, 2), spread)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_convex_pairs_have_the_oracles_distance(size):
    builder = ModelBuilder()
    count = 4
    for shape_type in TYPES:
        add(builder, shape_type.label, size)
    pairs = list(combinations(range(len(TYPES)), 2))
    rows = np.repeat(pairs, count, axis=0)
    poses = spread_poses(7, len(rows), 1.3 * size)
    found = measured(builder, poses, rows)
    for k, (a, b) in enumerate(pairs):
        part = slice(count * k, count * (k + 1))
        sizes = [size * np.array(SHAPES[TYPES[row]]) for row in (a, b)]
        inverse = poses[part, 0] * [1, 1, 1, -1, -1, -1, 1]
        relative = compose_poses(
            inverse,
            np.concatenate([poses[part, 1, :3] - poses[part, 0, :3], poses[part, 1, 3:]], 1),
        )
        relative[:, :3] -= compose_poses(inverse, np.tile(IDENTITY, (count, 1)))[:, :3]
        truth, _ = signed_distance(TYPES[a], sizes[0], TYPES[b], sizes[1], relative)
        np.testing.assert_allclose(found.distance[part], truth, atol=1e-8 * size)
        off = np.abs(found.distance[part] - truth)
        assert np.all(off <= found.error[part] + 1e-9 * size)
    assert 0.1 < (found.distance < 0.0).mean() < 0.9
    assert found.error[found.distance > 0.0].max() < 1e-9 * size
    assert np.isinf(found.error[found.distance < 0.0]).all()


def test_normals_run_from_shape0_to_shape1():
    builder = ModelBuilder()
    rng = np.random.default_rng(1)
    add_planes(builder)
    add_shapes(builder, rng, 7)
    for kind in ("mesh", "hull", "cube"):
        add(builder, kind, 0.3)
    count = len(builder.finalize().shapes)
    rows = np.array([pair for pair in combinations(range(count), 2) if pair[1] > 1])
    found = measured(builder, spread_poses(2, len(rows), 2.0), rows)
    off = found.point1 - found.point0
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(off, found.distance[:, None] * found.normal, atol=1e-12)
    apart = found.distance > 0.0
    np.testing.assert_allclose(
        np.linalg.norm(off[apart], axis=1), found.distance[apart], atol=1e-12
    )


def two_spheres_and_planes() -> ModelBuilder:
    builder = ModelBuilder()
    for _ in range(2):
        builder.add_shape_sphere(
            builder.add_body(), radius=1.0, cfg=ShapeConfig(margin=0.1, gap=0.3)
        )
        builder.add_shape(-1, ShapeType.PLANE, ())
    return builder


def test_margins_do_not_count_for_distances_of_shapes_far_apart():
    builder = two_spheres_and_planes()
    found = measured(builder, [[IDENTITY, at(3e5, 4e5, 0.0)]], np.array([[0, 2]]))
    assert abs(found.distance[0] - 499_998.0) < 1e-9
    assert found.error[0] < 1e-8


def test_two_planes_have_no_distance():
    builder = two_spheres_and_planes()
    with pytest.raises(InputError, match="two planes have no distance"):
        measured(builder, [[IDENTITY, IDENTITY]], np.array([[1, 3]]))


@pytest.mark.parametrize("other", ["mesh", "cube"])
def test_two_meshes_have_the_distance_of_brute_force_at_any_size(other):
    found = []
    poses = spread_poses(5, 5, 1.8)
    for size in (1.0, 1e-3, 1e3):
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), size * torus(7, 4)[0], torus(7, 4)[1])
        add(builder, other, 0.4 * size)
        found.append(measured(builder, poses * [size, size, size, 1, 1, 1, 1]))
        if size == 1.0:
            triangles = [[corners_of(builder, row, pose[row]) for row in (0, 1)] for pose in poses]
    for k, (first, second) in enumerate(triangles):
        truth = mesh_distance(first, second)
        if truth > 0.0 and found[0].distance[k] >= 0.0:
            assert abs(found[0].distance[k] - truth) <= min(1e-12, found[0].error[k] + 1e-15)
            assert point_distances(first, found[0].point0[k]).min() < 1e-12
            assert point_distances(second, found[0].point1[k]).min() < 1e-12
        else:
            assert found[0].distance[k] < 0.0
    assert (found[0].distance > 0.0).sum() >= 3
    np.testing.assert_allclose(found[1].distance, 1e-3 * found[0].distance, rtol=1e-9)
    np.testing.assert_allclose(found[2].distance, 1e3 * found[0].distance, rtol=1e-9)


def test_convex_shapes_have_the_distance_of_a_meshs_triangles():
    builder = ModelBuilder()
    add(builder, "mesh")
    builder.add_shape_sphere(builder.add_body(), radius=0.2)
    builder.add_shape_capsule(builder.add_body(), radius=0.1, half_height=0.5)
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.3, hz=0.3)
    builder.add_shape_convex_hull(builder.add_body(), CUBE[0])
    poses = spread_poses(4, 12, 1.7)
    rows = np.tile([[0, 1], [0, 2], [0, 3], [0, 4]], (3, 1))
    found = measured(builder, poses, rows)
    truth = np.zeros(len(rows))
    for k, (row, pose) in enumerate(zip(rows[:, 1], poses, strict=True)):
        triangles = corners_of(builder, 0, pose[0])
        if found.distance[k] > 0.0:
            assert point_distances(triangles, found.point0[k]).min() < 1e-12
        if row == 1:
            off = found.point1[k] - pose[1, :3]
            assert np.linalg.norm(off) == pytest.approx(0.2, abs=1e-12)
            truth[k] = point_distances(triangles, pose[1, :3]).min() - 0.2
        elif row == 2:
            half = 0.5 * rotation_of(pose[1])[:, 2]
            truth[k] = (
                segment_distances(triangles, pose[1, :3] - half, pose[1, :3] + half).min() - 0.1
            )
        else:
            corners = CUBE[0][CUBE[1]] @ rotation_of(pose[1]).T + pose[1, :3]
            truth[k] = mesh_distance(triangles, corners)
    apart = (truth > 0.0) & (found.distance > 0.0)
    np.testing.assert_allclose(found.distance[apart], truth[apart], atol=1e-12)
    assert np.all(np.abs(found.distance - truth)[apart] <= found.error[apart] + 1e-14)
    assert set(rows[apart, 1]) == {1, 2, 3, 4}
    assert np.all(found.distance[truth <= 0.0] < 0.0)


def test_shapes_with_a_field_have_the_distance_of_their_surface_where_they_are_apart():
    builder = ModelBuilder()
    field = ShapeConfig(sdf_max_resolution=16)
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.3, hz=0.3, cfg=field)
    builder.add_shape_sphere(builder.add_body(), radius=0.2)
    up = [at(0.0, 0.0, z) for z in (0.7, 0.45)]
    found = measured(builder, [[IDENTITY, pose] for pose in up])
    assert found.distance[0] == pytest.approx(0.2, abs=1e-14)
    assert found.error[0] < 1e-12
    assert found.distance[1] == pytest.approx(-0.05, abs=0.02)
    assert np.isinf(found.error[1])


def test_results_do_not_depend_on_batches_threads_or_the_path_of_a_device(monkeypatch):
    builder = ModelBuilder()
    for kind in ("mesh", "cube", "hull", "cylinder", "box", "capsule"):
        add(builder, kind, 0.4)
    rows = np.array(list(combinations(range(6), 2)) * 4)
    poses = spread_poses(11, len(rows), 0.8)
    whole = measured(builder, poses, rows)
    monkeypatch.setattr(pair_distances, "ROWS_AT_ONCE", 7)
    parts = measured(builder, poses[::-1], rows[::-1])
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    device = measured(builder, poses, rows)
    for name in ("distance", "normal", "point0", "point1", "error"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name)[::-1])
        np.testing.assert_array_equal(getattr(whole, name), getattr(device, name))


NUMBERS = 64
"""Bytes of the numbers of sub-pairs that the host reads, a few of each collider."""


@pytest.mark.parametrize("kinds", [("hull", "cylinder", "box"), ("mesh", "cube", "box")])
def test_a_device_copies_what_is_read(kinds):
    """Distances alone are 8 bytes a pair, all results 72; of a pair with a mesh also a byte that
    tells whether it overlaps."""
    builder = ModelBuilder()
    for kind in kinds:
        add(builder, kind, 0.4)
    rows = np.array(list(combinations(range(3), 2)) * 20)
    poses = spread_poses(5, len(rows), 0.5)
    whole = measured(builder, poses, rows)
    assert 0 < (whole.distance < 0.0).sum() < len(rows)
    for read, size in ((PairDistances.measure, 72), (PairDistances.distances, 8)):
        with counted_traffic() as counted:
            found = read(PairDistances(builder.finalize(), find_device("cpu"), rows), rows, poses)
        distance = found if size == 8 else found.distance
        np.testing.assert_array_equal(distance, whole.distance)
        more = counted.total.downloaded_bytes - size * len(rows)
        assert more == 0 if kinds[0] != "mesh" else 0 < more <= len(rows) + NUMBERS


def test_too_little_memory_halves_a_batch_until_a_single_pair_is_refused(monkeypatch):
    builder = ModelBuilder()
    add(builder, "mesh")
    add(builder, "cube")
    poses = spread_poses(12, 40, 1.0)
    whole = measured(builder, poses)
    monkeypatch.setattr(pair_distances, "MEMORY_LIMIT", 200_000)
    np.testing.assert_array_equal(measured(builder, poses).distance, whole.distance)
    monkeypatch.setattr(pair_distances, "MEMORY_LIMIT", 1000)
    with pytest.raises(InputError, match="scratch memory"):
        measured(builder, poses)


# Convex shapes a small gap above large triangles: distances, their bounds, sweeps and touches
# against exact gaps.

SIZES = [
    (0.05, 100.0),
    (1.0, 1.0),
    (1e3, 1e3),
    (1e-3, 1e-3),
    (0.05, 1e3),
    (1e-3, 1.0),
    (1e3, 1.0),
    (1.0, 10.0),
    (1.0, 1e3),
    (1e-3, 1e3),
]
"""Half extents of the shapes and of the sheets [m]."""
ROUNDING = 4e-15
"""Of a distance relative to the sizes and coordinates it is computed from: 18 units in the last
place, of two poses, the corners that they move, and a weighted mean of four differences of corners.
The bound that the engine adds."""
LOOSE = 1.01e-12
"""`distance_bounds.LOOSE`: difference of both bounds relative to the largest half extents, and its
rounding."""


def check_bounds(model: Model, rows: tuple[int, int], poses: np.ndarray, truth: np.ndarray) -> None:
    """The distance and its lower bound are those of the gaps longdouble[n]."""
    measured = PairDistances(model, find_device("cpu"), np.array([rows]))
    found = measured.measure(np.tile(rows, (len(poses), 1)), poses)
    size = model.shapes.size[list(rows)]
    rounding = ROUNDING * (
        np.linalg.norm(size, axis=1).sum() + np.linalg.norm(poses[:, :, :3], axis=2).sum(axis=1)
    )
    assert (found.distance - found.error <= truth).all()
    assert (truth <= found.distance + rounding).all()
    assert (found.error <= LOOSE * (size.max(axis=1).sum() + found.distance) + 2.0 * rounding).all()


def top_of(model: Model, row: int) -> float:
    """z of a sheet in its own frame [m]."""
    number = model.shapes.heightfield[row]
    return model.heightfields[number].level if number >= 0 else 0.0


@pytest.mark.share(8, 8)
@pytest.mark.parametrize(("size", "half"), SIZES)
@pytest.mark.parametrize("is_field", [False, True], ids=["mesh", "field"])
@pytest.mark.parametrize("shape_type", TYPES_ABOVE_SHEETS, ids=lambda each: each.label)
def test_a_distance_and_its_bound_enclose_the_gap(shape_type, is_field, size, half):
    builder = ModelBuilder()
    count = 100
    rows = add_sheet(builder, half, is_field), add_convex(builder, shape_type, size)
    model = builder.finalize()
    gap = size * 10.0 ** np.linspace(-9.0, -2.0, count)
    poses = poses_above(
        np.random.default_rng(5), shape_type, size, half, gap, top_of(model, rows[0])
    )
    check_bounds(model, rows, poses, gap_above(shape_type, size, poses, top_of(model, rows[0])))


@pytest.mark.parametrize(("size", "half"), [(1.0, 1.0), (1e3, 1e-3), (1e-3, 0.1)])
@pytest.mark.parametrize(
    "shape_type", [ShapeType.BOX, ShapeType.CYLINDER, ShapeType.CONE], ids=lambda each: each.label
)
def test_corners_and_edges_below_a_flat_face(shape_type, size, half):
    """An open cube of triangles, which is no hull, below a base; half of the cubes have an edge
    parallel to it."""
    builder = ModelBuilder()
    rng = np.random.default_rng(6)
    count = 60
    row = add_convex(builder, shape_type, size)
    vertex, faces = box(half, half, half)
    other = builder.add_shape_mesh(builder.add_body(), vertex, faces[2:])
    model = builder.finalize()
    vertex = model.meshes[0].vertex
    depth = PROPORTIONS[shape_type][2 if shape_type == ShapeType.BOX else 1] * size
    turned = Rotation.random(count, random_state=1).as_quat()
    turned[::2] = Rotation.from_euler("x", rng.uniform(0.0, 6.0, (count // 2, 1))).as_quat()
    corners = np.stack([each.apply(vertex) for each in Rotation.from_quat(turned)])
    highest = corners[np.arange(count), corners[:, :, 2].argmax(axis=1)]
    gap = max(size, half) * 10.0 ** np.linspace(-9.0, -3.0, count)
    local = np.concatenate([-highest - (depth + gap)[:, None] * [0.0, 0.0, 1.0], turned], axis=1)
    above = sheet_poses(rng, half, count)
    poses = np.stack([above, compose_poses(above, local)], axis=1)
    exact = poses.astype(np.longdouble)
    matrix = exact_rotations(exact[..., 3:])
    points = (
        np.einsum("nij,pj->npi", matrix[:, 1], vertex)
        + (exact[:, 1, :3] - exact[:, 0, :3])[:, None]
    )
    height = np.einsum("npi,ni->np", points, matrix[:, 0, :, 2])
    check_bounds(model, (row, other), poses, -depth - height.max(axis=1))


@pytest.mark.parametrize(("half", "gap"), [(100.0, 1e-5), (1e3, 1e-4)])
def test_a_resting_body_above_a_sheet_does_not_touch_it(half, gap):
    """Shapes of 5 cm at rest: in a sweep and in a set of touches those touch that overlap or are
    below its limit."""
    builder = ModelBuilder()
    rng = np.random.default_rng(7)
    count = 32
    add_sheet(builder, half, False)
    poses = [sheet_poses(rng, 1.0, 1)]
    gaps = np.tile([gap, gap, 4e-7, -1e-4], count // 4)
    for shape_type in (ShapeType.CYLINDER, ShapeType.BOX, ShapeType.CONE):
        for _ in range(count):
            add_convex(builder, shape_type, 0.05)
        poses.append(compose_poses(poses[0], local_poses_above(rng, shape_type, 0.05, half, gaps)))
    model = builder.finalize()
    frame = np.concatenate(poses)[None]
    expected = 1 + np.flatnonzero(np.tile(gaps, 3) < gap)
    swept = collidecli.sweep(model, np.stack([frame, frame]))
    assert swept.touches.all()
    assert (swept.shape0 == 0).all()
    np.testing.assert_array_equal(np.sort(swept.shape1), expected)
    touching = touches(
        collidecli.collide(model, frame[None], device="cpu", gap=1e-6, touch_only=True)
    )
    full = pairs_of_contacts(collidecli.collide(model, frame[None], device="cpu", gap=1e-6))
    np.testing.assert_array_equal(np.sort(full["shape1"]), expected)
    assert (touching == full).all()


def test_shapes_just_beyond_the_gap_of_a_large_sheet_do_not_touch_it():
    """GJK calls some of them an overlap; the set of touches has the pairs of the contacts."""
    builder = ModelBuilder()
    rng = np.random.default_rng(1)
    count = 200
    add_sheet(builder, 1e3, False)
    poses = [sheet_poses(rng, 1.0, 1)]
    for shape_type in (ShapeType.CYLINDER, ShapeType.BOX, ShapeType.CONE):
        for _ in range(count):
            add_convex(builder, shape_type, 0.05)
        gaps = 10.0 ** rng.uniform(-8.0, -4.0, count)
        poses.append(compose_poses(poses[0], local_poses_above(rng, shape_type, 0.05, 1e3, gaps)))
    model = builder.finalize()
    frame = np.concatenate(poses)[None, None]
    for gap in (1e-8, 1e-7):
        full = pairs_of_contacts(collidecli.collide(model, frame, device="cpu", gap=gap))
        found = touches(collidecli.collide(model, frame, device="cpu", gap=gap, touch_only=True))
        assert len(found) == len(full)
        assert (found == full).all()
