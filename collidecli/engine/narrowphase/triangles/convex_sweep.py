"""First translation along a direction at which a convex shape no longer overlaps a surface of triangles.

A convex shape A overlaps triangle T while its translation x is in the Minkowski difference T - A, a convex set: along a
ray, for one interval. `leave_triangle` gives the interval's end by conservative advancement from
beyond it: planes that separate A from T at an upper bound of the end lower the bound until the two touch (van den Bergh
2004, "Ray casting against general convex objects"). `first_free` advances from the end of one overlap to the end of the
next.

Directions and normals are in the shape's frame, boxes and points of the surface in the surface's.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Vertex, difference_support, support_point
from collidecli.engine.narrowphase.convex.gjk import OVERLAP, nearest_of_difference
from collidecli.engine.narrowphase.triangles.convex_regions import (
    Region,
    Sweep,
    add_region,
    box_of_part,
    is_in_region,
    merge_through_solid,
    middle_in_region,
    own_half_extents,
)
from collidecli.engine.narrowphase.triangles.swept_surface import begin_near, corners_of, depth_inside, next_near

TOUCH = wp.constant(Real(1.0e-9))
"""Fraction of the pair's size: a shape that overlaps a triangle by no more only touches it."""
ADVANCES = wp.constant(32)
"""Greatest number of steps of conservative advancement. Measured: at most some 12."""
SWEEPS = wp.constant(64)
"""Greatest number of traversals of the surface for one direction. Measured: at most some 10."""
RECENT = 4
"""Number of cached triangles that a shape exited last along other directions; they are tested first."""


@wp.struct
class FreeAt:
    """The first translation along a direction at which a shape is free, or a lower bound of it.

    t: the translation [m]; at least the limit of the search where that was reached. number: the triangle that the shape
    touches there, -1 for none; normal: unit, the shape's frame, away from that triangle. exact: 0 where the search
    ended at its greatest number of steps.
    """

    t: Real
    number: int
    normal: Vec3
    exact: int


@wp.struct
class Leaving:
    """The translation t at which a shape exits a triangle; the start of the query where it does not overlap there [m].

    normal: away from the triangle, the shape's frame. exact: 0 where `t` is only an upper bound.
    """

    t: Real
    normal: Vec3
    exact: int


@wp.func(inline=False)
def leave_triangle(
    a: Any, difference: Any, direction: Vec3, behind: Real, ahead: Real, t: Real, touch: Real, simplex: wp.array[Vertex]
) -> Leaving:
    """The translation at which a shape moving along `direction` exits a triangle that it overlaps at translation t.

    Conservative advancement from an upper bound. difference: of the cores of the unmoved shape and the triangle.
    behind, ahead: the shape's extent along `direction` [m].
    """
    result = Leaving()
    result.t = t
    result.exact = 1
    radius = difference.radius_a
    p = difference.rotation * difference.b.p + difference.position
    q = difference.rotation * difference.b.q + difference.position
    r = difference.rotation * difference.b.r + difference.position
    on_p = wp.dot(p, direction)
    on_q = wp.dot(q, direction)
    on_r = wp.dot(r, direction)
    end = wp.max(on_p, wp.max(on_q, on_r)) - behind
    if end <= t + touch or wp.min(on_p, wp.min(on_q, on_r)) - ahead >= t - touch:
        return result
    normal = direction
    face = difference.rotation * difference.b.normal
    level = wp.dot(p, face)
    rate = wp.dot(direction, face)
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
    moved.position = difference.position - t * direction
    guess = wp.where(wp.abs(high) < wp.abs(low), face, -face)
    nearest = nearest_of_difference(moved, guess, wp.max(radius - touch, Real(0.0)), simplex)
    if nearest.state != OVERLAP and nearest.distance >= radius - touch:
        return result
    result.exact = 0
    for _step in range(ADVANCES):
        moved.position = difference.position - end * direction
        nearest = nearest_of_difference(moved, -normal, Real(wp.inf), simplex)
        if nearest.state == OVERLAP or nearest.distance <= radius + touch:
            result.exact = 1
            break
        height = wp.dot(difference_support(difference, nearest.normal).point, nearest.normal) + radius
        closing = -wp.dot(direction, nearest.normal)
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
    a: Any,
    difference: Any,
    sweep: Sweep,
    direction: Vec3,
    behind: Real,
    ahead: Real,
    t: Real,
    simplex: wp.array[Vertex],
) -> Leaving:
    """As `leave_triangle`, for a triangle that counts only where the overlap is in the sweep's region."""
    left = leave_triangle(a, difference, direction, behind, ahead, t, sweep.touch, simplex)
    if sweep.in_region == 1 and left.t > t:
        p = difference.rotation * difference.b.p + difference.position
        q = difference.rotation * difference.b.q + difference.position
        r = difference.rotation * difference.b.r + difference.position
        if not is_in_region(sweep.region, sweep.half, p, q, r, direction, t, sweep.touch):
            left.t = t
    return left


@wp.func(inline=False)
def first_free(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    direction: Vec3,
    limit: Real,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> FreeAt:
    """The first translation along a unit direction at which a convex shape overlaps no part of a surface or its solid.

    Args:
        pair: Minkowski difference of the cores of the shape and any triangle of the surface.
        direction: unit, the shape's frame.
        limit: the search ends once the translation is at least this [m].
        recent: cached triangles that are tested first; updated.
    """
    result = FreeAt()
    result.number = -1
    result.normal = direction
    result.exact = 1
    difference = pair
    ahead = wp.dot(support_point(a, direction), direction)
    behind = wp.dot(support_point(a, -direction), direction)
    along = wp.transpose(sweep.rotation) * direction
    for k in range(wp.static(RECENT)):
        if recent[k] >= 0:
            difference.b = corners_of(surface, recent[k])
            left = leave_region(a, difference, sweep, direction, behind, ahead, result.t, simplex)
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
            left = leave_region(a, difference, sweep, direction, behind, ahead, result.t, simplex)
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
            # No triangle is overlapped: the shape is wholly inside the solid, or wholly outside.
            inside = Real(0.0)
            if middle_in_region(sweep, direction, result.t):
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


@wp.func(inline=False)
def find_regions(
    a: Any, pair: Any, surface: Any, sweep: Sweep, regions: wp.array[Region], simplex: wp.array[Vertex]
) -> int:
    """Finds the regions of overlap of a shape before it moves; returns their number, 0 where it crosses no triangle."""
    difference = pair
    count = int(0)
    half = own_half_extents(a)
    direction = Vec3(Real(0.0), Real(0.0), Real(1.0))
    ahead = wp.dot(support_point(a, direction), direction)
    behind = wp.dot(support_point(a, -direction), direction)
    cursor = begin_near(surface, sweep.lower, sweep.upper)
    while cursor.number >= 0:
        difference.b = corners_of(surface, cursor.number)
        left = leave_triangle(a, difference, direction, behind, ahead, Real(0.0), sweep.touch, simplex)
        if left.t > Real(0.0):
            p = difference.rotation * difference.b.p + difference.position
            q = difference.rotation * difference.b.q + difference.position
            r = difference.rotation * difference.b.r + difference.position
            part = box_of_part(p, q, r, -half, half)
            if part.lower[0] <= part.upper[0]:
                count = add_region(regions, count, part, sweep.touch)
        cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
    return merge_through_solid(surface, sweep, regions, count)
