"""Derived motions: a slice of frames, and the motions of several scenes as worlds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from collidecli.elapsed import NOT_RUN, Elapsed
from collidecli.scene.episodes import Episodes
from collidecli.scene.joint_poses import HasJointPoses, JointPoses
from collidecli.scene.motion import Motion, has_joint_tree, recorded_particles
from collidecli.scene.shape_switches import switches_of

if TYPE_CHECKING:
    from collidecli.scene.model import Model


class SlicedMotion:
    """Evenly spaced frames of another motion."""

    def __init__(self, motion: Motion, frames: range) -> None:
        self._motion = motion
        self._frames = frames
        picked = slice(frames.start, frames.stop, frames.step)
        self.time = motion.time[picked]
        self.step = motion.step[picked]
        self.world_count = motion.world_count
        self.float_type = motion.float_type
        self.sha256 = motion.sha256
        self.episodes = None if motion.episodes is None else motion.episodes.sliced(frames)
        switches = switches_of(motion)
        self.switches = None if switches is None else switches.sliced(frames)

    def read(self, frames: range) -> np.ndarray:
        picked = self._frames[frames.start : frames.stop]
        if self._frames.step == 1:
            return self._motion.read(picked)
        # Frame by frame, so that the frames between two selected ones are never in memory.
        return np.concatenate([self._motion.read(range(frame, frame + 1)) for frame in picked])

    def read_joints(self, frames: range) -> JointPoses | None:
        """See `HasJointPoses`: of consecutive frames."""
        picked = self._frames[frames.start : frames.stop]
        if self._frames.step != 1 or not isinstance(self._motion, HasJointPoses):
            return None
        return self._motion.read_joints(picked)

    def read_particles(self, frames: range) -> np.ndarray | None:
        picked = self._frames[frames.start : frames.stop]
        if self._frames.step == 1:
            return recorded_particles(self._motion, picked)
        positions = [recorded_particles(self._motion, range(frame, frame + 1)) for frame in picked]
        recorded = [known for known in positions if known is not None]
        return np.concatenate(recorded) if recorded else None

    @property
    def kinematics_time(self) -> Elapsed:
        return self._motion.kinematics_time

    @property
    def has_joint_tree(self) -> bool:
        return has_joint_tree(self._motion)

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._motion.warnings

    def close(self) -> None:
        self._motion.close()


class MergedMotion:
    """World k moves by motion k; a world without a motion rests."""

    def __init__(self, motions: Sequence[Motion | None], model: Model) -> None:
        self._motions = motions
        self._model = model
        first = next(motion for motion in motions if motion is not None)
        self.time = first.time
        self.step = first.step
        self.warnings = tuple(
            dict.fromkeys(w for motion in motions if motion is not None for w in motion.warnings)
        )
        self.world_count = len(motions)
        self.float_type = first.float_type
        self.sha256 = ""
        self.episodes: Episodes | None = None

    def read(self, frames: range) -> np.ndarray:
        rest = np.broadcast_to(
            self._model.bodies.pose, (len(frames), 1, *self._model.bodies.pose.shape)
        )
        parts = [rest if motion is None else motion.read(frames) for motion in self._motions]
        return np.concatenate(parts, axis=1)

    def read_particles(self, frames: range) -> np.ndarray | None:
        if not len(self._model.particles):
            return None
        positions = [
            None if motion is None else recorded_particles(motion, frames)
            for motion in self._motions
        ]
        if all(known is None for known in positions):
            return None
        rest = self._model.particles.position
        rest = np.broadcast_to(rest, (len(frames), 1, *rest.shape))
        return np.concatenate([rest if known is None else known for known in positions], axis=1)

    @property
    def has_joint_tree(self) -> bool:
        return any(motion is not None and has_joint_tree(motion) for motion in self._motions)

    @property
    def kinematics_time(self) -> Elapsed:
        times = [motion.kinematics_time for motion in self._motions if motion is not None]
        return reduce(Elapsed.plus, times, NOT_RUN)

    def close(self) -> None:
        for motion in self._motions:
            if motion is not None:
                motion.close()
