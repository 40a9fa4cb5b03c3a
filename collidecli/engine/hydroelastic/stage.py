"""Hydroelastic stage of a pipeline: takes the hydroelastic pairs from the candidates, and computes their surfaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.hydroelastic import pairs, patches, polytopes
from collidecli.engine.hydroelastic.fields import UploadedFields, upload_fields
from collidecli.engine.hydroelastic.polygon import HydroFace
from collidecli.engine.runtime.recorded_launches import INDEX_LIMIT
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.scene.contact_groups import HYDRO_FACES, HYDRO_PATCHES, ContactGroup, GroupRows
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.run_options import ContactOptions

SCRATCH_BYTES = 1 << 20
CUDA_SCRATCH_BYTES = 1 << 28
"""Corners of the polygons of one launch: near a core's cache, or enough threads for a GPU [bytes]."""
POLYTOPE_KERNELS = (polytopes.count_faces, polytopes.find_cells, polytopes.find_cell_pairs, polytopes.clip_cells)


@dataclass(frozen=True)
class SplitPairs:
    """Candidates of a chunk: hydroelastic ones and others, each in canonical order."""

    hydro: wp.array
    hydro_count: int
    others: wp.array
    other_count: int


@dataclass(frozen=True)
class FaceList:
    """Faces ordered by pair; count includes faces that do not exist. vertices: of those that do, if requested."""

    face: wp.array
    count: int
    vertex: wp.array
    vertex_count: int


def checked_total(workspace: Workspace, counts: wp.array, count: int) -> None:
    """Raises ChunkTooLarge where counts add up to more than an index can number."""
    total = int(workspace.host(counts, count).sum(dtype=np.int64))
    if total > INDEX_LIMIT:
        raise ChunkTooLarge(total * 8)


@dataclass(frozen=True)
class HydroStage:
    """The hydroelastic pairs of a model. surface: write the faces."""

    device_model: DeviceModel
    uploaded: UploadedFields
    surface: bool

    @property
    def written(self) -> tuple[ContactGroup, ...]:
        """The groups that `groups` returns."""
        return (HYDRO_PATCHES, HYDRO_FACES) if self.surface else (HYDRO_PATCHES,)

    def kernels(self) -> list[wp.Kernel]:
        """Kernels of this stage."""
        kernels = [pairs.mark_hydro_pairs, pairs.split_pairs, pairs.prepare_pairs, patches.sum_faces]
        return [*kernels, *([patches.move_faces] if self.surface else []), *POLYTOPE_KERNELS]

    def split(self, chunk: Chunk, pair: wp.array, count: int, workspace: Workspace) -> SplitPairs:
        """Separates the hydroelastic candidates from the others."""
        end = workspace.array("hydro_pair_end", count, wp.int32)
        layout, fields = self.device_model.layout, self.uploaded.fields
        workspace.launch(pairs.mark_hydro_pairs, count, [layout, chunk.cells, fields, pair, end])
        hydro_count = workspace.scan(end, count)
        hydro = workspace.array("hydro_instances", hydro_count, wp.vec2i)
        others = workspace.array("other_instances", count - hydro_count, wp.vec2i)
        workspace.launch(pairs.split_pairs, count, [pair, end, hydro, others])
        return SplitPairs(hydro, hydro_count, others, count - hydro_count)

    def groups(
        self, chunk: Chunk, split: SplitPairs, float_type: np.dtype, workspace: Workspace
    ) -> dict[str, GroupRows]:
        """Rows of the hydroelastic groups of a chunk."""
        model, count = self.device_model, split.hydro_count
        hydro = workspace.array("hydro_pair", count, pairs.HydroPair)
        arguments = [model.rows, model.margins, model.layout, chunk.cells, chunk.instances, self.uploaded.fields]
        workspace.launch(pairs.prepare_pairs, count, [*arguments, split.hydro, hydro])
        patch = workspace.array("hydro_patch", count, patches.HydroPatch)
        lists = [(int(pairs.POLYTOPES), self._clip_polytopes(hydro, count, workspace))]
        for method, faces in lists:
            workspace.launch(patches.sum_faces, count, [hydro, method, faces.face, faces.count, patch])
            if self.surface:
                workspace.launch(patches.move_faces, faces.count, [hydro, faces.face])
        patch_values = workspace.host(patch, count)
        hydro_values = workspace.host(hydro, count)
        cell = workspace.host(split.hydro, count)[:, 0] // model.layout.width
        rows = (hydro_values["row0"], hydro_values["row1"])
        groups = {HYDRO_PATCHES.name: patches.patch_rows(patch_values, *rows, cell, chunk.cell_count, float_type)}
        if self.surface:
            held = [
                (workspace.host(faces.face, faces.count), workspace.host(faces.vertex, faces.vertex_count))
                for _, faces in lists
            ]
            groups[HYDRO_FACES.name] = patches.face_rows(patch_values, held, cell, chunk.cell_count, float_type)
        return groups

    def _clip_polytopes(self, hydro: wp.array, count: int, workspace: Workspace) -> FaceList:
        """Faces of the pairs of polytopes."""
        fields = self.uploaded.fields
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
        return self._clip_cells(hydro, cell, cell_pair, total, workspace)

    def _clip_cells(
        self, hydro: wp.array, cell: wp.array, cell_pair: wp.array, total: int, workspace: Workspace
    ) -> FaceList:
        """Faces of pairs of cells, in launches whose scratch is limited."""
        stride = 2 * (2 * self.uploaded.most_neighbors + 8)
        limit = SCRATCH_BYTES if workspace.device.is_cpu else CUDA_SCRATCH_BYTES
        batch = max(1, min(total, limit // (stride * 24)))
        corner = workspace.array("hydro_corner", batch * stride, Vec3)
        face = workspace.array("hydro_polytope_face", total, HydroFace)
        vertex_end = workspace.array("hydro_vertex_end", total, wp.int32)
        vertex = workspace.array("hydro_polytope_vertex", 1, Vec3)

        def clip(writes: int) -> None:
            for start in range(0, total, batch):
                arguments = [self.uploaded.fields, hydro, cell, cell_pair, start, stride, corner, face]
                threads = min(batch, total - start)
                workspace.launch(polytopes.clip_cells, threads, [*arguments, vertex_end, vertex, writes])

        clip(0)
        if not self.surface:
            return FaceList(face, total, vertex, 0)
        vertex_count = workspace.scan(vertex_end, total)
        vertex = workspace.array("hydro_polytope_vertex", vertex_count, Vec3)
        clip(1)
        return FaceList(face, total, vertex, vertex_count)


def hydro_stage(device_model: DeviceModel, shapes: HydroShapes, options: ContactOptions) -> HydroStage:
    """The hydroelastic stage of a model."""
    return HydroStage(device_model, upload_fields(device_model, shapes), options.writes_surface)
