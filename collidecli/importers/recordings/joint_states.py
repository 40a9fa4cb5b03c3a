"""Motions of articulations from joint positions by name, of which each demonstration is a world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collidecli.importers.recordings.articulations import (
    ORDERS,
    ArticulationMotion,
    check_name_count,
    quaternion_order,
)
from collidecli.importers.recordings.joint_limits import BY_NAME, ranges_of
from collidecli.importers.recordings.joint_units import DEGREES, NORMALISED, JointUnits
from collidecli.importers.recordings.left_out_columns import kept_columns, naming_options
from collidecli.importers.recordings.moved_bodies import (
    check_free,
    check_once,
    free_joint_columns,
    moved_body,
    named_body,
    names_of_each_column,
)
from collidecli.importers.recordings.moved_robots import (
    MovedRobot,
    columns_of,
    moved_robots,
    robot_of_root,
    said_roots,
    with_followers,
)
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import Target
from collidecli.scene.episodes import Episodes
from collidecli.scene.followed_joints import FollowedJoints
from collidecli.scene.kinematics import (
    ArticulatedScene,
    JointColumns,
    coordinate_names,
)
from collidecli.scene.options import RecordingOptions

JOINT_OPTIONS = (
    "state",
    "demos",
    "uneven_demos",
    "joint_names",
    "ignore_joints",
    "joint_units",
    "length_units",
    "joint_scale",
    "fps",
)
"""Fields of `RecordingOptions` that every kind of recording by `JointStates` has."""
Poses = Mapping[str, Mapping[str, np.ndarray]]
"""float64[F, 7] xyzw by body and by demonstration."""
ROOT = "--root"
BODY_FROM = "--body-from"
ROOT_FIX = f"name the robot: {BODY_FROM} ROBOT=ARRAY in place of {ROOT}"
ROOT_ADVICE = f"; {BODY_FROM} BODY=ARRAY is for the poses of another body"

MANY_TURNS = 4.0 * np.pi
"""A warning is given where a joint without limits begins beyond this [rad]; a wheel gets there."""
HALF_TURN = np.pi
"""A warning is given of a joint without limits that turns by more from one frame to the next: the
sense of the turn is then unknown [rad]."""


@dataclass(frozen=True)
class JointStates:
    """Recorded joint positions.

    path: of the recording. where: its array, for messages. names: of the columns. states:
    float64[F, k] of each demonstration by name, in the units of the file. time: float64[F] [s].
    roots: float64[F, 7] xyzw of each demonstration, of the articulation of `robot_of_root`; without
    them the root keeps its pose in the scene. bodies: float64[F, 7] xyzw of each demonstration by
    the name of a further body or robot, and body_option, what names these, for messages.
    root_advice: of a root that is fixed, after a message. root_fix: what to do about a root that
    may be that of several robots. unit: of the positions by the file, "" where it has none: radians
    and metres. percent: columns that are normalised to 0 to 100 of their joint's range where the
    unit is no radian. units: of columns whose unit the file names, by name. has_demonstrations:
    whether the file divides its motion into demonstrations; without them `states` has one motion,
    whose name is for no reader, and the motion has no episodes.
    """

    path: str
    where: str
    names: tuple[str, ...]
    states: Mapping[str, np.ndarray]
    time: np.ndarray
    roots: Mapping[str, np.ndarray] = field(default_factory=dict)
    unit: str = ""
    percent: tuple[int, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    bodies: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    body_option: str = BODY_FROM
    root_advice: str = ROOT_ADVICE
    root_fix: str = ROOT_FIX
    has_demonstrations: bool = True


def coordinates_of_scene(scene: ArticulatedScene) -> list[str]:
    """Whole names of the coordinates of all articulations."""
    return [name for articulation in scene.articulations for name in coordinate_names(articulation)]


def joint_state_motion(
    recorded: JointStates,
    target: Target,
    options: RecordingOptions,
    close: Callable[[], None] | None = None,
    warnings: Sequence[str] = (),
) -> ArticulationMotion:
    """The motion of the scene's articulations that have the joints. Joints that follow recorded
    ones are completed.

    options: joint_units, length_units and joint_scale convert the positions. Raises InputError: a
    number of names that is not that of the columns, names that the scene lacks or that several of
    its joints have, a malformed scale, normalised positions of a joint without limits, a unit that
    is none of the joint's quantity or differs from the option.
    """
    where = recorded.where
    width = next(iter(recorded.states.values())).shape[1]
    scene = target.articulated(recorded.path)
    known = coordinates_of_scene(scene)
    named = names_of_each_column(scene, recorded.names, width)
    check_name_count(width, named, "numbers", known, where)
    kept, names, left_out = kept_columns(named, options, where)
    free, joints = free_joint_columns(scene, names)
    poses = _free_joint_poses(recorded, free, kept, options)
    kept = [kept[column] for column in joints]
    names = tuple(names[column] for column in joints)
    states = {name: state[:, kept] for name, state in recorded.states.items()}
    with naming_options(where):
        robots = moved_robots(scene, names, where)
    poses = _poses_by_path(recorded, poses, scene, robots, target)
    roots = said_roots(robots)
    robots, followed = with_followers(scene, robots)
    with naming_options(where):
        columns = [JointColumns(robot.articulation, robot.names, where) for robot in robots]
    pairs = list(zip(robots, columns, strict=True))
    limits = _limits(robots, columns, len(names))
    units = _units(recorded, options, kept, names)
    _convert(states, units, pairs, limits)
    worlds = _worlds(recorded, states, pairs, followed, poses, scene)
    # Poses that are recorded are in the world.
    origins = target.model.world_pose[: len(worlds), :3]
    return ArticulationMotion(
        recorded.path,
        target,
        worlds,
        np.zeros_like(origins) if poses else origins,
        recorded.time,
        [
            *scene.warnings,
            *warnings,
            *left_out,
            *_improbable_turns(states, limits, units.unit, where),
        ],
        close,
        _episodes(recorded),
        advice=BY_NAME,
        root_advice=f"{roots}{recorded.root_advice}",
    )


def _units(
    recorded: JointStates, options: RecordingOptions, kept: Sequence[int], names: Sequence[str]
) -> JointUnits:
    """Units of the recorded positions of joints. kept: columns of the file. names: of each."""
    return JointUnits(
        options.joint_units or recorded.unit,
        [at for at, column in enumerate(kept) if column in recorded.percent],
        options.joint_scale,
        names,
        recorded.where,
        options.length_units,
        recorded.units,
    )


def _convert(
    states: Mapping[str, np.ndarray],
    units: JointUnits,
    robots: Sequence[tuple[MovedRobot, JointColumns]],
    limits: np.ndarray,
) -> None:
    """Converts recorded positions to metres and radians, in place; those of followers are computed
    from converted ones."""
    angles = {robot.columns[at] for robot, own in robots for at in own.angles().tolist()}
    single = {robot.columns[at] for robot, own in robots for at in own.single(len(robot.columns))}
    recorded_single = sorted(single & set(range(len(limits))))
    units.convert(states.values(), angles, recorded_single, limits)


def _episodes(recorded: JointStates) -> Episodes | None:
    """Each demonstration as an episode; None of a file without demonstrations."""
    if not recorded.has_demonstrations:
        return None
    lengths = {name: len(state) for name, state in recorded.states.items()}
    return Episodes.of_demonstrations(lengths, len(recorded.time))


def _limits(
    robots: Sequence[MovedRobot], columns: Sequence[JointColumns], count: int
) -> np.ndarray:
    """float64[count, 2] [m or rad]: limits of the recorded columns, infinite without a limit."""
    limits = np.full((count, 2), [-np.inf, np.inf])
    for robot, of_robot in zip(robots, columns, strict=True):
        of_joints = ranges_of(robot.articulation, of_robot).limits
        for column, range_of_joint in zip(robot.columns, of_joints, strict=True):
            if column < count:
                limits[column] = range_of_joint
    return limits


def _worlds(
    recorded: JointStates,
    states: Mapping[str, np.ndarray],
    robots: Sequence[tuple[MovedRobot, JointColumns]],
    followed: FollowedJoints,
    poses: Poses,
    scene: ArticulatedScene,
) -> list[list[RecordedArticulation]]:
    """The articulations and bodies of each demonstration. states: float64[F, k] [m or rad]. poses:
    of roots and of further bodies by path."""
    where = recorded.where
    of_robots = {robot.articulation.path for robot, _ in robots}
    bodies = {each.path: each for each in scene.articulations if each.path in poses}
    worlds = []
    for name, state in states.items():
        completed = followed.completed(state)
        world = []
        for robot, columns in robots:
            path = robot.articulation.path
            root = rows_of(poses[path][name]) if path in poses else None
            positions = rows_of(columns_of(completed, robot.columns))
            location = f"{where}, {name}" if recorded.has_demonstrations else where
            world.append(
                RecordedArticulation(robot.articulation, columns, root, positions, where, location)
            )
        others = [path for path in poses if path not in of_robots]
        world += [moved_body(bodies[path], rows_of(poses[path][name]), where) for path in others]
        worlds.append(world)
    return worlds


def _free_joint_poses(
    recorded: JointStates,
    free: Mapping[str, Sequence[int]],
    kept: Sequence[int],
    options: RecordingOptions,
) -> Poses:
    """Poses in columns of free joints. free: numbers of columns in `kept`. Raises InputError where
    the order of the quaternions is not given."""
    if not free:
        return {}
    order = ORDERS[quaternion_order("", options, recorded.where)]
    return {
        path: {
            name: state[:, [kept[columns[place]] for place in order]]
            for name, state in recorded.states.items()
        }
        for path, columns in free.items()
    }


def _poses_by_path(
    recorded: JointStates,
    poses: Poses,
    scene: ArticulatedScene,
    robots: Sequence[MovedRobot],
    target: Target,
) -> dict[str, Mapping[str, np.ndarray]]:
    """`poses` with those of a robot's root and of named bodies. Raises InputError for a body with
    two, one that the scene lacks, and one that is fixed to the world."""
    found = dict(poses)
    option = recorded.body_option
    if recorded.roots:
        robot = robot_of_root(robots, target, recorded.where, recorded.root_fix)
        check_once(robot, found, ROOT)
        found[robot.path] = recorded.roots
    for name, of_demonstrations in recorded.bodies.items():
        body = named_body(scene, name, option)
        check_once(body, found, option)
        check_free(target, body, option)
        found[body.path] = of_demonstrations
    return found


def _improbable_turns(
    states: Mapping[str, np.ndarray], limits: np.ndarray, unit: str, where: str
) -> list[str]:
    """A warning where positions of joints without limits are hardly angles in radians. limits:
    float64[k, 2] of the columns."""
    unlimited = np.flatnonzero(~np.isfinite(limits).any(axis=1))
    turns = [state[:, unlimited] for state in states.values()]
    begin = max(float(np.nanmax(np.abs(each[:1]), initial=0.0)) for each in turns)
    step = max(float(np.nanmax(np.abs(np.diff(each, axis=0)), initial=0.0)) for each in turns)
    if begin > MANY_TURNS:
        what = f"a joint without limits begins at {begin:g}"
    elif step > HALF_TURN:
        what = f"a joint without limits moves by {step:g} from one frame to the next"
    else:
        return []
    said = {DEGREES: "in degrees and metres", NORMALISED: "as normalised"}
    said = said.get(unit, "in radians and metres")
    return [f"{where}: {what}, and positions are read {said}; see --joint-units"]


def rows_of(states: np.ndarray) -> Callable[[range], np.ndarray]:
    """A function that returns rows of the states; frames after the end have the last row."""
    return lambda frames: states[np.minimum(np.asarray(frames, np.intp), len(states) - 1)]
