"""Open meshes have no inside: apart, they are as far as their triangles are; crossing, they always say so."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from tests.support.contact_contract import check_contract
from tests.support.fcl_pairs import FclPair
from tests.support.mesh_pairs import crosses, mesh_distance, placed
from tests.support.meshes import blob, grid, torus
from tests.support.open_meshes import arch, channel, patch, ridge_terrain, sheet, strip, triangle, tube

SIZES = [1e-3, 1.0, 1e3]
TURNED = [0.5**0.5, 0.0, 0.0, 0.5**0.5]
UPRIGHT = [0.0, 0.0, 0.0, 1.0]


def collided(mesh_a, mesh_b, body_q: np.ndarray, gap: float, size: float = 1.0):
    """Contacts of two meshes at poses [frames, 2, 7] of the size 1."""
    builder = ModelBuilder()
    for vertices, faces in (mesh_a, mesh_b):
        builder.add_shape_mesh(builder.add_body(), size * np.asarray(vertices), faces)
    moved = body_q[:, None].copy()
    moved[..., :3] *= size
    return collidecli.collide(builder.finalize(), moved, gap=gap * size)


def at(position, turn=UPRIGHT) -> np.ndarray:
    """float64[1, 2, 7]: the first at the origin, the second elsewhere."""
    return np.array([[[0.0, 0.0, 0.0, *UPRIGHT], [*position, *turn]]])


NAMED = {
    "an arch over the ridge of a terrain": (ridge_terrain(), arch(), at((0.0, 0.3, 0.0))),
    "a tube in a tube": (tube(1.0), tube(0.5), at((0.0, 0.0, 0.0))),
    "a sheet under a channel": (sheet(), channel(), at((0.0, 0.0, 0.5))),
    "a sheet in a channel": (channel(), sheet(0.9), at((0.0, 0.0, 0.5))),
    "linked rings": (tube(1.0, 0.1), tube(1.0, 0.1), at((1.0, 0.0, 0.0), TURNED)),
    "a sheet over a closed ring": (torus(12, 7), sheet(), at((0.0, 0.0, 0.6))),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMED)
def test_what_touches_nothing_is_apart(name, size):
    """A sheet between the middles of two meshes is no wall between them."""
    mesh_a, mesh_b, pose = NAMED[name]
    distance = mesh_distance(placed(mesh_a, pose[0, 0]), placed(mesh_b, pose[0, 1]))
    assert distance > 0.05
    cell = collided(mesh_a, mesh_b, pose, 2.0, size).cell(0)
    check_contract(cell, size)
    assert cell.distance.min() / size == pytest.approx(distance, abs=1e-6)


def near_poses(rng: np.random.Generator, count: int, apart: float) -> np.ndarray:
    """float64[count, 2, 7]: two bodies turned at random, up to `apart` from each other."""
    poses = rng.normal(size=(count, 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    away = rng.normal(size=(count, 3))
    poses[:, 1, :3] = poses[:, 0, :3] + apart * rng.uniform(size=(count, 1)) * away / np.linalg.norm(
        away, axis=1, keepdims=True
    )
    return poses


@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_pairs_of_triangles(count):
    """Against all pairs of their features in float64: none too many, none missing, distances to 1e-6 of the size."""
    rng = np.random.default_rng(20)
    apart = 0
    for _ in range(count):
        mesh_a, mesh_b = triangle(rng), triangle(rng)
        poses = near_poses(rng, 100, 3.0)
        contacts = collided(mesh_a, mesh_b, poses, 12.0)
        for frame in range(len(poses)):
            corners = [placed(mesh, poses[frame, k]) for k, mesh in enumerate((mesh_a, mesh_b))]
            distance, found = mesh_distance(*corners), contacts.cell(frame).distance.min()
            if distance > 0.0:
                apart += 1
                assert found == pytest.approx(distance, abs=2e-6)
            else:
                assert found < 1e-9
    assert 0.67 < apart / (100 * count) < 0.997


def open_meshes(rng: np.random.Generator) -> list:
    """Sheets with bumps, halves of closed meshes, tubes and channels."""
    waves = [
        grid(5, 2.0, lambda x, y, k=k: 0.3 * np.sin(k * x + rng.uniform()) * np.cos(k * y))
        for k in rng.uniform(2, 6, 3)
    ]
    halves = [patch(rng, blob(rng, 6, 8), rng.uniform(0.3, 0.8)) for _ in range(3)] + [patch(rng, torus(10, 6))]
    bent = strip(np.cumsum(rng.normal(size=(6, 2)), axis=0) * 0.4, -0.7, 0.7)
    return [*waves, *halves, tube(0.8, 0.6, 9), channel(0.7, 0.6, 0.8), bent]


def check_pairs(rng: np.random.Generator, pairs: int, frames: int) -> tuple[int, int]:
    """How many of random pairs of open meshes, or of an open and a closed one, are apart, and how many cross."""
    apart = crossing = 0
    for turn in range(pairs):
        meshes = open_meshes(rng)
        first, second = (meshes[k] for k in rng.choice(len(meshes), 2, replace=False))
        if turn % 4 == 0:
            second = blob(rng, 6, 8)
        poses = near_poses(rng, frames, 2.5)
        contacts = collided(first, second, poses, 8.0)
        for frame in range(frames):
            pair = FclPair(first, second, poses[frame, 0], poses[frame, 1])
            found = contacts.cell(frame).distance.min()
            if pair.crosses():
                crossing += 1
                corners = [placed(mesh, poses[frame, k]) for k, mesh in enumerate((first, second))]
                # Of two that touch within its rounding, FCL may say either.
                assert found < 1e-6 or not (crosses(*corners) or crosses(*corners[::-1])), (turn, frame)
            elif not pair.overlaps():
                apart += 1
                assert found == pytest.approx(pair.distance(), abs=3e-6), (turn, frame)
            else:
                assert found < 0.0
    return apart, crossing


def test_pairs_of_open_meshes():
    apart, crossing = check_pairs(np.random.default_rng(21), 24, 20)
    assert apart > 100
    assert crossing > 100


@pytest.mark.slow
def test_three_thousand_pairs_of_open_meshes():
    apart, crossing = check_pairs(np.random.default_rng(22), 150, 20)
    assert apart > 600
    assert crossing > 600


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("two_sided", [False, True])
def test_a_box_in_a_sheet_keeps_its_corners(two_sided, size):
    """The four corners below come out along the shortest way up; those of a sheet with a front, in front of it."""
    corners = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.2, 0.2) for z in (-0.3, 0.3)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    solid = corners * size, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    for above in (0.1, -0.1):
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), sheet()[0] * size, sheet()[1], two_sided=two_sided)
        builder.add_shape_mesh(builder.add_body(), *solid)
        pose = at((0.1, 0.2, above))[:, None]
        pose[..., :3] *= size
        cell = collidecli.collide(builder.finalize(), pose, gap=0.0).cell(0)
        check_contract(cell, size)
        goes_up = above > 0.0 or not two_sided
        depth = 0.3 - above if goes_up else 0.3 + above
        deepest = np.isclose(cell.distance / size, -depth, atol=1e-6)
        assert deepest.sum() == 4
        np.testing.assert_allclose(cell.normal[deepest], np.tile([0, 0, 1.0 if goes_up else -1.0], (4, 1)), atol=1e-9)
        assert np.all(cell.distance / size >= -depth - 1e-6)


def test_what_is_beyond_a_sheet_is_apart():
    """A shape that has passed a sheet and does not cross it does not touch it, whether the sheet has a front or not."""
    for two_sided in (False, True):
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), *sheet(), two_sided=two_sided)
        builder.add_shape_mesh(builder.add_body(), *blob(np.random.default_rng(1), 6, 8))
        cell = collidecli.collide(builder.finalize(), at((0.0, 0.0, -1.05))[:, None], gap=0.5).cell(0)
        assert np.all(cell.distance > 0.0)
        assert (len(cell.distance) > 0) == two_sided
