"""Derived motions: a slice of frames, the motions of several scenes as worlds, and an array of poses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.arguments import float_array
from collidecli.scene.model import Model
from collidecli.scene.motion import Episodes, Motion, has_joint_tree, recorded_particles
from collidecli.storage.trajectories.motion import check_positions, normalize, pose_fault

FLOAT_TYPES = ("float32", "float64")


class PoseArray:
    """A motion (see `scene.motion.Motion`) from an array of poses; frame k has time k.

    Args:
        poses: float32 or float64[frames, worlds, bodies, 7], x y z then qx qy qz qw.
        body_path: paths of the model's bodies. particles: a result of `checked_particles`; None if they rest.
    Raises InputError for another shape or type. An invalid pose raises InputError when its frame is read.
    """

    def __init__(self, poses: np.ndarray, body_path: Sequence[str], particles: np.ndarray | None = None) -> None:
        wanted = ("frames", "worlds", len(body_path), 7)
        if poses.ndim != 4 or poses.shape[2:] != wanted[2:]:
            raise InputError(
                f"has shape {poses.shape}", "body_q", f"give ({', '.join(map(str, wanted))}): a pose for each body"
            )
        if poses.dtype.name not in FLOAT_TYPES:
            raise InputError(f"is of type {poses.dtype}", "body_q", f"give {' or '.join(FLOAT_TYPES)}")
        if particles is not None and len(particles) != len(poses):
            what = f"has {len(particles)} frames, and body_q {len(poses)}"
            raise InputError(what, "particle_q", "give as many of both")
        self._poses, self._body_path, self._particles = poses, body_path, particles
        self.time = np.arange(len(poses), dtype=np.float64)
        self.step = np.arange(len(poses))
        self.world_count, self.float_type, self.sha256 = poses.shape[1], poses.dtype, ""
        self.warnings: tuple[str, ...] = ()
        self.episodes: Episodes | None = None
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

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), worlds or 1, particles, 3], see `RecordsParticles`; None if they rest."""
        return None if self._particles is None else self._particles[frames.start : frames.stop]

    def close(self) -> None:
        pass


def checked_particles(particle_q: np.ndarray, model: Model) -> np.ndarray:
    """float64[frames, worlds or 1, particles, 3]. Raises InputError for another shape and a position not finite."""
    found = float_array("particle_q", particle_q, "particle_q")
    count = len(model.particles)
    if found.ndim != 4 or found.shape[2:] != (count, 3) or found.shape[1] not in (1, model.world_count):
        wanted = f"(frames, {' or '.join(map(str, sorted({1, model.world_count})))}, {count}, 3)"
        raise InputError(f"has shape {found.shape}", "particle_q", f"give {wanted}: a position for each particle")
    check_positions(found, range(len(found)), "particle_q")
    return found


def parse_frames(text: str, frame_count: int) -> range:
    """Frames of the slice `A:B:S` of `frame_count` frames, as in Python; "" is all. Raises InputError for no frames."""
    if not text:
        return range(frame_count)
    parts = text.split(":")
    try:
        numbers = [int(part) if part else None for part in parts]
        if not 1 <= len(numbers) <= 3 or numbers == [None]:
            raise ValueError
        picked = range(frame_count)[slice(*numbers)] if len(numbers) > 1 else _one_frame(numbers[0] or 0, frame_count)
    except ValueError as error:
        raise InputError(
            f"'{text}' is not a slice of frames", "--frames", "write A:B:S, such as 0:100 or ::10"
        ) from error
    if not len(picked):
        held = f"there are frames 0 to {frame_count - 1}" if frame_count else "there are none"
        raise InputError(
            f"'{text}' selects none of {frame_count} frames", "--frames", f"{held}; write A:B:S with A < B"
        )
    if picked.step < 0:
        raise InputError(f"'{text}' is descending", "--frames", "write A:B:S with a step S above zero")
    return picked


def frames_text(frames: str | int | slice) -> str:
    """Frames given in Python, a number, a slice or a text A:B:S, as the text of `parse_frames`.

    Raises InputError for another type.
    """
    if isinstance(frames, slice):
        return ":".join("" if number is None else str(number) for number in (frames.start, frames.stop, frames.step))
    if isinstance(frames, str | int | np.integer) and not isinstance(frames, bool):
        return str(frames)
    raise InputError(
        f"frames is a {type(frames).__name__}", "frames", 'give a text such as "0:100", a slice or a number'
    )


def _one_frame(index: int, frame_count: int) -> range:
    """The frame with an index, which is relative to the end if negative; empty without such a frame."""
    index += frame_count if index < 0 else 0
    return range(index, index + 1) if 0 <= index < frame_count else range(0)


class SlicedMotion:
    """Evenly spaced frames of another motion."""

    def __init__(self, motion: Motion, frames: range) -> None:
        self._motion, self._frames = motion, frames
        picked = slice(frames.start, frames.stop, frames.step)
        self.time, self.step = motion.time[picked], motion.step[picked]
        self.world_count, self.float_type, self.sha256 = motion.world_count, motion.float_type, motion.sha256
        self.episodes = None if motion.episodes is None else motion.episodes.sliced(frames)

    def read(self, frames: range) -> np.ndarray:
        picked = self._frames[frames.start : frames.stop]
        if self._frames.step == 1:
            return self._motion.read(picked)
        # Frame by frame, so that the frames between two selected ones are never in memory.
        return np.concatenate([self._motion.read(range(frame, frame + 1)) for frame in picked])

    def read_particles(self, frames: range) -> np.ndarray | None:
        picked = self._frames[frames.start : frames.stop]
        if self._frames.step == 1:
            return recorded_particles(self._motion, picked)
        found = [recorded_particles(self._motion, range(frame, frame + 1)) for frame in picked]
        recorded = [each for each in found if each is not None]
        return np.concatenate(recorded) if recorded else None

    @property
    def kinematics_seconds(self) -> float:
        return self._motion.kinematics_seconds

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
        self._motions, self._model = motions, model
        first = next(motion for motion in motions if motion is not None)
        self.time, self.step = first.time, first.step
        self.warnings = tuple(dict.fromkeys(w for motion in motions if motion is not None for w in motion.warnings))
        self.world_count, self.float_type, self.sha256 = len(motions), first.float_type, ""
        self.episodes: Episodes | None = None

    def read(self, frames: range) -> np.ndarray:
        rest = np.broadcast_to(self._model.bodies.pose, (len(frames), 1, *self._model.bodies.pose.shape))
        parts = [rest if motion is None else motion.read(frames) for motion in self._motions]
        return np.concatenate(parts, axis=1)

    def read_particles(self, frames: range) -> np.ndarray | None:
        if not len(self._model.particles):
            return None
        found = [None if motion is None else recorded_particles(motion, frames) for motion in self._motions]
        if all(each is None for each in found):
            return None
        rest = self._model.particles.position
        rest = np.broadcast_to(rest, (len(frames), 1, *rest.shape))
        return np.concatenate([rest if each is None else each for each in found], axis=1)

    @property
    def has_joint_tree(self) -> bool:
        return any(motion is not None and has_joint_tree(motion) for motion in self._motions)

    @property
    def kinematics_seconds(self) -> float:
        return sum(motion.kinematics_seconds for motion in self._motions if motion is not None)

    def close(self) -> None:
        for motion in self._motions:
            if motion is not None:
                motion.close()


def merged_motion(motions: Sequence[Motion | None], model: Model, where: str) -> MergedMotion:
    """The motions of several scenes as one. Raises InputError if their times differ."""
    times = [motion.time for motion in motions if motion is not None]
    if any(not np.array_equal(times[0], time) for time in times[1:]):
        raise InputError("the scenes move at different times", where, "record one trajectory and give it with -t")
    return MergedMotion(motions, model)


def check_worlds(motion: Motion, model: Model, where: str, fix: str) -> None:
    """Raises InputError for a motion whose number of worlds is neither one nor that of the model."""
    if motion.world_count not in (1, model.world_count):
        raise InputError(f"the motion has {motion.world_count} worlds, the scene {model.world_count}", where, fix)
