"""Feature of a convex shape that supports a direction (face, line or point), and feature ids.

A feature is selected by direction alone. A flat face is selected if the direction is within 26
degrees of its normal (FACE_COSINE), a straight line (edge, side of a cylinder, cone or capsule) if
the direction is within 17 degrees of perpendicular to it (LINE_SINE), else a point. The limits are
wide, so that a shape that rocks on a face keeps the face's contacts while they are closer than the
maximum separation, and narrow enough that no direction selects two faces or two edges of a box: two
faces would need a cosine of at most 0.707, and two components below 0.3 leave a third above 0.9, a
face. So rounding never decides between features, except at the limits themselves.

Feature ids, stable under motion:

- box: one digit in base 3 per axis (x first): 0 low side, 1 middle, 2 high side. Vertices have no
  1, edges one, faces two.
- cylinder: 0, 1 caps at -z, +z; 2 side (and each line of it); 3, 4 rims at -z, +z.
- cone: 0 base; 1 apex; 2 side (and each line of it); 3 rim.
- capsule: 0, 1 ends at -z, +z; 2 side.
- rim polygon (see `feature_corners`) of the lower cap or base: vertex k is 8 + 2 k, the edge from k
  to k + 1 is 9 + 2 k; of the upper cap 20 + 2 k and 21 + 2 k.
- convex hull: 3 v of vertex v, 3 e + 1 of edge e, 3 f + 2 of face f; a side of a face of more than
  RIM_COUNT corners that replaces several edges (see `ConvexHull`) has an id of its own after the
  edges'.
- triangle: ids of a convex hull, of its whole mesh. It has a face on either side.
- sphere and ellipsoid: -1.

The functions are defined for primitives; hulls and triangles have overloads: Warp selects by the
first argument.
"""

import warp as wp

from collidecli.engine.geometry.hulls import (
    CORNERS,
    FACE_ROW,
    HullShape,
    edge_end,
    farthest_vertex,
    hull_number,
    hull_point,
    links_of,
)
from collidecli.engine.geometry.meshes import TriangleShape, square_to_segment
from collidecli.engine.geometry.primitives import Primitive
from collidecli.engine.geometry.real import BOX, CAPSULE, CONE, CYLINDER, Real, Vec3
from collidecli.engine.narrowphase.convex.feature_types import (
    AT_BORDER,
    EDGES,
    FACE,
    FACE_COSINE,
    LINE,
    LINE_SINE,
    LOWER_RIM,
    POINT,
    RIM_CORNERS,
    RIM_SINE,
    UPPER_RIM,
    Feature,
)

# ruff: noqa: F811


@wp.func
def support_feature(shape: Primitive, direction: Vec3) -> Feature:
    """Feature of a shape that supports a unit `direction`, in the shape's frame; `feature_corners`
    has its corners."""
    if shape.type == BOX:
        return _box_feature(shape.size, direction)
    if shape.type == CYLINDER or shape.type == CONE:
        return _round_feature(shape.type, shape.size, direction)
    if shape.type != CAPSULE:
        return _point_or_line(POINT, -1)
    if wp.abs(direction[2]) < LINE_SINE and shape.size[1] > Real(0.0):
        return _point_or_line(LINE, 2)
    return _point_or_line(POINT, wp.where(direction[2] >= Real(0.0), 1, 0))


@wp.func
def _point_or_line(kind: int, code: int) -> Feature:
    return Feature(kind, code, 2 * kind, Vec3(), Real(0.0))


@wp.func
def feature_corners(
    shape: Primitive, feature: Feature, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]
):
    """Writes the corners of a face, in order, or the two ends of a line.

    Args:
        feature, direction: of `support_feature`.
        corner: of length RIM_COUNT; receives the corners [m] in the shape's frame. A disc's are
            those of an inscribed regular hexagon, the first at +x: all its points are on the disc.
            A capsule's line is its axis.
        code: of length MAX_CODES; receives the corners' ids and, for a face, its edges'.
    """
    if shape.type == BOX:
        _box_corners(shape.size, feature, corner, code)
    elif shape.type == CAPSULE:
        corner[0] = Vec3(Real(0.0), Real(0.0), -shape.size[1])
        corner[1] = Vec3(Real(0.0), Real(0.0), shape.size[1])
        code[0] = 0
        code[1] = 1
    elif feature.kind == FACE:
        _rim_corners(shape.size, feature, corner, code)
    else:
        top_radius = wp.where(shape.type == CONE, Real(0.0), shape.size[0])
        across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
        x, y = direction[0] / across, direction[1] / across
        corner[0] = Vec3(shape.size[0] * x, shape.size[0] * y, -shape.size[1])
        corner[1] = Vec3(top_radius * x, top_radius * y, shape.size[1])
        code[0] = 3
        code[1] = wp.where(shape.type == CONE, 1, 4)


@wp.func
def with_facing(shape: Primitive, direction: Vec3) -> Primitive:
    """The shape prepared for feature queries in one unit direction: a hull caches its support
    vertex and face."""
    return shape


@wp.func
def face_normal(shape: Primitive, direction: Vec3) -> Vec3:
    """Outward normal of the flat face that supports a unit direction, in the shape's frame; zero if
    there is none."""
    normal = Vec3()
    if shape.type == BOX:
        for axis in range(3):
            if wp.abs(direction[axis]) >= FACE_COSINE:
                normal[axis] = wp.sign(direction[axis])
    elif direction[2] <= -FACE_COSINE and (shape.type == CYLINDER or shape.type == CONE):
        normal[2] = Real(-1.0)
    elif direction[2] >= FACE_COSINE and shape.type == CYLINDER:
        normal[2] = Real(1.0)
    return normal


@wp.func
def _axis_weight(axis: int) -> int:
    """Value of an axis's digit in a box's ids."""
    return wp.where(axis == 0, 1, wp.where(axis == 1, 3, 9))


@wp.func
def _box_feature(size: Vec3, direction: Vec3) -> Feature:
    x, y, z = wp.abs(direction[0]), wp.abs(direction[1]), wp.abs(direction[2])
    steep = wp.where(z > wp.max(x, y), 2, wp.where(y > x, 1, 0))
    flat = wp.where(z < wp.min(x, y), 2, wp.where(y < x, 1, 0))
    # Selections instead of branches and indices: no direction is more likely than another.
    if wp.max(x, wp.max(y, z)) >= FACE_COSINE:
        along = wp.where(steep == 0, direction[0], wp.where(steep == 1, direction[1], direction[2]))
        side = wp.where(along < Real(0.0), Real(-1.0), Real(1.0))
        normal = _along_axis(steep, side, Real(0.0), Real(0.0))
        narrow_y = wp.min(size[2], size[0])
        narrow_z = wp.min(size[0], size[1])
        half_width = wp.where(
            steep == 0, wp.min(size[1], size[2]), wp.where(steep == 1, narrow_y, narrow_z)
        )
        code = 13 + wp.where(along < Real(0.0), -1, 1) * _axis_weight(steep)
        return Feature(FACE, code, 4, normal, half_width)
    digit_x = wp.where(direction[0] < Real(0.0), 0, 2)
    digit_y = wp.where(direction[1] < Real(0.0), 0, 2)
    digit_z = wp.where(direction[2] < Real(0.0), 0, 2)
    is_line = wp.min(x, wp.min(y, z)) < LINE_SINE
    if is_line:
        digit_x = wp.where(flat == 0, 1, digit_x)
        digit_y = wp.where(flat == 1, 1, digit_y)
        digit_z = wp.where(flat == 2, 1, digit_z)
    return _point_or_line(wp.where(is_line, LINE, POINT), digit_x + 3 * digit_y + 9 * digit_z)


@wp.func
def _along_axis(axis: int, along: Real, first: Real, second: Real) -> Vec3:
    """Vector with the coordinate `along` on one axis, `first` and `second` on the two that follow
    it."""
    if axis == 0:
        return Vec3(along, first, second)
    return Vec3(second, along, first) if axis == 1 else Vec3(first, second, along)


@wp.func
def _box_corners(size: Vec3, feature: Feature, corner: wp.array[Vec3], code: wp.array[int]):
    if feature.kind == LINE:
        low = Vec3(
            wp.where(feature.code % 3 == 2, size[0], -size[0]),
            wp.where(feature.code / 3 % 3 == 2, size[1], -size[1]),
            wp.where(feature.code / 9 == 2, size[2], -size[2]),
        )
        axis = wp.where(feature.code % 3 == 1, 0, wp.where(feature.code / 3 % 3 == 1, 1, 2))
        corner[0] = low
        corner[1] = Vec3(
            wp.where(axis == 0, size[0], low[0]),
            wp.where(axis == 1, size[1], low[1]),
            wp.where(axis == 2, size[2], low[2]),
        )
        code[0] = feature.code - _axis_weight(axis)
        code[1] = feature.code + _axis_weight(axis)
        return
    axis = wp.where(
        feature.normal[0] != Real(0.0), 0, wp.where(feature.normal[1] != Real(0.0), 1, 2)
    )
    along = wp.dot(feature.normal, size)
    u = wp.where(axis == 0, size[1], wp.where(axis == 1, size[2], size[0]))
    v = wp.where(axis == 0, size[2], wp.where(axis == 1, size[0], size[1]))
    weight_u = _axis_weight((axis + 1) % 3)
    weight_v = _axis_weight((axis + 2) % 3)
    corner[0] = _along_axis(axis, along, u, v)
    corner[1] = _along_axis(axis, along, -u, v)
    corner[2] = _along_axis(axis, along, -u, -v)
    corner[3] = _along_axis(axis, along, u, -v)
    code[0] = feature.code + weight_u + weight_v
    code[1] = feature.code - weight_u + weight_v
    code[2] = feature.code - weight_u - weight_v
    code[3] = feature.code + weight_u - weight_v
    code[EDGES] = feature.code + weight_v
    code[EDGES + 1] = feature.code - weight_u
    code[EDGES + 2] = feature.code - weight_v
    code[EDGES + 3] = feature.code + weight_u


@wp.func
def _round_feature(shape_type: int, size: Vec3, direction: Vec3) -> Feature:
    """Feature of a cylinder or a cone."""
    radius = size[0]
    half_height = size[1]
    up = direction[2]
    if up <= -FACE_COSINE or (up >= FACE_COSINE and shape_type == CYLINDER):
        normal = Vec3(Real(0.0), Real(0.0), wp.sign(up))
        return Feature(FACE, wp.where(up > Real(0.0), 1, 0), RIM_CORNERS, normal, radius)
    across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
    off_side = wp.abs(up)
    toward_side = across
    if shape_type == CONE:
        slant = wp.sqrt(Real(4.0) * half_height * half_height + radius * radius)
        off_side = wp.abs(across * radius - up * Real(2.0) * half_height) / slant
        toward_side = (across * Real(2.0) * half_height + up * radius) / slant
    # Closer to a cone's axis than to its side, the lines of the side differ too little to select
    # one: the apex.
    if off_side < LINE_SINE and toward_side > wp.max(up, Real(0.0)):
        return _point_or_line(LINE, 2)
    if shape_type == CONE:
        return _point_or_line(
            POINT, wp.where(Real(2.0) * half_height * up >= radius * across, 1, 3)
        )
    return _point_or_line(POINT, wp.where(up > Real(0.0), 4, 3))


@wp.func
def _rim_corners(size: Vec3, feature: Feature, corner: wp.array[Vec3], code: wp.array[int]):
    """Corners of a flat end of a cylinder or a cone."""
    first = wp.where(feature.code == 1, UPPER_RIM, LOWER_RIM)
    p = Vec3(size[0], Real(0.0), size[1] * feature.normal[2])
    for k in range(RIM_CORNERS):
        corner[k] = p
        code[k] = first + 2 * k
        code[EDGES + k] = first + 2 * k + 1
        p = Vec3(Real(0.5) * p[0] - RIM_SINE * p[1], RIM_SINE * p[0] + Real(0.5) * p[1], p[2])


@wp.func(inline=False)
def feature_at(shape: Primitive, point: Vec3, direction: Vec3) -> int:
    """Id of the smallest feature that contains a surface point (AT_BORDER), farthest along
    `direction`."""
    size = shape.size
    within = Real(1.0) - AT_BORDER
    if shape.type == BOX:
        code = int(0)
        digit = int(1)
        for axis in range(3):
            if point[axis] >= size[axis] * within:
                code += 2 * digit
            elif point[axis] > -size[axis] * within:
                code += digit
            digit = 3 * digit
        return code
    if shape.type == CAPSULE:
        return 2 if wp.abs(point[2]) < size[1] * within else wp.where(point[2] > Real(0.0), 1, 0)
    if shape.type == CYLINDER or shape.type == CONE:
        outside = point[0] * point[0] + point[1] * point[1] >= size[0] * size[0] * within * within
        if point[2] <= -size[1] * within:
            return wp.where(outside, 3, 0)
        return wp.where(outside, 4, 1) if point[2] >= size[1] * within else 2
    return -1


@wp.func(inline=False)
def line_exit(shape: Primitive, line: int, origin: Vec3, direction: Vec3) -> Real:
    """Length of a ray from `origin` along `direction` to its exit from the shape near its feature
    `line`; -inf if it misses.

    All in the shape's frame [m]; direction: unit, within LINE_SINE of perpendicular to the line.
    The exit from the side of a cylinder or cone is between its ends or does not exist; a triangle's
    ends are treated as infinitely far.
    """
    size = shape.size
    result = Real(wp.inf)
    if shape.type == BOX:
        entered = -Real(wp.inf)
        for axis in range(3):
            steep = wp.abs(direction[axis])
            beside = wp.sign(direction[axis]) * origin[axis]
            # Along the edge's own axis, whose digit is 1, the direction may have no component.
            if line % 3 != 1 or steep > Real(0.0):
                result = wp.min(result, (size[axis] - beside) / steep)
                entered = wp.max(entered, (-size[axis] - beside) / steep)
            line = line / 3
        # A box thinner than the offset from its edge is missed by the ray.
        return -Real(wp.inf) if entered > result else result
    # Side: x^2 + y^2 = (radius - taper * z)^2, radius at z = 0.
    radius = size[0]
    taper = Real(0.0)
    if shape.type == CONE:
        radius = Real(0.5) * size[0]
        taper = radius / size[1]
    x = origin[0]
    y = origin[1]
    width = radius - taper * origin[2]
    narrowing = taper * direction[2]
    square = direction[0] * direction[0] + direction[1] * direction[1] - narrowing * narrowing
    half_linear = x * direction[0] + y * direction[1] + width * narrowing
    result = _leaving_root(square, half_linear, x * x + y * y - width * width)
    if shape.type != CAPSULE and wp.abs(origin[2] + result * direction[2]) > size[1]:
        return -Real(wp.inf)
    if shape.type == CAPSULE:
        z = origin[2] + result * direction[2]
        if wp.abs(z) > size[1]:
            to_end = origin - Vec3(Real(0.0), Real(0.0), wp.sign(z) * size[1])
            offset = wp.dot(to_end, to_end) - size[0] * size[0]
            result = _leaving_root(Real(1.0), wp.dot(to_end, direction), offset)
    return result


@wp.func(inline=False)
def is_on_face(shape: Primitive, normal: Vec3, point: Vec3, near: Real) -> bool:
    """Whether a point in the shape's frame is on the flat face with a normal from `face_normal`, to
    `near` [m]."""
    size = shape.size
    if shape.type == BOX:
        off = Real(0.0)
        for axis in range(3):
            beyond = wp.abs(point[axis]) - size[axis]
            if normal[axis] != Real(0.0):
                beyond = wp.abs(normal[axis] * point[axis] - size[axis])
            off = wp.max(off, beyond)
        return off <= near
    off_axis = wp.sqrt(point[0] * point[0] + point[1] * point[1]) - size[0]
    return wp.max(off_axis, wp.abs(normal[2] * point[2] - size[1])) <= near


@wp.func
def _leaving_root(square: Real, half_linear: Real, offset: Real) -> Real:
    """The s at which square s^2 + 2 half_linear s + offset increases through 0; -inf if there is
    none."""
    discriminant = half_linear * half_linear - square * offset
    if discriminant < Real(0.0):
        return -Real(wp.inf)
    root = wp.sqrt(discriminant)
    if half_linear > Real(0.0):
        return -offset / (half_linear + root)
    return -Real(wp.inf) if square <= Real(0.0) else (root - half_linear) / square


LEVEL = wp.constant(Real(1.0e-5))
"""Difference relative to the size below which two vertices are equally far along a direction: ten
times the effect of the error of GJK's directions, 1e-6."""

FACES = wp.constant(Real(1.0e-5))
"""Sine of the angle to a face's normal below which a direction is the face's: search directions are
accurate to 1e-6.
"""


@wp.func
def better_face(shape: HullShape, vertex: int, direction: Vec3, best: int) -> int:
    """Face whose normal is closest to a direction, among those at a vertex and `best` (-1 for
    none)."""
    result = best
    most = wp.dot(hull_point(shape, shape.normal + best), direction) if best >= 0 else Real(-2.0)
    links = links_of(shape, vertex)
    at = links[0]
    end = links[1]
    while at < end:
        face = hull_number(shape, at + 2)
        along = wp.dot(hull_point(shape, shape.normal + face), direction)
        if along > most or (along == most and face < result):
            most = along
            result = face
        at += 3
    return result


@wp.func
def face_toward(shape: HullShape, vertex: int, direction: Vec3) -> int:
    """Face whose normal is closest to a direction, at its support vertex or at one within LEVEL of
    it.

    For an edge perpendicular to the direction, rounding decides which end is `vertex`; the face
    does not depend on that.
    """
    best = better_face(shape, vertex, direction, -1)
    near = LEVEL * wp.max(shape.size)
    level = wp.dot(hull_point(shape, shape.vertex + vertex), direction) - near
    links = links_of(shape, vertex)
    at = links[0]
    end = links[1]
    while at < end:
        neighbor = hull_number(shape, at)
        if wp.dot(hull_point(shape, shape.vertex + neighbor), direction) > level:
            best = better_face(shape, neighbor, direction, best)
        at += 3
    return best


@wp.func(inline=False)
def hull_facing(shape: HullShape, direction: Vec3) -> wp.vec2i:
    """Support vertex and facing face of a direction; the cached ones if present."""
    if shape.facing[0] >= 0:
        return shape.facing
    vertex = farthest_vertex(shape, direction)
    return wp.vec2i(vertex, face_toward(shape, vertex, direction))


@wp.func
def with_facing(shape: HullShape, direction: Vec3) -> HullShape:
    """The hull with cached support vertex and face."""
    result = shape
    result.facing = hull_facing(shape, direction)
    return result


@wp.func
def edge_toward(shape: HullShape, vertex: int, direction: Vec3) -> int:
    """Edge at a vertex that is most nearly perpendicular to a direction."""
    links = links_of(shape, vertex)
    at = links[0]
    end = links[1]
    best = hull_number(shape, at + 1)
    least = Real(2.0)
    while at < end:
        along = hull_point(shape, shape.vertex + hull_number(shape, at)) - hull_point(
            shape, shape.vertex + vertex
        )
        sine = wp.abs(wp.dot(wp.normalize(along), direction))
        if sine < least:
            least = sine
            best = hull_number(shape, at + 1)
        at += 3
    return best


@wp.func
def face_normal(shape: HullShape, direction: Vec3) -> Vec3:
    """Outward normal of a hull's face."""
    normal = hull_point(shape, shape.normal + hull_facing(shape, direction)[1])
    return Vec3() if wp.dot(normal, direction) < FACE_COSINE else normal


@wp.func
def support_feature(shape: HullShape, direction: Vec3) -> Feature:
    """Feature of a hull that supports `direction`."""
    facing = hull_facing(shape, direction)
    normal = hull_point(shape, shape.normal + facing[1])
    if wp.dot(normal, direction) >= FACE_COSINE:
        half_width = hull_point(shape, shape.normal + shape.face_count + facing[1])[0]
        return Feature(
            FACE,
            3 * facing[1] + 2,
            hull_number(shape, shape.face + facing[1] * FACE_ROW),
            normal,
            half_width,
        )
    edge = edge_toward(shape, facing[0], direction)
    along = wp.normalize(edge_end(shape, edge, 1) - edge_end(shape, edge, 0))
    if wp.abs(wp.dot(along, direction)) < LINE_SINE:
        return _point_or_line(LINE, 3 * edge + 1)
    return _point_or_line(POINT, 3 * facing[0])


@wp.func
def feature_corners(
    shape: HullShape, feature: Feature, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]
):
    """Writes the corners of a face or the ends of an edge of a hull, and their ids."""
    if feature.kind == FACE:
        row = shape.face + feature.code / 3 * FACE_ROW
        for k in range(feature.count):
            v = hull_number(shape, row + 1 + k)
            corner[k] = hull_point(shape, shape.vertex + v)
            code[k] = 3 * v
            code[EDGES + k] = hull_number(shape, row + 1 + CORNERS + k)
        return
    edge = feature.code / 3
    corner[0] = edge_end(shape, edge, 0)
    corner[1] = edge_end(shape, edge, 1)
    code[0] = 3 * hull_number(shape, shape.edge + 4 * edge)
    code[1] = 3 * hull_number(shape, shape.edge + 4 * edge + 1)


@wp.func
def feature_at(shape: HullShape, point: Vec3, direction: Vec3) -> int:
    """The vertex or edge of a hull within AT_BORDER of the point, else the facing face."""
    near = AT_BORDER * wp.max(shape.size)
    facing = hull_facing(shape, direction)
    vertex = facing[0]
    face = facing[1]
    if wp.length(wp.cross(hull_point(shape, shape.normal + face), direction)) > FACES:
        # Not on a face: on the edge through the vertex, or the vertex.
        edge = edge_toward(shape, vertex, direction)
        on_vertex = wp.length(point - hull_point(shape, shape.vertex + vertex)) <= near
        p = hull_number(shape, shape.edge + 4 * edge)
        q = hull_number(shape, shape.edge + 4 * edge + 1)
        other = q if p == vertex else p
        if wp.length(point - hull_point(shape, shape.vertex + other)) <= near:
            return 3 * other
        return 3 * vertex if on_vertex else 3 * edge + 1
    row = shape.face + face * FACE_ROW
    count = hull_number(shape, row)
    on_edge = int(-1)
    for k in range(count):
        p = hull_number(shape, row + 1 + k)
        start = hull_point(shape, shape.vertex + p)
        if wp.length(point - start) <= near:
            return 3 * p
        following = hull_number(shape, row + 1 + wp.where(k + 1 == count, 0, k + 1))
        along = wp.normalize(hull_point(shape, shape.vertex + following) - start)
        if wp.length(wp.cross(along, point - start)) <= near:
            on_edge = hull_number(shape, row + 1 + CORNERS + k)
    return on_edge if on_edge >= 0 else 3 * face + 2


@wp.func
def height_over_face(shape: HullShape, face: int, point: Vec3) -> Real:
    """Signed distance of a point to a face's plane [m], negative inside the hull."""
    corner = hull_number(shape, shape.face + face * FACE_ROW + 1)
    return wp.dot(
        hull_point(shape, shape.normal + face), point - hull_point(shape, shape.vertex + corner)
    )


@wp.func(inline=False)
def is_on_face(shape: HullShape, direction: Vec3, point: Vec3, near: Real) -> bool:
    """Whether a point is on a hull's face; `direction`: any direction that the face supports."""
    face = hull_facing(shape, direction)[1]
    off = wp.abs(height_over_face(shape, face, point))
    for other in range(shape.face_count):
        off = wp.max(off, height_over_face(shape, other, point))
    return off <= near


@wp.func
def line_exit(shape: HullShape, line: int, origin: Vec3, direction: Vec3) -> Real:
    """Exit of a ray from a hull over all faces, as those adjacent to the edge may end before the
    ray reaches them."""
    edge = shape.edge + 4 * (line / 3)
    on_edge = hull_point(shape, shape.vertex + hull_number(shape, edge))
    left = Real(wp.inf)
    entered = -Real(wp.inf)
    for face in range(shape.face_count):
        along = wp.dot(hull_point(shape, shape.normal + face), direction)
        height = height_over_face(shape, face, origin)
        if face == hull_number(shape, edge + 2) or face == hull_number(shape, edge + 3):
            # Relative to a point of the edge, so that the rounding is that of the contact.
            height = wp.dot(hull_point(shape, shape.normal + face), origin - on_edge)
        if along > Real(0.0):
            left = wp.min(left, -height / along)
        elif along < Real(0.0):
            entered = wp.max(entered, -height / along)
        elif height > Real(0.0):
            entered = Real(wp.inf)
    return -Real(wp.inf) if entered > left else left


STEEP = wp.constant(Real(0.05))
"""Sine of the angle to the triangle's plane below which a ray has no well-defined exit."""


@wp.func
def corner_of(shape: TriangleShape, k: int) -> Vec3:
    """Corner 0, 1 or 2; 3 is 0."""
    if k == 1:
        return shape.q
    return shape.r if k == 2 else shape.p


@wp.func
def face_normal(shape: TriangleShape, direction: Vec3) -> Vec3:
    """Normal of a triangle, which has a face on either side; zero if neither supports the
    direction."""
    along = wp.dot(shape.normal, direction)
    return Vec3() if wp.abs(along) < FACE_COSINE else wp.sign(along) * shape.normal


@wp.func
def support_feature(shape: TriangleShape, direction: Vec3) -> Feature:
    """Feature of a triangle that supports `direction`."""
    normal = face_normal(shape, direction)
    if wp.length_sq(normal) > Real(0.0):
        return Feature(FACE, shape.face, 3, normal, shape.half_width)
    farthest = int(0)
    for k in range(1, 3):
        if wp.dot(corner_of(shape, k), direction) > wp.dot(corner_of(shape, farthest), direction):
            farthest = k
    # Of the two edges at the farthest corner, the more nearly perpendicular one.
    side = farthest
    least = Real(2.0)
    for turn in range(2):
        k = (farthest + 2 * turn) % 3
        sine = wp.abs(
            wp.dot(wp.normalize(corner_of(shape, k + 1) - corner_of(shape, k)), direction)
        )
        if sine < least:
            least = sine
            side = k
    if least < LINE_SINE:
        return _point_or_line(LINE, shape.edge[side])
    return _point_or_line(POINT, shape.vertex[farthest])


@wp.func
def feature_corners(
    shape: TriangleShape,
    feature: Feature,
    direction: Vec3,
    corner: wp.array[Vec3],
    code: wp.array[int],
):
    """Writes the corners of a triangle or the ends of one of its edges, and their ids."""
    if feature.kind == FACE:
        for k in range(3):
            corner[k] = corner_of(shape, k)
            code[k] = shape.vertex[k]
            code[EDGES + k] = shape.edge[k]
        return
    side = wp.where(feature.code == shape.edge[0], 0, wp.where(feature.code == shape.edge[1], 1, 2))
    corner[0] = corner_of(shape, side)
    corner[1] = corner_of(shape, side + 1)
    code[0] = shape.vertex[side]
    code[1] = shape.vertex[(side + 1) % 3]


@wp.func
def triangle_feature_at(shape: TriangleShape, point: Vec3) -> int:
    """Id of the feature of a triangle at a surface point."""
    near = AT_BORDER * wp.max(shape.size)
    on_edge = int(-1)
    for k in range(3):
        if wp.length(point - corner_of(shape, k)) <= near:
            return shape.vertex[k]
        if square_to_segment(corner_of(shape, k), corner_of(shape, k + 1), point) <= near * near:
            on_edge = shape.edge[k]
    return on_edge if on_edge >= 0 else shape.face


@wp.func
def feature_at(shape: TriangleShape, point: Vec3, direction: Vec3) -> int:
    """Id of the feature of a triangle at a surface point."""
    return triangle_feature_at(shape, point)


@wp.func
def with_facing(shape: TriangleShape, direction: Vec3) -> TriangleShape:
    """The triangle itself, which caches nothing."""
    return shape


@wp.func
def line_exit(shape: TriangleShape, line: int, origin: Vec3, direction: Vec3) -> Real:
    """Exit of a ray at the triangle's plane, if the origin is on its side of the edge."""
    along = wp.dot(shape.normal, direction)
    if wp.abs(along) < STEEP:
        return Real(0.0)
    for k in range(3):
        if shape.edge[k] == line:
            start = corner_of(shape, k)
            inward = wp.cross(shape.normal, corner_of(shape, k + 1) - start)
            if wp.dot(origin - start, inward) < Real(0.0):
                return -Real(wp.inf)
    return wp.dot(shape.normal, shape.p - origin) / along


@wp.func
def is_on_face(shape: TriangleShape, normal: Vec3, point: Vec3, near: Real) -> bool:
    """Whether a point is on a triangle."""
    off = wp.abs(wp.dot(shape.normal, point - shape.p))
    for k in range(3):
        start = corner_of(shape, k)
        inward = wp.normalize(wp.cross(shape.normal, corner_of(shape, k + 1) - start))
        off = wp.max(off, -wp.dot(point - start, inward))
    return off <= near


__all__ = [
    "face_normal",
    "feature_at",
    "feature_corners",
    "is_on_face",
    "line_exit",
    "support_feature",
    "with_facing",
]
