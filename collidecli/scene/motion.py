"""Interface of a recorded motion: body poses of frames, readable in chunks."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Motion(Protocol):
    """Body poses over time, matched to a model's bodies.

    time: float64[F] [s], non-decreasing. step: int64[F], the recorder's own step numbers.
    world_count: worlds in the recording; 1 applies to any number of worlds of the model: the poses are those of the
        first world of each body's template, and `Model.world_shift` transforms them to the others.
    float_type: dtype of the recording, float32 or float64; witness points have it too.
    sha256: of the recording's bytes; empty if the motion is part of the scene file.
    """

    time: np.ndarray
    step: np.ndarray
    world_count: int
    float_type: np.dtype

    @property
    def sha256(self) -> str: ...

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), world_count, B, 7]: world pose of each of the model's bodies, xyzw, normalized.

        Raises InputError, with dataset, frame, world and body, for a pose that is not finite or not a rotation.
        """
        ...

    def close(self) -> None: ...


class RestingMotion:
    """The scene's resting pose as a motion of one frame at time 0.

    poses: float64[1 or W, B, 7], of all worlds in common, or of each.
    """

    def __init__(self, poses: np.ndarray) -> None:
        self.time = np.zeros(1)
        self.step = np.zeros(1, np.int64)
        self.world_count = len(poses)
        self.float_type = np.dtype(np.float64)
        self.sha256 = ""
        self._pose = np.ascontiguousarray(poses)[None]

    def read(self, frames: range) -> np.ndarray:
        return np.repeat(self._pose, len(frames), axis=0)

    def close(self) -> None:
        pass
