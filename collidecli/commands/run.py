"""The main job: a scene and a recorded motion in, a contact set and a timing report out."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace

from collidecli.commands.collision import Collision, prepare_collision
from collidecli.commands.contact_totals import Tally
from collidecli.commands.output_paths import check_output
from collidecli.commands.processor_description import arithmetic_facts
from collidecli.commands.scenes import LoadedScene, SceneRequest, scene_in_motion
from collidecli.commands.timing import TimingReport, processor_name, versions
from collidecli.engine.pipeline_builder import BroadPhaseChoice, find_device, load_ahead
from collidecli.importers.meshes.part_cache import parts_kept_in
from collidecli.scene.contacts import RIGID_COLUMNS, ContactBlock
from collidecli.scene.mixing import OptionalColumns, check_column_names
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import REDUCTION_DEFAULTS, EngineOptions
from collidecli.storage import native_array_loops as native_loops
from collidecli.storage.contact_sets.writer import ContactWriter

WAITING_WRITES = 2
SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, kw_only=True)
class RunRequest(SceneRequest):
    """What to run, on what, to where. columns: names of the optional columns of contacts to write."""

    output: str
    engine: EngineOptions = field(default_factory=EngineOptions)
    columns: Sequence[str] = ()
    compression: str = "gzip"
    force: bool = False


@dataclass(frozen=True)
class RunSummary:
    """What a run found, for people and for --json."""

    scene: LoadedScene
    output: str
    content_sha256: str
    frame_count: int
    choice: BroadPhaseChoice
    device: str
    threads: int
    chunk_cells: int
    timing: TimingReport
    warnings: tuple[str, ...]
    pair_contacts: dict[tuple[int, int], int]
    deepest: tuple[float, int, int, int] | None


Progress = Callable[[int, int], None]
"""Called with frames done and frames in all."""


def run(request: RunRequest, progress: Progress | None = None) -> RunSummary:
    """Runs the whole job. Raises CollideError; then no output file is left or changed."""
    timing = TimingReport()
    request.engine.checked()
    request.contact.checked()
    check_column_names(request.columns)
    check_output(request.output, request.force, (*request.scenes, request.trajectory))
    with timing.stage("load"):
        device = find_device(request.engine.device)
        load_ahead(device)
        native_loops.begin_compiling()
        with parts_kept_in(request.engine.cache_dir, request.engine.cache_limit):
            scene, motion = scene_in_motion(request)
    try:
        return _run(request, scene, motion, device, timing, progress)
    finally:
        motion.close()


def _run(
    request: RunRequest,
    scene: LoadedScene,
    motion: Motion,
    device,
    timing: TimingReport,
    progress: Progress | None,
) -> RunSummary:
    model = scene.model
    optional = OptionalColumns.of(request.contact.apply(model), request.columns)
    columns = (*RIGID_COLUMNS, *optional.columns, *request.contact.columns)
    with scene.named():
        collision = prepare_collision(model, motion, request.contact, request.engine, device, timing, columns)
    tally = Tally(len(model.shapes))
    attributes = {
        "scene": scene.name,
        "scene_sha256": scene.sha256,
        "trajectory_sha256": motion.sha256,
        "config": json.dumps(result_config(request), sort_keys=True),
    }
    environment = run_environment(request, collision)
    start = time.perf_counter()
    with (
        taking_turns(),
        ContactWriter(
            request.output, collision.pipeline.device_model.model, len(motion.time), motion.time, motion.step,
            motion.float_type, attributes, compression=request.compression, force=request.force,
            columns=columns, threads=collision.workers, chunk_rows=collision.chunk_rows, environment=environment,
        ) as writer,
        closing(collision.blocks(timing)) as blocks,
        WriterThread(writer, timing) as sink,
    ):  # fmt: skip
        for block in blocks:
            sink.put(optional.added(block))
            tally.add(block)
            if progress:
                progress((block.first_cell + len(block.cell_counts)) // model.world_count, len(motion.time))
        sink.drain()
        with timing.stage("write"):
            writer.end_contacts()
        timing.wall_seconds = time.perf_counter() - start
        writer.write_timing(timing.as_tables())
        content = writer.content_sha256
        writer.finish()
    timing.wall_seconds = time.perf_counter() - start
    return RunSummary(
        scene=scene,
        output=os.fspath(request.output),
        content_sha256=content,
        frame_count=len(motion.time),
        choice=collision.choice,
        device=str(environment["device"]),
        threads=collision.workers,
        chunk_cells=collision.chunk_cells,
        timing=timing,
        warnings=(*scene.warnings, *motion.warnings, *collision.notes, *inexact_warnings(timing)),
        pair_contacts=tally.pairs(),
        deepest=tally.deepest,
    )


def inexact_warnings(timing: TimingReport) -> tuple[str, ...]:
    """Says so when depths are upper bounds only."""
    count = timing.inexact_count
    return (f"{count} pairs hit the limit of the depth search; their depth is an upper bound",) if count else ()


def result_config(request: RunRequest) -> dict[str, object]:
    """Every option that could change the contact set: how contacts are reduced is none where they are not."""
    contact = asdict(request.contact)
    if not request.contact.reduce_contacts:
        contact = {name: value for name, value in contact.items() if name not in REDUCTION_DEFAULTS}
    # Whether a scene is refused changes no contact of one that is not.
    doors = {**asdict(replace(request.scene_options, strict_meshes=False)), **asdict(request.recording)}
    given = {name: value for name, value in {**doors, "columns": request.columns}.items() if value}
    return {**contact, **given, "frames": request.frames, "worlds": request.worlds}


def run_environment(request: RunRequest, collision: Collision) -> dict[str, object]:
    """Attributes of the timing report: on what, and how, the run was done."""
    device = collision.pipeline.device_model.device
    return {
        "device": device.name or device.alias,
        "processor": processor_name(),
        "thread_count": collision.workers,
        "versions": json.dumps(versions(), sort_keys=True),
        **arithmetic_facts(),
        "chunk_cells": collision.chunk_cells,
        "pipeline": request.engine.pipeline,
        "broad_phase": collision.choice.name,
        "broad_phase_reason": collision.choice.reason,
    }


@contextmanager
def taking_turns() -> Iterator[None]:
    """Lets a thread wait for the interpreter no longer than half a millisecond, in place of five.

    What computes and what writes needs it for some tens of microseconds at a time, and a core would stand idle.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class WriterThread:
    """Appends blocks in a thread of its own, while the next chunks are computed; few blocks wait at a time."""

    def __init__(self, writer: ContactWriter, timing: TimingReport) -> None:
        self._writer, self._timing = writer, timing
        self._blocks: queue.Queue[ContactBlock | None] = queue.Queue(maxsize=WAITING_WRITES)
        self._error: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._write, name="collide-writer", daemon=True)

    def put(self, block: ContactBlock) -> None:
        """Hands over a block; raises what an earlier write raised."""
        self._raise_failure()
        self._blocks.put(block)

    def drain(self) -> None:
        """Waits until every block is written; raises what a write raised."""
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
