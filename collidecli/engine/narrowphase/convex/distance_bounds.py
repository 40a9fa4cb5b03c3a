"""Certified bounds of the distance of two cores that nearly touch.

Every v of GJK is a point of the Minkowski difference, whatever the rounding of its weights: |v|
bounds the distance from above. The separation s(n) along any unit normal bounds it from below.
Where v is short its direction is rounding: an error of e [rad] lowers s by e times the size. So b
is moved by a gap t along the best normal n so far, far enough for GJK. Its normal m maximizes s(m)
+ t m.n, so that s(m) >= s(n) + t (1 - m.n): no step lowers s, and only the normal of the distance
is a fixed point. This is the proximal point method for the concave function s. GJK's |v| is blind
to an error of m below 1e-8, its square root of the rounding; the normal of its simplex, a face of
the difference, is not.

Source: Rockafellar 1976, "Monotone operators and the proximal point algorithm".
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.real import BOX, CONE, CYLINDER, Real, Vec3
from collidecli.engine.narrowphase.convex import gjk
from collidecli.engine.narrowphase.convex.penetration import (
    nearest_of_separated,
    sum_of_sizes,
    witness_gap,
)

LOOSE = wp.constant(Real(1.0e-12))
"""Difference of both bounds of GJK, relative to the sizes' sum, from which they are improved."""
TIGHT = wp.constant(Real(1.0e-14))
"""Difference of both bounds relative to the sizes' sum at which they are exact up to rounding."""
WIDER = wp.constant(Real(8.0))
"""Factor of the gap, up to the sizes' sum, once a direction separates the cores: a narrow gap moves
the normal far, a wide one has less rounding of the direction, and one beyond the sizes more of the
points."""
STEPS = wp.constant(16)
"""Maximum number of steps."""


@wp.struct
class DistanceBounds:
    """Bounds of the distance of two cores [m]. upper: attained at core a's point `on_a`. lower: the
    separation along `normal`, unit, a to b; negative if no direction was found that separates them.
    All in a's frame.
    """

    upper: Real
    lower: Real
    normal: Vec3
    on_a: Vec3


@wp.func
def separated_along(difference: Any, normal: Vec3, bounds: DistanceBounds) -> DistanceBounds:
    """`bounds`, or those with the separation along a unit normal if it is larger."""
    separation = -wp.dot(primitives.difference_support(difference, normal).point, normal)
    return (
        DistanceBounds(bounds.upper, separation, normal, bounds.on_a)
        if separation > bounds.lower
        else bounds
    )


@wp.func
def separated_across(
    difference: Any, p: Vec3, q: Vec3, r: Vec3, bounds: DistanceBounds
) -> DistanceBounds:
    """`bounds`, or those with the separation along the normal of a triangle, of either sign, if it
    is larger."""
    normal = wp.cross(q - p, r - p)
    if wp.length_sq(normal) == Real(0.0):
        return bounds
    normal = wp.normalize(normal)
    return separated_along(difference, -normal, separated_along(difference, normal, bounds))


@wp.func
def separated_across_sides(difference: Any, bounds: DistanceBounds) -> DistanceBounds:
    """`bounds`, or those with the separation along the normal of a flat side of core a's, if it is
    larger.

    Where b's closest point is above such a side, close to its border, s falls little towards the
    border's normals, and the steps back are short.
    """
    result = bounds
    shape_type = difference.a.type
    for axis in range(3):
        normal = Vec3()
        normal[axis] = Real(1.0)
        if shape_type == BOX or (axis == 2 and shape_type == CYLINDER):
            result = separated_along(difference, normal, result)
        if shape_type == BOX or (axis == 2 and (shape_type == CYLINDER or shape_type == CONE)):
            result = separated_along(difference, -normal, result)
    return result


@wp.func(inline=False)
def narrowed(
    difference: Any, before: DistanceBounds, simplex: wp.array[primitives.Vertex]
) -> DistanceBounds:
    """Bounds of the distance of two cores after the proximal point method from their normal.
    simplex: scratch."""
    result = before
    size = sum_of_sizes(difference)
    gap = WIDER * witness_gap(difference)
    normal = result.normal
    for _ in range(STEPS):
        if result.upper - result.lower <= TIGHT * size or gap > size:
            break
        shift = gap + wp.max(-result.lower, Real(0.0))
        apart = nearest_of_separated(difference, Real(0.0), normal, shift, simplex)
        if apart.state != gjk.APART:
            break
        upper = wp.length(apart.distance * apart.normal - shift * normal)
        if upper < result.upper:
            result.upper = upper
            result.on_a = apart.on_a
        lower = result.lower
        result = separated_along(difference, apart.normal, result)
        result = separated_across(
            difference, simplex[0].point, simplex[1].point, simplex[2].point, result
        )
        normal = wp.where(result.lower > lower, result.normal, apart.normal)
        gap = wp.where(result.lower > Real(0.0), WIDER * gap, gap)
    return result


@wp.func(inline=False)
def supported(
    difference: Any, before: gjk.Nearest, simplex: wp.array[primitives.Vertex]
) -> gjk.Nearest:
    """GJK's result after the proximal point method, where no plane supports its v.

    Vertices of one rim that are close to each other span slivers, in whose plane rounding hides the
    closest point. OVERLAP, without a simplex, where no direction separates the cores. simplex:
    scratch.
    """
    bounds = DistanceBounds(before.distance, -Real(wp.inf), before.normal, before.on_a)
    bounds = narrowed(difference, separated_along(difference, before.normal, bounds), simplex)
    result = before
    result.distance = bounds.upper
    result.normal = bounds.normal
    result.on_a = bounds.on_a
    if bounds.lower <= Real(0.0):
        result.state = gjk.OVERLAP
        result.count = 0
    return result


@wp.func
def nearest_cores(
    difference: Any, start: Vec3, max_separation: Real, simplex: wp.array[primitives.Vertex]
) -> gjk.Nearest:
    """Distance, normal and closest point of two cores, as `gjk.nearest_of_difference`, supported by
    a plane."""
    nearest = gjk.nearest_of_difference(difference, start, max_separation, simplex)
    if nearest.state == gjk.APART and nearest.is_supported == 0:
        return supported(difference, nearest, simplex)
    return nearest


@wp.func(inline=False)
def distance_bounds(
    difference: Any, nearest: gjk.Nearest, simplex: wp.array[primitives.Vertex]
) -> DistanceBounds:
    """Bounds of the distance of a core and a triangle from GJK's result, which may be OVERLAP
    without an overlap.

    simplex: scratch.
    """
    result = DistanceBounds(nearest.distance, -Real(wp.inf), Vec3(), nearest.on_a)
    result = separated_along(difference, nearest.normal, result)
    size = sum_of_sizes(difference)
    if result.upper - result.lower <= LOOSE * size or result.upper <= wp.max(
        difference.radius_a, TIGHT * size
    ):
        return result
    turn = difference.rotation
    b = difference.b
    p = turn * b.p
    q = turn * b.q
    r = turn * b.r
    result = separated_across(difference, p, q, r, result)
    result = narrowed(difference, result, simplex)
    # Last, since a better start may lead the steps, whose number is limited, to a worse end.
    if result.upper - result.lower > TIGHT * size:
        result = separated_across_sides(difference, result)
    return result
