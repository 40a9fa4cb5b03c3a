"""The surface within the voxels of a block."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import start_of
from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.hydroelastic.mesh_sides import is_flat_near
from collidecli.engine.hydroelastic.pairs import HydroPair
from collidecli.engine.hydroelastic.polygon_faces import HydroFace, PatchSums, with_face
from collidecli.engine.hydroelastic.solids import Solids
from collidecli.engine.hydroelastic.tetrahedra import (
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
from collidecli.engine.hydroelastic.voxel_blocks import (
    CORNER_COUNT,
    SIDE,
    Block,
    Level,
    corner_number,
    voxel_side,
)
from collidecli.engine.runtime.kernel import kernel

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
def edges_of(
    solids: Solids,
    pair: HydroPair,
    has_mesh: bool,
    tetrahedron: Tetrahedron,
    first: int,
    voxel: wp.vec3i,
    feature: wp.array[wp.vec2i],
    corner: wp.array[Vec3],
) -> Edges:
    """The sides of both shapes where a tetrahedron of a voxel is at an edge. has_mesh: whether one
    of them is a mesh. first: of the features."""
    if has_mesh:
        return edges_of_mesh(solids, pair, tetrahedron, first, voxel, feature, corner)
    return edges_in(solids, pair, tetrahedron)


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
    bound: wp.array[wp.int32],
    part: wp.array[int],
    value: wp.array[Vec2],
    feature: wp.array[wp.vec2i],
    sums: wp.array[PatchSums],
):
    """One thread per block, as many as the bound: sums over its faces, in the order of voxels and
    tetrahedra."""
    thread = wp.tid()
    if thread >= bound[0]:
        return
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
                    edges = edges_of(
                        solids, pair, has_mesh, tetrahedron, first, voxel, feature, corner
                    )
                    for sides in range(edges.count0 * edges.count1):
                        result = with_face(
                            result, face_of_sides(pair, tetrahedron, edges, sides, corner)
                        )
    sums[thread] = result


@wp.func
def is_voxel_cut(
    solids: Solids,
    pair: HydroPair,
    level: Level,
    own_block: Block,
    first: int,
    voxel: wp.vec3i,
    value: wp.array[Vec2],
    feature: wp.array[wp.vec2i],
) -> bool:
    """Whether the surface may pass through a voxel: between its corners, or at an edge of a
    solid inside it."""
    if has_surface(pair, first, voxel, value, Real(0.0)):
        return True
    if has_edges(solids, pair, 0) or has_edges(solids, pair, 1):
        return is_cut_at_edge(solids, pair, level, own_block, first, voxel, value, feature)
    return False


@wp.func
def write_vertices(
    pair: HydroPair, cut: HydroFace, corner: wp.array[Vec3], vertex: wp.array[Vec3], first: int
):
    """Writes the corners of a face, in the world, from vertex `first` on."""
    for k in range(cut.count):
        vertex[first + k] = wp.transform_point(pair.world, corner[cut.first_corner + k])


@kernel
def cut_voxels(
    solids: Solids,
    hydro: wp.array[HydroPair],
    level: Level,
    block: wp.array[Block],
    bound: wp.array[wp.int32],
    part: wp.array[int],
    value: wp.array[Vec2],
    feature: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    corner_end: wp.array[wp.int32],
    face_bound: wp.array[wp.int32],
    corner_bound: wp.array[wp.int32],
    face: wp.array[HydroFace],
    vertex: wp.array[Vec3],
    writes: int,
):
    """One thread a voxel of a block, of as many as the bound: counts its faces and their corners;
    in the second pass writes them, those of which the bound is 0 not."""
    thread = wp.tid()
    number = thread / VOXEL_COUNT
    within = thread % VOXEL_COUNT
    voxel = wp.vec3i(within / (SIDE * SIDE), (within / SIDE) % SIDE, within % SIDE)
    if writes > 0 and end[thread] == start_of(end, thread):
        return
    if number >= bound[0]:
        end[thread] = 0
        corner_end[thread] = 0
        return
    own_block = block[number]
    pair = hydro[own_block.pair]
    has_mesh = is_mesh(solids, pair, 0) or is_mesh(solids, pair, 1)
    first = number * CORNER_COUNT
    count = int(0)
    corner_count = int(0)
    tetrahedra = int(6)  # a variable: the loop is not unrolled
    is_cut = bool(False)
    if (part[number] & part_of_voxel(voxel)) != 0:
        is_cut = is_voxel_cut(solids, pair, level, own_block, first, voxel, value, feature)
    if is_cut:
        corner = wp.zeros(shape=wp.static(LOCAL_CORNERS), dtype=Vec3)
        for which in range(tetrahedra):
            tetrahedron = tetrahedron_of(pair, level, own_block, first, voxel, which, value)
            edges = edges_of(solids, pair, has_mesh, tetrahedron, first, voxel, feature, corner)
            for sides in range(edges.count0 * edges.count1):
                cut = face_of_sides(pair, tetrahedron, edges, sides, corner)
                if cut.count > 0:
                    if writes > 0 and face_bound[0] > 0:
                        cut.pair = own_block.pair
                        face[start_of(end, thread) + count] = cut
                    if writes > 0 and corner_bound[0] > 0:
                        first_vertex = start_of(corner_end, thread) + corner_count
                        write_vertices(pair, cut, corner, vertex, first_vertex)
                    count += 1
                    corner_count += cut.count
    if writes == 0:
        end[thread] = count
        corner_end[thread] = corner_count
