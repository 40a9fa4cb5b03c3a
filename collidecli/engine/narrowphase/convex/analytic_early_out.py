"""What is known of two cores before GJK is asked: for most pairs of primitives that are near, all.

A box and a cylinder are asked direction by direction. Of other cores that are apart, Newton's method begins at a guess
of their nearest points; where it finds a plane of support through them, they are the nearest.
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
    """What is known of two cores.

    state: UNDECIDED, `normal` is where GJK should begin; FAR, they are at least `distance` apart and that is beyond reach;
    DECIDED, distance, normal and core a's witness are exact: points of the cores, and a plane of support, prove the
    distance of those that are apart, a point in both the overlap of others; CONDITIONAL, distance and normal are exact if
    the cores overlap, which GJK must decide.
    distance: signed [m]. normal: unit, a to b, a's frame. on_a: core a's witness, a's frame.
    """

    state: int
    distance: Real
    normal: Vec3
    on_a: Vec3


@wp.func
def toward(difference: Any) -> Vec3:
    """Unit vector along the line of centres; +z of a where they are one."""
    length = wp.length(difference.position)
    if length > Real(0.0):
        return difference.position / length
    return Vec3(Real(0.0), Real(0.0), Real(1.0))


@wp.func
def undecided(difference: Any) -> EarlyOut:
    """GJK begins along the line of centres."""
    result = EarlyOut()
    result.normal = toward(difference)
    return result


@wp.func
def by_separating_axes(difference: MinkowskiDifference, max_separation: Real) -> EarlyOut:
    """Of a box and a cylinder: their depth, or how far apart they are at least."""
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
    """Of cores that a guess of their nearest points parts."""
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
    """What is known of two cores. reach: nothing is asked once they are known to be at least this far apart [m]."""
    if difference.a.type == BOX and difference.b.type == CYLINDER:
        return by_separating_axes(difference, max_separation)
    return by_newton(difference, max_separation)


@wp.func
def early_out(difference: DifferenceWithHull, max_separation: Real) -> EarlyOut:
    """Nothing: a hull has too many directions, and too many pieces for Newton's method."""
    return undecided(difference)


@wp.func
def early_out(difference: DifferenceOfHulls, max_separation: Real) -> EarlyOut:
    """Nothing, as above."""
    return undecided(difference)


@wp.func
def early_out(difference: DifferenceWithTriangle, max_separation: Real) -> EarlyOut:
    """Nothing, as above."""
    return undecided(difference)


@wp.func
def early_out(difference: DifferenceOfHullAndTriangle, max_separation: Real) -> EarlyOut:
    """Nothing, as above."""
    return undecided(difference)
