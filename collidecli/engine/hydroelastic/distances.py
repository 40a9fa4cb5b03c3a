"""Exact signed distances of every shape type, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel, ShapeRows
from collidecli.engine.geometry.heightfields import Field, Heightfields, field_of, upload_heightfields
from collidecli.engine.geometry.mesh_nearest import is_inside_mesh, nearest_mesh_point
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.nearest_on_primitive import surface_point
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import HEIGHTFIELD, PLANE
from collidecli.engine.narrowphase.triangles.heightfield_nearest import (
    height_over,
    nearest_part,
    squared_distance_to_square,
    squared_distance_to_top,
)
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    begin_traversal,
    descend,
    is_under,
    skip_square,
)
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh


@wp.struct
class Solids:
    """Meshes and heightfields of the hydroelastic shapes. mesh: of each row, -1 for none; also those of hulls."""

    meshes: Meshes
    heightfields: Heightfields
    mesh: wp.array[int]


@wp.struct
class Distance:
    """Signed distance of a point from a surface [m], negative inside, and its gradient, unit; 0 where not unique."""

    value: Real
    gradient: Vec3


@wp.func
def primitive_distance(rows: ShapeRows, row: int, point: Vec3) -> Distance:
    """Distance from a plane or a primitive."""
    result = Distance()
    if rows.type[row] == PLANE:
        result.value = point[2]
        result.gradient = Vec3(Real(0.0), Real(0.0), Real(1.0))
        return result
    nearest = surface_point(rows.type[row], rows.size[row], point)
    result.value = nearest.distance
    result.gradient = nearest.outward
    return result


@wp.func
def mesh_distance(meshes: Meshes, mesh: int, point: Vec3) -> Distance:
    """Distance from a closed mesh."""
    result = Distance()
    nearest = nearest_mesh_point(meshes, mesh, point)
    off = point - nearest.point
    result.value = wp.length(off)
    if result.value > Real(0.0):
        result.gradient = off / result.value
    if is_inside_mesh(meshes, mesh, point, nearest):
        result.value = -result.value
        result.gradient = -result.gradient
    return result


@wp.func
def square_outside(field: Field, point: Vec3, bound: Real) -> Real:
    """Squared distance of an outer point from the surface of a heightfield, at most `bound` [m^2]."""
    square = bound
    reach = wp.sqrt(bound)
    grown = Vec3(reach, reach, reach)
    traversal = begin_traversal(field, point - grown, point + grown)
    while traversal.done == 0:
        if not is_under(traversal) or squared_distance_to_square(field, traversal, point) >= square:
            traversal = skip_square(traversal)
        elif traversal.level > 0:
            traversal = descend(traversal)
        else:
            for side in range(2):
                number = 2 * (traversal.i * field.cols + traversal.j) + side
                square = wp.min(square, squared_distance_to_top(field, number, point))
            traversal = skip_square(traversal)
    return square


@wp.func
def heightfield_distance(field: Field, point: Vec3) -> Distance:
    """Distance from the surface and the walls of a heightfield, whose solid has no lower end. No gradient.

    Below the base the depth is that of the base's height, so that it does not increase there without bound.
    """
    result = Distance()
    clamped = Vec3(
        wp.clamp(point[0], -field.half_x, field.half_x), wp.clamp(point[1], -field.half_y, field.half_y), point[2]
    )
    top = height_over(field, clamped)
    over = clamped[0] == point[0] and clamped[1] == point[1]
    if over and point[2] < top:
        lifted = Vec3(point[0], point[1], wp.max(point[2], field.bottom))
        result.value = -nearest_part(field, lifted).distance
        return result
    bound = wp.length_sq(Vec3(point[0] - clamped[0], point[1] - clamped[1], wp.max(point[2] - top, Real(0.0))))
    result.value = wp.sqrt(square_outside(field, point, bound))
    return result


def distance_function(with_meshes: bool, with_heightfields: bool) -> Any:
    """distance(rows, solids, row, point) -> Distance, with the code of the types that a scene has."""

    @wp.func
    def distance(rows: ShapeRows, solids: Solids, row: int, point: Vec3) -> Distance:
        if wp.static(with_meshes):
            mesh = solids.mesh[row]
            if mesh >= 0:
                return mesh_distance(solids.meshes, mesh, point)
        if wp.static(with_heightfields):  # noqa: SIM102
            if rows.type[row] == HEIGHTFIELD:
                return heightfield_distance(field_of(solids.heightfields, rows.heightfield[row]), point)
        return primitive_distance(rows, row, point)

    return distance


def hull_mesh(hull: ConvexHull) -> TriangleMesh:
    """The triangles of a hull."""
    fans = [(face[0], face[k], face[k + 1]) for face in hull.face for k in range(1, len(face) - 1)]
    return triangle_mesh(hull.vertex, np.array(fans, np.int32), "a convex hull")


def upload_solids(device_model: DeviceModel, sampled: np.ndarray) -> Solids:
    """Meshes, hulls and heightfields of the shapes `sampled`, bool[S], on the device."""
    model, device = device_model.model, device_model.device
    shapes = model.shapes
    number_of: dict[tuple[int, int], int] = {}
    meshes: list[TriangleMesh] = []
    mesh = np.full(len(shapes), -1, np.int32)
    for row in np.flatnonzero(sampled & np.isin(shapes.type, (ShapeType.MESH, ShapeType.CONVEX_MESH))):
        is_hull = shapes.type[row] == ShapeType.CONVEX_MESH
        key = (int(shapes.type[row]), int(shapes.hull[row] if is_hull else shapes.mesh[row]))
        if key not in number_of:
            number_of[key] = len(meshes)
            meshes.append(hull_mesh(model.hulls[key[1]]) if is_hull else model.meshes[key[1]])
        mesh[row] = number_of[key]
    solids = Solids()
    solids.meshes = upload_meshes(meshes, device)
    solids.heightfields = upload_heightfields(model.heightfields, device)
    solids.mesh = wp.array(mesh, dtype=int, device=device)
    return solids
