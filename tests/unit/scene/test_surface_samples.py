"""Points on the surfaces of shapes: on the surface, and nowhere farther apart than the spacing."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from collidecli.engine.distances.points import point_distances
from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.surface_samples import surface_samples
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
