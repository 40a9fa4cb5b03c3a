"""The verb `traj convert`: a trajectory of world poses of the bodies of a scene, from a recording
of any known kind."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scene_cache import SceneCache
from collidecli.motions.scenes import scene_in_motion
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.outputs import check_output
from collidecli.results.result import PathLike, Progress, Result
from collidecli.scene.body_names import local_names
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion, episodes_in, recorded_particles
from collidecli.storage.process_activity import reading
from collidecli.storage.trajectory_writer import BLOCK_BYTES, TrajectoryWriter


@dataclass(frozen=True)
class ConvertResult(Result, schema="collide.traj.convert/1"):
    """Result of a conversion. kind: of the recording. duration: of the motion [s]."""

    file: str
    kind: str
    output: str
    frames: int
    worlds: int
    bodies: int
    duration: float
    warnings: tuple[str, ...]


def convert(
    request: SceneRequest,
    output: PathLike,
    *,
    compression: str = "none",
    force: bool = False,
    progress: Progress = None,
    cache: SceneCache | None = None,
) -> ConvertResult:
    """Writes the recording `request.trajectory` as `collide-trajectory`: /body_q, float64, of which
    a run has the contact set of a run of the recording.

    The scene is that of the request, or else that in the recording. Bodies that are part of the
    static world are omitted. A recording of one world gives one world, unless the scene's worlds
    differ or have different positions. cache: keeps the scene for the next
    recording of it. Raises InputError for an input that cannot be read, OutputError for an output
    that cannot be written; then no output is left.
    """
    source = request.trajectory
    assert source is not None
    check_output(output, force, (*request.scenes, source), HDF5_ENDINGS, "a trajectory")
    scene, motion = scene_in_motion(request, cache)
    assert scene.recording is not None
    kind = scene.recording.NAME
    with closing(motion):
        bodies = _Bodies(scene, motion.world_count)
        frames = len(motion.time)
        moving = recorded_particles(motion, range(1)) if len(scene.model.particles) else None
        particles = 0 if moving is None else len(scene.model.particles)
        with TrajectoryWriter(
            output,
            world_count=bodies.world_count,
            body_names=bodies.names,
            particle_count=particles,
            compression=compression,
            frames_expected=frames,
            creator=f"collide traj convert ({kind})",
            force=force,
            episodes=episodes_in(motion, bodies.world_count),
            converted_from=np.dtype(motion.float_type),
        ) as writer:
            _append_frames(writer, motion, bodies, particles, progress)
        warnings = (*scene.warnings, *motion.warnings)
        return ConvertResult(
            file=source,
            kind=kind,
            output=os.fspath(output),
            frames=frames,
            worlds=bodies.world_count,
            bodies=len(bodies.names),
            duration=float(motion.time[-1] - motion.time[0]),
            warnings=warnings,
        )


def _append_frames(
    writer: TrajectoryWriter, motion: Motion, bodies: _Bodies, particles: int, progress: Progress
) -> None:
    """Writes all frames of a motion, in blocks. particles: number of those that are recorded."""
    frames = len(motion.time)
    frame_bytes = 8 * bodies.world_count * (7 * len(bodies.names) + 3 * particles)
    block = max(1, BLOCK_BYTES // max(1, frame_bytes))
    for first in range(0, frames, block):
        taken = range(first, min(first + block, frames))
        rows = slice(taken.start, taken.stop)
        with reading("motion"):
            poses = motion.read(taken)
            positions = recorded_particles(motion, taken) if particles else None
        block_positions = None if positions is None else bodies.positions(positions)
        columns = bodies.columns(poses)
        writer.append(
            motion.time[rows], motion.step[rows], body_q=columns, particle_q=block_positions
        )
        if progress is not None:
            progress(taken.stop, frames)


class _Bodies:
    """The bodies that are written, each once even if several templates have it; without welded
    bodies.

    names: paths. world_count: number of written worlds. If scenes or positions of the worlds
    differ, the poses differ too, and one recorded world is written once per world.
    """

    def __init__(self, scene: LoadedScene, recorded_worlds: int) -> None:
        model = self._model = scene.model
        still = _welded(scene)
        local = local_names(model)
        first_path = dict(zip(local[::-1], model.bodies.path[::-1], strict=True))
        moving = {
            name: first_path[name] for name in dict.fromkeys(local) if first_path[name] not in still
        }
        self.names = tuple(moving.values())
        if not self.names and not len(model.particles):
            raise InputError(
                "the scene has no body that can move", scene.name, "run it without a trajectory"
            )
        differ = model.world_shift is not None or len(set(model.world_template.tolist())) > 1
        self.world_count = model.world_count if differ else recorded_worlds
        rows = {
            t: _rows(model, local, tuple(moving), t) for t in set(model.world_template.tolist())
        }
        self._rows = [
            rows[template] for template in model.world_template[: self.world_count].tolist()
        ]
        self._alike = len(rows) == 1 and bool((self._rows[0] >= 0).all())

    def positions(self, positions: np.ndarray) -> np.ndarray:
        """float64[n, W, P, 3] of a motion's positions of particles[n, W, P, 3]."""
        if positions.shape[1] != self.world_count:
            positions = self._model.particles_moved_with_worlds(positions)
            positions = np.broadcast_to(
                positions, (len(positions), self.world_count, *positions.shape[2:])
            )
        return positions

    def columns(self, poses: np.ndarray) -> np.ndarray:
        """float64[n, W, names, 7] of a motion's poses[n, W, B, 7]; a body that a world lacks has
        the identity."""
        if poses.shape[1] != self.world_count:
            poses = self._model.moved_with_worlds(poses)
            poses = np.broadcast_to(poses, (len(poses), self.world_count, *poses.shape[2:]))
        if self._alike:
            return poses[:, :, self._rows[0]]
        out = np.zeros((*poses.shape[:2], len(self.names), 7))
        out[..., 6] = 1.0
        for world, rows in enumerate(self._rows):
            is_there = rows >= 0
            out[:, world, is_there] = poses[:, world, rows[is_there]]
        return out


def _rows(
    model: Model, local: tuple[str, ...], names: tuple[str, ...], template: int
) -> np.ndarray:
    """intp[names]: row of the body with each local name in a world of `template`; -1 without
    one."""
    owner = model.bodies.template
    row_of = {
        name: row for row, name in enumerate(local) if owner[row] in (template, GLOBAL_TEMPLATE)
    }
    return np.array([row_of.get(name, -1) for name in names], np.intp)


def _welded(scene: LoadedScene) -> set[str]:
    still: set[str] = set()
    moving: set[str] = set()
    for imported in scene.imports:
        kinematics = imported.kinematics
        if kinematics is not None:
            for name, welded in zip(kinematics.body_path, kinematics.welded, strict=True):
                (still if welded else moving).add(name)
    return still - moving
