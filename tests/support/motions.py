"""Motions that need no file."""

from __future__ import annotations

import numpy as np


class ArrayMotion:
    """Poses already in memory, as a motion (see `scene.motion.Motion`): reading costs nothing.

    poses: float64[frames, worlds, B, 7], xyzw.
    """

    def __init__(self, poses: np.ndarray, episodes=None) -> None:
        self.poses = poses
        self.time = np.arange(len(poses), dtype=float)
        self.step = np.arange(len(poses))
        self.world_count, self.float_type, self.sha256 = poses.shape[1], np.dtype(np.float64), ""
        self.warnings, self.kinematics_seconds, self.episodes = (), 0.0, episodes

    def read(self, frames: range) -> np.ndarray:
        return self.poses[frames.start : frames.stop]

    def close(self) -> None:
        pass
