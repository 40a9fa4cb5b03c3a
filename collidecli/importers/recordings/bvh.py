"""Motions of BVH files: poses of bodies that have the names of the file's joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.bvh_text import BvhFile, BvhJoint, read_bvh
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.humanoid import BodyPoseMotion
from collidecli.importers.recordings.joint_units import LENGTH_UNITS
from collidecli.importers.recordings.motion_tables import MotionTable
from collidecli.importers.recordings.poses_beside_joints import body_path
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.importers.recordings.skeleton_rest import OTHER_REST, UP_TURN, resting_turn
from collidecli.importers.recordings.times import rate_time
from collidecli.numerics.euler_angles import euler_quaternions
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.numerics.poses import compose_poses
from collidecli.numerics.products import norm
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions
from collidecli.storage.reading_limit import check_size
from collidecli.storage.storage_formats import BVH
from collidecli.wording import some_names

UP = "y"
"""Up axis without --up-axis: that of the programs that write the format."""
MOST_DIFFERENCE = 0.01
"""Share of a bone's length by which the scene's may differ without a warning."""
OTHER_UNIT = 3.0
"""Ratio of the lengths of bones, or its inverse, beyond which the unit is another one."""


@dataclass(frozen=True)
class _Bones:
    """The bones between bodies that a file moves. names: of the bodies at their ends. recorded,
    of_scene: float64[n, 3], vectors at rest [m]."""

    names: tuple[str, ...]
    recorded: np.ndarray
    of_scene: np.ndarray


class BvhRecording(Recording):
    """The joints of a BVH file as poses of one world's bodies."""

    NAME = "bvh"
    LABEL = "a motion of a skeleton (.bvh)"
    OPTIONS = ("body_names", "strict_bodies", "length_units", "up_axis", "fps")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._path = content.path
        self._file = read_bvh(content.path)

    @staticmethod
    def recognise(content: Content) -> bool:
        """A text that begins with the word HIERARCHY."""
        return content.storage == BVH

    def describe(self) -> RecordingDescription:
        file = self._file
        has_rate = file.frame_time > 0.0
        return RecordingDescription(
            frames=file.frames,
            worlds=1,
            start=0.0 if has_rate else None,
            end=max(file.frames - 1, 0) * file.frame_time if has_rate else None,
            bodies=tuple(joint.name for joint in file.joints),
            needs=() if has_rate else ("--fps",),
            details=(("numbers a frame", str(file.width)),),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return 1

    @np.errstate(over="ignore", invalid="ignore")  # poses beyond floats are refused when read
    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """Poses of the scene's bodies by name; see `skeleton_rest` for the axes of their frames.

        Raises InputError as `BodyPoseMotion`, and where bones have another unit than the scene's.
        """
        file = self._file
        where = f"{self._path}: MOTION"
        names = options.body_names or tuple(joint.name for joint in file.joints)
        if len(names) != len(file.joints):
            what = f"{len(file.joints)} joints are recorded, and {len(names)} names are given"
            raise InputError(what, where, "give --body-names in the file's order")
        time = self._time(options)
        poses = joint_poses(file, LENGTH_UNITS[options.length_units or "m"])
        paths = [body_path(name, target.model) for name in names]
        poses, warnings = self._in_scene(poses, paths, target.model, options)
        table = MotionTable(
            self._path, file.frames, notes=warnings, locations={"body_position": where}
        )
        return BodyPoseMotion(table, target.model, names, poses, time, options.strict_bodies)

    def _time(self, options: RecordingOptions) -> np.ndarray:
        """float64[F] [s], by Frame Time or --fps."""
        file = self._file
        if options.fps is not None or not file.frame_time > 0.0:
            return rate_time(file.frames, options.fps, self._path)
        return np.arange(file.frames) * file.frame_time

    def _in_scene(
        self, poses: np.ndarray, paths: list[str], model: Model, options: RecordingOptions
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Poses of bodies float64[F, J, 7] of those of the file's joints, and warnings."""
        rest = {path: model.bodies.pose[row] for row, path in enumerate(model.bodies.path)}
        bones = _bones(self._file, paths, rest, LENGTH_UNITS[options.length_units or "m"])
        upright = np.array(UP_TURN[options.up_axis or UP])
        turn, angle = resting_turn(bones.recorded, bones.of_scene, upright)
        back = np.array([0.0, 0.0, 0.0, *(-turn[:3]), turn[3]])
        poses = compose_poses(np.array([0.0, 0.0, 0.0, *upright]), poses)
        for column, path in enumerate(paths):
            if path in rest:
                frame = np.array([0.0, 0.0, 0.0, *rest[path][3:]])
                poses[:, column] = compose_poses(poses[:, column], compose_poses(back, frame))
        return poses, (*self._offset_warnings(), *_differences(bones, angle, self._path))

    def _offset_warnings(self) -> tuple[str, ...]:
        """A warning of roots that have an offset beside positions, which some programs add."""
        names = [
            joint.name
            for joint in self._file.joints
            if joint.parent < 0 and "xposition" in joint.channels and any(joint.offset)
        ]
        if not names:
            return ()
        what = "has an OFFSET beside its positions, which are taken without it"
        return (f"{self._path}: {some_names(names)} {what}",)


def joint_poses(file: BvhFile, unit: float) -> np.ndarray:
    """float64[F, J, 7], xyzw: the joints' frames in the file's world [m].

    unit: metres of a unit of the file. A joint's frame in its parent's has the joint's positions,
    or its offset where it has none, and its rotations in the order of the channels, each about an
    axis that those before have turned.
    """
    size = 8 * 7 * 4 * file.frames * len(file.joints)
    check_size(size, "the poses", file.path, "export a part of the motion")
    rows = file.rows()
    poses = np.empty((file.frames, len(file.joints), 7))
    for number, joint in enumerate(file.joints):
        local = _local_poses(joint, rows, unit)
        poses[:, number] = (
            local if joint.parent < 0 else compose_poses(poses[:, joint.parent], local)
        )
    return poses


def _local_poses(joint: BvhJoint, rows: np.ndarray, unit: float) -> np.ndarray:
    """float64[F, 7]: a joint's frame in its parent's."""
    local = np.zeros((len(rows), 7))
    local[:, :3] = joint.offset
    turns = ""
    angles = []
    for column, channel in enumerate(joint.channels, joint.first):
        axis = channel[0]
        if channel.endswith("position"):
            local[:, "xyz".index(axis)] = rows[:, column]
        else:
            turns += axis
            angles.append(rows[:, column])
    local[:, :3] *= unit
    local[:, 6] = 1.0
    if turns:
        radians = np.stack(angles, axis=1) * (np.pi / 180.0)
        finite = np.all(np.isfinite(radians), axis=1)
        quaternions = euler_quaternions(
            np.where(finite[:, None], radians, 0.0), [turns] * len(rows)
        )
        local[:, 3:] = quaternions[:, WXYZ_TO_XYZW]
        local[~finite, 3:] = np.nan
    return local


def _bones(file: BvhFile, paths: list[str], rest: dict[str, np.ndarray], unit: float) -> _Bones:
    """The bones from each body of the scene to the nearest above it that the file moves."""
    names: list[str] = []
    recorded = []
    of_scene = []
    for number, path in enumerate(paths):
        if path not in rest:
            continue
        vector = np.zeros(3)
        above = number
        while file.joints[above].parent >= 0:
            vector += file.joints[above].offset
            above = file.joints[above].parent
            if paths[above] in rest:
                names.append(path)
                recorded.append(vector * unit)
                of_scene.append(rest[path][:3] - rest[paths[above]][:3])
                break
    return _Bones(
        tuple(names), np.array(recorded).reshape(-1, 3), np.array(of_scene).reshape(-1, 3)
    )


def _differences(bones: _Bones, angle: float, where: str) -> tuple[str, ...]:
    """Warnings where bones of the scene at rest have other lengths or directions than those of the
    file. Raises InputError where they are several times as long."""
    lengths = norm(bones.recorded)
    others = norm(bones.of_scene)
    used = (lengths > 0.0) & (others > 0.0)
    if not used.any():
        return ()
    ratio = float(np.median(lengths[used] / others[used]))
    if not 1.0 / OTHER_UNIT <= ratio <= OTHER_UNIT:
        what = f"the recorded bones are {ratio:.3g} times as long as those of the scene"
        fix = "give --length-units: many programs write cm"
        raise InputError(what, where, fix)
    warnings: tuple[str, ...] = ()
    share = np.abs(lengths - others) / np.where(lengths > 0.0, lengths, 1.0)
    differ = np.flatnonzero(share > MOST_DIFFERENCE)
    if len(differ):
        worst = int(differ[np.argmax(share[differ])])
        warnings = (
            f"{where}: {len(differ)} bones have other lengths than the scene's, up to"
            f" {100.0 * share[worst]:.0f} % of '{bones.names[worst]}'; bodies are where the"
            " recording has its joints",
        )
    if angle > OTHER_REST:
        warnings += (
            f"{where}: at rest a bone of the scene is {np.degrees(angle):.0f} degrees off that of"
            " the recording's zero pose, by which bodies are turned",
        )
    return warnings
