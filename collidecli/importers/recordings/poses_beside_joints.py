"""Poses of a motion table that are used beside its joint positions: of the robot's root and of
other bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.left_out_columns import naming_options
from collidecli.importers.recordings.motion_tables import MotionTable
from collidecli.importers.recordings.moved_bodies import (
    free_joint_columns,
    names_of_each_column,
)
from collidecli.importers.recordings.moved_robots import MovedRobot, moved_robots
from collidecli.importers.recordings.recording import Target
from collidecli.scene.body_names import find_bodies
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    coordinate_names,
    last_element,
)
from collidecli.scene.model import Model
from collidecli.wording import plural, some_names


@dataclass(frozen=True)
class PosesBesideJoints:
    """Recorded poses x y z and quaternion, in the file's order, of each frame.

    root: float[F, 7] of the root of the robot with the joints, None where the scene's is used.
    bodies: float[F, 7] by the path of the articulation or free body, of several robots with the
    joints too. root_location, location: of both, for messages. notes: warnings.
    """

    root: np.ndarray | None
    root_location: str
    bodies: Mapping[str, np.ndarray] = field(default_factory=dict)
    location: str = ""
    notes: tuple[str, ...] = ()


def body_path(name: str, model: Model) -> str:
    """The path of the scene's body of this name, or of the only one whose path ends in it; else the
    name itself."""
    paths = list(dict.fromkeys(model.bodies.path))
    ending = [path for path in paths if last_element(path) == name]
    return ending[0] if name not in paths and len(ending) == 1 else name


def all_poses(table: MotionTable) -> np.ndarray:
    """float[F, B, 7]: the recorded poses of bodies."""
    assert table.body_position is not None
    assert table.body_rotation is not None
    return np.concatenate([table.body_position, table.body_rotation], axis=2)


def poses_of_bodies(
    table: MotionTable,
    names: Sequence[str],
    joints: Sequence[str],
    target: Target,
    by_joints: bool,
    strict: bool,
) -> PosesBesideJoints | None:
    """The recorded poses of bodies that no joint position determines.

    names: of the recorded bodies. joints: of the recorded joints. by_joints: poses of links of the
    robots are not used. strict: refuse bodies that the scene lacks. None where the joints are those
    of no robots of the scene, and without `by_joints` where links of these are recorded too, or
    bodies that are joined to others. Raises InputError as `find_bodies`.
    """
    where = table.locations["body_position"]
    scene = _articulated(target, where)
    robots = [] if scene is None else _robots(scene, joints, where)
    if scene is None or not robots:
        return None
    robot = robots[0].articulation if len(robots) == 1 else None
    paths = [body_path(name, target.model) for name in names]
    row_of = {path: row for row, path in enumerate(paths)}
    known = [path for path in paths if path in target.model.bodies.path]
    others = {each.body_path[0]: each.path for each in scene.articulations if each is not robot}
    bodies = [path for path in known if path in others]
    if not by_joints:
        of_root = robot is not None and robot.body_path[0] in known
        if not known or len(bodies) + of_root < len(known):
            return None
        if strict:
            find_bodies(paths, target.model, where)
    poses = all_poses(table)
    moved = {others[path]: poses[:, row_of[path]] for path in bodies}
    row = -1
    note = ""
    if robot is not None:
        row, note = _root_row(robot, names, paths, known, by_joints, where)
    lacking = [name for name, path in zip(names, paths, strict=True) if path not in known]
    notes = (note,) if note else ()
    if lacking and not by_joints:
        notes += (left_out_bodies(lacking),)
    return PosesBesideJoints(None if row < 0 else poses[:, row], where, moved, where, notes)


def left_out_bodies(names: Sequence[str]) -> str:
    """A warning of recorded bodies that the scene lacks."""
    left_out = plural(len(names), "recorded body", "recorded bodies")
    return f"{left_out} not in the scene left out: {some_names(names)}"


def _root_row(
    robot: ArticulationKinematics,
    names: Sequence[str],
    paths: Sequence[str],
    known: Sequence[str],
    by_joints: bool,
    where: str,
) -> tuple[int, str]:
    """The recorded body whose pose is that of the robot's root, -1 for none, and a warning.

    With `by_joints` another link is taken where the root itself is not recorded: the first one.
    """
    if robot.body_path[0] in paths:
        row = paths.index(robot.body_path[0])
    else:
        links = [path for path in known if path in robot.body_path]
        if not by_joints or (known and not links):
            return -1, ""
        row = paths.index(links[0]) if links else 0
    return row, f"{where}: its body {names[row]} is taken as the root" if by_joints else ""


def _articulated(target: Target, where: str) -> ArticulatedScene | None:
    try:
        return target.articulated(where)
    except InputError:
        return None


def _robots(scene: ArticulatedScene, joints: Sequence[str], where: str) -> list[MovedRobot]:
    """The articulations that have the joints; [] where joints are those of none or of several."""
    try:
        robots = moved_robots(scene, joints, where)
    except InputError:
        return []
    for robot in robots:
        known = {last_element(name) for name in coordinate_names(robot.articulation)}
        if not {last_element(name) for name in robot.names} <= known:
            return []
    return robots if joints else []


def with_free_joints(
    table: MotionTable, target: Target
) -> tuple[MotionTable, PosesBesideJoints | None]:
    """The table of MuJoCo's coordinates without the columns of free joints that are named and not
    those of the only robot, and their poses; the table itself and None without such columns."""
    if table.coordinates is None:
        return table, None
    where = table.locations["joints"]
    scene = target.articulated(table.path)
    width = table.coordinates.shape[1]
    names = names_of_each_column(scene, table.coordinate_names, width)
    if len(names) != width:
        return table, None
    free, others = free_joint_columns(scene, names)
    joints = tuple(names[column] for column in others)
    with naming_options(where):
        robots = moved_robots(scene, joints, where)
    only = robots[0].articulation.path if len(robots) == 1 else ""
    if set(free) <= {only}:
        return table, None
    poses = {path: table.coordinates[:, columns] for path, columns in free.items()}
    root = poses.pop(only, None)
    plain = replace(
        table,
        joints=table.coordinates[:, others],
        joint_names=joints,
        root_position=None,
        root_rotation=None,
        order="wxyz",
    )
    return plain, PosesBesideJoints(root, where, poses, where)
