"""Broad phase by sweep and prune along one axis, per column of a grid over the two other axes (sap).

The grid makes a scene of constant density cost O(n log n), not O(n^(5/3)). A shape has an entry in every column that
its bounds cover; a pair that overlaps in several columns is reported in one: the column of the component-wise maximum
of the two lower corners. Shapes too large for columns, and planes, are tested by lists of pairs (see sweep_plan).
Coordinates outside the grid belong to its border columns: the plan changes the speed, never the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from collidecli.engine.broadphase.eight_wide_bounds import RADIUS_SLACK, PairBlocks, entry_bits
from collidecli.engine.broadphase.sweep_plan import Columns, SweepPlan
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
from collidecli.engine.device_model import DeviceModel, Filter, Layout, ShapeRows
from collidecli.engine.pair_filter import may_touch
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace


@wp.func
def column_of(columns: Columns, offset: wp.vec2f, coordinate: wp.float32, side: int) -> int:
    """Column along u (side 0) or v (side 1) in a world with this offset; monotone in the coordinate."""
    scaled = (coordinate - offset[side] - columns.origin[side]) * columns.per_metre[side]
    return int(wp.clamp(wp.floor(scaled), wp.float32(0.0), wp.float32(columns.count[side] - 1)))


@kernel
def count_columns(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    columns: Columns,
    entry_count: wp.array[wp.int32],
):
    """One thread per instance: number of columns that it covers."""
    instance = wp.tid()
    row = row_of(chunk, layout, instance)
    count = int(0)
    if row >= 0 and columns.swept[row] != wp.uint8(0):
        low = bound_vector(instances, instance, LOWER)
        high = bound_vector(instances, instance, UPPER)
        offset = columns.offset[chunk.cell_world[instance // layout.width]]
        along_u = column_of(columns, offset, high[columns.u], 0) - column_of(columns, offset, low[columns.u], 0) + 1
        along_v = column_of(columns, offset, high[columns.v], 1) - column_of(columns, offset, low[columns.v], 1) + 1
        count = along_u * along_v
    entry_count[instance] = count


@wp.func
def sortable(x: wp.float32) -> wp.int64:
    """Float as a 32-bit key in a 64-bit integer, in the order of the floats."""
    bits = wp.cast(x, wp.uint32)
    if (bits >> wp.uint32(31)) != wp.uint32(0):
        bits = ~bits
    else:
        bits = bits | (wp.uint32(1) << wp.uint32(31))
    return wp.int64(bits)


@wp.struct
class Entries:
    """Instances in their columns, sorted by column, then by lower bound on the axis; bounds as in Instances.

    key: column in the upper 32 bits, `sortable` lower bound in the lower 32.
    """

    key: wp.array[wp.int64]
    instance: wp.array[wp.int32]
    ball: wp.array[wp.vec4f]
    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@kernel
def write_entries(
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    columns: Columns,
    entry_end: wp.array[wp.int32],
    entries: Entries,
):
    """One thread per instance: an entry for each column that it covers. entry_end: inclusive scan of their number."""
    instance = wp.tid()
    output = int(0)
    if instance > 0:
        output = entry_end[instance - 1]
    if output == entry_end[instance]:
        return
    low = bound_vector(instances, instance, LOWER)
    high = bound_vector(instances, instance, UPPER)
    lower_key = sortable(low[columns.axis])
    base = (instance // layout.width) * columns.count[0] * columns.count[1]
    offset = columns.offset[chunk.cell_world[instance // layout.width]]
    first_v = column_of(columns, offset, low[columns.v], 1)
    last_v = column_of(columns, offset, high[columns.v], 1)
    for i in range(column_of(columns, offset, low[columns.u], 0), column_of(columns, offset, high[columns.u], 0) + 1):
        for j in range(first_v, last_v + 1):
            entries.key[output] = (wp.int64(base + i * columns.count[1] + j) << wp.int64(32)) | lower_key
            entries.instance[output] = instance
            output += 1


@kernel
def gather_bounds(instances: Instances, entries: Entries):
    """One thread per entry: its instance's bounds, so that the sweep reads consecutive memory."""
    thread = wp.tid()
    instance = entries.instance[thread]
    center = bound_vector(instances, instance, CENTER)
    radius = instances.bound[bound_index(instance, RADIUS)]
    entries.ball[thread] = wp.vec4f(center[0], center[1], center[2], radius)
    entries.lower[thread] = bound_vector(instances, instance, LOWER)
    entries.upper[thread] = bound_vector(instances, instance, UPPER)


@wp.func
def bounds_overlap(entries: Entries, i: int, j: int) -> bool:
    """Whether the inflated balls and boxes of two entries overlap, with an allowance for rounding."""
    ball0 = entries.ball[i]
    ball1 = entries.ball[j]
    x = ball0[0] - ball1[0]
    y = ball0[1] - ball1[1]
    z = ball0[2] - ball1[2]
    r = (ball0[3] + ball1[3]) * RADIUS_SLACK
    if x * x + y * y + z * z >= r * r:
        return False
    gap = wp.max(entries.lower[i] - entries.upper[j], entries.lower[j] - entries.upper[i])
    return wp.max(gap[0], wp.max(gap[1], gap[2])) < wp.float32(0.0)


@wp.func
def home_column(columns: Columns, offset: wp.vec2f, entries: Entries, i: int, j: int) -> int:
    """Column, within a cell, in which a pair is reported: that of the component-wise maximum of the lower corners."""
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
    entries: Entries,
    capacity: int,
    found: wp.array[wp.int32],
    candidate_key: wp.array[wp.int64],
):
    """One thread per entry: candidates with the later entries of its column whose lower bound is below its upper bound.

    The order of the output depends on the device; the keys are unique and sorted afterwards.
    """
    thread = wp.tid()
    instance = entries.instance[thread]
    column = entries.key[thread] >> wp.int64(32)
    last = (column << wp.int64(32)) | sortable(entries.upper[thread][columns.axis])
    cell = instance // layout.width
    offset = columns.offset[chunk.cell_world[cell]]
    own = int(column) - cell * columns.count[0] * columns.count[1]
    for other in range(thread + 1, entry_count):
        if entries.key[other] > last:
            break
        if not bounds_overlap(entries, thread, other) or home_column(columns, offset, entries, thread, other) != own:
            continue
        first = wp.min(instance, entries.instance[other])
        second = wp.max(instance, entries.instance[other])
        if may_touch(pair_filter, row_of(chunk, layout, first), row_of(chunk, layout, second)):
            output = wp.atomic_add(found, 0, 1)
            if output < capacity:
                candidate_key[output] = wp.int64(first) * wp.int64(layout.width) + wp.int64(
                    second - cell * layout.width
                )


@kernel
def test_unswept(
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
    """One thread per listed block of a cell: pairs with planes and with shapes too large for columns."""
    thread = wp.tid()
    cell = thread // entries_per_cell
    template = chunk.cell_template[cell]
    entry = pairs.start[template] + thread - cell * entries_per_cell
    if entry >= pairs.start[template + 1]:
        return
    bits = entry_bits(rows, layout, chunk, instances, pairs, entry, cell * layout.width)
    slot1 = pairs.entry[entry][1] * LANE_COUNT
    while bits != wp.uint32(0):
        if (bits & wp.uint32(1)) != wp.uint32(0):
            output = wp.atomic_add(found, 0, 1)
            if output < capacity:
                instance0 = cell * layout.width + pairs.entry[entry][0]
                candidate_key[output] = wp.int64(instance0) * wp.int64(layout.width) + wp.int64(slot1)
        bits = bits >> wp.uint32(1)
        slot1 += 1


@kernel
def unpack(width: int, candidate_key: wp.array[wp.int64], candidates: wp.array[wp.vec2i]):
    """One thread per candidate: its two instances from its key."""
    thread = wp.tid()
    instance0 = int(candidate_key[thread] / wp.int64(width))
    slot1 = int(candidate_key[thread] - wp.int64(instance0) * wp.int64(width))
    candidates[thread] = wp.vec2i(instance0, (instance0 // width) * width + slot1)


@dataclass(frozen=True)
class SweepAndPrune:
    """Broad phase by sweep and prune per column."""

    device_model: DeviceModel
    plan: SweepPlan
    name: str = "sap"

    def find(self, chunk: Chunk, workspace: Workspace) -> tuple[wp.array, int]:
        """Candidates of a chunk as (vec2i instances, count), ordered by cell, slot0, slot1."""
        layout = self.device_model.layout
        entries, entry_count = self._sorted_entries(chunk, workspace)
        counter = workspace.array("candidate_count", 1, wp.int32)
        capacity = max(1024, 2 * chunk.cell_count * layout.width)
        while True:
            # The second half is scratch of the sort.
            candidate_key = workspace.array("candidate_key", 2 * capacity, wp.int64)
            capacity = candidate_key.shape[0] // 2
            workspace.fill(counter, 0)
            sink = [capacity, counter, candidate_key]
            pair_filter = self.device_model.pair_filter
            arguments = [pair_filter, layout, chunk.cells, self.plan.columns, entry_count, entries]
            workspace.launch(sweep, entry_count, [*arguments, *sink])
            listed = self.plan.listed_per_cell
            arguments = [self.device_model.rows, layout, chunk.cells, chunk.instances, self.plan.listed, listed]
            workspace.launch(test_unswept, chunk.cell_count * listed, [*arguments, *sink])
            found = workspace.last(counter, 1)
            if found <= capacity:
                break
            capacity = found
        order = workspace.array("candidate_order", 2 * found, wp.int32)
        if found:
            bits = (chunk.cell_count * layout.width * layout.width).bit_length()
            workspace.sort(candidate_key, order, found, bits)
        candidates = workspace.array("candidate", found, wp.vec2i)
        workspace.launch(unpack, found, [layout.width, candidate_key, candidates])
        return candidates, found

    def _sorted_entries(self, chunk: Chunk, workspace: Workspace) -> tuple[Entries, int]:
        """The sorted entries of a chunk, and their number."""
        layout, columns = self.device_model.layout, self.plan.columns
        instance_count = chunk.cell_count * layout.width
        entry_count = workspace.array("entry_count", instance_count, wp.int32)
        entry_end = workspace.array("entry_end", instance_count, wp.int32)
        arguments = [layout, chunk.cells, chunk.instances, columns]
        workspace.launch(count_columns, instance_count, [*arguments, entry_count])
        count = workspace.scan(entry_count, instance_count, entry_end)
        entries = workspace.struct(
            Entries,
            # The second half is scratch of the sort.
            key=workspace.array("entry_key", 2 * count, wp.int64),
            instance=workspace.array("entry_instance", 2 * count, wp.int32),
            ball=workspace.array("entry_ball", count, wp.vec4f),
            lower=workspace.array("entry_lower", count, wp.vec3f),
            upper=workspace.array("entry_upper", count, wp.vec3f),
        )
        workspace.launch(write_entries, instance_count, [*arguments, entry_end, entries])
        if count:
            column_count = chunk.cell_count * self.plan.column_count
            workspace.sort(entries.key, entries.instance, count, 32 + column_count.bit_length())
        workspace.launch(gather_bounds, count, [chunk.instances, entries])
        return entries, count

    def kernels(self) -> list[wp.Kernel]:
        return [count_columns, write_entries, gather_bounds, sweep, test_unswept, unpack]
