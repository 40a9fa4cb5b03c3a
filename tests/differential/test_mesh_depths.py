"""The depth of two meshes that overlap: the least translation that separates them, against FCL over many directions."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from tests.support.contact_contract import check_contract, columns
from tests.support.fcl_pairs import FclPair
from tests.support.heightfields import Terrain
from tests.support.mesh_pairs import box, placed
from tests.support.meshes import blob, point_distances, prism, torus
from tests.support.oracle import rotation_of
from tests.support.translation_oracle import directions_on_sphere

ROOF = prism([(-1, -0.6), (0, -0.4), (1, -0.6), (0, 0.4)], 1.0)
"""A crest at z = 0.4 whose sides fall at 45 degrees, and a dent below."""
PLATE = prism([(-1.2, -0.05), (1.2, -0.05), (1.2, 0.2), (1.1, 0.2), (1.1, 0.05), (-1.2, 0.05)], 1.2)
"""A tenth thick, with a rim."""
CHANNEL = [(-0.7, -0.5), (0.7, -0.5), (0.7, 0.5), (0.5, 0.5), (0.5, -0.3), (-0.5, -0.3), (-0.5, 0.5), (-0.7, 0.5)]
STAR = [((1.0, 0.4)[k % 2] * np.cos(0.2 * np.pi * k), (1.0, 0.4)[k % 2] * np.sin(0.2 * np.pi * k)) for k in range(10)]
SHAPES = {
    "blob": blob(np.random.default_rng(0), 7, 9),
    "torus": torus(12, 7),
    "box": box(0.5, 0.4, 0.3),
    "bar": box(1.5, 0.1, 0.1),
    "roof": ROOF,
    "plate": PLATE,
    "channel": prism(CHANNEL, 0.5),
    "star": prism(STAR, 0.3),
}
CONVEX = ("box", "bar")
WITHIN = 1.05
"""How many times the best of all directions a depth may be, except for one in a hundred with a narrow exit."""


def scene(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], size: float = 1.0):
    builder = ModelBuilder()
    for vertices, faces in (first, second):
        builder.add_shape_mesh(builder.add_body(), size * vertices, faces)
    return builder.finalize()


def poses(rng: np.random.Generator, count: int, apart: float = 1.2) -> np.ndarray:
    """float64[count, 1, 2, 7]: both turned at random, the second's middle up to `apart` from the first's."""
    body_q = rng.normal(size=(count, 1, 2, 7))
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    away = rng.normal(size=(count, 3))
    away *= rng.uniform(0.0, apart, (count, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + away
    return body_q


def above(z: float) -> np.ndarray:
    """float64[1, 1, 2, 7]: neither turned, the second moved up."""
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, 1, :3] = 0.02, 0.03, z
    return body_q


def judged(first: str, second: str, body_q: np.ndarray, directions: np.ndarray) -> tuple[list[float], list[bool]]:
    """Of poses that overlap: the depth over the best of the directions; whether depth times normal separates the pair.

    Where a pair has several regions, the depth of the deepest need not.
    """
    ratios, separated = [], []
    contacts = collidecli.collide(scene(SHAPES[first], SHAPES[second]), body_q, gap=0.0)
    for frame in range(len(body_q)):
        cell = contacts.cell(frame)
        check_contract(cell, 1.0)
        pair = FclPair(SHAPES[first], SHAPES[second], body_q[frame, 0, 0], body_q[frame, 0, 1])
        distance = float(cell.distance.min(initial=1.0))
        assert pair.overlaps() == (distance < 0.0), (first, second, frame)
        if distance < 0.0:
            deepest = int(np.argmin(cell.distance))
            # Points and distances of a file are float32.
            moved = (-distance * (1.0 + 1e-6) + 2e-6) * cell.normal[deepest].astype(np.float64)
            ratios.append(-distance / pair.least_translation(-distance, directions, WITHIN))
            separated.append(not pair.overlaps(moved))
    return ratios, separated


def check_depths(seed: int, frames: int, directions: int) -> tuple[int, int]:
    """How many poses of all pairs overlap, and how many of those depth times normal separates."""
    rng = np.random.default_rng(seed)
    found = separated = too_deep = 0
    spread = directions_on_sphere(directions)
    for first, second in combinations_with_replacement(SHAPES, 2):
        ratios, free = judged(first, second, poses(rng, frames), spread)
        found, separated = found + len(ratios), separated + sum(free)
        if first in CONVEX and second in CONVEX:
            assert all(free)
        too_deep += sum(ratio > WITHIN * 1.0001 for ratio in ratios)
    assert too_deep <= 0.01 * found
    return found, separated


def test_depths_are_the_least_translations():
    found, separated = check_depths(5, 3, 200)
    assert found > 60
    assert separated >= 0.9 * found


@pytest.mark.slow
def test_a_thousand_depths_against_two_thousand_directions():
    found, separated = check_depths(6, 32, 2000)
    assert found > 900
    assert separated >= 0.9 * found


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_plate_over_the_crest_of_a_roof(size, swapped):
    """The crest is through the plate: it is lifted until the crest is below it."""
    first, second = (PLATE, ROOF) if swapped else (ROOF, PLATE)
    body_q = above(-0.1 if swapped else 0.1)
    body_q[..., :3] *= size
    cell = collidecli.collide(scene(first, second, size), body_q, gap=0.0).cell(0)
    check_contract(cell, size)
    deepest = int(np.argmin(cell.distance))
    assert -cell.distance[deepest] / size == pytest.approx(0.35, abs=1e-6)
    up = cell.normal[deepest] * (-1.0 if swapped else 1.0)
    np.testing.assert_allclose(up, [0.0, 0.0, 1.0], atol=1e-6)


def test_the_points_of_a_region_are_on_the_surfaces():
    rng = np.random.default_rng(7)
    for first, second in (("star", "plate"), ("torus", "roof"), ("blob", "channel")):
        body_q = poses(rng, 5)
        contacts = collidecli.collide(scene(SHAPES[first], SHAPES[second]), body_q, gap=0.0)
        for frame in range(len(body_q)):
            cell = contacts.cell(frame)
            for name, k, points in ((first, 0, cell.point0), (second, 1, cell.point1)):
                corners = placed(SHAPES[name], body_q[frame, 0, k])
                for point in points:
                    assert point_distances(corners, point).min() < 1e-6


def test_a_box_is_not_pushed_from_one_wall_into_the_other():
    """A slot of 0.4 between walls 2 m thick, and a box in one of them: moved by 0.9 it would be inside the other."""
    outline = [(-2.2, -0.5), (2.2, -0.5), (2.2, 1.5), (0.2, 1.5), (0.2, 0.05), (-0.2, 0.05), (-0.2, 1.5), (-2.2, 1.5)]
    slot, solid = prism(outline, 1.0), box(0.3, 0.3, 0.3)
    body_q = above(0.0)
    for place in ((0.4, 0.0, 0.75), (0.45, 0.1, 1.0), (-0.38, 0.15, 0.8)):
        body_q[0, 0, 1, :3] = place
        cell = collidecli.collide(scene(slot, solid), body_q, gap=0.0).cell(0)
        deepest = int(np.argmin(cell.distance))
        moved = (-float(cell.distance[deepest]) + 1e-5) * cell.normal[deepest].astype(np.float64)
        assert not FclPair(slot, solid, body_q[0, 0, 0], body_q[0, 0, 1]).overlaps(moved)
        assert -cell.distance[deepest] <= (1.5 - (place[2] - 0.3)) * WITHIN


def test_two_feet_of_one_body_are_two_regions():
    """A table stands 0.1 deep in one floor and 0.2 in another: each foot has its own depth."""
    table = prism([(-1, 0), (-0.8, 0), (-0.8, 0.9), (0.8, 0.9), (0.8, 0), (1, 0), (1, 1), (-1, 1)], 0.3)
    floors = prism(
        [(-1.5, -1), (1.5, -1), (1.5, 0.2), (0.5, 0.2), (0.5, -0.5), (-0.5, -0.5), (-0.5, 0.1), (-1.5, 0.1)], 1
    )
    cell = collidecli.collide(scene(floors, table), above(0.0), gap=0.0).cell(0)
    left, right = cell.point1[:, 0] < 0.0, cell.point1[:, 0] > 0.0
    assert cell.distance[left].min() == pytest.approx(-0.1, abs=1e-6)
    assert cell.distance[right].min() == pytest.approx(-0.2, abs=1e-6)


def test_one_answer_over_chunks_and_threads():
    model, body_q = scene(SHAPES["star"], PLATE), poses(np.random.default_rng(4), 7)
    whole = collidecli.collide(model, body_q, gap=0.0, threads=1)
    parts = collidecli.collide(model, body_q, gap=0.0, threads=2, chunk_cells=2)
    assert len(whole.distance) > 5
    assert columns(whole) == columns(parts)


def test_a_plate_over_the_crest_of_a_terrain():
    """It is lifted, and then free: none of its points is in the ground."""
    heights = np.zeros((9, 9), np.float32)
    heights[:] = np.maximum(0.0, 0.8 - 0.2 * np.abs(np.arange(9) - 4))
    terrain = Terrain(heights, 1.0, 1.0, 3.0)
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, heights, 1.0, 1.0, 3.0)
    builder.add_shape_mesh(builder.add_body(), *PLATE)
    turn = np.array([0.0, 0.0, np.sin(0.2), np.cos(0.2)])
    share = np.linspace(-1.2, 1.2, 49)
    face = np.stack(np.meshgrid(share, share, [-0.05]), axis=-1).reshape(-1, 3)
    for z in (0.6, 0.4):
        pose = np.array([[0.01, 0.02, z, *turn]])
        cell = collidecli.collide(builder.finalize(), pose[None, None], gap=0.0).cell(0)
        deepest = int(np.argmin(cell.distance))
        # Up by the crest's height over the lower face, or aside by less.
        assert 0.1 < -cell.distance[deepest] <= 0.8 - (z - 0.05) + 1e-6
        moved = face @ rotation_of(pose)[0].T + pose[0, :3] - cell.distance[deepest] * cell.normal[deepest]
        moved[:, 2] += 1e-5
        assert not any(terrain.is_inside(point) for point in moved)
