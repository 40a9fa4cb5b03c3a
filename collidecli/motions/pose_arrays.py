"""Motions of poses that are given as an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.argument_types import is_number
from collidecli.scene.arguments import float_array
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.motion import FRAME, SECOND, TimedMotion
from collidecli.scene.poses import IDENTITY_POSE
from collidecli.storage.pose_checks import check_positions, normalize, pose_fault
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.scene.model import Model

FLOAT_TYPES = ("float32", "float64")
NAMED_TEMPLATES = 4
NAMED_BODIES = 3
"""Templates that a message about a shape names, and bodies of each."""


class PoseArray(TimedMotion):
    """A motion (see `scene.motion.Motion`) from an array of poses.

    Args:
        poses: float32 or float64[frames, worlds, bodies, 7], x y z then qx qy qz qw, of all bodies
            of the model; worlds is 1 or those of the model. If the worlds of every template have
            n bodies: also [frames, worlds of the model, n, 7], see `rows_of_worlds`.
        particles: a result of `checked_particles`; None if they rest.
        time: float64[frames], a result of `frame_times` [s]; None if it is unknown: frame k then
            has the time k, and the motion's `time_unit` is FRAME.
    Raises InputError for another shape or type. An invalid pose raises InputError when its frame is
        read.
    """

    def __init__(
        self,
        poses: np.ndarray,
        model: Model,
        particles: np.ndarray | None = None,
        time: np.ndarray | None = None,
    ) -> None:
        has_all_bodies = poses.ndim == 4 and poses.shape[2:] == (len(model.bodies), 7)
        body_rows = None if has_all_bodies else rows_of_worlds(model)
        if not has_all_bodies and (body_rows is None or poses.shape[1:] != (*body_rows.shape, 7)):
            raise InputError(f"has shape {poses.shape}", "body_q", _wanted_shape(model, body_rows))
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
        self._body_path = model.bodies.path
        self._body_rows = body_rows
        self._particles = particles
        self.world_count = poses.shape[1]
        self.float_type = poses.dtype
        self.sha256 = ""

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), worlds, bodies, 7], every quaternion normalized; see
        `Motion.read`."""
        poses = self._poses_of_all_bodies(self._poses[frames.start : frames.stop])
        bad = normalize(poses)
        if bad is not None:
            frame, world, body = (int(k) for k in np.argwhere(bad)[0])
            what = pose_fault(poses[frame, world, body])
            where = f"body_q, frame {frames[frame]}, world {world}, body '{self._body_path[body]}'"
            raise InputError(
                what, where, "give seven finite numbers, x y z and a unit quaternion xyzw"
            )
        return poses

    def _poses_of_all_bodies(self, given: np.ndarray) -> np.ndarray:
        """float64[frames, worlds, bodies, 7]: the given poses; the identity for a body that is not
        in a world."""
        if self._body_rows is None:
            return given.astype(np.float64, order="C")
        poses = np.tile(IDENTITY_POSE, (*given.shape[:2], len(self._body_path), 1))
        poses[:, np.arange(self.world_count)[:, None], self._body_rows] = given
        return poses

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), worlds or 1, particles, 3], see `recorded_particles`; None if they
        rest."""
        return None if self._particles is None else self._particles[frames.start : frames.stop]


def rows_of_worlds(model: Model) -> np.ndarray | None:
    """int64[W, n]: rows of the bodies of each world, ascending: of those in every world and those
    of its template. None if templates have different numbers of bodies."""
    owner = model.bodies.template
    templates = range(int(model.world_template.max(initial=-1)) + 1)
    rows = [np.flatnonzero((owner == GLOBAL_TEMPLATE) | (owner == t)) for t in templates]
    if len({len(own) for own in rows}) != 1:
        return None
    return np.array(rows)[model.world_template]


def _wanted_shape(model: Model, body_rows: np.ndarray | None) -> str:
    """The shapes that an array of poses may have, and which rows are whose bodies."""
    advice = f"give (frames, worlds, {len(model.bodies)}, 7): a pose for each body"
    templates = int(model.world_template.max(initial=-1)) + 1
    if templates < 2:
        return advice
    owner = model.bodies.template
    parts = []
    for template in (GLOBAL_TEMPLATE, *range(min(templates, NAMED_TEMPLATES))):
        rows = np.flatnonzero(owner == template)
        if template == GLOBAL_TEMPLATE and not len(rows):
            continue
        names = [f"{row} '{model.bodies.path[row]}'" for row in rows[:NAMED_BODIES]]
        names += [f"{len(rows) - NAMED_BODIES} more"] if len(rows) > NAMED_BODIES else []
        whose = "all worlds"
        if template != GLOBAL_TEMPLATE:
            worlds = np.flatnonzero(model.world_template == template)
            of_worlds = f"{plural(len(worlds), 'world')}, the first is {worlds[0]}"
            whose = f"template {template} ({of_worlds})"
        parts.append(f"of {whose} {', '.join(names) or 'none'}")
    more = templates - NAMED_TEMPLATES
    parts += [f"and of {plural(more, 'more template')}"] if more > 0 else []
    advice += f" of all templates, where a world uses only its own: rows {'; '.join(parts)}"
    if body_rows is not None:
        worlds, count = body_rows.shape
        advice += f". Or (frames, {worlds}, {count}, 7): of each world the bodies of its template"
    return advice


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
        attached = int((model.particles.body >= 0).sum())
        also = f"; the {attached} that move with bodies have rows, which are not read"
        raise InputError(
            f"has shape {positions.shape}",
            "particle_q",
            f"give {wanted}: a position for each particle of the model, in its order"
            f"{also if attached else ''}",
        )
    check_positions(positions, range(len(positions)), "particle_q")
    return positions
