"""Support functions of the convex shapes: each shape is a core rounded by a radius.

A shape is the Minkowski sum of its core and a ball. A sphere's core is its centre and a capsule's its inner segment; an
ellipsoid's is the ellipsoid shrunk inwards by less than its smallest radius of curvature. Distances and depths of the
cores differ from those of the shapes by the radii alone; smaller cores overlap less often and converge faster.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.hulls import HullShape, farthest_vertex, hull_point
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, SPHERE

ELLIPSOID_SHRINK = wp.constant(Real(0.9))
"""Fraction of an ellipsoid's smallest radius of curvature used as its rounding radius; below 1, so that the core has
volume and curvature."""

# Functions of a shape have one overload for each shape struct: Warp selects by argument type.
# ruff: noqa: F811


@wp.struct
class Support:
    """Support point of a core along a direction, and its smooth patch of the surface.

    point: in the core's frame [m]. patch: one bit for each branch of the support function (a box's signs x, y, z; the
    upper end of a segment or cylinder; a cone's apex); none for ellipsoids and points.
    """

    point: Vec3
    patch: int


@wp.func
def core_radius(shape_type: int, size: Vec3) -> Real:
    """Radius of the ball that rounds the core [m]; 0 for box, cylinder and cone."""
    if shape_type == SPHERE or shape_type == CAPSULE:
        return size[0]
    if shape_type == ELLIPSOID:
        shortest = wp.min(size[0], wp.min(size[1], size[2]))
        longest = wp.max(size[0], wp.max(size[1], size[2]))
        # The smallest radius of curvature of an ellipsoid is shortest^2 / longest, at the end of the longest axis.
        return ELLIPSOID_SHRINK * shortest * (shortest / longest)
    return Real(0.0)


@wp.func
def core_support(shape_type: int, size: Vec3, radius: Real, direction: Vec3) -> Support:
    """Support point of the core along `direction`.

    Args:
        radius: `core_radius` of the shape [m].
        direction: unit, in the core's frame.
    Degenerate: if a whole edge or face is farthest, its end on the positive side; on a rim, the point at +x.
    """
    result = Support()
    if shape_type == BOX:
        x = size[0]
        y = size[1]
        z = size[2]
        patch = int(7)
        if direction[0] < Real(0.0):
            x = -x
            patch -= 1
        if direction[1] < Real(0.0):
            y = -y
            patch -= 2
        if direction[2] < Real(0.0):
            z = -z
            patch -= 4
        result.point = Vec3(x, y, z)
        result.patch = patch
    elif shape_type == ELLIPSOID:
        scaled = wp.cw_mul(size, direction)
        result.point = wp.cw_mul(size, scaled / wp.length(scaled)) - radius * direction
    elif shape_type == CYLINDER or shape_type == CONE:
        across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
        x = size[0]
        y = Real(0.0)
        if across > Real(0.0):
            scale = size[0] / across
            x = scale * direction[0]
            y = scale * direction[1]
        if shape_type == CYLINDER:
            result.point = Vec3(x, y, -size[1])
            if direction[2] >= Real(0.0):
                result.point = Vec3(x, y, size[1])
                result.patch = 1
        elif Real(2.0) * size[1] * direction[2] >= size[0] * across:
            result.point = Vec3(Real(0.0), Real(0.0), size[1])
            result.patch = 1
        else:
            result.point = Vec3(x, y, -size[1])
    elif shape_type == CAPSULE:
        result.point = Vec3(Real(0.0), Real(0.0), -size[1])
        if direction[2] >= Real(0.0):
            result.point = Vec3(Real(0.0), Real(0.0), size[1])
            result.patch = 1
    return result


@wp.func
def core_curvature(
    shape_type: int, size: Vec3, radius: Real, direction: Vec3, patch: int, first: Vec3, second: Vec3
) -> Vec3:
    """Hessian H of the core's support function at unit `direction` on one patch, in two tangent directions.

    H u is the derivative of the support point [m/rad] as the direction rotates towards u.

    Returns:
        first.H first, first.H second, second.H second.
    Degenerate: 0 on vertices, and where a disc is farthest.
    """
    if shape_type == ELLIPSOID:
        scaled = wp.cw_mul(size, direction)
        over_height = Real(1.0) / wp.length(scaled)
        point = over_height * wp.cw_mul(size, scaled)
        u = wp.cw_mul(size, first)
        v = wp.cw_mul(size, second)
        along_u = wp.dot(point, first)
        along_v = wp.dot(point, second)
        return Vec3(
            over_height * (wp.dot(u, u) - along_u * along_u) - radius * wp.dot(first, first),
            over_height * (wp.dot(u, v) - along_u * along_v) - radius * wp.dot(first, second),
            over_height * (wp.dot(v, v) - along_v * along_v) - radius * wp.dot(second, second),
        )
    if shape_type == CYLINDER or (shape_type == CONE and patch == 0):
        square = direction[0] * direction[0] + direction[1] * direction[1]
        if square > Real(0.0):
            turn_first = direction[0] * first[1] - direction[1] * first[0]
            turn_second = direction[0] * second[1] - direction[1] * second[0]
            radius_over_cube = size[0] / (square * wp.sqrt(square))
            return radius_over_cube * Vec3(turn_first * turn_first, turn_first * turn_second, turn_second * turn_second)
    return Vec3()


@wp.struct
class SupportDiscontinuity:
    """Directions at which a core's support point jumps between two patches: the circle axis.direction = height.

    step: from the point on the lower patch to the one on the upper, at a given direction [m]. In the core's frame.
    """

    axis: Vec3
    height: Real
    step: Vec3


@wp.func
def core_discontinuity(shape_type: int, size: Vec3, bit: int, direction: Vec3) -> SupportDiscontinuity:
    """Circle of directions where bit `bit` of the patch changes; the step is evaluated at `direction`'s azimuth."""
    result = SupportDiscontinuity()
    result.axis = Vec3(Real(0.0), Real(0.0), Real(1.0))
    if shape_type == BOX:
        result.axis[2] = Real(0.0)
        result.axis[bit] = Real(1.0)
        result.step = Real(2.0) * size[bit] * result.axis
    else:
        result.step = Vec3(Real(0.0), Real(0.0), Real(2.0) * size[1])
        if shape_type == CONE:
            slant = wp.sqrt(size[0] * size[0] + Real(4.0) * size[1] * size[1])
            result.height = size[0] / slant
            across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
            if across > Real(0.0):
                scale = size[0] / across
                result.step -= Vec3(scale * direction[0], scale * direction[1], Real(0.0))
    return result


@wp.func
def core_is_flat(shape_type: int) -> bool:
    """Whether the core has no volume: a point or a segment."""
    return shape_type == SPHERE or shape_type == CAPSULE


@wp.func
def core_is_curved(shape_type: int) -> bool:
    """Whether the core has a curved surface, on which GJK and EPA alone do not terminate exactly."""
    return shape_type >= CYLINDER and shape_type <= ELLIPSOID


@wp.func
def core_is_smooth(shape_type: int) -> bool:
    """Whether the support function has no discontinuity."""
    return shape_type == SPHERE or shape_type == ELLIPSOID


@wp.struct
class Primitive:
    """A shape defined by type and size [m], see `ShapeType`."""

    type: int
    size: Vec3


@wp.func
def primitive(shape_type: int, size: Vec3) -> Primitive:
    """`Primitive` with a type and size."""
    shape = Primitive()
    shape.type = shape_type
    shape.size = size
    return shape


@wp.func
def farthest_of_core(shape: Primitive, radius: Real, direction: Vec3) -> Support:
    """Support point of a shape's core; Warp selects the overload by the shape's struct."""
    return core_support(shape.type, shape.size, radius, direction)


@wp.func
def farthest_of_core(shape: HullShape, radius: Real, direction: Vec3) -> Support:
    """Support vertex of a hull, without patches."""
    result = Support()
    result.point = hull_point(shape, shape.vertex + farthest_vertex(shape, direction))
    return result


@wp.func
def farthest_of_core(shape: TriangleShape, radius: Real, direction: Vec3) -> Support:
    """Support vertex of a triangle, the first of equal ones, without patches."""
    result = Support()
    result.point = shape.p
    height = wp.dot(shape.p, direction)
    if wp.dot(shape.q, direction) > height:
        height = wp.dot(shape.q, direction)
        result.point = shape.q
    if wp.dot(shape.r, direction) > height:
        result.point = shape.r
    return result


@wp.func
def support_point(shape: Any, direction: Vec3) -> Vec3:
    """Support point of the shape itself along unit `direction`, in its frame [m]; ties as in `core_support`."""
    radius = core_radius(shape.type, shape.size)
    return farthest_of_core(shape, radius, direction).point + radius * direction


@wp.struct
class MinkowskiDifference:
    """Two cores and their relative pose: the Minkowski difference a - b, whose support function GJK, EPA and MPR
    evaluate.

    rotation: b's frame in a's. position: b's origin in a's frame [m]. radius_a, radius_b: of the rounding balls [m].
    """

    a: Primitive
    b: Primitive
    radius_a: Real
    radius_b: Real
    rotation: wp.mat33d
    position: Vec3


@wp.struct
class DifferenceWithHull:
    """`MinkowskiDifference` of a primitive and a hull."""

    a: Primitive
    b: HullShape
    radius_a: Real
    radius_b: Real
    rotation: wp.mat33d
    position: Vec3


@wp.struct
class DifferenceOfHulls:
    """`MinkowskiDifference` of two hulls."""

    a: HullShape
    b: HullShape
    radius_a: Real
    radius_b: Real
    rotation: wp.mat33d
    position: Vec3


@wp.struct
class DifferenceWithTriangle:
    """`MinkowskiDifference` of a primitive and a triangle."""

    a: Primitive
    b: TriangleShape
    radius_a: Real
    radius_b: Real
    rotation: wp.mat33d
    position: Vec3


@wp.struct
class DifferenceOfHullAndTriangle:
    """`MinkowskiDifference` of a hull and a triangle."""

    a: HullShape
    b: TriangleShape
    radius_a: Real
    radius_b: Real
    rotation: wp.mat33d
    position: Vec3


@wp.struct
class Vertex:
    """Support point of the Minkowski difference a - b of two cores.

    point: in a's frame [m]. on_a: the contributing point of core a. patch: patches of a (low 3 bits) and b (next 3).
    """

    point: Vec3
    on_a: Vec3
    patch: int


@wp.func
def difference_support(difference: Any, direction: Vec3) -> Vertex:
    """Support point of core a - core b along unit `direction`, in a's frame."""
    a = farthest_of_core(difference.a, difference.radius_a, direction)
    b = farthest_of_core(difference.b, difference.radius_b, -(wp.transpose(difference.rotation) * direction))
    result = Vertex()
    result.on_a = a.point
    result.point = a.point - (difference.rotation * b.point + difference.position)
    result.patch = a.patch + 8 * b.patch
    return result
