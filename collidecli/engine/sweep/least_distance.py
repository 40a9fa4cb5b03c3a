"""Least distance of pairs over a part of their steps, with a certified lower bound.

Source: Piyavskii 1972; Shubert 1972.
"""

from __future__ import annotations

import numpy as np

from collidecli.engine.sweep.conservative_advancement import Sweeper, touching
from collidecli.engine.sweep.motion import PairSteps

QUERIES = 16
"""Largest number of distances of a pair between the ends of its touch."""


def least_distance(
    sweeper: Sweeper,
    pairs: PairSteps,
    begin: np.ndarray,
    end: np.ndarray,
    known: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least distance of each pair, less both margins, that is found from `begin` to `end`,
    float64[n] in [0, 1]; a lower bound of all [m]; and bool[n], whether there is a touch for
    certain at a time between.

    known: distances less margins at the begin and at the end, and their lower bounds, float64[n]
    each.
    """
    count = len(pairs)
    width = QUERIES + 1
    left = np.zeros((count, width))
    right = np.zeros((count, width))
    at_left = np.full((count, width), np.inf)
    at_right = np.full((count, width), np.inf)
    left[:, 0] = begin
    right[:, 0] = end
    at_left[:, 0] = known[2]
    at_right[:, 0] = known[3]
    least = np.minimum(known[0], known[1])
    touches = np.zeros(count, bool)

    def bounds(rows: np.ndarray) -> np.ndarray:
        sides = (
            at_left[rows] + at_right[rows] - pairs.speed[rows, None] * (right[rows] - left[rows])
        )
        return np.minimum(0.5 * sides, np.minimum(at_left[rows], at_right[rows]))

    active = np.arange(count)
    for used in range(1, width):
        bound = bounds(active)
        lowest = np.argmin(bound, axis=1)
        is_open = bound[np.arange(len(active)), lowest] < least[active] - sweeper.tolerance
        is_open &= (right[active, lowest] > left[active, lowest]) & (pairs.speed[active] > 0.0)
        active = active[is_open]
        lowest = lowest[is_open]
        if not len(active):
            break
        low = left[active, lowest]
        high = right[active, lowest]
        of_low = at_left[active, lowest]
        of_high = at_right[active, lowest]
        time = 0.5 * (low + high) + 0.5 * (of_low - of_high) / pairs.speed[active]
        time = np.minimum(np.maximum(time, low), high)
        active_pairs = pairs.take(active)
        query = sweeper.query(active_pairs, time)
        lower = sweeper.lower_bound(active_pairs, query)
        least[active] = np.minimum(least[active], query.distance)
        touches[active] |= touching(query, sweeper.tolerance)
        left[active, used] = time
        right[active, used] = high
        at_left[active, used] = lower
        at_right[active, used] = of_high
        right[active, lowest] = time
        at_right[active, lowest] = lower
    return least, np.minimum(bounds(np.arange(count)).min(axis=1, initial=np.inf), least), touches
