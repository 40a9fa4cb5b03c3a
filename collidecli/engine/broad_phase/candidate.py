"""What makes two instances a candidate pair: the filter lets them touch, and their inflated bounds meet.

Bounds are a ball and a box, or a half-space for a plane. Each is inflated by its shape's share of any pair's reach
(device_model.reach_share), so that bounds which do not meet belong to shapes beyond each other's reach. Every broad
phase asks both questions in the same numbers, so all of them find the same candidates. This is the filter's side.
"""

import warp as wp

from collidecli.engine.device_model import ShapeRows
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
def forced_index(rows: ShapeRows, row0: int, row1: int) -> int:
    """Where the forced pair (row0 < row1) stands; -1 when it is not forced."""
    begin = rows.forced_start[row0]
    end = rows.forced_start[row0 + 1]
    if begin == end:
        return -1
    return find_sorted(rows.forced, begin, end, row1)


@wp.func
def may_touch(rows: ShapeRows, row0: int, row1: int) -> bool:
    """Whether the filter lets two shapes (row0 < row1) touch."""
    if rows.class_table[rows.filter_class[row0] * rows.class_count + rows.filter_class[row1]] != wp.uint8(0):
        begin = rows.excluded_start[row0]
        end = rows.excluded_start[row0 + 1]
        if begin == end or find_sorted(rows.excluded, begin, end, row1) < 0:
            return True
    return forced_index(rows, row0, row1) >= 0


@wp.struct
class PairLimits:
    """margin: both surfaces' inflation together [m]. gap: how far ahead the pair's contacts are reported [m]."""

    margin: Real
    gap: Real


@wp.func
def pair_limits(rows: ShapeRows, row0: int, row1: int) -> PairLimits:
    """Margin and gap of a pair (row0 < row1); what a forced pair authors stands in place of its shapes' own."""
    limits = PairLimits()
    limits.margin = rows.margin[row0] + rows.margin[row1]
    limits.gap = wp.max(rows.gap[row0], rows.gap[row1])
    if rows.gap_is_sum != 0:
        limits.gap = rows.gap[row0] + rows.gap[row1]
    forced = forced_index(rows, row0, row1)
    if forced >= 0:
        if not wp.isnan(rows.forced_margin[forced]):
            limits.margin = rows.forced_margin[forced]
        if not wp.isnan(rows.forced_gap[forced]):
            limits.gap = rows.forced_gap[forced]
    return limits
