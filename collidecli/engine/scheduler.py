"""Chunks on a pool of threads, each with its own scratch memory; blocks in the order of cells."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunk_report import ChunkReport
from collidecli.engine.chunk_sizes import (
    IN_FLIGHT,
    ON_CPU,
    ON_DEVICE,
    UNLIMITED,
    batch_cells,
    block_cells,
    chunk_cells,
    min_cells,
    probe_cells,
    whole_blocks,
    worker_memory,
)
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.runtime.device_stream import (
    PageLockedPool,
    free_device_memory,
    has_own_memory,
)
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace, parts_that_fit
from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock, consecutive_groups
from collidecli.scene.pose_memory import Allocate, poses_in
from collidecli.system import processor_count
from collidecli.wording import memory

if TYPE_CHECKING:
    from collidecli.engine.chunk_sizes import ChunkSizes


def worker_count(threads: int, own_memory: bool) -> int:
    """Threads that collide chunks: on the CPU `threads`, 0 is one per processor; on a device one a
    chunk in flight."""
    return IN_FLIGHT if own_memory else processing_threads(threads)


def held_chunks(device: wp.Device) -> int:
    """Chunks whose poses a device holds at a time; of the CPU 1."""
    return IN_FLIGHT if has_own_memory(device) else 1


def processing_threads(threads: int) -> int:
    """Threads for work of the host, such as compression: `threads`, 0 is one per processor."""
    return threads or processor_count()


def chunk_sizes(device: wp.Device) -> ChunkSizes:
    """Sizes of chunks for a device."""
    return ON_DEVICE if has_own_memory(device) else ON_CPU


def engine_memory(memory_limit: int, device: wp.Device) -> int:
    """The limit for scratch and blocks [bytes]: on a device at most what half of its free memory
    allows as well."""
    if not has_own_memory(device):
        return memory_limit
    return min(memory_limit, free_device_memory(device) // 2)


def batch_size(pipeline: CollisionPipeline, cell_count: int, workers: int, requested: int) -> int:
    """Cells of a batch of poses for a run of `cell_count` cells; `requested` unless that is 0."""
    if requested:
        return requested
    model = pipeline.device_model
    sizes = chunk_sizes(model.device)
    block = pipeline.block_cells
    cells = batch_cells(
        cell_count, model.model.world_count, pipeline.cell_width, workers, sizes, block
    )
    return whole_blocks(cells, block)


class Workers:
    """A pool of `count` threads that collide chunks, with one pipeline.

    memory_limit: bytes for the scratch of all workers and the blocks not yet written. A worker's
    scratch has the limit `worker_memory`. A chunk that needs more is collided in halves, and later
    chunks are no larger. A single cell that needs more is collided while the other workers wait, in
    parts of its candidates. pose_memory: of the poses of batches, from which a device copies them
    without another copy by the host; other memory will do.
    """

    def __init__(self, pipeline: CollisionPipeline, count: int, memory_limit: int) -> None:
        self._pipeline = pipeline
        self._count = count
        self._memory_limit = memory_limit
        self._sizes = chunk_sizes(pipeline.device_model.device)
        self._probe = probe_cells(pipeline.cell_width, self._sizes)
        self._worker_memory = worker_memory(memory_limit, count)
        self._largest_block = 0
        self._max_cells = self._probe
        self._max_fitting = UNLIMITED
        self._bytes_per_cell = 0.0
        self._done_cells = 0
        self._done_seconds = 0.0
        self._workspaces: dict[int, Workspace] = {}
        self._turns = Turns()
        device = pipeline.device_model.device
        own_memory = has_own_memory(device)
        self.pose_memory: Allocate = PageLockedPool(device).empty if own_memory else np.empty
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="collide")

    def collide(
        self, batches: Iterable[PoseBatch], cell_count: int | None = None
    ) -> Iterator[tuple[ContactBlock, ChunkReport]]:
        """Blocks in the order of `batches`; at most `count` + 1 chunks are in memory at a time.

        cell_count: of all batches, if known: the last chunks are then small, so that no worker
        waits long for another. Raises InputError when a single cell does not fit the memory limit
        in parts of its candidates.
        """
        pending: deque[Future[tuple[ContactBlock, ChunkReport]]] = deque()
        run_left = cell_count or UNLIMITED
        try:
            for batch in batches:
                done = 0
                while done < batch.cell_count:
                    least = min_cells(self._done_cells, self._done_seconds, self._probe)
                    left = batch.cell_count - done
                    dividing = self._sizes.dividing(self._count)
                    count = chunk_cells(left, run_left, self._max_cells, least, dividing)
                    if count < left:
                        count = whole_blocks(count, self._pipeline.block_cells)
                    chunk = replace(batch, first_cell=batch.first_cell + done, cell_count=count)
                    pending.append(self._pool.submit(self._collide_one, chunk))
                    done += count
                    run_left -= count
                    while len(pending) > self._waiting():
                        yield self._measured(pending.popleft().result())
            while pending:
                yield self._measured(pending.popleft().result())
        finally:
            for future in pending:
                future.cancel()

    def _waiting(self) -> int:
        """Chunks that may be in progress or wait; fewer after a block larger than a worker's
        memory."""
        if self._largest_block <= self._worker_memory:
            return self._count + 1
        return min(self._count + 1, self._memory_limit // (2 * self._largest_block))

    def _measured(
        self, result: tuple[ContactBlock, ChunkReport]
    ) -> tuple[ContactBlock, ChunkReport]:
        """Updates the measured speed and the size of later chunks; the heaviest block counts, so
        memory levels off."""
        block, report = result
        self._done_cells += report.cell_count
        self._done_seconds += sum(report.seconds.values())
        self._largest_block = max(self._largest_block, block.nbytes)
        cells = max(1, len(block.cell_counts))
        # Of all columns, also where some are not copied: the scratch of a chunk has their records.
        size = max(block.nbytes, report.contact_count * self._pipeline.row_bytes)
        self._bytes_per_cell = max(self._bytes_per_cell, size / cells)
        most = block_cells(self._bytes_per_cell, self._sizes, self._pipeline.block_cells)
        self._max_cells = min(most, self._max_fitting)
        return result

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _collide_one(self, batch: PoseBatch) -> tuple[ContactBlock, ChunkReport]:
        """Collides one chunk; in parts where its scratch exceeds the worker's limit, a single cell
        by itself."""
        with poses_in(self.pose_memory):
            parts = parts_that_fit(
                batch.cell_count, lambda begin, end: self._collide_cells(batch, begin, end)
            )
        return reduce(_concatenated, parts)

    def _collide_cells(
        self, batch: PoseBatch, begin: int, end: int
    ) -> tuple[ContactBlock, ChunkReport]:
        """Collides the cells `begin` to `end` of a batch. Raises ChunkTooLarge for several that do
        not fit."""
        cells = replace(batch, first_cell=batch.first_cell + begin, cell_count=end - begin)
        thread = threading.get_ident()
        with self._turns.turn(alone=False):
            reused = thread in self._workspaces
            workspace = self._workspaces.pop(thread, None) or Workspace(
                self._pipeline.device_model.device, self._worker_memory
            )
            try:
                with workspace.turn():
                    result = self._pipeline.collide(cells, workspace)
                self._workspaces[thread] = (
                    workspace  # after an error its launches may refer to freed arrays
                )
                return result
            except ChunkTooLarge:
                del workspace
                if end - begin > 1:
                    self._max_fitting = min(self._max_fitting, (end - begin) // 2)
                    self._max_cells = min(self._max_cells, self._max_fitting)
                    raise
        if reused:
            return self._collide_cells(
                batch, begin, end
            )  # the arrays of earlier cells are freed; the cell may fit
        return self._collide_alone(cells)

    def _collide_alone(self, batch: PoseBatch) -> tuple[ContactBlock, ChunkReport]:
        """Collides one cell with the scratch of all workers, which wait meanwhile."""
        with self._turns.turn(alone=True):
            self._workspaces.clear()
            limit = self._memory_limit // 2  # the rest is for blocks
            try:
                return self._pipeline.collide_in_parts(batch, limit)
            except ChunkTooLarge as too_large:
                frame, world = divmod(
                    batch.first_cell, self._pipeline.device_model.model.world_count
                )
                raise InputError(
                    f"frame {frame} of world {world} needs at least {memory(too_large.needed)}; "
                    f"its part of the limit is {memory(limit)}",
                    "--memory-limit",
                    "raise it; --threads does not change what one frame of one world needs",
                ) from None


class Turns:
    """Lets any number of threads work side by side, or one thread alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._active = 0
        self._wanted_alone = 0

    @contextmanager
    def turn(self, alone: bool) -> Iterator[None]:
        """Work while no thread works alone or waits to; with `alone` while no other works."""
        with self._changed:
            self._wanted_alone += alone
            self._changed.wait_for(lambda: not (self._active if alone else self._wanted_alone))
            self._active += 1
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._wanted_alone -= alone
                self._changed.notify_all()


def _concatenated(
    front: tuple[ContactBlock, ChunkReport], back: tuple[ContactBlock, ChunkReport]
) -> tuple[ContactBlock, ChunkReport]:
    (block0, report0) = front
    (block1, report1) = back
    block = ContactBlock(
        block0.first_cell,
        np.concatenate([block0.cell_counts, block1.cell_counts]),
        {
            name: np.concatenate([values, block1.columns[name]])
            for name, values in block0.columns.items()
        },
        consecutive_groups([block0.groups, block1.groups]),
    )
    return block, report0.plus(report1)
