"""Distances of points to the nearest of another set, against SciPy's tree."""

import sys

import numpy as np
import pytest
from scipy.spatial import KDTree

from collidecli.analysis.nearest_points import greatest_distance_to_nearest
from tests.unit.analysis.test_shape_differences import CORNERS, geometry, mesh_model

RNG = np.random.default_rng(3)
SPHERE = RNG.normal(size=(500, 3))
GRID = np.stack(np.meshgrid(*[np.arange(30.0)] * 2, [0.0]), axis=-1).reshape(-1, 3)
ANGLE = np.linspace(0.0, 2.0 * np.pi, 300, endpoint=False)
TUBE = np.stack([np.cos(ANGLE), np.sin(ANGLE), np.repeat((0.0, 5.0), 150)], axis=1)
SETS = {
    "tube": (TUBE, RNG.permutation(TUBE) + 1e-3),
    "near": (SPHERE, SPHERE + 1e-6 * RNG.normal(size=SPHERE.shape)),
    "far": (SPHERE, SPHERE + 100.0),
    "other": (SPHERE, RNG.normal(size=SPHERE.shape)),
    "grid": (GRID, RNG.permutation(GRID) + 0.25),
    "one point": (np.zeros((1, 3)), np.ones((1, 3))),
    "all in one place": (np.zeros((50, 3)), np.ones((50, 3))),
    "no extent in x": (GRID[:, ::-1], RNG.permutation(GRID[:, ::-1])),
}


@pytest.mark.parametrize("name", SETS)
def test_distances_are_those_of_a_tree(name):
    a, b = SETS[name]
    wanted = max(KDTree(x).query(y)[0].max() for x, y in ((a, b), (b, a)))
    assert greatest_distance_to_nearest(a, b) == pytest.approx(wanted, rel=1e-12, abs=0.0)


def test_points_in_another_order_are_at_no_distance():
    assert greatest_distance_to_nearest(SPHERE, RNG.permutation(SPHERE)) == 0.0


def test_shapes_are_compared_without_scipy(monkeypatch):
    models = [mesh_model(CORNERS), mesh_model(CORNERS * [1.0, 1.0, 1.1])]
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    assert "at other positions" in geometry(*models)[1]
