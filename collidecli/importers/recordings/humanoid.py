"""Motions of humanoids from motion trackers and retargeting tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings import articulations
from collidecli.importers.recordings.articulations import (
    ORDERS,
    ArticulationMotion,
    check_name_count,
)
from collidecli.importers.recordings.column_titles import is_decorated
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.joint_states import coordinates_of_scene
from collidecli.importers.recordings.joint_tables import JointTableRecording
from collidecli.importers.recordings.left_out_columns import kept_columns, naming_options
from collidecli.importers.recordings.motion_tables import (
    ROOT_COLUMNS,
    array_table,
    csv_table,
    holds_motion,
    root_columns,
)
from collidecli.importers.recordings.moved_bodies import moved_body
from collidecli.importers.recordings.moved_robots import (
    columns_of,
    moved_robots,
    robot_of_root,
    said_roots,
    with_followers,
)
from collidecli.importers.recordings.poses_beside_joints import (
    PosesBesideJoints,
    all_poses,
    body_path,
    left_out_bodies,
    poses_of_bodies,
    with_free_joints,
)
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.importers.recordings.stored_names import names_of_columns
from collidecli.importers.recordings.times import (
    GIVE_RATE,
    checked_time,
    long_step_warnings,
    rate_time,
)
from collidecli.scene.followed_joints import FollowedJoints
from collidecli.scene.kinematics import JointColumns
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions
from collidecli.storage.storage_formats import NPZ, PICKLE
from collidecli.storage.trajectory_motion import BodyMatch, RecordedInFile
from collidecli.wording import some_names

if TYPE_CHECKING:
    from collidecli.importers.recordings.motion_tables import MotionTable

ROOT_ADVICE = "; name the bodies of other poses by body_names, or by their free joints"
ROOT_FIX = "name the poses of roots: by body_names, or by their free joints among joint_names"
ORDER_HINT = (
    "; Unitree's LAFAN1 retargeting files and those of GMR are xyzw, those of Isaac Lab 2 are wxyz,"
    " of Isaac Lab 3 xyzw"
)


class HumanoidRecording(Recording):
    """Body poses, or a root pose and joint positions, of one world."""

    NAME = "humanoid-motion"
    LABEL = (
        "humanoid motions (.npz: body_pos_w, body_quat_w, or root_pos, root_quat, joint_pos; .csv:"
        " root and joints; pickles of GMR)"
    )
    OPTIONS = (
        "body_names",
        "joint_names",
        "ignore_joints",
        "quaternion_order",
        "fps",
        "strict_bodies",
        "prefer",
    )

    def __init__(self, content: Content) -> None:
        self.content = content
        self._table = (
            array_table(content) if content.table is None else csv_table(content.text_columns)
        )

    @staticmethod
    def recognise(content: Content) -> bool:
        """A .npz or a pickle with the arrays of a motion, or text in columns of which the first
        seven are a root's pose."""
        if content.table is not None:
            columns = content.table.titles
            if not content.table.has_titles:
                return len(columns) >= ROOT_COLUMNS
            root = root_columns(columns)
            return root is not None and not any(
                map(is_decorated, columns[root[0] + ROOT_COLUMNS :])
            )
        return content.storage in (NPZ, PICKLE) and holds_motion(content.arrays)

    def describe(self) -> RecordingDescription:
        table = self._table
        needs = [] if table.order or not table.has_rotations else ["--quaternion-order"]
        has_times = table.time is not None and len(table.time) == table.frames
        needs += [] if has_times or (table.fps and table.time is None) else ["--fps"]
        joints = 0 if table.joints is None else table.joints.shape[1]
        if table.body_position is not None and not table.body_names:
            needs.append("--body-names" + (", or --joint-names" if joints else ""))
        elif table.body_position is None and joints and not table.joint_names:
            needs.append("--joint-names")
        time = (
            table.time if has_times else np.arange(table.frames) / table.fps if table.fps else None
        )
        return RecordingDescription(
            frames=table.frames,
            worlds=1,
            start=None if time is None else float(time[0]),
            end=None if time is None else float(time[-1]),
            bodies=table.body_names,
            coordinates=joints,
            quaternion_order=table.order,
            needs=tuple(needs),
            details=(("joints", some_names(table.joint_names)),) if table.joint_names else (),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return 1

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """The motion in the world frame. Body poses, where they are recorded, take precedence over
        joint positions.

        Bodies without names are in Isaac Lab's order, the root first; with joint names, only the
        root's pose is used.
        """
        table = self._table
        path = self.content.path
        text = self.content.table
        if text is not None and not text.has_titles:
            if len(options.joint_names) == len(text.titles):
                return JointTableRecording(self.content).motion(target, options)
            _require_order(options, len(text.titles), path)
        time, slow = _time(table, options)
        table = replace(table, notes=(*table.notes, *slow))
        table, poses = with_free_joints(table, target)
        has_rotations = table.has_rotations or poses is not None
        order = (
            ORDERS[articulations.quaternion_order(table.order, options, path, ORDER_HINT)]
            if has_rotations
            else []
        )
        if table.body_position is not None:
            names = names_of_columns(
                table.body_names,
                options.body_names,
                "--body-names",
                table.locations["body_position"],
            )
            poses = _poses_of_bodies(table, names, target, options)
            if poses is None:
                recorded = all_poses(table)[..., order]
                table = replace(table, notes=(*table.notes, *_not_used(table, options)))
                return BodyPoseMotion(
                    table, target.model, names, recorded, time, options.strict_bodies
                )
        return _articulated(table, target, options, poses or _root_poses(table), order, time)


def _poses_of_bodies(
    table: MotionTable, names: Sequence[str], target: Target, options: RecordingOptions
) -> PosesBesideJoints | None:
    """The poses that are used beside joint positions; None where poses of bodies are used alone.

    names: of the recorded bodies.
    """
    by_joints = options.prefer == "joints" and table.joints is not None
    where = table.locations["body_position"]
    has_root = table.root_position is not None
    joints = _joint_names(table, options)
    beside = None
    if names and joints:
        strict = options.strict_bodies
        beside = poses_of_bodies(table, names, joints, target, by_joints, strict)
    if by_joints and has_root:
        root = _root_poses(table)
        if beside is None:
            return root
        return replace(root, bodies=beside.bodies, location=beside.location)
    if beside is not None or not joints or (names and not by_joints):
        return beside
    what = f"its body {names[0]}" if names else "its bodies have no names; the first"
    note = f"{where}: {what} is taken as the root"
    return PosesBesideJoints(all_poses(table)[:, 0], where, notes=(note,))


def _joint_names(table: MotionTable, options: RecordingOptions) -> tuple[str, ...]:
    """Names of the recorded joints without those that are left out; () without names."""
    if table.joints is None or not (table.joint_names or options.joint_names):
        return ()
    where = table.locations["joints"]
    names = names_of_columns(table.joint_names, options.joint_names, "--joint-names", where)
    return kept_columns(names, options, where)[1]


def _root_poses(table: MotionTable) -> PosesBesideJoints:
    """The recorded poses of the root, or none."""
    where = table.locations.get("root_position", table.locations["joints"])
    if table.root_position is None or table.root_rotation is None:
        return PosesBesideJoints(None, where)
    return PosesBesideJoints(
        np.concatenate([table.root_position, table.root_rotation], axis=1), where
    )


def _not_used(table: MotionTable, options: RecordingOptions) -> tuple[str, ...]:
    """A warning of the joint positions beside poses of bodies that are used alone."""
    if table.joints is None:
        return ()
    has_names = bool(table.joint_names or options.joint_names)
    fix = "--prefer joints uses them" if has_names else "--joint-names and --prefer joints use them"
    where = table.locations["joints"]
    return (f"{where}: not used, as the poses of the bodies are; {fix}",)


class BodyPoseMotion(RecordedInFile):
    """Poses of named bodies in one world; see `scene.motion.Motion`."""

    def __init__(
        self,
        table: MotionTable,
        model: Model,
        names: Sequence[str],
        poses: np.ndarray,
        time: np.ndarray,
        strict: bool,
    ) -> None:
        self._path = table.path
        self._where = table.locations["body_position"]
        self._dataset = self._where.removeprefix(f"{table.path}: ")
        if len(names) != poses.shape[1]:
            what = f"{poses.shape[1]} bodies are recorded, and {len(names) or 'no'} names are given"
            fix = (
                "give --body-names in the recorded order; the scene's bodies are"
                f" {some_names(model.bodies.path)}"
            )
            raise InputError(what, self._where, fix)
        super().__init__(time)
        paths = [body_path(name, model) for name in names]
        unknown = [row for row, path in enumerate(paths) if path not in set(model.bodies.path)]
        if unknown and not strict and len(unknown) < len(paths):
            kept = np.delete(np.arange(len(paths)), unknown)
            paths = [paths[row] for row in kept]
            poses = poses[:, kept]
        self._poses = poses
        self.float_type = poses.dtype
        self._match = BodyMatch(paths, model, self._where)
        self.warnings = (*table.notes, *self._match.warnings)
        if len(paths) < len(names):
            self.warnings += (left_out_bodies([names[row] for row in unknown]),)

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), 1, B, 7], see `Motion.read`."""
        return self._match.checked(
            _rows(self._poses, frames)[:, None], frames, self._path, self._dataset
        )


def _time(table: MotionTable, options: RecordingOptions) -> tuple[np.ndarray, tuple[str, ...]]:
    """float64[F] [s] and warnings: by --fps, else recorded, else by the recorded rate. Raises
    InputError for times of another number of frames."""
    if options.fps is not None or table.time is None:
        rate = table.fps if options.fps is None else options.fps
        return rate_time(table.frames, rate, table.path), ()
    where = f"{table.path}: time"
    if len(table.time) != table.frames:
        what = f"has {len(table.time)} times, and the motion {table.frames} frames"
        raise InputError(what, where, GIVE_RATE)
    time = checked_time(table.time, where)
    return time, long_step_warnings(time, where)


def _articulated(
    table: MotionTable,
    target: Target,
    options: RecordingOptions,
    poses: PosesBesideJoints,
    order: Sequence[int],
    time: np.ndarray,
) -> ArticulationMotion:
    """The motion of robots by their joints, of their roots and of other bodies by poses. order: of
    the columns of poses."""
    where = table.locations.get("joints", poses.root_location)
    joints = (
        np.zeros((table.frames, 0))
        if table.joints is None
        else np.asarray(table.joints, np.float64)
    )
    width = joints.shape[1]
    scene = target.articulated(table.path)
    given = names_of_columns(table.joint_names, options.joint_names, "--joint-names", where)
    names = given if width else ()
    known = coordinates_of_scene(scene)
    check_name_count(width, names, "joints", known, where)
    kept, names, left_out = kept_columns(names, options, where)
    joints = joints[:, kept]
    with naming_options(where):
        robots = moved_robots(scene, names, where)
    roots = {path: (body, poses.location) for path, body in poses.bodies.items()}
    if poses.root is not None:
        robot = robot_of_root(robots, target, poses.root_location, ROOT_FIX)
        roots[robot.path] = poses.root, poses.root_location
    advice = f"{said_roots(robots)}{ROOT_ADVICE}"
    robots, followed = with_followers(scene, robots)
    world = []
    for robot in robots:
        with naming_options(where):
            columns = JointColumns(robot.articulation, robot.names, where)
        root, location = roots.pop(robot.articulation.path, (None, poses.root_location))
        root_at = None if root is None else _pose_rows(root, order)
        joints_at = partial(_joint_rows, joints, followed, robot.columns)
        world.append(
            RecordedArticulation(robot.articulation, columns, root_at, joints_at, location, where)
        )
    by_path = {each.path: each for each in scene.articulations}
    world += [
        moved_body(by_path[path], _pose_rows(body, order), location)
        for path, (body, location) in roots.items()
    ]
    warnings = (*scene.warnings, *left_out, *table.notes, *poses.notes)
    return ArticulationMotion(
        table.path, target, [world], np.zeros((1, 3)), time, warnings, root_advice=advice
    )


def _joint_rows(
    joints: np.ndarray, followed: FollowedJoints, columns: Sequence[int], frames: range
) -> np.ndarray:
    """float64[n, k] of frames: columns of the recorded positions and of those of followers."""
    return columns_of(followed.completed(_rows(joints, frames)), columns)


def _pose_rows(poses: np.ndarray, order: Sequence[int]) -> Callable[[range], np.ndarray]:
    """A function of frames that returns float64[n, 7] xyzw. order: of the recorded columns."""
    return partial(_rows, np.asarray(poses, np.float64)[:, order])


def _require_order(options: RecordingOptions, width: int, where: str) -> None:
    """Raises InputError for rows without titles, which may be of joints alone, where the order of
    the root's quaternion is not given."""
    if options.quaternion_order:
        return
    what = (
        "the first line has no names, so that the first seven columns are read as the root's x y z"
        " and quaternion, and the recording does not define the order of its quaternions"
    )
    fix = (
        f"give --quaternion-order wxyz or xyzw{ORDER_HINT}. If no root is recorded, name all"
        f" {width} columns with --joint-names, or in a first line"
    )
    raise InputError(what, where, fix)


def _rows(array: np.ndarray, frames: range) -> np.ndarray:
    return array[frames.start : max(frames.start, frames.stop) : frames.step]
