"""Candidates of a chunk in canonical order, from pairs of slots with the lanes of their blocks: count, scan, write.

Candidates are ordered by cell, slot0, slot1. A second list has their indices ordered by bucket (the collider of the
pair), block and pair, and of one pair by lane: consecutive frames of a pair are consecutive in it, so that a collider's
branches and reads are nearly equal from one to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from collidecli.engine.block_pairs import BIT_FUNCTIONS, BlockPairs, PairLanes
from collidecli.engine.cells import Chunk, ChunkCells
from collidecli.engine.device_model import DeviceModel, Layout
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace


@wp.struct
class Buckets:
    """Bucket of each ordered pair of kinds, and the scanned counts of candidates.

    of_kinds: kind_count x kind_count. end: of candidates, bucket_count x block_count, then of pairs of slots as many;
    then the inclusive scan of both. cell_end: candidates of each cell, then inclusive scan.
    """

    of_kinds: wp.array[wp.int32]
    kind_count: int
    bucket_count: int
    block_count: int
    end: wp.array[wp.int32]
    cell_end: wp.array[wp.int32]


@kernel
def end_blocks(width: int, block_count: int, pair_count: int, pairs: PairLanes):
    """One thread per pair: the last of a block writes the end of its block's pairs and of empty blocks after it."""
    thread = wp.tid()
    block = pairs.slots[thread][0] // width
    next_block = block_count
    if thread + 1 < pair_count:
        next_block = pairs.slots[thread + 1][0] // width
    for b in range(block, next_block):
        pairs.end[b] = thread + 1
    if thread == 0:
        for b in range(block):
            pairs.end[b] = 0


@wp.func_native(
    f"""{BIT_FUNCTIONS}
    int of_lane[32] = {{}};
    for (int b = 0; b < 2 * bucket_count; ++b)
        bucket_end.data[b * block_count + block] = 0;
    for (int p = block == 0 ? 0 : pairs.end.data[block - 1]; p < pairs.end.data[block]; ++p) {{
        wp::uint32 mask = pairs.mask.data[p];
        if (mask == 0)
            continue;
        const int row0 = slot_row.data[first_row_slot + pairs.slots.data[p][0] - block * width];
        const int row1 = slot_row.data[first_row_slot + pairs.slots.data[p][1] - block * width];
        const int bucket = of_kinds.data[kind.data[row0] * kind_count + kind.data[row1]];
        pairs.row.data[p] = wp::vec_t<2, int>(row0, row1);
        pairs.bucket.data[p] = (wp::uint8)bucket;
        int* end = bucket_end.data + bucket * block_count + block;
        int* pair_end = end + bucket_count * block_count;
        pairs.before.data[p] = wp::vec_t<2, int>(*end, *pair_end);
        *end += COUNT_OF(mask);
        ++*pair_end;
        for (; mask != 0; mask &= mask - 1)
            ++of_lane[FIRST_OF(mask)];
    }}
    for (int lane = 0; lane < size; ++lane)
        cell_end.data[lane_cell.data[first_lane + lane]] = of_lane[lane];
"""
)
def count_of_block(
    pairs: PairLanes,
    kind: wp.array[wp.int32],
    slot_row: wp.array[wp.int32],
    lane_cell: wp.array[wp.int32],
    of_kinds: wp.array[wp.int32],
    bucket_end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
    kind_count: int,
    bucket_count: int,
    block_count: int,
    block: int,
    width: int,
    first_row_slot: int,
    first_lane: int,
    size: int,
):
    """Counts the candidates of a block by bucket and by cell, and completes its pairs.

    first_row_slot: first of the template's in slot_row. first_lane, size: of the block.
    """
    ...


@kernel
def count_lanes(kind: wp.array[wp.int32], layout: Layout, chunk: ChunkCells, pairs: PairLanes, buckets: Buckets):
    """One thread per block: its candidates, counted by bucket and by cell."""
    block = wp.tid()
    count_of_block(
        pairs,
        kind,
        layout.slot_row,
        chunk.lane_cell,
        buckets.of_kinds,
        buckets.end,
        buckets.cell_end,
        buckets.kind_count,
        buckets.bucket_count,
        buckets.block_count,
        block,
        layout.width,
        chunk.block_template[block] * layout.width,
        block << chunk.shift,
        chunk.block_size[block],
    )


@wp.func_native(
    f"""{BIT_FUNCTIONS}
    int next[32];
    for (int lane = first; lane < last; ++lane) {{
        const int cell = lane_cell.data[(block << shift) + lane];
        next[lane] = cell == 0 ? 0 : cell_end.data[cell - 1];
    }}
    const wp::uint32 own = (0xFFFFFFFFu >> (32 - (last - first))) << first;
    for (int p = block == 0 ? 0 : pairs.end.data[block - 1]; p < pairs.end.data[block]; ++p) {{
        const wp::uint32 mask = pairs.mask.data[p];
        if (mask == 0)
            continue;
        const int at = pairs.bucket.data[p] * block_count + block;
        const int start = (at == 0 ? 0 : bucket_end.data[at - 1]) + pairs.before.data[p][0];
        if (first == 0) {{
            pairs.first.data[p] = start;
            const int pairs_at = bucket_count * block_count + at;
            const int total = bucket_end.data[bucket_count * block_count - 1];
            pairs.order.data[bucket_end.data[pairs_at - 1] - total + pairs.before.data[p][1]] = p;
        }}
        int* slot = order.data + start;
        const int instance0 = pairs.slots.data[p][0] << shift, instance1 = pairs.slots.data[p][1] << shift;
        const wp::vec_t<2, int> rows = pairs.row.data[p];
        for (wp::uint32 left = mask & own; left != 0; left &= left - 1) {{
            const int lane = FIRST_OF(left);
            const int candidate = next[lane]++;
            pair.data[candidate] = wp::vec_t<2, int>(instance0 + lane, instance1 + lane);
            row.data[candidate] = rows;
            slot[COUNT_OF(mask & ((1u << lane) - 1u))] = candidate;
        }}
    }}
"""
)
def write_block(
    pairs: PairLanes,
    lane_cell: wp.array[wp.int32],
    bucket_end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
    bucket_count: int,
    block_count: int,
    block: int,
    shift: int,
    first: int,
    last: int,
    pair: wp.array[wp.vec2i],
    row: wp.array[wp.vec2i],
    order: wp.array[wp.int32],
):
    """Writes the candidates of lanes `first` to `last - 1` of a block."""
    ...


@kernel
def write_lanes(
    chunk: ChunkCells,
    pairs: PairLanes,
    buckets: Buckets,
    parts: int,
    pair: wp.array[wp.vec2i],
    row: wp.array[wp.vec2i],
    order: wp.array[wp.int32],
):
    """One thread per part of the lanes of a block: its candidates, and their indices by bucket."""
    thread = wp.tid()
    block = thread // parts
    count = (1 << chunk.shift) // parts
    first = (thread - block * parts) * count
    last = wp.min(first + count, chunk.block_size[block])
    if first < last:
        write_block(
            pairs,
            chunk.lane_cell,
            buckets.end,
            buckets.cell_end,
            buckets.bucket_count,
            buckets.block_count,
            block,
            chunk.shift,
            first,
            last,
            pair,
            row,
            order,
        )


@dataclass(frozen=True)
class CandidateList:
    """Candidates in canonical order. pair: vec2i, both instances. row: vec2i, rows of both shapes.

    order: their indices by bucket. starts: first index of each bucket in `order`, one more at the end.
    cell_end: inclusive scan of the candidates of each cell. lanes: the pairs of slots.
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
    found: BlockPairs,
    buckets: tuple[wp.array, int, int],
    prefix: str,
    workspace: Workspace,
) -> CandidateList:
    """The candidates of pairs of slots.

    Args:
        buckets: bucket of each ordered pair of kinds, number of kinds, number of buckets.
        prefix: of the names of the candidates' arrays in the workspace.
    """
    layout, block_count, count = device_model.layout, chunk.block_count, found.count
    of_kinds, kind_count, bucket_count = buckets
    integers = dict.fromkeys(("first", "order"), (count, wp.int32))
    elements = {**integers, "end": (block_count, wp.int32), "bucket": (count, wp.uint8)}
    elements |= dict.fromkeys(("row", "before"), (count, wp.vec2i))
    arrays = {name: workspace.array(f"pair_{name}", *each) for name, each in elements.items()}
    pairs = workspace.struct(PairLanes, slots=found.slots, mask=found.mask, **arrays)
    end_count = 2 * bucket_count * block_count
    end = workspace.array("bucket_end", end_count, wp.int32)
    cell_end = workspace.array(f"{prefix}_cell_end", chunk.cell_count, wp.int32)
    filled = workspace.struct(
        Buckets,
        of_kinds=of_kinds,
        kind_count=kind_count,
        bucket_count=bucket_count,
        block_count=block_count,
        end=end,
        cell_end=cell_end,
    )
    if count:
        workspace.launch(end_blocks, count, [layout.width, block_count, count, pairs])
    else:
        workspace.fill(arrays["end"], 0)
    arguments = [device_model.rows.kind, layout, chunk.cells, pairs, filled]
    workspace.launch(count_lanes, block_count, arguments)
    workspace.launch_scan(cell_end, chunk.cell_count)
    workspace.launch_scan(end, end_count)
    # The scan's last block of each bucket is the bucket's end.
    ends = [0, *workspace.every(end, end_count, block_count)]
    starts = ends[: bucket_count + 1]
    pair_starts = [number - starts[-1] for number in ends[bucket_count:]]
    pair, row = (workspace.array(f"{prefix}_{name}", starts[-1], wp.vec2i) for name in ("pair", "row"))
    order = workspace.array(f"{prefix}_order", starts[-1], wp.int32)
    # On a device a thread has one lane: a block's candidates are many.
    parts = chunk.lanes if workspace.has_own_memory else 1
    workspace.launch(write_lanes, block_count * parts, [chunk.cells, pairs, filled, parts, pair, row, order])
    return CandidateList(pair, row, order, starts, cell_end, pairs, pair_starts)


KERNELS = (end_blocks, count_lanes, write_lanes)
"""Kernels of `expand`."""
