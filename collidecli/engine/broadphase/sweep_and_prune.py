"""Broad phase by sweep and prune along one axis, per column of a grid over the two other axes
(sap).

The grid makes a scene of constant density cost O(n log n), not O(n^(5/3)). A shape has an entry in
every column that its bounds cover; a pair that overlaps in several columns is reported in one: the
column of the component-wise maximum of the two lower corners. Shapes too large for columns, and
planes, are tested by lists of pairs. Coordinates outside the grid belong to its border columns: the
plan changes the speed, never the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.broadphase.lane_tests import lanes_that_overlap, test_lanes
from collidecli.engine.broadphase.pair_groups import PairGroups, box_bits
from collidecli.engine.broadphase.sweep_plan import Columns, SweepPlan
from collidecli.engine.cells import (
    BOX_NUMBERS,
    LANE_COUNT,
    BlockShape,
    Chunk,
    ChunkCells,
    Instances,
    row_of_slot,
)
from collidecli.engine.device_model import DeviceModel, Filter, Layout
from collidecli.engine.pair_limits import may_touch
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

NUMBERS = wp.constant(BOX_NUMBERS)


@wp.func
def column_of(columns: Columns, offset: wp.vec2f, coordinate: wp.float32, side: int) -> int:
    """Column along u (side 0) or v (side 1) in a world with this offset; monotone in the
    coordinate."""
    scaled = (coordinate - offset[side] - columns.origin[side]) * columns.per_metre[side]
    return int(wp.clamp(wp.floor(scaled), wp.float32(0.0), wp.float32(columns.count[side] - 1)))


@wp.func
def corner(box: wp.array[wp.float32], block_slot: int, number: int) -> wp.vec3f:
    """Corner of a slot's box in a block: number 0 the lower, 3 the upper."""
    at = ((block_slot // LANE_COUNT) * NUMBERS + number) * LANE_COUNT + block_slot % LANE_COUNT
    return wp.vec3f(box[at], box[at + LANE_COUNT], box[at + 2 * LANE_COUNT])


@wp.func
def offset_of(chunk: ChunkCells, columns: Columns, block: int) -> wp.vec2f:
    """Offset of the grid in the world of a block."""
    return columns.offset[chunk.cell_world[chunk.lane_cell[block << chunk.shift]]]


@kernel
def count_columns(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    columns: Columns,
    entry_count: wp.array[wp.int32],
):
    """One thread per slot of a block: number of columns that its box covers."""
    block_slot = wp.tid()
    row = row_of_slot(chunk, layout, block_slot)
    count = int(0)
    if row >= 0 and columns.swept[row] != wp.uint8(0):
        low = corner(instances.block_box, block_slot, 0)
        high = corner(instances.block_box, block_slot, 3)
        offset = offset_of(chunk, columns, block_slot // layout.width)
        along_u = (
            column_of(columns, offset, high[columns.u], 0)
            - column_of(columns, offset, low[columns.u], 0)
            + 1
        )
        along_v = (
            column_of(columns, offset, high[columns.v], 1)
            - column_of(columns, offset, low[columns.v], 1)
            + 1
        )
        count = along_u * along_v
    entry_count[block_slot] = count


@wp.func
def sortable(x: wp.float32) -> wp.int64:
    """Float as a 32-bit key in a 64-bit integer, in the order of the floats."""
    bits = wp.cast(x, wp.uint32)
    bits = (
        ~bits if (bits >> wp.uint32(31)) != wp.uint32(0) else bits | (wp.uint32(1) << wp.uint32(31))
    )
    return wp.int64(bits)


@wp.struct
class Entries:
    """Slots of blocks in their columns, sorted by column, then by lower bound on the axis.

    key: column in the upper 32 bits, `sortable` lower bound in the lower 32. slot: counted through
    all blocks. lower, upper: corners of the slot's box in the block.
    """

    key: wp.array[wp.int64]
    slot: wp.array[wp.int32]
    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@kernel
def write_entries(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    columns: Columns,
    entry_end: wp.array[wp.int32],
    bound: wp.array[wp.int32],
    entries: Entries,
):
    """One thread per slot of a block: an entry for each column that it covers; none if `entries`
    has too few elements, where the bound is 0. entry_end: inclusive scan of their number."""
    block_slot = wp.tid()
    output = entry_end[block_slot - 1] if block_slot > 0 else 0
    if output == entry_end[block_slot] or bound[0] == 0:
        return
    low = corner(instances.block_box, block_slot, 0)
    high = corner(instances.block_box, block_slot, 3)
    lower_key = sortable(low[columns.axis])
    block = block_slot // layout.width
    base = block * columns.count[0] * columns.count[1]
    offset = offset_of(chunk, columns, block)
    first_v = column_of(columns, offset, low[columns.v], 1)
    last_v = column_of(columns, offset, high[columns.v], 1)
    for i in range(
        column_of(columns, offset, low[columns.u], 0),
        column_of(columns, offset, high[columns.u], 0) + 1,
    ):
        for j in range(first_v, last_v + 1):
            entries.key[output] = (
                wp.int64(base + i * columns.count[1] + j) << wp.int64(32)
            ) | lower_key
            entries.slot[output] = block_slot
            output += 1


@kernel
def end_keys(
    key: wp.array[wp.int64], value: wp.array[wp.int32], bound: wp.array[wp.int32], last: wp.int64
):
    """One thread per element of a list to be sorted: those from the bound on get the key `last`,
    so that they are the last, and a value."""
    thread = wp.tid()
    if thread >= bound[0]:
        key[thread] = last
        value[thread] = 0


@kernel
def gather_boxes(instances: Instances, bound: wp.array[wp.int32], entries: Entries):
    """One thread per entry, as many as the bound: its slot's box, so that the sweep reads
    consecutive memory."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
    entries.lower[thread] = corner(instances.block_box, entries.slot[thread], 0)
    entries.upper[thread] = corner(instances.block_box, entries.slot[thread], 3)


@wp.func
def boxes_overlap(entries: Entries, i: int, j: int) -> bool:
    """Whether the boxes of two entries overlap."""
    gap = wp.max(entries.lower[i] - entries.upper[j], entries.lower[j] - entries.upper[i])
    return wp.max(gap[0], wp.max(gap[1], gap[2])) < wp.float32(0.0)


@wp.func
def home_column(columns: Columns, offset: wp.vec2f, entries: Entries, i: int, j: int) -> int:
    """Column, within a cell, in which a pair is reported: that of the component-wise maximum of the
    lower corners."""
    low = wp.max(entries.lower[i], entries.lower[j])
    in_u = column_of(columns, offset, low[columns.u], 0)
    return in_u * columns.count[1] + column_of(columns, offset, low[columns.v], 1)


@kernel
def sweep(
    pair_filter: Filter,
    layout: Layout,
    chunk: ChunkCells,
    columns: Columns,
    entry_count: int,
    bound: wp.array[wp.int32],
    entries: Entries,
    capacity: int,
    pair_count: wp.array[wp.int32],
    pair_key: wp.array[wp.int64],
):
    """One thread per entry: pairs with the later entries of its column whose lower bound is below
    its upper bound. There are as many entries as the lesser of `entry_count` and `bound`.

    The order of the output depends on the device; the keys are unique and sorted afterwards.
    """
    thread = wp.tid()
    count = wp.min(entry_count, bound[0])
    if thread >= count:
        return
    block_slot = entries.slot[thread]
    column = entries.key[thread] >> wp.int64(32)
    last = (column << wp.int64(32)) | sortable(entries.upper[thread][columns.axis])
    block = block_slot // layout.width
    offset = offset_of(chunk, columns, block)
    column_of_block = int(column) - block * columns.count[0] * columns.count[1]
    for other in range(thread + 1, count):
        if entries.key[other] > last:
            break
        if (
            not boxes_overlap(entries, thread, other)
            or home_column(columns, offset, entries, thread, other) != column_of_block
        ):
            continue
        first = wp.min(block_slot, entries.slot[other])
        second = wp.max(block_slot, entries.slot[other])
        if may_touch(
            pair_filter, row_of_slot(chunk, layout, first), row_of_slot(chunk, layout, second)
        ):
            output = wp.atomic_add(pair_count, 0, 1)
            if output < capacity:
                pair_key[output] = wp.int64(first) * wp.int64(layout.width) + wp.int64(
                    second - block * layout.width
                )


@kernel
def test_unswept(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    pairs: PairGroups,
    entries_per_block: int,
    capacity: int,
    pair_count: wp.array[wp.int32],
    pair_key: wp.array[wp.int64],
):
    """One thread per listed group of a block: pairs with planes and with shapes too large for
    columns."""
    thread = wp.tid()
    block = thread // entries_per_block
    template = chunk.block_template[block]
    index = pairs.start[template] + thread - block * entries_per_block
    if index >= pairs.start[template + 1]:
        return
    entry = pairs.entry[index]
    first_slot = block * layout.width
    group = first_slot // LANE_COUNT + entry[1]
    bits = box_bits(instances.block_box, first_slot + entry[0], group, wp.uint32(entry[2]))
    slot1 = entry[1] * LANE_COUNT
    while bits != wp.uint32(0):
        if (bits & wp.uint32(1)) != wp.uint32(0):
            output = wp.atomic_add(pair_count, 0, 1)
            if output < capacity:
                pair_key[output] = wp.int64(first_slot + entry[0]) * wp.int64(
                    layout.width
                ) + wp.int64(slot1)
        bits = bits >> wp.uint32(1)
        slot1 += 1


@kernel
def unpack(
    width: int, pair_key: wp.array[wp.int64], bound: wp.array[wp.int32], slots: wp.array[wp.vec2i]
):
    """One thread per pair, as many as the bound: its two slots from its key."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
    block_slot0 = int(pair_key[thread] / wp.int64(width))
    slot1 = int(pair_key[thread] - wp.int64(block_slot0) * wp.int64(width))
    slots[thread] = wp.vec2i(block_slot0, (block_slot0 // width) * width + slot1)


@dataclass(frozen=True)
class SweepAndPrune:
    """Broad phase by sweep and prune per column, once for each block of cells."""

    device_model: DeviceModel
    plan: SweepPlan
    blocks: BlockShape
    name: str = "sap"

    def find(self, chunk: Chunk, workspace: Workspace) -> BlockPairs:
        """Pairs of slots of a chunk, with the cells in which they are candidates."""
        layout = self.device_model.layout
        pairs, pair_key = self._found_pairs(chunk, workspace)
        count = pairs.most
        order = workspace.array("pair_order", 2 * count, wp.int32)
        slot_count = chunk.block_count * layout.width
        _sort(workspace, pair_key, order, pairs, (slot_count * layout.width).bit_length())
        slots = workspace.array("block_pair", count, wp.vec2i)
        workspace.launch(unpack, count, [layout.width, pair_key, pairs.bound, slots])
        return lanes_that_overlap(self.device_model, chunk, slots, pairs, workspace)

    def _found_pairs(self, chunk: Chunk, workspace: Workspace) -> tuple[ElementCount, wp.array]:
        """The number of the pairs of slots of a chunk, and their keys, in any order."""
        layout = self.device_model.layout
        counts = workspace.counts
        entries, entry_count = self._sorted_entries(chunk, workspace)
        capacity = max(1024, 2 * chunk.block_count * layout.width)
        if counts.is_expected("block_pair"):
            capacity = counts.capacity("block_pair")
        while True:
            # The second half is scratch of the sort.
            pair_key = workspace.array("pair_key", 2 * capacity, wp.int64)
            capacity = pair_key.shape[0] // 2
            counter = counts.counter("pair_count")
            sink = [capacity, counter, pair_key]
            arguments = [self.device_model.pair_filter, layout, chunk.cells, self.plan.columns]
            arguments += [entry_count.most, entry_count.bound, entries, *sink]
            workspace.launch(sweep, entry_count.most, arguments)
            listed = self.plan.listed_per_block
            arguments = [layout, chunk.cells, chunk.instances, self.plan.listed, listed]
            workspace.launch(test_unswept, chunk.block_count * listed, [*arguments, *sink])
            pairs = counts.of("block_pair", counter, 1)
            if pairs.most <= capacity:
                return pairs, pair_key
            capacity = pairs.most
            counts.reset("pair_count")

    def _sorted_entries(self, chunk: Chunk, workspace: Workspace) -> tuple[Entries, ElementCount]:
        """The sorted entries of a chunk, and their number."""
        layout = self.device_model.layout
        columns = self.plan.columns
        slot_count = chunk.block_count * layout.width
        entry_count = workspace.array("entry_count", slot_count, wp.int32)
        entry_end = workspace.array("entry_end", slot_count, wp.int32)
        arguments = [layout, chunk.cells, chunk.instances, columns]
        workspace.launch(count_columns, slot_count, [*arguments, entry_count])
        workspace.launch_scan(entry_count, slot_count, entry_end)
        found = workspace.counts.of("entry", entry_end, slot_count)
        count = found.most
        entries = workspace.struct(
            Entries,
            # The second half is scratch of the sort.
            key=workspace.array("entry_key", 2 * count, wp.int64),
            slot=workspace.array("entry_slot", 2 * count, wp.int32),
            lower=workspace.array("entry_lower", count, wp.vec3f),
            upper=workspace.array("entry_upper", count, wp.vec3f),
        )
        written = [*arguments, entry_end, found.bound, entries]
        workspace.launch(write_entries, slot_count, written)
        column_count = chunk.block_count * self.plan.column_count
        _sort(workspace, entries.key, entries.slot, found, 32 + column_count.bit_length())
        workspace.launch(gather_boxes, count, [chunk.instances, found.bound, entries])
        return entries, found

    def kernels(self) -> list[wp.Kernel]:
        kernels = [count_columns, write_entries, gather_boxes, sweep, test_unswept, unpack]
        on_device = has_own_memory(self.device_model.device)
        return [*kernels, test_lanes, *([end_keys] if on_device else [])]


def _sort(
    workspace: Workspace, key: wp.array, value: wp.array, count: ElementCount, bits: int
) -> None:
    """Sorts keys below 2^bits - 1, and values with them; the number may be expected."""
    if not count.most:
        return
    if workspace.counts.expects:
        last = (1 << bits) - 1
        workspace.launch(end_keys, count.most, [key, value, count.bound, last])
    workspace.sort(key, value, count.most, bits)
