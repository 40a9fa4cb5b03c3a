"""Overlap of one shape's bounds with those of a block of eight: balls first, then boxes, then half-spaces.

The bounds of eight slots are stored as lanes (eight x, eight y, ...). The loops over lanes are in C++: Warp's own array
reads wrap and stride each element, which prevents vectorization by the compiler.

Bounds are inflated (device_model.bounds_inflation), so the tests do not depend on the pair's maximum separation.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.cells import (
    CENTER,
    LANE_COUNT,
    LOWER,
    NUMBERS,
    RADIUS,
    UPPER,
    ChunkCells,
    Instances,
    bound_index,
    row_of,
)
from collidecli.engine.device_model import LANES, DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE, quat_z

RADIUS_SLACK = wp.constant(wp.float32(1.000001))
"""Factor on a sum of radii: more than the rounding of its square and of the squared distance."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Relative rounding of a coordinate, and of the sum of three products of coordinate differences."""


def lanes_that(lines: str, condition: str) -> str:
    """C++ that sets the bits of those lanes in `overlap` for which `condition` holds, after `lines`.

    EIGHT(number) is the lane's element at the pointer `number`. On the CPU it is a Clang vector of all lanes: a loop
    over the lanes is only half vectorized, and gathers the bits in five instructions instead of one.
    """
    return f"""
#if defined(__clang__) && !defined(SCALAR_LANES)
    {{
        typedef float Lanes __attribute__((ext_vector_type({LANES}), aligned(4)));
        typedef bool Flags __attribute__((ext_vector_type({LANES})));
        #define EIGHT(number) (*(const Lanes*)(number))
        #define MAGNITUDE(x) __builtin_elementwise_abs(x)
        {lines}
        overlap = __builtin_bit_cast(unsigned char, __builtin_convertvector({condition}, Flags));
        #undef EIGHT
        #undef MAGNITUDE
    }}
#else
    for (int k = 0; k < {LANES}; ++k) {{
        #define EIGHT(number) (number)[k]
        #define MAGNITUDE(x) fabsf(x)
        {lines}
        overlap |= (unsigned int)({condition}) << k;
        #undef EIGHT
        #undef MAGNITUDE
    }}
#endif"""


BOUNDS = f"""
    const float* one = bound.data + (instance / {LANES}) * {NUMBERS * LANES} + instance % {LANES};
    const float* center = bound.data + block * {NUMBERS * LANES} + {CENTER * LANES};
    const float* radius = bound.data + block * {NUMBERS * LANES} + {RADIUS * LANES};
    const float* lower = bound.data + block * {NUMBERS * LANES} + {LOWER * LANES};
    const float* upper = bound.data + block * {NUMBERS * LANES} + {UPPER * LANES};
    unsigned int overlap = 0;
"""
"""Pointers to the numbers of an instance and of a block; consecutive numbers of one slot are LANES apart."""

BALLS = lanes_that(
    f"""
        const auto x = EIGHT(center) - cx, y = EIGHT(center + {LANES}) - cy, z = EIGHT(center + {2 * LANES}) - cz;
        const auto r = (EIGHT(radius) + cr) * {float(RADIUS_SLACK)!r}f;""",
    "x * x + y * y + z * z < r * r",
)
BOXES = lanes_that(
    f"""
        const auto below = (EIGHT(lower) < ux) & (EIGHT(lower + {LANES}) < uy) & (EIGHT(lower + {2 * LANES}) < uz);
        const auto above = (EIGHT(upper) > lx) & (EIGHT(upper + {LANES}) > ly) & (EIGHT(upper + {2 * LANES}) > lz);""",
    "below & above",
)
FRONT = lanes_that(
    f"""
        const auto x = EIGHT(corner_x) - px, y = EIGHT(corner_y) - py, z = EIGHT(corner_z) - pz;
        const auto rounding = (MAGNITUDE(x) + MAGNITUDE(y) + MAGNITUDE(z)) * {float(SLACK)!r}f;""",
    "nx * x + ny * y + nz * z - rounding < near",
)


@wp.func_native(
    f"""{BOUNDS}
    const float cx = one[{CENTER * LANES}], cy = one[{(CENTER + 1) * LANES}], cz = one[{(CENTER + 2) * LANES}];
    const float cr = one[{RADIUS * LANES}];
    {BALLS}
    const unsigned int near = overlap & mask;
    if (near == 0)
        return near;
    overlap = 0;
    const float lx = one[{LOWER * LANES}], ly = one[{(LOWER + 1) * LANES}], lz = one[{(LOWER + 2) * LANES}];
    const float ux = one[{UPPER * LANES}], uy = one[{(UPPER + 1) * LANES}], uz = one[{(UPPER + 2) * LANES}];
    {BOXES}
    return near & overlap;
"""
)
def near_bits(bound: wp.array[wp.float32], instance: int, block: int, mask: wp.uint32) -> wp.uint32:
    """Of the lanes `mask` of a block, those whose balls and boxes overlap an instance's. A plane's overlap all."""
    ...


@wp.func_native(
    f"""{BOUNDS}
    const float px = one[{CENTER * LANES}], py = one[{(CENTER + 1) * LANES}], pz = one[{(CENTER + 2) * LANES}];
    const float nx = normal[0], ny = normal[1], nz = normal[2];
    const float near = inflation + {float(SLACK)!r}f * (fabsf(px) + fabsf(py) + fabsf(pz));
    // The corner farthest into the half-space is the same for all lanes.
    const float* corner_x = nx > 0.0f ? lower : upper;
    const float* corner_y = (ny > 0.0f ? lower : upper) + {LANES};
    const float* corner_z = (nz > 0.0f ? lower : upper) + {2 * LANES};
    {FRONT}
    return overlap;
"""
)
def half_space_bits(
    bound: wp.array[wp.float32], instance: int, block: int, normal: wp.vec3f, inflation: wp.float32
) -> wp.uint32:
    """Lanes of a block whose boxes overlap the half-space of a plane instance, as bits.

    Args:
        normal: unit normal of the plane, world. inflation: of the plane [m].
    """
    ...


@wp.func_native(
    f"""
    const float* radius = bound.data + (block * {NUMBERS} + {RADIUS}) * {LANES};
    unsigned int overlap = 0;
    {lanes_that("", f"EIGHT(radius) >= {float(INFINITE)!r}f")}
    return overlap;
"""
)
def plane_bits(bound: wp.array[wp.float32], block: int) -> wp.uint32:
    """Lanes of a block that are planes, as bits."""
    ...


@wp.struct
class PairBlocks:
    """Pairs of each template as a sparse bit matrix, only the words with set bits.

    start: first entry of each template, one more at the end. entry: slot0; a block, which has the slots 8 block to
    8 block + 7; and a mask, whose bit k is set where (slot0, 8 block + k) is one of the pairs.
    """

    start: wp.array[wp.int32]
    entry: wp.array[wp.vec3i]


@wp.func
def bits_in_front(
    rows: ShapeRows, layout: Layout, chunk: ChunkCells, instances: Instances, plane: int, block: int
) -> wp.uint32:
    """Lanes of a block whose boxes overlap the half-space of a plane instance, as bits."""
    normal = wp.vec3f(quat_z(wp.transform_get_rotation(instances.pose[plane])))
    inflation = rows.inflation[row_of(chunk, layout, plane)]
    return half_space_bits(instances.bound, plane, block, normal, inflation)


@wp.func
def without_separated_planes(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    instance0: int,
    block: int,
    planes: wp.uint32,
    bits: wp.uint32,
) -> wp.uint32:
    """`bits` without those plane lanes (`planes`) whose half-space does not overlap the instance's box."""
    passed = bits
    for k in range(LANE_COUNT):
        bit = wp.uint32(1) << wp.uint32(k)
        if (planes & bit) != wp.uint32(0):
            overlapping = bits_in_front(rows, layout, chunk, instances, block * LANE_COUNT + k, instance0 // LANE_COUNT)
            if (overlapping & (wp.uint32(1) << wp.uint32(instance0 % LANE_COUNT))) == wp.uint32(0):
                passed = passed & ~bit
    return passed


@wp.func
def overlap_bits(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    instance0: int,
    block: int,
    mask: wp.uint32,
) -> wp.uint32:
    """Of the lanes `mask` of a block, those whose bounds overlap an instance's. block: index in the chunk."""
    bits = near_bits(instances.bound, instance0, block, mask)
    if bits == wp.uint32(0):
        return bits
    if instances.bound[bound_index(instance0, RADIUS)] >= INFINITE:
        return bits & bits_in_front(rows, layout, chunk, instances, instance0, block)
    planes = bits & plane_bits(instances.bound, block)
    if planes == wp.uint32(0):
        return bits
    return without_separated_planes(rows, layout, chunk, instances, instance0, block, planes, bits)


@wp.func
def entry_bits(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    pairs: PairBlocks,
    entry: int,
    first_instance: int,
) -> wp.uint32:
    """Pairs of an entry whose bounds overlap in the cell whose instances begin at `first_instance`, as bits."""
    slot0_block_mask = pairs.entry[entry]
    instance0 = first_instance + slot0_block_mask[0]
    block = first_instance // LANE_COUNT + slot0_block_mask[1]
    return overlap_bits(rows, layout, chunk, instances, instance0, block, wp.uint32(slot0_block_mask[2]))


def upload_blocks(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> tuple[PairBlocks, int]:
    """Row pairs of each template (int32[K, 2], first < second) as blocks; and the largest number of entries of one."""
    device = device_model.device
    counts, keys, masks = [], [], []
    stride = device_model.layout.width // LANES
    for rows, row_pairs in zip(device_model.template_rows, template_pairs, strict=True):
        slots = np.searchsorted(rows, row_pairs).astype(np.int64)
        key, entry = np.unique(slots[:, 0] * stride + slots[:, 1] // LANES, return_inverse=True)
        is_pair = np.zeros((len(key), LANES), bool)
        is_pair[entry, slots[:, 1] % LANES] = True
        counts.append(len(key))
        keys.append(key)
        masks.append(is_pair)
    key, is_pair = np.concatenate(keys), np.concatenate(masks)
    if not len(key):
        # Kernels do not accept arrays of length zero: one unused element instead.
        key, is_pair = np.zeros(1, np.int64), np.zeros((1, LANES), bool)
    pairs = PairBlocks()
    pairs.start = wp.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), dtype=wp.int32, device=device)
    mask = np.packbits(is_pair, axis=1, bitorder="little")[:, 0]
    entry = np.stack([key // stride, key % stride, mask], axis=1).astype(np.int32)
    pairs.entry = wp.array(entry, dtype=wp.vec3i, device=device)
    return pairs, max(counts)
