"""Chunks on threads: each worker has its own scratch memory, and the blocks come out in the order of cells."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import psutil

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import ChunkReport, CollisionPipeline
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.errors import InputError
from collidecli.scene.contacts import ContactBlock
from collidecli.scene.text_format import memory

CPU_CHUNK_INSTANCES = 49152
"""Shapes of all cells of a chunk: enough to hide the cost of launches, few enough to stay near a core's cache."""
CUDA_CHUNK_INSTANCES = 1 << 20
LEAST_SECONDS = 2.0e-3
"""The last pieces of a run are smaller, so that no worker waits long for the last, but take no less than this."""
CHUNKS_PER_WORKER = 2
"""A short run is cut into at least this many chunks a worker."""


def worker_count(threads: int, is_cuda: bool) -> int:
    """Workers for a device: one a core on the CPU; one on CUDA, whose launches fill the device by themselves."""
    if is_cuda:
        return 1
    if threads:
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory_share() -> int:
    """Half of the memory that is free now [bytes]."""
    return psutil.virtual_memory().available // 2


def chunk_size(pipeline: CollisionPipeline, cell_count: int, workers: int, asked: int) -> int:
    """Cells in a chunk; whole frames where one fits, so that no frame is read twice."""
    if asked:
        return asked
    world_count = pipeline.device_model.model.world_count
    width = pipeline.device_model.layout.width
    is_cuda = pipeline.device_model.device.is_cuda
    instances = CUDA_CHUNK_INSTANCES if is_cuda else CPU_CHUNK_INSTANCES
    fair = -(-cell_count // (1 if is_cuda else CHUNKS_PER_WORKER * workers))
    cells = max(1, min(instances // width, fair))
    return cells if cells < world_count else cells // world_count * world_count


PROBE_INSTANCES = 18432
"""Shapes in the first chunks of a run, which show how heavy its blocks are."""
BLOCK_BYTES = 4 << 20
"""Size that blocks are cut to: several are on their way at a time."""
WAITING_BLOCKS = 6
"""Blocks that may be done but not written, besides one a worker: on their way, in the queue, being written."""


class Workers:
    """A pool of threads that collide chunks.

    Args:
        pipeline: shared by all. count: threads.
        memory_limit: bytes for the scratch of all workers and the blocks that wait to be written. A worker's scratch
            gets one share, and so does each block: a chunk that needs more is done in halves, as are those after it.
    """

    def __init__(self, pipeline: CollisionPipeline, count: int, memory_limit: int) -> None:
        self._pipeline = pipeline
        self._count = count
        self._share = memory_limit // (2 * count + WAITING_BLOCKS)
        self._most_cells = max(1, PROBE_INSTANCES // pipeline.device_model.layout.width)
        self._most_fitting = sys.maxsize
        self._bytes_per_cell = 0.0
        self._done_cells, self._done_seconds = 0, 0.0
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="collide")

    def collide(
        self, batches: Iterable[PoseBatch], cell_count: int | None = None
    ) -> Iterator[tuple[ContactBlock, ChunkReport]]:
        """Blocks in the order of `batches`; at most a few chunks are in memory at a time.

        cell_count: of all batches, where it is known: the last pieces are then small, so that no worker waits long for
        another's. Raises InputError when even a single cell does not fit the memory limit.
        """
        pending: deque[Future[tuple[ContactBlock, ChunkReport]]] = deque()
        left = cell_count or sys.maxsize
        try:
            for batch in batches:
                done = 0
                while done < batch.cell_count:
                    count = self._chunk_cells(batch.cell_count - done, left)
                    piece = replace(batch, first_cell=batch.first_cell + done, cell_count=count)
                    pending.append(self._pool.submit(self._collide_one, piece))
                    done += count
                    left -= count
                    if len(pending) > self._count + 1:
                        yield self._weighed(pending.popleft().result())
            while pending:
                yield self._weighed(pending.popleft().result())
        finally:
            for future in pending:
                future.cancel()

    def _chunk_cells(self, of_batch: int, left: int) -> int:
        """Cells of the next piece, of those of the batch, and of the run, that are not done yet.

        Two thirds of a worker's share of what is left, but no less than takes LEAST_SECONDS as far as is known. A batch
        is cut evenly: a small rest would cost as much Python as a whole piece.
        """
        wanted = self._most_cells
        if self._count > 1:
            wanted = min(wanted, max(2 * left // (3 * self._count), self._least_cells()))
        pieces = max(-(-of_batch // self._most_cells), round(of_batch / wanted))
        return -(-of_batch // pieces)

    def _least_cells(self) -> int:
        """Cells that take LEAST_SECONDS; as many as a probe has, as long as no chunk is done."""
        if not self._done_seconds:
            return max(1, PROBE_INSTANCES // self._pipeline.device_model.layout.width)
        return max(1, round(LEAST_SECONDS * self._done_cells / self._done_seconds))

    def _weighed(self, result: tuple[ContactBlock, ChunkReport]) -> tuple[ContactBlock, ChunkReport]:
        """Notes what a chunk took; cuts those to come by what the heaviest weighs, so that memory levels off early."""
        block, report = result
        self._done_cells += report.cell_count
        self._done_seconds += sum(report.seconds.values())
        cells = max(1, len(block.cell_counts))
        self._bytes_per_cell = max(self._bytes_per_cell, sum(c.nbytes for c in block.columns.values()) / cells)
        fitting = max(1, int(BLOCK_BYTES / self._bytes_per_cell)) if self._bytes_per_cell else sys.maxsize
        self._most_cells = min(fitting, self._most_fitting)
        return result

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _workspace(self) -> Workspace:
        if not hasattr(self._local, "workspace"):
            device = self._pipeline.device_model.device
            self._local.workspace = Workspace(device, self._share)
        return self._local.workspace

    def _collide_one(self, batch: PoseBatch) -> tuple[ContactBlock, ChunkReport]:
        unused = not hasattr(self._local, "workspace")
        try:
            return self._pipeline.collide(batch, self._workspace())
        except ChunkTooLarge as too_large:
            self._local.workspace = None
            del self._local.workspace
            if batch.cell_count == 1 and not unused:
                # What earlier cells left behind is gone now; alone it may fit.
                return self._collide_one(batch)
            if batch.cell_count == 1:
                raise InputError(
                    f"one frame of one world needs {memory(too_large.needed)} of scratch memory a worker, "
                    f"its share of the limit is {memory(self._share)}",
                    "--memory-limit",
                    "raise it, or use fewer --threads",
                ) from None
        # The answer does not depend on how cells are batched, so a chunk too large is done in halves.
        half = batch.cell_count // 2
        self._most_fitting = min(self._most_fitting, half)
        self._most_cells = min(self._most_cells, half)
        front = self._collide_one(replace(batch, cell_count=half))
        back = self._collide_one(replace(batch, first_cell=batch.first_cell + half, cell_count=batch.cell_count - half))
        return _joined(front, back)


def _joined(
    front: tuple[ContactBlock, ChunkReport], back: tuple[ContactBlock, ChunkReport]
) -> tuple[ContactBlock, ChunkReport]:
    (block0, report0), (block1, report1) = front, back
    block = ContactBlock(
        block0.first_cell,
        np.concatenate([block0.cell_counts, block1.cell_counts]),
        {name: np.concatenate([values, block1.columns[name]]) for name, values in block0.columns.items()},
    )
    return block, report0.plus(report1)
