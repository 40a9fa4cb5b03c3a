"""Kernels of the touches of particles with shapes between frames: conservative advancement of each
pair in its step."""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.particles.surfaces import family_kernels
from collidecli.engine.particles.swept_points import (
    CLEAR,
    LEAST_ADVANCE,
    SHORTENED,
    TOUCH,
    UNDECIDED,
    PointStep,
    advance_beyond,
    bound_of_jumps,
    direction_from_shape,
    from_shape,
    lower_bound,
    position_in_shape,
    sample_at,
    time_at_speed,
)

ROUNDS = 400
"""Largest number of distances of a pair in a step, after which it is undecided."""
QUERIES = 16
"""Largest number of distances of a pair between the ends of its touch."""


@wp.struct
class PointTouch:
    """Result of a pair in a step. status: CLEAR, TOUCH or UNDECIDED; the rest is not set where it
    is CLEAR.

    enter, leave: begin of the first touch and end of the last one, in 0 to 1. least, least_bound:
    least signed distance that was found, and a lower bound of all [m]. point: of the shape's
    surface, from the body's origin, and normal: unit, from the shape to the particle, in world
    axes, at `enter`.
    """

    status: int
    enter: Real
    leave: Real
    least: Real
    least_bound: Real
    point: Vec3
    normal: Vec3


@wp.struct
class FirstTouch:
    """Result of an advancement. time: of the touch. distance, lower: of the last query, and its
    lower bound [m]. point, outward: of a shape, the closest point of its surface and its normal, in
    the frame of the shape."""

    status: int
    time: Real
    distance: Real
    lower: Real
    point: Vec3
    outward: Vec3


@wp.func
def first_touch(surfaces: Any, step: PointStep, start: Real, sign: Real) -> FirstTouch:
    """The first touch of a pair from `start` on, 0 forwards (sign 1) or 1 backwards (sign -1)."""
    result = FirstTouch()
    result.status = UNDECIDED
    result.time = start
    goal = Real(0.5) * step.tolerance
    rounds = int(0)
    while rounds < wp.static(ROUNDS):
        rounds += 1
        rest = wp.where(sign > Real(0.0), Real(1.0) - result.time, result.time)
        point = position_in_shape(step, result.time)
        limit = step.inflation + Real(2.0) * (step.tolerance + step.rounding) + step.speed * rest
        sample = sample_at(surfaces, step, point, limit)
        if sample.found == 0:
            result.status = CLEAR
            rounds = wp.static(ROUNDS)
        else:
            result.distance = sample.distance - step.inflation
            result.lower = lower_bound(surfaces, step, sample, point)
            result.point = sample.point
            result.outward = sample.outward
            ahead = time_at_speed(result.lower - goal, step.speed)
            if result.distance + step.rounding <= step.tolerance:
                result.status = TOUCH
                rounds = wp.static(ROUNDS)
            elif SHORTENED * ahead < rest:
                ahead = advance_beyond(surfaces, step, sample, point, result.time, sign, ahead)
            if result.status != TOUCH:
                if SHORTENED * ahead >= rest or rest <= Real(0.0):
                    result.status = CLEAR
                    rounds = wp.static(ROUNDS)
                elif ahead <= LEAST_ADVANCE:
                    rounds = wp.static(ROUNDS)
                elif rounds < wp.static(ROUNDS):
                    result.time = result.time + sign * SHORTENED * ahead
    return result


@wp.struct
class LeastDistance:
    """Least distance that was found, and a lower bound of all [m]."""

    found: Real
    bound: Real


def least_distance_function(step_type: Any, measured_at: Any) -> Any:
    """least_distance(surfaces, step, entered, left, least): the least distance between two times.

    entered, left: its begin and end. least: no distance is below [m]. measured_at: distance at a
    time, and its lower bound.

    Over an interval of length h with the lower bounds a and b at its ends the distance is nowhere
    below (a + b - speed h) / 2: the next query is at the point of that bound, in the interval with
    the least bound. Source: Piyavskii 1972.
    """

    @wp.func
    def least_distance(
        surfaces: Any, step: step_type, entered: FirstTouch, left: FirstTouch, least: Real
    ) -> LeastDistance:
        begin = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
        end = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
        at_begin = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
        at_end = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
        begin[0] = entered.time
        end[0] = left.time
        at_begin[0] = entered.lower
        at_end[0] = left.lower
        result = LeastDistance()
        known = wp.min(entered.distance, left.distance)
        result.found = known
        count = int(1)
        searching = bool(True)
        while searching:
            lowest = int(0)
            result.bound = Real(wp.inf)
            for k in range(count):
                lower = Real(0.5) * (at_begin[k] + at_end[k] - step.speed * (end[k] - begin[k]))
                lower = wp.min(lower, wp.min(at_begin[k], at_end[k]))
                if lower < result.bound:
                    result.bound = lower
                    lowest = k
            low = begin[lowest]
            high = end[lowest]
            searching = count <= wp.static(QUERIES) and step.speed > Real(0.0) and high > low
            searching = searching and wp.max(result.bound, least) < result.found - step.tolerance
            if searching:
                at = (
                    Real(0.5) * (low + high)
                    + Real(0.5) * (at_begin[lowest] - at_end[lowest]) / step.speed
                )
                at = wp.min(wp.max(at, low), high)
                measured = measured_at(surfaces, step, at, known)
                result.found = wp.min(result.found, measured[0])
                begin[count] = at
                end[count] = high
                at_begin[count] = measured[1]
                at_end[count] = at_end[lowest]
                end[lowest] = at
                at_end[lowest] = measured[1]
                count += 1
        result.bound = wp.min(wp.max(result.bound, least), result.found)
        return result

    return least_distance


@wp.func
def measured_at(surfaces: Any, step: PointStep, time: Real, known: Real) -> Vec2:
    """Signed distance of a particle and a shape at a time, and its lower bound [m]. known: another
    distance."""
    point = position_in_shape(step, time)
    limit = (
        step.inflation
        + wp.max(known, Real(0.0))
        + Real(2.0) * (step.tolerance + step.rounding + step.speed)
    )
    sample = sample_at(surfaces, step, point, limit)
    return Vec2(sample.distance - step.inflation, lower_bound(surfaces, step, sample, point))


least_distance: Any = least_distance_function(PointStep, measured_at)


def _kernel_of(surface_type: Any, low_type: int, high_type: int) -> Callable[..., None]:
    """The kernel of the shapes of types low_type to high_type."""

    def sweep_points(
        surfaces: surface_type, steps: wp.array[PointStep], touch: wp.array[PointTouch]
    ):
        """One thread per pair of a particle and a shape in a step."""
        index = wp.tid()
        step = steps[index]
        if step.type < wp.static(low_type) or step.type > wp.static(high_type):
            return
        result = PointTouch()
        ends = first_touch(surfaces, step, Real(0.0), Real(1.0))
        entered = ends
        if entered.status != CLEAR:
            ends = first_touch(surfaces, step, Real(1.0), Real(-1.0))
            # Backwards a pair may be found clear that forwards is undecided; and a touch between
            # half the tolerance and the tolerance may be found in one direction only.
            if entered.status == TOUCH or ends.status != CLEAR:
                status = wp.where(ends.status == TOUCH, TOUCH, entered.status)
                if ends.status == CLEAR or ends.time < entered.time:
                    ends = entered
                least = least_distance(surfaces, step, entered, ends, -Real(wp.inf))
                jumps = (
                    bound_of_jumps(surfaces, step, entered.time, ends.time)
                    - step.inflation
                    - step.rounding
                )
                least.bound = wp.min(least.bound, jumps)
                if least.found + step.rounding <= step.tolerance:
                    status = TOUCH
                # Outside of the touch no distance is below half the tolerance.
                if step.speed > Real(0.0):
                    least.bound = wp.min(least.bound, Real(0.5) * step.tolerance)
                result = PointTouch(
                    status,
                    entered.time,
                    ends.time,
                    least.found,
                    least.bound,
                    from_shape(step, entered.time, entered.point),
                    direction_from_shape(step, entered.time, entered.outward),
                )
        touch[index] = result

    return sweep_points


SWEEPERS = family_kernels("sweep_points_past", _kernel_of)
