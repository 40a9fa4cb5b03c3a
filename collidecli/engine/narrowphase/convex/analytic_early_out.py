"""Early-outs before GJK, which decide most close pairs of primitives.

A box and a cylinder are tested by separating axes. For other separated cores, Newton's method starts from a guess of
the closest points; points through which it finds a supporting plane are the closest points.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import BOX, CYLINDER
from collidecli.engine.geometry.support import (
    DifferenceOfHullAndTriangle,
    DifferenceOfHulls,
    DifferenceWithHull,
    DifferenceWithTriangle,
    MinkowskiDifference,
    difference_support,
)
from collidecli.engine.narrowphase.convex.box_cylinder import box_and_cylinder
from collidecli.engine.narrowphase.convex.gjk import newton_nearest
from collidecli.engine.narrowphase.convex.initial_guess import guess_nearest

# ruff: noqa: F811

UNDECIDED = wp.constant(0)
FAR = wp.constant(1)
DECIDED = wp.constant(2)
CONDITIONAL = wp.constant(3)


@wp.struct
class EarlyOut:
    """Result of an early-out test of two cores.

    state: UNDECIDED: `normal` is GJK's start direction. FAR: the cores are at least `distance` apart, which is at least
    the maximum separation. DECIDED: distance, normal and core a's witness are exact; the distance of separated cores is
    proved by points of the cores and a supporting plane, an overlap by a common point. CONDITIONAL: distance and normal
    are exact if the cores overlap, which GJK must decide.
    distance: signed [m]. normal: unit, a to b, in a's frame. on_a: core a's witness, in a's frame.
    """

    state: int
    distance: Real
    normal: Vec3
    on_a: Vec3


@wp.func
def toward(difference: Any) -> Vec3:
    """Unit vector along the line of centres; +z of a for coincident centres."""
    length = wp.length(difference.position)
    if length > Real(0.0):
        return difference.position / length
    return Vec3(Real(0.0), Real(0.0), Real(1.0))


@wp.func
def undecided(difference: Any) -> EarlyOut:
    """UNDECIDED, with GJK's start direction along the line of centres."""
    result = EarlyOut()
    result.normal = toward(difference)
    return result


@wp.func
def by_separating_axes(difference: MinkowskiDifference, max_separation: Real) -> EarlyOut:
    """Depth of a box and a cylinder, or a lower bound of their distance."""
    found = box_and_cylinder(difference, max_separation)
    result = EarlyOut()
    result.distance = -found.depth
    result.normal = found.normal
    result.on_a = found.on_a
    if found.depth > Real(0.0):
        result.state = wp.where(found.is_proved == 1, DECIDED, CONDITIONAL)
    elif found.depth < Real(0.0) and found.depth <= -max_separation:
        result.state = FAR
    return result


@wp.func
def by_newton(difference: MinkowskiDifference, max_separation: Real) -> EarlyOut:
    """Distance of cores that a guess of their closest points separates."""
    guess = guess_nearest(difference)
    if guess.is_valid == 0:
        return undecided(difference)
    height = wp.dot(difference_support(difference, guess.normal).point, guess.normal)
    if height >= Real(0.0):
        return undecided(difference)
    result = EarlyOut()
    result.normal = guess.normal
    result.distance = -height
    if result.distance >= max_separation:
        result.state = FAR
        return result
    largest_a = wp.max(difference.a.size[0], wp.max(difference.a.size[1], difference.a.size[2]))
    largest_b = wp.max(difference.b.size[0], wp.max(difference.b.size[1], difference.b.size[2]))
    minimum = newton_nearest(difference, guess.normal, guess.discontinuities, largest_a + largest_b)
    if minimum.found == 1:
        result.state = DECIDED
        result.distance = -minimum.height
        result.normal = minimum.normal
        result.on_a = minimum.on_a
    return result


@wp.func
def early_out(difference: MinkowskiDifference, max_separation: Real) -> EarlyOut:
    """Early-out for two primitive cores. max_separation: cores at least this far apart are FAR [m]."""
    if difference.a.type == BOX and difference.b.type == CYLINDER:
        return by_separating_axes(difference, max_separation)
    return by_newton(difference, max_separation)


@wp.func
def early_out(difference: DifferenceWithHull, max_separation: Real) -> EarlyOut:
    """UNDECIDED: a hull has too many axes, and too many patches for Newton's method."""
    return undecided(difference)


@wp.func
def early_out(difference: DifferenceOfHulls, max_separation: Real) -> EarlyOut:
    """UNDECIDED: two hulls have too many axes and patches."""
    return undecided(difference)


@wp.func
def early_out(difference: DifferenceWithTriangle, max_separation: Real) -> EarlyOut:
    """UNDECIDED: no early-out for triangles."""
    return undecided(difference)


@wp.func
def early_out(difference: DifferenceOfHullAndTriangle, max_separation: Real) -> EarlyOut:
    """UNDECIDED: no early-out for hulls and triangles."""
    return undecided(difference)
