"""First translation along a direction at which a convex shape no longer overlaps a surface of
triangles.

A convex shape A overlaps triangle T while its translation x is in the Minkowski difference T - A, a
convex set: along a ray, for one interval. `leave_triangle` gives the interval's end by conservative
advancement from beyond it: planes that separate A from T at an upper bound of the end lower the
bound until the two touch (van den Bergen 2004, "Ray casting against general convex objects").
`first_free` advances from the end of one overlap to the end of the next.

A region of overlap is a connected part of the surface inside the shape: the parts of crossed
triangles, clipped to the shape's own box, whose boxes overlap. In a closed surface, parts between
which the shape is inside the solid are one region too.

Directions and normals are in the shape's frame, boxes and points of the surface in the surface's.
`pair`: the Minkowski difference of the cores of the unmoved shape, `pair.a`, and any triangle of
the surface.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import Vertex, difference_support, support_point
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.gjk import OVERLAP, nearest_of_difference
from collidecli.engine.narrowphase.triangles.convex_surface import (
    begin_near,
    corners_of,
    depth_behind,
    depth_inside,
    next_near,
)

MAX_CUT_VERTICES = 12
"""Capacity for the vertices of a triangle clipped by six planes: nine, and spare."""
MAX_REGIONS = 8
"""Greatest number of regions. Of more, the two nearest are merged: none is lost."""
BETWEEN = wp.constant(3)
"""Points between two regions that must all be inside the solid for the two to be merged."""


@wp.struct
class Region:
    """A region of overlap. lower, upper: AABB, the shape's frame [m].

    number: the lowest number of its triangles. point: a point of that triangle in it.
    """

    lower: Vec3
    upper: Vec3
    point: Vec3
    number: int


@wp.struct
class Sweep:
    """A convex shape before it is moved, and the regions in which it overlaps the surface.

    lower, upper: the shape's AABB, and middle: a point in it, in the surface's frame [m]. half:
    half extents of the shape's own box, its own frame [m]. touch: LEAST_OVERLAP of the larger size;
    size: of the smaller of the two [m]. shallow: a contact no deeper than this that nearly
    separates is not searched further [m].

    regions: all, region_count of them. in_region: 1 where overlaps outside region `own` do not
    count.

    recent: RECENT triangles that the shape exited last along other directions, -1 for none; they
    are tested first.
    """

    lower: Vec3
    upper: Vec3
    middle: Vec3
    half: Vec3
    touch: Real
    size: Real
    shallow: Real
    regions: wp.array[Region]
    region_count: int
    own: int
    in_region: int
    recent: wp.array[int]


@wp.func(inline=False)
def box_of_part(difference: Any, lower: Vec3, upper: Vec3) -> Region:
    """The AABB of the difference's triangle clipped to a box of the shape's frame, and the mean of
    its vertices.

    lower > upper where nothing is left. Sutherland-Hodgman clipping by the six planes of the box.
    """
    corner = wp.zeros(shape=wp.static(MAX_CUT_VERTICES), dtype=Vec3)
    kept = wp.zeros(shape=wp.static(MAX_CUT_VERTICES), dtype=Vec3)
    corner[0] = difference.rotation * difference.b.p + difference.position
    corner[1] = difference.rotation * difference.b.q + difference.position
    corner[2] = difference.rotation * difference.b.r + difference.position
    count = int(3)
    for plane in range(6):
        axis = plane // 2
        side = wp.where(plane % 2 == 0, Real(1.0), Real(-1.0))
        level = wp.where(plane % 2 == 0, lower[axis], -upper[axis])
        vertex_count = int(0)
        for k in range(count):
            vertex = corner[k]
            after = corner[wp.where(k + 1 == count, 0, k + 1)]
            above = side * vertex[axis] - level
            above_after = side * after[axis] - level
            if above >= Real(0.0):
                kept[vertex_count] = vertex
                vertex_count += 1
            if (above >= Real(0.0)) != (above_after >= Real(0.0)) and vertex_count < wp.static(
                MAX_CUT_VERTICES
            ):
                kept[vertex_count] = vertex + (above / (above - above_after)) * (after - vertex)
                vertex_count += 1
        count = wp.min(vertex_count, wp.static(MAX_CUT_VERTICES - 1))
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
def is_in_region(sweep: Sweep, moved: Vec3, low: Vec3, high: Vec3) -> bool:
    """Whether a box overlaps the box of the sweep's region, swept along with the shape by a
    translation."""
    region = sweep.regions[sweep.own]
    lower = wp.min(region.lower, region.lower + moved)
    return boxes_overlap(low, high, lower, wp.max(region.upper, region.upper + moved), sweep.touch)


@wp.func
def gap_between(x: Region, y: Region) -> Real:
    """Distance of two boxes [m]."""
    return wp.length(wp.max(Vec3(), wp.max(x.lower - y.upper, y.lower - x.upper)))


@wp.func
def united(x: Region, y: Region) -> Region:
    """The common box of two regions, with the point of that whose triangle has the lower number."""
    point = wp.where(x.number < y.number, x.point, y.point)
    return Region(
        wp.min(x.lower, y.lower), wp.max(x.upper, y.upper), point, wp.min(x.number, y.number)
    )


@wp.func
def sort_regions(regions: wp.array[Region], count: int):
    """Sorts regions by their numbers; a tree gives them in an order that rounding may choose."""
    for i in range(count):
        for k in range(i + 1, count):
            if regions[k].number < regions[i].number:
                other = regions[i]
                regions[i] = regions[k]
                regions[k] = other


@wp.func(inline=False)
def add_region(regions: wp.array[Region], before: int, added: Region, slack: Real) -> int:
    """Merges a box with the regions that it overlaps and adds it; returns the number of regions."""
    count = before
    region = added
    k = int(0)
    while k < count:
        other = regions[k]
        if boxes_overlap(region.lower, region.upper, other.lower, other.upper, slack):
            region = united(region, other)
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
        region = united(region, regions[nearest])
        count -= 1
        regions[nearest] = regions[count]
        # Regions that the union overlaps are merged at the next addition, or remain: boxes may
        # overlap.
    regions[count] = region
    return count + 1


@wp.func(inline=False)
def merge_through_solid(
    pair: Any, surface: Any, regions: wp.array[Region], before: int, touch: Real
) -> int:
    """Merges regions between which the convex shape is inside the solid; returns the number of
    regions."""
    count = before
    i = int(0)
    while i < count:
        k = i + 1
        while k < count:
            inside = int(0)
            for step in range(BETWEEN):
                t = (Real(step) + Real(1.0)) / Real(BETWEEN + 1)
                point = regions[i].point + t * (regions[k].point - regions[i].point)
                if (
                    depth_inside(surface, wp.transpose(pair.rotation) * (point - pair.position))
                    > touch
                ):
                    inside += 1
            if inside == BETWEEN:
                regions[i] = united(regions[k], regions[i])
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
"""Number of cached triangles that a shape exited last along other directions; they are tested
first."""


@wp.struct
class FreeAt:
    """The first translation along a direction at which a shape is free, or a lower bound of it.

    t: the translation [m]; at least the limit of the search where that was reached. direction:
    unit. number: the triangle that the shape touches there, -1 for none; normal: unit, away from
    that triangle. exact: 0 where the search ended at its greatest number of steps.
    """

    t: Real
    direction: Vec3
    number: int
    normal: Vec3
    exact: int


@wp.struct
class Ray:
    """A unit direction in which a shape moves. behind, ahead: the shape's extent along it [m]."""

    direction: Vec3
    behind: Real
    ahead: Real


@wp.func
def ray_along(a: Any, direction: Vec3) -> Ray:
    """The ray of a shape along a unit direction."""
    return Ray(
        direction,
        wp.dot(support_point(a, -direction), direction),
        wp.dot(support_point(a, direction), direction),
    )


@wp.func(inline=False)
def leave_triangle(difference: Any, sweep: Sweep, ray: Ray, number: int, before: FreeAt) -> FreeAt:
    """The translation at which a shape exits triangle `number` that it overlaps at `before`; else
    `before`.

    Conservative advancement from an upper bound. difference: of the cores of the unmoved shape and
    the triangle.
    """
    touch = sweep.touch
    radius = difference.radius_a
    p = difference.rotation * difference.b.p + difference.position
    on_p = wp.dot(p, ray.direction)
    on_q = wp.dot(difference.rotation * difference.b.q + difference.position, ray.direction)
    on_r = wp.dot(difference.rotation * difference.b.r + difference.position, ray.direction)
    end = wp.max(on_p, wp.max(on_q, on_r)) - ray.behind
    if end <= before.t + touch or wp.min(on_p, wp.min(on_q, on_r)) - ray.ahead >= before.t - touch:
        return before
    normal = ray.direction
    face = difference.rotation * difference.b.normal
    level = wp.dot(p, face)
    rate = wp.dot(ray.direction, face)
    high = wp.dot(support_point(difference.a, face), face) + before.t * rate - level
    low = wp.dot(support_point(difference.a, -face), face) + before.t * rate - level
    if low >= -touch or high <= touch:
        return before
    if rate > Real(0.0) and -low < rate * (end - before.t):
        end = before.t - low / rate
        normal = face
    elif rate < Real(0.0) and high < -rate * (end - before.t):
        end = before.t - high / rate
        normal = -face
    moved = difference
    moved.position = difference.position - before.t * ray.direction
    simplex = wp.zeros(shape=4, dtype=Vertex)
    guess = wp.where(wp.abs(high) < wp.abs(low), face, -face)
    nearest = nearest_of_difference(moved, guess, wp.max(radius - touch, Real(0.0)), simplex)
    if nearest.state != OVERLAP and nearest.distance >= radius - touch:
        return before
    exact = int(0)
    for _step in range(ADVANCES):
        moved.position = difference.position - end * ray.direction
        nearest = nearest_of_difference(moved, -normal, Real(wp.inf), simplex)
        if nearest.state == OVERLAP or nearest.distance <= radius + touch:
            exact = 1
            break
        height = (
            wp.dot(difference_support(difference, nearest.normal).point, nearest.normal) + radius
        )
        closing = -wp.dot(ray.direction, nearest.normal)
        if closing <= Real(0.0) or height / closing >= end:
            exact = 1
            break
        end = height / closing
        normal = -nearest.normal
    if end <= before.t + touch:
        return before
    return FreeAt(end, ray.direction, number, normal, wp.min(exact, before.exact))


@wp.func(inline=False)
def leave_region(difference: Any, sweep: Sweep, ray: Ray, number: int, before: FreeAt) -> FreeAt:
    """As `leave_triangle`, for a triangle that counts only where the overlap is in the sweep's
    region."""
    after = leave_triangle(difference, sweep, ray, number, before)
    if sweep.in_region == 1 and after.t > before.t:
        moved = before.t * ray.direction
        part = box_of_part(difference, moved - sweep.half, moved + sweep.half)
        if part.lower[0] > part.upper[0] or not is_in_region(sweep, moved, part.lower, part.upper):
            return before
    return after


@wp.func(inline=False)
def leave_triangles(
    pair: Any, surface: Any, sweep: Sweep, ray: Ray, limit: Real, before: FreeAt
) -> FreeAt:
    """The translation after one traversal of the triangles near the shape; ends at the limit.

    The shape moves on from triangle to triangle. Where a region is left, all triangles are left
    from `before`: which of them are in it depends on the translation, and must not depend on the
    order in which a tree gives them.
    """
    result = before
    start = before
    difference = pair
    along = wp.transpose(pair.rotation) * ray.direction
    grown = Vec3(sweep.touch, sweep.touch, sweep.touch)
    lower = sweep.lower + result.t * along - grown
    upper = sweep.upper + result.t * along + grown
    cursor = begin_near(surface, lower, upper)
    while cursor.number >= 0:
        difference.b = corners_of(surface, cursor.number)
        after = leave_region(difference, sweep, ray, cursor.number, start)
        if after.t > result.t:
            result = after
            if result.t >= limit:
                return result
            if sweep.in_region == 0:
                start = result
                lower = sweep.lower + result.t * along - grown
                upper = sweep.upper + result.t * along + grown
        cursor = next_near(surface, cursor, lower, upper)
    return result


@wp.func
def remember(recent: wp.array[int], number: int):
    """Caches a triangle in place of the oldest."""
    for k in range(wp.static(RECENT - 1)):
        recent[wp.static(RECENT - 1) - k] = recent[wp.static(RECENT - 2) - k]
    recent[0] = number


@wp.func
def depth_of_middle(pair: Any, surface: Any, sweep: Sweep, free: FreeAt) -> Real:
    """How deep the middle of a moved shape is inside the solid or behind the surface [m]; 0 outside
    the region."""
    if sweep.in_region == 1:
        moved = free.t * free.direction
        middle = pair.rotation * sweep.middle + pair.position + moved
        if not is_in_region(sweep, moved, middle, middle):
            return Real(0.0)
    return depth_behind(
        surface, sweep.middle + free.t * (wp.transpose(pair.rotation) * free.direction)
    )


@wp.func(inline=False)
def first_free(pair: Any, surface: Any, sweep: Sweep, direction: Vec3, limit: Real) -> FreeAt:
    """The first translation along a unit direction at which a convex shape overlaps no part of a
    surface or its solid, and is in front of a one-sided surface.

    limit: the search ends once the translation is at least this [m].
    """
    start = FreeAt(Real(0.0), direction, -1, direction, 1)
    result = start
    difference = pair
    ray = ray_along(pair.a, direction)
    for k in range(wp.static(RECENT)):
        if sweep.recent[k] >= 0:
            difference.b = corners_of(surface, sweep.recent[k])
            if sweep.in_region == 0:
                start = result
            after = leave_region(difference, sweep, ray, sweep.recent[k], start)
            if after.t > result.t:
                result = after
    if result.t >= limit:
        return result
    if sweep.in_region == 1:
        result = start
    for _sweep in range(SWEEPS):
        before = result.t
        result = leave_triangles(pair, surface, sweep, ray, limit, result)
        if result.t == before:
            # No triangle is overlapped: the shape is wholly inside the solid or behind the surface,
            # or wholly outside.
            inside = depth_of_middle(pair, surface, sweep, result)
            if inside <= Real(0.0):
                return result
            result.t += wp.max(inside, sweep.touch)
        elif result.t >= limit:
            remember(sweep.recent, result.number)
        if result.t >= limit:
            return result
    result.t = Real(wp.inf)
    result.exact = 0
    return result


BACK = wp.constant(Real(8.0))
"""Multiple of `Sweep.touch` by which a translation is shortened to find the triangles that are
exited last."""


@wp.func(inline=False)
def with_last_triangle(pair: Any, surface: Any, sweep: Sweep, free: FreeAt) -> FreeAt:
    """A free translation with the triangle of the lowest number of those that the shape exits last.

    Which of them `first_free` has found depends on the directions that were tried before.
    """
    ray = ray_along(pair.a, free.direction)
    start = FreeAt(free.t - BACK * sweep.touch, ray.direction, -1, ray.direction, 1)
    result = free
    if free.number < 0 or start.t <= Real(0.0):
        return result
    lowest = int(-1)
    difference = pair
    along = wp.transpose(pair.rotation) * ray.direction
    grown = Vec3(sweep.touch, sweep.touch, sweep.touch)
    lower = sweep.lower + start.t * along - grown
    upper = sweep.upper + start.t * along + grown
    cursor = begin_near(surface, lower, upper)
    while cursor.number >= 0:
        if lowest < 0 or cursor.number < lowest:
            difference.b = corners_of(surface, cursor.number)
            after = leave_region(difference, sweep, ray, cursor.number, start)
            if after.t >= free.t - Real(2.0) * sweep.touch:
                lowest = cursor.number
                result.number = after.number
                result.normal = after.normal
        cursor = next_near(surface, cursor, lower, upper)
    return result


@wp.func(inline=False)
def find_regions(pair: Any, surface: Any, sweep: Sweep) -> int:
    """Finds the regions of overlap of a shape before it moves; returns their number, 0 where it
    crosses no triangle."""
    difference = pair
    count = int(0)
    direction = Vec3(Real(0.0), Real(0.0), Real(1.0))
    ray = ray_along(pair.a, direction)
    start = FreeAt(Real(0.0), direction, -1, direction, 1)
    cursor = begin_near(surface, sweep.lower, sweep.upper)
    while cursor.number >= 0:
        difference.b = corners_of(surface, cursor.number)
        if leave_triangle(difference, sweep, ray, cursor.number, start).t > Real(0.0):
            part = box_of_part(difference, -sweep.half, sweep.half)
            if part.lower[0] <= part.upper[0]:
                part.number = cursor.number
                count = add_region(sweep.regions, count, part, sweep.touch)
        cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
    sort_regions(sweep.regions, count)
    return merge_through_solid(pair, surface, sweep.regions, count, sweep.touch)
