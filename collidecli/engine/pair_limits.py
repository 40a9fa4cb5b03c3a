"""Pair filter, margin and gap of a pair of rows.

A pair of instances is a candidate if it passes the filter and its inflated bounds overlap. Bounds
are a ball and a box, or a half-space for a plane. Each is inflated by its shape's part of the
largest maximum separation of any of its pairs (device_model.bounds_inflation), so shapes whose
bounds do not overlap are farther apart than their maximum separation. All broad phases use one
filter and the same numbers for bounds, so all find the same candidates.
"""

import warp as wp

from collidecli.engine.device_model import Filter, Margins
from collidecli.engine.geometry.real import Real


@wp.func
def find_sorted(values: wp.array[wp.int32], begin: int, end: int, wanted: int) -> int:
    """Index of `wanted` in the ascending values[begin:end]; -1 if absent."""
    low = begin
    high = end
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and values[low] == wanted else -1


@wp.func
def forced_index(
    start: wp.array[wp.int32], forced: wp.array[wp.int32], row0: int, row1: int
) -> int:
    """Index of the forced pair (row0 < row1); -1 if it is not forced."""
    begin = start[row0]
    end = start[row0 + 1]
    return -1 if begin == end else find_sorted(forced, begin, end, row1)


@wp.func
def may_touch(pair_filter: Filter, row0: int, row1: int) -> bool:
    """Whether a pair of shapes (row0 < row1) passes the filter."""
    class0 = pair_filter.shape_class[row0]
    class1 = pair_filter.shape_class[row1]
    if pair_filter.class_table[class0 * pair_filter.class_count + class1] != wp.uint8(0):
        begin = pair_filter.excluded_start[row0]
        end = pair_filter.excluded_start[row0 + 1]
        if begin == end or find_sorted(pair_filter.excluded, begin, end, row1) < 0:
            return True
    return forced_index(pair_filter.forced_start, pair_filter.forced, row0, row1) >= 0


@wp.struct
class PairLimits:
    """margin: sum of both surfaces' inflations [m]. gap: distance of the inflated surfaces up to
    which contacts are reported [m]."""

    margin: Real
    gap: Real


@wp.func
def pair_limits(margins: Margins, row0: int, row1: int) -> PairLimits:
    """Margin and gap of a pair (row0 < row1); those of a forced pair, where given, override its
    shapes'."""
    limits = PairLimits(
        margins.margin[row0] + margins.margin[row1], wp.max(margins.gap[row0], margins.gap[row1])
    )
    if margins.gap_is_sum != 0:
        limits.gap = margins.gap[row0] + margins.gap[row1]
    forced = forced_index(margins.forced_start, margins.forced, row0, row1)
    if forced >= 0:
        if not wp.isnan(margins.forced_margin[forced]):
            limits.margin = margins.forced_margin[forced]
        if not wp.isnan(margins.forced_gap[forced]):
            limits.gap = margins.forced_gap[forced]
    return limits


@wp.func
def above(gap: Real, margin: Real) -> Real:
    """The separation [m] below which a distance, separation - margin, is at most a gap once it is
    rounded to float32.

    It is above gap + margin by less than half of the gap's last float32 bit, and by no less than
    the last float64 bit of the sum; of a sum of 0, by a number whose square is not 0.
    """
    sum = gap + margin
    more = wp.max(gap * Real(wp.static(2.0**-25)), wp.abs(sum) * Real(1.2e-16))
    return sum + wp.max(more, Real(1.5e-45))


@wp.func
def max_separation_of(limits: PairLimits) -> Real:
    """The separation below which a pair has a contact [m]."""
    return above(limits.gap, limits.margin)
