"""Motion files of humanoid trackers and LeRobot data sets over a robot in USD and in MJCF."""

import json
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import ArticulationMotion
from collidecli.importers.recordings.files import recording_files
from collidecli.importers.recordings.humanoid import BodyPoseMotion
from collidecli.importers.recordings.kinds import kind_of, open_motion, open_recording
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.scene.options import RecordingOptions
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.batch.episode_worker import work_shard
from collidecli.verbs.batch.plan import read_plan
from collidecli.verbs.batch.store import Store, open_store
from tests.support.twin_robots import ROBOT, Demo, check_poses, target_of, write_twins
from tests.support.twin_robots import stepped_demo as stepped

FRAMES = 9
WXYZ = [0, 1, 2, 6, 3, 4, 5]


@pytest.fixture
def twins(tmp_path):
    return write_twins(tmp_path, ROBOT, seed=4)


@pytest.fixture
def demo(twins):
    return stepped(twins, FRAMES)


@pytest.fixture
def target(twins):
    return target_of(twins.usd)


def body_arrays(demo: Demo, order: str = "wxyz", names: bool = True) -> dict:
    """As trackers of Isaac Lab 2 save them; robots only, as there, and the root first."""
    bodies = [name for name in demo.poses if name != "puck"]
    poses = np.stack([demo.poses[name] for name in bodies], axis=1).astype(np.float32)
    poses = poses[..., WXYZ] if order == "wxyz" else poses
    out = {"fps": np.array([50]), "body_pos_w": poses[..., :3], "body_quat_w": poses[..., 3:]}
    out |= {"joint_pos": demo.joints.astype(np.float32), "joint_vel": np.zeros_like(demo.joints)}
    return out | ({"body_names": np.array(bodies)} if names else {})


def root_arrays(demo: Demo) -> dict:
    """As retargeters from AMASS save them."""
    joints = {"dof_pos": demo.joints, "dof_names": np.array(demo.names)}
    return {"fps": 50.0, "root_pos": demo.root[:, :3], "root_rot": demo.root[:, 3:]} | joints


def csv_rows(demo: Demo) -> np.ndarray:
    """As LAFAN1 is retargeted by Unitree: 3 + 4 + n numbers a row, quaternions xyzw."""
    return np.concatenate([demo.root, demo.joints], axis=1)


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def csv(path, rows, header=""):
    np.savetxt(path, rows, delimiter=",", fmt="%.9f", header=header, comments="")
    return path


def opened(path, target, **options):
    assert kind_of(path).NAME == "humanoid-motion"
    motion = open_motion(open_recording(path), target, RecordingOptions(**options))
    assert isinstance(motion, (ArticulationMotion, BodyPoseMotion))
    return motion


def check(motion, target, demo: Demo, tolerance=1e-6, rate=50.0):
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) / rate)
    poses = motion.read(range(FRAMES))[:, 0]
    for k, body in enumerate(target.model.bodies.path):
        name = body.rsplit("/", 1)[-1]
        truth = (
            demo.poses[name]
            if name != "puck"
            else np.tile(target.model.bodies.pose[k], (FRAMES, 1))
        )
        check_poses(poses[:, k], truth, tolerance)
    np.testing.assert_array_equal(motion.read(range(1, 8, 3)), motion.read(range(FRAMES))[1:8:3])
    assert len(motion.warnings) >= 1
    assert "'/World/puck'" in motion.warnings[-1] or "'puck'" in motion.warnings[-1]


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
@pytest.mark.parametrize("scene", ["usd", "mjcf"])
def test_poses_of_bodies(tmp_path, twins, demo, scene, order):
    target = target_of(getattr(twins, scene))
    path = npz(tmp_path / "m.npz", **body_arrays(demo, order))
    check(opened(path, target, quaternion_order=order), target, demo)
    facts = open_recording(path).describe()
    assert (facts.frames, facts.worlds, facts.bodies[0]) == (FRAMES, 1, "base")
    assert facts.needs == ("--quaternion-order",)
    assert facts.end == pytest.approx((FRAMES - 1) / 50.0)


def test_the_file_says_its_order(tmp_path, demo, target):
    path = npz(tmp_path / "m.npz", **body_arrays(demo), quaternion_order="wxyz")
    check(opened(path, target), target, demo)
    arrays = root_arrays(demo)
    arrays["root_quat_xyzw"] = arrays.pop("root_rot")
    check(opened(npz(tmp_path / "r.npz", **arrays), target), target, demo)


def test_bodies_without_names(tmp_path, demo, target):
    """Named by an option, or by joints: the first body is then the root."""
    path = npz(tmp_path / "m.npz", **body_arrays(demo, names=False))
    names = tuple(name for name in demo.poses if name != "puck")
    check(opened(path, target, quaternion_order="wxyz", body_names=names), target, demo)
    motion = opened(path, target, quaternion_order="wxyz", joint_names=demo.names)
    check(motion, target, demo)
    assert "the first is taken as the root" in motion.warnings[0]
    with pytest.raises(
        InputError,
        match=r"5 bodies are recorded, and no names are given\n +give --body-names in the",
    ):
        opened(path, target, quaternion_order="wxyz")


def test_bodies_that_the_scene_lacks_are_left_out(tmp_path, demo, target):
    """As MuJoCo's world and frames of sensors in published motions."""
    arrays = body_arrays(demo)
    joints = root_arrays(demo)
    ends = np.zeros((FRAMES, 1, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, 1, 1))
    for key, end in zip(("body_pos_w", "body_quat_w"), ends, strict=True):
        arrays[key] = np.concatenate([end, arrays[key], end], axis=1)
    arrays["body_names"] = np.array(["world", *arrays["body_names"], "imu_link"])
    path = npz(tmp_path / "m.npz", **arrays)
    motion = opened(path, target, quaternion_order="wxyz")
    assert motion.warnings[-1] == "2 recorded bodies not in the scene left out: 'world', 'imu_link'"
    motion.warnings = motion.warnings[:-1]
    check(motion, target, demo)
    with pytest.raises(InputError, match="the scene has no body 'world' and 1 more"):
        opened(path, target, quaternion_order="wxyz", strict_bodies=True)
    arrays |= {"joint_pos": joints["dof_pos"] + 0.25, "joint_names": joints["dof_names"]}
    both = npz(tmp_path / "both.npz", **arrays)
    np.testing.assert_array_equal(
        opened(both, target, quaternion_order="wxyz").read(range(3)), motion.read(range(3))
    )
    moved = opened(both, target, quaternion_order="wxyz", prefer="joints")
    assert f"its body {arrays['body_names'][1]} is taken as the root" in moved.warnings[0]
    assert np.abs(moved.read(range(3)) - motion.read(range(3))).max() > 0.01, (
        "the joints are others"
    )


@pytest.mark.parametrize("order", ["xyzw", "wxyz"])
def test_root_and_joints(tmp_path, demo, target, order):
    arrays = root_arrays(demo)
    if order == "wxyz":
        arrays["root_rot"] = arrays["root_rot"][:, [3, 0, 1, 2]]
    path = npz(tmp_path / "m.npz", **arrays)
    check(opened(path, target, quaternion_order=order), target, demo, 1e-9)
    columns = np.concatenate([arrays["root_pos"], arrays["root_rot"], arrays["dof_pos"]], axis=1)
    one = npz(tmp_path / "one.npz", fps=50.0, joint_pos=columns, joint_names=arrays["dof_names"])
    check(opened(one, target, quaternion_order=order), target, demo, 1e-9)


@pytest.mark.parametrize(
    "root",
    [
        "x,y,z,qx,qy,qz,qw",
        "root_pos_x,root_pos_y,root_pos_z,root_quat_x,root_quat_y,root_quat_z,root_quat_w",
    ],
)
def test_csv(tmp_path, demo, target, root):
    path = csv(tmp_path / "m.csv", csv_rows(demo), f"{root},{','.join(demo.names)}")
    check(opened(path, target, fps=30.0), target, demo, 1e-7, 30.0)
    timed = np.concatenate(
        [np.arange(FRAMES)[:, None] / 30.0, csv_rows(demo)[:, WXYZ + list(range(7, 11))]], axis=1
    )
    root = "x,y,z,qw,qx,qy,qz"
    path = csv(tmp_path / "n.csv", timed, f"time,{root},{','.join(demo.names)}")
    np.testing.assert_allclose(
        opened(path, target).read(range(FRAMES))[:, 0, 0], demo.root, atol=1e-7
    )
    assert open_recording(path).describe().needs == ()
    path = csv(tmp_path / "m.csv", csv_rows(demo))
    check(
        opened(path, target, quaternion_order="xyzw", fps=30.0, joint_names=demo.names),
        target,
        demo,
        1e-7,
        30.0,
    )
    assert open_recording(path).describe().needs == ("--quaternion-order", "--fps", "--joint-names")


def change(key, value):
    return lambda arrays: arrays.__setitem__(key, value(arrays) if callable(value) else value)


@pytest.mark.parametrize(
    ("arrays", "change_it", "options", "message"),
    [
        (
            root_arrays,
            None,
            {"quaternion_order": ""},
            r"order of its quaternions\n +give --quaternion-order wxyz or",
        ),
        (root_arrays, change("quaternion_order", "zyxw"), {}, "the quaternion order is 'zyxw'"),
        (
            root_arrays,
            change("quaternion_order", "wxyz"),
            {},
            r"quaternions are wxyz\n +remove --quaternion-order",
        ),
        (root_arrays, lambda a: a.pop("fps"), {}, "contains no times"),
        (root_arrays, change("fps", 0.0), {}, "0 frames per second"),
        (
            root_arrays,
            change("fps", np.arange(3)),
            {},
            r"m.npz: fps: is int64\[3\], not one number",
        ),
        (
            root_arrays,
            lambda a: a.pop("dof_names"),
            {},
            "4 joints are recorded, and no names are given",
        ),
        (
            root_arrays,
            change("dof_names", np.array(["a", "b", "c", "d"])),
            {},
            "has no joint 'a', 'b', 'c', 'd'",
        ),
        (
            root_arrays,
            change("dof_names", np.zeros(4)),
            {},
            r"m.npz: dof_names: is float64\[4\], not names",
        ),
        (root_arrays, None, {"joint_names": ("a",)}, "remove --joint-names"),
        (
            root_arrays,
            change("dof_pos", lambda a: a["dof_pos"][:-1]),
            {},
            "different numbers of frames: root_pos 9",
        ),
        (
            root_arrays,
            change("root_rot", lambda a: a["root_rot"][:, :3]),
            {},
            r"root_rot: is float64\[9, 3\], not fl",
        ),
        (
            root_arrays,
            change("root_pos", np.zeros((9, 3), int)),
            {},
            r"root_pos: is int64\[9, 3\], not floats",
        ),
        (root_arrays, change("root_pos", np.array([[None] * 3] * 9)), {}, "one row of values"),
        (
            body_arrays,
            change("body_names", np.array(list("abcde"))),
            {},
            "the scene has no body 'a' and 4 more",
        ),
        (
            body_arrays,
            change("body_quat_w", lambda a: a["body_quat_w"][:, :2]),
            {},
            "of different numbers of bodies",
        ),
    ],
)
def test_refusals_of_arrays(tmp_path, twins, arrays, change_it, options, message):
    held = arrays(stepped(twins, FRAMES))
    if change_it is not None:
        change_it(held)
    path = npz(tmp_path / "m.npz", **held)
    with pytest.raises(InputError, match=message):
        opened(path, target_of(twins.usd), **{"quaternion_order": "xyzw", **options})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3,0,0,0,1\n1,2,3\n", "the rows cannot be read"),
        ("1,2,3,0,0,0,1\n1,2,x,0,0,0,1\n", "the rows cannot be read: could not convert string 'x'"),
        ("x,y,z,qx,qy,qz,qw\n", "has no frames"),
        (
            "x,y,z,qw,qx,qy,qz\n1,2,3,1,0,0,0\n",
            r"quaternions are wxyz\n +remove --quaternion-order",
        ),
        ("1,2,3,0,0,0,1,7\n", "1 joints are recorded, and no names are given"),
    ],
)
def test_faults_of_a_text_are_refused(tmp_path, twins, text, message):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        opened(tmp_path / "m.csv", target_of(twins.usd), quaternion_order="xyzw", fps=30.0)


def test_a_text_that_is_no_motion_is_refused(tmp_path):
    for other in ("a,b,c,d,e,f,g\nThis is a text.\n", "Dear all,\nno table\n", "x\n1\n"):
        (tmp_path / "m.csv").write_text(other)
        with pytest.raises(InputError, match="not a recording of a known kind"):
            kind_of(tmp_path / "m.csv")


@pytest.mark.parametrize(
    ("key", "place", "factor", "message"),
    [
        (
            "dof_pos",
            (3, 2),
            np.nan,
            r"dof_pos, frame 3, world 0: the coordinate of joint 'elbow_joint' is nan",
        ),
        (
            "root_rot",
            (5, slice(None)),
            1.2,
            "root_pos, frame 5, world 0, body '/World/robot/base': .* norm 1.2",
        ),
        (
            "root_pos",
            (2, 1),
            np.inf,
            "root_pos, frame 2, world 0, body '/World/robot/base': the pose is not finite",
        ),
        (
            "body_quat_w",
            (4, 2),
            1.01,
            "body_pos_w, frame 4, world 0, body '/World/robot/elbow': .* norm 1.01",
        ),
    ],
)
def test_bad_cells_are_named(tmp_path, demo, target, key, place, factor, message):
    arrays = body_arrays(demo) if key == "body_quat_w" else root_arrays(demo)
    arrays[key] = np.array(arrays[key])
    arrays[key][place] *= factor
    order = "wxyz" if key == "body_quat_w" else "xyzw"
    with pytest.raises(InputError, match=f"m.npz: {message}"):
        opened(npz(tmp_path / "m.npz", **arrays), target, quaternion_order=order).read(
            range(FRAMES)
        )


# LeRobot data sets: body poses of recorded joint positions, episodes by name, and what is refused.

ARM = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 0.1"/>
    <body name="upper" pos="0 0 0.5">
      <joint name="shoulder" type="hinge" axis="0 1 0"/>
      <geom name="upper" type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" type="hinge" axis="0 1 0"/>
        <geom name="tip" type="sphere" pos="0.3 0 0" size="0.05"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
LENGTHS = (6, 4, 5)


def states() -> list[np.ndarray]:
    """Shoulder and elbow of each episode [rad]; the tip approaches the floor."""
    return [np.linspace((0.3, 0.1 * k), (0.9, 0.2), length) for k, length in enumerate(LENGTHS)]


def write_data_set(
    root: Path, names: object = ("shoulder", "elbow"), version: str = "v3.0", **feature
) -> None:
    """A data set of two data files, as lerobot writes it."""
    (root / "meta/episodes/chunk-000").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    described = {
        "dtype": "float32",
        "shape": [2],
        "names": list(names) if isinstance(names, tuple) else names,
    }
    info = {
        "codebase_version": version,
        "fps": 10,
        "features": {"observation.state": described | feature},
    }
    (root / "meta/info.json").write_text(json.dumps(info, indent=4))
    table = pyarrow.table({"episode_index": range(3), "length": LENGTHS})
    parquet.write_table(table, root / "meta/episodes/chunk-000/file-000.parquet")
    for file, episodes in enumerate(((0, 1), (2,))):
        parts = [states()[k].astype(np.float32) for k in episodes]
        flat = pyarrow.array(np.concatenate(parts).reshape(-1))
        columns = {
            "observation.state": pyarrow.FixedSizeListArray.from_arrays(flat, 2),
            "episode_index": np.repeat(episodes, [len(part) for part in parts]),
            "frame_index": np.concatenate([np.arange(len(part)) for part in parts]),
        }
        parquet.write_table(
            pyarrow.table(columns), root / f"data/chunk-000/file-{file:03d}.parquet"
        )


@pytest.fixture
def data_set(here: Path) -> Path:
    """The current folder with arm.xml and the data set `arm`."""
    (here / "arm.xml").write_text(ARM)
    write_data_set(here / "arm")
    return here


def test_the_files_of_a_data_set_are_its_states_with_its_episodes(data_set):
    info = data_set / "arm" / "meta" / "info.json"
    assert [
        Path(file).relative_to(data_set / "arm").as_posix() for file in recording_files(info)
    ] == [
        "meta/info.json",
        "data/chunk-000/file-000.parquet",
        "data/chunk-000/file-001.parquet",
        "meta/episodes/chunk-000/file-000.parquet",
    ]


def write_version_2(root: Path) -> None:
    """A data set of version 2.1: a file and a line of JSON for each episode; two features of the
    state, and the commands."""
    (root / "meta").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    described = {"dtype": "float32", "shape": [2], "names": {"motors": ["shoulder", "elbow"]}}
    names = ("observation.state.position", "observation.state.other", "action")
    info = {"codebase_version": "v2.1", "fps": 10, "features": dict.fromkeys(names, described)}
    (root / "meta/info.json").write_text(json.dumps(info))
    lines = [{"episode_index": k, "length": n, "tasks": []} for k, n in enumerate(LENGTHS)]
    (root / "meta/episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for k, state in enumerate(states()):
        rows = {name: list(np.float32(state + 0.1 * j)) for j, name in enumerate(names)}
        rows |= {"episode_index": np.full(len(state), k), "frame_index": np.arange(len(state))}
        file = root / f"data/chunk-000/episode_{k:06d}.parquet"
        parquet.write_table(pyarrow.table(rows), file)


@pytest.mark.parametrize(
    ("state", "shift"),
    [("observation.state.position", 0.0), ("observation.state.other", 0.1), ("action", 0.2)],
)
def test_version_2_and_any_of_its_states(data_set, state, shift):
    shutil.rmtree("arm")
    write_version_2(Path("arm"))
    options = RecordingOptions(state=state, demos=("episode_2",))
    request = SceneRequest(scenes=["arm.xml"], trajectory="arm/meta/info.json", recording=options)
    scene, motion = scene_in_motion(request)
    poses = motion.read(range(LENGTHS[2]))
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    lower = list(scene.model.bodies.path).index("lower")
    for frame, row in enumerate(np.float32(states()[2] + shift)):
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(poses[frame, 0, lower, :3], data.body("lower").xpos, atol=1e-7)


def test_several_states_of_a_data_set_are_asked_for(data_set, collide):
    shutil.rmtree("arm")
    write_version_2(Path("arm"))
    told = (
        "has no feature observation.state",
        "--state",
        "'observation.state.position'",
        "'action'",
    )
    collide.refused(*RUN, told=told)
    Path("arm/meta/episodes.jsonl").write_text('{"episode_index": 0}')
    collide.refused(*RUN, "--state", "action", told="episodes.jsonl, line 1")


def tip_heights(states: np.ndarray) -> list[float]:
    """Distance of the tip's surface to the floor in each frame [m], by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    found = []
    for row in np.float32(states):
        data.qpos[:] = row
        mujoco.mj_kinematics(model, data)
        found.append(float(data.geom("tip").xpos[2]) - 0.05)
    return found


RUN = (
    "run",
    "arm.xml",
    "-t",
    "arm/meta/info.json",
    "--gap",
    "0.5",
    "--device",
    "cpu",
    "-o",
    "out.h5",
)
RUN_OTHER = tuple(word.replace("arm/meta", "other/meta") for word in RUN)


def test_an_episode_moves_the_joints_of_its_states(data_set, collide):
    answer = collide.ok("inspect", "arm/meta/info.json")
    assert ("episode_0" in answer.out, "shoulder" in answer.out) == (True, True)
    for number, expected in enumerate(states()):
        collide.ok(*RUN, "--demos", f"episode_{number}", "--force")
        with ContactSet.open("out.h5") as contacts:
            np.testing.assert_allclose(contacts.time, np.arange(len(expected)) / 10.0)
            for frame, height in enumerate(tip_heights(expected)):
                cell = contacts.cell(frame)
                of_tip = [
                    "tip" in contacts.shapes.path[a] + contacts.shapes.path[b]
                    for a, b in zip(cell.shape0, cell.shape1, strict=True)
                ]
                assert height >= 0.5 or min(cell.distance[of_tip]) == pytest.approx(
                    height, abs=1e-6
                )


@pytest.mark.parametrize("elbow", ["hinge", "slide"])
def test_angles_in_degrees(data_set, collide, monkeypatch, elbow):
    Path("arm.xml").write_text(
        ARM.replace('name="elbow" type="hinge"', f'name="elbow" type="{elbow}"')
    )
    factor = np.degrees((1.0, 1.0 if elbow == "hinge" else np.radians(1.0)))
    in_radians = states()
    distances = []
    for units, recorded in (
        ("radians", in_radians),
        ("degrees", [one * factor for one in in_radians]),
    ):
        monkeypatch.setitem(globals(), "states", lambda recorded=recorded: recorded)
        shutil.rmtree("arm")
        write_data_set(Path("arm"))
        collide.ok(*RUN, "--uneven-demos", "hold", "--joint-units", units, "--force")
        with ContactSet.open("out.h5") as contacts:
            distances.append(np.concatenate([block.distance for block in contacts.blocks()]))
    np.testing.assert_allclose(distances[1], distances[0], atol=1e-6)
    assert len(distances[0]) > 3


@pytest.mark.rest
def test_a_batch_numbers_episodes_as_the_data_set_does(data_set, collide):
    job = (
        '[[job]]\nname = "arm"\nscene = "arm.xml"\nmotion = ["arm"]\noptions = { gap = 0.5, device'
        ' = "cpu" }\n'
    )

    def planned(text, folder):
        Path("jobs.toml").write_text(text)
        collide.ok("batch plan jobs.toml -o", folder)
        return read_plan(Store(folder))

    def gathered(folder, *words):
        for shard in range(read_plan(Store(folder)).shard_count):
            work_shard(folder, shard)
        assert not open_store(folder).failures()
        collide.ok("batch gather", folder, "-o", f"{folder}.out", *words)
        return Path(f"{folder}.out")

    plan = planned(job, "B")
    assert {one.demo for one in plan.episodes} == {"episode_0", "episode_1", "episode_2"}
    rows = (
        gathered("B", "--to", "lerobot", "--pairs", "*tip *floor")
        / "data/chunk-000/file-000.parquet"
    )
    rows, source = (parquet.read_table(path).to_pandas() for path in (rows, "arm/data"))
    for name in ("episode_index", "frame_index"):
        assert rows[name].tolist() == source[name].tolist()
    heights = np.concatenate([tip_heights(one) for one in states()])
    assert rows["original_episode_index"].tolist() == source["episode_index"].tolist()
    near = rows["contact.pair_valid"]
    np.testing.assert_allclose(rows["contact.pair_distance"][near], heights[near], atol=1e-6)
    assert near.any()
    planned(job.replace("gap", "demos = 'episode_2', gap"), "S")
    episodes = gathered("S", "--to", "parquet") / "episodes.parquet"
    assert parquet.read_table(episodes)["episode_index"].to_pylist() == [2]
    planned(job + job.replace('"arm"\nscene', '"again"\nscene').replace("0.5", "0.4"), "T")
    rows = parquet.read_table(gathered("T", "--to", "lerobot") / "data/chunk-000/file-000.parquet")
    assert set(rows["original_episode_index"].to_pylist()) == set(range(6))
    # The key of an episode depends on the states, not on info.json alone.
    changed = parquet.read_table("arm/data/chunk-000/file-001.parquet")
    column = pyarrow.FixedSizeListArray.from_arrays(
        pyarrow.array(np.zeros(2 * len(changed), np.float32)), 2
    )
    parquet.write_table(
        changed.set_column(0, "observation.state", column), "arm/data/chunk-000/file-001.parquet"
    )
    assert not {one.key for one in plan.episodes} & {one.key for one in planned(job, "C").episodes}


@pytest.mark.parametrize(
    ("changes", "words", "said"),
    [
        ({"version": "v1.6"}, (), "has version v1.6"),
        ({"names": None}, (), "no names are given"),
        ({"names": ("shoulder", "wrist")}, (), "has no joint 'wrist'"),
        ({"dtype": "video"}, (), "observation.state is video"),
        ({"shape": [2, 3]}, (), "not floats [joints]"),
        ({}, ("--demos", "episode_7"), "episode_7"),
        ({}, (), "have 4 to 6 frames"),
    ],
)
def test_data_sets_that_do_not_fit_are_refused(data_set, collide, changes, words, said):
    words = words or (("--demos", "episode_0") if changes else ())
    write_data_set(data_set / "other", **changes)
    assert said in collide.refused(*RUN_OTHER, *words)
    assert not Path("out.h5").exists()


def test_joints_of_a_driver_may_be_scaled_or_named(data_set, collide):
    """Of SO-101 and others: `elbow.pos` in -100 to 100."""
    write_data_set(data_set / "other", names={"motors": ["shoulder.pos", "elbow.pos"]})
    write_data_set(data_set / "named", names={"motors": ["m0", "m1"]})
    one = ("--demos", "episode_0", "--force")
    named = [word.replace("other", "named") for word in RUN_OTHER]
    wanted = collide.result(*RUN, *one)["contacts"]
    assert collide.result(*RUN_OTHER, *one, "--joint-scale", "elbow=1:0")["contacts"] == wanted > 0
    assert collide.result(*named, *one, "--joint-names", "shoulder,elbow")["contacts"] == wanted
    assert collide.result(*RUN_OTHER, *one, "--joint-scale", "shoulder=0:-1.5")["contacts"] < wanted
    for scale, told in (
        ("wrist=2", "no joint 'wrist' is recorded"),
        ("elbow=fast", "'elbow=fast' is no scale"),
    ):
        collide.refused(*RUN_OTHER, *one, "--joint-scale", scale, told=told)
    collide.refused(*named, *one, told="--joint-names names the recorded ones")


@pytest.mark.parametrize(
    "file", ["data/chunk-000/file-000.parquet", "meta/episodes/chunk-000/file-000.parquet"]
)
def test_damaged_files_are_named(data_set, collide, file):
    path = Path("arm", file)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    for change, said in ((lambda: None, path.name), (path.unlink, "arm")):
        change()
        assert said in collide.refused(*RUN, "--demos", "episode_0")
    write_data_set(data_set / "other")
    frames = "other/data/chunk-000/file-000.parquet"
    parquet.write_table(parquet.read_table(frames).slice(1), frames)
    assert "episode_0 has 5 rows" in collide.refused(*RUN_OTHER, "--demos", "episode_0")
    for text in ("{", "{}", '{"codebase_version": 1, "features": 2, "fps": "x"}', "{" * 9999):
        Path("other/meta/info.json").write_text(text)
        assert "other/meta/info.json: is no description" in collide.refused(*RUN_OTHER)


def test_poses_of_the_root_and_of_another_body_beside_joints(tmp_path, demo, target):
    puck = demo.root[::-1]
    poses = np.stack([puck, demo.root], axis=1)
    arrays = {"body_pos_w": poses[..., :3], "body_quat_w": poses[..., 3:]}
    arrays |= {"body_names": np.array(["puck", "base"]), "fps": 50.0}
    arrays |= {"joint_pos": demo.joints, "joint_names": np.array(demo.names)}
    motion = opened(npz(tmp_path / "m.npz", **arrays), target, quaternion_order="xyzw")
    found = motion.read(range(FRAMES))[:, 0]
    for k, body in enumerate(target.model.bodies.path):
        name = body.rsplit("/", 1)[-1]
        check_poses(found[:, k], puck if name == "puck" else demo.poses[name], 1e-6)
