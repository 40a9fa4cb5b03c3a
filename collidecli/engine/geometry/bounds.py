"""Axis-aligned bounds of a shape: tight in float64, then rounded outwards to float32."""

import warp as wp

from collidecli.engine.geometry.real import Mat33, Pose, Quat, Real, Vec3

PLANE = wp.constant(0)
SPHERE = wp.constant(1)
CAPSULE = wp.constant(2)
BOX = wp.constant(3)
CYLINDER = wp.constant(4)
CONE = wp.constant(5)
ELLIPSOID = wp.constant(6)

OUTWARD = wp.constant(wp.float32(2.0e-7))
"""Relative widening of a float32 bound: more than the rounding of float64 to float32 and of one subtraction."""
INFINITE = wp.constant(wp.float32(1.0e38))


@wp.func
def disc_extent(axis: Vec3, radius: Real) -> Vec3:
    """Half extents of a disc's bounds; `axis` is its unit normal."""
    one = Real(1.0)
    zero = Real(0.0)
    return radius * Vec3(
        wp.sqrt(wp.max(zero, one - axis[0] * axis[0])),
        wp.sqrt(wp.max(zero, one - axis[1] * axis[1])),
        wp.sqrt(wp.max(zero, one - axis[2] * axis[2])),
    )


@wp.func
def rows_length(rotation: Mat33, size: Vec3) -> Vec3:
    """Length of each row of rotation · diag(size): the half extents of an ellipsoid's bounds."""
    return Vec3(
        wp.length(wp.cw_mul(rotation[0], size)),
        wp.length(wp.cw_mul(rotation[1], size)),
        wp.length(wp.cw_mul(rotation[2], size)),
    )


@wp.func
def half_extent(shape_type: int, size: Vec3, rotation: Mat33) -> Vec3:
    """Half extents of the bounds of a shape symmetric about its origin (every type but plane and cone)."""
    axis = Vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])
    radius = Vec3(size[0], size[0], size[0])
    if shape_type == SPHERE:
        return radius
    if shape_type == CAPSULE:
        return size[1] * wp.abs(axis) + radius
    if shape_type == BOX:
        return Vec3(
            wp.dot(wp.abs(rotation[0]), size), wp.dot(wp.abs(rotation[1]), size), wp.dot(wp.abs(rotation[2]), size)
        )
    if shape_type == CYLINDER:
        return size[1] * wp.abs(axis) + disc_extent(axis, size[0])
    return rows_length(rotation, size)


@wp.func
def rounded_down(x: Vec3) -> wp.vec3f:
    """A float32 corner that is nowhere above x."""
    low = wp.vec3f(x)
    return low - OUTWARD * wp.abs(low)


@wp.func
def rounded_up(x: Vec3) -> wp.vec3f:
    """A float32 corner that is nowhere below x."""
    high = wp.vec3f(x)
    return high + OUTWARD * wp.abs(high)


@wp.func
def quat_z(rotation: Quat) -> Vec3:
    """The z axis of a rotated frame."""
    return wp.quat_rotate(rotation, Vec3(Real(0.0), Real(0.0), Real(1.0)))


@wp.func
def ball_radius(center: wp.vec3f, radius: wp.float32) -> wp.float32:
    """Radius of a ball about a rounded centre that holds the ball about the exact one."""
    return radius + OUTWARD * (radius + wp.abs(center[0]) + wp.abs(center[1]) + wp.abs(center[2]))


@wp.struct
class Box:
    """Lowest and highest world coordinates [m]."""

    lower: Vec3
    upper: Vec3


@wp.func
def bounding_box(shape_type: int, size: Vec3, pose_to_world: Pose, inflation: Real) -> Box:
    """Axis-aligned box of a shape, grown by `inflation` on every side; a plane's reaches everywhere."""
    box = Box()
    if shape_type == PLANE:
        everywhere = Real(INFINITE)
        box.upper = Vec3(everywhere, everywhere, everywhere)
        box.lower = -box.upper
        return box
    center = wp.transform_get_translation(pose_to_world)
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_to_world))
    grown = Vec3(inflation, inflation, inflation)
    if shape_type == CONE:
        axis = Vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])
        base = disc_extent(axis, size[0])
        box.lower = center + wp.min(size[1] * axis, -size[1] * axis - base) - grown
        box.upper = center + wp.max(size[1] * axis, -size[1] * axis + base) + grown
        return box
    extent = half_extent(shape_type, size, rotation) + grown
    box.lower = center - extent
    box.upper = center + extent
    return box
