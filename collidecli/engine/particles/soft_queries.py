"""Kernels of the contacts of particles with shapes, see `soft_contacts`: candidates, and distances of vertices."""

from typing import Any

import warp as wp

from collidecli.engine.cells import ChunkCells, Instances, instance_of
from collidecli.engine.device_model import Layout, ShapeRows
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH, HEIGHTFIELD, MESH, PLANE
from collidecli.engine.particles.cloud import (
    Cloud,
    CloudCells,
    may_touch,
    position_in_cell,
)
from collidecli.engine.particles.shape_tree import (
    NodeBoxes,
    ShapeTree,
    boxes_overlap,
)
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    PolygonSurfaces,
    Sample,
    sample_grid_surface,
    sample_polygons,
    sample_primitive,
)
from collidecli.engine.runtime.kernel import kernel

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


def _kernel_of(name: str, surface_type: Any, sample_of: Any, low_type: int, high_type: int) -> wp.Kernel:
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


SAMPLE_PRIMITIVES = _kernel_of("sample_primitives", NoSurfaces, of_primitive, int(PLANE), int(CONVEX_MESH) - 1)
SAMPLE_POLYGONS = _kernel_of("sample_polygon_shapes", PolygonSurfaces, of_polygons, int(CONVEX_MESH), int(MESH))
SAMPLE_GRIDS = _kernel_of("sample_heightfields", GridSurfaces, of_grid, int(HEIGHTFIELD), int(HEIGHTFIELD))
