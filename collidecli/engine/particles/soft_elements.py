"""Kernels of the contacts of edges and faces of deformable objects with shapes, see `soft_contacts`."""

from typing import Any

import warp as wp

from collidecli.engine.cells import ChunkCells, Instances, instance_of
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH, HEIGHTFIELD, MESH, PLANE
from collidecli.engine.particles.cloud import CloudCells, position_in_cell
from collidecli.engine.particles.convex_minimum import (
    DeformableElement,
    Minimum,
    PrimitiveQuery,
    convex_minimum,
    point_of,
    with_precision,
)
from collidecli.engine.particles.shape_tree import NodeBoxes
from collidecli.engine.particles.soft_queries import (
    NoSurfaces,
    SoftCells,
    SoftRecord,
    SoftScene,
    element_of,
    emit_sample,
    of_grid,
    of_polygons,
    of_primitive,
)
from collidecli.engine.particles.surface_minimum import surface_minimum
from collidecli.engine.particles.surface_queries import HullQuery
from collidecli.engine.particles.surfaces import GridSurfaces, PolygonSurfaces
from collidecli.engine.runtime.kernel import kernel


@wp.func
def element_in_shape(
    scene: SoftScene, chunk: ChunkCells, cells: CloudCells, cell: int, corners: wp.vec3i, pose: Pose, margin: Real
) -> DeformableElement:
    """An edge or a face in the frame of a shape with this pose and margin."""
    to_shape = wp.transform_inverse(pose)
    element = DeformableElement()
    element.count = wp.where(corners[2] < 0, 2, 3)
    element.limit = scene.gap + margin
    element.p = wp.transform_point(to_shape, position_in_cell(scene.cloud, cells, chunk, cell, corners[0]))
    element.q = wp.transform_point(to_shape, position_in_cell(scene.cloud, cells, chunk, cell, corners[1]))
    element.r = element.p
    element.radius = Vec3(scene.cloud.radius[corners[0]], scene.cloud.radius[corners[1]], Real(0.0))
    if element.count == 3:
        element.r = wp.transform_point(to_shape, position_in_cell(scene.cloud, cells, chunk, cell, corners[2]))
        element.radius[2] = scene.cloud.radius[corners[2]]
    return with_precision(element)


def _kernel_of(
    name: str, surface_type: Any, minimum_of: Any, sample_of: Any, low_type: int, high_type: int
) -> wp.Kernel:
    """The kernel of the shapes of types low_type to high_type."""

    def minimize_candidates(
        scene: SoftScene,
        chunk: ChunkCells,
        instances: Instances,
        cells: CloudCells,
        boxes: NodeBoxes,
        part: SoftCells,
        surfaces: surface_type,
        pair: wp.array[wp.vec2i],
        record: wp.array[SoftRecord],
        kept: wp.array[wp.int32],
    ):
        """One thread per candidate of an edge or face: its contact, if there is one."""
        index = wp.tid()
        thread = pair[index][0]
        slot = pair[index][1]
        cell = thread // part.width
        row = scene.layout.slot_row[chunk.cell_template[cell] * scene.layout.width + slot]
        shape_type = scene.rows.type[row]
        if shape_type < wp.static(low_type) or shape_type > wp.static(high_type):
            return
        corners = element_of(scene, chunk, part, cell, thread)
        if corners[1] < 0:
            return
        pose = instances.pose[instance_of(chunk, scene.layout, cell, slot)]
        element = element_in_shape(scene, chunk, cells, cell, corners, pose, scene.margin[row])
        least = minimum_of(scene.rows, surfaces, row, element)
        kept[index] = 0
        if least.interior == 1 and least.value < element.limit:
            radius = wp.dot(least.weights, element.radius)
            inflation = scene.margin[row] + radius
            point = point_of(element, least.weights)
            sample = sample_of(scene.rows, surfaces, row, point, inflation + scene.gap, radius)
            emit_sample(scene, pose, sample, inflation, least.weights, index, record, kept)

    minimize_candidates.__name__ = minimize_candidates.__qualname__ = name
    return kernel(minimize_candidates)


@wp.func
def _least_of_primitive(rows: ShapeRows, surfaces: NoSurfaces, row: int, element: DeformableElement) -> Minimum:
    query = PrimitiveQuery()
    query.type = rows.type[row]
    query.size = rows.size[row]
    return convex_minimum(query, element)


MINIMIZE_PRIMITIVES = _kernel_of(
    "minimize_primitives", NoSurfaces, _least_of_primitive, of_primitive, int(PLANE) + 1, int(CONVEX_MESH) - 1
)


@wp.func
def _least_of_hull(rows: ShapeRows, surfaces: PolygonSurfaces, row: int, element: DeformableElement) -> Minimum:
    query = HullQuery()
    query.surfaces = surfaces
    query.row = row
    query.half = rows.size[row]
    return convex_minimum(query, element)


@wp.func
def _least_of_mesh(rows: ShapeRows, surfaces: PolygonSurfaces, row: int, element: DeformableElement) -> Minimum:
    return surface_minimum(surfaces, row, rows.size[row], element)


@wp.func
def _least_of_grid(rows: ShapeRows, surfaces: GridSurfaces, row: int, element: DeformableElement) -> Minimum:
    return surface_minimum(surfaces, row, rows.size[row], element)


MINIMIZE_HULLS = _kernel_of(
    "minimize_hulls", PolygonSurfaces, _least_of_hull, of_polygons, int(CONVEX_MESH), int(CONVEX_MESH)
)
MINIMIZE_MESHES = _kernel_of("minimize_meshes", PolygonSurfaces, _least_of_mesh, of_polygons, int(MESH), int(MESH))
MINIMIZE_GRIDS = _kernel_of(
    "minimize_heightfields", GridSurfaces, _least_of_grid, of_grid, int(HEIGHTFIELD), int(HEIGHTFIELD)
)
