"""Least signed distances of pairs of shapes at given poses, without a cutoff.

Convex shapes and planes are measured by their colliders with an unlimited gap. A triangle mesh, a
heightfield or a shape with a signed distance field is measured by its collider where it overlaps
the other shape, and otherwise by a branch and bound search over its triangles: a collider would
enumerate every triangle within the gap.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from collidecli.engine.candidates import CandidateList, hull_of, primitive_of, relative_pose
from collidecli.engine.cells import Chunk, ChunkCells, Instances, PairLanes
from collidecli.engine.contact_record import Candidates, ContactRecord, new_candidates
from collidecli.engine.device_model import (
    KIND_COUNT,
    DeviceModel,
    Margins,
    ShapeRows,
    kinds_of,
    type_of_kind,
    upload_model,
)
from collidecli.engine.geometry.bounds import (
    BoxFrames,
    box_frames,
    distance_along_axes,
    distance_of_boxes,
)
from collidecli.engine.geometry.closest_points import (
    Tie,
    TrianglePair,
    closest_points,
    overlap_of_projections,
)
from collidecli.engine.geometry.meshes import TriangleShape, tree_of_triangles
from collidecli.engine.geometry.primitives import Vertex, support_point
from collidecli.engine.geometry.real import MESH, PLANE, Pose, Real, Vec3, device_array
from collidecli.engine.hydroelastic.pairs import Solids, distance_function, upload_solids
from collidecli.engine.narrowphase.collider import Collider, ColliderTable
from collidecli.engine.narrowphase.convex.gjk import BEYOND_MAX_SEPARATION, nearest_of_difference
from collidecli.engine.narrowphase.convex.penetration import (
    distance_bounds,
    minkowski_difference,
    sum_of_sizes,
)
from collidecli.engine.narrowphase.dispatch import NarrowPhase, collider_of_kinds
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.engine.runtime.warp_internals import struct_rows
from collidecli.engine.runtime.warp_start import one_at_a_time
from collidecli.engine.runtime.workspace import (
    ChunkTooLarge,
    Workspace,
    execute_steps,
    parts_that_fit,
)
from collidecli.errors import InputError
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

if TYPE_CHECKING:
    from collidecli.engine.geometry.signed_distance import FieldStore


ROUNDING = wp.constant(Real(4.0e-15))
"""Rounding of a distance relative to the coordinates and sizes that it is computed from."""


@wp.struct
class Queries:
    """Pairs of instances whose distance is wanted, in type order.

    order: numbers of the queries of a launch. pair: instances of shapes a and b. row: rows of
    shapes a and b. swapped: 1 where a is shape1.
    """

    order: wp.array[wp.int32]
    pair: wp.array[wp.vec2i]
    row: wp.array[wp.vec2i]
    swapped: wp.array[wp.int32]


@wp.struct
class Found:
    """Least distance of a pair [m], at most which it is certified to be at least `lower`.

    normal: unit, from a to b. point_a: witness on a; that of b is point_a + distance * normal.
    While searched in the frame of a; stored in the world, from shape0 to shape1, with the witness
    of shape0. count: contacts it is taken from, 0 where there is none.
    """

    distance: Real
    lower: Real
    normal: Vec3
    point_a: Vec3
    count: int


@wp.func
def store_found(
    queries: Queries,
    instances: Instances,
    rows: ShapeRows,
    index: int,
    best: Found,
    results: wp.array[Found],
):
    """Writes a result in the world, from shape0 to shape1."""
    result = best
    pose_a = instances.pose[queries.pair[index][0]]
    result.normal = wp.transform_vector(pose_a, best.normal)
    result.point_a = wp.transform_point(pose_a, best.point_a)
    if queries.swapped[index] == 1:
        result.point_a = result.point_a + best.distance * result.normal
        result.normal = -result.normal
    size = Real(0.0)
    for k in range(2):
        if rows.type[queries.row[index][k]] != PLANE:
            size += wp.length(rows.size[queries.row[index][k]])
        size += wp.length(wp.transform_get_translation(instances.pose[queries.pair[index][k]]))
    result.lower = wp.min(best.lower, best.distance) - ROUNDING * size
    result.count = 1
    results[index] = result


@wp.func
def farthest_along(rows: ShapeRows, row: int, direction: Vec3) -> Vec3:
    """Support point of a convex shape; the origin of a plane, whose normal the direction is."""
    if rows.type[row] == PLANE:
        return Vec3()
    if rows.hull[row] >= 0:
        return support_point(hull_of(rows, row), direction)
    return support_point(primitive_of(rows, row), direction)


@kernel
def least_of_contacts(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    contact: wp.array[ContactRecord],
    queries: Queries,
    certified: int,
    results: wp.array[Found],
):
    """One thread per query: the contact with the least separation, the first of equal ones.

    certified: 1 for planes and convex shapes, whose separation along the normal bounds the distance
    from below where it is positive, and for planes everywhere; else 0.
    """
    thread = wp.tid()
    index = queries.order[thread]
    count = candidates.found[thread]
    best = Found()
    if count == 0:
        results[index] = best
        return
    best.distance = Real(wp.inf)
    for k in range(count):
        record = contact[candidates.first[thread] + k * candidates.stride[thread]]
        if record.separation < best.distance:
            best.distance = record.separation
            best.normal = record.normal
            best.point_a = record.point
    best.lower = -Real(wp.inf)
    row = queries.row[index]
    if certified == 1 and (best.distance > Real(0.0) or rows.type[row[0]] == PLANE):
        pair = queries.pair[index]
        pose_b_to_a = relative_pose(instances.pose[pair[0]], instances.pose[pair[1]])
        on_a = farthest_along(rows, row[0], best.normal)
        in_b = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), -best.normal)
        on_b = wp.transform_point(pose_b_to_a, farthest_along(rows, row[1], in_b))
        best.lower = wp.dot(best.normal, on_b - on_a)
    store_found(queries, instances, rows, index, best, results)


STACK = 80
"""Boxes, or pairs of boxes, that wait while one tree or two are descended: one a level of each, and
a tree of 2^31 triangles has 32 levels."""


@wp.struct
class TriangleTrees:
    """The triangles of several surfaces, and a BVH of each in depth-first order.

    lower, upper, skip, leaf: see `MeshTree`; skip and leaf count through all surfaces. corner:
    three points a triangle, in the shape's frame [m]. first_node: of each surface. surface: of each
    shape row, -1 for none.
    """

    lower: wp.array[Vec3]
    upper: wp.array[Vec3]
    skip: wp.array[int]
    leaf: wp.array[int]
    corner: wp.array[Vec3]
    first_node: wp.array[int]
    surface: wp.array[int]


@wp.func
def push_nearer_last(
    stack: wp.array[Any],
    bound: wp.array[Real],
    count: int,
    first: Any,
    second: Any,
    bounds: wp.vec2d,
    limit: Real,
) -> int:
    """Appends those of two nodes, or pairs of nodes, with bounds below a limit, the nearer last;
    returns the count."""
    result = count
    near = wp.where(bounds[1] < bounds[0], 1, 0)
    for k in range(2):
        which = wp.where(k == 0, 1 - near, near)
        if bounds[which] < limit:
            stack[result] = wp.where(which == 0, first, second)
            bound[result] = bounds[which]
            result += 1
    return result


@wp.func
def box_middle(trees: TriangleTrees, node: int) -> Vec3:
    """Centre of a box."""
    return Real(0.5) * (trees.lower[node] + trees.upper[node])


@wp.func
def box_half(trees: TriangleTrees, node: int) -> Vec3:
    """Half extents of a box."""
    return Real(0.5) * (trees.upper[node] - trees.lower[node])


def upload_trees(model: Model, device: wp.Device) -> TriangleTrees:
    """The trees of all meshes and heightfields of a model."""
    shapes = model.shapes
    parts = []
    for mesh in (*model.meshes, *map(solid_mesh, model.heightfields)):
        seen = ~mesh.hidden  # the triangles that bound the solid
        parts.append(mesh.vertex[mesh.face[seen] if seen.any() else mesh.face])
    trees = [tree_of_triangles(part, float(np.abs(part).max())) for part in parts]
    nodes = np.cumsum([0, *(len(tree.skip) for tree in trees)])
    faces = np.cumsum([0, *(len(part) for part in parts)])
    surface = np.where(shapes.type == ShapeType.MESH, shapes.mesh, -1)
    is_field = shapes.type == ShapeType.HEIGHTFIELD
    surface[is_field] = len(model.meshes) + shapes.heightfield[is_field]
    result = TriangleTrees()
    points = {"corner": [part.reshape(-1, 3) for part in parts]}
    points |= {"lower": [tree.lower for tree in trees], "upper": [tree.upper for tree in trees]}
    for name, values in points.items():
        setattr(
            result, name, device_array(np.concatenate([*values, np.zeros((0, 3))]), Vec3, device)
        )
    skip = [tree.skip + nodes[k] for k, tree in enumerate(trees)]
    leaf = [np.where(tree.face >= 0, tree.face + faces[k], -1) for k, tree in enumerate(trees)]
    for name, values in (
        ("skip", skip),
        ("leaf", leaf),
        ("first_node", [nodes[:-1]]),
        ("surface", [surface]),
    ):
        whole = np.concatenate([*values, np.zeros(0, np.int32)]).astype(np.int32)
        setattr(result, name, device_array(whole, wp.int32, device))
    return result


# Least distance of a surface of triangles to a plane, a convex shape or another surface of
# triangles.
#
# Branch and bound over the BVHs, depth first, the nearer box first. A box, or pair of boxes, is
# left out if no point of it is nearer than the least distance found so far. Its bound is the larger
# of two: the distance of the boxes, and the separation along the normal of the nearest triangle
# found so far, which is close to the exact distance near the optimum. Each triangle gives two
# numbers: a distance that its witness points attain, and the separation along its normal, which no
# point of it is below. The least of the latter bounds the distance from below.

TOUCHING = wp.constant(Real(1.0e-15))
"""Distance relative to the sizes' sum up to which a convex shape touches a triangle: the rounding
of their points."""


@wp.func(inline=False)
def box_in_frame(a: Any, pose_b_to_a: Pose) -> tuple[Vec3, Vec3]:
    """Centre and half extents of the box of shape a in frame b."""
    middle = Vec3()
    half = Vec3()
    rotation = wp.transform_get_rotation(pose_b_to_a)
    origin = wp.transform_get_translation(pose_b_to_a)
    for axis in range(3):
        unit = Vec3()
        unit[axis] = Real(1.0)
        direction = wp.quat_rotate(rotation, unit)
        high = wp.dot(direction, support_point(a, direction) - origin)
        low = wp.dot(direction, support_point(a, -direction) - origin)
        middle[axis] = Real(0.5) * (high + low)
        half[axis] = Real(0.5) * (high - low)
    return middle, half


@wp.func(inline=False)
def nearer_triangle(
    a: Any, trees: TriangleTrees, number: int, pose_b_to_a: Pose, best: Found
) -> Found:
    """`best`, or what is found of one triangle if that is nearer; `lower` is the lesser of both in
    each case."""
    result = best
    b = TriangleShape()
    b.type = MESH
    b.number = number
    b.p = trees.corner[3 * number]
    b.q = trees.corner[3 * number + 1]
    b.r = trees.corner[3 * number + 2]
    b.size = Real(0.5) * (wp.max(b.p, wp.max(b.q, b.r)) - wp.min(b.p, wp.min(b.q, b.r)))
    difference = minkowski_difference(a, b, pose_b_to_a)
    simplex = wp.zeros(shape=4, dtype=Vertex)
    start = wp.transform_point(pose_b_to_a, (b.p + b.q + b.r) / Real(3.0))
    start = wp.where(
        wp.length_sq(start) > Real(0.0), wp.normalize(start), Vec3(Real(0.0), Real(0.0), Real(1.0))
    )
    nearest = nearest_of_difference(difference, start, best.distance + difference.radius_a, simplex)
    if nearest.state == BEYOND_MAX_SEPARATION:
        return result
    bounds = distance_bounds(difference, nearest, simplex)
    distance = bounds.upper - difference.radius_a
    if distance <= TOUCHING * sum_of_sizes(difference):
        distance = Real(0.0)
    result.lower = wp.min(
        best.lower, wp.clamp(bounds.lower - difference.radius_a, Real(0.0), distance)
    )
    if distance < best.distance:
        return Found(
            distance,
            result.lower,
            bounds.normal,
            bounds.on_a + difference.radius_a * bounds.normal,
            0,
        )
    return result


def convex_search(shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel of a convex shape against a surface of triangles. shape_a: `primitive_of` or
    `hull_of`."""

    @kernel
    def nearest_of_convex(
        rows: ShapeRows,
        trees: TriangleTrees,
        instances: Instances,
        queries: Queries,
        results: wp.array[Found],
    ):
        """One thread per query; row_a has the convex shape, row_b the surface."""
        thread = wp.tid()
        index = queries.order[thread]
        pose_b_to_a = relative_pose(
            instances.pose[queries.pair[index][0]], instances.pose[queries.pair[index][1]]
        )
        a = shape_a(rows, queries.row[index][0])
        rotation = wp.transform_get_rotation(pose_b_to_a)
        origin = wp.transform_get_translation(pose_b_to_a)
        center, extent = box_in_frame(a, pose_b_to_a)
        best = Found(Real(wp.inf), Real(wp.inf), Vec3(), Vec3(), 0)
        axis = Vec3()  # the normal of `best` in frame b, and the highest point of a along it
        height = Real(0.0)
        stack = wp.zeros(shape=wp.static(STACK), dtype=int)
        bound = wp.zeros(shape=wp.static(STACK), dtype=Real)
        stack[0] = trees.first_node[trees.surface[queries.row[index][1]]]
        count = int(1)
        while count > 0 and best.distance > Real(0.0):
            count -= 1
            node = stack[count]
            if bound[count] >= best.distance:
                continue
            face = trees.leaf[node]
            if face >= 0:
                before = best.distance
                best = nearer_triangle(a, trees, face, pose_b_to_a, best)
                if best.distance < before:
                    axis = wp.quat_rotate_inv(rotation, best.normal)
                    height = wp.dot(best.normal, support_point(a, best.normal) - origin)
                continue
            first = node + 1
            second = trees.skip[first]
            bounds = wp.vec2d()
            for k in range(2):
                child = wp.where(k == 0, first, second)
                middle = box_middle(trees, child)
                half = box_half(trees, child)
                along = wp.dot(axis, middle) - wp.dot(half, wp.abs(axis)) - height
                bounds[k] = wp.max(along, distance_of_boxes(middle - center, half + extent))
            count = push_nearer_last(stack, bound, count, first, second, bounds, best.distance)
        store_found(queries, instances, rows, index, best, results)

    return nearest_of_convex


@kernel
def nearest_of_plane(
    rows: ShapeRows,
    trees: TriangleTrees,
    instances: Instances,
    queries: Queries,
    results: wp.array[Found],
):
    """One thread per query; row_a has the plane, row_b the surface: its lowest vertex, exact at any
    depth."""
    thread = wp.tid()
    index = queries.order[thread]
    pose_b_to_a = relative_pose(
        instances.pose[queries.pair[index][0]], instances.pose[queries.pair[index][1]]
    )
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    axis = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), up)
    origin = wp.transform_get_translation(pose_b_to_a)
    best = Found(Real(wp.inf), Real(wp.inf), up, Vec3(), 0)
    stack = wp.zeros(shape=wp.static(STACK), dtype=int)
    bound = wp.zeros(shape=wp.static(STACK), dtype=Real)
    stack[0] = trees.first_node[trees.surface[queries.row[index][1]]]
    bound[0] = -Real(wp.inf)
    count = int(1)
    while count > 0:
        count -= 1
        node = stack[count]
        if bound[count] >= best.distance:
            continue
        face = trees.leaf[node]
        if face >= 0:
            for k in range(3):
                point = wp.transform_point(pose_b_to_a, trees.corner[3 * face + k])
                if point[2] < best.distance:
                    best.distance = point[2]
                    best.point_a = Vec3(point[0], point[1], Real(0.0))
            continue
        first = node + 1
        second = trees.skip[first]
        bounds = wp.vec2d()
        for k in range(2):
            child = wp.where(k == 0, first, second)
            half = wp.dot(box_half(trees, child), wp.abs(axis))
            bounds[k] = origin[2] + wp.dot(axis, box_middle(trees, child)) - half
        count = push_nearer_last(stack, bound, count, first, second, bounds, best.distance)
    best.lower = best.distance
    store_found(queries, instances, rows, index, best, results)


@wp.func
def separation_of(pair: TrianglePair, normal: Vec3) -> Real:
    """Separation of two triangles along a direction from the fixed to the moving one [m]."""
    high = wp.max(wp.dot(normal, pair.p), wp.max(wp.dot(normal, pair.q), wp.dot(normal, pair.r)))
    low = wp.min(wp.dot(normal, pair.a), wp.min(wp.dot(normal, pair.b), wp.dot(normal, pair.c)))
    return low - high


NEARLY_TOUCHING = wp.constant(Real(1.0e-5))
"""Distance relative to the longest side below which the rounding of the points turns the normal by
too much."""


@wp.func
def separation_across(pair: TrianglePair, normal: Vec3, least: Real) -> Real:
    """`least`, or the separation of two triangles along a vector, not unit, or its opposite if that
    is larger [m]."""
    if wp.length_sq(normal) == Real(0.0):
        return least
    unit = wp.normalize(normal)
    return wp.max(least, wp.max(separation_of(pair, unit), separation_of(pair, -unit)))


@wp.func(inline=False)
def certified_separation(pair: TrianglePair, normal: Vec3, distance: Real) -> Real:
    """Lower bound of the distance of two triangles [m]: the separation along a normal, and if they
    nearly touch the largest of those along it perpendicular to a side, along the triangles' normals
    and across a side of each.

    The nearest points give one of these normals without a difference of nearly equal points.
    """
    least = separation_of(pair, normal)
    sides_a = wp.matrix_from_rows(pair.q - pair.p, pair.r - pair.q, pair.p - pair.r)
    sides_b = wp.matrix_from_rows(pair.b - pair.a, pair.c - pair.b, pair.a - pair.c)
    if distance > NEARLY_TOUCHING * wp.max(wp.length(sides_a[0]), wp.length(sides_b[0])):
        return least
    least = separation_across(
        pair, pair.normal_pqr, separation_across(pair, pair.normal_abc, least)
    )
    for i in range(3):
        least = separation_across(pair, wp.cross(sides_a[i], wp.cross(normal, sides_a[i])), least)
        least = separation_across(pair, wp.cross(sides_b[i], wp.cross(normal, sides_b[i])), least)
        for k in range(3):
            least = separation_across(pair, wp.cross(sides_a[i], sides_b[k]), least)
    return least


@wp.func(inline=False)
def nearer_pair(
    trees: TriangleTrees, face_a: int, face_b: int, pose_b_to_a: Pose, may_cross: bool, best: Found
) -> Found:
    """`best`, or what is found of two triangles if they are nearer."""
    pair = TrianglePair()
    pair.p = trees.corner[3 * face_a]
    pair.q = trees.corner[3 * face_a + 1]
    pair.r = trees.corner[3 * face_a + 2]
    pair.a = wp.transform_point(pose_b_to_a, trees.corner[3 * face_b])
    pair.b = wp.transform_point(pose_b_to_a, trees.corner[3 * face_b + 1])
    pair.c = wp.transform_point(pose_b_to_a, trees.corner[3 * face_b + 2])
    result = best
    if separation_of(pair, best.normal) >= best.distance:
        return result
    pair.normal_pqr = wp.normalize(wp.cross(pair.q - pair.p, pair.r - pair.p))
    pair.normal_abc = wp.normalize(wp.cross(pair.b - pair.a, pair.c - pair.a))
    closest = closest_points(pair)
    crosses = bool(False)
    if may_cross:
        crosses = overlap_of_projections(pair, Real(0.0), Tie()) > Real(0.0)
    distance = wp.sqrt(closest.square)
    if crosses or distance == Real(0.0):
        return Found(Real(0.0), Real(0.0), pair.normal_pqr, closest.fixed, 0)
    if distance >= best.distance and distance >= best.lower:
        return result
    normal = (closest.moving - closest.fixed) / distance
    result.lower = wp.min(best.lower, certified_separation(pair, normal, distance))
    if distance < best.distance:
        return Found(distance, result.lower, normal, closest.fixed, 0)
    return result


@wp.func
def bound_of_boxes(
    trees: TriangleTrees, node_a: int, node_b: int, frames: BoxFrames, axis: Vec3
) -> Real:
    """Lower bound of the distance of what two boxes contain: along the axes of both frames, and
    along `axis`, of a."""
    half_a = box_half(trees, node_a)
    half_b = box_half(trees, node_b)
    off = frames.rotation * box_middle(trees, node_b) + frames.position - box_middle(trees, node_a)
    along = (
        wp.dot(axis, off)
        - wp.dot(half_a, wp.abs(axis))
        - wp.dot(half_b, wp.abs(frames.inverse * axis))
    )
    return wp.max(along, distance_along_axes(off, half_a, half_b, frames))


@kernel
def nearest_of_surfaces(
    rows: ShapeRows,
    trees: TriangleTrees,
    instances: Instances,
    queries: Queries,
    results: wp.array[Found],
):
    """One thread per query of two surfaces of triangles; of two boxes the larger one is
    descended."""
    thread = wp.tid()
    index = queries.order[thread]
    pose_b_to_a = relative_pose(
        instances.pose[queries.pair[index][0]], instances.pose[queries.pair[index][1]]
    )
    frames = box_frames(pose_b_to_a)
    best = Found(Real(wp.inf), Real(wp.inf), Vec3(), Vec3(), 0)
    stack = wp.zeros(shape=wp.static(STACK), dtype=wp.vec2i)
    bound = wp.zeros(shape=wp.static(STACK), dtype=Real)
    row = queries.row[index]
    stack[0] = wp.vec2i(
        trees.first_node[trees.surface[row[0]]], trees.first_node[trees.surface[row[1]]]
    )
    count = int(1)
    while count > 0 and best.distance > Real(0.0):
        count -= 1
        nodes = stack[count]
        least = bound[count]
        if least >= best.distance:
            continue
        face_a = trees.leaf[nodes[0]]
        face_b = trees.leaf[nodes[1]]
        if face_a >= 0 and face_b >= 0:
            best = nearer_pair(trees, face_a, face_b, pose_b_to_a, least <= Real(0.0), best)
            continue
        split_a = face_b >= 0
        if face_a < 0 and face_b < 0:
            split_a = wp.length_sq(box_half(trees, nodes[0])) > wp.length_sq(
                box_half(trees, nodes[1])
            )
        node = wp.where(split_a, nodes[0], nodes[1])
        first = wp.vec2i(node + 1, nodes[1])
        second = wp.vec2i(trees.skip[node + 1], nodes[1])
        if not split_a:
            first = wp.vec2i(nodes[0], node + 1)
            second = wp.vec2i(nodes[0], trees.skip[node + 1])
        of_first = bound_of_boxes(trees, first[0], first[1], frames, best.normal)
        of_second = bound_of_boxes(trees, second[0], second[1], frames, best.normal)
        bounds = wp.vec2d(of_first, of_second)
        count = push_nearer_last(stack, bound, count, first, second, bounds, best.distance)
    store_found(queries, instances, rows, index, best, results)


KERNELS = {
    "plane": nearest_of_plane,
    "convex": convex_search(primitive_of),
    "hull": convex_search(hull_of),
    "surface": nearest_of_surfaces,
}
"""Kernel by what shape a is; shape b is a surface of triangles."""


# Distances of pairs of shapes.

UNLIMITED = 1e30
"""Gap of every shape [m] where the distance is wanted however large; larger than any coordinate,
and finite."""
ROWS_AT_ONCE = 1 << 15
"""Queries of one batch: their records take 10 MB, so that a core's cache holds much of them."""
MEMORY_LIMIT = 1 << 32
"""Scratch memory of one thread [bytes]; a batch that needs more is halved."""
DIRECT = ""
"""Method of pairs measured by their collider alone."""


@dataclass(frozen=True)
class PairDistanceRows:
    """Least distances of N pairs, float64.

    distance: [N] of the plain surfaces, without margins [m]; negative is the penetration depth as
    in contact sets. normal: [N, 3], unit, from shape0 to shape1, world. point0, point1: [N, 3],
    witness points, world [m]. error: [N], certified bound of the distance's error [m]; infinite for
    depths of overlapping shapes that are not planes, which are not certified.
    """

    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray


class PairDistances:
    """Measures distances of pairs of a model's shapes on a device. Any number of threads may share
    it.

    Args:
        pairs: int[K, 2], the rows of the pairs that will be measured; None for all. Kernels of
            their types are compiled and loaded here.
        store: cache of signed distance fields between runs.
    Raises InputError for a pair of planes.
    """

    @one_at_a_time
    def __init__(
        self,
        model: Model,
        device: wp.Device,
        pairs: np.ndarray | None = None,
        store: FieldStore | None = None,
    ) -> None:
        if pairs is None:
            pairs = np.stack(np.triu_indices(len(model.shapes), 1), axis=1)
        planes = np.flatnonzero(
            (model.shapes.type[pairs].reshape(-1, 2) == ShapeType.PLANE).all(axis=1)
        )
        if len(planes):
            names = " and ".join(f"'{model.shapes.path[row]}'" for row in pairs[planes[0]])
            raise InputError(
                "two planes have no distance: both are infinite", names, "leave out one of the two"
            )
        self._model = model
        self._device_model = upload_model(model, device)
        without_fields = replace(
            model, shapes=replace(model.shapes, sdf=np.full_like(model.shapes.sdf, -1))
        )
        self._kind, self._plain_kind = kinds_of(model), kinds_of(without_fields)
        used = (
            np.unique(np.sort(kind[pairs], axis=1), axis=0)
            for kind in (self._kind, self._plain_kind)
        )
        kind_pairs, plain_pairs = ({(a, b) for a, b in each.tolist()} for each in used)
        direct = {pair: collider_of_kinds(*pair, "gjk") for pair in plain_pairs}
        direct = {pair: each for pair, each in direct.items() if each.sub_pair_kernels is None}
        others = {pair: collider_of_kinds(*pair, "gjk") for pair in kind_pairs - direct.keys()}
        others = {pair: each for pair, each in others.items() if ShapeType.PLANE not in pair}
        self._method = {
            pair: DIRECT if pair in direct else _search_of(*pair) for pair in plain_pairs
        }
        self._apart = _Colliders(self._device_model, direct, UNLIMITED, store)
        self._overlap = _Colliders(self._device_model, others, 0.0, store)
        self._search: dict[str, wp.Kernel] = {}
        self._trees: Any = None
        names = set(self._method.values()) - {DIRECT}
        if names:
            self._search = {name: KERNELS[name] for name in sorted(names)}
            self._trees = upload_trees(model, device)
        colliders = [*self._apart.narrow_phase.kernels(), *self._overlap.narrow_phase.kernels()]
        kernels = [*colliders, least_of_contacts, *self._search.values()]
        load_kernels(
            [*([] if has_own_memory(device) else [execute_steps]), *dict.fromkeys(kernels)], device
        )
        self._overlap.narrow_phase.measure_surfaces()
        self._local = threading.local()

    def measure(self, rows: np.ndarray, poses: np.ndarray) -> PairDistanceRows:
        """Least distances of pairs of shapes: int[N, 2], shape0 < shape1, at world poses xyzw,
        float64[N, 2, 7]."""
        rows = np.asarray(rows, np.int32).reshape(-1, 2)
        poses = np.asarray(poses, np.float64).reshape(-1, 2, 7)
        parts = [
            part
            for first in range(0, len(rows), ROWS_AT_ONCE)
            for part in self._measure(
                rows[first : first + ROWS_AT_ONCE], poses[first : first + ROWS_AT_ONCE]
            )
        ]
        results = np.concatenate([struct_rows(Found, 0), *parts])
        distance = results["distance"]
        normal = results["normal"]
        point0 = results["point_a"]
        point1 = point0 + distance[:, None] * normal
        return PairDistanceRows(
            distance.copy(), normal.copy(), point0.copy(), point1, distance - results["lower"]
        )

    def _measure(self, rows: np.ndarray, poses: np.ndarray) -> list[np.ndarray]:
        """Found[n] of each part of a batch that fits."""

        def measure(begin: int, end: int) -> np.ndarray:
            workspace = getattr(self._local, "workspace", None)
            if workspace is None:
                workspace = self._local.workspace = Workspace(
                    self._device_model.device, MEMORY_LIMIT
                )
            try:
                return self._batch(rows[begin:end], poses[begin:end], workspace)
            except ChunkTooLarge as too_large:
                self._local.workspace = None
                if end - begin > 1:
                    raise
                names = " and ".join(f"'{self._model.shapes.path[row]}'" for row in rows[begin])
                gibibytes = too_large.needed / 2**30
                needed = f"the distance of one pair needs {gibibytes:.1f} GiB of scratch memory"
                raise InputError(needed, names, "simplify the meshes") from None

        return parts_that_fit(len(rows), measure)

    def _batch(self, rows: np.ndarray, poses: np.ndarray, workspace: Workspace) -> np.ndarray:
        batch = _Batch(rows, poses, self._model.shapes.type, workspace)
        kinds, plain = (np.sort(kind[rows], axis=1) for kind in (self._kind, self._plain_kind))
        left = np.arange(len(rows))
        result = struct_rows(Found, len(rows))
        if self._overlap.of_pair:
            chosen = self._overlap.collide(batch, left, kinds, 0, workspace)
            result[chosen] = batch.read(workspace)[chosen]
            left = left[(result["count"] == 0) | (result["distance"] >= 0.0)]
        self._apart.collide(batch, left, plain[left], 1, workspace)
        search_of = np.zeros((KIND_COUNT, KIND_COUNT), np.int32)
        for pair, name in self._method.items():
            search_of[pair] = list(self._search).index(name) if name else -1
        number = search_of[plain[left, 0], plain[left, 1]]
        for k, search in enumerate(self._search.values()):
            chosen = left[number == k]
            if not len(chosen):
                continue
            arguments = [
                self._device_model.rows,
                self._trees,
                batch.instances,
                batch.queries(chosen, workspace),
            ]
            workspace.launch(search, len(chosen), [*arguments, batch.found])
        result[left] = batch.read(workspace)[left]
        return result


class _Colliders:
    """The colliders of some pairs of kinds, for plain surfaces: every shape has one gap and no
    margin."""

    def __init__(
        self,
        device_model: DeviceModel,
        of_pair: dict[tuple[int, int], Collider],
        gap: float,
        store: FieldStore | None,
    ) -> None:
        self.of_pair = of_pair
        colliders = tuple(dict.fromkeys(of_pair.values()))
        self._number = np.full((KIND_COUNT, KIND_COUNT), -1, np.int32)
        for pair, collider in of_pair.items():
            self._number[pair] = colliders.index(collider)
        device = device_model.device
        table = ColliderTable(colliders, wp.zeros(1, dtype=wp.int32, device=device), KIND_COUNT)
        plain = replace(device_model, margins=_margins(len(device_model.model.shapes), gap, device))
        self.narrow_phase = NarrowPhase.of(plain, table, store)

    def collide(
        self,
        batch: _Batch,
        left: np.ndarray,
        kinds: np.ndarray,
        certified: int,
        workspace: Workspace,
    ) -> np.ndarray:
        """Launches the colliders of the queries `left`, with these kinds, and the selection of
        their least contacts; returns the queries that have a collider here."""
        number = self._number[kinds[:, 0], kinds[:, 1]]
        order = np.argsort(number, kind="stable")[np.count_nonzero(number < 0) :]
        chosen = left[order]
        if not len(chosen):
            return chosen
        ends = np.searchsorted(
            number[order], np.arange(len(self.narrow_phase.table.colliders) + 1)
        ).tolist()
        candidates, listed = batch.candidates(chosen, ends, workspace)
        chunk = Chunk(0, len(chosen), len(chosen), 1, ChunkCells(), batch.instances)
        emitted, _ = self.narrow_phase.collide(chunk, candidates, listed, workspace)
        shared = [self.narrow_phase.device_model.rows, batch.instances, candidates, emitted.contact]
        arguments = [*shared, batch.queries(chosen, workspace), certified, batch.found]
        workspace.launch(least_of_contacts, len(chosen), arguments)
        return chosen


class _Batch:
    """Queries of one call: query i has the instances 2 i of shape0 and 2 i + 1 of shape1."""

    def __init__(
        self, rows: np.ndarray, poses: np.ndarray, types: np.ndarray, workspace: Workspace
    ) -> None:
        swapped = types[rows[:, 0]] > types[rows[:, 1]]
        self._count = len(rows)
        self._row = np.ascontiguousarray(rows, np.int32)
        self._pair = np.arange(2 * len(rows), dtype=np.int32).reshape(-1, 2)
        self._swapped = swapped.astype(np.int32)
        self._poses = np.ascontiguousarray(poses.reshape(-1, 7))
        in_order = [
            np.where(swapped[:, None], sides[:, ::-1], sides) for sides in (self._pair, self._row)
        ]
        self._pair_in_order, self._row_in_order = (
            np.ascontiguousarray(sides) for sides in in_order
        )
        self.instances = Instances()
        self.instances.pose = workspace.uploaded(self._poses, Pose)
        self.found = workspace.array("found_distances", self._count, Found)

    def candidates(
        self, chosen: np.ndarray, ends: list[int], workspace: Workspace
    ) -> tuple[Candidates, CandidateList]:
        """Candidates of the chosen queries, ordered by collider; each is also a pair of slots with
        one lane.

        ends: first of each collider, and the end."""
        count = len(chosen)
        pair, row = (
            workspace.uploaded(np.ascontiguousarray(columns[chosen]), wp.vec2i)
            for columns in (self._pair, self._row)
        )
        order = workspace.uploaded(np.arange(count, dtype=np.int32), wp.int32)
        lanes = PairLanes()
        lanes.slots = pair
        lanes.row = row
        lanes.first = order
        lanes.order = order
        lanes.mask = workspace.uploaded(np.ones(count, np.uint32), wp.uint32)
        listed = CandidateList(pair, row, order, ends, order, lanes, ends)
        return new_candidates(workspace, pair, row, count), listed

    def queries(self, chosen: np.ndarray, workspace: Workspace) -> Queries:
        """The chosen queries on the device."""
        queries = Queries()
        queries.order = workspace.uploaded(chosen.astype(np.int32), wp.int32)
        queries.pair = workspace.uploaded(self._pair_in_order, wp.vec2i)
        queries.row = workspace.uploaded(self._row_in_order, wp.vec2i)
        queries.swapped = workspace.uploaded(self._swapped, wp.int32)
        return queries

    def read(self, workspace: Workspace) -> np.ndarray:
        """What is found so far."""
        return workspace.host(self.found, self._count).copy()


def _margins(count: int, gap: float, device: wp.Device) -> Margins:
    """Margins of `count` shapes without any, with one gap [m] and without forced pairs."""
    margins = Margins()
    margins.margin = wp.zeros(max(1, count), dtype=Real, device=device)  # pyright: ignore[reportArgumentType]
    margins.gap = wp.array(np.full(max(1, count), gap), dtype=Real, device=device)  # pyright: ignore[reportArgumentType]
    margins.forced_start = wp.zeros(count + 1, dtype=wp.int32, device=device)
    margins.forced = wp.zeros(1, dtype=wp.int32, device=device)
    margins.forced_gap = margins.forced_margin = wp.zeros(1, dtype=Real, device=device)  # pyright: ignore[reportArgumentType]
    return margins


def _search_of(kind_a: int, kind_b: int) -> str:
    """Key of `KERNELS` for a pair of kinds of which one at least is a surface of triangles."""
    low = min(type_of_kind(kind_a), type_of_kind(kind_b))
    if low == ShapeType.PLANE:
        return "plane"
    if low >= ShapeType.MESH:
        return "surface"
    return "hull" if low == ShapeType.CONVEX_MESH else "convex"


# Signed distances of points from one shape of any type.


@cache
def point_kernel(with_meshes: bool) -> wp.Kernel:
    """The kernel, with the code of meshes and hulls or without."""
    distance = distance_function(with_meshes, False)

    @kernel
    def measure_points(
        solids: Solids, row: int, has_inside: int, point: wp.array[Vec3], value: wp.array[Real]
    ):
        """One thread per point."""
        thread = wp.tid()
        nearest = distance(solids, row, point[thread])
        value[thread] = wp.where(has_inside == 1, nearest.value, wp.abs(nearest.value))

    return measure_points


@one_at_a_time
def point_distances(model: Model, row: int, points: np.ndarray, device: wp.Device) -> np.ndarray:
    """float64[n]: signed distances of points [n, 3], in a shape's frame, from its surface [m];
    negative inside. row: of a shape of any type but heightfield. Not negative for an open mesh,
    which has no inside."""
    shape_type = model.shapes.type[row]
    with_meshes = shape_type in (ShapeType.MESH, ShapeType.CONVEX_MESH)
    has_inside = int(shape_type != ShapeType.MESH or model.meshes[model.shapes.mesh[row]].is_closed)
    device_model = upload_model(model, device)
    sampled = np.zeros(len(model.shapes), bool)
    sampled[row] = True
    measure = point_kernel(with_meshes)
    load_kernels([measure], device)
    value = wp.empty(max(1, len(points)), dtype=Real, device=device)  # pyright: ignore[reportArgumentType]
    if len(points):
        given = wp.array(np.ascontiguousarray(points, np.float64), dtype=Vec3, device=device)
        arguments = [upload_solids(device_model, sampled), row, has_inside, given, value]
        wp.launch(measure, len(points), arguments, device=device)
    return value.numpy()[: len(points)]
