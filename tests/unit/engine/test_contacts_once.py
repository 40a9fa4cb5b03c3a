"""A convex shape on a grid of triangles: one contact for each place within the pair, and all of its corners."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.meshes import grid

SHAPES = {
    ShapeType.BOX: ((0.25, 0.25, 0.1), 0.1),
    ShapeType.CAPSULE: ((0.1, 0.25), 0.1),
    ShapeType.CYLINDER: ((0.25, 0.1), 0.1),
}
LYING = (0.5**0.5, 0.0, 0.0, 0.5**0.5)


def resting(shape_type: ShapeType, surface: str, size: float, place: tuple[float, float]):
    """Contacts of a shape that overlaps a flat grid, 8 cells of 0.125 a side, by 1e-4 of the size."""
    sizes, rest = SHAPES[shape_type]
    builder = ModelBuilder()
    if surface == "mesh":
        vertices, faces = grid(8)
        builder.add_shape_mesh(-1, size * vertices, faces)
    else:
        builder.add_shape_heightfield(-1, np.zeros((9, 9), np.float32), hx=0.5 * size, hy=0.5 * size, base=size)
    builder.add_shape(builder.add_body(), shape_type, [size * x for x in sizes])
    pose = np.zeros((1, 1, 1, 7))
    pose[..., :3] = size * np.array([*place, rest - 1e-4])
    pose[..., 3:] = LYING if shape_type == ShapeType.CAPSULE else (0.0, 0.0, 0.0, 1.0)
    return collidecli.collide(builder.finalize(), pose, gap=0.01 * size).cell(0)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("surface", ["mesh", "field"])
@pytest.mark.parametrize("place", [(0.0, 0.0), (0.0625, 0.0), (0.03, -0.02)])
@pytest.mark.parametrize("shape_type", SHAPES)
def test_no_two_contacts_coincide(shape_type, surface, size, place):
    cell = resting(shape_type, surface, size, place)
    assert len(cell.distance) > 1
    np.testing.assert_allclose(cell.distance, -1e-4 * size, atol=1e-6 * size)
    for points in (cell.point0, cell.point1):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2) + np.eye(len(points)) * size
        assert apart.min() > 1e-6 * size
    if shape_type == ShapeType.BOX:
        corners = size * (np.array([[x, y] for x in (-0.25, 0.25) for y in (-0.25, 0.25)]) + place)
        away = np.linalg.norm(corners[:, None] - cell.point1[None, :, :2], axis=2).min(axis=1)
        assert away.max() < 1e-6 * size
    if shape_type == ShapeType.CAPSULE:
        ends = size * np.array([[place[0], place[1] + y] for y in (-0.25, 0.25)])
        away = np.linalg.norm(ends[:, None] - cell.point1[None, :, :2], axis=2).min(axis=1)
        assert away.max() < 1e-5 * size
