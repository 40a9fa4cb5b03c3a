"""Colliders of heightfields with meshes, planes and heightfields.

A mesh collides with a heightfield by the features of each against the surface of the other, as two
meshes do. A plane and a heightfield, and two heightfields, collide as the closed meshes of the
solids; features are those of the heightfield, see `scene.heightfield.solid_features`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.contact_record import Candidates, ContactRecord
from collidecli.engine.device_model import DeviceModel, ShapeRows
from collidecli.engine.geometry.bounds import ShapeBounds, box_intersects, box_of_shape
from collidecli.engine.geometry.heightfields import (
    Field,
    Heightfields,
    field_of,
    highest_of_cell,
    named_triangle,
)
from collidecli.engine.geometry.mesh_clearance import clearance_at, measure_clearance, measure_grid
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.real import HEIGHTFIELD, Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import (
    Bucket,
    Collider,
    ColliderBatch,
    ContactOutput,
    candidate_of,
)
from collidecli.engine.narrowphase.contact_merging import merge_surfaces
from collidecli.engine.narrowphase.sub_pairs import (
    NEAR,
    ContactRows,
    SubPairKernels,
    SubPairList,
    SubPairs,
    append_sub_pair,
    overlap_kernel,
    part_of_side,
    search_kernel,
)
from collidecli.engine.narrowphase.touch_sub_pairs import touch_collider
from collidecli.engine.narrowphase.triangles import convex_colliders, mesh_mesh
from collidecli.engine.narrowphase.triangles.heightfield_near_segment import wall_range
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    cell_between,
    skip_square,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    HeightfieldPair,
    bits_of_face,
)
from collidecli.engine.narrowphase.triangles.mesh_least_translation import measure_regions
from collidecli.engine.narrowphase.triangles.mesh_mesh import (
    SPARE_ROWS,
    feature_kernel,
    has_candidate_feature,
    surface_pair_of,
)
from collidecli.engine.narrowphase.triangles.mesh_pair_context import touch_of_pair
from collidecli.engine.narrowphase.triangles.surface import has_one_side
from collidecli.engine.narrowphase.triangles.touching_surfaces import surfaces_kernel
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.warp_internals import struct_of
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.heightfield_solid import solid_features, solid_mesh
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh


@wp.struct
class Surfaces:
    """Every mesh of a model, with its clearance grid, and every heightfield."""

    meshes: Meshes
    heightfields: Heightfields


@wp.struct
class MeshOverHeightfield:
    """A pair's mesh and heightfield, and the bounds of each in the frame of the other.

    to_heightfield, to_mesh: pose of the mesh in the heightfield's frame, and its inverse.
    of_heightfield: bounds of the heightfield in the mesh's frame, and the mesh's BVH. of_mesh:
    bounds of the mesh in the heightfield's frame. grown: greatest distance from the other surface
    at which a triangle has contacts [m].
    """

    mesh: int
    to_heightfield: Pose
    to_mesh: Pose
    of_heightfield: ShapeBounds
    of_mesh: ShapeBounds
    grown: Real


@wp.func
def bounds_of_pair(rows: ShapeRows, meshes: Meshes, query: Query) -> MeshOverHeightfield:
    """The bounds of a pair."""
    bounds = MeshOverHeightfield()
    bounds.mesh = rows.mesh[query.row_a]
    bounds.to_mesh = query.pose_b_to_a
    bounds.to_heightfield = wp.transform_inverse(query.pose_b_to_a)
    bounds.grown = wp.max(query.max_separation, Real(0.0)) + NEAR * touch_of_pair(rows, query)
    bounds.of_heightfield = box_of_shape(
        rows.type[query.row_b], rows.size[query.row_b], bounds.to_mesh, bounds.grown
    )
    bounds.of_mesh = box_of_shape(
        rows.type[query.row_a], rows.size[query.row_a], bounds.to_heightfield, bounds.grown
    )
    bounds.of_heightfield.first = meshes.arrays[0].header[bounds.mesh].first_node
    bounds.of_heightfield.end = meshes.arrays[0].header[bounds.mesh].end_node
    return bounds


@wp.func(inline=False)
def is_off_heightfield(field: Field, low: Vec3, high: Vec3) -> bool:
    """Whether a box is above the surface under it, beside the rectangle, or below the base."""
    if high[2] < field.bottom:
        return True
    traversal = cell_between(field, begin_traversal(field, low, high), low[2], Real(wp.inf))
    while traversal.done == 0:
        if highest_of_cell(field, traversal.i, traversal.j) >= low[2]:
            return False
        traversal = cell_between(field, skip_square(traversal), low[2], Real(wp.inf))
    return True


@wp.func
def node_is_off(bounds: MeshOverHeightfield, meshes: Meshes, field: Field, node: int) -> bool:
    """Whether a node of the mesh's BVH, grown, does not intersect the solid."""
    half = Real(0.5) * (meshes.arrays[0].upper[node] - meshes.arrays[0].lower[node])
    middle = wp.transform_point(bounds.to_heightfield, meshes.arrays[0].lower[node] + half)
    turn = wp.quat_to_matrix(wp.transform_get_rotation(bounds.to_heightfield))
    extent = Vec3(bounds.grown, bounds.grown, bounds.grown)
    for axis in range(3):
        for k in range(3):
            extent[axis] = extent[axis] + wp.abs(turn[axis, k]) * half[k]
    return is_off_heightfield(field, middle - extent, middle + extent)


@wp.func(inline=False)
def face_has_candidate_feature(
    bounds: MeshOverHeightfield, meshes: Meshes, field: Field, number: int
) -> bool:
    """Whether a triangle of the heightfield has candidate features and may be within `grown` of the
    mesh."""
    shape = named_triangle(field, number)
    lower = wp.min(shape.p, wp.min(shape.q, shape.r))
    upper = wp.max(shape.p, wp.max(shape.q, shape.r))
    for axis in range(3):
        if lower[axis] > bounds.of_mesh.upper[axis] or upper[axis] < bounds.of_mesh.lower[axis]:
            return False
    middle = wp.transform_point(bounds.to_mesh, Real(0.5) * (lower + upper))
    if (
        clearance_at(meshes, bounds.mesh, middle).free - Real(0.5) * wp.length(upper - lower)
        >= bounds.grown
    ):
        return False
    return has_candidate_feature(bits_of_face(field, number, True))


@wp.func
def traversal_of_part(
    bounds: MeshOverHeightfield, field: Field, part: int, parts: int
) -> Traversal:
    """The traversal of the rows of cells under the mesh in part `part` of `parts`; of none if
    `parts` is 0."""
    traversal = begin_traversal(field, bounds.of_mesh.lower, bounds.of_mesh.upper)
    length = (traversal.last_row - traversal.first_row) / wp.max(parts, 1) + 1
    traversal.first_row += length * part
    if traversal.first_row > traversal.last_row or parts == 0:
        traversal.done = 1
    traversal.last_row = wp.min(traversal.last_row, traversal.first_row + length - 1)
    return traversal


@wp.func
def append_face(
    bounds: MeshOverHeightfield,
    meshes: Meshes,
    field: Field,
    number: int,
    out: SubPairList,
    count: int,
) -> int:
    """Appends a triangle of the heightfield that has candidate features; returns the number of
    sub-pairs."""
    if face_has_candidate_feature(bounds, meshes, field, number):
        return append_sub_pair(out, count, ~number)
    return count


@wp.func
def faces_of_heightfield(
    bounds: MeshOverHeightfield,
    meshes: Meshes,
    field: Field,
    part: int,
    parts: int,
    out: SubPairList,
    before: int,
) -> int:
    """Appends the heightfield's triangles with candidate features in part `part`; returns the
    number of sub-pairs."""
    count = before
    low = bounds.of_mesh.lower[2]
    high = bounds.of_mesh.upper[2]
    own = part_of_side(part, parts, 1)
    traversal = cell_between(field, traversal_of_part(bounds, field, own[0], own[1]), low, high)
    while traversal.done == 0:
        first = 2 * (traversal.i * field.cols + traversal.j)
        for upper in range(2):
            count = append_face(bounds, meshes, field, first + upper, out, count)
        traversal = cell_between(field, skip_square(traversal), low, high)
    if part == parts - 1:
        for side in range(4):
            numbers = wall_range(field, side, bounds.of_mesh.lower, bounds.of_mesh.upper)
            for number in range(numbers[0], numbers[1]):
                count = append_face(bounds, meshes, field, number, out, count)
    return count


@wp.func
def find_sub_pairs(
    rows: ShapeRows, surfaces: Surfaces, query: Query, part: int, parts: int, out: SubPairList
) -> int:
    """Appends the mesh's triangles with candidate features in a part of its BVH, then ~ the
    heightfield's in a part."""
    meshes = surfaces.meshes
    field = field_of(surfaces.heightfields, rows.heightfield[query.row_b])
    bounds = bounds_of_pair(rows, meshes, query)
    own = part_of_side(part, parts, 0)
    length = (bounds.of_heightfield.end - bounds.of_heightfield.first) / wp.max(own[1], 1) + 1
    node = bounds.of_heightfield.first + length * own[0]
    stop = wp.min(bounds.of_heightfield.end, node + length * wp.min(own[1], 1))
    count = int(0)
    while node < stop:
        if not box_intersects(bounds.of_heightfield, meshes, node) or node_is_off(
            bounds, meshes, field, node
        ):
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        if face >= 0 and has_candidate_feature(meshes.arrays[0].owned[face]):
            count = append_sub_pair(out, count, face)
        node += 1
    count = faces_of_heightfield(bounds, meshes, field, part, parts, out, count)
    if part == parts - 1 and (
        count > 0 or parts > 1 or has_one_side(meshes, rows.mesh[query.row_a])
    ):
        count = append_sub_pair(out, count, SPARE_ROWS)
    return count


@wp.func
def source_of_pair(rows: ShapeRows, surfaces: Surfaces, query: Query) -> HeightfieldPair:
    """The triangle source of a mesh, the pair's a, and a heightfield, its b."""
    heightfield_pair = HeightfieldPair()
    heightfield_pair.meshes = surfaces.meshes
    heightfield_pair.field = field_of(surfaces.heightfields, rows.heightfield[query.row_b])
    middle = wp.transform_get_translation(wp.transform_inverse(query.pose_b_to_a))
    if middle[2] < heightfield_pair.field.bottom:
        heightfield_pair.beneath = 1
        if (
            wp.abs(middle[0]) <= heightfield_pair.field.half_x
            and wp.abs(middle[1]) <= heightfield_pair.field.half_y
        ):
            heightfield_pair.under = 1
    return heightfield_pair


@wp.func
def measure_pair(rows: ShapeRows, surfaces: Surfaces, query: Query, out: ContactRows) -> int:
    """Replaces the contacts of an overlapping mesh and heightfield by those of their regions, see
    `measure_regions`."""
    heightfield_pair = source_of_pair(rows, surfaces, query)
    pair = surface_pair_of(rows, heightfield_pair, query)
    if heightfield_pair.beneath == 0:
        # The mesh does not exit through the base: the heightfield must not move up.
        pair.blocked = wp.transform_vector(query.pose_b_to_a, Vec3(Real(0.0), Real(0.0), Real(1.0)))
    return measure_regions(heightfield_pair, pair, out)


MESH_HEIGHTFIELD = SubPairKernels(
    "mesh_heightfield",
    "meshes_and_heightfields",
    search_kernel(Surfaces, find_sub_pairs),
    merge_surfaces,
    parts_on_cuda=32,
    others=(measure_grid,),
    overlap=overlap_kernel(Surfaces, measure_pair),
)
COLLIDER = Collider(
    "mesh_heightfield",
    0,
    feature_kernel(Surfaces, source_of_pair),
    may_be_inexact=True,
    sub_pair_kernels=MESH_HEIGHTFIELD,
)


@dataclass(frozen=True)
class Solids:
    """The meshes of a model's heightfields.

    rows: the model's, with the index of each heightfield's mesh in `mesh`. features, first: see
    `solid_features`; the start of each heightfield's in `features`.
    """

    shapes: tuple[TriangleMesh, ...]
    rows: ShapeRows
    meshes: Meshes
    features: wp.array
    first: wp.array


def upload_solids(device_model: DeviceModel) -> Solids:
    """Device arrays of the meshes of every heightfield."""
    model = device_model.model
    device = device_model.device
    shapes = tuple(solid_mesh(field) for field in model.heightfields)
    rows = ShapeRows()
    for name in struct_of(ShapeRows).vars:
        setattr(rows, name, getattr(device_model.rows, name))
    rows.mesh = device_model.rows.heightfield
    names = [
        solid_features(field, mesh) for field, mesh in zip(model.heightfields, shapes, strict=True)
    ]
    first = np.cumsum([0, *(len(field_names) for field_names in names)])
    return Solids(
        shapes,
        rows,
        upload_meshes(shapes, device),
        wp.array(np.concatenate(names), dtype=wp.int32, device=device),
        wp.array(first.astype(np.int32), dtype=wp.int32, device=device),
    )


def measured(solids: Solids, device: wp.Device) -> Solids:
    """`solids` with the clearance of their meshes; its kernel must be compiled."""
    return replace(solids, meshes=measure_clearance(solids.meshes, solids.shapes, device))


@wp.func
def solid_feature(
    rows: ShapeRows, row: int, feature: int, features: wp.array[wp.int32], first: wp.array[wp.int32]
) -> int:
    """The heightfield's id of a feature of the mesh of a row; -1 and other shapes' ids are
    unchanged."""
    if rows.type[row] != HEIGHTFIELD or feature < 0:
        return feature
    return features[first[rows.heightfield[row]] + feature]


@kernel
def name_solid_features(
    rows: ShapeRows,
    candidates: Candidates,
    bucket: Bucket,
    features: wp.array[wp.int32],
    first: wp.array[wp.int32],
    contact: wp.array[ContactRecord],
):
    """Replaces feature ids of meshes by those of their heightfields; one thread per candidate of a
    batch."""
    candidate = candidate_of(bucket, wp.tid())
    if candidate < 0:
        return
    pair = candidates.row[candidate]
    row_a = pair[0]
    row_b = pair[1]
    if rows.type[row_a] > rows.type[row_b]:
        row_a = pair[1]
        row_b = pair[0]
    for i in range(candidates.found[candidate]):
        slot = candidates.first[candidate] + i * candidates.stride[candidate]
        record = contact[slot]
        record.feature_a = solid_feature(rows, row_a, record.feature_a, features, first)
        record.feature_b = solid_feature(rows, row_b, record.feature_b, features, first)
        contact[slot] = record


@dataclass(frozen=True)
class SolidKernels(SubPairKernels):
    """Kernels of pairs with meshes, for the meshes of heightfields."""

    @property
    def kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition to the collider's own."""
        return [*super().kernels, name_solid_features]

    def collide(
        self, batch: ColliderBatch, sub_pairs: SubPairs, out: ContactOutput, workspace: Workspace
    ) -> None:
        """Emits the contacts of a batch's sub-pairs, merged by candidate, with the features of
        heightfields."""
        solids: Solids = batch.surfaces[self.surfaces]
        super().collide(batch, sub_pairs, out, workspace)
        rows, _, _, candidates = batch.shared
        arguments = [rows, candidates, batch.bucket(workspace), solids.features, solids.first]
        workspace.launch(name_solid_features, batch.size, [*arguments, out.contact])

    def bound(self, batch: ColliderBatch) -> ColliderBatch:
        """The batch with the heightfields' meshes."""
        solids: Solids = batch.surfaces[self.surfaces]
        shared: list[Any] = [solids.rows, *batch.shared[1:]]
        return replace(batch, shared=shared, surfaces={self.surfaces: solids.meshes})


def _of_solids(name: str, surfaces: str, of_meshes: Collider) -> Collider:
    """The collider of pairs with meshes, for the meshes of heightfields."""
    kernels = of_meshes.sub_pair_kernels
    assert isinstance(kernels, SubPairKernels)
    values = {item.name: getattr(kernels, item.name) for item in fields(SubPairKernels)}
    return replace(
        of_meshes,
        name=name,
        sub_pair_kernels=SolidKernels(**{**values, "name": name, "surfaces": surfaces}),
    )


ON_PLANE = _of_solids("plane_heightfield", "solids", convex_colliders.on_mesh(ShapeType.PLANE))
HEIGHTFIELDS = _of_solids("heightfields", "measured_solids", mesh_mesh.COLLIDER)


def collider_for(type_a: ShapeType) -> Collider:
    """The collider of planes, or of heightfields, with heightfields."""
    return ON_PLANE if type_a == ShapeType.PLANE else HEIGHTFIELDS


def touches_mesh(type_a: ShapeType) -> Collider:
    """The collider of method "touch" of two meshes."""
    return touch_collider(mesh_mesh.COLLIDER, surfaces_kernel(), reads_list=False)


def touches_heightfield(type_a: ShapeType) -> Collider:
    """The collider of method "touch" of planes, which have closed forms, or heightfields, with
    heightfields."""
    full = collider_for(type_a)
    if type_a == ShapeType.PLANE:
        return full
    return touch_collider(full, surfaces_kernel(), reads_list=False)
