"""Hydroelastic stage of a pipeline: takes the hydroelastic pairs from the candidates, and computes
their surfaces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.candidates import CandidateList, expand
from collidecli.engine.cells import Chunk, ChunkCells
from collidecli.engine.device_model import KIND_COUNT, DeviceModel, ShapeRows
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.hydroelastic import pairs
from collidecli.engine.hydroelastic.patch_sums import HydroPatch, move_faces, sum_faces
from collidecli.engine.hydroelastic.polygon_faces import HydroFace
from collidecli.engine.hydroelastic.polytopes import POLYTOPE_KERNELS, FaceList, clip_polytopes
from collidecli.engine.hydroelastic.pressure_fields import UploadedFields, upload_fields
from collidecli.engine.hydroelastic.reduced_contacts import reduced_contacts
from collidecli.engine.hydroelastic.rows import face_rows, joined_faces, patch_rows
from collidecli.engine.ordered_contacts import offset_in_body
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_columns import (
    FRICTION_SCALE,
    HYDRO_FACES,
    HYDRO_PATCHES,
    REDUCED_COLUMNS,
    RIGID_COLUMNS,
    ContactBlock,
    ContactGroup,
)
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.options import ContactOptions

if TYPE_CHECKING:
    from collidecli.engine.hydroelastic.voxels import Sampler


@kernel
def find_offsets(
    rows: ShapeRows,
    chunk: ChunkCells,
    cell: wp.array[wp.int32],
    row: wp.array[wp.int32],
    point: wp.array[Vec3],
    offset: wp.array[wp.vec3f],
):
    """One thread a point: its place in the frame of its shape's body; in the world for a static
    shape."""
    thread = wp.tid()
    offset[thread] = (
        offset_in_body(rows, chunk, cell[thread], row[thread], point[thread]) + wp.vec3f()
    )


@dataclass(frozen=True)
class HydroStage:
    """The hydroelastic pairs of a model.

    surface: write the faces. reduce: add contacts to the others. sampler: None where all pairs are
    of polytopes. one_bucket: int32[KIND_COUNT], zeros: the bucket of every kind of shape.
    """

    device_model: DeviceModel
    uploaded: UploadedFields
    surface: bool
    reduce: bool
    sampler: Sampler | None
    one_bucket: wp.array

    @property
    def needs_corners(self) -> bool:
        """Whether the corners of faces are needed."""
        return self.surface or self.reduce

    @property
    def written(self) -> tuple[ContactGroup, ...]:
        """The groups that `groups` returns."""
        return (HYDRO_PATCHES, HYDRO_FACES) if self.surface else (HYDRO_PATCHES,)

    def kernels(self) -> list[wp.Kernel]:
        kernels = [pairs.mark_hydro_pairs, pairs.split_pairs, pairs.prepare_pairs, sum_faces]
        kernels += [move_faces] if self.needs_corners else []
        kernels += [find_offsets] if self.reduce else []
        kernels += POLYTOPE_KERNELS if self.uploaded.has_polytope_pairs else ()
        return [*kernels, *(self.sampler.kernels() if self.sampler else ())]

    def split(
        self, chunk: Chunk, block_pairs: BlockPairs, workspace: Workspace
    ) -> tuple[CandidateList, BlockPairs]:
        """The hydroelastic candidates of a chunk in canonical order, and the pairs of slots of the
        others."""
        count = block_pairs.count
        end = workspace.array("hydro_pair_end", count, wp.int32)
        layout = self.device_model.layout
        fields = self.uploaded.fields
        workspace.launch(
            pairs.mark_hydro_pairs, count, [layout, chunk.cells, fields, block_pairs.slots, end]
        )
        hydro_count = workspace.scan(end, count)
        hydro, others = (
            BlockPairs(
                workspace.array(f"{name}_slots", n, wp.vec2i),
                workspace.array(f"{name}_mask", n, wp.uint32),
                n,
            )
            for name, n in (("hydro", hydro_count), ("others", count - hydro_count))
        )
        lists = [hydro.slots, hydro.mask, others.slots, others.mask]
        workspace.launch(
            pairs.split_pairs, count, [block_pairs.slots, block_pairs.mask, end, *lists]
        )
        listed = expand(
            self.device_model, chunk, hydro, (self.one_bucket, 0, 1), "hydro_candidate", workspace
        )
        return listed, others

    def add_to(
        self, block: ContactBlock, chunk: Chunk, listed: CandidateList, workspace: Workspace
    ) -> tuple[ContactBlock, np.ndarray]:
        """The block with the hydroelastic groups of a chunk, and with reduced contacts if they are
        requested.

        The second result is int32[missed, 2]: rows of the shapes of each pair that overlaps and has
        no surface, since it is too thin for the finest voxels.
        """
        float_type = block.columns["point0"].dtype
        (hydro, patch, marks), lists = self._patches(chunk, listed, workspace)
        count = listed.count
        cell_count = chunk.cell_count
        wanted = [(listed.cell_end(cell_count, workspace), cell_count)]
        wanted += [(hydro, count), (patch, count)]
        wanted += [] if marks is None else [(marks, count)]
        if self.needs_corners:
            wanted += [each for faces in lists for each in faces.arrays]
        read = iter(workspace.hosts(wanted))
        cell_end = next(read)
        hydro = next(read)
        patch = next(read)
        missed = np.zeros(count, bool) if marks is None else next(read).astype(bool)
        cell = np.repeat(np.arange(cell_count), np.diff(cell_end, prepend=0))
        rows = (hydro["row0"], hydro["row1"])
        torque_error = None
        groups = {}
        if self.needs_corners:
            face, vertices = joined_faces([faces.on_host(read) for faces in lists])
            if self.surface:
                groups[HYDRO_FACES.name] = face_rows(
                    patch, face, vertices, cell, cell_count, float_type
                )
            if self.reduce:
                margins = hydro["margin0"] + hydro["margin1"]
                pair, added, torque_error = reduced_contacts(patch, face, vertices, margins)
                added |= {f"shape{side}": rows[side][pair] for side in range(2)}
                block = self._with_contacts(block, chunk, added, cell[pair], workspace)
        groups[HYDRO_PATCHES.name] = patch_rows(
            patch, *rows, cell, cell_count, float_type, torque_error
        )
        block = replace(block, groups={group.name: groups[group.name] for group in self.written})
        return block, np.column_stack(rows)[missed]

    def _patches(
        self, chunk: Chunk, listed: CandidateList, workspace: Workspace
    ) -> tuple[tuple[wp.array, wp.array, wp.array | None], list[FaceList]]:
        """`HydroPair` and `HydroPatch` of every hydroelastic pair, int32[pairs], which overlap and
        have no surface, None for none, and the lists of faces."""
        model = self.device_model
        count = listed.count
        hydro = workspace.array("hydro_pair", count, pairs.HydroPair)
        arguments = [
            model.rows,
            model.margins,
            model.layout,
            chunk.cells,
            chunk.instances,
            self.uploaded.fields,
        ]
        workspace.launch(pairs.prepare_pairs, count, [*arguments, listed.pair, hydro])
        patch = workspace.array("hydro_patch", count, HydroPatch)
        faces = FaceList(workspace.array("hydro_polytope_face", 1, HydroFace), 0)
        if self.uploaded.has_polytope_pairs:
            faces = clip_polytopes(self.uploaded, hydro, count, self.needs_corners, workspace)
        workspace.launch(sum_faces, count, [hydro, faces.face, faces.count, patch])
        lists = [faces]
        marks = None
        if self.sampler is not None:
            sampled, marks = self.sampler.sample(hydro, count, patch, workspace)
            lists = [*lists, *sampled]
        if self.needs_corners:
            for face_list in lists:
                workspace.launch(move_faces, face_list.count, [hydro, face_list.face])
        return (hydro, patch, marks), lists

    def _with_contacts(
        self,
        block: ContactBlock,
        chunk: Chunk,
        added: dict[str, np.ndarray],
        cell: np.ndarray,
        workspace: Workspace,
    ) -> ContactBlock:
        """The block with reduced contacts among its others, in canonical order. cell: of each,
        within the block."""
        for side in range(2):
            row = added[f"shape{side}"]
            point = added[f"point{side}"]
            added[f"offset{side}"] = self._offsets(chunk, cell, row, point, workspace)
        columns = {**block.columns}
        columns |= {column.name: column.filled(block.contact_count) for column in REDUCED_COLUMNS}
        count = len(block.cell_counts)
        cells = np.concatenate([np.repeat(np.arange(count), block.cell_counts), cell])
        keys = [np.concatenate([columns[name], added[name]]) for name in ("shape0", "shape1")]
        order = np.lexsort((keys[1], keys[0], cells))
        known = {column.name: column for column in (*RIGID_COLUMNS, FRICTION_SCALE)}
        added |= {name: known[name].filled(len(cell)) for name in columns if name not in added}
        joined = {
            name: np.concatenate([values, added[name].astype(values.dtype)])[order]
            for name, values in columns.items()
        }
        return replace(
            block, cell_counts=np.bincount(cells, minlength=count).astype(np.int64), columns=joined
        )

    def _offsets(
        self,
        chunk: Chunk,
        cell: np.ndarray,
        row: np.ndarray,
        point: np.ndarray,
        workspace: Workspace,
    ) -> np.ndarray:
        """float32[n, 3]: points in the frames of the shapes' bodies."""
        device = workspace.device
        count = len(cell)
        if not count:
            return np.zeros((0, 3), np.float32)
        offset = workspace.array("hydro_offset", count, wp.vec3f)
        cells, rows = (
            wp.array(values.astype(np.int32), dtype=int, device=device) for values in (cell, row)
        )
        points = wp.array(np.ascontiguousarray(point), dtype=Vec3, device=device)
        arguments = [self.device_model.rows, chunk.cells, cells, rows, points, offset]
        workspace.launch(find_offsets, count, arguments)
        return workspace.host(offset, count).copy()


def hydro_stage(
    device_model: DeviceModel, shapes: HydroShapes, options: ContactOptions
) -> HydroStage:
    """The hydroelastic stage of a model."""
    uploaded = upload_fields(device_model, shapes)
    sampler = None
    marked = shapes.stiffness > 0.0  # sampled, unless polytopes without a margin
    model = device_model.model
    has_margins = model.shapes.margin[marked].any() or (model.forced_margin > 0.0).any()
    if has_margins or (uploaded.polytope[marked] < 0).any():
        from collidecli.engine.hydroelastic.voxels import new_sampler

        sampler = new_sampler(device_model, shapes, options)
    one_bucket = wp.zeros(KIND_COUNT, dtype=wp.int32, device=device_model.device)
    return HydroStage(
        device_model, uploaded, options.writes_surface, options.hydro_reduce, sampler, one_bucket
    )
