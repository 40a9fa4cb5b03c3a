"""Candidates: in which cells of a block the bounds of two slots overlap. Balls first, then boxes, then half-spaces.

The bounds of eight consecutive instances, a slot in eight cells, are lanes of vectors.

Bounds are inflated (device_model.bounds_inflation), so the tests do not depend on the pair's maximum separation.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.cells import Chunk, ChunkCells, Instances, row_of_slot
from collidecli.engine.device_model import LANES, DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE
from collidecli.engine.geometry.lanes import EPILOGUE, PRELUDE
from collidecli.engine.geometry.real import Pose
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.shape_lanes import BOUND_NUMBERS, CENTER, LOWER, RADIUS, UPPER

RADIUS_SLACK = wp.constant(wp.float32(1.000001))
"""Factor on a sum of radii: more than the rounding of its square and of the squared distance."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Relative rounding of a coordinate, and of the sum of three products of coordinate differences."""

VECTORS = f"""{PRELUDE}
#if defined(VECTOR_LANES)
    typedef float Eight __attribute__((ext_vector_type({LANES}), aligned(4)));
    typedef bool Flags __attribute__((ext_vector_type({LANES})));
#endif
    const auto numbers_of = [&](int instance) {{
        return bound.data + (instance / {LANES}) * {BOUND_NUMBERS * LANES} + instance % {LANES};
    }};
"""

TESTS = f"""
    // Bit k: whether the bounds of lane k overlap; `one` and `other` are the first lanes of both instances.
    const auto overlap = [&](auto zero, const float* one, const float* other) {{
        typedef decltype(zero) Many;
        const auto read = [](const float* number, int k) {{ return *(const Many*)(number + k * {LANES}); }};
        const auto bits = [](auto condition) -> unsigned int {{
            if constexpr (sizeof(Many) == sizeof(float))
                return condition ? 1u : 0u;
#if defined(VECTOR_LANES)
            else
                return __builtin_bit_cast(unsigned char, __builtin_convertvector(condition, Flags));
#endif
        }};
        const Many x = read(one, {CENTER}) - read(other, {CENTER});
        const Many y = read(one, {CENTER + 1}) - read(other, {CENTER + 1});
        const Many z = read(one, {CENTER + 2}) - read(other, {CENTER + 2});
        const Many r = (read(one, {RADIUS}) + read(other, {RADIUS})) * {float(RADIUS_SLACK)!r}f;
        const unsigned int balls = bits(x * x + y * y + z * z < r * r);
        if (balls == 0)
            return 0u;
        const auto below = (read(one, {LOWER}) < read(other, {UPPER}))
            & (read(one, {LOWER + 1}) < read(other, {UPPER + 1})) & (read(one, {LOWER + 2}) < read(other, {UPPER + 2}));
        const auto above = (read(one, {UPPER}) > read(other, {LOWER}))
            & (read(one, {UPPER + 1}) > read(other, {LOWER + 1})) & (read(one, {UPPER + 2}) > read(other, {LOWER + 2}));
        return balls & bits(below & above);
    }};
"""


@wp.func_native(
    f"""{VECTORS}{TESTS}
    unsigned int found = 0;
    int lane = 0;
#if defined(VECTOR_LANES)
    for (; lane + {LANES} <= count; lane += {LANES})
        found |= overlap(Eight{{}}, numbers_of(instance0 + lane), numbers_of(instance1 + lane)) << lane;
#endif
    for (; lane < count; ++lane)
        found |= overlap(0.0f, numbers_of(instance0 + lane), numbers_of(instance1 + lane)) << lane;
{EPILOGUE}
    return found;
"""
)
def overlapping_lanes(bound: wp.array[wp.float32], instance0: int, instance1: int, count: int) -> wp.uint32:
    """Bit k: whether the balls and the boxes of instances `instance0 + k` and `instance1 + k` overlap; k < count."""
    ...


@wp.func_native(
    f"""
    unsigned int found = 0;
    for (int lane = 0; lane < count; ++lane) {{
        const int at_plane = plane + lane, at = instance + lane;
        const float* point = bound.data + (at_plane / {LANES}) * {BOUND_NUMBERS * LANES} + at_plane % {LANES};
        const float* numbers = bound.data + (at / {LANES}) * {BOUND_NUMBERS * LANES} + at % {LANES};
        const double* q = (const double*)(pose.data + at_plane) + 3;
        const float normal[3] = {{
            (float)(2.0 * (q[0] * q[2] + q[1] * q[3])), (float)(2.0 * (q[1] * q[2] - q[0] * q[3])),
            (float)(1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]))}};
        const float px = point[{CENTER * LANES}], py = point[{(CENTER + 1) * LANES}];
        const float pz = point[{(CENTER + 2) * LANES}];
        const float near = inflation + {float(SLACK)!r}f * (fabsf(px) + fabsf(py) + fabsf(pz));
        // The corner of the box farthest into the half-space.
        const float x = numbers[(normal[0] > 0.0f ? {LOWER} : {UPPER}) * {LANES}] - px;
        const float y = numbers[((normal[1] > 0.0f ? {LOWER} : {UPPER}) + 1) * {LANES}] - py;
        const float z = numbers[((normal[2] > 0.0f ? {LOWER} : {UPPER}) + 2) * {LANES}] - pz;
        const float rounding = (fabsf(x) + fabsf(y) + fabsf(z)) * {float(SLACK)!r}f;
        found |= (unsigned int)(normal[0] * x + normal[1] * y + normal[2] * z - rounding < near) << lane;
    }}
    return found;
"""
)
def lanes_in_front(
    bound: wp.array[wp.float32], pose: wp.array[Pose], plane: int, instance: int, count: int, inflation: wp.float32
) -> wp.uint32:
    """Bit k: whether the box of instance `instance + k` overlaps the half-space of the plane `plane + k`; k < count.

    inflation: of the plane [m].
    """
    ...


@kernel
def test_lanes(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    slots: wp.array[wp.vec2i],
    parts: int,
    mask: wp.array[wp.uint32],
):
    """One thread per pair of slots and part of its lanes: the lanes in which it is a candidate, as bits."""
    thread = wp.tid()
    pair = thread // parts
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
    used = (wp.uint32(2) << wp.uint32(chunk.block_size[block] - 1)) - wp.uint32(1)
    bits = (bits << wp.uint32(part * count)) & used
    if parts == 1:
        mask[pair] = bits
    else:
        wp.atomic_or(mask, pair, bits)


def lanes_that_overlap(
    device_model: DeviceModel, chunk: Chunk, slots: wp.array, count: int, workspace: Workspace
) -> BlockPairs:
    """The pairs of slots that a broad phase found, with the cells of their block in which their bounds overlap."""
    mask = workspace.array("block_mask", count, wp.uint32)
    # On a device a thread has one lane, so that consecutive threads access consecutive memory.
    parts = chunk.lanes if workspace.has_own_memory else 1
    if parts > 1:
        workspace.fill(mask, 0)
    arguments = [device_model.rows, device_model.layout, chunk.cells, chunk.instances, slots, parts, mask]
    workspace.launch(test_lanes, count * parts, arguments)
    return BlockPairs(slots, mask, count)
