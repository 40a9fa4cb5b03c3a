"""One shape's bounds against eight at a time: balls first, then boxes, then half-spaces.

They are inflated, so that no pair needs its own reach.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.broadphase.eight_wide_tests import half_space_bits, near_bits, plane_bits
from collidecli.engine.cells import LANE_COUNT, RADIUS, ChunkCells, Instances, bound_index, row_of
from collidecli.engine.device_model import LANES, DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE, quat_z


@wp.struct
class PairBlocks:
    """Pairs of each template as rows of a bit matrix, only those words that hold any.

    start: first entry of each template, one more at the end. entry: the one place, place0; a block, which is of the
    places 8 block to 8 block + 7; and a mask, whose bit k is set where (place0, 8 block + k) is one of the pairs.
    """

    start: wp.array[wp.int32]
    entry: wp.array[wp.vec3i]


@wp.func
def bits_in_front(
    rows: ShapeRows, layout: Layout, chunk: ChunkCells, instances: Instances, plane: int, block: int
) -> wp.uint32:
    """Bits of those lanes of a block whose boxes reach into the half-space of an instance that is a plane."""
    normal = wp.vec3f(quat_z(wp.transform_get_rotation(instances.pose[plane])))
    inflation = rows.inflation[row_of(chunk, layout, plane)]
    return half_space_bits(instances.bound, plane, block, normal, inflation)


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
            met = bits_in_front(rows, layout, chunk, instances, block * LANE_COUNT + k, instance0 // LANE_COUNT)
            if (met & (wp.uint32(1) << wp.uint32(instance0 % LANE_COUNT))) == wp.uint32(0):
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
    asked: wp.uint32,
) -> wp.uint32:
    """Of the lanes `asked` of a block, those whose bounds meet an instance's. block: counted from the chunk's first."""
    bits = near_bits(instances.bound, instance0, block, asked)
    if bits == wp.uint32(0):
        return bits
    if instances.bound[bound_index(instance0, RADIUS)] >= INFINITE:
        return bits & bits_in_front(rows, layout, chunk, instances, instance0, block)
    planes = bits & plane_bits(instances.bound, block)
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
    place0_block_mask = pairs.entry[entry]
    instance0 = first_instance + place0_block_mask[0]
    block = first_instance // LANE_COUNT + place0_block_mask[1]
    return overlap_bits(rows, layout, chunk, instances, instance0, block, wp.uint32(place0_block_mask[2]))


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
    mask = np.packbits(is_open, axis=1, bitorder="little")[:, 0]
    entry = np.stack([key // stride, key % stride, mask], axis=1).astype(np.int32)
    pairs.entry = wp.array(entry, dtype=wp.vec3i, device=device)
    return pairs, max(counts)
