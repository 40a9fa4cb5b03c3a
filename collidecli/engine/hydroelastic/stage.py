"""Hydroelastic stage of a pipeline: takes the hydroelastic pairs from the candidates, and computes
their surfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.candidates import CandidateList, expand
from collidecli.engine.cells import Chunk, ChunkCells, body_pose_of
from collidecli.engine.device_model import KIND_COUNT, DeviceModel, ShapeRows
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.hydroelastic import pairs
from collidecli.engine.hydroelastic.patch_sums import HydroPatch, move_faces, sum_faces
from collidecli.engine.hydroelastic.polygon_faces import HydroFace
from collidecli.engine.hydroelastic.polytopes import (
    POLYTOPE_KERNELS,
    FaceList,
    clip_polytopes,
    range_with,
)
from collidecli.engine.hydroelastic.pressure_fields import UploadedFields, upload_fields
from collidecli.engine.hydroelastic.reduced_contacts import reduced_contacts
from collidecli.engine.hydroelastic.rows import face_rows, joined_faces, patch_rows
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Rows, Workspace
from collidecli.numerics.poses import points_in_frames_as_kernels
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import (
    FRICTION_SCALE,
    HYDRO_FACES,
    HYDRO_PATCHES,
    REDUCED_COLUMNS,
    RIGID_COLUMNS,
    ContactGroup,
)
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.options import ContactOptions

if TYPE_CHECKING:
    from collidecli.engine.hydroelastic.voxels import Sampler


@kernel
def write_body_poses(
    rows: ShapeRows,
    chunk: ChunkCells,
    cell_end: wp.array[wp.int32],
    cell_count: int,
    hydro: wp.array[pairs.HydroPair],
    bound: wp.array[wp.int32],
    pose: wp.array[Pose],
):
    """One thread per pair, as many as the bound: the world poses of both shapes' bodies; the
    identity for a static shape."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
    cell = range_with(cell_end, cell_count, thread)
    for side in range(2):
        body = rows.body[wp.where(side == 0, hydro[thread].row0, hydro[thread].row1)]
        pose[2 * thread + side] = wp.transform_identity(dtype=Real)
        if body >= 0:
            pose[2 * thread + side] = body_pose_of(chunk, cell, body)


@dataclass(frozen=True)
class FoundSurfaces:
    """What a device finds of the hydroelastic pairs of a chunk.

    hydro, patch: `HydroPair` and `HydroPatch` of each. missed: int32 of each, 1 where it overlaps
    and has no surface; None where that cannot be. lists: of faces.
    """

    hydro: wp.array
    patch: wp.array
    missed: wp.array | None
    lists: list[FaceList]


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
        kernels = [pairs.split_masks, pairs.prepare_pairs, sum_faces]
        kernels += [move_faces] if self.needs_corners else []
        kernels += [write_body_poses] if self.reduce else []
        kernels += POLYTOPE_KERNELS if self.uploaded.has_polytope_pairs else ()
        return [*kernels, *(self.sampler.kernels() if self.sampler else ())]

    def split(
        self, chunk: Chunk, block_pairs: BlockPairs, workspace: Workspace
    ) -> tuple[CandidateList, BlockPairs]:
        """The hydroelastic candidates of a chunk in canonical order, and the pairs of slots with
        the lanes of the others."""
        count = block_pairs.count
        masks = [
            workspace.array(f"{name}_mask", count, wp.uint32) for name in ("hydro", "not_hydro")
        ]
        bound = workspace.counts.unbounded if block_pairs.bound is None else block_pairs.bound
        arguments = [self.device_model.layout, chunk.cells, self.uploaded.fields]
        arguments += [block_pairs.slots, block_pairs.mask, bound, *masks]
        workspace.launch(pairs.split_masks, count, arguments)
        hydro, others = (replace(block_pairs, mask=mask) for mask in masks)
        buckets = self.one_bucket, 0, 1
        listed = expand(self.device_model, chunk, hydro, buckets, "hydro_candidate", workspace)
        return listed, others

    def issue(
        self, chunk: Chunk, listed: CandidateList, workspace: Workspace
    ) -> Callable[[ContactBlock], tuple[ContactBlock, np.ndarray]]:
        """Issues the search for the surfaces of a chunk. The function returned waits for them, and
        adds the hydroelastic groups to a block, and reduced contacts if they are requested.

        Its second result is int32[missed, 2]: rows of the shapes of each pair that overlaps and has
        no surface, since it is too thin for the finest voxels. It raises CountsExceeded as
        `Workspace.send` does.
        """
        found = self._patches(chunk, listed, workspace)
        count = ElementCount(listed.count, listed.bound, listed.name)
        cell_count = chunk.cell_count
        cell_end = listed.cell_end(cell_count, workspace)
        wanted = [Rows(cell_end, ElementCount(cell_count, workspace.counts.unbounded))]
        wanted += [Rows(found.hydro, count), Rows(found.patch, count)]
        wanted += [] if found.missed is None else [Rows(found.missed, count)]
        if self.reduce:
            pose = workspace.array("hydro_body_pose", 2 * count.most, Pose)
            arguments = [self.device_model.rows, chunk.cells, cell_end, cell_count]
            arguments += [found.hydro, count.bound, pose]
            workspace.launch(write_body_poses, count.most, arguments)
            wanted += [Rows(pose, count, 2)]
        if self.needs_corners:
            wanted += [rows for faces in found.lists for rows in faces.arrays]
        received = workspace.send_each(wanted)

        def added(block: ContactBlock) -> tuple[ContactBlock, np.ndarray]:
            return self._added(block, found, iter(received()))

        return added

    def _added(
        self, block: ContactBlock, found: FoundSurfaces, read: Iterator[np.ndarray]
    ) -> tuple[ContactBlock, np.ndarray]:
        """See `issue`. read: what it sends, on the host."""
        float_type = block.columns["point0"].dtype
        cell_end = next(read)
        hydro = next(read)
        patch = next(read)
        missed = np.zeros(len(hydro), bool) if found.missed is None else next(read).astype(bool)
        body_pose = next(read).reshape(-1, 2, 7) if self.reduce else None
        cell_count = len(cell_end)
        cell = np.repeat(np.arange(cell_count), np.diff(cell_end, prepend=0))
        rows = (hydro["row0"], hydro["row1"])
        torque_error = None
        groups = {}
        if self.needs_corners:
            face, vertices = joined_faces([faces.on_host(read) for faces in found.lists])
            if self.surface:
                groups[HYDRO_FACES.name] = face_rows(
                    patch, face, vertices, cell, cell_count, float_type
                )
            if body_pose is not None:
                margins = hydro["margin0"] + hydro["margin1"]
                pair, added, torque_error = reduced_contacts(patch, face, vertices, margins)
                for side in range(2):
                    added[f"shape{side}"] = rows[side][pair]
                    point = added[f"point{side}"]
                    offset = points_in_frames_as_kernels(body_pose[pair, side], point)
                    added[f"offset{side}"] = offset.astype(np.float32) + np.float32(0.0)
                block = with_contacts(block, added, cell[pair])
        groups[HYDRO_PATCHES.name] = patch_rows(
            patch, *rows, cell, cell_count, float_type, torque_error
        )
        block = replace(block, groups={group.name: groups[group.name] for group in self.written})
        return block, np.column_stack(rows)[missed]

    def _patches(self, chunk: Chunk, listed: CandidateList, workspace: Workspace) -> FoundSurfaces:
        """Issues the search for the surfaces of the hydroelastic candidates."""
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
        arguments += [listed.pair, listed.bound, hydro]
        workspace.launch(pairs.prepare_pairs, count, arguments)
        patch = workspace.array("hydro_patch", count, HydroPatch)
        none = ElementCount(0, workspace.counts.unbounded)
        faces = FaceList(workspace.array("hydro_polytope_face", 1, HydroFace), none)
        if self.uploaded.has_polytope_pairs:
            faces = clip_polytopes(self.uploaded, hydro, count, self.needs_corners, workspace)
        arguments = [hydro, faces.face, faces.count.most, faces.count.bound, patch]
        workspace.launch(sum_faces, count, arguments)
        lists = [faces]
        missed = None
        if self.sampler is not None:
            sampled, missed = self.sampler.sample(hydro, count, patch, workspace)
            lists = [*lists, *sampled]
        if self.needs_corners:
            for face_list in lists:
                arguments = [hydro, face_list.face, face_list.count.bound]
                workspace.launch(move_faces, face_list.count.most, arguments)
        return FoundSurfaces(hydro, patch, missed, lists)


def with_contacts(
    block: ContactBlock, added: dict[str, np.ndarray], cell: np.ndarray
) -> ContactBlock:
    """The block with reduced contacts among its others, in canonical order. cell: of each, within
    the block."""
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
