"""Queries of least distances, and their results: from searches of triangles, and from contacts of a narrow phase."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.candidates import hull_of, primitive_of, relative_pose
from collidecli.engine.cells import Instances
from collidecli.engine.contact_record import Candidates, ContactRecord
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import BoxFrames, box_frames, distance_along_axes, distance_of_boxes
from collidecli.engine.geometry.closest_points import TrianglePair, closest_points, overlap_of_projections
from collidecli.engine.geometry.meshes import TriangleShape, tree_of_triangles
from collidecli.engine.geometry.primitives import Vertex, support_point
from collidecli.engine.geometry.real import MESH, PLANE, Pose, Real, Vec3, device_array
from collidecli.engine.narrowphase.convex.gjk import BEYOND_MAX_SEPARATION, nearest_of_difference
from collidecli.engine.narrowphase.convex.penetration import distance_bounds, minkowski_difference, sum_of_sizes
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.heightfield import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh

ROUNDING = wp.constant(Real(4.0e-15))
"""Rounding of a distance relative to the coordinates and sizes that it is computed from."""


@wp.struct
class Queries:
    """Pairs of instances whose distance is wanted, in type order.

    order: numbers of the queries of a launch. pair: instances of shapes a and b. row: rows of shapes a and b. swapped:
    1 where a is shape1.
    """

    order: wp.array[wp.int32]
    pair: wp.array[wp.vec2i]
    row: wp.array[wp.vec2i]
    swapped: wp.array[wp.int32]


@wp.struct
class Found:
    """Least distance of a pair [m], at most which it is certified to be at least `lower`.

    normal: unit, from a to b. point_a: witness on a; that of b is point_a + distance * normal. While searched in the
    frame of a; stored in the world, from shape0 to shape1, with the witness of shape0. count: contacts it is taken
    from, 0 where there is none.
    """

    distance: Real
    lower: Real
    normal: Vec3
    point_a: Vec3
    count: int


@wp.func
def rounding_of(rows: ShapeRows, instances: Instances, row: wp.vec2i, pair: wp.vec2i) -> Real:
    """Bound of the rounding of a distance [m]."""
    result = Real(0.0)
    for k in range(2):
        if rows.type[row[k]] != PLANE:
            result += wp.length(rows.size[row[k]])
        result += wp.length(wp.transform_get_translation(instances.pose[pair[k]]))
    return ROUNDING * result


@wp.func
def store_found(
    queries: Queries, instances: Instances, rows: ShapeRows, index: int, best: Found, found: wp.array[Found]
):
    """Writes a result in the world, from shape0 to shape1."""
    result = best
    pose_a = instances.pose[queries.pair[index][0]]
    result.normal = wp.transform_vector(pose_a, best.normal)
    result.point_a = wp.transform_point(pose_a, best.point_a)
    if queries.swapped[index] == 1:
        result.point_a = result.point_a + best.distance * result.normal
        result.normal = -result.normal
    slack = rounding_of(rows, instances, queries.row[index], queries.pair[index])
    result.lower = wp.min(best.lower, best.distance) - slack
    result.count = 1
    found[index] = result


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
    found: wp.array[Found],
):
    """One thread per query: the contact with the least separation, the first of equal ones.

    certified: 1 for planes and convex shapes, whose separation along the normal bounds the distance from below where it
    is positive, and for planes everywhere; else 0.
    """
    thread = wp.tid()
    index = queries.order[thread]
    count = candidates.found[thread]
    best = Found()
    if count == 0:
        found[index] = best
        return
    best.distance = Real(wp.inf)
    for k in range(count):
        each = contact[candidates.first[thread] + k * candidates.stride[thread]]
        if each.separation < best.distance:
            best.distance = each.separation
            best.normal = each.normal
            best.point_a = each.point
    best.lower = -Real(wp.inf)
    row = queries.row[index]
    if certified == 1 and (best.distance > Real(0.0) or rows.type[row[0]] == PLANE):
        pair = queries.pair[index]
        pose_b_to_a = relative_pose(instances.pose[pair[0]], instances.pose[pair[1]])
        on_a = farthest_along(rows, row[0], best.normal)
        in_b = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), -best.normal)
        on_b = wp.transform_point(pose_b_to_a, farthest_along(rows, row[1], in_b))
        best.lower = wp.dot(best.normal, on_b - on_a)
    store_found(queries, instances, rows, index, best, found)


STACK = 80
"""Boxes, or pairs of boxes, that wait while one tree or two are descended: one a level of each, and a tree of 2^31
triangles has 32 levels."""


@wp.struct
class TriangleTrees:
    """The triangles of several surfaces, and a BVH of each in depth-first order.

    lower, upper, skip, leaf: see `MeshTree`; skip and leaf count through all surfaces. corner: three points a triangle,
    in the shape's frame [m]. first_node: of each surface. surface: of each shape row, -1 for none.
    """

    lower: wp.array[Vec3]
    upper: wp.array[Vec3]
    skip: wp.array[int]
    leaf: wp.array[int]
    corner: wp.array[Vec3]
    first_node: wp.array[int]
    surface: wp.array[int]


@wp.func
def first_node_of(trees: TriangleTrees, row: int) -> int:
    """Root of the tree of a shape row that has a surface."""
    return trees.first_node[trees.surface[row]]


@wp.func
def tree_triangle(trees: TriangleTrees, number: int) -> TriangleShape:
    """Triangle `number` as a convex shape, without features."""
    shape = TriangleShape()
    shape.type = MESH
    shape.number = number
    shape.p = trees.corner[3 * number]
    shape.q = trees.corner[3 * number + 1]
    shape.r = trees.corner[3 * number + 2]
    shape.size = Real(0.5) * (wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r)))
    return shape


@wp.func
def box_middle(trees: TriangleTrees, node: int) -> Vec3:
    """Centre of a box."""
    return Real(0.5) * (trees.lower[node] + trees.upper[node])


@wp.func
def box_half(trees: TriangleTrees, node: int) -> Vec3:
    """Half extents of a box."""
    return Real(0.5) * (trees.upper[node] - trees.lower[node])


def mesh_corners(mesh: TriangleMesh) -> np.ndarray:
    """float64[F, 3, 3]: corners of the triangles that bound the solid."""
    seen = ~mesh.hidden
    return mesh.vertex[mesh.face[seen] if seen.any() else mesh.face]


def upload_trees(model: Model, device: wp.Device) -> TriangleTrees:
    """The trees of all meshes and heightfields of a model."""
    shapes = model.shapes
    parts: list[np.ndarray] = [mesh_corners(mesh) for mesh in model.meshes]
    parts += [mesh_corners(solid_mesh(field)) for field in model.heightfields]
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
        setattr(result, name, device_array(np.concatenate([*values, np.zeros((0, 3))]), Vec3, device))
    skip = [tree.skip + nodes[k] for k, tree in enumerate(trees)]
    leaf = [np.where(tree.face >= 0, tree.face + faces[k], -1) for k, tree in enumerate(trees)]
    for name, values in (("skip", skip), ("leaf", leaf), ("first_node", [nodes[:-1]]), ("surface", [surface])):
        whole = np.concatenate([*values, np.zeros(0, np.int32)]).astype(np.int32)
        setattr(result, name, device_array(whole, wp.int32, device))
    return result


# Least distance of a surface of triangles to a plane, a convex shape or another surface of triangles.
#
# Branch and bound over the BVHs, depth first, the nearer box first. A box, or pair of boxes, is left out if no point
# of it is nearer than the least distance found so far. Its bound is the larger of two: the distance of the boxes, and
# the separation along the normal of the nearest triangle found so far, which is close to the exact distance near the
# optimum. Each triangle gives two numbers: a distance that its witness points attain, and the separation along its
# normal, which no point of it is below. The least of the latter bounds the distance from below.

TOUCHING = wp.constant(Real(1.0e-15))
"""Distance relative to the sizes' sum up to which a convex shape touches a triangle: the rounding of their points."""


@wp.func
def extent_along(half: Vec3, direction: Vec3) -> Real:
    """Half of the extent of a box along a direction in the box's frame [m]."""
    return wp.dot(half, wp.abs(direction))


@wp.struct
class BoxOfShape:
    """Bounding box of a convex shape in another frame: centre and half extents [m]."""

    middle: Vec3
    half: Vec3


@wp.func(inline=False)
def box_in_frame(a: Any, pose_b_to_a: Pose) -> BoxOfShape:
    """Box of shape a in frame b."""
    box = BoxOfShape()
    rotation = wp.transform_get_rotation(pose_b_to_a)
    origin = wp.transform_get_translation(pose_b_to_a)
    for axis in range(3):
        unit = Vec3()
        unit[axis] = Real(1.0)
        direction = wp.quat_rotate(rotation, unit)
        high = wp.dot(direction, support_point(a, direction) - origin)
        low = wp.dot(direction, support_point(a, -direction) - origin)
        box.middle[axis] = Real(0.5) * (high + low)
        box.half[axis] = Real(0.5) * (high - low)
    return box


@wp.func(inline=False)
def nearer_triangle(a: Any, trees: TriangleTrees, number: int, pose_b_to_a: Pose, best: Found) -> Found:
    """`best`, or what is found of one triangle if that is nearer; `lower` is the lesser of both in each case."""
    result = best
    b = tree_triangle(trees, number)
    difference = minkowski_difference(a, b, pose_b_to_a)
    simplex = wp.zeros(shape=4, dtype=Vertex)
    start = wp.transform_point(pose_b_to_a, (b.p + b.q + b.r) / Real(3.0))
    start = wp.where(wp.length_sq(start) > Real(0.0), wp.normalize(start), Vec3(Real(0.0), Real(0.0), Real(1.0)))
    nearest = nearest_of_difference(difference, start, best.distance + difference.radius_a, simplex)
    if nearest.state == BEYOND_MAX_SEPARATION:
        return result
    bounds = distance_bounds(difference, nearest, simplex)
    distance = bounds.upper - difference.radius_a
    if distance <= TOUCHING * sum_of_sizes(difference):
        distance = Real(0.0)
    result.lower = wp.min(best.lower, wp.clamp(bounds.lower - difference.radius_a, Real(0.0), distance))
    if distance < best.distance:
        result.distance = distance
        result.normal = bounds.normal
        result.point_a = bounds.on_a + difference.radius_a * bounds.normal
    return result


def convex_search(shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel of a convex shape against a surface of triangles. shape_a: `primitive_of` or `hull_of`."""

    @kernel
    def nearest_of_convex(
        rows: ShapeRows, trees: TriangleTrees, instances: Instances, queries: Queries, found: wp.array[Found]
    ):
        """One thread per query; row_a has the convex shape, row_b the surface."""
        thread = wp.tid()
        index = queries.order[thread]
        pose_b_to_a = relative_pose(instances.pose[queries.pair[index][0]], instances.pose[queries.pair[index][1]])
        a = shape_a(rows, queries.row[index][0])
        rotation = wp.transform_get_rotation(pose_b_to_a)
        origin = wp.transform_get_translation(pose_b_to_a)
        box = box_in_frame(a, pose_b_to_a)
        best = Found()
        best.distance = Real(wp.inf)
        best.lower = Real(wp.inf)
        axis = Vec3()  # the normal of `best` in frame b, and the highest point of a along it
        height = Real(0.0)
        stack = wp.zeros(shape=wp.static(STACK), dtype=int)
        bound = wp.zeros(shape=wp.static(STACK), dtype=Real)
        stack[0] = first_node_of(trees, queries.row[index][1])
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
                along = wp.dot(axis, middle) - extent_along(half, axis) - height
                bounds[k] = wp.max(along, distance_of_boxes(middle - box.middle, half + box.half))
            near = wp.where(bounds[1] < bounds[0], 1, 0)
            for k in range(2):  # the nearer one last, on top of the stack
                which = wp.where(k == 0, 1 - near, near)
                if bounds[which] < best.distance:
                    stack[count] = wp.where(which == 0, first, second)
                    bound[count] = bounds[which]
                    count += 1
        store_found(queries, instances, rows, index, best, found)

    return nearest_of_convex


@kernel
def nearest_of_plane(
    rows: ShapeRows, trees: TriangleTrees, instances: Instances, queries: Queries, found: wp.array[Found]
):
    """One thread per query; row_a has the plane, row_b the surface: its lowest vertex, exact at any depth."""
    thread = wp.tid()
    index = queries.order[thread]
    pose_b_to_a = relative_pose(instances.pose[queries.pair[index][0]], instances.pose[queries.pair[index][1]])
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    axis = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), up)
    origin = wp.transform_get_translation(pose_b_to_a)
    best = Found()
    best.normal = up
    best.distance = Real(wp.inf)
    stack = wp.zeros(shape=wp.static(STACK), dtype=int)
    bound = wp.zeros(shape=wp.static(STACK), dtype=Real)
    stack[0] = first_node_of(trees, queries.row[index][1])
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
            half = extent_along(box_half(trees, child), axis)
            bounds[k] = origin[2] + wp.dot(axis, box_middle(trees, child)) - half
        near = wp.where(bounds[1] < bounds[0], 1, 0)
        for k in range(2):
            which = wp.where(k == 0, 1 - near, near)
            if bounds[which] < best.distance:
                stack[count] = wp.where(which == 0, first, second)
                bound[count] = bounds[which]
                count += 1
    best.lower = best.distance
    store_found(queries, instances, rows, index, best, found)


@wp.func
def separation_of(pair: TrianglePair, normal: Vec3) -> Real:
    """Separation of two triangles along a direction from the fixed to the moving one [m]."""
    high = wp.max(wp.dot(normal, pair.p), wp.max(wp.dot(normal, pair.q), wp.dot(normal, pair.r)))
    low = wp.min(wp.dot(normal, pair.a), wp.min(wp.dot(normal, pair.b), wp.dot(normal, pair.c)))
    return low - high


NEARLY_TOUCHING = wp.constant(Real(1.0e-5))
"""Distance relative to the longest side below which the rounding of the points turns the normal by too much."""


@wp.func
def separation_across(pair: TrianglePair, normal: Vec3, least: Real) -> Real:
    """`least`, or the separation of two triangles along a vector, not unit, or its opposite if that is larger [m]."""
    if wp.length_sq(normal) == Real(0.0):
        return least
    unit = wp.normalize(normal)
    return wp.max(least, wp.max(separation_of(pair, unit), separation_of(pair, -unit)))


@wp.func(inline=False)
def certified_separation(pair: TrianglePair, normal: Vec3, distance: Real) -> Real:
    """Lower bound of the distance of two triangles [m]: the separation along a normal, and if they nearly touch the
    largest of those along it perpendicular to a side, along the triangles' normals and across a side of each.

    The points of a vertex and a side, a vertex and a face, or two sides give one of these normals without a difference
    of nearly equal points.
    """
    least = separation_of(pair, normal)
    sides_a = wp.matrix_from_rows(pair.q - pair.p, pair.r - pair.q, pair.p - pair.r)
    sides_b = wp.matrix_from_rows(pair.b - pair.a, pair.c - pair.b, pair.a - pair.c)
    if distance > NEARLY_TOUCHING * wp.max(wp.length(sides_a[0]), wp.length(sides_b[0])):
        return least
    least = separation_across(pair, pair.normal_pqr, separation_across(pair, pair.normal_abc, least))
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
        crosses = overlap_of_projections(pair, Real(0.0)) > Real(0.0)
    distance = wp.sqrt(closest.square)
    if crosses or distance == Real(0.0):
        result.distance = Real(0.0)
        result.lower = Real(0.0)
        result.normal = pair.normal_pqr
        result.point_a = closest.fixed
        return result
    if distance >= best.distance and distance >= best.lower:
        return result
    normal = (closest.moving - closest.fixed) / distance
    result.lower = wp.min(best.lower, certified_separation(pair, normal, distance))
    if distance < best.distance:
        result.distance = distance
        result.normal = normal
        result.point_a = closest.fixed
    return result


@wp.func
def bound_of_boxes(trees: TriangleTrees, node_a: int, node_b: int, frames: BoxFrames, axis: Vec3) -> Real:
    """Lower bound of the distance of what two boxes contain: along the axes of both frames, and along `axis`, of a."""
    half_a = box_half(trees, node_a)
    half_b = box_half(trees, node_b)
    off = frames.rotation * box_middle(trees, node_b) + frames.position - box_middle(trees, node_a)
    along = wp.dot(axis, off) - extent_along(half_a, axis) - extent_along(half_b, frames.inverse * axis)
    return wp.max(along, distance_along_axes(off, half_a, half_b, frames))


@kernel
def nearest_of_surfaces(
    rows: ShapeRows, trees: TriangleTrees, instances: Instances, queries: Queries, found: wp.array[Found]
):
    """One thread per query of two surfaces of triangles; of two boxes the larger one is descended."""
    thread = wp.tid()
    index = queries.order[thread]
    pose_b_to_a = relative_pose(instances.pose[queries.pair[index][0]], instances.pose[queries.pair[index][1]])
    frames = box_frames(pose_b_to_a)
    best = Found()
    best.distance = Real(wp.inf)
    best.lower = Real(wp.inf)
    stack = wp.zeros(shape=wp.static(STACK), dtype=wp.vec2i)
    bound = wp.zeros(shape=wp.static(STACK), dtype=Real)
    stack[0] = wp.vec2i(first_node_of(trees, queries.row[index][0]), first_node_of(trees, queries.row[index][1]))
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
            split_a = wp.length_sq(box_half(trees, nodes[0])) > wp.length_sq(box_half(trees, nodes[1]))
        node = wp.where(split_a, nodes[0], nodes[1])
        first = nodes
        second = nodes
        if split_a:
            first = wp.vec2i(node + 1, nodes[1])
            second = wp.vec2i(trees.skip[node + 1], nodes[1])
        else:
            first = wp.vec2i(nodes[0], node + 1)
            second = wp.vec2i(nodes[0], trees.skip[node + 1])
        of_first = bound_of_boxes(trees, first[0], first[1], frames, best.normal)
        of_second = bound_of_boxes(trees, second[0], second[1], frames, best.normal)
        second_is_nearer = of_second < of_first
        for k in range(2):
            take_second = second_is_nearer == (k == 1)
            here = wp.where(take_second, of_second, of_first)
            if here < best.distance:
                stack[count] = wp.where(take_second, second, first)
                bound[count] = here
                count += 1
    store_found(queries, instances, rows, index, best, found)


KERNELS = {
    "plane": nearest_of_plane,
    "convex": convex_search(primitive_of),
    "hull": convex_search(hull_of),
    "surface": nearest_of_surfaces,
}
"""Kernel by what shape a is; shape b is a surface of triangles."""
