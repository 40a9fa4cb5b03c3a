"""Whether a convex shape has a contact with a surface of triangles, from the triangles in its bounds.

A triangle is decided as in `convex_triangle` before the depth and the manifold: by the closest points of GJK from one
first direction, and by the normal cone of the surface there. So a triangle that is apart here has no contact there, and
one that touches has. The search ends at the first triangle that touches, and begins at the one closest to the shape's
middle.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import warp as wp

from collidecli.engine.candidates import Query, hull_of, primitive_of
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import Field, Heightfields, field_of, field_triangle
from collidecli.engine.geometry.meshes import Meshes, TriangleShape, triangle_shape
from collidecli.engine.geometry.primitives import Vertex
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.convex.gjk import (
    BEYOND_MAX_SEPARATION,
    OVERLAP,
    depth_in_simplex,
    nearest_of_difference,
)
from collidecli.engine.narrowphase.convex.penetration import (
    APART_BY_LIMIT,
    TOUCHING,
    UNCERTAIN,
    minkowski_difference,
    sum_of_sizes,
)
from collidecli.engine.narrowphase.sub_pairs import touch_collider, touch_kernel, without_depths
from collidecli.engine.narrowphase.triangles import heightfield_colliders, mesh_colliders
from collidecli.engine.narrowphase.triangles.convex_triangle import (
    TriangleQuery,
    toward_triangle,
    triangle_query,
)
from collidecli.engine.narrowphase.triangles.mesh_mid_phase import middle_of
from collidecli.engine.narrowphase.triangles.normal_cones import has_inside, normal_cone_at
from collidecli.scene.shape_types import ShapeType

# ruff: noqa: F811

ROUNDING = wp.constant(Real(1.0e-12))
"""Bound of the rounding of a separation along a given direction, relative to the sizes' sum. The collider's separation
is never above the exact one but by rounding: it is that of GJK or EPA, or one along a face."""


@wp.func(inline=False)
def touch_of_triangle(a: Any, b: TriangleShape, surface: Any, query: TriangleQuery) -> int:
    """Whether `collide_convex_triangle` has a contact: TOUCHING, APART_BY_LIMIT, or UNCERTAIN."""
    difference = minkowski_difference(a, b, query.pose_b_to_a)
    simplex = wp.zeros(shape=4, dtype=Vertex)
    radius = difference.radius_a
    start = toward_triangle(difference, b, query.pose_b_to_a)
    nearest = nearest_of_difference(difference, start, query.max_separation + radius, simplex)
    rounding = ROUNDING * (sum_of_sizes(difference) + wp.abs(query.max_separation))
    if nearest.state == OVERLAP:
        below = query.max_separation + radius - nearest.distance
        if below <= rounding:
            below += depth_in_simplex(simplex, nearest.count)
        is_certain = below > rounding and (query.closed == 0 or has_inside(surface, query.mesh))
        # A shape behind a one-sided surface, in its reach, has no contact unless it crosses.
        return wp.where(is_certain, TOUCHING, UNCERTAIN)
    if nearest.state == BEYOND_MAX_SEPARATION or nearest.distance - radius >= query.max_separation:
        return APART_BY_LIMIT
    if nearest.distance - radius >= query.max_separation - rounding:
        return UNCERTAIN
    direction = -(wp.transpose(difference.rotation) * nearest.normal)
    on_b = wp.transpose(difference.rotation) * (nearest.on_a + nearest.distance * nearest.normal - difference.position)
    normal_cone = normal_cone_at(surface, b, on_b, direction)
    if normal_cone.belongs == 0:
        behind = query.closed == 1 and wp.dot(direction, b.normal) < Real(0.0)
        return wp.where(behind, APART_BY_LIMIT, UNCERTAIN)
    if query.closed == 1 and wp.dot(direction, normal_cone.outward) < Real(0.0):
        behind = nearest.distance >= radius and not has_inside(surface, query.mesh)
        return wp.where(behind, APART_BY_LIMIT, UNCERTAIN)
    return TOUCHING


@wp.func
def triangle_on(meshes: Meshes, query: TriangleQuery, number: int) -> TriangleShape:
    """Triangle of the mesh of a query."""
    return triangle_shape(meshes, query.mesh, number)


@wp.func
def triangle_on(field: Field, query: TriangleQuery, number: int) -> TriangleShape:
    """Triangle of a heightfield."""
    return field_triangle(field, number)


@wp.func
def closest_of_list(
    surface: Any, query: TriangleQuery, middle: Vec3, sub_pair: wp.array[wp.vec2i], begin: int, end: int
) -> int:
    """Index of the triangle whose centroid is closest to a point of the surface's frame."""
    closest = int(begin)
    least = Real(wp.inf)
    for i in range(begin, end):
        b = triangle_on(surface, query, sub_pair[i][1])
        square = wp.length_sq((b.p + b.q + b.r) / Real(3.0) - middle)
        if square < least:
            least = square
            closest = i
    return closest


@wp.func
def touch_of_list(
    a: Any, surface: Any, query: TriangleQuery, sub_pair: wp.array[wp.vec2i], begin: int, end: int
) -> int:
    """Whether a convex shape touches a surface at a triangle of a list: TOUCHING, APART_BY_LIMIT, or UNCERTAIN."""
    if sub_pair[end - 1][1] < 0:
        return TOUCHING  # its middle is inside, which always gives a contact
    middle = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), middle_of(a))
    first = closest_of_list(surface, query, middle, sub_pair, begin, end)
    state = touch_of_triangle(a, triangle_on(surface, query, sub_pair[first][1]), surface, query)
    i = int(begin)
    while i < end and state != TOUCHING:
        if i != first:
            here = touch_of_triangle(a, triangle_on(surface, query, sub_pair[i][1]), surface, query)
            state = wp.where(here == APART_BY_LIMIT, state, here)
        i += 1
    return state


@cache
def mesh_touches(is_hull: bool) -> wp.Kernel:
    """The kernel of a convex shape and a mesh."""
    shape_a = hull_of if is_hull else primitive_of

    @wp.func(inline=True)
    def touch_of_pair(
        rows: ShapeRows, meshes: Meshes, query: Query, sub_pair: wp.array[wp.vec2i], begin: int, end: int
    ) -> int:
        a = shape_a(rows, query.row_a)
        mesh = rows.mesh[query.row_b]
        has_front = meshes.arrays[0].header[mesh].has_front
        triangles = triangle_query(mesh, has_front, query.pose_b_to_a, query.max_separation)
        return touch_of_list(a, meshes, triangles, sub_pair, begin, end)

    return touch_kernel(Meshes, touch_of_pair, reads_list=True)


@cache
def heightfield_touches(is_hull: bool) -> wp.Kernel:
    """The kernel of a convex shape and a heightfield."""
    shape_a = hull_of if is_hull else primitive_of

    @wp.func(inline=True)
    def touch_of_pair(
        rows: ShapeRows, fields: Heightfields, query: Query, sub_pair: wp.array[wp.vec2i], begin: int, end: int
    ) -> int:
        a = shape_a(rows, query.row_a)
        field = field_of(fields, rows.heightfield[query.row_b])
        triangles = triangle_query(0, 1, query.pose_b_to_a, query.max_separation)
        return touch_of_list(a, field, triangles, sub_pair, begin, end)

    return touch_kernel(Heightfields, touch_of_pair, reads_list=True)


@cache
def on_mesh(type_a: ShapeType) -> Collider:
    """The collider of a shape type against meshes; planes have closed forms."""
    full = mesh_colliders.collider_for(type_a)
    if type_a == ShapeType.PLANE:
        return full
    return touch_collider(full, mesh_touches(type_a == ShapeType.CONVEX_MESH), reads_list=True)


@cache
def on_heightfield(type_a: ShapeType) -> Collider:
    """The collider of a shape type against heightfields; spheres have closed forms."""
    full = heightfield_colliders.collider_for(type_a)
    if type_a == ShapeType.SPHERE:
        return without_depths(full)
    return touch_collider(full, heightfield_touches(type_a == ShapeType.CONVEX_MESH), reads_list=True)
