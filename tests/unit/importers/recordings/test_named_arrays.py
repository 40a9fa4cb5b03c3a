"""Joint positions in arrays of HDF5 and npz: the measured state is read, or the file is refused."""

import h5py
import mujoco
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.scene.options import RecordingOptions
from tests.support.usd_scenes import BODY_APIS, at, sphere, write_usda

ARM = """<mujoco>
  <worldbody>
    <body name="base"><geom size="0.1"/>
      <body name="upper" pos="0 0 0.2"><joint name="shoulder" axis="0 1 0"/><geom size="0.05"/>
        <body name="lower" pos="0 0 0.5"><joint name="elbow" axis="0 1 0"/><geom size="0.05"/>
          <body name="left" pos="0 0.02 0.4">
            <joint name="finger" type="slide" axis="0 1 0"/><geom size="0.01"/></body>
          <body name="right" pos="0 -0.02 0.4">
            <joint name="follower" type="slide" axis="0 -1 0"/><geom size="0.01"/></body>
        </body></body></body>
  </worldbody>
  <equality><joint joint1="follower" joint2="finger" polycoef="0.001 1.5 0 0 0"/></equality>
</mujoco>"""
NAMES = ("shoulder", "elbow", "finger")
"""Recorded joints, in an order of their own in each test."""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def expected_poses(positions):
    """float64[F, bodies, 7] xyzw by MuJoCo of positions float64[F, 3] of `NAMES`."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    out = []
    for row in positions:
        data.qpos[:3] = row
        data.qpos[3] = 0.001 + 1.5 * row[2]
        mujoco.mj_kinematics(model, data)
        out.append(np.concatenate([data.xpos, data.xquat[:, [1, 2, 3, 0]]], axis=1)[1:])
    return np.array(out)


def loaded_motion(scene, recording, **options):
    request = SceneRequest(
        scenes=[str(scene)], trajectory=str(recording), recording=RecordingOptions(**options)
    )
    return scene_in_motion(request)


def read_poses(scene, recording, **options):
    """float64[F, W, bodies, 7] of all bodies of the scene but the world."""
    loaded, motion = loaded_motion(scene, recording, **options)
    poses = motion.read(range(len(motion.time)))
    motion.close()
    names = ("upper", "lower", "left", "right")
    paths = list(loaded.model.bodies.path)
    rows = [paths.index(name) for name in names]
    return poses[:, :, rows], motion


def poses_apart(poses, expected):
    """The largest difference of two arrays of poses xyzw [..., 7], of quaternions up to sign."""
    signs = np.sign(np.sum(poses[..., 3:] * expected[..., 3:], axis=-1, keepdims=True))
    aligned = np.concatenate([poses[..., :3], poses[..., 3:] * signs], axis=-1)
    return np.abs(aligned - expected).max()


def positions(seed=0, frames=6):
    return np.random.default_rng(seed).uniform(-0.8, 0.8, (frames, 3)) * [1.0, 1.0, 0.02]


def assert_equal_poses(poses, joints):
    expected = expected_poses(joints)[:, 1:]
    assert poses_apart(poses[:, 0], expected) < 1e-12


def test_the_state_of_aloha_is_read_and_not_the_commands(arm, tmp_path):
    state, commands = positions(0), positions(1)
    path = tmp_path / "episode_0.hdf5"
    with h5py.File(path, "w") as file:
        file["observations/qpos"] = state
        file["observations/qvel"] = state
        file["action"] = commands
    poses, _ = read_poses(arm, path, joint_names=NAMES, fps=50.0)
    assert_equal_poses(poses, state)
    poses, _ = read_poses(arm, path, joint_names=NAMES, fps=50.0, state="action")
    assert_equal_poses(poses, commands)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_columns_are_by_name(arm, tmp_path, order):
    state = positions()
    path = tmp_path / "log.npz"
    names = [NAMES[k] for k in order]
    np.savez(path, qpos=state[:, order], joint_names=np.array(names), frequency=np.array(30.0))
    poses, motion = read_poses(arm, path)
    assert_equal_poses(poses, state)
    assert motion.time[1] == pytest.approx(1 / 30)


def test_a_file_with_several_arrays_is_refused_with_their_list(arm, tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file["measured/q"] = positions(0)
        file["q_des"] = positions(1)
    with pytest.raises(
        InputError, match=r"(?s)which array.*--state, of measured/q float64\[6, 3\]"
    ):
        read_poses(arm, path, joint_names=NAMES, fps=10.0)
    poses, _ = read_poses(arm, path, state="measured/q", joint_names=NAMES, fps=10.0)
    assert_equal_poses(poses, positions(0))


def test_a_pattern_names_a_demonstration_each(arm, tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        for k in (10, 2, 1):
            file[f"run_{k}/q"] = positions(k)
            file[f"run_{k}/t"] = 5.0 + np.arange(6) * 0.25
    options = {"state": r"re:run_\d+/q", "time": "run_*/t", "joint_names": NAMES}
    poses, motion = read_poses(arm, path, **options)
    assert motion.episodes.name == ("run_1", "run_2", "run_10")
    for state in ("run_*/q", "re:/run_.*/q"):
        assert (
            read_poses(arm, path, **options | {"state": state})[1].episodes.name
            == motion.episodes.name
        )
    with pytest.raises(InputError, match=r"no array 're:run\.q'"):  # an expression matches no slash
        read_poses(arm, path, **options | {"state": "re:run.q"})
    np.testing.assert_array_equal(motion.time, 5.0 + np.arange(6) * 0.25)
    for world, k in enumerate((1, 2, 10)):
        assert_equal_poses(poses[:, [world]], positions(k))
    poses, _ = read_poses(arm, path, **options, demos=("run_10",))
    assert_equal_poses(poses, positions(10))


def test_a_follower_that_is_recorded_keeps_its_own_position(arm, tmp_path):
    path = tmp_path / "log.npz"
    state = np.column_stack([positions(), np.full(6, 0.007)])
    np.savez(path, qpos=state, joint_names=np.array([*NAMES, "follower"]), fps=30.0)
    poses, _ = read_poses(arm, path)
    expected = expected_poses(positions())[:, 1:]
    assert poses_apart(poses[:, 0, :3], expected[:, :3]) < 1e-12
    assert not np.allclose(poses[:, 0, 3], expected[:, 3])


@pytest.mark.parametrize("count", [2, 4])
def test_a_number_of_names_that_does_not_match_is_refused(arm, tmp_path, count):
    path = tmp_path / "log.npz"
    names = ("shoulder", "elbow", "finger", "follower")[:count]
    np.savez(path, qpos=positions(), joint_names=np.array(names), fps=30.0)
    with pytest.raises(InputError, match=f"has 3 coordinates, and {count} joints are named"):
        read_poses(arm, path)


def test_a_root_is_in_the_world_by_its_order(tmp_path):
    scene = tmp_path / "robot.xml"
    scene.write_text(
        '<mujoco><worldbody><body name="base"><freejoint name="root"/><geom size="0.1"/>'
        '<body name="arm"><joint name="j" axis="1 0 0"/><geom size="0.1" pos="0 0 1"/></body>'
        "</body></worldbody></mujoco>"
    )
    model = mujoco.MjModel.from_xml_path(str(scene))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    qpos = rng.normal(size=(5, 8))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    expected = []
    for row in qpos:
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        expected.append(np.concatenate([data.xpos, data.xquat[:, [1, 2, 3, 0]]], axis=1)[1:])
    files = {
        "names of the joints": {"qpos": qpos, "joint_names": np.array(["j"]), "fps": 20.0},
        "with the free joint": {"qpos": qpos, "joint_names": np.array(["root", "j"]), "fps": 20.0},
    }
    for name, arrays in files.items():
        np.savez(tmp_path / "log.npz", **arrays)
        motion = loaded_motion(scene, tmp_path / "log.npz")[1]
        found = motion.read(range(5))[:, 0]
        assert poses_apart(found, np.array(expected)) < 1e-12, name
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["robot/q"] = qpos[:, 7:]
        file["robot/base"] = qpos[:, [0, 1, 2, 4, 5, 6, 3]]
        file["command"] = qpos[:, 7:]
    arrays = {"state": "robot/q", "root": "robot/base"}
    given = {"joint_names": ("j",), "quaternion_order": "xyzw", "fps": 20.0}
    motion = loaded_motion(scene, tmp_path / "log.h5", **arrays, **given)[1]
    assert poses_apart(motion.read(range(5))[:, 0], np.array(expected)) < 1e-12


def test_columns_that_the_scene_lacks_are_left_out(arm, tmp_path):
    """A recorded gripper that the scene does not have: by name, or by - in the names."""
    path = tmp_path / "log.h5"
    state = positions()
    with h5py.File(path, "w") as file:
        file["observations/qpos"] = np.insert(state, 1, 9.0, axis=1)
        file["action"] = np.zeros((6, 4))
    shown = ("shoulder", "gripper", "elbow", "finger")
    options = {"fps": 10.0, "joint_names": shown}
    with pytest.raises(InputError, match=r"(?s)no joint 'gripper'.*--ignore-joints"):
        read_poses(arm, path, **options)
    poses, motion = read_poses(arm, path, **options, ignore_joints=("gripper",))
    assert_equal_poses(poses, state)
    assert any("1 recorded column left out: 'gripper'" in text for text in motion.warnings)
    for left_out in ("-", ""):
        names = ("shoulder", left_out, "elbow", "finger")
        poses, motion = read_poses(arm, path, fps=10.0, joint_names=names)
        assert_equal_poses(poses, state)
        assert any("1 recorded column left out" in text for text in motion.warnings)
    with pytest.raises(InputError, match="no joint 'grip' is recorded"):
        read_poses(arm, path, **options, ignore_joints=("grip",))


def test_columns_of_a_humanoid_are_left_out_too(arm, tmp_path):
    state = positions()
    path = tmp_path / "log.npz"
    names = np.array(["shoulder", "gripper", "elbow", "finger"])
    np.savez(path, qpos=np.insert(state, 1, 9.0, axis=1), joint_names=names, fps=10.0)
    poses, _ = read_poses(arm, path, ignore_joints=("gripper",))
    assert_equal_poses(poses, state)


@pytest.mark.parametrize(("scale", "told"), [(1.0, False), (40.0, True), (180.0 / np.pi, True)])
def test_positions_beyond_the_limits_are_told(tmp_path, scale, told):
    """An elbow of 0 to 1.5 rad; a value of 0.2 to 1.2 rad, in rad, percent of 40 and degrees."""
    scene = tmp_path / "arm.xml"
    scene.write_text(ARM.replace('name="elbow"', 'name="elbow" limited="true" range="0 85"'))
    state = positions() * [0.1, 0.0, 1.0]
    state[:, 1] = np.linspace(0.2, 1.2, len(state)) * scale
    if told:
        state[:, 1] = np.minimum(state[:, 1], 12.0)
    np.savez(tmp_path / "log.npz", qpos=state, joint_names=np.array(NAMES), fps=30.0)
    _, motion = read_poses(scene, tmp_path / "log.npz")
    assert any("joint 'elbow' is beyond its limits 0 to 1.48" in x for x in motion.warnings) == told


USD_ARM = """
def Xform "world" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{
{bodies}
    def PhysicsRevoluteJoint "j" {{
        rel physics:body0 = </world/a>
        rel physics:body1 = </world/b>
        uniform token physics:axis = "Y"
        point3f physics:localPos0 = (1, 0, 0)
    }}
    def PhysicsRevoluteJoint "k" (prepend apiSchemas = ["NewtonMimicAPI"]) {{
        rel physics:body0 = </world/b>
        rel physics:body1 = </world/c>
        uniform token physics:axis = "Y"
        point3f physics:localPos0 = (1, 0, 0)
        rel newton:mimicJoint = </world/j>
        float newton:mimicCoef1 = -2
    }}
}}
"""


@pytest.mark.parametrize("units", ["radians", "degrees"])
def test_a_mimic_joint_of_usd_follows_in_arrays_and_tables(tmp_path, units):
    """The last body turns against the first by the angle, and back by twice of it."""
    bodies = "".join(sphere(name, at(x, 0, 0), BODY_APIS) for x, name in enumerate("abc"))
    write_usda(tmp_path, USD_ARM.format(bodies=bodies))
    angles = np.linspace(-0.5, 0.5, 5)
    recorded = angles[:, None] * (180.0 / np.pi if units == "degrees" else 1.0)
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["state/q"] = recorded
        file["command/q"] = recorded
    given = {"state": "state/q", "joint_names": ("j",), "fps": 5.0, "joint_units": units}
    motions = [loaded_motion(tmp_path / "s.usda", tmp_path / "log.h5", **given)]
    if units == "radians":
        np.savez(tmp_path / "log.npz", qpos=recorded, joint_names=np.array(["j"]), fps=5.0)
        motions.append(loaded_motion(tmp_path / "s.usda", tmp_path / "log.npz"))
    for scene, motion in motions:
        paths = list(scene.model.bodies.path)
        poses = motion.read(range(5))[:, 0]
        first, last = (poses[:, paths.index(f"/world/{name}")] for name in "ac")
        turns = [2.0 * np.arctan2(pose[:, 4], pose[:, 6]) for pose in (first, last)]
        np.testing.assert_allclose(turns[1] - turns[0], -angles, atol=1e-6)


def test_the_times_of_the_file_are_used(arm, tmp_path):
    times = np.array([0.0, 0.1, 0.3, 0.35, 0.4, 0.9])
    state = positions()
    given = {"state": "robot/q", "joint_names": NAMES}
    for name, more in (("beside", "robot/time"), ("above", "time")):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["robot/q"], file["robot/command"] = state, state
            file[more] = times
        _, motion = read_poses(arm, tmp_path / f"{name}.h5", **given)
        np.testing.assert_array_equal(motion.time, times)
        _, motion = read_poses(arm, tmp_path / f"{name}.h5", **given, fps=10.0)
        np.testing.assert_array_equal(motion.time, np.arange(6) / 10.0)
    with h5py.File(tmp_path / "rate.h5", "w") as file:
        file["robot/q"], file["robot/command"] = state, state
        file.attrs["fps"] = 20
    _, motion = read_poses(arm, tmp_path / "rate.h5", **given)
    np.testing.assert_array_equal(motion.time, np.arange(6) / 20.0)
    np.savez(tmp_path / "rate.npz", q=state, frequency=np.array([40.0]))
    _, motion = read_poses(arm, tmp_path / "rate.npz", state="q", joint_names=NAMES)
    np.testing.assert_array_equal(motion.time, np.arange(6) / 40.0)
