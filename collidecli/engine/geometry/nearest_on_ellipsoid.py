"""Closest point of an ellipsoid's surface to a point."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.surface_point import SurfacePoint

MOST_STEPS = wp.constant(60)
CONVERGED = wp.constant(Real(1e-8))
"""Relative change of s at which the iteration ends: the remaining error is its square, as convergence is quadratic."""


@wp.func
def nearest_on_ellipsoid(half: Vec3, point: Vec3) -> SurfacePoint:
    """Closest point of an ellipsoid's surface to `point`, outside or inside.

    With c the shortest semi-axis and r_i = (half_i / c)^2, the closest point to y is x_i = r_i y_i / (r_i - 1 + s) for
    the
    largest s that puts x on the surface: |q(s)| = 1 with q_i(s) = x_i / half_i.
    1 / |q(s)| is increasing and concave, so Newton's method on it converges to the root monotonically from any s below,
    without overshoot, and in few steps as the function is nearly linear.

    Args:
        half: semi-axes [m]. point: in the ellipsoid's frame [m].
    Degenerate: where the closest point is not unique, the one on the positive side of the shortest axis, the last of
    equally short axes.
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
    # q_i(s) = weight_i / (excess_i + s); excess_i is r_i - 1 without cancellation.
    excess = Vec3(
        (half[0] - c) * (half[0] + c) / (c * c),
        (half[1] - c) * (half[1] + c) / (c * c),
        (half[2] - c) * (half[2] + c) / (c * c),
    )
    weight = wp.cw_mul(half, Vec3(wp.abs(point[0]), wp.abs(point[1]), wp.abs(point[2]))) / (c * c)
    s = _root(weight, excess)
    on_sphere = _directions(weight, excess, s)
    if s == Real(0.0):
        # The point is in the plane across the shortest axis, so close to the centre that there is no root above 0.
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
    """The root s >= 0 of |q(s)| = 1, or 0 if |q| is below 1 for all s >= 0."""
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
    """weight / (excess + s) by component; 0 where the weight is 0."""
    result = Vec3(Real(0.0), Real(0.0), Real(0.0))
    for i in range(3):
        if weight[i] > Real(0.0):
            result[i] = weight[i] / (excess[i] + s)
    return result
