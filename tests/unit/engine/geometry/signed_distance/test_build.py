"""Fields against exact distances: closed forms, and brute force over triangles in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from collidecli.engine.geometry import signed_distance
from collidecli.engine.geometry.signed_distance import SdfGrid, arrays_of, build_sdf, field_key, grid_of
from collidecli.engine.pipeline import find_device
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import SdfShape
from tests.support.fields import bowl, dirty, exact_of_mesh, field_of, ring, sampled

DEVICE = find_device("cpu")
BAND = (-0.1, 0.1)
HALF_A_VOXEL = 0.5
SHAPES = {
    "sphere": field_of(ShapeType.SPHERE, (1.0,), max_resolution=32),
    "box": field_of(ShapeType.BOX, (1.0, 0.7, 0.4), max_resolution=32),
    "torus": field_of(ShapeType.MESH, mesh=ring(), max_resolution=32),
    "bowl": field_of(ShapeType.MESH, mesh=bowl(), max_resolution=32),
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
    corners = shape.surface.vertex[shape.surface.face][rng.integers(len(shape.surface.face), size=count // 2)]
    near = np.einsum("nk,nki->ni", rng.dirichlet((1.0, 1.0, 1.0), size=count // 2), corners)
    return np.concatenate([spread[: count - count // 2], near + rng.normal(size=near.shape) * 0.04])


def is_torn(shape: SdfShape, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Points where the exact field is discontinuous within a voxel: at the lid of an open surface."""
    torn = np.zeros(len(points), bool)
    for offset in itertools.product((-1.0, 1.0), repeat=3):
        step = shape.voxel * np.array(offset)
        torn |= np.abs(signed(shape, points + step) - values) > np.linalg.norm(step) * 1.001
    return torn


@pytest.fixture(scope="module")
def grids() -> dict[str, SdfGrid]:
    return {name: build_sdf(shape, DEVICE) for name, shape in SHAPES.items()}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", SHAPES)
def test_distance_is_within_half_a_voxel(name, grids):
    shape, points = SHAPES[name], random_points(SHAPES[name], 500)
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
        shape, points = SHAPES[name], random_points(SHAPES[name], 300)
        values, _, reached = sampled([grids[name]], points)
        truth = signed(shape, points)
        # Except the centre of the torus's tube and of the ball, where the error is at most 0.87 voxels.
        middle = shape.size[0] if name == "sphere" else 0.3
        deep = reached & (truth > -middle + 2.0 * shape.voxel)
        assert (np.abs(values - truth)[deep] <= HALF_A_VOXEL * shape.voxel).all()


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


def test_several_fields_in_one_upload(grids):
    points = random_points(SHAPES["torus"], 200)
    alone = sampled([grids["torus"]], points)
    beside = sampled([grids["box"], grids["sphere"], grids["torus"], grids["bowl"]], points, 2)
    for one, other in zip(alone, beside, strict=True):
        assert one.tobytes() == other.tobytes()


def test_bits_do_not_depend_on_threads(grids, monkeypatch):
    monkeypatch.setattr(signed_distance, "ROWS_AT_ONCE", 1000)
    again = build_sdf(SHAPES["bowl"], DEVICE)
    for name, values in arrays_of(grids["bowl"]).items():
        assert values.tobytes() == arrays_of(again)[name].tobytes()


def test_signs_are_those_of_exact_winding_numbers(grids):
    for name in ("torus", "bowl", "dirty"):
        shape = SHAPES[name]
        grid = grids[name]
        rng = np.random.default_rng(1)
        # At values themselves, where nothing is interpolated.
        block = rng.integers(len(grid.fine), size=300)
        place = rng.integers(9, size=(300, 3))
        z, y, x = (np.argwhere(grid.slot >= 0)[block] * 8 + place).T
        points = grid.origin + grid.voxel * np.stack([x, y, z], axis=1)
        _, around = exact_of_mesh(shape.surface, points)
        values = grid.fine[block, place[:, 0], place[:, 1], place[:, 2]]
        clear = np.abs(around - 0.5) > 0.02
        np.testing.assert_array_equal((values < 0.0)[clear], (around > 0.5)[clear])


def test_large_fields_are_sparse():
    shape = field_of(ShapeType.BOX, (1.0, 1.0, 1.0), max_resolution=256, narrow_band_range=(-0.02, 0.02))
    grid = build_sdf(shape, DEVICE)
    # Most of them are where sides of the box are equally far, inside.
    assert 0 < len(grid.fine) < 0.45 * grid.slot.size
    points = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2000, 3))
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


def test_a_plane_is_refused():
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


def test_arrays_of_other_contents_are_no_field(grids):
    arrays = arrays_of(grids["box"])
    again = grid_of(arrays)
    assert again is not None
    assert again.blocks == grids["box"].blocks
    assert grid_of({**arrays, "slot": arrays["slot"] + 1}) is None
    assert grid_of({**arrays, "coarse": arrays["coarse"][:-1]}) is None
    assert grid_of({**arrays, "fine": np.full_like(arrays["fine"], np.nan)}) is None
    assert grid_of({"place": arrays["place"]}) is None


def test_an_open_mesh_is_warned_of_and_one_turned_inside_out_turned_back():
    vertices, faces = bowl().vertex, bowl().face
    cfg = ShapeConfig(sdf_max_resolution=8)
    with pytest.warns(UserWarning, match="'dish': an open mesh, which its signed distance field treats as solid"):
        ModelBuilder().add_shape_mesh(-1, vertices, faces, cfg=cfg, key="dish")
    with pytest.warns(UserWarning, match="1 inside-out body is turned over"):
        ModelBuilder().add_shape_mesh(-1, ring().vertex, ring().face[:, ::-1], cfg=cfg)
