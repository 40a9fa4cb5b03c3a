"""Joints that follow another one: `mimic` of a URDF, coupled joints of MJCF, mimic joints of USD.

Where a recording has the joint that is followed and not the one that follows, the position of the
latter is computed. All readers of recordings by joint name, and `collide matrix`, use this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.scene.kinematics import (
    ArticulationKinematics,
    JointColumns,
    NamedJoint,
    coordinate_names,
    paths_by_name,
)


@dataclass(frozen=True)
class _Follower:
    """column: of the joint that is followed. rest, leader_rest: resting coordinates of both.
    polynomial: factors of the powers of the displacement."""

    name: str
    column: int
    rest: float
    leader_rest: float
    polynomial: tuple[float, ...]


class FollowedJoints:
    """The followers among joints that a recording lacks.

    joints: of one or several articulations. recorded: names of the recorded columns. columns: of
    these by the whole names of their coordinates. names: those of the recorded columns, then of the
    followers, each after the joint that it follows.
    """

    def __init__(
        self, joints: Sequence[NamedJoint], recorded: Sequence[str], columns: Mapping[str, int]
    ) -> None:
        self._recorded = len(recorded)
        self._followers: list[_Follower] = []
        column_of = dict(columns)
        pending = [
            joint for joint in joints if joint.mimic is not None and joint.path not in column_of
        ]
        names = list(recorded)
        found = True
        while found:  # a joint may follow one that follows another
            found = False
            for joint in list(pending):
                assert joint.mimic is not None
                leader, (rest, leader_rest, *polynomial) = joint.mimic
                column = column_of.get(leader)
                if column is None:
                    continue
                self._followers.append(
                    _Follower(joint.path, column, rest, leader_rest, tuple(polynomial))
                )
                column_of[joint.path] = len(names)
                names.append(joint.path)
                pending.remove(joint)
                found = True
        self.names = tuple(names)

    def __bool__(self) -> bool:
        return bool(self._followers)

    @np.errstate(over="ignore", invalid="ignore")
    def completed(self, positions: np.ndarray) -> np.ndarray:
        """float64[n, len(names)]: the recorded positions [rad or m], float64[n, recorded], with
        those of the followers."""
        if not self._followers:
            return positions
        out = np.empty((len(positions), len(self.names)))
        out[:, : self._recorded] = positions
        for column, follower in enumerate(self._followers, self._recorded):
            moved = out[:, follower.column] - follower.leader_rest
            displacement = np.zeros(len(out))
            for factor in reversed(follower.polynomial):
                displacement = displacement * moved + factor
            out[:, column] = follower.rest + displacement
        return out


def followed_joints(
    articulation: ArticulationKinematics, recorded: Sequence[str]
) -> FollowedJoints:
    """The followers of one articulation. recorded: names of columns; one may be a last element that
    is unique."""
    path_of = paths_by_name(coordinate_names(articulation))
    columns = {path_of[name]: column for column, name in enumerate(recorded) if name in path_of}
    return FollowedJoints(articulation.joints, recorded, columns)


def joint_columns(
    articulation: ArticulationKinematics,
    names: Sequence[str],
    positions: Callable[[range], np.ndarray] | None,
    where: str,
) -> tuple[JointColumns, Callable[[range], np.ndarray] | None]:
    """The columns of an articulation of which `names` are recorded, followers added, and a function
    that returns their positions of frames; None for `positions` None.

    positions: of frames, float64[n, len(names)]. where: file and dataset. Raises InputError as
    `JointColumns`.
    """
    followed = followed_joints(articulation, names)
    columns = JointColumns(articulation, followed.names, where)
    if positions is None or not followed:
        return columns, positions
    return columns, lambda frames: followed.completed(positions(frames))
