"""Motions of retargeters in pickles over a robot in USD and in MJCF, whose poses MuJoCo has
computed."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import ArticulationMotion
from collidecli.importers.recordings.joint_states import coordinates_of_scene
from collidecli.importers.recordings.kinds import kind_of, open_motion, open_recording
from collidecli.scene.kinematics import last_element
from collidecli.scene.options import RecordingOptions
from tests.support.twin_robots import ROBOT, Demo, check_poses, target_of, write_twins
from tests.support.twin_robots import stepped_demo as stepped

FRAMES = 9
RATE = 30.0


@pytest.fixture
def twins(tmp_path):
    return write_twins(tmp_path, ROBOT, seed=7)


@pytest.fixture
def demo(twins):
    return stepped(twins, FRAMES)


@pytest.fixture
def target(twins):
    return target_of(twins.usd)


def gmr(demo: Demo) -> dict:
    """As GMR saves a motion; source: YanjieZe/GMR 0b22e42, scripts/smplx_to_robot.py."""
    return {
        "fps": RATE,
        "root_pos": demo.root[:, :3],
        "root_rot": demo.root[:, 3:],
        "dof_pos": demo.joints,
        "local_body_pos": None,
        "link_body_list": None,
    }


def phc(demo: Demo, rows: slice = slice(None)) -> dict:
    """As PHC saves one; source: ZhengyiLuo/PHC 09162a9, scripts/data_process/fit_smpl_motion.py."""
    frames = len(demo.joints[rows])
    return {
        "root_trans_offset": demo.root[rows, :3].astype(np.float32),
        "pose_aa": np.zeros((frames, 5, 3)),
        "dof": demo.joints[rows].astype(np.float32),
        "root_rot": demo.root[rows, 3:],
        "smpl_joints": np.zeros((frames, 24, 3)),
        "fps": int(RATE),
    }


def saved(path: Path, value) -> Path:
    path.write_bytes(pickle.dumps(value))
    return path


def moved(path: Path, target, **options) -> ArticulationMotion:
    recording = open_recording(path, options.get("state", ""))
    motion = open_motion(recording, target, RecordingOptions(**options))
    assert isinstance(motion, ArticulationMotion)
    return motion


def check(motion, target, demo: Demo, world: int = 0, rows: slice = slice(None)):
    """The poses of the robot's bodies are those that MuJoCo computed from all coordinates."""
    frames = range(len(demo.joints[rows]))
    poses = motion.read(frames)[:, world]
    compared = 0
    for k, body in enumerate(target.model.bodies.path):
        name = body.rsplit("/", 1)[-1]
        if name != "puck":
            check_poses(poses[:, k], demo.poses[name][rows], 1e-5)
            compared += 1
    assert compared > 2


def names_in(target, names: tuple[str, ...]) -> tuple[str, ...]:
    """The joints as the scene names them: MJCF has a suffix for each axis."""
    known = coordinates_of_scene(target.articulated("m.pkl"))
    last = [last_element(name) for name in known]
    return tuple(next(one for one in last if one.startswith(name)) for name in names)


def permuted(demo: Demo) -> tuple[np.ndarray, tuple[str, ...]]:
    """Another order of the joints, by which no joint keeps its column."""
    order = np.roll(np.arange(len(demo.names)), 1)
    return order, tuple(demo.names[column] for column in order)


@pytest.mark.parametrize("scene", ["usd", "mjcf"])
def test_gmr(tmp_path, twins, demo, scene):
    target = target_of(getattr(twins, scene))
    own = names_in(target, demo.names)
    path = saved(tmp_path / "m.pkl", gmr(demo))
    assert kind_of(path).NAME == "humanoid-motion"
    about = open_recording(path).describe()
    assert (about.frames, about.quaternion_order, about.needs) == (
        FRAMES,
        "xyzw",
        ("--joint-names",),
    )
    motion = moved(path, target, joint_names=own)
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) / RATE)
    check(motion, target, demo)
    order, names = permuted(demo)
    path = saved(tmp_path / "p.pkl", gmr(demo) | {"dof_pos": demo.joints[:, order]})
    check(moved(path, target, joint_names=names_in(target, names)), target, demo)
    with pytest.raises(AssertionError):
        check(moved(path, target, joint_names=own), target, demo)


def test_gmr_needs_names(tmp_path, demo, target):
    path = saved(tmp_path / "m.pkl", gmr(demo))
    count = len(demo.names)
    with pytest.raises(InputError, match=f"{count} joints are recorded, and no names are given"):
        moved(path, target)
    with pytest.raises(InputError, match=f"{count} joints are recorded, and {count - 1} names"):
        moved(path, target, joint_names=demo.names[1:])


def test_the_order_is_known_of_gmr_alone(tmp_path, demo, target):
    """Others save the same three arrays, and either order."""
    value = gmr(demo)
    del value["local_body_pos"]
    path = saved(tmp_path / "m.pkl", value)
    assert "--quaternion-order" in open_recording(path).describe().needs
    with pytest.raises(InputError, match="order of its quaternions"):
        moved(path, target, joint_names=demo.names)
    check(moved(path, target, joint_names=demo.names, quaternion_order="xyzw"), target, demo)
    value["root_rot"] = value["root_rot"][:, [3, 0, 1, 2]]
    path = saved(tmp_path / "w.pkl", value)
    check(moved(path, target, joint_names=demo.names, quaternion_order="wxyz"), target, demo)


def test_gmr_of_any_length(tmp_path, demo):
    """The names of the last arrays are after megabytes of data."""
    value = gmr(demo)
    for name in ("root_pos", "root_rot", "dof_pos"):
        value[name] = np.tile(value[name], (3000, 1))
    path = saved(tmp_path / "m.pkl", value)
    assert path.stat().st_size > 1 << 20
    assert open_recording(path).describe().frames == 3000 * FRAMES


@pytest.mark.parametrize("scene", ["usd", "mjcf"])
def test_phc(tmp_path, twins, demo, scene):
    """Each motion is a world; --demos selects by name."""
    target = target_of(getattr(twins, scene), 2)
    own = names_in(target, demo.names)
    first = slice(0, 5)
    last = slice(4, 9)
    value = {"0-walk/a": phc(demo, first), "1-run": phc(demo, last)}
    path = saved(tmp_path / "m.pkl", value)
    assert kind_of(path).NAME == "retargeted-motions"
    about = open_recording(path).describe()
    assert (about.frames, about.worlds, about.quaternion_order) == (5, 2, "xyzw")
    assert about.needs == ("--joint-names",)
    motion = moved(path, target, joint_names=own)
    np.testing.assert_allclose(motion.time, np.arange(5) / RATE)
    check(motion, target, demo, 0, first)
    check(motion, target, demo, 1, last)
    one = target_of(getattr(twins, scene))
    chosen = moved(path, one, joint_names=own, demos=("1-run",))
    check(chosen, one, demo, 0, last)


def test_phc_of_other_forms(tmp_path, demo, target):
    """The only motion without a name, joints of one axis more, a rate in an array, columns of
    another order, names in the file."""
    order, names = permuted(demo)
    value = phc(demo)
    value["dof"] = value["dof"][:, order, None]
    value["fps"] = np.array([RATE])
    path = saved(tmp_path / "m.pkl", value)
    assert open_recording(path).demos(RecordingOptions()) == ("motion",)
    motion = moved(path, target, joint_names=names)
    check(motion, target, demo)
    assert motion.episodes is None
    path = saved(tmp_path / "n.pkl", {"motion": value | {"joint_names": list(names)}})
    motion = moved(path, target)
    check(motion, target, demo)
    assert motion.episodes is not None
    assert motion.episodes.name == ("motion",)
    with pytest.raises(InputError, match="other names"):
        moved(path, target, joint_names=demo.names)
    path = saved(tmp_path / "g.pkl", {"a": gmr(demo)})
    assert kind_of(path).NAME == "retargeted-motions"
    check(moved(path, target, joint_names=demo.names), target, demo)


def without(name):
    return lambda motion: {key: value for key, value in motion.items() if key != name}


def changed(name, change):
    return lambda motion: motion | {name: change(motion[name])}


REFUSED = {
    "frames of the root": (changed("root_rot", lambda array: array[1:]), "8 frames, and the"),
    "joints of one frame": (changed("dof", lambda array: array[0]), r"not floats \[frames"),
    "joints of text": (changed("dof", lambda array: array.astype("U5")), "not floats"),
    "root of two numbers": (changed("root_trans_offset", lambda array: array[:, :2]), "frames, 3"),
    "no frames": (
        lambda motion: (
            motion | {key: motion[key][:0] for key in ("dof", "root_rot", "root_trans_offset")}
        ),
        "no frames",
    ),
    "rate of two": (changed("fps", lambda rate: np.array([rate, rate])), "not one number"),
    "no rate": (without("fps"), "contains no times"),
    "rate of zero": (changed("fps", lambda rate: 0), "above zero"),
    "not finite": (changed("dof", lambda array: array * np.nan), "nan|finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, demo, target, name):
    change, reason = REFUSED[name]
    path = saved(tmp_path / "m.pkl", {"a": change(phc(demo))})
    with pytest.raises(InputError, match=reason):
        moved(path, target, joint_names=demo.names).read(range(1))


def test_motions_that_differ(tmp_path, twins, demo):
    target = target_of(twins.usd, 2)
    names = demo.names
    path = saved(tmp_path / "m.pkl", {"a": phc(demo), "b": phc(demo) | {"fps": 50}})
    assert "--demos, or --fps: their rates differ" in open_recording(path).describe().needs
    with pytest.raises(InputError, match="different rates: a 30, b 50"):
        moved(path, target, joint_names=names)
    np.testing.assert_allclose(moved(path, target, joint_names=names, fps=10.0).time[1], 0.1)
    path = saved(tmp_path / "u.pkl", {"a": phc(demo), "b": phc(demo, slice(3))})
    with pytest.raises(InputError, match="3 to 9 frames"):
        moved(path, target, joint_names=names)
    cut = moved(path, target, joint_names=names, uneven_demos="cut")
    assert len(cut.time) == 3
    held = moved(path, target, joint_names=names, uneven_demos="hold")
    assert len(held.time) == 9
    with pytest.raises(InputError, match="there is no demonstration 'c'"):
        moved(path, target, joint_names=names, demos=("c",))


def test_arrays_of_a_pickle_by_name(tmp_path, demo, target):
    """With --state, --root and --time a pickle is a file of arrays, as npz is."""
    order, names = permuted(demo)
    value = {
        "log": {
            "measured": {"q": demo.joints[:, order], "root": demo.root},
            "command": demo.joints,
        },
        "clock": np.arange(FRAMES) * 0.02,
    }
    path = saved(tmp_path / "m.pkl", value)
    with pytest.raises(InputError, match=r"--state, of log/measured/q float64\[9"):
        moved(path, target, joint_names=names)
    motion = moved(
        path,
        target,
        state="log/measured/q",
        root="log/measured/root",
        time="clock",
        joint_names=names,
        quaternion_order="xyzw",
    )
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) * 0.02)
    check(motion, target, demo)
