"""A motion from an array of poses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.storage.trajectories.bodies import normalize, pose_fault

FLOAT_TYPES = ("float32", "float64")


class PoseArray:
    """A motion (see `scene.motion.Motion`) from an array of poses; frame k has time k.

    Args:
        poses: float32 or float64[frames, worlds, bodies, 7], x y z then qx qy qz qw.
        body_path: paths of the model's bodies.
    Raises InputError for another shape or type. An invalid pose raises InputError when its frame is read.
    """

    def __init__(self, poses: np.ndarray, body_path: Sequence[str]) -> None:
        wanted = ("frames", "worlds", len(body_path), 7)
        if poses.ndim != 4 or poses.shape[2:] != wanted[2:]:
            raise InputError(
                f"has shape {poses.shape}", "body_q", f"give ({', '.join(map(str, wanted))}): a pose for each body"
            )
        if poses.dtype.name not in FLOAT_TYPES:
            raise InputError(f"is of type {poses.dtype}", "body_q", f"give {' or '.join(FLOAT_TYPES)}")
        self._poses, self._body_path = poses, body_path
        self.time = np.arange(len(poses), dtype=np.float64)
        self.step = np.arange(len(poses))
        self.world_count, self.float_type, self.sha256 = poses.shape[1], poses.dtype, ""
        self.warnings: tuple[str, ...] = ()
        self.kinematics_seconds = 0.0

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), worlds, bodies, 7], every quaternion normalized; see `Motion.read`."""
        poses = self._poses[frames.start : frames.stop].astype(np.float64, order="C")
        bad = normalize(poses)
        if bad is not None:
            frame, world, body = (int(k) for k in np.argwhere(bad)[0])
            raise InputError(
                pose_fault(poses[frame, world, body]),
                f"body_q, frame {frames[frame]}, world {world}, body '{self._body_path[body]}'",
                "give seven finite numbers, x y z and a unit quaternion xyzw",
            )
        return poses

    def close(self) -> None:
        pass
