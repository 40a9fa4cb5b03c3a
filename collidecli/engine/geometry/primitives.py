"""Support functions of the convex shapes: each shape is a core rounded by a radius.

A shape is the Minkowski sum of its core and a ball. A sphere's core is its centre and a capsule's
its inner segment; an ellipsoid's is the ellipsoid shrunk inwards by less than its smallest radius
of curvature. Distances and depths of the cores differ from those of the shapes by the radii alone;
smaller cores overlap less often and converge faster.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.hulls import HullShape, farthest_vertex, hull_point
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import AXIS_X, UP, Mat33, Quat, Real, Vec3, struct_type
from collidecli.scene.shape_types import ShapeType

# ruff: noqa: F811


ELLIPSOID_SHRINK = wp.constant(Real(0.9))
"""Fraction of an ellipsoid's smallest radius of curvature used as its rounding radius; below 1, so
that the core has volume and curvature."""


@wp.struct
class Support:
    """Support point of a core along a direction, and its smooth patch of the surface.

    point: in the core's frame [m]. patch: one bit for each branch of the support function (a box's
    signs x, y, z; the upper end of a segment or cylinder; a cone's apex); none for ellipsoids and
    points.
    """

    point: Vec3
    patch: int


@wp.func
def core_radius(shape_type: int, size: Vec3) -> Real:
    """Radius of the ball that rounds the core [m]; 0 for box, cylinder and cone."""
    if shape_type == ShapeType.SPHERE or shape_type == ShapeType.CAPSULE:
        return size[0]
    if shape_type == ShapeType.ELLIPSOID:
        shortest = wp.min(size)
        longest = wp.max(size)
        # The smallest radius of curvature of an ellipsoid is shortest^2 / longest, at the end of
        # the longest axis.
        return ELLIPSOID_SHRINK * shortest * (shortest / longest)
    return Real(0.0)


@wp.func
def core_support(shape_type: int, size: Vec3, radius: Real, direction: Vec3) -> Support:
    """Support point of the core along `direction`.

    Args:
        radius: `core_radius` of the shape [m].
        direction: unit, in the core's frame.
    Degenerate: if a whole edge or face is farthest, its end on the positive side; on a rim, the
        point at +x.
    """
    if shape_type == ShapeType.BOX:
        point = size
        patch = int(7)
        for axis in range(3):
            if direction[axis] < Real(0.0):
                point[axis] = -size[axis]
                patch -= 1 << axis
        return Support(point, patch)
    if shape_type == ShapeType.ELLIPSOID:
        scaled = wp.cw_mul(size, direction)
        return Support(wp.cw_mul(size, scaled / wp.length(scaled)) - radius * direction, 0)
    upper = wp.where(direction[2] >= Real(0.0), 1, 0)
    if shape_type == ShapeType.CYLINDER or shape_type == ShapeType.CONE:
        across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
        x = size[0]
        y = Real(0.0)
        if across > Real(0.0):
            scale = size[0] / across
            x, y = scale * direction[0], scale * direction[1]
        if shape_type == ShapeType.CYLINDER:
            return Support(Vec3(x, y, wp.where(upper == 1, size[1], -size[1])), upper)
        if Real(2.0) * size[1] * direction[2] >= size[0] * across:
            return Support(Vec3(Real(0.0), Real(0.0), size[1]), 1)
        return Support(Vec3(x, y, -size[1]), 0)
    if shape_type == ShapeType.CAPSULE:
        return Support(Vec3(Real(0.0), Real(0.0), wp.where(upper == 1, size[1], -size[1])), upper)
    return Support()


@wp.func
def core_curvature(
    shape_type: int,
    size: Vec3,
    radius: Real,
    direction: Vec3,
    patch: int,
    first: Vec3,
    second: Vec3,
) -> Vec3:
    """Hessian H of the core's support function at unit `direction` on one patch, in two tangent
    directions.

    H u is the derivative of the support point [m/rad] as the direction rotates towards u.

    Returns:
        first.H first, first.H second, second.H second.
    Degenerate: 0 on vertices, and where a disc is farthest.
    """
    if shape_type == ShapeType.ELLIPSOID:
        scaled = wp.cw_mul(size, direction)
        over_height = Real(1.0) / wp.length(scaled)
        point = over_height * wp.cw_mul(size, scaled)
        u, v = wp.cw_mul(size, first), wp.cw_mul(size, second)
        along_u = wp.dot(point, first)
        along_v = wp.dot(point, second)
        return Vec3(
            over_height * (wp.dot(u, u) - along_u * along_u) - radius * wp.dot(first, first),
            over_height * (wp.dot(u, v) - along_u * along_v) - radius * wp.dot(first, second),
            over_height * (wp.dot(v, v) - along_v * along_v) - radius * wp.dot(second, second),
        )
    if shape_type == ShapeType.CYLINDER or (shape_type == ShapeType.CONE and patch == 0):
        square = direction[0] * direction[0] + direction[1] * direction[1]
        if square > Real(0.0):
            turn_first = direction[0] * first[1] - direction[1] * first[0]
            turn_second = direction[0] * second[1] - direction[1] * second[0]
            radius_over_cube = size[0] / (square * wp.sqrt(square))
            return radius_over_cube * Vec3(
                turn_first * turn_first, turn_first * turn_second, turn_second * turn_second
            )
    return Vec3()


@wp.struct
class SupportDiscontinuity:
    """Directions at which a core's support point jumps between two patches: the circle
    axis.direction = height.

    step: from the point on the lower patch to the one on the upper, at a given direction [m]. In
    the core's frame.
    """

    axis: Vec3
    height: Real
    step: Vec3


@wp.func
def core_discontinuity(
    shape_type: int, size: Vec3, bit: int, direction: Vec3
) -> SupportDiscontinuity:
    """Circle of directions where bit `bit` of the patch changes; the step is evaluated at
    `direction`'s azimuth."""
    if shape_type == ShapeType.BOX:
        along = Vec3()
        along[bit] = Real(1.0)
        return SupportDiscontinuity(along, Real(0.0), Real(2.0) * size[bit] * along)
    result = SupportDiscontinuity(UP, Real(0.0), Vec3(Real(0.0), Real(0.0), Real(2.0) * size[1]))
    if shape_type == ShapeType.CONE:
        result.height = size[0] / wp.sqrt(size[0] * size[0] + Real(4.0) * size[1] * size[1])
        across = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
        if across > Real(0.0):
            scale = size[0] / across
            result.step -= Vec3(scale * direction[0], scale * direction[1], Real(0.0))
    return result


@wp.func
def core_is_flat(shape_type: int) -> bool:
    """Whether the core has no volume: a point or a segment."""
    return shape_type == ShapeType.SPHERE or shape_type == ShapeType.CAPSULE


@wp.func
def core_is_curved(shape_type: int) -> bool:
    """Whether the core has a curved surface, on which GJK and EPA alone do not terminate
    exactly."""
    return shape_type >= ShapeType.CYLINDER and shape_type <= ShapeType.ELLIPSOID


@wp.func
def core_is_smooth(shape_type: int) -> bool:
    """Whether the support function has no discontinuity."""
    return shape_type == ShapeType.SPHERE or shape_type == ShapeType.ELLIPSOID


@wp.struct
class Primitive:
    """A shape defined by type and size [m], see `ShapeType`. radius: of the ball that rounds its
    core [m].
    """

    type: int
    size: Vec3
    radius: Real


@wp.func
def primitive(shape_type: int, size: Vec3) -> Primitive:
    """A primitive of a type of at most three sizes."""
    return Primitive(shape_type, size, core_radius(shape_type, size))


@wp.func
def primitive_at(types: wp.array[wp.int32], sizes: wp.array[Vec3], row: int) -> Primitive:
    """The primitive of a row. sizes: of all rows, in the layout of `ShapeRows`."""
    return primitive(types[row], sizes[row])


@wp.func
def radius_of(shape: Primitive) -> Real:
    """Radius of the ball that rounds the core of a shape [m]."""
    return shape.radius


@wp.func
def radius_of(shape: HullShape) -> Real:
    """A hull is its core [m]."""
    return Real(0.0)


@wp.func
def radius_of(shape: TriangleShape) -> Real:
    """A triangle is its core [m]."""
    return Real(0.0)


@wp.func
def farthest_of_core(shape: Primitive, radius: Real, direction: Vec3) -> Support:
    """Support point of a shape's core; Warp selects the overload by the shape's struct."""
    return core_support(shape.type, shape.size, radius, direction)


@wp.func
def farthest_of_core(shape: HullShape, radius: Real, direction: Vec3) -> Support:
    """Support vertex of a hull, without patches."""
    return Support(hull_point(shape, shape.vertex + farthest_vertex(shape, direction)), 0)


@wp.func
def farthest_of_core(shape: TriangleShape, radius: Real, direction: Vec3) -> Support:
    """Support vertex of a triangle, the first of equal ones, without patches."""
    point = shape.p
    height = wp.dot(shape.p, direction)
    if wp.dot(shape.q, direction) > height:
        height = wp.dot(shape.q, direction)
        point = shape.q
    return Support(shape.r if wp.dot(shape.r, direction) > height else point, 0)


@wp.func
def support_point(shape: Any, direction: Vec3) -> Vec3:
    """Support point of the shape itself along unit `direction`, in its frame [m]; ties as in
    `core_support`."""
    radius = radius_of(shape)
    return farthest_of_core(shape, radius, direction).point + radius * direction


@wp.func
def middle_of(shape: Primitive) -> Vec3:
    """An interior point of a primitive, its own frame [m]."""
    return Vec3()


@wp.func
def middle_of(shape: HullShape) -> Vec3:
    """An interior point of a hull, its own frame [m]; the middle of its AABB need not be one."""
    total = Vec3()
    for axis in range(3):
        direction = Vec3()
        direction[axis] = Real(1.0)
        total += support_point(shape, direction) + support_point(shape, -direction)
    return total / Real(6.0)


def _difference(name: str, a: Any, b: Any) -> Any:
    """Struct of two cores and their relative pose: the Minkowski difference a - b, whose support
    function GJK, EPA and MPR evaluate.

    rotation: b's frame in a's. position: b's origin in a's frame [m]. radius_a, radius_b: of the
    rounding balls [m].
    """
    fields = {
        "a": a,
        "b": b,
        "radius_a": Real,
        "radius_b": Real,
        "rotation": Mat33,
        "position": Vec3,
    }
    return struct_type(name, fields, __name__)


MinkowskiDifference = _difference("MinkowskiDifference", Primitive, Primitive)
DifferenceWithHull = _difference("DifferenceWithHull", Primitive, HullShape)
DifferenceOfHulls = _difference("DifferenceOfHulls", HullShape, HullShape)
DifferenceWithTriangle = _difference("DifferenceWithTriangle", Primitive, TriangleShape)
DifferenceOfHullAndTriangle = _difference("DifferenceOfHullAndTriangle", HullShape, TriangleShape)


@wp.struct
class Vertex:
    """Support point of the Minkowski difference a - b of two cores.

    point: in a's frame [m]. on_a: the contributing point of core a. patch: patches of a (low 3
    bits) and b (next 3).
    """

    point: Vec3
    on_a: Vec3
    patch: int


@wp.func
def difference_support(difference: Any, direction: Vec3) -> Vertex:
    """Support point of core a - core b along unit `direction`, in a's frame."""
    a = farthest_of_core(difference.a, difference.radius_a, direction)
    b = farthest_of_core(
        difference.b, difference.radius_b, -(wp.transpose(difference.rotation) * direction)
    )
    return Vertex(
        a.point - (difference.rotation * b.point + difference.position),
        a.point,
        a.patch + 8 * b.patch,
    )


@wp.func
def box_feature(x: int, y: int, z: int) -> int:
    """Feature number of a box's face, edge or vertex, 0 to 26 without 13.

    Args:
        x, y, z: -1 or 1 at that end of the axis, 0 between the ends. A face has one nonzero value,
            an edge two, a vertex three.
    """
    return 13 + x + 3 * y + 9 * z


@wp.func
def feature_step(axis: int, side: int) -> int:
    """Change of a `box_feature` when its digit for `axis` changes from 0 to `side` (-1, 0, 1)."""
    return side * wp.where(axis == 0, 1, wp.where(axis == 1, 3, 9))


@wp.func
def side_of(outside: Real) -> int:
    """-1, 0 or 1: the sign of a coordinate beyond a side."""
    if outside > Real(0.0):
        return 1
    return -1 if outside < Real(0.0) else 0


@wp.func
def lowest_on_rim(rotation: Quat, axis: Vec3) -> Vec3:
    """Unit direction from a rim's centre to its lowest point (smallest z); perpendicular to the
    rim's axis.

    Args:
        rotation: rotation of the shape's frame in the frame whose z is up.
        axis: unit z axis of the shape in that frame.
    Degenerate: a horizontal rim gives the shape's own +x.
    """
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if flatness > Real(0.0):
        # -z minus its component along the axis, divided by its length `flatness`.
        scale = axis[2] / flatness
        return Vec3(scale * axis[0], scale * axis[1], -flatness)
    return wp.quat_rotate(rotation, AXIS_X)
