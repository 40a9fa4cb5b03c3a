"""First translation along a direction at which a convex shape no longer overlaps a surface of triangles.

A convex shape A overlaps triangle T while its translation x is in the Minkowski difference T - A, a convex set: along a
ray, for one interval. `leave_triangle` gives the interval's end by conservative advancement from
beyond it: planes that separate A from T at an upper bound of the end lower the bound until the two touch (van den Bergh
2004, "Ray casting against general convex objects"). `first_free` advances from the end of one overlap to the end of the
next.

A region of overlap is a connected part of the surface inside the shape: the parts of crossed triangles, clipped to the
shape's own box, whose boxes overlap. In a closed surface, parts between which the shape is inside the solid are one
region too.

Directions and normals are in the shape's frame, boxes and points of the surface in the surface's.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.bounds import local_half_extents
from collidecli.engine.geometry.primitives import Vertex, difference_support, support_point
from collidecli.engine.geometry.real import Mat33, Real, Vec3
from collidecli.engine.narrowphase.convex.gjk import OVERLAP, nearest_of_difference
from collidecli.engine.narrowphase.triangles.convex_surface import (
    begin_near,
    corners_of,
    depth_behind,
    depth_inside,
    next_near,
)

# ruff: noqa: SIM110

MAX_CUT_VERTICES = 12
"""Capacity for the vertices of a triangle clipped by six planes: nine, and spare."""
MAX_REGIONS = 8
"""Greatest number of regions. Of more, the two nearest are merged: none is lost."""
BETWEEN = wp.constant(3)
"""Points between two regions that must all be inside the solid for the two to be merged."""


@wp.struct
class Region:
    """A region of overlap. lower, upper: AABB, the shape's frame [m]. point: a point of the surface in it."""

    lower: Vec3
    upper: Vec3
    point: Vec3


@wp.func(inline=False)
def box_of_part(p: Vec3, q: Vec3, r: Vec3, lower: Vec3, upper: Vec3) -> Region:
    """The AABB of a triangle clipped to a box, and the mean of its vertices; lower > upper where nothing is left.

    Sutherland-Hodgman clipping by the six planes of the box.
    """
    corner = wp.zeros(shape=wp.static(MAX_CUT_VERTICES), dtype=Vec3)
    kept = wp.zeros(shape=wp.static(MAX_CUT_VERTICES), dtype=Vec3)
    corner[0] = p
    corner[1] = q
    corner[2] = r
    count = int(3)
    for plane in range(6):
        axis = plane // 2
        side = wp.where(plane % 2 == 0, Real(1.0), Real(-1.0))
        level = wp.where(plane % 2 == 0, lower[axis], -upper[axis])
        held = int(0)
        for k in range(count):
            here = corner[k]
            after = corner[wp.where(k + 1 == count, 0, k + 1)]
            above = side * here[axis] - level
            above_after = side * after[axis] - level
            if above >= Real(0.0):
                kept[held] = here
                held += 1
            if (above >= Real(0.0)) != (above_after >= Real(0.0)) and held < wp.static(MAX_CUT_VERTICES):
                kept[held] = here + (above / (above - above_after)) * (after - here)
                held += 1
        count = wp.min(held, wp.static(MAX_CUT_VERTICES - 1))
        for k in range(count):
            corner[k] = kept[k]
    result = Region()
    result.lower = Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
    result.upper = -result.lower
    for k in range(count):
        result.lower = wp.min(result.lower, corner[k])
        result.upper = wp.max(result.upper, corner[k])
        result.point += corner[k] / Real(count)
    return result


@wp.func
def boxes_overlap(low: Vec3, high: Vec3, lower: Vec3, upper: Vec3, slack: Real) -> bool:
    """Whether two boxes overlap or are within `slack` [m] of each other."""
    for axis in range(3):
        if low[axis] > upper[axis] + slack or lower[axis] > high[axis] + slack:
            return False
    return True


@wp.func
def is_in_region(region: Region, half: Vec3, p: Vec3, q: Vec3, r: Vec3, direction: Vec3, t: Real, touch: Real) -> bool:
    """Whether the part of a triangle inside a shape moved by t along `direction` is in the region swept along with it.

    p, q, r: the triangle, in the frame of the shape before it moves. half: half extents of the shape's own box [m].
    """
    part = box_of_part(p, q, r, t * direction - half, t * direction + half)
    if part.lower[0] > part.upper[0]:
        return False
    lower = wp.min(region.lower, region.lower + t * direction)
    upper = wp.max(region.upper, region.upper + t * direction)
    return boxes_overlap(part.lower, part.upper, lower, upper, touch)


@wp.struct
class Sweep:
    """A convex shape before it is moved. rotation, position: the surface's frame in the shape's.

    lower, upper: the shape's AABB, and middle: a point in it, in the surface's frame [m]. half: half extents of the
    shape's own box, its own frame [m]. touch: LEAST_OVERLAP of the larger size; size: of the smaller of the two [m].
    region: where in_region is 1, overlaps outside this region do not count. shallow: a contact no deeper than this
    that nearly separates is not searched further [m].
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
    shallow: Real


@wp.func
def middle_in_region(sweep: Sweep, direction: Vec3, t: Real) -> bool:
    """Whether the middle of a moved shape is in the sweep's region, swept along with the shape."""
    if sweep.in_region == 0:
        return True
    middle = sweep.rotation * sweep.middle + sweep.position + t * direction
    lower = wp.min(sweep.region.lower, sweep.region.lower + t * direction)
    upper = wp.max(sweep.region.upper, sweep.region.upper + t * direction)
    return boxes_overlap(middle, middle, lower, upper, sweep.touch)


@wp.func
def gap_between(x: Region, y: Region) -> Real:
    """Distance of two boxes [m]."""
    return wp.length(wp.max(Vec3(), wp.max(x.lower - y.upper, y.lower - x.upper)))


@wp.func(inline=False)
def add_region(regions: wp.array[Region], before: int, added: Region, slack: Real) -> int:
    """Merges a box with the regions that it overlaps and adds it; returns the number of regions."""
    count = before
    region = added
    k = int(0)
    while k < count:
        other = regions[k]
        if boxes_overlap(region.lower, region.upper, other.lower, other.upper, slack):
            region.lower = wp.min(region.lower, other.lower)
            region.upper = wp.max(region.upper, other.upper)
            region.point = other.point
            count -= 1
            regions[k] = regions[count]
            k = 0
        else:
            k += 1
    if count == wp.static(MAX_REGIONS):
        nearest = int(0)
        for i in range(1, count):
            if gap_between(regions[i], region) < gap_between(regions[nearest], region):
                nearest = i
        other = regions[nearest]
        region.lower = wp.min(region.lower, other.lower)
        region.upper = wp.max(region.upper, other.upper)
        region.point = other.point
        count -= 1
        regions[nearest] = regions[count]
        # Regions that the union overlaps are merged at the next addition, or remain: boxes may overlap.
    regions[count] = region
    return count + 1


@wp.func(inline=False)
def merge_through_solid(surface: Any, sweep: Sweep, regions: wp.array[Region], before: int) -> int:
    """Merges regions between which the convex shape is inside the solid; returns the number of regions."""
    count = before
    i = int(0)
    while i < count:
        k = i + 1
        while k < count:
            inside = int(0)
            for step in range(BETWEEN):
                t = (Real(step) + Real(1.0)) / Real(BETWEEN + 1)
                point = regions[i].point + t * (regions[k].point - regions[i].point)
                if depth_inside(surface, wp.transpose(sweep.rotation) * (point - sweep.position)) > sweep.touch:
                    inside += 1
            if inside == BETWEEN:
                region = regions[i]
                region.lower = wp.min(region.lower, regions[k].lower)
                region.upper = wp.max(region.upper, regions[k].upper)
                regions[i] = region
                count -= 1
                regions[k] = regions[count]
                k = i + 1
            else:
                k += 1
        i += 1
    return count


LEAST_OVERLAP = wp.constant(Real(1.0e-9))
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
    """The first translation along a unit direction at which a convex shape overlaps no part of a surface or its
    solid, and is in front of a one-sided surface.

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
            # No triangle is overlapped: the shape is wholly inside the solid or behind the surface, or wholly outside.
            inside = Real(0.0)
            if middle_in_region(sweep, direction, result.t):
                inside = depth_behind(surface, sweep.middle + result.t * along)
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
    half = local_half_extents(a.type, a.size)
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
