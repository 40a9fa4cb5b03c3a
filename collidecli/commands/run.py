"""The verb `run`: contact set and timing report of a scene in motion."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from collidecli.commands.collision import Collision, prepare_collision
from collidecli.commands.contact_totals import ContactCounts, GroupCounts, GroupTally, SweepCounts, Tally
from collidecli.commands.optional_columns import RunColumns, check_no_columns
from collidecli.commands.output_paths import check_hdf5_output, check_trace
from collidecli.commands.result import Progress, Result
from collidecli.commands.scene_cache import SceneCache
from collidecli.commands.scenes import LoadedScene, SceneRequest, scene_in_motion
from collidecli.commands.timing import (
    Span,
    StageTime,
    TimingReport,
    peak_memory,
    processor_description,
    processor_name,
    versions,
)
from collidecli.commands.trace import write_trace
from collidecli.engine.pipeline_builder import find_device, load_ahead
from collidecli.engine.runtime.process_settings import is_owned
from collidecli.importers.meshes.part_cache import parts_kept_in
from collidecli.scene.contact_groups import OF_STEPS
from collidecli.scene.contacts import RIGID_COLUMNS, ContactBlock
from collidecli.scene.mixing import check_column_names
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.option_choices import CONTACT_FORMATS
from collidecli.scene.run_options import (
    HYDRO_NAMES,
    PARTICLE_NAMES,
    REDUCTION_DEFAULTS,
    SWEEP_NAMES,
    ContactOptions,
    EngineOptions,
)
from collidecli.storage import native_array_loops as native_loops
from collidecli.storage.contact_sets.writer import ContactWriter
from collidecli.storage.file_hash import hash_ahead

WAITING_WRITES = 2
"""Largest number of blocks that wait to be written."""
SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, kw_only=True)
class RunRequest(SceneRequest):
    """Scene, motion, options and output of a run. columns: names of the optional contact columns to write.
    format: major version of the contact set format.

    trace: file for a trace of threads, chunks and stages; "" is none.
    """

    output: str
    engine: EngineOptions = field(default_factory=EngineOptions)
    columns: Sequence[str] = ()
    compression: str = "gzip"
    format: int = CONTACT_FORMATS[0]
    force: bool = False
    trace: str = ""

    @property
    def memory_limit(self) -> int:
        return self.engine.memory_limit


@dataclass(frozen=True, kw_only=True)
class RunResult(ContactCounts, Result):
    """Result of a run. Lengths [m], times [s].

    shapes, bodies, worlds, frames: counts. candidates: pairs that the broad phase found, over all cells.
    false_positive_ratio: fraction of them without a contact. groups: counts of each table beside /rigid_contacts;
    None without them. sweep, soft_sweep, self_sweep: of contacts between frames, of shapes, of particles with shapes,
    and of cloths and soft bodies with themselves; None without them.
    """

    SCHEMA: ClassVar[str] = "collide.run/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("trace", "groups", "sweep", "soft_sweep", "self_sweep")

    scene: str
    scene_sha256: str
    trajectory: str | None
    shapes: int
    bodies: int
    worlds: int
    frames: int
    device: str
    threads: int
    chunk_cells: int
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


def run(request: RunRequest, progress: Progress = None, cache: SceneCache | None = None) -> RunResult:
    """Computes and writes the contact set. Raises CollideError; then no output file is created or changed.

    cache: keeps the scene for the next run in this process.
    """
    timing = TimingReport()
    request.engine.checked()
    request.contact.checked()
    check_column_names(request.columns)
    check_no_columns(request.columns, request.contact)
    check_hdf5_output(request.output, "a contact set", request.force, (*request.scenes, request.trajectory))
    if request.trace:
        check_trace(request.trace, request.force, (*request.scenes, request.trajectory))
    with timing.stage("load"):
        device = find_device(request.engine.device)
        load_ahead(device)
        native_loops.begin_compiling()
        if request.trajectory:
            hash_ahead(request.trajectory)
        with parts_kept_in(request.engine.cache_dir, request.engine.cache_limit):
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
    optional = RunColumns.of(request.contact.apply(model), motion, request.columns, device)
    columns = (*RIGID_COLUMNS, *optional.columns, *request.contact.columns)
    with scene.named():
        collision = prepare_collision(model, motion, request.contact, request.engine, device, timing, columns, cache)
    tally, group_tally = Tally(len(model.shapes)), GroupTally()
    attributes = {
        "scene": scene.name,
        "scene_sha256": scene.sha256,
        "trajectory_sha256": motion.sha256,
        "config": json.dumps(result_config(request), sort_keys=True),
    }
    environment = run_environment(request, collision)
    start = time.perf_counter()
    with (
        short_switch_interval(),
        ContactWriter(
            request.output, collision.pipeline.device_model.model, len(motion.time), motion.time, motion.step,
            motion.float_type, attributes, compression=request.compression, force=request.force,
            columns=columns, threads=collision.writing_threads, chunk_rows=collision.chunk_rows,
            environment=environment, episodes=episodes_in(motion, model.world_count), groups=collision.pipeline.groups,
            major=request.format,
        ) as writer,
        closing(collision.blocks(timing)) as blocks,
        WriterThread(writer, timing) as sink,
    ):  # fmt: skip
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
    device = str(environment["device"])
    episodes = episodes_in(motion, model.world_count)
    counts = tally.counts(model, episodes), group_tally.counts(model, episodes), group_tally.sweeps
    return _result(request, scene, motion, collision, device, timing, counts, content)


def _result(
    request: RunRequest,
    scene: LoadedScene,
    motion: Motion,
    collision: Collision,
    device: str,
    timing: TimingReport,
    counts: tuple[ContactCounts, dict[str, GroupCounts], tuple[SweepCounts | None, ...]],
    content: str,
) -> RunResult:
    model = scene.model
    swept: dict[str, Any] = dict(zip(OF_STEPS, counts[2], strict=True))
    return RunResult(
        **vars(counts[0]),
        groups=counts[1] or None,
        **swept,
        scene=scene.name,
        scene_sha256=scene.sha256,
        trajectory=request.trajectory,
        shapes=len(model.shapes),
        bodies=len(model.bodies),
        worlds=model.world_count,
        frames=len(motion.time),
        device=device,
        threads=collision.workers,
        chunk_cells=collision.chunk_cells,
        broad_phase=collision.choice.name,
        broad_phase_reason=collision.choice.reason,
        candidates=timing.candidate_count,
        false_positive_ratio=timing.false_positive_ratio,
        stages=timing.stages(),
        wall_seconds=timing.wall_seconds,
        frames_per_second=len(motion.time) / timing.wall_seconds,
        peak_memory_bytes=peak_memory(),
        output=os.fspath(request.output),
        content_sha256=content,
        trace=request.trace or None,
        warnings=(*scene.warnings, *motion.warnings, *collision.notes, *search_warnings(timing, model.shapes.path)),
    )


def search_warnings(timing: TimingReport, paths: Sequence[str]) -> tuple[str, ...]:
    """Warnings if some depths are only upper bounds, or if surfaces were not found. paths: of the shapes."""
    count = timing.inexact_count
    inexact = (f"{count} pairs hit the limit of the depth search; their depth is an upper bound",) if count else ()
    return (*inexact, *timing.missed_surfaces(paths))


def result_config(request: RunRequest) -> dict[str, object]:
    """Options that can change the contact set; those of reduction only if contacts are reduced."""
    default, unnamed = asdict(ContactOptions()), (*HYDRO_NAMES, *PARTICLE_NAMES, *SWEEP_NAMES, "touch_only")
    contact = asdict(request.contact)
    contact = {name: value for name, value in contact.items() if name not in unnamed or value != default[name]}
    if not request.contact.reduce_contacts:
        contact = {name: value for name, value in contact.items() if name not in REDUCTION_DEFAULTS}
    # strict_meshes only decides whether an input is refused: it changes no contact.
    importing = {**asdict(replace(request.scene_options, strict_meshes=False)), **asdict(request.recording)}
    given = {name: value for name, value in {**importing, "columns": request.columns}.items() if value}
    return {**contact, **given, "frames": request.frames, "worlds": request.worlds}


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
