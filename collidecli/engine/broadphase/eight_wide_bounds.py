"""Overlap of one shape's bounds with those of a block of eight: balls first, then boxes, then half-spaces.

Bounds are inflated (device_model.bounds_inflation), so the tests do not depend on the pair's maximum separation.
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
