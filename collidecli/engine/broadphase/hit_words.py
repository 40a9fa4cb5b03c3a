"""Count, scan, write over enumerated pairs, with one 32-bit word of hits for each 32 pairs of a
block.

The count pass tests the bounds of each pair once and sets its bit; the scan of the words' bit
counts gives each word its range in the output; the write pass reads the bits only. The pairs are
ordered by block and by slots without a sort.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import LANES
from collidecli.engine.runtime.workspace import Workspace

ENTRIES_PER_WORD = 32 // LANES
"""Groups of pairs per word."""


@wp.func
def bit_count(word: wp.uint32) -> int:
    """Number of set bits (Hacker's Delight, 5-2)."""
    x = word - ((word >> wp.uint32(1)) & wp.uint32(0x55555555))
    x = (x & wp.uint32(0x33333333)) + ((x >> wp.uint32(2)) & wp.uint32(0x33333333))
    x = (x + (x >> wp.uint32(4))) & wp.uint32(0x0F0F0F0F)
    return int((x * wp.uint32(0x01010101)) >> wp.uint32(24))


@wp.struct
class HitWords:
    """word: bits of each 32 pairs. count: set bits of each word. end: inclusive scan of `count`."""

    word: wp.array[wp.uint32]
    count: wp.array[wp.int32]
    end: wp.array[wp.int32]


def hit_words(workspace: Workspace, count: int) -> HitWords:
    """Hit words for `count` words, not set."""
    word = workspace.array("hit_word", count, wp.uint32)
    counts, end = (workspace.array(name, count, wp.int32) for name in ("hit_count", "hit_end"))
    return workspace.struct(HitWords, word=word, count=counts, end=end)


PER_WORD = wp.constant(ENTRIES_PER_WORD)
