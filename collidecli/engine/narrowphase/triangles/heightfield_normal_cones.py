"""Which directions belong to an edge or vertex of a heightfield (see `mesh.surface`), from its place in the grid."""

import warp as wp

from collidecli.engine.geometry.heightfields import (
    Field,
    perimeter_of,
    vertex_at,
    wall_normal,
)
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.triangle_features import corner_of
from collidecli.engine.narrowphase.triangles.normal_cone import RISE, NormalCone

# A vertex beyond the border must not be asked for, whatever an `and` works out.
# ruff: noqa: SIM102

DOWN = wp.constant(Vec3(Real(0.0), Real(0.0), Real(-1.0)))
UP = wp.constant(Vec3(Real(0.0), Real(0.0), Real(1.0)))


@wp.func
def rises(direction: Vec3, along: Vec3) -> bool:
    """Whether a vector leads up along a unit direction."""
    return wp.dot(direction, along) > RISE * wp.length(along)


@wp.func
def rises_across(direction: Vec3, along: Vec3, inward: Vec3) -> bool:
    """Whether a face rises from its edge, which runs along a unit vector."""
    return rises(direction, inward - wp.dot(inward, along) * along)


@wp.func
def normal_cone_of_top_edge(field: Field, shape: TriangleShape, k: int, direction: Vec3) -> NormalCone:
    """Of an edge of the surface: its two triangles, or its triangle and the wall below it."""
    normal_cone = NormalCone()
    start = corner_of(shape, k)
    along = wp.normalize(corner_of(shape, k + 1) - start)
    v = shape.edge[k] >> 3
    kind = shape.edge[k] & 7
    row = v / field.cols
    col = v - row * field.cols
    # What lies across: a vertex on either side, which is outside of the grid at the border.
    row_a = row + 1
    col_a = col + 1
    row_b = row - 1
    col_b = col
    if kind == 2:
        row_b = row
        col_b = col - 1
    elif kind == 3:
        row_a = row
        row_b = row + 1
    normal_cone.outward = UP
    normal_cone.belongs = 1
    if row_a >= field.rows or col_a >= field.cols or row_b < 0 or col_b < 0:
        # No point inside is nearest to the rim, where a wall and the surface meet.
        normal_cone.outward = direction
        if rises_across(direction, along, DOWN):
            normal_cone.belongs = 0
    if row_a < field.rows and col_a < field.cols:
        if rises_across(direction, along, vertex_at(field, row_a, col_a) - start):
            normal_cone.belongs = 0
    if row_b >= 0 and col_b >= 0:
        if rises_across(direction, along, vertex_at(field, row_b, col_b) - start):
            normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_of_top_vertex(field: Field, v: int, direction: Vec3) -> NormalCone:
    """Of a vertex of the surface: its up to six neighbours, and the upright edge below it."""
    normal_cone = NormalCone()
    row = v / field.cols
    col = v - row * field.cols
    point = vertex_at(field, row, col)
    normal_cone.outward = UP
    normal_cone.belongs = 1
    if row == 0 or col == 0 or row == field.rows - 1 or col == field.cols - 1:
        normal_cone.outward = direction
        if rises(direction, DOWN):
            normal_cone.belongs = 0
    for r in range(-1, 2):
        for c in range(-1, 2):
            # Diagonals run from low to high: of the corners across, (1, 1) and (-1, -1) are neighbours.
            is_neighbor = (r == 0 or c == 0 or r == c) and (r != 0 or c != 0)
            inside = row + r >= 0 and row + r < field.rows and col + c >= 0 and col + c < field.cols
            if is_neighbor and inside:
                if rises(direction, vertex_at(field, row + r, col + c) - point):
                    normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_under_border(field: Field, k: int, kind: int, direction: Vec3) -> NormalCone:
    """Of what lies below vertex k of the border: kind 0 to 3, see `geometry.heightfields`."""
    normal_cone = NormalCone()
    before = k - 1
    if before < 0:
        before = perimeter_of(field) - 1
    normal = wall_normal(field, k)
    normal_before = wall_normal(field, before)
    # The border runs counterclockwise: along a wall is its normal turned by a quarter.
    ahead = Vec3(-normal[1], normal[0], Real(0.0))
    back = Vec3(normal_before[1], -normal_before[0], Real(0.0))
    normal_cone.belongs = 1
    if kind == 0:
        normal_cone.outward = direction
        if rises(direction, UP) or rises(direction, ahead) or rises(direction, back) or rises(direction, -normal):
            normal_cone.belongs = 0
    elif kind == 1:
        normal_cone.outward = direction
        if rises(direction, UP) or rises(direction, -normal):
            normal_cone.belongs = 0
    elif kind == 2:
        normal_cone.outward = normal + normal_before
        if rises(direction, ahead) or rises(direction, back):
            normal_cone.belongs = 0
    else:
        normal_cone.outward = normal
        if wp.length(wp.cross(normal, direction)) > RISE:
            normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_of_field_edge(field: Field, shape: TriangleShape, k: int, direction: Vec3) -> NormalCone:
    """Whether a unit direction belongs to the inside of side k of a triangle;
    to none of the base's sides, which the walls have.
    """
    under = 8 * field.rows * field.cols
    code = shape.edge[k]
    if code < under:
        return normal_cone_of_top_edge(field, shape, k, direction)
    if code < under + 8 * perimeter_of(field):
        return normal_cone_under_border(field, (code - under) >> 3, code & 7, direction)
    return NormalCone()


@wp.func
def normal_cone_of_field_vertex(field: Field, shape: TriangleShape, k: int, direction: Vec3) -> NormalCone:
    """Whether a unit direction belongs to corner k of a triangle."""
    under = 8 * field.rows * field.cols
    if shape.number >= 2 * field.rows * field.cols + 2 * perimeter_of(field):
        return NormalCone()
    if shape.vertex[k] < under:
        return normal_cone_of_top_vertex(field, shape.vertex[k] >> 3, direction)
    return normal_cone_under_border(field, (shape.vertex[k] - under) >> 3, 0, direction)
