"""Hydroelastic stage of a pipeline: takes the hydroelastic pairs from the candidates, and computes their surfaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.hydroelastic import pairs, patches
from collidecli.engine.hydroelastic.clipping import POLYTOPE_KERNELS, clip_polytopes
from collidecli.engine.hydroelastic.fields import UploadedFields, upload_fields
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_groups import HYDRO_FACES, HYDRO_PATCHES, ContactGroup, GroupRows
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.model import Model
from collidecli.scene.run_options import ContactOptions

if TYPE_CHECKING:  # defining its kernels takes time
    from collidecli.engine.hydroelastic.sampling import Sampler


@dataclass(frozen=True)
class SplitPairs:
    """Candidates of a chunk: hydroelastic ones and others, each in canonical order."""

    hydro: wp.array
    hydro_count: int
    others: wp.array
    other_count: int


@dataclass(frozen=True)
class HydroStage:
    """The hydroelastic pairs of a model. surface: write the faces. sampler: None where all pairs are of polytopes."""

    device_model: DeviceModel
    uploaded: UploadedFields
    surface: bool
    sampler: Sampler | None

    @property
    def written(self) -> tuple[ContactGroup, ...]:
        """The groups that `groups` returns."""
        return (HYDRO_PATCHES, HYDRO_FACES) if self.surface else (HYDRO_PATCHES,)

    def kernels(self) -> list[wp.Kernel]:
        """Kernels of this stage."""
        kernels = [pairs.mark_hydro_pairs, pairs.split_pairs, pairs.prepare_pairs, patches.sum_faces]
        kernels += [patches.move_faces] if self.surface else []
        return [*kernels, *POLYTOPE_KERNELS, *(self.sampler.kernels() if self.sampler else ())]

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
        lists = [clip_polytopes(self.uploaded, hydro, count, self.surface, workspace)]
        if self.sampler is not None:
            lists += self.sampler.faces(hydro, count, workspace)
        for number, faces in enumerate(lists):
            arguments = [hydro, faces.face, faces.count, int(number == 0), patch]
            workspace.launch(patches.sum_faces, count, arguments)
            if self.surface:
                workspace.launch(patches.move_faces, faces.count, [hydro, faces.face])
        patch_values = workspace.host(patch, count)
        hydro_values = workspace.host(hydro, count)
        cell = workspace.host(split.hydro, count)[:, 0] // model.layout.width
        rows = (hydro_values["row0"], hydro_values["row1"])
        groups = {HYDRO_PATCHES.name: patches.patch_rows(patch_values, *rows, cell, chunk.cell_count, float_type)}
        if self.surface:
            held = [faces.on_host(workspace) for faces in lists]
            groups[HYDRO_FACES.name] = patches.face_rows(patch_values, held, cell, chunk.cell_count, float_type)
        return groups


def hydro_stage(device_model: DeviceModel, shapes: HydroShapes, options: ContactOptions) -> HydroStage:
    """The hydroelastic stage of a model."""
    uploaded = upload_fields(device_model, shapes)
    sampler = None
    if _needs_samples(device_model.model, shapes, uploaded):
        from collidecli.engine.hydroelastic.sampling import new_sampler

        sampler = new_sampler(device_model, shapes, uploaded, options)
    return HydroStage(device_model, uploaded, options.writes_surface, sampler)


def _needs_samples(model: Model, shapes: HydroShapes, uploaded: UploadedFields) -> bool:
    """Whether a pair may need sampling: a hydroelastic shape is no polytope, or has a margin."""
    marked = shapes.stiffness > 0.0
    margins = model.shapes.margin[marked].any() or bool((model.forced_margin > 0.0).any())
    return bool(margins or (uploaded.polytope[marked] < 0).any())
