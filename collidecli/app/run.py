"""The main job: a scene and a recorded motion in, a contact set and a timing report out."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from collidecli.app.motions import SlicedMotion, parse_frames
from collidecli.app.outputs import check_output
from collidecli.app.scenes import LoadedScene, load_scene
from collidecli.app.tally import Tally
from collidecli.app.timing import TimingReport, processor_name, versions
from collidecli.engine.build import BroadPhaseChoice, build_pipeline, find_device
from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.scheduler import Workers, chunk_size, free_memory_share, worker_count
from collidecli.errors import InputError
from collidecli.files.contacts_h5 import ContactWriter
from collidecli.model.contacts import ContactBlock
from collidecli.model.motion import Motion
from collidecli.model.options import ContactOptions, EngineOptions

SAMPLE_FRAMES = 8
"""Frames, evenly spread, that a sweep is planned from."""
WAITING_WRITES = 2


@dataclass(frozen=True)
class RunRequest:
    """What to run, on what, to where. frames: a slice A:B:S; empty is all."""

    scenes: Sequence[str]
    output: str
    trajectory: str | None = None
    worlds: int | None = None
    frames: str = ""
    contact: ContactOptions = field(default_factory=ContactOptions)
    engine: EngineOptions = field(default_factory=EngineOptions)
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
    check_output(request.output, request.force, (*request.scenes, request.trajectory))
    with timing.stage("load"):
        device = find_device(request.engine.device)
        scene = load_scene(request.scenes, request.worlds, request.contact.static_pairs)
        motion = picked_motion(scene, request.trajectory, request.frames)
    try:
        return _run(request, scene, motion, device, timing, progress)
    finally:
        motion.close()


def picked_motion(scene: LoadedScene, trajectory: str | None, frames: str) -> Motion:
    """The scene's motion, its frames picked, its world count checked."""
    motion = scene.motion(trajectory)
    if motion.world_count not in (1, scene.model.world_count):
        raise InputError(
            f"the motion has {motion.world_count} worlds, the scene {scene.model.world_count}",
            trajectory or scene.name,
            f"run with --worlds {motion.world_count}",
        )
    return SlicedMotion(motion, parse_frames(frames, len(motion.time))) if frames else motion


def sample_poses(motion: Motion) -> np.ndarray:
    """A few frames, evenly spread: float64[samples, recorded worlds, B, 7]."""
    picked = np.unique(np.linspace(0, len(motion.time) - 1, SAMPLE_FRAMES).astype(int))
    return np.concatenate([motion.read(range(frame, frame + 1)) for frame in picked])


def pose_batches(motion: Motion, world_count: int, cells: int, timing: TimingReport) -> Iterator[PoseBatch]:
    """The motion in chunks of `cells` consecutive cells."""
    cell_count = len(motion.time) * world_count
    for first in range(0, cell_count, cells):
        count = min(cells, cell_count - first)
        frames = range(first // world_count, (first + count - 1) // world_count + 1)
        with timing.stage("read"):
            poses = motion.read(frames)
        yield PoseBatch(first, count, frames.start, poses)


def _run(
    request: RunRequest,
    scene: LoadedScene,
    motion: Motion,
    device,
    timing: TimingReport,
    progress: Progress | None,
) -> RunSummary:
    model = scene.model
    with timing.stage("compile"):
        pipeline, choice = build_pipeline(
            model, request.contact, request.engine, device, sample_poses(motion), motion.float_type
        )
    workers = worker_count(request.engine.threads, device.is_cuda)
    memory_limit = request.engine.memory_limit or free_memory_share()
    cell_count = len(motion.time) * model.world_count
    cells = chunk_size(pipeline, cell_count, workers, request.engine.chunk_cells)
    tally = Tally(len(model.shapes))
    attributes = {
        "scene": scene.name,
        "scene_sha256": scene.sha256,
        "trajectory_sha256": motion.sha256,
        "config": json.dumps(result_config(request), sort_keys=True),
    }
    start = time.perf_counter()
    with (
        ContactWriter(
            request.output, pipeline.device_model.model, len(motion.time), motion.time, motion.step,
            motion.float_type, attributes, compression=request.compression, force=request.force,
        ) as writer,
        Workers(pipeline, workers, memory_limit) as pool,
        WriterThread(writer, timing) as sink,
    ):  # fmt: skip
        for block, report in pool.collide(pose_batches(motion, model.world_count, cells, timing)):
            timing.add_chunk(report)
            sink.put(block)
            tally.add(block)
            if progress:
                progress((block.first_cell + len(block.cell_counts)) // model.world_count, len(motion.time))
        sink.drain()
        with timing.stage("write"):
            writer.end_contacts()
        timing.wall_seconds = time.perf_counter() - start
        environment = run_environment(request, pipeline, choice, workers, cells)
        writer.write_timing(timing.as_tables(environment))
        content = writer.content_sha256
        writer.finish()
    timing.wall_seconds = time.perf_counter() - start
    return RunSummary(
        scene=scene,
        output=os.fspath(request.output),
        content_sha256=content,
        frame_count=len(motion.time),
        choice=choice,
        device=str(environment["device"]),
        threads=workers,
        chunk_cells=cells,
        timing=timing,
        warnings=(*scene.warnings, *getattr(motion, "warnings", ())),
        pair_contacts=tally.pairs(),
        deepest=tally.deepest,
    )


def result_config(request: RunRequest) -> dict[str, object]:
    """Every option that can change the contact set."""
    return {**asdict(request.contact), "frames": request.frames, "worlds": request.worlds}


def run_environment(
    request: RunRequest, pipeline: CollisionPipeline, choice: BroadPhaseChoice, workers: int, cells: int
) -> dict[str, object]:
    """Attributes of the timing report: on what, and how, the run was done."""
    return {
        "device": pipeline.device_model.device.name or pipeline.device_model.device.alias,
        "processor": processor_name(),
        "thread_count": workers,
        "versions": json.dumps(versions(), sort_keys=True),
        "chunk_cells": cells,
        "pipeline": request.engine.pipeline,
        "broad_phase": choice.name,
        "broad_phase_reason": choice.reason,
    }


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
