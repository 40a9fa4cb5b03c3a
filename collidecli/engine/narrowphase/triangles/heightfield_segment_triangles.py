"""One after another, the triangles of a heightfield that may be near to a segment."""

import warp as wp

from collidecli.engine.geometry.heightfields import (
    Field,
    col_under,
    named_triangle,
    row_under,
    x_of,
    y_of,
)
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    go_down,
    go_on,
    is_under,
    range_of,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import base_begins, walls_begin


@wp.struct
class Targets:
    """The triangle in hand, -1 behind the last, and where the search stands.

    start, end: of the segment; grown: how far from it a triangle may be [m]. walk: through the cells, and `upper` 1
    where a cell's upper triangle comes next. Then `side`: 0 to 3 walls at -y, +x, +y, -x, 4 the base, 5 the end; ahead,
    stop: numbers of its triangles.
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
    """Whether a segment meets a box that is grown on all sides; a little more is let through."""
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
def square_is_near(field: Field, targets: Targets) -> bool:
    """Whether the segment is near to the square of cells in hand."""
    traversal = targets.traversal
    side = 1 << traversal.level
    row = traversal.i << traversal.level
    col = traversal.j << traversal.level
    lower = wp.min(targets.start, targets.end)
    upper = wp.max(targets.start, targets.end)
    heights = range_of(field, traversal)
    if heights.known == 1:
        lower[2] = heights.low
        upper[2] = heights.high
    lower[0] = x_of(field, col)
    lower[1] = y_of(field, row)
    upper[0] = x_of(field, wp.min(col + side, field.cols - 1))
    upper[1] = y_of(field, wp.min(row + side, field.rows - 1))
    return is_near_box(targets.start, targets.end, targets.grown, lower, upper)


@wp.func
def triangle_is_near(field: Field, targets: Targets, number: int) -> bool:
    """Whether the segment is near to the box of a triangle."""
    shape = named_triangle(field, number)
    lower = wp.min(shape.p, wp.min(shape.q, shape.r))
    upper = wp.max(shape.p, wp.max(shape.q, shape.r))
    return is_near_box(targets.start, targets.end, targets.grown, lower, upper)


@wp.func
def wall_range(field: Field, side: int, low: Vec3, high: Vec3) -> wp.vec2i:
    """First triangle of one of the four walls that a box is at, and the one behind the last; none where it is off."""
    along = field.cols - 1
    up = field.rows - 1
    first = col_under(field, low[0])
    last = col_under(field, high[0])
    if side == 1 or side == 3:
        first = row_under(field, low[1])
        last = row_under(field, high[1])
    result = wp.vec2i(0, 0)
    if low[0] > field.half_x or high[0] < -field.half_x or low[1] > field.half_y or high[1] < -field.half_y:
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
def begin_side(field: Field, targets: Targets) -> Targets:
    """At the first triangle of the wall or base that comes next."""
    targets.side += 1
    targets.ahead = base_begins(field)
    targets.stop = targets.ahead + 2
    if targets.side < 4:
        grown = Vec3(targets.grown, targets.grown, targets.grown)
        # More than the rounding of what is near.
        grown += Real(1.0e-12) * (wp.abs(targets.start) + wp.abs(targets.end))
        low = wp.min(targets.start, targets.end) - grown
        held = wall_range(field, targets.side, low, wp.max(targets.start, targets.end) + grown)
        targets.ahead = held[0]
        targets.stop = held[1]
    return targets


@wp.func(inline=False)
def next_target(field: Field, before: Targets) -> Targets:
    """At the next triangle."""
    targets = before
    while targets.traversal.done == 0:
        traversal = targets.traversal
        if targets.upper == 0 and not (is_under(traversal) and square_is_near(field, targets)):
            targets.traversal = go_on(traversal)
        elif traversal.level > 0:
            targets.traversal = go_down(traversal)
        else:
            number = 2 * (traversal.i * field.cols + traversal.j) + targets.upper
            if targets.upper == 1:
                targets.traversal = go_on(traversal)
            targets.upper = 1 - targets.upper
            if triangle_is_near(field, targets, number):
                targets.number = number
                return targets
    while targets.side < 5:
        while targets.ahead < targets.stop:
            number = targets.ahead
            targets.ahead += 1
            if triangle_is_near(field, targets, number):
                targets.number = number
                return targets
        targets = begin_side(field, targets)
    targets.number = -1
    return targets


@wp.func
def begin_targets(field: Field, start: Vec3, end: Vec3, grown: Real) -> Targets:
    """At the first triangle of those whose box is within `grown` [m] of a segment."""
    targets = Targets()
    targets.start = start
    targets.end = end
    targets.grown = grown
    targets.side = -1
    grow = Vec3(grown, grown, grown)
    targets.traversal = begin_traversal(field, wp.min(start, end) - grow, wp.max(start, end) + grow)
    return next_target(field, targets)
