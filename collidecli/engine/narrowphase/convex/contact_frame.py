"""The frame of a contact, in which footprints of two features are compared."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import CAPSULE, Pose, Real, Vec2, Vec3
from collidecli.engine.geometry.segments import perpendicular
from collidecli.engine.narrowphase.convex.feature_types import (
    RIM_COUNT,
    Feature,
    merge_distance,
    rounding_level,
)
from collidecli.engine.narrowphase.convex.features import line_exit
from collidecli.engine.narrowphase.convex.polygon_clipping import inward_of, orientation_of

MAX_OVERLAP = 2 * RIM_COUNT
ON_BORDER = wp.constant(Real(1.0e-10))
"""Distance to an edge relative to the narrower face's half width up to which a corner is on it:
1e-6 of it is rounding."""
FLAT_CORNER = wp.constant(Real(1.0e-5))
"""Protrusion relative to the narrower face's half width below which a corner is dropped. Rotating
one of two equal faces by an angle t makes corners that protrude by t / 2, tilting it by t^2: a tilt
of 1e-3 keeps four corners."""
AT_CORNER = wp.constant(Real(0.4))
"""Distance between a line's end and a face's corner below which they coincide, relative to the
shortest overlap with two ends; below a half."""
PARALLEL_SINE = wp.constant(Real(0.05))
"""Sine of the angle above which lines give one contact, at their crossing; below it (3 degrees),
both ends of their overlap."""
END_MARGIN = wp.constant(Real(0.7))
"""Distance between the contacts of nearly parallel lines and the lines' ends, relative to the
distance of the lines there. At half that distance beside its line, a surface is at most 3.2 times
deeper (1 / LINE_SINE), and a box's end, inclined by LINE_SINE, is passed by less than (0.025 + 0.3
* 3.2) / 0.95 of that half."""


@wp.struct
class ContactFrame:
    """Relative pose of two shapes and their normal; u, v complete it to a right-handed frame. In
    a's frame [m].

    level: `rounding_level`. merge_distance: contacts at most this far from each other are one.
    shift: error of the footprints' relative position.
    """

    pose_b_to_a: Pose
    u: Vec3
    v: Vec3
    normal: Vec3
    max_separation: Real
    level: Real
    merge_distance: Real
    shift: Real


@wp.func
def frame_of_contact(
    shape_a: Any, shape_b: Any, pose_b_to_a: Pose, max_separation: Real, normal: Vec3
) -> ContactFrame:
    """The frame of a contact along `normal`, in the frame of shape a."""
    u = perpendicular(normal)
    level = rounding_level(shape_a, shape_b)
    merged = merge_distance(shape_a, shape_b)
    return ContactFrame(
        pose_b_to_a, u, wp.cross(normal, u), normal, max_separation, level, merged, Real(0.0)
    )


@wp.func
def project_on_frame(
    contact_frame: ContactFrame,
    normal_in_b: Vec3,
    a: Feature,
    corner_a: wp.array[Vec3],
    b: Feature,
    corner_b: wp.array[Vec3],
):
    """Replaces corners, each in its shape's frame, by their footprints."""
    rotation = wp.transform_get_rotation(contact_frame.pose_b_to_a)
    for k in range(a.count):
        corner_a[k] = footprint(corner_a[k], contact_frame.u, contact_frame.v, contact_frame.normal)
    # b's corners along the directions in b's frame: three rotations instead of one a corner.
    position = wp.transform_get_translation(contact_frame.pose_b_to_a)
    center = footprint(position, contact_frame.u, contact_frame.v, contact_frame.normal)
    u_in_b = wp.quat_rotate_inv(rotation, contact_frame.u)
    v_in_b = wp.quat_rotate_inv(rotation, contact_frame.v)
    for k in range(b.count):
        corner_b[k] = center + footprint(corner_b[k], u_in_b, v_in_b, normal_in_b)


@wp.func
def lifted_from_frame(contact_frame: ContactFrame, u: Real, v: Real, height: Real) -> Vec3:
    """The point with coordinates u, v and height in a contact's frame."""
    return u * contact_frame.u + v * contact_frame.v + height * contact_frame.normal


@wp.func
def slope_of(contact_frame: ContactFrame, face_normal: Vec3) -> Vec2:
    """Rate at which a face's height decreases with u and v."""
    along = wp.dot(face_normal, contact_frame.normal)
    return Vec2(
        wp.dot(face_normal, contact_frame.u) / along, wp.dot(face_normal, contact_frame.v) / along
    )


@wp.func
def is_beside(p: Vec3, q: Vec3) -> Real:
    """Distance of two footprints [m]."""
    return wp.sqrt((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]))


@wp.func(inline=False)
def height_on_line(
    contact_frame: ContactFrame,
    shape: Any,
    of_a: bool,
    line: Feature,
    p: Vec3,
    height: Real,
    offset: Real,
) -> Real:
    """Height of a shape's surface above footprint p, `offset` beside the line [m], where the line
    has `height`.

    -inf for a and +inf for b if there is no surface. A capsule's line is its axis; its surface is
    above.
    """
    origin = lifted_from_frame(contact_frame, p[0], p[1], height)
    direction = contact_frame.normal
    up = Real(1.0)
    if not of_a:
        origin = wp.transform_point(wp.transform_inverse(contact_frame.pose_b_to_a), origin)
        direction = wp.quat_rotate_inv(
            wp.transform_get_rotation(contact_frame.pose_b_to_a), -direction
        )
        up = Real(-1.0)
    if offset <= Real(0.1) * contact_frame.level and shape.type != CAPSULE:
        return height
    # The ray starts close to the surface: one from far away would round at the scale of its length.
    length = line_exit(shape, line.code, origin, direction)
    if length == -Real(wp.inf) and offset <= contact_frame.shift and shape.type != CAPSULE:
        return height
    return height + up * length


@wp.func
def clamped_to_polygon(corner: wp.array[Vec3], count: int, p: Vec3) -> Vec3:
    """Footprint p, or the closest point of a convex polygon's outline to it where p is outside."""
    orientation = orientation_of(corner)
    for k in range(count):
        line = inward_of(corner, count, k, orientation)
        if line[0] * p[0] + line[1] * p[1] + line[2] < Real(0.0):
            return closest_on_outline(corner, count, p)
    return p


@wp.func
def footprint(p: Vec3, u: Vec3, v: Vec3, normal: Vec3) -> Vec3:
    """Coordinates of a point along u, along v and along the normal."""
    return Vec3(wp.dot(p, u), wp.dot(p, v), wp.dot(p, normal))


@wp.func
def closest_on_outline(corner: wp.array[Vec3], count: int, p: Vec3) -> Vec3:
    """Closest point to footprint p of the sides of a polygon or of a segment; its height is the
    side's there."""
    closest = corner[0]
    for k in range(count):
        start = corner[k]
        along = corner[(k + 1) % count] - start
        square = along[0] * along[0] + along[1] * along[1]
        t = (along[0] * (p[0] - start[0]) + along[1] * (p[1] - start[1])) / square
        foot = start + wp.clamp(t, Real(0.0), Real(1.0)) * along
        if is_beside(foot, p) < is_beside(closest, p):
            closest = foot
    return closest
