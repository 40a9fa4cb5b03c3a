"""Sweep and prune in columns (sap).

Shapes are swept along one axis; the two others are cut into a grid of columns, so that a scene of constant density
costs O(n log n) and not O(n^(5/3)). A shape enters every column that its bounds cover; a pair that meets in several is
reported in one only: the column of the higher of the two lower corners. Shapes too large for columns, and planes, are
met by lists (see sweep_plan). Coordinates outside the grid belong to its border columns: the plan changes the speed,
never the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from collidecli.engine.broad_phase.blocks import SAFE, PairBlocks, entry_bits
from collidecli.engine.broad_phase.candidate import boxes_meet, may_touch
from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.broad_phase.sweep_plan import Columns, SweepPlan
from collidecli.engine.cells import (
    CENTER,
    LANE_COUNT,
    LOWER,
    RADIUS,
    UPPER,
    Chunk,
    ChunkCells,
    Instances,
    bound_index,
    bound_vector,
    row_of,
)
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.workspace import Workspace


@wp.func
def column_of(columns: Columns, coordinate: wp.float32, side: int) -> int:
    """Column along u (side 0) or v (side 1); a monotone function of the coordinate."""
    scaled = (coordinate - columns.origin[side]) * columns.per_metre[side]
    return int(wp.clamp(wp.floor(scaled), wp.float32(0.0), wp.float32(columns.count[side] - 1)))


@wp.kernel(module="unique", enable_backward=False)
def count_columns(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    columns: Columns,
    entry_end: wp.array[wp.int32],
):
    """One thread an instance: how many columns it covers."""
    instance = wp.tid()
    row = row_of(chunk, layout, instance)
    count = int(0)
    if row >= 0 and columns.swept[row] != wp.uint8(0):
        low = bound_vector(instances, instance, LOWER)
        high = bound_vector(instances, instance, UPPER)
        count = (column_of(columns, high[columns.u], 0) - column_of(columns, low[columns.u], 0) + 1) * (
            column_of(columns, high[columns.v], 1) - column_of(columns, low[columns.v], 1) + 1
        )
    entry_end[instance] = count


@wp.func
def sortable(x: wp.float32) -> wp.int64:
    """32 bits in a 64-bit integer that order as the floats do."""
    bits = wp.cast(x, wp.uint32)
    if (bits >> wp.uint32(31)) != wp.uint32(0):
        bits = ~bits
    else:
        bits = bits | (wp.uint32(1) << wp.uint32(31))
    return wp.int64(bits)


@wp.kernel(module="unique", enable_backward=False)
def write_entries(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    columns: Columns,
    entry_end: wp.array[wp.int32],
    key: wp.array[wp.int64],
    entry: wp.array[wp.int32],
):
    """One thread an instance: an entry (column of its cell, lower bound on the axis) for each column it covers."""
    instance = wp.tid()
    slot = int(0)
    if instance > 0:
        slot = entry_end[instance - 1]
    if slot == entry_end[instance]:
        return
    low = bound_vector(instances, instance, LOWER)
    high = bound_vector(instances, instance, UPPER)
    place = sortable(low[columns.axis])
    base = (instance // layout.width) * columns.count[0] * columns.count[1]
    for i in range(column_of(columns, low[columns.u], 0), column_of(columns, high[columns.u], 0) + 1):
        for j in range(column_of(columns, low[columns.v], 1), column_of(columns, high[columns.v], 1) + 1):
            key[slot] = (wp.int64(base + i * columns.count[1] + j) << wp.int64(32)) | place
            entry[slot] = instance
            slot += 1


@wp.kernel(module="unique", enable_backward=False)
def gather_balls(instances: Instances, entry: wp.array[wp.int32], entry_ball: wp.array[wp.vec4f]):
    """One thread an entry: its instance's ball, so that the sweep reads them one after another."""
    thread = wp.tid()
    instance = entry[thread]
    center = bound_vector(instances, instance, CENTER)
    radius = instances.bound[bound_index(instance, RADIUS)]
    entry_ball[thread] = wp.vec4f(center[0], center[1], center[2], radius)


@wp.func
def balls_meet(ball0: wp.vec4f, ball1: wp.vec4f) -> bool:
    """Whether two inflated bounding balls overlap, rounding allowed for."""
    x = ball0[0] - ball1[0]
    y = ball0[1] - ball1[1]
    z = ball0[2] - ball1[2]
    r = (ball0[3] + ball1[3]) * SAFE
    return x * x + y * y + z * z < r * r


@wp.kernel(module="unique", enable_backward=False)
def sweep(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    columns: Columns,
    entry_count: int,
    key: wp.array[wp.int64],
    entry: wp.array[wp.int32],
    entry_ball: wp.array[wp.vec4f],
    capacity: int,
    found: wp.array[wp.int32],
    candidate_key: wp.array[wp.int64],
):
    """One thread an entry: those behind it in its column that begin before it ends.

    The order of the slots is left to the device: the keys are unique and sorted afterwards.
    """
    thread = wp.tid()
    instance = entry[thread]
    row = row_of(chunk, layout, instance)
    low = bound_vector(instances, instance, LOWER)
    high = bound_vector(instances, instance, UPPER)
    column = key[thread] >> wp.int64(32)
    last = (column << wp.int64(32)) | sortable(high[columns.axis])
    cell = instance // layout.width
    own = int(column) - cell * columns.count[0] * columns.count[1]
    own_u = own // columns.count[1]
    own_v = own - own_u * columns.count[1]
    ball = entry_ball[thread]
    for other in range(thread + 1, entry_count):
        if key[other] > last:
            break
        if not balls_meet(ball, entry_ball[other]):
            continue
        instance1 = entry[other]
        low1 = bound_vector(instances, instance1, LOWER)
        if (
            column_of(columns, wp.max(low[columns.u], low1[columns.u]), 0) != own_u
            or column_of(columns, wp.max(low[columns.v], low1[columns.v]), 1) != own_v
        ):
            continue
        if not boxes_meet(instances, instance, instance1):
            continue
        row1 = row_of(chunk, layout, instance1)
        if may_touch(rows, wp.min(row, row1), wp.max(row, row1)):
            first = wp.min(instance, instance1)
            second = wp.max(instance, instance1)
            slot = wp.atomic_add(found, 0, 1)
            if slot < capacity:
                candidate_key[slot] = wp.int64(first) * wp.int64(layout.width) + wp.int64(second - cell * layout.width)


@wp.kernel(module="unique", enable_backward=False)
def meet_unswept(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    pairs: PairBlocks,
    entries_per_cell: int,
    capacity: int,
    found: wp.array[wp.int32],
    candidate_key: wp.array[wp.int64],
):
    """One thread a listed block of a cell: planes and shapes too large for columns."""
    thread = wp.tid()
    cell = thread // entries_per_cell
    template = chunk.cell_template[cell]
    entry = pairs.start[template] + thread - cell * entries_per_cell
    if entry >= pairs.start[template + 1]:
        return
    bits = entry_bits(rows, layout, chunk, instances, pairs, entry, cell * layout.width)
    place1 = pairs.block[entry] * LANE_COUNT
    while bits != wp.uint32(0):
        if (bits & wp.uint32(1)) != wp.uint32(0):
            slot = wp.atomic_add(found, 0, 1)
            if slot < capacity:
                instance0 = cell * layout.width + pairs.place0[entry]
                candidate_key[slot] = wp.int64(instance0) * wp.int64(layout.width) + wp.int64(place1)
        bits = bits >> wp.uint32(1)
        place1 += 1


@wp.kernel(module="unique", enable_backward=False)
def unpack(width: int, candidate_key: wp.array[wp.int64], candidates: wp.array[wp.vec2i]):
    """One thread a candidate: from its key to its two instances."""
    thread = wp.tid()
    instance0 = int(candidate_key[thread] / wp.int64(width))
    place1 = int(candidate_key[thread] - wp.int64(instance0) * wp.int64(width))
    candidates[thread] = wp.vec2i(instance0, (instance0 // width) * width + place1)


@dataclass(frozen=True)
class SweepAndPrune:
    """Broad phase by sweep and prune within columns."""

    device_model: DeviceModel
    plan: SweepPlan
    name: str = "sap"

    def find(self, chunk: Chunk, workspace: Workspace) -> tuple[wp.array, int]:
        """Candidates of a chunk as (vec2i instances, count), ordered by cell, place0, place1."""
        layout, device = self.device_model.layout, self.device_model.device
        key, entry, entry_count = self._sorted_entries(chunk, workspace)
        ball = workspace.array("entry_ball", entry_count, wp.vec4f)
        wp.launch(gather_balls, entry_count, [chunk.instances, entry, ball], device=device)
        counter = workspace.array("candidate_count", 1, wp.int32)
        capacity = max(1024, 2 * chunk.cell_count * layout.width)
        while True:
            # Twice: the sort of the keys below needs room for as many again.
            candidate_key = workspace.array("candidate_key", 2 * capacity, wp.int64)
            capacity = candidate_key.shape[0] // 2
            counter.zero_()
            sink = [capacity, counter, candidate_key]
            arguments = [self.device_model.rows, layout, chunk.cells, chunk.instances, self.plan.columns, entry_count]
            wp.launch(sweep, entry_count, [*arguments, key, entry, ball, *sink], device=device)
            listed = self.plan.listed_per_cell
            arguments = [self.device_model.rows, layout, chunk.cells, chunk.instances, self.plan.listed, listed]
            wp.launch(meet_unswept, chunk.cell_count * listed, [*arguments, *sink], device=device)
            found = int(counter.numpy()[0])
            if found <= capacity:
                break
            capacity = found
        order = workspace.array("candidate_order", 2 * found, wp.int32)
        if found:
            bits = (chunk.cell_count * layout.width * layout.width).bit_length()
            wp.utils.radix_sort_pairs(candidate_key, order, found, 0, bits)
        candidates = workspace.array("candidate", found, wp.vec2i)
        wp.launch(unpack, found, [layout.width, candidate_key, candidates], device=device)
        return candidates, found

    def _sorted_entries(self, chunk: Chunk, workspace: Workspace) -> tuple[wp.array, wp.array, int]:
        """Entries ordered by column, then by lower bound on the axis: keys, instances, and how many."""
        layout, device, columns = self.device_model.layout, self.device_model.device, self.plan.columns
        instance_count = chunk.cell_count * layout.width
        entry_end = workspace.array("entry_end", instance_count, wp.int32)
        arguments = [layout, chunk.cells, chunk.instances, columns, entry_end]
        wp.launch(count_columns, instance_count, arguments, device=device)
        entry_count = scan_counts(entry_end, instance_count)
        key = workspace.array("entry_key", 2 * entry_count, wp.int64)
        entry = workspace.array("entry", 2 * entry_count, wp.int32)
        wp.launch(write_entries, instance_count, [*arguments, key, entry], device=device)
        if entry_count:
            column_count = chunk.cell_count * self.plan.column_count
            wp.utils.radix_sort_pairs(key, entry, entry_count, 0, 32 + column_count.bit_length())
        return key, entry, entry_count

    def kernels(self) -> list[wp.Kernel]:
        return [count_columns, write_entries, gather_balls, sweep, meet_unswept, unpack]
