"""Sizes of chunks and of memory limits, as pure functions.

A chunk is a number of consecutive cells that one worker collides at once. Three bounds apply: the
instances of a chunk stay near a core's cache, or occupy a device; its contacts stay near the size
of a block; and its scratch fits the worker's memory limit (the scheduler halves a chunk that does
not, and collides a single cell in parts of its candidates). Toward the end of a run chunks are
smaller, so that no worker idles. Contacts do not depend on the size of chunks.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from collidecli.system import free_memory

MIN_SECONDS = 2.0e-3
"""Lower bound of the duration of the small chunks at the end of a run."""


@dataclass(frozen=True)
class ChunkSizes:
    """Sizes of chunks for a kind of device.

    instances: in a chunk. probe_instances: in the first chunks of a run, which measure the bytes of
    contacts and the seconds per cell. block_bytes: upper bound of the contacts of a chunk; several
    blocks are in memory at a time. chunks_per_worker: a short run is cut into at least this many,
    and into `short_chunks` where each has `short_instances` and a block of cells.
    one_at_a_time: each chunk occupies the whole device, so that a run is not divided among workers.
    """

    instances: int
    probe_instances: int
    block_bytes: int
    chunks_per_worker: int
    short_chunks: int
    short_instances: int
    one_at_a_time: bool = False

    def dividing(self, worker_count: int) -> int:
        """Number of workers among which the cells of a run are divided."""
        return 1 if self.one_at_a_time else worker_count


ON_CPU = ChunkSizes(
    instances=98304,
    probe_instances=18432,
    block_bytes=4 << 20,
    chunks_per_worker=2,
    short_chunks=4,
    short_instances=14336,
)
"""Enough instances to hide the cost of launches, few enough to stay near a core's cache. In a short
run all scratch is touched for the first time, at a page fault for each 4 KiB: smaller chunks touch
less of it."""
ON_DEVICE = ChunkSizes(
    instances=1 << 20,
    probe_instances=1 << 17,
    block_bytes=256 << 20,
    chunks_per_worker=1,
    short_chunks=1,
    short_instances=0,
    one_at_a_time=True,
)
"""Enough instances to occupy all of a device's processors, and few read-backs of sizes per
second."""
IN_FLIGHT = 2
"""Chunks of a device at a time, each of a worker with a stream, scratch and page-locked memory: the
host issues one while another is computed and copied back. They are as large as one at a time would
be. Before chunks waited once, a robot in 1024 worlds took 63 ms on an H200 with three, which were
smaller and waited four times, in place of 22 ms; two of equal size were not measured."""
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
    workers = sizes.dividing(worker_count)
    per_worker = -(-cell_count // (sizes.chunks_per_worker * workers))
    short = -(-cell_count // (sizes.short_chunks * workers))
    per_worker = min(per_worker, max(short, sizes.short_instances // width, block))
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
