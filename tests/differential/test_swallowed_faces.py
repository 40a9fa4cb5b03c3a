"""Faces that another mesh has swallowed: places deeper than every vertex and edge, against points all over them."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.model.builder import ModelBuilder
from tests.support.contact_contract import check_contract, columns
from tests.support.deepest_places import deepest_of_pair
from tests.support.heightfields import Terrain
from tests.support.mesh_pairs import placed
from tests.support.meshes import prism, torus
from tests.support.oracle import rotation_of

ROOF = prism([(-1, -0.6), (0, -0.4), (1, -0.6), (0, 0.4)], 1.0)
"""A crest at z = 0.4 whose sides fall at 45 degrees, and a dent below."""
PLATE = prism([(-1.2, -0.05), (1.2, -0.05), (1.2, 0.2), (1.1, 0.2), (1.1, 0.05), (-1.2, 0.05)], 1.2)
"""A tenth thick, with a rim."""
CHANNEL = [(-0.7, -0.5), (0.7, -0.5), (0.7, 0.5), (0.5, 0.5), (0.5, -0.3), (-0.5, -0.3), (-0.5, 0.5), (-0.7, 0.5)]
STAR = [((1.0, 0.4)[k % 2] * np.cos(0.2 * np.pi * k), (1.0, 0.4)[k % 2] * np.sin(0.2 * np.pi * k)) for k in range(10)]
SHAPES = {
    "roof": ROOF,
    "plate": PLATE,
    "channel": prism(CHANNEL, 0.5),
    "star": prism(STAR, 0.3),
    "torus": torus(12, 7),
}
PAIRS = [("roof", "plate"), ("plate", "star"), ("torus", "plate"), ("channel", "roof"), ("star", "torus")]
FRAMES = 7
LEAST, MOST_OF_THEM = 0.7, 0.9
"""Share of the deepest sampled place that each pair is said to be deep, and all but a tenth of them: the search gives a
triangle sixteen looks, and is content with a tenth."""


def scene(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], size: float = 1.0):
    builder = ModelBuilder()
    for vertices, faces in (first, second):
        builder.add_shape_mesh(builder.add_body(), size * vertices, faces)
    return builder.finalize()


def poses(seed: int, count: int = FRAMES) -> np.ndarray:
    """float64[count, 1, 2, 7]: the second turned at random, its middle in the first's middle parts."""
    rng = np.random.default_rng(seed)
    body_q = rng.normal(size=(count, 1, 2, 7))
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    away = rng.normal(size=(count, 3))
    away *= rng.uniform(0.0, 0.9, (count, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + away
    return body_q


def above(z: float) -> np.ndarray:
    """float64[1, 1, 2, 7]: neither turned, the second moved up."""
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, 1, :3] = 0.02, 0.03, z
    return body_q


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_plate_over_the_crest_of_a_roof(size, swapped):
    """The crest is through: the plate's lower face is as deep under it as the roof's sides are away."""
    first, second = (PLATE, ROOF) if swapped else (ROOF, PLATE)
    body_q = above(-0.1 if swapped else 0.1)
    body_q[..., :3] *= size
    cell = collidecli.collide(scene(first, second, size), body_q, gap=0.0).cell(0)
    check_contract(cell, size)
    deepest = int(np.argmin(cell.distance))
    depth = (0.4 - 0.05) * 0.5**0.5
    assert depth / 1.02 <= -cell.distance[deepest] / size <= depth + 1e-6
    up = cell.normal[deepest] * (-1.0 if swapped else 1.0)
    assert up[2] == pytest.approx(0.5**0.5, abs=1e-6)
    on_plate = (cell.point0 if swapped else cell.point1)[deepest] / size - body_q[0, 0, 0 if swapped else 1, :3] / size
    assert on_plate[2] == pytest.approx(-0.05, abs=1e-6)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_no_place_is_much_deeper_than_is_said(first, second):
    body_q = poses(PAIRS.index((first, second)))
    contacts = collidecli.collide(scene(SHAPES[first], SHAPES[second]), body_q, gap=0.0)
    rng = np.random.default_rng(0)
    shares = []
    for frame in range(FRAMES):
        corners = [placed(SHAPES[name], body_q[frame, 0, k]) for k, name in enumerate((first, second))]
        deepest = deepest_of_pair(corners, rng, 1500)
        if deepest > 1e-3:
            shares.append(-contacts.cell(frame).distance.min(initial=0.0) / deepest)
        check_contract(contacts.cell(frame), 1.0)
    assert len(shares) > FRAMES // 2
    assert min(shares) > LEAST
    assert np.mean(np.array(shares) > MOST_OF_THEM) >= 0.7


def test_the_deepest_contact_is_what_it_says():
    """Its points are as far apart as it is deep, along its normal; the order of the meshes does not matter."""
    body_q = poses(1)
    contacts = collidecli.collide(scene(ROOF, PLATE), body_q, gap=0.0)
    here = collidecli.collide(scene(PLATE, ROOF), body_q[:, :, ::-1], gap=0.0)
    for frame in range(FRAMES):
        cell = contacts.cell(frame)
        if len(cell.distance) == 0:
            continue
        # The search ends within a thousandth.
        assert here.cell(frame).distance.min() == pytest.approx(cell.distance.min(), rel=1.1e-3)
        deepest = int(np.argmin(cell.distance))
        gap = cell.point1[deepest] - cell.point0[deepest]
        np.testing.assert_allclose(gap, cell.distance[deepest] * cell.normal[deepest], atol=1e-6)


def test_one_answer_over_chunks_and_threads():
    model, body_q = scene(SHAPES["star"], PLATE), poses(4)
    whole = collidecli.collide(model, body_q, gap=0.0, threads=1)
    parts = collidecli.collide(model, body_q, gap=0.0, threads=2, chunk_cells=2)
    assert len(whole.distance) > 10
    assert columns(whole) == columns(parts)


def test_a_plate_over_the_crest_of_a_terrain():
    """As deep as its lower face is under the slopes; on the ground itself nothing is sought."""
    heights = np.zeros((9, 9), np.float32)
    heights[:] = np.maximum(0.0, 0.8 - 0.2 * np.abs(np.arange(9) - 4))
    terrain = Terrain(heights, 1.0, 1.0, 3.0)
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, heights, 1.0, 1.0, 3.0)
    builder.add_shape_mesh(builder.add_body(), *PLATE)
    turn = np.array([0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    for z in (0.6, 0.4):
        pose = np.array([[0.01, 0.02, z, *turn]])
        cell = collidecli.collide(builder.finalize(), pose[None, None], gap=0.0).cell(0)
        share = np.linspace(-1.2, 1.2, 49)
        face = np.stack(np.meshgrid(share, share, [-0.05]), axis=-1).reshape(-1, 3)
        points = face @ rotation_of(pose)[0].T + pose[0, :3]
        deepest = max(-terrain.signed_distance(point) for point in points if terrain.is_inside(point))
        assert deepest > 0.1
        assert deepest / 1.1 <= -cell.distance.min()
