"""Motions of poses that are given as an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.argument_types import is_number
from collidecli.scene.arguments import float_array
from collidecli.scene.motion import FRAME, SECOND, TimedMotion
from collidecli.storage.pose_checks import check_positions, normalize, pose_fault

if TYPE_CHECKING:
    from collidecli.scene.model import Model

FLOAT_TYPES = ("float32", "float64")


class PoseArray(TimedMotion):
    """A motion (see `scene.motion.Motion`) from an array of poses.

    Args:
        poses: float32 or float64[frames, worlds, bodies, 7], x y z then qx qy qz qw.
        body_path: paths of the model's bodies. particles: a result of `checked_particles`; None if
            they rest.
        time: float64[frames], a result of `frame_times` [s]; None if it is unknown: frame k then
            has the time k, and the motion's `time_unit` is FRAME.
    Raises InputError for another shape or type. An invalid pose raises InputError when its frame is
        read.
    """

    def __init__(
        self,
        poses: np.ndarray,
        body_path: Sequence[str],
        particles: np.ndarray | None = None,
        time: np.ndarray | None = None,
    ) -> None:
        wanted = ("frames", "worlds", len(body_path), 7)
        if poses.ndim != 4 or poses.shape[2:] != wanted[2:]:
            what = f"has shape {poses.shape}"
            raise InputError(
                what, "body_q", f"give ({', '.join(map(str, wanted))}): a pose for each body"
            )
        if poses.dtype.name not in FLOAT_TYPES:
            raise InputError(
                f"is of type {poses.dtype}", "body_q", f"give {' or '.join(FLOAT_TYPES)}"
            )
        if particles is not None and len(particles) != len(poses):
            what = f"has {len(particles)} frames, and body_q {len(poses)}"
            raise InputError(what, "particle_q", "give as many of both")
        super().__init__(np.arange(len(poses), dtype=np.float64) if time is None else time)
        self.time_unit = FRAME if time is None else SECOND
        self._poses = poses
        self._body_path = body_path
        self._particles = particles
        self.world_count = poses.shape[1]
        self.float_type = poses.dtype
        self.sha256 = ""

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), worlds, bodies, 7], every quaternion normalized; see
        `Motion.read`."""
        poses = self._poses[frames.start : frames.stop].astype(np.float64, order="C")
        bad = normalize(poses)
        if bad is not None:
            frame, world, body = (int(k) for k in np.argwhere(bad)[0])
            what = pose_fault(poses[frame, world, body])
            where = f"body_q, frame {frames[frame]}, world {world}, body '{self._body_path[body]}'"
            raise InputError(
                what, where, "give seven finite numbers, x y z and a unit quaternion xyzw"
            )
        return poses

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), worlds or 1, particles, 3], see `recorded_particles`; None if they
        rest."""
        return None if self._particles is None else self._particles[frames.start : frames.stop]


def frame_times(frame_count: int, time: Any, fps: Any) -> np.ndarray | None:
    """float64[frame_count]: times of the frames of an array of poses [s]; None if neither argument
    is given.

    time: of each frame. fps: frames a second, the first at 0. Raises InputError for both, and for
    invalid values.
    """
    if time is None and fps is None:
        return None
    if time is not None and fps is not None:
        raise InputError("both are given", "time, fps", "give one of them")
    if fps is not None:
        if not is_number(fps) or not 0 < fps < np.inf:
            raise InputError(
                f"{fps!r} is no number of frames a second", "fps", "give a number above 0"
            )
        return np.arange(frame_count, dtype=np.float64) / float(fps)
    times = float_array("time", time, "time")
    if times.shape != (frame_count,):
        raise InputError(
            f"has shape {times.shape}", "time", f"give ({frame_count},): the time of each frame [s]"
        )
    unknown = np.flatnonzero(~np.isfinite(times))
    if len(unknown):
        what = f"the time of frame {unknown[0]} is {times[unknown[0]]}"
        raise InputError(what, "time", "give seconds")
    earlier = np.flatnonzero(np.diff(times) < 0.0)
    if len(earlier):
        what = f"frame {earlier[0] + 1} is before frame {earlier[0]}"
        raise InputError(what, "time", "give times that do not decrease")
    return times


def checked_particles(particle_q: np.ndarray, model: Model) -> np.ndarray:
    """float64[frames, worlds or 1, particles, 3]. Raises InputError for another shape and a
    position not finite."""
    positions = float_array("particle_q", particle_q, "particle_q")
    count = len(model.particles)
    if (
        positions.ndim != 4
        or positions.shape[2:] != (count, 3)
        or positions.shape[1] not in (1, model.world_count)
    ):
        wanted = f"(frames, {' or '.join(map(str, sorted({1, model.world_count})))}, {count}, 3)"
        raise InputError(
            f"has shape {positions.shape}",
            "particle_q",
            f"give {wanted}: a position for each particle",
        )
    check_positions(positions, range(len(positions)), "particle_q")
    return positions
