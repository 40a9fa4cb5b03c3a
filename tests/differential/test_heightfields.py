"""Heightfields against brute force over their triangles, and against the closed mesh of the same solid."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.model.builder import ModelBuilder
from collidecli.model.shape_types import ShapeType
from tests.support.heightfields import Terrain, rough, smooth
from tests.support.oracle import rotation_of

FRAMES = 80
SIZES = [1e-3, 1.0, 1e3]
ROUNDING = 3e-7
"""Distances are written in float32; of the size."""
TERRAINS = {"rough": rough(0), "smooth": smooth(), "one cell": rough(3, 2, 2)}


def poses(rng: np.random.Generator, size: float, terrain: Terrain) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: a terrain and a body in, around and above it, both turned at random."""
    body_q = np.zeros((FRAMES, 1, 2, 7))
    quaternion = rng.normal(size=(FRAMES, 1, 2, 4))
    body_q[..., 3:] = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    body_q[:, 0, 0, :3] = size * rng.normal(size=(FRAMES, 3))
    local = rng.uniform(-1.0, 1.0, (FRAMES, 3)) * [1.25 * terrain.hx, 1.25 * terrain.hy, 0.9]
    turned = np.einsum("fij,fj->fi", rotation_of(body_q[:, 0, 0]), local)
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + size * turned
    return body_q


def scene(terrain: Terrain, shape_type: ShapeType, sizes, as_mesh: bool = False):
    builder = ModelBuilder()
    if as_mesh:
        builder.add_shape_mesh(builder.add_body(), *terrain.solid())
    else:
        builder.add_shape_heightfield(builder.add_body(), terrain.heights, terrain.hx, terrain.hy, terrain.base)
    if shape_type == ShapeType.CONVEX_MESH:
        builder.add_shape_convex_hull(builder.add_body(), sizes)
    else:
        builder.add_shape(builder.add_body(), shape_type, sizes)
    return builder.finalize()


def in_terrain(body_q: np.ndarray, points: np.ndarray) -> np.ndarray:
    """World points in the frame of body 0."""
    return (points - body_q[0, :3]) @ rotation_of(body_q[:1])[0]


def check_contract(cell, size: float) -> None:
    """The equation that every contact obeys, unit normals, and no two of one name."""
    apart = np.einsum("ij,ij->i", cell.point1 - cell.point0, cell.normal)
    np.testing.assert_allclose(apart, cell.distance, atol=10 * ROUNDING * size)
    np.testing.assert_allclose(np.linalg.norm(cell.normal, axis=1), 1.0, atol=1e-6)
    names = list(zip(cell.feature0.tolist(), cell.feature1.tolist(), strict=True))
    assert names == sorted(set(names))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", TERRAINS)
def test_sphere(name, size):
    """The signed distance of its centre, also inside, where the base does not count."""
    terrain = TERRAINS[name]
    body_q = poses(np.random.default_rng(1), size, terrain)
    contacts = collidecli.collide(scene(terrain.scaled(size), ShapeType.SPHERE, (0.2 * size,)), body_q, gap=3.0 * size)
    inside = 0
    for frame in range(FRAMES):
        center = in_terrain(body_q[frame, 0], body_q[frame, 0, 1, :3]) / size
        distance = terrain.signed_distance(center)
        inside += distance < 0.0
        cell = contacts.cell(frame)
        assert cell.distance.min() == pytest.approx((distance - 0.2) * size, abs=3 * ROUNDING * size)
        check_contract(cell, size)
    assert inside > 8
