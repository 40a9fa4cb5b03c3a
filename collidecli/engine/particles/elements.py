"""Triangles and edges of the deformable objects of each template on a device, and their bounding volume hierarchies."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells, Instances, instance_of
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.meshes import split_tree
from collidecli.engine.geometry.real import CONVEX_MESH, HEIGHTFIELD, MESH, PLANE, Pose, Real, Vec3
from collidecli.engine.particles.cloud import (
    Cloud,
    CloudCells,
    may_touch,
    position_in_cell,
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
    PolygonSurfaces,
    Sample,
    ShapeTree,
    boxes_overlap,
    sample_grid_surface,
    sample_polygons,
    sample_primitive,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.particles import Particles, canonical_triangles


@wp.struct
class ElementHeader:
    """The elements of a template: first and number of its vertices, triangles and edges in `Elements`, and the first
    and number of nodes of the trees of triangles and edges."""

    first_vertex: int
    vertex_count: int
    first_triangle: int
    first_edge: int
    edge_count: int
    first_triangle_node: int
    triangle_node_count: int
    first_edge_node: int
    edge_node_count: int


@wp.struct
class Elements:
    """Elements of all templates, in the order of their particles.

    vertex: particles of triangles. triangle: from the smallest particle on, in their direction. edge: smaller particle
    first. skip: the node after a node's descendants, from the tree's first. leaf: triangle or edge of a leaf, counted
    within the template; -1 for inner nodes.
    ring_start, ring: particles within the given number of edges of each particle, ascending. rest: rest positions.
    owner: object of each particle.
    """

    header: wp.array[ElementHeader]
    vertex: wp.array[wp.int32]
    triangle: wp.array[wp.vec3i]
    edge: wp.array[wp.vec2i]
    skip: wp.array[wp.int32]
    leaf: wp.array[wp.int32]
    ring_start: wp.array[wp.int64]
    ring: wp.array[wp.int32]
    rest: wp.array[Vec3]
    owner: wp.array[wp.int32]


@dataclass(frozen=True)
class UploadedElements:
    """The elements of a model. width: vertices and edges, node_width: nodes, of the template with most."""

    elements: Elements
    width: int
    node_width: int


def _rings(particles: Particles, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Start of each particle's neighbours, int64[P + 1], and the particles within `count` edges, ascending."""
    size, edge = len(particles), particles.edge.astype(np.int64)
    step = np.unique(np.concatenate([edge[:, 0] * size + edge[:, 1], edge[:, 1] * size + edge[:, 0]]))
    step_start, neighbour = np.searchsorted(step // size, np.arange(size + 1)), step % size
    reached = step if count else step[:0]
    for _ in range(count - 1):
        # The neighbours of every particle reached so far.
        particle, last = np.divmod(reached, size)
        found = step_start[last + 1] - step_start[last]
        before = np.cumsum(found) - found
        at = np.arange(int(found.sum())) + np.repeat(step_start[last] - before, found)
        reached = np.unique(np.concatenate([reached, np.repeat(particle, found) * size + neighbour[at]]))
    return np.searchsorted(reached // size, np.arange(size + 1)).astype(np.int64), (reached % size).astype(np.int32)


def upload_elements(device_model: DeviceModel, rings: int) -> UploadedElements:
    """The elements of a model's templates on its device. rings: of neighbours, in edges; 0 for none."""
    particles, device = device_model.model.particles, device_model.device
    template_of = particles.template[particles.owner]
    triangles, edges = canonical_triangles(particles.triangle), particles.edge
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("vertex", "triangle", "edge", "skip", "leaf")}
    headers, at = [], dict.fromkeys(("vertex", "triangle", "edge", "node"), 0)
    width = node_width = 1
    for template in range(device_model.template_count):
        held = (template_of == template) | (template_of == GLOBAL_TEMPLATE)
        own = {"triangle": triangles[held[triangles[:, 0]]], "edge": edges[held[edges[:, 0]]]}
        own["vertex"] = np.unique(own["triangle"])
        trees = [_tree(particles.position[own[name]].mean(axis=1)) for name in ("triangle", "edge")]
        nodes = [len(skip) for skip, _ in trees]
        counts = at["vertex"], len(own["vertex"]), at["triangle"], at["edge"], len(own["edge"])
        headers.append((*counts, at["node"], nodes[0], at["node"] + nodes[0], nodes[1]))
        for name in ("vertex", "triangle", "edge"):
            parts[name].append(own[name])
            at[name] += len(own[name])
        for skip, leaf in trees:
            parts["skip"].append(skip)
            parts["leaf"].append(leaf)
        at["node"] += sum(nodes)
        width = max(width, len(own["vertex"]) + len(own["edge"]))
        node_width = max(node_width, sum(nodes))
    start, ring = _rings(particles, rings)
    elements = Elements()
    elements.header = wp.array(np.array(headers, ElementHeader.numpy_dtype()), dtype=ElementHeader, device=device)
    for name, dtype, shape in (
        ("vertex", wp.int32, ()), ("triangle", wp.vec3i, (3,)), ("edge", wp.vec2i, (2,)), ("skip", wp.int32, ()),
        ("leaf", wp.int32, ()),
    ):  # fmt: skip
        # Warp kernels take no array of length zero, so one unused element is appended.
        values = np.concatenate([*parts[name], np.zeros((1, *shape))]).astype(np.int32)
        setattr(elements, name, wp.array(values, dtype=dtype, device=device))
    elements.ring_start = wp.array(start, dtype=wp.int64, device=device)
    elements.ring = wp.array(np.append(ring, 0).astype(np.int32), dtype=wp.int32, device=device)
    elements.rest = wp.array(particles.position, dtype=Vec3, device=device)
    elements.owner = wp.array(particles.owner, dtype=wp.int32, device=device)
    return UploadedElements(elements, width, node_width)


def _tree(middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Skip and leaf of each node of the tree of elements with these centres; none without elements."""
    if not len(middle):
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    skip, item, _ = split_tree(middle, np.arange(len(middle)))
    return skip, item


# Kernels of the contacts of particles with shapes, see `soft_contacts`: candidates, and distances of vertices.

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
def count_candidates(
    scene: SoftScene,
    chunk: ChunkCells,
    instances: Instances,
    cells: CloudCells,
    boxes: NodeBoxes,
    part: SoftCells,
    found: wp.array[wp.int32],
):
    """One thread per element and cell: the number of shapes that it may touch."""
    thread = wp.tid()
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
                        count += 1
                node += 1
            else:
                node = scene.tree.skip[first + node]
    found[thread] = count


@kernel
def write_candidates(
    scene: SoftScene,
    chunk: ChunkCells,
    instances: Instances,
    cells: CloudCells,
    boxes: NodeBoxes,
    part: SoftCells,
    end: wp.array[wp.int32],
    pair: wp.array[wp.vec2i],
):
    """One thread per element and cell: its candidates (thread, slot), ascending by slot.

    end: inclusive scan of their numbers.
    """
    thread = wp.tid()
    first_pair = int(0)
    if thread > 0:
        first_pair = end[thread - 1]
    if first_pair == end[thread]:
        return
    cell = thread // part.width
    element = element_of(scene, chunk, part, cell, thread)
    around = surroundings_of(scene, chunk, cells, cell, element)
    template = chunk.cell_template[cell]
    first = template * scene.tree.width
    node = int(0)
    written = int(first_pair)
    while node < scene.tree.count[template]:
        at = cell * scene.tree.width + node
        if boxes_overlap(around.low, around.high, boxes.lower[at], boxes.upper[at]):
            slot = scene.tree.slot[first + node]
            if slot >= 0:  # noqa: SIM102
                if is_candidate(scene, chunk, instances, cell, slot, element, around):
                    # Insertion sort.
                    place = int(written)
                    while place > first_pair and pair[wp.max(place - 1, 0)][1] > slot:
                        pair[place] = pair[place - 1]
                        place -= 1
                    pair[place] = wp.vec2i(thread, slot)
                    written += 1
            node += 1
        else:
            node = scene.tree.skip[first + node]


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


@wp.struct
class NoSurfaces:
    """Primitives have no arrays of their own."""

    unused: int


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


# Kernels of the contacts of edges and faces of deformable objects with shapes, see `soft_contacts`.


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
