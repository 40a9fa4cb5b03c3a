"""Motion of a vertex and a triangle, or of two edges, between two frames, and how long they
certainly stay apart.

Every particle moves in a straight line. The differences u = b - a of the corners b of the second
element and a of the first are linear in time, and the distance of the elements is that of the
origin from the convex hull of all u. So for a unit vector n the separation min n.u is a lower bound
of the distance:

- along a fixed n each n.u is linear in time, so that the time at which the first of them is at the
  goal is exact;
- along n that goes linearly from n0 at one time to n1 at another, at most 1 long, each n.u is a
  quadratic polynomial with the Bernstein coefficients n0.u0, (n0.u1 + n1.u0) / 2 and n1.u1: it is
  nowhere below the least of them.

Source: docs/adr/0111.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.particles.self_contacts import VERTEX_FACE, pair_of
from collidecli.engine.particles.surfaces import PrimitiveSurfaces
from collidecli.engine.particles.swept_point_kernels import FirstTouch, least_distance_function
from collidecli.engine.particles.swept_points import CLEAR, SHORTENED, TOUCH, UNDECIDED

ROUNDS = 400
"""Largest number of advances of a pair in a step, after which it is undecided."""
ROUNDING = wp.constant(Real(2.0**-45))
"""Of the sizes in a sum or a separation: 128 times the spacing of float64, more than their
rounding."""
LONGER = wp.constant(Real(4.0))
"""Times the advance along a fixed direction, for which a direction that turns is tried first."""
DIFFERENCES = 4
"""Corners of a hull: one of a triangle is there twice."""


@wp.struct
class ElementStep:
    """Two elements in a step, which lasts from time 0 to 1.

    kind: VERTEX_FACE or EDGE_EDGE. begin, shift: positions of the second to fourth particle from
    the first one at time 0, and their changes over the step [m]. speed: the largest change of a
    difference of corners [m]. rounding: bound of the rounding of a separation [m]. limit,
    tolerance: they touch at a distance of at most `limit`, or up to `tolerance` more [m].
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
    limit: Real
    tolerance: Real


@wp.struct
class Nearest:
    """Two elements at a time.

    point0, point1: of the first and the second, from the first particle [m]. distance: of these
    points; lower: lower bound of all distances [m]. weights: of the four particles, at the points;
    those of each element sum to 1. normal: unit, from the first element to the second.
    """

    point0: Vec3
    point1: Vec3
    distance: Real
    lower: Real
    weights: wp.vec4d
    normal: Vec3


@wp.struct
class SelfTouch:
    """Result of a pair in a step. status: CLEAR, TOUCH or UNDECIDED; the rest is not set where it
    is CLEAR.

    enter, leave: begin of the first touch and end of the last one, in 0 to 1. least, least_bound:
    least distance that was found, and a lower bound of all [m].
    """

    status: int
    enter: Real
    leave: Real
    least: Real
    least_bound: Real


@wp.func
def difference_of(kind: int, index: int, p: Vec3, q: Vec3, r: Vec3) -> Vec3:
    """A difference of a corner of the second element and one of the first, of DIFFERENCES.
    p, q, r: the second to fourth particle, from the first one."""
    if kind == VERTEX_FACE:
        return p if index == 0 else wp.where(index == 1, q, r)
    corner = wp.where(index % 2 == 0, q, r)
    return wp.where(index < 2, corner, corner - p)


@wp.func
def difference_at(step: ElementStep, index: int, time: Real) -> Vec3:
    """`difference_of` at a time [m]."""
    return difference_of(
        step.kind, index, step.begin1, step.begin2, step.begin3
    ) + time * difference_of(step.kind, index, step.shift1, step.shift2, step.shift3)


@wp.func
def nearest_at(step: ElementStep, time: Real) -> Nearest:
    """The elements at a time. Any weights give a distance of two points, and any normal a lower
    bound of all."""
    p = step.begin1 + time * step.shift1
    q = step.begin2 + time * step.shift2
    r = step.begin3 + time * step.shift3
    point0 = Vec3()
    point1 = Vec3()
    pair = pair_of(step.kind, Vec3(), p, q, r)
    weights = pair.weights
    if step.kind == VERTEX_FACE:
        # The coordinates of a point in a narrow triangle may be rounded to points beside it.
        a = wp.clamp(pair.weights[1], Real(0.0), Real(1.0))
        b = wp.clamp(pair.weights[2], Real(0.0), Real(1.0) - a)
        weights = wp.vec4d(Real(1.0), a, b, Real(1.0) - a - b)
        point1 = a * p + b * q + weights[3] * r
    else:
        point0 = weights[1] * p
        point1 = weights[2] * q + weights[3] * r
    lower = wp.dot(pair.normal, difference_at(step, 0, time))
    for index in range(1, wp.static(DIFFERENCES)):
        lower = wp.min(lower, wp.dot(pair.normal, difference_at(step, index, time)))
    return Nearest(
        point0, point1, wp.length(point1 - point0), lower - step.rounding, weights, pair.normal
    )


@wp.func
def time_along(step: ElementStep, time: Real, sign: Real, normal: Vec3, goal: Real) -> Real:
    """How long the separation along a unit vector is above `goal` [m], from a time on; infinite if
    for ever."""
    contact_time = Real(wp.inf)
    for index in range(wp.static(DIFFERENCES)):
        height = wp.dot(normal, difference_at(step, index, time)) - step.rounding - goal
        rate = -sign * wp.dot(
            normal, difference_of(step.kind, index, step.shift1, step.shift2, step.shift3)
        )
        if height <= Real(0.0):
            contact_time = Real(0.0)
        elif rate > Real(0.0):
            contact_time = wp.min(contact_time, height / rate)
    return contact_time


@wp.func
def is_apart_between(
    step: ElementStep, time: Real, near: Nearest, other: Real, far: Nearest, goal: Real
) -> bool:
    """Whether a direction that turns from that of one time to that of another has separations above
    `goal` between."""
    if near.lower <= goal or far.lower <= goal:
        return False
    for index in range(wp.static(DIFFERENCES)):
        middle = wp.dot(near.normal, difference_at(step, index, other))
        middle += wp.dot(far.normal, difference_at(step, index, time))
        if Real(0.5) * middle - step.rounding <= goal:
            return False
    return True


@wp.func(inline=False)
def first_touch(step: ElementStep, start: Real, sign: Real) -> FirstTouch:
    """The first touch of a pair from `start` on, 0 forwards (sign 1) or 1 backwards (sign -1)."""
    status = UNDECIDED
    goal = step.limit + Real(0.5) * step.tolerance
    end = Real(1.0) - start
    time = start
    longer = LONGER
    near = nearest_at(step, time)
    rounds = int(0)
    while rounds < wp.static(ROUNDS):
        rounds += 1
        rest = wp.abs(end - time)
        ahead = SHORTENED * time_along(step, time, sign, near.normal, goal)
        if near.distance + step.rounding <= step.limit + step.tolerance:
            status = TOUCH
            rounds = wp.static(ROUNDS)
        elif near.lower <= goal:
            rounds = wp.static(ROUNDS)
        elif ahead >= rest:
            status = CLEAR
            rounds = wp.static(ROUNDS)
        elif rounds < wp.static(ROUNDS):
            part = longer * ahead
            other = end if part >= rest else time + sign * part
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
    return FirstTouch(status, time, near.distance, near.lower, Vec3(), Vec3())


@wp.func
def measured_at(surfaces: PrimitiveSurfaces, step: ElementStep, time: Real, known: Real) -> Vec2:
    """Distance of two elements at a time, and its lower bound [m]."""
    near = nearest_at(step, time)
    return Vec2(near.distance, near.lower)


least_distance: Any = least_distance_function(ElementStep, measured_at)


@wp.func(inline=False)
def touch_in_step(step: ElementStep) -> SelfTouch:
    """The touch of a pair in its step."""
    result = SelfTouch()
    entered = first_touch(step, Real(0.0), Real(1.0))
    if entered.status != CLEAR:
        left = first_touch(step, Real(1.0), Real(-1.0))
        # Backwards a pair may be found clear that forwards is undecided; and a touch between the
        # goal and the limit with the tolerance may be found in one direction only.
        if entered.status == TOUCH or left.status != CLEAR:
            status = wp.where(left.status == TOUCH, TOUCH, entered.status)
            if left.status == CLEAR or left.time < entered.time:
                left = entered
            least = least_distance(PrimitiveSurfaces(), step, entered, left, Real(0.0))
            if least.found + step.rounding <= step.limit + step.tolerance:
                status = TOUCH
            # Outside of the touch no distance is below the goal.
            bound = wp.min(least.bound, step.limit + Real(0.5) * step.tolerance)
            result = SelfTouch(status, entered.time, left.time, least.found, bound)
    return result
