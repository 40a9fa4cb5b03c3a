"""robosuite's demonstrations: what is taken from the file, what is passed over, and every refusal."""

from __future__ import annotations

import h5py
import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.commands.scenes import SceneRequest, scene_in_motion
from collidecli.errors import InputError
from collidecli.importers.recordings.recording import in_order, rate_time, shared_time
from collidecli.scene.options import RecordingOptions, SceneOptions

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
    rows, places = [], []
    for _ in range(frames):
        mujoco.mj_step(model, data, 3)
        mujoco.mj_kinematics(model, data)
        rows.append(np.concatenate([[data.time], data.qpos, data.qvel, data.act if act else []]))
        places.append(data.xpos[1:].copy())
    return np.array(rows), np.array(places)


def write(path, demos, scenes=SCENE, on="demo"):
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        for name, states in demos.items():
            group = data.create_group(name)
            if states is not None:
                group["states"] = states
            if on == "demo":
                group.attrs["model_file"] = scenes if isinstance(scenes, (str, bytes)) else scenes[name]
        if on == "data":
            data.attrs["model_file"] = scenes
    return str(path)


def opened(path, scenes=(), frames="", **options):
    request = SceneRequest(scenes=list(scenes), trajectory=path, frames=frames, recording=RecordingOptions(**options))
    return scene_in_motion(request)


@pytest.mark.parametrize("act", [False, True])
@pytest.mark.parametrize("on", ["demo", "data"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_poses_are_mujocos(tmp_path, act, on, dtype):
    (first, placed), (second, lifted) = states_of(act=act), states_of(lift=0.3, act=act)
    path = write(tmp_path / "a", {"demo_0": first.astype(dtype), "demo_1": second.astype(dtype)}, on=on)
    scene, motion = opened(path)
    assert scene.model.bodies.path == ("target", "cube", "arm")
    poses = np.concatenate([motion.read(range(0, 2)), motion.read(range(2, FRAMES))])
    np.testing.assert_allclose(poses[:, 0, :, :3], placed, atol=1e-12 if dtype == "f8" else 1e-6)
    np.testing.assert_allclose(poses[:, 1, :, :3], lifted, atol=1e-12 if dtype == "f8" else 1e-6)
    assert any("1 mocap bodies stay" in warning for warning in motion.warnings)
    assert motion.kinematics_seconds > 0.0
    motion.close()


def test_a_slice_and_a_step_of_frames(tmp_path):
    states, _ = states_of()
    path = write(tmp_path / "a", {"demo_0": states, "demo_1": states[:4]})
    _, motion = opened(path, frames="1::2", uneven_demos="hold")
    poses = motion.read(range(0, 3))
    _, whole = opened(path, uneven_demos="hold")
    np.testing.assert_array_equal(poses, whole.read(range(1, FRAMES, 2)))
    np.testing.assert_array_equal(whole.read(range(5, 6))[0, 1], whole.read(range(3, 4))[0, 1])
    np.testing.assert_array_equal(whole.read(range(4, 6)), whole.read(range(0, 6))[4:])


def test_a_scene_as_bytes(tmp_path):
    path = write(tmp_path / "a", {"demo_0": states_of()[0]}, scenes=np.bytes_(SCENE.encode()))
    assert opened(path)[0].model.world_count == 1


def test_scenes_with_other_joints_are_templates_with_kinematics_of_their_own(tmp_path):
    other = SCENE.replace('<body name="cube" pos="0 0 0.5"><freejoint/>', '<body name="cube"><joint type="ball"/>')
    other = other.replace('name="arm" pos', 'name="lever" pos')
    first, placed = states_of()
    second, elsewhere = states_of(other)
    path = write(
        tmp_path / "a",
        {"demo_0": first, "demo_1": second, "demo_2": first},
        {"demo_0": SCENE, "demo_1": other, "demo_2": SCENE},
    )
    scene, motion = opened(path)
    model = scene.model
    assert model.world_template.tolist() == [0, 1, 0]
    poses = motion.read(range(FRAMES))
    for world, (template, expected) in enumerate([(0, placed), (1, elsewhere), (0, placed)]):
        rows = np.flatnonzero(model.bodies.template == template)
        np.testing.assert_allclose(poses[:, world, rows, :3], expected, atol=1e-12)
        # A body of the other scene is not in this world: it is left at rest.
        others = np.flatnonzero(model.bodies.template != template)
        np.testing.assert_array_equal(poses[:, world, others], np.tile(model.bodies.pose[others], (FRAMES, 1, 1)))
    with pytest.raises(InputError, match="different scenes"):
        scene_in_motion(SceneRequest(scenes=[], trajectory=path, worlds=6))
    alone, _ = opened(path, demos=("demo_1",))
    assert alone.model.bodies.path == ("target", "cube", "lever")


def test_one_demonstration_is_played_in_every_world(tmp_path):
    path = write(tmp_path / "a", {"demo_0": states_of()[0]})
    scene, motion = scene_in_motion(SceneRequest(scenes=[], trajectory=path, worlds=4))
    assert (scene.model.world_count, motion.world_count) == (4, 1)


def test_the_scenes_hash_is_of_its_text(tmp_path):
    states = states_of()[0]
    first = opened(write(tmp_path / "a", {"demo_0": states}))[0].sha256
    again = opened(write(tmp_path / "b", {"demo_0": states + 0.0, "demo_1": states}))[0].sha256
    other = opened(write(tmp_path / "c", {"demo_0": states}, scenes=SCENE.replace("0.05", "0.06")))[0].sha256
    assert first == again != other


def bad(change):
    states, _ = states_of()
    change(states)
    return {"demo_0": states_of()[0], "demo_1": states}


@pytest.mark.parametrize(
    ("demos", "options", "words"),
    [
        ({"demo_0": np.zeros((3, 15))}, {}, ("15 numbers", "1 + 8 + 7, with act 17", "/data/demo_0/states")),
        ({"demo_0": np.zeros((3, 16), int)}, {}, ("int64", "not floats")),
        ({"demo_0": np.zeros((3, 2, 16))}, {}, ("[3, 2, 16]", "not floats")),
        ({"demo_0": np.zeros((0, 16))}, {}, ("no frames", "demo_0")),
        ({"demo_0": None}, {}, ("no states", "demo_0")),
        ({}, {}, ("no demonstrations",)),
        (bad(lambda s: s[2, :1].fill(np.nan)), {}, ("time is nan", "demo_1/states, frame 2")),
        (bad(lambda s: s[2, :1].fill(0.0)), {}, ("decreases", "demo_1/states, frame 2")),
        (bad(lambda s: s[2:, :1].__iadd__(0.5)), {}, ("times differ", "demo_1/states, frame 2", "--fps")),
        (bad(lambda s: s[2, 3:4].fill(np.nan)), {}, ("qpos[2] is nan", "demo_1/states, frame 2", "'cube'")),
        (bad(lambda s: s[2, 4:5].fill(3.0)), {}, ("norm", "demo_1/states, frame 2", "'cube'")),
    ],
)
def test_refusals(tmp_path, demos, options, words):
    path = write(tmp_path / "a", demos, on="data")
    with pytest.raises(InputError) as raised:
        opened(path, **options)[1].read(range(FRAMES))
    for word in words:
        assert word in str(raised.value)


def test_a_scene_that_does_not_compile_is_named(tmp_path):
    path = write(tmp_path / "a", {"demo_0": states_of()[0]}, scenes="<mujoco><wrong/></mujoco>")
    with pytest.raises(InputError, match="MuJoCo cannot compile") as raised:
        opened(path)
    assert "/data/demo_0, model_file" in raised.value.where


def test_a_scene_that_is_not_utf8(tmp_path):
    text = SCENE.replace("table", "t\xe4ble").encode("latin-1")
    path = write(tmp_path / "a", {"demo_0": states_of()[0]})
    with h5py.File(path, "r+") as file:
        file["data/demo_0"].attrs.create("model_file", text, dtype=h5py.string_dtype())
    with pytest.raises(InputError, match="not UTF-8") as raised:
        opened(path)
    assert "/data/demo_0, model_file" in raised.value.where


def test_a_scene_that_reads_other_files_is_refused(tmp_path):
    (tmp_path / "secret.xml").write_text("<mujoco/>")
    text = f'<mujoco><include file="{tmp_path}/secret.xml"/></mujoco>'
    with pytest.raises(InputError, match="includes"):
        opened(write(tmp_path / "a", {"demo_0": states_of()[0]}, scenes=text))


def test_data_outside_the_file_is_refused(tmp_path):
    path = write(tmp_path / "a", {"demo_0": states_of()[0]})
    with h5py.File(path, "r+") as file:
        file["data/demo_1"] = h5py.ExternalLink("other.h5", "/x")
    with pytest.raises(InputError, match="another file"):
        opened(path)


def test_names_in_numeric_order():
    assert in_order(["demo_10", "demo_9", "ep", "10", "9", "demo_1b", "demo_1a"]) == [
        "9", "10", "demo_1a", "demo_1b", "demo_9", "demo_10", "ep",
    ]  # fmt: skip


def test_shared_time():
    one, two = np.array([0.0, 0.1, 0.2]), np.array([0.0, 0.1])
    time, warnings = shared_time([two, one], ["a", "b"])
    assert (time.tolist(), warnings) == (one.tolist(), ())
    time, warnings = shared_time([one + 3.0, two], ["a", "b"])
    np.testing.assert_allclose(time, one)
    assert warnings
    # A clock of float32 at an hour is one clock still.
    late = 3600.0 + one
    assert not shared_time([late, late.astype(np.float32)], ["a", "b"])[1]
    with pytest.raises(InputError, match="times differ") as raised:
        shared_time([one, np.array([0.0, 0.15])], ["a", "b"])
    assert raised.value.where == "b, frame 1"
    assert rate_time(3, 50.0, "").tolist() == [0.0, 0.02, 0.04]


def test_a_carried_scene_with_meshes_that_collide(tmp_path):
    """As robosuite writes it: whole paths of the machine that recorded, and a free body's place depends on its mesh."""
    folder = tmp_path / "assets" / "objects"
    folder.mkdir(parents=True)
    corners = [(x, y, z) for x in (0.0, 0.2) for y in (0.0, 0.1) for z in (0.0, 0.1 + x)]
    outline = ["1 3 7 5", "2 6 8 4", "1 5 6 2", "3 4 8 7", "1 2 4 3", "5 7 8 6"]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {face}" for face in outline]
    (folder / "wedge.obj").write_text("\n".join(lines) + "\n")
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
    states, placed = states_of(here, frames=100)
    path = write(tmp_path / "a", {"demo_0": states}, scenes=there)
    with pytest.raises(InputError, match=r"geom 'wedge' collides, and its file '/home/nobody.*wedge\.obj' cannot be"):
        opened(path)
    request = SceneRequest(
        scenes=[],
        trajectory=path,
        scene_options=SceneOptions(asset_map=(f"/home/nobody/robosuite/models/assets={tmp_path / 'assets'}",)),
    )
    loaded, motion = scene_in_motion(request)
    assert [kind.label for kind in loaded.model.shapes.types()] == ["box", "convex_mesh"]
    poses = motion.read(range(len(states)))
    motion.close()
    np.testing.assert_allclose(poses[:, 0, :, :3], placed, atol=1e-12)
    # MuJoCo's own contacts of the frame that the states give.
    model = mujoco.MjModel.from_xml_string(here)
    data = mujoco.MjData(model)
    contacts = collidecli.collide(loaded.model, poses)
    touched = 0
    for frame, row in enumerate(states):
        data.qpos[:] = row[1 : 1 + model.nq]
        mujoco.mj_fwdPosition(model, data)
        cell = contacts.cell(frame)
        assert (len(cell.distance) > 0) == (data.ncon > 0)
        if data.ncon:
            touched += 1
            assert cell.distance.min() == pytest.approx(data.contact.dist.min(), abs=2e-6)
    assert 20 < touched < 100
