"""What makes two instances a candidate pair: the filter, the pair's reach, and the test of their bounds.

Every broad phase asks these same questions, so all of them find the same candidates.
"""

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import PLANE
from collidecli.engine.geometry.real import Pose, Real, Vec3

UPWARD = wp.constant(wp.float32(4.0e-7))
"""Relative widening of a float32 reach, more than its own rounding and that of the difference it is held against."""


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


@wp.func
def pair_reach(rows: ShapeRows, row0: int, row1: int) -> wp.float32:
    """Separation of the un-inflated surfaces below which the pair has a contact, rounded up [m]."""
    limits = pair_limits(rows, row0, row1)
    reach = wp.float32(limits.gap + limits.margin)
    return reach + UPWARD * wp.abs(reach)


@wp.func
def half_space_reaches(pose: Pose, lower: wp.vec3f, upper: wp.vec3f, reach: wp.float32) -> bool:
    """Whether some point of the bounds lies less than `reach` above the plane."""
    normal = wp.quat_rotate(wp.transform_get_rotation(pose), Vec3(Real(0.0), Real(0.0), Real(1.0)))
    low = Vec3(lower)
    high = Vec3(upper)
    nearest = Vec3(
        wp.where(normal[0] > Real(0.0), low[0], high[0]),
        wp.where(normal[1] > Real(0.0), low[1], high[1]),
        wp.where(normal[2] > Real(0.0), low[2], high[2]),
    )
    # Bounds and reach are already rounded outwards: float64 adds nothing that could hide a contact.
    return wp.dot(nearest - wp.transform_get_translation(pose), normal) < Real(reach)


@wp.func
def bounds_near(
    lower0: wp.vec3f, upper0: wp.vec3f, lower1: wp.vec3f, upper1: wp.vec3f, reach: wp.float32
) -> bool:
    # One comparison instead of six: which axis separates two boxes is not a thing that a processor can foresee.
    apart = wp.max(lower0 - upper1, lower1 - upper0)
    return wp.max(apart[0], wp.max(apart[1], apart[2])) < reach


@wp.func
def near(
    rows: ShapeRows, instances: Instances, instance0: int, instance1: int, row0: int, row1: int, reach: wp.float32
) -> bool:
    """Whether the bounds of two instances come within `reach`; a plane is a half-space, not a box."""
    lower0 = instances.lower[instance0]
    upper0 = instances.upper[instance0]
    lower1 = instances.lower[instance1]
    upper1 = instances.upper[instance1]
    if not bounds_near(lower0, upper0, lower1, upper1, reach):
        return False
    if rows.type[row0] == PLANE:
        return half_space_reaches(instances.pose[instance0], lower1, upper1, reach)
    if rows.type[row1] == PLANE:
        return half_space_reaches(instances.pose[instance1], lower0, upper0, reach)
    return True
