"""What makes two instances a candidate pair: the filter lets them touch, and their inflated bounds meet.

Bounds are a ball and a box, or a half-space for a plane. Each is inflated by its shape's share of any pair's reach
(device_model.max_separation_share), so that bounds which do not overlap belong to shapes that are farther apart.
Every broad phase asks both questions in the same numbers, so all of them find the same candidates. This is the
filter's side.
"""

import warp as wp

from collidecli.engine.device_model import Filter, Margins
from collidecli.engine.geometry.real import Real


@wp.func
def find_sorted(values: wp.array[wp.int32], begin: int, end: int, wanted: int) -> int:
    """Index of `wanted` in the ascending values[begin:end]; -1 when it is not there."""
    low = begin
    high = end
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < end and values[low] == wanted:
        return low
    return -1


@wp.func
def forced_index(start: wp.array[wp.int32], forced: wp.array[wp.int32], row0: int, row1: int) -> int:
    """Where the forced pair (row0 < row1) stands; -1 when it is not forced."""
    begin = start[row0]
    end = start[row0 + 1]
    if begin == end:
        return -1
    return find_sorted(forced, begin, end, row1)


@wp.func
def may_touch(lists: Filter, row0: int, row1: int) -> bool:
    """Whether the filter lets two shapes (row0 < row1) touch."""
    if lists.class_table[lists.shape_class[row0] * lists.class_count + lists.shape_class[row1]] != wp.uint8(0):
        begin = lists.excluded_start[row0]
        end = lists.excluded_start[row0 + 1]
        if begin == end or find_sorted(lists.excluded, begin, end, row1) < 0:
            return True
    return forced_index(lists.forced_start, lists.forced, row0, row1) >= 0


@wp.struct
class PairLimits:
    """margin: both surfaces' inflation together [m]. gap: how far ahead the pair's contacts are reported [m]."""

    margin: Real
    gap: Real


@wp.func
def pair_limits(margins: Margins, row0: int, row1: int) -> PairLimits:
    """Margin and gap of a pair (row0 < row1); what a forced pair authors stands in place of its shapes' own."""
    limits = PairLimits()
    limits.margin = margins.margin[row0] + margins.margin[row1]
    limits.gap = wp.max(margins.gap[row0], margins.gap[row1])
    if margins.gap_is_sum != 0:
        limits.gap = margins.gap[row0] + margins.gap[row1]
    forced = forced_index(margins.forced_start, margins.forced, row0, row1)
    if forced >= 0:
        if not wp.isnan(margins.forced_margin[forced]):
            limits.margin = margins.forced_margin[forced]
        if not wp.isnan(margins.forced_gap[forced]):
            limits.gap = margins.forced_gap[forced]
    return limits
