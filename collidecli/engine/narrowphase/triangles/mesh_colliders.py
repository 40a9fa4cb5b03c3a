"""Colliders of meshes: a convex shape or plane against each triangle of a mesh in its bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from collidecli.engine.candidates import Query, hull_of, primitive_of
from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.meshes import Meshes, TriangleShape, triangle_shape
from collidecli.engine.geometry.primitives import Primitive
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.contact_merging import merge_triangles
from collidecli.engine.narrowphase.convex.features import corner_of
from collidecli.engine.narrowphase.sub_pairs import SubPairKernels, search_kernel, sub_pair_kernel
from collidecli.engine.narrowphase.triangles.convex_least_translation import settle_kernel
from collidecli.engine.narrowphase.triangles.convex_sweep import MeshSurface
from collidecli.engine.narrowphase.triangles.convex_triangle import (
    MAX_CONTACTS,
    TriangleQuery,
    collide_convex_triangle,
    middle_inside_mesh,
    triangle_query,
)
from collidecli.engine.narrowphase.triangles.mesh_mid_phase import triangles_near
from collidecli.scene.shape_types import ShapeType

MESH = SubPairKernels("mesh", "meshes", search_kernel(Meshes, triangles_near), merge_triangles)


def triangle_kernel(collide: Callable[..., Any], shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel of a shape type against mesh triangles. shape_a: `primitive_of` or `hull_of`."""

    @wp.func(inline=True)
    def collide_triangle(
        rows: ShapeRows, meshes: Meshes, query: Query, number: int, out: ContactBuffer, row: int
    ) -> int:
        a = shape_a(rows, query.row_a)
        mesh = rows.mesh[query.row_b]
        if number < 0:
            return middle_inside_mesh(a, meshes, mesh, ~number, query.pose_b_to_a, out, row)
        b = triangle_shape(meshes, mesh, number)
        has_front = meshes.arrays[0].header[mesh].has_front
        triangle = triangle_query(mesh, has_front, query.pose_b_to_a, query.max_separation)
        return collide(a, b, meshes, triangle, out, row)

    return sub_pair_kernel(Meshes, collide_triangle)


@wp.func(inline=True)
def surface_of(rows: ShapeRows, meshes: Meshes, query: Query) -> MeshSurface:
    """The mesh of a pair, as a surface to sweep against."""
    surface = MeshSurface()
    surface.meshes = meshes
    surface.mesh = rows.mesh[query.row_b]
    surface.closed = meshes.arrays[0].header[surface.mesh].is_closed
    return surface


@wp.func
def collide_plane_triangle(
    plane: Primitive, triangle: TriangleShape, meshes: Meshes, query: TriangleQuery, out: ContactBuffer, row: int
) -> int:
    """Contacts of a plane and those corners of a triangle that no earlier triangle of its mesh has.

    The triangles of a mesh together give each vertex closer than the maximum separation once. Arguments and result as
    `collide_convex_triangle`; features: -1, and the vertex.
    """
    owned = meshes.arrays[0].owned[triangle.number]
    written = int(0)
    for k in range(3):
        p = wp.transform_point(query.pose_b_to_a, corner_of(triangle, k))
        if (owned >> k) & 1 == 1 and p[2] < query.max_separation:
            up = Vec3(Real(0.0), Real(0.0), Real(1.0))
            emit_contact(out, row + written, Vec3(p[0], p[1], Real(0.0)), up, p[2], -1, triangle.vertex[k], 0)
            written += 1
    return written


def collider_for(type_a: ShapeType) -> Collider:
    """The collider of a shape type against meshes."""
    if type_a == ShapeType.PLANE:
        return _collider("plane")
    return _collider("hull" if type_a == ShapeType.CONVEX_MESH else "convex")


@cache
def _collider(name: str) -> Collider:
    if name == "plane":
        kernel = triangle_kernel(collide_plane_triangle, primitive_of)
        return Collider("plane_triangles", 3, kernel, sub_pair_kernels=MESH)
    shape_a = hull_of if name == "hull" else primitive_of
    kernel = triangle_kernel(collide_convex_triangle, shape_a)
    settle = settle_kernel(Meshes, surface_of, shape_a)
    return Collider(
        f"{name}_triangles", MAX_CONTACTS, kernel, may_be_inexact=True, sub_pair_kernels=MESH, region_depths=settle
    )
