"""Search for a point inside both shapes of a sampled pair."""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.hydroelastic.pairs import ROUNDING, HydroPair
from collidecli.engine.hydroelastic.solids import Solids

SEARCH_STEPS = wp.constant(16)
"""Projections in the search for a point inside both shapes."""
DIFFERENCE = wp.constant(Real(1.0e-3))
"""Step of differences for a gradient, as a fraction of a block's side."""


def overlap_function(distance_at: Any) -> Any:
    """overlaps_near(solids, pair, start, side) -> bool, for the distances of the types that a scene
    has."""

    @wp.func
    def gradient_at(
        solids: Solids, pair: HydroPair, side: int, point: Vec3, known: Vec3, step: Real
    ) -> Vec3:
        """Direction in which a distance increases: its gradient `known`, or by differences where
        this is 0."""
        if wp.length_sq(known) > Real(0.5):
            return known
        slope = Vec3()
        axes = int(3)  # a variable: the loop is not unrolled
        for axis in range(axes):
            off = Vec3()
            off[axis] = step
            above = distance_at(solids, pair, side, point + off)
            below = distance_at(solids, pair, side, point - off)
            slope[axis] = above.value - below.value
        return wp.normalize(slope)

    @wp.func
    def overlaps_near(solids: Solids, pair: HydroPair, start: Vec3, side: Real) -> bool:
        """Whether projections onto both surfaces in turn, from a point on, lead to a point inside
        both shapes."""
        point = start
        steps = int(SEARCH_STEPS)  # a variable: the loop is not unrolled
        for number in range(steps):
            first = distance_at(solids, pair, 0, point)
            second = distance_at(solids, pair, 1, point)
            outer = wp.max(first.value, second.value)
            if outer < -ROUNDING * pair.size:
                return True
            farther = wp.where(first.value >= second.value, 0, 1)
            known = wp.where(farther == 0, first.gradient, second.gradient)
            gradient = gradient_at(solids, pair, farther, point, known, DIFFERENCE * side)
            # Every second step is too long, to get inside where the surfaces are at a small angle.
            length = (
                wp.where(number % 2 == 0, outer, Real(1.5) * outer)
                + Real(2.0) * ROUNDING * pair.size
            )
            point = point - length * gradient
        return False

    return overlaps_near
