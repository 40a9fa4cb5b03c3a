"""Kernels of the touches of particles with shapes between frames: conservative advancement of each pair in its step."""

from typing import Any

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH, HEIGHTFIELD, MESH, PLANE
from collidecli.engine.particles.soft_queries import NoSurfaces
from collidecli.engine.particles.surfaces import GridSurfaces, PolygonSurfaces
from collidecli.engine.particles.swept_points import (
    LEAST_ADVANCE,
    SHORTENED,
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
from collidecli.engine.runtime.kernel import kernel

CLEAR = wp.constant(0)
TOUCH = wp.constant(1)
UNDECIDED = wp.constant(2)
ROUNDS = 400
"""Largest number of distances of a pair in a step, after which it is undecided."""
QUERIES = 16
"""Largest number of distances of a pair between the ends of its touch."""


@wp.struct
class PointTouch:
    """Result of a pair in a step. status: CLEAR, TOUCH or UNDECIDED; the rest is not set where it is CLEAR.

    enter, leave: begin of the first touch and end of the last one, in 0 to 1. least, least_bound: least signed distance
    that was found, and a lower bound of all [m]. point: of the shape's surface, from the body's origin, and normal:
    unit, from the shape to the particle, in world axes, at `enter`.
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
    """Result of an advancement. time: of the touch. distance, lower: of the last query, and its lower bound [m].

    point, outward: closest point of the shape's surface and its normal, in the frame of the shape.
    """

    status: int
    time: Real
    distance: Real
    lower: Real
    point: Vec3
    outward: Vec3


@wp.func
def first_touch(
    rows: ShapeRows, surfaces: Any, step: PointStep, start: Real, sign: Real, tolerance: Real
) -> FirstTouch:
    """The first touch of a pair from `start` on, 0 forwards (sign 1) or 1 backwards (sign -1)."""
    result = FirstTouch()
    result.status = UNDECIDED
    result.time = start
    goal = Real(0.5) * tolerance
    rounds = int(0)
    while rounds < wp.static(ROUNDS):
        rounds += 1
        rest = wp.where(sign > Real(0.0), Real(1.0) - result.time, result.time)
        point = position_in_shape(step, result.time)
        limit = step.inflation + Real(2.0) * (tolerance + step.rounding) + step.speed * rest
        sample = sample_at(rows, surfaces, step, point, limit)
        if sample.found == 0:
            result.status = CLEAR
            rounds = wp.static(ROUNDS)
        else:
            result.distance = sample.distance - step.inflation
            result.lower = lower_bound(rows, surfaces, step, sample, point)
            result.point = sample.point
            result.outward = sample.outward
            ahead = time_at_speed(result.lower - goal, step.speed)
            if result.distance + step.rounding <= tolerance:
                result.status = TOUCH
                rounds = wp.static(ROUNDS)
            elif SHORTENED * ahead < rest:
                ahead = advance_beyond(rows, surfaces, step, sample, point, result.time, sign, ahead, tolerance)
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
    """Least signed distance that was found, and a lower bound of all [m]."""

    found: Real
    bound: Real


@wp.func
def least_distance(
    rows: ShapeRows, surfaces: Any, step: PointStep, entered: FirstTouch, left: FirstTouch, tolerance: Real
) -> LeastDistance:
    """The least signed distance between the begin and the end of a touch, by bounds of its speed.

    Over an interval of length h with the lower bounds a and b at its ends it is nowhere below (a + b - speed h) / 2:
    the next query is at the point of that bound, in the interval with the least bound. Source: Piyavskii 1972.
    """
    begin = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
    end = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
    at_begin = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
    at_end = wp.zeros(shape=wp.static(QUERIES + 1), dtype=Real)
    begin[0] = entered.time
    end[0] = left.time
    at_begin[0] = entered.lower
    at_end[0] = left.lower
    result = LeastDistance()
    result.found = wp.min(entered.distance, left.distance)
    limit = step.inflation + wp.max(result.found, Real(0.0)) + Real(2.0) * (tolerance + step.rounding + step.speed)
    count = int(1)
    searching = bool(True)
    while searching:
        lowest = int(0)
        result.bound = Real(wp.inf)
        for k in range(count):
            here = Real(0.5) * (at_begin[k] + at_end[k] - step.speed * (end[k] - begin[k]))
            here = wp.min(here, wp.min(at_begin[k], at_end[k]))
            if here < result.bound:
                result.bound = here
                lowest = k
        low = begin[lowest]
        high = end[lowest]
        searching = count <= wp.static(QUERIES) and step.speed > Real(0.0) and high > low
        searching = searching and result.bound < result.found - tolerance
        if searching:
            at = Real(0.5) * (low + high) + Real(0.5) * (at_begin[lowest] - at_end[lowest]) / step.speed
            at = wp.min(wp.max(at, low), high)
            point = position_in_shape(step, at)
            sample = sample_at(rows, surfaces, step, point, limit)
            result.found = wp.min(result.found, sample.distance - step.inflation)
            value = lower_bound(rows, surfaces, step, sample, point)
            begin[count] = at
            end[count] = high
            at_begin[count] = value
            at_end[count] = at_end[lowest]
            end[lowest] = at
            at_end[lowest] = value
            count += 1
    jumps = bound_of_jumps(rows, surfaces, step, entered.time, left.time) - step.inflation - step.rounding
    result.bound = wp.min(wp.min(result.bound, jumps), result.found)
    return result


def _kernel_of(name: str, surface_type: Any, low_type: int, high_type: int) -> wp.Kernel:
    """The kernel of the shapes of types low_type to high_type."""

    def sweep_points(
        rows: ShapeRows,
        surfaces: surface_type,
        tolerance: Real,
        steps: wp.array[PointStep],
        touch: wp.array[PointTouch],
    ):
        """One thread per pair of a particle and a shape in a step."""
        index = wp.tid()
        step = steps[index]
        shape_type = rows.type[step.row]
        if shape_type < wp.static(low_type) or shape_type > wp.static(high_type):
            return
        result = PointTouch()
        ends = first_touch(rows, surfaces, step, Real(0.0), Real(1.0), tolerance)
        entered = ends
        if entered.status != CLEAR:
            ends = first_touch(rows, surfaces, step, Real(1.0), Real(-1.0), tolerance)
            # Backwards a pair may be found clear that forwards is undecided; and a touch between half the tolerance
            # and the tolerance may be found in one direction only.
            if entered.status == TOUCH or ends.status != CLEAR:
                result.status = wp.where(ends.status == TOUCH, TOUCH, entered.status)
                if ends.status == CLEAR or ends.time < entered.time:
                    ends = entered
                least = least_distance(rows, surfaces, step, entered, ends, tolerance)
                if least.found + step.rounding <= tolerance:
                    result.status = TOUCH
                result.enter = entered.time
                result.leave = ends.time
                result.least = least.found
                # Outside of the touch no distance is below half the tolerance.
                result.least_bound = least.bound
                if step.speed > Real(0.0):
                    result.least_bound = wp.min(least.bound, Real(0.5) * tolerance)
                result.point = from_shape(step, entered.time, entered.point)
                result.normal = direction_from_shape(step, entered.time, entered.outward)
        touch[index] = result

    sweep_points.__name__ = sweep_points.__qualname__ = name
    return kernel(sweep_points)


SWEEP_PRIMITIVES = _kernel_of("sweep_points_past_primitives", NoSurfaces, int(PLANE), int(CONVEX_MESH) - 1)
SWEEP_POLYGONS = _kernel_of("sweep_points_past_polygons", PolygonSurfaces, int(CONVEX_MESH), int(MESH))
SWEEP_GRIDS = _kernel_of("sweep_points_past_heightfields", GridSurfaces, int(HEIGHTFIELD), int(HEIGHTFIELD))
