"""Collision of a model in motion within a memory limit: the part that `run`, `profile` and the
Python API share."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
import warp as wp

from collidecli.analysis.contact_tracking import ContactTracker
from collidecli.analysis.summary import touches_of
from collidecli.engine.broadphase.choice import BroadPhaseChoice
from collidecli.engine.cells import MAX_SHIFT, PoseBatch
from collidecli.engine.chunk_report import ChunkReport
from collidecli.engine.chunk_sizes import default_memory_limit, first_batch_cells
from collidecli.engine.column_destination import ColumnDestination, KeptColumns
from collidecli.engine.joint_kinematics import begin_loading_kinematics
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.pipeline_build import build_pipeline
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.kernel_cache import result_notes
from collidecli.engine.scheduler import (
    Workers,
    batch_size,
    engine_memory,
    held_chunks,
    processing_threads,
    worker_count,
)
from collidecli.errors import InputError
from collidecli.motions.columns import copied_columns
from collidecli.motions.memory_shares import (
    POSE_BYTES,
    POSITION_BYTES,
    READ_BYTES,
    MemoryShares,
    keep_to_limits,
    shared_out,
)
from collidecli.motions.scene_cache import SceneCache
from collidecli.motions.timing import TimingReport
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import RIGID_COLUMNS, Column
from collidecli.scene.distinct_values import distinct
from collidecli.scene.joint_poses import HasJointPoses, JointPoses
from collidecli.scene.model import Model
from collidecli.scene.model_source import SourceOfSet
from collidecli.scene.motion import Motion, episodes_in, recorded_particles, time_unit
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.pose_memory import Allocate, poses_in
from collidecli.scene.shape_switches import refuse_switches, switches_of
from collidecli.storage.compiled_loops import use_compiled
from collidecli.storage.contact_sets.header import SCENE_KIND
from collidecli.storage.contact_sets.writer import ContactWriter
from collidecli.storage.field_cache import FieldCache
from collidecli.storage.process_activity import reading

SHORT_CELLS = 256
"""Largest number of cells of a motion for which the kernels of colliders without candidates are not
compiled."""
SAMPLE_FRAMES = 8
"""Number of frames, evenly spaced, from which the parameters of a broad phase are chosen."""


@dataclass(frozen=True)
class Collision:
    """A compiled pipeline and the motion, which it collides in chunks of `chunk_cells` cells.

    workers: threads that collide chunks. writing_threads: threads that hash and compress the
    contacts.

    memory_limit: for the scratch memory of all workers and the blocks that wait [bytes].
    chunk_rows: rows of a chunk of a column in the file; 0 without a memory limit. notes: warnings
    about the cache of signed distance fields.
    """

    motion: Motion
    pipeline: CollisionPipeline
    choice: BroadPhaseChoice
    workers: int
    writing_threads: int
    chunk_cells: int
    memory_limit: int
    contact: ContactOptions
    chunk_rows: int = 0
    notes: tuple[str, ...] = ()

    def blocks(self, timing: TimingReport) -> Generator[ContactBlock, None, None]:
        """Contacts of all cells in order. A consumer that may stop before the end must close this
        generator."""
        model = self.pipeline.device_model.model
        world_count = model.world_count
        tracker = None
        if self.contact.tracks_contacts:
            episodes = episodes_in(self.motion, world_count)
            tracker = ContactTracker(
                model, self.contact.sticky_contacts, episodes, self.contact.contact_id_angle
            )
        wanted = tracker is not None or self.contact.reduces_bodies
        with Workers(self.pipeline, self.workers, self.memory_limit) as pool:
            batches = pose_batches(
                self.motion,
                model,
                self.chunk_cells,
                timing,
                self.contact.sweep,
                pool.pose_memory,
                needs_host=self._needs_host(wanted),
            )
            waiting = WaitingPoses(batches, wanted)
            results = pool.collide(waiting.kept, len(self.motion.time) * world_count)
            results = within_episodes(results, self.motion, world_count)
            for block, report in reduced_by_bodies(results, model, self.contact, waiting):
                timing.add_chunk(report)
                if tracker is not None:
                    with timing.stage("reduction"):
                        batch = waiting.of(block)
                        block = tracker.follow(block, batch.first_frame, batch.body_pose)
                yield block

    def _needs_host(self, wanted: bool) -> Event | None:
        """None where the host needs the poses: for what it computes itself, for sweeps and
        particles. wanted: it needs those of the blocks."""
        device_model = self.pipeline.device_model
        host_reads = wanted or self.contact.sweep or len(device_model.model.particles) > 0
        return None if host_reads or not has_own_memory(device_model.device) else Event()


def within_episodes(
    results: Iterable[tuple[ContactBlock, ChunkReport]], motion: Motion, world_count: int
) -> Iterator[tuple[ContactBlock, ChunkReport]]:
    """Blocks and reports without the contacts of cells outside every episode of the motion, and of
    shapes that it disables.

    Candidates of these remain in the report: the broad phase has tested them.
    """
    episodes = episodes_in(motion, world_count)
    switches = switches_of(motion)
    for block, report in results:
        kept = block if episodes is None else episodes.without_others(block, world_count)
        kept = kept if switches is None else switches.without_disabled(kept, world_count)
        if kept is not block:
            counts = touches_of(kept)
            report = replace(
                report, contact_count=kept.contact_count, touching_count=len(counts.cell)
            )
        yield kept, report


class WaitingPoses:
    """Batches of poses, kept until the blocks that are computed from them are complete. wanted:
    whether `of` will be called; else none is kept."""

    def __init__(self, batches: Iterator[PoseBatch], wanted: bool) -> None:
        self._batches = batches
        self._wanted = wanted
        self._pending: deque[PoseBatch] = deque()

    @property
    def kept(self) -> Iterator[PoseBatch]:
        """The batches, each of which is kept if it is wanted."""
        for batch in self._batches:
            if self._wanted:
                self._pending.append(batch)
            yield batch

    def of(self, block: ContactBlock) -> PoseBatch:
        """The batch of a block; blocks are asked for in the order of their cells."""
        while block.first_cell >= self._pending[0].first_cell + self._pending[0].cell_count:
            self._pending.popleft()
        return self._pending[0]


def reduced_by_bodies(
    results: Iterable[tuple[ContactBlock, ChunkReport]],
    model: Model,
    options: ContactOptions,
    waiting: WaitingPoses,
) -> Iterator[tuple[ContactBlock, ChunkReport]]:
    """Blocks and reports with the contacts of each pair of bodies reduced, if the options say
    so."""
    if not options.reduces_bodies:
        yield from results
        return
    from collidecli.motions.body_reduction import BodyReduction

    reduction = BodyReduction(model, options)
    for block, report in results:
        begin = time.perf_counter()
        batch = waiting.of(block)
        kept = reduction.reduce(block, batch.first_frame, batch.body_pose)
        seconds = dict(report.seconds)
        seconds["reduction"] = seconds.get("reduction", 0.0) + time.perf_counter() - begin
        yield (
            kept,
            replace(
                report,
                seconds=seconds,
                contact_count=kept.contact_count,
                touching_count=len(touches_of(kept).cell),
            ),
        )


def prepare_collision(
    model: Model,
    motion: Motion,
    contact: ContactOptions,
    engine: EngineOptions,
    device: wp.Device,
    timing: TimingReport,
    columns: Sequence[Column] = RIGID_COLUMNS,
    cache: SceneCache | None = None,
    reads: Sequence[str] | None = None,
    kept: KeptColumns | None = None,
) -> Collision:
    """Chooses the broad phase, compiles the kernels, and sets workers, chunks and memory.

    columns: columns to write. cache: of pipelines, for motions of one model in a row. reads: names
    of the columns of rigid contacts that the blocks have, and maybe more (`copied_columns`); None
    for all. kept: collects these columns on the device; the blocks then have none.
    Raises InputError if the memory limit is too small.
    """
    fields = FieldCache(engine.cache_dir, engine.cache_limit)
    if contact.sweep:
        _check_swept_motion(motion)
    begin_loading_kinematics(motion)

    def build() -> tuple[CollisionPipeline, BroadPhaseChoice]:
        samples = partial(sample_poses, motion)
        # With a cache other motions follow, and a long motion has candidates of most colliders in
        # its first chunks.
        is_short = cache is None and len(motion.time) * model.world_count <= SHORT_CELLS
        built, choice = build_pipeline(
            model, contact, engine, device, samples, motion.float_type, fields, is_short
        )
        timing.move("compile", "load", built.narrow_phase.field_time)
        return built, choice

    with timing.stage("compile"):
        key = (contact, engine, device.alias, np.dtype(motion.float_type).str)
        pipeline, choice = build() if cache is None else cache.pipeline(model, key, build)
        use_compiled()
    names = copied_columns(reads, contact, motion, model.world_count)
    pipeline = replace(pipeline, destination=ColumnDestination(names, kept))
    workers = worker_count(engine.threads, has_own_memory(device))
    cells = batch_size(pipeline, len(motion.time) * model.world_count, workers, engine.chunk_cells)
    shares = MemoryShares(cells, 0, default_memory_limit())
    if engine.memory_limit:
        shares = shared_out(engine.memory_limit, model, motion, cells, columns, held_chunks(device))
        keep_to_limits()
    return Collision(
        motion=motion,
        pipeline=pipeline,
        choice=choice,
        workers=workers,
        writing_threads=processing_threads(engine.threads),
        chunk_cells=shares.chunk_cells,
        memory_limit=engine_memory(shares.engine_bytes, device),
        contact=contact,
        chunk_rows=shares.chunk_rows,
        notes=(*pipeline.notes, *fields.notes, *result_notes()),
    )


def _check_swept_motion(motion: Motion) -> None:
    """Raises InputError for a motion that has no contacts between frames."""
    check_frames(motion)
    switches = switches_of(motion)
    if switches is not None:
        refuse_switches(switches.path, "--sweep", "contacts between frames are not by frames")


def contact_writer(
    path: str, model: Model, motion: Motion, scene: SourceOfSet, config: str, **options: Any
) -> ContactWriter:
    """A writer of the contacts of a model in motion. config: JSON. options: of the writer."""
    attributes = {
        "scene": scene.name,
        "scene_sha256": scene.sha256,
        SCENE_KIND: scene.kind,
        "trajectory_sha256": motion.sha256,
        "config": config,
    }
    frames = len(motion.time), motion.time, motion.step
    options |= {"episodes": episodes_in(motion, model.world_count), "time_unit": time_unit(motion)}
    return ContactWriter(path, model, *frames, motion.float_type, attributes, **options)


def check_frames(motion: Motion) -> None:
    """Raises InputError for a motion of one frame, which has no steps."""
    if len(motion.time) < 2:
        what = "the motion has one frame, and contacts between frames need two"
        raise InputError(what, "--sweep", "give a recording with -t, or select more frames")


def sample_poses(motion: Motion) -> np.ndarray:
    """Poses float64[samples, recorded worlds, B, 7] of a few evenly spaced frames, each with the
    next one.

    A motion of one frame has one sample.
    """
    last = max(len(motion.time) - 2, 0)
    picked = distinct(np.linspace(0, last, SAMPLE_FRAMES).astype(int))
    with reading("motion"):
        return np.concatenate(
            [motion.read(range(frame, min(frame + 2, len(motion.time)))) for frame in picked]
        )


def pose_batches(
    motion: Motion,
    model: Model,
    cells: int,
    timing: TimingReport,
    with_next: bool = False,
    allocate: Allocate = np.empty,
    needs_host: Event | None = None,
) -> Iterator[PoseBatch]:
    """The motion in chunks of `cells` consecutive cells. A frame of many worlds is read once for
    all its chunks.

    with_next: a chunk has the frame after its last too, and says which frames have a next one in
    their episode. allocate: memory of the poses. needs_host: a device computes them from joints
    until this is set; None where the host computes all.

    The first chunk has a quarter of the cells, in whole frames, as the workers are idle until it is
    read. Frames of a small scene are read together for several chunks.
    """
    world_count = model.world_count
    cell_count = len(motion.time) * world_count
    frame_bytes = motion.world_count * (
        POSE_BYTES * len(model.bodies.path) + POSITION_BYTES * len(model.particles)
    )
    least = READ_BYTES // max(1, frame_bytes)
    loaded = range(0)
    joints = None
    poses = np.zeros(0)
    positions = None
    in_first = first_batch_cells(cells, cell_count, world_count << MAX_SHIFT)
    for first in (0, *range(in_first, cell_count, cells)):
        count = in_first if first == 0 else min(cells, cell_count - first)
        frames = range(first // world_count, (first + count - 1) // world_count + 1)
        has_step = _has_step(motion, frames, world_count) if with_next else None
        if with_next:
            frames = range(frames.start, min(frames.stop + 1, len(motion.time)))
        if not (loaded.start <= frames.start and frames.stop <= loaded.stop):
            before = motion.kinematics_time
            loaded = range(
                frames.start, max(frames.stop, min(frames.start + least, len(motion.time)))
            )
            with timing.stage("read"), reading("motion"), poses_in(allocate):
                joints = joints_for_device(motion, loaded, needs_host)
                poses = motion.read(loaded) if joints is None else joints.placeholder()
                positions = _positions(motion, model, loaded, poses)
            timing.move("read", "kinematics", motion.kinematics_time.minus(before))
        of_loaded = slice(frames.start - loaded.start, frames.stop - loaded.start)
        yield PoseBatch(
            first,
            count,
            frames.start,
            poses[of_loaded],
            None if positions is None else _of_frames(positions, of_loaded),
            has_step,
            None if joints is None else joints.part(of_loaded.start, of_loaded.stop),
        )


def _positions(motion: Motion, model: Model, frames: range, poses: np.ndarray) -> np.ndarray | None:
    """Positions of the particles in frames, those on bodies at the bodies' poses; None without
    particles."""
    if not len(model.particles):
        return None
    recorded = recorded_particles(motion, frames)
    if recorded is None:
        recorded = model.particles.position[None, None]
    return model.with_attached_particles(poses, recorded)


def _of_frames(positions: np.ndarray, frames: slice) -> np.ndarray:
    """The positions of some of the frames that were read; particles at rest have one frame for
    all."""
    return positions if len(positions) == 1 else positions[frames]


def joints_for_device(motion: Motion, frames: range, needs_host: Event | None) -> JointPoses | None:
    """The coordinates from which a device computes the poses of frames; None where the host
    computes them. needs_host: see `pose_batches`."""
    if needs_host is None or needs_host.is_set() or not isinstance(motion, HasJointPoses):
        return None
    joints = motion.read_joints(frames)
    return None if joints is None else replace(joints, needs_host=needs_host)


def _has_step(motion: Motion, frames: range, world_count: int) -> np.ndarray | None:
    """bool[frames, worlds]: whether a frame and the next are in one episode; None without
    episodes."""
    episodes = episodes_in(motion, world_count)
    if episodes is None:
        return None
    frame, world = np.divmod(
        np.arange(frames.start * world_count, frames.stop * world_count), world_count
    )
    row = episodes.row(world, frame)
    return ((row >= 0) & (row == episodes.row(world, frame + 1))).reshape(-1, world_count)
