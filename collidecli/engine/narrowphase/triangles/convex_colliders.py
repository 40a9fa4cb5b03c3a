"""Colliders of a convex shape or plane and a surface of triangles: of each with the triangles in
its bounds.

Mid phase: of a mesh the triangles are found by its BVH. Of a heightfield the cells follow from the
position of the shape's AABB in the grid; a min-max pyramid of the heights skips squares that the
AABB does not intersect.

For method "touch" a triangle is decided as in `convex_triangle` before the depth and the manifold:
by the closest points of GJK from one first direction, and by the normal cone of the surface there.
So a triangle that is apart here has no contact there, and one that touches has. The search ends at
the first triangle that touches, and begins at the one closest to the shape's middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import warp as wp

from collidecli.engine.collider_query import Query, hull_of, primitive_of
from collidecli.engine.contact_record import ContactBuffer
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import Heightfields
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.contact_merging import merge_triangles
from collidecli.engine.narrowphase.sub_pairs import SubPairKernels, search_kernel, sub_pair_kernel
from collidecli.engine.narrowphase.touch_sub_pairs import touch_collider, touch_kernel
from collidecli.engine.narrowphase.triangles.convex_region_depths import settle_kernel
from collidecli.engine.narrowphase.triangles.convex_surface import (
    field_surface,
    mesh_surface,
    named_of,
    swept_field_surface,
)
from collidecli.engine.narrowphase.triangles.convex_triangle import (
    MAX_CONTACTS,
    collide_convex_triangle,
    middle_inside,
)
from collidecli.engine.narrowphase.triangles.heightfield_near import field_triangles_near
from collidecli.engine.narrowphase.triangles.mesh_near import mesh_triangles_near
from collidecli.engine.narrowphase.triangles.surface_touch import touch_of_list
from collidecli.engine.narrowphase.triangles.triangle_closed_forms import (
    collide_plane_triangle,
    collide_sphere_triangle,
)
from collidecli.scene.shape_types import ShapeType


@dataclass(frozen=True)
class SurfaceKind:
    """How a kind of surfaces is collided with.

    names: of the search for sub-pairs, of the surfaces in the model, and in the names of colliders.
    struct: of the surfaces. triangles_near: of `search_kernel`. surface_of(rows, surfaces, query):
    the surface of a pair. swept_surface(shape_a): the same function for a shape that is swept.
    closed_form: type of shape with a collision function of its own.
    """

    names: tuple[str, str, str]
    struct: Any
    triangles_near: Callable[..., Any]
    surface_of: Callable[..., Any]
    swept_surface: Callable[..., Any]
    closed_form: ShapeType


MESH = SurfaceKind(
    ("mesh", "meshes", "triangles"),
    Meshes,
    mesh_triangles_near,
    mesh_surface,
    lambda _shape_a: mesh_surface,
    ShapeType.PLANE,
)
HEIGHTFIELD = SurfaceKind(
    ("heightfield", "heightfields", "field"),
    Heightfields,
    field_triangles_near,
    field_surface,
    swept_field_surface,
    ShapeType.SPHERE,
)


@cache
def triangle_sub_pairs(kind: SurfaceKind) -> SubPairKernels:
    """The kernels that find the triangles near a shape, and merge their contacts."""
    return SubPairKernels(
        *kind.names[:2], search_kernel(kind.struct, kind.triangles_near), merge_triangles
    )


def triangle_kernel(
    kind: SurfaceKind, collide: Callable[..., Any], shape_a: Callable[..., Any]
) -> wp.Kernel:
    """The kernel of a shape type against triangles. shape_a: `primitive_of` or `hull_of`."""
    surface_of = kind.surface_of

    @wp.func(inline=True)
    def collide_triangle(
        rows: ShapeRows, surfaces: Any, query: Query, number: int, out: ContactBuffer, row: int
    ) -> int:
        a = shape_a(rows, query.row_a)
        surface = surface_of(rows, surfaces, query)
        if number < 0:
            return middle_inside(a, surface, ~number, query.pose_b_to_a, out, row)
        return collide(a, named_of(surface, number), surface, query, out, row)

    return sub_pair_kernel(kind.struct, collide_triangle)


@cache
def depth_kernel(kind: SurfaceKind, shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel that gives merged contacts the depths of their regions."""
    return settle_kernel(kind.struct, kind.swept_surface(shape_a), shape_a)


def triangle_touches(kind: SurfaceKind, shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel that decides whether pairs touch."""
    surface_of = kind.surface_of

    @wp.func(inline=True)
    def touch_of_pair(
        rows: ShapeRows,
        surfaces: Any,
        query: Query,
        sub_pair: wp.array[wp.vec2i],
        begin: int,
        end: int,
    ) -> int:
        a = shape_a(rows, query.row_a)
        return touch_of_list(a, surface_of(rows, surfaces, query), query, sub_pair, begin, end)

    return touch_kernel(kind.struct, touch_of_pair, reads_list=True)


@cache
def _collider(kind: SurfaceKind, name: str, touches: bool) -> Collider:
    shape_a = hull_of if name == "hull" else primitive_of
    functions = {"plane": (collide_plane_triangle, 3), "sphere": (collide_sphere_triangle, 1)}
    if touches:
        full = _collider(kind, name, touches=False)
        if name in functions:
            return replace(full, region_depths=None)
        return touch_collider(full, triangle_touches(kind, shape_a), reads_list=True)
    collide, most = functions.get(name, (collide_convex_triangle, MAX_CONTACTS))
    kernel = triangle_kernel(kind, collide, shape_a)
    full = Collider(
        f"{name}_{kind.names[2]}", most, kernel, sub_pair_kernels=triangle_sub_pairs(kind)
    )
    if name == "plane":
        return full
    return replace(full, may_be_inexact=True, region_depths=depth_kernel(kind, shape_a))


def collider_on(kind: SurfaceKind, touches: bool, type_a: ShapeType) -> Collider:
    """The collider of a shape type against a kind of surfaces. touches: of method "touch"."""
    name = "hull" if type_a == ShapeType.CONVEX_MESH else "convex"
    return _collider(kind, type_a.label if type_a == kind.closed_form else name, touches)


on_mesh = partial(collider_on, MESH, False)
on_heightfield = partial(collider_on, HEIGHTFIELD, False)
touches_mesh = partial(collider_on, MESH, True)
touches_heightfield = partial(collider_on, HEIGHTFIELD, True)
