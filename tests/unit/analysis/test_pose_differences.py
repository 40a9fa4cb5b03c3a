"""Differences of poses over frames, against SciPy's rotations."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.analysis.pose_differences import PoseDifferences

FRAMES = 12


def chain(rng: np.random.Generator, turns: np.ndarray) -> np.ndarray:
    """float64[F, 1, 3, 7]: three links, each turned about y by `turns` [F, 3] in its parent and
    0.3 m along its parent's x; at a place in the world."""
    poses = np.zeros((len(turns), 1, 3, 7))
    for frame, angles in enumerate(turns):
        place = np.array([1.5, -2.0, 0.5])
        turn = Rotation.identity()
        for link, angle in enumerate(angles):
            place = place + turn.apply([0.3, 0.0, 0.0])
            turn = turn * Rotation.from_euler("y", angle)
            sign = rng.choice([-1.0, 1.0])
            poses[frame, 0, link] = [*place, *(sign * turn.as_quat())]
    return poses


def compared(a: np.ndarray, b: np.ndarray, parent=(-1, 0, 1), size: int = 5) -> PoseDifferences:
    """The differences of poses that are added in blocks of `size` frames."""
    present = np.ones(a.shape[1:3], bool)
    found = PoseDifferences(parent, present, float(np.finfo(np.float64).eps))
    for first in range(0, len(a), size):
        found.add(first, a[first : first + size], b[first : first + size])
    return found


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("size", [1, 5, FRAMES])
def test_greatest_differences_are_those_of_rotations(rng, size):
    turns = rng.normal(size=(2, FRAMES, 3))
    a, b = (chain(rng, angles) for angles in turns)
    found = compared(a, b, size=size)
    rotations = [Rotation.from_quat(poses[:, 0, :, 3:].reshape(-1, 4)) for poses in (a, b)]
    angles = (rotations[0].inv() * rotations[1]).magnitude().reshape(FRAMES, 3)
    distances = np.linalg.norm(a[:, 0, :, :3] - b[:, 0, :, :3], axis=-1)
    np.testing.assert_allclose(found.angle, angles.max(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.distance, distances.max(axis=0), rtol=1e-12)


def test_a_turned_joint_moves_its_body_alone_and_carries_the_next(rng):
    turns = rng.normal(size=(FRAMES, 3))
    changed = turns.copy()
    changed[7:, 1] += 0.1
    a = chain(rng, turns)
    b = chain(rng, changed)
    b[:7] = a[:7] * np.array([1, 1, 1, -1, -1, -1, -1])  # a rotation has two quaternions
    b[:, :, 0] = a[:, :, 0]
    found = compared(a, b)
    assert found.first.tolist() == [-1, 7, 7]
    assert found.world.tolist() == [-1, 0, 0]
    assert found.moves_alone.tolist() == [False, True, False]
    assert found.differing_frames == FRAMES - 7
    np.testing.assert_allclose(found.angle, [0.0, 0.1, 0.1], rtol=1e-9)
    # a chord of the circle of 0.3 m around the second link
    np.testing.assert_allclose(found.distance, [0.0, 0.0, 0.6 * np.sin(0.05)], rtol=1e-9)


def test_two_turned_joints_move_both_bodies_alone(rng):
    turns = rng.normal(size=(FRAMES, 3))
    changed = turns.copy()
    changed[4:, 0] += 0.1
    changed[9:, 2] += 0.1
    found = compared(chain(rng, turns), chain(rng, changed))
    assert found.moves_alone.tolist() == [True, False, True]


def test_bodies_without_known_parents_move_alone(rng):
    turns = rng.normal(size=(FRAMES, 3))
    found = compared(chain(rng, turns), chain(rng, turns + 0.1), parent=(-1, -1, -1))
    assert found.moves_alone.all()


def test_the_first_world_is_named_and_absent_bodies_are_left_out(rng):
    turns = rng.normal(size=(FRAMES, 3))
    a = np.repeat(chain(rng, turns), 3, axis=1)
    b = a.copy()
    b[6:, 1:, 2, 0] += 0.5
    b[2:, 0, 2, 0] += 9.0
    present = np.ones((3, 3), bool)
    present[0, 2] = False
    found = PoseDifferences((-1, 0, 1), present, float(np.finfo(np.float64).eps))
    found.add(0, a, b)
    assert found.first.tolist() == [-1, -1, 6]
    assert found.world[2] == 1
    assert found.distance[2] == pytest.approx(0.5)
