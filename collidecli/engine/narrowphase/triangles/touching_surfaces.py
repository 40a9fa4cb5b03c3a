"""Whether two surfaces of triangles touch: a traversal of both BVHs that ends at the first pair of
triangles.

A pair of triangles proves a contact of its surfaces where the two are nearer than the maximum
separation, or where a side of one passes through the other, by more than the error of a separation
in both cases. The nearest features of the surfaces are then at most as far apart, and the collider
has a contact of them or of the region in which the surfaces overlap. Pairs without a proof, and
those with a front and no inside, which collide from one side, are left to the collider.
"""

from __future__ import annotations

from functools import cache

import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.box_frames import BoxFrames, box_frames, distance_along_axes
from collidecli.engine.geometry.closest_points import TrianglePair, closest_points
from collidecli.engine.geometry.meshes import Meshes, mesh_corner
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.touch import (
    APART_BY_LIMIT,
    SEARCH_ERROR,
    TOUCHING,
    UNCERTAIN,
)
from collidecli.engine.narrowphase.touch_sub_pairs import touch_kernel
from collidecli.engine.narrowphase.triangles.surface import depth_inside, has_one_side

STACK = 80
"""Pairs of boxes that wait: one a level of each tree, and a tree of 2^31 triangles has 32
levels."""
MOST_PAIRS = wp.constant(1024)
"""Pairs of boxes after which meshes are left to the collider, whose clearance grids find sooner if
they are apart.
"""


@wp.func
def passes_through(
    start: Vec3, end: Vec3, a: Vec3, b: Vec3, c: Vec3, normal: Vec3, error: Real
) -> bool:
    """Whether a segment passes through triangle abc, its ends and the triangle's sides more than
    `error` away."""
    low = wp.dot(start - a, normal)
    high = wp.dot(end - a, normal)
    if wp.min(low, high) >= -error or wp.max(low, high) <= error:
        return False
    at = start + (low / (low - high)) * (end - start)
    if wp.dot(wp.cross(normal, b - a), at - a) <= error * wp.length(b - a):
        return False
    if wp.dot(wp.cross(normal, c - b), at - b) <= error * wp.length(c - b):
        return False
    return wp.dot(wp.cross(normal, a - c), at - c) > error * wp.length(a - c)


@wp.func
def sides_pass_through(pair: TrianglePair, error: Real) -> bool:
    """Whether a side of one triangle passes through the other."""
    p = pair.p
    q = pair.q
    r = pair.r
    n = pair.normal_pqr
    a = pair.a
    b = pair.b
    c = pair.c
    m = pair.normal_abc
    if passes_through(a, b, p, q, r, n, error) or passes_through(b, c, p, q, r, n, error):
        return True
    if passes_through(c, a, p, q, r, n, error) or passes_through(p, q, a, b, c, m, error):
        return True
    return passes_through(q, r, a, b, c, m, error) or passes_through(r, p, a, b, c, m, error)


@wp.func(inline=False)
def triangles_touch(
    meshes: Meshes, face_a: int, face_b: int, pose_b_to_a: Pose, limit: Real, error: Real
) -> bool:
    """Whether two triangles are nearer than `limit`, or a side passes through one by more than
    `error` [m]."""
    pair = TrianglePair()
    pair.p = mesh_corner(meshes, face_a, 0)
    pair.q = mesh_corner(meshes, face_a, 1)
    pair.r = mesh_corner(meshes, face_a, 2)
    pair.a = wp.transform_point(pose_b_to_a, mesh_corner(meshes, face_b, 0))
    pair.b = wp.transform_point(pose_b_to_a, mesh_corner(meshes, face_b, 1))
    pair.c = wp.transform_point(pose_b_to_a, mesh_corner(meshes, face_b, 2))
    pair.normal_pqr = meshes.arrays[0].face_normal[face_a]
    pair.normal_abc = wp.transform_vector(pose_b_to_a, meshes.arrays[0].face_normal[face_b])
    if sides_pass_through(pair, error):
        return True
    return limit > Real(0.0) and closest_points(pair).square < limit * limit


@wp.func
def offset_of_boxes(meshes: Meshes, node_a: int, node_b: int, frames: BoxFrames) -> Vec3:
    """From the centre of a box to that of another, frame a [m]."""
    middle_a = Real(0.5) * (meshes.arrays[0].lower[node_a] + meshes.arrays[0].upper[node_a])
    middle_b = Real(0.5) * (meshes.arrays[0].lower[node_b] + meshes.arrays[0].upper[node_b])
    return frames.rotation * middle_b + frames.position - middle_a


@wp.func
def are_apart(
    meshes: Meshes, node_a: int, node_b: int, off: Vec3, frames: BoxFrames, distance: Real
) -> bool:
    """Whether two boxes are farther apart than a distance [m]. off: of `offset_of_boxes`."""
    half_a = Real(0.5) * (meshes.arrays[0].upper[node_a] - meshes.arrays[0].lower[node_a])
    half_b = Real(0.5) * (meshes.arrays[0].upper[node_b] - meshes.arrays[0].lower[node_b])
    return distance_along_axes(off, half_a, half_b, frames) > distance


@wp.func(inline=False)
def any_triangles_touch(
    meshes: Meshes,
    mesh_a: int,
    mesh_b: int,
    pose_b_to_a: Pose,
    frames: BoxFrames,
    limit: Real,
    error: Real,
) -> bool:
    """Whether a pair of triangles of two meshes is found that touches; the larger of two boxes is
    descended."""
    stack = wp.zeros(shape=wp.static(STACK), dtype=wp.vec2i)
    stack[0] = wp.vec2i(
        meshes.arrays[0].header[mesh_a].first_node, meshes.arrays[0].header[mesh_b].first_node
    )
    count = int(1)
    visited = int(0)
    while count > 0 and visited < MOST_PAIRS:
        count -= 1
        visited += 1
        nodes = stack[count]
        face_a = meshes.arrays[0].leaf[nodes[0]]
        face_b = meshes.arrays[0].leaf[nodes[1]]
        if face_a >= 0 and face_b >= 0:
            if triangles_touch(meshes, face_a, face_b, pose_b_to_a, limit, error):
                return True
            continue
        size_a = wp.length_sq(meshes.arrays[0].upper[nodes[0]] - meshes.arrays[0].lower[nodes[0]])
        size_b = wp.length_sq(meshes.arrays[0].upper[nodes[1]] - meshes.arrays[0].lower[nodes[1]])
        split_a = face_b >= 0 or (face_a < 0 and size_a > size_b)
        node = wp.where(split_a, nodes[0], nodes[1])
        squares = wp.vec2d()
        near = wp.vec2i()
        for k in range(2):
            child = wp.where(k == 0, node + 1, meshes.arrays[0].skip[node + 1])
            node_a = wp.where(split_a, child, nodes[0])
            node_b = wp.where(split_a, nodes[1], child)
            off = offset_of_boxes(meshes, node_a, node_b, frames)
            squares[k] = wp.length_sq(off)
            if not are_apart(meshes, node_a, node_b, off, frames, wp.max(limit, Real(0.0))):
                near[k] = 1
        first = wp.where(squares[1] < squares[0], 0, 1)
        for k in range(2):  # the one with the closer centres last, on top of the stack
            which = wp.where(k == 0, first, 1 - first)
            if near[which] == 1:
                child = wp.where(which == 0, node + 1, meshes.arrays[0].skip[node + 1])
                stack[count] = wp.where(
                    split_a, wp.vec2i(child, nodes[1]), wp.vec2i(nodes[0], child)
                )
                count += 1
    return False


@wp.func
def corner_inside(meshes: Meshes, mesh: int, other: int, pose: Pose, error: Real) -> bool:
    """Whether a vertex of a mesh is inside another, closed one by more than `error` [m]. pose: of
    mesh in other."""
    if meshes.arrays[0].header[other].is_closed == 0:
        return False
    corner = mesh_corner(meshes, meshes.arrays[0].header[mesh].first_face, 0)
    return depth_inside(meshes, other, wp.transform_point(pose, corner), error) > error


@wp.func(inline=True)
def touch_of_meshes(
    rows: ShapeRows,
    meshes: Meshes,
    query: Query,
    sub_pair: wp.array[wp.vec2i],
    begin: int,
    end: int,
) -> int:
    """Whether two meshes have a contact: TOUCHING, APART_BY_LIMIT where their boxes are apart, or
    UNCERTAIN."""
    a = rows.mesh[query.row_a]
    b = rows.mesh[query.row_b]
    if query.max_separation < Real(0.0):
        return UNCERTAIN
    extent = wp.max(rows.size[query.row_a], rows.size[query.row_b])
    error = SEARCH_ERROR * wp.max(extent)
    limit = query.max_separation - error
    frames = box_frames(query.pose_b_to_a)
    node_a = meshes.arrays[0].header[a].first_node
    node_b = meshes.arrays[0].header[b].first_node
    off = offset_of_boxes(meshes, node_a, node_b, frames)
    if are_apart(meshes, node_a, node_b, off, frames, query.max_separation + error):
        return APART_BY_LIMIT
    if has_one_side(meshes, a) or has_one_side(meshes, b):
        limit = Real(0.0)
    if any_triangles_touch(meshes, a, b, query.pose_b_to_a, frames, limit, error):
        return TOUCHING
    if corner_inside(meshes, a, b, wp.transform_inverse(query.pose_b_to_a), error):
        return TOUCHING
    if corner_inside(meshes, b, a, query.pose_b_to_a, error):
        return TOUCHING
    return UNCERTAIN


@cache
def surfaces_kernel() -> wp.Kernel:
    """The kernel of two meshes."""
    return touch_kernel(Meshes, touch_of_meshes, reads_list=False)
