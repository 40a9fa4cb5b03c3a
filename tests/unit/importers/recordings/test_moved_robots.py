"""Columns of one recording move the joints of several articulations, against MuJoCo.

The test computes the coordinates itself, with the polynomials of followers, and `mj_kinematics` the
poses.
"""

import csv
from dataclasses import dataclass, field
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import ArticulationMotion
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.scene.options import RecordingOptions
from tests.unit.engine.runtime.test_chunk_counts import as_device  # noqa: F401
from tests.unit.importers.recordings.test_alike_articulations import device_poses

FRAMES = 5
EXACT = 1e-12
"""Rounding of products of tens of poses of lengths below 3."""
KINDS = ("hinge", "slide", "ball")


@dataclass
class Joint:
    """name: whole. short: its last element. owner: root body of its robot."""

    name: str
    short: str
    owner: str
    kind: str
    leader: str = ""
    polynomial: tuple[float, ...] = ()


@dataclass
class Scene:
    """roots: root bodies. free: free joint of those that have one, by root body."""

    roots: list[str] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    free: dict[str, str] = field(default_factory=dict)
    xml: str = ""


def drawn_scene(rng: np.random.Generator) -> Scene:
    """Two to four robots on bases of their own, some free, whose joints have names of one scheme:
    `arm0/j1` beside `arm1/j1`, or names that no other joint has; and followers, in one robot or
    across two."""
    scene = Scene()
    bodies = ""
    for robot in range(int(rng.integers(2, 5))):
        repeated = rng.random() < 0.6
        root = f"arm{robot}/base" if repeated else f"machine{robot}"
        scene.roots.append(root)
        below = ""
        for number in reversed(range(int(rng.integers(1, 5)))):
            kind = str(rng.choice(KINDS, p=(0.6, 0.25, 0.15)))
            short = f"j{number}" if repeated else f"only{robot}{number}"
            name = f"arm{robot}/{short}" if repeated else short
            scene.joints.append(Joint(name, short, root, kind))
            axis = "" if kind == "ball" else f' axis="{numbers(rng.normal(size=3))}"'
            ref = "" if kind == "ball" else f' ref="{rng.uniform(-0.3, 0.3):.3f}"'
            below = (
                f'<body name="{root}_{number}" {placed(rng)}>'
                f'<joint name="{name}" type="{kind}"{axis}{ref}'
                f' pos="{numbers(rng.uniform(-0.2, 0.2, 3))}"/>'
                f'<geom size="0.03"/>{below}</body>'
            )
        is_free = rng.random() < 0.3
        if is_free:
            scene.free[root] = f"{root}_free"
        free = f'<freejoint name="{root}_free"/>' if is_free else ""
        bodies += f'<body name="{root}" {placed(rng)}>{free}<geom size="0.05"/>{below}</body>'
    bodies += '<body name="crate" pos="0 0 5"><freejoint/><geom size="0.1"/></body>'
    scene.xml = (
        f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody>'
        f"<equality>{coupled(scene, rng)}</equality></mujoco>"
    )
    return scene


def coupled(scene: Scene, rng: np.random.Generator) -> str:
    """Up to two joints follow earlier ones of any robot."""
    single = [joint for joint in scene.joints if joint.kind != "ball"]
    text = ""
    for _ in range(2):
        if len(single) < 3:
            return text
        leader, follower = (single.pop(int(rng.integers(len(single)))) for _ in range(2))
        follower.leader = leader.name
        follower.polynomial = tuple(rng.uniform(-0.5, 0.5, 5).round(3).tolist())
        text += (
            f'<joint joint1="{follower.name}" joint2="{leader.name}"'
            f' polycoef="{numbers(follower.polynomial)}"/>'
        )
    return text


def numbers(values) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def placed(rng: np.random.Generator) -> str:
    return f'pos="{numbers(rng.uniform(-0.5, 0.5, 3))}" quat="{numbers(rng.normal(size=4))}"'


def column_name(joint: Joint, scene: Scene, rng: np.random.Generator) -> str:
    """The whole name, `<articulation>/<joint>`, or the last element where no other joint has it."""
    names = [joint.name, f"{joint.owner}/{joint.short}", f"{joint.owner}/{joint.name}"]
    if sum(other.short == joint.short for other in scene.joints) == 1:
        names.append(joint.short)
    return str(rng.choice(names))


def drawn_columns(scene: Scene, rng: np.random.Generator):
    """Positions of a random subset of the joints, in random order, by column name; and the poses
    x y z qx qy qz qw of some free roots. Both with MuJoCo's coordinates float64[F, nq]."""
    model = mujoco.MjModel.from_xml_string(scene.xml)
    qpos = np.tile(model.qpos0, (FRAMES, 1))
    chosen = [joint for joint in scene.joints if rng.random() < 0.6]
    owners = {joint.owner for joint in chosen}
    for joint in scene.joints:  # two robots at least
        if len(owners) < 2 and joint.owner not in owners:
            chosen.append(joint)
            owners.add(joint.owner)
    rng.shuffle(chosen)
    columns: dict[str, np.ndarray] = {}
    recorded = set()
    for joint in chosen:
        name = column_name(joint, scene, rng)
        start = model.jnt_qposadr[model.joint(joint.name).id]
        recorded.add(joint.name)
        if joint.kind == "ball":
            turns = rng.normal(size=(FRAMES, 4))
            turns /= np.linalg.norm(turns, axis=1, keepdims=True)
            columns |= {f"{name}:{axis}": turns[:, k] for k, axis in enumerate("xyzw")}
            qpos[:, start : start + 4] = turns[:, [3, 0, 1, 2]]
        else:
            columns[name] = rng.uniform(-1.0, 1.0, FRAMES)
            qpos[:, start] = columns[name]
    follow(scene, recorded, model, qpos)
    poses = {}
    for root, free in scene.free.items():
        if root in owners and rng.random() < 0.6:
            pose = rng.normal(size=(FRAMES, 7))
            pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
            start = model.jnt_qposadr[model.joint(free).id]
            qpos[:, start : start + 7] = pose[:, [0, 1, 2, 6, 3, 4, 5]]
            poses[root] = pose
    return columns, poses, expected_poses(model, qpos)


def follow(scene: Scene, recorded: set[str], model: mujoco.MjModel, qpos: np.ndarray) -> None:
    """Sets the coordinates of joints that follow recorded ones and are not recorded."""
    for joint in scene.joints:
        if joint.leader in recorded and joint.name not in recorded:
            at, leader = (
                model.jnt_qposadr[model.joint(name).id] for name in (joint.name, joint.leader)
            )
            moved = qpos[:, leader] - model.qpos0[leader]
            qpos[:, at] = model.qpos0[at] + np.polyval(joint.polynomial[::-1], moved)


def expected_poses(model: mujoco.MjModel, qpos: np.ndarray) -> dict[str, np.ndarray]:
    """float64[F, 7] xyzw of each body, by `mj_kinematics`."""
    data = mujoco.MjData(model)
    out = {model.body(body).name: np.empty((FRAMES, 7)) for body in range(1, model.nbody)}
    for frame in range(FRAMES):
        data.qpos[:] = qpos[frame]
        mujoco.mj_kinematics(model, data)
        for name, poses in out.items():
            body = model.body(name).id
            poses[frame] = [*data.xpos[body], *data.xquat[body][[1, 2, 3, 0]]]
    return out


def written(folder, kind: str, columns, poses):
    """A recording of a kind, and the options that it needs."""
    path = folder / f"motion.{kind.removeprefix('qpos.')}"
    times = np.arange(FRAMES) / 10.0
    if kind == "csv":
        table = {"time": times} | columns
        table |= {f"{name}_vel": np.full(FRAMES, 7.0) for name in columns if ":" not in name}
        for root, pose in poses.items():
            titles = ("x", "y", "z", "qx", "qy", "qz", "qw")
            table |= {f"{root}_{title}": pose[:, k] for k, title in enumerate(titles)}
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(table)
            rows.writerows(
                [f"{value:.17g}" for value in row] for row in zip(*table.values(), strict=True)
            )
        return path, RecordingOptions()
    values = np.stack(list(columns.values()), axis=1)
    names = list(columns)
    if kind == "qpos.npz":
        for root, pose in poses.items():
            values = np.concatenate([pose[:, [0, 1, 2, 6, 3, 4, 5]], values], axis=1)
            names = [f"{root}_free", *names]
        np.savez(path, qpos=values, joint_names=names, time=times)
        return path, RecordingOptions()
    arrays = {f"pose{k}": pose for k, pose in enumerate(poses.values())}
    found = tuple(f"{root}=pose{k}" for k, root in enumerate(poses))
    options = RecordingOptions(
        state="q",
        body_from=found,
        quaternion_order="xyzw" if poses else "",
        joint_names=() if kind == "npz" else tuple(names),
    )
    arrays |= {"q": values, "time": times, "qd": values}
    if kind == "npz":
        np.savez(path, joint_names=names, **arrays)
    else:
        with h5py.File(path, "w") as file:
            for name, value in arrays.items():
                file[name] = value
    return path, options


def loaded(scene_path, recording, options):
    request = SceneRequest(scenes=[str(scene_path)], trajectory=str(recording), recording=options)
    return scene_in_motion(request)


def apart(poses, other) -> float:
    """The largest difference of poses, of quaternions up to sign."""
    sign = np.sign((poses[..., 3:] * other[..., 3:]).sum(-1, keepdims=True))
    return np.abs(np.concatenate([poses[..., :3], poses[..., 3:] * sign], -1) - other).max()


@pytest.mark.parametrize("kind", ["csv", "npz", "h5", "qpos.npz"])
@pytest.mark.parametrize("seed", range(12))
def test_poses_are_those_of_mujoco(as_device, tmp_path, seed, kind):  # noqa: F811
    """And a device poses the joints with the bits of the host."""
    rng = np.random.default_rng(seed)
    scene = drawn_scene(rng)
    columns, poses, expected = drawn_columns(scene, rng)
    scene_path = tmp_path / "scene.xml"
    scene_path.write_text(scene.xml)
    recording, options = written(tmp_path, kind, columns, poses)
    model, motion = loaded(scene_path, recording, options)
    found = motion.read(range(FRAMES))
    assert isinstance(motion, ArticulationMotion)
    joints = motion.read_joints(range(FRAMES))
    assert joints is not None
    on_device, unposed = device_poses(joints)
    motion.close()
    assert unposed == 0
    np.testing.assert_array_equal(on_device.view(np.int64), found.view(np.int64))
    for body, path in enumerate(model.model.bodies.path):
        assert apart(found[:, 0, body], expected[path]) < EXACT, path


def arm(name: str, y: float, joints: int = 2, prefix: str = "", free: bool = False) -> str:
    """An arm of hinges about z on links of 0.5 m, at y."""
    below = ""
    for number in reversed(range(1, joints + 1)):
        below = (
            f'<body name="{name}_l{number}" pos="0.5 0 0"><joint name="{prefix}j{number}"/>'
            f'<geom size="0.05"/>{below}</body>'
        )
    root = f'<freejoint name="{name}_free"/>' if free else ""
    return f'<body name="{name}" pos="0 {y} 0">{root}<geom size="0.05"/>{below}</body>'


def write_scene(folder, *arms: str, equality: str = ""):
    path = folder / "scene.xml"
    path.write_text(
        f'<mujoco model="cell"><compiler angle="radian"/><worldbody>{"".join(arms)}</worldbody>'
        f"<equality>{equality}</equality></mujoco>"
    )
    return path


def write_csv(folder, **columns: float):
    """A recording of two frames: 0 and the values."""
    path = folder / "motion.csv"
    names = ["time", *columns]
    rows = [[0.0] * len(names), [1.0, *columns.values()]]
    lines = [",".join(names), *(",".join(map(repr, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def angles(scene_path, recording, **options) -> dict[str, Any]:
    """The angle about z of each body relative to the one before it in the last frame, rounded; of
    those that turn. And the warnings, under ""."""
    model, motion = loaded(scene_path, recording, RecordingOptions(**options))
    poses = motion.read(range(len(motion.time)))[-1, 0]
    motion.close()
    turned: dict[str, Any] = {}
    for path, pose in zip(model.model.bodies.path, poses, strict=True):
        turned[path.rsplit("/", 1)[-1]] = 2.0 * np.arctan2(pose[5], pose[6])
    return turned | {"": motion.warnings}


TWINS = (arm("left", 1.0, prefix="left/"), arm("right", -1.0, prefix="right/"))
DISTINCT = (arm("left", 1.0, prefix="a"), arm("right", -1.0, prefix="b"))


def test_joints_without_a_column_rest_and_are_named(tmp_path):
    scene = write_scene(tmp_path, *DISTINCT, arm("third", 3.0, prefix="c"))
    found = angles(scene, write_csv(tmp_path, bj2=0.25, aj1=0.5))
    assert found["left_l1"] == pytest.approx(0.5)
    assert found["right_l1"] == 0.0
    assert found["right_l2"] == pytest.approx(0.25)
    assert found["third_l1"] == found["third_l2"] == 0.0
    rest = [f"1 coordinates of '{name}' are not in the recording" for name in ("left", "right")]
    for words in (*rest, "stay as in the scene: 'aj2'", "keep their scene pose: 'third_l1'"):
        assert any(words in warning for warning in found[""]), words


def test_a_table_that_fits_one_robot_alone_moves_it(tmp_path):
    """Also where a column is a name of a joint of another robot too."""
    scene = write_scene(tmp_path, arm("left", 1.0, 2, "left/"), arm("right", -1.0, 3, "right/"))
    found = angles(scene, write_csv(tmp_path, j1=0.5, j3=0.25))
    assert found["left_l1"] == 0.0
    assert found["right_l1"] == pytest.approx(0.5)
    assert found["right_l3"] == pytest.approx(0.75)


def test_a_whole_name_comes_before_the_last_element_of_another(tmp_path):
    scene = write_scene(tmp_path, arm("left", 1.0), arm("right", -1.0, prefix="right/"))
    found = angles(scene, write_csv(tmp_path, j1=0.5, **{"right/j1": 0.25}))
    assert found["left_l1"] == pytest.approx(0.5)
    assert found["right_l1"] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"j1": 0.1, "left/j2": 0.2},
            ["'j1' may be any of 'left/j1', 'right/j1'", "<articulation>/<joint>, as 'left/j1'"],
        ),
        ({"j1": 0.1, "j2": 0.2}, ["2 columns may be joints of several articulations: 'j1' may"]),
        ({"left/j1": 0.1, "right/j9": 0.2}, ["1 column of no joint of the scene: 'right/j9'"]),
        (
            {"lamp": 0.1},
            ["1 column of no joint of the scene: 'lamp'", "its joints are 'left/j1', 'left/j2'"],
        ),
        ({"rigth/j1": 0.1}, ["of no joint of the scene: 'rigth/j1'", "did you mean right/j1?"]),
        ({"left/j1": 0.1, "left/left/j1": 0.2, "right/j1": 0.3}, ["'left/j1' is named twice"]),
    ],
)
def test_columns_of_no_joint_or_of_several_are_refused(tmp_path, columns, words):
    scene = write_scene(tmp_path, *TWINS)
    with pytest.raises(InputError) as raised:
        angles(scene, write_csv(tmp_path, **columns))
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize("kind", ["npz", "h5", "qpos.npz"])
@pytest.mark.parametrize("name", ["j1", "lamp"])
def test_names_in_arrays_are_refused_in_the_same_words(tmp_path, kind, name):
    scene = write_scene(tmp_path, *TWINS)
    columns = {name: np.zeros(FRAMES), "left/j2": np.zeros(FRAMES)}
    recording, options = written(tmp_path, kind, columns, {})
    words = "may be any of" if name == "j1" else "1 column of no joint of the scene: 'lamp'"
    with pytest.raises(InputError, match=words) as raised:
        loaded(scene, recording, options)
    assert "--joint-names names the recorded ones" in str(raised.value)


def test_units_and_scales_are_those_of_each_column(tmp_path):
    scene = write_scene(tmp_path, *TWINS)
    columns = {"right/j1": 90.0, "left/j1": 30.0}
    recording = write_csv(tmp_path, **columns)
    found = angles(scene, recording, joint_units="degrees", joint_scale=("left/j1=0.01:0.1",))
    assert found["right_l1"] == pytest.approx(np.pi / 2.0)
    assert found["left_l1"] == pytest.approx(0.4)  # a scale replaces the unit
    text = recording.read_text()
    recording.write_text(text.replace("right/j1", "right/j1 [deg]"))
    found = angles(scene, recording)
    assert found["right_l1"] == pytest.approx(np.pi / 2.0)


def cart(name: str, y: float) -> str:
    """A hinge about z within -1 to 3 rad, on a slide along z within 0 to 0.2 m."""
    joints = (
        f'<joint name="{name}_lift" type="slide" range="0 0.2" limited="true"/>'
        f'<joint name="{name}_turn" range="-1 3" limited="true"/>'
    )
    return f'<body name="{name}" pos="0 {y} 0">{joints}<geom size="0.05"/></body>'


@pytest.mark.parametrize(
    ("options", "turns", "lifts"),
    [
        ({"joint_units": "degrees", "length_units": "mm"}, np.radians([30, 40]), [0.01, 0.02]),
        ({"joint_units": "normalised"}, [1.6, 1.8], [0.11, 0.12]),
    ],
)
def test_units_and_limits_are_those_of_the_columns_joints(tmp_path, options, turns, lifts):
    """With columns of two robots in turn, and of other kinds in other places."""
    scene = write_scene(tmp_path, cart("a", 1.0), cart("b", -1.0))
    columns = {"b_turn": 40.0, "a_lift": 10.0, "a_turn": 30.0, "b_lift": 20.0}
    recording = write_csv(tmp_path, **columns)
    found = angles(scene, recording, **options)
    model, motion = loaded(scene, recording, RecordingOptions(**options))
    poses = motion.read(range(2))[-1, 0]
    motion.close()
    assert model.model.bodies.path == ("a", "b")
    np.testing.assert_allclose([found["a"], found["b"]], turns, atol=EXACT)
    np.testing.assert_allclose(poses[:, 2], lifts, atol=EXACT)


def test_a_joint_follows_one_of_another_robot(tmp_path):
    """Also where columns move the other robot alone."""
    equality = '<joint joint1="bj1" joint2="aj1" polycoef="0.1 2 0 0 0"/>'
    scene = write_scene(tmp_path, *DISTINCT, equality=equality)
    found = angles(scene, write_csv(tmp_path, aj1=0.25))
    assert found["left_l1"] == pytest.approx(0.25)
    assert found["right_l1"] == pytest.approx(0.6)
    found = angles(scene, write_csv(tmp_path, aj1=0.25, bj1=0.5))
    assert found["right_l1"] == pytest.approx(0.5)


POSE = {"x": 2.0, "y": 0.5, "z": 0.25, "qx": 0.0, "qy": 0.0, "qz": 0.0, "qw": 1.0}


def root_of(scene, recording, body: str) -> np.ndarray:
    model, motion = loaded(scene, recording, RecordingOptions())
    poses = motion.read(range(len(motion.time)))[-1, 0]
    motion.close()
    return poses[model.model.bodies.path.index(body), :3]


def with_pose(folder, prefix: str, columns):
    pose = {f"{prefix}_{axis}": value for axis, value in POSE.items()}
    path = write_csv(folder, **columns, **pose)
    path.write_text(path.read_text().replace(",0.0\n", ",1.0\n"))
    return path


def test_a_root_without_a_name_is_that_of_the_only_robot_that_can_move(tmp_path):
    """A mobile base beside an arm on the floor."""
    scene = write_scene(tmp_path, arm("cart", 1.0, prefix="a", free=True), DISTINCT[1])
    recording = with_pose(tmp_path, "base", {"aj1": 0.5, "bj1": 0.25})
    assert root_of(scene, recording, "cart").tolist() == [2.0, 0.5, 0.25]
    assert root_of(scene, recording, "right").tolist() == [0.0, -1.0, 0.0]


def test_roots_of_two_robots_are_told_by_name(tmp_path):
    arms = [arm("cart", 1.0, prefix="a", free=True), arm("dog", -1.0, prefix="b", free=True)]
    scene = write_scene(tmp_path, *arms)
    recording = with_pose(tmp_path, "dog", {"aj1": 0.5, "bj1": 0.25})
    assert root_of(scene, recording, "dog").tolist() == [2.0, 0.5, 0.25]
    assert root_of(scene, recording, "cart").tolist() == [0.0, 1.0, 0.0]
    recording = with_pose(tmp_path, "base", {"aj1": 0.5, "bj1": 0.25})
    with pytest.raises(InputError, match=r"may be that of 'cart', 'dog'\n *name the columns"):
        root_of(scene, recording, "dog")


STAGE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World"
{{{robots}
}}
"""
ROBOT = """
    def Xform "{name}" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])
    {{
        def Xform "base" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
        {{
            double3 xformOp:translate = (0, {y}, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }}
        def Xform "{link}" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
        {{
            double3 xformOp:translate = (0.5, {y}, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
            def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {{
                double radius = 0.05
            }}
        }}
        def PhysicsFixedJoint "held"
        {{
            rel physics:body1 = </World/{name}/base>
            point3f physics:localPos0 = (0, {y}, 0)
        }}
        def PhysicsRevoluteJoint "j1"
        {{
            rel physics:body0 = </World/{name}/base>
            rel physics:body1 = </World/{name}/{link}>
            point3f physics:localPos0 = (0.5, 0, 0)
            uniform token physics:axis = "Z"
        }}
    }}"""


@pytest.mark.parametrize("names", [("/World/left/j1", "/World/right/j1"), ("left/j1", "right/j1")])
def test_two_articulation_roots_of_a_stage(tmp_path, names):
    scene = tmp_path / "stage.usda"
    robots = [
        ROBOT.format(name=name, y=y, link=f"{name}_l1") for name, y in (("left", 1), ("right", -1))
    ]
    scene.write_text(STAGE.format(robots="".join(robots)))
    found = angles(scene, write_csv(tmp_path, **dict(zip(names, (0.5, 0.25), strict=True))))
    assert found["left_l1"] == pytest.approx(0.5)
    assert found["right_l1"] == pytest.approx(0.25)
    with pytest.raises(InputError, match="'j1' may be any of 'left/j1', 'right/j1'"):
        angles(scene, write_csv(tmp_path, j1=0.5))


def test_python_runs_such_a_recording(tmp_path):
    """The arms turn towards each other until their last links touch."""
    scene = write_scene(tmp_path, arm("left", 0.5, 2, "a"), arm("right", -0.5, 2, "b"))
    recording = write_csv(tmp_path, aj1=-np.pi / 2.0, bj1=np.pi / 2.0)
    with pytest.warns(UserWarning, match="stay as in the scene: '[ab]j2'"):
        found = collidecli.run(str(scene), str(recording))
    starts = found.cell_start.tolist()
    assert starts == [0, 0, 1]


def test_poses_of_bodies_beside_the_joints_of_two_robots(tmp_path):
    """Of a free body, and of the root of one of the robots."""
    crate = '<body name="crate"><freejoint/><geom size="0.1"/></body>'
    scene = write_scene(tmp_path, arm("cart", 1.0, prefix="a", free=True), DISTINCT[1], crate)
    poses = np.zeros((FRAMES, 2, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 0] = np.arange(FRAMES)
    poses[:, 1, 1] = np.arange(FRAMES)
    recording = tmp_path / "motion.npz"
    np.savez(
        recording,
        body_pos_w=poses[..., :3],
        body_quat_w=poses[..., 3:],
        body_names=["crate", "cart"],
        joint_pos=np.full((FRAMES, 2), 0.25),
        joint_names=["bj1", "aj1"],
        quaternion_order="xyzw",
        fps=10.0,
    )
    assert root_of(scene, recording, "crate").tolist() == [FRAMES - 1, 0.0, 0.0]
    assert root_of(scene, recording, "cart").tolist() == [0.0, FRAMES - 1, 0.0]
    found = angles(scene, recording)
    assert found["right_l1"] == pytest.approx(0.25)
    assert found["cart_l1"] == pytest.approx(0.25)


def test_one_topic_of_joint_states_moves_two_robots(tmp_path, monkeypatch):
    pytest.importorskip("rosbags", reason="rosbags is not installed (extra ros)")
    from tests.support.ros_bags import Recorder

    monkeypatch.chdir(tmp_path)
    scene = write_scene(tmp_path, *TWINS)
    recorder = Recorder()
    for frame in range(3):
        recorder.joints(20 * frame, ("right/j1", "left/j2"), (0.1 * frame, 0.2 * frame))
    found = angles(scene, recorder.write())
    assert found["right_l1"] == pytest.approx(0.2)
    assert found["left_l1"] == 0.0
    assert found["left_l2"] == pytest.approx(0.4)


URDF = """<robot name="arm"><link name="base_link"/><link name="fore"><collision><geometry>
<sphere radius="0.05"/></geometry></collision></link><joint name="j1" type="continuous">
<parent link="base_link"/><child link="fore"/><axis xyz="0 0 1"/></joint></robot>"""


def test_two_attached_robots_of_one_urdf(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    scene = tmp_path / "scene.xml"
    attached = "".join(
        f'<frame pos="0 {y} 0"><attach model="arm" body="base_link" prefix="{side}/"/></frame>'
        for side, y in (("left", 1), ("right", -1))
    )
    asset = '<asset><model name="arm" file="arm.urdf"/></asset>'
    scene.write_text(f"<mujoco>{asset}<worldbody>{attached}</worldbody></mujoco>")
    recording = write_csv(tmp_path, **{"right/j1": 0.25, "left/j1": 0.5})
    model, motion = loaded(scene, recording, RecordingOptions())
    poses = motion.read(range(2))[-1, 0]
    motion.close()
    for name, angle in (("left/fore", 0.5), ("right/fore", 0.25)):
        turn = poses[model.model.bodies.path.index(name), 3:]
        np.testing.assert_allclose(turn, [0, 0, np.sin(angle / 2), np.cos(angle / 2)], atol=EXACT)
