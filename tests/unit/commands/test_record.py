"""Recording: deterministic, faithful to MuJoCo, and readable."""

from pathlib import Path

import h5py
import mujoco
import numpy as np
import pytest

from collidecli.commands.record import record
from collidecli.errors import InputError, OutputError
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.storage.trajectories.motion import open_trajectory

SAMPLE = Path(__file__).parents[3] / "samples/02_humanoid"

CART = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>
<body name="desk" pos="0 0 9"><geom size="1"/></body>
<body name="cart"><joint name="s" type="slide" axis="1 0 0"/><geom size="0.1"/></body>
<body name="hand" mocap="true" pos="7 0 0"><geom size="0.1"/></body></worldbody>
<actuator><motor joint="s" ctrllimited="true" ctrlrange="-1 3"/></actuator>
<keyframe><key name="home" qpos="1"/><key name="away" qpos="-5" ctrl="2.5"/></keyframe></mujoco>"""


@pytest.fixture
def cart(tmp_path):
    path = tmp_path / "cart.xml"
    path.write_text(CART)
    return path


def content(path):
    with h5py.File(path) as file:
        return {name: data[()] for name, data in file.items()}


def bytes_of(path):
    return {name: np.asarray(data).tobytes() for name, data in content(path).items() if name != "body_name"}


def test_poses_are_those_of_mujocos_steps(cart, tmp_path):
    np.save(tmp_path / "push.npy", np.array([[2.5], [2.0], [3.0]]))
    result = record(cart, tmp_path / "m.h5", 4, control=str(tmp_path / "push.npy"), every=2)
    assert (result.frames, result.worlds, result.bodies) == (4, 1, 2)
    model = mujoco.MjModel.from_xml_path(str(cart))
    data = mujoco.MjData(model)
    wanted = [0.0]
    for push in (2.5, 2.0, 3.0):
        data.ctrl[:] = push
        mujoco.mj_step(model, data, 2)
        wanted.append(data.qpos[0])
    held = content(tmp_path / "m.h5")
    assert held["body_name"].tolist() == [b"cart", b"hand"]
    np.testing.assert_array_equal(held["body_q"][:, 0, 0, 0], wanted)
    np.testing.assert_allclose(held["time"], [0.0, 0.02, 0.04, 0.06])
    np.testing.assert_array_equal(held["step"], [0, 2, 4, 6])
    np.testing.assert_array_equal(held["body_q"][:, 0, 1], np.tile([7, 0, 0, 0, 0, 0, 1], (4, 1)))
    assert result.duration == held["time"][-1]


def test_control_of_a_csv_with_a_heading(cart, tmp_path):
    np.save(tmp_path / "push.npy", np.array([[2.5], [2.0]]))
    (tmp_path / "push.csv").write_text("force\n2.5\n2.0\n")
    for kind in ("npy", "csv"):
        record(cart, tmp_path / f"{kind}.h5", 3, control=str(tmp_path / f"push.{kind}"))
    assert bytes_of(tmp_path / "npy.h5") == bytes_of(tmp_path / "csv.h5")


def test_the_seed_decides(cart, tmp_path):
    for name, seed in (("a", 4), ("again", 4), ("other", 5)):
        record(cart, tmp_path / f"{name}.h5", 6, control="random", seed=seed, noise=0.1)
    assert bytes_of(tmp_path / "a.h5") == bytes_of(tmp_path / "again.h5")
    assert not np.array_equal(content(tmp_path / "a.h5")["body_q"], content(tmp_path / "other.h5")["body_q"])


def test_world_w_has_the_seed_plus_w(cart, tmp_path):
    record(cart, tmp_path / "both.h5", 6, control="random", seed=4, noise=0.1, worlds=2)
    both = content(tmp_path / "both.h5")["body_q"]
    for world in range(2):
        record(cart, tmp_path / f"{world}.h5", 6, control="random", seed=4 + world, noise=0.1)
        np.testing.assert_array_equal(both[:, world], content(tmp_path / f"{world}.h5")["body_q"][:, 0])


def test_random_control_stays_in_the_actuators_range(cart, tmp_path):
    """The cart weighs what its geom does; without damping its acceleration is the force by its mass."""
    record(cart, tmp_path / "m.h5", 50, control="random", joint=True)
    place = content(tmp_path / "m.h5")["joint_q"][:, 0, 0]
    # Semi-implicit Euler: x[k+1] - 2 x[k] + x[k-1] = h^2 a.
    mass = mujoco.MjModel.from_xml_path(str(cart)).body_mass[2]
    force = np.diff(place, 2) / 0.01**2 * mass
    assert force.min() > -1.0 - 1e-6
    assert force.max() < 3.0 + 1e-6
    assert np.ptp(force) > 3.0


@pytest.mark.parametrize("keyframe", ["away", "1", 1])
def test_it_begins_at_a_keyframe_and_zero_is_zero(cart, tmp_path, keyframe):
    record(cart, tmp_path / "m.h5", 3, keyframe=keyframe)
    np.testing.assert_array_equal(content(tmp_path / "m.h5")["body_q"][:, 0, 0, 0], -5.0)


def test_coordinates_and_poses_say_the_same(tmp_path):
    scene = SAMPLE / "humanoid.xml"
    options = {"control": "random", "seed": 2, "every": 3, "worlds": 2, "noise": 0.05}
    record(scene, tmp_path / "body.h5", 40, **options)
    record(scene, tmp_path / "joint.h5", 40, joint=True, **options)
    builder = ModelBuilder()
    imported = add_mjcf(builder, scene)
    model = builder.finalize(2)
    read = [
        open_trajectory(tmp_path / name, model, imported.kinematics).read(range(40)) for name in ("body.h5", "joint.h5")
    ]
    np.testing.assert_allclose(read[0], read[1], rtol=0, atol=1e-14)
    assert np.ptp(read[0][:, 0, model.bodies.path.index("pelvis"), 2]) > 0.05


def test_an_unstable_simulation_is_an_error_and_leaves_nothing(tmp_path):
    path = tmp_path / "wild.xml"
    path.write_text(
        """<mujoco><option timestep="1"/><worldbody><body><freejoint/><geom size="0.1"/>
        <body pos="1 0 0"><joint axis="0 1 0" stiffness="1e9"/><geom size="0.1"/></body></body></worldbody></mujoco>"""
    )
    with pytest.raises(InputError, match="unstable") as refusal:
        record(path, tmp_path / "m.h5", 500, noise=0.5)
    assert "frame" in str(refusal.value)
    assert [p.name for p in tmp_path.iterdir()] == ["wild.xml"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frames": 0}, "frames is 0"),
        ({"every": 0}, "every is 0"),
        ({"worlds": 0}, "worlds is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"float_type": "float16"}, "float type is 'float16'"),
        ({"control": "wave"}, "control 'wave' is not known"),
        ({"control": "none.npy"}, "no such file"),
        ({"keyframe": "2"}, "no keyframe '2'"),
        ({"keyframe": "top"}, "no keyframe 'top'"),
    ],
)
def test_bad_arguments(cart, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        record(cart, tmp_path / "m.h5", **{"frames": 3, **options})
    assert not (tmp_path / "m.h5").exists()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((1, 1)), r"shape \[1, 1, 1\]"),
        (np.zeros((2, 2)), r"shape \[2, 1, 2\]"),
        (np.zeros(3), r"shape \[3\]"),
        (np.array([[1.0], [np.nan]]), "row 1, world 0, actuator 0"),
        (np.array([{"a": 1}], object), "cannot be read"),
    ],
)
def test_bad_control_files(cart, tmp_path, rows, message):
    np.save(tmp_path / "push.npy", rows, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        record(cart, tmp_path / "m.h5", 3, control=str(tmp_path / "push.npy"))


def test_outputs_are_kept(cart, tmp_path):
    with pytest.raises(OutputError, match="the scene itself"):
        record(cart, cart, 3, force=True)
    record(cart, tmp_path / "m.h5", 3)
    with pytest.raises(OutputError, match="exists already"):
        record(cart, tmp_path / "m.h5", 3)
    record(cart, tmp_path / "m.h5", 5, force=True)
    assert len(content(tmp_path / "m.h5")["time"]) == 5


def test_a_scene_that_cannot_move(tmp_path):
    path = tmp_path / "still.xml"
    path.write_text('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    for joint in (False, True):
        record(path, tmp_path / f"{joint}.h5", 3, joint=joint, worlds=2)
        builder = ModelBuilder()
        scene = add_mjcf(builder, path)
        motion = open_trajectory(tmp_path / f"{joint}.h5", builder.finalize(2), scene.kinematics)
        assert motion.read(range(3)).shape == (3, 2, 0, 7)


def test_the_samples_recording_fits_its_scene():
    builder = ModelBuilder()
    scene = add_mjcf(builder, SAMPLE / "humanoid.xml")
    model = builder.finalize()
    motion = open_trajectory(SAMPLE / "motion.h5", model, scene.kinematics)
    assert len(motion.time) == 500
    assert motion.warnings == ()
    poses = motion.read(range(500))
    height = poses[:, 0, model.bodies.path.index("pelvis"), 2]
    assert height[0] > 0.9
    assert height[-1] < 0.4
    assert scene.motion(model).read(range(2)).shape == (2, 1, len(model.bodies), 7)
