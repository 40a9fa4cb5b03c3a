"""Motions of one articulation from joint positions by name, of which each demonstration is a
world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collidecli.importers.recordings.articulations import (
    ORDERS,
    ArticulationMotion,
    check_name_count,
    moved_articulation,
    quaternion_order,
)
from collidecli.importers.recordings.joint_limits import BY_NAME, ranges_of
from collidecli.importers.recordings.joint_units import JointUnits
from collidecli.importers.recordings.left_out_columns import kept_columns, naming_options
from collidecli.importers.recordings.moved_bodies import (
    check_free,
    check_once,
    free_joint_columns,
    moved_body,
    named_body,
    names_of_each_column,
)
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import Target
from collidecli.scene.episodes import Episodes, shown_name
from collidecli.scene.followed_joints import FollowedJoints
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    JointColumns,
    coordinate_names,
    last_element,
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
ROOT_ADVICE = f"; {BODY_FROM} BODY=ARRAY is for the poses of another body"


@dataclass(frozen=True)
class JointStates:
    """Recorded joint positions.

    path: of the recording. where: its array, for messages. names: of the columns. states:
    float64[F, k] of each demonstration by name, in the units of the file. time: float64[F] [s].
    roots: float64[F, 7] xyzw of each demonstration; without them the root keeps its pose in the
    scene. bodies: float64[F, 7] xyzw of each demonstration by the name of a further body, and
    body_option, what names these, for messages. root_advice: of a root that is fixed, after a
    message. unit: of the positions by the file, "" where it has none: radians and metres. percent:
    columns that are normalised to 0 to 100 of their joint's range where the unit is no radian.
    units: of columns whose unit the file names, by name.
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


def coordinates_of_scene(scene: ArticulatedScene) -> list[str]:
    """Whole names of the coordinates of all articulations."""
    return [name for articulation in scene.articulations for name in coordinate_names(articulation)]


def names_of_scene(scene: ArticulatedScene) -> tuple[str, ...]:
    """Names of the coordinates of all articulations, whole and their last elements."""
    known = coordinates_of_scene(scene)
    return (*known, *map(last_element, known))


def joint_state_motion(
    recorded: JointStates,
    target: Target,
    options: RecordingOptions,
    close: Callable[[], None] | None = None,
    warnings: Sequence[str] = (),
) -> ArticulationMotion:
    """The motion of the scene's articulation that has the joints. Joints that follow recorded ones
    are completed.

    options: joint_units, length_units and joint_scale convert the positions. Raises InputError: a
    number of names that is not that of the columns, names that the scene lacks, a malformed scale,
    normalised positions of a joint without limits, a unit that is none of the joint's quantity or
    differs from the option.
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
    articulation = moved_articulation(scene, names, where)
    poses = _poses_by_path(recorded, poses, scene, articulation, target)
    followed = FollowedJoints(articulation, names)
    with naming_options(where):
        columns = JointColumns(articulation, followed.names, where)
    limits = ranges_of(articulation, columns).limits[: len(names)]
    unit = options.joint_units or recorded.unit
    percent = [at for at, column in enumerate(kept) if column in recorded.percent]
    units = JointUnits(
        unit, percent, options.joint_scale, names, where, options.length_units, recorded.units
    )
    units.convert(states.values(), columns, limits)
    roots = poses.pop(articulation.path, {})
    bodies = {each.path: each for each in scene.articulations if each.path in poses}
    worlds = []
    for name, state in states.items():
        positions = rows_of(followed.completed(state))
        root = rows_of(roots[name]) if roots else None
        moved = RecordedArticulation(
            articulation, columns, root, positions, where, _location(where, name)
        )
        others = [moved_body(bodies[path], rows_of(poses[path][name]), where) for path in poses]
        worlds.append([moved, *others])
    # Poses that are recorded are in the world.
    origins = target.model.world_pose[: len(worlds), :3]
    lengths = {name: len(state) for name, state in states.items()}
    return ArticulationMotion(
        recorded.path,
        target,
        worlds,
        np.zeros_like(origins) if roots or poses else origins,
        recorded.time,
        [*scene.warnings, *warnings, *left_out],
        close,
        Episodes.of_demonstrations(lengths, len(recorded.time)),
        advice=BY_NAME,
        root_advice=f"'{articulation.path}' is the root of the joints{recorded.root_advice}",
    )


def _location(where: str, demonstration: str) -> str:
    """A demonstration in messages; an array of which it has the name is told once."""
    is_named = bool(shown_name(demonstration)) and not where.endswith(f": {demonstration}")
    return f"{where}, {demonstration}" if is_named else where


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
    robot: ArticulationKinematics,
    target: Target,
) -> dict[str, Mapping[str, np.ndarray]]:
    """`poses` with those of the robot's root and of named bodies. Raises InputError for a body with
    two, one that the scene lacks, and one that is fixed to the world."""
    found = dict(poses)
    option = recorded.body_option
    if recorded.roots:
        check_once(robot, found, ROOT)
        found[robot.path] = recorded.roots
    for name, of_demonstrations in recorded.bodies.items():
        body = named_body(scene, name, option)
        check_once(body, found, option)
        check_free(target, body, option)
        found[body.path] = of_demonstrations
    return found


def rows_of(states: np.ndarray) -> Callable[[range], np.ndarray]:
    """A function that returns rows of the states; frames after the end have the last row."""
    return lambda frames: states[np.minimum(np.asarray(frames, np.intp), len(states) - 1)]
