"""Regions of overlap of a convex shape and a triangle surface, as AABBs in the frame of the shape before it moves.

A region is a connected part of the surface inside the shape: the parts of crossed triangles, clipped to the shape's own
box, whose boxes overlap. In a closed surface, parts between which the shape is inside the solid are one region too.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Mat33, Real, Vec3
from collidecli.engine.geometry.shape_codes import CAPSULE, CONE, CYLINDER, SPHERE
from collidecli.engine.narrowphase.triangles.swept_surface import depth_inside

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


@wp.func
def own_half_extents(a: Any) -> Vec3:
    """Half extents of the AABB of a shape in its own frame [m]."""
    size = a.size
    if a.type == SPHERE:
        return Vec3(size[0], size[0], size[0])
    if a.type == CAPSULE:
        return Vec3(size[0], size[0], size[0] + size[1])
    if a.type == CYLINDER or a.type == CONE:
        return Vec3(size[0], size[0], size[1])
    return size


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
    shape's own box, its own frame [m]. touch: TOUCH of the larger size; size: of the smaller of the two [m]. region:
    where in_region is 1, overlaps outside this region do not count.
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
