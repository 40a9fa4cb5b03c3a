"""GJK: distance and nearest points of two cores that are apart.

Source: Gilbert, Johnson, Keerthi 1988; van den Bergh 2003, 4.3 (bounds and termination).
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import (
    DifferenceOfHullAndTriangle,
    DifferenceOfHulls,
    DifferenceWithHull,
    DifferenceWithTriangle,
    MinkowskiDifference,
    Vertex,
    core_is_curved,
    difference_support,
)
from collidecli.engine.narrowphase.convex.newton import Descent, descend, minimum_on_disc
from collidecli.engine.narrowphase.convex.simplex import segment_weights, tetrahedron_weights, triangle_weights

# ruff: noqa: F811

APART = wp.constant(0)
BEYOND_MAX_SEPARATION = wp.constant(1)
OVERLAP = wp.constant(2)

RELATIVE_GAP = wp.constant(Real(1.0e-12))
"""GJK stops when |v|^2 - v.w, which bounds |v - nearest|^2, is below this share of |v|^2: the normal is then good to
1e-6 rad and the distance to 1e-12 of itself."""

TOUCHING = wp.constant(Real(2.0e-9))
"""Cores nearer than this share of their size are left to the penetration stage: v, a difference of numbers of that
size with a rounding of 1e-16, no longer gives the normal to 1e-7 rad."""

NEWTON_MISS = wp.constant(Real(1.0e-6))
"""Newton's answer is taken when its v misses by less than this share of the distance: the same bound as
RELATIVE_GAP."""

FAR_MISS = wp.constant(Real(1.0e-8))
"""And by less than this share of the size: a's witness is off its surface by as much."""

UNSUPPORTED = wp.constant(Real(1.0e-9))
"""Share of the size by which cores that are NEARLY_TOUCHING may be less far apart along v than v is long, where GJK
comes to rest; others are left to the penetration stage too."""

NEARLY_TOUCHING = wp.constant(Real(1.0e-6))
"""Share of the size: nearer cores have a v of which a sliver's rounding can be much."""

BLUNT = wp.constant(Real(0.5))
"""Share of the hulls' mean half extents that a direction is turned by as if they were balls of that radius."""

EASED_STEPS = wp.constant(2)
"""Of GJK, in which directions turn so. Of hulls nearer than their vertices are to each other, v is mostly the offset of
two vertices across the normal, and directions along it lead astray. Measured: a fifth to a third fewer steps for hulls
of 162 and 1000 vertices, the same for boxes, rods and plates."""

DESCEND_AT = wp.constant(2)
"""Step after which Newton's method is asked, or as soon as some direction parts the cores: of others most overlap."""

GJK_LIMIT = wp.constant(128)
"""Steps; each makes v shorter, so that no cycle is possible. Measured: at most some 30."""


@wp.struct
class Nearest:
    """What GJK found. `state`: APART, BEYOND_MAX_SEPARATION (separation is a lower bound only), OVERLAP (or touching).

    distance: of the cores [m]; down to -TOUCHING of their size where they touch. normal: unit, a to b. on_a: core a's
    nearest point. All in a's frame, and rough where they overlap. count: vertices of the simplex that remains.
    """

    state: int
    distance: Real
    normal: Vec3
    on_a: Vec3
    count: int


@wp.func
def patches_that_differ(simplex: wp.array[Vertex], count: int) -> int:
    """The bits of the pieces on which the first `count` vertices do not agree."""
    changed = int(0)
    i = int(1)
    while i < count:
        changed = changed | (simplex[i].patch ^ simplex[0].patch)
        i += 1
    return changed


@wp.func
def is_nearest(minimum: Descent, scale: Real) -> bool:
    """Whether Newton found the distance of cores that are apart, or that touch within TOUCHING on either side.

    A plane of support through v bounds the distance from below, |v| from above; v misses the normal's line by little.
    """
    enough = Real(1.0e-13) * scale + wp.min(NEWTON_MISS * wp.abs(minimum.height), FAR_MISS * scale)
    return minimum.found == 1 and minimum.missed <= enough and minimum.height < TOUCHING * scale


@wp.struct
class ClosestPoint:
    """The point v of a simplex nearest to the origin [m], and core a's part of it.

    weights: of the vertices in both. carriers: how many weights are not 0.
    """

    v: Vec3
    on_a: Vec3
    weights: wp.vec4d
    vertex_count: int


@wp.func
def closest_to_origin(simplex: wp.array[Vertex], count: int) -> ClosestPoint:
    """The nearest point of the first `count` vertices' hull."""
    closest = ClosestPoint()
    closest.weights = wp.vec4d(Real(1.0), Real(0.0), Real(0.0), Real(0.0))
    if count == 2:
        two = segment_weights(simplex[0].point, simplex[1].point)
        closest.weights = wp.vec4d(two[0], two[1], Real(0.0), Real(0.0))
    elif count == 3:
        three = triangle_weights(simplex[0].point, simplex[1].point, simplex[2].point)
        closest.weights = wp.vec4d(three[0], three[1], three[2], Real(0.0))
    elif count == 4:
        closest.weights = tetrahedron_weights(simplex[0].point, simplex[1].point, simplex[2].point, simplex[3].point)
    # What is behind the first `count` is of earlier steps, or zero, and has no weight.
    for i in range(4):
        closest.v += closest.weights[i] * simplex[i].point
        closest.on_a += closest.weights[i] * simplex[i].on_a
        closest.vertex_count += wp.where(closest.weights[i] > Real(0.0), 1, 0)
    return closest


@wp.func
def reduce_simplex(simplex: wp.array[Vertex], count: int, weights: wp.vec4d):
    """Moves the vertices whose weight is not 0 to the front."""
    kept = int(0)
    i = int(0)
    while i < count:
        if weights[i] > Real(0.0):
            if kept < i:
                simplex[kept] = simplex[i]
            kept += 1
        i += 1


@wp.func
def newton_nearest(difference: MinkowskiDifference, normal: Vec3, patches: int, scale: Real) -> Descent:
    """The distance of curved cores by Newton's method from a guess of the normal; found = 0 where it is not it."""
    # A flat end first: around its axis the farthest point jumps, and a descent would only find its way back to it.
    minimum = minimum_on_disc(difference, normal)
    if minimum.found == 0 or not is_nearest(minimum, scale):
        minimum = descend(difference, normal, patches, scale, Vec3())
    if not is_nearest(minimum, scale):
        minimum.found = 0
    return minimum


@wp.func
def newton_nearest(difference: DifferenceWithHull, normal: Vec3, patches: int, scale: Real) -> Descent:
    """None: a hull has too many pieces for Newton's method, and few enough for GJK to end."""
    return Descent()


@wp.func
def newton_nearest(difference: DifferenceOfHulls, normal: Vec3, patches: int, scale: Real) -> Descent:
    """None, as above."""
    return Descent()


@wp.func
def newton_nearest(difference: DifferenceWithTriangle, normal: Vec3, patches: int, scale: Real) -> Descent:
    """None, as above."""
    return Descent()


@wp.func
def newton_nearest(difference: DifferenceOfHullAndTriangle, normal: Vec3, patches: int, scale: Real) -> Descent:
    """None, as above."""
    return Descent()


@wp.func
def turning_radius(difference: Any) -> Real:
    """Radius of balls as which two cores' directions are turned at first [m]; 0 where v itself gives them."""
    return Real(0.0)


@wp.func
def turning_radius(difference: DifferenceOfHulls) -> Real:
    """That of two hulls."""
    a = difference.a.size
    b = difference.b.size
    return BLUNT * (a[0] + a[1] + a[2] + b[0] + b[1] + b[2]) / Real(3.0)


@wp.func
def is_sliver(distance: Real, along: Real, scale: Real) -> bool:
    """Whether v comes to rest near the origin without a plane of support, by rounding in a sliver."""
    return distance < NEARLY_TOUCHING * scale and distance - along > UNSUPPORTED * scale


@wp.func
def at_minimum(nearest: Nearest, minimum: Descent) -> Nearest:
    """What Newton's method has found in place of what GJK knows so far."""
    result = nearest
    result.distance = -minimum.height
    result.normal = minimum.normal
    result.on_a = minimum.on_a
    return result


@wp.func
def next_direction(direction: Vec3, radius: Real, v: Vec3, normal: Vec3) -> Vec3:
    """Where to look next: along -v, which is `normal`, or with a radius as far as takes balls' v to the normal."""
    if radius > Real(0.0):
        return wp.normalize(radius * direction - v)
    return normal


@wp.func(inline=False)
def nearest_of_difference(difference: Any, start: Vec3, max_separation: Real, simplex: wp.array[Vertex]) -> Nearest:
    """Distance, normal and nearest point of two cores.

    Args:
        start: guess of the normal, unit.
        reach: the search ends once the cores are known to be at least this far apart [m].
        simplex: room for 4; the vertices of the last simplex, whose hull holds or nearly holds the origin
            when the cores overlap.
    """
    result = Nearest()  # APART
    result.normal = start
    square = Real(0.0)
    scale_square = Real(0.0)
    step = int(0)
    descend_at = wp.where(core_is_curved(difference.a.type) or core_is_curved(difference.b.type), DESCEND_AT, GJK_LIMIT)
    radius = turning_radius(difference)
    direction = start
    while step < GJK_LIMIT:
        w = difference_support(difference, direction)
        along = -wp.dot(direction, w.point)
        if along >= max_separation and along > Real(0.0):
            result.state = BEYOND_MAX_SEPARATION
            result.distance = along
            break
        if step > 0 and radius == Real(0.0) and square - result.distance * along <= RELATIVE_GAP * square:
            break
        scale_square = wp.max(scale_square, wp.dot(w.point, w.point))
        simplex[result.count] = w
        closest = closest_to_origin(simplex, result.count + 1)
        next_square = wp.dot(closest.v, closest.v)
        if closest.vertex_count == 4 or next_square <= TOUCHING * TOUCHING * scale_square:
            result.state = OVERLAP
            result.count = closest.vertex_count
            result.on_a = closest.on_a
            break
        if step > 0 and next_square >= square:
            if radius > Real(0.0):
                radius = Real(0.0)
                direction = result.normal
                step += 1
                continue
            result.state = wp.where(is_sliver(result.distance, along, wp.sqrt(scale_square)), OVERLAP, APART)
            break
        reduce_simplex(simplex, result.count + 1, closest.weights)
        result.count = closest.vertex_count
        square = next_square
        result.on_a = closest.on_a
        result.distance = wp.sqrt(square)
        result.normal = -closest.v / result.distance
        radius = wp.where(step == EASED_STEPS or (step == 0 and along <= Real(0.0)), Real(0.0), radius)
        direction = next_direction(direction, radius, closest.v, result.normal)
        if step >= descend_at and along > Real(0.0):
            descend_at = step + 4
            patches = patches_that_differ(simplex, result.count)
            minimum = newton_nearest(difference, result.normal, patches, wp.sqrt(scale_square))
            if minimum.found == 1:
                result = at_minimum(result, minimum)
                break
        step += 1
    return result
