"""The nearest point of a triangle."""

import warp as wp

from collidecli.engine.geometry.meshes import TriangleShape, barycentric_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.triangle_features import corner_of

AT_SURFACE = wp.constant(Real(1.0e-9))
"""Share of a size: a middle nearer to a triangle leaves along its normal."""


@wp.func
def nearest_on_triangle(shape: TriangleShape, point: Vec3) -> Vec3:
    """The point of a triangle nearest to another [m]."""
    shares = barycentric_of(shape.p, shape.q, shape.r, point)
    if shares[0] >= Real(0.0) and shares[1] >= Real(0.0) and shares[2] >= Real(0.0):
        return point - wp.dot(point - shape.p, shape.normal) * shape.normal
    result = shape.p
    square = Real(wp.inf)
    for k in range(3):
        start = corner_of(shape, k)
        along = corner_of(shape, k + 1) - start
        share = wp.clamp(wp.dot(point - start, along) / wp.dot(along, along), Real(0.0), Real(1.0))
        foot = start + share * along
        if wp.length_sq(point - foot) < square:
            square = wp.length_sq(point - foot)
            result = foot
    return result
