"""Least distance of pairs over a part of their steps, with a certified lower bound.

The distance changes at most by L over the whole step. So over an interval of length h with the distances a and b at its
ends it is nowhere less than (a + b - L h) / 2, and the next query is at the point of that bound, in the interval with
the least bound.

Source: Piyavskii 1972; Shubert 1972.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.engine.sweep.advancement import Sweeper, touching
from collidecli.engine.sweep.speeds import PairSteps

QUERIES = 16
"""Largest number of distances of a pair between the ends of its touch."""


@dataclass(frozen=True)
class LeastDistance:
    """Of each pair: the least distance that was found less both margins, and a lower bound of all [m]. touches:
    bool[n], whether it is a touch for certain at a time between."""

    found: np.ndarray
    bound: np.ndarray
    touches: np.ndarray


def least_distance(
    sweeper: Sweeper, pairs: PairSteps, begin: np.ndarray, end: np.ndarray, known: tuple[np.ndarray, ...]
) -> LeastDistance:
    """The least distance of each pair from `begin` to `end`, float64[n] in [0, 1].

    known: distances less margins at the begin and at the end, and their lower bounds, float64[n] each.
    """
    count, width = len(pairs), QUERIES + 1
    left, right = np.zeros((count, width)), np.zeros((count, width))
    at_left, at_right = np.full((count, width), np.inf), np.full((count, width), np.inf)
    left[:, 0], right[:, 0], at_left[:, 0], at_right[:, 0] = begin, end, known[2], known[3]
    least, touches = np.minimum(known[0], known[1]), np.zeros(count, bool)

    def bounds(rows: np.ndarray) -> np.ndarray:
        sides = at_left[rows] + at_right[rows] - pairs.speed[rows, None] * (right[rows] - left[rows])
        return np.minimum(0.5 * sides, np.minimum(at_left[rows], at_right[rows]))

    active = np.arange(count)
    for used in range(1, width):
        bound = bounds(active)
        lowest = np.argmin(bound, axis=1)
        is_open = bound[np.arange(len(active)), lowest] < least[active] - sweeper.tolerance
        is_open &= (right[active, lowest] > left[active, lowest]) & (pairs.speed[active] > 0.0)
        active, lowest = active[is_open], lowest[is_open]
        if not len(active):
            break
        low, high = left[active, lowest], right[active, lowest]
        of_low, of_high = at_left[active, lowest], at_right[active, lowest]
        time = 0.5 * (low + high) + 0.5 * (of_low - of_high) / pairs.speed[active]
        time = np.minimum(np.maximum(time, low), high)
        held = pairs.take(active)
        query = sweeper.query(held, time)
        lower = sweeper.lower_bound(held, query)
        least[active] = np.minimum(least[active], query.distance)
        touches[active] |= touching(query, sweeper.tolerance)
        left[active, used], right[active, used] = time, high
        at_left[active, used], at_right[active, used] = lower, of_high
        right[active, lowest], at_right[active, lowest] = time, lower
    return LeastDistance(least, np.minimum(bounds(np.arange(count)).min(axis=1, initial=np.inf), least), touches)
