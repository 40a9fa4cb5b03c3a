"""Sizes of batches and chunks: whole frames, bounds, equal parts, small chunks at the end of a run."""

from __future__ import annotations

import pytest

from collidecli.engine.chunking import (
    MIN_SECONDS,
    ON_CPU,
    ON_DEVICE,
    UNLIMITED,
    WAITING_BLOCKS,
    batch_cells,
    block_cells,
    cells_within,
    chunk_cells,
    default_memory_limit,
    first_batch_cells,
    halves,
    min_cells,
    probe_cells,
    whole_blocks,
    worker_memory,
)


def test_memory_is_divided_among_workers_and_waiting_blocks():
    assert worker_memory(1000 * (2 * 4 + WAITING_BLOCKS), 4) == 1000
    assert default_memory_limit() > 0


@pytest.mark.parametrize(
    ("cells", "worlds", "width", "workers", "sizes", "expected"),
    [
        (10**6, 1, 8, 4, ON_CPU, ON_CPU.instances // 8),
        (10**6, 1, 8, 1, ON_DEVICE, ON_DEVICE.instances // 8),
        (80, 1, 8, 4, ON_CPU, 80 // (ON_CPU.chunks_per_worker * 4)),
        (80, 1, 8, 1, ON_DEVICE, 80),
        (10**6, 1000, 8, 4, ON_CPU, 12000),  # whole frames of 12288 cells
        (10**6, 20000, 8, 4, ON_CPU, ON_CPU.instances // 8),  # part of a frame
        (10, 1, 10**6, 1, ON_CPU, 1),
    ],
)
def test_cells_of_a_batch(cells, worlds, width, workers, sizes, expected):
    assert batch_cells(cells, worlds, width, workers, sizes) == expected


@pytest.mark.parametrize(
    ("cells", "run", "worlds", "expected"), [(400, 10**4, 1, 100), (400, 10**4, 30, 90), (3, 100, 1, 3), (400, 5, 1, 5)]
)
def test_the_first_batch_is_a_quarter_in_whole_frames(cells, run, worlds, expected):
    assert first_batch_cells(cells, run, worlds) == expected


@pytest.mark.parametrize(
    ("cells", "block", "expected"), [(100, 32, 96), (96, 32, 96), (31, 32, 31), (33, 32, 32), (5, 1, 5)]
)
def test_whole_blocks_where_one_fits(cells, block, expected):
    assert whole_blocks(cells, block) == expected


@pytest.mark.parametrize(("limit", "block", "expected"), [(0.2, 1, 1), (9.9, 32, 32), (3.9, 32, 3), (40.5, 32, 40)])
def test_a_block_of_cells_may_exceed_the_limit_of_a_chunk(limit, block, expected):
    assert cells_within(limit, block) == expected


def test_cells_by_instances_bytes_and_seconds():
    assert probe_cells(8, ON_CPU) == ON_CPU.probe_instances // 8
    assert probe_cells(10 * ON_CPU.probe_instances, ON_CPU) == 1
    assert block_cells(0.0, ON_CPU) == UNLIMITED
    assert block_cells(1000.0, ON_CPU) == ON_CPU.block_bytes // 1000
    assert block_cells(2.0 * ON_CPU.block_bytes, ON_CPU) == 1
    assert min_cells(0, 0.0, 77) == 77
    assert min_cells(500, 500 * MIN_SECONDS / 20, 8) == 20
    assert min_cells(1, 100.0, 8) == 1


def test_a_batch_is_cut_into_equal_chunks():
    for batch, most in ((1000, 300), (1000, 999), (1000, 1000), (1, 5), (7, 1)):
        left, sizes = batch, []
        while left:
            sizes.append(chunk_cells(left, UNLIMITED, most, 1, 1))
            left -= sizes[-1]
        assert max(sizes) <= most
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == -(-batch // most)


@pytest.mark.parametrize("workers", [2, 4])
def test_the_last_chunks_of_a_run_are_smaller(workers):
    left, sizes = 10**5, []
    while left:
        sizes.append(chunk_cells(left, left, 5000, 50, workers))
        left -= sizes[-1]
    assert max(sizes) <= 5000
    assert sizes[-1] < 100
    assert chunk_cells(10**4, 10**4, 5000, 50, 1) == 5000


def test_halves_hold_all_cells():
    assert [halves(count) for count in (2, 3, 8)] == [(1, 1), (1, 2), (4, 4)]
