"""Pair filter, margin and gap of a pair of rows.

A pair of instances is a candidate if it passes the filter and its inflated bounds overlap. Bounds
are a ball and a box, or a half-space for a plane. Each is inflated by its shape's part of the
largest maximum separation of any of its pairs (device_model.bounds_inflation), so shapes whose
bounds do not overlap are farther apart than their maximum separation. All broad phases use one
filter and the same numbers for bounds, so all find the same candidates.
"""

import numpy as np
import warp as wp

from collidecli.engine.device_model import Filter, Margins
from collidecli.engine.geometry.real import Real

LEAST = wp.constant(wp.float32(1.5e-45))
"""The smallest float32 above 0."""


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
def next_above(x: Real) -> Real:
    """The float64 above a number of at least 1e-290, as 1.2e-16 of it is between a half and one and
    a half of its last bit."""
    return x + wp.abs(x) * Real(1.2e-16)


@wp.func
def above(gap: Real, margin: Real) -> Real:
    """The separation [m] below which a distance, separation - margin, is at most a gap when both
    are rounded to float32.

    That is the middle between the gap's float32 and the next one, plus the margin; but no less than
    the float64 after gap + margin. Of a sum of 0 it is a number whose square is not 0.
    """
    rounded = wp.float32(gap)
    # 2^-24 (1 + 2^-22) of a number is more than half of its last bit and less than one and a half
    after = rounded + (rounded * wp.float32(wp.static(2.0**-24 * (1.0 + 2.0**-22))) + LEAST)
    middle = Real(0.5) * (Real(rounded) + Real(after))
    if wp.float32(middle) == rounded:  # of two float32 a tie is rounded to the even one
        middle = next_above(middle)
    return wp.max(middle + margin, next_above(gap + margin))


def float32_limit(gap: float) -> float:
    """`above` of a gap without a margin, on the host."""
    rounded = np.float32(gap)
    middle = 0.5 * (float(rounded) + float(np.nextafter(rounded, np.float32(np.inf))))
    return np.nextafter(middle, np.inf) if np.float32(middle) == rounded else middle


@wp.func
def max_separation_of(limits: PairLimits) -> Real:
    """The separation below which a pair has a contact [m]."""
    return above(limits.gap, limits.margin)
