"""Early-outs before GJK, which decide most close pairs of primitives.

A box and a cylinder are tested by separating axes. For others, Newton's method starts from a guess
of the closest points. Points of separated cores through which it finds a supporting plane are the
closest points. A minimum of overlapping cores is their depth if `depth_certificate` proves it.

The guess is by alternating projection: the point of one core closest to the other's centre, then
the other's closest to that, and back. Exact for a sphere, for others nearly always close enough. An
ellipsoid's closest point is approximated, and two ellipsoids have a guess of their own, see
`ellipsoid_guess`. If two cores overlap, a flat end is tried, then closest points of smaller cores
inside them are the guess.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import (
    MinkowskiDifference,
    Support,
    Vertex,
    core_support,
    difference_support,
)
from collidecli.engine.geometry.real import BOX, CAPSULE, CONE, CYLINDER, ELLIPSOID, UP, Real, Vec3
from collidecli.engine.narrowphase.convex.box_cylinder import box_and_cylinder
from collidecli.engine.narrowphase.convex.depth_certificate import is_least_depth
from collidecli.engine.narrowphase.convex.ellipsoid_guess import normal_toward, touching_normal
from collidecli.engine.narrowphase.convex.gjk import is_nearest
from collidecli.engine.narrowphase.convex.newton_descent import (
    Descent,
    descend,
    minimum_on_disc,
    minimum_on_facing_disc,
)
from collidecli.engine.narrowphase.convex.polytope import WITNESS_MISS

# ruff: noqa: F811


INSET = wp.constant(Real(0.3))
"""Inset of smaller cores relative to their least half width, twice as much in the third attempt.
Measured on settled piles: three of four pairs of overlapping cylinders are decided by the first,
half of the others by the second."""

LEAVING = wp.constant(Real(0.02))
"""Angle [rad] to a discontinuity on which a minimum is not, at which another descent begins."""

ATTEMPTS = wp.constant(5)
"""Maximum number of descents from guesses, see `discontinuities_of`."""


@wp.struct
class Guess:
    """normal: unit, a to b, in a's frame. distance: of the two points, of the cores, that gave it
    [m]. discontinuities: bits of those that it may be on. is_valid: 0 if the two points are one.
    """

    normal: Vec3
    distance: Real
    discontinuities: int
    is_valid: int


@wp.func
def nearest_on_core(shape_type: int, size: Vec3, radius: Real, point: Vec3) -> Support:
    """Approximate closest point of a core to an outside point, in the core's frame [m]; `patch`:
    discontinuity bits.

    The core's centre if `point` is inside it, and for unsupported types. radius: of the core's
    rounding [m].
    """
    result = Support()
    if shape_type == BOX:
        for k in range(3):
            if wp.abs(point[k]) < size[k]:
                result.patch += 1 << k
                result.point[k] = point[k]
            else:
                result.point[k] = wp.where(point[k] < Real(0.0), -size[k], size[k])
    elif shape_type == CAPSULE or shape_type == CYLINDER:
        if wp.abs(point[2]) < size[1]:
            result.patch = 1
            result.point[2] = point[2]
        else:
            result.point[2] = wp.where(point[2] < Real(0.0), -size[1], size[1])
        if shape_type == CYLINDER:
            square = point[0] * point[0] + point[1] * point[1]
            scale = size[0] / wp.sqrt(square) if square > size[0] * size[0] else Real(1.0)
            result.point[0] = scale * point[0]
            result.point[1] = scale * point[1]
    elif shape_type == CONE:
        across = wp.sqrt(point[0] * point[0] + point[1] * point[1])
        height = point[2] + size[1]
        result.point = point
        if height < Real(0.0) and across < size[0]:
            result.point[2] = -size[1]
        elif height < Real(0.0) or Real(2.0) * size[1] * (across - size[0]) + size[
            0
        ] * height > Real(0.0):
            along = size[0] * (size[0] - across) + Real(2.0) * size[1] * height
            along = wp.clamp(
                along / (size[0] * size[0] + Real(4.0) * size[1] * size[1]), Real(0.0), Real(1.0)
            )
            result.patch = wp.where(along > Real(0.0) and along < Real(1.0), 1, 0)
            scale = (Real(1.0) - along) * size[0] / across if across > Real(0.0) else Real(0.0)
            result.point = Vec3(
                scale * point[0], scale * point[1], (Real(2.0) * along - Real(1.0)) * size[1]
            )
    elif shape_type == ELLIPSOID:
        square = wp.dot(point, point)
        # The ellipsoid of these half axes contains the core.
        scaled = wp.cw_div(point, size - Vec3(radius, radius, radius))
        if wp.dot(scaled, scaled) <= Real(1.0):
            result.point = point
        elif square > Real(0.0):
            result = core_support(shape_type, size, radius, normal_toward(size, point))
    return result


@wp.func
def guess_nearest(difference: MinkowskiDifference) -> Guess:
    """Guess of the cores' closest points; not valid for types that `nearest_on_core` does not
    support."""
    a = difference.a
    b = difference.b
    to_b = wp.transpose(difference.rotation)
    # An ellipsoid needs the other shape's point first, on which its own depends the most.
    on_a = Support()
    if a.type != ELLIPSOID:
        on_a = nearest_on_core(a.type, a.size, difference.radius_a, difference.position)
    on_b = nearest_on_core(
        b.type, b.size, difference.radius_b, to_b * (on_a.point - difference.position)
    )
    in_a = difference.rotation * on_b.point + difference.position
    on_a = nearest_on_core(a.type, a.size, difference.radius_a, in_a)
    if b.type != ELLIPSOID:
        on_b = nearest_on_core(
            b.type, b.size, difference.radius_b, to_b * (on_a.point - difference.position)
        )
        in_a = difference.rotation * on_b.point + difference.position
    normal = in_a - on_a.point
    square = wp.dot(normal, normal)
    if square == Real(0.0):
        return Guess()
    distance = wp.sqrt(square)
    return Guess(normal / distance, distance, on_a.patch + 8 * on_b.patch, 1)


UNDECIDED = wp.constant(0)
FAR = wp.constant(1)
DECIDED = wp.constant(2)
CONDITIONAL = wp.constant(3)


@wp.struct
class EarlyOut:
    """Result of an early-out test of two cores.

    state: UNDECIDED: `normal` is GJK's start direction. FAR: the cores are at least `distance`
    apart, which is at least the maximum separation. DECIDED: distance, normal and core a's witness
    are exact; the distance of separated cores is proved by points of the cores and a supporting
    plane, an overlap by a common point. CONDITIONAL: distance and normal are exact if the cores
    overlap, which GJK must decide. distance: signed [m]. normal: unit, a to b, in a's frame. on_a:
    core a's witness, in a's frame.
    """

    state: int
    distance: Real
    normal: Vec3
    on_a: Vec3


@wp.func
def toward(difference: Any) -> Vec3:
    """Unit vector along the line of centres; +z of a for coincident centres."""
    length = wp.length(difference.position)
    return difference.position / length if length > Real(0.0) else UP


@wp.func
def undecided(difference: Any) -> EarlyOut:
    """UNDECIDED, with GJK's start direction along the line of centres."""
    return EarlyOut(UNDECIDED, Real(0.0), toward(difference), Vec3())


@wp.func
def by_separating_axes(difference: MinkowskiDifference, max_separation: Real) -> EarlyOut:
    """Depth of a box and a cylinder, or a lower bound of their distance."""
    separation = box_and_cylinder(difference, max_separation)
    state = UNDECIDED
    if separation.depth > Real(0.0):
        state = DECIDED if separation.is_proved == 1 else CONDITIONAL
    elif separation.depth < Real(0.0) and separation.depth < -max_separation:
        state = FAR
    return EarlyOut(state, -separation.depth, separation.normal, separation.on_a)


@wp.func
def inset_core(shape_type: int, size: Vec3, inset: Real) -> Vec3:
    """Size of a smaller core of the same centre, whose boundary is about `inset` of the least half
    width inside."""
    if shape_type == BOX:
        width = inset * wp.min(size)
        return size - Vec3(width, width, width)
    if shape_type == CYLINDER:
        width = inset * wp.min(size[0], size[1])
        return size - Vec3(width, width, Real(0.0))
    return (Real(1.0) - inset) * size if shape_type == CONE else size


@wp.func
def guess_of_ellipsoids(difference: MinkowskiDifference) -> Guess:
    """Guess of the normal of two ellipsoids, without a distance."""
    normal = touching_normal(difference)
    return Guess(normal, Real(0.0), 0, wp.where(normal == Vec3(), 0, 1))


@wp.func
def guess_by_inset(difference: MinkowskiDifference, inset: Real) -> Guess:
    """`guess_nearest` of smaller cores, which are separated where the cores overlap by less than
    their inset."""
    if difference.a.type == ELLIPSOID and difference.b.type == ELLIPSOID:
        return guess_of_ellipsoids(difference)
    inner = difference
    inner.a.size = inset_core(difference.a.type, difference.a.size, inset)
    inner.b.size = inset_core(difference.b.type, difference.b.size, inset)
    return guess_nearest(inner)


@wp.func
def is_depth(difference: MinkowskiDifference, minimum: Descent, scale: Real) -> bool:
    """Whether Newton's result is proved to be the least depth of overlapping cores, with its
    witness."""
    if minimum.found != 1 or minimum.missed > WITNESS_MISS * scale or minimum.height <= Real(0.0):
        return False
    return is_least_depth(difference, minimum.normal, minimum.height)


@wp.func(inline=False)
def minimum_beside(difference: MinkowskiDifference, minimum: Descent, scale: Real) -> Descent:
    """Local minimum beside a minimum on a discontinuity whose v is beyond an end of the step: on
    the patch of that end; found = 0 for other minima."""
    if minimum.found != 1 or minimum.missed <= WITNESS_MISS * scale:
        return Descent()
    aside = wp.normalize(minimum.normal - LEAVING / minimum.missed * minimum.off)
    return descend(difference, aside, 0, scale, Vec3(), difference_support(difference, aside))


@wp.func(inline=False)
def minimum_from(
    difference: MinkowskiDifference, guess: Guess, discontinuities: int, scale: Real, along: Vertex
) -> Descent:
    """Local minimum of the support function by Newton's method from a guess. along: support point
    along its normal."""
    # A flat end first: around its axis the support point jumps, and a descent would only return to
    # it.
    minimum = minimum_on_disc(difference, guess.normal)
    if minimum.found == 0:
        minimum = descend(difference, guess.normal, discontinuities, scale, Vec3(), along)
    return minimum


@wp.func
def discontinuities_of(guessed: int, attempt: int) -> int:
    """Bits of the discontinuities on which a descent starts; -1 for a start that an earlier attempt
    had.

    A descent does not leave a discontinuity. So if the attempts 0 to 2 found nothing, 3 drops those
    of a, 4 those of b.
    """
    if attempt < 3:
        return guessed
    kept = guessed & wp.where(attempt == 3, 56, 7)
    return wp.where(kept == guessed, -1, kept)


@wp.func
def is_decided(difference: MinkowskiDifference, minimum: Descent, scale: Real) -> bool:
    """Whether a minimum is the distance of separated cores, or proved to be the depth."""
    return is_nearest(minimum, scale) or is_depth(difference, minimum, scale)


@wp.func
def decided(minimum: Descent) -> EarlyOut:
    """DECIDED, with the distance of a minimum."""
    return EarlyOut(DECIDED, -minimum.height, minimum.normal, minimum.on_a)


@wp.func
def has_discs(difference: MinkowskiDifference) -> bool:
    """Whether a core has flat ends."""
    type_a = difference.a.type
    type_b = difference.b.type
    return type_a == CYLINDER or type_a == CONE or type_b == CYLINDER or type_b == CONE


@wp.func(inline=False)
def by_smaller_cores(
    difference: MinkowskiDifference,
    max_separation: Real,
    scale: Real,
    first_attempt: int,
    first: Descent,
) -> EarlyOut:
    """Signed distance by Newton's method beside a minimum that was found first, at a flat end, and
    from guesses of the closest points of smaller cores.

    first_attempt: number of the first guess. first: what a descent from the guess before found.
    """
    minimum = minimum_beside(difference, first, scale)
    if is_decided(difference, minimum, scale):
        return decided(minimum)
    disc = Descent()
    attempt = first_attempt
    while attempt < ATTEMPTS:
        guess = guess_by_inset(difference, INSET * Real(wp.where(attempt < 3, attempt, 1)))
        along = Vertex()
        height = Real(0.0)
        if guess.is_valid == 1:
            along = difference_support(difference, guess.normal)
            height = wp.dot(along.point, guess.normal)
        if height < Real(0.0) and -height > max_separation:
            return EarlyOut(FAR, -height, guess.normal, Vec3())
        if attempt == 1 and height >= Real(0.0) and has_discs(difference):
            disc = minimum_on_facing_disc(difference)
            if disc.height <= height and is_decided(difference, disc, scale):
                return decided(disc)
        discontinuities = discontinuities_of(guess.discontinuities, attempt)
        if guess.is_valid == 1 and discontinuities >= 0:
            minimum = minimum_from(difference, guess, discontinuities, scale, along)
            is_refuted = disc.found == 1 and minimum.normal == disc.normal
            if not is_refuted and is_decided(difference, minimum, scale):
                return decided(minimum)
            minimum = minimum_beside(difference, minimum, scale)
            if is_decided(difference, minimum, scale):
                return decided(minimum)
        attempt += 1
    return undecided(difference)


@wp.func
def by_newton(difference: MinkowskiDifference, max_separation: Real) -> EarlyOut:
    """Signed distance by Newton's method from guesses of the closest points, of the cores and then
    of smaller ones."""
    scale = wp.max(difference.a.size) + wp.max(difference.b.size)
    # Shapes that touch have overlapping cores if neither is rounded: the guess of the cores
    # themselves is of no use, and a flat end is tried first.
    attempt = wp.where(difference.radius_a + difference.radius_b > Real(0.0), 0, 1)
    minimum = Descent()
    if attempt == 0 or not has_discs(difference):
        guess = guess_by_inset(difference, INSET * Real(attempt))
        if guess.is_valid == 1:
            along = difference_support(difference, guess.normal)
            height = wp.dot(along.point, guess.normal)
            if height < Real(0.0) and -height > max_separation:
                return EarlyOut(FAR, -height, guess.normal, Vec3())
            if height < Real(0.0) or attempt == 1:
                minimum = minimum_from(difference, guess, guess.discontinuities, scale, along)
                if is_decided(difference, minimum, scale):
                    return decided(minimum)
                attempt += 1
    return by_smaller_cores(difference, max_separation, scale, wp.max(attempt, 1), minimum)


@wp.func
def early_out(difference: Any, max_separation: Real) -> EarlyOut:
    """UNDECIDED: hulls and triangles have too many axes, and too many patches for Newton's
    method."""
    return undecided(difference)


@wp.func
def early_out(difference: MinkowskiDifference, max_separation: Real) -> EarlyOut:
    """Early-out for two primitive cores. max_separation: cores at least this far apart are FAR
    [m]."""
    if difference.a.type == BOX and difference.b.type == CYLINDER:
        return by_separating_axes(difference, max_separation)
    return by_newton(difference, max_separation)
