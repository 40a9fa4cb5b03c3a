"""Positions of joints by name, as a motion of joints records them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from collidecli.scene.kinematics import ArticulationKinematics, JointColumns


@dataclass(frozen=True)
class RecordedJoint:
    """A joint, or one of several coordinates of it. unit: "rad" or "m". columns: of the positions;
    four of a quaternion, whose unit is rad."""

    name: str
    unit: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class JointPositions:
    """Recorded positions. values: float64[n, W, k]; NaN of a joint that a world does not record."""

    joints: tuple[RecordedJoint, ...]
    values: np.ndarray


@runtime_checkable
class RecordsJoints(Protocol):
    """A motion of joints by name."""

    def joint_positions(self, frames: range) -> JointPositions | None:
        """The recorded positions; None where the joints have no names. Raises InputError as
        `Motion.read` does."""
        ...


def joints_of_columns(
    articulation: ArticulationKinematics, columns: JointColumns
) -> list[RecordedJoint]:
    """The joints of an articulation that have recorded columns."""
    found = []
    for joint, of_joint in zip(articulation.joints, columns.of_joint, strict=True):
        if of_joint is None:
            continue
        if joint.is_quaternion:
            found.append(RecordedJoint(joint.path, "rad", tuple(of_joint.tolist())))
            continue
        for axis, column in enumerate(of_joint.tolist()):
            unit = "rad" if axis in joint.angles else "m"
            if column >= 0:
                found.append(RecordedJoint(joint.coordinates[axis], unit, (column,)))
    return found


def joints_of_coordinates(
    articulations: Sequence[ArticulationKinematics], names: Sequence[str]
) -> tuple[RecordedJoint, ...]:
    """The joints of articulations in generalized coordinates. names: the joint of each number; a
    free joint is none of an articulation's."""
    columns: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        columns.setdefault(name, []).append(column)
    found = []
    for articulation in articulations:
        for joint in articulation.joints:
            own = columns.get(joint.path, [])
            if len(own) == len(joint.axes):
                unit = "rad" if joint.is_quaternion or joint.angles else "m"
                found.append(RecordedJoint(joint.path, unit, tuple(own)))
    return tuple(found)


class JointsOfWorlds:
    """Positions of the joints of several worlds, joined by name."""

    def __init__(self, frame_count: int, world_count: int) -> None:
        self._shape = frame_count, world_count
        self._joints: dict[str, tuple[RecordedJoint, np.ndarray]] = {}

    def add(self, world: int, joints: Sequence[RecordedJoint], position: np.ndarray) -> None:
        """Adds joints of a world. position: float64[n, k], of all their columns."""
        for joint in joints:
            if joint.name not in self._joints:
                values = np.full((*self._shape, len(joint.columns)), np.nan)
                self._joints[joint.name] = joint, values
            self._joints[joint.name][1][:, world] = position[:, list(joint.columns)]

    def positions(self) -> JointPositions:
        """All joints with their positions."""
        parts = [np.zeros((*self._shape, 0))]
        joints = []
        width = 0
        for joint, values in self._joints.values():
            columns = tuple(range(width, width + len(joint.columns)))
            width += len(columns)
            joints.append(RecordedJoint(joint.name, joint.unit, columns))
            parts.append(values)
        return JointPositions(tuple(joints), np.concatenate(parts, axis=2))
