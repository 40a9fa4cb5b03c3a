"""Proof that a direction has the least depth of two overlapping cores, from support points of their difference.

Let d > 0 be the height of the support function h at unit n0, and v = d n0 a point of the difference. For n at the angle
t from n0, the point v gives h(n) >= d cos t. Four support points along directions tilted from n0, a ring, give more.
Their heights along n0 are between d - sag and d, and their projections along n0 are the corners of a polygon around the
origin with inradius w. So h(n) >= (d - sag) cos t + w sin t, without the sag if t is obtuse. With u = tan(t/2) that is
at least d where (2 d - sag) u^2 - 2 w u + sag <= 0: an interval of u. The support point along -n0 covers all u from
some value up. If the intervals leave a gap at n0 alone, the least depth is d, or by v at least d cos t of that gap.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.geometry.support import MinkowskiDifference, difference_support
from collidecli.engine.narrowphase.convex.support_discontinuities import any_tangent, difference_discontinuity

UNCERTAIN = wp.constant(Real(0.03))
"""Largest u of the gap at n0, 0.06 rad: the depth is certain to 2e-3 of itself, as EPA's, and exact unless two separate
minima lie within that angle of each other."""

TILT = wp.constant(Real(0.4))
"""Tangent of a ring's tilt relative to the u that is covered up to there. Its interval begins at half of the tangent or
less where the surface is equally curved in both directions."""

RINGS = wp.constant(5)
"""Maximum number of rings. Measured: one or two for shapes that touch, of which nine of ten are proved."""

ON_DISCONTINUITY = wp.constant(Real(1.0e-9))
"""Sine of the angle between a direction and a discontinuity below which the direction is on it."""

NEARLY_PARALLEL = wp.constant(Real(0.999999))
"""Cosine of the angle between two steps from which they are one direction."""


@wp.func
def covered_by_ring(
    difference: MinkowskiDifference, normal: Vec3, first: Vec3, second: Vec3, tilt: Real, depth: Real
) -> Vec2:
    """Lower and upper end of the interval of u that a ring covers; (inf, 0) for none."""
    over = Real(1.0) / wp.sqrt(Real(1.0) + tilt * tilt)
    sag = Real(0.0)
    inradius = Real(wp.inf)
    start = Vec2()
    corner = Vec2()
    for k in range(5):
        following = start
        if k < 4:
            tangent = wp.where(k % 2 == 0, first, second)
            side = wp.where(k < 2, tilt, -tilt)
            point = difference_support(difference, over * (normal + side * tangent)).point
            sag = wp.max(sag, depth - wp.dot(point, normal))
            following = Vec2(wp.dot(point, first), wp.dot(point, second))
        if k == 0:
            start = following
        else:
            # Four left turns around the origin make a whole one, so that the polygon has the origin inside.
            turn = corner[0] * following[1] - corner[1] * following[0]
            if turn <= Real(0.0):
                return Vec2(Real(wp.inf), Real(0.0))
            inradius = wp.min(inradius, turn / wp.length(following - corner))
        corner = following
    bend = Real(2.0) * depth - sag
    square = inradius * inradius - sag * bend
    if square < Real(0.0):
        return Vec2(Real(wp.inf), Real(0.0))
    sum = inradius + wp.sqrt(square)
    upper = wp.max(Real(1.0), inradius / depth)
    if sum < bend:
        upper = sum / bend
    return Vec2(sag / sum, upper)


@wp.func
def step_at(difference: MinkowskiDifference, bit: int, normal: Vec3) -> Vec3:
    """Unit vector of the step of a discontinuity that `normal` is on; zero if it is not."""
    discontinuity = difference_discontinuity(difference, bit, normal)
    if wp.abs(wp.dot(discontinuity.axis, normal) - discontinuity.height) > ON_DISCONTINUITY:
        return Vec3()
    return wp.normalize(discontinuity.step)


@wp.func
def first_tangent(difference: MinkowskiDifference, normal: Vec3) -> Vec3:
    """Unit tangent to which a ring's first point is tilted, so that it has points on each side of each discontinuity.

    At half a right angle to one step, halfway between two. Only the first discontinuity of each core is considered.
    """
    of_a = step_at(difference, 0, normal)
    of_b = step_at(difference, 3, normal)
    if of_a == Vec3() and of_b == Vec3():
        return any_tangent(normal)
    if of_a == Vec3():
        of_a = of_b
    cosine = wp.dot(of_a, of_b)
    if of_b == Vec3() or wp.abs(cosine) > NEARLY_PARALLEL:
        of_b = wp.cross(normal, of_a)
    middle = wp.where(cosine < Real(0.0), of_a - of_b, of_a + of_b)
    return wp.normalize(middle - wp.dot(middle, normal) * normal)


@wp.func(inline=False)
def is_least_depth(difference: MinkowskiDifference, normal: Vec3, depth: Real) -> bool:
    """Whether `depth` [m], attained by `depth * normal` on the difference's surface, is proved to be the least depth.

    False if five rings prove nothing, as for shapes that overlap by more than a tenth of their size.
    """
    opposite = difference_support(difference, -normal).point
    beyond = -wp.dot(opposite, normal)
    if beyond <= depth:
        return False
    beside = wp.length_sq(opposite + beyond * normal)
    back = wp.sqrt(beside) + wp.sqrt(beside + beyond * beyond - depth * depth)
    back = back / (beyond - depth)
    first = first_tangent(difference, normal)
    second = wp.cross(normal, first)
    covered = UNCERTAIN + Real(0.0)
    tilt = TILT * covered
    for _ in range(RINGS):
        interval = covered_by_ring(difference, normal, first, second, tilt, depth)
        if interval[0] <= covered:
            covered = wp.max(covered, interval[1])
            if covered >= back:
                return True
            tilt = TILT * wp.min(covered, Real(1.0))
        else:
            tilt = TILT * TILT * tilt
    return False
