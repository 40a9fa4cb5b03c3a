"""Contact surfaces in voxels: exact distances at their corners, linear within six tetrahedra each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.contact_record import start_of
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.hydroelastic import blocks, patches
from collidecli.engine.hydroelastic.blocks import (
    CORNER_COUNT,
    CORNER_SIDE,
    SIDE,
    Block,
    Level,
    VoxelKernels,
    voxel_kernels,
    voxel_side,
)
from collidecli.engine.hydroelastic.pairs import HydroPair, Solids, upload_solids
from collidecli.engine.hydroelastic.polytopes import (
    IN_PLANE,
    Clipped,
    FaceList,
    HydroFace,
    LinearField,
    PatchSums,
    checked_total,
    clip_by_depth,
    face_of_polygon,
    with_face,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.warp_internals import set_field
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.hydroelastic import HALVINGS_OF_MESHES, HydroShapes
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

Vec4 = wp.vec4d
Mat43 = wp.types.matrix((4, 3), Real)

VOXEL_COUNT = wp.constant(64)
"""Voxels of a block."""
FACE_CORNERS = wp.constant(5)
"""Most corners of a face: a quadrilateral clipped once."""
LOCAL_CORNERS = 16


@wp.struct
class Tetrahedron:
    """Corners of a tetrahedron, both distances there, and their `pressure_difference`.

    step: of each axis the number of the step along it, from corner `step` to the next. side: of the voxel [m].
    """

    first: Vec4
    second: Vec4
    difference: Vec4
    point: Mat43
    step: wp.vec3i
    side: Real


@wp.func
def change_along(tetrahedron: Tetrahedron, value: Vec4, step: int) -> Real:
    """Derivative of a linear function along the axis of a step. Without a variable index, which stalls a processor."""
    change = value[1] - value[0]
    if step == 1:
        change = value[2] - value[1]
    elif step == 2:
        change = value[3] - value[2]
    return change / tetrahedron.side


@wp.func
def linear_in(tetrahedron: Tetrahedron, value: Vec4) -> LinearField:
    """The linear function with these values at the corners."""
    result = LinearField()
    result.slope = Vec3(
        change_along(tetrahedron, value, tetrahedron.step[0]),
        change_along(tetrahedron, value, tetrahedron.step[1]),
        change_along(tetrahedron, value, tetrahedron.step[2]),
    )
    origin = Vec3(tetrahedron.point[0, 0], tetrahedron.point[0, 1], tetrahedron.point[0, 2])
    result.value = value[0] - wp.dot(result.slope, origin)
    return result


@wp.func
def crossing(tetrahedron: Tetrahedron, low: int, high: int) -> Vec3:
    """The point between a negative and another corner where the difference is zero."""
    p = Vec3(tetrahedron.point[low, 0], tetrahedron.point[low, 1], tetrahedron.point[low, 2])
    q = Vec3(tetrahedron.point[high, 0], tetrahedron.point[high, 1], tetrahedron.point[high, 2])
    t = tetrahedron.difference[low] / (tetrahedron.difference[low] - tetrahedron.difference[high])
    return p + t * (q - p)


@wp.func
def zero_polygon(tetrahedron: Tetrahedron, corner: wp.array[Vec3], normal: Vec3) -> int:
    """The triangle or quadrilateral where the difference is zero, counterclockwise about `normal`; its corner count.

    A difference of zero counts as positive, so that a polygon in a face of two tetrahedra belongs to the one where the
    difference is negative.
    """
    order = wp.vec4i(0, 0, 0, 0)
    negative = int(0)
    for k in range(4):
        if tetrahedron.difference[k] < Real(0.0):
            order[negative] = k
            negative += 1
    if negative == 0 or negative == 4:
        return 0
    at = negative
    for k in range(4):
        if tetrahedron.difference[k] >= Real(0.0):
            order[at] = k
            at += 1
    count = int(3)
    if negative == 1:
        for k in range(3):
            corner[k] = crossing(tetrahedron, order[0], order[k + 1])
    elif negative == 3:
        for k in range(3):
            corner[k] = crossing(tetrahedron, order[k], order[3])
    else:
        corner[0] = crossing(tetrahedron, order[0], order[2])
        corner[1] = crossing(tetrahedron, order[0], order[3])
        corner[2] = crossing(tetrahedron, order[1], order[3])
        corner[3] = crossing(tetrahedron, order[1], order[2])
        count = 4
    area = wp.cross(corner[1] - corner[0], corner[2] - corner[0])
    if count == 4:
        area = wp.cross(corner[2] - corner[0], corner[3] - corner[1])
    if wp.dot(area, normal) < Real(0.0):
        swap = corner[0]
        corner[0] = corner[count - 1]
        corner[count - 1] = swap
        if count == 4:
            swap = corner[1]
            corner[1] = corner[2]
            corner[2] = swap
    return count


@wp.func
def face_in(pair: HydroPair, tetrahedron: Tetrahedron, corner: wp.array[Vec3]) -> HydroFace:
    """The surface within a tetrahedron; its corners are in `corner` from `first_corner` on."""
    none = HydroFace()
    lowest = wp.min(tetrahedron.difference)
    highest = wp.max(tetrahedron.difference)
    if lowest >= Real(0.0) or highest < Real(0.0):
        return none
    phi0 = linear_in(tetrahedron, tetrahedron.first)
    phi1 = linear_in(tetrahedron, tetrahedron.second)
    difference = linear_in(tetrahedron, tetrahedron.difference)
    length = wp.length(difference.slope)
    if length == Real(0.0):
        return none
    normal = pair.sign * difference.slope / length
    polygon = Clipped()
    polygon.target = wp.static(LOCAL_CORNERS // 2)
    polygon.count = zero_polygon(tetrahedron, corner, normal)
    if polygon.count == 0:
        return none
    polygon = clip_by_depth(pair, phi0, phi1, corner, polygon)
    if polygon.count < 3:
        return none
    return face_of_polygon(pair, phi0, phi1, normal, corner, polygon)


@wp.func
def corner_number(x: int, y: int, z: int) -> int:
    """Number of a corner in its block."""
    return (x * CORNER_SIDE + y) * CORNER_SIDE + z


@wp.func
def step_along(first: int, second: int, axis: int) -> int:
    """Number of the step along an axis, where the first two steps are along `first` and `second`."""
    return wp.where(axis == first, 0, wp.where(axis == second, 1, 2))


@wp.func
def pressure_difference(pair: HydroPair, distance: Vec2) -> Real:
    """Weighted distance from the reference shape less that from the other; 0 within rounding.

    A flat side of a rigid reference shape may lie in the grid's boundary. The grid has voxels on its inner side only,
    where the difference is negative: see `zero_polygon`.
    """
    difference = pair.sign * (pair.weight0 * distance[0] - pair.weight1 * distance[1])
    if wp.abs(difference) <= IN_PLANE * pair.size:
        return Real(0.0)
    return difference


@wp.func
def tetrahedron_of(
    pair: HydroPair, level: Level, block: Block, first: int, voxel: wp.vec3i, which: int, value: wp.array[Vec2]
) -> Tetrahedron:
    """One of the six tetrahedra of a voxel, along the path of edges that follows the axes in one of their orders.

    first: of the block's values. Source: Kuhn 1960.
    """
    result = Tetrahedron()
    a = which / 2
    b = (a + 1 + which % 2) % 3
    result.step = wp.vec3i(step_along(a, b, 0), step_along(a, b, 1), step_along(a, b, 2))
    result.side = voxel_side(pair, level)
    for k in range(4):
        at = voxel + wp.vec3i(
            wp.where(result.step[0] < k, 1, 0), wp.where(result.step[1] < k, 1, 0), wp.where(result.step[2] < k, 1, 0)
        )
        here = value[first + corner_number(at[0], at[1], at[2])]
        result.first[k] = here[0]
        result.second[k] = here[1]
        result.difference[k] = pressure_difference(pair, here)
        for axis in range(3):
            result.point[k, axis] = result.side * Real(SIDE * block.index[axis] + at[axis]) - pair.half[axis]
    return result


@wp.func
def has_surface(pair: HydroPair, first: int, voxel: wp.vec3i, value: wp.array[Vec2]) -> bool:
    """Whether the corners of a voxel allow a surface with pressure."""
    positive = bool(False)
    negative = bool(False)
    inside = bool(False)
    for k in range(8):
        here = value[first + corner_number(voxel[0] + (k >> 2), voxel[1] + ((k >> 1) & 1), voxel[2] + (k & 1))]
        difference = pressure_difference(pair, here)
        negative = negative or difference < Real(0.0)
        positive = positive or difference >= Real(0.0)
        inside = inside or wp.where(pair.soft == 0, here[0], here[1]) < Real(0.0)
    return positive and negative and inside


@kernel
def sum_blocks(
    hydro: wp.array[HydroPair],
    level: Level,
    block: wp.array[Block],
    value: wp.array[Vec2],
    sums: wp.array[PatchSums],
):
    """One thread a block: sums over its faces, in the order of voxels and tetrahedra."""
    thread = wp.tid()
    here = block[thread]
    pair = hydro[here.pair]
    first = thread * CORNER_COUNT
    result = PatchSums()
    result.pair = here.pair
    corner = wp.zeros(shape=wp.static(LOCAL_CORNERS), dtype=Vec3)
    tetrahedra = int(6)  # a variable: the loop is not unrolled
    for within in range(VOXEL_COUNT):
        voxel = wp.vec3i(within / (SIDE * SIDE), (within / SIDE) % SIDE, within % SIDE)
        if has_surface(pair, first, voxel, value):
            for which in range(tetrahedra):
                tetrahedron = tetrahedron_of(pair, level, here, first, voxel, which, value)
                result = with_face(result, face_in(pair, tetrahedron, corner))
    sums[thread] = result


@kernel
def cut_voxels(
    hydro: wp.array[HydroPair],
    level: Level,
    block: wp.array[Block],
    value: wp.array[Vec2],
    end: wp.array[wp.int32],
    face: wp.array[HydroFace],
    vertex: wp.array[Vec3],
    writes: int,
):
    """One thread a voxel: counts its faces; in the second pass writes them and their corners."""
    thread = wp.tid()
    number = thread / VOXEL_COUNT
    within = thread % VOXEL_COUNT
    voxel = wp.vec3i(within / (SIDE * SIDE), (within / SIDE) % SIDE, within % SIDE)
    if writes > 0 and end[thread] == start_of(end, thread):
        return
    here = block[number]
    pair = hydro[here.pair]
    first = number * CORNER_COUNT
    found = int(0)
    tetrahedra = int(6)  # a variable: the loop is not unrolled
    if has_surface(pair, first, voxel, value):
        corner = wp.zeros(shape=wp.static(LOCAL_CORNERS), dtype=Vec3)
        for which in range(tetrahedra):
            tetrahedron = tetrahedron_of(pair, level, here, first, voxel, which, value)
            part = face_in(pair, tetrahedron, corner)
            if part.count > 0:
                if writes > 0:
                    slot = start_of(end, thread) + found
                    part.pair = here.pair
                    face[slot] = part
                    for k in range(part.count):
                        at = corner[part.first_corner + k]
                        vertex[slot * FACE_CORNERS + k] = wp.transform_point(pair.world, at)
                found += 1
    if writes == 0:
        end[thread] = found


# Launches of the kernels of sampled pairs: blocks from coarse to fine, then the voxels of each pair's last level.

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
        cutting = (cut_voxels,) if self.corners else ()
        return [*blocks.BLOCK_KERNELS, sum_blocks, patches.sum_parts, *cutting, *self.compiled]

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
        set_field(level, "scale", math.ldexp(1.0, -number))
        level.resolution, level.number = self.resolution, number
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
        corner_count, voxel_count = count * int(blocks.CORNER_COUNT), count * int(VOXEL_COUNT)
        value = workspace.array("hydro_corner_value", corner_count, Vec2)
        arguments = [self.device_model.rows, self.solids, hydro, level, block, value]
        workspace.launch(self.compiled.sample_corners, corner_count, arguments)
        shared = [hydro, level, block, value]
        sums = workspace.array("hydro_block_sums", count, PatchSums)
        workspace.launch(sum_blocks, count, [*shared, sums])
        workspace.launch(patches.sum_parts, pair_count, [hydro, sums, count, patch])
        if not self.corners:
            return None
        end = workspace.array("hydro_voxel_end", voxel_count, wp.int32)
        face = workspace.array(f"hydro_face_{number}", 1, HydroFace)
        vertex = workspace.array(f"hydro_vertex_{number}", 1, Vec3)
        workspace.launch(cut_voxels, voxel_count, [*shared, end, face, vertex, 0])
        face_count = workspace.scan(end, voxel_count)
        face = workspace.array(f"hydro_face_{number}", face_count, HydroFace)
        slots = int(FACE_CORNERS)
        vertex = workspace.array(f"hydro_vertex_{number}", slots * face_count, Vec3)
        workspace.launch(cut_voxels, voxel_count, [*shared, end, face, vertex, 1])
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
