"""The interface of a motion: frames that can be read in chunks of any size."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from collidecli.scene.episodes import Episodes


class Motion(Protocol):
    """Body poses over time, matched to a model's bodies.

    time: float64[F] [s], non-decreasing. step: int64[F], the recorder's own step numbers.
    world_count: worlds in the recording. 1 applies to every world of the model: a body has the recorded pose in the
        first world of its template, and that pose moved by `Model.world_shift` in the others.
    float_type: the dtype of the recording, float32 or float64; witness points are written in it.
    warnings: for the user, one line each. kinematics_seconds: time spent in forward kinematics by `read` so far [s].
    sha256: of the recording's bytes; empty when the motion is part of the scene file. episodes: of a recording that
        consists of demonstrations, or None. A cell outside every episode has poses, but no contacts.
    """

    time: np.ndarray
    step: np.ndarray
    world_count: int
    float_type: np.dtype
    episodes: Episodes | None

    @property
    def warnings(self) -> tuple[str, ...]: ...

    @property
    def kinematics_seconds(self) -> float: ...

    @property
    def sha256(self) -> str: ...

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), world_count, B, 7]: world pose of each of the model's bodies, xyzw, normalized.

        Raises InputError with dataset, frame, world and body of a pose that is not finite or not a rotation.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class RecordsParticles(Protocol):
    """A motion of particles too."""

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), world_count, P, 3]: world positions of the model's particles; None if they rest.

        Raises InputError with dataset, frame, world and particle of a position that is not finite.
        """
        ...


@runtime_checkable
class RecordsCoordinates(Protocol):
    """A motion of generalized coordinates of one MuJoCo scene."""

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), world_count, nq], and poses of mocap bodies [len(frames), world_count, nmocap, 7],
        xyzw, or None where they rest. None in place of both for a recording of body poses.
        """
        ...


@runtime_checkable
class MovesJoints(Protocol):
    """A motion that may compute poses by a tree of joints (`scene.joint_tree`), and whether it does."""

    @property
    def has_joint_tree(self) -> bool: ...


def has_joint_tree(motion: Motion) -> bool:
    """Whether a motion computes its poses by a tree of joints."""
    return isinstance(motion, MovesJoints) and motion.has_joint_tree


def recorded_particles(motion: Motion, frames: range) -> np.ndarray | None:
    """Positions of the particles in some frames, see `RecordsParticles`; None if they rest."""
    return motion.read_particles(frames) if isinstance(motion, RecordsParticles) else None


def episodes_in(motion: Motion, world_count: int) -> Episodes | None:
    """The episodes of a motion in the worlds of a model; one recorded world moves all of them."""
    if motion.episodes is None or motion.world_count > 1:
        return motion.episodes
    return motion.episodes.in_worlds(world_count)


class RestingMotion:
    """The scene's resting pose, as a motion of one frame at time 0.

    poses: float64[1 or W, B, 7], of all worlds or of each world.
    """

    def __init__(self, poses: np.ndarray) -> None:
        self.time = np.zeros(1)
        self.step = np.zeros(1, np.int64)
        self.world_count = len(poses)
        self.float_type = np.dtype(np.float64)
        self.warnings: tuple[str, ...] = ()
        self.kinematics_seconds, self.sha256 = 0.0, ""
        self.episodes: Episodes | None = None
        self._pose = np.ascontiguousarray(poses)[None]

    def read(self, frames: range) -> np.ndarray:
        return np.repeat(self._pose, len(frames), axis=0)

    def close(self) -> None:
        pass
