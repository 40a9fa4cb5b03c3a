"""Queries of least distances, and their results: from searches of triangles, and from contacts of a narrow phase."""

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.contact_record import Candidates, ContactRecord
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import PLANE
from collidecli.engine.geometry.support import support_point
from collidecli.engine.pair_query import hull_of, primitive_of, relative_pose
from collidecli.engine.runtime.kernel import kernel

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
