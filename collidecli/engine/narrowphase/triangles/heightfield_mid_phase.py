"""Between broad and narrow phase: which triangles of its heightfield each candidate is to be tested against.

They are found from the place of the other shape's box in the grid. A pyramid of the heights' ranges passes over squares
that the box does not reach.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import (
    FIRST,
    Field,
    Heightfields,
    border_vertex,
    col_under,
    field_of,
    height_at,
    perimeter_of,
    row_under,
    x_of,
    y_of,
)
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair
from collidecli.engine.narrowphase.triangles.heightfield_nearest import is_inside, nearest_part, square_to_square
from collidecli.engine.narrowphase.triangles.heightfield_query_bounds import (
    Near,
    extent_along,
    may_share_world,
    near_field,
)
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    go_down,
    go_on,
    is_under,
    range_of,
)
from collidecli.engine.pair_query import Query

# What asks for much comes after what asks for little: an `and` may work out both.
# ruff: noqa: SIM102


@wp.func
def sides_near(field: Field, near: Near, row: int, col: int) -> int:
    """Which of a cell's triangles the box may meet, bits 1 (below the diagonal) and 2.

    Not one that is beyond the cell's heights or its diagonal, nor one in front of whose plane it lies.
    """
    at = field.first + row * field.cols + col
    h = field.data[at]
    h_x = field.data[at + 1]
    h_y = field.data[at + field.cols]
    h_far = field.data[at + field.cols + 1]
    highest = field.level + field.scale * Real(wp.max(wp.max(h, h_x), wp.max(h_y, h_far)))
    lowest = field.level + field.scale * Real(wp.min(wp.min(h, h_x), wp.min(h_y, h_far)))
    if near.lower[2] > highest or near.upper[2] < lowest:
        return 0
    half = Real(0.5) * (near.upper - near.lower)
    middle = near.lower + half - Vec3(x_of(field, col), y_of(field, row), field.level + field.scale * Real(h))
    x = Real(2.0) * field.half_step_x
    y = Real(2.0) * field.half_step_y
    across = x * middle[1] - y * middle[0]
    spread = x * half[1] + y * half[0]
    sides = int(0)
    for side in range(2):
        # Both planes go through the low corner; their slopes, times the cell's sides.
        rise_x = field.scale * Real(wp.where(side == 0, h_x - h, h_far - h_y)) * y
        rise_y = field.scale * Real(wp.where(side == 0, h_far - h_x, h_y - h)) * x
        normal = Vec3(-rise_x, -rise_y, x * y)
        if wp.dot(normal, middle) <= extent_along(near, normal) and wp.where(side == 0, across, -across) <= spread:
            sides = sides | (1 << side)
    return sides


@wp.func
def cell_sub_pairs(field: Field, near: Near, traversal: Traversal, out: SubPairList, start: int) -> int:
    """Triangles of the cells of the square in hand, as `top_sub_pairs`."""
    found = start
    row = wp.max(traversal.i << traversal.level, traversal.first_row)
    last_row = wp.min(((traversal.i + 1) << traversal.level) - 1, traversal.last_row)
    last_col = wp.min(((traversal.j + 1) << traversal.level) - 1, traversal.last_col)
    while row <= last_row:
        col = wp.max(traversal.j << traversal.level, traversal.first_col)
        while col <= last_col:
            sides = sides_near(field, near, row, col)
            first = 2 * (row * field.cols + col)
            for side in range(2):
                if ((sides >> side) & 1) == 1:
                    if may_share_world(field, near, first + side):
                        found = append_sub_pair(out, found, first + side)
            col += 1
        row += 1
    return found


@wp.func
def top_sub_pairs(field: Field, near: Near, out: SubPairList, start: int) -> int:
    """Triangles of the surface that the shape may meet; one wholly below them does not."""
    found = start
    traversal = begin_traversal(field, near.lower, near.upper)
    while traversal.done == 0:
        passes = not is_under(traversal)
        if not passes:
            heights = range_of(field, traversal)
            if heights.known == 1:
                passes = near.lower[2] > heights.high or near.upper[2] < heights.low
                passes = passes or square_to_square(field, traversal, near.center) >= near.ball * near.ball
        if passes:
            traversal = go_on(traversal)
        elif traversal.level > FIRST:
            traversal = go_down(traversal)
        else:
            found = cell_sub_pairs(field, near, traversal, out, found)
            traversal = go_on(traversal)
    return found


@wp.func
def wall_sub_pairs(field: Field, near: Near, first: int, end: int, out: SubPairList, start: int) -> int:
    """Triangles of the walls below segments first .. end - 1 of the border, as far as the box reaches them."""
    found = start
    walls = 2 * field.rows * field.cols
    for k in range(first, end):
        p = border_vertex(field, k)
        q = border_vertex(field, k + 1)
        if near.lower[2] <= wp.max(height_at(field, p[0], p[1]), height_at(field, q[0], q[1])):
            found = append_sub_pair(out, found, walls + 2 * k)
            found = append_sub_pair(out, found, walls + 2 * k + 1)
    return found


@wp.func
def border_sub_pairs(field: Field, near: Near, out: SubPairList, start: int) -> int:
    """Triangles of the four walls."""
    found = start
    along = field.cols - 1
    up = field.rows - 1
    if near.upper[2] < field.bottom:
        return found
    first_col = col_under(field, near.lower[0])
    last_col = col_under(field, near.upper[0])
    first_row = row_under(field, near.lower[1])
    last_row = row_under(field, near.upper[1])
    if near.lower[0] <= field.half_x and near.upper[0] >= -field.half_x:
        if near.lower[1] <= -field.half_y and near.upper[1] >= -field.half_y:
            found = wall_sub_pairs(field, near, first_col, last_col + 1, out, found)
        if near.lower[1] <= field.half_y and near.upper[1] >= field.half_y:
            behind = 2 * along + up
            found = wall_sub_pairs(field, near, behind - 1 - last_col, behind - first_col, out, found)
    if near.lower[1] <= field.half_y and near.upper[1] >= -field.half_y:
        if near.lower[0] <= field.half_x and near.upper[0] >= field.half_x:
            found = wall_sub_pairs(field, near, along + first_row, along + last_row + 1, out, found)
        if near.lower[0] <= -field.half_x and near.upper[0] >= -field.half_x:
            behind = 2 * along + 2 * up
            found = wall_sub_pairs(field, near, behind - 1 - last_row, behind - first_row, out, found)
    return found


@wp.func
def find_sub_pairs(field: Field, near: Near, out: SubPairList) -> int:
    """Notes every triangle that a shape is to be tested against; of one that is inside, ~ the nearest."""
    found = int(0)
    under_field = (
        near.beneath == 1 and wp.abs(near.middle[0]) <= field.half_x and wp.abs(near.middle[1]) <= field.half_y
    )
    if not under_field:
        found = top_sub_pairs(field, near, out, found)
    found = border_sub_pairs(field, near, out, found)
    if near.beneath == 1:
        reaches = near.upper[2] >= field.bottom
        for axis in range(2):
            half = wp.where(axis == 0, field.half_x, field.half_y)
            reaches = reaches and near.lower[axis] <= half and near.upper[axis] >= -half
        if reaches:
            base = 2 * field.rows * field.cols + 2 * perimeter_of(field)
            found = append_sub_pair(out, found, base)
            found = append_sub_pair(out, found, base + 1)
    elif is_inside(field, near.middle):
        number = int(0)
        if out.first + found < out.end:
            number = nearest_part(field, near.middle).number
        found = append_sub_pair(out, found, ~number)
    return found


@wp.func(inline=True)
def triangles_near(rows: ShapeRows, fields: Heightfields, query: Query, part: int, parts: int, out: SubPairList) -> int:
    """As `find_sub_pairs`, in one part."""
    field = field_of(fields, rows.heightfield[query.row_b])
    near = near_field(rows, query, field)
    return find_sub_pairs(field, near, out)
