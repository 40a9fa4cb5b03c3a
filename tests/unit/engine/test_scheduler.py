"""Scheduler: order of blocks, halving of chunks, refusal by the memory limit."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunking import MIN_SECONDS, ON_CPU, WAITING_BLOCKS
from collidecli.engine.pipeline import ChunkReport, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.scheduler import Workers
from collidecli.errors import InputError
from collidecli.scene.tables import ContactBlock


class Stub:
    """Pipeline whose cell c has c contacts, or none, and allocates `needs[c]`: bytes by array name."""

    def __init__(self, needs: list[dict[str, int]], contacts: bool = True, seconds: float = 0.0) -> None:
        self.cell_width, self.block_cells = 8, 1
        self.device_model: Any = SimpleNamespace(
            device=find_device("cpu"), layout=SimpleNamespace(width=8), model=SimpleNamespace(world_count=1)
        )
        self.needs, self.contacts, self.seconds = needs, contacts, seconds
        self.sizes: list[int] = []
        self.alone: list[int] = []
        self.inside = 0

    def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        cells = range(batch.first_cell, batch.first_cell + batch.cell_count)
        for name in sorted({name for cell in cells for name in self.needs[cell]}):
            workspace.array(name, sum(self.needs[cell].get(name, 0) for cell in cells), wp.uint8)
        self.sizes.append(batch.cell_count)
        counts = np.array(cells, np.int64) * self.contacts
        report = ChunkReport(len(cells), seconds={**ChunkReport().seconds, "transforms": self.seconds * len(cells)})
        return ContactBlock(batch.first_cell, counts, {"shape0": np.repeat(counts, counts)}), report

    def collide_in_parts(self, batch: PoseBatch, memory_limit: int) -> tuple[ContactBlock, ChunkReport]:
        assert batch.cell_count == 1
        self.alone.append(batch.first_cell)
        self.inside += 1
        assert self.inside == 1, "no other thread works meanwhile"
        result = self.collide(batch, Workspace(self.device_model.device, memory_limit, exact=True))
        self.inside -= 1
        return result


def blocks_of(stub: Stub, part: int, step: int, threads: int = 1) -> list[ContactBlock]:
    cells = len(stub.needs)
    batches = [PoseBatch(first, min(step, cells - first), 0, np.zeros(0)) for first in range(0, cells, step)]
    limit = part * (2 * threads + WAITING_BLOCKS)
    with Workers(stub, threads, limit) as pool:  # pyright: ignore[reportArgumentType]
        return [block for block, _ in pool.collide(batches)]


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_come_in_order_and_chunks_too_large_are_halved(threads):
    count = 200
    stub = Stub([{"x": 1000}] * count)
    blocks = blocks_of(stub, 2600, 8, threads)
    sizes = [len(block.cell_counts) for block in blocks]
    assert [block.first_cell for block in blocks] == [0, *np.cumsum(sizes)[:-1]]
    np.testing.assert_array_equal(np.concatenate([block.cell_counts for block in blocks]), np.arange(count))
    found = np.concatenate([block.columns["shape0"] for block in blocks])
    np.testing.assert_array_equal(found, np.repeat(np.arange(count), np.arange(count)))
    assert max(stub.sizes) == 2
    # The halves of chunks in progress are concatenated; later chunks have the smaller size.
    assert max(sizes[threads + 2 :]) == 2


@pytest.mark.parametrize("fitting", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 11, 13])
def test_halves_of_odd_chunks_hold_every_cell_once(count, fitting):
    """The front half is the smaller, and later chunks are no larger than what fitted."""
    stub = Stub([{"x": 1000}] * count)
    (block,) = blocks_of(stub, 1000 * fitting + 500, count)
    assert (block.first_cell, len(block.cell_counts)) == (0, count)
    np.testing.assert_array_equal(block.cell_counts, np.arange(count))
    np.testing.assert_array_equal(block.columns["shape0"], np.repeat(np.arange(count), np.arange(count)))

    def sizes(cells: int) -> list[int]:
        return [cells] if cells <= fitting else sizes(cells // 2) + sizes(cells - cells // 2)

    assert stub.sizes == sizes(count)
    assert stub.alone == []


def test_the_middle_cell_of_an_odd_chunk_is_collided_alone():
    needs = [{"x": 100}] * 7
    needs[3] = {"x": 3000}
    stub = Stub(needs)
    (block,) = blocks_of(stub, 1000, 7)
    assert stub.alone == [3]
    np.testing.assert_array_equal(block.cell_counts, np.arange(7))
    np.testing.assert_array_equal(block.columns["shape0"], np.repeat(np.arange(7), np.arange(7)))
    # 7 = 3 + 4, of which 4 = 2 + 2 and 2 = 1 + 1; only chunks that fitted are in the list.
    assert stub.sizes == [3, 1, 1, 2]


def test_chunks_after_an_odd_one_are_as_large_as_its_smaller_half():
    stub = Stub([{"x": 1000}] * 35)
    blocks = blocks_of(stub, 4500, 7)
    assert stub.sizes[:2] == [3, 4]
    assert max(stub.sizes[2 * (1 + 2) :]) <= 3, "chunks that were cut before the first result are halved too"
    np.testing.assert_array_equal(np.concatenate([block.cell_counts for block in blocks]), np.arange(35))


@pytest.mark.parametrize("least", [1, 500, 2000])
def test_the_last_chunks_of_several_workers_are_smaller(least):
    """A chunk takes at least MIN_SECONDS; all cells have equal cost here."""
    cells, step = 48000, 8000
    assert step > ON_CPU.probe_instances // 8
    batches = [PoseBatch(first, step, 0, np.zeros(0)) for first in range(0, cells, step)]
    sizes = {}
    for known in (None, cells):
        stub = Stub([{"x": 1}] * cells, contacts=False, seconds=MIN_SECONDS / least)
        with Workers(stub, 2, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
            sizes[known] = [len(block.cell_counts) for block, _ in pool.collide(batches, known)]
        assert sum(sizes[known]) == cells
    assert sizes[None][-1] == step
    assert sizes[cells][-1] <= 1.5 * least
    assert min(sizes[cells]) >= least / 2, "a small rest costs as much Python as a whole chunk"


def test_reports_of_halves_add_up():
    one = ChunkReport(1, 2, 3, 4, {"transforms": 0.5}, inexact_count=5)
    assert one.plus(one) == ChunkReport(2, 4, 6, 8, {"transforms": 1.0}, inexact_count=10)


def test_one_cell_too_large_is_refused_with_what_it_needs():
    stub = Stub([{"x": 1}, {"x": 5 << 20}, {"x": 1}])
    with pytest.raises(
        InputError, match="frame 1 of world 0 needs at least 5 MiB; its part of the limit is 4 MiB"
    ) as refusal:
        blocks_of(stub, 1 << 20, 2)
    assert refusal.value.where == "--memory-limit"


@pytest.mark.parametrize("threads", [1, 3])
def test_a_cell_above_a_workers_memory_is_collided_alone(threads):
    """The limit is 2 threads + 6 parts of 1000 bytes; a worker has one part, a cell alone half of all."""
    needs = [{"x": 1000}, {"x": 3900}, {"y": 1000}, {"z": 2500}, {"x": 10}] * 20
    stub = Stub(needs)
    blocks = blocks_of(stub, 1000, 1, threads)
    assert [block.first_cell for block in blocks] == list(range(100))
    assert sorted(stub.alone) == [cell for cell in range(100) if needs[cell].get("x", 0) > 1000 or "z" in needs[cell]]


def test_an_error_of_a_chunk_drops_its_scratch_memory():
    """A launch that was queued before the error may refer to arrays that are freed."""
    stub = Stub([{"x": 1}] * 3)
    used: list[Workspace] = []
    collide = stub.collide

    def failing(batch, workspace):
        used.append(workspace)
        if batch.first_cell == 1:
            raise MemoryError
        return collide(batch, workspace)

    stub.collide = failing  # pyright: ignore[reportAttributeAccessIssue]
    with Workers(stub, 1, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
        for cell, fails in enumerate((False, True, False)):
            with pytest.raises(MemoryError) if fails else nullcontext():
                list(pool.collide([PoseBatch(cell, 1, 0, np.zeros(0))]))
    assert used[0] is used[1]
    assert used[2] is not used[1]


def test_arrays_of_earlier_cells_are_freed_for_a_cell_that_needs_the_memory():
    stub = Stub([{"x": 1000}, {"y": 1000}, {"x": 500, "y": 500}, {"z": 1300}])
    assert len(blocks_of(stub, 1300, 1)) == 4


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_after_an_error_no_queued_copy_is_executed(error):
    """A chunk fails between its queued copies; the next chunk of the same worker must not fill its arrays."""
    copied: list[np.ndarray] = []

    class Failing(Stub):
        def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
            numbers = workspace.array("numbers", 64, wp.int32)
            if batch.first_cell == 0:
                workspace.fill(numbers, 7)
                copied.append(workspace.copied(numbers, 64))
                copied[0][:] = -1
                raise error
            workspace.finish()
            return super().collide(batch, workspace)

    stub = Failing([{}, {}])
    with Workers(stub, 1, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
        with pytest.raises(error):
            list(pool.collide([PoseBatch(0, 1, 0, np.zeros(0))]))
        list(pool.collide([PoseBatch(1, 1, 0, np.zeros(0))]))
    assert set(copied[0].tolist()) == {-1}


def test_stopping_early_leaves_no_thread_waiting():
    stub = Stub([{"x": 1}] * 100)
    with Workers(stub, 2, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
        blocks = pool.collide([PoseBatch(cell, 1, 0, np.zeros(0)) for cell in range(100)])
        next(blocks)
        blocks.close()
    assert len(stub.sizes) < 100
