"""Contacts with a triangle that have closed forms."""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.primitives import Primitive
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.features import corner_of, triangle_feature_at
from collidecli.engine.narrowphase.triangles.convex_surface import (
    MeshSurface,
    has_nearer,
    normal_cone_at,
)
from collidecli.engine.narrowphase.triangles.convex_triangle import (
    AT_SURFACE,
    NEARER,
    nearest_on_triangle,
)


@wp.func
def collide_sphere_triangle(
    a: Primitive, b: TriangleShape, surface: Any, query: Query, out: ContactBuffer, row: int
) -> int:
    """The contact of a sphere with a triangle, where the direction between them is in the normal
    cone of the surface.

    Arguments and result as `convex_triangle.collide_convex_triangle`. Degenerate: for a centre on
    the triangle the normal is the triangle's.
    """
    radius = a.size[0]
    center = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), Vec3())
    foot = nearest_on_triangle(b, center)
    distance = wp.length(center - foot)
    if distance - radius >= query.max_separation:
        return 0
    direction = b.normal
    if distance > AT_SURFACE * radius:
        direction = (center - foot) / distance
    normal_cone = normal_cone_at(surface, b, foot, direction)
    if normal_cone.belongs == 0:
        return 0
    separation = distance - radius
    if wp.dot(direction, normal_cone.outward) < Real(0.0):
        if has_nearer(surface, center, distance * NEARER, Vec3()):
            return 0
        separation = -distance - radius
        direction = -direction
    normal = -wp.quat_rotate(wp.transform_get_rotation(query.pose_b_to_a), direction)
    emit_contact(out, row, radius * normal, normal, separation, -1, triangle_feature_at(b, foot), 0)
    return 1


@wp.func
def collide_plane_triangle(
    plane: Primitive,
    triangle: TriangleShape,
    surface: MeshSurface,
    query: Query,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a plane and those corners of a triangle that no earlier triangle of its mesh has.

    The triangles of a mesh together give each vertex closer than the maximum separation once.
    Arguments and result as `collide_convex_triangle`; features: -1, and the vertex.
    """
    owned = surface.meshes.arrays[0].owned[triangle.number]
    written = int(0)
    for k in range(3):
        p = wp.transform_point(query.pose_b_to_a, corner_of(triangle, k))
        if (owned >> k) & 1 == 1 and p[2] < query.max_separation:
            up = Vec3(Real(0.0), Real(0.0), Real(1.0))
            emit_contact(
                out, row + written, Vec3(p[0], p[1], Real(0.0)), up, p[2], -1, triangle.vertex[k], 0
            )
            written += 1
    return written
