"""Contacts of particles with shapes: candidates by a hierarchy of the shapes of each cell, then exact distances.

A particle and a shape that the filters let touch are in contact where the signed distance of the particle's centre from
the shape, less the shape's margin and the particle's radius, is below the gap. An edge or a triangle is in contact at
the point where that value is least, with the radius interpolated, if that point is in its interior (docs/adr/0098). The
rows are counted before they are written; their order is by cell, kind, particles and shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch
from collidecli.engine.contacts.compaction import offset_in_body
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.particles.cloud import (
    end_cells,
    upload_cloud,
    upload_positions,
)
from collidecli.engine.particles.elements import (
    MINIMIZE_GRIDS,
    MINIMIZE_HULLS,
    MINIMIZE_MESHES,
    MINIMIZE_PRIMITIVES,
    SAMPLE_GRIDS,
    SAMPLE_POLYGONS,
    SAMPLE_PRIMITIVES,
    NoSurfaces,
    SoftCells,
    SoftRecord,
    SoftScene,
    count_candidates,
    element_of,
    write_candidates,
)
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    build_tree,
    families,
    fit_boxes,
    fitted_boxes,
    upload_polygons,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.warp_internals import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.tables import SOFT_CONTACTS, ContactGroup, GroupRows


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
        scene: SoftScene,
        chunk: ChunkCells,
        part: SoftCells,
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
    """Contacts of the particles and elements of a model with its shapes. Any number of threads may share it.

    samplers: kernels of the shape types of the model, with their surfaces.
    """

    device_model: DeviceModel
    scene: SoftScene
    samplers: tuple[tuple[wp.Kernel, Any], ...]
    float_type: np.dtype

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        own = [fit_boxes, count_candidates, write_candidates, end_cells, COMPACT_SOFT[self.float_type]]
        return [*own, *(sampler for sampler, _ in self.samplers)]

    @property
    def group(self) -> ContactGroup:
        return SOFT_CONTACTS

    @property
    def width(self) -> int:
        """Vertices, edges and faces of the template that has most."""
        return self.scene.cloud.width

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the elements `begin` to `end` of each cell's, and the number of candidates.

        Raises ChunkTooLarge when the scratch memory is too small.
        """
        cells, held = upload_positions(self.device_model, batch, chunk, workspace)
        boxes = fitted_boxes(self.device_model, self.scene.tree, chunk, workspace)
        width = end - begin
        part = workspace.struct(SoftCells, begin=begin, width=width)
        shared = [self.scene, chunk.cells, chunk.instances, cells, boxes, part]
        threads = chunk.cell_count * width
        found = workspace.array("soft_found", threads, wp.int32)
        workspace.launch(count_candidates, threads, [*shared, found])
        if threads * self.scene.tree.width > INDEX_LIMIT:  # the scan's int32 could overflow
            total = int(workspace.host(found, threads).sum(dtype=np.int64))
            if total > INDEX_LIMIT:
                raise ChunkTooLarge(total * 8)
        candidates = workspace.scan(found, threads)
        pair = workspace.array("soft_pair", candidates, wp.vec2i)
        workspace.launch(write_candidates, threads if candidates else 0, [*shared, found, pair])
        record = workspace.array("soft_record", candidates, SoftRecord)
        kept = workspace.array("soft_kept", candidates, wp.int32)
        for sampler, surfaces in self.samplers:
            workspace.launch(sampler, candidates, [*shared, surfaces, pair, record, kept])
        ends = workspace.array("soft_end", candidates, wp.int32)
        total = workspace.scan(kept, candidates, ends)
        rows = self._compacted(chunk, part, width, (pair, record, kept, ends), candidates, total, workspace)
        del held  # all launches are complete
        return rows, candidates

    def _compacted(
        self, chunk: Chunk, part: SoftCells, width: int, found: tuple[wp.array, ...], candidates: int, total: int,
        workspace: Workspace,
    ) -> GroupRows:  # fmt: skip
        """The rows as exactly sized host arrays."""
        pair, record, kept, ends = found
        size = sum(column.width * column.dtype_for(self.float_type).itemsize for column in SOFT_CONTACTS.columns)
        workspace.check(total * size)
        columns, arrays = workspace.table("soft", _COLUMNS[self.float_type], total, _elements(self.float_type))
        workspace.launch(
            COMPACT_SOFT[self.float_type], candidates,
            [self.scene, chunk.cells, part, pair, record, kept, ends, columns],
        )  # fmt: skip
        counts = np.zeros(chunk.cell_count, np.int64)
        if candidates:
            cell_end = workspace.array("soft_cell_end", chunk.cell_count, wp.int32)
            arguments = [width, chunk.cell_count, candidates, pair, ends, cell_end]
            workspace.launch(end_cells, candidates, arguments)
            counts = np.diff(workspace.host(cell_end, chunk.cell_count), prepend=0).astype(np.int64)
        # Copies, since the next chunk reuses the scratch.
        copies = {name: workspace.copied(array, total) for name, array in arrays.items()}
        workspace.finish()
        return GroupRows(counts, copies)


def soft_contacts_of(
    device_model: DeviceModel, gap: float, with_elements: bool, poses: np.ndarray, float_type: np.dtype
) -> SoftContacts:
    """The contacts of a model's particles, and with `with_elements` of the edges and faces between them.

    gap: largest distance of a contact [m]. poses: float64[recorded worlds, B, 7] of one frame.
    """
    particles, shapes = device_model.model.particles, device_model.model.shapes
    touched = particles.class_table.any(axis=0)[particles.shape_class]
    scene = SoftScene()
    scene.rows, scene.layout, scene.margin = device_model.rows, device_model.layout, device_model.margins.margin
    scene.cloud, scene.tree, scene.gap = (
        upload_cloud(device_model, with_elements),
        build_tree(device_model, touched, poses),
        gap,
    )
    return SoftContacts(
        device_model,
        scene,
        _samplers(device_model, shapes.type[touched], with_elements and len(particles.triangle) > 0),
        np.dtype(float_type),
    )


def _samplers(
    device_model: DeviceModel, types: Sequence[int], with_elements: bool
) -> tuple[tuple[wp.Kernel, Any], ...]:
    """The kernels of the types, with their surfaces: of vertices, then of edges and faces."""
    primitives, polygons, grids = families(types)
    vertices: list[tuple[wp.Kernel, Any]] = []
    elements: list[tuple[wp.Kernel, Any]] = []
    if primitives:
        vertices.append((SAMPLE_PRIMITIVES, NoSurfaces()))
        elements.append((MINIMIZE_PRIMITIVES, NoSurfaces()))
    if polygons:
        surfaces = upload_polygons(device_model)
        vertices.append((SAMPLE_POLYGONS, surfaces))
        found = {int(each) for each in types}
        elements += [(MINIMIZE_HULLS, surfaces)] if int(ShapeType.CONVEX_MESH) in found else []
        elements += [(MINIMIZE_MESHES, surfaces)] if int(ShapeType.MESH) in found else []
    if grids:
        from collidecli.engine.geometry.heightfields import upload_heightfields

        surfaces = GridSurfaces()
        surfaces.fields = upload_heightfields(device_model.model.heightfields, device_model.device)
        surfaces.field = device_model.rows.heightfield
        vertices.append((SAMPLE_GRIDS, surfaces))
        elements.append((MINIMIZE_GRIDS, surfaces))
    return (*vertices, *elements) if with_elements else tuple(vertices)
