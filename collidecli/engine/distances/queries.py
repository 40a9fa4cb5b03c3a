"""Least signed distances of pairs of shapes at given poses, without a cutoff.

Convex shapes and planes are measured by their colliders with an unlimited gap. A triangle mesh, a
heightfield or a shape with a signed distance field is measured by its collider where it overlaps
the other shape, and otherwise by a branch and bound search over its triangles: a collider would
enumerate every triangle within the gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.collider_query import hull_of, primitive_of, relative_pose
from collidecli.engine.contact_record import Candidates, ContactRecord
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.mesh_tree import tree_of_triangles
from collidecli.engine.geometry.primitives import support_point
from collidecli.engine.geometry.real import PLANE, Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

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


@kernel
def mark_apart(queries: Queries, results: wp.array[Found], apart: wp.array[wp.uint8]):
    """One thread per query: 1 where no contact overlaps, else 0, in the order of the queries."""
    thread = wp.tid()
    result = results[queries.order[thread]]
    is_apart = result.count == 0 or result.distance >= Real(0.0)
    apart[thread] = wp.where(is_apart, wp.uint8(1), wp.uint8(0))


@kernel
def copy_distances(results: wp.array[Found], distance: wp.array[Real]):
    """One thread per result: its distance."""
    thread = wp.tid()
    distance[thread] = results[thread].distance


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
