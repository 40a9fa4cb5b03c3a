"""Stackless traversal of the squares of a heightfield's min-max pyramid.

`heightfield_near_segment` finds the triangles near a segment with it, `heightfield_inside` the part
of the surface that is nearest to a point inside.
"""

import warp as wp

from collidecli.engine.geometry.heightfields import (
    FIRST,
    Field,
    col_under,
    row_under,
)
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
