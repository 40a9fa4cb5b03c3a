"""A way through the squares of a heightfield's pyramid, from large to small, without a stack."""

import warp as wp

from collidecli.engine.geometry.heightfields import FIRST, Field, col_under, row_under
from collidecli.engine.geometry.real import Real, Vec3


@wp.struct
class Walk:
    """Where a way through the cells first_row .. last_row, first_col .. last_col stands.

    The square in hand has 2^level cells a side and is number i, j among its like. The way begins with the up to four
    squares of 2^top cells, i_end and j_end those behind the last, that together hold the cells. done: 1 at the end.
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
def begin_walk(field: Field, lower: Vec3, upper: Vec3) -> Walk:
    """A way through the cells under a box, at their first square; x and y of the corners count [m]."""
    walk = Walk()
    walk.first_row = row_under(field, lower[1])
    walk.last_row = row_under(field, upper[1])
    walk.first_col = col_under(field, lower[0])
    walk.last_col = col_under(field, upper[0])
    if lower[0] > field.half_x or upper[0] < -field.half_x or lower[1] > field.half_y or upper[1] < -field.half_y:
        walk.done = 1
    side = wp.max(walk.last_row - walk.first_row, walk.last_col - walk.first_col) + 1
    while (1 << walk.top) < side:
        walk.top += 1
    walk.level = walk.top
    walk.i = walk.first_row >> walk.top
    walk.i_end = (walk.last_row >> walk.top) + 1
    walk.j_first = walk.first_col >> walk.top
    walk.j = walk.j_first
    walk.j_end = (walk.last_col >> walk.top) + 1
    return walk


@wp.func
def is_under(walk: Walk) -> bool:
    """Whether the square in hand has cells under the box."""
    row = walk.i << walk.level
    col = walk.j << walk.level
    side = 1 << walk.level
    return row <= walk.last_row and row + side > walk.first_row and col <= walk.last_col and col + side > walk.first_col


@wp.func
def go_down(walk: Walk) -> Walk:
    """To the first quarter of the square in hand."""
    walk.level -= 1
    walk.i = 2 * walk.i
    walk.j = 2 * walk.j
    return walk


@wp.func
def go_on(walk: Walk) -> Walk:
    """Past the square in hand."""
    while walk.level < walk.top and (walk.i & 1) == 1 and (walk.j & 1) == 1:
        walk.i = walk.i >> 1
        walk.j = walk.j >> 1
        walk.level += 1
    if walk.level == walk.top:
        walk.j += 1
        if walk.j == walk.j_end:
            walk.j = walk.j_first
            walk.i += 1
        if walk.i == walk.i_end:
            walk.done = 1
    elif (walk.j & 1) == 0:
        walk.j += 1
    else:
        walk.j -= 1
        walk.i += 1
    return walk


@wp.struct
class Range:
    """Lowest and highest height of a square [m]. known: 0 for one that is too small to have its range kept."""

    low: Real
    high: Real
    known: int


@wp.func
def range_of(field: Field, walk: Walk) -> Range:
    """Of the square in hand."""
    result = Range()
    if walk.level < FIRST or walk.level - FIRST >= field.levels:
        return result
    at = field.first_range
    rows = ((field.rows - 2) >> FIRST) + 1
    cols = ((field.cols - 2) >> FIRST) + 1
    for _level in range(walk.level - FIRST):
        at += rows * cols
        rows = (rows + 1) >> 1
        cols = (cols + 1) >> 1
    held = field.ranges[at + walk.i * cols + walk.j]
    result.low = field.level + field.scale * Real(held[0])
    result.high = field.level + field.scale * Real(held[1])
    result.known = 1
    return result
