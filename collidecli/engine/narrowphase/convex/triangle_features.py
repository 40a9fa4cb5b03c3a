"""Support features and feature ids of a triangle; see `features`.

A triangle has a face on either side. Feature ids are those of its mesh: 3 v of vertex v, 3 e + 1 of edge e, 3 f + 2 of
triangle f.
"""

import warp as wp

from collidecli.engine.geometry.meshes import TriangleShape, square_to_segment
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

STEEP = wp.constant(Real(0.05))
"""Sine of the angle to the triangle's plane below which a ray has no well-defined exit."""


@wp.func
def corner_of(shape: TriangleShape, k: int) -> Vec3:
    """Corner 0, 1 or 2; 3 is 0."""
    if k == 1:
        return shape.q
    if k == 2:
        return shape.r
    return shape.p


@wp.func
def face_normal(shape: TriangleShape, direction: Vec3) -> Vec3:
    """Normal of a triangle, which has a face on either side; zero if neither supports the direction."""
    along = wp.dot(shape.normal, direction)
    if wp.abs(along) < FACE_COSINE:
        return Vec3()
    return wp.sign(along) * shape.normal


@wp.func
def support_feature(shape: TriangleShape, direction: Vec3) -> Feature:
    """Feature of a triangle that supports `direction`."""
    result = Feature()
    result.normal = face_normal(shape, direction)
    if wp.length_sq(result.normal) > Real(0.0):
        result.kind = FACE
        result.code = shape.face
        result.count = 3
        result.half_width = shape.half_width
        return result
    farthest = int(0)
    for k in range(1, 3):
        if wp.dot(corner_of(shape, k), direction) > wp.dot(corner_of(shape, farthest), direction):
            farthest = k
    result.code = shape.vertex[farthest]
    # Of the two edges at the farthest corner, the more nearly perpendicular one.
    side = farthest
    least = Real(2.0)
    for turn in range(2):
        k = (farthest + 2 * turn) % 3
        sine = wp.abs(wp.dot(wp.normalize(corner_of(shape, k + 1) - corner_of(shape, k)), direction))
        if sine < least:
            least = sine
            side = k
    if least < LINE_SINE:
        result.kind = LINE
        result.code = shape.edge[side]
        result.count = 2
    return result


@wp.func
def feature_corners(
    shape: TriangleShape, feature: Feature, direction: Vec3, corner: wp.array[Vec3], code: wp.array[int]
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
    near = AT_BORDER * wp.max(shape.size[0], wp.max(shape.size[1], shape.size[2]))
    on_edge = int(-1)
    for k in range(3):
        if wp.length(point - corner_of(shape, k)) <= near:
            return shape.vertex[k]
        if square_to_segment(corner_of(shape, k), corner_of(shape, k + 1), point) <= near * near:
            on_edge = shape.edge[k]
    if on_edge >= 0:
        return on_edge
    return shape.face


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
