"""Clearance, fields, heightfields and the inside of meshes on the device, against exact
distances."""

import itertools

import numpy as np
import pytest
import warp as wp

import collidecli
from collidecli.engine.geometry import distance_rows
from collidecli.engine.geometry.heightfields import (
    FIRST_LEVEL,
    Heightfields,
    base_begins,
    named_triangle,
    upload_heightfields,
)
from collidecli.engine.geometry.heightfields import field_of as heightfield_of
from collidecli.engine.geometry.mesh_clearance import clearance_at, measure_clearance
from collidecli.engine.geometry.mesh_points import EDGE_PART, FACE_PART, nearest_triangle_point
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.primitives import primitive
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.sdf_construction import arrays_of, build_sdf, field_key, grid_of
from collidecli.engine.geometry.sdf_grids import SdfGrid
from collidecli.engine.narrowphase.triangles.depth_in_shape import depth_in_shape
from collidecli.engine.narrowphase.triangles.heightfield_traversal import Traversal, range_of
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime.kernel import kernel
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import Heightfield, heightfield
from collidecli.scene.sdf_options import SdfShape
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.fields import bowl, dirty, exact_of_mesh, field_of, ring, sampled
from tests.support.meshes import (
    Terrain,
    blob,
    box,
    grid,
    joined,
    knot,
    rough,
    torus,
    triangle_distances,
    windings,
)
from tests.support.oracle import directions_on_sphere
from tests.support.pair_runner import SIZES as PRIMITIVES
from tests.support.supports import surface_residual

POINTS = 200
SIZES = (1e-3, 1.0, 1e3)


@kernel
def ask(
    meshes: Meshes,
    mesh: int,
    point: wp.array[Vec3],
    square: wp.array[Real],
    free: wp.array[Real],
    empty: wp.array[Real],
):
    k = wp.tid()
    clearance = clearance_at(meshes, mesh, point[k])
    square[k] = clearance.square
    free[k] = clearance.free
    empty[k] = clearance.empty


def shell() -> tuple[np.ndarray, np.ndarray]:
    """A box with a cavity."""
    vertices, faces = box(0.5, 0.4, 0.3)
    return joined(box(1.0, 0.9, 0.8), (vertices, faces[:, ::-1]))


def crossing() -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping closed boxes: the surface intersects itself."""
    vertices, faces = box(0.3, 1.2, 0.3)
    return joined(box(1.0, 0.4, 0.4), (vertices + np.array([0.2, 0.1, 0.1]), faces))


MESHES = {
    "blob": blob(np.random.default_rng(0), 7, 9),
    "torus": torus(12, 7),
    "shell": shell(),
    "crossing": crossing(),
    "sheet": grid(4, 2.0, lambda x, y: 0.2 * np.sin(5.0 * x) * np.cos(4.0 * y)),
}


@pytest.fixture(scope="module")
def bounds() -> dict[tuple[str, float], dict[str, np.ndarray]]:
    """By mesh and size: points, their bounds, and the true values; lengths relative to the size."""
    device = find_device("cpu")
    result = {}
    rng = np.random.default_rng(3)
    names = [(name, size) for name in MESHES for size in SIZES]
    shapes = [triangle_mesh(size * MESHES[name][0], MESHES[name][1], name) for name, size in names]
    meshes = measure_clearance(upload_meshes(shapes, device), shapes, device)
    for number, (name, size) in enumerate(names):
        solid = shapes[number]
        points = rng.uniform(-1.6, 1.6, (POINTS, 3))
        square, free, empty = (wp.zeros(POINTS, dtype=Real, device=device) for _ in range(3))
        inputs = [meshes, number, wp.array(size * points, dtype=Vec3, device=device)]
        wp.launch(ask, POINTS, [*inputs, square, free, empty], device=device)
        corners = solid.vertex[solid.face] / size
        result[name, size] = {
            "points": points,
            "corners": corners,
            "bound": np.sqrt(square.numpy()) / size,
            "free": free.numpy() / size,
            "empty": empty.numpy() / size,
            "distance": triangle_distances(points, corners),
            "inside": (windings(corners, points) > 0.5) & (name != "sheet"),
        }
    return result


@pytest.mark.share(5)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", list(MESHES))
def test_balls_around_points_contain_no_triangle(bounds, name, size):
    """The free ball is never too large, and absent inside; the distance is below its bound,
    within a cell. The empty ball is on either side of the surface; some balls inside solids are
    empty too."""
    values = bounds[name, size]
    assert np.all(values["free"] <= np.where(values["inside"], 0.0, values["distance"]))
    assert np.all(values["bound"] > values["distance"])
    width = 2.4 / 16
    near = np.max(np.abs(values["points"]), axis=1) < 0.8
    assert np.all(values["bound"][near] < values["distance"][near] + 2.0 * width)
    # Points farther than two cells' diagonals, and not enclosed, have a free ball.
    far = ~values["inside"] & (values["distance"] > 2.0 * np.sqrt(3.0) * width)
    if name == "shell":
        far &= np.max(np.abs(values["points"]), axis=1) > 1.0
    assert far.sum() > 20
    assert np.all(values["free"][far] > 0.0)
    assert np.all(values["empty"] <= values["distance"])
    apart = values["distance"] > 2.0 * np.sqrt(3.0) * width
    assert np.all(values["empty"][apart] > 0.0)


# Fields against exact distances: closed forms, and brute force over triangles in float64.

DEVICE = find_device("cpu")
BAND = (-0.1, 0.1)
HALF_A_VOXEL = 0.5
SHAPES = {
    "sphere": field_of(ShapeType.SPHERE, (1.0,), max_resolution=32),
    "box": field_of(ShapeType.BOX, (1.0, 0.7, 0.4), max_resolution=32),
    "bowl": field_of(ShapeType.MESH, mesh=bowl(), max_resolution=32),
    "torus": field_of(ShapeType.MESH, mesh=ring(), max_resolution=32),
    "dirty": field_of(ShapeType.MESH, mesh=dirty(), max_resolution=32),
}


def signed(shape: SdfShape, points: np.ndarray) -> np.ndarray:
    """Exact signed distance at each point."""
    if shape.surface is not None:
        distance, around = exact_of_mesh(shape.surface, points)
        return np.where(around > 0.5, -distance, distance)
    if shape.type == ShapeType.SPHERE:
        return np.linalg.norm(points, axis=1) - shape.size[0]
    beyond = np.abs(points) - shape.size
    return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)


def random_points(shape: SdfShape, count: int) -> np.ndarray:
    """Points in and around a shape; of a mesh, half of them near its surface."""
    rng = np.random.default_rng(5)
    half = np.ones(3) if shape.surface is None else shape.surface.half_extents
    spread = rng.uniform(-1.0, 1.0, size=(count, 3)) * (half + 0.15)
    if shape.surface is None:
        return spread
    corners = shape.surface.vertex[shape.surface.face][
        rng.integers(len(shape.surface.face), size=count // 2)
    ]
    near = np.einsum("nk,nki->ni", rng.dirichlet((1.0, 1.0, 1.0), size=count // 2), corners)
    return np.concatenate([spread[: count - count // 2], near + rng.normal(size=near.shape) * 0.04])


def is_torn(shape: SdfShape, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Points where the exact field is discontinuous within a voxel: at the lid of an open
    surface."""
    torn = np.zeros(len(points), bool)
    for offset in itertools.product((-1.0, 1.0), repeat=3):
        step = shape.voxel * np.array(offset)
        torn |= np.abs(signed(shape, points + step) - values) > np.linalg.norm(step) * 1.001
    return torn


@pytest.fixture(scope="module")
def grids() -> dict[str, SdfGrid]:
    return {name: build_sdf(shape, DEVICE) for name, shape in SHAPES.items()}


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("name", SHAPES)
def test_distance_is_within_half_a_voxel(name, grids):
    shape = SHAPES[name]
    points = random_points(SHAPES[name], 500)
    values, _, reached = sampled([grids[name]], points)
    truth = signed(shape, points)
    here = reached & (truth > BAND[0]) & (truth < BAND[1])
    off = np.abs(np.abs(values) - np.abs(truth)) / shape.voxel
    assert here.sum() > 50
    assert off[here].max() <= HALF_A_VOXEL
    wrong = np.flatnonzero(here & (np.abs(values - truth) > HALF_A_VOXEL * shape.voxel))
    # The sign too, but for a voxel's width about the lid of an open mesh; closed ones have none.
    assert is_torn(shape, points[wrong], truth[wrong]).all()
    assert len(wrong) == 0 or name in ("bowl", "dirty")
    assert len(wrong) <= 0.02 * here.sum()


def test_distance_is_within_half_a_voxel_far_from_the_surface_too(grids):
    for name in ("sphere", "torus"):
        shape = SHAPES[name]
        points = random_points(SHAPES[name], 300)
        values, _, reached = sampled([grids[name]], points)
        truth = signed(shape, points)
        # Except the centre of the torus's tube and of the ball, where the error is at most 0.87
        # voxels.
        middle = shape.size[0] if name == "sphere" else 0.3
        deep = reached & (truth > -middle + 2.0 * shape.voxel)
        assert (np.abs(values - truth)[deep] <= HALF_A_VOXEL * shape.voxel).all()


@pytest.mark.share(2)
@pytest.mark.parametrize(("side", "below"), [(1.0, 0.0), (-1.0, 0.0), (1.0, 0.6), (-1.0, -0.4)])
def test_signs_of_an_open_mesh_are_those_of_its_winding_number(side, below):
    """Rows of voxels, along x, enter and leave a bowl by its opening too, far from its surface."""
    shape = field_of(ShapeType.MESH, mesh=bowl((side, 0.0, 0.0), below), max_resolution=32)
    points = random_points(shape, 1000)
    values, _, reached = sampled([build_sdf(shape, DEVICE)], points)
    truth = signed(shape, points)
    wrong = np.flatnonzero(
        reached & (np.sign(values) != np.sign(truth)) & (np.abs(truth) > shape.voxel)
    )
    assert is_torn(shape, points[wrong], truth[wrong]).all()
    assert np.sum(truth < -shape.voxel) > 30


def test_gradient_is_the_direction_of_distance(grids):
    points = random_points(SHAPES["sphere"], 400)
    truth = signed(SHAPES["sphere"], points)
    _, gradient, reached = sampled([grids["sphere"]], points)
    here = reached & (np.abs(truth) < 0.1)
    unit = points / np.linalg.norm(points, axis=1)[:, None]
    sine = np.linalg.norm(np.cross(gradient, unit), axis=1)[here]
    # A chord of the sphere of one voxel turns by voxel / radius from end to end.
    assert sine.max() <= SHAPES["sphere"].voxel
    assert np.abs(np.einsum("ij,ij->i", gradient, unit)[here] - 1.0).max() <= SHAPES["sphere"].voxel


def test_a_point_beyond_the_grid_has_no_value(grids):
    points = np.array([[9.0, 0.0, 0.0], [0.0, -9.0, 0.0], [np.nan, 0.0, 0.0], [1.01, 0.0, 0.0]])
    assert sampled([grids["sphere"]], points)[2].tolist() == [False, False, False, True]


def test_fields_in_one_upload_do_not_change_each_other(grids):
    points = random_points(SHAPES["torus"], 200)
    alone = sampled([grids["torus"]], points)
    beside = sampled([grids["box"], grids["sphere"], grids["torus"], grids["bowl"]], points, 2)
    for one, other in zip(alone, beside, strict=True):
        assert one.tobytes() == other.tobytes()


def test_bits_do_not_depend_on_the_number_of_rows_at_once(grids, monkeypatch):
    monkeypatch.setattr(distance_rows, "ROWS_AT_ONCE", 1000)
    again = build_sdf(SHAPES["bowl"], DEVICE)
    for name, values in arrays_of(grids["bowl"]).items():
        assert values.tobytes() == arrays_of(again)[name].tobytes()


def test_arrays_of_other_contents_are_no_field(grids):
    arrays = arrays_of(grids["box"])
    again = grid_of(arrays)
    assert again is not None
    assert again.blocks == grids["box"].blocks
    assert grid_of({**arrays, "slot": arrays["slot"] + 1}) is None
    assert grid_of({**arrays, "coarse": arrays["coarse"][:-1]}) is None
    assert grid_of({**arrays, "fine": np.full_like(arrays["fine"], np.nan)}) is None
    assert grid_of({"place": arrays["place"]}) is None


def test_large_fields_are_sparse():
    shape = field_of(
        ShapeType.BOX, (1.0, 0.9, 1.0), max_resolution=256, narrow_band_range=(-0.02, 0.02)
    )
    grid = build_sdf(shape, DEVICE)
    # Most of them are where sides of the box are equally far, inside.
    assert 0 < len(grid.fine) < 0.45 * grid.slot.size
    points = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2000, 3)) * shape.size
    values, _, _ = sampled([grid], points)
    assert np.abs(values - signed(shape, points)).max() <= HALF_A_VOXEL * shape.voxel


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_resolution": 20}, "sdf_max_resolution"),
        ({"max_resolution": -8}, "sdf_max_resolution"),
        ({"max_resolution": 8.0}, "sdf_max_resolution"),
        ({"target_voxel_size": 0.0}, "sdf_target_voxel_size"),
        ({"target_voxel_size": float("nan")}, "sdf_target_voxel_size"),
        ({"target_voxel_size": 1e-5}, "sdf_target_voxel_size"),
        ({"max_resolution": 8, "narrow_band_range": (0.1, 0.2)}, "sdf_narrow_band_range"),
        ({"max_resolution": 8, "narrow_band_range": 0.1}, "sdf_narrow_band_range"),
        ({"max_resolution": 8, "edge_iterations": -1}, "edge_sdf_iter"),
    ],
)
def test_options_that_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        field_of(ShapeType.SPHERE, (1.0,), **options)


def test_a_plane_has_no_field():
    with pytest.raises(InputError, match="plane"):
        field_of(ShapeType.PLANE, (), max_resolution=8)


def test_the_voxel_size_overrides_the_resolution():
    both = field_of(ShapeType.SPHERE, (1.0,), max_resolution=8, target_voxel_size=0.1)
    assert both.voxel == 0.1
    assert field_of(ShapeType.CAPSULE, (0.5, 1.5), max_resolution=8).voxel == 0.5


def test_keys_differ_if_values_differ():
    shapes = [
        *SHAPES.values(),
        field_of(ShapeType.SPHERE, (1.0,), max_resolution=40),
        field_of(ShapeType.SPHERE, (1.1,), max_resolution=32),
        field_of(ShapeType.SPHERE, (1.0,), max_resolution=32, narrow_band_range=(-0.1, 0.2)),
    ]
    assert len({field_key(shape, DEVICE) for shape in shapes}) == len(shapes)
    searched = field_of(ShapeType.SPHERE, (1.0,), max_resolution=32, edge_iterations=3)
    assert field_key(searched, DEVICE) == field_key(SHAPES["sphere"], DEVICE)


def test_a_field_of_an_open_mesh_is_warned_of():
    vertices = bowl().vertex
    faces = bowl().face
    cfg = ShapeConfig(sdf_max_resolution=8)
    with pytest.warns(
        UserWarning, match="'dish': an open mesh, which its signed distance field treats as solid"
    ):
        ModelBuilder().add_shape_mesh(-1, vertices, faces, cfg=cfg, key="dish")


def test_a_mesh_turned_inside_out_is_turned_back():
    cfg = ShapeConfig(sdf_max_resolution=8)
    with pytest.warns(UserWarning, match="1 inside-out body is turned over"):
        ModelBuilder().add_shape_mesh(-1, ring().vertex, ring().face[:, ::-1], cfg=cfg)


# Triangles, features and height ranges of heightfields on the device, against NumPy.

TERRAINS = (rough(1, 9, 22), rough(2, 17, 6), rough(3, 2, 3))
"""Rows that fill the squares of the pyramid exactly, rows that do not, and less than one square."""
SCALE = 0.25


@kernel
def _triangles(
    fields: Heightfields,
    number: int,
    triangle: wp.array[wp.int32],
    corner: wp.array2d[Vec3],
    feature: wp.array2d[wp.int32],
):
    thread = wp.tid()
    shape = named_triangle(heightfield_of(fields, number), triangle[thread])
    corner[thread, 0] = shape.p
    corner[thread, 1] = shape.q
    corner[thread, 2] = shape.r
    for k in range(3):
        feature[thread, k] = shape.vertex[k]
        feature[thread, 3 + k] = shape.edge[k]
    feature[thread, 6] = shape.face


@kernel
def _ranges(
    fields: Heightfields, number: int, square: wp.array[wp.vec3i], out: wp.array2d[wp.float64]
):
    thread = wp.tid()
    traversal = Traversal()
    traversal.level = square[thread][0]
    traversal.i = square[thread][1]
    traversal.j = square[thread][2]
    heights = range_of(heightfield_of(fields, number), traversal)
    out[thread, 0] = heights.low
    out[thread, 1] = heights.high
    out[thread, 2] = wp.float64(heights.known)


@kernel
def _count(fields: Heightfields, number: int, out: wp.array[wp.int32]):
    out[0] = base_begins(heightfield_of(fields, number)) + 2


def solid(terrain: Terrain) -> Heightfield:
    heights = (terrain.heights / SCALE).astype(np.float32)
    return heightfield(heights, terrain.hx, terrain.hy, terrain.base, "the test", SCALE)


@pytest.fixture(scope="module")
def fields() -> Heightfields:
    return upload_heightfields([solid(terrain) for terrain in TERRAINS], DEVICE)


def triangles(fields: Heightfields, number: int) -> tuple[np.ndarray, np.ndarray]:
    """float64[n, 3, 3] corners and int32[n, 7] features of every triangle of a cell, wall or the
    base."""
    count = wp.zeros(1, dtype=wp.int32, device=DEVICE)
    wp.launch(_count, 1, [fields, number, count], device=DEVICE)
    total = int(count.numpy()[0])
    rows, cols = TERRAINS[number].heights.shape
    v = np.arange(rows * cols)
    exists = np.repeat((v // cols < rows - 1) & (v % cols < cols - 1), 2)
    numbers = np.flatnonzero(np.concatenate([exists, np.ones(total - len(exists), bool)])).astype(
        np.int32
    )
    corner = wp.zeros((len(numbers), 3), dtype=Vec3, device=DEVICE)
    feature = wp.zeros((len(numbers), 7), dtype=wp.int32, device=DEVICE)
    arguments = [fields, number, wp.array(numbers, dtype=wp.int32, device=DEVICE), corner, feature]
    wp.launch(_triangles, len(numbers), arguments, device=DEVICE)
    return corner.numpy(), feature.numpy()


@pytest.mark.parametrize("number", range(len(TERRAINS)))
def test_every_feature_has_a_place_of_its_own(fields, number):
    """Vertices, and edges by their ends; an edge belongs to two triangles, which traverse it in
    opposite directions."""
    corner, feature = triangles(fields, number)
    place = [[tuple(p.round(9).tolist()) for p in triangle] for triangle in corner]
    vertices = {}
    edges = {}
    for points, names in zip(place, feature.tolist(), strict=True):
        for k in range(3):
            vertices.setdefault(names[k], set()).add(points[k])
            edges.setdefault(names[3 + k], []).append((points[k], points[(k + 1) % 3]))
    assert all(len(points) == 1 for points in vertices.values())
    assert len(vertices) == len(set().union(*vertices.values()))
    assert len(set(feature[:, 6].tolist())) == len(feature)
    # A side of the base is one edge below many walls.
    terrain = TERRAINS[number]
    first_of_base = 8 * (terrain.heights.size + solid(terrain).perimeter)
    lower = -0.5 * (float(terrain.heights.max()) - terrain.bottom)
    sides = ([(0.0, -terrain.hy)], [(terrain.hx, 0.0)], [(0.0, terrain.hy)], [(-terrain.hx, 0.0)])
    for k, [(x, y)] in enumerate(sides):
        [ends] = edges.pop(first_of_base + k)
        np.testing.assert_allclose(0.5 * np.sum(ends, axis=0), [x, y, lower], atol=1e-8)
    for name, ends in edges.items():
        wall = 8 * terrain.heights.size <= name < first_of_base and name % 8 == 1
        assert len(ends) == (1 if wall else 2), name
        assert len({frozenset(pair) for pair in ends}) == 1, name
        assert len(set(ends)) == len(ends), name
    assert len({frozenset(ends[0]) for ends in edges.values()}) == len(edges)


@pytest.mark.parametrize("number", range(len(TERRAINS)))
def test_ranges_are_those_of_the_heights(fields, number):
    """Of every square of every level, its border included; none below the finest level or above the
    coarsest."""
    heights = solid(TERRAINS[number]).heights
    rows, cols = heights.shape
    squares = [(FIRST_LEVEL - 1, 0, 0)]
    expected = [(0.0, 0.0, 0.0)]
    level = FIRST_LEVEL
    is_last = False
    while not is_last:
        side = 1 << level
        is_last = side >= max(rows, cols) - 1
        for i in range(0, rows - 1, side):
            for j in range(0, cols - 1, side):
                part = heights[i : i + side + 1, j : j + side + 1]
                squares.append((level, i // side, j // side))
                expected.append((part.min(), part.max(), 1.0))
        level += 1
    squares.append((level, 0, 0))
    expected.append((0.0, 0.0, 0.0))
    out = wp.zeros((len(squares), 3), dtype=wp.float64, device=DEVICE)
    square = wp.array(np.array(squares, np.int32), dtype=wp.vec3i, device=DEVICE)
    wp.launch(_ranges, len(squares), [fields, number, square, out], device=DEVICE)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-12)


# Closest points of single triangles, against points of each feature's region that are known by
# construction.

COUNT = 40


@kernel
def _nearest(
    triangle: wp.array2d[Vec3],
    point: wp.array[Vec3],
    found: wp.array[Vec3],
    part: wp.array[int],
    square: wp.array[float],
):
    thread = wp.tid()
    p = triangle[thread, 0]
    q = triangle[thread, 1]
    r = triangle[thread, 2]
    nearest = nearest_triangle_point(p, q, r, wp.normalize(wp.cross(q - p, r - p)), point[thread])
    found[thread] = nearest.point
    part[thread] = nearest.part
    square[thread] = float(nearest.square)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_points_over_every_feature(size):
    """A foot inside a corner, side or face, and a point along a direction of that feature's normal
    cone."""
    rng = np.random.default_rng(6)
    triangle = []
    point = []
    foot = []
    part = []
    for _ in range(COUNT):
        corners = rng.normal(size=(3, 3)) * size
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        normal /= np.linalg.norm(normal)
        outward = [np.cross(corners[(k + 1) % 3] - corners[k], normal) for k in range(3)]
        outward = [way / np.linalg.norm(way) for way in outward]
        t = rng.uniform(0.1, 0.9)
        u = rng.uniform(0.1, 1.0, 2)
        up = size * rng.uniform(-1.0, 1.0) * normal
        weights = rng.dirichlet((2.0, 2.0, 2.0))
        for k in range(3):
            # Between the perpendiculars of its two sides, and perpendicular to one.
            feet = [corners[k], corners[k] + t * (corners[(k + 1) % 3] - corners[k])]
            ways = [u[0] * outward[k - 1] + u[1] * outward[k], u[0] * outward[k]]
            triangle += 2 * [corners]
            point += [at + size * way + up for at, way in zip(feet, ways, strict=True)]
            foot += feet
            part += [k, int(EDGE_PART) + k]
        triangle.append(corners)
        foot.append(weights @ corners)
        point.append(foot[-1] + up)
        part.append(int(FACE_PART))
    device = find_device("cpu")
    count = len(point)
    found = wp.zeros(count, dtype=Vec3, device=device)
    parts = wp.zeros(count, dtype=int, device=device)
    square = wp.zeros(count, dtype=float, device=device)
    arguments = [
        wp.array(np.array(values), dtype=Vec3, device=device) for values in (triangle, point)
    ]
    wp.launch(_nearest, count, [*arguments, found, parts, square], device=device)
    np.testing.assert_array_equal(parts.numpy(), part)
    np.testing.assert_allclose(found.numpy(), foot, atol=1e-11 * size)
    off = np.array(point) - np.array(foot)
    np.testing.assert_allclose(square.numpy(), (off**2).sum(axis=1), rtol=1e-6)


# What is inside a mesh: hulls whose frame has its origin outside them, and meshes that cross
# themselves.


@kernel
def _depths(shape_type: int, size: Vec3, point: wp.array[Vec3], depth: wp.array[Real]):
    depth[wp.tid()] = depth_in_shape(primitive(shape_type, size), point[wp.tid()])


@pytest.mark.parametrize("kind", PRIMITIVES, ids=lambda kind: kind.label)
def test_the_depth_of_a_point_in_a_shape_is_that_of_its_surface_or_less(kind):
    size = np.array([PRIMITIVES[kind]])
    count = 200
    point = np.random.default_rng(3).uniform(-1.0, 1.0, (count, 3)) * size.max()
    truth = -surface_residual(kind, np.repeat(size, count, axis=0), point)
    depth = wp.zeros(count, dtype=Real, device=DEVICE)
    arguments = [int(kind), Vec3(*size[0]), wp.array(point, dtype=Vec3, device=DEVICE), depth]
    wp.launch(_depths, count, arguments, device=DEVICE)
    inside = truth > 0.0
    np.testing.assert_array_equal(depth.numpy() > 0.0, inside)
    if kind == ShapeType.ELLIPSOID:  # a lower bound
        surface = size * directions_on_sphere(1000)
        nearest = np.linalg.norm(point[inside, None] - surface, axis=-1).min(axis=1)
        assert np.all(depth.numpy()[inside] <= nearest)
    else:
        np.testing.assert_allclose(depth.numpy()[inside], truth[inside], atol=1e-12)


@pytest.mark.filterwarnings("ignore:shape 0")
@pytest.mark.parametrize("gap", [0, 1])
def test_a_hull_is_not_inside_where_its_box_is(gap):
    """The middle of the box of a corner tetrahedron is 0.5 / sqrt(3) beyond its face; a mesh around
    it is apart."""
    builder = collidecli.ModelBuilder()
    vertices, faces = box(0.1, 0.1, 0.1)
    dent = vertices * np.where(np.arange(8)[:, None] == 7, 0.3, 1.0)
    builder.add_shape_mesh(-1, dent, faces)
    builder.add_shape_convex_hull(builder.add_body(), np.concatenate([np.zeros((1, 3)), np.eye(3)]))
    body_q = np.array([[[[-0.5, -0.5, -0.5, 0.0, 0.0, 0.0, 1.0]]]])
    distance = collidecli.collide(builder.finalize(), body_q, gap=gap).distance
    assert (distance > 0.0).all()
    assert triangle_mesh(*knot(), "knot").crosses_itself
    assert not triangle_mesh(*box(1.0, 1.0, 1.0), "box").crosses_itself
    if gap:
        assert distance.min() == pytest.approx((0.5 - 0.3) / np.sqrt(3.0), abs=1e-6)
