"""Any recording turned into a trajectory of our own: world poses of the scene's bodies."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.commands.output_paths import check_output
from collidecli.commands.scenes import LoadedScene, SceneRequest, scene_in_motion
from collidecli.errors import InputError
from collidecli.scene.body_names import local_names
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion
from collidecli.storage.process_activity import reading
from collidecli.storage.trajectories.motion import TrajectoryMotion
from collidecli.storage.trajectories.writer import TrajectoryWriter

CONVERT_SCHEMA = "collide.traj.convert/1"
_BLOCK_BYTES = 8 << 20
"""How much motion is held before it is written."""

Progress = Callable[[int, int], None]
"""Called with frames done and frames in all."""


@dataclass(frozen=True)
class ConvertSummary:
    """What was converted. kind: name of the recording's kind. duration: of the motion [s]."""

    source: str
    path: str
    kind: str
    frame_count: int
    world_count: int
    body_count: int
    duration: float
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "schema": CONVERT_SCHEMA,
            "file": self.source,
            "kind": self.kind,
            "output": self.path,
            "frames": self.frame_count,
            "worlds": self.world_count,
            "bodies": self.body_count,
            "duration": self.duration,
            "warnings": list(self.warnings),
        }


def convert(
    request: SceneRequest,
    output: str | os.PathLike[str],
    *,
    compression: str = "none",
    force: bool = False,
    progress: Progress | None = None,
) -> ConvertSummary:
    """Writes the recording `request.trajectory` as `collide-trajectory`: /body_q, float64.

    The scene is the request's one, or that within the recording. Bodies that are part of the static world are left
    out. A recording of one world stays one, unless the scene's worlds differ or stand apart.
    Raises InputError for what cannot be read, OutputError for what cannot be written; then nothing is left at `output`.
    """
    source = request.trajectory
    assert source is not None
    check_output(output, force, (*request.scenes, source))
    scene, motion = scene_in_motion(request)
    assert scene.recording is not None
    kind = scene.recording.NAME
    with closing(motion):
        bodies = _Bodies(scene, motion.world_count)
        frames = len(motion.time)
        block = max(1, _BLOCK_BYTES // max(1, 8 * 7 * bodies.world_count * len(bodies.names)))
        with TrajectoryWriter(
            output,
            world_count=bodies.world_count,
            body_names=bodies.names,
            compression=compression,
            frames_expected=frames,
            creator=f"collide traj convert ({kind})",
            force=force,
        ) as writer:
            for first in range(0, frames, block):
                taken = range(first, min(first + block, frames))
                rows = slice(taken.start, taken.stop)
                with reading("motion"):
                    poses = motion.read(taken)
                writer.append(motion.time[rows], motion.step[rows], body_q=bodies.columns(poses))
                if progress is not None:
                    progress(taken.stop, frames)
        warnings = (*scene.warnings, *motion.warnings, *_left_out(motion))
        return ConvertSummary(
            source=source,
            path=os.fspath(output),
            kind=kind,
            frame_count=frames,
            world_count=bodies.world_count,
            body_count=len(bodies.names),
            duration=float(motion.time[-1] - motion.time[0]),
            warnings=warnings,
        )


class _Bodies:
    """The bodies that are written: each once, whichever template has it; welded ones are left out.

    names: of each. world_count: worlds that are written; one recorded world is played in each where scenes or
    places of worlds differ, as it then holds other poses in each.
    """

    def __init__(self, scene: LoadedScene, recorded_worlds: int) -> None:
        model = self._model = scene.model
        still, local = _welded(scene), local_names(model)
        first_path = dict(zip(local[::-1], model.bodies.path[::-1], strict=True))
        held = {name: first_path[name] for name in dict.fromkeys(local) if first_path[name] not in still}
        self.names = tuple(held.values())
        if not self.names:
            raise InputError("the scene has no body that can move", scene.name, "nothing of it needs a trajectory")
        differ = model.world_shift is not None or len(set(model.world_template.tolist())) > 1
        self.world_count = model.world_count if differ else recorded_worlds
        rows = {t: _rows(model, local, tuple(held), t) for t in set(model.world_template.tolist())}
        self._rows = [rows[template] for template in model.world_template[: self.world_count].tolist()]
        self._alike = len(rows) == 1 and bool((self._rows[0] >= 0).all())

    def columns(self, poses: np.ndarray) -> np.ndarray:
        """float64[n, W, names, 7] of a motion's poses[n, W, B, 7]; a body that a world lacks is at the identity."""
        if poses.shape[1] != self.world_count:
            poses = self._model.moved_with_worlds(poses)
            poses = np.broadcast_to(poses, (len(poses), self.world_count, *poses.shape[2:]))
        if self._alike:
            return poses[:, :, self._rows[0]]
        out = np.zeros((*poses.shape[:2], len(self.names), 7))
        out[..., 6] = 1.0
        for world, rows in enumerate(self._rows):
            held = rows >= 0
            out[:, world, held] = poses[:, world, rows[held]]
        return out


def _rows(model: Model, local: tuple[str, ...], names: tuple[str, ...], template: int) -> np.ndarray:
    """intp[names]: the model's body of each local name in a world of `template`; -1 where it has none."""
    owner = model.bodies.template
    row_of = {name: row for row, name in enumerate(local) if owner[row] in (template, GLOBAL_TEMPLATE)}
    return np.array([row_of.get(name, -1) for name in names], np.intp)


def _welded(scene: LoadedScene) -> set[str]:
    """Names that are part of the static world in every scene that has them."""
    still: set[str] = set()
    moving: set[str] = set()
    for held in scene.imports:
        kinematics = held.kinematics
        if kinematics is not None:
            for name, welded in zip(kinematics.body_path, kinematics.welded, strict=True):
                (still if welded else moving).add(name)
    return still - moving


def _left_out(motion: Motion) -> tuple[str, ...]:
    """What a trajectory of ours could hold, and the converted one does not."""
    if isinstance(motion, TrajectoryMotion) and motion.header.particle_count > 0:
        return (f"{motion.header.particle_count} particles are not carried over",)
    return ()
