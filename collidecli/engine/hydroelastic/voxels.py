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
from collidecli.engine.runtime.warp_internals import set_field
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.hydroelastic import HALVINGS_OF_MESHES, HydroShapes
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

LEVELS_BELOW = 20
"""Halvings of a voxel for small patches of convex shapes, whose bounds are tight; of others see
HALVINGS_OF_MESHES."""


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
        left = workspace.scan(end, count)
        block = workspace.array("hydro_block_0", left, Block)
        names = "hydro_final_level", "hydro_overlaps", "hydro_missed"
        final_level, overlaps, missed = (workspace.array(name, count, wp.int32) for name in names)
        workspace.launch(write_roots, count, [end, block, final_level, overlaps, missed])
        number = 0
        while int(SIDE) << -number < self.resolution:
            number -= 1
        lists = []
        shared = [self.solids, hydro]
        while left:
            level = Level()
            set_field(level, "scale", math.ldexp(1.0, -number))
            level.resolution = self.resolution
            level.number = number
            level.last = LEVELS_BELOW
            level.last_other = HALVINGS_OF_MESHES
            end = workspace.array("hydro_block_end", left, wp.int32)
            workspace.launch(
                self.compiled.test_blocks, left, [*shared, level, block, patch, end, 0]
            )
            block, left = _selected("hydro_block_1", block, left, end, workspace)
            workspace.launch(
                end_levels, count, [self.solids, hydro, level, block, left, final_level]
            )
            end = workspace.array("hydro_final_end", left, wp.int32)
            workspace.launch(count_final, left, [level, block, final_level, end])
            final, final_count = _selected("hydro_block_2", block, left, end, workspace)
            if final_count:
                last = final, final_count
                lists += self._cut(hydro, count, level, last, patch, len(lists), workspace)
                workspace.launch(
                    self.compiled.test_blocks,
                    final_count,
                    [*shared, level, final, patch, overlaps, 1],
                )
                marked = [patch, overlaps, final_level, missed]
                workspace.launch(reopen_pairs, count, [level, final, final_count, *marked])
            end = workspace.array("hydro_child_end", left, wp.int32)
            workspace.launch(count_children, left, [block, final_level, end])
            child_count = workspace.scan(end, left, most=8)
            children = workspace.array("hydro_block_0", child_count, Block)
            workspace.launch(write_children, left, [block, end, children])
            block = children
            left = child_count
            number += 1
        return lists, missed

    def _cut(
        self,
        hydro: wp.array,
        pair_count: int,
        level: Level,
        blocks_of_level: tuple[wp.array, int],
        patch: wp.array,
        number: int,
        workspace: Workspace,
    ) -> list[FaceList]:
        """Sets the patches of the pairs whose last blocks these are; returns the faces if corners
        are needed."""
        block, count = blocks_of_level
        corner_count = count * int(CORNER_COUNT)
        voxel_count = count * int(VOXEL_COUNT)
        value = workspace.array("hydro_corner_value", corner_count, Vec2)
        feature = workspace.array(
            "hydro_corner_feature", corner_count if self.has_meshes else 1, wp.vec2i
        )
        part = workspace.array("hydro_part", count, wp.int32)
        shared = [self.solids, hydro, level, block, part, value, feature]
        workspace.launch(self.compiled.test_parts, count, shared)
        workspace.launch(self.compiled.sample_corners, corner_count, shared)
        sums = workspace.array("hydro_block_sums", count, PatchSums)
        workspace.launch(sum_blocks, count, [*shared, sums])
        workspace.launch(sum_parts, pair_count, [hydro, sums, count, patch])
        if not self.corners:
            return []
        end = workspace.array("hydro_voxel_end", voxel_count, wp.int32)
        face = workspace.array(f"hydro_face_{number}", 1, HydroFace)
        vertex = workspace.array(f"hydro_vertex_{number}", 1, Vec3)
        workspace.launch(cut_voxels, voxel_count, [*shared, end, face, vertex, 0])
        face_count = workspace.scan(end, voxel_count)
        face = workspace.array(f"hydro_face_{number}", face_count, HydroFace)
        slots = int(FACE_CORNERS)
        vertex = workspace.array(f"hydro_vertex_{number}", slots * face_count, Vec3)
        workspace.launch(cut_voxels, voxel_count, [*shared, end, face, vertex, 1])
        return [FaceList(face, face_count, vertex, slots * face_count, slots)]


def _selected(
    name: str, block: wp.array, count: int, end: wp.array, workspace: Workspace
) -> tuple[wp.array, int]:
    """The blocks that are marked in `end`, as array `name`, and their number."""
    kept_count = workspace.scan(end, count)
    kept = workspace.array(name, kept_count, Block)
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
