"""Conservative advancement: the first time at which two moving shapes touch, with certified lower bounds.

From a time at which the distance is at least d, no touch is possible for (d - tolerance / 2) / v, where v bounds the
speed at which the distance decreases. Three bounds apply, and the longest advance is taken. Along a fixed direction n
the separation of the two shapes, by their support heights, decreases at most by `speed_along`; and between two times
it is bounded from below by its values at both and its curvature (`_along_direction`). The distance itself decreases at
most by `largest_speed`. A shape that is not convex may touch beside n, so that for it the first two bounds hold only
for the separation along n, never for the distance.

Source: Mirtich 1996; Zhang, Lee, Kim 2006 (directional bounds); Catto 2013 (separation along a fixed axis).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from collidecli.engine.sweep.steps import (
    PairSteps,
    Supports,
    farthest_points,
    pair_frames,
    rotated,
    rotations,
    speed_along,
)
from collidecli.numerics.matrices import cross, dot, norm

CLEAR, TOUCH, UNDECIDED = range(3)
ROUNDS = 400
"""Largest number of distances of a pair in a step, after which it is undecided."""
ROUNDS_TO_TOUCH = 10_000
"""As ROUNDS, for the ends of the touch of a pair that touches for certain: twice those with which every such pair of a
campaign was decided (docs/adr/0111)."""
TRIALS = 12
"""Largest number of times at which the separation along one direction is computed."""
LARGEST_TURN = 0.05
"""Of a direction between two distances [rad]."""
SHORTENED = 1.0 - 1e-9
"""Factor of an advance, which exceeds its rounding."""
LEAST_ADVANCE = 1e-13
"""Of a step: shorter advances are lost in the rounding of the time."""


class MeasuredRows(Protocol):
    """Distances of pairs of shapes at poses; see `pair_distances.PairDistanceRows`."""

    @property
    def distance(self) -> np.ndarray: ...
    @property
    def error(self) -> np.ndarray: ...
    @property
    def normal(self) -> np.ndarray: ...
    @property
    def point0(self) -> np.ndarray: ...
    @property
    def point1(self) -> np.ndarray: ...


class Distances(Protocol):
    """Least distances of pairs of shapes."""

    def measure(self, rows: np.ndarray, poses: np.ndarray) -> MeasuredRows: ...


@dataclass(frozen=True)
class Advance:
    """Result of an advancement, a row each pair. status: CLEAR, TOUCH or UNDECIDED. time: float64[n], of the touch; no
    touch is before it; 1 of a clear pair. The others are those of the last query: distance less both margins, a lower
    bound of it (`Sweeper.lower_bound`), normal and witness points.
    """

    status: np.ndarray
    time: np.ndarray
    distance: np.ndarray
    lower: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray


@dataclass(frozen=True)
class Query:
    """Pairs of shapes at times of their steps, a row each. found: distances of the shapes without margins. distance:
    those less both margins, and `error` of them [m]. separation: along `direction` by support heights, less both
    margins [m]. rounding: of the poses [m].
    """

    found: MeasuredRows
    distance: np.ndarray
    error: np.ndarray
    separation: np.ndarray
    direction: np.ndarray
    rounding: np.ndarray


@dataclass(frozen=True)
class Sweeper:
    """Queries of pairs of shapes within their steps. tolerance: a pair touches at this distance or less [m]."""

    distances: Distances
    supports: Supports
    tolerance: float

    def query(self, pairs: PairSteps, time: np.ndarray, expected: np.ndarray | None = None) -> Query:
        """The distances of pairs, each at a time of its step.

        expected: float64[n, 3], other directions along which the shapes may be separated more, of any lengths. The
        normal of two shapes that nearly touch is known to the rounding of their points over their distance only.
        """
        pose0, pose1 = pairs.of0.at(time), pairs.of1.at(time)
        found = self.distances.measure(pairs.rows, np.stack([pose0, pose1], axis=1))
        separation, direction = self.supports.separation(pairs.rows, pose0, pose1, found.normal)
        if expected is not None:
            other, along = self.supports.separation(pairs.rows, pose0, pose1, expected)
            is_more = other > separation
            separation, direction = np.where(is_more, other, separation), np.where(is_more[:, None], along, direction)
        rounding = self.supports.rounding(pairs.rows, pose0, pose1)
        error = np.minimum(found.error, np.maximum(found.distance - separation, 0.0) + rounding)
        error = np.where(np.isfinite(found.error), error, np.inf)
        distance, separation = found.distance - pairs.margin, separation - pairs.margin
        return Query(found, distance, error, separation, direction, rounding)

    def lower_bound(self, pairs: PairSteps, query: Query) -> np.ndarray:
        """float64[n]: lower bound of the signed distance of each pair, whose depth is the least translation [m].

        The separation along a direction is one for all shapes: a translation along it separates even their hulls. The
        certified distance is another for convex shapes, whose signed distance has no jumps.
        """
        certified = query.distance - query.error - query.rounding
        are_convex = self.supports.is_convex[pairs.rows].all(axis=1)
        return np.where(are_convex, np.maximum(query.separation, certified), query.separation)

    def advance(self, pairs: PairSteps, rounds: int = ROUNDS) -> Advance:
        """The first touch of each pair in its step. rounds: largest number of distances of a pair."""
        count = len(pairs)
        result = Advance(
            np.full(count, UNDECIDED, np.uint8), np.zeros(count), np.zeros(count), np.zeros(count),
            np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3)),
        )  # fmt: skip
        before, expected, elapsed = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
        active = np.arange(count)
        for _ in range(rounds):
            if not len(active):
                break
            held = pairs.take(active)
            query = self.query(held, result.time[active], expected[active])
            for name in ("normal", "point0", "point1"):
                getattr(result, name)[active] = getattr(query.found, name)
            result.distance[active], result.lower[active] = query.distance, self.lower_bound(held, query)
            touches = touching(query, self.tolerance)
            lower = np.maximum(query.separation, query.distance - query.error - query.rounding)
            goal = 0.5 * self.tolerance
            step = np.maximum(
                _advance(query.separation - goal, speed_along(held, query.direction)),
                _advance(lower - goal, held.speed),
            )
            moving = MovingDirection.of(held, query.direction, before[active], elapsed[active])
            step = self._along_direction(held, query, result.time[active], step, moving)
            before[active], elapsed[active] = query.direction, SHORTENED * step
            expected[active] = moving.after(query.direction, np.arange(len(active)), np.minimum(elapsed[active], 1.0))
            time = result.time[active] + SHORTENED * step
            clear = ~touches & (time >= 1.0)
            result.status[active[touches]] = TOUCH
            result.status[active[clear]] = CLEAR
            going = ~touches & ~clear & (step > LEAST_ADVANCE)
            result.time[active[clear]] = 1.0
            result.time[active[going]] = time[going]
            active = active[going]
        return result

    def _along_direction(
        self, pairs: PairSteps, query: Query, begin: np.ndarray, known: np.ndarray, moving: MovingDirection
    ) -> np.ndarray:
        """float64[n]: parts of the steps from `begin` on without touch, at least `known`.

        A trial is a later time: between `begin` and it, the separation along the direction is at least
        `least_between` of both ends. Trials are between the longest part that is known to be without touch and the
        shortest that is not, in turn where a line between both separations is at the goal and in the middle.
        """
        goal, whole = 0.5 * self.tolerance, 1.0 - begin
        first = query.separation
        done, failed, at_done, at_failed = np.zeros(len(pairs)), whole.copy(), first.copy(), np.full(len(pairs), np.nan)
        active = np.flatnonzero((known < whole) & (first > goal) & np.isfinite(moving.curvature))
        for trial in range(TRIALS):
            if not len(active):
                break
            low, high = done[active], failed[active]
            with np.errstate(invalid="ignore", divide="ignore"):
                part = (at_done[active] - 1.5 * goal) / (at_done[active] - at_failed[active])
            part = np.where((part > 0.0) & (part < 1.0) & (trial % 3 > 0), part, 0.5)
            length = high if trial == 0 else low + part * (high - low)
            held, time = pairs.take(active), begin[active] + length
            direction = moving.after(query.direction, active, length)
            value = self.supports.along(held.rows, held.of0.at(time), held.of1.at(time), direction) - held.margin
            fits = least_between(first[active], value, moving.curvature[active] * length * length) > goal
            done[active[fits]], at_done[active[fits]] = length[fits], value[fits]
            failed[active[~fits]], at_failed[active[~fits]] = length[~fits], value[~fits]
            near = fits & ((value < self.tolerance) | (length >= high))
            active = active[~near & (failed[active] - done[active] > LEAST_ADVANCE)]
        return np.maximum(done, known)


@dataclass(frozen=True)
class MovingDirection:
    """A direction of each pair that moves with time: with a frame that turns by `turn`, float64[n, 3] [rad], over the
    step, and in that frame by `own`. curvature: float64[n], bound of the second time derivative of n.(q - p) for any
    points p and q of both shapes [m].
    """

    turn: np.ndarray
    own: np.ndarray
    curvature: np.ndarray

    @classmethod
    def of(cls, pairs: PairSteps, direction: np.ndarray, before: np.ndarray, elapsed: np.ndarray) -> MovingDirection:
        """The direction that goes on as it moved from `before`, float64[n, 3], in the last part `elapsed` of the step.

        With n' = s x n, of size s at most, n.(q - p) has the second derivative n''.(q - p) + 2 n'.(q - p)' +
        n.(q - p)''. Directions that moved by more than LARGEST_TURN rest in the frame, as do those of planes.
        """
        frames = pair_frames(pairs, direction)
        last = rotated(rotations(frames.turn, elapsed), before)
        axis = cross(last, direction)
        with np.errstate(invalid="ignore", divide="ignore"):
            own = axis / elapsed[:, None]
        far = farthest_points(pairs)
        follows = (elapsed > 0.0) & (norm(axis) < LARGEST_TURN) & (dot(last, direction) > 0.0) & np.isfinite(far)
        own = np.where(follows[:, None], own, 0.0)
        rate = norm(own)
        with np.errstate(invalid="ignore"):
            moving = frames.any + rate * (2.0 * frames.speed + rate * far)
        return cls(frames.turn, own, np.where(rate > 0.0, moving, frames.along))

    def after(self, direction: np.ndarray, rows: np.ndarray, time: np.ndarray) -> np.ndarray:
        """float64[n, 3]: the directions of some rows a part `time` of the step later."""
        return rotated(rotations(self.turn[rows], time), rotated(rotations(self.own[rows], time), direction[rows]))


def least_between(first: np.ndarray, last: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """float64[n]: lower bound in [0, 1] of functions with values `first` at 0 and `last` at 1.

    curvature: bound of the second derivatives. With c it the function is at least first + (last - first) t - c t
    (1 - t) / 2, of which this is the minimum.
    """
    half, fall = 0.5 * curvature, first - last
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = 0.5 * (first + last) - 0.25 * half - 0.25 * fall * fall / half
    return np.where(np.abs(fall) >= half, np.minimum(first, last), inside)


def touching(query: Query, tolerance: float) -> np.ndarray:
    """bool[n]: whether pairs touch for certain. A pair whose distance is not above its rounding touches, whether or not
    its depth is certified."""
    return (query.distance + query.error <= tolerance) | (query.distance <= query.rounding)


def _advance(distance: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """float64[n]: part of a step for which a positive distance stays positive; 0 of others."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        found = np.where(speed > 0.0, distance / speed, np.inf)
    return np.where(distance > 0.0, found, 0.0)


# Least distance of pairs over a part of their steps, with a certified lower bound.
#
# The distance changes at most by L over the whole step. So over an interval of length h with the distances a and b at
# its ends it is nowhere less than (a + b - L h) / 2, and the next query is at the point of that bound, in the interval
# with the least bound.
#
# Source: Piyavskii 1972; Shubert 1972.

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
