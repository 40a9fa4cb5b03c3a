"""Where on a mesh's surface a contact is, and which directions belong there.

A direction belongs to a point of the surface when no triangle around the point rises along it: the point is then the
nearest of its neighbourhood to what lies that way. On a triangle that is its normal, on an edge what is between its
triangles' normals where the mesh is convex, and nothing where it is concave or flat; so an edge between coplanar
triangles turns no normal. On a border all directions off the triangle belong to the edge.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.heightfields import Field
from collidecli.engine.geometry.mesh_nearest import mesh_corner
from collidecli.engine.geometry.meshes import Meshes, TriangleShape, is_nearer_elsewhere, square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.feature import AT_BORDER
from collidecli.engine.narrowphase.convex.triangle_features import corner_of
from collidecli.engine.narrowphase.triangles.heightfield_nearest import is_nearer_on_field
from collidecli.engine.narrowphase.triangles.heightfield_normal_cones import (
    normal_cone_of_field_edge,
    normal_cone_of_field_vertex,
)
from collidecli.engine.narrowphase.triangles.normal_cone import RISE, NormalCone

# Each question has an answer for each kind of surface: Warp picks by the type of the first argument.
# ruff: noqa: F811


@wp.func
def edge_takes(meshes: Meshes, face: int, k: int, direction: Vec3) -> bool:
    """Whether a unit direction belongs to the inside of side k of a triangle."""
    start = mesh_corner(meshes, face, k)
    along = wp.normalize(mesh_corner(meshes, face, k + 1) - start)
    edge = meshes.side[3 * face + k]
    at = meshes.rim[edge]
    end = meshes.rim[edge + 1]
    takes = bool(True)
    while at < end:
        inward = meshes.point[meshes.across[at]] - start
        inward -= wp.dot(inward, along) * along
        if wp.dot(direction, inward) > RISE * wp.length(inward):
            takes = False
        at += 1
    return takes


@wp.func
def vertex_takes(meshes: Meshes, vertex: int, direction: Vec3) -> bool:
    """Whether a unit direction belongs to a vertex."""
    at = meshes.ring[vertex]
    end = meshes.ring[vertex + 1]
    takes = bool(True)
    while at < end:
        along = meshes.point[meshes.around[at]] - meshes.point[vertex]
        if wp.dot(direction, along) > RISE * wp.length(along):
            takes = False
        at += 1
    return takes


@wp.func
def normal_cone_of_edge(meshes: Meshes, shape: TriangleShape, k: int, direction: Vec3) -> NormalCone:
    """Whether a unit direction belongs to the inside of side k of a triangle."""
    normal_cone = NormalCone()
    normal_cone.outward = meshes.edge_normal[meshes.side[3 * shape.number + k]]
    normal_cone.belongs = wp.where(edge_takes(meshes, shape.number, k, direction), 1, 0)
    return normal_cone


@wp.func
def normal_cone_of_edge(field: Field, shape: TriangleShape, k: int, direction: Vec3) -> NormalCone:
    """The same on a heightfield."""
    return normal_cone_of_field_edge(field, shape, k, direction)


@wp.func
def normal_cone_of_vertex(meshes: Meshes, shape: TriangleShape, k: int, direction: Vec3) -> NormalCone:
    """Whether a unit direction belongs to corner k of a triangle."""
    normal_cone = NormalCone()
    vertex = meshes.corner[3 * shape.number + k]
    normal_cone.outward = meshes.vertex_normal[vertex]
    normal_cone.belongs = wp.where(vertex_takes(meshes, vertex, direction), 1, 0)
    return normal_cone


@wp.func
def normal_cone_of_vertex(field: Field, shape: TriangleShape, k: int, direction: Vec3) -> NormalCone:
    """The same on a heightfield."""
    return normal_cone_of_field_vertex(field, shape, k, direction)


@wp.func
def has_inside(meshes: Meshes, mesh: int) -> bool:
    """Whether a mesh is closed."""
    return meshes.header[mesh].is_closed == 1


@wp.func
def has_inside(field: Field, mesh: int) -> bool:
    """The same; a heightfield is a solid."""
    return True


@wp.func
def has_nearer(meshes: Meshes, mesh: int, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle that does not look against `outward` is nearer to a point than `distance` [m].

    point: the surface's frame. outward: unit; zero counts every triangle.
    """
    return is_nearer_elsewhere(meshes, mesh, point, distance, outward)


@wp.func
def has_nearer(field: Field, mesh: int, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """The same on a heightfield, whose base does not count."""
    return is_nearer_on_field(field, point, distance, outward)


@wp.func
def normal_cone_at(meshes: Any, shape: TriangleShape, point: Vec3, direction: Vec3) -> NormalCone:
    """Whether a unit direction belongs to a point of a triangle, both in the mesh's frame."""
    normal_cone = NormalCone()
    if wp.length(wp.cross(shape.normal, direction)) < RISE:
        normal_cone.belongs = 1
        normal_cone.outward = shape.normal
        return normal_cone
    near = AT_BORDER * wp.max(shape.size[0], wp.max(shape.size[1], shape.size[2]))
    corner = int(-1)
    side = int(0)
    least = Real(wp.inf)
    for k in range(3):
        if wp.length(point - corner_of(shape, k)) <= near:
            corner = k
        square = square_to_segment(corner_of(shape, k), corner_of(shape, k + 1), point)
        if square < least:
            least = square
            side = k
    if corner >= 0:
        return normal_cone_of_vertex(meshes, shape, corner, direction)
    return normal_cone_of_edge(meshes, shape, side, direction)
