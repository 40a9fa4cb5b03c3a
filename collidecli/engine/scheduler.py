"""Sizes of chunks, and chunks on a pool of threads with scratch memory each; blocks in the order of
cells."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import ChunkReport, CollisionPipeline
from collidecli.engine.runtime.device_stream import free_device_memory, has_own_memory
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace, parts_that_fit
from collidecli.errors import InputError
from collidecli.scene.tables import ContactBlock, consecutive_groups
from collidecli.system import free_memory, processor_count
from collidecli.wording import memory

# Sizes of chunks and of memory limits, as pure functions.
#
# A chunk is a number of consecutive cells that one worker collides at once. Three bounds apply: the
# instances of a chunk stay near a core's cache, or occupy a device; its contacts stay near the size
# of a block; and its scratch fits the worker's memory limit (the scheduler halves a chunk that does
# not, and collides a single cell in parts of its candidates). Toward the end of a run chunks are
# smaller, so that no worker idles. Contacts do not depend on the size of chunks.

MIN_SECONDS = 2.0e-3
"""Lower bound of the duration of the small chunks at the end of a run."""


@dataclass(frozen=True)
class ChunkSizes:
    """Sizes of chunks for a kind of device.

    instances: in a chunk. probe_instances: in the first chunks of a run, which measure the bytes of
    contacts and the seconds per cell. block_bytes: upper bound of the contacts of a chunk; several
    blocks are in memory at a time. chunks_per_worker: a short run is cut into at least this many.
    """

    instances: int
    probe_instances: int
    block_bytes: int
    chunks_per_worker: int


ON_CPU = ChunkSizes(
    instances=98304, probe_instances=18432, block_bytes=4 << 20, chunks_per_worker=2
)
"""Enough instances to hide the cost of launches, few enough to stay near a core's cache."""
ON_DEVICE = ChunkSizes(
    instances=1 << 20, probe_instances=1 << 17, block_bytes=256 << 20, chunks_per_worker=1
)
"""Enough instances to occupy all of a device's processors, and few read-backs of sizes per
second."""
IN_FLIGHT = 1
"""Chunks of a device at a time. On an H200 a robot in 1024 worlds took 63 ms with three, which are
smaller, in place of 22 ms; that workers contend for Python's lock at each launch is a guess."""
WAITING_BLOCKS = 6
"""Blocks that may be complete but not written, besides one per worker: in transfer, in the queue,
being written."""
UNLIMITED = sys.maxsize
OVER_LIMIT = 8.0
"""A chunk may have this many times the instances and bytes of ChunkSizes where it is a single block
of cells: large scenes gain more from tests of many frames at once than from the cache. Measured: a
frame of 10 000 slow shapes takes 8.2 ms in chunks within the limits, 2.8 ms in whole blocks."""


def default_memory_limit() -> int:
    """Half of the free memory of the machine or of this process's control group [bytes]."""
    return free_memory() // 2


def worker_memory(memory_limit: int, worker_count: int) -> int:
    """Scratch limit of one worker [bytes]: equal parts for each worker's scratch and for each block
    not yet written."""
    return memory_limit // (2 * worker_count + WAITING_BLOCKS)


def cells_within(limit: float, block: int) -> int:
    """Cells of a chunk for which `limit` is wanted; a whole block of cells (cell_blocks) if that is
    not much more."""
    if limit < block <= OVER_LIMIT * limit:
        return block
    return max(1, int(limit))


def batch_cells(
    cell_count: int,
    world_count: int,
    width: int,
    worker_count: int,
    sizes: ChunkSizes,
    block: int = 1,
) -> int:
    """Cells of a batch of poses: whole frames where at least one fits, so that no frame is read
    twice.

    cell_count: of the run. width: instances per cell. block: cells that fill a block.
    """
    per_worker = -(-cell_count // (sizes.chunks_per_worker * worker_count))
    cells = max(1, min(cells_within(sizes.instances / width, block), per_worker))
    return cells if cells < world_count else cells // world_count * world_count


def whole_blocks(cells: int, block_cells: int) -> int:
    """`cells` rounded down to whole blocks of cells (cell_blocks) where at least one fits: others
    have unused lanes."""
    return cells - cells % block_cells if cells > block_cells else cells


def first_batch_cells(cells: int, cell_count: int, world_count: int) -> int:
    """Cells of a run's first batch: a quarter of `cells`, in whole frames, since no worker runs
    until it is read."""
    return min(cells // (4 * world_count) * world_count or cells, cell_count)


def probe_cells(width: int, sizes: ChunkSizes) -> int:
    """Cells of a chunk at the beginning of a run, before any chunk is measured. width: instances
    per cell."""
    return max(1, sizes.probe_instances // width)


def block_cells(bytes_per_cell: float, sizes: ChunkSizes, block: int = 1) -> int:
    """Cells whose contacts fill a block of contacts; UNLIMITED for cells without. block: cells that
    fill a block."""
    return cells_within(sizes.block_bytes / bytes_per_cell, block) if bytes_per_cell else UNLIMITED


def min_cells(done_cells: int, done_seconds: float, probe: int) -> int:
    """Cells that take MIN_SECONDS at the measured speed; `probe`, those of a first chunk, while
    nothing is measured."""
    if not done_seconds:
        return probe
    return max(1, round(MIN_SECONDS * done_cells / done_seconds))


def chunk_cells(
    batch_left: int, run_left: int, max_cells: int, least: int, worker_count: int
) -> int:
    """Cells of the next chunk.

    At most `max_cells`. With several workers, two thirds of a worker's fair part of the rest of the
    run, but at least `least`. A batch is cut into equal chunks: a small rest would cost as much
    Python as a whole chunk. batch_left, run_left: cells that are not in a chunk yet.
    """
    wanted = max_cells
    if worker_count > 1:
        wanted = min(wanted, max(2 * run_left // (3 * worker_count), least))
    chunks = max(-(-batch_left // max_cells), round(batch_left / wanted))
    return -(-batch_left // chunks)


# Scheduler: chunks on a pool of threads, each with its own scratch memory; blocks in the order of
# cells.


def worker_count(threads: int, own_memory: bool) -> int:
    """Threads that collide chunks: on the CPU `threads`, 0 is one per processor; on a device one a
    chunk in flight."""
    return IN_FLIGHT if own_memory else processing_threads(threads)


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
    parts of its candidates.
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
                    count = chunk_cells(left, run_left, self._max_cells, least, self._count)
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
        self._bytes_per_cell = max(self._bytes_per_cell, block.nbytes / cells)
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
