"""Colliders of heightfields: a convex shape against each triangle of a heightfield in its bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import Heightfields, field_of, field_triangle
from collidecli.engine.geometry.real import Real
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.sub_pairs import SubPairKernels, search_kernel, sub_pair_kernel
from collidecli.engine.narrowphase.triangles.contact_priority import merge_triangles
from collidecli.engine.narrowphase.triangles.convex_least_translation import settle_kernel
from collidecli.engine.narrowphase.triangles.convex_triangle import MAX_CONTACTS, collide_convex_triangle
from collidecli.engine.narrowphase.triangles.heightfield_mid_phase import triangles_near
from collidecli.engine.narrowphase.triangles.heightfield_sphere import collide_sphere_triangle
from collidecli.engine.narrowphase.triangles.origin_inside import middle_of, origin_inside_heightfield
from collidecli.engine.narrowphase.triangles.swept_surface import FieldSurface
from collidecli.engine.pair_query import Query, hull_of, primitive_of
from collidecli.scene.shape_types import ShapeType

HEIGHTFIELD = SubPairKernels(
    "heightfield", "heightfields", search_kernel(Heightfields, triangles_near), merge_triangles
)


def triangle_kernel(collide: Callable[..., Any], shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel of a shape type against heightfield triangles. shape_a: `primitive_of` or `hull_of`."""

    @wp.func(inline=True)
    def collide_triangle(
        rows: ShapeRows, fields: Heightfields, query: Query, number: int, out: ContactBuffer, row: int
    ) -> int:
        a = shape_a(rows, query.row_a)
        field = field_of(fields, rows.heightfield[query.row_b])
        if number < 0:
            return origin_inside_heightfield(a, field_triangle(field, ~number), query.pose_b_to_a, out, row)
        b = field_triangle(field, number)
        return collide(a, b, field, 0, 1, query.pose_b_to_a, query.max_separation, out, row)

    return sub_pair_kernel(Heightfields, collide_triangle)


def field_surface(shape_a: Callable[..., Any]) -> Callable[..., Any]:
    """The function that returns a pair's heightfield as a surface to sweep against. shape_a: `primitive_of` or
    `hull_of`."""

    @wp.func(inline=True)
    def surface_of(rows: ShapeRows, fields: Heightfields, query: Query) -> FieldSurface:
        surface = FieldSurface()
        surface.field = field_of(fields, rows.heightfield[query.row_b])
        surface.closed = 1
        middle = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), middle_of(shape_a(rows, query.row_a)))
        surface.beneath = wp.where(middle[2] < surface.field.bottom, 1, 0)
        surface.max_separation = Real(4.0) * Real(rows.radius[query.row_a])
        return surface

    return surface_of


def collider_for(type_a: ShapeType) -> Collider:
    """The collider of a shape type against heightfields."""
    if type_a == ShapeType.SPHERE:
        return _collider("sphere")
    return _collider("hull" if type_a == ShapeType.CONVEX_MESH else "convex")


@cache
def _collider(name: str) -> Collider:
    if name == "sphere":
        kernel = triangle_kernel(collide_sphere_triangle, primitive_of)
        return Collider(
            "sphere_field",
            1,
            kernel,
            may_be_inexact=True,
            sub_pair_kernels=HEIGHTFIELD,
            region_depths=_settle("primitive"),
        )
    shape_a = hull_of if name == "hull" else primitive_of
    kernel = triangle_kernel(collide_convex_triangle, shape_a)
    settle = _settle("hull" if name == "hull" else "primitive")
    return Collider(
        f"{name}_field", MAX_CONTACTS, kernel, may_be_inexact=True, sub_pair_kernels=HEIGHTFIELD, region_depths=settle
    )


@cache
def _settle(name: str) -> wp.Kernel:
    shape_a = hull_of if name == "hull" else primitive_of
    return settle_kernel(Heightfields, field_surface(shape_a), shape_a)
