"""Normal cones of the features of a triangle surface: meshes, then heightfields, then the common queries.

The normal cone of a surface point is the set of directions along which no triangle around the point rises: the point is
then the closest point of its neighbourhood to points in that direction. On a triangle the cone is the triangle's
normal. On an edge it contains the directions between the normals of its triangles where the surface is convex, and is
empty where it is concave or flat; so an edge between coplanar triangles bends no normal. On a border edge it contains
all directions off the triangle. A heightfield's cones follow from the position of the feature in its grid.

The queries have an overload for `Meshes` and one for `Field`: Warp picks by the type of the first argument.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.heightfields import Field, perimeter_of, vertex_at, wall_normal
from collidecli.engine.geometry.meshes import (
    Meshes,
    TriangleShape,
    is_behind_mesh,
    is_nearer_elsewhere,
    mesh_corner,
    square_to_segment,
)
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.features import AT_BORDER, corner_of
from collidecli.engine.narrowphase.triangles.heightfield_traversal import is_nearer_on_field

# Nested ifs: a vertex beyond the border must not be read, and Warp may evaluate both operands of an `and`.
# ruff: noqa: F811, SIM102

RISE = wp.constant(Real(1.0e-5))
"""Sine of the angle by which a triangle may rise along a direction in its normal cone: GJK's directions are good to
1e-6."""
DOWN = wp.constant(Vec3(Real(0.0), Real(0.0), Real(-1.0)))
UP = wp.constant(Vec3(Real(0.0), Real(0.0), Real(1.0)))


@wp.struct
class NormalCone:
    """The normal cone of a surface feature, for one direction.

    belongs: 1 where the direction is in the cone. outward: a vector on the surface's outer side there, not unit.
    """

    belongs: int
    outward: Vec3


@wp.func
def rises(direction: Vec3, along: Vec3, rise: Real) -> bool:
    """Whether a vector rises along a unit direction by an angle whose sine is more than `rise`."""
    return wp.dot(direction, along) > rise * wp.length(along)


@wp.func
def rises_across(direction: Vec3, along: Vec3, inward: Vec3, rise: Real) -> bool:
    """Whether a face rises along a direction from its edge, which is parallel to unit vector `along`."""
    return rises(direction, inward - wp.dot(inward, along) * along, rise)


@wp.func
def mesh_edge_cone_contains(meshes: Meshes, face: int, k: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of the interior of side k of a triangle."""
    start = mesh_corner(meshes, face, k)
    along = wp.normalize(mesh_corner(meshes, face, k + 1) - start)
    edge = meshes.arrays[0].side[3 * face + k]
    at = meshes.arrays[0].rim[edge]
    end = meshes.arrays[0].rim[edge + 1]
    contains = bool(True)
    while at < end:
        if rises_across(direction, along, meshes.arrays[0].point[meshes.arrays[0].across[at]] - start, rise):
            contains = False
        at += 1
    return contains


@wp.func
def mesh_vertex_cone_contains(meshes: Meshes, vertex: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of a vertex."""
    at = meshes.arrays[0].ring[vertex]
    end = meshes.arrays[0].ring[vertex + 1]
    contains = bool(True)
    while at < end:
        along = meshes.arrays[0].point[meshes.arrays[0].around[at]] - meshes.arrays[0].point[vertex]
        if rises(direction, along, rise):
            contains = False
        at += 1
    return contains


@wp.func
def normal_cone_of_edge(meshes: Meshes, shape: TriangleShape, k: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of the interior of side k of a mesh triangle, for a unit direction."""
    normal_cone = NormalCone()
    normal_cone.outward = meshes.arrays[0].edge_normal[meshes.arrays[0].side[3 * shape.number + k]]
    normal_cone.belongs = wp.where(mesh_edge_cone_contains(meshes, shape.number, k, direction, rise), 1, 0)
    return normal_cone


@wp.func
def normal_cone_of_vertex(meshes: Meshes, shape: TriangleShape, k: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of corner k of a mesh triangle, for a unit direction."""
    normal_cone = NormalCone()
    vertex = meshes.arrays[0].corner[3 * shape.number + k]
    normal_cone.outward = meshes.arrays[0].vertex_normal[vertex]
    normal_cone.belongs = wp.where(mesh_vertex_cone_contains(meshes, vertex, direction, rise), 1, 0)
    return normal_cone


@wp.func
def normal_cone_of_top_edge(field: Field, shape: TriangleShape, k: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of an edge of the surface: of its two triangles, or its triangle and the wall below it."""
    normal_cone = NormalCone()
    start = corner_of(shape, k)
    along = wp.normalize(corner_of(shape, k + 1) - start)
    v = shape.edge[k] >> 3
    kind = shape.edge[k] & 7
    row = v / field.cols
    col = v - row * field.cols
    # The vertices across the edge on either side; one is outside the grid at the border.
    row_a = row + 1
    col_a = col + 1
    row_b = row - 1
    col_b = col
    if kind == 2:
        row_b = row
        col_b = col - 1
    elif kind == 3:
        row_a = row
        row_b = row + 1
    normal_cone.outward = UP
    normal_cone.belongs = 1
    if row_a >= field.rows or col_a >= field.cols or row_b < 0 or col_b < 0:
        # No interior point has its closest point on the rim, where a wall joins the surface.
        normal_cone.outward = direction
        if rises_across(direction, along, DOWN, rise):
            normal_cone.belongs = 0
    if row_a < field.rows and col_a < field.cols:
        if rises_across(direction, along, vertex_at(field, row_a, col_a) - start, rise):
            normal_cone.belongs = 0
    if row_b >= 0 and col_b >= 0:
        if rises_across(direction, along, vertex_at(field, row_b, col_b) - start, rise):
            normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_of_top_vertex(field: Field, v: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of a vertex of the surface: of its up to six neighbours, and the vertical edge below it."""
    normal_cone = NormalCone()
    row = v / field.cols
    col = v - row * field.cols
    point = vertex_at(field, row, col)
    normal_cone.outward = UP
    normal_cone.belongs = 1
    if row == 0 or col == 0 or row == field.rows - 1 or col == field.cols - 1:
        normal_cone.outward = direction
        if rises(direction, DOWN, rise):
            normal_cone.belongs = 0
    for r in range(-1, 2):
        for c in range(-1, 2):
            # Diagonals run from low to high: of the corners across, (1, 1) and (-1, -1) are neighbours.
            is_neighbor = (r == 0 or c == 0 or r == c) and (r != 0 or c != 0)
            inside = row + r >= 0 and row + r < field.rows and col + c >= 0 and col + c < field.cols
            if is_neighbor and inside:
                if rises(direction, vertex_at(field, row + r, col + c) - point, rise):
                    normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_under_border(field: Field, k: int, kind: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of a feature below vertex k of the border: kind 0 to 3, see `geometry.heightfields`."""
    normal_cone = NormalCone()
    before = k - 1
    if before < 0:
        before = perimeter_of(field) - 1
    normal = wall_normal(field, k)
    normal_before = wall_normal(field, before)
    # The border runs counterclockwise: the direction along a wall is its normal turned by 90 degrees.
    ahead = Vec3(-normal[1], normal[0], Real(0.0))
    back = Vec3(normal_before[1], -normal_before[0], Real(0.0))
    normal_cone.belongs = 1
    if kind == 0:
        normal_cone.outward = direction
        if (
            rises(direction, UP, rise)
            or rises(direction, ahead, rise)
            or rises(direction, back, rise)
            or rises(direction, -normal, rise)
        ):
            normal_cone.belongs = 0
    elif kind == 1:
        normal_cone.outward = direction
        if rises(direction, UP, rise) or rises(direction, -normal, rise):
            normal_cone.belongs = 0
    elif kind == 2:
        normal_cone.outward = normal + normal_before
        if rises(direction, ahead, rise) or rises(direction, back, rise):
            normal_cone.belongs = 0
    else:
        normal_cone.outward = normal
        if wp.length(wp.cross(normal, direction)) > rise:
            normal_cone.belongs = 0
    return normal_cone


@wp.func
def normal_cone_of_edge(field: Field, shape: TriangleShape, k: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of the interior of side k of a heightfield triangle; empty for the base: walls own its sides."""
    under = 8 * field.rows * field.cols
    code = shape.edge[k]
    if code < under:
        return normal_cone_of_top_edge(field, shape, k, direction, rise)
    if code < under + 8 * perimeter_of(field):
        return normal_cone_under_border(field, (code - under) >> 3, code & 7, direction, rise)
    return NormalCone()


@wp.func
def normal_cone_of_vertex(field: Field, shape: TriangleShape, k: int, direction: Vec3, rise: Real) -> NormalCone:
    """Normal cone of corner k of a heightfield triangle; empty for the base: walls own its corners."""
    under = 8 * field.rows * field.cols
    if shape.number >= 2 * field.rows * field.cols + 2 * perimeter_of(field):
        return NormalCone()
    if shape.vertex[k] < under:
        return normal_cone_of_top_vertex(field, shape.vertex[k] >> 3, direction, rise)
    return normal_cone_under_border(field, (shape.vertex[k] - under) >> 3, 0, direction, rise)


@wp.func
def has_inside(meshes: Meshes, mesh: int) -> bool:
    """Whether a mesh is closed."""
    return meshes.arrays[0].header[mesh].is_closed == 1


@wp.func
def has_inside(field: Field, mesh: int) -> bool:
    """True: a heightfield is a solid."""
    return True


@wp.func
def is_behind(meshes: Meshes, mesh: int, point: Vec3, off: Vec3, outward: Vec3) -> bool:
    """`is_behind_mesh`: whether a point is behind the surface. off: from a surface point to it. outward: as in
    `NormalCone`."""
    return is_behind_mesh(meshes, mesh, point, off, outward)


@wp.func
def is_behind(field: Field, mesh: int, point: Vec3, off: Vec3, outward: Vec3) -> bool:
    """Whether a point is behind a feature of a heightfield."""
    return wp.dot(off, outward) < Real(0.0)


@wp.func
def has_nearer(meshes: Meshes, mesh: int, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle that does not face against `outward` is closer to a point than `distance` [m].

    point: the surface's frame. outward: unit; zero includes every triangle.
    """
    return is_nearer_elsewhere(meshes, mesh, point, distance, outward)


@wp.func
def has_nearer(field: Field, mesh: int, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle of a heightfield, without its base, is closer to a point than `distance` [m]."""
    return is_nearer_on_field(field, point, distance, outward)


@wp.func
def normal_cone_at(surface: Any, shape: TriangleShape, point: Vec3, direction: Vec3) -> NormalCone:
    """Normal cone at a point of a triangle, for a unit direction, both in the surface's frame."""
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
        normal_cone = normal_cone_of_vertex(surface, shape, corner, direction, RISE)
        # A point this close to a vertex may be of an edge: its direction is then perpendicular to that edge.
        along = wp.normalize(corner_of(shape, side + 1) - corner_of(shape, side))
        if normal_cone.belongs == 1 or wp.abs(wp.dot(direction, along)) > RISE:
            return normal_cone
    return normal_cone_of_edge(surface, shape, side, direction, RISE)
