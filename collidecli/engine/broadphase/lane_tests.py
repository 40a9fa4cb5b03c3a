"""Tests of two slots over lanes of cells: in which cells of a block they may touch. Balls first,
then boxes, then half-spaces and capsules.

The bounds of eight consecutive instances, a slot in eight cells, are lanes of vectors.

Bounds are inflated (`device_model.bounds_inflation`), so their tests do not depend on the pair's
maximum separation. Two spheres or capsules are candidates only if no plane is found that separates
them by it.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.cells import (
    BOUND_NUMBERS,
    BOX_NUMBERS,
    CENTER,
    LOWER,
    RADIUS,
    UPPER,
    Chunk,
    ChunkCells,
    Instances,
    row_of_slot,
)
from collidecli.engine.device_model import LANES, DeviceModel, Layout, Margins, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE
from collidecli.engine.geometry.lanes import EPILOGUE, LANE_STEP, LOAD, PRELUDE
from collidecli.engine.geometry.real import CAPSULE, SPHERE, Pose, Real
from collidecli.engine.pair_limits import max_separation_of, pair_limits
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.native_code import native
from collidecli.engine.runtime.workspace import Workspace

RADIUS_SLACK = wp.constant(wp.float32(1.000001))
"""Factor on a sum of radii: more than the rounding of its square and of the squared distance."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Relative rounding of a coordinate, and of the sum of three products of coordinate differences."""

CAPSULE_SLACK = 1.0e-9
"""Allowance for rounding, relative to the sizes and the distance of a pair: many times that of a
pair collider."""

_VALUES: dict[str, Any] = {
    "PRELUDE": PRELUDE,
    "LOAD": LOAD,
    "EPILOGUE": EPILOGUE,
    "LANE_STEP": LANE_STEP,
}
_VALUES |= {
    "LANES": LANES,
    "BOUND_NUMBERS": BOUND_NUMBERS,
    "BOX_NUMBERS": BOX_NUMBERS,
    "CENTER": CENTER,
}
_VALUES |= {
    "RADIUS": RADIUS,
    "LOWER": LOWER,
    "UPPER": UPPER,
    "RADIUS_SLACK": RADIUS_SLACK,
    "SLACK": SLACK,
}
_VALUES["CAPSULE_SLACK"] = CAPSULE_SLACK
for _name in ("vectors", "bits", "double_bits", "tests", "half_spaces", "capsules"):
    _VALUES[_name.upper()] = native(__file__, _name, **_VALUES)
"""Values of the sections of C++, some of which are sections themselves."""


def _over_lanes(test: str, many: str, one: str) -> str:
    """C++ that returns the bits of all lanes: `test`, then `many` for eight of them, `one` for a
    single lane."""
    return native(__file__, "over_lanes", test=_VALUES[test], many=many, one=one, **_VALUES)


@wp.func_native(
    _over_lanes(
        "TESTS",
        "overlap(Eight{}, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
        "overlap(0.0f, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
    )
)
def overlapping_lanes(
    bound: wp.array[wp.float32], instance0: int, instance1: int, count: int
) -> wp.uint32:
    """Bit k: whether the balls and the boxes of instances `instance0 + k` and `instance1 + k`
    overlap; k < count."""
    ...


@wp.func_native(_over_lanes("HALF_SPACES", "in_front(Eight(0.0f), lane)", "in_front(0.0f, lane)"))
def lanes_in_front(
    bound: wp.array[wp.float32],
    pose: wp.array[Pose],
    plane: int,
    instance: int,
    count: int,
    inflation: wp.float32,
) -> wp.uint32:
    """Bit k: whether the box of instance `instance + k` overlaps the half-space of the plane `plane
    + k`; k < count.

    inflation: of the plane [m].
    """
    ...


@wp.func_native(native(__file__, "lanes_near", **_VALUES))
def lanes_near(
    pose: wp.array[Pose],
    instance0: int,
    instance1: int,
    count: int,
    half_a: Real,
    half_b: Real,
    limit: Real,
) -> wp.uint32:
    """Bit k: whether no plane is found between the capsules `instance0 + k` and `instance1 + k`; k
    < count.

    The plane is perpendicular to the line between the closest points of the segments, as far as one
    pass finds them.

    Args:
        half_a, half_b: half lengths of the segments; 0 for spheres [m].
        limit: least distance between the planes that support the two segments, not negative [m].
    """
    ...


@wp.func
def is_capsule(rows: ShapeRows, row: int) -> bool:
    """Whether a shape is a capsule or a sphere, a capsule without length."""
    return rows.type[row] == CAPSULE or rows.type[row] == SPHERE


@kernel
def test_lanes(
    rows: ShapeRows,
    margins: Margins,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    slots: wp.array[wp.vec2i],
    parts: int,
    bound: wp.array[wp.int32],
    mask: wp.array[wp.uint32],
):
    """One thread per pair of slots and part of its lanes: the lanes in which it is a candidate, as
    bits. There are as many pairs as the bound."""
    thread = wp.tid()
    pair = thread // parts
    if pair >= bound[0]:
        return
    block = slots[pair][0] // layout.width
    count = (1 << chunk.shift) // parts
    part = thread - pair * parts
    instance0 = (slots[pair][0] << chunk.shift) + part * count
    instance1 = (slots[pair][1] << chunk.shift) + part * count
    bits = overlapping_lanes(instances.bound, instance0, instance1, count)
    if bits != wp.uint32(0):
        row0 = row_of_slot(chunk, layout, slots[pair][0])
        row1 = row_of_slot(chunk, layout, slots[pair][1])
        if rows.radius[row0] >= INFINITE:
            bits = bits & lanes_in_front(
                instances.bound, instances.pose, instance0, instance1, count, rows.inflation[row0]
            )
        if rows.radius[row1] >= INFINITE:
            bits = bits & lanes_in_front(
                instances.bound, instances.pose, instance1, instance0, count, rows.inflation[row1]
            )
        if bits != wp.uint32(0) and is_capsule(rows, row0) and is_capsule(rows, row1):
            limits = pair_limits(margins, row0, row1)
            size0 = rows.size[row0]
            size1 = rows.size[row1]
            limit = wp.max(Real(0.0), size0[0] + size1[0] + max_separation_of(limits))
            bits = bits & lanes_near(
                instances.pose, instance0, instance1, count, size0[1], size1[1], limit
            )
    used = (wp.uint32(2) << wp.uint32(chunk.block_size[block] - 1)) - wp.uint32(1)
    bits = (bits << wp.uint32(part * count)) & used
    if parts == 1:
        mask[pair] = bits
    else:
        wp.atomic_or(mask, pair, bits)


def lanes_that_overlap(
    device_model: DeviceModel,
    chunk: Chunk,
    slots: wp.array,
    pairs: ElementCount,
    workspace: Workspace,
) -> BlockPairs:
    """The pairs of slots that a broad phase found, with the cells of their block in which their
    bounds overlap."""
    mask = workspace.array("block_mask", pairs.most, wp.uint32)
    # On a device a thread has one lane, so that consecutive threads access consecutive memory.
    parts = chunk.lanes if workspace.has_own_memory else 1
    if parts > 1:
        workspace.fill(mask, 0)
    arguments = [
        device_model.rows,
        device_model.margins,
        device_model.layout,
        chunk.cells,
        chunk.instances,
        slots,
        parts,
        pairs.bound,
        mask,
    ]
    workspace.launch(test_lanes, pairs.most * parts, arguments)
    return BlockPairs(slots, mask, pairs.most, pairs.bound)
