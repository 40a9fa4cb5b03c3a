"""Contacts of particles with shapes: candidates by a hierarchy of the shapes of each cell, then exact distances.

A particle and a shape that the filters let touch are in contact where the signed distance of the particle's centre from
the shape, less the shape's margin and the particle's radius, is below the gap. An edge or a triangle is in contact at
the point where that value is least, with the radius interpolated, if that point is in its interior (docs/adr/0098). The
rows are counted before they are written; their order is by cell, kind, particles and shape.
"""

from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, Instances, PoseBatch, instance_of
from collidecli.engine.contact_record import start_of
from collidecli.engine.contacts.compaction import offset_in_body, row_writers
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.real import CONVEX_MESH, HEIGHTFIELD, MESH, PLANE, Pose, Real, Vec3
from collidecli.engine.particles.cloud import (
    Cloud,
    CloudCells,
    ElementStage,
    Inputs,
    PairRows,
    insert_pair,
    may_touch,
    position_in_cell,
    upload_cloud,
    upload_positions,
)
from collidecli.engine.particles.convex_minimum import (
    DeformableElement,
    HullQuery,
    Minimum,
    PrimitiveQuery,
    convex_minimum,
    point_of,
    with_precision,
)
from collidecli.engine.particles.surface_minimum import surface_minimum
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    NodeBoxes,
    NoSurfaces,
    PolygonSurfaces,
    Sample,
    ShapeTree,
    boxes_overlap,
    build_tree,
    fit_boxes,
    fitted_boxes,
    sample_grid_surface,
    sample_polygons,
    sample_primitive,
    surfaces_of,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.warp_internals import set_field
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.tables import SOFT_CONTACTS

VERTEX = wp.constant(Vec3(1.0, 0.0, 0.0))
"""Weights of a single particle."""


@wp.struct
class SoftScene:
    """Shapes and particles of a model. gap: largest distance of a contact [m]."""

    rows: ShapeRows
    layout: Layout
    margin: wp.array[Real]
    cloud: Cloud
    tree: ShapeTree
    gap: Real


@wp.struct
class SoftCells:
    """The cells of a chunk. A thread is a vertex, an edge or a face in a cell: thread = cell * width + index, and its
    particles are number begin + index of `Cloud.element`.

    Structs of the workspace are arguments of their own: a struct inside another one is a copy.
    """

    begin: int
    width: int


@wp.struct
class SoftRecord:
    """A contact before compaction: point and normal in the world. weights: of the particles."""

    weights: Vec3
    point: Vec3
    normal: Vec3
    distance: Real
    feature: int


@wp.func
def element_of(scene: SoftScene, chunk: ChunkCells, part: SoftCells, cell: int, thread: int) -> wp.vec3i:
    """Particles of a thread's vertex, edge or face, -1 for none; the first is -1 for an index that is not used."""
    at = part.begin + thread - cell * part.width
    return scene.cloud.element[chunk.cell_template[cell] * scene.cloud.width + at]


@wp.struct
class Surroundings:
    """Box of an element in the world, grown by the greatest distance of a contact [m].

    point: of the first particle. reach: radius and gap [m]."""

    low: Vec3
    high: Vec3
    point: Vec3
    reach: Real


@wp.func
def surroundings_of(
    scene: SoftScene, chunk: ChunkCells, cells: CloudCells, cell: int, element: wp.vec3i
) -> Surroundings:
    """Where the shapes are that an element may touch."""
    result = Surroundings()
    result.point = position_in_cell(scene.cloud, cells, chunk, cell, element[0])
    result.low = result.point
    result.high = result.point
    radius = scene.cloud.radius[element[0]]
    for k in range(1, 3):
        if element[k] >= 0:
            point = position_in_cell(scene.cloud, cells, chunk, cell, element[k])
            result.low = wp.min(result.low, point)
            result.high = wp.max(result.high, point)
            radius = wp.max(radius, scene.cloud.radius[element[k]])
    result.reach = radius + scene.gap
    grown = Vec3(result.reach, result.reach, result.reach)
    result.low = result.low - grown
    result.high = result.high + grown
    return result


@wp.func
def is_candidate(
    scene: SoftScene,
    chunk: ChunkCells,
    instances: Instances,
    cell: int,
    slot: int,
    element: wp.vec3i,
    around: Surroundings,
) -> bool:
    """Whether a shape whose box is near an element may touch it; of a plane, whether its half space is near.

    An edge or a face is nowhere nearer to a plane than at its vertices. One with a particle that may not touch a shape
    does not.
    """
    row = scene.layout.slot_row[chunk.cell_template[cell] * scene.layout.width + slot]
    for k in range(3):
        if element[k] >= 0:  # noqa: SIM102
            if not may_touch(scene.cloud, element[k], row, scene.rows.body[row]):
                return False
    if scene.rows.type[row] == PLANE:
        if element[1] >= 0:
            return False
        pose = instances.pose[instance_of(chunk, scene.layout, cell, slot)]
        height = wp.transform_point(wp.transform_inverse(pose), around.point)[2]
        return height < around.reach + scene.margin[row]
    return True


@kernel
def find_candidates(
    scene: SoftScene,
    chunk: ChunkCells,
    instances: Instances,
    cells: CloudCells,
    boxes: NodeBoxes,
    part: SoftCells,
    end: wp.array[wp.int32],
    pair: wp.array[wp.vec2i],
    writes: int,
):
    """Traversal of the shapes that may touch an element, by slot."""
    thread = wp.tid()
    first_pair = int(0)
    if writes == 1:
        first_pair = start_of(end, thread)
        if first_pair == end[thread]:
            return
    cell = thread // part.width
    element = element_of(scene, chunk, part, cell, thread)
    count = int(0)
    if element[0] >= 0:
        around = surroundings_of(scene, chunk, cells, cell, element)
        template = chunk.cell_template[cell]
        first = template * scene.tree.width
        node = int(0)
        while node < scene.tree.count[template]:
            at = cell * scene.tree.width + node
            if boxes_overlap(around.low, around.high, boxes.lower[at], boxes.upper[at]):
                slot = scene.tree.slot[first + node]
                if slot >= 0:  # noqa: SIM102
                    if is_candidate(scene, chunk, instances, cell, slot, element, around):
                        if writes == 1:
                            insert_pair(pair, first_pair, first_pair + count, thread, slot)
                        count += 1
                node += 1
            else:
                node = scene.tree.skip[first + node]
    if writes == 0:
        end[thread] = count


@wp.func
def emit_sample(
    scene: SoftScene,
    pose: Pose,
    sample: Sample,
    inflation: Real,
    weights: Vec3,
    index: int,
    record: wp.array[SoftRecord],
    kept: wp.array[wp.int32],
):
    """Writes a candidate's record, and 1 to `kept` where its distance is below the gap.

    inflation: margin and radius [m]. weights: of the particles at the sample.
    """
    distance = sample.distance - inflation
    if sample.found == 0 or distance >= scene.gap:
        kept[index] = 0
        return
    contact = SoftRecord()
    contact.weights = weights
    contact.point = wp.transform_point(pose, sample.point)
    contact.normal = wp.transform_vector(pose, sample.outward)
    contact.distance = distance
    contact.feature = sample.feature
    record[index] = contact
    kept[index] = 1


def _point_kernel_of(name: str, surface_type: Any, sample_of: Any, low_type: int, high_type: int) -> wp.Kernel:
    """The kernel of the shapes of types low_type to high_type."""

    def sample_candidates(
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
        """One thread per candidate of a vertex: its contact, if there is one."""
        index = wp.tid()
        thread = pair[index][0]
        slot = pair[index][1]
        cell = thread // part.width
        row = scene.layout.slot_row[chunk.cell_template[cell] * scene.layout.width + slot]
        shape_type = scene.rows.type[row]
        if shape_type < wp.static(low_type) or shape_type > wp.static(high_type):
            return
        element = element_of(scene, chunk, part, cell, thread)
        if element[1] >= 0:
            return
        particle = element[0]
        pose = instances.pose[instance_of(chunk, scene.layout, cell, slot)]
        point = wp.transform_point(
            wp.transform_inverse(pose), position_in_cell(scene.cloud, cells, chunk, cell, particle)
        )
        radius = scene.cloud.radius[particle]
        inflation = scene.margin[row] + radius
        sample = sample_of(scene.rows, surfaces, row, point, inflation + scene.gap, radius)
        emit_sample(scene, pose, sample, inflation, VERTEX, index, record, kept)

    sample_candidates.__name__ = sample_candidates.__qualname__ = name
    return kernel(sample_candidates)


@wp.func
def of_primitive(rows: ShapeRows, surfaces: NoSurfaces, row: int, point: Vec3, limit: Real, radius: Real) -> Sample:
    """Closest point of a plane or primitive, in row `row`, to a point of its frame."""
    return sample_primitive(rows.type[row], rows.size[row], point)


@wp.func
def of_polygons(rows: ShapeRows, surfaces: PolygonSurfaces, row: int, point: Vec3, limit: Real, radius: Real) -> Sample:
    """Closest point of a convex mesh or mesh, in row `row`, to a point of its frame."""
    return sample_polygons(surfaces, row, rows.size[row], point, limit, radius)


@wp.func
def of_grid(rows: ShapeRows, surfaces: GridSurfaces, row: int, point: Vec3, limit: Real, radius: Real) -> Sample:
    """Closest point of a heightfield, in row `row`, to a point of its frame."""
    return sample_grid_surface(surfaces, row, rows.size[row], point, limit)


SAMPLE_PRIMITIVES = _point_kernel_of("sample_primitives", NoSurfaces, of_primitive, int(PLANE), int(CONVEX_MESH) - 1)
SAMPLE_POLYGONS = _point_kernel_of("sample_polygon_shapes", PolygonSurfaces, of_polygons, int(CONVEX_MESH), int(MESH))
SAMPLE_GRIDS = _point_kernel_of("sample_heightfields", GridSurfaces, of_grid, int(HEIGHTFIELD), int(HEIGHTFIELD))


# Kernels of the contacts of edges and faces of deformable objects with shapes.


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


def _element_kernel_of(
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


MINIMIZE_PRIMITIVES = _element_kernel_of(
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


MINIMIZE_HULLS = _element_kernel_of(
    "minimize_hulls", PolygonSurfaces, _least_of_hull, of_polygons, int(CONVEX_MESH), int(CONVEX_MESH)
)
MINIMIZE_MESHES = _element_kernel_of(
    "minimize_meshes", PolygonSurfaces, _least_of_mesh, of_polygons, int(MESH), int(MESH)
)
MINIMIZE_GRIDS = _element_kernel_of(
    "minimize_heightfields", GridSurfaces, _least_of_grid, of_grid, int(HEIGHTFIELD), int(HEIGHTFIELD)
)


def _compaction(columns_type: Any, point_type: Any) -> wp.Kernel:
    @kernel
    def compact_soft(
        scene: SoftScene,
        chunk: ChunkCells,
        instances: Instances,
        cells: CloudCells,
        boxes: NodeBoxes,
        part: SoftCells,
        pair: wp.array[wp.vec2i],
        record: wp.array[SoftRecord],
        end: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per candidate: its contact, if any, at its offset; the addition of 0 turns -0 into 0."""
        index = wp.tid()
        slot = start_of(end, index)
        if slot == end[index]:
            return
        thread = pair[index][0]
        cell = thread // part.width
        element = element_of(scene, chunk, part, cell, thread)
        row = scene.layout.slot_row[chunk.cell_template[cell] * scene.layout.width + pair[index][1]]
        contact = record[index]
        columns.kind[slot] = wp.uint8(wp.where(element[1] < 0, 0, wp.where(element[2] < 0, 1, 2)))
        columns.indices[slot] = element
        columns.barycentric[slot] = wp.vec3f(contact.weights) + wp.vec3f()
        columns.shape[slot] = row
        columns.feature[slot] = contact.feature
        columns.distance[slot] = wp.float32(contact.distance) + wp.float32(0.0)
        columns.normal[slot] = wp.vec3f(contact.normal) + wp.vec3f()
        columns.point_body[slot] = offset_in_body(scene.rows, chunk, cell, row, contact.point) + wp.vec3f()
        columns.point_world[slot] = point_type(contact.point) + point_type()

    return compact_soft


SOFT_ROWS = row_writers("SoftColumns", SOFT_CONTACTS.columns, _compaction)


class SoftContacts(ElementStage):
    """Contacts of the particles and elements of a model with its shapes.

    samplers: kernels of the shape types of the model, with their surfaces.
    """

    group = SOFT_CONTACTS
    writers = SOFT_ROWS
    traversal = find_candidates

    def __init__(
        self,
        device_model: DeviceModel,
        scene: SoftScene,
        samplers: tuple[tuple[wp.Kernel, Any], ...],
        float_type: np.dtype,
    ) -> None:
        super().__init__(device_model, scene.cloud.width, float_type)
        self._scene, self._samplers = scene, samplers

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        return [fit_boxes, *super().kernels(), *(sampler for sampler, _ in self._samplers)]

    def inputs(self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int) -> Inputs:
        cells, host = upload_positions(self.device_model, batch, workspace)
        boxes = fitted_boxes(self.device_model, self._scene.tree, chunk, workspace)
        part = workspace.struct(SoftCells, begin=begin, width=width)
        arguments = [self._scene, chunk.cells, chunk.instances, cells, boxes, part]
        return Inputs(arguments, self._scene.tree.width, host)

    def evaluate(self, arguments: list[Any], pair: wp.array, count: int, workspace: Workspace) -> PairRows:
        record = workspace.array("soft_record", count, SoftRecord)
        end = workspace.array("element_row_end", count, wp.int32)
        for sampler, surfaces in self._samplers:
            workspace.launch(sampler, count, [*arguments, surfaces, pair, record, end])
        return PairRows([record, end], workspace.scan(end, count), end)


def soft_contacts_of(
    device_model: DeviceModel, gap: float, with_elements: bool, poses: np.ndarray, float_type: np.dtype
) -> SoftContacts:
    """The contacts of a model's particles, and with `with_elements` of the edges and faces between them.

    gap: largest distance of a contact [m]. poses: float64[recorded worlds, B, 7] of one frame.
    """
    particles, shapes = device_model.model.particles, device_model.model.shapes
    touched = particles.touched_shapes
    scene = SoftScene()
    scene.rows, scene.layout, scene.margin = device_model.rows, device_model.layout, device_model.margins.margin
    scene.cloud, scene.tree = upload_cloud(device_model, with_elements), build_tree(device_model, touched, poses)
    set_field(scene, "gap", gap)
    return SoftContacts(
        device_model,
        scene,
        _samplers(device_model, shapes.type[touched], with_elements and len(particles.triangle) > 0),
        np.dtype(float_type),
    )


def _samplers(device_model: DeviceModel, types: np.ndarray, with_elements: bool) -> tuple[tuple[wp.Kernel, Any], ...]:
    """The kernels of the types, with their surfaces: of vertices, then of edges and faces."""
    surfaces = surfaces_of(device_model, types)
    kernels = [(SAMPLE_PRIMITIVES, surfaces[0]), (SAMPLE_POLYGONS, surfaces[1]), (SAMPLE_GRIDS, surfaces[2])]
    if with_elements:
        hulls, meshes = (surfaces[1] if each in types else None for each in (ShapeType.CONVEX_MESH, ShapeType.MESH))
        kernels += [(MINIMIZE_PRIMITIVES, surfaces[0]), (MINIMIZE_HULLS, hulls), (MINIMIZE_MESHES, meshes)]
        kernels += [(MINIMIZE_GRIDS, surfaces[2])]
    return tuple((kernel, each) for kernel, each in kernels if each is not None)
