"""Distances of edges and triangles from a mesh and a heightfield, against exact distances of triangles and segments."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from tests.support.hydroelastic import random_rotation
from tests.support.meshes import nearest_to_segments
from tests.support.particle_oracle import triangle_distances
from tests.support.pressure_quadrature import deep_terrain, notched_cube, pressure_solids
from tests.unit.engine.particles.test_distances import soft_rows, turned
from tests.unit.engine.particles.test_soft_elements import least

SOLIDS = {solid.name: solid for solid in pressure_solids()}
VERTICES, FACES = notched_cube()
TERRAIN_VERTICES, TERRAIN_FACES = deep_terrain().solid()
TRIANGLES = {"mesh": VERTICES[FACES], "heightfield": TERRAIN_VERTICES[TERRAIN_FACES]}
ROUNDS = {"mesh": (), "heightfield": (17,)}
OUTSIDE = 1e-7
"""Of distances outside, as a fraction of the larger one of shape and element: particles and rows have float32's
precision."""
DEPTH_PRECISION = 1e-4
"""Of depths, as a fraction of the element's longest side (adr 0098)."""


def crosses(p: np.ndarray, q: np.ndarray, corners: np.ndarray) -> bool:
    """Whether the segment pq passes through one of the triangles [F, 3, 3]."""
    a, b, c = corners.transpose(1, 0, 2)

    def volume(u, v, w, x):
        return ((u - x) * np.cross(v - x, w - x)).sum(-1)

    sides = volume(a, b, c, p) * volume(a, b, c, q) < 0.0
    turns = np.stack([volume(u, v, p, q) for u, v in ((a, b), (b, c), (c, a))])
    return bool((sides & ((turns > 0.0).all(axis=0) | (turns < 0.0).all(axis=0))).any())


def exact_distance(element: np.ndarray, corners: np.ndarray) -> float:
    """Distance without sign of an edge or triangle [2 or 3, 3] from triangles [F, 3, 3]: over all vertices, faces and
    pairs of edges; 0 where an edge of one passes through the other."""
    edges = [(0, 1), (1, 2), (2, 0)][: 1 if len(element) == 2 else 3]
    best = triangle_distances(element, corners).min()
    if len(element) == 3:
        best = min(best, triangle_distances(corners.reshape(-1, 3), element[None]).min())
        sides = [(t[i], t[j]) for t in corners for i, j in ((0, 1), (1, 2), (2, 0))]
        if any(crosses(a, b, element[None]) for a, b in sides):
            return 0.0
    for i, j in edges:
        if crosses(element[i], element[j], corners):
            return 0.0
        for u, v in ((0, 1), (1, 2), (2, 0)):
            best = min(best, nearest_to_segments(element[i], element[j], corners[:, u], corners[:, v]).min())
    return float(best)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("name", "count"), [("mesh", 40), ("heightfield", 16)])
def test_distances_of_elements_from_surfaces(name, count, size):
    """Exact outside; inside the depth is never too large, and too small by DEPTH_PRECISION at most: 6e-4 m of 6 m."""
    solid, rng = SOLIDS[name], np.random.default_rng(3)
    middles = rng.uniform(-0.9, 0.9, (count, 1, 3))
    faces = middles + rng.normal(size=(count, 3, 3)) * 10.0 ** rng.uniform(-1.0, 0.5, (count, 1, 1))
    turn, place = random_rotation(rng), rng.normal(size=3) * size
    builder = ModelBuilder()
    solid.add(builder, np.array([*place, *turn]), size, ShapeConfig())
    points = turned(turn, faces.reshape(-1, 3) * size) + place
    builder.add_cloth_mesh(vertices=points, indices=np.arange(3 * count).reshape(-1, 3), particle_radius=1e-9 * size)
    model = builder.finalize()
    rows = soft_rows(model, 0.5 * size).columns
    local = turned(turn * (-1.0, -1.0, -1.0, 1.0), model.particles.position - place) / size
    outside, inside = 0, 0
    for row in np.flatnonzero(rows["kind"] > 0):
        element = local[rows["indices"][row][: rows["kind"][row] + 1]]
        longest = max(np.linalg.norm(a - b) for a in element for b in element)
        rounding, found = OUTSIDE * max(longest, 1.0), rows["distance"][row] / size
        if found > 0.0:
            outside += 1
            assert abs(found - exact_distance(element, TRIANGLES[name])) < rounding
        else:
            inside += 1
            truth, _ = least(solid.distance, element, np.zeros(len(element)), *ROUNDS[name])
            # The search for the truth may end above it, so what is found is compared with the depth of its point too.
            weights = rows["barycentric"][row][: len(element)].astype(float)
            assert abs(found - solid.distance((weights @ element)[None])[0]) < rounding
            assert found - truth < DEPTH_PRECISION * longest + rounding
    assert min(outside, inside) >= 3
