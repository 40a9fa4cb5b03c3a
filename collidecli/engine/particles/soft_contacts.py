"""Contacts of particles with shapes: candidates by a hierarchy of the shapes of each cell, then
exact distances.

A particle and a shape that the filters let touch are in contact where the signed distance of the
particle's centre from the shape, less the shape's margin and the particle's radius, is below the
gap. An edge or a triangle is in contact at the point where that value is least, with the radius
interpolated, if that point is in its interior (docs/adr/0098). The rows are counted before they are
written; their order is by cell, kind, particles and shape.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, Instances, PoseBatch, instance_of
from collidecli.engine.contact_record import start_of
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.real import CONVEX_MESH, MESH, PLANE, Pose, Real, Vec3
from collidecli.engine.ordered_contacts import offset_in_body, row_writers
from collidecli.engine.pair_limits import above
from collidecli.engine.particles import element_minimum, surface_minimum
from collidecli.engine.particles.cloud import (
    Cloud,
    CloudCells,
    may_touch,
    position_in_cell,
    upload_cloud,
    upload_positions,
)
from collidecli.engine.particles.element_stage import ElementStage, Inputs, insert_pair
from collidecli.engine.particles.shape_tree import (
    NodeBoxes,
    ShapeTree,
    boxes_overlap,
    build_tree,
    fit_boxes,
    fitted_boxes,
)
from collidecli.engine.particles.surfaces import (
    FAMILIES,
    PolygonSurfaces,
    PrimitiveSurfaces,
    family_kernels,
    sample_surface,
    surfaces_of,
)
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import counted_kernels, kernel
from collidecli.engine.runtime.warp_internals import set_field
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_columns import SOFT_CONTACTS
from collidecli.scene.shape_types import ShapeType


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
    """A thread is a vertex, an edge or a face in a cell: thread = cell * width + index, and its
    particles are number begin + index of `Cloud.element`. Structs of the workspace are arguments of
    their own: one inside another is a copy.
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
def element_of(
    scene: SoftScene, chunk: ChunkCells, part: SoftCells, cell: int, thread: int
) -> wp.vec3i:
    """Particles of a thread's vertex, edge or face, -1 for none; the first is -1 for an index that
    is not used."""
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
    point = position_in_cell(scene.cloud, cells, chunk, cell, element[0])
    low = point
    high = point
    radius = scene.cloud.radius[element[0]]
    for k in range(1, 3):
        if element[k] >= 0:
            corner = position_in_cell(scene.cloud, cells, chunk, cell, element[k])
            low = wp.min(low, corner)
            high = wp.max(high, corner)
            radius = wp.max(radius, scene.cloud.radius[element[k]])
    reach = above(scene.gap, radius)
    grown = Vec3(reach, reach, reach)
    return Surroundings(low - grown, high + grown, point, reach)


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
    """Whether a shape whose box is near an element may touch it, as all its particles may; of a
    plane, whether its half space is near: an edge or a face is nowhere nearer to a plane than at
    its vertices."""
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
        return height <= around.reach + scene.margin[row]
    return True


def _traversal(writes: bool) -> Callable[..., None]:
    """Traversal of the shapes that may touch an element, by slot."""

    def find_candidates(
        scene: SoftScene,
        chunk: ChunkCells,
        instances: Instances,
        cells: CloudCells,
        boxes: NodeBoxes,
        part: SoftCells,
        end: wp.array[wp.int32],
        pair: wp.array[wp.vec2i],
    ):
        thread = wp.tid()
        first_pair = int(0)
        if wp.static(writes):
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
                            if wp.static(writes):
                                insert_pair(pair, first_pair, first_pair + count, thread, slot)
                            count += 1
                    node += 1
                else:
                    node = scene.tree.skip[first + node]
        if wp.static(not writes):
            end[thread] = count

    return find_candidates


@wp.func
def element_in_shape(
    scene: SoftScene,
    chunk: ChunkCells,
    cells: CloudCells,
    cell: int,
    corners: wp.vec3i,
    pose: Pose,
    margin: Real,
) -> element_minimum.DeformableElement:
    """An edge or a face in the frame of a shape with this pose and margin."""
    to_shape = wp.transform_inverse(pose)
    element = element_minimum.DeformableElement()
    element.count = wp.where(corners[2] < 0, 2, 3)
    element.limit = above(scene.gap, margin)
    element.p = wp.transform_point(
        to_shape, position_in_cell(scene.cloud, cells, chunk, cell, corners[0])
    )
    element.q = wp.transform_point(
        to_shape, position_in_cell(scene.cloud, cells, chunk, cell, corners[1])
    )
    element.r = element.p
    element.radius = Vec3(scene.cloud.radius[corners[0]], scene.cloud.radius[corners[1]], Real(0.0))
    if element.count == 3:
        element.r = wp.transform_point(
            to_shape, position_in_cell(scene.cloud, cells, chunk, cell, corners[2])
        )
        element.radius[2] = scene.cloud.radius[corners[2]]
    return element_minimum.with_precision(element)


@wp.func
def _vertex_in_shape(
    scene: SoftScene, chunk: ChunkCells, cells: CloudCells, cell: int, vertex: int, pose: Pose
) -> Vec3:
    """Position of a particle in the frame of a shape with this pose [m]."""
    point_world = position_in_cell(scene.cloud, cells, chunk, cell, vertex)
    return wp.transform_point(wp.transform_inverse(pose), point_world)


@wp.func
def _least_of_primitive(
    surfaces: PrimitiveSurfaces, row: int, half: Vec3, element: element_minimum.DeformableElement
) -> element_minimum.Minimum:
    return element_minimum.convex_minimum(
        element_minimum.PrimitiveQuery(surfaces.type[row], half), element
    )


@wp.func
def _least_of_hull(
    surfaces: PolygonSurfaces, row: int, half: Vec3, element: element_minimum.DeformableElement
) -> element_minimum.Minimum:
    return element_minimum.convex_minimum(element_minimum.HullQuery(surfaces, row, half), element)


def _kernel_of(
    surface_type: Any, low_type: int, high_type: int, minimum_of: Any = None
) -> Callable[..., None]:
    """The kernel of the shapes of types low_type to high_type: of vertices, or of edges and faces
    with `minimum_of`."""

    def sample_candidates(
        scene: SoftScene,
        chunk: ChunkCells,
        instances: Instances,
        cells: CloudCells,
        boxes: NodeBoxes,
        part: SoftCells,
        surfaces: surface_type,
        pair: wp.array[wp.vec2i],
        bound: wp.array[wp.int32],
        record: wp.array[SoftRecord],
        kept: wp.array[wp.int32],
    ):
        """One thread per candidate, as many as the bound: its record, and 1 in `kept`, if it is a
        contact."""
        index = wp.tid()
        if index >= bound[0]:
            return
        thread = pair[index][0]
        slot = pair[index][1]
        cell = thread // part.width
        row = scene.layout.slot_row[chunk.cell_template[cell] * scene.layout.width + slot]
        shape_type = scene.rows.type[row]
        if shape_type < wp.static(low_type) or shape_type > wp.static(high_type):
            return
        corners = element_of(scene, chunk, part, cell, thread)
        if (corners[1] >= 0) != wp.static(minimum_of is not None):
            return
        pose = instances.pose[instance_of(chunk, scene.layout, cell, slot)]
        kept[index] = 0
        weights = Vec3(Real(1.0), Real(0.0), Real(0.0))
        if wp.static(minimum_of is not None):
            element = element_in_shape(scene, chunk, cells, cell, corners, pose, scene.margin[row])
            least = minimum_of(surfaces, row, scene.rows.size[row], element)
            if least.interior == 0 or least.value >= element.limit:
                return
            weights = least.weights
            radius = wp.dot(weights, element.radius)
            point = element_minimum.point_of(element, weights)
        else:
            radius = scene.cloud.radius[corners[0]]
            point = _vertex_in_shape(scene, chunk, cells, cell, corners[0], pose)
        inflation = scene.margin[row] + radius
        limit = above(scene.gap, inflation)
        sample = sample_surface(surfaces, row, scene.rows.size[row], point, limit, radius)
        distance = sample.distance - inflation
        if sample.found == 1 and sample.distance < limit:
            point_world = wp.transform_point(pose, sample.point)
            normal = wp.transform_vector(pose, sample.outward)
            record[index] = SoftRecord(weights, point_world, normal, distance, sample.feature)
            kept[index] = 1

    return sample_candidates


SAMPLERS = family_kernels("sample", _kernel_of)
MINIMIZERS = family_kernels(
    "minimize",
    _kernel_of,
    {
        "primitives": (*FAMILIES["primitives"], _least_of_primitive),
        "hulls": (PolygonSurfaces, CONVEX_MESH, CONVEX_MESH, _least_of_hull),
        "meshes": (PolygonSurfaces, MESH, MESH, surface_minimum.surface_minimum),
        "heightfields": (*FAMILIES["heightfields"], surface_minimum.surface_minimum),
    },
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
        pair_bound: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per candidate, as many as their bound: its contact, if any, at its offset;
        none where the bound of the contacts is 0. The addition of 0 turns -0 into 0."""
        index = wp.tid()
        if bound[0] == 0 or index >= pair_bound[0]:
            return
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
        columns.point_body[slot] = (
            offset_in_body(scene.rows, chunk, cell, row, contact.point) + wp.vec3f()
        )
        columns.point_world[slot] = point_type(contact.point) + point_type()

    return compact_soft


SOFT_ROWS = row_writers("SoftColumns", SOFT_CONTACTS.columns, _compaction)


class SoftContacts(ElementStage):
    """Contacts of the particles and elements of a model with its shapes.
    samplers: kernels of the shape types of the model, with their surfaces."""

    group = SOFT_CONTACTS
    writers = SOFT_ROWS
    traversal = counted_kernels("candidates", _traversal)

    def __init__(
        self,
        device_model: DeviceModel,
        scene: SoftScene,
        samplers: list[tuple[wp.Kernel, Any]],
        float_type: np.dtype,
    ) -> None:
        super().__init__(device_model, scene.cloud.width, float_type)
        self._scene = scene
        self._samplers = samplers

    def kernels(self) -> list[wp.Kernel]:
        return [fit_boxes, *super().kernels(), *(sampler for sampler, _ in self._samplers)]

    def inputs(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int
    ) -> Inputs:
        cells, host = upload_positions(self.device_model, batch, workspace)
        boxes = fitted_boxes(self.device_model, self._scene.tree, chunk, workspace)
        part = workspace.struct(SoftCells, begin=begin, width=width)
        arguments = [self._scene, chunk.cells, chunk.instances, cells, boxes, part]
        return arguments, self._scene.tree.width, host

    def evaluate(
        self, arguments: list[Any], pair: wp.array, count: ElementCount, workspace: Workspace
    ) -> tuple[list[Any], ElementCount, wp.array]:
        record = workspace.array("soft_record", count.most, SoftRecord)
        end = workspace.array("element_row_end", count.most, wp.int32)
        for sampler, surfaces in self._samplers:
            sampled = [*arguments, surfaces, pair, count.bound, record, end]
            workspace.launch(sampler, count.most, sampled)
        workspace.launch_scan(end, count.most)
        total = workspace.counts.of(f"{self.group.name}_row", end, count)
        return [record, end, count.bound, total.bound], total, end


def soft_contacts_of(
    device_model: DeviceModel,
    gap: float,
    with_elements: bool,
    poses: np.ndarray,
    float_type: np.dtype,
) -> SoftContacts:
    """The contacts of a model's particles, and with `with_elements` of the edges and faces between
    them. gap: largest distance of a contact [m]. poses: float64[recorded worlds, B, 7] of one
    frame."""
    particles = device_model.model.particles
    shapes = device_model.model.shapes
    touched = particles.touched_shapes
    scene = SoftScene()
    scene.rows = device_model.rows
    scene.layout = device_model.layout
    scene.margin = device_model.margins.margin
    scene.cloud = upload_cloud(device_model, with_elements)
    scene.tree = build_tree(device_model, touched, poses)
    set_field(scene, "gap", gap)
    types = shapes.type[touched]
    surfaces = surfaces_of(device_model, shapes.type[touched])
    samplers = list(zip(SAMPLERS.values(), surfaces, strict=True))
    if with_elements and len(particles.edge):
        hulls, meshes = (
            surfaces[1] if surface in types else None
            for surface in (ShapeType.CONVEX_MESH, ShapeType.MESH)
        )
        samplers += zip(MINIMIZERS.values(), (surfaces[0], hulls, meshes, surfaces[2]), strict=True)
    used = [(sampler, surface) for sampler, surface in samplers if surface is not None]
    return SoftContacts(device_model, scene, used, np.dtype(float_type))
