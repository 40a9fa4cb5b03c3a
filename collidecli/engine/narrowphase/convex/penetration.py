"""Depth of two overlapping cores by EPA or MPR, with witness points that attain it.

Where EPA exceeds its capacity, the depth is that of the faces and edges of hulls, see
`separating_axes`, or of Newton's descents.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import CAPSULE, UP, Pose, Real, Vec3
from collidecli.engine.narrowphase.convex import gjk
from collidecli.engine.narrowphase.convex.depth_certificate import any_tangent
from collidecli.engine.narrowphase.convex.epa import depth_of_difference
from collidecli.engine.narrowphase.convex.mpr import depth_through_portal
from collidecli.engine.narrowphase.convex.polytope import Depth
from collidecli.engine.narrowphase.convex.separating_axes import (
    PARALLEL_EDGES,
    depth_by_faces_and_edges,
)

# ruff: noqa: F811


WITNESS_GAP = wp.constant(Real(1.0e-3))
"""Gap by which cores are separated to find their witnesses, relative to the smaller shape's size:
GJK's direction is accurate to 1e-6, and b's point to 1e-6 of the gap."""

LEAST_WITNESS_GAP = wp.constant(Real(1.0e-6))
"""Additional gap relative to the larger shape's size: well above the distance at which cores count
as touching."""


@wp.struct
class Separation:
    """Signed distance of two shapes [m], the unit normal from a to b that attains it, and a's
    witness, in a's frame.

    b's witness is point_a + separation * normal. exact: 0 if `separation` is only known to be at
    least the maximum separation (normal and point are then approximate), or if a limit ended the
    search for the depth; else 1.
    """

    separation: Real
    normal: Vec3
    point_a: Vec3
    exact: int


@wp.func
def flat_normal(difference: Any) -> Vec3:
    """Normal of two crossing cores without volume; any direction perpendicular to both separates
    them.

    Two segments: their common perpendicular; parallel ones, or one: perpendicular to it and to the
    axis of a's frame it is least along; two points: +z of a.
    """
    axis = UP
    axis_b = Vec3(difference.rotation[0, 2], difference.rotation[1, 2], difference.rotation[2, 2])
    has_axis_b = difference.b.type == CAPSULE and difference.b.size[1] > Real(0.0)
    if difference.a.type == CAPSULE and difference.a.size[1] > Real(0.0):
        if has_axis_b:
            across = wp.cross(axis, axis_b)
            if wp.length_sq(across) > PARALLEL_EDGES:
                return wp.normalize(across)
        return any_tangent(axis)
    return any_tangent(axis_b) if has_axis_b else axis


@wp.func
def placed(difference: Any, a: Any, b: Any, pose_b_to_a: Pose):
    """An empty Minkowski difference, set to the cores of two shapes, in a's frame."""
    result = difference
    result.a = a
    result.b = b
    result.radius_a = primitives.radius_of(a)
    result.radius_b = primitives.radius_of(b)
    result.rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    result.position = wp.transform_get_translation(pose_b_to_a)
    return result


@wp.func
def minkowski_difference(
    a: primitives.Primitive, b: primitives.Primitive, pose_b_to_a: Pose
) -> primitives.MinkowskiDifference:
    """Minkowski difference of the cores of two primitives, in a's frame."""
    return placed(primitives.MinkowskiDifference(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: primitives.Primitive, b: HullShape, pose_b_to_a: Pose
) -> primitives.DifferenceWithHull:
    """Minkowski difference of a primitive and a hull."""
    return placed(primitives.DifferenceWithHull(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: HullShape, b: HullShape, pose_b_to_a: Pose
) -> primitives.DifferenceOfHulls:
    """Minkowski difference of two hulls."""
    return placed(primitives.DifferenceOfHulls(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: primitives.Primitive, b: TriangleShape, pose_b_to_a: Pose
) -> primitives.DifferenceWithTriangle:
    """Minkowski difference of a primitive and a triangle."""
    return placed(primitives.DifferenceWithTriangle(), a, b, pose_b_to_a)


@wp.func
def minkowski_difference(
    a: HullShape, b: TriangleShape, pose_b_to_a: Pose
) -> primitives.DifferenceOfHullAndTriangle:
    """Minkowski difference of a hull and a triangle."""
    return placed(primitives.DifferenceOfHullAndTriangle(), a, b, pose_b_to_a)


@wp.func
def nearest_of_separated(
    difference: Any, depth: Real, normal: Vec3, gap: Real, simplex: wp.array[primitives.Vertex]
) -> gjk.Nearest:
    """Closest points of cores moved apart by a depth and a gap [m], which are the witnesses of the
    depth.

    With h the support function of the difference and t = depth + gap, the separation along n is t
    normal.n - h(n) once b is moved by t normal. It is largest along the normal if no h is below the
    depth: the closest points are then the witnesses, and their distance is the gap.
    """
    moved = difference
    moved.position = difference.position + (depth + gap) * normal
    return gjk.nearest_of_difference(moved, normal, Real(wp.inf), simplex)


@wp.func
def sum_of_sizes(difference: Any) -> Real:
    """Largest size of a plus that of b [m]."""
    return wp.max(difference.a.size) + wp.max(difference.b.size)


@wp.func
def witness_gap(difference: Any) -> Real:
    """Gap by which cores are separated to find the witnesses of their depth [m]."""
    largest_a = wp.max(difference.a.size)
    largest_b = wp.max(difference.b.size)
    return WITNESS_GAP * wp.min(largest_a, largest_b) + LEAST_WITNESS_GAP * wp.max(
        largest_a, largest_b
    )


@wp.func
def witness_by_gjk(
    difference: Any, depth: Real, normal: Vec3, simplex: wp.array[primitives.Vertex]
) -> Vec3:
    """Core a's witness of a depth: its point closest to b once they are moved apart by the depth
    and a gap."""
    return nearest_of_separated(difference, depth, normal, witness_gap(difference), simplex).on_a


@wp.func(inline=False)
def depth_if_attained(difference: Any, depth: Real, normal: Vec3) -> Depth:
    """A conditional depth of overlapping cores, with its witness; exact = 0 if the cores do not
    attain it."""
    simplex = wp.zeros(shape=4, dtype=primitives.Vertex)
    gap = witness_gap(difference)
    nearest = nearest_of_separated(difference, depth, normal, gap, simplex)
    missed = wp.abs(nearest.distance - gap)
    exact = wp.where(nearest.state == gjk.APART and missed <= WITNESS_GAP * gap, 1, 0)
    return Depth(depth, normal, nearest.on_a, 0, exact, 0, Real(0.0))


DESCENTS = wp.constant(32)
"""Maximum number of steps of `descended`."""
PROVEN = wp.constant(Real(1.0e-9))
"""Difference of both bounds of a depth, relative to the sizes' sum, at which it counts as exact."""
LEAST_DESCENT = wp.constant(Real(1.0e-12))
"""Gain of a step relative to the sizes' sum at which the descent ends."""


@wp.func(inline=False)
def descended(difference: Any, reached: Depth, simplex: wp.array[primitives.Vertex]) -> Depth:
    """A depth after a descent along its support heights, to a local minimum.

    The proximal point method, as in `distance_bounds`: of cores moved apart along n by a distance t
    beyond their depth, the closest points give the normal m that maximizes t m.n - h(m), so that
    h(m) <= h(n) - t (1 - m.n). A ring of equal minima, as of a cone's tip at a hull's vertex, has
    more faces than the polytope of EPA, all of which are close to its lower bound.
    """
    result = reached
    gap = witness_gap(difference)
    size = sum_of_sizes(difference)
    for _step in range(DESCENTS):
        apart = nearest_of_separated(difference, result.depth, result.normal, gap, simplex)
        if apart.state != gjk.APART:
            break
        height = wp.dot(primitives.difference_support(difference, apart.normal).point, apart.normal)
        if height >= result.depth - LEAST_DESCENT * size:
            break
        result.depth = height
        result.normal = apart.normal
        result.on_a = apart.on_a
        result.has_witness = 0
    result.exact = wp.where(result.depth - result.least <= PROVEN * size, 1, 0)
    return result


@wp.func
def depth_beyond_capacity(
    difference: Any, reached: Depth, simplex: wp.array[primitives.Vertex]
) -> Depth:
    """Depth if EPA exceeds its capacity: a local minimum below EPA's upper bound."""
    return descended(difference, reached, simplex)


@wp.func
def depth_beyond_capacity(
    difference: primitives.DifferenceOfHulls, reached: Depth, simplex: wp.array[primitives.Vertex]
) -> Depth:
    """Exact depth of two hulls over all faces and pairs of edges."""
    return depth_by_faces_and_edges(difference)


@wp.func
def depth_by_epa(difference: Any, simplex: wp.array[primitives.Vertex], count: int) -> Depth:
    """Exact depth by EPA."""
    depth = depth_of_difference(difference, simplex, count)
    if depth.exact == 0:
        depth = depth_beyond_capacity(difference, depth, simplex)
    if depth.has_witness == 0:
        depth.on_a = witness_by_gjk(difference, depth.depth, depth.normal, simplex)
    return depth


@wp.func
def depth_by_mpr(difference: Any, simplex: wp.array[primitives.Vertex], count: int) -> Depth:
    """Approximate depth, see mpr.py; the witness is on a, but on b only if the depth is the
    least."""
    return depth_through_portal(difference)
