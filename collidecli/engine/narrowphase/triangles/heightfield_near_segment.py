"""The triangles of a heightfield near a segment: of its surface, then of its walls."""

import warp as wp

from collidecli.engine.geometry.heightfields import (
    Field,
    base_begins,
    col_under,
    named_triangle,
    row_under,
    walls_begin,
    x_of,
    y_of,
)
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    descend,
    is_under,
    range_of,
    skip_square,
)


@wp.struct
class SegmentCursor:
    """State of a traversal. number: the current triangle, -1 after the last.

    start, end: of the segment; grown: greatest distance of a triangle's box from it [m]. traversal:
    of the cells; upper: 1 where the cell's upper triangle is next. Then side: 0 to 3 walls at -y,
    +x, +y, -x, 4 the base, 5 the end; ahead, stop: its next triangle and the end of its triangles.
    """

    number: int
    traversal: Traversal
    upper: int
    side: int
    ahead: int
    stop: int
    start: Vec3
    end: Vec3
    grown: Real


@wp.func
def is_near_box(start: Vec3, end: Vec3, grown: Real, lower: Vec3, upper: Vec3) -> bool:
    """Whether a segment intersects a box grown on all sides, by the slab test with a slack for
    rounding."""
    enters = Real(0.0)
    leaves = Real(1.0)
    along = end - start
    for axis in range(3):
        low = lower[axis] - grown - start[axis]
        high = upper[axis] + grown - start[axis]
        slack = Real(1.0e-12) * (wp.abs(low) + wp.abs(high))
        if along[axis] == Real(0.0):
            if low > slack or high < -slack:
                leaves = Real(-1.0)
        else:
            near = (low - slack) / along[axis]
            far = (high + slack) / along[axis]
            enters = wp.max(enters, wp.min(near, far))
            leaves = wp.min(leaves, wp.max(near, far))
    return enters <= leaves


@wp.func
def square_is_near(field: Field, cursor: SegmentCursor) -> bool:
    """Whether the segment is near the current square of cells."""
    traversal = cursor.traversal
    side = 1 << traversal.level
    row = traversal.i << traversal.level
    col = traversal.j << traversal.level
    lower = wp.min(cursor.start, cursor.end)
    upper = wp.max(cursor.start, cursor.end)
    heights = range_of(field, traversal)
    if heights.known == 1:
        lower[2] = heights.low
        upper[2] = heights.high
    lower[0] = x_of(field, col)
    lower[1] = y_of(field, row)
    upper[0] = x_of(field, wp.min(col + side, field.cols - 1))
    upper[1] = y_of(field, wp.min(row + side, field.rows - 1))
    return is_near_box(cursor.start, cursor.end, cursor.grown, lower, upper)


@wp.func
def triangle_is_near(field: Field, cursor: SegmentCursor, number: int) -> bool:
    """Whether the segment is near the AABB of a triangle."""
    shape = named_triangle(field, number)
    lower = wp.min(shape.p, wp.min(shape.q, shape.r))
    upper = wp.max(shape.p, wp.max(shape.q, shape.r))
    return is_near_box(cursor.start, cursor.end, cursor.grown, lower, upper)


@wp.func
def wall_range(field: Field, side: int, low: Vec3, high: Vec3) -> wp.vec2i:
    """First and end of the triangles of one of the four walls that a box intersects; empty where it
    intersects none."""
    along = field.cols - 1
    up = field.rows - 1
    first = col_under(field, low[0])
    last = col_under(field, high[0])
    if side == 1 or side == 3:
        first = row_under(field, low[1])
        last = row_under(field, high[1])
    result = wp.vec2i(0, 0)
    if (
        low[0] > field.half_x
        or high[0] < -field.half_x
        or low[1] > field.half_y
        or high[1] < -field.half_y
    ):
        return result
    if side == 0 and low[1] <= -field.half_y:
        result = wp.vec2i(first, last + 1)
    if side == 1 and high[0] >= field.half_x:
        result = wp.vec2i(along + first, along + last + 1)
    if side == 2 and high[1] >= field.half_y:
        result = wp.vec2i(2 * along + up - 1 - last, 2 * along + up - first)
    if side == 3 and low[0] <= -field.half_x:
        result = wp.vec2i(2 * along + 2 * up - 1 - last, 2 * along + 2 * up - first)
    if result[1] == 0:
        return result
    begin = walls_begin(field)
    return wp.vec2i(begin + 2 * result[0], begin + 2 * result[1])


@wp.func
def begin_side(field: Field, cursor: SegmentCursor) -> SegmentCursor:
    """The traversal at the first triangle of the next wall or of the base."""
    cursor.side += 1
    cursor.ahead = base_begins(field)
    cursor.stop = cursor.ahead + 2
    if cursor.side < 4:
        grown = Vec3(cursor.grown, cursor.grown, cursor.grown)
        # Larger than the slack of the slab test.
        grown += Real(1.0e-12) * (wp.abs(cursor.start) + wp.abs(cursor.end))
        low = wp.min(cursor.start, cursor.end) - grown
        span = wall_range(field, cursor.side, low, wp.max(cursor.start, cursor.end) + grown)
        cursor.ahead = span[0]
        cursor.stop = span[1]
    return cursor


@wp.func(inline=False)
def next_near_segment(field: Field, before: SegmentCursor) -> SegmentCursor:
    """The traversal at the next triangle."""
    cursor = before
    while cursor.traversal.done == 0:
        traversal = cursor.traversal
        if cursor.upper == 0 and not (is_under(traversal) and square_is_near(field, cursor)):
            cursor.traversal = skip_square(traversal)
        elif traversal.level > 0:
            cursor.traversal = descend(traversal)
        else:
            number = 2 * (traversal.i * field.cols + traversal.j) + cursor.upper
            if cursor.upper == 1:
                cursor.traversal = skip_square(traversal)
            cursor.upper = 1 - cursor.upper
            if triangle_is_near(field, cursor, number):
                cursor.number = number
                return cursor
    while cursor.side < 5:
        while cursor.ahead < cursor.stop:
            number = cursor.ahead
            cursor.ahead += 1
            if triangle_is_near(field, cursor, number):
                cursor.number = number
                return cursor
        cursor = begin_side(field, cursor)
    cursor.number = -1
    return cursor


@wp.func
def begin_near_segment(field: Field, start: Vec3, end: Vec3, grown: Real) -> SegmentCursor:
    """The traversal at the first triangle whose AABB is within `grown` [m] of a segment."""
    cursor = SegmentCursor()
    cursor.start = start
    cursor.end = end
    cursor.grown = grown
    cursor.side = -1
    grow = Vec3(grown, grown, grown)
    cursor.traversal = begin_traversal(field, wp.min(start, end) - grow, wp.max(start, end) + grow)
    return next_near_segment(field, cursor)
