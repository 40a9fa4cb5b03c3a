"""Poses that a device computes from joints have the bits of the host's, and need the host where it
refuses them or computes them in another way."""

import mujoco
import numpy as np
import pytest

from collidecli.engine.device_kinematics import posed_on_device
from collidecli.engine.joint_kinematics import MODERATE, UNPOSED
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.importers.mujoco.kinematics import MujocoKinematics
from collidecli.scene.joint_poses import tree_poses
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.storage.pose_checks import bad_poses, normalize
from tests.support.mujoco_pairs import load
from tests.unit.engine.runtime.test_chunk_counts import as_device  # noqa: F401
from tests.unit.importers.mujoco.test_compiled_kinematics import (
    SCENES,
    coordinates_of,
    kinematics_of,
)


def posed(
    kinematics: MujocoKinematics, qpos: np.ndarray, mocap: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """Poses of configurations on the CPU treated as a device, float64[n, B, 7], and whether they
    need the host."""
    device = find_device("cpu")
    tree = tree_poses(kinematics, mocap is not None, lambda poses, frames: poses)
    assert tree is not None
    joints = tree.read(qpos[:, None], mocap, 0)
    expected = kinematics.poses(qpos, mocap)[:, None]
    np.testing.assert_array_equal(joints.poses().view(np.int64), expected.view(np.int64))
    scratch = Workspace(device, 1 << 30)
    scratch.counts.begin(len(qpos))
    poses = posed_on_device(joints, "poses", scratch)
    assert joints.shape == (len(qpos), 1, len(kinematics.body_path), 7)
    found = scratch.host(poses, len(qpos) * len(kinematics.body_path))
    return found.reshape(joints.shape[0], -1, 7), scratch.counts.read()[UNPOSED][0]


@pytest.mark.parametrize("name", SCENES)
def test_poses_have_the_bits_of_the_host(as_device, tmp_path, name):  # noqa: F811
    check_bits(*kinematics_of(name, tmp_path))


def test_a_long_chain_has_the_bits_of_the_host(as_device, tmp_path):  # noqa: F811
    """Products of quaternions leave the unit sphere by more than 1e-15, and are divided."""
    link = "<body pos='0.1 0 0'><joint axis='1 2 3'/><geom size='.1'/>{}</body>"
    chain = ""
    for _ in range(40):
        chain = link.format(chain)
    scene, _ = load(tmp_path, f"<mujoco><worldbody>{chain}</worldbody></mujoco>")
    check_bits(scene.kinematics, scene.mj_model)


def test_recorded_mocap_bodies_have_the_bits_of_the_host(as_device, tmp_path):  # noqa: F811
    """With a body that is welded to one, and quaternions of norms near 1."""
    poses = np.random.default_rng(2).normal(size=(1001, 1, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    poses[::2, :, 3:] *= 1.0 + 1e-5
    check_bits(*kinematics_of("every joint", tmp_path), poses)


def check_bits(
    kinematics: MujocoKinematics, mj_model: mujoco.MjModel, mocap: np.ndarray | None = None
) -> None:
    """Compares the poses of random coordinates, as a read of a recording ends."""
    qpos = coordinates_of(mj_model, 1001)
    expected = kinematics.poses(qpos, mocap)
    valid = ~bad_poses(expected).any(axis=1)
    assert valid.sum() > 200
    expected = np.ascontiguousarray(expected[valid])
    assert normalize(expected) is None
    found, unposed = posed(kinematics, qpos[valid], None if mocap is None else mocap[valid])
    np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))
    assert unposed == 0


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (8, 2.0 * MODERATE * 1.001),
        (8, np.inf),
        (8, np.nan),
        (0, 1.01 * POSITION_LIMIT),
        (3, np.nan),
    ],
)
def test_what_the_host_must_compute_or_refuse_is_marked(as_device, tmp_path, column, value):  # noqa: F811
    """An angle of another reduction; a position out of range; what is not finite."""
    kinematics, mj_model = kinematics_of("ant", tmp_path)
    qpos = np.zeros((20, mj_model.nq))
    qpos[:, 3] = 1.0
    assert posed(kinematics, qpos)[1] == 0
    qpos[13, column] = value
    assert posed(kinematics, qpos)[1] == 1


def test_a_quaternion_that_is_not_finite_is_marked(as_device, tmp_path):  # noqa: F811
    """Of a body whose position is."""
    text = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    qpos = np.array([[1.0, 2.0, 3.0, np.nan, 0.0, 0.0, 0.0]])
    assert posed(load(tmp_path, text)[0].kinematics, qpos)[1] == 1


def test_there_may_be_no_coordinates(as_device, tmp_path):  # noqa: F811
    """All bodies rest."""
    text = "<mujoco><worldbody><body pos='1 2 3'><geom size='.1'/></body></worldbody></mujoco>"
    kinematics = load(tmp_path, text)[0].kinematics
    found, unposed = posed(kinematics, np.zeros((3, 0)))
    np.testing.assert_array_equal(found, np.tile([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], (3, 1, 1)))
    assert unposed == 0
