"""One shape against eight at a time: the first test of every pair, on bounding balls.

The balls of eight consecutive places stand as lanes (eight x, eight y, ...), which a processor tests at once. The radii
carry each shape's inflation, so that no pair needs its own reach here; those that pass are tested exactly (candidate).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.broad_phase.candidate import near, pair_reach
from collidecli.engine.cells import LANE_COUNT, ChunkCells, Instances, Lane, ball_index, row_of
from collidecli.engine.device_model import LANES, DeviceModel, Layout, ShapeRows

SAFE = wp.constant(wp.float32(1.000001))
"""Widening of a sum of radii: more than what its square and the squared distance lose to rounding."""


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
def balls_near_block(instances: Instances, instance0: int, block: int) -> wp.uint32:
    """Bits of the lanes of a block whose balls meet that of an instance. block: counted from the chunk's first."""
    own = ball_index(instance0)
    lane = block * 4
    x = instances.lane[lane] - instances.ball[own] * Lane(wp.float32(1.0))
    y = instances.lane[lane + 1] - instances.ball[own + LANE_COUNT] * Lane(wp.float32(1.0))
    z = instances.lane[lane + 2] - instances.ball[own + 2 * LANE_COUNT] * Lane(wp.float32(1.0))
    r = (instances.lane[lane + 3] + instances.ball[own + 3 * LANE_COUNT] * Lane(wp.float32(1.0))) * SAFE
    apart = wp.cw_mul(x, x) + wp.cw_mul(y, y) + wp.cw_mul(z, z) - wp.cw_mul(r, r)
    bits = wp.uint32(0)
    if wp.min(apart) < wp.float32(0.0):
        for k in range(wp.static(LANES)):
            if apart[k] < wp.float32(0.0):
                bits = bits | (wp.uint32(1) << wp.uint32(k))
    return bits


@wp.func
def exact_bits(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    instance0: int,
    block: int,
    bits: wp.uint32,
) -> wp.uint32:
    """Of `bits`, those lanes whose exact bounds come within the pair's reach."""
    left = bits
    passed = wp.uint32(0)
    instance1 = block * LANE_COUNT
    bit = wp.uint32(1)
    row0 = row_of(chunk, layout, instance0)
    while left != wp.uint32(0):
        if (left & wp.uint32(1)) != wp.uint32(0):
            row1 = row_of(chunk, layout, instance1)
            if near(rows, instances, instance0, instance1, row0, row1, pair_reach(rows, row0, row1)):
                passed = passed | bit
        left = left >> wp.uint32(1)
        bit = bit << wp.uint32(1)
        instance1 += 1
    return passed


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
    instance0 = first_instance + pairs.place0[entry]
    block = first_instance // LANE_COUNT + pairs.block[entry]
    bits = balls_near_block(instances, instance0, block) & wp.uint32(pairs.mask[entry])
    if bits == wp.uint32(0):
        return bits
    return exact_bits(rows, layout, chunk, instances, instance0, block, bits)


def upload_blocks(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> tuple[PairBlocks, int]:
    """Row pairs of each template (int32[K, 2], first < second) as blocks; and the most entries that one has."""
    device = device_model.device
    counts, keys, masks = [], [], []
    stride = device_model.layout.width // LANES
    for rows, row_pairs in zip(device_model.places, template_pairs, strict=True):
        places = np.searchsorted(rows, row_pairs).astype(np.int64)
        key = places[:, 0] * stride + places[:, 1] // LANES
        order = np.argsort(key, kind="stable")
        unique, first = np.unique(key[order], return_index=True)
        bit = np.left_shift(np.uint8(1), (places[order, 1] % LANES).astype(np.uint8))
        counts.append(len(unique))
        keys.append(unique)
        masks.append(np.bitwise_or.reduceat(bit, first) if len(unique) else bit)
    key, mask = np.concatenate(keys), np.concatenate(masks)
    pairs = PairBlocks()
    pairs.start = wp.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), dtype=wp.int32, device=device)
    for name, values, dtype in (
        ("place0", (key // stride).astype(np.int32), wp.int32),
        ("block", (key % stride).astype(np.int32), wp.int32),
        ("mask", mask.astype(np.uint8), wp.uint8),
    ):
        # A kernel takes no array of length zero: one unused element stands in.
        setattr(pairs, name, wp.array(values if len(values) else np.zeros(1, values.dtype), dtype=dtype, device=device))
    return pairs, max(counts)
