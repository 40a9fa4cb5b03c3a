"""Launches of the kernels of sampled pairs: blocks from coarse to fine, then the voxels of each pair's last level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Vec2, Vec3
from collidecli.engine.hydroelastic import blocks, patches, voxels
from collidecli.engine.hydroelastic.blocks import Block, Level, VoxelKernels, voxel_kernels
from collidecli.engine.hydroelastic.clipping import FaceList, checked_total
from collidecli.engine.hydroelastic.distances import Solids, upload_solids
from collidecli.engine.hydroelastic.polygon import HydroFace, PatchSums
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.hydro_defaults import HALVINGS_OF_MESHES
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.run_options import ContactOptions
from collidecli.scene.shape_types import ShapeType

LEVELS_BELOW = 20
"""Halvings of a voxel for small patches of convex shapes, whose bounds are tight; of others see HALVINGS_OF_MESHES."""


@dataclass(frozen=True)
class Sampler:
    """The sampled pairs of a model. corners: the faces and their corners are needed."""

    device_model: DeviceModel
    solids: Solids
    compiled: VoxelKernels
    resolution: int
    corners: bool

    def kernels(self) -> list[wp.Kernel]:
        """All kernels."""
        cutting = (voxels.cut_voxels,) if self.corners else ()
        return [*blocks.BLOCK_KERNELS, voxels.sum_blocks, patches.sum_parts, *cutting, *self.compiled]

    def sample(
        self, hydro: wp.array, count: int, patch: wp.array, workspace: Workspace
    ) -> tuple[list[FaceList], np.ndarray]:
        """Sets the patches of the sampled pairs; returns their faces, a list for each level at which pairs end.

        Without need for corners there are no lists. The second result is int32[pairs], 1 for a pair that overlaps and
        for which no face was found at the finest level.
        """
        end = workspace.array("hydro_root_end", count, wp.int32)
        workspace.launch(blocks.count_roots, count, [hydro, end])
        left = workspace.scan(end, count)
        block = workspace.array("hydro_block_0", left, Block)
        marks = [
            workspace.array(name, count, wp.int32) for name in ("hydro_final_level", "hydro_overlaps", "hydro_missed")
        ]
        workspace.launch(blocks.write_roots, count, [end, block, *marks])
        final_level, overlaps, missed = marks
        number = 0
        while int(blocks.SIDE) << -number < self.resolution:
            number -= 1
        lists = []
        while left:
            level = self._level(number)
            block, left = self._kept(hydro, level, block, left, patch, workspace)
            arguments = [self.device_model.rows, hydro, level, block, left, final_level]
            workspace.launch(blocks.end_levels, count, arguments)
            final, final_count = self._final(level, block, left, final_level, workspace)
            if final_count:
                last = (final, final_count)
                faces = self._cut(hydro, count, level, last, patch, len(lists), workspace)
                lists += [] if faces is None else [faces]
                self._test(hydro, level, last, patch, overlaps, 1, workspace)
                marked = [patch, overlaps, final_level, missed]
                workspace.launch(blocks.reopen_pairs, count, [level, final, final_count, *marked])
            block, left = self._children(block, left, final_level, workspace)
            number += 1
        return lists, workspace.host(missed, count)

    def _level(self, number: int) -> Level:
        level = Level()
        level.resolution, level.number, level.scale = self.resolution, number, math.ldexp(1.0, -number)
        level.last, level.last_other = LEVELS_BELOW, HALVINGS_OF_MESHES
        return level

    def _test(
        self,
        hydro: wp.array,
        level: Level,
        blocks_of_level: tuple[wp.array, int],
        patch: wp.array,
        result: wp.array,
        searches: int,
        workspace: Workspace,
    ) -> None:
        """Tests blocks for some of the surface, result by block; or searches for overlap, result by pair."""
        block, count = blocks_of_level
        arguments = [self.device_model.rows, self.solids, hydro, level, block, result, patch, result, searches]
        workspace.launch(self.compiled.test_blocks, count, arguments)

    def _kept(
        self, hydro: wp.array, level: Level, block: wp.array, count: int, patch: wp.array, workspace: Workspace
    ) -> tuple[wp.array, int]:
        """The blocks that may contain some of the surface."""
        end = workspace.array("hydro_block_end", count, wp.int32)
        self._test(hydro, level, (block, count), patch, end, 0, workspace)
        kept_count = workspace.scan(end, count)
        kept = workspace.array("hydro_block_1", kept_count, Block)
        workspace.launch(blocks.compact_blocks, count, [end, block, kept])
        return kept, kept_count

    def _final(
        self, level: Level, block: wp.array, count: int, final_level: wp.array, workspace: Workspace
    ) -> tuple[wp.array, int]:
        """The blocks of pairs that end at this level."""
        end = workspace.array("hydro_final_end", count, wp.int32)
        workspace.launch(blocks.count_final, count, [level, block, final_level, end])
        final_count = workspace.scan(end, count)
        final = workspace.array("hydro_block_2", final_count, Block)
        workspace.launch(blocks.compact_blocks, count, [end, block, final])
        return final, final_count

    def _children(
        self, block: wp.array, count: int, final_level: wp.array, workspace: Workspace
    ) -> tuple[wp.array, int]:
        """The children of the blocks of pairs that go on."""
        end = workspace.array("hydro_child_end", count, wp.int32)
        workspace.launch(blocks.count_children, count, [block, final_level, end])
        checked_total(workspace, end, count)
        child_count = workspace.scan(end, count)
        children = workspace.array("hydro_block_0", child_count, Block)
        workspace.launch(blocks.write_children, count, [block, end, children])
        return children, child_count

    def _cut(
        self,
        hydro: wp.array,
        pair_count: int,
        level: Level,
        blocks_of_level: tuple[wp.array, int],
        patch: wp.array,
        number: int,
        workspace: Workspace,
    ) -> FaceList | None:
        """Sets the patches of the pairs whose last blocks these are; returns the faces if corners are needed."""
        block, count = blocks_of_level
        corner_count, voxel_count = count * int(blocks.CORNER_COUNT), count * int(voxels.VOXEL_COUNT)
        value = workspace.array("hydro_corner_value", corner_count, Vec2)
        arguments = [self.device_model.rows, self.solids, hydro, level, block, value]
        workspace.launch(self.compiled.sample_corners, corner_count, arguments)
        shared = [hydro, level, block, value]
        sums = workspace.array("hydro_block_sums", count, PatchSums)
        workspace.launch(voxels.sum_blocks, count, [*shared, sums])
        workspace.launch(patches.sum_parts, pair_count, [hydro, sums, count, patch])
        if not self.corners:
            return None
        end = workspace.array("hydro_voxel_end", voxel_count, wp.int32)
        face = workspace.array(f"hydro_face_{number}", 1, HydroFace)
        vertex = workspace.array(f"hydro_vertex_{number}", 1, Vec3)
        workspace.launch(voxels.cut_voxels, voxel_count, [*shared, end, face, vertex, 0])
        face_count = workspace.scan(end, voxel_count)
        face = workspace.array(f"hydro_face_{number}", face_count, HydroFace)
        slots = int(voxels.FACE_CORNERS)
        vertex = workspace.array(f"hydro_vertex_{number}", slots * face_count, Vec3)
        workspace.launch(voxels.cut_voxels, voxel_count, [*shared, end, face, vertex, 1])
        return FaceList(face, face_count, vertex, slots * face_count, slots)


def new_sampler(device_model: DeviceModel, shapes: HydroShapes, options: ContactOptions) -> Sampler:
    """The sampler of a model, with the geometry of its hydroelastic shapes on the device."""
    kinds = device_model.model.shapes.type
    marked = shapes.stiffness > 0.0
    meshes = bool((marked & np.isin(kinds, (ShapeType.MESH, ShapeType.CONVEX_MESH))).any())
    heightfields = bool((marked & (kinds == ShapeType.HEIGHTFIELD)).any())
    solids = upload_solids(device_model, marked)
    compiled = voxel_kernels(meshes, heightfields)
    corners = options.writes_surface or options.hydro_reduce
    return Sampler(device_model, solids, compiled, options.hydro_resolution, corners)
