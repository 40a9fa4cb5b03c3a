"""Contacts of deformable objects with themselves and each other: vertices with triangles, and edges with edges.

A vertex and a triangle, or two edges, of one world are in contact where their distance is below the limit and

- they have no particle in common, and none of one is within a number of edges of the other (rings);
- they are of two objects, or their distance at rest is not below the rest distance.

The rows are counted before they are written; their order is by cell, kind and particles.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.particles.cloud import CloudCells, upload_cloud, upload_positions
from collidecli.engine.particles.elements import upload_elements
from collidecli.engine.particles.self_queries import (
    VERTEX_FACE,
    SelfCells,
    SelfScene,
    count_self_contacts,
    element_of,
    fit_element_boxes,
    pair_in_cell,
    partner_of,
    write_self_contacts,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.recorded_launches import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.contact_groups import SELF_CONTACTS, ContactGroup, GroupRows


@wp.struct
class SelfColumns32:
    """Columns of `SELF_CONTACTS`, points in float32."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec4i]
    barycentric: wp.array[wp.vec4f]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point0: wp.array[wp.vec3f]
    point1: wp.array[wp.vec3f]


@wp.struct
class SelfColumns64:
    """Columns of `SELF_CONTACTS`, points in float64."""

    kind: wp.array[wp.uint8]
    indices: wp.array[wp.vec4i]
    barycentric: wp.array[wp.vec4f]
    distance: wp.array[wp.float32]
    normal: wp.array[wp.vec3f]
    point0: wp.array[wp.vec3d]
    point1: wp.array[wp.vec3d]


def _compaction(columns_type: Any, point_type: Any) -> wp.Kernel:
    @kernel
    def write_self_columns(
        scene: SelfScene,
        chunk: ChunkCells,
        cells: CloudCells,
        part: SelfCells,
        pair: wp.array[wp.vec2i],
        columns: columns_type,
    ):
        """One thread per contact; the addition of 0 turns -0 into 0."""
        row = wp.tid()
        thread = pair[row][0]
        element = element_of(scene, chunk, cells, part, thread)
        partner = partner_of(scene.elements, element, pair[row][1])
        found = pair_in_cell(scene, chunk, cells, thread // part.width, element, partner)
        columns.kind[row] = wp.uint8(element.kind)
        if element.kind == VERTEX_FACE:
            columns.indices[row] = wp.vec4i(element.p, partner[0], partner[1], partner[2])
        else:
            columns.indices[row] = wp.vec4i(element.p, element.q, partner[0], partner[1])
        columns.barycentric[row] = wp.vec4f(found.weights) + wp.vec4f()
        columns.distance[row] = wp.float32(wp.sqrt(found.square))
        columns.normal[row] = wp.vec3f(found.normal) + wp.vec3f()
        columns.point0[row] = point_type(found.point0) + point_type()
        columns.point1[row] = point_type(found.point1) + point_type()

    return write_self_columns


_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
WRITE_COLUMNS = {
    _FLOAT32: _compaction(SelfColumns32, wp.vec3f),
    _FLOAT64: _compaction(SelfColumns64, wp.vec3d),
}
_COLUMNS = {_FLOAT32: SelfColumns32, _FLOAT64: SelfColumns64}
_VECTORS = {
    (_FLOAT32, 3): wp.vec3f, (_FLOAT64, 3): wp.vec3d, (np.dtype(np.int32), 4): wp.vec4i, (_FLOAT32, 4): wp.vec4f
}  # fmt: skip


@cache
def _elements(float_type: np.dtype) -> dict[str, Any]:
    """Warp element type of each column."""
    types = {column.name: (column.dtype_for(float_type), column.width) for column in SELF_CONTACTS.columns}
    return {
        name: wp.dtype_from_numpy(dtype) if width == 1 else _VECTORS[dtype, width]
        for name, (dtype, width) in types.items()
    }


@dataclass(frozen=True)
class SelfContacts:
    """Contacts of a model's deformable objects with themselves and each other. Any number of threads may share it.

    element_width: vertices and edges of the template with most.
    """

    device_model: DeviceModel
    scene: SelfScene
    element_width: int
    node_width: int
    float_type: np.dtype

    @property
    def group(self) -> ContactGroup:
        return SELF_CONTACTS

    @property
    def width(self) -> int:
        """Vertices and edges of the template with most."""
        return self.element_width

    def kernels(self) -> list[wp.Kernel]:
        """All kernels, by increasing compile time."""
        own = [fit_element_boxes, WRITE_COLUMNS[self.float_type]]
        return [*own, count_self_contacts, write_self_contacts]

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the vertices and edges `begin` to `end` of each cell's, and their number.

        Raises ChunkTooLarge when the scratch memory is too small.
        """
        cells, held = upload_positions(self.device_model, batch, chunk, workspace)
        boxes = chunk.cell_count * self.node_width
        lower, upper = (workspace.array(f"element_{name}", boxes, wp.vec3f) for name in ("lower", "upper"))
        width = end - begin
        threads = chunk.cell_count * width
        found = workspace.array("self_found", threads, wp.int32)
        part = workspace.struct(
            SelfCells, begin=begin, width=width, cell_count=chunk.cell_count, lower=lower, upper=upper
        )
        shared = [self.scene, chunk.cells, cells, part]
        workspace.launch(fit_element_boxes, 2 * chunk.cell_count, shared)
        workspace.launch(count_self_contacts, threads, [*shared, found])
        if threads * self.node_width > INDEX_LIMIT:  # the scan's int32 could overflow
            total = int(workspace.host(found, threads).sum(dtype=np.int64))
            if total > INDEX_LIMIT:
                raise ChunkTooLarge(total * 8)
        total = workspace.scan(found, threads)
        size = sum(column.width * column.dtype_for(self.float_type).itemsize for column in SELF_CONTACTS.columns)
        workspace.check(total * size)
        pair = workspace.array("self_pair", total, wp.vec2i)
        workspace.launch(write_self_contacts, threads if total else 0, [*shared, found, pair])
        columns, arrays = workspace.table("self", _COLUMNS[self.float_type], total, _elements(self.float_type))
        workspace.launch(WRITE_COLUMNS[self.float_type], total, [*shared, pair, columns])
        counts = np.zeros(chunk.cell_count, np.int64)
        if threads:
            ends = workspace.host(found, threads)[width - 1 :: width]
            counts = np.diff(ends, prepend=0).astype(np.int64)
        # Copies, since the next chunk reuses the scratch.
        copies = {name: workspace.copied(array, total) for name, array in arrays.items()}
        workspace.finish()
        del held  # all launches are complete
        return GroupRows(counts, copies), total


def self_contacts_of(
    device_model: DeviceModel, distance: float, rings: int, rest_distance: float, float_type: np.dtype
) -> SelfContacts:
    """The contacts of a model's objects with themselves. distance, rest_distance: see the module [m]."""
    uploaded = upload_elements(device_model, rings)
    scene = SelfScene()
    scene.cloud, scene.elements = upload_cloud(device_model), uploaded.elements
    scene.node_width, scene.distance, scene.rest_distance = uploaded.node_width, distance, rest_distance
    return SelfContacts(device_model, scene, uploaded.width, uploaded.node_width, np.dtype(float_type))
