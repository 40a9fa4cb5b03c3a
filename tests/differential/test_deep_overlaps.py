"""Convex shapes deep in meshes and heightfields with dents: the depth is the least translation, and it separates.

Held against `translation_oracle`, which shares no code with the engine. The table over many poses: tests/bench/depths.
"""

from __future__ import annotations

import pytest

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


def test_boxes_in_a_terrain():
    """The base does not count: what is in the ground is lifted, or leaves through a wall."""
    terrain = deep_terrain()
    for size in (0.2, 0.5):
        convex = convex_shapes(size)[0]
        poses = random_poses(int(10 * size), 5, 0.9)
        poses[:, 2] = 0.6 * poses[:, 2] - 0.2
        contacts = collided_on_terrain(terrain, convex, poses)
        found = measure(solid_without_base(terrain), convex, poses, contacts, DIRECTIONS)
        check([one for one in found if one.regions < 2])
