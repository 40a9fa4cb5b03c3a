"""Triangles of a heightfield as those of a closed mesh: the accessors of `surface`, from the grid.

Features common to the surface and a wall are owned by the wall, as are those common to a wall and
the base: see `owned_of_face`. Normal cones of features (see `NormalCone`) follow from the position
of the feature in the grid. `HeightfieldPair` is the triangle source of the heightfield's solid,
with its interior queries: containment, exit points, chords.
"""

import warp as wp

from collidecli.engine.geometry.elementary_functions import arc_tangent
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
from collidecli.engine.geometry.line_crossings import line_crosses_triangle
from collidecli.engine.geometry.mesh_points import (
    EDGE_PART,
    FACE_PART,
    MeshPoint,
    NormalCone,
    nearest_triangle_point,
    rises,
    rises_across,
)
from collidecli.engine.geometry.meshes import SALIENT, Meshes, TriangleShape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.features import corner_of
from collidecli.engine.narrowphase.triangles.heightfield_inside import (
    foot_on_side,
    height_over,
    is_inside,
    is_nearer_on_field,
    nearest_part,
    wall_under,
)
from collidecli.engine.narrowphase.triangles.heightfield_near_segment import (
    begin_near_segment,
    next_near_segment,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an
# `and`.
# ruff: noqa: SIM102

FOLDED = wp.constant(Real(-0.9))
"""Cosine of two normals below which the edge between their triangles is salient for any sine, as
for meshes."""
HALF_TURN = wp.constant(Real(3.141592653589793))
DOWN = wp.constant(Vec3(Real(0.0), Real(0.0), Real(-1.0)))


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
    """Whether the edge between two triangles is salient, as in `Meshes.owned`. across: the second's
    far corner."""
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
    return is_ridge(
        normal_of(shape), corner_of(shape, k), corner_of(shape, k + 1), normal_of(other), far
    )


@wp.func
def neighbor(k: int) -> wp.vec2i:
    """Row and column offset of neighbour k of 6 of a vertex, counterclockwise from +x; 6 is 0
    again."""
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
    beside = vertex_at(field, row, col + 1)
    for k in range(6):
        to = neighbor(k + 1)
        ahead = vertex_at(field, row + to[0], col + to[1])
        normal = wp.normalize(wp.cross(before - point, beside - point))
        if is_ridge(
            normal, point, beside, wp.normalize(wp.cross(beside - point, ahead - point)), ahead
        ):
            return True
        before = beside
        beside = ahead
    return False


@wp.func
def owned_of_face(field: Field, number: int) -> int:
    """The first six bits of `Meshes.owned`: the corners and sides that a triangle owns.

    Inside the grid a cell's lower triangle owns the cell's low corner and its sides along +x and
    the diagonal, the upper triangle the side along +y. A wall owns all features that it touches, by
    its segment.
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
    """Bits as in `Meshes.owned`. of_own: salient corners and sides among those that the triangle
    owns; else all salient sides, and no corners."""
    owned = owned_of_face(field, number)
    if number >= base_begins(field):
        return owned
    if number >= walls_begin(field):
        # All rims and corners of the walls are salient, except diagonals and flat vertical edges.
        segment = (number - walls_begin(field)) >> 1
        if number & 1 == 0:
            upright = wp.dot(
                wall_normal(field, segment), wall_normal(field, (segment + 1) % perimeter_of(field))
            )
            bits = owned | 1 << 6 | 1 << 9
            return wp.where(upright < Real(0.5), bits | 1 << 10, bits)
        before = wall_normal(field, (segment + perimeter_of(field) - 1) % perimeter_of(field))
        bits = owned | 1 << 8 | 1 << 10
        return wp.where(
            wp.dot(wall_normal(field, segment), before) < Real(0.5), bits | 1 << 11, bits
        )
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
        vertex = neighbor(k) + wp.vec2i(row, col)
        ahead = neighbor(k + 1) + wp.vec2i(row, col)
        low = wp.vec2i(
            wp.min(row, wp.min(vertex[0], ahead[0])), wp.min(col, wp.min(vertex[1], ahead[1]))
        )
        if low[0] >= 0 and low[1] >= 0 and low[0] < field.rows - 1 and low[1] < field.cols - 1:
            a = vertex_at(field, vertex[0], vertex[1]) - point
            b = vertex_at(field, ahead[0], ahead[1]) - point
            result += angle_between(a, b) * wp.normalize(wp.cross(a, b))
    segment = border_number(field, row, col)
    if segment >= 0:
        count = perimeter_of(field)
        before = (segment + count - 1) % count
        corner = border_vertex(field, segment + 1)
        result += angle_between(vertex_at(field, corner[0], corner[1]) - point, DOWN) * wall_normal(
            field, segment
        )
        corner = border_vertex(field, before)
        result += angle_between(vertex_at(field, corner[0], corner[1]) - point, DOWN) * wall_normal(
            field, before
        )
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
    """Sum of the normals beside a wall's edge; side: 0 to 2 of the first of the segment's
    triangles, 3 to 5."""
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


@wp.func(inline=False)
def is_face_crossed(field: Field, number: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment crosses a triangle, as `meshes.segment_crosses_triangle`."""
    shape = named_triangle(field, number)
    normal = normal_of(shape)
    if (wp.dot(start - shape.p, normal) >= Real(0.0)) == (
        wp.dot(end - shape.p, normal) >= Real(0.0)
    ):
        return False
    return line_crosses_triangle(start, end - start, shape.p, shape.q, shape.r)


UP = wp.constant(Vec3(Real(0.0), Real(0.0), Real(1.0)))


@wp.func
def normal_cone_of_top_edge(
    field: Field, shape: TriangleShape, k: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of an edge of the surface: of its two triangles, or its triangle and the wall
    below it."""
    normal_cone = NormalCone()
    start = corner_of(shape, k)
    along = wp.normalize(corner_of(shape, k + 1) - start)
    v = shape.edge[k] >> 3
    kind = shape.edge[k] & 7
    row = v / field.cols
    col = v - row * field.cols
    # The vertices across the edge on either side; one is outside the grid at the border.
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
        # No interior point has its closest point on the rim, where a wall joins the surface.
        normal_cone.outward = direction
        if rises_across(direction, along, DOWN, rise):
            normal_cone.belongs = 0
    if row_a < field.rows and col_a < field.cols:
        if rises_across(direction, along, vertex_at(field, row_a, col_a) - start, rise):
            normal_cone.belongs = 0
    if row_b >= 0 and col_b >= 0:
        if rises_across(direction, along, vertex_at(field, row_b, col_b) - start, rise):
            normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_of_top_vertex(field: Field, v: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of a vertex of the surface: of its up to six neighbours, and the vertical edge
    below it."""
    normal_cone = NormalCone()
    row = v / field.cols
    col = v - row * field.cols
    point = vertex_at(field, row, col)
    normal_cone.outward = UP
    normal_cone.belongs = 1
    if row == 0 or col == 0 or row == field.rows - 1 or col == field.cols - 1:
        normal_cone.outward = direction
        if rises(direction, DOWN, rise):
            normal_cone.belongs = 0
    for r in range(-1, 2):
        for c in range(-1, 2):
            # Diagonals run from low to high: of the corners across, (1, 1) and (-1, -1) are
            # neighbours.
            is_neighbor = (r == 0 or c == 0 or r == c) and (r != 0 or c != 0)
            inside = row + r >= 0 and row + r < field.rows and col + c >= 0 and col + c < field.cols
            if is_neighbor and inside:
                if rises(direction, vertex_at(field, row + r, col + c) - point, rise):
                    normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_under_border(
    field: Field, k: int, kind: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of a feature below vertex k of the border: kind 0 to 3, see
    `geometry.heightfields`."""
    normal_cone = NormalCone()
    before = k - 1
    if before < 0:
        before = perimeter_of(field) - 1
    normal = wall_normal(field, k)
    normal_before = wall_normal(field, before)
    # The border runs counterclockwise: the direction along a wall is its normal turned by 90
    # degrees.
    ahead = Vec3(-normal[1], normal[0], Real(0.0))
    back = Vec3(normal_before[1], -normal_before[0], Real(0.0))
    normal_cone.belongs = 1
    if kind == 0:
        normal_cone.outward = direction
        if (
            rises(direction, UP, rise)
            or rises(direction, ahead, rise)
            or rises(direction, back, rise)
            or rises(direction, -normal, rise)
        ):
            normal_cone.belongs = 0
    elif kind == 1:
        normal_cone.outward = direction
        if rises(direction, UP, rise) or rises(direction, -normal, rise):
            normal_cone.belongs = 0
    elif kind == 2:
        normal_cone.outward = normal + normal_before
        if rises(direction, ahead, rise) or rises(direction, back, rise):
            normal_cone.belongs = 0
    else:
        normal_cone.outward = normal
        if wp.length(wp.cross(normal, direction)) > rise:
            normal_cone.belongs = 0
    return normal_cone


@wp.func
def field_edge_cone(
    field: Field, shape: TriangleShape, k: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of the interior of side k of a heightfield triangle; empty for the base: walls
    own its sides."""
    under = 8 * field.rows * field.cols
    code = shape.edge[k]
    if code < under:
        return normal_cone_of_top_edge(field, shape, k, direction, rise)
    if code < under + 8 * perimeter_of(field):
        return normal_cone_under_border(field, (code - under) >> 3, code & 7, direction, rise)
    return NormalCone()


@wp.func
def field_vertex_cone(
    field: Field, shape: TriangleShape, k: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of corner k of a heightfield triangle; empty for the base: walls own its
    corners."""
    under = 8 * field.rows * field.cols
    if shape.number >= 2 * field.rows * field.cols + 2 * perimeter_of(field):
        return NormalCone()
    if shape.vertex[k] < under:
        return normal_cone_of_top_vertex(field, shape.vertex[k] >> 3, direction, rise)
    return normal_cone_under_border(field, (shape.vertex[k] - under) >> 3, 0, direction, rise)


AT_BASE = wp.constant(Real(1.0e-9))
"""Fraction of a heightfield's size: points this close to the level of the base are on it."""


@wp.struct
class HeightfieldPair:
    """The triangle source of a mesh and a heightfield. A surface number below 0 denotes the
    heightfield.

    beneath: 1 where the mesh's middle is below the level of the base; under: 1 where it is also
    below the rectangle. An inner point exits through the base only if `beneath`, and through the
    surface unless `under` (docs/adr/0026).
    """

    meshes: Meshes
    field: Field
    beneath: int
    under: int


@wp.func
def is_exit(heightfield_pair: HeightfieldPair, number: int) -> bool:
    """Whether an inner point may exit through a triangle."""
    if number >= base_begins(heightfield_pair.field):
        return heightfield_pair.beneath == 1
    return heightfield_pair.under == 0 or number >= walls_begin(heightfield_pair.field)


@wp.func(inline=False)
def exit_point(heightfield_pair: HeightfieldPair, point: Vec3) -> MeshPoint:
    """The closest exit point of an inner point; of equally close ones the first, walls before
    surface and base."""
    field = heightfield_pair.field
    number = int(-1)
    least = Real(wp.inf)
    if heightfield_pair.under == 0:
        part = nearest_part(field, point)
        number = part.number
        least = part.distance
    else:
        for segment in range(4):
            foot = foot_on_side(field, segment, point)
            distance = wp.length(foot - point)
            if distance < least and height_over(field, foot) >= point[2]:
                least = distance
                number = wall_under(field, segment, point)
    if heightfield_pair.beneath == 1 and point[2] - field.bottom < least:
        number = base_begins(field)
        # The base is split by its diagonal; seen from below, its first triangle is above it.
        if point[0] * field.half_y > point[1] * field.half_x:
            number += 1
    return closest_point_on_face(field, number, point)


@wp.func(inline=False)
def depth_in_field(heightfield_pair: HeightfieldPair, point: Vec3, touch: Real) -> Real:
    """Depth of a point inside the solid [m]; outside 0 within `touch` [m], else -inf. See
    `surface_interior`."""
    if is_inside(heightfield_pair.field, point):
        return wp.sqrt(exit_point(heightfield_pair, point).square)
    field = heightfield_pair.field
    if (
        point[2] <= field.bottom
        and wp.abs(point[0]) <= field.half_x
        and wp.abs(point[1]) <= field.half_y
    ):
        return wp.where(field.bottom - point[2] <= touch, Real(0.0), -Real(wp.inf))
    return wp.where(is_nearer_on_field(field, point, touch, Vec3()), Real(0.0), -Real(wp.inf))


@wp.func
def bounded_chord(chord: wp.vec2d, at: Real, near: Real, t: Real, enters: bool) -> wp.vec2d:
    """A chord around `at` that ends at a crossing at t, which enters the solid or exits it.

    A crossing at `at` to `near` is before it where it enters, and after it where it exits, so that
    the chord is in the solid whatever the last bit of t.
    """
    is_before = t <= at
    if wp.abs(t - at) <= near:
        is_before = enters
    if is_before:
        return wp.vec2d(wp.max(chord[0], t), chord[1])
    return wp.vec2d(chord[0], wp.min(chord[1], t))


@wp.func(inline=False)
def chord_in_field(field: Field, start: Vec3, end: Vec3, at: Real, near: Real) -> wp.vec2d:
    """The interval of a segment's parameter in which it crosses no triangle, see `chord_of`."""
    chord = wp.vec2d(Real(-1.0), Real(2.0))
    cursor = begin_near_segment(field, start, end, Real(0.0))
    while cursor.number >= 0:
        if is_face_crossed(field, cursor.number, start, end):
            normal = face_normal(field, cursor.number)
            corner = face_corner(field, cursor.number, 0)
            low = wp.dot(normal, start - corner)
            t = low / (low - wp.dot(normal, end - corner))
            chord = bounded_chord(chord, at, near, t, wp.dot(normal, end - start) < Real(0.0))
        cursor = next_near_segment(field, cursor)
    return chord


@wp.func
def deepest_of_part(
    heightfield_pair: HeightfieldPair, start: Vec3, end: Vec3, enters: Real, leaves: Real
) -> Real:
    """The parameter that represents the part of a segment inside: the middle, or its end at a base
    that is no exit."""
    field = heightfield_pair.field
    near = AT_BASE * (field.half_x + field.half_y - field.bottom)
    if (
        heightfield_pair.beneath == 0
        and wp.abs(start[2] + leaves * (end[2] - start[2]) - field.bottom) <= near
    ):
        return leaves + AT_BASE * (enters - leaves)
    if (
        heightfield_pair.beneath == 0
        and wp.abs(start[2] + enters * (end[2] - start[2]) - field.bottom) <= near
    ):
        return enters + AT_BASE * (leaves - enters)
    return Real(0.5) * (enters + leaves)
