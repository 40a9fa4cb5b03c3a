"""Triangles of a heightfield as those of a closed mesh: the accessors of `triangle_source`, from the grid.

Features common to the surface and a wall are owned by the wall, as are those common to a wall and the base: see
`owned_of_face`.
"""

import warp as wp

from collidecli.engine.geometry.elementary import arc_tangent
from collidecli.engine.geometry.heightfields import (
    Field,
    base_begins,
    border_vertex,
    named_triangle,
    perimeter_of,
    top_triangle,
    vertex_at,
    wall_normal,
    walls_begin,
)
from collidecli.engine.geometry.mesh_nearest import (
    EDGE_PART,
    FACE_PART,
    MeshPoint,
    is_left_of_edge,
    nearest_triangle_point,
)
from collidecli.engine.geometry.meshes import SALIENT, TriangleShape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.triangle_features import corner_of
from collidecli.engine.narrowphase.triangles.normal_cones import (
    DOWN,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an `and`.
# ruff: noqa: SIM102

FOLDED = wp.constant(Real(-0.9))
"""Cosine of two normals below which the edge between their triangles is salient for any sine, as for meshes."""
HALF_TURN = wp.constant(Real(3.141592653589793))


@wp.func
def is_cell(field: Field, row: int, col: int) -> bool:
    """Whether a cell exists."""
    return row >= 0 and col >= 0 and row < field.rows - 1 and col < field.cols - 1


@wp.func
def normal_of(shape: TriangleShape) -> Vec3:
    """Unit normal of a triangle from its corners, as in `field_triangle`."""
    across = wp.cross(shape.q - shape.p, shape.r - shape.p)
    return across / wp.length(across)


@wp.func
def face_corner(field: Field, number: int, k: int) -> Vec3:
    """Corner 0, 1 or 2 of a triangle; 3 and 4 are 0 and 1 again."""
    return corner_of(named_triangle(field, number), k % 3)


@wp.func
def face_normal(field: Field, number: int) -> Vec3:
    """Unit outward normal of a triangle."""
    return normal_of(named_triangle(field, number))


@wp.func
def border_segment_of(field: Field, number: int, k: int) -> int:
    """The border segment along side k of a triangle of the surface; -1 inside the grid."""
    v = number >> 1
    row = v / field.cols
    col = v - row * field.cols
    along = field.cols - 1
    up = field.rows - 1
    if number & 1 == 0:
        if k == 0 and row == 0:
            return col
        if k == 1 and col == along - 1:
            return along + row
    else:
        if k == 1 and row == up - 1:
            return 2 * along + up - 1 - col
        if k == 2 and col == 0:
            return 2 * along + 2 * up - 1 - row
    return -1


@wp.func
def top_across(field: Field, number: int, k: int) -> int:
    """The neighbour of a surface triangle across side k, which must not be at the border."""
    v = number >> 1
    if number & 1 == 0:
        if k == 0:
            return 2 * (v - field.cols) + 1
        return wp.where(k == 1, 2 * (v + 1) + 1, number + 1)
    if k == 0:
        return number - 1
    return wp.where(k == 1, 2 * (v + field.cols), 2 * (v - 1))


@wp.func
def top_along(field: Field, segment: int) -> int:
    """The triangle of the surface along a border segment."""
    along = field.cols - 1
    up = field.rows - 1
    if segment < along:
        return 2 * segment
    if segment < along + up:
        return 2 * ((segment - along) * field.cols + along - 1)
    if segment < 2 * along + up:
        return 2 * ((up - 1) * field.cols + 2 * along + up - 1 - segment) + 1
    return 2 * ((2 * along + 2 * up - 1 - segment) * field.cols) + 1


@wp.func
def is_ridge(normal: Vec3, start: Vec3, end: Vec3, normal_across: Vec3, across: Vec3) -> bool:
    """Whether the edge between two triangles is salient, as in `Meshes.owned`. across: the second's far corner."""
    along = wp.normalize(end - start)
    inward = across - start
    inward -= wp.dot(inward, along) * along
    rises = wp.dot(normal, inward)
    return rises < Real(-SALIENT) * wp.length(inward) or wp.dot(normal, normal_across) < FOLDED


@wp.func
def is_top_ridge(field: Field, shape: TriangleShape, k: int) -> bool:
    """Whether side k of a triangle of the surface is salient; all sides at the border are."""
    if border_segment_of(field, shape.number, k) >= 0:
        return True
    other = named_triangle(field, top_across(field, shape.number, k))
    # The corner of the other triangle that is not on the side.
    far = other.p
    if shape.edge[k] == other.edge[0]:
        far = other.r
    elif shape.edge[k] == other.edge[2]:
        far = other.q
    return is_ridge(normal_of(shape), corner_of(shape, k), corner_of(shape, k + 1), normal_of(other), far)


@wp.func
def neighbor(k: int) -> wp.vec2i:
    """Row and column offset of neighbour k of 6 of a vertex, counterclockwise from +x; 6 is 0 again."""
    if k == 1:
        return wp.vec2i(1, 1)
    if k == 2:
        return wp.vec2i(1, 0)
    if k == 3:
        return wp.vec2i(0, -1)
    if k == 4:
        return wp.vec2i(-1, -1)
    if k == 5:
        return wp.vec2i(-1, 0)
    return wp.vec2i(0, 1)


@wp.func
def is_top_peak(field: Field, v: int) -> bool:
    """Whether a vertex inside the grid has a salient edge."""
    row = v / field.cols
    col = v - row * field.cols
    point = vertex_at(field, row, col)
    before = vertex_at(field, row - 1, col)
    here = vertex_at(field, row, col + 1)
    for k in range(6):
        to = neighbor(k + 1)
        ahead = vertex_at(field, row + to[0], col + to[1])
        normal = wp.normalize(wp.cross(before - point, here - point))
        if is_ridge(normal, point, here, wp.normalize(wp.cross(here - point, ahead - point)), ahead):
            return True
        before = here
        here = ahead
    return False


@wp.func
def owned_of_face(field: Field, number: int) -> int:
    """The first six bits of `Meshes.owned`: the corners and sides that a triangle owns.

    Inside the grid a cell's lower triangle owns the cell's low corner and its sides along +x and the diagonal, the
    upper triangle the side along +y. A wall owns all features that it touches, by its segment.
    """
    if number >= base_begins(field):
        return wp.where(number & 1 == 0, 1 << 5, 0)
    if number >= walls_begin(field):
        return wp.where(number & 1 == 0, 1 | 1 << 3, 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5)
    v = number >> 1
    row = v / field.cols
    col = v - row * field.cols
    if number & 1 == 1:
        return wp.where(col > 0, 1 << 5, 0)
    bits = int(1 << 5)
    if row > 0:
        bits = bits | 1 << 3
        if col > 0:
            bits = bits | 1
    return bits


@wp.func(inline=False)
def bits_of_face(field: Field, number: int, of_own: bool) -> int:
    """Bits as in `Meshes.owned`. of_own: salient corners and sides among those that the triangle owns; else all salient
    sides, and no corners."""
    owned = owned_of_face(field, number)
    if number >= base_begins(field):
        return owned
    if number >= walls_begin(field):
        # All rims and corners of the walls are salient, except diagonals and flat vertical edges.
        segment = (number - walls_begin(field)) >> 1
        if number & 1 == 0:
            upright = wp.dot(wall_normal(field, segment), wall_normal(field, (segment + 1) % perimeter_of(field)))
            bits = owned | 1 << 6 | 1 << 9
            return wp.where(upright < Real(0.5), bits | 1 << 10, bits)
        before = wall_normal(field, (segment + perimeter_of(field) - 1) % perimeter_of(field))
        bits = owned | 1 << 8 | 1 << 10
        return wp.where(wp.dot(wall_normal(field, segment), before) < Real(0.5), bits | 1 << 11, bits)
    bits = owned
    shape = top_triangle(field, number)
    shape.number = number
    for k in range(3):
        if not of_own or ((owned >> (3 + k)) & 1) == 1:
            if is_top_ridge(field, shape, k):
                bits = bits | 1 << (9 + k)
    if of_own and (owned & 1) == 1:
        if is_top_peak(field, number >> 1):
            bits = bits | 1 << 6
    return bits


@wp.func
def angle_between(u: Vec3, v: Vec3) -> Real:
    """Angle between two vectors [rad]."""
    return arc_tangent(wp.length(wp.cross(u, v)), wp.dot(u, v))


@wp.func(inline=False)
def outward_at_top(field: Field, v: int) -> Vec3:
    """Sum of the normals around a vertex of the surface, walls included, weighted by angle."""
    row = v / field.cols
    col = v - row * field.cols
    point = vertex_at(field, row, col)
    result = Vec3()
    for k in range(6):
        here = neighbor(k) + wp.vec2i(row, col)
        ahead = neighbor(k + 1) + wp.vec2i(row, col)
        low = wp.vec2i(wp.min(row, wp.min(here[0], ahead[0])), wp.min(col, wp.min(here[1], ahead[1])))
        if is_cell(field, low[0], low[1]):
            a = vertex_at(field, here[0], here[1]) - point
            b = vertex_at(field, ahead[0], ahead[1]) - point
            result += angle_between(a, b) * wp.normalize(wp.cross(a, b))
    segment = border_number(field, row, col)
    if segment >= 0:
        count = perimeter_of(field)
        before = (segment + count - 1) % count
        there = border_vertex(field, segment + 1)
        result += angle_between(vertex_at(field, there[0], there[1]) - point, DOWN) * wall_normal(field, segment)
        there = border_vertex(field, before)
        result += angle_between(vertex_at(field, there[0], there[1]) - point, DOWN) * wall_normal(field, before)
    return result


@wp.func
def border_number(field: Field, row: int, col: int) -> int:
    """Index of a vertex among the border vertices, -1 inside; see `border_vertex`."""
    along = field.cols - 1
    up = field.rows - 1
    if row == 0:
        return col
    if col == along:
        return along + row
    if row == up:
        return 2 * along + up - col
    if col == 0:
        return 2 * along + 2 * up - row
    return -1


@wp.func
def outward_of_face(field: Field, number: int, part: int) -> Vec3:
    """Outward vector at a part of a triangle, not unit, as `mesh_nearest.outward_at`."""
    if number >= base_begins(field):
        return DOWN
    shape = named_triangle(field, number)
    if part == FACE_PART:
        return normal_of(shape)
    is_wall = number >= walls_begin(field)
    segment = (number - walls_begin(field)) >> 1
    if part >= EDGE_PART:
        k = part - EDGE_PART
        if is_wall:
            return outward_of_wall_edge(field, segment, 3 * (number & 1) + k)
        segment = border_segment_of(field, number, k)
        if segment >= 0:
            return normal_of(shape) + wall_normal(field, segment)
        return normal_of(shape) + face_normal(field, top_across(field, number, k))
    code = shape.vertex[part]
    if code < 8 * field.rows * field.cols:
        return outward_at_top(field, code >> 3)
    k = (code - 8 * field.rows * field.cols) >> 3
    normal = wall_normal(field, k)
    before = wall_normal(field, (k + perimeter_of(field) - 1) % perimeter_of(field))
    flat = wp.where(wp.dot(normal, before) > Real(0.5), HALF_TURN, Real(0.5) * HALF_TURN)
    return Real(0.5) * HALF_TURN * (normal + before) + flat * DOWN


@wp.func
def outward_of_wall_edge(field: Field, segment: int, side: int) -> Vec3:
    """Sum of the normals beside a wall's edge; side: 0 to 2 of the first of the segment's triangles, 3 to 5."""
    normal = wall_normal(field, segment)
    count = perimeter_of(field)
    if side == 0:
        return normal + DOWN
    if side == 1:
        return normal + wall_normal(field, (segment + 1) % count)
    if side == 4:
        return normal + face_normal(field, top_along(field, segment))
    if side == 5:
        return normal + wall_normal(field, (segment + count - 1) % count)
    return Real(2.0) * normal


@wp.func
def feature_of_face(field: Field, number: int, part: int) -> int:
    """Feature id of a part of a triangle."""
    shape = named_triangle(field, number)
    if part == FACE_PART:
        return shape.face
    if part >= EDGE_PART:
        return shape.edge[part - EDGE_PART]
    return shape.vertex[part]


@wp.func(inline=False)
def closest_point_on_face(field: Field, number: int, point: Vec3) -> MeshPoint:
    """Closest point of a triangle, as `mesh_nearest.mesh_point_on_triangle`."""
    shape = named_triangle(field, number)
    closest = nearest_triangle_point(shape.p, shape.q, shape.r, normal_of(shape), point)
    closest.face = number
    return closest


@wp.func
def goes_left_of_side(shape: TriangleShape, k: int, start: Vec3, end: Vec3) -> bool:
    """Whether a line passes on the left of side k."""
    low = corner_of(shape, k)
    high = corner_of(shape, k + 1)
    if shape.vertex[k] < shape.vertex[(k + 1) % 3]:
        return is_left_of_edge(start, end, low, high, True)
    return is_left_of_edge(start, end, high, low, False)


@wp.func(inline=False)
def is_face_crossed(field: Field, number: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment crosses a triangle, as `mesh_nearest.segment_crosses_triangle`."""
    shape = named_triangle(field, number)
    normal = normal_of(shape)
    if (wp.dot(start - shape.p, normal) >= Real(0.0)) == (wp.dot(end - shape.p, normal) >= Real(0.0)):
        return False
    left = goes_left_of_side(shape, 0, start, end)
    return left == goes_left_of_side(shape, 1, start, end) and left == goes_left_of_side(shape, 2, start, end)
