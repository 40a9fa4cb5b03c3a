"""Axis-aligned bounding boxes: tight in float64, then rounded outwards to float32."""

import warp as wp

from collidecli.engine.geometry.real import Pose, Quat, Real, Vec3
from collidecli.engine.geometry.shape_codes import (
    BOX,
    CAPSULE,
    CONE,
    CONVEX_MESH,
    CYLINDER,
    HEIGHTFIELD,
    MESH,
    PLANE,
    SPHERE,
)

OUTWARD = wp.constant(wp.float32(2.0e-7))
"""Relative widening of a float32 bound: exceeds the rounding of float64 to float32 plus one subtraction."""
INFINITE = wp.constant(wp.float32(1.0e38))


@wp.func
def disc_extent(axis: Vec3, radius: Real) -> Vec3:
    """Half extents of a disc's bounding box; `axis` is the disc's unit normal."""
    one = Real(1.0)
    zero = Real(0.0)
    return radius * Vec3(
        wp.sqrt(wp.max(zero, one - axis[0] * axis[0])),
        wp.sqrt(wp.max(zero, one - axis[1] * axis[1])),
        wp.sqrt(wp.max(zero, one - axis[2] * axis[2])),
    )


@wp.func
def quat_x(q: Quat) -> Vec3:
    """x axis of a frame rotated by a unit quaternion: 9 products instead of the 30 of a general rotation."""
    two = Real(2.0)
    return Vec3(
        Real(1.0) - two * (q[1] * q[1] + q[2] * q[2]),
        two * (q[0] * q[1] + q[2] * q[3]),
        two * (q[0] * q[2] - q[1] * q[3]),
    )


@wp.func
def quat_y(q: Quat) -> Vec3:
    """y axis of a frame rotated by a unit quaternion."""
    two = Real(2.0)
    return Vec3(
        two * (q[0] * q[1] - q[2] * q[3]),
        Real(1.0) - two * (q[0] * q[0] + q[2] * q[2]),
        two * (q[1] * q[2] + q[0] * q[3]),
    )


@wp.func
def quat_z(q: Quat) -> Vec3:
    """z axis of a frame rotated by a unit quaternion."""
    two = Real(2.0)
    return Vec3(
        two * (q[0] * q[2] + q[1] * q[3]),
        two * (q[1] * q[2] - q[0] * q[3]),
        Real(1.0) - two * (q[0] * q[0] + q[1] * q[1]),
    )


@wp.func
def half_extent(shape_type: int, size: Vec3, rotation: Quat) -> Vec3:
    """Half extents of the bounding box of a shape symmetric about its origin (every type but plane and cone)."""
    radius = Vec3(size[0], size[0], size[0])
    if shape_type == SPHERE:
        return radius
    z = quat_z(rotation)
    if shape_type == CAPSULE:
        return size[1] * wp.abs(z) + radius
    if shape_type == CYLINDER:
        return size[1] * wp.abs(z) + disc_extent(z, size[0])
    x = size[0] * quat_x(rotation)
    y = size[1] * quat_y(rotation)
    z = size[2] * z
    if shape_type == BOX or shape_type == CONVEX_MESH or shape_type == MESH or shape_type == HEIGHTFIELD:
        return wp.abs(x) + wp.abs(y) + wp.abs(z)
    square = wp.cw_mul(x, x) + wp.cw_mul(y, y) + wp.cw_mul(z, z)
    return Vec3(wp.sqrt(square[0]), wp.sqrt(square[1]), wp.sqrt(square[2]))


@wp.func
def rounded_down(x: Vec3) -> wp.vec3f:
    """Float32 corner that is nowhere above x."""
    low = wp.vec3f(x)
    return low - OUTWARD * wp.abs(low)


@wp.func
def rounded_up(x: Vec3) -> wp.vec3f:
    """Float32 corner that is nowhere below x."""
    high = wp.vec3f(x)
    return high + OUTWARD * wp.abs(high)


@wp.struct
class Box:
    """Lowest and highest world coordinates [m]."""

    lower: Vec3
    upper: Vec3


@wp.func
def bounding_box(shape_type: int, size: Vec3, pose_to_world: Pose, inflation: Real) -> Box:
    """Axis-aligned bounding box of a shape, grown by `inflation` on every side; unbounded for a plane."""
    box = Box()
    if shape_type == PLANE:
        everywhere = Real(INFINITE)
        box.upper = Vec3(everywhere, everywhere, everywhere)
        box.lower = -box.upper
        return box
    center = wp.transform_get_translation(pose_to_world)
    rotation = wp.transform_get_rotation(pose_to_world)
    grown = Vec3(inflation, inflation, inflation)
    if shape_type == CONE:
        axis = quat_z(rotation)
        base = disc_extent(axis, size[0])
        box.lower = center + wp.min(size[1] * axis, -size[1] * axis - base) - grown
        box.upper = center + wp.max(size[1] * axis, -size[1] * axis + base) + grown
        return box
    extent = half_extent(shape_type, size, rotation) + grown
    box.lower = center - extent
    box.upper = center + extent
    return box
