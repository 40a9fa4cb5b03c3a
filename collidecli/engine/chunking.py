"""Sizes of chunks and of memory limits, as pure functions.

A chunk is a number of consecutive cells that one worker collides at once. Three bounds apply: the instances of a chunk
stay near a core's cache, its contacts stay near BLOCK_BYTES, and its scratch fits the worker's memory limit (the
scheduler halves a chunk that does not, and collides a single cell in parts of its candidates). Toward the end of a run
chunks are smaller, so that no worker idles. Contacts do not depend on the size of chunks.
"""

from __future__ import annotations

import sys

from collidecli.system_resources import free_memory

CPU_CHUNK_INSTANCES = 49152
"""Instances in a chunk on the CPU: enough to hide the cost of launches, few enough to stay near a core's cache."""
CUDA_CHUNK_INSTANCES = 1 << 20
PROBE_INSTANCES = 18432
"""Instances in the first chunks of a run, which measure the bytes of contacts and the seconds per cell."""
MIN_SECONDS = 2.0e-3
"""Lower bound of the duration of the small chunks at the end of a run."""
CHUNKS_PER_WORKER = 2
"""A short run is cut into at least this many chunks per worker."""
BLOCK_BYTES = 4 << 20
"""Upper bound of the contacts of a chunk: several blocks are in memory at a time."""
WAITING_BLOCKS = 6
"""Blocks that may be complete but not written, besides one per worker: in transfer, in the queue, being written."""
UNLIMITED = sys.maxsize


def default_memory_limit() -> int:
    """Half of the free memory of the machine or of this process's control group [bytes]."""
    return free_memory() // 2


def worker_memory(memory_limit: int, worker_count: int) -> int:
    """Scratch limit of one worker [bytes]: equal parts for each worker's scratch and for each block not yet written."""
    return memory_limit // (2 * worker_count + WAITING_BLOCKS)


def single_cell_memory(memory_limit: int) -> int:
    """Limit of a cell that exceeds `worker_memory`, while other workers wait [bytes]: the rest is for blocks."""
    return memory_limit // 2


def batch_cells(cell_count: int, world_count: int, width: int, worker_count: int, is_cuda: bool) -> int:
    """Cells of a batch of poses: whole frames where at least one fits, so that no frame is read twice.

    Args:
        cell_count: cells of the run. width: instances per cell.
        worker_count: a short run gives each worker at least CHUNKS_PER_WORKER batches; on CUDA one batch may be all.
    """
    instances = CUDA_CHUNK_INSTANCES if is_cuda else CPU_CHUNK_INSTANCES
    per_worker = -(-cell_count // (1 if is_cuda else CHUNKS_PER_WORKER * worker_count))
    cells = max(1, min(instances // width, per_worker))
    return cells if cells < world_count else cells // world_count * world_count


def first_batch_cells(cells: int, cell_count: int, world_count: int) -> int:
    """Cells of a run's first batch: a quarter of `cells`, in whole frames, since no worker runs until it is read."""
    return min(cells // (4 * world_count) * world_count or cells, cell_count)


def probe_cells(width: int) -> int:
    """Cells of a chunk at the beginning of a run, before any chunk is measured. width: instances per cell."""
    return max(1, PROBE_INSTANCES // width)


def block_cells(bytes_per_cell: float) -> int:
    """Cells whose contacts fill BLOCK_BYTES; UNLIMITED for cells without contacts."""
    return max(1, int(BLOCK_BYTES / bytes_per_cell)) if bytes_per_cell else UNLIMITED


def min_cells(done_cells: int, done_seconds: float, width: int) -> int:
    """Cells that take MIN_SECONDS at the measured speed; those of a probe while nothing is measured."""
    if not done_seconds:
        return probe_cells(width)
    return max(1, round(MIN_SECONDS * done_cells / done_seconds))


def chunk_cells(batch_left: int, run_left: int, max_cells: int, least: int, worker_count: int) -> int:
    """Cells of the next chunk.

    At most `max_cells`. With several workers, two thirds of a worker's fair part of the rest of the run, but at least
    `least`. A batch is cut into equal chunks: a small rest would cost as much Python as a whole chunk.

    Args:
        batch_left, run_left: cells of the batch and of the run that are not in a chunk yet.
    """
    wanted = max_cells
    if worker_count > 1:
        wanted = min(wanted, max(2 * run_left // (3 * worker_count), least))
    chunks = max(-(-batch_left // max_cells), round(batch_left / wanted))
    return -(-batch_left // chunks)


def halves(cell_count: int) -> tuple[int, int]:
    """Cells of the two halves of a chunk whose scratch exceeds the worker's limit; the second may have one more."""
    return cell_count // 2, cell_count - cell_count // 2
