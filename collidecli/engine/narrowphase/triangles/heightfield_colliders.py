"""Colliders of heightfields: a convex shape against each triangle of a heightfield in its bounds.

Mid phase: the cells follow from the position of the shape's AABB in the grid; a min-max pyramid of the heights skips
squares that the AABB does not intersect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from collidecli.engine.candidates import Query, hull_of, primitive_of
from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import (
    FIRST,
    Field,
    Heightfields,
    base_begins,
    border_vertex,
    field_of,
    field_triangle,
    height_at,
    walls_begin,
    x_of,
    y_of,
)
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.primitives import Primitive
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.contact_merging import merge_triangles
from collidecli.engine.narrowphase.convex.features import triangle_feature_at
from collidecli.engine.narrowphase.sub_pairs import (
    SubPairKernels,
    SubPairList,
    append_sub_pair,
    search_kernel,
    sub_pair_kernel,
)
from collidecli.engine.narrowphase.triangles.convex_least_translation import settle_kernel
from collidecli.engine.narrowphase.triangles.convex_sweep import FieldSurface
from collidecli.engine.narrowphase.triangles.convex_triangle import (
    MAX_CONTACTS,
    NEARER,
    TriangleQuery,
    collide_convex_triangle,
    middle_inside_heightfield,
    triangle_query,
)
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    descend,
    is_inside,
    is_under,
    nearest_part,
    range_of,
    skip_square,
    squared_distance_to_square,
    wall_range,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    AT_SURFACE,
    ShapeBounds,
    bounds_of_shape,
    extent_along,
    may_have_contact,
    nearest_on_triangle,
)
from collidecli.engine.narrowphase.triangles.mesh_mid_phase import middle_of
from collidecli.engine.narrowphase.triangles.normal_cones import has_nearer, normal_cone_at
from collidecli.scene.shape_types import ShapeType

# ruff: noqa: SIM102


@wp.func
def collide_sphere_triangle(
    a: Primitive, b: TriangleShape, field: Any, query: TriangleQuery, out: ContactBuffer, row: int
) -> int:
    """The contact of a sphere with a triangle, where the direction between them is in the normal cone of the surface.

    Arguments and result as `convex_triangle.collide_convex_triangle`. Degenerate: for a centre on the triangle the
    normal is the triangle's.
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
    normal_cone = normal_cone_at(field, b, foot, direction)
    if normal_cone.belongs == 0:
        return 0
    separation = distance - radius
    if wp.dot(direction, normal_cone.outward) < Real(0.0):
        if has_nearer(field, query.mesh, center, distance * NEARER, Vec3()):
            return 0
        separation = -distance - radius
        direction = -direction
    normal = -wp.quat_rotate(wp.transform_get_rotation(query.pose_b_to_a), direction)
    emit_contact(out, row, radius * normal, normal, separation, -1, triangle_feature_at(b, foot), 0)
    return 1


# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an `and`.


@wp.func
def cell_triangles_near(field: Field, bounds: ShapeBounds, row: int, col: int) -> int:
    """The triangles of a cell that the bounds may intersect: bits 1 (below the diagonal) and 2.

    Separating axes: the vertical, the diagonal's normal, and the normal of each triangle from its front.
    """
    at = field.first + row * field.cols + col
    # In float64: a difference of two float32 heights is wrong by 6e-8 of itself, and the axis with it.
    h = Real(field.data[at])
    h_x = Real(field.data[at + 1])
    h_y = Real(field.data[at + field.cols])
    h_far = Real(field.data[at + field.cols + 1])
    highest = field.level + field.scale * wp.max(wp.max(h, h_x), wp.max(h_y, h_far))
    lowest = field.level + field.scale * wp.min(wp.min(h, h_x), wp.min(h_y, h_far))
    if bounds.lower[2] > highest or bounds.upper[2] < lowest:
        return 0
    half = Real(0.5) * (bounds.upper - bounds.lower)
    middle = bounds.lower + half - Vec3(x_of(field, col), y_of(field, row), field.level + field.scale * h)
    x = Real(2.0) * field.half_step_x
    y = Real(2.0) * field.half_step_y
    across = x * middle[1] - y * middle[0]
    spread = x * half[1] + y * half[0]
    sides = int(0)
    for side in range(2):
        # Both planes contain the low corner; rise_x and rise_y are their slopes times the area of the cell.
        rise_x = field.scale * wp.where(side == 0, h_x - h, h_far - h_y) * y
        rise_y = field.scale * wp.where(side == 0, h_far - h_x, h_y - h) * x
        normal = Vec3(-rise_x, -rise_y, x * y)
        if wp.dot(normal, middle) <= extent_along(bounds, normal) and wp.where(side == 0, across, -across) <= spread:
            sides = sides | (1 << side)
    return sides


@wp.func
def cell_sub_pairs(field: Field, bounds: ShapeBounds, traversal: Traversal, out: SubPairList, start: int) -> int:
    """Appends the triangles of the current square's cells that the shape may touch; returns the number of sub-pairs."""
    found = start
    row = wp.max(traversal.i << traversal.level, traversal.first_row)
    last_row = wp.min(((traversal.i + 1) << traversal.level) - 1, traversal.last_row)
    last_col = wp.min(((traversal.j + 1) << traversal.level) - 1, traversal.last_col)
    while row <= last_row:
        col = wp.max(traversal.j << traversal.level, traversal.first_col)
        while col <= last_col:
            sides = cell_triangles_near(field, bounds, row, col)
            first = 2 * (row * field.cols + col)
            for side in range(2):
                if ((sides >> side) & 1) == 1:
                    if may_have_contact(field, bounds, first + side):
                        found = append_sub_pair(out, found, first + side)
            col += 1
        row += 1
    return found


@wp.func
def top_sub_pairs(field: Field, bounds: ShapeBounds, out: SubPairList, start: int) -> int:
    """Appends the triangles of the surface near the shape; none for a shape wholly below; returns the number."""
    found = start
    traversal = begin_traversal(field, bounds.lower, bounds.upper)
    while traversal.done == 0:
        passes = not is_under(traversal)
        if not passes:
            heights = range_of(field, traversal)
            if heights.known == 1:
                passes = bounds.lower[2] > heights.high or bounds.upper[2] < heights.low
                passes = (
                    passes or squared_distance_to_square(field, traversal, bounds.center) >= bounds.ball * bounds.ball
                )
        if passes:
            traversal = skip_square(traversal)
        elif traversal.level > FIRST:
            traversal = descend(traversal)
        else:
            found = cell_sub_pairs(field, bounds, traversal, out, found)
            traversal = skip_square(traversal)
    return found


@wp.func
def border_sub_pairs(field: Field, bounds: ShapeBounds, out: SubPairList, start: int) -> int:
    """Appends the triangles of the four walls near the shape; returns the number of sub-pairs."""
    found = start
    if bounds.upper[2] < field.bottom:
        return found
    for turn in range(4):
        # The walls at -y and +y come before those at +x and -x.
        numbers = wall_range(field, wp.where(turn == 1 or turn == 2, 3 - turn, turn), bounds.lower, bounds.upper)
        for k in range((numbers[0] - walls_begin(field)) / 2, (numbers[1] - walls_begin(field)) / 2):
            p = border_vertex(field, k)
            q = border_vertex(field, k + 1)
            if bounds.lower[2] <= wp.max(height_at(field, p[0], p[1]), height_at(field, q[0], q[1])):
                found = append_sub_pair(out, found, walls_begin(field) + 2 * k)
                found = append_sub_pair(out, found, walls_begin(field) + 2 * k + 1)
    return found


@wp.func(inline=True)
def triangles_near(rows: ShapeRows, fields: Heightfields, query: Query, part: int, parts: int, out: SubPairList) -> int:
    """Appends every triangle that a shape is tested against; for a middle inside the solid also ~ the closest one.

    `parts` is 1.
    """
    field = field_of(fields, rows.heightfield[query.row_b])
    bounds = bounds_of_shape(rows, query, field)
    found = int(0)
    under_field = (
        bounds.beneath == 1 and wp.abs(bounds.middle[0]) <= field.half_x and wp.abs(bounds.middle[1]) <= field.half_y
    )
    if not under_field:
        found = top_sub_pairs(field, bounds, out, found)
    found = border_sub_pairs(field, bounds, out, found)
    if bounds.beneath == 1:
        reaches = bounds.upper[2] >= field.bottom
        for axis in range(2):
            half = wp.where(axis == 0, field.half_x, field.half_y)
            reaches = reaches and bounds.lower[axis] <= half and bounds.upper[axis] >= -half
        if reaches:
            base = base_begins(field)
            found = append_sub_pair(out, found, base)
            found = append_sub_pair(out, found, base + 1)
    elif is_inside(field, bounds.middle):
        number = int(0)
        if out.first + found < out.end:
            number = nearest_part(field, bounds.middle).number
        found = append_sub_pair(out, found, ~number)
    return found


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
            return middle_inside_heightfield(a, field_triangle(field, ~number), query.pose_b_to_a, out, row)
        b = field_triangle(field, number)
        return collide(a, b, field, triangle_query(0, 1, query.pose_b_to_a, query.max_separation), out, row)

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
