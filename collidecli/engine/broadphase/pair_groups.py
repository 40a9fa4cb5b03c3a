"""Overlap of the box of one slot with those of a group of eight slots, in a block of cells.

A block's boxes contain the bounds of all its cells (`Instances.block_box`); pairs of slots whose
boxes do not overlap are apart in every cell of the block. The boxes of eight slots are stored as
lanes (eight lower x, eight lower y, ...). The loops over lanes are in C++: Warp's own array reads
wrap and stride each element, which prevents vectorization by the compiler.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.cells import BOX_NUMBERS
from collidecli.engine.device_model import LANES, DeviceModel
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.runtime.native_code import native

_VALUES = {"LANES": LANES, "BOX_NUMBERS": BOX_NUMBERS}
"""Values of the section of C++."""


@wp.func_native(native(__file__, "box_bits", **_VALUES))
def box_bits(box: wp.array[wp.float32], slot: int, group: int, mask: wp.uint32) -> wp.uint32:
    """Of the slots `mask` of a group, those whose boxes overlap a slot's. A plane's overlaps all.

    slot, group: index of the slot and of the group of eight slots, counted through all blocks.
    """
    ...


@wp.struct
class PairGroups:
    """Pairs of each template as a sparse bit matrix, only the words with set bits.

    start: first entry of each template, one more at the end. entry: slot0; a group, which has the
    slots 8 group to 8 group + 7; and a mask, whose bit k is set where (slot0, 8 group + k) is one
    of the pairs.
    """

    start: wp.array[wp.int32]
    entry: wp.array[wp.vec3i]


def upload_groups(
    device_model: DeviceModel, template_pairs: list[np.ndarray]
) -> tuple[PairGroups, int]:
    """Row pairs of each template (int32[K, 2], first < second) as groups; and the largest number of
    entries of one."""
    device = device_model.device
    counts = []
    keys = []
    masks = []
    stride = device_model.layout.width // LANES
    for rows, row_pairs in zip(device_model.template_rows, template_pairs, strict=True):
        slots = np.searchsorted(rows, row_pairs).astype(np.int64)
        key, entry = np.unique(slots[:, 0] * stride + slots[:, 1] // LANES, return_inverse=True)
        is_pair = np.zeros((len(key), LANES), bool)
        is_pair[entry, slots[:, 1] % LANES] = True
        counts.append(len(key))
        keys.append(key)
        masks.append(is_pair)
    key = np.concatenate(keys)
    is_pair = np.concatenate(masks)
    pairs = PairGroups()
    pairs.start = device_array(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), wp.int32, device
    )
    mask = np.packbits(is_pair, axis=1, bitorder="little")[:, 0]
    entry = np.stack([key // stride, key % stride, mask], axis=1).astype(np.int32)
    pairs.entry = device_array(entry, wp.vec3i, device)
    return pairs, max(counts)
