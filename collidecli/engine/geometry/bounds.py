"""Axis-aligned bounding boxes: tight in float64, then rounded outwards to float32."""

import warp as wp

from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import UP, Pose, Quat, Real, Vec3
from collidecli.scene.shape_types import ShapeType

OUTWARD = wp.constant(wp.float32(2.0e-7))
"""Relative widening of a float32 bound: exceeds the rounding of float64 to float32 plus one
subtraction."""
ROUNDING = wp.constant(wp.float32(2.0e-15))
"""Bound of the float64 rounding of a corner, relative to the sum of its shape's extent and
coordinates."""
INFINITE = wp.constant(wp.float32(1.0e38))


@wp.func
def disc_extent(axis: Vec3, radius: Real) -> Vec3:
    """Half extents of a disc's bounding box; `axis` is the disc's unit normal."""
    square = Vec3(Real(1.0), Real(1.0), Real(1.0)) - wp.cw_mul(axis, axis)
    return radius * Vec3(
        wp.sqrt(wp.max(Real(0.0), square[0])),
        wp.sqrt(wp.max(Real(0.0), square[1])),
        wp.sqrt(wp.max(Real(0.0), square[2])),
    )


@wp.func
def quat_x(q: Quat) -> Vec3:
    """x axis of a frame rotated by a unit quaternion: 9 products instead of the 30 of a general
    rotation."""
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
def local_half_extents(shape_type: int, size: Vec3) -> Vec3:
    """Half extents of the box of a shape about its origin, in its frame [m]; infinite for a
    plane."""
    if shape_type == ShapeType.PLANE:
        return Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
    if shape_type == ShapeType.SPHERE:
        return Vec3(size[0], size[0], size[0])
    if shape_type == ShapeType.CAPSULE:
        return Vec3(size[0], size[0], size[0] + size[1])
    if shape_type == ShapeType.CYLINDER or shape_type == ShapeType.CONE:
        return Vec3(size[0], size[0], size[1])
    return size


@wp.func
def half_extent(shape_type: int, size: Vec3, rotation: Quat) -> Vec3:
    """Half extents of the bounding box of a shape symmetric about its origin (every type but plane
    and cone)."""
    radius = Vec3(size[0], size[0], size[0])
    if shape_type == ShapeType.SPHERE:
        return radius
    z = quat_z(rotation)
    if shape_type == ShapeType.CAPSULE:
        return size[1] * wp.abs(z) + radius
    if shape_type == ShapeType.CYLINDER:
        return size[1] * wp.abs(z) + disc_extent(z, size[0])
    x = size[0] * quat_x(rotation)
    y = size[1] * quat_y(rotation)
    z = size[2] * z
    if shape_type != ShapeType.ELLIPSOID:
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
    """Axis-aligned bounding box of a shape, grown by `inflation` on every side; unbounded for a
    plane."""
    if shape_type == ShapeType.PLANE:
        everywhere = Vec3(Real(INFINITE), Real(INFINITE), Real(INFINITE))
        return Box(-everywhere, everywhere)
    center = wp.transform_get_translation(pose_to_world)
    rotation = wp.transform_get_rotation(pose_to_world)
    grown = Vec3(inflation, inflation, inflation)
    if shape_type == ShapeType.CONE:
        axis = quat_z(rotation)
        base = disc_extent(axis, size[0])
        lower = center + wp.min(size[1] * axis, -size[1] * axis - base) - grown
        return Box(lower, center + wp.max(size[1] * axis, -size[1] * axis + base) + grown)
    extent = half_extent(shape_type, size, rotation) + grown
    return Box(center - extent, center + extent)


@wp.struct
class ShapeBounds:
    """Bounds of a shape grown by the maximum separation, in the frame of a mesh [m].

    lower, upper: AABB. normal, height: of a plane, the half-space normal.x <= height; the normal of
    other shapes is zero. first, end: nodes of the mesh's BVH.
    """

    lower: Vec3
    upper: Vec3
    normal: Vec3
    height: Real
    first: int
    end: int


@wp.func
def box_of_shape(shape_type: int, size: Vec3, pose: Pose, max_separation: Real) -> ShapeBounds:
    """Bounds of a shape at a pose in the mesh's frame; the BVH is left unset."""
    bounds = ShapeBounds()
    box = bounding_box(shape_type, size, pose, max_separation)
    # Grown by more than the rounding error of the pose.
    position = wp.abs(wp.transform_get_translation(pose))
    slack = Real(1.0e-12) * (position[0] + position[1] + position[2])
    bounds.lower = box.lower - Vec3(slack, slack, slack)
    bounds.upper = box.upper + Vec3(slack, slack, slack)
    if shape_type == ShapeType.PLANE:
        bounds.normal = wp.transform_vector(pose, UP)
        bounds.height = (
            wp.dot(bounds.normal, wp.transform_get_translation(pose)) + max_separation + slack
        )
    return bounds


@wp.func
def box_intersects(bounds: ShapeBounds, meshes: Meshes, node: int) -> bool:
    """Whether a node of the BVH intersects the bounds."""
    lower = meshes.arrays[0].lower[node]
    upper = meshes.arrays[0].upper[node]
    for axis in range(3):
        if lower[axis] > bounds.upper[axis] or upper[axis] < bounds.lower[axis]:
            return False
    lowest = wp.min(wp.cw_mul(bounds.normal, lower), wp.cw_mul(bounds.normal, upper))
    return lowest[0] + lowest[1] + lowest[2] <= bounds.height
