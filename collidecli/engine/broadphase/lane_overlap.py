"""Candidates: in which cells of a block two slots may touch. Balls first, then boxes, then half-spaces and capsules.

The bounds of eight consecutive instances, a slot in eight cells, are lanes of vectors.

Bounds are inflated (device_model.bounds_inflation), so their tests do not depend on the pair's maximum separation. Two
spheres or capsules are candidates only if no plane is found that separates them by it.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.candidates import pair_limits
from collidecli.engine.cells import BlockPairs, Chunk, ChunkCells, Instances, row_of_slot
from collidecli.engine.device_model import LANES, DeviceModel, Layout, Margins, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE
from collidecli.engine.geometry.real import CAPSULE, EPILOGUE, LANE_STEP, LOAD, PRELUDE, SPHERE, Pose, Real
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.shape_lanes import BOUND_NUMBERS, CENTER, LOWER, RADIUS, UPPER

RADIUS_SLACK = wp.constant(wp.float32(1.000001))
"""Factor on a sum of radii: more than the rounding of its square and of the squared distance."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Relative rounding of a coordinate, and of the sum of three products of coordinate differences."""

CAPSULE_SLACK = 1.0e-9
"""Allowance for rounding, relative to the sizes and the distance of a pair: many times that of a pair collider."""

VECTORS = f"""{PRELUDE}
#if defined(VECTOR_LANES)
    typedef float Eight __attribute__((ext_vector_type({LANES}), aligned(4)));
    typedef bool Flags __attribute__((ext_vector_type({LANES})));
#endif
    const auto numbers_of = [&](int instance) {{
        return bound.data + (instance / {LANES}) * {BOUND_NUMBERS * LANES} + instance % {LANES};
    }};
"""

BITS = """
    const auto bits = [](auto condition) -> unsigned int {
        if constexpr (sizeof(condition) <= sizeof(int))
            return condition ? 1u : 0u;
#if defined(VECTOR_LANES)
        else
            return __builtin_bit_cast(unsigned char, __builtin_convertvector(condition, Flags));
#endif
    };
"""

DOUBLE_BITS = """
    const auto bits = [](auto condition) -> unsigned int {
        if constexpr (sizeof(condition) <= sizeof(int)) {
            return condition ? 1u : 0u;
        }
#if defined(VECTOR_LANES)
        else {
            typedef bool Flags __attribute__((ext_vector_type(4)));
            return (unsigned int)__builtin_bit_cast(unsigned char, __builtin_convertvector(condition, Flags)) & 15u;
        }
#endif
    };
"""

TESTS = f"""{BITS}
    // Bit k: whether the bounds of lane k overlap; `one` and `other` are the first lanes of both instances.
    const auto overlap = [&](auto zero, const float* one, const float* other) {{
        typedef decltype(zero) Many;
        const auto read = [](const float* number, int k) {{ return *(const Many*)(number + k * {LANES}); }};
        const Many x = read(one, {CENTER}) - read(other, {CENTER});
        const Many y = read(one, {CENTER + 1}) - read(other, {CENTER + 1});
        const Many z = read(one, {CENTER + 2}) - read(other, {CENTER + 2});
        const Many r = (read(one, {RADIUS}) + read(other, {RADIUS})) * {float(RADIUS_SLACK)!r}f;
        const unsigned int balls = bits(x * x + y * y + z * z < r * r);
        if (balls == 0)
            return 0u;
        const auto below = bits(read(one, {LOWER}) < read(other, {UPPER}))
            & bits(read(one, {LOWER + 1}) < read(other, {UPPER + 1}))
            & bits(read(one, {LOWER + 2}) < read(other, {UPPER + 2}));
        const auto above = bits(read(one, {UPPER}) > read(other, {LOWER}))
            & bits(read(one, {UPPER + 1}) > read(other, {LOWER + 1}))
            & bits(read(one, {UPPER + 2}) > read(other, {LOWER + 2}));
        return balls & below & above;
    }};
"""

HALF_SPACES = f"""{BITS}
    // Bit k: whether the box of lane k overlaps the half-space of the plane.
    const auto in_front = [&](auto zero, int lane) {{
        typedef decltype(zero) Many;
        constexpr int step = sizeof(Many) / sizeof(float);
        float normals[3][step];
        for (int k = 0; k < step; ++k) {{
            const double* q = (const double*)(pose.data + plane + lane + k) + 3;
            normals[0][k] = (float)(2.0 * (q[0] * q[2] + q[1] * q[3]));
            normals[1][k] = (float)(2.0 * (q[1] * q[2] - q[0] * q[3]));
            normals[2][k] = (float)(1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]));
        }}
        const auto read = [](const float* number, int k) {{ return *(const Many*)(number + k * {LANES}); }};
        const float* point = numbers_of(plane + lane);
        const float* box = numbers_of(instance + lane);
        Many from[3], normal[3];
        Many near = zero, rounding = zero;
        for (int k = 0; k < 3; ++k) {{
            normal[k] = *(const Many*)normals[k];
            const Many center = read(point, {CENTER} + k);
            // The corner of the box farthest into the half-space.
            from[k] = (normal[k] > 0.0f ? read(box, {LOWER} + k) : read(box, {UPPER} + k)) - center;
            near = near + MAGNITUDE(center);
            rounding = rounding + MAGNITUDE(from[k]);
        }}
        near = inflation + {float(SLACK)!r}f * near;
        rounding = rounding * {float(SLACK)!r}f;
        return bits(normal[0] * from[0] + normal[1] * from[1] + normal[2] * from[2] - rounding < near);
    }};
"""


def _over_lanes(test: str, many: str, one: str) -> str:
    """C++ that returns the bits of all lanes: `test`, then `many` for eight of them, `one` for a single lane."""
    return f"""{VECTORS}{test}
    unsigned int found = 0;
    int lane = 0;
#if defined(VECTOR_LANES)
    for (; lane + {LANES} <= count; lane += {LANES})
        found |= {many} << lane;
#endif
    for (; lane < count; ++lane)
        found |= {one} << lane;
{EPILOGUE}
    return found;
"""


@wp.func_native(
    _over_lanes(
        TESTS,
        "overlap(Eight{}, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
        "overlap(0.0f, numbers_of(instance0 + lane), numbers_of(instance1 + lane))",
    )
)
def overlapping_lanes(bound: wp.array[wp.float32], instance0: int, instance1: int, count: int) -> wp.uint32:
    """Bit k: whether the balls and the boxes of instances `instance0 + k` and `instance1 + k` overlap; k < count."""
    ...


@wp.func_native(_over_lanes(HALF_SPACES, "in_front(Eight(0.0f), lane)", "in_front(0.0f, lane)"))
def lanes_in_front(
    bound: wp.array[wp.float32], pose: wp.array[Pose], plane: int, instance: int, count: int, inflation: wp.float32
) -> wp.uint32:
    """Bit k: whether the box of instance `instance + k` overlaps the half-space of the plane `plane + k`; k < count.

    inflation: of the plane [m].
    """
    ...


CAPSULES = f"""{LOAD}
    // Whether two capsules may be nearer than `limit`, the radii included, in the lanes from `lane` on.
    const auto near = [&](auto number, int lane) {{
        typedef decltype(number) Many;
        constexpr int step = sizeof(Many) / sizeof(double);
        const double *of_a[step], *of_b[step];
        for (int k = 0; k < step; ++k) {{
            of_a[k] = (const double*)(pose.data + instance0 + lane + k);
            of_b[k] = (const double*)(pose.data + instance1 + lane + k);
        }}
        Many a[7], b[7], from[3], axis_a[3], axis_b[3], normal[3];
        load(a, of_a);
        load(b, of_b);
        const auto set_axis = [](const Many* q, Many* axis) {{
            axis[0] = 2.0 * (q[0] * q[2] + q[1] * q[3]);
            axis[1] = 2.0 * (q[1] * q[2] - q[0] * q[3]);
            axis[2] = 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]);
        }};
        const auto dot = [](const Many* x, const Many* y) {{ return x[0] * y[0] + x[1] * y[1] + x[2] * y[2]; }};
        const auto clamp = [](Many x, double most) {{
            const Many zero = x - x;
            return GREATER(zero - most, LESSER(zero + most, x));
        }};
        set_axis(a + 3, axis_a);
        set_axis(b + 3, axis_b);
        for (int k = 0; k < 3; ++k)
            from[k] = b[k] - a[k];
        const Many zero = from[0] - from[0];
        const Many cosine = dot(axis_a, axis_b), along_a = dot(axis_a, from), along_b = dot(axis_b, from);
        // Closest points of the segments, nearly: any direction gives a valid bound.
        Many on_a = clamp((along_a - cosine * along_b) / GREATER(1.0 - cosine * cosine, zero + 1.0e-9), half_a);
        const Many on_b = clamp(on_a * cosine - along_b, half_b);
        on_a = clamp(along_a + on_b * cosine, half_a);
        for (int k = 0; k < 3; ++k)
            normal[k] = from[k] + on_b * axis_b[k] - on_a * axis_a[k];
        const Many height = dot(normal, from) - half_a * MAGNITUDE(dot(normal, axis_a))
            - half_b * MAGNITUDE(dot(normal, axis_b));
        const Many scale = MAGNITUDE(from[0]) + MAGNITUDE(from[1]) + MAGNITUDE(from[2]) + (half_a + half_b + limit);
        const Many least = limit + {CAPSULE_SLACK!r} * scale;
        return bits((height <= 0.0) | (height * height <= least * least * dot(normal, normal)));
    }};
"""


@wp.func_native(
    f"""{PRELUDE}{DOUBLE_BITS}{CAPSULES}
    unsigned int found = 0;
    int lane = 0;
#if defined(VECTOR_LANES)
    for (; lane + {LANE_STEP} <= count; lane += {LANE_STEP})
        found |= near(Doubles{{}}, lane) << lane;
#endif
    for (; lane < count; ++lane)
        found |= near(0.0, lane) << lane;
{EPILOGUE}
    return found;
"""
)
def lanes_near(
    pose: wp.array[Pose], instance0: int, instance1: int, count: int, half_a: Real, half_b: Real, limit: Real
) -> wp.uint32:
    """Bit k: whether no plane is found between the capsules `instance0 + k` and `instance1 + k`; k < count.

    The plane is perpendicular to the line between the closest points of the segments, as far as one pass finds them.

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
        if bits != wp.uint32(0) and is_capsule(rows, row0) and is_capsule(rows, row1):
            limits = pair_limits(margins, row0, row1)
            size0 = rows.size[row0]
            size1 = rows.size[row1]
            limit = wp.max(Real(0.0), size0[0] + size1[0] + limits.margin + limits.gap)
            bits = bits & lanes_near(instances.pose, instance0, instance1, count, size0[1], size1[1], limit)
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
    arguments = [
        device_model.rows,
        device_model.margins,
        device_model.layout,
        chunk.cells,
        chunk.instances,
        slots,
        parts,
        mask,
    ]
    workspace.launch(test_lanes, count * parts, arguments)
    return BlockPairs(slots, mask, count)
