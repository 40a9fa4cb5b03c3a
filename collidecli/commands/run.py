"""The verb `run`: contact set and timing report of a scene in motion."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import warp as wp

from collidecli.analysis.contact_motion import FramePoses, body_poses, is_differentiable, least_rows, motion_columns
from collidecli.analysis.summary import ContactCounts, GroupCounts, GroupTally, SweepCounts, Tally
from collidecli.analysis.touches import Names
from collidecli.commands.collision import Collision, contact_writer, prepare_collision
from collidecli.commands.results import HDF5_ENDINGS, TRACE, PathLike, Progress, Result, check_output
from collidecli.commands.scenes import EngineRequest, LoadedScene, SceneCache, frames_text, scene_in_motion
from collidecli.commands.timing import (
    Span,
    StageTime,
    TimingReport,
    peak_memory,
    processor_description,
    processor_name,
    versions,
    write_trace,
)
from collidecli.engine.device_model import bounding_radius, kinds_of
from collidecli.engine.pipeline import find_device, load_ahead
from collidecli.engine.runtime.deferred_builtins import is_owned
from collidecli.errors import InputError
from collidecli.numerics import compose_poses
from collidecli.scene.filters import pair_range
from collidecli.scene.mixing import OptionalColumns, check_column_names
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, check_seconds, episodes_in, time_unit
from collidecli.scene.options import CONTACT_FORMATS, OPTION_GROUPS, ContactOptions
from collidecli.scene.tables import MOTION_COLUMNS, OF_STEPS, RIGID_COLUMNS, Column, ContactBlock
from collidecli.storage import array_loops
from collidecli.storage.contact_sets.writer import ContactWriter
from collidecli.storage.input_files import hash_ahead
from collidecli.storage.process_activity import reading
from collidecli.texts import did_you_mean

if TYPE_CHECKING:
    from collidecli.engine.distances import PairDistances

# Values of the optional columns of a run: those of two surfaces, and those of the motion of two bodies.

EXACT, GRADIENT = "grad_exact", "distance_grad1"


def check_no_columns(names: Sequence[str], contact: ContactOptions) -> None:
    """Raises InputError for columns of a run that finds no contacts."""
    if names and contact.touch_only:
        raise InputError("touch_only finds pairs alone, which have no columns", "--columns", "leave one of the two out")


class RunColumns:
    """The optional columns `columns`, in the order of the file, of the contacts of a model in motion.

    Raises InputError for an unknown or undefined column, and for a velocity in a motion of one frame or without times.
    """

    def __init__(self, model: Model, motion: Motion, names: Sequence[str], device: wp.Device) -> None:
        self._model, self._motion, self._surfaces = model, motion, OptionalColumns.of(model, names)
        self.columns: tuple[Column, ...] = self._surfaces.columns
        self._exact = ExactGradients(model, device) if EXACT in names else None
        # Of the motion in the model's worlds; a velocity never spans two of them.
        self._episodes = episodes_in(motion, model.world_count)
        self._of_motion = frozenset(column.name for column in self.columns if column in MOTION_COLUMNS)
        self._velocities = self._of_motion & {"normal_velocity", "slip"}
        if self._velocities:
            check_seconds(time_unit(motion), f"--columns {','.join(sorted(self._velocities))}")
        if self._velocities and len(motion.time) < 2:
            what = f"{' and '.join(sorted(self._velocities))} of a motion of one frame: there is no velocity"
            raise InputError(what, "--columns", "give a recording of two frames or more, or leave the column out")

    def added(self, block: ContactBlock) -> ContactBlock:
        """The block with these columns added; the block itself if there are none.

        Reads the motion's frames of the block again. Raises InputError where two frames have no time between them.
        """
        block = self._surfaces.added(block)
        if not self._of_motion:
            return block
        poses = self._poses(block)
        needed = self._of_motion | ({GRADIENT} if self._exact else set())
        values = motion_columns(self._model, block, poses, needed)
        if self._exact is not None:
            values[EXACT] = self._exact.column(block, poses, values[GRADIENT])
        ordered = {column.name: values[column.name] for column in self.columns if column.name in values}
        return replace(block, columns={**block.columns, **ordered})

    def _poses(self, block: ContactBlock) -> FramePoses:
        cell = block.first_cell + np.arange(len(block.cell_counts))
        frame, world = np.divmod(cell, self._model.world_count)
        before = after = frame
        seconds = np.full(len(cell), np.nan)
        if self._velocities:
            first, last = self._ends(frame, world)
            before, after = np.maximum(frame - 1, first), np.minimum(frame + 1, last)
            seconds = self._motion.time[after] - self._motion.time[before]
            still = (block.cell_counts > 0) & ~(seconds > 0.0)
            if still.any():
                cell = int(np.argmax(still))
                what = (
                    f"frames {before[cell]} to {after[cell]} take no time: there is no velocity in frame {frame[cell]}"
                )
                if before[cell] == after[cell]:
                    what = f"frame {frame[cell]} is an episode of one frame: there is no velocity"
                fix = f"leave {' and '.join(sorted(self._velocities))} out of --columns"
                raise InputError(what, "time", f"{fix}, or select other frames with --frames")
        frames = range(int(before.min(initial=frame[0])), int(after.max(initial=frame[-1])) + 1)
        with reading("motion"):
            poses = self._motion.read(frames)
        return FramePoses(frames.start, poses, before, after, seconds)

    def _ends(self, frame: np.ndarray, world: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and last frame of each cell's episode; of a cell outside every episode, the cell's own."""
        if self._episodes is None:
            return np.zeros_like(frame), np.full_like(frame, len(self._motion.time) - 1)
        if not len(self._episodes):
            return frame, frame
        row = self._episodes.row(world, frame)
        inside = row >= 0
        first = np.where(inside, self._episodes.first_frame[row], frame)
        return first, np.where(inside, self._episodes.end_frame[row] - 1, frame)


OF_A_RUN = ("worlds", "frames", "columns")
"""Options of a run in no group of options."""
WAITING_WRITES = 2
"""Largest number of blocks that wait to be written."""
SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, kw_only=True)
class RunRequest(EngineRequest):
    """Scene, motion, options and output of a run. columns: names of the optional contact columns to write.
    format: major version of the contact set format.

    trace: file for a trace of threads, chunks and stages; "" is none.
    """

    output: str
    columns: Sequence[str] = ()
    compression: str = "gzip"
    format: int = CONTACT_FORMATS[0]
    force: bool = False
    trace: str = ""


@dataclass(frozen=True, kw_only=True)
class RunResult(ContactCounts, Result, schema="collide.run/1"):
    """Result of a run. Lengths [m], times [s].

    shapes, bodies: counts, of all templates. worlds, frames: counts. pair_gap, pair_margin: least and greatest gap and
    margin of two shapes of which one moves [m]. candidates: pairs that the broad phase found, over all cells.
    false_positive_ratio: fraction of them without a contact. groups: counts of each table beside /rigid_contacts; None
    without them. sweep, soft_sweep, self_sweep: of contacts between frames, of shapes, of particles with shapes, and of
    cloths and soft bodies with themselves; None without them.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = ("trace", "groups", "sweep", "soft_sweep", "self_sweep")

    scene: str
    scene_sha256: str
    trajectory: str | None
    shapes: int
    templates: int
    bodies: int
    worlds: int
    frames: int
    device: str
    threads: int
    chunk_cells: int
    pair_gap: tuple[float, float]
    pair_margin: tuple[float, float]
    broad_phase: str
    broad_phase_reason: str
    candidates: int
    false_positive_ratio: float
    stages: list[StageTime]
    wall_seconds: float
    frames_per_second: float
    peak_memory_bytes: int
    output: str
    content_sha256: str
    warnings: tuple[str, ...]
    trace: str | None = None
    groups: dict[str, GroupCounts] | None = None
    sweep: SweepCounts | None = None
    soft_sweep: SweepCounts | None = None
    self_sweep: SweepCounts | None = None


def run_request(
    scene: PathLike | Sequence[PathLike],
    trajectory: PathLike | None,
    folder: Path,
    output: Path,
    options: Mapping[str, Any],
) -> RunRequest:
    """The request of the corresponding `collide run`. folder: base of relative paths.

    options: by name of a field of RunRequest or of one of its option groups. Raises InputError for another name.
    """
    grouped: dict[str, dict[str, Any]] = {name: {} for name in OPTION_GROUPS}
    of_run: dict[str, Any] = {}
    of_group = {field.name: group for group, kind in OPTION_GROUPS.items() for field in fields(kind)}
    del of_group["motion_layer"]
    for name, value in options.items():
        if name in OF_A_RUN:
            of_run[name] = frames_text(value) if name == "frames" else value
        elif name in of_group:
            grouped[of_group[name]][name] = tuple(value) if isinstance(value, list) else value
        else:
            raise InputError(f"'{name}' is no option of a run", "options", did_you_mean(name, [*OF_A_RUN, *of_group]))
    if grouped["scene_options"].get("disabled_pairs"):
        grouped["scene_options"]["disabled_pairs"] = str(folder / grouped["scene_options"]["disabled_pairs"])
    scenes = [scene] if isinstance(scene, (str, os.PathLike)) else scene
    groups: dict[str, Any] = {name: OPTION_GROUPS[name](**values) for name, values in grouped.items()}
    for name in ("contact", "engine"):
        groups[name] = groups[name].checked()
    return RunRequest(
        scenes=[str(folder / path) for path in scenes],
        trajectory=None if trajectory is None else str(folder / trajectory),
        output=str(output),
        force=True,
        **groups,
        **of_run,
    )


def run(request: RunRequest, progress: Progress = None, cache: SceneCache | None = None) -> RunResult:
    """Computes and writes the contact set. Raises CollideError; then no output file is created or changed.

    cache: keeps the scene for the next run in this process.
    """
    timing = TimingReport()
    request.engine.checked()
    request.contact.checked()
    check_column_names(request.columns)
    check_no_columns(request.columns, request.contact)
    check_output(request.output, request.force, (*request.scenes, request.trajectory), HDF5_ENDINGS, "a contact set")
    if request.trace:
        check_output(request.trace, request.force, (*request.scenes, request.trajectory), *TRACE)
    with timing.stage("load"):
        device = find_device(request.engine.device)
        load_ahead(device)
        array_loops.begin_compiling()
        if request.trajectory:
            hash_ahead(request.trajectory)
        scene, motion = scene_in_motion(request, cache)
    try:
        if scene.recording is not None and request.recording.demos:  # a merge compares the names of demonstrations
            named = replace(request.recording, demos=scene.recording.demos(request.recording))
            request = replace(request, recording=named)
        if not scene.ignores_particles:  # the option then changes no contact
            request = replace(request, recording=replace(request.recording, ignore_particles=False))
        return _run(request, scene, motion, device, timing, progress, cache)
    finally:
        motion.close()


def _run(
    request: RunRequest,
    scene: LoadedScene,
    motion: Motion,
    device,
    timing: TimingReport,
    progress: Progress,
    cache: SceneCache | None,
) -> RunResult:
    model = scene.model
    optional = RunColumns(request.contact.apply(model), motion, request.columns, device)
    columns = (*RIGID_COLUMNS, *optional.columns, *request.contact.columns)
    with scene.named():
        collision = prepare_collision(model, motion, request.contact, request.engine, device, timing, columns, cache)
    names = Names.of(model.shapes.path, model.shapes.template)
    tally, group_tally = Tally(names), GroupTally()
    written = collision.pipeline.device_model.model
    config = json.dumps(result_config(request), sort_keys=True)
    options: dict[str, Any] = {"compression": request.compression, "force": request.force, "major": request.format}
    options |= {"threads": collision.writing_threads, "chunk_rows": collision.chunk_rows, "columns": columns}
    options |= {"groups": collision.pipeline.groups, "environment": run_environment(request, collision)}
    source = scene.name, scene.sha256
    start = time.perf_counter()
    with (
        short_switch_interval(),
        contact_writer(request.output, written, motion, source, config, **options) as writer,
        closing(collision.blocks(timing)) as blocks,
        WriterThread(writer, timing) as sink,
    ):
        for block in blocks:
            sink.put(optional.added(block))
            tally.add(block)
            group_tally.add(block)
            if progress:
                progress((block.first_cell + len(block.cell_counts)) // model.world_count, len(motion.time))
        sink.drain()
        with timing.stage("write"):
            writer.end_contacts()
        timing.end_run(start)
        writer.write_timing(timing.as_tables())
        content = writer.content_sha256
        writer.finish()
    elapsed = timing.end_run(start)
    if request.trace:
        timing.spans.append(Span("run", threading.current_thread().name, start, elapsed))
        write_trace(request.trace, {"collide run": [timing]}, request.force)
    episodes, worlds = episodes_in(motion, model.world_count), model.world_count
    counts = {**vars(tally.counts(worlds, episodes)), **dict(zip(OF_STEPS, group_tally.sweeps, strict=True))}
    counts |= {"groups": group_tally.counts(names, worlds, episodes) or None, "content_sha256": content}
    return _result(request, scene, collision, timing, counts)


def _result(
    request: RunRequest, scene: LoadedScene, collision: Collision, timing: TimingReport, counts: dict[str, Any]
) -> RunResult:
    model, applied, motion = scene.model, collision.pipeline.device_model.model, collision.motion
    device = collision.pipeline.device_model.device
    return RunResult(
        **counts,
        scene=scene.name,
        scene_sha256=scene.sha256,
        trajectory=request.trajectory,
        shapes=len(model.shapes),
        templates=int(model.world_template.max()) + 1,
        bodies=len(model.bodies),
        worlds=model.world_count,
        frames=len(motion.time),
        device=device.name or device.alias,
        threads=collision.workers,
        chunk_cells=collision.chunk_cells,
        pair_gap=pair_range(applied.shapes.gap, applied.shapes.body, applied.forced_gap, applied.gap_rule),
        pair_margin=pair_range(applied.shapes.margin, applied.shapes.body, applied.forced_margin, "sum"),
        broad_phase=collision.choice.name,
        broad_phase_reason=collision.choice.reason,
        candidates=timing.candidate_count,
        false_positive_ratio=timing.false_positive_ratio,
        stages=timing.stages(),
        wall_seconds=timing.wall_seconds,
        frames_per_second=len(motion.time) / timing.wall_seconds,
        peak_memory_bytes=peak_memory(),
        output=os.fspath(request.output),
        trace=request.trace or None,
        warnings=(*scene.warnings, *motion.warnings, *collision.notes, *search_warnings(timing, model.shapes.path)),
    )


def search_warnings(timing: TimingReport, paths: Sequence[str]) -> tuple[str, ...]:
    """Warnings if some depths are only upper bounds, or if surfaces were not found. paths: of the shapes."""
    count = timing.inexact_count
    inexact = (f"{count} pairs hit the limit of the depth search; their depth is an upper bound",) if count else ()
    return (*inexact, *timing.missed_surfaces(paths))


def result_config(request: RunRequest) -> dict[str, object]:
    """Options that can change the contact set."""
    # strict_meshes only decides whether an input is refused: it changes no contact.
    importing = {**asdict(replace(request.scene_options, strict_meshes=False)), **asdict(request.recording)}
    given = {name: value for name, value in {**importing, "columns": request.columns}.items() if value}
    return {**request.contact.stored, **given, "frames": request.frames, "worlds": request.worlds}


def run_environment(request: RunRequest, collision: Collision) -> dict[str, object]:
    """Attributes of the timing report: device, processor, package versions, pipeline and broad phase."""
    device = collision.pipeline.device_model.device
    return {
        "device": device.name or device.alias,
        "processor": processor_name(),
        "thread_count": collision.workers,
        "versions": json.dumps(versions(), sort_keys=True),
        **processor_description(),
        "chunk_cells": collision.chunk_cells,
        "pipeline": request.engine.pipeline,
        "broad_phase": collision.choice.name,
        "broad_phase_reason": collision.choice.reason,
    }


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Sets the thread switch interval of the interpreter to half a millisecond, from five, on the command line.

    The computing and the writing thread each hold the interpreter for some tens of microseconds at a time. With the
    default interval a core would be idle while its thread waits for the interpreter.
    """
    if not is_owned():
        yield
        return
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class WriterThread:
    """Writes blocks in a separate thread while the next chunks are computed; at most WAITING_WRITES blocks wait."""

    def __init__(self, writer: ContactWriter, timing: TimingReport) -> None:
        self._writer, self._timing = writer, timing
        self._blocks: queue.Queue[ContactBlock | None] = queue.Queue(maxsize=WAITING_WRITES)
        self._error: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._write, name="collide-writer", daemon=True)

    def put(self, block: ContactBlock) -> None:
        """Queues a block; raises the exception of an earlier write."""
        self._raise_failure()
        self._blocks.put(block)

    def drain(self) -> None:
        """Waits until every block is written; raises the exception of a write."""
        self._blocks.put(None)
        self._thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self._error

    def _write(self) -> None:
        while (block := self._blocks.get()) is not None:
            if self._error is not None or self._stopped:
                continue
            try:
                with self._timing.stage("write"):
                    self._writer.append(block)
            except BaseException as error:
                self._error = error

    def __enter__(self) -> WriterThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        if self._thread.is_alive():
            self._blocks.put(None)
            self._thread.join()


# Column `grad_exact`: whether a contact's gradients are those of its pair's least distance.


@dataclass
class ExactGradients:
    """Finds the column for the blocks of a model's contacts."""

    model: Model
    device: wp.Device
    _measures: dict[frozenset[tuple[int, int]], PairDistances] = field(default_factory=dict)

    def column(self, block: ContactBlock, poses: FramePoses, gradient: np.ndarray) -> np.ndarray:
        """uint8[n]: 1 for the contact with the least distance of its pair, if that is differentiable there.

        gradient: float32[n, 6], `distance_grad1`.
        """
        exact = np.zeros(block.contact_count, np.uint8)
        rows = least_rows(block)
        if len(rows):
            exact[rows] = self._is_exact(block, poses, rows, gradient[rows].astype(np.float64))
        return exact

    def _is_exact(self, block: ContactBlock, poses: FramePoses, rows: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        model, pair = self.model, np.stack([block.shape0[rows], block.shape1[rows]], axis=1)
        frame, world = np.divmod(block.cell[rows], model.world_count)
        body = model.shapes.body[pair].astype(np.int64)
        body_pose = [body_poses(model, poses.body_pose, frame - poses.first_frame, world, body[:, k]) for k in (0, 1)]
        local = model.shapes.pose[pair]
        placed = [self._placed(body_pose[k], local[:, k], body[:, k], world, pair[:, k]) for k in (0, 1)]
        radius = bounding_radius(model.shapes.type, model.shapes.size)[pair]  # of a plane inf
        measure = self._measure(pair).measure

        def distance(moved: np.ndarray) -> np.ndarray:
            return measure(pair, np.stack([placed[0], moved], axis=1)).distance

        point, size = block.point1[rows].astype(np.float64), radius.min(axis=1).astype(np.float64)
        return is_differentiable(distance, gradient, body_pose[1][:, :3], placed[1], point, size)

    def _placed(
        self, body_pose: np.ndarray, local: np.ndarray, body: np.ndarray, world: np.ndarray, shape: np.ndarray
    ) -> np.ndarray:
        """float64[n, 7]: world poses of shapes of bodies at `body_pose`; a static shape moves with its world."""
        placed = compose_poses(body_pose, local)
        shift = self.model.world_shift
        if shift is not None:
            moves = (body < 0) & (self.model.shapes.template[shape] >= 0)
            placed[moves] = compose_poses(shift[world[moves]], placed[moves])
        return placed

    def _measure(self, pair: np.ndarray) -> PairDistances:
        """Distances of pairs; compiled for the kinds of shapes of one block, which nearly always are those of all."""
        kinds = np.sort(kinds_of(self.model)[pair], axis=1)
        _, first = np.unique(kinds, axis=0, return_index=True)
        key = frozenset((int(a), int(b)) for a, b in kinds[first])
        for known, measure in self._measures.items():
            if key <= known:
                return measure
        from collidecli.engine.distances import PairDistances  # most runs need none of its kernels

        return self._measures.setdefault(key, PairDistances(self.model, self.device, pair[first]))
