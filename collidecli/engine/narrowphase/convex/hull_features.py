"""Support features and feature ids of a convex hull; see `features`.

Feature ids: 3 v of vertex v, 3 e + 1 of edge e, 3 f + 2 of face f. A side of a face that replaces several edges (see
`ConvexHull`) has an id of its own after the edges'.
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
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.feature import (
    AT_BORDER,
    EDGES,
    FACE,
    FACE_COSINE,
    LINE,
    LINE_SINE,
    Feature,
)
from collidecli.engine.narrowphase.convex.primitive_features import (
    face_normal,
    feature_at,
    feature_corners,
    is_on_face,
    line_exit,
    support_feature,
    with_facing,
)

# Each function is an overload of that of `primitive_features`: Warp selects by the type of the first argument.
# ruff: noqa: F811

LEVEL = wp.constant(Real(1.0e-5))
"""Difference relative to the size below which two vertices are equally far along a direction: ten times the effect of
the error of GJK's directions, 1e-6."""

FACES = wp.constant(Real(1.0e-5))
"""Sine of the angle to a face's normal below which a direction is the face's: search directions are accurate to
1e-6.
"""


@wp.func
def better_face(shape: HullShape, vertex: int, direction: Vec3, best: int) -> int:
    """Face whose normal is closest to a direction, among those at a vertex and `best` (-1 for none)."""
    result = best
    most = Real(-2.0)
    if best >= 0:
        most = wp.dot(hull_point(shape, shape.normal + best), direction)
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
    """Face whose normal is closest to a direction, at its support vertex or at one within LEVEL of it.

    For an edge perpendicular to the direction, rounding decides which end is `vertex`; the face does not depend on
    that.
    """
    best = better_face(shape, vertex, direction, -1)
    near = LEVEL * wp.max(shape.size[0], wp.max(shape.size[1], shape.size[2]))
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
        along = hull_point(shape, shape.vertex + hull_number(shape, at)) - hull_point(shape, shape.vertex + vertex)
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
    if wp.dot(normal, direction) < FACE_COSINE:
        normal = Vec3()
    return normal


@wp.func
def support_feature(shape: HullShape, direction: Vec3) -> Feature:
    """Feature of a hull that supports `direction`."""
    result = Feature()
    facing = hull_facing(shape, direction)
    vertex = facing[0]
    face = facing[1]
    result.code = 3 * vertex
    normal = hull_point(shape, shape.normal + face)
    if wp.dot(normal, direction) >= FACE_COSINE:
        result.kind = FACE
        result.code = 3 * face + 2
        result.count = hull_number(shape, shape.face + face * FACE_ROW)
        result.normal = normal
        result.half_width = hull_point(shape, shape.normal + shape.face_count + face)[0]
        return result
    edge = edge_toward(shape, vertex, direction)
    along = wp.normalize(edge_end(shape, edge, 1) - edge_end(shape, edge, 0))
    if wp.abs(wp.dot(along, direction)) < LINE_SINE:
        result.kind = LINE
        result.code = 3 * edge + 1
        result.count = 2
    return result


@wp.func
def feature_corners(shape: HullShape, feature: Feature, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]):
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
    near = AT_BORDER * wp.max(shape.size[0], wp.max(shape.size[1], shape.size[2]))
    facing = hull_facing(shape, direction)
    vertex = facing[0]
    face = facing[1]
    if wp.length(wp.cross(hull_point(shape, shape.normal + face), direction)) > FACES:
        # Not on a face: on the edge through the vertex, or the vertex.
        edge = edge_toward(shape, vertex, direction)
        on_vertex = wp.length(point - hull_point(shape, shape.vertex + vertex)) <= near
        p = hull_number(shape, shape.edge + 4 * edge)
        q = hull_number(shape, shape.edge + 4 * edge + 1)
        if p == vertex:
            p = q
        if wp.length(point - hull_point(shape, shape.vertex + p)) <= near:
            return 3 * p
        if on_vertex:
            return 3 * vertex
        return 3 * edge + 1
    row = shape.face + face * FACE_ROW
    count = hull_number(shape, row)
    on_edge = int(-1)
    for k in range(count):
        p = hull_number(shape, row + 1 + k)
        start = hull_point(shape, shape.vertex + p)
        if wp.length(point - start) <= near:
            return 3 * p
        following = k + 1
        if following == count:
            following = 0
        along = wp.normalize(hull_point(shape, shape.vertex + hull_number(shape, row + 1 + following)) - start)
        if wp.length(wp.cross(along, point - start)) <= near:
            on_edge = hull_number(shape, row + 1 + CORNERS + k)
    if on_edge >= 0:
        return on_edge
    return 3 * face + 2


@wp.func
def height_over_face(shape: HullShape, face: int, point: Vec3) -> Real:
    """Signed distance of a point to a face's plane [m], negative inside the hull."""
    corner = hull_number(shape, shape.face + face * FACE_ROW + 1)
    return wp.dot(hull_point(shape, shape.normal + face), point - hull_point(shape, shape.vertex + corner))


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
    """Exit of a ray from a hull over all faces, as those adjacent to the edge may end before the ray reaches them."""
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
    if entered > left:
        return -Real(wp.inf)
    return left
