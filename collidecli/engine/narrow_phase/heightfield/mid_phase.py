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
from collidecli.engine.geometry.bounds import OUTWARD, bounding_box
from collidecli.engine.geometry.heightfields import (
    FIRST,
    Field,
    border_vertex,
    col_under,
    field_of,
    field_triangle,
    height_at,
    perimeter_of,
    row_under,
    top_triangle,
    x_of,
    y_of,
)
from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH, SPHERE
from collidecli.engine.geometry.support import Primitive, support_point
from collidecli.engine.narrow_phase.heightfield.nearest import is_inside, nearest_part, square_to_square
from collidecli.engine.narrow_phase.heightfield.point import AT_SURFACE, nearest_on_triangle
from collidecli.engine.narrow_phase.heightfield.walk import Walk, begin_walk, go_down, go_on, is_under, range_of
from collidecli.engine.narrow_phase.mesh.mid_phase import Pieces
from collidecli.engine.narrow_phase.mesh.surface import spot_at
from collidecli.engine.narrow_phase.query import hull_of, primitive_of, query_of
from collidecli.engine.narrow_phase.staging import Candidates
from collidecli.engine.workspace import Workspace

# What asks for much comes after what asks for little: an `and` may work out both.
# ruff: noqa: SIM102

TRIES = wp.constant(4)
"""Directions that are looked along: measured, one more costs more than the triangles that it leaves out."""
FEW = wp.constant(8)
"""Triangles of a candidate that are kept when they are counted: most have no more, and are then found once."""
BURIED = wp.constant(1 << 30)
"""Added to the number of the triangle that a shape is nearest to whose middle is inside the solid."""


@wp.struct
class Near:
    """What a shape can reach, in the frame of a heightfield [m]. middle: a point within the shape itself.

    beneath: 1 where the middle is under the base. center, ball: of the shape's own frame, and how far from there it can
    reach. shape, pose: the shape itself, and its frame in the heightfield's; reach: how far it reaches beyond its
    surface. room_end: pieces are written before this place.
    """

    shape: Primitive
    pose: Pose
    reach: Real
    lower: Vec3
    upper: Vec3
    middle: Vec3
    center: Vec3
    ball: Real
    beneath: int
    candidate: int
    room_end: int


@wp.func
def middle_of_hull(shape: HullShape) -> Vec3:
    """A point within a hull, which the middle of its box need not be [m]."""
    total = Vec3()
    for axis in range(3):
        way = Vec3()
        way[axis] = Real(1.0)
        total += support_point(shape, way) + support_point(shape, -way)
    return total / Real(6.0)


@wp.func
def near_field(rows: ShapeRows, instances: Instances, candidates: Candidates, candidate: int, field: Field) -> Near:
    """What the other shape of a candidate can reach."""
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    near = Near()
    near.candidate = candidate
    reach = wp.max(query.reach, Real(0.0))
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    shape_type = rows.type[query.row_a]
    box = bounding_box(shape_type, rows.size[query.row_a], pose_a_to_b, reach)
    near.middle = wp.transform_get_translation(pose_a_to_b)
    # Grown by more than the rounding of the pose.
    slack = Real(1.0e-12) * (
        wp.abs(near.middle[0]) + wp.abs(near.middle[1]) + wp.abs(near.middle[2]) + field.half_x + field.half_y
    )
    near.lower = box.lower - Vec3(slack, slack, slack)
    near.upper = box.upper + Vec3(slack, slack, slack)
    near.shape = primitive_of(rows, query.row_a)
    near.pose = pose_a_to_b
    near.reach = reach + slack
    near.center = near.middle
    near.ball = Real(rows.radius[query.row_a]) * (Real(1.0) + Real(OUTWARD)) + near.reach
    if shape_type == CONVEX_MESH:
        near.middle = wp.transform_point(pose_a_to_b, middle_of_hull(hull_of(rows, query.row_a)))
    if near.middle[2] < field.bottom:
        near.beneath = 1
    return near


@wp.func
def takes(near: Near, piece: wp.array[wp.vec2i], slot: int, number: int) -> int:
    """Notes a piece where there is room; the next one's place."""
    if slot < near.room_end:
        piece[slot] = wp.vec2i(near.candidate, number)
    return slot + 1


@wp.func
def is_clear(triangle: TriangleShape, near: Near, normal: Vec3) -> bool:
    """Whether some of a few directions shows that a triangle is farther from the shape than its reach.

    They are the triangle's normal, and then the way to the middle, and to what of the shape was farthest against it,
    from the triangle's point that is nearest to these: the triangle is behind the plane there.
    """
    rotation = wp.transform_get_rotation(near.pose)
    triangle.normal = normal
    foot = triangle.p
    way = normal
    point = near.middle
    for step in range(TRIES):
        lowest = wp.transform_point(near.pose, support_point(near.shape, -wp.quat_rotate_inv(rotation, way)))
        if wp.dot(way, lowest - foot) > near.reach:
            return True
        if step > 0:
            point = lowest
        foot = nearest_on_triangle(triangle, point)
        length = wp.length(point - foot)
        if length <= AT_SURFACE * wp.length(triangle.q - triangle.p):
            return False
        way = (point - foot) / length
    return False


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
        above = x * y * middle[2] - rise_x * middle[0] - rise_y * middle[1]
        is_near = above <= x * y * half[2] + wp.abs(rise_x) * half[0] + wp.abs(rise_y) * half[1]
        if is_near and wp.where(side == 0, across, -across) <= spread:
            sides = sides | (1 << side)
    return sides


@wp.func
def sphere_meets(field: Field, near: Near, number: int) -> bool:
    """Whether a sphere has a contact with a triangle: of the many within reach few have the nearest point as theirs."""
    triangle = field_triangle(field, number)
    foot = nearest_on_triangle(triangle, near.middle)
    distance = wp.length(near.middle - foot)
    radius = near.shape.size[0]
    if distance - radius >= near.reach:
        return False
    if distance <= AT_SURFACE * radius:
        return True
    return spot_at(field, triangle, foot, (near.middle - foot) / distance).belongs == 1


@wp.func
def may_meet(field: Field, near: Near, number: int) -> bool:
    """Whether a triangle that the box meets may have a contact with the shape."""
    if near.shape.type == SPHERE:
        return sphere_meets(field, near, number)
    if near.shape.type == CONVEX_MESH:
        return True
    triangle = top_triangle(field, number)
    normal = wp.cross(triangle.q - triangle.p, triangle.r - triangle.p)
    return not is_clear(triangle, near, wp.normalize(normal))


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
def write_field_triangles(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    end: wp.array[wp.int32],
    few: wp.array[wp.vec2i],
    piece: wp.array[wp.vec2i],
):
    """One thread a candidate: its number and each triangle, in an order that the heightfield alone determines."""
    thread = wp.tid()
    slot = int(0)
    if thread > 0:
        slot = end[thread - 1]
    count = end[thread] - slot
    if count > FEW:
        pieces_of(rows, instances, candidates, order[start + thread], piece, slot, count)
    else:
        for k in range(count):
            piece[slot + k] = few[thread * FEW + k]


def find_field_triangles(
    name: str, shared: list[Any], order: wp.array, start: int, size: int, workspace: Workspace
) -> Pieces:
    """As `mesh.mid_phase.find_triangles`, for the rooms of heightfields."""
    end = workspace.array(f"{name}_end", size, wp.int32)
    few = workspace.array(f"{name}_few", size * int(FEW), wp.vec2i)
    arguments = [*shared, order, start, end, few]
    workspace.launch(count_field_triangles, size, arguments)
    count = scan_counts(workspace, end, size)
    piece = workspace.array(f"{name}_piece", count, wp.vec2i)
    workspace.launch(write_field_triangles, size, [*arguments, piece])
    return Pieces(piece, end, count)
