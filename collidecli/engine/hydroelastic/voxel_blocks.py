"""Blocks of voxels that may contain the surface of a sampled pair, from coarse to fine."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import warp as wp

from collidecli.engine.contact_record import start_of
from collidecli.engine.geometry.real import CONVEX_MESH, Real, Vec2, Vec3
from collidecli.engine.hydroelastic.common_point import overlap_function
from collidecli.engine.hydroelastic.ordered_by_pair import first_of_pair
from collidecli.engine.hydroelastic.pairs import ROUNDING, VOXELS, HydroPair
from collidecli.engine.hydroelastic.patch_sums import HydroPatch
from collidecli.engine.hydroelastic.solids import Distance, Solids, distance_function
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.hydroelastic import VOXELS_ACROSS

SIDE = wp.constant(4)
"""Voxels along a block's side."""
CORNER_SIDE = wp.constant(5)
CORNER_COUNT = wp.constant(125)
CHILDREN = wp.constant(8)
"""Blocks of the next level in a block."""
PATCH_SHARE = wp.constant(2)
"""A patch has a PATCH_SHARE-th of the resolution in voxels, or more, along its longest side."""
WIDTH_SHARE = wp.constant(4)
"""Its area is a WIDTH_SHARE-th of the resolution in voxels, or more, times its longest side."""
THIN = wp.constant(Real(VOXELS_ACROSS))
"""A voxel is at most this fraction of the reference shape's shortest side."""
ENDED = wp.constant(-1000)
"""Level of a pair without blocks."""
FEW = wp.constant(512)
"""Blocks of a pair, up to which it is divided to the last level of convex pairs, whatever its
shapes are."""
MOST_REOPENED = wp.constant(2048)
"""Blocks of a pair, above which it is not divided further for a surface that was not found."""


@wp.struct
class Block:
    """A block of voxels of a pair's grid. likely: 1 where the shapes overlap at its centre, as far
    as is known."""

    pair: int
    index: wp.vec3i
    likely: int


@wp.struct
class Level:
    """A level of all pairs' grids. coarse: voxels at the resolution along a voxel's side; fine: the
    inverse below it.

    resolution: see --hydro-resolution. number: 0 at the resolution, positive for finer voxels.
    last: finest for convex pairs and those with few blocks; last_other: for others.
    """

    resolution: int
    number: int
    scale: Real
    last: int
    last_other: int


@wp.func
def voxel_side(pair: HydroPair, level: Level) -> Real:
    """Side of a voxel [m]."""
    return Real(2.0) * wp.max(pair.half) * level.scale / Real(level.resolution)


@wp.func
def is_convex_type(solids: Solids, row: int) -> bool:
    """Whether a shape type is convex."""
    return solids.rows.type[row] <= CONVEX_MESH


@kernel
def count_roots(hydro: wp.array[HydroPair], end: wp.array[wp.int32]):
    """One thread a pair: 1 for a pair that is sampled."""
    thread = wp.tid()
    end[thread] = wp.where(hydro[thread].method == VOXELS, 1, 0)


@kernel
def write_roots(
    end: wp.array[wp.int32],
    block: wp.array[Block],
    final_level: wp.array[wp.int32],
    overlaps: wp.array[wp.int32],
    missed: wp.array[wp.int32],
):
    """One thread a pair: its coarsest block, which contains the reference shape; sets all marks of
    the pair."""
    thread = wp.tid()
    final_level[thread] = ENDED
    overlaps[thread] = 0
    missed[thread] = 0
    if end[thread] > start_of(end, thread):
        block[start_of(end, thread)] = Block(thread, wp.vec3i(), 0)


@kernel
def compact_blocks(end: wp.array[wp.int32], block: wp.array[Block], kept: wp.array[Block]):
    """One thread a block: copies those that are kept."""
    thread = wp.tid()
    if end[thread] > start_of(end, thread):
        kept[start_of(end, thread)] = block[thread]


@kernel
def end_levels(
    solids: Solids,
    hydro: wp.array[HydroPair],
    level: Level,
    block: wp.array[Block],
    most: int,
    bound: wp.array[wp.int32],
    final_level: wp.array[wp.int32],
):
    """One thread a pair: whether this level's voxels are small enough for its patch. There are as
    many blocks as the lesser of `most` and the bound."""
    thread = wp.tid()
    count = wp.min(most, bound[0])
    if level.number < 0 or final_level[thread] != ENDED:
        return
    first = first_of_pair(block, count, thread)
    end = first_of_pair(block, count, thread + 1)
    if first == end:
        return
    pair = hydro[thread]
    lower = wp.vec3i(1 << 30, 1 << 30, 1 << 30)
    upper = wp.vec3i(-1, -1, -1)
    likely = int(0)
    for k in range(first, end):
        likely += block[k].likely
        if block[k].likely == 1:
            lower = wp.min(lower, block[k].index)
            upper = wp.max(upper, block[k].index)
    extent = upper - lower
    longest = wp.max(extent) + 1
    shortest = Real(2.0) * wp.min(pair.half)
    fits = (
        PATCH_SHARE * SIDE * longest >= level.resolution
        and THIN * voxel_side(pair, level) <= shortest
    )
    # A long and narrow patch, as of a lying cylinder, has one to two layers of likely blocks, as
    # every patch has.
    narrow = WIDTH_SHARE * SIDE * likely < level.resolution * longest
    fits = fits and (not narrow or 2 * (end - first) > level.resolution * level.resolution)
    last = level.last_other
    if end - first <= FEW or (
        is_convex_type(solids, pair.row0) and is_convex_type(solids, pair.row1)
    ):
        last = level.last
    if fits or level.number >= last:
        final_level[thread] = level.number


@kernel
def count_final(
    level: Level,
    block: wp.array[Block],
    bound: wp.array[wp.int32],
    final_level: wp.array[wp.int32],
    end: wp.array[wp.int32],
):
    """One thread a block: 1 where its pair ends at this level, 0 beyond the bound."""
    thread = wp.tid()
    end[thread] = 0
    if thread < bound[0]:
        end[thread] = wp.where(final_level[block[thread].pair] == level.number, 1, 0)


@kernel
def reopen_pairs(
    level: Level,
    block: wp.array[Block],
    most: int,
    bound: wp.array[wp.int32],
    patch: wp.array[HydroPatch],
    overlaps: wp.array[wp.int32],
    final_level: wp.array[wp.int32],
    missed: wp.array[wp.int32],
):
    """One thread a pair: one that overlaps and has no faces goes on, or is marked in `missed` at
    the limits. There are as many blocks as the lesser of `most` and the bound."""
    thread = wp.tid()
    count = wp.min(most, bound[0])
    if final_level[thread] != level.number or overlaps[thread] == 0 or patch[thread].face_count > 0:
        return
    overlaps[thread] = 0
    size = first_of_pair(block, count, thread + 1) - first_of_pair(block, count, thread)
    if level.number < level.last and size <= MOST_REOPENED:
        final_level[thread] = ENDED
    else:
        missed[thread] = 1


@kernel
def count_children(
    block: wp.array[Block],
    bound: wp.array[wp.int32],
    final_level: wp.array[wp.int32],
    end: wp.array[wp.int32],
):
    """One thread a block: CHILDREN where its pair goes on, 0 beyond the bound."""
    thread = wp.tid()
    end[thread] = 0
    if thread < bound[0]:
        end[thread] = wp.where(final_level[block[thread].pair] == ENDED, CHILDREN, 0)


@kernel
def write_children(block: wp.array[Block], end: wp.array[wp.int32], children: wp.array[Block]):
    """One thread a block: writes its children."""
    thread = wp.tid()
    first = start_of(end, thread)
    if end[thread] > first:
        parent = block[thread]
        for k in range(CHILDREN):
            index = 2 * parent.index + wp.vec3i((k >> 2) & 1, (k >> 1) & 1, k & 1)
            children[first + k] = Block(parent.pair, index, 0)


@wp.func
def lower_bound(distance: Distance, half: Vec3, radius: Real, convex: bool) -> Real:
    """Lower bound of a distance within a block, from that at its centre."""
    bound = distance.value - radius
    if convex and wp.length_sq(distance.gradient) > Real(0.5):
        gradient = wp.abs(distance.gradient)
        change = gradient[0] * half[0] + gradient[1] * half[1] + gradient[2] * half[2]
        bound = wp.max(bound, distance.value - change)
    return bound


@wp.func
def may_contain(
    pair: HydroPair, first: Distance, second: Distance, half: Vec3, convex0: bool, convex1: bool
) -> bool:
    """Whether a block may contain some of the surface. first, second: distances at its centre, less
    the margins."""
    radius = wp.length(half) * (Real(1.0) + ROUNDING) + ROUNDING * pair.size
    slack = ROUNDING * pair.size
    if (
        lower_bound(first, half, radius, convex0) > slack
        or lower_bound(second, half, radius, convex1) > slack
    ):
        return False
    if wp.abs(pair.weight0 * first.value - pair.weight1 * second.value) > radius:
        return False
    if (
        convex0
        and convex1
        and wp.length_sq(first.gradient) > Real(0.5)
        and wp.length_sq(second.gradient) > Real(0.5)
    ):
        gradient = wp.abs(first.gradient + second.gradient)
        change = gradient[0] * half[0] + gradient[1] * half[1] + gradient[2] * half[2]
        return first.value + second.value - change <= slack
    return True


class VoxelKernels(NamedTuple):
    """The kernels that evaluate distances."""

    test_blocks: wp.Kernel
    test_parts: wp.Kernel
    sample_corners: wp.Kernel


@cache
def voxel_kernels(with_meshes: bool, with_heightfields: bool) -> VoxelKernels:
    """Kernels with the distances of the types that a scene has."""
    distance: Any = distance_function(with_meshes, with_heightfields)

    @wp.func
    def distance_at(solids: Solids, pair: HydroPair, side: int, point: Vec3) -> Distance:
        """Distance of a point of the reference frame from shape 0 or 1 with its margin."""
        pose = wp.where(side == 0, pair.pose0, pair.pose1)
        rotation = wp.transform_get_rotation(pose)
        local = wp.quat_rotate_inv(rotation, point - wp.transform_get_translation(pose))
        result = distance(solids, wp.where(side == 0, pair.row0, pair.row1), local)
        result.value -= wp.where(side == 0, pair.margin0, pair.margin1)
        result.gradient = wp.quat_rotate(rotation, result.gradient)
        return result

    return VoxelKernels(
        _block_kernel(distance_at),
        _part_kernel(distance_at, with_meshes),
        _corner_kernel(distance_at, with_meshes),
    )


def _block_kernel(distance_at: Any) -> wp.Kernel:
    overlaps_near: Any = overlap_function(distance_at)

    @kernel
    def test_blocks(
        solids: Solids,
        hydro: wp.array[HydroPair],
        level: Level,
        block: wp.array[Block],
        bound: wp.array[wp.int32],
        patch: wp.array[HydroPatch],
        result: wp.array[wp.int32],
        searches: int,
    ):
        """One thread a block: 1 in `result` where it may contain some of the surface, 0 beyond the
        bound.

        searches: 1 to set it for a pair instead, one without faces that overlaps near the block.
        """
        thread = wp.tid()
        if thread >= bound[0]:
            if searches == 0:
                result[thread] = 0
            return
        number = block[thread].pair
        pair = hydro[number]
        side = Real(SIDE) * voxel_side(pair, level)
        half = Vec3(side, side, side) * Real(0.5)
        index = block[thread].index
        corner = Vec3(Real(index[0]), Real(index[1]), Real(index[2])) * side - pair.half
        center = corner + half
        if searches == 1:
            if patch[number].face_count == 0 and overlaps_near(solids, pair, center, side):
                result[number] = 1
            return
        slack = ROUNDING * pair.size
        result[thread] = 0
        for axis in range(3):
            if (
                corner[axis] > pair.upper[axis] + slack
                or corner[axis] + side < pair.lower[axis] - slack
            ):
                return
        first = distance_at(solids, pair, 0, center)
        second = distance_at(solids, pair, 1, center)
        convex0 = is_convex_type(solids, pair.row0)
        convex1 = is_convex_type(solids, pair.row1)
        if may_contain(pair, first, second, half, convex0, convex1):
            result[thread] = 1
            block[thread].likely = wp.where(first.value + second.value <= Real(0.0), 1, 0)

    return test_blocks


@wp.func
def corner_number(x: int, y: int, z: int) -> int:
    """Number of a corner in its block."""
    return (x * CORNER_SIDE + y) * CORNER_SIDE + z


@wp.func
def corner_offset(number: int) -> wp.vec3i:
    """Place of a corner in its block, 0 to SIDE along each axis."""
    return wp.vec3i(
        number / (CORNER_SIDE * CORNER_SIDE),
        (number / CORNER_SIDE) % CORNER_SIDE,
        number % CORNER_SIDE,
    )


@wp.func
def corner_point(pair: HydroPair, level: Level, block: Block, offset: wp.vec3i) -> Vec3:
    """Corner of a block's voxels in the reference frame [m]."""
    result = Vec3()
    side = voxel_side(pair, level)
    for axis in range(3):
        result[axis] = side * Real(SIDE * block.index[axis] + offset[axis]) - pair.half[axis]
    return result


@wp.func
def is_centre(offset: wp.vec3i) -> bool:
    """Whether a corner is the centre of a part of a block."""
    return offset[0] % 2 == 1 and offset[1] % 2 == 1 and offset[2] % 2 == 1


@wp.func
def parts_at(offset: wp.vec3i) -> int:
    """Bits of the parts that have a corner in common: those on its side of the block's middle along
    each axis, or both."""
    result = wp.where(offset[0] < 2, 0x0F, wp.where(offset[0] > 2, 0xF0, 0xFF))
    result = result & wp.where(offset[1] < 2, 0x33, wp.where(offset[1] > 2, 0xCC, 0xFF))
    return result & wp.where(offset[2] < 2, 0x55, wp.where(offset[2] > 2, 0xAA, 0xFF))


def _part_kernel(distance_at: Any, with_meshes: bool) -> wp.Kernel:
    @kernel
    def test_parts(
        solids: Solids,
        hydro: wp.array[HydroPair],
        level: Level,
        block: wp.array[Block],
        bound: wp.array[wp.int32],
        part: wp.array[int],
        value: wp.array[Vec2],
        feature: wp.array[wp.vec2i],
    ):
        """One thread per block, as many as the bound: sets the bits in `part` of those of its eight
        parts that may contain some of the surface. Writes the values of the corners at the parts'
        centres."""
        thread = wp.tid()
        if thread >= bound[0]:
            return
        own_block = block[thread]
        pair = hydro[own_block.pair]
        side = voxel_side(pair, level)
        half = Vec3(side, side, side)
        convex0 = is_convex_type(solids, pair.row0)
        convex1 = is_convex_type(solids, pair.row1)
        bits = int(0)
        parts = int(8)  # a variable: the loop is not unrolled
        for k in range(parts):
            offset = wp.vec3i(1 + 2 * (k >> 2), 1 + 2 * ((k >> 1) & 1), 1 + 2 * (k & 1))
            center = corner_point(pair, level, own_block, offset)
            first = distance_at(solids, pair, 0, center)
            second = distance_at(solids, pair, 1, center)
            if may_contain(pair, first, second, half, convex0, convex1):
                bits = bits | (1 << k)
            at = thread * CORNER_COUNT + corner_number(offset[0], offset[1], offset[2])
            value[at] = Vec2(first.value, second.value)
            if wp.static(with_meshes):
                feature[at] = wp.vec2i(first.feature, second.feature)
        part[thread] = bits

    return test_parts


def _corner_kernel(distance_at: Any, with_meshes: bool) -> wp.Kernel:
    @kernel
    def sample_corners(
        solids: Solids,
        hydro: wp.array[HydroPair],
        level: Level,
        block: wp.array[Block],
        bound: wp.array[wp.int32],
        part: wp.array[int],
        value: wp.array[Vec2],
        feature: wp.array[wp.vec2i],
    ):
        """One thread a corner of the voxels of a block, of as many as the bound: both distances,
        less the margins, and the nearest features.

        Left out are the centres of the block's parts, which are known, and the corners of parts
        without surface alone, which nothing reads. feature: set only with meshes.
        """
        thread = wp.tid()
        number = thread / CORNER_COUNT
        if number >= bound[0]:
            return
        offset = corner_offset(thread % CORNER_COUNT)
        if is_centre(offset) or (part[number] & parts_at(offset)) == 0:
            return
        own_block = block[number]
        pair = hydro[own_block.pair]
        point = corner_point(pair, level, own_block, offset)
        first = distance_at(solids, pair, 0, point)
        second = distance_at(solids, pair, 1, point)
        value[thread] = Vec2(first.value, second.value)
        if wp.static(with_meshes):
            feature[thread] = wp.vec2i(first.feature, second.feature)

    return sample_corners


BLOCK_KERNELS = (
    count_roots,
    write_roots,
    compact_blocks,
    end_levels,
    count_final,
    reopen_pairs,
    count_children,
    write_children,
)
