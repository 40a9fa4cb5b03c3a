"""The interface of a motion: frames that can be read in chunks of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from collidecli.elapsed import NOT_RUN, Elapsed
from collidecli.errors import InputError

if TYPE_CHECKING:
    from collidecli.scene.episodes import Episodes


class Motion(Protocol):
    """Body poses over time, matched to a model's bodies.

    time: float64[F] [s], non-decreasing, or frame numbers, see `time_unit`. step: int64[F], the
        recorder's own step numbers.
    world_count: worlds in the recording. 1 applies to every world of the model: a body has the
        recorded pose in the first world of its template, and that pose moved by `Model.world_shift`
        in the others.
    float_type: the dtype of the recording, float32 or float64; witness points are written in it.
    warnings: for the user, one line each. kinematics_time: spent in forward kinematics by `read` so
    far. sha256: of the recording's bytes; empty when the motion is part of the scene
    file. episodes: of a recording that
        consists of demonstrations, or None. A cell outside every episode has poses, but no
        contacts.
    """

    time: np.ndarray
    step: np.ndarray
    world_count: int
    float_type: np.dtype
    episodes: Episodes | None

    @property
    def warnings(self) -> tuple[str, ...]: ...

    @property
    def kinematics_time(self) -> Elapsed: ...

    @property
    def sha256(self) -> str: ...

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), world_count, B, 7]: world pose of each of the model's bodies, xyzw,
        normalized.

        Raises InputError with dataset, frame, world and body of a pose that is not finite or not a
        rotation.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class RecordsCoordinates(Protocol):
    """A motion of generalized coordinates of one MuJoCo scene."""

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), world_count, nq], and poses of mocap bodies [len(frames),
        world_count, nmocap, 7], xyzw, or None where they rest. None in place of both for a
        recording of body poses.
        """
        ...


def has_joint_tree(motion: Motion) -> bool:
    """Whether a motion computes its poses by a tree of joints (`scene.kinematics`): its attribute
    of this name."""
    return bool(getattr(motion, "has_joint_tree", False))


SECOND = "s"
FRAME = "frame"
"""Units of times: seconds, or numbers of frames where the times of the frames are unknown."""
NO_TIME = "the poses are an array without times"
GIVE_TIMES = "give time= [s] or fps= beside the poses"


def time_unit(motion: Motion) -> str:
    """SECOND, or FRAME for poses whose times are unknown: a motion's attribute `time_unit`."""
    return str(getattr(motion, "time_unit", SECOND))


def check_seconds(unit: str, where: str) -> None:
    """Raises InputError for a result in seconds, named by `where`, of poses whose times are
    unknown."""
    if unit != SECOND:
        raise InputError(f"{NO_TIME}: there are no seconds", where, GIVE_TIMES)


def recorded_particles(motion: Motion, frames: range) -> np.ndarray | None:
    """float64[len(frames), world_count, P, 3]: world positions of a model's particles; None if they
    rest.

    Of a motion with the method `read_particles`, which raises InputError with dataset, frame, world
    and particle of a position that is not finite.
    """
    read = getattr(motion, "read_particles", None)
    return None if read is None else read(frames)


def episodes_in(motion: Motion, world_count: int) -> Episodes | None:
    """The episodes of a motion in the worlds of a model; one recorded world moves all of them."""
    if motion.episodes is None or motion.world_count > 1:
        return motion.episodes
    return motion.episodes.in_worlds(world_count)


class TimedMotion:
    """Base of motions with one time a frame: of one world, float64 and no recording, unless they
    set other values.

    time: float64[F] [s]. close: releases what is read; None where nothing is open.
    """

    world_count: int = 1
    float_type: np.dtype = np.dtype(np.float64)
    warnings: tuple[str, ...] = ()
    kinematics_time: Elapsed = NOT_RUN
    episodes: Episodes | None = None

    def __init__(self, time: np.ndarray, close: Callable[[], None] | None = None) -> None:
        self.time = time
        self.step = np.arange(len(time), dtype=np.int64)
        self._close = close

    def close(self) -> None:
        if self._close is not None:
            self._close()


class RestingMotion(TimedMotion):
    """The scene's resting pose, as a motion of one frame at time 0.

    poses: float64[1 or W, B, 7], of all worlds or of each world.
    """

    def __init__(self, poses: np.ndarray) -> None:
        super().__init__(np.zeros(1))
        self.world_count = len(poses)
        self.sha256 = ""
        self._pose = np.ascontiguousarray(poses)[None]

    def read(self, frames: range) -> np.ndarray:
        return np.repeat(self._pose, len(frames), axis=0)
