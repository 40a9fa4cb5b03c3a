"""The interface of a scene's forward kinematics to the readers of recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import norm
from collidecli.wording import some_names

BadRow = tuple[int, str, str]
"""Row, name of the body, and description of the error."""
QUATERNION_AXES = ("x", "y", "z", "w")


class Kinematics(Protocol):
    """Body poses from generalized coordinates, each frame independently.

    body_path: name of each body. welded: bool[B], bodies that are part of the static world.
    coordinate_count: numbers per configuration. mocap_count: bodies whose pose is an input.
    coordinate_names: the joint of each number. coordinate_limits: float64[coordinate_count, 2],
    least and greatest value of each number of a hinge or slide that is limited, else infinite.
    """

    body_path: tuple[str, ...]
    welded: np.ndarray
    coordinate_count: int
    mocap_count: int
    coordinate_names: tuple[str, ...]
    coordinate_limits: np.ndarray

    def poses(self, qpos: np.ndarray, mocap: np.ndarray | None = None) -> np.ndarray:
        """float64[n, B, 7] xyzw of qpos[n, coordinate_count] and mocap[n, mocap_count, 7] xyzw."""
        ...

    def first_bad_coordinate(self, qpos: np.ndarray) -> BadRow | None:
        """The first row of qpos that is no valid configuration, or None."""
        ...

    def first_bad_mocap(self, mocap: np.ndarray) -> BadRow | None:
        """The first row of mocap[n, mocap_count, 7] with an invalid pose, or None."""
        ...


@dataclass(frozen=True)
class NamedJoint:
    """A joint's coordinates by name.

    path: of the joint. axes: one name a coordinate; ("",) for a single one, ("x", "y", "z", "w")
    for a quaternion. required: a recording with any joint must contain this one; other joints may
    keep the scene's coordinates. angles: numbers of the coordinates that are angles. mimic: the
    joint that it follows, and its own and that joint's resting coordinate, then the factors of the
    powers of the other's displacement, whose sum is its displacement. limits: least and greatest
    value of each coordinate [m or rad], infinite without a limit; of a quaternion 0 and the
    greatest angle of the rotation. Empty where they are not known.
    """

    path: str
    axes: tuple[str, ...]
    required: bool = False
    angles: tuple[int, ...] = ()
    mimic: tuple[str, tuple[float, ...]] | None = None
    limits: tuple[tuple[float, float], ...] = ()

    @property
    def is_quaternion(self) -> bool:
        return self.axes == QUATERNION_AXES

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates: the joint's path, with `:` and the axis if there are
        several."""
        return tuple(f"{self.path}:{axis}" if axis else self.path for axis in self.axes)


class ArticulationKinematics(Protocol):
    """Forward kinematics of one joint tree, or of one free body.

    path: its name. aliases: its short names. body_path: its bodies, the root first. body_parent:
    index in body_path of the body to which each is joined or fixed, -1 for none. joints: those with
    coordinates. root_is_jointed: joints connect the root to the world and determine its pose.
    free_joint: name of the free joint of the root, "" without one or where it has no name.
    """

    path: str
    aliases: tuple[str, ...]
    body_path: tuple[str, ...]
    body_parent: tuple[int, ...]
    joints: tuple[NamedJoint, ...]
    root_is_jointed: bool
    free_joint: str

    def poses(
        self, root_pose: np.ndarray | None, columns: JointColumns, joint_position: np.ndarray
    ) -> np.ndarray:
        """float64[n, B, 7]: world poses of the bodies, xyzw, unit, in the order of body_path, by
        configuration.

        root_pose: float64[n, 7], xyzw, unit, of the root body; None is the scene's. Unused if
        `root_is_jointed`. columns: the column of joint_position of each coordinate; joints without
        columns keep the scene's coordinates. joint_position: float64[n, k], metres and radians;
        quaternions xyzw.
        """
        ...


@runtime_checkable
class MujocoCoordinates(Protocol):
    """An articulation of a scene compiled by MuJoCo."""

    def coordinates(
        self,
        root_pose: np.ndarray | None,
        columns: JointColumns,
        joint_position: np.ndarray,
        qpos: np.ndarray | None,
    ) -> np.ndarray | None:
        """float64[n, nq] of the scene: qpos, None for the initial one, with the articulation's
        coordinates of `poses`.

        None for a root pose of a root without a joint, which no coordinates have.
        """
        ...


class ArticulatedScene(Protocol):
    """Every articulation and free body of a scene. warnings: joints that the kinematics omits, by
    name."""

    @property
    def articulations(self) -> tuple[ArticulationKinematics, ...]: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


class JointColumns:
    """The recorded columns of an articulation's coordinates, and their names. where: the dataset,
    for messages.

    The name of a column is a coordinate's whole name, or its last path element if that is unique.
    of_joint: per joint an int array, the column of each coordinate, -1 for a missing one; None for
    a joint without recorded coordinates. warnings: coordinates that the recording lacks, by name.
    Raises InputError: an unknown name, a duplicate name, an incomplete quaternion, a missing
    required joint.
    """

    def __init__(
        self, articulation: ArticulationKinematics, names: Sequence[str], where: str
    ) -> None:
        self.names = tuple(names)
        self._joints = articulation.joints
        self.warnings: list[str] = []
        coordinates = coordinate_names(articulation)
        row_of = {name: index for index, name in enumerate(coordinates)}
        known = {name: row_of[path] for name, path in paths_by_name(coordinates).items()}
        column_of: dict[int, int] = {}
        unknown = [name for name in names if name not in known]
        if unknown:
            what = f"'{articulation.path}' has no joint {some_names(unknown)}"
            raise InputError(
                what,
                where,
                f"its coordinates are {some_names(coordinate_names(articulation)) or 'none'}",
            )
        for column, name in enumerate(names):
            if known[name] in column_of:
                raise InputError(f"joint '{name}' is named twice", where, "name each column once")
            column_of[known[name]] = column
        self.of_joint: list[np.ndarray | None] = []
        start = 0
        missing = []
        zero = []
        for joint in articulation.joints:
            columns = np.array(
                [column_of.get(start + k, -1) for k in range(len(joint.axes))], np.intp
            )
            start += len(joint.axes)
            absent = [
                name for name, column in zip(joint.coordinates, columns, strict=True) if column < 0
            ]
            nothing = len(absent) == len(joint.axes)
            if absent and names and (joint.required or (joint.is_quaternion and not nothing)):
                raise InputError(
                    f"the recording lacks {some_names(absent)}", where, "record every coordinate"
                )
            missing += absent if nothing else []
            zero += [] if nothing else absent
            self.of_joint.append(None if nothing else columns)
        if missing:
            what = (
                f"{len(missing)} coordinates of '{articulation.path}' are not in the recording;"
                " their joints"
            )
            self.warnings.append(f"{where}: {what} stay as in the scene: {some_names(missing)}")
        if zero:
            self.warnings.append(
                f"{where}: not in the recording and taken as 0: {some_names(zero)}"
            )

    def angles(self) -> np.ndarray:
        """int[k]: the columns that are angles."""
        pairs = zip(self._joints, self.of_joint, strict=True)
        parts = [
            columns[list(joint.angles)]
            for joint, columns in pairs
            if columns is not None and joint.angles
        ]
        joined = np.concatenate(parts) if parts else np.zeros(0, np.intp)
        return joined[joined >= 0]

    def single(self, count: int) -> list[int]:
        """The columns below `count` that are no parts of quaternions, in ascending order."""
        pairs = zip(self._joints, self.of_joint, strict=True)
        found = [c for joint, c in pairs if c is not None and not joint.is_quaternion]
        return sorted(column for c in found for column in c.tolist() if 0 <= column < count)

    def first_fault(self, joint_position: np.ndarray, tolerance: float) -> tuple[int, str] | None:
        """Row and error of the first row of joint_position[n, k] that is no valid configuration;
        None if all are."""
        finite = np.isfinite(joint_position)
        bad = ~finite.all(axis=1)
        norms = []
        with np.errstate(invalid="ignore", over="ignore"):
            for joint, columns in zip(self._joints, self.of_joint, strict=True):
                if columns is not None and joint.is_quaternion:
                    norms.append((joint.path, norm(joint_position[:, columns])))
                    bad |= ~(np.abs(norms[-1][1] - 1.0) <= tolerance)
        if not bad.any():
            return None
        row = int(np.argmax(bad))
        if not finite[row].all():
            column = int(np.argmin(finite[row]))
            return (
                row,
                (
                    f"the coordinate of joint '{self.names[column]}' is"
                    f" {joint_position[row, column]:g}"
                ),
            )
        path, off = next(
            (path, values[row]) for path, values in norms if not abs(values[row] - 1.0) <= tolerance
        )
        return row, f"the quaternion of joint '{path}' has norm {off:.6g}"


def coordinate_names(articulation: ArticulationKinematics) -> tuple[str, ...]:
    """Names of an articulation's coordinates, in the order of its joints."""
    return tuple(name for joint in articulation.joints for name in joint.coordinates)


def find_articulation(
    articulations: Sequence[ArticulationKinematics], name: str, where: str
) -> ArticulationKinematics:
    """The articulation or free body of a name: its path, else one of its aliases, else one
    regardless of case.

    Raises InputError if there is none, or more than one.
    """
    for matches in (
        [x for x in articulations if x.path == name],
        [x for x in articulations if name in x.aliases],
        [x for x in articulations if name.lower() in (alias.lower() for alias in x.aliases)],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            paths = some_names([x.path for x in matches])
            raise InputError(f"'{name}' may be any of {paths}", where, "give its whole path")
    fix = (
        f"it has {some_names([x.path for x in articulations])}" if articulations else "it has none"
    )
    raise InputError(f"the scene has no articulation or body '{name}'", where, fix)


def paths_by_name(paths: Sequence[str]) -> dict[str, str]:
    """The path that each name selects in any recording: a whole path, or a last element that no
    other path has."""
    of_last = Counter(map(last_element, paths))
    last = {last_element(path): path for path in paths if of_last[last_element(path)] == 1}
    return last | {path: path for path in paths}


def last_element(path: str) -> str:
    """The part of a path behind the last slash."""
    return path.rsplit("/", 1)[-1]
