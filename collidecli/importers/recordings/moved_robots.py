"""The articulations that recorded columns move, by the names of their joints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.recording import Target
from collidecli.scene.followed_joints import FollowedJoints
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    coordinate_names,
    last_element,
    paths_by_name,
)
from collidecli.wording import did_you_mean, plural, some_names


@dataclass(frozen=True)
class MovedRobot:
    """An articulation and the recorded columns of its joints.

    columns: their numbers. names: of the joints, by which `JointColumns` finds them.
    """

    articulation: ArticulationKinematics
    columns: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Joint:
    """A coordinate. robot: number of its articulation. path: its whole name."""

    robot: int
    path: str


class _Names:
    """The coordinates of articulations by their names.

    whole: by whole names. last: by last elements. qualified: by `<articulation>/<joint>`, where the
    first is the path of the articulation or one of its aliases, and the second a name that selects
    one joint in the articulation.
    """

    def __init__(self, articulations: Sequence[ArticulationKinematics]) -> None:
        self.whole: dict[str, list[_Joint]] = {}
        self.last: dict[str, list[_Joint]] = {}
        self.qualified: dict[str, list[_Joint]] = {}
        for robot, articulation in enumerate(articulations):
            for path in coordinate_names(articulation):
                joint = _Joint(robot, path)
                self.whole.setdefault(path, []).append(joint)
                self.last.setdefault(last_element(path), []).append(joint)
            for name, path in _qualified_names(articulation):
                joint = _Joint(robot, path)
                if joint not in self.qualified.setdefault(name, []):
                    self.qualified[name].append(joint)

    def joints(self, name: str) -> list[_Joint]:
        """The coordinates that a name may be: by whole names, else by qualified ones, else by last
        elements."""
        return self.whole.get(name) or self.qualified.get(name) or self.last.get(name) or []

    def in_robot(self, name: str, robot: int) -> str:
        """The whole name of the coordinate that a name is in one articulation; "" for none."""
        for of_kind in (self.whole, self.qualified, self.last):
            found = [joint.path for joint in of_kind.get(name, ()) if joint.robot == robot]
            if found:
                return found[0] if len(found) == 1 else ""
        return ""

    def shown(self, joint: _Joint) -> str:
        """A name that is the coordinate's alone: in place of an absolute path the shortest
        qualified one."""
        if not joint.path.startswith("/"):
            return joint.path
        own = [name for name, joints in self.qualified.items() if joints == [joint]]
        return min(own, key=len, default=joint.path)


def _qualified_names(articulation: ArticulationKinematics) -> Iterator[tuple[str, str]]:
    """Names `<articulation>/<joint>`, and the whole name of the coordinate of each."""
    known = paths_by_name(coordinate_names(articulation))
    for owner in dict.fromkeys((articulation.path, *articulation.aliases)):
        for name, path in known.items():
            if owner and not name.startswith("/"):
                yield f"{owner}/{name}", path


def joint_names(scene: ArticulatedScene) -> set[str]:
    """Every name by which a column may be a coordinate of the scene: whole names, their last
    elements, and `<articulation>/<joint>`."""
    names = _Names(scene.articulations)
    return {*names.whole, *names.last, *names.qualified}


def robots_of_scene(scene: ArticulatedScene) -> list[ArticulationKinematics]:
    """The articulations with joints; without any, all articulations and free bodies."""
    return [each for each in scene.articulations if each.joints] or list(scene.articulations)


def moved_robots(scene: ArticulatedScene, names: Sequence[str], where: str) -> list[MovedRobot]:
    """The articulations that columns move.

    The only one whose joints have all the last elements; else each column moves the joint of its
    name: a whole name, else `<articulation>/<joint>`, else a last element that one joint of the
    scene has. Without names the only articulation, or none of several. Raises InputError: a scene
    without articulations, a name of no joint, a name of several.
    """
    robots = robots_of_scene(scene)
    if not robots:
        what = "the recording moves an articulation, and the scene has none"
        raise InputError(what, where, "use the scene that was recorded")
    known = _Names(robots)
    if len(robots) == 1:
        return [MovedRobot(robots[0], tuple(range(len(names))), _own_names(known, names, 0))]
    if not names:
        return []
    wanted = set(map(last_element, names))
    fitting = [
        number
        for number, robot in enumerate(robots)
        if wanted <= set(map(last_element, coordinate_names(robot)))
    ]
    if len(fitting) == 1 and all(known.in_robot(name, fitting[0]) for name in names):
        of_column = fitting * len(names)
    else:
        of_column = [joint.robot for joint in _joints_of_columns(known, names, where)]
    columns = sorted(range(len(names)), key=of_column.__getitem__)
    moved = []
    for robot, group in groupby(columns, of_column.__getitem__):
        own = tuple(group)
        own_names = _own_names(known, [names[column] for column in own], robot)
        moved.append(MovedRobot(robots[robot], own, own_names))
    return moved


def _own_names(known: _Names, names: Sequence[str], robot: int) -> tuple[str, ...]:
    """Names as they are recorded, and the whole ones of those that are qualified."""
    is_own = [
        any(joint.robot == robot for kind in (known.whole, known.last) for joint in kind.get(n, ()))
        for n in names
    ]
    return tuple(
        name if own else known.in_robot(name, robot) or name
        for name, own in zip(names, is_own, strict=True)
    )


def _joints_of_columns(known: _Names, names: Sequence[str], where: str) -> list[_Joint]:
    """The coordinate of each column. Raises InputError for a name of none, and one of several."""
    found = [known.joints(name) for name in names]
    unknown = [name for name, joints in zip(names, found, strict=True) if not joints]
    if unknown:
        what = f"{plural(len(unknown), 'column')} of no joint of the scene: {some_names(unknown)}"
        every = [known.shown(joint) for joints in known.whole.values() for joint in joints]
        otherwise = f"its joints are {some_names(every) or 'none'}"
        raise InputError(what, where, did_you_mean(unknown[0], every, otherwise))
    several = [name for name, joints in zip(names, found, strict=True) if len(joints) > 1]
    if several:
        candidates = known.joints(several[0])
        shown = list(dict.fromkeys(known.shown(joint) for joint in candidates))
        what = f"'{several[0]}' may be any of {some_names(shown)}"
        if len(several) > 1:
            count = plural(len(several), "column")
            what = f"{count} may be joints of several articulations: {what}"
        raise InputError(what, where, f"name the joint as <articulation>/<joint>, as '{shown[0]}'")
    return [joints[0] for joints in found]


def with_followers(
    scene: ArticulatedScene, robots: Sequence[MovedRobot]
) -> tuple[list[MovedRobot], FollowedJoints]:
    """The articulations that columns move, and the positions of joints that follow recorded ones,
    in these or in other articulations.

    The columns of the returned articulations are those of `FollowedJoints.completed`.
    """
    recorded = [""] * sum(len(robot.columns) for robot in robots)
    column_of: dict[str, int] = {}
    for robot in robots:
        known = paths_by_name(coordinate_names(robot.articulation))
        for column, name in zip(robot.columns, robot.names, strict=True):
            recorded[column] = name
            column_of |= {known[name]: column} if name in known else {}
    moved = {robot.articulation.path: robot for robot in robots}
    owner = {joint.path: each.articulation for each in robots for joint in each.articulation.joints}
    joints = {joint.path: joint for each in owner.values() for joint in each.joints}
    for other in scene.articulations:
        if other.path not in moved:
            owner = {joint.path: other for joint in other.joints} | owner
            joints = {joint.path: joint for joint in other.joints} | joints
    followed = FollowedJoints(list(joints.values()), recorded, column_of)
    for column, name in enumerate(followed.names[len(recorded) :], len(recorded)):
        articulation = owner[name]
        robot = moved.get(articulation.path, MovedRobot(articulation))
        columns = (*robot.columns, column)
        moved[articulation.path] = MovedRobot(articulation, columns, (*robot.names, name))
    return list(moved.values()), followed


def robot_of_root(
    robots: Sequence[MovedRobot], target: Target, where: str, fix: str
) -> ArticulationKinematics:
    """The articulation whose root a recorded pose moves that names none: the only one that columns
    move, else the only one of these whose root is not held by the scene. Raises InputError."""
    moved = [robot.articulation for robot in robots]
    if len(moved) == 1:
        return moved[0]
    kinematics = target.find_kinematics()
    held = set[str]()
    if kinematics is not None:
        held = {kinematics.body_path[body] for body in np.flatnonzero(kinematics.welded)}
    free = [each for each in moved if not each.root_is_jointed and each.body_path[0] not in held]
    if len(free) == 1:
        return free[0]
    of = f"may be that of {some_names([each.path for each in free or moved])}"
    what = f"the pose of a root {of if moved else 'is recorded, and no joints of its robot'}"
    raise InputError(what, where, fix)


def columns_of(positions: np.ndarray, columns: Sequence[int]) -> np.ndarray:
    """float64[n, len(columns)]: columns of positions; the positions themselves where these are all,
    in order."""
    is_all = list(columns) == list(range(positions.shape[1]))
    return positions if is_all else positions[:, list(columns)]


def said_roots(robots: Sequence[MovedRobot]) -> str:
    """Words for the articulations of the joints, after a message about a root that is fixed."""
    paths = [robot.articulation.path for robot in robots]
    if len(paths) == 1:
        return f"'{paths[0]}' is the root of the joints"
    return f"{some_names(paths)} are the roots of the joints"
