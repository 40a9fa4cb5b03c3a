"""Where on a mesh's surface a contact is, and which directions belong there.

A direction belongs to a point of the surface when no triangle around the point rises along it: the point is then the
nearest of its neighbourhood to what lies that way. On a triangle that is its normal, on an edge what is between its
triangles' normals where the mesh is convex, and nothing where it is concave or flat; so an edge between coplanar
triangles turns no normal. On a border all directions off the triangle belong to the edge.
"""

import warp as wp

from collidecli.engine.geometry.meshes import Meshes, TriangleShape, square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrow_phase.convex.feature import AT_BORDER
from collidecli.engine.narrow_phase.convex.triangle_features import corner_of

RISE = wp.constant(Real(1.0e-5))
"""Sine by which a triangle may rise along a direction that belongs: GJK's are good to 1e-6."""


@wp.struct
class Spot:
    """belongs: 1 where the direction does. outward: a vector on the surface's outer side there, not unit."""

    belongs: int
    outward: Vec3


@wp.func
def spot_of_edge(meshes: Meshes, shape: TriangleShape, k: int, direction: Vec3) -> Spot:
    """Whether a unit direction belongs to the inside of side k of a triangle."""
    spot = Spot()
    edge = meshes.side[3 * shape.number + k]
    spot.outward = meshes.edge_normal[edge]
    start = corner_of(shape, k)
    along = wp.normalize(corner_of(shape, k + 1) - start)
    at = meshes.rim[edge]
    end = meshes.rim[edge + 1]
    spot.belongs = 1
    while at < end:
        inward = meshes.point[meshes.across[at]] - start
        inward -= wp.dot(inward, along) * along
        if wp.dot(direction, inward) > RISE * wp.length(inward):
            spot.belongs = 0
        at += 1
    return spot


@wp.func
def spot_of_vertex(meshes: Meshes, shape: TriangleShape, k: int, direction: Vec3) -> Spot:
    """Whether a unit direction belongs to corner k of a triangle."""
    spot = Spot()
    vertex = meshes.corner[3 * shape.number + k]
    spot.outward = meshes.vertex_normal[vertex]
    at = meshes.ring[vertex]
    end = meshes.ring[vertex + 1]
    spot.belongs = 1
    while at < end:
        along = meshes.point[meshes.around[at]] - meshes.point[vertex]
        if wp.dot(direction, along) > RISE * wp.length(along):
            spot.belongs = 0
        at += 1
    return spot


@wp.func
def spot_at(meshes: Meshes, shape: TriangleShape, point: Vec3, direction: Vec3) -> Spot:
    """Whether a unit direction belongs to a point of a triangle, both in the mesh's frame."""
    spot = Spot()
    if wp.length(wp.cross(shape.normal, direction)) < RISE:
        spot.belongs = 1
        spot.outward = shape.normal
        return spot
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
        return spot_of_vertex(meshes, shape, corner, direction)
    return spot_of_edge(meshes, shape, side, direction)
