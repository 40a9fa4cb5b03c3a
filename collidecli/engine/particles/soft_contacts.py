"""Contacts of particles with shapes: candidates by a hierarchy of the shapes of each cell, then exact distances.

A particle and a shape that the filters let touch are in contact where the signed distance of the particle's centre from
the shape, less the shape's margin and the particle's radius, is below the gap. The rows are counted before they are
written; their order is by cell, particle and shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, Instances, PoseBatch
from collidecli.engine.contacts.compaction import count_cells, offset_in_body
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH, HEIGHTFIELD, MESH, PLANE
from collidecli.engine.particles.cloud import (
    Cloud,
    CloudCells,
    may_touch,
    position_in_cell,
    upload_cloud,
    upload_positions,
)
from collidecli.engine.particles.shape_tree import (
    NodeBoxes,
    ShapeTree,
    boxes_overlap,
    build_tree,
    fit_boxes,
    fitted_boxes,
)
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    PolygonSurfaces,
    Sample,
    families,
    sample_grid_surface,
    sample_polygons,
    sample_primitive,
    upload_polygons,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.recorded_launches import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.contact_groups import SOFT_CONTACTS, GroupRows


@wp.struct
class Part:
    """Particles `begin` to `begin` + `width` of each cell, in the order of `Cloud.row`."""

    begin: int
    width: int


@wp.struct
class SoftQuery:
    """The shapes and particles of a chunk. gap: largest distance of a contact [m]."""

    rows: ShapeRows
    layout: Layout
    chunk: ChunkCells
    instances: Instances
    margin: wp.array[Real]
    cloud: Cloud
    cells: CloudCells
    tree: ShapeTree
    boxes: NodeBoxes
    part: Part
    gap: Real


@wp.struct
class SoftRecord:
    """A contact before compaction: point and normal in the world. distance: +inf for none [m]."""

    point: Vec3
    normal: Vec3
    distance: Real
    feature: int


@wp.func
def particle_of(query: SoftQuery, cell: int, index: int) -> int:
    """Row of a particle of a cell; -1 for an index that its template does not use."""
    at = query.part.begin + index
    return query.cloud.row[query.chunk.cell_template[cell] * query.cloud.width + at]


@wp.func
def is_candidate(query: SoftQuery, cell: int, slot: int, particle: int, point: Vec3, reach: Real) -> bool:
    """Whether a shape whose box is near a particle may touch it; of a plane, whether its half space is near."""
    row = query.layout.slot_row[query.chunk.cell_template[cell] * query.layout.width + slot]
    if not may_touch(query.cloud, particle, row):
        return False
    if query.rows.type[row] == PLANE:
        pose = query.instances.pose[cell * query.layout.width + slot]
        return wp.transform_point(wp.transform_inverse(pose), point)[2] < reach + query.margin[row]
    return True


@kernel
def count_candidates(query: SoftQuery, found: wp.array[wp.int32]):
    """One thread per particle and cell: the number of shapes that it may touch."""
    thread = wp.tid()
    cell = thread // query.part.width
    particle = particle_of(query, cell, thread - cell * query.part.width)
    count = int(0)
    if particle >= 0:
        point = position_in_cell(query.cloud, query.cells, query.chunk, cell, particle)
        reach = query.cloud.radius[particle] + query.gap
        low = point - Vec3(reach, reach, reach)
        high = point + Vec3(reach, reach, reach)
        template = query.chunk.cell_template[cell]
        first = template * query.tree.width
        node = int(0)
        while node < query.tree.count[template]:
            at = cell * query.tree.width + node
            if boxes_overlap(low, high, query.boxes.lower[at], query.boxes.upper[at]):
                slot = query.tree.slot[first + node]
                if slot >= 0:
                    if is_candidate(query, cell, slot, particle, point, reach):
                        count += 1
                node += 1
            else:
                node = query.tree.skip[first + node]
    found[thread] = count


@kernel
def write_candidates(query: SoftQuery, end: wp.array[wp.int32], pair: wp.array[wp.vec2i]):
    """One thread per particle and cell: its candidates (thread, slot), ascending by slot.

    end: inclusive scan of their numbers.
    """
    thread = wp.tid()
    first_pair = int(0)
    if thread > 0:
        first_pair = end[thread - 1]
    if first_pair == end[thread]:
        return
    cell = thread // query.part.width
    particle = particle_of(query, cell, thread - cell * query.part.width)
    point = position_in_cell(query.cloud, query.cells, query.chunk, cell, particle)
    reach = query.cloud.radius[particle] + query.gap
    low = point - Vec3(reach, reach, reach)
    high = point + Vec3(reach, reach, reach)
    template = query.chunk.cell_template[cell]
    first = template * query.tree.width
    node = int(0)
    written = int(first_pair)
    while node < query.tree.count[template]:
        at = cell * query.tree.width + node
        if boxes_overlap(low, high, query.boxes.lower[at], query.boxes.upper[at]):
            slot = query.tree.slot[first + node]
            if slot >= 0:
                if is_candidate(query, cell, slot, particle, point, reach):
                    # Insertion sort.
                    place = int(written)
                    while place > first_pair and pair[wp.max(place - 1, 0)][1] > slot:
                        pair[place] = pair[place - 1]
                        place -= 1
                    pair[place] = wp.vec2i(thread, slot)
                    written += 1
            node += 1
        else:
            node = query.tree.skip[first + node]


@wp.func
def emit_sample(
    query: SoftQuery,
    sample: Sample,
    cell: int,
    slot: int,
    inflation: Real,
    index: int,
    record: wp.array[SoftRecord],
    kept: wp.array[wp.int32],
):
    """Writes a candidate's record, and 1 to `kept` where its distance is below the gap. inflation: margin and
    radius."""
    distance = sample.distance - inflation
    if sample.found == 0 or distance >= query.gap:
        kept[index] = 0
        return
    pose = query.instances.pose[cell * query.layout.width + slot]
    contact = SoftRecord()
    contact.point = wp.transform_point(pose, sample.point)
    contact.normal = wp.transform_vector(pose, sample.outward)
    contact.distance = distance
    contact.feature = sample.feature
    record[index] = contact
    kept[index] = 1


def _kernel_of(name: str, surfaces: Any, sample_of: Any, low_type: int, high_type: int) -> wp.Kernel:
    """The kernel of the shapes of types low_type to high_type."""

    def sample_candidates(
        query: SoftQuery,
        surfaces: surfaces,
        pair: wp.array[wp.vec2i],
        record: wp.array[SoftRecord],
        kept: wp.array[wp.int32],
    ):
        """One thread per candidate: its contact, if there is one."""
        index = wp.tid()
        thread = pair[index][0]
        slot = pair[index][1]
        cell = thread // query.part.width
        row = query.layout.slot_row[query.chunk.cell_template[cell] * query.layout.width + slot]
        shape_type = query.rows.type[row]
        if shape_type < wp.static(low_type) or shape_type > wp.static(high_type):
            return
        particle = particle_of(query, cell, thread - cell * query.part.width)
        pose = query.instances.pose[cell * query.layout.width + slot]
        point = wp.transform_point(
            wp.transform_inverse(pose), position_in_cell(query.cloud, query.cells, query.chunk, cell, particle)
        )
        radius = query.cloud.radius[particle]
        inflation = query.margin[row] + radius
        sample = sample_of(query.rows, surfaces, row, point, inflation + query.gap, radius)
        emit_sample(query, sample, cell, slot, inflation, index, record, kept)

    sample_candidates.__name__ = sample_candidates.__qualname__ = name
    return kernel(sample_candidates)


@wp.struct
class NoSurfaces:
    """Primitives have no arrays of their own."""

    unused: int


@wp.func
def _of_primitive(rows: ShapeRows, surfaces: NoSurfaces, row: int, point: Vec3, limit: Real, radius: Real) -> Sample:
    return sample_primitive(rows.type[row], rows.size[row], point)


@wp.func
def _of_polygons(
    rows: ShapeRows, surfaces: PolygonSurfaces, row: int, point: Vec3, limit: Real, radius: Real
) -> Sample:
    return sample_polygons(surfaces, row, rows.size[row], point, limit, radius)


@wp.func
def _of_grid(rows: ShapeRows, surfaces: GridSurfaces, row: int, point: Vec3, limit: Real, radius: Real) -> Sample:
    return sample_grid_surface(surfaces, row, rows.size[row], point, limit)


SAMPLE_PRIMITIVES = _kernel_of("sample_primitives", NoSurfaces, _of_primitive, int(PLANE), int(CONVEX_MESH) - 1)
SAMPLE_POLYGONS = _kernel_of("sample_polygon_shapes", PolygonSurfaces, _of_polygons, int(CONVEX_MESH), int(MESH))
SAMPLE_GRIDS = _kernel_of("sample_heightfields", GridSurfaces, _of_grid, int(HEIGHTFIELD), int(HEIGHTFIELD))


@wp.struct
class SoftColumns32:
    """Columns of `SOFT_CONTACTS`, points in float32."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec3i]
    barycentric: wp.array[wp.vec3f]
    shape: wp.array[wp.int32]
    feature: wp.array[wp.int32]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point_body: wp.array[wp.vec3f]
    point_world: wp.array[wp.vec3f]


@wp.struct
class SoftColumns64:
    """Columns of `SOFT_CONTACTS`, points in float64."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec3i]
    barycentric: wp.array[wp.vec3f]
    shape: wp.array[wp.int32]
    feature: wp.array[wp.int32]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point_body: wp.array[wp.vec3f]
    point_world: wp.array[wp.vec3d]


def _compaction(columns_type: Any, point_type: Any) -> wp.Kernel:
    @kernel
    def compact_soft(
        query: SoftQuery,
        pair: wp.array[wp.vec2i],
        record: wp.array[SoftRecord],
        kept: wp.array[wp.int32],
        end: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per candidate: its contact at its offset; the addition of 0 turns -0 into 0."""
        index = wp.tid()
        if kept[index] == 0:
            return
        slot = end[index] - 1
        thread = pair[index][0]
        cell = thread // query.part.width
        particle = particle_of(query, cell, thread - cell * query.part.width)
        row = query.layout.slot_row[query.chunk.cell_template[cell] * query.layout.width + pair[index][1]]
        contact = record[index]
        columns.kind[slot] = wp.uint8(0)
        columns.indices[slot] = wp.vec3i(particle, -1, -1)
        columns.barycentric[slot] = wp.vec3f(wp.float32(1.0), wp.float32(0.0), wp.float32(0.0))
        columns.shape[slot] = row
        columns.feature[slot] = contact.feature
        columns.distance[slot] = wp.float32(contact.distance) + wp.float32(0.0)
        columns.normal[slot] = wp.vec3f(contact.normal) + wp.vec3f()
        columns.point_body[slot] = offset_in_body(query.rows, query.chunk, cell, row, contact.point) + wp.vec3f()
        columns.point_world[slot] = point_type(contact.point) + point_type()

    return compact_soft


_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
COMPACT_SOFT = {
    _FLOAT32: _compaction(SoftColumns32, wp.vec3f),
    _FLOAT64: _compaction(SoftColumns64, wp.vec3d),
}
_COLUMNS = {_FLOAT32: SoftColumns32, _FLOAT64: SoftColumns64}
_VECTORS = {_FLOAT32: wp.vec3f, _FLOAT64: wp.vec3d, np.dtype(np.int32): wp.vec3i}


@cache
def _elements(float_type: np.dtype) -> dict[str, Any]:
    """Warp element type of each column."""
    types = {column.name: (column.dtype_for(float_type), column.width) for column in SOFT_CONTACTS.columns}
    return {
        name: wp.dtype_from_numpy(dtype) if width == 1 else _VECTORS[dtype] for name, (dtype, width) in types.items()
    }


@dataclass(frozen=True)
class SoftContacts:
    """Contacts of the particles of a model with its shapes. It has no scratch memory: any number of threads may share it.

    gap: largest distance of a contact [m]. samplers: kernels of the shape types of the model, with their surfaces.
    """

    device_model: DeviceModel
    cloud: Cloud
    tree: ShapeTree
    gap: float
    samplers: tuple[tuple[wp.Kernel, Any], ...]
    float_type: np.dtype

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        own = [fit_boxes, count_candidates, write_candidates, count_cells, COMPACT_SOFT[self.float_type]]
        return [*own, *(sampler for sampler, _ in self.samplers)]

    def collide(self, chunk: Chunk, batch: PoseBatch, workspace: Workspace) -> tuple[GroupRows, int]:
        """The rows of all cells of a chunk, and the number of candidates.

        Raises ChunkTooLarge when the scratch memory is too small for the chunk.
        """
        return self.collide_part(chunk, batch, workspace, 0, self.cloud.width)

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the particles `begin` to `end` of each cell's, and the number of candidates."""
        query = self._query(chunk, batch, workspace, begin, end)
        threads = chunk.cell_count * (end - begin)
        found = workspace.array("soft_found", threads, wp.int32)
        workspace.launch(count_candidates, threads, [query, found])
        if threads * self.tree.width > INDEX_LIMIT:  # the scan's int32 could overflow
            total = int(workspace.host(found, threads).sum(dtype=np.int64))
            if total > INDEX_LIMIT:
                raise ChunkTooLarge(total * 8)
        candidates = workspace.scan(found, threads)
        pair = workspace.array("soft_pair", candidates, wp.vec2i)
        workspace.launch(write_candidates, threads if candidates else 0, [query, found, pair])
        record = workspace.array("soft_record", candidates, SoftRecord)
        kept = workspace.array("soft_kept", candidates, wp.int32)
        for sampler, surfaces in self.samplers:
            workspace.launch(sampler, candidates, [query, surfaces, pair, record, kept])
        ends = workspace.array("soft_end", candidates, wp.int32)
        total = workspace.scan(kept, candidates, ends)
        return self._compacted(chunk, query, (pair, record, kept, ends), candidates, total, workspace), candidates

    def _query(self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int) -> SoftQuery:
        cells = upload_positions(self.device_model, batch, chunk, workspace)
        boxes = fitted_boxes(self.device_model, self.tree, chunk, workspace)
        query = SoftQuery()
        query.rows, query.layout = self.device_model.rows, self.device_model.layout
        query.chunk, query.instances, query.margin = chunk.cells, chunk.instances, self.device_model.margins.margin
        query.cloud, query.cells, query.tree, query.boxes = self.cloud, cells, self.tree, boxes
        query.part.begin, query.part.width = begin, end - begin
        query.gap = self.gap
        return query

    def _compacted(
        self, chunk: Chunk, query: SoftQuery, found: tuple[wp.array, ...], candidates: int, total: int,
        workspace: Workspace,
    ) -> GroupRows:  # fmt: skip
        """The rows as exactly sized host arrays."""
        pair, record, kept, ends = found
        size = sum(column.width * column.dtype_for(self.float_type).itemsize for column in SOFT_CONTACTS.columns)
        workspace.check(total * size)
        columns, arrays = workspace.table("soft", _COLUMNS[self.float_type], total, _elements(self.float_type))
        workspace.launch(COMPACT_SOFT[self.float_type], candidates, [query, pair, record, kept, ends, columns])
        counts = np.zeros(chunk.cell_count, np.int64)
        if candidates:
            cell_end = workspace.array("soft_cell_end", chunk.cell_count, wp.int32)
            arguments = [query.part.width, chunk.cell_count, candidates, pair, ends, cell_end]
            workspace.launch(count_cells, candidates, arguments)
            counts = np.diff(workspace.host(cell_end, chunk.cell_count), prepend=0).astype(np.int64)
        # Copies, since the next chunk reuses the scratch.
        copies = {name: workspace.copied(array, total) for name, array in arrays.items()}
        workspace.finish()
        return GroupRows(counts, copies)


def soft_contacts_of(
    device_model: DeviceModel, gap: float, poses: np.ndarray, float_type: np.dtype
) -> SoftContacts | None:
    """The contacts of a model's particles; None if no particle may touch a shape.

    gap: largest distance of a contact [m]. poses: float64[recorded worlds, B, 7] of one frame.
    """
    particles, shapes = device_model.model.particles, device_model.model.shapes
    used = np.unique(particles.object_class)
    touched = particles.class_table[used].any(axis=0)[particles.shape_class] if len(shapes) else np.zeros(0, bool)
    if not particles.active.any() or not touched.any():
        return None
    return SoftContacts(
        device_model,
        upload_cloud(device_model),
        build_tree(device_model, touched, poses),
        gap,
        _samplers(device_model, shapes.type[touched]),
        np.dtype(float_type),
    )


def _samplers(device_model: DeviceModel, types: Sequence[int]) -> tuple[tuple[wp.Kernel, Any], ...]:
    primitives, polygons, grids = families(types)
    samplers: list[tuple[wp.Kernel, Any]] = []
    if primitives:
        samplers.append((SAMPLE_PRIMITIVES, NoSurfaces()))
    if polygons:
        samplers.append((SAMPLE_POLYGONS, upload_polygons(device_model)))
    if grids:
        from collidecli.engine.geometry.heightfields import upload_heightfields

        surfaces = GridSurfaces()
        surfaces.fields = upload_heightfields(device_model.model.heightfields, device_model.device)
        surfaces.field = device_model.rows.heightfield
        samplers.append((SAMPLE_GRIDS, surfaces))
    return tuple(samplers)
