"""Whether a convex shape touches a surface."""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.geometry.mesh_points import RISE
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.primitives import Vertex, middle_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.distance_bounds import nearest_cores
from collidecli.engine.narrowphase.convex.gjk import (
    BEYOND_MAX_SEPARATION,
    OVERLAP,
    depth_in_simplex,
)
from collidecli.engine.narrowphase.convex.penetration import minkowski_difference, sum_of_sizes
from collidecli.engine.narrowphase.convex.touch import APART_BY_LIMIT, TOUCHING, UNCERTAIN
from collidecli.engine.narrowphase.triangles.convex_surface import named_of, normal_cone_at
from collidecli.engine.narrowphase.triangles.convex_triangle import toward_triangle

TOUCH_ROUNDING = wp.constant(Real(1.0e-12))
"""Bound of the rounding of a separation along a given direction, relative to the sizes' sum. The
collider's separation is never above the exact one but by rounding: it is that of GJK or EPA, or one
along a face."""


@wp.func(inline=False)
def touch_of_triangle(a: Any, b: TriangleShape, surface: Any, query: Query) -> int:
    """Whether `collide_convex_triangle` has a contact: TOUCHING, APART_BY_LIMIT, or UNCERTAIN."""
    difference = minkowski_difference(a, b, query.pose_b_to_a)
    simplex = wp.zeros(shape=4, dtype=Vertex)
    radius = difference.radius_a
    start = toward_triangle(difference, b, query.pose_b_to_a)
    nearest = nearest_cores(difference, start, query.max_separation + radius, simplex)
    rounding = TOUCH_ROUNDING * (sum_of_sizes(difference) + wp.abs(query.max_separation))
    if nearest.state == OVERLAP:
        below = query.max_separation + radius - nearest.distance
        if below <= rounding:
            below += depth_in_simplex(simplex, nearest.count)
        is_certain = below > rounding and (surface.front == 0 or surface.closed == 1)
        # A shape behind a one-sided surface, in its reach, has no contact unless it crosses.
        return wp.where(is_certain, TOUCHING, UNCERTAIN)
    if nearest.state == BEYOND_MAX_SEPARATION or nearest.distance - radius >= query.max_separation:
        return APART_BY_LIMIT
    if nearest.distance - radius >= query.max_separation - rounding:
        return UNCERTAIN
    direction = -(wp.transpose(difference.rotation) * nearest.normal)
    on_b = wp.transpose(difference.rotation) * (
        nearest.on_a + nearest.distance * nearest.normal - difference.position
    )
    normal_cone = normal_cone_at(surface, b, on_b, direction)
    if normal_cone.belongs == 0:
        behind = surface.front == 1 and wp.dot(direction, b.normal) < Real(0.0)
        return wp.where(behind, APART_BY_LIMIT, UNCERTAIN)
    # What is beside the border of an open mesh is not behind it, see `convex_surface.is_behind`.
    limit = wp.where(surface.closed == 0, -RISE * wp.length(normal_cone.outward), Real(0.0))
    if surface.front == 1 and wp.dot(direction, normal_cone.outward) < limit:
        behind = nearest.distance >= radius and surface.closed == 0
        return wp.where(behind, APART_BY_LIMIT, UNCERTAIN)
    return TOUCHING


@wp.func
def closest_of_list(
    surface: Any, middle: Vec3, sub_pair: wp.array[wp.vec2i], begin: int, end: int
) -> int:
    """Index of the triangle whose centroid is closest to a point of the surface's frame."""
    closest = int(begin)
    least = Real(wp.inf)
    for i in range(begin, end):
        b = named_of(surface, sub_pair[i][1])
        square = wp.length_sq((b.p + b.q + b.r) / Real(3.0) - middle)
        if square < least:
            least = square
            closest = i
    return closest


@wp.func
def touch_of_list(
    a: Any, surface: Any, query: Query, sub_pair: wp.array[wp.vec2i], begin: int, end: int
) -> int:
    """Whether a convex shape touches a surface at a triangle of a list: TOUCHING, APART_BY_LIMIT,
    or UNCERTAIN."""
    if sub_pair[end - 1][1] < 0:
        return TOUCHING  # its middle is inside, which always gives a contact
    middle = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), middle_of(a))
    first = closest_of_list(surface, middle, sub_pair, begin, end)
    state = touch_of_triangle(a, named_of(surface, sub_pair[first][1]), surface, query)
    i = int(begin)
    while i < end and state != TOUCHING:
        if i != first:
            touch = touch_of_triangle(a, named_of(surface, sub_pair[i][1]), surface, query)
            state = wp.where(touch == APART_BY_LIMIT, state, touch)
        i += 1
    return state
