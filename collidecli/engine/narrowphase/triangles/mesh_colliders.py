"""Colliders of meshes: a convex shape or plane against each triangle of a mesh in its bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.meshes import Meshes, triangle_shape
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.primitive import plane_mesh
from collidecli.engine.narrowphase.sub_pairs import SubPairKernels, search_kernel, sub_pair_kernel
from collidecli.engine.narrowphase.triangles.contact_priority import merge_triangles
from collidecli.engine.narrowphase.triangles.convex_least_translation import settle_kernel
from collidecli.engine.narrowphase.triangles.convex_triangle import MAX_CONTACTS, collide_convex_triangle
from collidecli.engine.narrowphase.triangles.mesh_mid_phase import triangles_near
from collidecli.engine.narrowphase.triangles.origin_inside import origin_inside_mesh
from collidecli.engine.narrowphase.triangles.swept_surface import MeshSurface
from collidecli.engine.pair_query import Query, hull_of, primitive_of
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
            return origin_inside_mesh(a, meshes, mesh, ~number, query.pose_b_to_a, out, row)
        b = triangle_shape(meshes, mesh, number)
        has_front = meshes.header[mesh].has_front
        return collide(a, b, meshes, mesh, has_front, query.pose_b_to_a, query.max_separation, out, row)

    return sub_pair_kernel(Meshes, collide_triangle)


@wp.func(inline=True)
def surface_of(rows: ShapeRows, meshes: Meshes, query: Query) -> MeshSurface:
    """The mesh of a pair, as a surface to sweep against."""
    surface = MeshSurface()
    surface.meshes = meshes
    surface.mesh = rows.mesh[query.row_b]
    surface.closed = meshes.header[surface.mesh].is_closed
    return surface


def collider_for(type_a: ShapeType) -> Collider:
    """The collider of a shape type against meshes."""
    if type_a == ShapeType.PLANE:
        return _collider("plane")
    return _collider("hull" if type_a == ShapeType.CONVEX_MESH else "convex")


@cache
def _collider(name: str) -> Collider:
    if name == "plane":
        kernel = triangle_kernel(plane_mesh.collide_plane_triangle, primitive_of)
        return Collider("plane_triangles", plane_mesh.MAX_CONTACTS, kernel, sub_pair_kernels=MESH)
    shape_a = hull_of if name == "hull" else primitive_of
    kernel = triangle_kernel(collide_convex_triangle, shape_a)
    settle = settle_kernel(Meshes, surface_of, shape_a)
    return Collider(
        f"{name}_triangles", MAX_CONTACTS, kernel, may_be_inexact=True, sub_pair_kernels=MESH, region_depths=settle
    )
