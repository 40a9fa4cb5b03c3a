"""Exact signed distances of every shape type, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel, ShapeRows
from collidecli.engine.geometry.heightfields import (
    Field,
    Heightfields,
    field_of,
    upload_heightfields,
)
from collidecli.engine.geometry.mesh_points import is_inside_mesh, nearest_mesh_point
from collidecli.engine.geometry.meshes import Meshes, facet_meshes, upload_meshes
from collidecli.engine.geometry.nearest_on_primitive import surface_point
from collidecli.engine.geometry.real import HEIGHTFIELD, PLANE, UP, Real, Vec3
from collidecli.engine.hydroelastic.mesh_sides import NO_FEATURE, feature_number
from collidecli.engine.narrowphase.triangles.heightfield_inside import (
    NearestPart,
    height_over,
    nearest_part,
    nearest_top,
)
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import check_three_sizes


@wp.struct
class Solids:
    """Shapes, with the meshes and heightfields of the hydroelastic ones. mesh: of each row, -1 for
    none; also those of hulls."""

    rows: ShapeRows
    meshes: Meshes
    heightfields: Heightfields
    mesh: wp.array[int]


@wp.struct
class Distance:
    """Signed distance of a point from a surface [m], negative inside, and its gradient, unit; 0
    where not unique. feature: nearest one of a mesh, see `feature_number`."""

    value: Real
    gradient: Vec3
    feature: int


@wp.func
def mesh_distance(meshes: Meshes, mesh: int, point: Vec3) -> Distance:
    """Distance from a closed mesh."""
    result = Distance()
    nearest = nearest_mesh_point(meshes, mesh, point)
    result.feature = feature_number(nearest.face, nearest.part)
    off = point - nearest.point
    result.value = wp.length(off)
    if result.value > Real(0.0):
        result.gradient = off / result.value
    if is_inside_mesh(meshes, mesh, point, nearest):
        result.value = -result.value
        result.gradient = -result.gradient
    return result


@wp.func
def heightfield_distance(field: Field, point: Vec3) -> Distance:
    """Distance from the surface and the walls of a heightfield, whose solid has no lower end. No
    gradient.

    Below the base the depth is that of the base's height, so that it does not increase there
    without bound.
    """
    result = Distance()
    result.feature = NO_FEATURE
    clamped = Vec3(
        wp.clamp(point[0], -field.half_x, field.half_x),
        wp.clamp(point[1], -field.half_y, field.half_y),
        point[2],
    )
    top = height_over(field, clamped)
    over = clamped[0] == point[0] and clamped[1] == point[1]
    if over and point[2] < top:
        lifted = Vec3(point[0], point[1], wp.max(point[2], field.bottom))
        result.value = -nearest_part(field, lifted).distance
        return result
    bound = wp.length_sq(
        Vec3(point[0] - clamped[0], point[1] - clamped[1], wp.max(point[2] - top, Real(0.0)))
    )
    result.value = nearest_top(field, point, NearestPart(-1, wp.sqrt(bound)), bound).distance
    return result


def distance_function(with_meshes: bool, with_heightfields: bool) -> Any:
    """distance(solids, row, point) -> Distance, with the code of the types that a scene has."""

    @wp.func
    def distance(solids: Solids, row: int, point: Vec3) -> Distance:
        if wp.static(with_meshes):
            mesh = solids.mesh[row]
            if mesh >= 0:
                return mesh_distance(solids.meshes, mesh, point)
        if wp.static(with_heightfields):  # noqa: SIM102
            if solids.rows.type[row] == HEIGHTFIELD:
                return heightfield_distance(
                    field_of(solids.heightfields, solids.rows.heightfield[row]), point
                )
        if solids.rows.type[row] == PLANE:
            return Distance(point[2], UP, NO_FEATURE)
        nearest = surface_point(solids.rows.type[row], solids.rows.size[row], point)
        return Distance(nearest.distance, nearest.outward, NO_FEATURE)

    return distance


def upload_solids(device_model: DeviceModel, sampled: np.ndarray) -> Solids:
    """Meshes, hulls and heightfields of the shapes `sampled`, bool[S], on the device."""
    model = device_model.model
    device = device_model.device
    shapes = model.shapes
    of_sampled = [path for path, chosen in zip(shapes.path, sampled, strict=True) if chosen]
    check_three_sizes(shapes.type[sampled], of_sampled, "distances of points")
    polygons = np.isin(model.shapes.type, (ShapeType.MESH, ShapeType.CONVEX_MESH))
    meshes, mesh = facet_meshes(model, np.flatnonzero(sampled & polygons))
    solids = Solids()
    solids.rows = device_model.rows
    solids.meshes = upload_meshes(meshes, device)
    solids.heightfields = upload_heightfields(model.heightfields, device)
    solids.mesh = wp.array(mesh, dtype=int, device=device)
    return solids
