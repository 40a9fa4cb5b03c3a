"""Hydroelastic stage of a pipeline: takes the hydroelastic pairs from the candidates, and computes their surfaces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.candidates import CandidateList, expand
from collidecli.engine.cells import BlockPairs, Chunk
from collidecli.engine.device_model import KIND_COUNT, DeviceModel
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.hydroelastic import pairs, patches
from collidecli.engine.hydroelastic.pairs import UploadedFields, upload_fields
from collidecli.engine.hydroelastic.patches import contact_columns, reduced_contacts
from collidecli.engine.hydroelastic.polytopes import POLYTOPE_KERNELS, FaceList, HydroFace, clip_polytopes
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.tables import (
    FRICTION_SCALE,
    HYDRO_FACES,
    HYDRO_PATCHES,
    REDUCED_COLUMNS,
    ContactBlock,
    ContactGroup,
)

if TYPE_CHECKING:  # defining its kernels takes time
    from collidecli.engine.hydroelastic.voxels import Sampler


@dataclass(frozen=True)
class SplitPairs:
    """Candidates of a chunk: hydroelastic ones in canonical order, and the pairs of slots of the others."""

    hydro: CandidateList
    others: BlockPairs


@dataclass(frozen=True)
class HydroStage:
    """The hydroelastic pairs of a model.

    surface: write the faces. reduce: add contacts to the others. sampler: None where all pairs are of polytopes.
    one_bucket: int32[KIND_COUNT], zeros: the bucket of every kind of shape.
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
        """Kernels of this stage."""
        kernels = [pairs.mark_hydro_pairs, pairs.split_pairs, pairs.prepare_pairs, patches.sum_faces]
        kernels += [patches.move_faces] if self.needs_corners else []
        kernels += [patches.find_offsets] if self.reduce else []
        kernels += POLYTOPE_KERNELS if self.uploaded.has_polytope_pairs else ()
        return [*kernels, *(self.sampler.kernels() if self.sampler else ())]

    def split(self, chunk: Chunk, found: BlockPairs, workspace: Workspace) -> SplitPairs:
        """Separates the hydroelastic candidates from the others."""
        count = found.count
        end = workspace.array("hydro_pair_end", count, wp.int32)
        layout, fields = self.device_model.layout, self.uploaded.fields
        workspace.launch(pairs.mark_hydro_pairs, count, [layout, chunk.cells, fields, found.slots, end])
        hydro_count = workspace.scan(end, count)
        counts = {"hydro": hydro_count, "others": count - hydro_count}
        slots = {name: workspace.array(f"{name}_slots", each, wp.vec2i) for name, each in counts.items()}
        masks = {name: workspace.array(f"{name}_mask", each, wp.uint32) for name, each in counts.items()}
        lists = workspace.struct(
            pairs.PairLists,
            hydro=slots["hydro"],
            hydro_mask=masks["hydro"],
            others=slots["others"],
            other_mask=masks["others"],
        )
        workspace.launch(pairs.split_pairs, count, [found.slots, found.mask, end, lists])
        hydro, others = (BlockPairs(slots[name], masks[name], counts[name]) for name in counts)
        listed = expand(self.device_model, chunk, hydro, (self.one_bucket, 0, 1), "hydro_candidate", workspace)
        return SplitPairs(listed, others)

    def add_to(
        self, block: ContactBlock, chunk: Chunk, split: SplitPairs, workspace: Workspace
    ) -> tuple[ContactBlock, np.ndarray]:
        """The block with the hydroelastic groups of a chunk, and with reduced contacts if they are requested.

        The second result is int32[missed, 2]: rows of the shapes of each pair that overlaps and has no surface, since
        it is too thin for the finest voxels.
        """
        float_type = block.columns["point0"].dtype
        hydro, patch, lists, missed = self._patches(chunk, split, workspace)
        cell_count = chunk.cell_count
        cell_end = workspace.host(split.hydro.cell_end, cell_count)
        cell = np.repeat(np.arange(cell_count), np.diff(cell_end, prepend=0))
        rows = (hydro["row0"], hydro["row1"])
        torque_error = None
        groups = {}
        if self.needs_corners:
            face, vertices = patches.joined_faces([faces.on_host(workspace) for faces in lists])
            if self.surface:
                groups[HYDRO_FACES.name] = patches.face_rows(patch, face, vertices, cell, cell_count, float_type)
            if self.reduce:
                contacts = reduced_contacts(patch, face, vertices)
                torque_error = contacts.torque_error
                added = contact_columns(contacts, hydro["margin0"] + hydro["margin1"])
                added |= {f"shape{side}": rows[side][contacts.pair] for side in range(2)}
                block = self._with_contacts(block, chunk, added, cell[contacts.pair], workspace)
        groups[HYDRO_PATCHES.name] = patches.patch_rows(patch, *rows, cell, cell_count, float_type, torque_error)
        block = replace(block, groups={group.name: groups[group.name] for group in self.written})
        return block, np.column_stack(rows)[missed]

    def _patches(
        self, chunk: Chunk, split: SplitPairs, workspace: Workspace
    ) -> tuple[np.ndarray, np.ndarray, list[FaceList], np.ndarray]:
        """`HydroPair` and `HydroPatch` of every hydroelastic pair on the host, the lists of faces, and bool[pairs]:
        which overlap and have no surface."""
        model, count = self.device_model, split.hydro.count
        hydro = workspace.array("hydro_pair", count, pairs.HydroPair)
        arguments = [model.rows, model.margins, model.layout, chunk.cells, chunk.instances, self.uploaded.fields]
        workspace.launch(pairs.prepare_pairs, count, [*arguments, split.hydro.pair, hydro])
        patch = workspace.array("hydro_patch", count, patches.HydroPatch)
        faces = FaceList(workspace.array("hydro_polytope_face", 1, HydroFace), 0)
        if self.uploaded.has_polytope_pairs:
            faces = clip_polytopes(self.uploaded, hydro, count, self.needs_corners, workspace)
        workspace.launch(patches.sum_faces, count, [hydro, faces.face, faces.count, patch])
        lists, missed = [faces], np.zeros(count, bool)
        if self.sampler is not None:
            sampled, marks = self.sampler.sample(hydro, count, patch, workspace)
            lists, missed = [*lists, *sampled], marks.astype(bool)
        if self.needs_corners:
            for each in lists:
                workspace.launch(patches.move_faces, each.count, [hydro, each.face])
        return workspace.host(hydro, count), workspace.host(patch, count), lists, missed

    def _with_contacts(
        self,
        block: ContactBlock,
        chunk: Chunk,
        added: dict[str, np.ndarray],
        own_cell: np.ndarray,
        workspace: Workspace,
    ) -> ContactBlock:
        """The block with reduced contacts among its others, in canonical order. own_cell: of each, within the block."""
        for side in range(2):
            row, point = added[f"shape{side}"], added[f"point{side}"]
            added[f"offset{side}"] = self._offsets(chunk, own_cell, row, point, workspace)
        columns = {**block.columns}
        columns |= {column.name: np.zeros(block.contact_count, column.dtype) for column in REDUCED_COLUMNS}
        count = len(block.cell_counts)
        cells = np.concatenate([np.repeat(np.arange(count), block.cell_counts), own_cell])
        keys = [np.concatenate([columns[name], added[name]]) for name in ("shape0", "shape1")]
        order = np.lexsort((keys[1], keys[0], cells))
        if FRICTION_SCALE.name in columns:
            added[FRICTION_SCALE.name] = np.ones(len(own_cell))
        joined = {
            name: np.concatenate([values, added[name].astype(values.dtype)])[order] for name, values in columns.items()
        }
        return replace(block, cell_counts=np.bincount(cells, minlength=count).astype(np.int64), columns=joined)

    def _offsets(
        self, chunk: Chunk, cell: np.ndarray, row: np.ndarray, point: np.ndarray, workspace: Workspace
    ) -> np.ndarray:
        """float32[n, 3]: points in the frames of the shapes' bodies."""
        device, count = workspace.device, len(cell)
        if not count:
            return np.zeros((0, 3), np.float32)
        offset = workspace.array("hydro_offset", count, wp.vec3f)
        cells, rows = (wp.array(values.astype(np.int32), dtype=int, device=device) for values in (cell, row))
        points = wp.array(np.ascontiguousarray(point), dtype=Vec3, device=device)
        arguments = [self.device_model.rows, chunk.cells, cells, rows, points, offset]
        workspace.launch(patches.find_offsets, count, arguments)
        return workspace.host(offset, count).copy()


def hydro_stage(device_model: DeviceModel, shapes: HydroShapes, options: ContactOptions) -> HydroStage:
    """The hydroelastic stage of a model."""
    uploaded = upload_fields(device_model, shapes)
    sampler = None
    if _needs_samples(device_model.model, shapes, uploaded):
        from collidecli.engine.hydroelastic.voxels import new_sampler

        sampler = new_sampler(device_model, shapes, options)
    one_bucket = wp.zeros(KIND_COUNT, dtype=wp.int32, device=device_model.device)
    return HydroStage(device_model, uploaded, options.writes_surface, options.hydro_reduce, sampler, one_bucket)


def _needs_samples(model: Model, shapes: HydroShapes, uploaded: UploadedFields) -> bool:
    """Whether a pair may need sampling: a hydroelastic shape is no polytope, or has a margin."""
    marked = shapes.stiffness > 0.0
    margins = model.shapes.margin[marked].any() or bool((model.forced_margin > 0.0).any())
    return bool(margins or (uploaded.polytope[marked] < 0).any())
