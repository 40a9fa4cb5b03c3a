"""What a shape can reach in the frame of a heightfield, and whether that is a triangle of the surface."""

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import OUTWARD, bounding_box, quat_x, quat_y, quat_z
from collidecli.engine.geometry.heightfields import Field, field_triangle, top_triangle
from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.meshes import TriangleShape, barycentric_of, square_to_segment, square_to_triangle
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import BOX, CAPSULE, CONVEX_MESH, ELLIPSOID, SPHERE
from collidecli.engine.geometry.support import Primitive, support_point
from collidecli.engine.narrowphase.convex.triangle_features import corner_of
from collidecli.engine.narrowphase.triangles.normal_cones import normal_cone_at
from collidecli.engine.narrowphase.triangles.triangle_closest_point import AT_SURFACE, nearest_on_triangle
from collidecli.engine.pair_query import Query, hull_of, primitive_of

TRIES = wp.constant(4)
"""Directions that are looked along: measured, one more costs more than the triangles that it leaves out."""


@wp.struct
class Near:
    """What a shape can reach, in the frame of a heightfield [m]. middle: a point within the shape itself.

    beneath: 1 where the middle is under the base. center, ball: of the shape's own frame, and how far from there it can
    reach. shape, pose: the shape itself, and its frame in the heightfield's; reach: how far it reaches beyond its
    surface.

    x, y, z, rounding: of capsules, boxes and ellipsoids, the scaled axes of their cores and what is around these, reach
    included.
    """

    shape: Primitive
    pose: Pose
    max_separation: Real
    x: Vec3
    y: Vec3
    z: Vec3
    rounding: Real
    lower: Vec3
    upper: Vec3
    middle: Vec3
    center: Vec3
    ball: Real
    beneath: int


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
def near_field(rows: ShapeRows, query: Query, field: Field) -> Near:
    """What the other shape of a pair can reach."""
    near = Near()
    max_separation = wp.max(query.max_separation, Real(0.0))
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    shape_type = rows.type[query.row_a]
    box = bounding_box(shape_type, rows.size[query.row_a], pose_a_to_b, max_separation)
    near.middle = wp.transform_get_translation(pose_a_to_b)
    # Grown by more than the rounding of the pose.
    slack = Real(1.0e-12) * (
        wp.abs(near.middle[0]) + wp.abs(near.middle[1]) + wp.abs(near.middle[2]) + field.half_x + field.half_y
    )
    near.lower = box.lower - Vec3(slack, slack, slack)
    near.upper = box.upper + Vec3(slack, slack, slack)
    rotation = wp.transform_get_rotation(pose_a_to_b)
    size = rows.size[query.row_a]
    near.rounding = max_separation + slack
    if shape_type == CAPSULE:
        near.z = size[1] * quat_z(rotation)
        near.rounding += size[0]
    elif shape_type == BOX or shape_type == ELLIPSOID:
        near.x = size[0] * quat_x(rotation)
        near.y = size[1] * quat_y(rotation)
        near.z = size[2] * quat_z(rotation)
    near.shape = primitive_of(rows, query.row_a)
    near.pose = pose_a_to_b
    near.max_separation = max_separation + slack
    near.center = near.middle
    near.ball = Real(rows.radius[query.row_a]) * (Real(1.0) + Real(OUTWARD)) + near.max_separation
    if shape_type == CONVEX_MESH:
        near.middle = wp.transform_point(pose_a_to_b, middle_of_hull(hull_of(rows, query.row_a)))
    if near.middle[2] < field.bottom:
        near.beneath = 1
    return near


@wp.func
def extent_along(near: Near, normal: Vec3) -> Real:
    """How far from its middle the shape can reach along a vector, times that one's length; by its box where no better
    is known."""
    if near.shape.type == CAPSULE or near.shape.type == BOX:
        core = wp.abs(wp.dot(near.x, normal)) + wp.abs(wp.dot(near.y, normal)) + wp.abs(wp.dot(near.z, normal))
        return core + near.rounding * wp.length(normal)
    if near.shape.type == ELLIPSOID:
        core = wp.length(Vec3(wp.dot(near.x, normal), wp.dot(near.y, normal), wp.dot(near.z, normal)))
        return core + near.rounding * wp.length(normal)
    return Real(0.5) * wp.dot(near.upper - near.lower, wp.abs(normal))


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
        if wp.dot(way, lowest - foot) > near.max_separation:
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
def sphere_meets(field: Field, near: Near, number: int) -> bool:
    """Whether a sphere has a contact with a triangle: of the many within reach few have the nearest point as theirs."""
    triangle = field_triangle(field, number)
    foot = nearest_on_triangle(triangle, near.middle)
    distance = wp.length(near.middle - foot)
    radius = near.shape.size[0]
    if distance - radius >= near.max_separation:
        return False
    if distance <= AT_SURFACE * radius:
        return True
    return normal_cone_at(field, triangle, foot, (near.middle - foot) / distance).belongs == 1


@wp.func
def square_between(start: Vec3, end: Vec3, p: Vec3, q: Vec3) -> Real:
    """Squared distance of two segments whose nearest points are inside both [m^2]; else infinite: an end has it."""
    u = end - start
    v = q - p
    off = p - start
    across = wp.cross(u, v)
    square = wp.length_sq(across)
    s = wp.dot(wp.cross(off, v), across)
    t = wp.dot(wp.cross(off, u), across)
    if s <= Real(0.0) or s >= square or t <= Real(0.0) or t >= square:
        return Real(wp.inf)
    height = wp.dot(off, across)
    return height * height / square


@wp.func
def capsule_meets(field: Field, near: Near, number: int) -> bool:
    """Whether a capsule is within reach of a triangle.

    Its segment is nearest with an end, or to a side, or crosses the triangle. Parallel to a side: at an end of either.
    """
    triangle = top_triangle(field, number)
    normal = wp.normalize(wp.cross(triangle.q - triangle.p, triangle.r - triangle.p))
    start = near.center - near.z
    end = near.center + near.z
    most = near.rounding * near.rounding
    low = wp.dot(normal, start - triangle.p)
    high = wp.dot(normal, end - triangle.p)
    if wp.min(low, high) > near.rounding or wp.max(low, high) < -near.rounding:
        return False
    if square_to_triangle(triangle.p, triangle.q, triangle.r, normal, start) <= most:
        return True
    if square_to_triangle(triangle.p, triangle.q, triangle.r, normal, end) <= most:
        return True
    for k in range(3):
        p = corner_of(triangle, k)
        if (
            square_to_segment(start, end, p) <= most
            or square_between(start, end, p, corner_of(triangle, k + 1)) <= most
        ):
            return True
    if low * high >= Real(0.0):
        return False
    shares = barycentric_of(triangle.p, triangle.q, triangle.r, start + low / (low - high) * (end - start))
    return wp.min(shares[0], wp.min(shares[1], shares[2])) >= Real(0.0)


@wp.func
def may_share_world(field: Field, near: Near, number: int) -> bool:
    """Whether a triangle that the box meets may have a contact with the shape."""
    if near.shape.type == SPHERE:
        return sphere_meets(field, near, number)
    if near.shape.type == CAPSULE:
        return capsule_meets(field, near, number)
    if near.shape.type == CONVEX_MESH:
        return True
    triangle = top_triangle(field, number)
    normal = wp.cross(triangle.q - triangle.p, triangle.r - triangle.p)
    return not is_clear(triangle, near, wp.normalize(normal))
