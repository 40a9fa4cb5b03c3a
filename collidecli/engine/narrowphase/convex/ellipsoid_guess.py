"""Guesses of the normal at an ellipsoid: of another ellipsoid, or of a point.

*Two ellipsoids.* Scaled about their centres by one factor, they touch at exactly one factor. There
they have one normal, that of ((1 - s) A + s B)^-1 times the line of centres, where A and B are the
matrices of the squared half axes and s, between 0 and 1, is a / (a + b): a and b are the lengths of
the normal as A and B measure it. It is the normal of the distance or depth where the ellipsoids
touch, and close to it where they are near.

*A point p.* The ellipsoid's point closest to it is s_i^2 p_i / (s_i^2 + t) along each half axis
s_i, with the t that puts it on the surface, where N(t), the length of (s_i p_i / (s_i^2 + t)), is
1. The inverse of N is nearly linear in t, so that Newton's method for it needs few steps, and it is
concave: from a t that is too small, they rise to the solution.

Sources: Perram and Wertheim 1985, "Statistical mechanics of hard ellipsoids"; More and Sorensen
1983, "Computing a trust region step" (steps in t).
"""

import warp as wp

from collidecli.engine.geometry.primitives import MinkowskiDifference
from collidecli.engine.geometry.real import Real, Vec3

STEPS = wp.constant(2)
"""Steps from s = 1/2. Measured on a pile of ellipsoids three times as long as wide, the guess is
0.13 degrees from the normal of overlapping ones in the median, 2.5 degrees in 99 of 100 pairs."""


@wp.func
def squared_axes(size: Vec3) -> Vec3:
    """Squares of an ellipsoid's half axes [m^2]."""
    return wp.cw_mul(size, size)


@wp.func
def along_conjugate(first: Vec3, second: Vec3, third: Vec3, point: Vec3) -> Vec3:
    """The inverse of a symmetric positive matrix of these rows times a point, up to a positive
    factor."""
    return Vec3(
        wp.dot(wp.cross(second, third), point),
        wp.dot(wp.cross(third, first), point),
        wp.dot(wp.cross(first, second), point),
    )


@wp.func
def touching_normal(difference: MinkowskiDifference) -> Vec3:
    """Approximate unit normal, a to b, at which two ellipsoids scaled by one factor touch; zero for
    coincident centres."""
    of_a = squared_axes(difference.a.size)
    rotation = difference.rotation
    of_b = rotation * wp.diag(squared_axes(difference.b.size)) * wp.transpose(rotation)
    share = Real(0.5)
    normal = Vec3()
    step = int(0)
    while step <= STEPS:
        rest = Real(1.0) - share
        first = share * Vec3(of_b[0, 0], of_b[0, 1], of_b[0, 2])
        second = share * Vec3(of_b[1, 0], of_b[1, 1], of_b[1, 2])
        third = share * Vec3(of_b[2, 0], of_b[2, 1], of_b[2, 2])
        first[0] += rest * of_a[0]
        second[1] += rest * of_a[1]
        third[2] += rest * of_a[2]
        normal = along_conjugate(first, second, third, difference.position)
        length = wp.length(normal)
        if length == Real(0.0):
            return Vec3()
        normal = normal / length
        height_a = wp.sqrt(wp.dot(normal, wp.cw_mul(of_a, normal)))
        height_b = wp.sqrt(wp.dot(normal, of_b * normal))
        share = height_a / (height_a + height_b)
        step += 1
    return normal


PROJECTION_STEPS = wp.constant(1)
"""Steps in t of `normal_toward`."""


@wp.func
def normal_toward(size: Vec3, point: Vec3) -> Vec3:
    """Approximate unit normal of an ellipsoid at its point closest to `point`, which is not its
    centre; all in its frame. size: half axes [m]."""
    square = wp.cw_mul(size, size)
    along = wp.cw_mul(size, wp.abs(point))
    t = wp.max(along - square)
    step = int(0)
    while step < PROJECTION_STEPS:
        inverse = wp.cw_div(Vec3(Real(1.0), Real(1.0), Real(1.0)), square + Vec3(t, t, t))
        scaled = wp.cw_mul(along, inverse)
        length_square = wp.dot(scaled, scaled)
        bend = wp.dot(scaled, wp.cw_mul(scaled, inverse))
        t += length_square / bend * (wp.sqrt(length_square) - Real(1.0))
        step += 1
    return wp.normalize(wp.cw_div(point, square + Vec3(t, t, t)))
