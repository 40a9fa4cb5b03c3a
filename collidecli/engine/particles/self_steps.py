"""Motion of a vertex and a triangle, or of two edges, between two frames, and how long they certainly stay apart.

Every particle moves in a straight line. The differences u = b - a of the corners b of the second element and a of the
first are linear in time, and the distance of the elements is that of the origin from the convex hull of all u. So for
a unit vector n the separation min n.u is a lower bound of the distance:

- along a fixed n each n.u is linear in time, so that the time at which the first of them is at the goal is exact;
- along n that goes linearly from n0 at one time to n1 at another, at most 1 long, each n.u is a quadratic polynomial
  with the Bernstein coefficients n0.u0, (n0.u1 + n1.u0) / 2 and n1.u1: it is nowhere below the least of them.

Source: docs/adr/0111.
"""

import warp as wp

from collidecli.engine.geometry.element_pairs import ElementPair, edge_and_edge, vertex_and_face
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.particles.self_queries import VERTEX_FACE
from collidecli.engine.particles.swept_points import SHORTENED
from collidecli.engine.particles.swept_queries import CLEAR, QUERIES, TOUCH, UNDECIDED

ROUNDS = 400
"""Largest number of advances of a pair in a step, after which it is undecided."""
ROUNDING = wp.constant(Real(2.0**-45))
"""Of the sizes in a sum or a separation: 128 times the spacing of float64, more than their rounding."""
LONGER = wp.constant(Real(4.0))
"""Times the advance along a fixed direction, for which a direction that turns is tried first."""
DIFFERENCES = 4
"""Corners of a hull: one of a triangle is there twice."""


@wp.struct
class ElementStep:
    """Two elements in a step, which lasts from time 0 to 1.

    kind: VERTEX_FACE or EDGE_EDGE. begin, shift: positions of the second to fourth particle from the first one at time
    0, and their changes over the step [m]. speed: the largest change of a difference of corners [m]. rounding: bound of
    the rounding of a separation [m].
    """

    kind: int
    begin1: Vec3
    begin2: Vec3
    begin3: Vec3
    shift1: Vec3
    shift2: Vec3
    shift3: Vec3
    speed: Real
    rounding: Real


@wp.struct
class Nearest:
    """Two elements at a time.

    point0, point1: of the first and the second, from the first particle [m]. distance: of these points; lower: lower
    bound of all distances [m]. weights: of the four particles, at the points; those of each element sum to 1. normal:
    unit, from the first element to the second.
    """

    point0: Vec3
    point1: Vec3
    distance: Real
    lower: Real
    weights: wp.vec4d
    normal: Vec3


@wp.struct
class FirstTouch:
    """Result of an advancement. status: CLEAR, TOUCH or UNDECIDED. time: where it ended. distance, lower: there."""

    status: int
    time: Real
    distance: Real
    lower: Real


@wp.struct
class SelfTouch:
    """Result of a pair in a step. status: CLEAR, TOUCH or UNDECIDED; the rest is not set where it is CLEAR.

    enter, leave: begin of the first touch and end of the last one, in 0 to 1. least, least_bound: least distance that
    was found, and a lower bound of all [m].
    """

    status: int
    enter: Real
    leave: Real
    least: Real
    least_bound: Real


@wp.func
def difference_of(kind: int, index: int, p: Vec3, q: Vec3, r: Vec3) -> Vec3:
    """A difference of a corner of the second element and one of the first, of DIFFERENCES.

    p, q, r: the second to fourth particle, from the first one.
    """
    if kind == VERTEX_FACE:
        if index == 0:
            return p
        return wp.where(index == 1, q, r)
    corner = wp.where(index % 2 == 0, q, r)
    return wp.where(index < 2, corner, corner - p)


@wp.func
def difference_at(step: ElementStep, index: int, time: Real) -> Vec3:
    """`difference_of` at a time [m]."""
    return difference_of(step.kind, index, step.begin1, step.begin2, step.begin3) + time * difference_of(
        step.kind, index, step.shift1, step.shift2, step.shift3
    )


@wp.func
def element_step(
    kind: int, p0: Vec3, q0: Vec3, r0: Vec3, s0: Vec3, p1: Vec3, q1: Vec3, r1: Vec3, s1: Vec3
) -> ElementStep:
    """The step of four particles with these positions at its begin and its end."""
    step = ElementStep()
    step.kind = kind
    step.begin1 = q0 - p0
    step.begin2 = r0 - p0
    step.begin3 = s0 - p0
    step.shift1 = (q1 - p1) - step.begin1
    step.shift2 = (r1 - p1) - step.begin2
    step.shift3 = (s1 - p1) - step.begin3
    size = Real(0.0)
    for index in range(wp.static(DIFFERENCES)):
        shift = difference_of(kind, index, step.shift1, step.shift2, step.shift3)
        step.speed = wp.max(step.speed, wp.length(shift))
        size += wp.length(difference_of(kind, index, step.begin1, step.begin2, step.begin3)) + wp.length(shift)
    size += wp.length(step.begin1) + wp.length(step.shift1)
    step.rounding = ROUNDING * size
    step.speed = step.speed + step.rounding
    return step


@wp.func
def separation_at(step: ElementStep, time: Real, normal: Vec3) -> Real:
    """Lower bound of the distance at a time, along a unit vector [m]."""
    least = wp.dot(normal, difference_at(step, 0, time))
    for index in range(1, wp.static(DIFFERENCES)):
        least = wp.min(least, wp.dot(normal, difference_at(step, index, time)))
    return least - step.rounding


@wp.func
def nearest_at(step: ElementStep, time: Real) -> Nearest:
    """The elements at a time. Any weights give a distance of two points, and any normal a lower bound of all."""
    origin = Vec3(Real(0.0), Real(0.0), Real(0.0))
    p = step.begin1 + time * step.shift1
    q = step.begin2 + time * step.shift2
    r = step.begin3 + time * step.shift3
    result = Nearest()
    pair = ElementPair()
    if step.kind == VERTEX_FACE:
        pair = vertex_and_face(origin, p, q, r)
        # The coordinates of a point in a narrow triangle may be rounded to points beside it.
        a = wp.clamp(pair.weights[1], Real(0.0), Real(1.0))
        b = wp.clamp(pair.weights[2], Real(0.0), Real(1.0) - a)
        result.weights = wp.vec4d(Real(1.0), a, b, Real(1.0) - a - b)
        result.point1 = a * p + b * q + result.weights[3] * r
    else:
        pair = edge_and_edge(origin, p, q, r)
        result.weights = pair.weights
        result.point0 = pair.weights[1] * p
        result.point1 = pair.weights[2] * q + pair.weights[3] * r
    result.distance = wp.length(result.point1 - result.point0)
    result.normal = pair.normal
    result.lower = separation_at(step, time, pair.normal)
    return result


@wp.func
def time_along(step: ElementStep, time: Real, sign: Real, normal: Vec3, goal: Real) -> Real:
    """How long the separation along a unit vector is above `goal` [m], from a time on; infinite if for ever."""
    found = Real(wp.inf)
    for index in range(wp.static(DIFFERENCES)):
        height = wp.dot(normal, difference_at(step, index, time)) - step.rounding - goal
        rate = -sign * wp.dot(normal, difference_of(step.kind, index, step.shift1, step.shift2, step.shift3))
        if height <= Real(0.0):
            found = Real(0.0)
        elif rate > Real(0.0):
            found = wp.min(found, height / rate)
    return found


@wp.func
def is_apart_between(step: ElementStep, time: Real, near: Nearest, other: Real, far: Nearest, goal: Real) -> bool:
    """Whether a direction that turns from that of one time to that of another has separations above `goal` between."""
    if near.lower <= goal or far.lower <= goal:
        return False
    for index in range(wp.static(DIFFERENCES)):
        middle = wp.dot(near.normal, difference_at(step, index, other))
        middle += wp.dot(far.normal, difference_at(step, index, time))
        if Real(0.5) * middle - step.rounding <= goal:
            return False
    return True


@wp.func(inline=False)
def first_touch(step: ElementStep, start: Real, sign: Real, limit: Real, tolerance: Real) -> FirstTouch:
    """The first touch of a pair from `start` on, 0 forwards (sign 1) or 1 backwards (sign -1)."""
    result = FirstTouch()
    result.status = UNDECIDED
    goal = limit + Real(0.5) * tolerance
    end = Real(1.0) - start
    time = start
    longer = LONGER
    near = nearest_at(step, time)
    rounds = int(0)
    while rounds < wp.static(ROUNDS):
        rounds += 1
        rest = wp.abs(end - time)
        ahead = SHORTENED * time_along(step, time, sign, near.normal, goal)
        if near.distance + step.rounding <= limit + tolerance:
            result.status = TOUCH
            rounds = wp.static(ROUNDS)
        elif near.lower <= goal:
            rounds = wp.static(ROUNDS)
        elif ahead >= rest:
            result.status = CLEAR
            rounds = wp.static(ROUNDS)
        elif rounds < wp.static(ROUNDS):
            part = longer * ahead
            other = time + sign * part
            if part >= rest:
                other = end
            far = nearest_at(step, other)
            if is_apart_between(step, time, near, other, far, goal):
                longer = Real(2.0) * longer
                time = other
                near = far
            else:
                longer = wp.max(Real(0.5) * longer, Real(2.0))
                if time + sign * ahead == time:
                    rounds = wp.static(ROUNDS)
                time = time + sign * ahead
                near = nearest_at(step, time)
    result.time = time
    result.distance = near.distance
    result.lower = near.lower
    return result


@wp.struct
class LeastDistance:
    """Least distance that was found, and a lower bound of all [m]."""

    found: Real
    bound: Real


@wp.func
def least_distance(step: ElementStep, entered: FirstTouch, left: FirstTouch, tolerance: Real) -> LeastDistance:
    """The least distance between the begin and the end of a touch, by the bound of its speed.

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
        searching = searching and wp.max(result.bound, Real(0.0)) < result.found - tolerance
        if searching:
            at = Real(0.5) * (low + high) + Real(0.5) * (at_begin[lowest] - at_end[lowest]) / step.speed
            at = wp.min(wp.max(at, low), high)
            near = nearest_at(step, at)
            result.found = wp.min(result.found, near.distance)
            begin[count] = at
            end[count] = high
            at_begin[count] = near.lower
            at_end[count] = at_end[lowest]
            end[lowest] = at
            at_end[lowest] = near.lower
            count += 1
    # A distance is not negative.
    result.bound = wp.min(wp.max(result.bound, Real(0.0)), result.found)
    return result


@wp.func(inline=False)
def touch_in_step(step: ElementStep, limit: Real, tolerance: Real) -> SelfTouch:
    """The touch of a pair in its step: a distance of at most `limit`, or up to `tolerance` more [m]."""
    result = SelfTouch()
    entered = first_touch(step, Real(0.0), Real(1.0), limit, tolerance)
    if entered.status != CLEAR:
        left = first_touch(step, Real(1.0), Real(-1.0), limit, tolerance)
        # Backwards a pair may be found clear that forwards is undecided; and a touch between the goal and the limit
        # with the tolerance may be found in one direction only.
        if entered.status == TOUCH or left.status != CLEAR:
            result.status = wp.where(left.status == TOUCH, TOUCH, entered.status)
            if left.status == CLEAR or left.time < entered.time:
                left = entered
            least = least_distance(step, entered, left, tolerance)
            if least.found + step.rounding <= limit + tolerance:
                result.status = TOUCH
            result.enter = entered.time
            result.leave = left.time
            result.least = least.found
            # Outside of the touch no distance is below the goal.
            result.least_bound = wp.min(least.bound, limit + Real(0.5) * tolerance)
    return result
