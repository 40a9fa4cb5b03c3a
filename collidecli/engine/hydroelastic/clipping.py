"""Launches of the kernels of polytope pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.geometry.real import Vec3
from collidecli.engine.hydroelastic import polytopes
from collidecli.engine.hydroelastic.fields import UploadedFields
from collidecli.engine.hydroelastic.polygon import HydroFace
from collidecli.engine.runtime.recorded_launches import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace

SCRATCH_BYTES = 1 << 20
CUDA_SCRATCH_BYTES = 1 << 28
"""Corners of the polygons of one launch: near a core's cache, or enough threads for a GPU [bytes]."""
POLYTOPE_KERNELS = (polytopes.count_faces, polytopes.find_cells, polytopes.find_cell_pairs, polytopes.clip_cells)


@dataclass(frozen=True)
class FaceList:
    """Faces ordered by pair. count: of faces, with those that do not exist.

    vertex: corners of the faces, if requested. slots: places for the corners of each face; 0 where they are contiguous.
    """

    face: wp.array
    count: int
    vertex: wp.array | None = None
    vertex_count: int = 0
    slots: int = 0

    def on_host(self, workspace: Workspace) -> tuple[np.ndarray, np.ndarray]:
        """`HydroFace` of each face, and the corners of those that exist."""
        face = workspace.host(self.face, self.count)
        if self.vertex is None:
            return face, np.zeros((0, 3))
        vertex = workspace.host(self.vertex, self.vertex_count)
        if self.slots:
            vertex = vertex.reshape(-1, self.slots, 3)[np.arange(self.slots) < face["count"][:, None]]
        return face, vertex


def checked_total(workspace: Workspace, counts: wp.array, count: int) -> None:
    """Raises ChunkTooLarge where counts add up to more than an index can number."""
    total = int(workspace.host(counts, count).sum(dtype=np.int64))
    if total > INDEX_LIMIT:
        raise ChunkTooLarge(total * 8)


def clip_polytopes(
    uploaded: UploadedFields, hydro: wp.array, count: int, surface: bool, workspace: Workspace
) -> FaceList:
    """Faces of the pairs of polytopes."""
    fields = uploaded.fields
    face_end = workspace.array("hydro_face_end", count, wp.int32)
    workspace.launch(polytopes.count_faces, count, [fields, hydro, face_end])
    face_count = workspace.scan(face_end, count)
    cell_end = workspace.array("hydro_cell_end", face_count, wp.int32)
    cell = workspace.array("hydro_cell", 1, polytopes.CellBox)
    arguments = [fields, hydro, count, face_end, cell_end]
    workspace.launch(polytopes.find_cells, face_count, [*arguments, cell, 0])
    cell_count = workspace.scan(cell_end, face_count)
    cell = workspace.array("hydro_cell", cell_count, polytopes.CellBox)
    workspace.launch(polytopes.find_cells, face_count, [*arguments, cell, 1])
    pair_end = workspace.array("hydro_cell_pair_end", cell_count, wp.int32)
    cell_pair = workspace.array("hydro_cell_pair", 1, wp.vec2i)
    arguments = [fields, hydro, face_end, cell_end, cell, pair_end]
    workspace.launch(polytopes.find_cell_pairs, cell_count, [*arguments, cell_pair, 0])
    checked_total(workspace, pair_end, cell_count)
    total = workspace.scan(pair_end, cell_count)
    cell_pair = workspace.array("hydro_cell_pair", total, wp.vec2i)
    workspace.launch(polytopes.find_cell_pairs, cell_count, [*arguments, cell_pair, 1])
    return _clip_cells(uploaded, hydro, cell, cell_pair, total, surface, workspace)


def _clip_cells(
    uploaded: UploadedFields,
    hydro: wp.array,
    cell: wp.array,
    cell_pair: wp.array,
    total: int,
    surface: bool,
    workspace: Workspace,
) -> FaceList:
    """Faces of pairs of cells, in launches whose scratch is limited."""
    stride = 2 * (2 * uploaded.most_neighbors + 8)
    limit = CUDA_SCRATCH_BYTES if workspace.has_own_memory else SCRATCH_BYTES
    batch = max(1, min(total, limit // (stride * 24)))
    corner = workspace.array("hydro_corner", batch * stride, Vec3)
    face = workspace.array("hydro_polytope_face", total, HydroFace)
    vertex_end = workspace.array("hydro_vertex_end", total, wp.int32)
    vertex = workspace.array("hydro_polytope_vertex", 1, Vec3)

    def clip(writes: int) -> None:
        for start in range(0, total, batch):
            arguments = [uploaded.fields, hydro, cell, cell_pair, start, stride, corner, face]
            threads = min(batch, total - start)
            workspace.launch(polytopes.clip_cells, threads, [*arguments, vertex_end, vertex, writes])

    clip(0)
    if not surface:
        return FaceList(face, total)
    vertex_count = workspace.scan(vertex_end, total)
    vertex = workspace.array("hydro_polytope_vertex", vertex_count, Vec3)
    clip(1)
    return FaceList(face, total, vertex, vertex_count)
