"""Closest point of a box's surface to a point, and box feature numbers."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.surface_point import SurfacePoint


@wp.func
def box_feature(x: int, y: int, z: int) -> int:
    """Feature number of a box's face, edge or vertex, 0 to 26 without 13.

    Args:
        x, y, z: -1 or 1 at that end of the axis, 0 between the ends. A face has one nonzero value, an edge two, a
            vertex three.
    """
    return 13 + x + 3 * y + 9 * z


@wp.func
def feature_step(axis: int, side: int) -> int:
    """Change of a `box_feature` when its digit for `axis` changes from 0 to `side` (-1, 0, 1)."""
    if axis == 0:
        return side
    if axis == 1:
        return 3 * side
    return 9 * side


@wp.func
def nearest_on_box(half: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of a box's surface to `point`.

    Args:
        half: half extents [m]. point: in the box's frame [m].
    Returns:
        see `SurfacePoint`; feature as `box_feature`.
    Degenerate: for points inside or on the surface, the closest face; of equally close faces x before y before z, and
    the positive side for a coordinate of 0.
    """
    result = SurfacePoint()
    clamped = Vec3(
        wp.clamp(point[0], -half[0], half[0]),
        wp.clamp(point[1], -half[1], half[1]),
        wp.clamp(point[2], -half[2], half[2]),
    )
    outside = point - clamped
    square = wp.dot(outside, outside)
    if square > Real(0.0):
        result.distance = wp.sqrt(square)
        result.outward = outside / result.distance
        result.feature = box_feature(_side(outside[0]), _side(outside[1]), _side(outside[2]))
        return result
    depth_x = half[0] - wp.abs(point[0])
    depth_y = half[1] - wp.abs(point[1])
    depth_z = half[2] - wp.abs(point[2])
    if depth_x <= depth_y and depth_x <= depth_z:
        side = _inner_side(point[0])
        result.distance = -depth_x
        result.outward = Vec3(Real(side), Real(0.0), Real(0.0))
        result.feature = box_feature(side, 0, 0)
    elif depth_y <= depth_z:
        side = _inner_side(point[1])
        result.distance = -depth_y
        result.outward = Vec3(Real(0.0), Real(side), Real(0.0))
        result.feature = box_feature(0, side, 0)
    else:
        side = _inner_side(point[2])
        result.distance = -depth_z
        result.outward = Vec3(Real(0.0), Real(0.0), Real(side))
        result.feature = box_feature(0, 0, side)
    return result


@wp.func
def _side(outside: Real) -> int:
    if outside > Real(0.0):
        return 1
    if outside < Real(0.0):
        return -1
    return 0


@wp.func
def _inner_side(coordinate: Real) -> int:
    if coordinate < Real(0.0):
        return -1
    return 1
