"""Stackless traversal of the squares of a heightfield's min-max pyramid.

A traversal finds the triangles near a segment, or the part of the surface that is nearest to a
point inside. The distance of such a point is from surface and walls: the base does not count, see
docs/adr/0026.
"""

import warp as wp

from collidecli.engine.geometry.heightfields import (
    FIRST,
    Field,
    base_begins,
    col_under,
    field_triangle,
    highest_of_cell,
    named_triangle,
    row_under,
    top_triangle,
    walls_begin,
    x_of,
    y_of,
)
from collidecli.engine.geometry.meshes import square_to_triangle
from collidecli.engine.geometry.real import Real, Vec3


@wp.struct
class Traversal:
    """State of a traversal of the cells first_row .. last_row, first_col .. last_col.

    The current square has 2^level cells per side and indices i, j at its level. The traversal
    begins with the up to four squares of 2^top cells per side that together contain the cells;
    i_end and j_end are the indices after the last of these. done: 1 at the end.
    """

    first_row: int
    last_row: int
    first_col: int
    last_col: int
    top: int
    i_end: int
    j_first: int
    j_end: int
    level: int
    i: int
    j: int
    done: int


@wp.func
def begin_traversal(field: Field, lower: Vec3, upper: Vec3) -> Traversal:
    """A traversal of the cells under a box, at the first square; only x and y of the corners count
    [m]."""
    traversal = Traversal()
    traversal.first_row = row_under(field, lower[1])
    traversal.last_row = row_under(field, upper[1])
    traversal.first_col = col_under(field, lower[0])
    traversal.last_col = col_under(field, upper[0])
    if (
        lower[0] > field.half_x
        or upper[0] < -field.half_x
        or lower[1] > field.half_y
        or upper[1] < -field.half_y
    ):
        traversal.done = 1
    side = (
        wp.max(traversal.last_row - traversal.first_row, traversal.last_col - traversal.first_col)
        + 1
    )
    while (1 << traversal.top) < side:
        traversal.top += 1
    traversal.level = traversal.top
    traversal.i = traversal.first_row >> traversal.top
    traversal.i_end = (traversal.last_row >> traversal.top) + 1
    traversal.j_first = traversal.first_col >> traversal.top
    traversal.j = traversal.j_first
    traversal.j_end = (traversal.last_col >> traversal.top) + 1
    return traversal


@wp.func
def is_under(traversal: Traversal) -> bool:
    """Whether the current square has cells under the box."""
    row = traversal.i << traversal.level
    col = traversal.j << traversal.level
    side = 1 << traversal.level
    return (
        row <= traversal.last_row
        and row + side > traversal.first_row
        and col <= traversal.last_col
        and col + side > traversal.first_col
    )


@wp.func
def descend(traversal: Traversal) -> Traversal:
    """The traversal at the first quarter of the current square."""
    traversal.level -= 1
    traversal.i = 2 * traversal.i
    traversal.j = 2 * traversal.j
    return traversal


@wp.func
def skip_square(traversal: Traversal) -> Traversal:
    """The traversal at the square after the current one and its descendants."""
    while traversal.level < traversal.top and (traversal.i & 1) == 1 and (traversal.j & 1) == 1:
        traversal.i = traversal.i >> 1
        traversal.j = traversal.j >> 1
        traversal.level += 1
    if traversal.level == traversal.top:
        traversal.j += 1
        if traversal.j == traversal.j_end:
            traversal.j = traversal.j_first
            traversal.i += 1
        if traversal.i == traversal.i_end:
            traversal.done = 1
    elif (traversal.j & 1) == 0:
        traversal.j += 1
    else:
        traversal.j -= 1
        traversal.i += 1
    return traversal


@wp.struct
class Range:
    """Least and greatest height of a square [m]. known: 0 for a square below the finest level of
    the pyramid."""

    low: Real
    high: Real
    known: int


@wp.func
def range_of(field: Field, traversal: Traversal) -> Range:
    """The height range of the current square."""
    result = Range()
    if traversal.level < FIRST or traversal.level - FIRST >= field.levels:
        return result
    at = field.first_range
    rows = ((field.rows - 2) >> FIRST) + 1
    cols = ((field.cols - 2) >> FIRST) + 1
    for _level in range(traversal.level - FIRST):
        at += rows * cols
        rows = (rows + 1) >> 1
        cols = (cols + 1) >> 1
    heights = field.ranges[at + traversal.i * cols + traversal.j]
    result.low = field.level + field.scale * Real(heights[0])
    result.high = field.level + field.scale * Real(heights[1])
    result.known = 1
    return result


@wp.func
def cell_between(field: Field, before: Traversal, low: Real, high: Real) -> Traversal:
    """The traversal at the first cell, from the current square on, in squares with heights from low
    to high [m]."""
    traversal = before
    while traversal.done == 0:
        passes = not is_under(traversal)
        if not passes:
            heights = range_of(field, traversal)
            passes = heights.known == 1 and (heights.high < low or heights.low > high)
        if passes:
            traversal = skip_square(traversal)
        elif traversal.level > 0:
            traversal = descend(traversal)
        else:
            return traversal
    return traversal


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


AGAINST = wp.constant(Real(-0.7))
"""Cosine below which a triangle faces against a direction; as for meshes."""
EQUAL = wp.constant(Real(1.0 + 1.0e-12))
"""Squared distances that differ by less than this factor may be equal."""


@wp.func
def side_below(field: Field, row: int, col: int, point: Vec3) -> int:
    """The triangle of a cell above or below a point: 0 below the diagonal, 1 above."""
    x = (point[0] - x_of(field, col)) / field.half_step_x
    y = (point[1] - y_of(field, row)) / field.half_step_y
    return wp.where(y > x, 1, 0)


@wp.func
def height_over(field: Field, point: Vec3) -> Real:
    """Height of the surface above or below a point of the rectangle [m]."""
    row = row_under(field, point[1])
    col = col_under(field, point[0])
    shape = top_triangle(field, 2 * (row * field.cols + col) + side_below(field, row, col, point))
    normal = wp.cross(shape.q - shape.p, shape.r - shape.p)
    off = point - shape.p
    return shape.p[2] - (normal[0] * off[0] + normal[1] * off[1]) / normal[2]


@wp.func
def is_inside(field: Field, point: Vec3) -> bool:
    """Whether a point is inside the solid."""
    if (
        wp.abs(point[0]) >= field.half_x
        or wp.abs(point[1]) >= field.half_y
        or point[2] <= field.bottom
    ):
        return False
    if point[2] >= highest_of_cell(field, row_under(field, point[1]), col_under(field, point[0])):
        return False
    return point[2] < height_over(field, point)


@wp.func
def foot_on_side(field: Field, segment: int, point: Vec3) -> Vec3:
    """Closest point of one of the four sides (0 to 3: -y, +x, +y, -x), taken without an upper
    end."""
    foot = Vec3(
        wp.clamp(point[0], -field.half_x, field.half_x),
        wp.clamp(point[1], -field.half_y, field.half_y),
        wp.max(point[2], field.bottom),
    )
    if segment == 0:
        foot[1] = -field.half_y
    elif segment == 1:
        foot[0] = field.half_x
    elif segment == 2:
        foot[1] = field.half_y
    else:
        foot[0] = -field.half_x
    return foot


@wp.func
def side_normal(segment: int) -> Vec3:
    """Outward normal of one of the four sides."""
    if segment == 0:
        return Vec3(Real(0.0), Real(-1.0), Real(0.0))
    if segment == 1:
        return Vec3(Real(1.0), Real(0.0), Real(0.0))
    if segment == 2:
        return Vec3(Real(0.0), Real(1.0), Real(0.0))
    return Vec3(Real(-1.0), Real(0.0), Real(0.0))


@wp.func
def wall_under(field: Field, segment: int, point: Vec3) -> int:
    """Number of the wall triangle that contains a point's projection onto one of the four sides."""
    along = field.cols - 1
    up = field.rows - 1
    row = row_under(field, point[1])
    col = col_under(field, point[0])
    k = col
    if segment == 1:
        k = along + row
    elif segment == 2:
        k = along + up + (along - 1 - col)
    elif segment == 3:
        k = 2 * along + up + (up - 1 - row)
    first = 2 * field.rows * field.cols + 2 * k
    lower = field_triangle(field, first)
    # The diagonal runs from the foot of the segment's first vertex to the top of its second.
    rise = wp.cross(lower.r - lower.p, lower.normal)
    return first + wp.where(wp.dot(point - lower.p, rise) < Real(0.0), 1, 0)


@wp.func
def squared_distance_to_square(field: Field, traversal: Traversal, point: Vec3) -> Real:
    """Squared distance of a point from the AABB of the current square, in x and y alone where its
    range is unknown [m^2]."""
    side = 1 << traversal.level
    row = traversal.i << traversal.level
    col = traversal.j << traversal.level
    far_row = wp.min(row + side, field.rows - 1)
    far_col = wp.min(col + side, field.cols - 1)
    lower = Vec3(x_of(field, col), y_of(field, row), point[2])
    upper = Vec3(x_of(field, far_col), y_of(field, far_row), point[2])
    heights = range_of(field, traversal)
    if heights.known == 1:
        lower[2] = heights.low
        upper[2] = heights.high
    return wp.length_sq(point - wp.max(lower, wp.min(upper, point)))


@wp.struct
class NearestPart:
    """The triangle closest to an inner point, and its distance [m]."""

    number: int
    distance: Real


@wp.func
def nearest_top(field: Field, point: Vec3, before: NearestPart, within: Real) -> NearestPart:
    """The first closest triangle of the surface, of those whose squared distance is below `within`
    [m^2]; where there is none, that of `before`, at the root of `within`. The squares within the
    distance of `before` are searched."""
    number = before.number
    square = within
    grown = Vec3(before.distance, before.distance, before.distance)
    traversal = begin_traversal(field, point - grown, point + grown)
    while traversal.done == 0:
        if not is_under(traversal) or squared_distance_to_square(field, traversal, point) >= square:
            traversal = skip_square(traversal)
        elif traversal.level > 0:
            traversal = descend(traversal)
        else:
            for side in range(2):
                here = 2 * (traversal.i * field.cols + traversal.j) + side
                shape = top_triangle(field, here)
                normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
                near = square_to_triangle(shape.p, shape.q, shape.r, normal, point)
                if near < square:
                    square = near
                    number = here
            traversal = skip_square(traversal)
    return NearestPart(number, wp.sqrt(square))


@wp.func(inline=False)
def nearest_part(field: Field, point: Vec3) -> NearestPart:
    """Closest triangle of the surface and the walls; of equally close ones the first, walls before
    the surface.

    The search radius is the height of the surface above the point.
    """
    result = NearestPart()
    result.number = -1
    result.distance = height_over(field, point) - point[2]
    for segment in range(4):
        foot = foot_on_side(field, segment, point)
        distance = wp.length(foot - point)
        # Above the rim the closest point is on the surface.
        if distance < result.distance and height_over(field, foot) >= point[2]:
            result.distance = distance
            result.number = wall_under(field, segment, point)
    square = result.distance * result.distance
    if result.number < 0:
        # An upper bound from the triangle above; equal distances are not skipped, so that the first
        # of equals counts.
        row = row_under(field, point[1])
        col = col_under(field, point[0])
        result.number = 2 * (row * field.cols + col) + side_below(field, row, col, point)
        square = square * EQUAL
    return nearest_top(field, point, result, square)


@wp.func(inline=False)
def is_nearer_on_field(field: Field, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle of the surface or a wall that does not face against `outward` is closer
    than `distance` [m].

    outward: unit; zero counts every triangle.
    """
    for segment in range(4):
        foot = foot_on_side(field, segment, point)
        is_near = wp.length(foot - point) < distance and height_over(field, foot) >= point[2]
        if is_near and wp.dot(side_normal(segment), outward) > AGAINST:
            return True
    square = distance * distance
    grown = Vec3(distance, distance, distance)
    traversal = begin_traversal(field, point - grown, point + grown)
    while traversal.done == 0:
        if not is_under(traversal) or squared_distance_to_square(field, traversal, point) >= square:
            traversal = skip_square(traversal)
        elif traversal.level > 0:
            traversal = descend(traversal)
        else:
            for side in range(2):
                shape = top_triangle(field, 2 * (traversal.i * field.cols + traversal.j) + side)
                normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
                near = square_to_triangle(shape.p, shape.q, shape.r, normal, point)
                if wp.dot(normal, outward) > AGAINST and near < square:
                    return True
            traversal = skip_square(traversal)
    return False
