"""Between broad and narrow phase: which triangles of its heightfield each candidate is to be tested against.

They are found from the place of the other shape's box in the grid. A pyramid of the heights' ranges passes over squares
that the box does not reach.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import (
    FIRST,
    Field,
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
from collidecli.engine.narrow_phase.heightfield.near import Near, extent_along, may_meet, near_field
from collidecli.engine.narrow_phase.heightfield.nearest import is_inside, nearest_part, square_to_square
from collidecli.engine.narrow_phase.heightfield.walk import Walk, begin_walk, go_down, go_on, is_under, range_of
from collidecli.engine.narrow_phase.mesh.mid_phase import Pieces
from collidecli.engine.narrow_phase.staging import Candidates
from collidecli.engine.workspace import Workspace

# What asks for much comes after what asks for little: an `and` may work out both.
# ruff: noqa: SIM102

FEW = wp.constant(8)
"""Triangles of a candidate that are kept when they are counted: most have no more, and are then found once."""
BURIED = wp.constant(1 << 30)
"""Added to the number of the triangle that a shape is nearest to whose middle is inside the solid."""


@wp.func
def takes(near: Near, piece: wp.array[wp.vec2i], slot: int, number: int) -> int:
    """Notes a piece where there is room; the next one's place."""
    if slot < near.room_end:
        piece[slot] = wp.vec2i(near.candidate, number)
    return slot + 1


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
def cell_pieces(field: Field, near: Near, walk: Walk, piece: wp.array[wp.vec2i], start: int) -> int:
    """Triangles of the cells of the square in hand, as `top_pieces`."""
    slot = start
    row = wp.max(walk.i << walk.level, walk.first_row)
    last_row = wp.min(((walk.i + 1) << walk.level) - 1, walk.last_row)
    last_col = wp.min(((walk.j + 1) << walk.level) - 1, walk.last_col)
    while row <= last_row:
        col = wp.max(walk.j << walk.level, walk.first_col)
        while col <= last_col:
            sides = sides_near(field, near, row, col)
            first = 2 * (row * field.cols + col)
            for side in range(2):
                if ((sides >> side) & 1) == 1:
                    if may_meet(field, near, first + side):
                        slot = takes(near, piece, slot, first + side)
            col += 1
        row += 1
    return slot


@wp.func
def top_pieces(field: Field, near: Near, piece: wp.array[wp.vec2i], start: int) -> int:
    """Triangles of the surface that the shape may meet; one wholly below them does not."""
    slot = start
    walk = begin_walk(field, near.lower, near.upper)
    while walk.done == 0:
        passes = not is_under(walk)
        if not passes:
            heights = range_of(field, walk)
            if heights.known == 1:
                passes = near.lower[2] > heights.high or near.upper[2] < heights.low
                passes = passes or square_to_square(field, walk, near.center) >= near.ball * near.ball
        if passes:
            walk = go_on(walk)
        elif walk.level > FIRST:
            walk = go_down(walk)
        else:
            slot = cell_pieces(field, near, walk, piece, slot)
            walk = go_on(walk)
    return slot


@wp.func
def wall_pieces(field: Field, near: Near, first: int, end: int, piece: wp.array[wp.vec2i], start: int) -> int:
    """Triangles of the walls below segments first .. end - 1 of the border, as far as the box reaches them."""
    slot = start
    walls = 2 * field.rows * field.cols
    for k in range(first, end):
        p = border_vertex(field, k)
        q = border_vertex(field, k + 1)
        if near.lower[2] <= wp.max(height_at(field, p[0], p[1]), height_at(field, q[0], q[1])):
            slot = takes(near, piece, slot, walls + 2 * k)
            slot = takes(near, piece, slot, walls + 2 * k + 1)
    return slot


@wp.func
def border_pieces(field: Field, near: Near, piece: wp.array[wp.vec2i], start: int) -> int:
    """Triangles of the four walls."""
    slot = start
    along = field.cols - 1
    up = field.rows - 1
    if near.upper[2] < field.bottom:
        return slot
    first_col = col_under(field, near.lower[0])
    last_col = col_under(field, near.upper[0])
    first_row = row_under(field, near.lower[1])
    last_row = row_under(field, near.upper[1])
    if near.lower[0] <= field.half_x and near.upper[0] >= -field.half_x:
        if near.lower[1] <= -field.half_y and near.upper[1] >= -field.half_y:
            slot = wall_pieces(field, near, first_col, last_col + 1, piece, slot)
        if near.lower[1] <= field.half_y and near.upper[1] >= field.half_y:
            behind = 2 * along + up
            slot = wall_pieces(field, near, behind - 1 - last_col, behind - first_col, piece, slot)
    if near.lower[1] <= field.half_y and near.upper[1] >= -field.half_y:
        if near.lower[0] <= field.half_x and near.upper[0] >= field.half_x:
            slot = wall_pieces(field, near, along + first_row, along + last_row + 1, piece, slot)
        if near.lower[0] <= -field.half_x and near.upper[0] >= -field.half_x:
            behind = 2 * along + 2 * up
            slot = wall_pieces(field, near, behind - 1 - last_row, behind - first_row, piece, slot)
    return slot


@wp.func
def find_pieces(field: Field, near: Near, piece: wp.array[wp.vec2i], start: int) -> int:
    """Every triangle that a shape is to be tested against, from `start` on; the end."""
    slot = start
    under_field = (
        near.beneath == 1 and wp.abs(near.middle[0]) <= field.half_x and wp.abs(near.middle[1]) <= field.half_y
    )
    if not under_field:
        slot = top_pieces(field, near, piece, slot)
    slot = border_pieces(field, near, piece, slot)
    if near.beneath == 1:
        reaches = near.upper[2] >= field.bottom
        for axis in range(2):
            half = wp.where(axis == 0, field.half_x, field.half_y)
            reaches = reaches and near.lower[axis] <= half and near.upper[axis] >= -half
        if reaches:
            base = 2 * field.rows * field.cols + 2 * perimeter_of(field)
            slot = takes(near, piece, slot, base)
            slot = takes(near, piece, slot, base + 1)
    elif is_inside(field, near.middle):
        number = int(0)
        if slot < near.room_end:
            number = nearest_part(field, near.middle).number
        slot = takes(near, piece, slot, number + BURIED)
    return slot


@wp.func
def pieces_of(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    candidate: int,
    piece: wp.array[wp.vec2i],
    start: int,
    room: int,
) -> int:
    """How many triangles a candidate may meet; the first `room` of them are written from `start` on."""
    row = candidates.row[candidate]
    field = field_of(rows.heightfields, wp.max(rows.heightfield[row[0]], rows.heightfield[row[1]]))
    near = near_field(rows, instances, candidates, candidate, field)
    near.room_end = start + room
    return find_pieces(field, near, piece, start) - start


@wp.kernel(module="unique", enable_backward=False)
def count_field_triangles(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    end: wp.array[wp.int32],
    few: wp.array[wp.vec2i],
):
    """One thread a candidate of a bucket: how many triangles it may meet, and the first FEW of them."""
    thread = wp.tid()
    end[thread] = pieces_of(rows, instances, candidates, order[start + thread], few, thread * FEW, FEW)


@wp.kernel(module="unique", enable_backward=False)
def copy_field_triangles(
    end: wp.array[wp.int32], few: wp.array[wp.vec2i], piece: wp.array[wp.vec2i], most: wp.array[wp.int32]
):
    """One thread a candidate: the triangles that were kept when they were counted; most: the largest count."""
    thread = wp.tid()
    slot = int(0)
    if thread > 0:
        slot = end[thread - 1]
    count = end[thread] - slot
    if count <= FEW:
        for k in range(count):
            piece[slot + k] = few[thread * FEW + k]
    else:
        wp.atomic_max(most, 0, count)


@wp.kernel(module="unique", enable_backward=False)
def write_field_triangles(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    end: wp.array[wp.int32],
    piece: wp.array[wp.vec2i],
):
    """One thread a candidate with more: its number and each triangle, in an order that the field alone determines."""
    thread = wp.tid()
    slot = int(0)
    if thread > 0:
        slot = end[thread - 1]
    count = end[thread] - slot
    if count > FEW:
        pieces_of(rows, instances, candidates, order[start + thread], piece, slot, count)


def find_field_triangles(
    name: str, shared: list[Any], order: wp.array, start: int, size: int, workspace: Workspace
) -> Pieces:
    """As `mesh.mid_phase.find_triangles`, for the rooms of heightfields."""
    end = workspace.array(f"{name}_end", size, wp.int32)
    few = workspace.array(f"{name}_few", size * int(FEW), wp.vec2i)
    workspace.launch(count_field_triangles, size, [*shared, order, start, end, few])
    count = scan_counts(workspace, end, size)
    piece = workspace.array(f"{name}_piece", count, wp.vec2i)
    most = workspace.array("field_most", 1, wp.int32)
    most.zero_()
    workspace.launch(copy_field_triangles, size, [end, few, piece, most])
    # Seldom: even to pass over all candidates would take a tenth of what counting takes.
    if workspace.last(most, 1) > int(FEW):
        workspace.launch(write_field_triangles, size, [*shared, order, start, end, piece])
    return Pieces(piece, end, count)
