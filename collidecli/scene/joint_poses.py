"""Coordinates of joints from which a device computes the poses of a chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Protocol, runtime_checkable

import numpy as np

from collidecli.scene.joint_tree import JointTree


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
    """Kinematics by one tree of joints. joint_tree: its coordinates are `Kinematics.poses`' qpos;
    mocap bodies rest."""

    def joint_tree(self) -> JointTree: ...


@runtime_checkable
class HasJointPoses(Protocol):
    """A motion that may be read as coordinates of joints."""

    def read_joints(self, frames: range) -> JointPoses | None:
        """The coordinates that determine all poses of these frames; None where the host computes
        the poses. Raises InputError as `read` does for coordinates that are no configuration."""
        ...
