"""Poses of bodies beside joint positions by name, in files of arrays and of motions."""

import mujoco
import numpy as np
import pytest

from collidecli.errors import InputError
from tests.unit.importers.recordings.test_named_arrays import loaded_motion, poses_apart

FRAMES = 5
WXYZ = [0, 1, 2, 6, 3, 4, 5]
HAND = """<mujoco>
  <worldbody>
    <body name="palm" pos="0.1 0 0.3">{joint}<geom size="0.1"/>
      <body name="finger" pos="0 0 0.2"><joint name="knuckle" axis="0 1 0"/><geom size="0.05"/>
        <body name="tip" pos="0 0 0.1"><joint name="last" axis="1 0 0"/><geom size="0.03"/></body>
      </body></body>
    <body name="egg" pos="1 0 0"><freejoint name="egg:joint"/><geom size="0.02"/></body>
    <body name="cup" pos="2 0 0"><freejoint/><geom size="0.02"/></body>
  </worldbody>
</mujoco>"""
NAMES = ("last", "knuckle")
BODIES = ("palm", "finger", "tip", "egg", "cup")
FLOATING = '<freejoint name="base:joint"/>'


@pytest.fixture(params=["", FLOATING], ids=["fixed", "floating"])
def scene(request, tmp_path):
    path = tmp_path / "hand.xml"
    path.write_text(HAND.format(joint=request.param))
    return path


@pytest.fixture
def fixed(tmp_path):
    path = tmp_path / "hand.xml"
    path.write_text(HAND.format(joint=""))
    return path


@pytest.fixture
def floating(tmp_path):
    path = tmp_path / "floating.xml"
    path.write_text(HAND.format(joint=FLOATING))
    return path


def drawn_poses(seed):
    """float64[FRAMES, 7] xyzw."""
    random = np.random.default_rng(seed)
    turns = random.normal(size=(FRAMES, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    return np.concatenate([random.normal(size=(FRAMES, 3)), turns], axis=1)


ANGLES = np.random.default_rng(3).uniform(-1.0, 1.0, (FRAMES, 2))
TIME = np.arange(FRAMES) / 10.0


def expected(scene, **poses):
    """Poses [FRAMES, 7] of each of BODIES by MuJoCo: of ANGLES, and of free bodies by name."""
    model = mujoco.MjModel.from_xml_path(str(scene))
    data = mujoco.MjData(model)
    out = []
    for frame in range(FRAMES):
        for name, angle in zip(NAMES, ANGLES[frame], strict=True):
            data.joint(name).qpos[0] = angle
        for body, pose in poses.items():
            start = model.jnt_qposadr[model.body(body).jntadr[0]]
            data.qpos[start : start + 7] = pose[frame, WXYZ]
        mujoco.mj_kinematics(model, data)
        rows = [[*data.body(name).xpos, *data.body(name).xquat[[1, 2, 3, 0]]] for name in BODIES]
        out.append(rows)
    return np.array(out)


def check(scene, recording, options, **poses):
    """Compares a recording with `expected`; returns the motion's warnings."""
    loaded, motion = loaded_motion(scene, recording, **options)
    found = motion.read(range(FRAMES))[:, 0]
    rows = [list(loaded.model.bodies.path).index(name) for name in BODIES]
    motion.close()
    assert poses_apart(found[:, rows], expected(scene, **poses)) < 1e-12
    return motion.warnings


def npz(tmp_path, **arrays):
    path = tmp_path / "log.npz"
    np.savez(path, time=TIME, **arrays)
    return path


@pytest.mark.parametrize("name", ["egg", "egg:joint"])
def test_body_from_names_the_array_of_a_body(scene, tmp_path, name):
    egg, cup = drawn_poses(1), drawn_poses(2)
    path = npz(tmp_path, q=ANGLES, joint_names=np.array(NAMES), egg_pose=egg, cup_pose=cup)
    options = {"state": "q", "quaternion_order": "xyzw"}
    both = (f"{name}=egg_pose", "cup=cup_pose")
    assert not check(scene, path, options | {"body_from": both}, egg=egg, cup=cup)
    (warning,) = check(scene, path, options | {"body_from": both[:1]}, egg=egg)
    assert "'cup'" in warning


def test_body_from_beside_a_root(floating, tmp_path):
    base, egg = drawn_poses(1), drawn_poses(2)
    names = np.array(NAMES)
    path = npz(tmp_path, q=ANGLES, joint_names=names, base=base[:, WXYZ], egg=egg[:, WXYZ])
    options = {"state": "q", "quaternion_order": "wxyz", "root": "base", "body_from": ("egg=egg",)}
    check(floating, path, options, palm=base, egg=egg)


def test_body_from_of_each_demonstration(fixed, tmp_path):
    """Each demonstration is a world with its own pose of the body."""
    arrays = {}
    eggs = [drawn_poses(seed) for seed in (1, 2)]
    for number, egg in enumerate(eggs):
        arrays |= {f"demo_{number}/q": ANGLES, f"demo_{number}/egg": egg}
    path = npz(tmp_path, joint_names=np.array(NAMES), **arrays)
    loaded, motion = loaded_motion(
        fixed, path, state="demo_*/q", body_from=("egg=demo_*/egg",), quaternion_order="xyzw"
    )
    found = motion.read(range(FRAMES))
    motion.close()
    row = list(loaded.model.bodies.path).index("egg")
    for world, egg in enumerate(eggs):
        assert poses_apart(found[:, world, row], egg) < 1e-12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"body_from": ("egg",)}, "'egg' is no BODY=ARRAY"),
        ({"body_from": ("spoon=egg",)}, "the scene has no articulation or body 'spoon'"),
        ({"body_from": ("egg=nothing",)}, "there is no array 'nothing'"),
        ({"body_from": ("egg=q",)}, r"is \[5, 2\], not \[5, 7\]"),
        ({"body_from": ("egg=egg", "egg:joint=egg")}, "'egg' has a source already"),
        ({"body_from": ("egg=egg", "egg=egg")}, "'egg' is named twice"),
        ({"body_from": ("palm=egg",)}, "'palm' is fixed to the world in this scene"),
        (
            {"root": "egg"},
            "'palm' is the root of the joints; --body-from BODY=ARRAY is for the poses",
        ),
    ],
)
def test_poses_that_cannot_be_used_are_refused(fixed, tmp_path, options, words):
    path = npz(tmp_path, q=ANGLES, joint_names=np.array(NAMES), egg=drawn_poses(1))
    with pytest.raises(InputError, match=words):
        check(fixed, path, {"state": "q", "quaternion_order": "xyzw"} | options)


@pytest.mark.parametrize("repeated", [1, 7])
@pytest.mark.parametrize("first", [True, False])
def test_a_free_joint_is_named_among_the_joints(scene, tmp_path, repeated, first):
    """In MuJoCo's coordinates with names, w x y z, and in an array that --state names."""
    egg = drawn_poses(1)
    parts = [(egg[:, WXYZ], ["egg:joint"] * repeated), (ANGLES, list(NAMES))]
    parts = parts if first else parts[::-1]
    columns = np.concatenate([part for part, _ in parts], axis=1)
    names = np.array([name for _, part in parts for name in part])
    check(scene, npz(tmp_path, qpos=columns, joint_names=names), {}, egg=egg)
    path = npz(tmp_path, q=columns, joint_names=names)
    check(scene, path, {"state": "q", "quaternion_order": "wxyz"}, egg=egg)
    with pytest.raises(InputError, match="does not define the order of its quaternions"):
        check(scene, path, {"state": "q"}, egg=egg)


def test_a_free_joint_is_that_of_the_robot_or_left_out(floating, tmp_path):
    base, egg = drawn_poses(1), drawn_poses(2)
    columns = np.concatenate([base[:, WXYZ], ANGLES, egg[:, WXYZ]], axis=1)
    names = np.array(["base:joint", *NAMES, "egg:joint"])
    path = npz(tmp_path, qpos=columns, joint_names=names)
    check(floating, path, {}, palm=base, egg=egg)
    path = npz(tmp_path, q=columns, joint_names=names)
    options = {"state": "q", "quaternion_order": "wxyz"}
    check(floating, path, options, palm=base, egg=egg)
    check(floating, path, options | {"ignore_joints": ("egg:joint",)}, palm=base)


def bodies(**poses):
    stacked = np.stack(list(poses.values()), axis=1)
    positions, turns = stacked[..., :3], stacked[..., [6, 3, 4, 5]]
    names = np.array(list(poses))
    return {"body_pos_w": positions, "body_quat_w": turns, "body_names": names}


def joints():
    return {"joint_pos": ANGLES, "joint_names": np.array(NAMES)}


ORDER = {"quaternion_order": "wxyz"}


@pytest.mark.parametrize("prefer", ["", "joints", "bodies"])
def test_bodies_and_joints_of_a_motion_are_used_together(scene, tmp_path, prefer):
    egg, cup = drawn_poses(1), drawn_poses(2)
    path = npz(tmp_path, **bodies(egg=egg, cup=cup), **joints())
    assert not check(scene, path, ORDER | {"prefer": prefer}, egg=egg, cup=cup)


def test_a_body_may_be_the_root_of_the_joints(floating, tmp_path):
    base, egg = drawn_poses(1), drawn_poses(2)
    path = npz(tmp_path, **bodies(egg=egg, palm=base, spoon=egg), **joints())
    warnings = check(floating, path, ORDER, egg=egg, palm=base)
    assert warnings[0] == "1 recorded body not in the scene left out: 'spoon'"
    with pytest.raises(InputError, match="the scene has no body 'spoon'"):
        check(floating, path, ORDER | {"strict_bodies": True})


def test_links_of_the_robot_are_used_alone_and_joints_are_named(floating, tmp_path):
    """As Isaac Lab records all links: `--prefer joints` uses the joints, and the other bodies."""
    base, egg = drawn_poses(1), drawn_poses(2)
    truth = expected(floating, palm=base, egg=egg)
    links = {name: truth[:, BODIES.index(name)] for name in ("egg", "palm", "finger", "tip")}
    path = npz(tmp_path, **bodies(**links), **joints())
    warnings = check(floating, path, ORDER, palm=base, egg=egg)
    assert warnings[0] == (
        f"{path}: joint_pos: not used, as the poses of the bodies are; --prefer joints uses them"
    )
    path = npz(tmp_path, **bodies(**links), joint_pos=ANGLES)
    warnings = check(floating, path, ORDER, palm=base, egg=egg)
    assert "joint_pos: not used, as the poses" in warnings[0]
    path = npz(tmp_path, **bodies(**links), **joints())
    warnings = check(floating, path, ORDER | {"prefer": "joints"}, palm=base, egg=egg)
    assert "its body palm is taken as the root" in warnings[0]


def test_an_option_of_bodies_has_no_effect_on_a_motion(fixed, tmp_path):
    path = npz(tmp_path, **bodies(egg=drawn_poses(1)), **joints())
    with pytest.raises(InputError, match="--body-from has no effect on humanoid motions"):
        check(fixed, path, {"body_from": ("egg=body_pos_w",)})


def table(tmp_path, *groups, order=("x", "y", "z", "qx", "qy", "qz", "qw")):
    """A csv of ANGLES and of poses by the text before their axes."""
    titles = ["time", *NAMES, *(f"{name}_{axis}" for name, _ in groups for axis in order)]
    rows = np.concatenate([TIME[:, None], ANGLES, *(pose for _, pose in groups)], axis=1)
    path = tmp_path / "log.csv"
    np.savetxt(path, rows, delimiter=",", header=",".join(titles), comments="", fmt="%.17g")
    return path


@pytest.mark.parametrize("name", ["egg", "egg:joint"])
def test_columns_of_a_table_are_poses_of_bodies(scene, tmp_path, name):
    """They moved the root of the robot, as each body of the scene is a root."""
    egg, cup = drawn_poses(1), drawn_poses(2)
    assert not check(scene, table(tmp_path, (name, egg), ("cup", cup)), {}, egg=egg, cup=cup)


@pytest.mark.parametrize("name", ["base", "palm"])
def test_columns_of_a_table_are_a_root_and_bodies(floating, tmp_path, name):
    base, egg = drawn_poses(1), drawn_poses(2)
    check(floating, table(tmp_path, ("egg", egg), (name, base)), {}, palm=base, egg=egg)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("spoon",), "'spoon' are a pose that no title says to be the root's or a body's"),
        (("egg", "egg:joint"), "'egg.joint' are a pose that no title"),
        (("base", "palm"), "the columns 'base', 'palm' may be the root's"),
    ],
)
def test_columns_of_poses_of_no_body_are_refused(floating, tmp_path, names, words):
    path = table(tmp_path, *((name, drawn_poses(1)) for name in names))
    with pytest.raises(InputError, match=words):
        check(floating, path, {})


def test_poses_that_the_state_replaces_are_named(fixed, tmp_path):
    path = npz(tmp_path, **bodies(egg=drawn_poses(1)), **joints())
    warnings = check(fixed, path, {"state": "joint_pos"})
    words = "not used, as joint_pos is the state: 'body_pos_w', 'body_quat_w'"
    assert f"{path}: {words}" in warnings


def test_a_mocap_body_has_a_source(tmp_path):
    scene = tmp_path / "mocap.xml"
    still = '<body name="cup" mocap="true" pos="2 0 0"><geom size="0.02"/></body>'
    free = '<body name="cup" pos="2 0 0"><freejoint/><geom size="0.02"/></body>'
    text = HAND.format(joint="")
    assert free in text
    scene.write_text(text.replace(free, still))
    cup = drawn_poses(1)
    path = npz(tmp_path, q=ANGLES, joint_names=np.array(NAMES), cup_pose=cup)
    options = {"state": "q", "body_from": ("cup=cup_pose",), "quaternion_order": "xyzw"}
    loaded, motion = loaded_motion(scene, path, **options)
    row = list(loaded.model.bodies.path).index("cup")
    assert poses_apart(motion.read(range(FRAMES))[:, 0, row], cup) < 1e-12
    motion.close()
