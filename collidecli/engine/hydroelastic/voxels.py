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
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import warp as wp

from collidecli.engine.contact_record import start_of
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import CONVEX_MESH, Real, Vec2, Vec3
from collidecli.engine.hydroelastic.mesh_sides import is_flat_near
from collidecli.engine.hydroelastic.pairs import (
    ROUNDING,
    VOXELS,
    Distance,
    HydroPair,
    Solids,
    distance_function,
    first_of_pair,
    upload_solids,
)
from collidecli.engine.hydroelastic.polytopes import (
    FaceList,
    HydroFace,
    HydroPatch,
    PatchSums,
    sum_parts,
    with_face,
)
from collidecli.engine.hydroelastic.tetrahedra import (
    FACE_CORNERS,
    LOCAL_CORNERS,
    Edges,
    Tetrahedron,
    edges_in,
    edges_with_meshes,
    face_in,
    face_of_sides,
    has_edges,
    is_mesh,
    is_near_edge,
    pressure_difference,
    verified,
)
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.warp_internals import set_field
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.hydroelastic import HALVINGS_OF_MESHES, VOXELS_ACROSS, HydroShapes
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

# Search for a point inside both shapes of a sampled pair.

SEARCH_STEPS = wp.constant(16)
"""Projections in the search for a point inside both shapes."""
DIFFERENCE = wp.constant(Real(1.0e-3))
"""Step of differences for a gradient, as a fraction of a block's side."""


def overlap_function(distance_at: Any) -> Any:
    """overlaps_near(solids, pair, start, side) -> bool, for the distances of the types that a scene
    has."""

    @wp.func
    def gradient_at(
        solids: Solids, pair: HydroPair, side: int, point: Vec3, known: Vec3, step: Real
    ) -> Vec3:
        """Direction in which a distance increases: its gradient `known`, or by differences where
        this is 0."""
        if wp.length_sq(known) > Real(0.5):
            return known
        slope = Vec3()
        axes = int(3)  # a variable: the loop is not unrolled
        for axis in range(axes):
            off = Vec3()
            off[axis] = step
            above = distance_at(solids, pair, side, point + off)
            below = distance_at(solids, pair, side, point - off)
            slope[axis] = above.value - below.value
        return wp.normalize(slope)

    @wp.func
    def overlaps_near(solids: Solids, pair: HydroPair, start: Vec3, side: Real) -> bool:
        """Whether projections onto both surfaces in turn, from a point on, lead to a point inside
        both shapes."""
        point = start
        steps = int(SEARCH_STEPS)  # a variable: the loop is not unrolled
        for number in range(steps):
            first = distance_at(solids, pair, 0, point)
            second = distance_at(solids, pair, 1, point)
            outer = wp.max(first.value, second.value)
            if outer < -ROUNDING * pair.size:
                return True
            farther = wp.where(first.value >= second.value, 0, 1)
            known = wp.where(farther == 0, first.gradient, second.gradient)
            gradient = gradient_at(solids, pair, farther, point, known, DIFFERENCE * side)
            # Every second step is too long, to get inside where the surfaces are at a small angle.
            length = (
                wp.where(number % 2 == 0, outer, Real(1.5) * outer)
                + Real(2.0) * ROUNDING * pair.size
            )
            point = point - length * gradient
        return False

    return overlaps_near


SIDE = wp.constant(4)
"""Voxels along a block's side."""
CORNER_SIDE = wp.constant(5)
CORNER_COUNT = wp.constant(125)
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
    count: int,
    final_level: wp.array[wp.int32],
):
    """One thread a pair: whether this level's voxels are small enough for its patch."""
    thread = wp.tid()
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
    level: Level, block: wp.array[Block], final_level: wp.array[wp.int32], end: wp.array[wp.int32]
):
    """One thread a block: 1 where its pair ends at this level."""
    thread = wp.tid()
    end[thread] = wp.where(final_level[block[thread].pair] == level.number, 1, 0)


@kernel
def reopen_pairs(
    level: Level,
    block: wp.array[Block],
    count: int,
    patch: wp.array[HydroPatch],
    overlaps: wp.array[wp.int32],
    final_level: wp.array[wp.int32],
    missed: wp.array[wp.int32],
):
    """One thread a pair: one that overlaps and has no faces goes on, or is marked in `missed` at
    the limits."""
    thread = wp.tid()
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
    block: wp.array[Block], final_level: wp.array[wp.int32], end: wp.array[wp.int32]
):
    """One thread a block: 8 children where its pair goes on."""
    thread = wp.tid()
    end[thread] = wp.where(final_level[block[thread].pair] == ENDED, 8, 0)


@kernel
def write_children(block: wp.array[Block], end: wp.array[wp.int32], children: wp.array[Block]):
    """One thread a block: writes its children."""
    thread = wp.tid()
    first = start_of(end, thread)
    if end[thread] > first:
        parent = block[thread]
        for k in range(8):
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
        patch: wp.array[HydroPatch],
        result: wp.array[wp.int32],
        searches: int,
    ):
        """One thread a block: 1 in `result` where it may contain some of the surface.

        searches: 1 to set it for a pair instead, one without faces that overlaps near the block.
        """
        thread = wp.tid()
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
        part: wp.array[int],
        value: wp.array[Vec2],
        feature: wp.array[wp.vec2i],
    ):
        """One thread a block: sets the bits in `part` of those of its eight parts that may contain
        some of the surface. Writes the values of the corners at the parts' centres."""
        thread = wp.tid()
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
        part: wp.array[int],
        value: wp.array[Vec2],
        feature: wp.array[wp.vec2i],
    ):
        """One thread a corner of a block's voxels: both distances, less the margins, and the
        nearest features.

        Left out are the centres of the block's parts, which are known, and the corners of parts
        without surface alone, which nothing reads. feature: set only with meshes.
        """
        thread = wp.tid()
        number = thread / CORNER_COUNT
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


# The surface within the voxels of a block.

VOXEL_COUNT = wp.constant(64)
"""Voxels of a block."""


@wp.func
def corner_of_step(step: wp.vec3i, k: int) -> wp.vec3i:
    """Corner k of a tetrahedron in its voxel, 0 or 1 along each axis. step: see `Tetrahedron`."""
    return wp.vec3i(
        wp.where(step[0] < k, 1, 0), wp.where(step[1] < k, 1, 0), wp.where(step[2] < k, 1, 0)
    )


@wp.func
def tetrahedron_of(
    pair: HydroPair,
    level: Level,
    block: Block,
    first: int,
    voxel: wp.vec3i,
    which: int,
    value: wp.array[Vec2],
) -> Tetrahedron:
    """One of the six tetrahedra of a voxel, along the path of edges that follows the axes in one of
    their orders.

    first: of the block's values. Source: Kuhn 1960.
    """
    result = Tetrahedron()
    a = which / 2
    b = (a + 1 + which % 2) % 3
    for axis in range(3):
        result.step[axis] = wp.where(axis == a, 0, wp.where(axis == b, 1, 2))
    result.side = voxel_side(pair, level)
    for k in range(4):
        at = voxel + corner_of_step(result.step, k)
        values = value[first + corner_number(at[0], at[1], at[2])]
        result.first[k] = values[0]
        result.second[k] = values[1]
        result.difference[k] = pressure_difference(pair, values)
        for axis in range(3):
            result.point[k, axis] = (
                result.side * Real(SIDE * block.index[axis] + at[axis]) - pair.half[axis]
            )
    return result


@wp.func(inline=False)
def edges_of_mesh(
    solids: Solids,
    pair: HydroPair,
    tetrahedron: Tetrahedron,
    first: int,
    voxel: wp.vec3i,
    feature: wp.array[wp.vec2i],
    corner: wp.array[Vec3],
) -> Edges:
    """The sides of both shapes, one a mesh, where a tetrahedron of a voxel is at an edge. first: of
    the features."""
    feature0 = wp.vec4i()
    feature1 = wp.vec4i()
    for k in range(4):
        at = voxel + corner_of_step(tetrahedron.step, k)
        features = feature[first + corner_number(at[0], at[1], at[2])]
        feature0[k] = features[0]
        feature1[k] = features[1]
    edges = edges_with_meshes(solids, pair, tetrahedron, feature0, feature1)
    if edges.count0 * edges.count1 > 1:
        return verified(solids, pair, tetrahedron, edges, corner)
    return edges


@wp.func
def part_of_voxel(voxel: wp.vec3i) -> int:
    """Bit of the part of its block that a voxel is in."""
    return 1 << (4 * (voxel[0] / 2) + 2 * (voxel[1] / 2) + voxel[2] / 2)


@wp.func
def has_surface(
    pair: HydroPair, first: int, voxel: wp.vec3i, value: wp.array[Vec2], slack: Real
) -> bool:
    """Whether the corners of a voxel allow a surface with pressure. slack: of distances and their
    difference [m]."""
    positive = bool(False)
    negative = bool(False)
    inside = bool(False)
    for k in range(8):
        values = value[
            first
            + corner_number(voxel[0] + (k >> 2), voxel[1] + ((k >> 1) & 1), voxel[2] + (k & 1))
        ]
        difference = pressure_difference(pair, values)
        negative = negative or difference < slack
        positive = positive or difference >= -slack
        inside = inside or wp.where(pair.soft == 0, values[0], values[1]) < slack
    return positive and negative and inside


@wp.func(inline=False)
def is_flat_in(
    solids: Solids,
    pair: HydroPair,
    of: int,
    first: int,
    voxel: wp.vec3i,
    feature: wp.array[wp.vec2i],
) -> bool:
    """Whether the corners of a voxel are nearest to one side of shape 0 or 1, a mesh."""
    nearest = feature[first + corner_number(voxel[0], voxel[1], voxel[2])][of]
    corners = int(8)  # a variable: the loop is not unrolled
    for k in range(corners):
        number = corner_number(voxel[0] + (k >> 2), voxel[1] + ((k >> 1) & 1), voxel[2] + (k & 1))
        if not is_flat_near(solids.meshes, nearest, feature[first + number][of]):
            return False
    return True


@wp.func(inline=False)
def may_be_at_edge(
    solids: Solids, pair: HydroPair, first: int, voxel: wp.vec3i, feature: wp.array[wp.vec2i]
) -> bool:
    """Whether tetrahedra of a voxel may be at an edge of one of the shapes."""
    for of in range(2):
        if has_edges(solids, pair, of):
            if not is_mesh(solids, pair, of):
                return True
            if not is_flat_in(solids, pair, of, first, voxel, feature):
                return True
    return False


@wp.func(inline=False)
def is_cut_at_edge(
    solids: Solids,
    pair: HydroPair,
    level: Level,
    block: Block,
    first: int,
    voxel: wp.vec3i,
    value: wp.array[Vec2],
    feature: wp.array[wp.vec2i],
) -> bool:
    """Whether a voxel at an edge of a shape may contain some of the surface, though its corners do
    not allow it.

    All of them may be outside: within the voxel's diagonal.
    """
    side = voxel_side(pair, level)
    diagonal = side * wp.sqrt(Real(3.0))
    if not has_surface(pair, first, voxel, value, diagonal):
        return False
    center = Vec3()
    for axis in range(3):
        center[axis] = (
            side * (Real(SIDE * block.index[axis] + voxel[axis]) + Real(0.5)) - pair.half[axis]
        )
    if is_near_edge(solids, pair, 0, center, diagonal) or is_near_edge(
        solids, pair, 1, center, diagonal
    ):
        return True
    for of in range(2):
        is_edged = is_mesh(solids, pair, of) and has_edges(solids, pair, of)
        if is_edged and not is_flat_in(solids, pair, of, first, voxel, feature):
            return True
    return False


@kernel
def sum_blocks(
    solids: Solids,
    hydro: wp.array[HydroPair],
    level: Level,
    block: wp.array[Block],
    part: wp.array[int],
    value: wp.array[Vec2],
    feature: wp.array[wp.vec2i],
    sums: wp.array[PatchSums],
):
    """One thread a block: sums over its faces, in the order of voxels and tetrahedra."""
    thread = wp.tid()
    own_block = block[thread]
    pair = hydro[own_block.pair]
    first = thread * CORNER_COUNT
    result = PatchSums()
    result.pair = own_block.pair
    parts = part[thread]
    is_sided = has_edges(solids, pair, 0) or has_edges(solids, pair, 1)
    has_mesh = is_mesh(solids, pair, 0) or is_mesh(solids, pair, 1)
    corner = wp.zeros(shape=wp.static(LOCAL_CORNERS), dtype=Vec3)
    tetrahedra = int(6)  # a variable: the loop is not unrolled
    for within in range(VOXEL_COUNT):
        voxel = wp.vec3i(within / (SIDE * SIDE), (within / SIDE) % SIDE, within % SIDE)
        if (parts & part_of_voxel(voxel)) == 0:
            continue
        is_cut = has_surface(pair, first, voxel, value, Real(0.0))
        if is_sided and not is_cut:
            is_cut = is_cut_at_edge(solids, pair, level, own_block, first, voxel, value, feature)
        if is_cut:
            is_at_edge = is_sided and may_be_at_edge(solids, pair, first, voxel, feature)
            for which in range(tetrahedra):
                tetrahedron = tetrahedron_of(pair, level, own_block, first, voxel, which, value)
                if not is_at_edge:
                    result = with_face(result, face_in(pair, tetrahedron, corner))
                else:
                    edges = Edges()
                    if has_mesh:
                        edges = edges_of_mesh(
                            solids, pair, tetrahedron, first, voxel, feature, corner
                        )
                    else:
                        edges = edges_in(solids, pair, tetrahedron)
                    for sides in range(edges.count0 * edges.count1):
                        result = with_face(
                            result, face_of_sides(pair, tetrahedron, edges, sides, corner)
                        )
    sums[thread] = result


@kernel
def cut_voxels(
    solids: Solids,
    hydro: wp.array[HydroPair],
    level: Level,
    block: wp.array[Block],
    part: wp.array[int],
    value: wp.array[Vec2],
    feature: wp.array[wp.vec2i],
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
    own_block = block[number]
    pair = hydro[own_block.pair]
    has_mesh = is_mesh(solids, pair, 0) or is_mesh(solids, pair, 1)
    first = number * CORNER_COUNT
    count = int(0)
    tetrahedra = int(6)  # a variable: the loop is not unrolled
    is_cut = bool(False)
    may_be_cut = (part[number] & part_of_voxel(voxel)) != 0
    if may_be_cut:
        is_cut = has_surface(pair, first, voxel, value, Real(0.0))
    if may_be_cut and not is_cut and (has_edges(solids, pair, 0) or has_edges(solids, pair, 1)):
        is_cut = is_cut_at_edge(solids, pair, level, own_block, first, voxel, value, feature)
    if is_cut:
        corner = wp.zeros(shape=wp.static(LOCAL_CORNERS), dtype=Vec3)
        for which in range(tetrahedra):
            tetrahedron = tetrahedron_of(pair, level, own_block, first, voxel, which, value)
            edges = Edges()
            if has_mesh:
                edges = edges_of_mesh(solids, pair, tetrahedron, first, voxel, feature, corner)
            else:
                edges = edges_in(solids, pair, tetrahedron)
            for sides in range(edges.count0 * edges.count1):
                cut = face_of_sides(pair, tetrahedron, edges, sides, corner)
                if cut.count > 0:
                    if writes > 0:
                        slot = start_of(end, thread) + count
                        cut.pair = own_block.pair
                        face[slot] = cut
                        for k in range(cut.count):
                            at = corner[cut.first_corner + k]
                            vertex[slot * FACE_CORNERS + k] = wp.transform_point(pair.world, at)
                    count += 1
    if writes == 0:
        end[thread] = count


# Launches of the kernels of sampled pairs: blocks from coarse to fine, then the voxels of each
# pair's last level.

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
    ) -> tuple[list[FaceList], np.ndarray]:
        """Sets the patches of the sampled pairs; returns their faces, a list for each level at
        which pairs end.

        Without need for corners there are no lists. The second result is int32[pairs], 1 for a pair
        that overlaps and for which no face was found at the finest level.
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
        return lists, workspace.host(missed, count)

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
