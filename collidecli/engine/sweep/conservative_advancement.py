"""Conservative advancement: the first time at which two moving shapes touch, with certified lower
bounds.

docs/adr/0111 states the bounds, of which the longest advance is taken. Those along a direction n
hold for shapes that are not convex as well, but only for the separation along n, never for the
distance: such shapes may touch beside n.

Source: Mirtich 1996; Zhang, Lee, Kim 2006 (directional bounds); Catto 2013 (separation along a
fixed axis).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collidecli.engine.sweep.motion import PairSteps, Rows, rotations
from collidecli.engine.sweep.speed_bounds import pair_frames, speed_along
from collidecli.engine.sweep.supports import Supports
from collidecli.numerics.poses import rotated
from collidecli.numerics.products import cross, dot, norm

if TYPE_CHECKING:
    from collidecli.engine.distances.pairs import PairDistanceRows, PairDistances


CLEAR, TOUCH, UNDECIDED = range(3)
ROUNDS = 400
"""Largest number of distances of a pair in a step, after which it is undecided."""
ROUNDS_TO_TOUCH = 10_000
"""As ROUNDS, for the ends of the touch of a pair that touches for certain: twice those with which
every such pair of a campaign was decided (docs/adr/0111)."""
TRIALS = 12
"""Largest number of times at which the separation along one direction is computed."""
LARGEST_TURN = 0.05
"""Of a direction between two distances [rad]."""
SHORTENED = 1.0 - 1e-9
"""Factor of an advance, which exceeds its rounding."""
LEAST_ADVANCE = 1e-13
"""Of a step: shorter advances are lost in the rounding of the time."""


@dataclass(frozen=True)
class Advance(Rows):
    """Result of an advancement, a row each pair. status: CLEAR, TOUCH or UNDECIDED. time:
    float64[n], of the touch; no touch is before it; 1 of a clear pair. The others are those of the
    last query: distance less both margins, a lower bound of it (`Sweeper.lower_bound`), normal and
    witness points.
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
    """Pairs of shapes at times of their steps, a row each. found: distances of the shapes without
    margins. distance: those less both margins, and `error` of them [m]. separation: along
    `direction` by support heights, less both margins [m]; exits: that of `Supports.with_exits`.
    rounding: of the poses [m].
    """

    found: PairDistanceRows
    distance: np.ndarray
    error: np.ndarray
    separation: np.ndarray
    exits: np.ndarray
    direction: np.ndarray
    rounding: np.ndarray


@dataclass(frozen=True)
class Sweeper:
    """Queries of pairs of shapes within their steps. tolerance: a pair touches at this distance or
    less [m]."""

    distances: PairDistances
    supports: Supports
    tolerance: float

    def query(
        self, pairs: PairSteps, time: np.ndarray, expected: np.ndarray | None = None
    ) -> Query:
        """The distances of pairs, each at a time of its step.

        expected: float64[n, 3], other directions along which the shapes may be separated more, of
        any lengths. The normal of two shapes that nearly touch is known to the rounding of their
        points over their distance only.
        """
        pose0 = pairs.of0.at(time)
        pose1 = pairs.of1.at(time)
        measured = self.distances.measure(pairs.rows, np.stack([pose0, pose1], axis=1))
        separation, direction = self.supports.separation(pairs.rows, pose0, pose1, measured.normal)
        if expected is not None:
            other, along = self.supports.separation(pairs.rows, pose0, pose1, expected)
            is_more = other > separation
            separation = np.where(is_more, other, separation)
            direction = np.where(is_more[:, None], along, direction)
        rounding = self.supports.rounding(pairs.rows, pose0, pose1)
        error = np.minimum(
            measured.error, np.maximum(measured.distance - separation, 0.0) + rounding
        )
        error = np.where(np.isfinite(measured.error), error, np.inf)
        exits = (
            self.supports.with_exits(pairs, (pose0, pose1), separation, direction) - pairs.margin
        )
        distance = measured.distance - pairs.margin
        separation = separation - pairs.margin
        return Query(measured, distance, error, separation, exits, direction, rounding)

    def lower_bound(self, pairs: PairSteps, query: Query) -> np.ndarray:
        """float64[n]: lower bound of the signed distance of each pair, whose depth is the least
        translation [m].

        The separation along a direction is one for all shapes: a translation along it separates
        even their hulls. The certified distance is another for convex shapes, whose signed distance
        has no jumps.
        """
        certified = query.distance - query.error - query.rounding
        are_convex = self.supports.is_convex[pairs.rows].all(axis=1)
        return np.where(are_convex, np.maximum(query.separation, certified), query.exits)

    def advance(self, pairs: PairSteps, rounds: int = ROUNDS) -> Advance:
        """The first touch of each pair in its step. rounds: largest number of distances of a
        pair."""
        count = len(pairs)
        scalars = np.zeros((4, count))
        vectors = np.zeros((5, count, 3))
        result = Advance(np.full(count, UNDECIDED, np.uint8), *scalars[:3], *vectors[:3])
        elapsed, before, expected = scalars[3], *vectors[3:]
        active = np.arange(count)
        for _ in range(rounds):
            if not len(active):
                break
            active_pairs = pairs.take(active)
            query = self.query(active_pairs, result.time[active], expected[active])
            for name in ("normal", "point0", "point1"):
                getattr(result, name)[active] = getattr(query.found, name)
            result.distance[active], result.lower[active] = (
                query.distance,
                self.lower_bound(active_pairs, query),
            )
            touches = touching(query, self.tolerance)
            lower = np.maximum(query.separation, query.distance - query.error - query.rounding)
            goal = 0.5 * self.tolerance
            step = np.maximum(
                _advance(query.separation - goal, speed_along(active_pairs, query.direction)),
                _advance(lower - goal, active_pairs.speed),
            )
            moving = MovingDirection.of(
                active_pairs, query.direction, before[active], elapsed[active]
            )
            step = self._along_direction(active_pairs, query, result.time[active], step, moving)
            before[active] = query.direction
            elapsed[active] = SHORTENED * step
            expected[active] = moving.after(
                query.direction, np.arange(len(active)), np.minimum(elapsed[active], 1.0)
            )
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
        self,
        pairs: PairSteps,
        query: Query,
        begin: np.ndarray,
        known: np.ndarray,
        moving: MovingDirection,
    ) -> np.ndarray:
        """float64[n]: parts of the steps from `begin` on without touch, at least `known`.

        A trial is a later time: between `begin` and it, the separation along the direction is at
        least `least_between` of both ends. Trials are between the longest part that is known to be
        without touch and the shortest that is not, in turn where a line between both separations is
        at the goal and in the middle.
        """
        goal = 0.5 * self.tolerance
        whole = 1.0 - begin
        first = query.separation
        done = np.zeros(len(pairs))
        failed = whole.copy()
        at_done = first.copy()
        at_failed = np.full(len(pairs), np.nan)
        active = np.flatnonzero((known < whole) & (first > goal) & np.isfinite(moving.curvature))
        for trial in range(TRIALS):
            if not len(active):
                break
            low = done[active]
            high = failed[active]
            with np.errstate(invalid="ignore", divide="ignore"):
                part = (at_done[active] - 1.5 * goal) / (at_done[active] - at_failed[active])
            part = np.where((part > 0.0) & (part < 1.0) & (trial % 3 > 0), part, 0.5)
            length = high if trial == 0 else low + part * (high - low)
            active_pairs = pairs.take(active)
            time = begin[active] + length
            direction = moving.after(query.direction, active, length)
            value = (
                self.supports.along(
                    active_pairs.rows,
                    active_pairs.of0.at(time),
                    active_pairs.of1.at(time),
                    direction,
                )
                - active_pairs.margin
            )
            fits = (
                least_between(first[active], value, moving.curvature[active] * length * length)
                > goal
            )
            done[active[fits]] = length[fits]
            at_done[active[fits]] = value[fits]
            failed[active[~fits]] = length[~fits]
            at_failed[active[~fits]] = value[~fits]
            near = fits & ((value < self.tolerance) | (length >= high))
            active = active[~near & (failed[active] - done[active] > LEAST_ADVANCE)]
        return np.maximum(done, known)


@dataclass(frozen=True)
class MovingDirection:
    """A direction of each pair that moves with time: with a frame that turns by `turn`, float64[n,
    3] [rad], over the step, and in that frame by `own`. curvature: float64[n], bound of the second
    time derivative of n.(q - p) for any points p and q of both shapes [m].
    """

    turn: np.ndarray
    own: np.ndarray
    curvature: np.ndarray

    @classmethod
    def of(
        cls, pairs: PairSteps, direction: np.ndarray, before: np.ndarray, elapsed: np.ndarray
    ) -> MovingDirection:
        """The direction that goes on as it moved from `before`, float64[n, 3], in the last part
        `elapsed` of the step.

        With n' = s x n, of size s at most, n.(q - p) has the second derivative n''.(q - p) + 2
        n'.(q - p)' + n.(q - p)''. Directions that moved by more than LARGEST_TURN rest in the
        frame, as do those of planes.
        """
        turn, speed, along, every = pair_frames(pairs, direction)
        last = rotated(rotations(turn, elapsed), before)
        axis = cross(last, direction)
        with np.errstate(invalid="ignore", divide="ignore"):
            rotation = axis / elapsed[:, None]
        between = pairs.of1.origin - pairs.of0.origin
        ends = norm(between), norm(between + pairs.of1.shift - pairs.of0.shift)
        far = (
            np.maximum(*ends) + pairs.far0 + pairs.far1
        )  # of any point of one shape and any of the other
        follows = (
            (elapsed > 0.0)
            & (norm(axis) < LARGEST_TURN)
            & (dot(last, direction) > 0.0)
            & np.isfinite(far)
        )
        rotation = np.where(follows[:, None], rotation, 0.0)
        rate = norm(rotation)
        with np.errstate(invalid="ignore"):
            moving = every + rate * (2.0 * speed + rate * far)
        return cls(turn, rotation, np.where(rate > 0.0, moving, along))

    def after(self, direction: np.ndarray, rows: np.ndarray, time: np.ndarray) -> np.ndarray:
        """float64[n, 3]: the directions of some rows a part `time` of the step later."""
        return rotated(
            rotations(self.turn[rows], time),
            rotated(rotations(self.own[rows], time), direction[rows]),
        )


def least_between(first: np.ndarray, last: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """float64[n]: lower bound in [0, 1] of functions with values `first` at 0 and `last` at 1.

    curvature: bound of the second derivatives. With c it the function is at least first + (last -
    first) t - c t (1 - t) / 2, of which this is the minimum.
    """
    half = 0.5 * curvature
    fall = first - last
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = 0.5 * (first + last) - 0.25 * half - 0.25 * fall * fall / half
    return np.where(np.abs(fall) >= half, np.minimum(first, last), inside)


def touching(query: Query, tolerance: float) -> np.ndarray:
    """bool[n]: whether pairs touch for certain. A pair whose distance is not above its rounding
    touches, whether or not its depth is certified."""
    return (query.distance + query.error <= tolerance) | (query.distance <= query.rounding)


def _advance(distance: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """float64[n]: part of a step for which a positive distance stays positive; 0 of others."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        time = np.where(speed > 0.0, distance / speed, np.inf)
    return np.where(distance > 0.0, time, 0.0)
