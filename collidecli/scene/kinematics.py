"""What a scene's forward kinematics is to the readers of recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import norm

BadPlace = tuple[int, str, str]
"""Row, name of the body, and what is wrong there."""

QUATERNION_AXES = ("x", "y", "z", "w")
NAMES_SHOWN = 12


class Kinematics(Protocol):
    """Makes body poses of generalized coordinates, each frame on its own.

    body_path: name of each body. welded: bool[B], bodies that are part of the static world.
    coordinate_count: numbers per configuration. mocap_count: bodies that are placed directly.
    """

    body_path: tuple[str, ...]
    welded: np.ndarray
    coordinate_count: int
    mocap_count: int

    def poses(self, qpos: np.ndarray, mocap: np.ndarray | None = None) -> np.ndarray:
        """float64[n, B, 7] xyzw of qpos[n, coordinate_count] and mocap[n, mocap_count, 7] xyzw."""
        ...

    def first_bad_coordinate(self, qpos: np.ndarray) -> BadPlace | None:
        """The first row of qpos that is no configuration, or None."""
        ...

    def first_bad_mocap(self, mocap: np.ndarray) -> BadPlace | None:
        """The first row of mocap[n, mocap_count, 7] that is no pose, or None."""
        ...


@dataclass(frozen=True)
class NamedJoint:
    """A joint's coordinates by name.

    path: the joint's. axes: one name a coordinate; ("",) where there is one, ("x", "y", "z", "w") of a quaternion.
    required: a recording that has any joint must have this one, though others may stay as in the scene.
    """

    path: str
    axes: tuple[str, ...]
    required: bool = False

    @property
    def is_quaternion(self) -> bool:
        return self.axes == QUATERNION_AXES

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates: the joint's path, with `:` and the axis where there are several."""
        return tuple(f"{self.path}:{axis}" if axis else self.path for axis in self.axes)


class ArticulationKinematics(Protocol):
    """Forward kinematics of one tree of joints, or of one free body.

    path: its name. aliases: short names that it answers to. body_path: its bodies, the root first.
    joints: those with coordinates. root_is_jointed: joints hold the root to the world, and place it.
    """

    path: str
    aliases: tuple[str, ...]
    body_path: tuple[str, ...]
    joints: tuple[NamedJoint, ...]
    root_is_jointed: bool

    def poses(self, root_pose: np.ndarray | None, columns: JointColumns, joint_position: np.ndarray) -> np.ndarray:
        """World poses of the bodies, each configuration on its own.

        Args:
            root_pose: float64[n, 7], xyzw, unit: where the root body stands; None leaves it as in the scene. Not used
                where `root_is_jointed`.
            columns: which column of joint_position is which coordinate, made for these joints.
            joint_position: float64[n, k], metres and radians; quaternions xyzw.
        Returns:
            float64[n, B, 7], xyzw, unit, in the order of body_path. Joints without columns stay as in the scene.
        """
        ...


class ArticulatedScene(Protocol):
    """Every articulation and free body of a scene. warnings: joints that the kinematics leaves out, by name."""

    @property
    def articulations(self) -> tuple[ArticulationKinematics, ...]: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


class JointColumns:
    """Which recorded column is which coordinate of an articulation.

    A column is named by a coordinate's whole name or by its last path element, where that is one coordinate's only.

    Args:
        articulation: whose joints.
        names: of the columns.
        where: the dataset, for messages.
    Attributes:
        of_joint: per joint an int array, a column for each coordinate, -1 for one left out; None for a joint of which
            nothing is recorded.
        warnings: what the recording leaves out, by name.
    Raises:
        InputError: a name that no coordinate has, a name twice, a quaternion in part, a joint that must be recorded.
    """

    def __init__(self, articulation: ArticulationKinematics, names: Sequence[str], where: str) -> None:
        self.names, self._joints = tuple(names), articulation.joints
        self.warnings: list[str] = []
        known = {name: place for place, name in enumerate(coordinate_names(articulation))}
        short = Counter(last_element(name) for name in known)
        known |= {last_element(n): place for n, place in tuple(known.items()) if short[last_element(n)] == 1}
        column_of: dict[int, int] = {}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise InputError(
                f"'{articulation.path}' has no joint {some_names(unknown)}",
                where,
                f"its coordinates are {some_names(coordinate_names(articulation)) or 'none'}",
            )
        for column, name in enumerate(names):
            if known[name] in column_of:
                raise InputError(f"joint '{name}' is named twice", where, "name each column once")
            column_of[known[name]] = column
        self.of_joint: list[np.ndarray | None] = []
        start, missing, zero = 0, [], []
        for joint in articulation.joints:
            columns = np.array([column_of.get(start + k, -1) for k in range(len(joint.axes))], np.intp)
            start += len(joint.axes)
            absent = [name for name, column in zip(joint.coordinates, columns, strict=True) if column < 0]
            nothing = len(absent) == len(joint.axes)
            if absent and names and (joint.required or (joint.is_quaternion and not nothing)):
                raise InputError(f"the recording leaves out {some_names(absent)}", where, "record every coordinate")
            missing += absent if nothing else []
            zero += [] if nothing else absent
            self.of_joint.append(None if nothing else columns)
        if missing:
            self.warnings.append(
                f"{where}: {len(missing)} coordinates of '{articulation.path}' are not in the recording; their joints "
                f"stay as in the scene: {some_names(missing)}"
            )
        if zero:
            self.warnings.append(f"{where}: not in the recording and taken as 0: {some_names(zero)}")

    def first_fault(self, joint_position: np.ndarray, tolerance: float) -> tuple[int, str] | None:
        """Row of joint_position[n, k] and what is wrong, for the first that is no configuration; else None."""
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
            return row, f"the coordinate of joint '{self.names[column]}' is {joint_position[row, column]:g}"
        path, off = next((path, each[row]) for path, each in norms if not abs(each[row] - 1.0) <= tolerance)
        return row, f"the quaternion of joint '{path}' has norm {off:.6g}"


def coordinate_names(articulation: ArticulationKinematics) -> tuple[str, ...]:
    """Names of an articulation's coordinates, in the order of its joints."""
    return tuple(name for joint in articulation.joints for name in joint.coordinates)


def find_articulation(scene: ArticulatedScene, name: str, where: str) -> ArticulationKinematics:
    """The articulation or free body of that name: its path, else one of its aliases, else one but for capitals.

    Raises InputError where there is none, or more than one.
    """
    held = scene.articulations
    for found in (
        [x for x in held if x.path == name],
        [x for x in held if name in x.aliases],
        [x for x in held if name.lower() in (alias.lower() for alias in x.aliases)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            paths = some_names([x.path for x in found])
            raise InputError(f"'{name}' may be any of {paths}", where, "name it by its whole path")
    paths = some_names([x.path for x in held])
    raise InputError(
        f"the scene has no articulation or body '{name}'", where, f"it has {paths}" if paths else "nothing in it moves"
    )


def last_element(path: str) -> str:
    """What follows the last slash."""
    return path.rsplit("/", 1)[-1]


def some_names(names: Sequence[str], limit: int = NAMES_SHOWN) -> str:
    """Names in quotes; the first of many."""
    shown = ", ".join(f"'{name}'" for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
