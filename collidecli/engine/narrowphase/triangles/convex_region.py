"""A region of overlap of a convex shape and a surface: a box in the frame of the shape before it moves."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import CAPSULE, CONE, CYLINDER, SPHERE

# Loops are plain.
# ruff: noqa: SIM110

MAX_CUT_VERTICES = 12
"""Corners of a triangle that is cut by six planes: nine, and spare."""


@wp.struct
class Region:
    """lower, upper: box, the shape's frame [m]. point: of the surface in it."""

    lower: Vec3
    upper: Vec3
    point: Vec3


@wp.func
def own_half_extents(a: Any) -> Vec3:
    """Half extents of a shape's box in its own frame [m]."""
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
    """The box of what of a triangle is in another box, and its middle; lower > upper where nothing is."""
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
def is_in_region(region: Region, half: Vec3, p: Vec3, q: Vec3, r: Vec3, way: Vec3, t: Real, touch: Real) -> bool:
    """Whether what a shape, moved by t along `way`, overlaps of a triangle is in what a region covers moving along.

    p, q, r: the triangle, the frame of the shape before it moves. half: of the shape's own box [m].
    """
    part = box_of_part(p, q, r, t * way - half, t * way + half)
    if part.lower[0] > part.upper[0]:
        return False
    lower = wp.min(region.lower, region.lower + t * way)
    upper = wp.max(region.upper, region.upper + t * way)
    return boxes_overlap(part.lower, part.upper, lower, upper, touch)
