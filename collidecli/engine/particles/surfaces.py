"""Signed distance of a point from a shape of any type, with the closest point of its surface.

The functions of a family of types have the arguments and the result of `sample_primitive`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, Instances, instance_of
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import bounding_box, rounded_down, rounded_up
from collidecli.engine.geometry.closest_points import END_HIGH, END_LOW, SIDE
from collidecli.engine.geometry.heightfields import Heightfields, base_begins, field_of, upload_heightfields
from collidecli.engine.geometry.meshes import (
    Meshes,
    MeshPoint,
    feature_of_mesh_point,
    is_inside_mesh,
    nearest_mesh_point,
    nearest_mesh_point_within,
    outward_at,
    split_tree,
    upload_meshes,
)
from collidecli.engine.geometry.primitives import surface_point
from collidecli.engine.geometry.real import CAPSULE, PLANE, Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    begin_traversal,
    descend,
    foot_on_side,
    height_over,
    is_inside,
    is_under,
    nearest_part,
    skip_square,
    squared_distance_to_square,
    squared_distance_to_top,
    wall_under,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    closest_point_on_face,
    face_normal,
    feature_of_face,
    outward_of_face,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import facets

# Bounding volume hierarchy over the shapes of each cell, for queries by particles.
#
# Its topology is built once for each template, from one frame of the motion, by median splits. The boxes are computed
# for every cell from the poses of its shapes. Contacts do not depend on the topology.


@wp.struct
class NoSurfaces:
    """Primitives have no arrays of their own."""

    unused: int


@wp.struct
class ShapeTree:
    """The nodes of all templates, in depth-first order, `width` a template.

    count: nodes of each template. skip: the node after a node's descendants. slot: of a leaf, else -1. Planes are
    leaves after the tree of the other shapes, each with an infinite box.
    """

    width: int
    count: wp.array[wp.int32]
    skip: wp.array[wp.int32]
    slot: wp.array[wp.int32]


@wp.struct
class NodeBoxes:
    """AABBs of the nodes in each cell, inflated by the shapes' margins: node n of cell c at c * width + n."""

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
    for axis in range(3):  # noqa: SIM110
        if low[axis] > Real(upper[axis]) or high[axis] < Real(lower[axis]):
            return False
    return True


@dataclass(frozen=True)
class HostTree:
    """Nodes of one template in depth-first order: skip and slot as in `ShapeTree`."""

    skip: np.ndarray
    slot: np.ndarray


def tree_of(centers: np.ndarray, slots: np.ndarray, planes: np.ndarray) -> HostTree:
    """The tree of shapes, see `split_tree`, followed by the planes.

    centers: float64[n, 3] of `slots`, int[n] [m]. planes: slots of planes.
    """
    skip, slot = np.zeros(0, np.int32), np.zeros(0, np.int32)
    if len(slots):
        skip, item, _ = split_tree(centers, np.arange(len(slots)))
        slot = np.where(item >= 0, slots[item], -1).astype(np.int32)
    after = len(skip) + 1 + np.arange(len(planes), dtype=np.int32)
    return HostTree(np.append(skip, after).astype(np.int32), np.append(slot, planes).astype(np.int32))


def build_tree(device_model: DeviceModel, touched: np.ndarray, poses: np.ndarray) -> ShapeTree:
    """The trees of a model's templates on its device.

    touched: bool[S], shapes that may touch a particle. poses: float64[recorded worlds, B, 7] of one frame.
    """
    model = device_model.model
    shapes = model.shapes
    is_plane = shapes.type == ShapeType.PLANE
    trees = []
    for template, rows in enumerate(device_model.template_rows):
        world = int(np.argmax(model.world_template == template))
        pose = poses[world if len(poses) > 1 else 0]
        held = np.flatnonzero(touched[rows])
        solid = held[~is_plane[rows[held]]]
        body = shapes.body[rows[solid]]
        places = np.concatenate([pose[:, :3], np.zeros((1, 3))])[body]
        trees.append(tree_of(places + shapes.pose[rows[solid], :3], solid, held[is_plane[rows[held]]]))
    width = max(1, *(len(each.skip) for each in trees))
    skip, slot = np.zeros((len(trees), width), np.int32), np.full((len(trees), width), -1, np.int32)
    for template, each in enumerate(trees):
        skip[template, : len(each.skip)], slot[template, : len(each.slot)] = each.skip, each.slot
    tree = ShapeTree()
    tree.width = width
    device = device_model.device
    tree.count = wp.array(np.array([len(each.skip) for each in trees], np.int32), dtype=wp.int32, device=device)
    tree.skip = wp.array(skip.ravel(), dtype=wp.int32, device=device)
    tree.slot = wp.array(slot.ravel(), dtype=wp.int32, device=device)
    return tree


def fitted_boxes(device_model: DeviceModel, tree: ShapeTree, chunk: Chunk, workspace: Workspace) -> NodeBoxes:
    """The boxes of all nodes in all cells of a chunk."""
    count = chunk.cell_count * tree.width
    boxes = workspace.struct(
        NodeBoxes,
        lower=workspace.array("node_lower", count, wp.vec3f),
        upper=workspace.array("node_upper", count, wp.vec3f),
    )
    margin = device_model.margins.margin
    arguments = [device_model.rows, device_model.layout, chunk.cells, chunk.instances, margin, tree, boxes]
    workspace.launch(fit_boxes, chunk.cell_count, arguments)
    return boxes


AT_SURFACE = wp.constant(Real(1.0e-14))
"""Fraction of a surface's size: closer to it than this, the normal is the surface's, not the direction from it."""
NAMES = wp.constant(7)
"""Feature names of a triangle of a hull: three corners, three sides, the face."""


@wp.struct
class Sample:
    """Closest point of a shape's surface to a point, in the shape's frame.

    found: 0 where the distance is at least the limit, and the rest is not set. outward: unit, from the surface
    outwards. distance: negative inside [m]. feature: of the shape, -1 none. face: triangle of a mesh or heightfield.
    """

    found: int
    distance: Real
    outward: Vec3
    point: Vec3
    feature: int
    face: int


@wp.struct
class PolygonSurfaces:
    """Convex meshes and triangle meshes. mesh: index in `meshes` of each shape's triangles, by row; -1 none.

    name: first of the feature names of each mesh in `names`, NAMES a triangle; -1 where they follow from its triangles.
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


@wp.func
def sample_primitive(shape_type: int, size: Vec3, point: Vec3) -> Sample:
    """Closest point of a plane or primitive to a point of its frame.

    Degenerate: see `nearest_on_primitive`; a point on the axis of a capsule leaves it along +x.
    """
    result = Sample()
    result.found = 1
    if shape_type == PLANE:
        result.distance = point[2]
        result.outward = Vec3(Real(0.0), Real(0.0), Real(1.0))
        result.point = Vec3(point[0], point[1], Real(0.0))
        result.feature = -1
        return result
    nearest = surface_point(shape_type, size, point)
    result.distance = nearest.distance
    result.outward = nearest.outward
    result.point = point - nearest.distance * nearest.outward
    result.feature = nearest.feature
    if shape_type == CAPSULE:
        result.feature = SIDE
        if wp.abs(point[2]) > size[1]:
            result.feature = END_HIGH if point[2] > Real(0.0) else END_LOW
    return result


@wp.func
def sample_from(point: Vec3, nearest: MeshPoint, outward: Vec3, normal: Vec3, inside: bool, size: Real) -> Sample:
    """The sample of a closest point. outward: normal sum of its feature. normal: unit, of its triangle."""
    result = Sample()
    result.found = 1
    result.point = nearest.point
    off = point - nearest.point
    length = wp.length(off)
    result.distance = wp.where(inside, -length, length)
    if length > AT_SURFACE * size:
        result.outward = off / length
        if inside:
            result.outward = -result.outward
        return result
    result.outward = normal
    if wp.length(outward) > Real(0.0):
        result.outward = wp.normalize(outward)
    return result


@wp.func
def name_of(surfaces: PolygonSurfaces, mesh: int, nearest: MeshPoint) -> int:
    """Feature number of a closest point."""
    if surfaces.name[mesh] < 0:
        return feature_of_mesh_point(surfaces.meshes, mesh, nearest.face, nearest.part)
    face = nearest.face - surfaces.meshes.arrays[0].header[mesh].first_face
    return surfaces.names[surfaces.name[mesh] + NAMES * face + nearest.part]


@wp.func(inline=False)
def sample_polygons(surfaces: PolygonSurfaces, row: int, half: Vec3, point: Vec3, limit: Real, radius: Real) -> Sample:
    """Closest point of a convex mesh or mesh to a point of its frame, if its signed distance is below `limit` [m].

    A point is inside a closed mesh by its winding number. An open mesh has two sides and no inside; one with a front
    has no sample behind it, unless a ball of `radius` around the point crosses it: that is behind its surface.
    half: half extents of the shape's box.
    """
    result = Sample()
    mesh = surfaces.mesh[row]
    closed = surfaces.meshes.arrays[0].header[mesh].is_closed
    nearest = nearest_mesh_point_within(surfaces.meshes, mesh, point, limit * limit)
    if nearest.face < 0:
        # Farther than the limit from the surface: only an inner point has a smaller signed distance.
        beyond = wp.max(wp.abs(point[0]) - half[0], wp.max(wp.abs(point[1]) - half[1], wp.abs(point[2]) - half[2]))
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
    result = sample_from(point, nearest, outward, surfaces.meshes.arrays[0].face_normal[nearest.face], inside, size)
    result.feature = name_of(surfaces, mesh, nearest)
    result.face = nearest.face
    return result


@wp.func(inline=False)
def sample_grid_surface(surfaces: GridSurfaces, row: int, half: Vec3, point: Vec3, limit: Real) -> Sample:
    """Closest point of a heightfield to a point of its frame, if its signed distance is below `limit` [m].

    Inside, the closest point of the surface and the walls: the base does not count (docs/adr/0026). Outside, of
    surface, walls and base; of equally close ones walls and base come first.
    """
    result = Sample()
    field = field_of(surfaces.fields, surfaces.field[row])
    number = int(-1)
    inside = is_inside(field, point)
    if inside:
        number = nearest_part(field, point).number
    else:
        least = limit
        for segment in range(4):
            foot = foot_on_side(field, segment, point)
            distance = wp.length(foot - point)
            if distance < least and height_over(field, foot) >= foot[2]:
                least = distance
                number = wall_under(field, segment, foot)
        if point[2] <= field.bottom:
            foot = Vec3(
                wp.clamp(point[0], -field.half_x, field.half_x),
                wp.clamp(point[1], -field.half_y, field.half_y),
                field.bottom,
            )
            distance = wp.length(foot - point)
            if distance < least:
                least = distance
                # The base is split by its diagonal; seen from below, its first triangle is above it.
                number = base_begins(field)
                if foot[0] * field.half_y > foot[1] * field.half_x:
                    number += 1
        square = least * least
        grown = Vec3(least, least, least)
        traversal = begin_traversal(field, point - grown, point + grown)
        while traversal.done == 0:
            if not is_under(traversal) or squared_distance_to_square(field, traversal, point) >= square:
                traversal = skip_square(traversal)
            elif traversal.level > 0:
                traversal = descend(traversal)
            else:
                for side in range(2):
                    here = 2 * (traversal.i * field.cols + traversal.j) + side
                    near = squared_distance_to_top(field, here, point)
                    if near < square:
                        square = near
                        number = here
                traversal = skip_square(traversal)
    if number < 0:
        return result
    nearest = closest_point_on_face(field, number, point)
    outward = outward_of_face(field, number, nearest.part)
    size = half[0] + half[1] + half[2]
    result = sample_from(point, nearest, outward, face_normal(field, number), inside, size)
    result.feature = feature_of_face(field, number, nearest.part)
    result.face = number
    return result


def upload_polygons(device_model: DeviceModel) -> PolygonSurfaces:
    """The triangles of a model's meshes, followed by those of its hulls."""
    model, device = device_model.model, device_model.device
    shapes = model.shapes
    hulls = [facets(ShapeType.CONVEX_MESH, hull.half_extents, hull=hull) for hull in model.hulls]
    names, first = [np.zeros(0, np.int32)], np.full(len(model.meshes) + len(hulls), -1, np.int32)
    size = 0
    for number, (hull, triangles) in enumerate(zip(model.hulls, hulls, strict=True)):
        assert triangles is not None
        first[len(model.meshes) + number] = size
        names.append(_hull_names(hull, triangles.face))
        size += names[-1].size
    surfaces = PolygonSurfaces()
    surfaces.meshes = upload_meshes([*model.meshes, *(each for each in hulls if each is not None)], device)
    mesh = np.where(shapes.hull >= 0, len(model.meshes) + shapes.hull, shapes.mesh).astype(np.int32)
    surfaces.mesh = _uploaded(mesh, device)
    surfaces.name = _uploaded(first, device)
    surfaces.names = _uploaded(np.concatenate([part.ravel() for part in names]), device)
    return surfaces


def surfaces_of(device_model: DeviceModel, types: np.ndarray) -> list[Any]:
    """The surfaces of primitives, polygons and heightfields on a device; None for those without any of the types."""
    primitives, polygons, grids = families(types)
    surfaces: list[Any] = [
        NoSurfaces() if primitives else None,
        upload_polygons(device_model) if polygons else None,
        None,
    ]
    if grids:
        surfaces[2] = GridSurfaces()
        surfaces[2].fields = upload_heightfields(device_model.model.heightfields, device_model.device)
        surfaces[2].field = device_model.rows.heightfield
    return surfaces


def _uploaded(values: np.ndarray, device: Any) -> wp.array:
    # Warp kernels take no array of length zero, so one unused element is appended.
    return wp.array(np.append(values, 0).astype(np.int32), dtype=wp.int32, device=device)


def _hull_names(hull: ConvexHull, triangles: np.ndarray) -> np.ndarray:
    """int32[T, NAMES]: feature names of the triangles of a hull's faces, each a fan around its first corner.

    A side that is no edge of the hull has the name of its face.
    """
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


def families(types: np.ndarray) -> tuple[bool, bool, bool]:
    """Whether shapes of these types are primitives, polygons and heightfields."""
    found = {int(each) for each in types}
    polygons = {int(ShapeType.CONVEX_MESH), int(ShapeType.MESH)}
    return bool(found - polygons - {int(ShapeType.HEIGHTFIELD)}), bool(found & polygons), ShapeType.HEIGHTFIELD in found
