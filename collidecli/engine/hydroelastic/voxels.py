"""Contact surfaces in voxels: exact distances at their corners, linear within six tetrahedra each.

The grid is fixed to the pair's reference shape. Blocks of 4^3 voxels that cannot contain the
surface are discarded by exact bounds, from coarse to fine: a distance changes by no more than the
way, and that of a convex shape lies above its tangent plane. Below the resolution, a pair's blocks
are divided until its patch has half of the resolution in voxels, so that the relative error does
not grow as a patch becomes small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Vec2, Vec3
from collidecli.engine.hydroelastic.patch_sums import sum_parts
from collidecli.engine.hydroelastic.polygon_faces import HydroFace, PatchSums
from collidecli.engine.hydroelastic.polytopes import FaceList
from collidecli.engine.hydroelastic.solids import Solids, upload_solids
from collidecli.engine.hydroelastic.tetrahedra import FACE_CORNERS
from collidecli.engine.hydroelastic.voxel_blocks import (
    BLOCK_KERNELS,
    CHILDREN,
    CORNER_COUNT,
    SIDE,
    Block,
    Level,
    VoxelKernels,
    compact_blocks,
    count_children,
    count_final,
    count_roots,
    end_levels,
    reopen_pairs,
    voxel_kernels,
    write_children,
    write_roots,
)
from collidecli.engine.hydroelastic.voxel_surface import VOXEL_COUNT, cut_voxels, sum_blocks
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.warp_internals import set_field
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.hydroelastic import HALVINGS_OF_MESHES, HydroShapes
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

MOST_FACES = 54
"""Most faces of a voxel: of six tetrahedra, each cut by three sides of both shapes."""
MOST_CORNERS = MOST_FACES * int(FACE_CORNERS)
LEVELS_BELOW = 20
"""Halvings of a voxel for small patches of convex shapes, whose bounds are tight; of others see
HALVINGS_OF_MESHES."""


@dataclass(frozen=True)
class PairMarks:
    """What the levels find of `count` pairs. final_level: see `end_levels`. overlaps: 1 for a pair
    that overlaps and has no face yet. missed: 1 where none was found. patch: `HydroPatch`."""

    count: int
    final_level: wp.array
    overlaps: wp.array
    missed: wp.array
    patch: wp.array


@dataclass(frozen=True)
class Sampler:
    """The sampled pairs of a model. corners: the faces and their corners are needed.
    has_meshes: whether a hydroelastic shape is a mesh or a hull."""

    solids: Solids
    compiled: VoxelKernels
    resolution: int
    corners: bool
    has_meshes: bool

    def kernels(self) -> list[wp.Kernel]:
        cutting = (cut_voxels,) if self.corners else ()
        return [*BLOCK_KERNELS, sum_blocks, sum_parts, *cutting, *self.compiled]

    def sample(
        self, hydro: wp.array, count: int, patch: wp.array, workspace: Workspace
    ) -> tuple[list[FaceList], wp.array]:
        """Sets the patches of the sampled pairs; returns their faces, a list for each level at
        which pairs end.

        Without need for corners there are no lists. The second result is int32[pairs] on the
        device, 1 for a pair that overlaps and for which no face was found at the finest level.
        """
        end = workspace.array("hydro_root_end", count, wp.int32)
        workspace.launch(count_roots, count, [hydro, end])
        left = workspace.scanned("hydro_root", end, count, 1, spare_for_none=0)
        block = workspace.array("hydro_block_0", left.most, Block)
        marks = PairMarks(
            count,
            final_level=workspace.array("hydro_final_level", count, wp.int32),
            overlaps=workspace.array("hydro_overlaps", count, wp.int32),
            missed=workspace.array("hydro_missed", count, wp.int32),
            patch=patch,
        )
        arguments = [end, block, marks.final_level, marks.overlaps, marks.missed]
        workspace.launch(write_roots, count, arguments)
        number = 0
        while int(SIDE) << -number < self.resolution:
            number -= 1
        lists = []
        while left.most:
            block, left = self._divide(hydro, number, block, left, marks, lists, workspace)
            number += 1
        return lists, marks.missed

    def _divide(
        self,
        hydro: wp.array,
        number: int,
        block: wp.array,
        left: ElementCount,
        marks: PairMarks,
        lists: list[FaceList],
        workspace: Workspace,
    ) -> tuple[wp.array, ElementCount]:
        """The blocks of the next level, and how many. Those of level `number` are tested, and the
        surface of the pairs that end there is cut; its faces are appended to `lists`.

        Where numbers are expected, a level ends the search that no earlier chunk divided further.
        """
        level = Level()
        set_field(level, "scale", math.ldexp(1.0, -number))
        level.resolution = self.resolution
        level.number = number
        level.last = LEVELS_BELOW
        level.last_other = HALVINGS_OF_MESHES
        shared = [self.solids, hydro, level]
        test_blocks = self.compiled.test_blocks
        end = workspace.array("hydro_block_end", left.most, wp.int32)
        arguments = [*shared, block, left.bound, marks.patch, end, 0]
        workspace.launch(test_blocks, left.most, arguments)
        names = "hydro_block_1", f"hydro_left_{number}"
        block, left = _selected(*names, block, left.most, end, workspace)
        arguments = [*shared, block, left.most, left.bound, marks.final_level]
        workspace.launch(end_levels, marks.count, arguments)
        end = workspace.array("hydro_final_end", left.most, wp.int32)
        counted = [block, left.bound, marks.final_level, end]
        workspace.launch(count_final, left.most, [level, *counted])
        names = "hydro_block_2", f"hydro_final_{number}"
        final, final_count = _selected(*names, block, left.most, end, workspace)
        if final_count.most:
            lists += self._cut(hydro, level, final, final_count, marks, workspace)
            arguments = [*shared, final, final_count.bound, marks.patch, marks.overlaps, 1]
            workspace.launch(test_blocks, final_count.most, arguments)
            arguments = [level, final, final_count.most, final_count.bound, marks.patch]
            arguments += [marks.overlaps, marks.final_level, marks.missed]
            workspace.launch(reopen_pairs, marks.count, arguments)
        end = workspace.array("hydro_child_end", left.most, wp.int32)
        workspace.launch(count_children, left.most, [block, left.bound, marks.final_level, end])
        name = f"hydro_child_{number}"
        child_count = workspace.scanned(name, end, left.most, int(CHILDREN), spare_for_none=0)
        children = workspace.array("hydro_block_0", child_count.most, Block)
        workspace.launch(write_children, left.most, [block, end, children])
        return children, child_count

    def _cut(
        self,
        hydro: wp.array,
        level: Level,
        block: wp.array,
        blocks: ElementCount,
        marks: PairMarks,
        workspace: Workspace,
    ) -> list[FaceList]:
        """Sets the patches of the pairs whose last blocks these are; returns the faces if corners
        are needed."""
        count = blocks.most
        corner_count = count * int(CORNER_COUNT)
        voxel_count = count * int(VOXEL_COUNT)
        value = workspace.array("hydro_corner_value", corner_count, Vec2)
        feature = workspace.array(
            "hydro_corner_feature", corner_count if self.has_meshes else 1, wp.vec2i
        )
        part = workspace.array("hydro_part", count, wp.int32)
        shared = [self.solids, hydro, level, block, blocks.bound, part, value, feature]
        workspace.launch(self.compiled.test_parts, count, shared)
        workspace.launch(self.compiled.sample_corners, corner_count, shared)
        sums = workspace.array("hydro_block_sums", count, PatchSums)
        workspace.launch(sum_blocks, count, [*shared, sums])
        workspace.launch(sum_parts, marks.count, [hydro, sums, count, blocks.bound, marks.patch])
        if not self.corners:
            return []
        return [self._faces(shared, level.number, voxel_count, workspace)]

    def _faces(
        self, shared: list[Any], number: int, voxel_count: int, workspace: Workspace
    ) -> FaceList:
        """The faces of the last blocks of a level, and their corners. shared: the first arguments
        of `cut_voxels`."""
        names = f"hydro_face_{number}", f"hydro_vertex_{number}"
        ends = [
            workspace.array(f"hydro_voxel_{part}_end", voxel_count, wp.int32)
            for part in ("face", "corner")
        ]
        face = workspace.array(names[0], 1, HydroFace)
        vertex = workspace.array(names[1], 1, Vec3)
        none = workspace.counts.unbounded
        workspace.launch(cut_voxels, voxel_count, [*shared, *ends, none, none, face, vertex, 0])
        numbers = dict(zip(names, zip(ends, (MOST_FACES, MOST_CORNERS), strict=True), strict=True))
        faces, vertices = workspace.scanned_together(numbers, voxel_count)
        face = workspace.array(names[0], faces.most, HydroFace)
        vertex = workspace.array(names[1], vertices.most, Vec3)
        arguments = [*shared, *ends, faces.bound, vertices.bound, face, vertex, 1]
        workspace.launch(cut_voxels, voxel_count, arguments)
        return FaceList(face, faces, vertex, vertices)


def _selected(
    name: str, number: str, block: wp.array, count: int, end: wp.array, workspace: Workspace
) -> tuple[wp.array, ElementCount]:
    """The blocks that are marked in `end`, as array `name`, and how many, by the name `number`."""
    kept_count = workspace.scanned(number, end, count, 1, spare_for_none=0)
    kept = workspace.array(name, kept_count.most, Block)
    workspace.launch(compact_blocks, count, [end, block, kept])
    return kept, kept_count


def new_sampler(device_model: DeviceModel, shapes: HydroShapes, options: ContactOptions) -> Sampler:
    """The sampler of a model, with the geometry of its hydroelastic shapes on the device."""
    kinds = device_model.model.shapes.type
    marked = shapes.stiffness > 0.0
    meshes = bool((marked & np.isin(kinds, (ShapeType.MESH, ShapeType.CONVEX_MESH))).any())
    heightfields = bool((marked & (kinds == ShapeType.HEIGHTFIELD)).any())
    solids = upload_solids(device_model, marked)
    compiled = voxel_kernels(meshes, heightfields)
    corners = options.writes_surface or options.hydro_reduce
    return Sampler(solids, compiled, options.hydro_resolution, corners, meshes)
