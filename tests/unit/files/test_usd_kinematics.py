"""Forward kinematics of USD joints against mj_kinematics on the same robot written as MJCF."""

import numpy as np
import pytest

from collidecli.files.kinematics import JointColumns
from collidecli.files.scene_usd import add_usd
from collidecli.model.builder import ModelBuilder
from tests.support.twin_robots import ARM, CART, HUMANOID, write_twins

COUNT = 1000
EXACT = 1e-12
"""Metres and radians: both start from the same float32 frames, and a tree 4 joints deep rounds 50 times at most."""


def scene_of(path):
    return add_usd(ModelBuilder(), path).articulated


def turn_between(a, b):
    """Angle [rad] between quaternions; of small ones exact, unlike the arc cosine."""
    sign = np.sign(np.sum(a * b, axis=-1, keepdims=True))
    return 4.0 * np.arcsin(np.minimum(1.0, 0.5 * np.linalg.norm(a - sign * b, axis=-1)))


def assert_same(ours, body_path, theirs, tolerance=EXACT):
    for k, path in enumerate(body_path):
        other = theirs[path.rsplit("/", 1)[-1]]
        assert np.abs(ours[:, k, :3] - other[:, :3]).max() < tolerance, path
        assert turn_between(ours[:, k, 3:], other[:, 3:]).max() < tolerance, path


def random_roots(count, rng):
    poses = rng.normal(size=(count, 7))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return poses


@pytest.mark.parametrize("unit", [1.0, 0.01])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_floating_robot(tmp_path, unit, seed):
    twins = write_twins(tmp_path, HUMANOID, seed, unit)
    rng = np.random.default_rng(seed)
    (robot,) = scene_of(twins.usd).articulations
    assert (robot.path, robot.body_path[0], robot.root_is_jointed) == ("/World/robot/pelvis",) * 2 + (False,)
    assert len(robot.body_path) == len(HUMANOID)
    order = rng.permutation(len(twins.names))
    names = [twins.names[k] for k in order]
    coordinates, roots = twins.random_coordinates(COUNT, rng), random_roots(COUNT, rng)
    columns = JointColumns(robot, names, "here")
    assert columns.warnings == []
    ours = robot.poses(roots, columns, coordinates[:, order])
    assert_same(ours, robot.body_path, twins.mujoco_poses(twins.qpos(roots, coordinates)))


@pytest.mark.parametrize("links", [ARM, CART])
def test_a_robot_that_the_world_holds(tmp_path, links):
    twins = write_twins(tmp_path, links, seed=3, metres_per_unit=0.01)
    (robot,) = scene_of(twins.usd).articulations
    assert robot.root_is_jointed == (links is CART)
    coordinates = twins.random_coordinates(COUNT, np.random.default_rng(3))
    ours = robot.poses(None, JointColumns(robot, twins.names, "here"), coordinates)
    assert_same(ours, robot.body_path, twins.mujoco_poses(twins.qpos(None, coordinates)))
