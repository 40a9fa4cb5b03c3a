"""One shape's bounds against eight at a time.

The bounds of eight consecutive places stand as lanes (eight x, eight y, ...), which a processor tests at once: balls
first, then boxes, and no branch that it could not foresee. They are inflated, so that no pair needs its own reach.
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
    Lane,
    bound_index,
    bound_vector,
    row_of,
)
from collidecli.engine.device_model import LANES, DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE, quat_z

SAFE = wp.constant(wp.float32(1.000001))
"""Widening of a sum of radii: more than what its square and the squared distance lose to rounding."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Rounding of a coordinate, and of three products of differences of two, relative to them."""


@wp.struct
class PairBlocks:
    """Pairs of each template as rows of a bit matrix, only those words that hold any.

    start: first entry of each template, one more at the end. place0: the one place. block: places 8 block to
    8 block + 7.
    mask: bit k is set where (place0, 8 block + k) is one of the pairs.
    """

    start: wp.array[wp.int32]
    place0: wp.array[wp.int32]
    block: wp.array[wp.int32]
    mask: wp.array[wp.uint8]


@wp.func
def negative_bits(lanes: Lane) -> wp.uint32:
    """A bit for each lane below zero, without a branch."""
    bits = wp.uint32(0)
    for k in range(wp.static(LANES)):
        bits = bits | wp.where(lanes[k] < wp.float32(0.0), wp.uint32(1) << wp.uint32(k), wp.uint32(0))
    return bits


@wp.func
def ball_bits(instances: Instances, instance0: int, lane: int) -> wp.uint32:
    """Bits of those lanes whose balls meet an instance's ball."""
    center = bound_vector(instances, instance0, CENTER)
    radius = instances.bound[bound_index(instance0, RADIUS)]
    x = instances.lane[lane + CENTER] - Lane(center[0])
    y = instances.lane[lane + CENTER + 1] - Lane(center[1])
    z = instances.lane[lane + CENTER + 2] - Lane(center[2])
    r = (instances.lane[lane + RADIUS] + Lane(radius)) * SAFE
    return negative_bits(wp.cw_mul(x, x) + wp.cw_mul(y, y) + wp.cw_mul(z, z) - wp.cw_mul(r, r))


@wp.func
def box_bits(instances: Instances, instance0: int, lane: int) -> wp.uint32:
    """Bits of those lanes whose boxes meet an instance's box."""
    lower = bound_vector(instances, instance0, LOWER)
    upper = bound_vector(instances, instance0, UPPER)
    x = wp.max(instances.lane[lane + LOWER] - Lane(upper[0]), Lane(lower[0]) - instances.lane[lane + UPPER])
    y = wp.max(instances.lane[lane + LOWER + 1] - Lane(upper[1]), Lane(lower[1]) - instances.lane[lane + UPPER + 1])
    z = wp.max(instances.lane[lane + LOWER + 2] - Lane(upper[2]), Lane(lower[2]) - instances.lane[lane + UPPER + 2])
    return negative_bits(wp.max(x, wp.max(y, z)))


@wp.func
def half_space_bits(instances: Instances, plane: int, inflation: wp.float32, lane: int) -> wp.uint32:
    """Bits of those lanes whose boxes reach into a plane's inflated half-space."""
    normal = wp.vec3f(quat_z(wp.transform_get_rotation(instances.pose[plane])))
    point = bound_vector(instances, plane, CENTER)
    # The corner nearest to the solid side is the same for all lanes.
    x = instances.lane[lane + wp.where(normal[0] > wp.float32(0.0), LOWER, UPPER)] - Lane(point[0])
    y = instances.lane[lane + 1 + wp.where(normal[1] > wp.float32(0.0), LOWER, UPPER)] - Lane(point[1])
    z = instances.lane[lane + 2 + wp.where(normal[2] > wp.float32(0.0), LOWER, UPPER)] - Lane(point[2])
    rounding = wp.abs(x) + wp.abs(y) + wp.abs(z)
    near = inflation + SLACK * (wp.abs(point[0]) + wp.abs(point[1]) + wp.abs(point[2]))
    return negative_bits(normal[0] * x + normal[1] * y + normal[2] * z - SLACK * rounding - Lane(near))


@wp.func
def without_missed_planes(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    instance0: int,
    block: int,
    planes: wp.uint32,
    bits: wp.uint32,
) -> wp.uint32:
    """`bits` without those lanes that are planes, `planes`, and out of whose half-space an instance's box stays."""
    passed = bits
    for k in range(LANE_COUNT):
        bit = wp.uint32(1) << wp.uint32(k)
        if (planes & bit) != wp.uint32(0):
            plane = block * LANE_COUNT + k
            inflation = rows.inflation[row_of(chunk, layout, plane)]
            own = bound_index(instance0, 0) // (NUMBERS * LANE_COUNT)
            lanes = half_space_bits(instances, plane, inflation, own * NUMBERS)
            if (lanes & (wp.uint32(1) << wp.uint32(instance0 % LANE_COUNT))) == wp.uint32(0):
                passed = passed & ~bit
    return passed


@wp.func
def meeting_bits(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    instance0: int,
    block: int,
    asked: wp.uint32,
) -> wp.uint32:
    """Of the lanes `asked` of a block, those whose bounds meet an instance's. block: counted from the chunk's first."""
    lane = block * NUMBERS
    if instances.bound[bound_index(instance0, RADIUS)] >= INFINITE:
        inflation = rows.inflation[row_of(chunk, layout, instance0)]
        return half_space_bits(instances, instance0, inflation, lane) & asked
    bits = ball_bits(instances, instance0, lane) & asked
    if bits == wp.uint32(0):
        return bits
    bits = bits & box_bits(instances, instance0, lane)
    if bits == wp.uint32(0):
        return bits
    planes = bits & negative_bits(Lane(INFINITE) - instances.lane[lane + RADIUS] - Lane(wp.float32(1.0)))
    if planes == wp.uint32(0):
        return bits
    return without_missed_planes(rows, layout, chunk, instances, instance0, block, planes, bits)


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
    """Bits of the pairs of an entry that are candidates in the cell whose instances begin at `first_instance`."""
    block = first_instance // LANE_COUNT + pairs.block[entry]
    instance0 = first_instance + pairs.place0[entry]
    return meeting_bits(rows, layout, chunk, instances, instance0, block, wp.uint32(pairs.mask[entry]))


def upload_blocks(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> tuple[PairBlocks, int]:
    """Row pairs of each template (int32[K, 2], first < second) as blocks; and the most entries that one has."""
    device = device_model.device
    counts, keys, opens = [], [], []
    stride = device_model.layout.width // LANES
    for rows, row_pairs in zip(device_model.places, template_pairs, strict=True):
        places = np.searchsorted(rows, row_pairs).astype(np.int64)
        key, entry = np.unique(places[:, 0] * stride + places[:, 1] // LANES, return_inverse=True)
        is_open = np.zeros((len(key), LANES), bool)
        is_open[entry, places[:, 1] % LANES] = True
        counts.append(len(key))
        keys.append(key)
        opens.append(is_open)
    key, is_open = np.concatenate(keys), np.concatenate(opens)
    if not len(key):
        # A kernel takes no array of length zero: one unused element stands in.
        key, is_open = np.zeros(1, np.int64), np.zeros((1, LANES), bool)
    pairs = PairBlocks()
    pairs.start = wp.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), dtype=wp.int32, device=device)
    pairs.place0 = wp.array((key // stride).astype(np.int32), dtype=wp.int32, device=device)
    pairs.block = wp.array((key % stride).astype(np.int32), dtype=wp.int32, device=device)
    pairs.mask = wp.array(np.packbits(is_open, axis=1, bitorder="little")[:, 0], dtype=wp.uint8, device=device)
    return pairs, max(counts)
