"""Of many points, the vertices of the hull: against Qhull on all of them."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from collidecli.errors import InputError
from collidecli.scene import convex_hull as module
from collidecli.scene.convex_hull import FEW, hull_points

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", ["ball", "sphere", "box"])
def test_the_vertices_are_those_of_qhull(kind, scale):
    points = RNG.normal(size=(FEW + 1, 3)) * [1, 2, 5]
    if kind == "sphere":
        points /= np.linalg.norm(points, axis=1)[:, None]
    if kind == "box":
        points = RNG.uniform(-1, 1, (FEW + 1, 3))
    points = points * scale + [7 * scale, 0, 0]
    kept = hull_points(points, "m")
    expected = points[ConvexHull(points).vertices]
    assert sorted(map(tuple, kept)) == sorted(map(tuple, expected))


def test_few_points_stay_as_they_are():
    points = RNG.normal(size=(FEW, 3))
    assert hull_points(points, "m") is points


@pytest.mark.parametrize("squeeze", [(1, 1, 0), (1, 0, 0), (0, 0, 0)])
def test_flat_points_are_left_for_the_hull_to_refuse(squeeze):
    points = RNG.normal(size=(FEW + 1, 3)) * squeeze
    kept = hull_points(points, "m")
    assert 1 <= len(kept) <= 26
    assert np.ptp(kept, axis=0).tolist() == np.ptp(points, axis=0).tolist()


@pytest.mark.parametrize(("limit", "said"), [("CANDIDATE_LIMIT", "points near its hull"), ("VERTEX_LIMIT", "vertices")])
def test_too_many_are_refused(monkeypatch, limit, said):
    monkeypatch.setattr(module, limit, 1000)
    points = RNG.normal(size=(FEW + 1, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    with pytest.raises(InputError, match=f"^m: .*{said}, and 1000 are the most"):
        hull_points(points, "m")
