"""Surfaces of convex meshes, meshes and heightfields by edges and faces: samples, triangles, traversals."""

import warp as wp

from collidecli.engine.geometry.heightfields import base_begins, field_of, named_triangle
from collidecli.engine.geometry.mesh_nearest import mesh_corner
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    SegmentCursor,
    begin_near_segment,
    next_near_segment,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import normal_of
from collidecli.engine.narrowphase.triangles.triangle_source import TreeCursor, begin_in_box, next_in_box
from collidecli.engine.particles.convex_minimum import Slope, TriangleQuery, slope_at
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    PolygonSurfaces,
    Sample,
    sample_grid_surface,
    sample_polygons,
)

# ruff: noqa: F811


@wp.struct
class HullQuery:
    """A convex mesh. half: half extents of its box [m]."""

    surfaces: PolygonSurfaces
    row: int
    half: Vec3


@wp.func
def slope_at(query: HullQuery, point: Vec3) -> Slope:
    """Signed distance of a point and its gradient."""
    sample = sample_polygons(query.surfaces, query.row, query.half, point, Real(wp.inf), Real(0.0))
    result = Slope()
    result.value = sample.distance
    result.gradient = sample.outward
    return result


@wp.func
def sample_surface(surfaces: PolygonSurfaces, row: int, half: Vec3, point: Vec3, limit: Real) -> Sample:
    """Closest point of a mesh, if its signed distance is below `limit` [m]."""
    return sample_polygons(surfaces, row, half, point, limit, Real(0.0))


@wp.func
def sample_surface(surfaces: GridSurfaces, row: int, half: Vec3, point: Vec3, limit: Real) -> Sample:
    """Closest point of a heightfield, if its signed distance is below `limit` [m]."""
    return sample_grid_surface(surfaces, row, half, point, limit)


@wp.func
def triangle_of(surfaces: PolygonSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a mesh."""
    query = TriangleQuery()
    query.p = mesh_corner(surfaces.meshes, number, 0)
    query.q = mesh_corner(surfaces.meshes, number, 1)
    query.r = mesh_corner(surfaces.meshes, number, 2)
    query.normal = surfaces.meshes.arrays[0].face_normal[number]
    return query


@wp.func
def triangle_of(surfaces: GridSurfaces, row: int, number: int) -> TriangleQuery:
    """A triangle of a heightfield."""
    shape = named_triangle(field_of(surfaces.fields, surfaces.field[row]), number)
    query = TriangleQuery()
    query.p = shape.p
    query.q = shape.q
    query.r = shape.r
    query.normal = normal_of(shape)
    return query


@wp.func
def begin_near(surfaces: PolygonSurfaces, row: int, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the first triangle whose box intersects a box of the shape's frame."""
    return begin_in_box(surfaces.meshes, surfaces.mesh[row], low, high)


@wp.func
def next_near(surfaces: PolygonSurfaces, row: int, cursor: TreeCursor, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the next triangle."""
    return next_in_box(surfaces.meshes, surfaces.mesh[row], cursor, low, high)


@wp.func
def begin_near(surfaces: GridSurfaces, row: int, low: Vec3, high: Vec3) -> SegmentCursor:
    """The traversal at the first triangle near a box, which is taken as its bounding cube."""
    half = Real(0.5) * (high - low)
    middle = low + half
    grown = wp.max(half[0], wp.max(half[1], half[2]))
    return begin_near_segment(field_of(surfaces.fields, surfaces.field[row]), middle, middle, grown)


@wp.func
def next_near(surfaces: GridSurfaces, row: int, cursor: SegmentCursor, low: Vec3, high: Vec3) -> SegmentCursor:
    """The traversal at the next triangle."""
    return next_near_segment(field_of(surfaces.fields, surfaces.field[row]), cursor)


@wp.func
def has_inside(surfaces: PolygonSurfaces, row: int) -> bool:
    """Whether a mesh is closed."""
    return surfaces.meshes.arrays[0].header[surfaces.mesh[row]].is_closed == 1


@wp.func
def has_inside(surfaces: GridSurfaces, row: int) -> bool:
    """A heightfield is a solid."""
    return True


@wp.func
def counts_inside(surfaces: PolygonSurfaces, row: int, face: int) -> bool:
    """Whether the depth of an inner point is at most its distance from a triangle."""
    return True


@wp.func
def counts_inside(surfaces: GridSurfaces, row: int, face: int) -> bool:
    """Whether a triangle is not of the base, which inner points ignore (docs/adr/0026)."""
    return face < base_begins(field_of(surfaces.fields, surfaces.field[row]))
