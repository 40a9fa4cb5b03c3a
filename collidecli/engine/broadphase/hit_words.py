"""Count, scan, write over enumerated pairs: a word of 32 yes/no bits for each 32 pairs of a cell.

The bounds of a pair are tested once, when its bit is set; the scan gives each word its place, and the write pass only
reads bits. The candidates come out ordered by cell and by pair, without a sort.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import LANES
from collidecli.engine.runtime.workspace import Workspace

ENTRIES_PER_WORD = 32 // LANES
"""Blocks of pairs whose bits share a word."""


@wp.func
def bit_count(word: wp.uint32) -> int:
    """How many bits are set (Hacker's Delight, 5-2)."""
    x = word - ((word >> wp.uint32(1)) & wp.uint32(0x55555555))
    x = (x & wp.uint32(0x33333333)) + ((x >> wp.uint32(2)) & wp.uint32(0x33333333))
    x = (x + (x >> wp.uint32(4))) & wp.uint32(0x0F0F0F0F)
    return int((x * wp.uint32(0x01010101)) >> wp.uint32(24))


@wp.struct
class HitWords:
    """word: bits of each 32 pairs. end: hits up to and with each word, once scanned."""

    word: wp.array[wp.uint32]
    end: wp.array[wp.int32]


def hit_words(workspace: Workspace, count: int) -> HitWords:
    """Room for `count` words."""
    word, end = workspace.array("hit_word", count, wp.uint32), workspace.array("hit_end", count, wp.int32)
    return workspace.struct(HitWords, word=word, end=end)
