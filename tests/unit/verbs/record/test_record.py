"""Recorded simulations: steps, seeds, controls, keyframes and refusals."""

from pathlib import Path

import h5py
import mujoco
import numpy as np
import pytest

from collidecli.errors import InputError, OutputError
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.storage.trajectory_motion import open_trajectory
from collidecli.verbs.record.record import record

SAMPLE = Path(__file__).parents[4] / "samples/02_humanoid"

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


def content(path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: data[()] for name, data in file.items()}


def recorded(scene: Path, output: Path, frames: int, **options) -> dict[str, np.ndarray]:
    record(scene, output, frames, force=True, **options)
    return content(output)


def test_poses_are_those_of_mujocos_steps(cart, tmp_path):
    np.save(tmp_path / "push.npy", np.array([[2.5], [2.0], [3.0]]))
    (tmp_path / "push.csv").write_text("force\n2.5\n2.0\n3.0\n")
    result = record(cart, tmp_path / "m.h5", 4, control=str(tmp_path / "push.npy"), every=2)
    held = content(tmp_path / "m.h5")
    np.testing.assert_equal(
        recorded(cart, tmp_path / "csv.h5", 4, control=str(tmp_path / "push.csv"), every=2), held
    )
    assert (result.frames, result.worlds, result.bodies, result.duration) == (
        4,
        1,
        2,
        held["time"][-1],
    )
    model = mujoco.MjModel.from_xml_path(str(cart))
    data = mujoco.MjData(model)
    wanted = [0.0]
    for push in (2.5, 2.0, 3.0):
        data.ctrl[:] = push
        mujoco.mj_step(model, data, 2)
        wanted.append(data.qpos[0])
    assert (held["body_name"].tolist(), held["step"].tolist()) == ([b"cart", b"hand"], [0, 2, 4, 6])
    assert held["body_q"][:, 0, 0, 0].tolist() == wanted
    np.testing.assert_allclose(held["time"], [0.0, 0.02, 0.04, 0.06])
    assert held["body_q"][:, 0, 1].tolist() == [[7, 0, 0, 0, 0, 0, 1]] * 4


def test_world_w_has_the_seed_plus_w(cart, tmp_path):
    options = {"control": "random", "noise": 0.1}
    first, again, other = (
        recorded(cart, tmp_path / "m.h5", 6, seed=seed, **options) for seed in (4, 4, 5)
    )
    np.testing.assert_equal(first, again)
    both = recorded(cart, tmp_path / "m.h5", 6, seed=4, worlds=2, **options)["body_q"]
    np.testing.assert_array_equal(both, np.concatenate([first["body_q"], other["body_q"]], axis=1))
    assert not np.array_equal(first["body_q"], other["body_q"])


def test_random_control_stays_in_the_actuators_range(cart, tmp_path):
    """The cart weighs what its geom does; without damping its acceleration is the force by its
    mass."""
    place = recorded(cart, tmp_path / "m.h5", 50, control="random", joint=True)["joint_q"][:, 0, 0]
    # Semi-implicit Euler: x[k+1] - 2 x[k] + x[k-1] = h^2 a.
    mass = mujoco.MjModel.from_xml_path(str(cart)).body_mass[2]
    force = np.diff(place, 2) / 0.01**2 * mass
    assert -1.0 - 1e-6 < force.min() < force.max() - 3.0 < 1e-6


@pytest.mark.parametrize("keyframe", ["away", "1", 1])
def test_it_begins_at_a_keyframe(cart, tmp_path, keyframe):
    assert (
        recorded(cart, tmp_path / "m.h5", 3, keyframe=keyframe)["body_q"][:, 0, 0, 0].tolist()
        == [-5.0] * 3
    )


def test_coordinates_say_the_same_as_poses(tmp_path):
    scene = SAMPLE / "humanoid.xml"
    options = {"control": "random", "seed": 2, "every": 3, "worlds": 2, "noise": 0.05}
    builder = ModelBuilder()
    read = []
    imported = add_mjcf(builder, scene)
    model = builder.finalize(2)
    for name, joint in (("body.h5", False), ("joint.h5", True)):
        record(scene, tmp_path / name, 40, joint=joint, **options)
        read.append(open_trajectory(tmp_path / name, model, imported.kinematics).read(range(40)))
    np.testing.assert_allclose(read[0], read[1], rtol=0, atol=1e-14)
    assert np.ptp(read[0][:, 0, model.bodies.path.index("pelvis"), 2]) > 0.05


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
        ({"control": np.zeros((1, 1))}, r"shape \[1, 1, 1\]"),
        ({"control": np.zeros((2, 2))}, r"shape \[2, 1, 2\]"),
        ({"control": np.zeros(3)}, r"shape \[3\]"),
        ({"control": np.array([[1.0], [np.nan]])}, "row 1, world 0, actuator 0"),
        ({"control": np.array([{"a": 1}], object)}, "cannot be read"),
        ({"keyframe": "2"}, "no keyframe '2'"),
        ({"keyframe": "top"}, "no keyframe 'top'"),
    ],
)
def test_bad_arguments(cart, tmp_path, options, message):
    if isinstance(options.get("control"), np.ndarray):
        np.save(tmp_path / "push.npy", options["control"], allow_pickle=True)
        options = {"control": str(tmp_path / "push.npy")}
    with pytest.raises(InputError, match=message):
        record(cart, tmp_path / "m.h5", **{"frames": 3, **options})
    assert not (tmp_path / "m.h5").exists()


def test_outputs_are_kept(cart, tmp_path):
    with pytest.raises(OutputError, match="the scene itself"):
        record(cart, cart, 3, force=True)
    record(cart, tmp_path / "m.h5", 3)
    with pytest.raises(OutputError, match="exists already"):
        record(cart, tmp_path / "m.h5", 3)
    assert len(recorded(cart, tmp_path / "m.h5", 5)["time"]) == 5


def test_an_unstable_simulation_leaves_nothing(tmp_path):
    path = tmp_path / "wild.xml"
    arm = '<body pos="1 0 0"><joint axis="0 1 0" stiffness="1e9"/><geom size="0.1"/></body>'
    body = f'<worldbody><body><freejoint/><geom size="0.1"/>{arm}</body></worldbody>'
    path.write_text(f'<mujoco><option timestep="1"/>{body}</mujoco>')
    with pytest.raises(InputError, match=r"(?s)unstable.*frame|frame.*unstable"):
        record(path, tmp_path / "wild.h5", 500, noise=0.5)
    assert not (tmp_path / "wild.h5").exists()


def test_a_scene_that_cannot_move(tmp_path):
    path = tmp_path / "still.xml"
    path.write_text('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    for joint in (False, True):
        record(path, tmp_path / f"{joint}.h5", 3, joint=joint, worlds=2)
        builder = ModelBuilder()
        scene = add_mjcf(builder, path)
        motion = open_trajectory(tmp_path / f"{joint}.h5", builder.finalize(2), scene.kinematics)
        assert motion.read(range(3)).shape == (3, 2, 0, 7)
