"""MuJoCo state arrays: the layout against mj_getState, poses against MuJoCo's own, and every refusal."""

from __future__ import annotations

import h5py
import mujoco
import mujoco.rollout
import numpy as np
import pytest

from collidecli.commands.scenes import SceneRequest, scene_in_motion
from collidecli.errors import InputError
from collidecli.importers.recordings.mujoco_states import NAMES, USUAL, find_layout, layout_of, parse_spec
from collidecli.scene.options import RecordingOptions

RICH = """<mujoco>
  <size nuserdata="3"/>
  <worldbody>
    <body name="hand" mocap="true" pos="0 0 2"><geom size="0.1"/></body>
    <body name="free"><freejoint/><geom size="0.1"/></body>
    <body name="ball" pos="1 0 0"><joint type="ball"/><geom size="0.1" pos="0.3 0 0"/></body>
    <body name="arm" pos="2 0 0"><joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body>
  </worldbody>
  <equality><weld body1="hand" body2="free" active="false"/></equality>
  <actuator><general joint="hinge" dyntype="integrator"/></actuator>
</mujoco>"""
FRAMES = 9
STATE = mujoco.mjtState
SPECS = [STATE.mjSTATE_FULLPHYSICS, STATE.mjSTATE_PHYSICS, STATE.mjSTATE_INTEGRATION, STATE.mjSTATE_QPOS]


@pytest.fixture
def model():
    return mujoco.MjModel.from_xml_string(RICH)


def shaken(model, seed=0):
    """Data in which every part of the state has values of its own."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.time = rng.uniform(1, 9)
    for name in ("qvel", "act", "qacc_warmstart", "ctrl", "qfrc_applied", "userdata", "xfrc_applied", "mocap_pos"):
        part = getattr(data, name)
        part[...] = rng.normal(size=part.shape)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    data.mocap_quat[...] = [0.5, -0.5, 0.5, 0.5]
    return data


def state_of(model, data, spec):
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    return state


@pytest.mark.parametrize("spec", [*SPECS, STATE.mjSTATE_QPOS | STATE.mjSTATE_MOCAP_POS | STATE.mjSTATE_MOCAP_QUAT])
def test_the_layout_is_that_of_mj_get_state(model, spec):
    data = shaken(model)
    state = state_of(model, data, int(spec))
    layout = layout_of(model, int(spec), "")
    assert layout.size == len(state)
    fields = {
        "TIME": data.time, "QPOS": data.qpos, "QVEL": data.qvel, "ACT": data.act, "WARMSTART": data.qacc_warmstart,
        "CTRL": data.ctrl, "QFRC_APPLIED": data.qfrc_applied, "XFRC_APPLIED": data.xfrc_applied,
        "EQ_ACTIVE": data.eq_active, "MOCAP_POS": data.mocap_pos, "MOCAP_QUAT": data.mocap_quat,
        "USERDATA": data.userdata,
    }  # fmt: skip
    for name, part in layout.columns.items():
        if name in fields:
            np.testing.assert_array_equal(state[part], np.ravel(fields[name]), err_msg=name)
        else:
            assert part.stop == part.start, name
    mocap = layout.mocap(state[None])
    if "MOCAP_POS" in layout.columns:
        np.testing.assert_array_equal(mocap[0, 0], [*data.mocap_pos[0], -0.5, 0.5, 0.5, 0.5])
    else:
        assert mocap is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mjSTATE_FULLPHYSICS", ["FULLPHYSICS"]),
        ("fullphysics", ["FULLPHYSICS"]),
        ("Qpos|QVEL", ["QPOS", "QVEL"]),
        ("qvel, mjstate_qpos", ["QPOS", "QVEL"]),
        ("time qpos", ["TIME", "QPOS"]),
    ],
)
def test_a_spec_by_name(text, names):
    expected = 0
    for name in names:
        expected |= NAMES[name]
    assert parse_spec(text) == expected


@pytest.mark.parametrize(("text", "words"), [("qpos|speed", "'speed'"), ("QVEL", "no QPOS"), ("qpos,", "''")])
def test_a_spec_that_is_none(text, words):
    with pytest.raises(InputError, match=words) as raised:
        parse_spec(text)
    assert raised.value.where == "--state-spec"


def test_the_layout_is_found_by_size_where_only_one_fits(model):
    for name in USUAL:
        layout = layout_of(model, NAMES[name], name)
        assert find_layout(model, "", layout.size, "x").name == name
    with pytest.raises(InputError, match="FULLPHYSICS") as raised:
        find_layout(model, "", 999, "x")
    assert "--state-spec" in raised.value.fix
    with pytest.raises(InputError, match="QPOS 12"):
        find_layout(model, "PHYSICS", 999, "x")


def test_a_size_that_two_layouts_have_must_be_named():
    """A scene at rest has no degree of freedom: QPOS and PHYSICS are both of size zero."""
    still = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    with pytest.raises(InputError, match="PHYSICS and QPOS") as raised:
        find_layout(still, "", 0, "x")
    assert raised.value.fix == "give --state-spec"


def opened(folder, states, kind="npy", scene=RICH, **options):
    (folder / "scene.xml").write_text(scene)
    path = folder / f"states.{kind}"
    if kind == "npy":
        np.save(path, states)
    elif kind == "npz":
        np.savez(path, state=states, sensordata=np.zeros((2, 2)))
    else:
        with h5py.File(path, "w") as file:
            file["rollout"] = states
    return scene_in_motion(
        SceneRequest(scenes=[str(folder / "scene.xml")], trajectory=str(path), recording=RecordingOptions(**options))
    )[1]


@pytest.mark.parametrize("kind", ["npy", "npz", "h5"])
@pytest.mark.parametrize("spec", SPECS)
def test_poses_are_mujocos(model, tmp_path, kind, spec):
    everything = [[shaken(model, 10 * world + frame) for frame in range(FRAMES)] for world in range(2)]
    states = np.array([[state_of(model, data, int(spec)) for data in row] for row in everything])
    for world in states:
        if spec in (STATE.mjSTATE_FULLPHYSICS, STATE.mjSTATE_INTEGRATION):
            world[:, 0] = 3.0 + 0.1 * np.arange(FRAMES)
    timed = spec in (STATE.mjSTATE_FULLPHYSICS, STATE.mjSTATE_INTEGRATION)
    motion = opened(tmp_path, states, kind, fps=None if timed else 10.0)
    held_mocap = spec == STATE.mjSTATE_INTEGRATION
    assert any("mocap" in warning for warning in motion.warnings) != held_mocap
    np.testing.assert_allclose(motion.time, 0.1 * np.arange(FRAMES) + (3.0 if timed else 0.0), atol=1e-12)
    poses = np.concatenate([motion.read(range(0, 4)), motion.read(range(4, FRAMES))])
    np.testing.assert_array_equal(motion.read(range(1, FRAMES, 3)), poses[1::3])
    for world, row in enumerate(everything):
        for frame, data in enumerate(row):
            mujoco.mj_kinematics(model, data)
            skip = 0 if held_mocap else 1  # the hand is body 1
            np.testing.assert_allclose(poses[frame, world, skip:, :3], data.xpos[1 + skip :], atol=1e-12)
            turn = poses[frame, world, skip:, [6, 3, 4, 5]].T
            np.testing.assert_allclose(np.abs(np.sum(turn * data.xquat[1 + skip :], axis=1)), 1.0, atol=1e-12)
    motion.close()


def test_a_real_rollout(model, tmp_path):
    start = np.array([state_of(model, shaken(model, seed), int(SPECS[0])) for seed in range(3)])
    start[:, 0] = 0.0
    states, _ = mujoco.rollout.rollout(model, mujoco.MjData(model), start, nstep=FRAMES)
    motion = opened(tmp_path, states)
    assert (motion.world_count, len(motion.time)) == (3, FRAMES)
    np.testing.assert_allclose(motion.time, 0.002 * np.arange(1, FRAMES + 1), atol=1e-12)
    np.testing.assert_allclose(motion.read(range(FRAMES))[:, :, 1, :3], states[:, :, 1:4].swapaxes(0, 1), atol=1e-12)
    motion.close()


def plain_states(worlds=2):
    model = mujoco.MjModel.from_xml_string(RICH)
    size = mujoco.mj_stateSize(model, int(SPECS[0]))
    states = np.zeros((worlds, FRAMES, size))
    states[..., 0] = 0.1 * np.arange(FRAMES)
    states[..., 4] = states[..., 8] = 1.0  # w of the free and of the ball joint
    return states


@pytest.mark.parametrize("dtype", [">f8", "<f4", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_number_types_and_orders(tmp_path, dtype, order):
    expected = opened(tmp_path, plain_states()).read(range(FRAMES))
    found = opened(tmp_path, np.array(plain_states(), dtype, order=order)).read(range(FRAMES))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_clocks_that_differ_count_from_the_first_frame(tmp_path):
    states = plain_states()
    states[1, :, 0] += 7.0
    motion = opened(tmp_path, states)
    assert any("clocks differ" in warning for warning in motion.warnings)
    np.testing.assert_allclose(motion.time, 0.1 * np.arange(FRAMES), atol=1e-12)
    motion.read(range(FRAMES))


def test_worlds_that_do_not_keep_step_are_refused_at_the_frame(tmp_path):
    states = plain_states()
    states[1, 5:, 0] += 0.01
    motion = opened(tmp_path, states)
    motion.read(range(0, 5))
    with pytest.raises(InputError, match="times differ") as raised:
        motion.read(range(4, 8))
    assert raised.value.where.endswith("[1], frame 5")
    assert "--fps" in raised.value.fix
    opened(tmp_path, states, fps=10.0).read(range(FRAMES))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda s: s[0, 4, :1].fill(np.nan), {}, ("time is nan", "[0], frame 4")),
        (lambda s: s[0, 4, :1].fill(0.0), {}, ("decreases", "[0], frame 4")),
        (lambda s: s[1, 3, 8:9].fill(1.1), {}, ("norm 1.1", "[1], frame 3", "'ball'")),
        (lambda s: s[1, 3, 1:2].fill(np.inf), {}, ("qpos[0] is inf", "[1], frame 3", "'free'")),
        (lambda s: None, {"state_spec": "INTEGRATION"}, ("and INTEGRATION of this scene",)),
        (lambda s: None, {"fps": 0.0}, ("above zero",)),
        (lambda s: None, {"fps": float("nan")}, ("above zero",)),
    ],
)
def test_refusals(tmp_path, change, options, words):
    states = plain_states()
    change(states)
    with pytest.raises(InputError) as raised:
        opened(tmp_path, states, **options).read(range(FRAMES))
    for word in words:
        assert word in str(raised.value)
    assert raised.value.fix


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (np.zeros((2, 0, 5)), "no state in it"),
        (np.zeros((0, 3, 5)), "no state in it"),
        (np.zeros((2, 3)), "a state has 3 numbers"),
    ],
)
def test_shapes_that_are_none(tmp_path, states, words):
    with pytest.raises(InputError, match=words):
        opened(tmp_path, states)


def test_integers_named_states_are_no_states(tmp_path):
    with pytest.raises(InputError, match="not floats"):
        opened(tmp_path, np.zeros((2, 3, 4), int), "npz")


def test_a_layout_without_time_needs_the_rate(tmp_path):
    with pytest.raises(InputError, match="contains no times") as raised:
        opened(tmp_path, plain_states()[..., 1:13], state_spec="QPOS")
    assert "--fps" in raised.value.fix
