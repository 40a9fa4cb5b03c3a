"""Particles of a model and their positions in cells, stages that find their pairs with items near
them, and closest points of the surfaces of shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, Instances, PoseBatch, instance_of
from collidecli.engine.compaction import RowWriter, count_cells
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import bounding_box, rounded_down, rounded_up
from collidecli.engine.geometry.heightfields import (
    Heightfields,
    base_begins,
    field_of,
    upload_heightfields,
)
from collidecli.engine.geometry.mesh_points import (
    MeshPoint,
    feature_of_mesh_point,
    is_inside_mesh,
    nearest_mesh_point,
    nearest_mesh_point_within,
    outward_at,
)
from collidecli.engine.geometry.mesh_tree import split_tree
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.primitives import surface_point
from collidecli.engine.geometry.real import (
    CAPSULE,
    CONVEX_MESH,
    HEIGHTFIELD,
    MESH,
    PLANE,
    Real,
    Vec3,
    device_array,
)
from collidecli.engine.geometry.segments import END_HIGH, END_LOW, SIDE
from collidecli.engine.narrowphase.triangles import heightfield_traversal, heightfield_triangles
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.particles import EVERY_TEMPLATE, Particles, canonical_triangles
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import facets
from collidecli.scene.solids import check_three_sizes
from collidecli.scene.tables import ContactGroup, GroupRows, no_rows

# Functions of surfaces have one overload for each struct of surfaces: Warp selects by argument
# type.
# ruff: noqa: F811


@wp.struct
class Cloud:
    """Particles, by row.

    width: vertices, edges and faces of the template that has most. element: their particles in each
    template, `width` a template: vertices, (row, -1, -1); edges, (row, row, -1); faces; each in
    ascending order; -1 beyond. moves: 1 for particles that move with the origin of their world.
    body: row of the body that each moves with, or -1. object_class, shape_class, class_table,
    class_count: filter classes of particles and shapes, and the pairs that may touch, `class_count`
    a row.
    """

    width: int
    element: wp.array[wp.vec3i]
    radius: wp.array[Real]
    moves: wp.array[wp.int32]
    body: wp.array[wp.int32]
    object_class: wp.array[wp.int32]
    shape_class: wp.array[wp.int32]
    class_count: int
    class_table: wp.array[wp.uint8]


@wp.struct
class CloudCells:
    """Recorded positions of the particles in the frames of a chunk.

    first: index of each cell's first particle; of steps then that of its next frame, its own where
    there is none. shared: 1 where worlds with different origins have the positions of one.
    """

    position: wp.array[Vec3]
    first: wp.array[wp.int64]
    shared: int


@wp.func
def position_at(
    cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, entry: int, particle: int
) -> Vec3:
    """World position of a particle in a cell, or in its next frame, by the entry of
    `CloudCells.first`."""
    point = cells.position[int(cells.first[entry]) + particle]
    if cells.shared != 0 and cloud.moves[particle] != 0:
        return wp.transform_point(chunk.world_shift[chunk.cell_world[cell]], point)
    return point


@wp.func
def position_in_cell(
    cloud: Cloud, cells: CloudCells, chunk: ChunkCells, cell: int, particle: int
) -> Vec3:
    """World position of a particle in a cell."""
    return position_at(cloud, cells, chunk, cell, cell, particle)


@wp.func
def may_touch(cloud: Cloud, particle: int, shape: int, body: int) -> bool:
    """Whether the filters let a particle touch a shape of a body."""
    if body >= 0 and cloud.body[particle] == body:
        return False
    row = cloud.object_class[particle] * cloud.class_count + cloud.shape_class[shape]
    return cloud.class_table[row] != wp.uint8(0)


def active_items(particles: Particles, template: int, items: np.ndarray | None) -> np.ndarray:
    """int32[n, k]: the items, rows of k particles, of which all are active in a template; None is
    each particle."""
    rows = particles.of_template(template)
    rows = rows[particles.active[rows]]
    if items is None:
        return rows[:, None]
    is_active = np.zeros(len(particles), bool)
    is_active[rows] = True
    return items[is_active[items].all(axis=1)]


def upload_cloud(device_model: DeviceModel, with_all: bool = False) -> Cloud:
    """The particles of a model on its device. with_all: with edges and faces."""
    particles = device_model.model.particles
    put = partial(device_array, device=device_model.device)
    items = (None, particles.edge, canonical_triangles(particles.triangle)) if with_all else (None,)
    of_templates = []
    for template in range(device_model.template_count):
        parts = [active_items(particles, template, rows) for rows in items]
        filled = [
            np.pad(rows, ((0, 0), (0, 3 - rows.shape[1])), constant_values=-1) for rows in parts
        ]
        of_templates.append(np.concatenate(filled))
    cloud = Cloud()
    cloud.width = max(1, *(len(rows) for rows in of_templates))
    padded = np.full((len(of_templates), cloud.width, 3), -1, np.int32)
    for template, rows in enumerate(of_templates):
        padded[template, : len(rows)] = rows
    cloud.element = put(padded.reshape(-1, 3), wp.vec3i)
    cloud.radius = put(particles.radius, Real)
    cloud.moves = put(
        (particles.template[particles.owner] != EVERY_TEMPLATE).astype(np.int32), wp.int32
    )
    cloud.body = put(particles.body, wp.int32)
    cloud.object_class = put(particles.object_class[particles.owner], wp.int32)
    cloud.shape_class = put(particles.shape_class, wp.int32)
    cloud.class_count = particles.class_table.shape[1]
    cloud.class_table = put(particles.class_table.astype(np.uint8).ravel(), wp.uint8)
    return cloud


def upload_positions(
    device_model: DeviceModel,
    batch: PoseBatch,
    workspace: Workspace,
    is_step: np.ndarray | None = None,
) -> tuple[CloudCells, tuple[np.ndarray, ...]]:
    """The positions of a chunk, and the host arrays that must live as long; on the CPU they are not
    copied. is_step: bool[cells], which cells have a next frame, whose positions follow; the others
    have their own there."""
    assert batch.particle_position is not None
    model = device_model.model
    frames, recorded_worlds, particles = batch.particle_position.shape[:3]
    frame, world = np.divmod(batch.first_cell + np.arange(batch.cell_count), model.world_count)
    frame = frame - batch.first_frame
    if is_step is not None:
        frame = np.concatenate([frame, frame + is_step])
        world = np.tile(world, 2)
    if frames == 1:
        frame = np.zeros_like(frame)
    first_frame = int(frame.min())
    of_world = world if recorded_worlds > 1 else 0
    starts = (((frame - first_frame) * recorded_worlds + of_world) * particles).astype(np.int64)
    used = batch.particle_position[first_frame : int(frame.max()) + 1]
    used = np.ascontiguousarray(used, np.float64).reshape(-1, 3)
    shared = recorded_worlds == 1 and model.world_shift is not None
    cells = workspace.struct(CloudCells, shared=int(shared))
    workspace.bind_host_array(CloudCells, "position", used, Vec3)
    workspace.bind_host_array(CloudCells, "first", starts, wp.int64)
    return cells, (used, starts)


# Pairs of elements of deformable objects and items near them: traversals of trees, and the rows of
# their groups.
#
# A traversal is two kernels of one thread per element and cell for `Workspace.counted`, which write
# an element's pairs (thread, item), ascending by item.


@wp.func
def insert_pair(pair: wp.array[wp.vec2i], first: int, end: int, thread: int, item: int):
    """Inserts (thread, item) among the pairs `first` to `end` - 1, which are ordered by item."""
    place = int(end)
    while place > first and pair[wp.max(place - 1, 0)][1] > item:
        pair[place] = pair[place - 1]
        place -= 1
    pair[place] = wp.vec2i(thread, item)


Inputs = tuple[list[Any], int, tuple[np.ndarray, ...]]
"""See `ElementStage.inputs`."""


class ElementStage:
    """Finds the rows of a group from pairs of an element of the particles and an item near it:
    counted by a traversal, written, evaluated, and written to columns. Any number of threads may
    share it.

    group, writers, traversal: set by each subclass. elements: of the template that has most.
    """

    group: ContactGroup
    writers: Mapping[np.dtype, RowWriter]
    traversal: tuple[wp.Kernel, ...]

    def __init__(self, device_model: DeviceModel, elements: int, float_type: np.dtype) -> None:
        self.device_model, self.width, self.float_type = (
            device_model,
            elements,
            np.dtype(float_type),
        )

    def inputs(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int
    ) -> Inputs | None:
        """Arguments of all kernels for `width` elements of each cell's from `begin` on, the largest
        number of pairs of an element, and host arrays that must live until all launches are
        complete; None without rows."""
        raise NotImplementedError

    def evaluate(
        self, arguments: list[Any], pair: wp.array, count: int, workspace: Workspace
    ) -> tuple[list[Any], int, wp.array | None]:
        """Evaluates the pairs that were found: further arguments of the kernel that writes rows,
        which is launched for each pair, the number of rows, and the inclusive scan of the rows of
        each pair, None where each has one."""
        raise NotImplementedError

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        return [count_cells, self.writers[self.float_type].kernel, *self.traversal]

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the elements `begin` to `end` of each cell's, and the number of pairs.
        Raises ChunkTooLarge when the scratch memory is too small."""
        width = end - begin
        inputs = self.inputs(chunk, batch, workspace, begin, width)
        if inputs is None:
            return no_rows(self.group, chunk.cell_count, self.float_type), 0
        (arguments, most, host) = inputs
        threads = chunk.cell_count * width
        pair_end, pair, pairs = workspace.counted(
            "element_pair", wp.vec2i, self.traversal, threads, arguments, most
        )
        further, count, row_end = self.evaluate(arguments, pair, pairs, workspace)
        columns = self.writers[self.float_type].write(
            pairs, [*arguments, pair, *further], count, workspace
        )
        if row_end is None:
            ends = workspace.every(pair_end, threads, width)
        else:
            cell_end = workspace.array("element_cell_end", chunk.cell_count, wp.int32)
            workspace.launch(count_cells, chunk.cell_count, [pair_end, width, row_end, cell_end])
            ends = workspace.host(cell_end, chunk.cell_count)
        counts = np.diff(ends, prepend=0).astype(np.int64)
        workspace.finish()
        del inputs, host  # all launches are complete
        return GroupRows(counts, columns), pairs


# Bounding volume hierarchy over the shapes of each cell, for queries by particles.
#
# Its topology is built once for each template, from one frame of the motion, by median splits. The
# boxes are computed for every cell from the poses of its shapes. Contacts do not depend on the
# topology.


@wp.struct
class ShapeTree:
    """The nodes of all templates, in depth-first order, `width` a template.

    count: nodes of each template. skip: the node after a node's descendants. slot: of a leaf, else
    -1. Planes are leaves after the tree of the other shapes, each with an infinite box.
    """

    width: int
    count: wp.array[wp.int32]
    skip: wp.array[wp.int32]
    slot: wp.array[wp.int32]


@wp.struct
class NodeBoxes:
    """AABBs of the nodes in each cell, inflated by the shapes' margins: node n of cell c at c *
    width + n."""

    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@kernel
def fit_boxes(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    margin: wp.array[Real],
    tree: ShapeTree,
    boxes: NodeBoxes,
):
    """One thread per cell: the boxes of its nodes, descendants first."""
    cell = wp.tid()
    template = chunk.cell_template[cell]
    first = template * tree.width
    node = tree.count[template] - 1
    while node >= 0:
        slot = tree.slot[first + node]
        at = cell * tree.width + node
        if slot >= 0:
            row = layout.slot_row[template * layout.width + slot]
            pose = instances.pose[instance_of(chunk, layout, cell, slot)]
            box = bounding_box(rows.type[row], rows.size[row], pose, margin[row])
            boxes.lower[at] = rounded_down(box.lower)
            boxes.upper[at] = rounded_up(box.upper)
        else:
            left = at + 1
            right = cell * tree.width + tree.skip[first + node + 1]
            boxes.lower[at] = wp.min(boxes.lower[left], boxes.lower[right])
            boxes.upper[at] = wp.max(boxes.upper[left], boxes.upper[right])
        node -= 1


@wp.func
def boxes_overlap(low: wp.vec3d, high: wp.vec3d, lower: wp.vec3f, upper: wp.vec3f) -> bool:
    """Whether a box in float64 and one in float32 have a point in common."""
    for axis in range(3):
        if low[axis] > Real(upper[axis]) or high[axis] < Real(lower[axis]):
            return False
    return True


def tree_of(
    centers: np.ndarray, slots: np.ndarray, planes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Skip and slot of the nodes of one template, see `ShapeTree`: the tree of shapes, then the
    planes. centers: float64[n, 3] of `slots`, int[n] [m]. planes: slots of planes."""
    skip, item, _ = split_tree(centers, np.arange(len(slots)))
    slot = np.append(slots, -1)[item]
    return np.append(skip, len(skip) + 1 + np.arange(len(planes))), np.append(slot, planes)


def build_tree(device_model: DeviceModel, touched: np.ndarray, poses: np.ndarray) -> ShapeTree:
    """The trees of a model's templates on its device. touched: bool[S], shapes that may touch a
    particle. poses: float64[recorded worlds, B, 7] of one frame."""
    model = device_model.model
    shapes = model.shapes
    is_plane = shapes.type == ShapeType.PLANE
    trees = []
    for template, rows in enumerate(device_model.template_rows):
        world = int(np.argmax(model.world_template == template))
        pose = poses[world if len(poses) > 1 else 0]
        touched_rows = np.flatnonzero(touched[rows])
        solid = touched_rows[~is_plane[rows[touched_rows]]]
        body = shapes.body[rows[solid]]
        places = np.concatenate([pose[:, :3], np.zeros((1, 3))])[body]
        trees.append(
            tree_of(
                places + shapes.pose[rows[solid], :3],
                solid,
                touched_rows[is_plane[rows[touched_rows]]],
            )
        )
    tree = ShapeTree()
    put = partial(device_array, dtype=wp.int32, device=device_model.device)
    tree.width = max(1, *(len(skip) for skip, _ in trees))
    skip = np.zeros((len(trees), tree.width), np.int32)
    slot = np.full((len(trees), tree.width), -1, np.int32)
    for template, (skips, slots) in enumerate(trees):
        skip[template, : len(skips)] = skips
        slot[template, : len(slots)] = slots
    tree.count = put(np.array([len(skips) for skips, _ in trees], np.int32))
    tree.skip, tree.slot = put(skip.ravel()), put(slot.ravel())
    return tree


def fitted_boxes(
    device_model: DeviceModel, tree: ShapeTree, chunk: Chunk, workspace: Workspace
) -> NodeBoxes:
    """The boxes of all nodes in all cells of a chunk."""
    sides = {
        side: workspace.array(f"node_{side}", chunk.cell_count * tree.width, wp.vec3f)
        for side in ("lower", "upper")
    }
    boxes = workspace.struct(NodeBoxes, **sides)
    margin = device_model.margins.margin
    arguments = [
        device_model.rows,
        device_model.layout,
        chunk.cells,
        chunk.instances,
        margin,
        tree,
        boxes,
    ]
    workspace.launch(fit_boxes, chunk.cell_count, arguments)
    return boxes


AT_SURFACE = wp.constant(Real(1.0e-14))
"""Fraction of a surface's size: closer to it than this, the normal is the surface's, not the
direction from it."""
NAMES = wp.constant(7)
"""Feature names of a triangle of a hull: three corners, three sides, the face."""


@wp.struct
class Sample:
    """Closest point of a shape's surface to a point, in the shape's frame.

    found: 0 where the distance is at least the limit, and the rest is not set. outward: unit, from
    the surface outwards. distance: negative inside [m]. feature: of the shape, -1 none. face:
    triangle of a mesh or heightfield.
    """

    found: int
    distance: Real
    outward: Vec3
    point: Vec3
    feature: int
    face: int


@wp.struct
class PrimitiveSurfaces:
    """Planes and primitives. type: of each shape, by row."""

    type: wp.array[wp.int32]


@wp.struct
class PolygonSurfaces:
    """Convex meshes and triangle meshes. mesh: index in `meshes` of each shape's triangles, by row;
    -1 none.

    name: first of the feature names of each mesh in `names`, NAMES a triangle; -1 where they follow
    from its triangles.
    """

    meshes: Meshes
    mesh: wp.array[wp.int32]
    name: wp.array[wp.int32]
    names: wp.array[wp.int32]


@wp.struct
class GridSurfaces:
    """Heightfields. field: index in `fields` of each shape, by row; -1 none."""

    fields: Heightfields
    field: wp.array[wp.int32]


FAMILIES = {
    "primitives": (PrimitiveSurfaces, PLANE, CONVEX_MESH - 1),
    "polygons": (PolygonSurfaces, CONVEX_MESH, MESH),
    "heightfields": (GridSurfaces, HEIGHTFIELD, HEIGHTFIELD),
}
"""Struct of the surfaces, and first and last type of the shapes, of each family of
`surfaces_of`."""


def family_kernels(
    name: str,
    kernel_of: Callable[..., Callable[..., None]],
    families: dict[str, tuple[Any, ...]] = FAMILIES,
) -> dict[str, wp.Kernel]:
    """A kernel for each family, with its name after `name`. kernel_of: its function, by the values
    of the family."""
    kernels = {}
    for family, values in families.items():
        function = kernel_of(*values)
        function.__name__ = function.__qualname__ = f"{name}_{family}"
        kernels[family] = kernel(function)
    return kernels


@wp.func
def sample_primitive(shape_type: int, size: Vec3, point: Vec3) -> Sample:
    """Closest point of a plane or primitive to a point of its frame.
    Degenerate: see `nearest_on_primitive`; a point on the axis of a capsule leaves it along +x."""
    if shape_type == PLANE:
        foot = Vec3(point[0], point[1], Real(0.0))
        return Sample(1, point[2], Vec3(Real(0.0), Real(0.0), Real(1.0)), foot, -1, 0)
    nearest = surface_point(shape_type, size, point)
    feature = nearest.feature
    if shape_type == CAPSULE:
        feature = SIDE
        if wp.abs(point[2]) > size[1]:
            feature = END_HIGH if point[2] > Real(0.0) else END_LOW
    return Sample(
        1, nearest.distance, nearest.outward, point - nearest.distance * nearest.outward, feature, 0
    )


@wp.func
def sample_surface(
    surfaces: PrimitiveSurfaces, row: int, half: Vec3, point: Vec3, limit: Real, radius: Real
) -> Sample:
    """Closest point of a plane or primitive of size `half`, whatever the limit."""
    return sample_primitive(surfaces.type[row], half, point)


@wp.func
def sample_from(
    point: Vec3, nearest: MeshPoint, outward: Vec3, normal: Vec3, inside: bool, size: Real
) -> Sample:
    """The sample of a closest point. outward: normal sum of its feature. normal: unit, of its
    triangle."""
    off = point - nearest.point
    length = wp.length(off)
    distance = wp.where(inside, -length, length)
    direction = normal
    if length > AT_SURFACE * size:
        direction = off / length
        if inside:
            direction = -direction
    elif wp.length(outward) > Real(0.0):
        direction = wp.normalize(outward)
    return Sample(1, distance, direction, nearest.point, 0, 0)


@wp.func
def name_of(surfaces: PolygonSurfaces, mesh: int, nearest: MeshPoint) -> int:
    """Feature number of a closest point."""
    if surfaces.name[mesh] < 0:
        return feature_of_mesh_point(surfaces.meshes, mesh, nearest.face, nearest.part)
    face = nearest.face - surfaces.meshes.arrays[0].header[mesh].first_face
    return surfaces.names[surfaces.name[mesh] + NAMES * face + nearest.part]


@wp.func(inline=False)
def sample_surface(
    surfaces: PolygonSurfaces, row: int, half: Vec3, point: Vec3, limit: Real, radius: Real
) -> Sample:
    """Closest point of a convex mesh or mesh to a point of its frame, if its signed distance is
    below `limit` [m].

    A point is inside a closed mesh by its winding number. An open mesh has two sides and no inside;
    one with a front has no sample behind it, unless a ball of `radius` around the point crosses it:
    that is behind its surface. half: half extents of the shape's box.
    """
    result = Sample()
    mesh = surfaces.mesh[row]
    closed = surfaces.meshes.arrays[0].header[mesh].is_closed
    nearest = nearest_mesh_point_within(surfaces.meshes, mesh, point, limit * limit)
    if nearest.face < 0:
        # Farther than the limit from the surface: only an inner point has a smaller signed
        # distance.
        beyond = wp.max(
            wp.abs(point[0]) - half[0],
            wp.max(wp.abs(point[1]) - half[1], wp.abs(point[2]) - half[2]),
        )
        if closed == 0 or beyond > Real(0.0):
            return result
        nearest = nearest_mesh_point(surfaces.meshes, mesh, point)
    inside = bool(False)
    if closed == 1 or surfaces.meshes.arrays[0].header[mesh].has_front == 1:
        inside = is_inside_mesh(surfaces.meshes, mesh, point, nearest)
    if closed == 0 and inside and nearest.square >= radius * radius:
        return result
    size = half[0] + half[1] + half[2]
    outward = outward_at(surfaces.meshes, nearest.face, nearest.part)
    result = sample_from(
        point, nearest, outward, surfaces.meshes.arrays[0].face_normal[nearest.face], inside, size
    )
    result.feature = name_of(surfaces, mesh, nearest)
    result.face = nearest.face
    return result


@wp.func(inline=False)
def sample_surface(
    surfaces: GridSurfaces, row: int, half: Vec3, point: Vec3, limit: Real, radius: Real
) -> Sample:
    """Closest point of a heightfield to a point of its frame, if its signed distance is below
    `limit` [m].

    Inside, the closest point of the surface and the walls: the base does not count (docs/adr/0026).
    Outside, of surface, walls and base; of equally close ones walls and base come first.
    """
    result = Sample()
    field = field_of(surfaces.fields, surfaces.field[row])
    number = int(-1)
    inside = heightfield_traversal.is_inside(field, point)
    if inside:
        number = heightfield_traversal.nearest_part(field, point).number
    else:
        least = limit
        for segment in range(4):
            foot = heightfield_traversal.foot_on_side(field, segment, point)
            distance = wp.length(foot - point)
            if distance < least and heightfield_traversal.height_over(field, foot) >= foot[2]:
                least = distance
                number = heightfield_traversal.wall_under(field, segment, foot)
        if point[2] <= field.bottom:
            foot = Vec3(
                wp.clamp(point[0], -field.half_x, field.half_x),
                wp.clamp(point[1], -field.half_y, field.half_y),
                field.bottom,
            )
            distance = wp.length(foot - point)
            if distance < least:
                least = distance
                # The base is split by its diagonal; seen from below, its first triangle is above
                # it.
                number = base_begins(field)
                if foot[0] * field.half_y > foot[1] * field.half_x:
                    number += 1
        outer = heightfield_traversal.NearestPart(number, least)
        number = heightfield_traversal.nearest_top(field, point, outer, least * least).number
    if number < 0:
        return result
    nearest = heightfield_triangles.closest_point_on_face(field, number, point)
    outward = heightfield_triangles.outward_of_face(field, number, nearest.part)
    size = half[0] + half[1] + half[2]
    result = sample_from(
        point, nearest, outward, heightfield_triangles.face_normal(field, number), inside, size
    )
    result.feature = heightfield_triangles.feature_of_face(field, number, nearest.part)
    result.face = number
    return result


def upload_polygons(device_model: DeviceModel) -> PolygonSurfaces:
    """The triangles of a model's meshes, followed by those of its hulls."""
    model = device_model.model
    shapes = device_model.model.shapes
    put = partial(device_array, dtype=wp.int32, device=device_model.device)
    hulls = [facets(ShapeType.CONVEX_MESH, hull.half_extents, hull=hull) for hull in model.hulls]
    meshes = [*model.meshes, *(mesh for mesh in hulls if mesh is not None)]
    names = [
        _hull_names(hull, mesh.face)
        for hull, mesh in zip(model.hulls, meshes[len(model.meshes) :], strict=True)
    ]
    starts = np.cumsum([0, *(mesh.size for mesh in names)])[:-1]
    surfaces = PolygonSurfaces()
    surfaces.meshes = upload_meshes(meshes, device_model.device)
    surfaces.mesh = put(
        np.where(shapes.hull >= 0, len(model.meshes) + shapes.hull, shapes.mesh).astype(np.int32)
    )
    surfaces.name = put(np.append(np.full(len(model.meshes), -1), starts).astype(np.int32))
    surfaces.names = put(np.concatenate([np.zeros(0, np.int32), *(mesh.ravel() for mesh in names)]))
    return surfaces


def surfaces_of(device_model: DeviceModel, types: np.ndarray) -> list[Any]:
    """The surfaces of each of FAMILIES on a device; None for those without any of the types. Raises
    InputError for types of more than three sizes."""
    labels = [ShapeType(kind).label for kind in types.tolist()]
    check_three_sizes(types, labels, "contacts with particles")
    primitives, polygons, grids = families(types)
    surfaces: list[Any] = [None, upload_polygons(device_model) if polygons else None, None]
    if primitives:
        surfaces[0] = PrimitiveSurfaces()
        surfaces[0].type = device_model.rows.type
    if grids:
        surfaces[2] = GridSurfaces()
        surfaces[2].fields = upload_heightfields(
            device_model.model.heightfields, device_model.device
        )
        surfaces[2].field = device_model.rows.heightfield
    return surfaces


def _hull_names(hull: ConvexHull, triangles: np.ndarray) -> np.ndarray:
    """int32[T, NAMES]: feature names of the triangles of a hull's faces, each a fan around its
    first corner. A side that is no edge of the hull has the name of its face."""
    edge_of = {(int(p), int(q)): number for number, (p, q) in enumerate(hull.edge[:, :2])}
    face = np.repeat(np.arange(len(hull.face)), [len(outline) - 2 for outline in hull.face])
    names = np.empty((len(triangles), int(NAMES)), np.int32)
    names[:, :3] = 3 * triangles
    names[:, 6] = 3 * face + 2
    for row, corners in enumerate(triangles.tolist()):
        for k in range(3):
            ends = sorted((corners[k], corners[(k + 1) % 3]))
            edge = edge_of.get((ends[0], ends[1]))
            names[row, 3 + k] = names[row, 6] if edge is None else 3 * edge + 1
    return names


def families(types: np.ndarray) -> list[bool]:
    """Whether shapes of these types are of each of FAMILIES."""
    return [
        bool(((types >= first) & (types <= last)).any()) for _, first, last in FAMILIES.values()
    ]
