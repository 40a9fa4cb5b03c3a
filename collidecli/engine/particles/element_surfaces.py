"""Surfaces of convex meshes, meshes and heightfields by edges and faces: triangles, traversals."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.heightfields import base_begins, field_of, named_triangle
from collidecli.engine.geometry.meshes import mesh_corner
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_near_segment import (
    SegmentCursor,
    begin_near_segment,
    next_near_segment,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import normal_of
from collidecli.engine.narrowphase.triangles.surface import TreeCursor, begin_in_box, next_in_box
from collidecli.engine.particles.element_minimum import TriangleQuery
from collidecli.engine.particles.surfaces import GridSurfaces, PolygonSurfaces

# ruff: noqa: F811


@wp.func
def triangle_of(surfaces: PolygonSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a mesh."""
    return TriangleQuery(
        mesh_corner(surfaces.meshes, number, 0),
        mesh_corner(surfaces.meshes, number, 1),
        mesh_corner(surfaces.meshes, number, 2),
        surfaces.meshes.arrays[0].face_normal[number],
    )


@wp.func
def triangle_of(surfaces: GridSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a heightfield."""
    shape = named_triangle(field_of(surfaces.fields, surfaces.field[row]), number)
    return TriangleQuery(shape.p, shape.q, shape.r, normal_of(shape))


@wp.func
def begin_near(surfaces: PolygonSurfaces, row: int, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the first triangle whose box intersects a box of the shape's frame."""
    return begin_in_box(surfaces.meshes, surfaces.mesh[row], low, high)


@wp.func
def next_near(
    surfaces: PolygonSurfaces, row: int, cursor: TreeCursor, low: Vec3, high: Vec3
) -> TreeCursor:
    """The traversal at the next triangle."""
    return next_in_box(surfaces.meshes, surfaces.mesh[row], cursor, low, high)


@wp.func
def begin_near(surfaces: GridSurfaces, row: int, low: Vec3, high: Vec3) -> SegmentCursor:
    """The traversal at the first triangle near a box, which is taken as its bounding cube."""
    half = Real(0.5) * (high - low)
    middle = low + half
    return begin_near_segment(
        field_of(surfaces.fields, surfaces.field[row]), middle, middle, wp.max(half)
    )


@wp.func
def next_near(
    surfaces: GridSurfaces, row: int, cursor: SegmentCursor, low: Vec3, high: Vec3
) -> SegmentCursor:
    """The traversal at the next triangle."""
    return next_near_segment(field_of(surfaces.fields, surfaces.field[row]), cursor)


@wp.func
def has_inside(surfaces: Any, row: int) -> bool:
    """Whether the shape is a solid: all but an open mesh are."""
    return True


@wp.func
def has_inside(surfaces: PolygonSurfaces, row: int) -> bool:
    """Whether a mesh is closed."""
    return surfaces.meshes.arrays[0].header[surfaces.mesh[row]].is_closed == 1


@wp.func
def counts_inside(surfaces: PolygonSurfaces, row: int, face: int) -> bool:
    """Whether the depth of an inner point is at most its distance from a triangle."""
    return True


@wp.func
def counts_inside(surfaces: GridSurfaces, row: int, face: int) -> bool:
    """Whether a triangle is not of the base, which inner points ignore (docs/adr/0026)."""
    return face < base_begins(field_of(surfaces.fields, surfaces.field[row]))
