"""First translation along a direction at which a convex shape no longer overlaps a surface of triangles.

A convex shape A overlaps triangle T while its translation x is in the Minkowski difference T - A, a convex set, so
along a ray it does so for one interval. `leave_triangle` gives the interval's end by conservative advancement from
beyond it: planes that separate A from T at an upper bound of the end lower the bound until the two touch (van den Bergh
2004, "Ray casting against general convex objects"). `first_free` goes from the end of one overlap to the end of the
next.

Directions and normals are in the shape's frame, boxes and points of the surface in the surface's.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Mat33, Real, Vec3
from collidecli.engine.geometry.support import Vertex, difference_support, support_point
from collidecli.engine.narrowphase.convex.gjk import OVERLAP, nearest_of_difference
from collidecli.engine.narrowphase.triangles.convex_region import Region, boxes_overlap, is_in_region
from collidecli.engine.narrowphase.triangles.swept_surface import begin_near, corners_of, depth_inside, next_near

# Each question has an answer for each kind of surface: Warp picks by the type of the first argument.

TOUCH = wp.constant(Real(1.0e-9))
"""Share of the pair's size: a shape that overlaps a triangle by no more touches it."""
ADVANCES = wp.constant(32)
"""Steps of conservative advancement. Measured: at most some 12."""
SWEEPS = wp.constant(64)
"""Traversals of the surface for one direction. Measured: at most some 10."""
RECENT = 4
"""Triangles that a shape had to leave last, along other directions: they are tested first."""


@wp.struct
class Sweep:
    """A convex shape before it is moved. rotation, position: the surface's frame in the shape's.

    lower, upper: the shape's box, and middle: a point in it, the surface's frame [m]. half: half extents of its own
    box, its own frame [m]. touch: TOUCH of the size; size: of the smaller of the two [m]. region: where in_region is 1,
    what of the surface is overlapped elsewhere does not count.
    """

    rotation: Mat33
    position: Vec3
    lower: Vec3
    upper: Vec3
    middle: Vec3
    half: Vec3
    touch: Real
    size: Real
    region: Region
    in_region: int


@wp.struct
class FreeAt:
    """Where a shape is free first along a direction, or that it is not before a limit.

    t: the translation [m]; at least the limit where it was reached. number: the triangle that it touches there, -1 for
    none; normal: unit, the shape's frame, away from that triangle. exact: 0 where the number of steps ended the search.
    """

    t: Real
    number: int
    normal: Vec3
    exact: int


@wp.struct
class Leaving:
    """t: where a shape leaves a triangle, or where it was asked if it does not overlap it there [m]. normal: away from
    the triangle, the shape's frame. exact: 0 where `t` is only an upper bound."""

    t: Real
    normal: Vec3
    exact: int


@wp.func(inline=False)
def leave_triangle(
    a: Any, difference: Any, way: Vec3, behind: Real, ahead: Real, t: Real, touch: Real, simplex: wp.array[Vertex]
) -> Leaving:
    """Where a shape that moves along `way` leaves a triangle that it overlaps once it is moved by t.

    cores: of the shape where it is and of the triangle. behind, ahead: the shape's extent along `way` [m].
    """
    result = Leaving()
    result.t = t
    result.exact = 1
    radius = difference.radius_a
    p = difference.rotation * difference.b.p + difference.position
    q = difference.rotation * difference.b.q + difference.position
    r = difference.rotation * difference.b.r + difference.position
    on_p = wp.dot(p, way)
    on_q = wp.dot(q, way)
    on_r = wp.dot(r, way)
    end = wp.max(on_p, wp.max(on_q, on_r)) - behind
    if end <= t + touch or wp.min(on_p, wp.min(on_q, on_r)) - ahead >= t - touch:
        return result
    normal = way
    face = difference.rotation * difference.b.normal
    level = wp.dot(p, face)
    rate = wp.dot(way, face)
    high = wp.dot(support_point(a, face), face) + t * rate - level
    low = wp.dot(support_point(a, -face), face) + t * rate - level
    if low >= -touch or high <= touch:
        return result
    if rate > Real(0.0) and -low < rate * (end - t):
        end = t - low / rate
        normal = face
    elif rate < Real(0.0) and high < -rate * (end - t):
        end = t - high / rate
        normal = -face
    moved = difference
    moved.position = difference.position - t * way
    guess = wp.where(wp.abs(high) < wp.abs(low), face, -face)
    nearest = nearest_of_difference(moved, guess, wp.max(radius - touch, Real(0.0)), simplex)
    if nearest.state != OVERLAP and nearest.distance >= radius - touch:
        return result
    result.exact = 0
    for _step in range(ADVANCES):
        moved.position = difference.position - end * way
        nearest = nearest_of_difference(moved, -normal, Real(wp.inf), simplex)
        if nearest.state == OVERLAP or nearest.distance <= radius + touch:
            result.exact = 1
            break
        height = wp.dot(difference_support(difference, nearest.normal).point, nearest.normal) + radius
        closing = -wp.dot(way, nearest.normal)
        if closing <= Real(0.0) or height / closing >= end:
            result.exact = 1
            break
        end = height / closing
        normal = -nearest.normal
    if end > t + touch:
        result.t = end
        result.normal = normal
    return result


@wp.func(inline=False)
def leave_region(
    a: Any, difference: Any, sweep: Sweep, way: Vec3, behind: Real, ahead: Real, t: Real, simplex: wp.array[Vertex]
) -> Leaving:
    """As `leave_triangle`, of a triangle that counts only where it is overlapped in the sweep's region."""
    left = leave_triangle(a, difference, way, behind, ahead, t, sweep.touch, simplex)
    if sweep.in_region == 1 and left.t > t:
        p = difference.rotation * difference.b.p + difference.position
        q = difference.rotation * difference.b.q + difference.position
        r = difference.rotation * difference.b.r + difference.position
        if not is_in_region(sweep.region, sweep.half, p, q, r, way, t, sweep.touch):
            left.t = t
    return left


@wp.func
def middle_in_region(sweep: Sweep, way: Vec3, t: Real) -> bool:
    """Whether the middle of a moved shape is in what the sweep's region covers when it moves along."""
    if sweep.in_region == 0:
        return True
    middle = sweep.rotation * sweep.middle + sweep.position + t * way
    lower = wp.min(sweep.region.lower, sweep.region.lower + t * way)
    upper = wp.max(sweep.region.upper, sweep.region.upper + t * way)
    return boxes_overlap(middle, middle, lower, upper, sweep.touch)


@wp.func(inline=False)
def first_free(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    way: Vec3,
    limit: Real,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> FreeAt:
    """The first translation along a unit direction at which a convex shape overlaps no part of a surface or its solid.

    Args:
        pair: cores of the shape and of any triangle of the surface.
        way: the shape's frame.
        limit: the search ends once the translation is known to be at least this [m].
        recent: triangles that are tested first; kept up to date.
    """
    result = FreeAt()
    result.number = -1
    result.normal = way
    result.exact = 1
    difference = pair
    ahead = wp.dot(support_point(a, way), way)
    behind = wp.dot(support_point(a, -way), way)
    along = wp.transpose(sweep.rotation) * way
    for k in range(wp.static(RECENT)):
        if recent[k] >= 0:
            difference.b = corners_of(surface, recent[k])
            left = leave_region(a, difference, sweep, way, behind, ahead, result.t, simplex)
            if left.t > result.t:
                result.t = left.t
                result.number = recent[k]
                result.normal = left.normal
                result.exact = wp.min(result.exact, left.exact)
    if result.t >= limit:
        return result
    grown = Vec3(sweep.touch, sweep.touch, sweep.touch)
    changed = bool(True)
    sweeps = int(0)
    while changed:
        changed = bool(False)
        sweeps += 1
        lower = sweep.lower + result.t * along - grown
        upper = sweep.upper + result.t * along + grown
        cursor = begin_near(surface, lower, upper)
        while cursor.number >= 0:
            difference.b = corners_of(surface, cursor.number)
            left = leave_region(a, difference, sweep, way, behind, ahead, result.t, simplex)
            if left.t > result.t:
                changed = True
                result.t = left.t
                result.number = cursor.number
                result.normal = left.normal
                result.exact = wp.min(result.exact, left.exact)
                if result.t >= limit:
                    for k in range(wp.static(RECENT - 1)):
                        recent[wp.static(RECENT - 1) - k] = recent[wp.static(RECENT - 2) - k]
                    recent[0] = cursor.number
                    return result
                lower = sweep.lower + result.t * along - grown
                upper = sweep.upper + result.t * along + grown
            cursor = next_near(surface, cursor, lower, upper)
        if not changed:
            # No triangle is overlapped: the shape is wholly in the solid, or wholly out of it.
            inside = Real(0.0)
            if middle_in_region(sweep, way, result.t):
                inside = depth_inside(surface, sweep.middle + result.t * along)
            if inside > Real(0.0):
                changed = True
                result.t += wp.max(inside, sweep.touch)
                if result.t >= limit:
                    return result
        if sweeps >= SWEEPS and changed:
            result.t = Real(wp.inf)
            result.exact = 0
            return result
    return result
