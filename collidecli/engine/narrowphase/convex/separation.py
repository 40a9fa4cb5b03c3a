"""Signed distance of two convex shapes: early-outs, GJK, and EPA or MPR for overlapping cores."""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.narrowphase.convex import gjk, primitive_distance
from collidecli.engine.narrowphase.convex.distance_bounds import nearest_cores
from collidecli.engine.narrowphase.convex.penetration import (
    Separation,
    depth_by_epa,
    depth_by_mpr,
    depth_if_attained,
    flat_normal,
    minkowski_difference,
)
from collidecli.engine.narrowphase.convex.polytope import Depth


def separation_by(depth_of_overlap: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`separate` with one depth function for overlapping cores, so that the other one's code is not
    compiled."""

    @wp.func(name=name)
    def separate(a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real) -> Separation:
        difference = minkowski_difference(a, b, pose_b_to_a)
        radii = difference.radius_a + difference.radius_b
        early = primitive_distance.early_out(difference, max_separation + radii)
        distance = early.distance
        result = Separation(
            Real(0.0),
            early.normal,
            early.on_a,
            wp.where(early.state == primitive_distance.FAR, 0, 1),
        )
        if (
            early.state == primitive_distance.UNDECIDED
            or early.state == primitive_distance.CONDITIONAL
        ):
            simplex = wp.zeros(shape=4, dtype=primitives.Vertex)
            nearest = nearest_cores(difference, early.normal, max_separation + radii, simplex)
            distance = nearest.distance
            result.normal = nearest.normal
            result.point_a = nearest.on_a
            if nearest.state == gjk.BEYOND_MAX_SEPARATION:
                result.exact = 0
            elif nearest.state == gjk.OVERLAP:
                if primitives.core_is_flat(a.type) and primitives.core_is_flat(b.type):
                    distance = Real(0.0)
                    result.normal = flat_normal(difference)
                else:
                    overlap = Depth()
                    if early.state == primitive_distance.CONDITIONAL:
                        overlap = depth_if_attained(difference, -early.distance, early.normal)
                    if overlap.exact == 0:
                        overlap = depth_of_overlap(difference, simplex, nearest.count)
                    distance = -overlap.depth
                    result.normal = overlap.normal
                    result.point_a = overlap.on_a
                    result.exact = overlap.exact
        result.separation = distance - radii
        result.point_a += difference.radius_a * result.normal
        return result

    return separate


separate = separation_by(depth_by_epa, "separate")
"""Signed distance, normal and witness of two convex shapes.

Args:
    a, b: `Primitive` of any type but plane, `HullShape` or `TriangleShape`.
    pose_b_to_a: b's frame in a's.
    max_separation: the search ends once the separation is known to be at least this [m].
Returns:
    Separation. Its witness is on both shapes to 5e-8 of the larger's size, but for rare ends of GJK
    by rounding (docs/explanation/accuracy.md). The separation of cores that touch, or
    overlap by less than 2e-9 of their sizes' sum, is accurate to that value, also if b is a million
        times a's size.
Degenerate: if several directions attain the depth, one that depends on the arguments alone; see
    `flat_normal` for spheres and capsules whose inner points or segments intersect.
"""

separate_by_mpr = separation_by(depth_by_mpr, "separate_by_mpr")
"""`separate` with an approximate depth, never less than the exact one, at less cost (see
mpr.py)."""
