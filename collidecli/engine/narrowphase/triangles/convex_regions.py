"""Regions of overlap of a convex shape and a surface of triangles, as boxes in the shape's frame.

A region is what of the surface is in the shape and hangs together: the parts of crossed triangles, cut by the shape's
own box, whose boxes overlap; in a closed surface also those between which the shape is in the solid.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Vertex, support_point
from collidecli.engine.narrowphase.triangles.convex_region import Region, box_of_part, boxes_overlap, own_half_extents
from collidecli.engine.narrowphase.triangles.convex_sweep import Sweep, leave_triangle
from collidecli.engine.narrowphase.triangles.swept_surface import begin_near, corners_of, depth_inside, next_near

MOST_REGIONS = 8
"""Of more, the two nearest are one: none is lost."""
BETWEEN = wp.constant(3)
"""Points between two regions that must be in the solid for the two to be one."""


@wp.func
def gap_between(x: Region, y: Region) -> Real:
    """Distance of two boxes [m]."""
    return wp.length(wp.max(Vec3(), wp.max(x.lower - y.upper, y.lower - x.upper)))


@wp.func(inline=False)
def add_region(regions: wp.array[Region], before: int, added: Region, slack: Real) -> int:
    """Puts a box to the regions, merged with all that it overlaps; returns how many there are then."""
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
    if count == wp.static(MOST_REGIONS):
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
        # What it overlaps now is merged with the next that is added, or stays: boxes may overlap then.
    regions[count] = region
    return count + 1


@wp.func(inline=False)
def find_regions(
    a: Any, pair: Any, surface: Any, sweep: Sweep, regions: wp.array[Region], simplex: wp.array[Vertex]
) -> int:
    """The regions of overlap of a shape where it is; returns how many there are, 0 where it crosses no triangle."""
    difference = pair
    count = int(0)
    half = own_half_extents(a)
    way = Vec3(Real(0.0), Real(0.0), Real(1.0))
    ahead = wp.dot(support_point(a, way), way)
    behind = wp.dot(support_point(a, -way), way)
    cursor = begin_near(surface, sweep.lower, sweep.upper)
    while cursor.number >= 0:
        difference.b = corners_of(surface, cursor.number)
        left = leave_triangle(a, difference, way, behind, ahead, Real(0.0), sweep.touch, simplex)
        if left.t > Real(0.0):
            p = difference.rotation * difference.b.p + difference.position
            q = difference.rotation * difference.b.q + difference.position
            r = difference.rotation * difference.b.r + difference.position
            part = box_of_part(p, q, r, -half, half)
            if part.lower[0] <= part.upper[0]:
                count = add_region(regions, count, part, sweep.touch)
        cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
    return merge_through_solid(surface, sweep, regions, count)


@wp.func(inline=False)
def merge_through_solid(surface: Any, sweep: Sweep, regions: wp.array[Region], before: int) -> int:
    """Makes those regions one between which the shape, which is convex, is in the solid."""
    count = before
    i = int(0)
    while i < count:
        k = i + 1
        while k < count:
            inside = int(0)
            for step in range(BETWEEN):
                share = (Real(step) + Real(1.0)) / Real(BETWEEN + 1)
                point = regions[i].point + share * (regions[k].point - regions[i].point)
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
