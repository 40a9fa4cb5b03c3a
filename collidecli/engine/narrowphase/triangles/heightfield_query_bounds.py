"""Bounds of a convex shape, grown by the maximum separation, in the frame of a heightfield; tests of triangles."""

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import OUTWARD, bounding_box, quat_x, quat_y, quat_z
from collidecli.engine.geometry.heightfields import Field, field_triangle, top_triangle
from collidecli.engine.geometry.meshes import TriangleShape, barycentric_of, square_to_segment, square_to_triangle
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import BOX, CAPSULE, CONVEX_MESH, ELLIPSOID, SPHERE
from collidecli.engine.geometry.support import Primitive, support_point
from collidecli.engine.narrowphase.convex.triangle_features import corner_of
from collidecli.engine.narrowphase.triangles.normal_cones import normal_cone_at
from collidecli.engine.narrowphase.triangles.shape_middle import middle_of
from collidecli.engine.pair_query import Query, hull_of, primitive_of

AT_SURFACE = wp.constant(Real(1.0e-9))
"""Fraction of a size: for a point closer to a triangle than this the exit direction is the triangle's normal."""
TRIES = wp.constant(4)
"""Directions that are tried as separating axes: measured, one more costs more than the triangles that it rejects."""


@wp.struct
class ShapeBounds:
    """Bounds of a shape grown by the maximum separation, in the frame of a heightfield [m].

    lower, upper: AABB. middle: a point inside the shape. beneath: 1 where the middle is below the base. center, ball:
    origin of the shape's frame, and radius of the bounding ball around it. shape, pose: the shape, and its frame in the
    heightfield's. max_separation: by which the shape is grown. x, y, z, rounding: for capsules, boxes and ellipsoids
    the scaled axes of the core, and the radius around it, max_separation included.
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
def bounds_of_shape(rows: ShapeRows, query: Query, field: Field) -> ShapeBounds:
    """The bounds of the convex shape of a pair."""
    bounds = ShapeBounds()
    max_separation = wp.max(query.max_separation, Real(0.0))
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    shape_type = rows.type[query.row_a]
    box = bounding_box(shape_type, rows.size[query.row_a], pose_a_to_b, max_separation)
    bounds.middle = wp.transform_get_translation(pose_a_to_b)
    # Grown by more than the rounding error of the pose.
    slack = Real(1.0e-12) * (
        wp.abs(bounds.middle[0]) + wp.abs(bounds.middle[1]) + wp.abs(bounds.middle[2]) + field.half_x + field.half_y
    )
    bounds.lower = box.lower - Vec3(slack, slack, slack)
    bounds.upper = box.upper + Vec3(slack, slack, slack)
    rotation = wp.transform_get_rotation(pose_a_to_b)
    size = rows.size[query.row_a]
    bounds.rounding = max_separation + slack
    if shape_type == CAPSULE:
        bounds.z = size[1] * quat_z(rotation)
        bounds.rounding += size[0]
    elif shape_type == BOX or shape_type == ELLIPSOID:
        bounds.x = size[0] * quat_x(rotation)
        bounds.y = size[1] * quat_y(rotation)
        bounds.z = size[2] * quat_z(rotation)
    bounds.shape = primitive_of(rows, query.row_a)
    bounds.pose = pose_a_to_b
    bounds.max_separation = max_separation + slack
    bounds.center = bounds.middle
    bounds.ball = Real(rows.radius[query.row_a]) * (Real(1.0) + Real(OUTWARD)) + bounds.max_separation
    if shape_type == CONVEX_MESH:
        bounds.middle = wp.transform_point(pose_a_to_b, middle_of(hull_of(rows, query.row_a)))
    if bounds.middle[2] < field.bottom:
        bounds.beneath = 1
    return bounds


@wp.func
def extent_along(bounds: ShapeBounds, normal: Vec3) -> Real:
    """Half extent of the bounds along a vector, times the vector's length; that of the AABB for other shape types."""
    if bounds.shape.type == CAPSULE or bounds.shape.type == BOX:
        core = wp.abs(wp.dot(bounds.x, normal)) + wp.abs(wp.dot(bounds.y, normal)) + wp.abs(wp.dot(bounds.z, normal))
        return core + bounds.rounding * wp.length(normal)
    if bounds.shape.type == ELLIPSOID:
        core = wp.length(Vec3(wp.dot(bounds.x, normal), wp.dot(bounds.y, normal), wp.dot(bounds.z, normal)))
        return core + bounds.rounding * wp.length(normal)
    return Real(0.5) * wp.dot(bounds.upper - bounds.lower, wp.abs(normal))


@wp.func
def nearest_on_triangle(shape: TriangleShape, point: Vec3) -> Vec3:
    """Closest point of a triangle to a point [m]."""
    weights = barycentric_of(shape.p, shape.q, shape.r, point)
    if weights[0] >= Real(0.0) and weights[1] >= Real(0.0) and weights[2] >= Real(0.0):
        return point - wp.dot(point - shape.p, shape.normal) * shape.normal
    result = shape.p
    square = Real(wp.inf)
    for k in range(3):
        start = corner_of(shape, k)
        along = corner_of(shape, k + 1) - start
        t = wp.clamp(wp.dot(point - start, along) / wp.dot(along, along), Real(0.0), Real(1.0))
        foot = start + t * along
        if wp.length_sq(point - foot) < square:
            square = wp.length_sq(point - foot)
            result = foot
    return result


@wp.func
def is_separated_by_plane(triangle: TriangleShape, bounds: ShapeBounds, normal: Vec3) -> bool:
    """Whether one of TRIES separating axes shows a triangle to be farther from the shape than the maximum separation.

    The first axis is the triangle's normal; then the directions from the triangle's closest point to the shape's
    middle, and to the shape's last support point: the triangle is behind the plane through its closest point.
    """
    rotation = wp.transform_get_rotation(bounds.pose)
    triangle.normal = normal
    foot = triangle.p
    direction = normal
    point = bounds.middle
    for step in range(TRIES):
        lowest = wp.transform_point(bounds.pose, support_point(bounds.shape, -wp.quat_rotate_inv(rotation, direction)))
        if wp.dot(direction, lowest - foot) > bounds.max_separation:
            return True
        if step > 0:
            point = lowest
        foot = nearest_on_triangle(triangle, point)
        length = wp.length(point - foot)
        if length <= AT_SURFACE * wp.length(triangle.q - triangle.p):
            return False
        direction = (point - foot) / length
    return False


@wp.func
def sphere_has_contact(field: Field, bounds: ShapeBounds, number: int) -> bool:
    """Whether a sphere has a contact with a triangle: of the many in the bounds few own the sphere's closest point."""
    triangle = field_triangle(field, number)
    foot = nearest_on_triangle(triangle, bounds.middle)
    distance = wp.length(bounds.middle - foot)
    radius = bounds.shape.size[0]
    if distance - radius >= bounds.max_separation:
        return False
    if distance <= AT_SURFACE * radius:
        return True
    return normal_cone_at(field, triangle, foot, (bounds.middle - foot) / distance).belongs == 1


@wp.func
def squared_distance_of_segments(start: Vec3, end: Vec3, p: Vec3, q: Vec3) -> Real:
    """Squared distance of two segments whose closest points are interior to both [m^2]; else inf: an end is closest."""
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
def capsule_within(field: Field, bounds: ShapeBounds, number: int) -> bool:
    """Whether a capsule is within the maximum separation of a triangle.

    Its segment is closest at an end, or to a side, or crosses the triangle. Degenerate: parallel to a side, an end of
    either is closest.
    """
    triangle = top_triangle(field, number)
    normal = wp.normalize(wp.cross(triangle.q - triangle.p, triangle.r - triangle.p))
    start = bounds.center - bounds.z
    end = bounds.center + bounds.z
    most = bounds.rounding * bounds.rounding
    low = wp.dot(normal, start - triangle.p)
    high = wp.dot(normal, end - triangle.p)
    if wp.min(low, high) > bounds.rounding or wp.max(low, high) < -bounds.rounding:
        return False
    if square_to_triangle(triangle.p, triangle.q, triangle.r, normal, start) <= most:
        return True
    if square_to_triangle(triangle.p, triangle.q, triangle.r, normal, end) <= most:
        return True
    for k in range(3):
        p = corner_of(triangle, k)
        if (
            square_to_segment(start, end, p) <= most
            or squared_distance_of_segments(start, end, p, corner_of(triangle, k + 1)) <= most
        ):
            return True
    if low * high >= Real(0.0):
        return False
    weights = barycentric_of(triangle.p, triangle.q, triangle.r, start + low / (low - high) * (end - start))
    return wp.min(weights[0], wp.min(weights[1], weights[2])) >= Real(0.0)


@wp.func
def may_have_contact(field: Field, bounds: ShapeBounds, number: int) -> bool:
    """Whether a triangle that the AABB intersects may have a contact with the shape."""
    if bounds.shape.type == SPHERE:
        return sphere_has_contact(field, bounds, number)
    if bounds.shape.type == CAPSULE:
        return capsule_within(field, bounds, number)
    if bounds.shape.type == CONVEX_MESH:
        return True
    triangle = top_triangle(field, number)
    normal = wp.cross(triangle.q - triangle.p, triangle.r - triangle.p)
    return not is_separated_by_plane(triangle, bounds, wp.normalize(normal))
