"""Poses that a device computes from joints by name have the bits of a read of the recording."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

from collidecli.engine import device_kinematics, scheduler
from collidecli.engine.device_kinematics import posed_on_device
from collidecli.engine.joint_kinematics import MODERATE, UNPOSED
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.workspace import Workspace
from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import ArticulationMotion
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import Target
from collidecli.motions.collision import prepare_collision
from collidecli.motions.timing import TimingReport
from collidecli.scene.joint_poses import JointPoses
from collidecli.scene.kinematics import ArticulationKinematics, JointColumns, coordinate_names
from collidecli.scene.options import ContactOptions, EngineOptions
from tests.support.twin_robots import Link, target_of, write_twins
from tests.unit.engine.runtime.test_chunk_counts import as_device  # noqa: F401
from tests.unit.importers.mujoco.test_compiled_kinematics import EVERY
from tests.unit.importers.usd.test_kinematics import random_links, random_roots

pytestmark = pytest.mark.rest

FRAMES = 30


def recorded(
    articulation: ArticulationKinematics, rng: np.random.Generator, worlds: int, may_move: bool
) -> list[RecordedArticulation]:
    """An articulation in each world, with or without its root, if that may move, with all of its
    joints or some."""
    names = list(coordinate_names(articulation))
    whole = rng.random() < 0.5 or any(joint.required for joint in articulation.joints)
    kept = [
        name
        for joint in articulation.joints
        if whole or rng.random() < 0.6
        for name in joint.coordinates
    ]
    names = [str(name) for name in rng.permutation(kept)]
    columns = JointColumns(articulation, names, "here")
    has_root = may_move and rng.random() < 0.6
    items = []
    for _ in range(worlds):
        positions = rng.uniform(-3.0, 3.0, (FRAMES, len(names)))
        for joint, of_joint in zip(articulation.joints, columns.of_joint, strict=True):
            if of_joint is not None and joint.is_quaternion:
                quaternions = rng.normal(size=(FRAMES, 4))
                scale = np.linalg.norm(quaternions, axis=1, keepdims=True)
                positions[:, of_joint] = quaternions / scale * (1.0 + 1e-6)
        roots = random_roots(FRAMES, rng)
        items.append(
            RecordedArticulation(
                articulation,
                columns,
                (lambda frames, roots=roots: roots[frames.start : frames.stop])
                if has_root
                else None,
                (lambda frames, positions=positions: positions[frames.start : frames.stop])
                if names or rng.random() < 0.5
                else None,
                "roots",
                "joints",
            )
        )
    return items


def motion_of(target: Target, rng: np.random.Generator, worlds: int = 1) -> ArticulationMotion:
    """A recording of some articulations of a scene."""
    found = list(target.articulated("here").articulations)
    chosen = [x for x in found if len(found) == 1 or rng.random() < 0.8] or found[:1]
    welded = welded_bodies(target)
    columns = [
        recorded(articulation, rng, worlds, articulation.body_path[0] not in welded)
        for articulation in chosen
    ]
    items = list(zip(*columns, strict=True))
    origins = rng.normal(size=(worlds, 3))
    return ArticulationMotion("file", target, items, origins, np.arange(FRAMES) * 0.1)


def welded_bodies(target: Target) -> set[str]:
    """Names of the bodies that a scene of MuJoCo welds to the world."""
    kinematics = target.find_kinematics()
    if kinematics is None:
        return set()
    return {kinematics.body_path[body] for body in np.flatnonzero(kinematics.welded)}


def device_poses(joints: JointPoses) -> tuple[np.ndarray, int]:
    """Poses by the CPU treated as a device, and whether they need the host."""
    scratch = Workspace(find_device("cpu"), 1 << 30)
    scratch.counts.begin(1)
    found = posed_on_device(joints, "poses", scratch)
    frames, worlds, bodies, _ = joints.shape
    poses = scratch.host(found, frames * worlds * bodies).reshape(joints.shape)
    return poses, scratch.counts.read()[UNPOSED][0]


def check_bits(motion: ArticulationMotion) -> None:
    """Compares the poses of some frames."""
    frames = range(3, FRAMES)
    expected = motion.read(frames)
    joints = motion.read_joints(frames)
    assert joints is not None
    assert joints.shape == expected.shape
    np.testing.assert_array_equal(joints.poses().view(np.int64), expected.view(np.int64))
    part = joints.part(2, 7)
    np.testing.assert_array_equal(part.poses().view(np.int64), expected[2:7].view(np.int64))
    found, unposed = device_poses(joints)
    np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))
    assert unposed == 0


@pytest.mark.parametrize("kind", ["usd", "mjcf"])
@pytest.mark.parametrize("seed", range(10))
def test_any_tree_has_the_bits_of_a_read(as_device, tmp_path, seed, kind):  # noqa: F811
    """A robot of random links in one world or two, on a floating root, one that the world holds and
    one that a joint moves; with some of its joints, in any order."""
    rng = np.random.default_rng(seed)
    twins = write_twins(tmp_path, random_links(rng), seed, float(rng.choice([1.0, 0.01])))
    worlds = 1 + seed % 2
    target = target_of(getattr(twins, kind), worlds)
    check_bits(motion_of(target, rng, worlds))


def test_every_kind_of_root_has_the_bits_of_a_read(as_device, tmp_path):  # noqa: F811
    """Roots with a free joint, mocap bodies and roots with joints, with and without recorded poses
    and joints; bodies that are not recorded rest."""
    path = tmp_path / "scene.xml"
    path.write_text(EVERY)
    target = target_of(path)
    rng = np.random.default_rng(0)
    motions = [motion_of(target, rng) for _ in range(40)]
    placed = 0
    for motion in motions:
        check_bits(motion)
        placed += any(item.root_pose is not None for item in motion._worlds[0])
    assert placed > 10


def test_a_welded_root_is_read_by_the_host(tmp_path):
    """Which compares its recorded pose with the scene's."""
    path = tmp_path / "scene.xml"
    path.write_text(EVERY)
    target = target_of(path)
    articulation = next(
        each
        for each in target.articulated("here").articulations
        if each.body_path[0] in welded_bodies(target) and each.joints
    )
    rest = target.model.bodies.pose[target.model.bodies.path.index(articulation.body_path[0])]
    columns = JointColumns(articulation, coordinate_names(articulation), "here")
    item = RecordedArticulation(
        articulation,
        columns,
        lambda frames: np.tile(rest, (len(frames), 1)),
        lambda frames: np.zeros((len(frames), len(columns.names))),
    )
    time = np.arange(FRAMES) * 0.1
    motion = ArticulationMotion("file", target, [[item]], np.zeros((1, 3)), time)
    assert motion.read_joints(range(FRAMES)) is None


def test_what_the_host_must_compute_is_marked(as_device, tmp_path):  # noqa: F811
    """An angle of another reduction."""
    rng = np.random.default_rng(0)
    (robot,) = robot_of(tmp_path).articulated("here").articulations
    columns = JointColumns(robot, coordinate_names(robot), "here")
    for angle, expected in ((MODERATE * 1.99, 0), (MODERATE * 2.01, 1)):
        positions = rng.normal(size=(FRAMES, 1))
        positions[7] = angle
        item = RecordedArticulation(
            robot, columns, None, lambda frames, positions=positions: positions
        )
        motion = ArticulationMotion(
            "file", robot_of(tmp_path), [[item]], np.zeros((1, 3)), np.arange(FRAMES) * 0.1
        )
        joints = motion.read_joints(range(FRAMES))
        assert joints is not None
        assert device_poses(joints)[1] == expected


def robot_of(folder: Path) -> Target:
    """A scene of USD with one hinge on the world."""
    links = (Link("l0", "world"), Link("l1", "l0", ("rotX",)))
    return target_of(write_twins(folder, links, 1).usd)


def test_a_fault_is_refused_in_the_words_of_a_read(tmp_path):
    """Of the second world's joints, before the first world's root."""
    rng = np.random.default_rng(3)
    twins = write_twins(tmp_path, random_links(rng), 3)
    target = target_of(twins.usd, 2)
    motion = motion_of(target, rng, 2)
    item = motion._worlds[1][0]
    assert item.joint_position is not None
    item.joint_position(range(FRAMES))[5, 0] = np.nan
    with pytest.raises(InputError) as of_read:
        motion.read(range(FRAMES))
    with pytest.raises(InputError) as of_joints:
        motion.read_joints(range(FRAMES))
    assert str(of_joints.value) == str(of_read.value)
    assert "frame 5, world 1" in str(of_read.value)


@pytest.mark.parametrize("kind", ["usd", "mjcf"])
def test_a_run_on_a_device_has_the_contacts_of_the_cpu(tmp_path, monkeypatch, kind):
    """Of the frames behind the first chunk the coordinates alone are uploaded."""
    rng = np.random.default_rng(7)
    links = tuple(Link(f"l{k}", f"l{k - 1}" if k else "world", ("rotX",)) for k in range(6))
    target = target_of(getattr(write_twins(tmp_path, links, 7, ground=True), kind))
    (robot,) = target.articulated("here").articulations
    columns = JointColumns(robot, coordinate_names(robot), "here")
    positions = rng.normal(size=(FRAMES, len(columns.names)))
    item = RecordedArticulation(
        robot, columns, None, lambda frames: positions[frames.start : frames.stop]
    )
    motion = ArticulationMotion("file", target, [[item]], np.zeros((1, 3)), np.arange(FRAMES) * 0.1)
    posed: list[tuple[int, ...]] = []
    plain = device_kinematics.posed_on_device

    def noted(joints: JointPoses, *given: Any) -> wp.array:
        posed.append(joints.coordinates.shape)
        return plain(joints, *given)

    monkeypatch.setattr(device_kinematics, "posed_on_device", noted)

    def contacts() -> dict[str, bytes]:
        timing = TimingReport()
        options = ContactOptions(gap=0.5).checked()
        engine = EngineOptions(chunk_cells=10)
        given = target.model, motion, options, engine, find_device("cpu"), timing
        blocks = list(prepare_collision(*given).blocks(timing))
        names = blocks[0].columns
        return {name: b"".join(block.columns[name].tobytes() for block in blocks) for name in names}

    reference = contacts()
    assert len(reference["shape0"]) > 100
    assert posed == []
    monkeypatch.setattr(scheduler, "IN_FLIGHT", 1)
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    assert contacts() == reference
    assert len(posed) > 0
    assert sum(frames for frames, *_ in posed) < FRAMES
