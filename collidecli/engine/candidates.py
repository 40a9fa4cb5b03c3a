"""Candidates of a chunk in canonical order, from pairs of slots with the lanes of their blocks:
count, scan, write.

Candidates are ordered by cell, slot0, slot1. A second list has their indices ordered by bucket (the
collider of the pair), block and pair, and of one pair by lane: consecutive frames of a pair are
consecutive in it, so that a collider's branches and reads are nearly equal from one to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BIT_FUNCTIONS, BlockPairs, PairLanes
from collidecli.engine.cells import Chunk, ChunkCells
from collidecli.engine.device_model import DeviceModel, Layout
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.workspace import Workspace

PAIRS_OF_THREAD = 16
MOST_PARTS = 1024
"""On a device: least pairs of slots of a part, and most parts of a block; other numbers were not
measured."""


@wp.struct
class Buckets:
    """Bucket of each ordered pair of kinds, and the scanned counts of candidates.

    The pairs of a block are counted in `parts` consecutive parts. of_kinds: kind_count x
    kind_count. end: of candidates, bucket_count x part_count, then of pairs of slots as many; then
    the inclusive scan of both. part_count: parts of all blocks. cell_end: candidates of each part
    of each cell, then inclusive scan.
    """

    of_kinds: wp.array[wp.int32]
    kind_count: int
    bucket_count: int
    parts: int
    part_count: int
    end: wp.array[wp.int32]
    cell_end: wp.array[wp.int32]


@kernel
def end_blocks(width: int, block_count: int, pair_count: int, pairs: PairLanes):
    """One thread per pair: the last of a block writes the end of its block's pairs and of empty
    blocks after it."""
    thread = wp.tid()
    block = pairs.slots[thread][0] // width
    next_block = pairs.slots[thread + 1][0] // width if thread + 1 < pair_count else block_count
    for b in range(block, next_block):
        pairs.end[b] = thread + 1
    if thread == 0:
        for b in range(block):
            pairs.end[b] = 0


PAIRS_OF_PART = """
    const int parts = buckets.parts;
    const int part_count = buckets.part_count, bucket_count = buckets.bucket_count;
    const int block = part / parts;
    const int from = block == 0 ? 0 : pairs.end.data[block - 1];
    const wp::int64 of_block = pairs.end.data[block] - from, number = part - block * parts;
    const int begin = from + (int)(of_block * number / parts);
    const int end_of_part = from + (int)(of_block * (number + 1) / parts);
"""
"""C++: the pairs `begin` to `end_of_part` - 1 of a part of a block."""


@wp.func_native(
    native(__file__, "count_of_part", BIT_FUNCTIONS=BIT_FUNCTIONS, PAIRS_OF_PART=PAIRS_OF_PART)
)
def count_of_part(
    kind: wp.array[wp.int32],
    layout: Layout,
    chunk: ChunkCells,
    pairs: PairLanes,
    buckets: Buckets,
    part: int,
):
    """Counts the candidates of a part of a block by bucket and by cell, and completes its pairs."""
    ...


@kernel
def count_lanes(
    kind: wp.array[wp.int32], layout: Layout, chunk: ChunkCells, pairs: PairLanes, buckets: Buckets
):
    """One thread per part of a block: its candidates, counted by bucket and by cell."""
    count_of_part(kind, layout, chunk, pairs, buckets, wp.tid())


@wp.func_native(
    native(__file__, "write_part", BIT_FUNCTIONS=BIT_FUNCTIONS, PAIRS_OF_PART=PAIRS_OF_PART)
)
def write_part(
    chunk: ChunkCells,
    pairs: PairLanes,
    buckets: Buckets,
    part: int,
    first: int,
    last: int,
    pair: wp.array[wp.vec2i],
    row: wp.array[wp.vec2i],
    order: wp.array[wp.int32],
):
    """Writes the candidates of lanes `first` to `last - 1` of a part of a block."""
    ...


@kernel
def write_lanes(
    chunk: ChunkCells,
    pairs: PairLanes,
    buckets: Buckets,
    lane_parts: int,
    pair: wp.array[wp.vec2i],
    row: wp.array[wp.vec2i],
    order: wp.array[wp.int32],
):
    """One thread per `lane_parts`-th of the lanes of a part: its candidates, and their indices by
    bucket."""
    thread = wp.tid()
    part = thread // lane_parts
    count = (1 << chunk.shift) // lane_parts
    first = (thread - part * lane_parts) * count
    last = wp.min(first + count, chunk.block_size[part // buckets.parts])
    if first < last:
        write_part(chunk, pairs, buckets, part, first, last, pair, row, order)


@dataclass(frozen=True)
class CandidateList:
    """Candidates in canonical order. pair: vec2i, both instances. row: vec2i, rows of both shapes.

    order: their indices by bucket. starts: first index of each bucket in `order`, one more at the
    end. cell_end: inclusive scan of the candidates of each cell. lanes: the pairs of slots.
    pair_starts: as `starts`, of the pairs in `lanes.order`.
    """

    pair: wp.array
    row: wp.array
    order: wp.array
    starts: list[int]
    cell_end: wp.array
    lanes: PairLanes
    pair_starts: list[int]

    @property
    def count(self) -> int:
        return self.starts[-1]


def expand(
    device_model: DeviceModel,
    chunk: Chunk,
    block_pairs: BlockPairs,
    buckets: tuple[wp.array, int, int],
    prefix: str,
    workspace: Workspace,
) -> CandidateList:
    """The candidates of pairs of slots.

    Args:
        buckets: bucket of each ordered pair of kinds, number of kinds, number of buckets.
        prefix: of the names of the candidates' arrays in the workspace.
    """
    layout = device_model.layout
    block_count = chunk.block_count
    count = block_pairs.count
    of_kinds, kind_count, bucket_count = buckets
    integers = dict.fromkeys(("first", "order"), (count, wp.int32))
    elements = {**integers, "end": (block_count, wp.int32), "bucket": (count, wp.uint8)}
    elements |= dict.fromkeys(("row", "before"), (count, wp.vec2i))
    arrays = {
        name: workspace.array(f"pair_{name}", *shape_and_type)
        for name, shape_and_type in elements.items()
    }
    pairs = workspace.struct(PairLanes, slots=block_pairs.slots, mask=block_pairs.mask, **arrays)
    # On a device a thread has one lane of some of a block's pairs: there are few blocks, of many
    # pairs.
    parts = 1
    lane_parts = 1
    if workspace.has_own_memory:
        parts = min(max(count // (PAIRS_OF_THREAD * block_count), 1), MOST_PARTS)
        lane_parts = chunk.lanes
    part_count = parts * block_count
    end_count = 2 * bucket_count * part_count
    end = workspace.array("bucket_end", end_count, wp.int32)
    part_end = workspace.array(f"{prefix}_cell_end", parts * chunk.cell_count, wp.int32)
    filled = workspace.struct(
        Buckets,
        of_kinds=of_kinds,
        kind_count=kind_count,
        bucket_count=bucket_count,
        parts=parts,
        part_count=part_count,
        end=end,
        cell_end=part_end,
    )
    if count:
        workspace.launch(end_blocks, count, [layout.width, block_count, count, pairs])
    else:
        workspace.fill(arrays["end"], 0)
    arguments = [device_model.rows.kind, layout, chunk.cells, pairs, filled]
    workspace.launch(count_lanes, part_count, arguments)
    workspace.launch_scan(part_end, parts * chunk.cell_count)
    workspace.launch_scan(end, end_count)
    # The scan's last part of each bucket is the bucket's end, and of each cell the cell's.
    ends = [0, *workspace.every(end, end_count, part_count)]
    cell_end = part_end
    if parts > 1:
        cell_end = workspace.array(f"{prefix}_whole_cell_end", chunk.cell_count, wp.int32)
        last = part_end[parts - 1 : parts * chunk.cell_count : parts]
        wp.copy(cell_end[: chunk.cell_count], last)  # pyright: ignore[reportArgumentType]
    starts = ends[: bucket_count + 1]
    pair_starts = [number - starts[-1] for number in ends[bucket_count:]]
    pair, row = (
        workspace.array(f"{prefix}_{name}", starts[-1], wp.vec2i) for name in ("pair", "row")
    )
    order = workspace.array(f"{prefix}_order", starts[-1], wp.int32)
    shared = [chunk.cells, pairs, filled, lane_parts, pair, row, order]
    workspace.launch(write_lanes, part_count * lane_parts, shared)
    return CandidateList(pair, row, order, starts, cell_end, pairs, pair_starts)


def counts_of_cells(
    lists: Sequence[CandidateList], cell_count: int, workspace: Workspace
) -> np.ndarray:
    """int64[cell_count]: candidates of each cell of a chunk, over all lists, on the host."""
    total = np.zeros(cell_count, np.int64)
    for listed in lists:
        ends = workspace.host(listed.cell_end, cell_count).astype(np.int64)
        total += np.diff(ends, prepend=0)
    return total


KERNELS = (end_blocks, count_lanes, write_lanes)
"""Kernels of `expand`."""
