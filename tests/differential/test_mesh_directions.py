"""Depths of two meshes, held against the exact exits along the fixed directions of their search."""

import itertools

import numpy as np
import pytest

from tests.differential.test_mesh_noise import drawn
from tests.support.mesh_pairs import posed
from tests.support.noisy_pairs import NoisyPair, contacts_of_copies, deepest
from tests.support.translation_scan import first_free

SPREAD = 3
"""The fixed directions are those of a grid on a cube, 2 SPREAD + 1 points per side."""
ACCURACY = 1.03
"""A translation within this ratio of a lower bound is not searched further; the bound is at most
any exit."""
NEAR = 0.1
"""Fraction of half of the smaller mesh's longest side up to which the fixed directions are not
tried."""


def fixed_directions(pair: NoisyPair) -> np.ndarray:
    """float64[218, 3]: the fixed directions of the second mesh's translation, unit, in the world's
    frame.

    The grid is in the frame of the mesh with more triangles, and moves the other.
    """
    numbers = range(-SPREAD, SPREAD + 1)
    grid = [
        point for point in itertools.product(numbers, repeat=3) if max(map(abs, point)) == SPREAD
    ]
    directions = np.array(grid, np.float64)
    directions /= np.sqrt((directions * directions).sum(-1, keepdims=True))
    is_turned = len(pair.second.mesh[1]) > len(pair.first.mesh[1])
    pose = pair.poses[1 if is_turned else 0].copy()
    pose[:3] = 0.0
    turned = posed(directions, pose)
    return -turned if is_turned else turned


def half_length(pair: NoisyPair) -> float:
    """Half of the longest side of the smaller mesh's box [m]."""
    return 0.5 * min(np.ptp(shape.mesh[0], axis=0).max() for shape in (pair.first, pair.second))


@pytest.mark.parametrize(
    ("first", "second", "seed", "poses"),
    [
        ("torus", "L", 1, [9]),
        ("L", "L", 5, range(4)),
        pytest.param("torus", "L", 2, range(40), marks=pytest.mark.slow),
        pytest.param("L", "L", 5, range(4, 100), marks=pytest.mark.slow),
        pytest.param("T", "L", 5, range(60), marks=pytest.mark.slow),
    ],
)
def test_no_fixed_direction_has_a_shorter_exit_than_the_depth(first, second, seed, poses):
    """A direction is followed to its exit, also where the surfaces cross again a little further
    on."""
    pairs = drawn(first, second, seed, max(poses) + 1)
    pairs = [pairs[k] for k in poses]
    compared = 0
    for k, pair, cells in zip(poses, pairs, contacts_of_copies(pairs, 0, 0.0), strict=True):
        depth = -deepest(cells[0])[0]
        if depth <= NEAR * half_length(pair):
            continue
        corners = [
            posed(shape.mesh[0], pose)[shape.mesh[1]]
            for shape, pose in zip((pair.first, pair.second), pair.poses, strict=True)
        ]
        least = min(first_free(*corners, direction) for direction in fixed_directions(pair))
        assert depth <= ACCURACY * least + 1e-6, (first, second, seed, k, depth, least)
        compared += 1
    assert compared >= 0.5 * len(pairs)
