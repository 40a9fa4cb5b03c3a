"""Candidates of a chunk in canonical order, from pairs of slots with the lanes of their blocks:
count, scan, write.

Candidates are ordered by cell, slot0, slot1. A second list has their indices ordered by bucket (the
collider of the pair), block and pair, and of one pair by lane: consecutive frames of a pair are
consecutive in it, so that a collider's branches and reads are nearly equal from one to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
def end_blocks(width: int, pair_count: int, bound: wp.array[wp.int32], pairs: PairLanes):
    """One thread per block: the end of its pairs, by binary search. There are as many pairs as the
    lesser of `pair_count` and the bound."""
    block = wp.tid()
    low = int(0)
    high = wp.min(pair_count, bound[0])
    while low < high:
        middle = (low + high) // 2
        if pairs.slots[middle][0] // width <= block:
            low = middle + 1
        else:
            high = middle
    pairs.end[block] = low


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


@kernel
def start_buckets(
    buckets: Buckets,
    most: wp.array[wp.int32],
    bounded: int,
    start: wp.array[wp.int32],
    first_slot: int,
    found: wp.array[wp.int32],
):
    """One thread: the first candidate of each bucket, one more at the end, and the first pair of
    slots of each.

    most: capacities of the candidates of each bucket, then of its pairs. With `bounded`, where one
    of them does not suffice, all buckets are empty. found: from `first_slot` on the numbers.
    """
    numbers = 2 * buckets.bucket_count
    fits = bool(True)
    last = int(0)
    for index in range(numbers):
        end = buckets.end[(index + 1) * buckets.part_count - 1]
        found[first_slot + index] = end - last
        if bounded != 0 and (end < last or end - last > most[index]):
            fits = False
        last = end
    candidate_count = buckets.end[buckets.bucket_count * buckets.part_count - 1]
    start[0] = 0
    start[buckets.bucket_count + 1] = 0
    for index in range(numbers):
        end = buckets.end[(index + 1) * buckets.part_count - 1]
        if index < buckets.bucket_count:
            start[index + 1] = wp.where(fits, end, 0)
        else:
            start[index + 2] = wp.where(fits, end - candidate_count, 0)


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
    bound: wp.array[wp.int32],
    pair: wp.array[wp.vec2i],
    row: wp.array[wp.vec2i],
    order: wp.array[wp.int32],
):
    """One thread per `lane_parts`-th of the lanes of a part: its candidates, and their indices by
    bucket; none if the arrays have too few elements, where the bound is 0."""
    thread = wp.tid()
    if bound[0] == 0:
        return
    part = thread // lane_parts
    count = (1 << chunk.shift) // lane_parts
    first = (thread - part * lane_parts) * count
    last = wp.min(first + count, chunk.block_size[part // buckets.parts])
    if first < last:
        write_part(chunk, pairs, buckets, part, first, last, pair, row, order)


@dataclass(frozen=True)
class CandidateList:
    """Candidates in canonical order. pair: vec2i, both instances. row: vec2i, rows of both shapes.

    order: their indices by bucket. start: int32 on the device, first index of each bucket in
    `order`, one more at the end; then as many of the pairs of slots in `lanes.order`. bound: see
    `ElementCount`. sizes, pair_sizes: candidates and pairs of each bucket, or their capacities
    where the host has not read them (`is_known`). part_end: inclusive scan of the candidates of
    each of `parts` parts of each cell. lanes: the pairs of slots. name: of the sizes in
    `ChunkCounts`.
    """

    pair: wp.array
    row: wp.array
    order: wp.array
    start: wp.array
    bound: wp.array
    sizes: list[int]
    pair_sizes: list[int]
    is_known: bool
    part_end: wp.array
    parts: int
    lanes: PairLanes
    name: str = ""

    @property
    def count(self) -> int:
        """Number of candidates, or its capacity."""
        return sum(self.sizes)

    def cell_end(self, cells: int, workspace: Workspace) -> wp.array:
        """Inclusive scan of the candidates of each cell."""
        if self.parts == 1:
            return self.part_end
        cell_end = workspace.array("whole_cell_end", cells, wp.int32)
        last = self.part_end[self.parts - 1 : self.parts * cells : self.parts]
        wp.copy(cell_end[:cells], last)  # pyright: ignore[reportArgumentType]
        return cell_end


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
    count = block_pairs.count
    bucket_count = buckets[2]
    pairs = _pair_lanes(block_pairs, chunk.block_count, workspace)
    parts, lane_parts = _part_counts(count, chunk, workspace)
    part_count = parts * chunk.block_count
    end_count = 2 * bucket_count * part_count
    end = workspace.array("bucket_end", end_count, wp.int32)
    part_end = workspace.array(f"{prefix}_cell_end", parts * chunk.cell_count, wp.int32)
    filled = workspace.struct(
        Buckets,
        of_kinds=buckets[0],
        kind_count=buckets[1],
        bucket_count=bucket_count,
        parts=parts,
        part_count=part_count,
        end=end,
        cell_end=part_end,
    )
    layout = device_model.layout
    bound = workspace.counts.unbounded if block_pairs.bound is None else block_pairs.bound
    workspace.launch(end_blocks, chunk.block_count, [layout.width, count, bound, pairs])
    arguments = [device_model.rows.kind, layout, chunk.cells, pairs, filled]
    workspace.launch(count_lanes, part_count, arguments)
    workspace.launch_scan(part_end, parts * chunk.cell_count)
    workspace.launch_scan(end, end_count)
    start, sizes, is_known = _bucket_sizes(filled, bucket_count, prefix, workspace)
    total = sum(sizes[:bucket_count])
    pair, row = (workspace.array(f"{prefix}_{name}", total, wp.vec2i) for name in ("pair", "row"))
    order = workspace.array(f"{prefix}_order", total, wp.int32)
    candidate_bound = workspace.counts.unbounded
    if not is_known:
        candidate_bound = workspace.counts.view(f"{prefix}_start", bucket_count)
    shared = [chunk.cells, pairs, filled, lane_parts, candidate_bound, pair, row, order]
    workspace.launch(write_lanes, part_count * lane_parts, shared)
    return CandidateList(
        pair,
        row,
        order,
        start,
        candidate_bound,
        sizes[:bucket_count],
        sizes[bucket_count:],
        is_known,
        part_end,
        parts,
        pairs,
        f"{prefix}_bucket",
    )


def _part_counts(count: int, chunk: Chunk, workspace: Workspace) -> tuple[int, int]:
    """Numbers of parts of a block's pairs and of its lanes, of which each thread has one.

    On a device a thread has one lane of some of the pairs: there are few blocks, of many pairs.
    """
    if not workspace.has_own_memory:
        return 1, 1
    return min(max(count // (PAIRS_OF_THREAD * chunk.block_count), 1), MOST_PARTS), chunk.lanes


def _pair_lanes(block_pairs: BlockPairs, block_count: int, workspace: Workspace) -> PairLanes:
    """The pairs of slots with arrays for what `count_lanes` finds of each."""
    count = block_pairs.count
    integers = dict.fromkeys(("first", "order"), (count, wp.int32))
    elements = {**integers, "end": (block_count, wp.int32), "bucket": (count, wp.uint8)}
    elements |= dict.fromkeys(("row", "before"), (count, wp.vec2i))
    arrays = {
        name: workspace.array(f"pair_{name}", *shape_and_type)
        for name, shape_and_type in elements.items()
    }
    return workspace.struct(PairLanes, slots=block_pairs.slots, mask=block_pairs.mask, **arrays)


def _bucket_sizes(
    filled: Buckets, bucket_count: int, prefix: str, workspace: Workspace
) -> tuple[wp.array, list[int], bool]:
    """Starts of the buckets (see `CandidateList`), numbers of their candidates and of their pairs,
    and whether these are known, else capacities."""
    counts = workspace.counts
    name = f"{prefix}_bucket"
    slots = counts.slots(name, 2 * bucket_count)
    start = workspace.array(f"{prefix}_start", 2 * bucket_count + 2, wp.int32)
    most = counts.unbounded
    sizes: list[int] = []
    if counts.is_expected(name):
        sizes, most = counts.uploaded_capacities(name)
    arguments = [filled, most, len(sizes), start, slots.start, counts.found]
    workspace.launch(start_buckets, 1, arguments)
    if sizes:
        return start, sizes, False
    starts = workspace.host(start, 2 * bucket_count + 2).tolist()
    sizes = [following - begin for begin, following in pairwise(starts)]
    del sizes[bucket_count]
    return start, sizes, True


def counts_of_cells(
    lists: Sequence[CandidateList], cell_count: int, workspace: Workspace
) -> np.ndarray:
    """int64[cell_count]: candidates of each cell of a chunk, over all lists, on the host."""
    total = np.zeros(cell_count, np.int64)
    for listed in lists:
        ends = workspace.host(listed.cell_end(cell_count, workspace), cell_count).astype(np.int64)
        total += np.diff(ends, prepend=0)
    return total


KERNELS = (end_blocks, count_lanes, start_buckets, write_lanes)
"""Kernels of `expand`."""
