"""Columns of one recording move the joints of several articulations, against MuJoCo.

The test computes the coordinates itself, with the polynomials of followers, and `mj_kinematics` the
poses.
"""

import csv
from dataclasses import dataclass, field

import h5py
import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
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
            rows.writerows([f"{value:.17g}" for value in row] for row in zip(*table.values()))
        return path, RecordingOptions()
    values = np.stack(list(columns.values()), axis=1)
    names = list(columns)
    if kind == "qpos.npz":
        for root, pose in poses.items():
            values = np.concatenate([pose[:, [0, 1, 2, 6, 3, 4, 5]], values], axis=1)
            names = [f"{root}_free", *names]
        np.savez(path, qpos=values, joint_names=names, time=times)
        order = "" if poses else ""
        return path, RecordingOptions(quaternion_order=order)
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
    request = SceneRequest(
        scenes=[str(scene_path)], trajectory=str(recording), recording=options
    )
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
    joints = motion.read_joints(range(FRAMES))
    assert joints is not None
    on_device, unposed = device_poses(joints)
    motion.close()
    assert unposed == 0
    np.testing.assert_array_equal(on_device.view(np.int64), found.view(np.int64))
    for body, path in enumerate(model.model.bodies.path):
        assert apart(found[:, 0, body], expected[path]) < EXACT, path
