"""Overlap of the box of one slot with those of a group of eight slots, in a block of cells.

A block's boxes contain the bounds of all its cells (`Instances.block_box`); pairs of slots whose boxes do not overlap
are apart in every cell of the block. The boxes of eight slots are stored as lanes (eight lower x, eight lower y, ...).
The loops over lanes are in C++: Warp's own array reads wrap and stride each element, which prevents vectorization by
the compiler.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.device_model import LANES, DeviceModel
from collidecli.engine.shape_lanes import BOX_NUMBERS


@wp.func_native(
    f"""
    const float* one = box.data + (slot / {LANES}) * {BOX_NUMBERS * LANES} + slot % {LANES};
    const float* eight = box.data + group * {BOX_NUMBERS * LANES};
    unsigned int overlap = 0;
#if defined(__clang__) && !defined(__CUDA_ARCH__) && !defined(SCALAR_LANES)
    typedef float Lanes __attribute__((ext_vector_type({LANES}), aligned(4)));
    typedef bool Flags __attribute__((ext_vector_type({LANES})));
    #define EIGHT(number) (*(const Lanes*)(eight + (number) * {LANES}))
    const auto below = (EIGHT(0) < one[{3 * LANES}]) & (EIGHT(1) < one[{4 * LANES}]) & (EIGHT(2) < one[{5 * LANES}]);
    const auto above = (EIGHT(3) > one[0]) & (EIGHT(4) > one[{LANES}]) & (EIGHT(5) > one[{2 * LANES}]);
    // A conversion to a vector of bits is one instruction; a loop over the lanes gathers the bits in five.
    overlap = __builtin_bit_cast(unsigned char, __builtin_convertvector(below & above, Flags));
    #undef EIGHT
#else
    for (int k = 0; k < {LANES}; ++k) {{
        bool overlaps = true;
        for (int axis = 0; axis < 3; ++axis)
            overlaps &= eight[axis * {LANES} + k] < one[(axis + 3) * {LANES}]
                & eight[(axis + 3) * {LANES} + k] > one[axis * {LANES}];
        overlap |= (unsigned int)overlaps << k;
    }}
#endif
    return overlap & mask;
"""
)
def box_bits(box: wp.array[wp.float32], slot: int, group: int, mask: wp.uint32) -> wp.uint32:
    """Of the slots `mask` of a group, those whose boxes overlap a slot's. A plane's overlaps all.

    slot, group: index of the slot and of the group of eight slots, counted through all blocks.
    """
    ...


@wp.struct
class PairGroups:
    """Pairs of each template as a sparse bit matrix, only the words with set bits.

    start: first entry of each template, one more at the end. entry: slot0; a group, which has the slots 8 group to
    8 group + 7; and a mask, whose bit k is set where (slot0, 8 group + k) is one of the pairs.
    """

    start: wp.array[wp.int32]
    entry: wp.array[wp.vec3i]


def upload_groups(device_model: DeviceModel, template_pairs: list[np.ndarray]) -> tuple[PairGroups, int]:
    """Row pairs of each template (int32[K, 2], first < second) as groups; and the largest number of entries of one."""
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
    pairs = PairGroups()
    pairs.start = wp.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), dtype=wp.int32, device=device)
    mask = np.packbits(is_pair, axis=1, bitorder="little")[:, 0]
    entry = np.stack([key // stride, key % stride, mask], axis=1).astype(np.int32)
    pairs.entry = wp.array(entry, dtype=wp.vec3i, device=device)
    return pairs, max(counts)
