"""Least distance of a surface of triangles to a plane, a convex shape or another surface.

Branch and bound over the BVHs, depth first, the nearer box first. A box, or pair of boxes, is
left out if no point of it is nearer than the least distance found so far. Its bound is the larger
of two: the distance of the boxes, and the separation along the normal of the nearest triangle
found so far, which is close to the exact distance near the optimum. Each triangle gives two
numbers: a distance that its witness points attain, and the separation along its normal, which no
point of it is below. The least of the latter bounds the distance from below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.collider_query import hull_of, primitive_of, relative_pose
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.distances.queries import (
    STACK,
    Found,
    Queries,
    TriangleTrees,
    box_half,
    box_middle,
    push_nearer_last,
    store_found,
)
from collidecli.engine.geometry.box_frames import (
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
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.primitives import Vertex, support_point
from collidecli.engine.geometry.real import MESH, Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.distance_bounds import distance_bounds
from collidecli.engine.narrowphase.convex.gjk import BEYOND_MAX_SEPARATION, nearest_of_difference
from collidecli.engine.narrowphase.convex.penetration import minkowski_difference, sum_of_sizes
from collidecli.engine.runtime.kernel import kernel

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
