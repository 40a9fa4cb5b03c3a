"""Depth of a point inside a convex shape."""

import warp as wp

from collidecli.engine.geometry.hulls import FACE_ROW, HullShape, hull_number, hull_point
from collidecli.engine.geometry.primitives import Primitive
from collidecli.engine.geometry.real import (
    BOX,
    CAPSULE,
    CONE,
    CYLINDER,
    ELLIPSOID,
    Real,
    Vec3,
)

# ruff: noqa: F811


@wp.func
def depth_in_shape(shape: Primitive, point: Vec3) -> Real:
    """Depth of a point inside a primitive [m]; 0 or less outside. Exact except for ellipsoids: a
    lower bound."""
    size = shape.size
    across = wp.sqrt(point[0] * point[0] + point[1] * point[1])
    if shape.type == BOX:
        beside = size - wp.abs(point)
        return wp.min(beside[0], wp.min(beside[1], beside[2]))
    if shape.type == CYLINDER:
        return wp.min(size[0] - across, size[1] - wp.abs(point[2]))
    if shape.type == CONE:
        slant = wp.sqrt(size[0] * size[0] + Real(4.0) * size[1] * size[1])
        to_side = (size[0] * (size[1] - point[2]) - Real(2.0) * size[1] * across) / slant
        return wp.min(point[2] + size[1], to_side)
    if shape.type == ELLIPSOID:
        scaled = wp.length(wp.cw_div(point, size))
        return (Real(1.0) - scaled) * wp.min(size[0], wp.min(size[1], size[2]))
    if shape.type == CAPSULE:
        on_axis = Vec3(Real(0.0), Real(0.0), wp.clamp(point[2], -size[1], size[1]))
        return size[0] - wp.length(point - on_axis)
    return size[0] - wp.length(point)


@wp.func
def depth_in_shape(shape: HullShape, point: Vec3) -> Real:
    """Depth of a point inside a hull [m]; negative outside."""
    least = Real(wp.inf)
    for face in range(shape.face_count):
        normal = hull_point(shape, shape.normal + face)
        corner = hull_point(
            shape, shape.vertex + hull_number(shape, shape.face + face * FACE_ROW + 1)
        )
        least = wp.min(least, wp.dot(normal, corner - point))
    return least
