"""Whether two convex shapes touch, from early-outs and GJK."""

from typing import Any

import warp as wp

from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex import gjk, primitive_distance
from collidecli.engine.narrowphase.convex.penetration import minkowski_difference, sum_of_sizes

# ruff: noqa: F811


TOUCHING = wp.constant(1)
APART_BY_LIMIT = wp.constant(2)
UNCERTAIN = wp.constant(0)
SEARCH_ERROR = wp.constant(Real(1.0e-6))
"""Bound of the error of a separation before it is improved along a face, relative to the sizes'
sum."""


@wp.func
def early_touch(difference: Any, max_separation: Real, error: Real) -> primitive_distance.EarlyOut:
    """UNDECIDED."""
    return primitive_distance.undecided(difference)


@wp.func
def early_touch(
    difference: primitives.MinkowskiDifference, max_separation: Real, error: Real
) -> primitive_distance.EarlyOut:
    """DECIDED if a point of each core, found by projections, are nearer than `max_separation` by
    more than `error`; FAR if the plane between them proves that the cores are farther.
    """
    guess = primitive_distance.guess_nearest(difference)
    if guess.is_valid == 0 or guess.distance < max_separation - error:
        state = wp.where(
            max_separation > error, primitive_distance.DECIDED, primitive_distance.UNDECIDED
        )
        return primitive_distance.EarlyOut(
            state, Real(0.0), primitive_distance.toward(difference), Vec3()
        )
    height = wp.dot(primitives.difference_support(difference, guess.normal).point, guess.normal)
    is_far = -height >= max_separation + error and height < Real(0.0)
    return primitive_distance.EarlyOut(
        wp.where(is_far, primitive_distance.FAR, primitive_distance.UNDECIDED),
        Real(0.0),
        guess.normal,
        Vec3(),
    )


@wp.func
def touch_of(a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real) -> int:
    """Whether two shapes are nearer than `max_separation` [m], without their depth: TOUCHING,
    APART_BY_LIMIT, or UNCERTAIN within SEARCH_ERROR of the limit.
    """
    difference = minkowski_difference(a, b, pose_b_to_a)
    limit = max_separation + difference.radius_a + difference.radius_b
    error = SEARCH_ERROR * sum_of_sizes(difference)
    early = early_touch(difference, limit, error)
    if early.state == primitive_distance.FAR:
        return APART_BY_LIMIT
    if early.state == primitive_distance.DECIDED:
        return TOUCHING
    simplex = wp.zeros(shape=4, dtype=primitives.Vertex)
    nearest = gjk.nearest_of_difference(difference, early.normal, limit + error, simplex)
    if nearest.state == gjk.BEYOND_MAX_SEPARATION:
        return APART_BY_LIMIT
    below = limit - nearest.distance
    if nearest.state == gjk.OVERLAP and below <= error:
        below += gjk.depth_in_simplex(simplex, nearest.count)
    return wp.where(below > error, TOUCHING, UNCERTAIN)
