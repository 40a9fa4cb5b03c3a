"""The point of an ellipsoid's surface nearest to a point."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.surface_point import SurfacePoint

MOST_STEPS = wp.constant(60)
CONVERGED = wp.constant(Real(1e-8))
"""A step this small, relative to s, leaves an error of its square: convergence is quadratic."""


@wp.func
def nearest_on_ellipsoid(half: Vec3, point: Vec3) -> SurfacePoint:
    """The point of an ellipsoid's surface nearest to `point`, outside or inside.

    With c the shortest semi-axis and r_i = (half_i / c)^2, the point nearest to y is x_i = r_i y_i / (r_i - 1 + s) for
    the largest s that puts x on the surface: with q_i(s) = x_i / half_i, |q(s)| = 1.
    1 / |q(s)| is increasing and concave, so Newton's method on it climbs to the root from any s below, without a step
    too far, and takes few steps as it is nearly a straight line.

    Args:
        half: semi-axes [m]. point: ellipsoid's frame [m].
    Degenerate: where the nearest point is not unique, the one on the positive side of the shortest axis, the last of
    equally short ones.
    Source: the equation after Eberly, Distance from a Point to an Ellipse, an Ellipsoid, or a Hyperellipsoid, 2013; the
    iteration after Moré and Sorensen, Computing a Trust Region Step, 1983.
    """
    result = SurfacePoint()
    result.feature = -1
    shortest = 2
    if half[1] < half[shortest]:
        shortest = 1
    if half[0] < half[shortest]:
        shortest = 0
    c = half[shortest]
    # q_i(s) = weight_i / (excess_i + s); excess_i = r_i - 1 without its cancellation.
    excess = Vec3(
        (half[0] - c) * (half[0] + c) / (c * c),
        (half[1] - c) * (half[1] + c) / (c * c),
        (half[2] - c) * (half[2] + c) / (c * c),
    )
    weight = wp.cw_mul(half, Vec3(wp.abs(point[0]), wp.abs(point[1]), wp.abs(point[2]))) / (c * c)
    s = _root(weight, excess)
    on_sphere = _directions(weight, excess, s)
    if s == Real(0.0):
        # The point lies in the middle of the shortest axis, too near the centre for another root.
        rest = Real(1.0) - wp.dot(on_sphere, on_sphere)
        on_sphere[shortest] = wp.sqrt(wp.max(rest, Real(0.0)))
    for i in range(3):
        if point[i] < Real(0.0):
            on_sphere[i] = -on_sphere[i]
    on_sphere = wp.normalize(on_sphere)
    surface = wp.cw_mul(half, on_sphere)
    result.outward = wp.normalize(wp.cw_div(on_sphere, half))
    result.distance = wp.dot(point - surface, result.outward)
    return result


@wp.func
def _root(weight: Vec3, excess: Vec3) -> Real:
    """The s of at least 0 where |q(s)| = 1, or 0 where |q| is below 1 from there on."""
    # No |q_i| exceeds 1 at the root.
    s = wp.max(weight[0] - excess[0], wp.max(weight[1] - excess[1], weight[2] - excess[2]))
    s = wp.max(s, Real(0.0))
    on_sphere = _directions(weight, excess, s)
    length = wp.length(on_sphere)
    for _ in range(MOST_STEPS):
        if length <= Real(1.0):
            break
        slope = Real(0.0)
        for i in range(3):
            if weight[i] > Real(0.0):
                slope += on_sphere[i] * on_sphere[i] / (excess[i] + s)
        change = length * length * (length - Real(1.0)) / slope
        s += change
        on_sphere = _directions(weight, excess, s)
        length = wp.length(on_sphere)
        if change <= CONVERGED * s:
            break
    return s


@wp.func
def _directions(weight: Vec3, excess: Vec3, s: Real) -> Vec3:
    """weight / (excess + s), each 0 where its weight is."""
    result = Vec3(Real(0.0), Real(0.0), Real(0.0))
    for i in range(3):
        if weight[i] > Real(0.0):
            result[i] = weight[i] / (excess[i] + s)
    return result
