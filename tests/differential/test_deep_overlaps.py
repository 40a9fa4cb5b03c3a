"""Convex shapes deep in meshes and heightfields with dents: the depth is the least translation, and it separates.

Held against `translation_oracle`, which shares no code with the engine. The table over many poses: tests/bench/depths.
"""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from tests.support.deep_poses import (
    collided,
    collided_on_terrain,
    convex_shapes,
    deep_terrain,
    dented_meshes,
    measure,
    random_poses,
    solid_without_base,
)
from tests.support.meshes import grid
from tests.support.translation_oracle import directions_on_sphere

DIRECTIONS = directions_on_sphere(300)
ALLOWED = 1.05


def check(found: list) -> None:
    """Depths of overlaps that are one region, in which every pose is free after the translation that is reported."""
    overlapping = [one for one in found if one.least > 0.0]
    assert overlapping
    for one in overlapping:
        assert one.separates, one
        assert one.ratio <= ALLOWED, one


@pytest.mark.share(2)
@pytest.mark.parametrize("surface", ["blob", "torus", "star", "bend"])
def test_boxes_and_hulls_in_dented_meshes(surface):
    mesh = dented_meshes()[surface]
    for size in (0.3, 1.0):
        for k, convex in enumerate(convex_shapes(size)[:2]):
            poses = random_poses(40 + k, 3, 0.8)
            found = measure(mesh, convex, poses, collided(mesh, convex, poses), DIRECTIONS)
            check([one for one in found if one.regions < 2])


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_sizes(size):
    vertices, faces = dented_meshes()["bend"]
    mesh = size * vertices, faces
    convex = convex_shapes(0.5 * size)[0]
    poses = random_poses(3, 4, 0.6)
    poses[:, :3] *= size
    found = measure(mesh, convex, poses, collided(mesh, convex, poses), DIRECTIONS)
    check([one for one in found if one.regions < 2])


@pytest.mark.share(2)
@pytest.mark.parametrize("size", [0.2, 0.5])
def test_boxes_in_a_terrain(size):
    """The base does not count: what is in the ground is lifted, or leaves through a wall."""
    terrain, convex = deep_terrain(), convex_shapes(size)[0]
    poses = random_poses(int(10 * size), 5, 0.9)
    poses[:, 2] = 0.6 * poses[:, 2] - 0.2
    contacts = collided_on_terrain(terrain, convex, poses)
    found = measure(solid_without_base(terrain), convex, poses, contacts, DIRECTIONS)
    check([one for one in found if one.regions < 2])


def test_a_box_over_the_rim_of_a_slab_is_lifted():
    """Half of it hangs over the edge of a finely meshed slab: it leaves upwards, by its penetration."""
    vertices, faces = grid(20)
    count = len(vertices)
    bottom = vertices - [0.0, 0.0, 0.3]
    rim = list(range(21)) + [21 * k + 20 for k in range(1, 21)]
    rim += [420 + k for k in range(19, -1, -1)] + [21 * k for k in range(19, 0, -1)]
    rim = rim[::-1]
    walls = []
    for k, here in enumerate(rim):
        following = rim[(k + 1) % len(rim)]
        walls += [(here, here + count, following + count), (here, following + count, following)]
    faces = np.concatenate([faces, faces[:, ::-1] + count, walls])
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, np.concatenate([vertices, bottom]), faces)
    assert builder.finalize().meshes[0].is_closed
    builder.add_shape_box(builder.add_body(), hx=0.11, hy=0.12, hz=0.1)
    body_q = np.zeros((9, 1, 1, 7))
    body_q[..., 6] = 1.0
    body_q[:, 0, 0, 0] = 0.5 + np.linspace(-0.05, 0.05, 9)
    body_q[:, 0, 0, 1] = 0.013
    body_q[:, 0, 0, 2] = 0.1 - 0.01
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.0)
    for frame in range(9):
        cell = contacts.cell(frame)
        np.testing.assert_allclose(cell.normal, np.tile([0.0, 0.0, 1.0], (len(cell.normal), 1)), atol=1e-3)
        assert cell.distance.min() == pytest.approx(-0.01, abs=1e-6)
