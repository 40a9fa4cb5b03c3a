"""Points on the surfaces of shapes: on the surface, and nowhere farther apart than the spacing."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from collidecli.engine.distances.points import point_distances
from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.surface_samples import _inside_triangles, surface_samples
from tests.support.meshes import blob, box

ROUND = {
    "sphere": {"radius": 0.5},
    "capsule": {"radius": 0.3, "half_height": 0.5},
    "cylinder": {"radius": 0.4, "half_height": 0.6},
    "cone": {"radius": 0.5, "half_height": 0.6},
    "ellipsoid": {"rx": 0.3, "ry": 0.5, "rz": 0.8},
}
FLAT = {
    "box": {"hx": 0.3, "hy": 0.5, "hz": 0.7},
    "convex_hull": {"vertices": box(0.2, 0.3, 0.4)[0]},
    "mesh": dict(zip(("vertices", "faces"), blob(np.random.default_rng(1)), strict=True)),
    "heightfield": {"heights": np.random.default_rng(2).uniform(size=(4, 5)), "base": 0.5},
}


def model_of(kind: str) -> Model:
    builder = ModelBuilder()
    sizes = {**ROUND, **FLAT, "plane": {}}[kind]
    getattr(builder, f"add_shape_{kind}")(builder.add_body(), **sizes)
    return builder.finalize()


@pytest.mark.parametrize("spacing", [0.0, 0.1, 0.03])
@pytest.mark.parametrize("kind", [*ROUND, *FLAT])
def test_samples_are_on_the_surface_once(kind, spacing):
    model = model_of(kind)
    points = surface_samples(model, 0, spacing)
    assert np.abs(point_distances(model, 0, points, find_device("cpu"))).max() < 1e-12
    if spacing:
        assert cKDTree(points).query(points, k=2)[0][:, 1].min() > 0.0
    else:
        count = {"box": 8, "convex_hull": 8, "mesh": len(FLAT["mesh"]["vertices"])}.get(kind)
        assert count is None or len(points) == count


@pytest.mark.parametrize("kind", [*ROUND, *FLAT])
def test_no_place_of_the_surface_is_farther_than_the_spacing(kind):
    model = model_of(kind)
    spacing = 0.08
    tree = cKDTree(surface_samples(model, 0, spacing))
    dense = surface_samples(model, 0, 0.023)
    assert tree.query(dense)[0].max() < spacing


def test_round_shapes_without_a_spacing_have_a_24th_of_a_circle():
    points = surface_samples(model_of("sphere"), 0)
    equator = points[np.abs(points[:, 2]) < 1e-12]
    assert len(equator) == 24


def test_a_plane_has_no_samples_and_too_many_are_refused():
    assert len(surface_samples(model_of("plane"), 0, 0.1)) == 0
    for kind in ("sphere", "box"):
        with pytest.raises(InputError, match="too many points"):
            surface_samples(model_of(kind), 0, 1e-6)


def places_of(corners: np.ndarray, count: int) -> np.ndarray:
    """Random places of triangles, with places near their corners and sides among them."""
    rng = np.random.default_rng(4)
    weight = rng.dirichlet((0.5, 0.5, 0.5), count)
    return (corners[rng.integers(len(corners), size=count)] * weight[..., None]).sum(axis=1)


@pytest.mark.parametrize("seed", range(12))
def test_needles_and_obtuse_triangles_are_covered(seed):
    """Triangles with one short side or one small height, each alone."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        corners = rng.normal(size=(1, 3, 3))
        thin = rng.choice([1e-6, 1e-2, 0.2])
        t = rng.choice([0.0, 0.05, 0.5, 0.97])
        apex = corners[0, 0] + t * (corners[0, 1] - corners[0, 0])
        corners[0, 2] = apex + thin * rng.normal(size=3)
        spacing = rng.uniform(0.02, 0.8)
        points = np.concatenate([corners[0], _inside_triangles(corners, spacing)])
        assert cKDTree(points).query(places_of(corners, 500))[0].max() < 0.75 * spacing


def test_thin_triangles_have_as_many_points_as_their_area_needs():
    """A disk of 360 triangles of a degree: the points of a grid, those of the sides beside them."""
    angle = np.linspace(0.0, 2.0 * np.pi, 361)
    rim = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(361)])
    rim[-1] = rim[0]
    corners = np.stack([np.zeros((360, 3)), rim[:-1], rim[1:]], axis=1)
    spacing = 0.04
    points = _inside_triangles(corners, spacing)
    # 24 on each of the 360 sides that two triangles share; a grid on every triangle has 325
    assert len(points) == 360 * 24
    closed = np.concatenate([points, rim, np.zeros((1, 3))])
    assert cKDTree(closed).query(places_of(corners, 20000))[0].max() < 0.75 * spacing


def test_a_large_triangle_has_the_points_of_a_grid():
    corners = np.array([[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.8, 0.0]]])
    spacing = 0.01
    count = len(_inside_triangles(corners, spacing))
    assert count == pytest.approx(0.4 / spacing**2, rel=0.1)


def test_both_triangles_of_a_side_have_its_points_once():
    square = np.array([[0.1, 0, 0], [1.3, 0.2, 0.1], [1, 1.7, 0.3], [-0.2, 1.1, 0.2]])
    corners = square[np.array([[0, 1, 2], [2, 3, 0]])]
    points = _inside_triangles(corners, 0.1)
    turned = _inside_triangles(corners[:, [2, 1, 0]], 0.1)
    assert cKDTree(points).query(points, k=2)[0][:, 1].min() > 1e-6
    on_side = np.abs(np.cross(points - square[0], square[2] - square[0])).max(axis=1) < 1e-12
    assert 15 < on_side.sum() < 20
    assert len(turned) == len(points)
    assert cKDTree(points).query(turned)[0].max() < 1e-12
