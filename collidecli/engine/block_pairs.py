"""Pairs of slots in blocks of cells, with the cells in which a pair is a candidate."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp


@dataclass(frozen=True)
class BlockPairs:
    """Pairs of slots of a chunk whose bounds overlap in some cell of a block, ordered by block,
    slot0, slot1.

    slots: vec2i, both slots of each, counted through all blocks; slot0 < slot1. mask: uint32, bit k
    is set where the pair is a candidate in lane k of the block. count: number of pairs, or their
    capacity; the arrays may be longer. bound: as of `ElementCount`, where the number is not known.
    """

    slots: wp.array
    mask: wp.array
    count: int
    bound: wp.array | None = None


@wp.struct
class PairLanes:
    """Pairs of slots with what is found of them when their candidates are listed
    (`candidates.expand`).

    slots, mask: see BlockPairs. end: of each block, the end of its pairs. The others are set where
    the mask is not 0: row: rows of both shapes. bucket: number of the pair's collider. before:
    candidates, and pairs, of its bucket in earlier pairs of the block. first: index of its first
    candidate among those ordered by bucket; the others follow, by lane. order: numbers of the
    pairs, ordered by bucket.
    """

    slots: wp.array[wp.vec2i]
    mask: wp.array[wp.uint32]
    end: wp.array[wp.int32]
    row: wp.array[wp.vec2i]
    bucket: wp.array[wp.uint8]
    before: wp.array[wp.vec2i]
    first: wp.array[wp.int32]
    order: wp.array[wp.int32]


BIT_FUNCTIONS = """
#if defined(__CUDA_ARCH__)
    #define COUNT_OF(word) __popc(word)
    #define FIRST_OF(word) (__ffs(word) - 1)
#else
    #define COUNT_OF(word) __builtin_popcount(word)
    #define FIRST_OF(word) __builtin_ctz(word)
#endif
"""
"""Number of set bits of a word, and the lowest of those of a word that is not 0."""


@wp.func_native(f"""{BIT_FUNCTIONS}
    return FIRST_OF(mask);
""")
def first_lane(mask: wp.uint32) -> int:
    """Lowest set bit of a mask that is not 0."""
    ...


@wp.func_native(f"""{BIT_FUNCTIONS}
    return COUNT_OF(mask & ((1u << lane) - 1u));
""")
def lanes_below(mask: wp.uint32, lane: int) -> int:
    """Number of set bits below bit `lane`."""
    ...
