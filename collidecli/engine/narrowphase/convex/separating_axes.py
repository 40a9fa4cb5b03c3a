"""Depth of two overlapping hulls by a separating axis test, always exact.

EPA expands its polytope where the depth may be least. For a hull of hundreds of vertices deep
inside another, that is nearly everywhere, and EPA exceeds its capacity. This test then tries every
face of the difference instead: the faces of a, the mirrored faces of b, and one for each edge of a
and edge of b whose arcs on the Gauss map cross.

Source: Gregorius 2013, "The separating axis test between convex polyhedra", for the test of arcs.
"""

import warp as wp

from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.hulls import HullShape, edge_end, hull_number, hull_point
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.convex.polytope import Depth

PARALLEL_EDGES = wp.constant(Real(1.0e-9))
"""Sine of the angle below which two edges give no face of their own: it would be a sliver."""


@wp.func
def shallower(difference: primitives.DifferenceOfHulls, normal: Vec3, best: Depth) -> Depth:
    """`best`, or the depth along a unit normal if it is smaller."""
    height = wp.dot(primitives.difference_support(difference, normal).point, normal)
    return Depth(height, normal, Vec3(), 0, 1, 0, height) if height < best.depth else best


@wp.func
def normal_beside(shape: HullShape, edge: int, side: int) -> Vec3:
    """Outward normal of one of the two faces (0, 1) of an edge."""
    return hull_point(shape, shape.normal + hull_number(shape, shape.edge + 4 * edge + 2 + side))


@wp.func
def arcs_cross(a0: Vec3, a1: Vec3, b0: Vec3, b1: Vec3) -> bool:
    """Whether the great-circle arcs from a0 to a1 and from b0 to b1, of unit vectors, cross."""
    across_a = wp.cross(a1, a0)
    across_b = wp.cross(b1, b0)
    b0_side = wp.dot(b0, across_a)
    b1_side = wp.dot(b1, across_a)
    a0_side = wp.dot(a0, across_b)
    a1_side = wp.dot(a1, across_b)
    return (
        b0_side * b1_side < Real(0.0)
        and a0_side * a1_side < Real(0.0)
        and b0_side * a1_side > Real(0.0)
    )


@wp.func(inline=False)
def depth_by_faces_and_edges(difference: primitives.DifferenceOfHulls) -> Depth:
    """Least depth of two overlapping hulls and its normal; no witness."""
    a = difference.a
    b = difference.b
    result = Depth(Real(wp.inf), Vec3(), Vec3(), 0, 1, 0, Real(0.0))
    for face in range(a.face_count):
        result = shallower(difference, hull_point(a, a.normal + face), result)
    for face in range(b.face_count):
        result = shallower(
            difference, -(difference.rotation * hull_point(b, b.normal + face)), result
        )
    edges_a = (a.face - a.edge) / 4
    edges_b = (b.face - b.edge) / 4
    for i in range(edges_a):
        a0 = normal_beside(a, i, 0)
        a1 = normal_beside(a, i, 1)
        start_a = edge_end(a, i, 0)
        along_a = edge_end(a, i, 1) - start_a
        for j in range(edges_b):
            b0 = -(difference.rotation * normal_beside(b, j, 0))
            b1 = -(difference.rotation * normal_beside(b, j, 1))
            if arcs_cross(a0, a1, b0, b1):
                start_b = difference.rotation * edge_end(b, j, 0) + difference.position
                along_b = difference.rotation * (edge_end(b, j, 1) - edge_end(b, j, 0))
                across = wp.cross(along_a, along_b)
                # The arcs are shorter than half a turn, so the normal is on a0's side.
                across = wp.where(wp.dot(across, a0 + a1) < Real(0.0), -across, across)
                length = wp.length(across)
                # The arcs of parallel edges cross by rounding, if at all; an adjacent face then
                # gives the depth.
                is_face = length > PARALLEL_EDGES * wp.length(along_a) * wp.length(along_b)
                if is_face and wp.dot(across, start_a - start_b) < result.depth * length:
                    result = shallower(difference, across / length, result)
    return result
