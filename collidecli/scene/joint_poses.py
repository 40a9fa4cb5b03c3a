"""Coordinates of joints from which a device computes the poses of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Protocol, runtime_checkable

import numpy as np

from collidecli.scene.joint_tree import JointTree, PoseSteps
from collidecli.scene.kinematics import JointColumns, MujocoCoordinates


@dataclass(frozen=True)
class JointPoses:
    """Poses of consecutive frames by the coordinates of one tree of joints.

    tree: its bodies but the world are the model's, in order. coordinates: float64[n, W, k],
    contiguous, of recorded worlds. first_frame: of the recording. poses_of: the poses float64[n, W,
    B, 7] of coordinates and their frames, computed and checked by the host. needs_host: set where
    the coordinates of some frame need the host; of all parts of a motion.
    """

    tree: JointTree
    coordinates: np.ndarray
    first_frame: int
    poses_of: Callable[[np.ndarray, range], np.ndarray]
    needs_host: Event = field(default_factory=Event)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the poses."""
        frames, worlds, _ = self.coordinates.shape
        return frames, worlds, len(self.tree.body_kind) - 1, 7

    def placeholder(self) -> np.ndarray:
        """An array of the poses' shape without numbers, and without memory."""
        return np.broadcast_to(np.nan, self.shape)

    def part(self, begin: int, end: int) -> JointPoses:
        """Frames `begin` to `end` - 1 of these."""
        return replace(
            self,
            coordinates=self.coordinates[begin:end],
            first_frame=self.first_frame + begin,
        )

    def poses(self) -> np.ndarray:
        """float64[n, W, B, 7], by the host; raises InputError as `Motion.read` does."""
        first = self.first_frame
        return self.poses_of(self.coordinates, range(first, first + len(self.coordinates)))


@runtime_checkable
class HasTree(Protocol):
    """Kinematics by one tree of joints, whose coordinates are `Kinematics.poses`' qpos, and behind
    them the recorded poses of mocap bodies; without these mocap bodies rest. coordinate_count: of
    qpos."""

    coordinate_count: int

    def joint_tree(self, has_mocap: bool) -> JointTree: ...

    def tree_coordinates(self, qpos: np.ndarray, mocap: np.ndarray | None) -> np.ndarray:
        """float64[n, k], contiguous, of the arguments of `Kinematics.poses`."""
        ...

    def poses_of_tree(self, coordinates: np.ndarray) -> np.ndarray:
        """`Kinematics.poses` of `tree_coordinates`."""
        ...


@runtime_checkable
class HasSteps(Protocol):
    """An articulation (`ArticulationKinematics`) whose poses steps write, after the poses of its
    tree if it has one (`InTree`)."""

    def add_steps(
        self, steps: PoseSteps, bodies: Sequence[int], columns: JointColumns, place: RowPlace
    ) -> None:
        """Appends the steps that write its poses, of `ArticulationKinematics.poses`. bodies: of
        body_path, in the tree without the world."""
        ...


@runtime_checkable
class InTree(HasSteps, MujocoCoordinates, Protocol):
    """An articulation of a scene with one tree of joints. tree_of: the kinematics of the scene."""

    @property
    def tree_of(self) -> HasTree: ...

    def is_placed(self, columns: JointColumns) -> bool:
        """Whether a root pose moves all bodies behind the tree, whose coordinates do not contain
        it."""
        ...

    def placed(self, poses: np.ndarray, root_pose: np.ndarray) -> np.ndarray:
        """float64[n, B, 7]: the poses by the tree, moved by root poses [n, 7]."""
        ...


@dataclass(frozen=True)
class RowPlace:
    """Where a row of coordinates has those of an articulation. root: first column of the root's
    pose, -1 without one. joints: first column of joint_position."""

    root: int
    joints: int


@dataclass(frozen=True)
class TreePoses:
    """Poses of a recording of generalized coordinates by a device. checked: the poses of frames,
    float64[n, W, B, 7], as a read of the recording ends."""

    kinematics: HasTree
    tree: JointTree
    checked: Callable[[np.ndarray, range], np.ndarray]

    def read(self, qpos: np.ndarray, mocap: np.ndarray | None, first_frame: int) -> JointPoses:
        """Of valid qpos[n, W, nq] and mocap[n * W, nmocap, 7], or None."""
        flat = self.kinematics.tree_coordinates(configurations(qpos), mocap)
        shaped = flat.reshape(*qpos.shape[:2], flat.shape[1])
        return JointPoses(self.tree, shaped, first_frame, self._poses_of)

    def _poses_of(self, coordinates: np.ndarray, frames: range) -> np.ndarray:
        poses = self.kinematics.poses_of_tree(configurations(coordinates))
        return self.checked(poses.reshape(*coordinates.shape[:2], *poses.shape[1:]), frames)


def configurations(coordinates: np.ndarray) -> np.ndarray:
    """[n * W, k] of [n, W, k]; k may be 0."""
    frames, worlds, width = coordinates.shape
    return coordinates.reshape(frames * worlds, width)


def tree_poses(
    kinematics: object, has_mocap: bool, checked: Callable[[np.ndarray, range], np.ndarray]
) -> TreePoses | None:
    """See `TreePoses`; None for kinematics without a tree."""
    if not isinstance(kinematics, HasTree):
        return None
    return TreePoses(kinematics, kinematics.joint_tree(has_mocap), checked)


@runtime_checkable
class HasJointPoses(Protocol):
    """A motion that may be read as coordinates of joints."""

    def read_joints(self, frames: range) -> JointPoses | None:
        """The coordinates that determine all poses of these frames; None where the host computes
        the poses. Raises InputError as `read` does for coordinates that are no configuration."""
        ...
