"""Pairs of slots in blocks of cells, with the cells in which a pair is a candidate."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp


@dataclass(frozen=True)
class BlockPairs:
    """Pairs of slots of a chunk whose bounds overlap in some cell of a block, ordered by block, slot0, slot1.

    slots: vec2i, both slots of each, counted through all blocks; slot0 < slot1. mask: uint32, bit k is set where the
    pair is a candidate in lane k of the block. count: number of pairs; the arrays may be longer.
    """

    slots: wp.array
    mask: wp.array
    count: int
