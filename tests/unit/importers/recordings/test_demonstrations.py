"""robosuite's demonstrations, MuJoCo state arrays and arrays of .npy and .npz files: layouts,
poses, refusals."""

import zipfile

import h5py
import mujoco
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.recordings import array_files, times
from collidecli.importers.recordings.array_files import npy_header, read_npy, read_npz
from collidecli.importers.recordings.deformable_states import DeformableStates
from collidecli.importers.recordings.mujoco_states import (
    NAMES,
    USUAL,
    find_layout,
    layout_of,
    parse_spec,
)
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import RecordingOptions, SceneOptions
from collidecli.wording import in_order
from tests.cli.test_recordings import write_demos
from tests.support.usd_scenes import check_refused

SCENE = """<mujoco>
  <worldbody>
    <geom name="table" type="box" size="1 1 0.1"/>
    <body name="target" mocap="true" pos="0 0 3"><geom size="0.05"/></body>
    <body name="cube" pos="0 0 0.5"><freejoint/><geom name="cube" type="box" size="0.1 0.1 0.1"/></body>
    <body name="arm" pos="0.5 0 1"><joint name="hinge" axis="0 1 0"/><geom name="arm" size="0.1" pos="0.3 0 0"/></body>
  </worldbody>
  <actuator><general joint="hinge" dyntype="integrator"/></actuator>
</mujoco>"""
FRAMES = 6


def states_of(scene=SCENE, frames=FRAMES, lift=0.0, act=False):
    """Time, qpos, qvel (and act) as MuJoCo steps, and the bodies' positions [frames, B, 3]."""
    model = mujoco.MjModel.from_xml_string(scene)
    data = mujoco.MjData(model)
    data.qpos[2] += lift
    rows = []
    places = []
    for _ in range(frames):
        mujoco.mj_step(model, data, 3)
        mujoco.mj_kinematics(model, data)
        rows.append(np.concatenate([[data.time], data.qpos, data.qvel, data.act if act else []]))
        places.append(data.xpos[1:].copy())
    return np.array(rows), np.array(places)


def write(path, demos, scenes=SCENE, on="demo"):
    """A file whose demonstrations, or all of them together, have a scene."""
    if on == "data":
        write_demos(path, demos, {}, model_file=scenes)
    else:
        write_demos(
            path, demos, scenes if isinstance(scenes, dict) else dict.fromkeys(demos, scenes)
        )
    return str(path)


def opened(path, scenes=(), frames="", **options):
    request = SceneRequest(
        scenes=list(scenes), trajectory=path, frames=frames, recording=RecordingOptions(**options)
    )
    return scene_in_motion(request)


@pytest.mark.parametrize("act", [False, True])
@pytest.mark.parametrize("on", ["demo", "data"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_poses_are_mujocos(tmp_path, act, on, dtype):
    (first, placed), (second, lifted) = states_of(act=act), states_of(lift=0.3, act=act)
    path = write(
        tmp_path / "a", {"demo_0": first.astype(dtype), "demo_1": second.astype(dtype)}, on=on
    )
    scene, motion = opened(path)
    assert scene.model.bodies.path == ("target", "cube", "arm")
    poses = np.concatenate([motion.read(range(0, 2)), motion.read(range(2, FRAMES))])
    np.testing.assert_allclose(poses[:, 0, :, :3], placed, atol=1e-12 if dtype == "f8" else 1e-6)
    np.testing.assert_allclose(poses[:, 1, :, :3], lifted, atol=1e-12 if dtype == "f8" else 1e-6)
    assert any("1 mocap bodies stay" in warning for warning in motion.warnings)
    assert min(motion.kinematics_time) > 0.0
    motion.close()


def test_states_are_read_as_joints_for_a_device(tmp_path):
    """Of one scene; the mocap body rests. Worlds of several scenes are read as poses."""
    demos = {"demo_0": states_of()[0], "demo_1": states_of(lift=0.3)[0]}
    _, motion = opened(write(tmp_path / "a", demos))
    joints = motion.read_joints(range(1, 5))
    assert joints.shape == (4, 2, 3, 7)
    np.testing.assert_array_equal(joints.poses(), motion.read(range(1, 5)))
    other = SCENE.replace("0.05", "0.06")
    _, motion = opened(write(tmp_path / "b", demos, {"demo_0": SCENE, "demo_1": other}))
    assert motion.read_joints(range(1, 5)) is None


def test_a_slice_of_frames_reads_as_the_whole(tmp_path):
    states, _ = states_of()
    path = write(tmp_path / "a", {"demo_0": states, "demo_1": states[:4]})
    poses = opened(path, frames="1::2", uneven_demos="hold")[1].read(range(0, 3))
    _, whole = opened(path, uneven_demos="hold")
    np.testing.assert_array_equal(poses, whole.read(range(1, FRAMES, 2)))
    np.testing.assert_array_equal(whole.read(range(5, 6))[0, 1], whole.read(range(3, 4))[0, 1])
    np.testing.assert_array_equal(whole.read(range(4, 6)), whole.read(range(0, 6))[4:])


def test_a_scene_may_be_stored_as_bytes(tmp_path):
    states, _ = states_of()
    path = write(tmp_path / "one", {"demo_0": states}, scenes=np.bytes_(SCENE.encode()))
    scene, motion = scene_in_motion(SceneRequest(scenes=[], trajectory=path, worlds=4))
    assert (scene.model.world_count, motion.world_count) == (4, 1)
    again = opened(write(tmp_path / "b", {"demo_0": states + 0.0, "demo_1": states}))[0].sha256
    other = opened(write(tmp_path / "c", {"demo_0": states}, scenes=SCENE.replace("0.05", "0.06")))[
        0
    ].sha256
    assert scene.sha256 == again != other


def test_scenes_with_other_joints_are_templates_with_kinematics_of_their_own(tmp_path):
    other = SCENE.replace(
        '<body name="cube" pos="0 0 0.5"><freejoint/>', '<body name="cube"><joint type="ball"/>'
    )
    other = other.replace('name="arm" pos', 'name="lever" pos')
    (first, placed), (second, elsewhere) = states_of(), states_of(other)
    demos = {"demo_0": (SCENE, first), "demo_1": (other, second), "demo_2": (SCENE, first)}
    scenes, states = ({name: demo[k] for name, demo in demos.items()} for k in (0, 1))
    path = write(tmp_path / "a", states, scenes)
    scene, motion = opened(path)
    model = scene.model
    assert model.world_template.tolist() == [0, 1, 0]
    poses = motion.read(range(FRAMES))
    for world, (template, expected) in enumerate([(0, placed), (1, elsewhere), (0, placed)]):
        is_there = model.bodies.template == template
        np.testing.assert_allclose(poses[:, world, is_there, :3], expected, atol=1e-12)
        # A body of the other scene is not in this world: it is left at rest.
        resting = np.tile(model.bodies.pose[~is_there], (FRAMES, 1, 1))
        np.testing.assert_array_equal(poses[:, world, ~is_there], resting)
    with pytest.raises(InputError, match="different scenes"):
        scene_in_motion(SceneRequest(scenes=[], trajectory=path, worlds=6))
    alone, _ = opened(path, demos=("re:demo_.*1",))
    assert alone.model.bodies.path == ("target", "cube", "lever")
    alone, _ = opened(path, demos=("demo_1",))
    assert alone.model.bodies.path == ("target", "cube", "lever")


def bad(change):
    states, _ = states_of()
    change(states)
    return {"demo_0": states_of()[0], "demo_1": states}


@pytest.mark.parametrize(
    ("demos", "options", "words"),
    [
        (
            {"demo_0": np.zeros((3, 15))},
            {},
            ("15 numbers", "1 + 8 + 7, with act 17", "/data/demo_0/states"),
        ),
        ({"demo_0": np.zeros((3, 16), int)}, {}, ("int64", "not floats")),
        ({"demo_0": np.zeros((3, 2, 16))}, {}, ("[3, 2, 16]", "not floats")),
        ({"demo_0": np.zeros((0, 16))}, {}, ("no frames", "demo_0")),
        ({"demo_0": None}, {}, ("no states", "demo_0")),
        ({}, {}, ("no demonstrations",)),
        (bad(lambda s: s[2, :1].fill(np.nan)), {}, ("time is nan", "demo_1/states, frame 2")),
        (bad(lambda s: s[2, :1].fill(0.0)), {}, ("decreases", "demo_1/states, frame 2")),
        (
            bad(lambda s: s[2:, :1].__iadd__(0.5)),
            {},
            ("times differ", "demo_1/states, frame 2", "--fps"),
        ),
        (
            bad(lambda s: s[2, 3:4].fill(np.nan)),
            {},
            ("qpos[2] is nan", "demo_1/states, frame 2", "'cube'"),
        ),
        (bad(lambda s: s[2, 4:5].fill(3.0)), {}, ("norm", "demo_1/states, frame 2", "'cube'")),
    ],
)
def test_refusals(tmp_path, demos, options, words):
    path = write(tmp_path / "a", demos, on="data")
    check_refused(lambda: opened(path, **options)[1].read(range(FRAMES)), words)


def scene_text(text):
    """Sets the scene of a demonstration, which may be in another encoding than UTF-8."""
    return lambda demo: demo.attrs.create("model_file", text, dtype=h5py.string_dtype())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            scene_text("<mujoco><wrong/></mujoco>"),
            ("MuJoCo cannot compile", "/data/demo_0, model_file"),
        ),
        (
            scene_text(SCENE.replace("table", "t\xe4ble").encode("latin-1")),
            ("not UTF-8", "/data/demo_0, model_file"),
        ),
        (scene_text(f'<mujoco><include file="{__file__}"/></mujoco>'), ("includes",)),
        (
            lambda demo: demo.parent.__setitem__("demo_1", h5py.ExternalLink("other.h5", "/x")),
            ("another file",),
        ),
    ],
    ids=["no scene", "encoding", "another file's scene", "data outside"],
)
def test_what_is_not_usable_is_refused(tmp_path, change, words):
    path = write(tmp_path / "a", {"demo_0": states_of()[0]})
    with h5py.File(path, "r+") as file:
        change(file["data/demo_0"])
    check_refused(lambda: opened(path), words)


def test_demonstrations_share_one_time():
    one = np.array([0.0, 0.1, 0.2])
    two = np.array([0.0, 0.1])
    time, warnings = times.shared_time([two, one], ["a", "b"])
    assert (time.tolist(), warnings) == (one.tolist(), ())
    time, warnings = times.shared_time([one + 3.0, two], ["a", "b"])
    np.testing.assert_allclose(time, one)
    assert warnings
    # A clock of float32 at an hour is one clock still.
    late = 3600.0 + one
    assert not times.shared_time([late, late.astype(np.float32)], ["a", "b"])[1]
    check_refused(
        lambda: times.shared_time([one, np.array([0.0, 0.15])], ["a", "b"]),
        ["b, frame 1", "times differ"],
    )
    assert times.rate_time(3, 50.0, "").tolist() == [0.0, 0.02, 0.04]


def test_names_are_in_numeric_order():
    ordered = ["9", "10", "demo_1a", "demo_1b", "demo_9", "demo_10", "ep"]
    assert in_order(sorted(ordered)[::-1]) == ordered


def test_a_carried_scene_with_meshes_that_collide(tmp_path):
    """As robosuite writes it: whole paths of the machine that recorded, and a free body's place
    depends on its mesh."""
    folder = tmp_path / "assets" / "objects"
    folder.mkdir(parents=True)
    corners = "".join(
        f"v {x} {y} {z}\n" for x in (0.0, 0.2) for y in (0.0, 0.1) for z in (0.0, 0.1 + x)
    )
    faces = ("1 3 7 5", "2 6 8 4", "1 5 6 2", "3 4 8 7", "1 2 4 3", "5 7 8 6")
    (folder / "wedge.obj").write_text(corners + "".join(f"f {face}\n" for face in faces))
    scene = """<mujoco><asset>{look}<mesh name="wedge" file="{objects}/wedge.obj" scale="1 1 0.5"/></asset><worldbody>
    <geom name="table" type="box" size="1 1 0.1"/>
    <body name="wedge" pos="0 0 0.3"><freejoint/><geom name="wedge" type="mesh" mesh="wedge"/>{seen}</body>
    </worldbody></mujoco>"""
    here = scene.format(objects=folder, look="", seen="")
    there = scene.format(
        objects="/home/nobody/robosuite/models/assets/objects",
        look='<mesh name="look" file="/home/nobody/robosuite/models/assets/look.msh"/>',
        seen='<geom type="mesh" mesh="look" contype="0" conaffinity="0" group="1"/>',
    )
    states, placed = states_of(here)
    path = write(tmp_path / "a", {"demo_0": states}, scenes=there)
    with pytest.raises(
        InputError,
        match=r"geom 'wedge' collides, and its file '/home/nobody.*wedge\.obj' cannot be",
    ):
        opened(path)
    options = SceneOptions(
        asset_map=(f"/home/nobody/robosuite/models/assets={tmp_path / 'assets'}",)
    )
    loaded, motion = scene_in_motion(
        SceneRequest(scenes=[], trajectory=path, scene_options=options)
    )
    assert [kind.label for kind in loaded.model.shapes.types()] == ["box", "convex_mesh"]
    poses = motion.read(range(len(states)))
    motion.close()
    np.testing.assert_allclose(poses[:, 0, :, :3], placed, atol=1e-12)


# MuJoCo state arrays: the layout against mj_getState, poses against MuJoCo's own, and every
# refusal.

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
STATE_FRAMES = 9
STATE = mujoco.mjtState
SPECS = [
    STATE.mjSTATE_FULLPHYSICS,
    STATE.mjSTATE_PHYSICS,
    STATE.mjSTATE_INTEGRATION,
    STATE.mjSTATE_QPOS,
]


@pytest.fixture
def model():
    return mujoco.MjModel.from_xml_string(RICH)


def shaken(model, seed=0):
    """Data in which every part of the state has values of its own."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.time = rng.uniform(1, 9)
    for name in (
        "qvel",
        "act",
        "qacc_warmstart",
        "ctrl",
        "qfrc_applied",
        "userdata",
        "xfrc_applied",
        "mocap_pos",
    ):
        part = getattr(data, name)
        part[...] = rng.normal(size=part.shape)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    data.mocap_quat[...] = [0.5, -0.5, 0.5, 0.5]
    return data


def state_of(model, data, spec):
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    return state


@pytest.mark.parametrize(
    "spec", [*SPECS, STATE.mjSTATE_QPOS | STATE.mjSTATE_MOCAP_POS | STATE.mjSTATE_MOCAP_QUAT]
)
def test_the_layout_is_that_of_mj_get_state(model, spec):
    data = shaken(model)
    state = state_of(model, data, int(spec))
    layout = layout_of(model, int(spec), "")
    assert layout.size == len(state)
    for name, part in layout.columns.items():
        field = {"WARMSTART": "qacc_warmstart"}.get(name, name.lower())
        if hasattr(data, field):
            np.testing.assert_array_equal(state[part], np.ravel(getattr(data, field)), err_msg=name)
        else:
            assert part.stop == part.start, name
    mocap = layout.mocap(state[None])
    assert (mocap is None) == ("MOCAP_POS" not in layout.columns)
    if mocap is not None:
        np.testing.assert_array_equal(mocap[0, 0], [*data.mocap_pos[0], -0.5, 0.5, 0.5, 0.5])


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
    assert parse_spec(text) == np.bitwise_or.reduce([NAMES[name] for name in names])
    for wrong, words in (("qpos|speed", "'speed'"), ("QVEL", "no QPOS"), ("qpos,", "''")):
        check_refused(lambda wrong=wrong: parse_spec(wrong), ["--state-spec", words])


def test_the_layout_is_found_by_size_where_only_one_fits(model):
    for name in USUAL:
        layout = layout_of(model, NAMES[name], name)
        assert find_layout(model, "", layout.size, "x").name == name
    check_refused(lambda: find_layout(model, "", 999, "x"), ("FULLPHYSICS", "--state-spec"))
    check_refused(lambda: find_layout(model, "PHYSICS", 999, "x"), ["QPOS 12"])
    # A scene at rest has no degree of freedom: QPOS and PHYSICS are both of size zero.
    still = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
    )
    check_refused(lambda: find_layout(still, "", 0, "x"), ["PHYSICS and QPOS", "give --state-spec"])


def opened_states(folder, states, kind="npy", **options):
    (folder / "scene.xml").write_text(RICH)
    path = folder / f"states.{kind}"
    if kind == "npy":
        np.save(path, states)
    elif kind == "npz":
        np.savez(path, state=states, sensordata=np.zeros((2, 2)))
    else:
        with h5py.File(path, "w") as file:
            file["rollout"] = states
    return opened(str(path), [str(folder / "scene.xml")], **options)[1]


@pytest.mark.parametrize("kind", ["npy", "npz", "h5"])
@pytest.mark.parametrize("spec", SPECS)
def test_poses_of_states_are_mujocos(model, tmp_path, kind, spec):
    everything = [
        [shaken(model, 10 * world + frame) for frame in range(STATE_FRAMES)] for world in range(2)
    ]
    states = np.array([[state_of(model, data, int(spec)) for data in row] for row in everything])
    timed = spec in (STATE.mjSTATE_FULLPHYSICS, STATE.mjSTATE_INTEGRATION)
    if timed:
        states[..., 0] = 3.0 + 0.1 * np.arange(STATE_FRAMES)
    given = {} if timed else {"fps": 10.0, "first_axis": "worlds"}
    motion = opened_states(tmp_path, states, kind, **given)
    held_mocap = spec == STATE.mjSTATE_INTEGRATION
    assert any("mocap" in warning for warning in motion.warnings) != held_mocap
    np.testing.assert_allclose(
        motion.time, 0.1 * np.arange(STATE_FRAMES) + (3.0 if timed else 0.0), atol=1e-12
    )
    poses = np.concatenate([motion.read(range(0, 4)), motion.read(range(4, STATE_FRAMES))])
    np.testing.assert_array_equal(motion.read(range(1, STATE_FRAMES, 3)), poses[1::3])
    skip = 0 if held_mocap else 1  # the hand is body 1
    for world, frame in np.ndindex(2, STATE_FRAMES):
        data = everything[world][frame]
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(
            poses[frame, world, skip:, :3], data.xpos[1 + skip :], atol=1e-12
        )
        turn = poses[frame, world, skip:, [6, 3, 4, 5]].T
        np.testing.assert_allclose(
            np.abs(np.sum(turn * data.xquat[1 + skip :], axis=1)), 1.0, atol=1e-12
        )
    motion.close()


@pytest.mark.parametrize("kind", ["npy", "npz", "h5"])
@pytest.mark.parametrize("timed", [True, False])
def test_frames_may_be_first(model, tmp_path, kind, timed):
    """As MJX stacks them: the times tell, or the option."""
    spec = int(STATE.mjSTATE_FULLPHYSICS if timed else STATE.mjSTATE_QPOS)
    rows = [[state_of(model, shaken(model, 10 * w + f), spec) for f in range(9)] for w in range(3)]
    states = np.array(rows)
    options = {} if timed else {"fps": 10.0, "state_spec": "QPOS"}
    if timed:
        states[..., 0] = 0.1 * np.arange(9)
    motions = []
    for name, array in (("worlds", states), ("frames", states.swapaxes(0, 1))):
        folder = tmp_path / name
        folder.mkdir()
        axes = {} if timed else {"first_axis": name}
        motions.append(opened_states(folder, array, kind, **options, **axes))
    np.testing.assert_array_equal(motions[1].time, motions[0].time)
    np.testing.assert_array_equal(motions[1].read(range(9)), motions[0].read(range(9)))


def test_times_of_controls_are_not_those_of_one_state(model, tmp_path):
    """MuJoCo Warp's recordings have `times`: one a state, or of controls beside the first state."""
    qpos = np.array([shaken(model, f).qpos for f in range(4)])
    scene = tmp_path / "scene.xml"
    scene.write_text(RICH)
    path = tmp_path / "replay.npz"

    def motion(**options):
        request = SceneRequest(
            scenes=[str(scene)], trajectory=str(path), recording=RecordingOptions(**options)
        )
        return scene_in_motion(request)[1]

    np.savez(path, qpos=qpos, times=0.5 + 0.1 * np.arange(4), ctrl=np.zeros((3, 2)))
    np.testing.assert_allclose(motion().time, 0.5 + 0.1 * np.arange(4))
    np.testing.assert_allclose(motion(fps=2.0).time, 0.5 * np.arange(4))
    np.savez(path, qpos=qpos[:1], times=0.1 * np.arange(4), ctrl=np.zeros((4, 2)))
    with pytest.raises(InputError, match="the recording contains no times"):
        motion()
    assert len(motion(fps=2.0).time) == 1


def plain_states(worlds=2):
    model = mujoco.MjModel.from_xml_string(RICH)
    states = np.zeros((worlds, STATE_FRAMES, mujoco.mj_stateSize(model, int(SPECS[0]))))
    states[..., 0] = 0.1 * np.arange(STATE_FRAMES)
    states[..., 4] = states[..., 8] = 1.0  # w of the free and of the ball joint
    return states


@pytest.mark.parametrize("dtype", [">f8", "<f4", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_number_types_give_the_same_poses(tmp_path, dtype, order):
    expected, found = (
        opened_states(tmp_path, states).read(range(STATE_FRAMES))
        for states in (plain_states(), np.array(plain_states(), dtype, order=order))
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_clocks_that_differ_count_from_the_first_frame(tmp_path):
    states = plain_states()
    states[1, :, 0] += 7.0
    motion = opened_states(tmp_path, states)
    assert any("clocks differ" in warning for warning in motion.warnings)
    np.testing.assert_allclose(motion.time, 0.1 * np.arange(STATE_FRAMES), atol=1e-12)
    motion.read(range(STATE_FRAMES))
    states[1, 5:, 0] += 0.01
    opened_states(tmp_path, states).read(range(0, 5))
    opened_states(tmp_path, states, fps=10.0).read(range(STATE_FRAMES))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda s: s[0, 4, :1].fill(np.nan), {}, ("time is nan", "[0], frame 4")),
        (lambda s: s[0, 4, :1].fill(0.0), {}, ("decreases", "[0], frame 4")),
        (lambda s: s[1, 5:, :1].__iadd__(0.01), {}, ("times differ", "[1], frame 5", "--fps")),
        (lambda s: s[1, 3, 8:9].fill(1.1), {}, ("norm 1.1", "[1], frame 3", "'ball'")),
        (lambda s: s[1, 3, 1:2].fill(np.inf), {}, ("qpos[0] is inf", "[1], frame 3", "'free'")),
        (lambda s: None, {"state_spec": "INTEGRATION"}, ("and INTEGRATION of this scene",)),
        (lambda s: None, {"fps": float("nan")}, ("above zero",)),
    ],
)
def test_refusals_of_states(tmp_path, change, options, words):
    states = plain_states()
    change(states)
    check_refused(
        lambda: opened_states(tmp_path, states, **options).read(range(STATE_FRAMES)), words
    )


@pytest.mark.parametrize(
    ("states", "kind", "spec", "words"),
    [
        (np.zeros((2, 0, 5)), "npy", "", "no state in it"),
        (np.zeros((0, 3, 5)), "npy", "", "no state in it"),
        (np.zeros((2, 3)), "npy", "", "a state has 3 numbers"),
        (np.zeros((2, 3, 4), int), "npz", "", "not floats"),
        (plain_states()[0, :, 1:13], "npy", "QPOS", "contains no times\n.*--fps"),
        (plain_states()[..., 1:13], "npy", "QPOS", "worlds or frames are first\n.*--first-axis"),
    ],
)
def test_arrays_that_are_no_states(tmp_path, states, kind, spec, words):
    with pytest.raises(InputError, match=words):
        opened_states(tmp_path, states, kind, state_spec=spec)


# Deformable objects of demonstrations in the worlds of a scene of several environments.


def deformable_model():
    """Worlds 0 and 1 of one template, world 2 of another; each has a cloth and a towel of one
    particle."""
    builder = ModelBuilder()
    for root, origin in (("/envs/env_0", 0.0), ("/envs/env_2", 20.0)):
        builder.begin_world(root, [origin, 0, 0, 0, 0, 0, 1])
        builder.add_particles([[origin, 0, 1]], radius=0.0, key=f"{root}/cloth")
        builder.add_particles([[origin, 0, 2]], radius=0.0, key=f"{root}/towel")
        builder.end_world()
        if not origin:
            builder.repeat_world(0, "/envs/env_1", [10, 0, 0, 0, 0, 0, 1])
    return builder.finalize()


def test_each_demonstration_moves_the_objects_of_its_world(tmp_path):
    held = deformable_model()
    assert held.world_template.tolist() == [0, 0, 1]
    with h5py.File(tmp_path / "m.h5", "w") as file:
        for world in (0, 2):
            file[f"d{world}/deformable_object/cloth/nodal_position"] = np.full(
                (2, 1, 3), 0.5 + world
            )
        demos = [[file.require_group(f"d{world}")] for world in range(3)]
        states = DeformableStates(demos, held, held.world_pose[:, :3], "m.h5")
        found = states.read(range(2))
    row = {path.removeprefix("/envs/env_"): k for k, path in enumerate(held.particles.path)}
    for world, particle, expected in (
        (0, "0/cloth", [0.5, 0.5, 0.5]),
        (1, "0/cloth", [10.0, 0.0, 1.0]),  # rests
        (2, "2/cloth", [22.5, 2.5, 2.5]),
        (1, "0/towel", [10.0, 0.0, 2.0]),
    ):
        np.testing.assert_allclose(found[:, world, row[particle]], [expected] * 2)
    assert "towel" in states.warnings[0]


# Arrays of .npy and .npz files: headers that lie, objects, damage.


def header(shape: str, descr: str = "'<f8'", version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (header("(1000000000000, 1000000000000)") + bytes(80), "declares"),
        (header("(10,)") + bytes(79), "declares 80 bytes"),
        (header("(10,)") + bytes(81), "declares 80 bytes"),
        (header("(-1,)") + bytes(8), "cannot be read|shape"),
        (header("(1,)", "'|O'") + bytes(8), "pickled"),
        (header("(1,)", "'no type'") + bytes(8), "cannot be read"),
        (header("(1,)", version=b"\x09\x00") + bytes(8), "cannot be read|9.0"),
        (b"\x93NUMPY\x01\x00\xff", "cannot be read"),
        (b"\x93NUMPY\x01\x00\x04\x00(((((", "cannot be read"),
    ],
)
def test_headers_that_lie(tmp_path, data, words):
    path = str(tmp_path / "a.npy")
    (tmp_path / "a.npy").write_bytes(data)
    for read in (npy_header, read_npy):
        with pytest.raises(InputError, match=words) as raised:
            read(path)
        assert "a.npy" in raised.value.where
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("states.npy", data)
    with pytest.raises(InputError, match=words):
        array_files.npz_headers(str(tmp_path / "a.npz"))


def test_a_later_header_version_is_read(tmp_path):
    (tmp_path / "a.npy").write_bytes(
        header("(2,)", version=b"\x02\x00") + np.array([1.5, 2.5]).tobytes()
    )
    assert npy_header(str(tmp_path / "a.npy")).shape == (2,)
    assert read_npy(str(tmp_path / "a.npy")).tolist() == [1.5, 2.5]


def test_damaged_or_missing_arrays_are_told(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, states=np.random.default_rng(0).normal(size=(50, 20)))
    check_refused(lambda: read_npz(str(path), "b"), ("no array 'b'", "states"))
    whole = path.read_bytes()
    for damage in (bytes(40), b"\xff" * 40):
        path.write_bytes(whole[:400] + damage + whole[440:])
        check_refused(lambda: read_npz(str(path), "states"), ["cannot be read"])


def test_an_array_beyond_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", states=np.zeros((1000, 100)))
    monkeypatch.setattr("collidecli.storage.reading_limit.LEAST_LIMIT", 500)
    monkeypatch.setattr("collidecli.storage.reading_limit.free_memory", lambda: 1000)
    with pytest.raises(
        InputError, match=r"needs 1.53 MiB of memory, and the limit is 500 B"
    ) as raised:
        read_npz(str(tmp_path / "a.npz"), "states")
    assert ".npy" in raised.value.fix
