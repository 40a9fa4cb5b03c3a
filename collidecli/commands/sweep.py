"""Python's `sweep`: contacts between the frames of a motion, in memory."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from collidecli.commands.collision import NOT_SWEPT, check_frames, pose_batches
from collidecli.commands.contact_totals import TOUCHES
from collidecli.commands.python_api import motion_of
from collidecli.commands.timing import TimingReport
from collidecli.engine.device_model import upload_model
from collidecli.engine.pipeline_builder import find_device
from collidecli.engine.sweep.stage import sweep_stage
from collidecli.errors import InputError
from collidecli.scene.contact_groups import SWEEP, GroupRows, consecutive_groups
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import (
    DEFAULT_CACHE_LIMIT,
    DEFAULT_SWEEP_TOLERANCE,
    ContactOptions,
    check_sweep_tolerance,
)
from collidecli.storage.field_cache import FieldCache

CELLS_AT_ONCE = 4096


@dataclass(frozen=True, repr=False)
class Sweep:
    """Pairs of shapes that touch between a frame and the next, or of which that is undecided; arrays of one length.

    frame, world: int64[n], of the begin of the step. shape0, shape1: int32[n], rows of the model's shapes, shape0 <
        shape1. Rows are ordered by frame, world, shape0 and shape1; a pair that stays apart has none.
    touches: bool[n]; False is undecided. tunnel: bool[n], whether the pair is apart in both frames and touches between.
    enter, leave: float64[n], begin of the first touch and end of the last one, in 0 to 1 of the step. enter_time,
        leave_time: float64[n], of the motion [s]; an array of poses has one frame a second.
    least: float64[n], least distance that was found, less both margins; negative is penetration [m]. least_bound:
        float64[n], lower bound of every distance in the step [m].
    point0, point1: [n, 3], witness points at `enter`, in world [m]. normal: float32[n, 3], unit, from shape0 to shape1.
    shape_path: paths of the model's shapes.
    """

    frame: np.ndarray
    world: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    touches: np.ndarray
    tunnel: np.ndarray
    enter: np.ndarray
    leave: np.ndarray
    enter_time: np.ndarray
    leave_time: np.ndarray
    least: np.ndarray
    least_bound: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    normal: np.ndarray
    shape_path: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"<Sweep pairs={len(self)} tunnels={int(self.tunnel.sum())} undecided={int((~self.touches).sum())}>"


def sweep(
    model: Model,
    body_q: np.ndarray | Motion,
    *,
    tolerance: float = DEFAULT_SWEEP_TOLERANCE,
    margin: float | None = None,
    device: str = "",
    cache_dir: str = "",
    cache_limit: int = DEFAULT_CACHE_LIMIT,
) -> Sweep:
    """Pairs of shapes that touch between the frames of a motion; the rows that `collide run --sweep` writes.

    Args:
        model: a result of `ModelBuilder.finalize`.
        body_q: poses float32 or float64[frames, worlds, bodies, 7], or a `Motion`, of two frames at least; see
            `collide`.
        tolerance: shapes touch at this distance or less, of their surfaces inflated by their margins [m].
        margin: in place of every shape's own [m].
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
        cache_dir, cache_limit [bytes]: cache of signed distance fields; 0 bytes disables it.
    Returns:
        The pairs; between the frames each body moves in a straight line and turns by the shortest rotation.
    Raises:
        InputError: a body rotates by half a turn in one step, body_q does not fit the model, or an option is invalid.
    """
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}", "sweep", "give a result of ModelBuilder.finalize()")
    check_sweep_tolerance(tolerance)
    motion = motion_of(model, body_q)
    check_frames(motion)
    applied = ContactOptions(margin=margin).checked().apply(model)
    if len(model.particles):
        warnings.warn(NOT_SWEPT, RuntimeWarning, stacklevel=2)
    stage = sweep_stage(
        upload_model(applied, find_device(device)), tolerance, motion.float_type, FieldCache(cache_dir, cache_limit)
    )
    batches = pose_batches(motion, applied, CELLS_AT_ONCE, TimingReport(), with_next=True)
    groups = consecutive_groups([{SWEEP.name: stage.sweep(batch)[0]} for batch in batches])
    return _result(groups[SWEEP.name], model, motion)


def _result(rows: GroupRows, model: Model, motion: Motion) -> Sweep:
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    frame, world = np.divmod(cell, model.world_count)
    columns = dict(rows.columns)
    status, tunnel = columns.pop("status"), columns.pop("tunnel")
    begin, end = motion.time[frame], motion.time[frame + 1]
    times = (begin + columns[name] * (end - begin) for name in ("enter", "leave"))
    return Sweep(
        frame, world, **columns, touches=status == TOUCHES, tunnel=tunnel == 1,
        **dict(zip(("enter_time", "leave_time"), times, strict=True)), shape_path=tuple(model.shapes.path),
    )  # fmt: skip
