"""Motion of a point relative to a shape between two frames, and how long it certainly stays apart
from the shape.

The point moves in a straight line, the shape's body too, and the body turns at a constant rate. In
the frame of the shape the point then moves along a curve with bounds of its speed and of its second
derivative. From a time at which the point's ball and the shape are apart by d, they stay apart for
d / speed. Along the outward normal n of the nearest point of a convex set, the separation h = n.x -
(support height of the set) is a lower bound of the distance; it is at least h + v t - c t^2 / 2 for
the rate v and the bound c of the second derivative along n. A surface of triangles stays apart as
long as each of its triangles near the curve does, which are convex.

Source: Mirtich 1996; docs/adr/0111.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.geometry.heightfields import field_of
from collidecli.engine.geometry.primitives import primitive, support_point
from collidecli.engine.geometry.real import (
    ELLIPSOID,
    PLANE,
    Quat,
    Real,
    Vec2,
    Vec3,
    cosine_and_sine,
)
from collidecli.engine.particles.element_minimum import (
    TriangleQuery,
    begin_near,
    has_inside,
    next_near,
    slope_at,
    triangle_of,
)
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    PolygonSurfaces,
    PrimitiveSurfaces,
    Sample,
    family_kernels,
    sample_surface,
)

# Functions of surfaces have one overload for each struct of surfaces: Warp selects by argument
# type.
# ruff: noqa: F811

SHORTENED = wp.constant(Real(1.0 - 1.0e-9))
"""Factor of an advance, which exceeds its rounding."""
LEAST_ADVANCE = wp.constant(Real(1.0e-13))
"""Of a step: shorter advances are lost in the rounding of the time."""
ROUNDING_OF_UNIT = wp.constant(Real(1.0e-14))
"""Exceeds the rounding of the cross product of two unit vectors."""
TRIANGLE_ROUNDS = 100
"""Largest number of distances from one triangle in one advance."""
LONGER = wp.constant(Real(8.0))
"""Times the advance by the speed alone, for which the triangles near the curve are searched."""
LEAST_PART = wp.constant(Real(1.0 / 32.0))
"""Of a step for which they are searched at least."""


@wp.struct
class PointStep:
    """A particle and a shape in a step, which lasts from time 0 to 1; vectors in world axes.

    row, type, size: of the shape. tolerance: they touch at this distance or less [m]. radius: of
    the particle; inflation: with the shape's margin [m]. rounding: bound of the rounding of
    positions and distances [m]. between, shift: from the body's origin to the particle at the
    begin, and its change over the step [m]. axis, angle: of the body's rotation, unit, in 0 to pi
    [rad]. arm, quat: origin of the shape from the body's, and its rotation, at the begin. speed,
    curvature: bounds of the first and second derivative of the particle's position in the frame of
    the shape [m].
    """

    row: int
    type: int
    size: Vec3
    tolerance: Real
    radius: Real
    inflation: Real
    rounding: Real
    between: Vec3
    shift: Vec3
    axis: Vec3
    angle: Real
    arm: Vec3
    quat: Quat
    speed: Real
    curvature: Real


@wp.func
def turned(step: Any, time: Real) -> Quat:
    """Rotation of the body from the begin of the step to a time."""
    half = cosine_and_sine(Real(0.5) * step.angle * time)
    return Quat(half[1] * step.axis[0], half[1] * step.axis[1], half[1] * step.axis[2], half[0])


@wp.func
def position_in_shape(step: PointStep, time: Real) -> Vec3:
    """The particle in the frame of the shape [m]."""
    at_begin = wp.quat_rotate_inv(turned(step, time), step.between + time * step.shift)
    return wp.quat_rotate_inv(step.quat, at_begin - step.arm)


@wp.func
def velocity_in_shape(step: PointStep, time: Real) -> Vec3:
    """Time derivative of `position_in_shape` [m]."""
    velocity = step.shift - step.angle * wp.cross(step.axis, step.between + time * step.shift)
    return wp.quat_rotate_inv(step.quat, wp.quat_rotate_inv(turned(step, time), velocity))


@wp.func
def from_shape(step: Any, time: Real, point: Vec3) -> Vec3:
    """A point of the shape's frame from the body's origin at a time, in world axes [m]."""
    return wp.quat_rotate(turned(step, time), step.arm + wp.quat_rotate(step.quat, point))


@wp.func
def direction_from_shape(step: Any, time: Real, direction: Vec3) -> Vec3:
    """A direction of the shape's frame in world axes at a time."""
    return wp.quat_rotate(turned(step, time), wp.quat_rotate(step.quat, direction))


@wp.func
def curvature_along(step: Any, normal: Vec3) -> Real:
    """Bound of the second derivative of a particle's height along a unit vector of the shape's
    frame [m]. The second derivative of a position is a cross product with the rotation vector,
    which rests in that frame."""
    axis = wp.quat_rotate_inv(step.quat, step.axis)
    return step.curvature * (wp.length(wp.cross(axis, normal)) + ROUNDING_OF_UNIT)


@wp.func
def time_above(height: Real, rate: Real, curvature: Real) -> Real:
    """Longest t for which height + rate s - curvature s^2 / 2 is not negative for all s in 0 to t;
    0 from below."""
    if height <= Real(0.0):
        return Real(0.0)
    root = wp.sqrt(rate * rate + Real(2.0) * curvature * height)
    if rate > Real(0.0):
        return (rate + root) / curvature if curvature > Real(0.0) else Real(wp.inf)
    return Real(2.0) * height / (root - rate) if root - rate > Real(0.0) else Real(wp.inf)


@wp.func
def time_at_speed(height: Real, speed: Real) -> Real:
    """Longest time for which a height that decreases by at most `speed` stays positive; 0 from
    below."""
    if height <= Real(0.0):
        return Real(0.0)
    return height / speed if speed > Real(0.0) else Real(wp.inf)


@wp.func
def sample_at(surfaces: Any, step: PointStep, point: Vec3, limit: Real) -> Sample:
    """Closest point of a shape's surface, if its signed distance is below `limit` [m].

    An open mesh has no inside, so that its distance is not negative; but a ball that crosses one
    with a front from behind is behind it, as in frames.
    """
    sample = sample_surface(surfaces, step.row, step.size, point, limit, Real(wp.inf))
    if sample.found == 1 and sample.distance <= -step.radius and not has_inside(surfaces, step.row):
        sample.distance = -sample.distance
        sample.outward = -sample.outward
    return sample


@wp.func
def separation_of_primitive(step: PointStep, sample: Sample, point: Vec3) -> Real:
    """Lower bound of the distance of a point from a plane or primitive, by the support height along
    `outward`."""
    if step.type == PLANE:
        return sample.distance
    shape = primitive(step.type, step.size)
    return wp.dot(sample.outward, point) - wp.dot(
        sample.outward, support_point(shape, sample.outward)
    )


@wp.func
def lower_bound(surfaces: PrimitiveSurfaces, step: PointStep, sample: Sample, point: Vec3) -> Real:
    """Certified lower bound of the signed distance of particle and shape [m]. That of an ellipsoid
    is iterated."""
    bound = sample.distance
    if step.type == ELLIPSOID:
        bound = separation_of_primitive(step, sample, point)
    return bound - step.inflation - step.rounding


@wp.func
def lower_bound(surfaces: Any, step: PointStep, sample: Sample, point: Vec3) -> Real:
    """Certified lower bound of the signed distance of particle and shape [m]."""
    return sample.distance - step.inflation - step.rounding


@wp.func
def bound_of_jumps(surfaces: PrimitiveSurfaces, step: PointStep, begin: Real, end: Real) -> Real:
    """Lower bound of the signed distance beyond jumps of it between two times [m]: that of a
    primitive has none."""
    return Real(wp.inf)


@wp.func
def bound_of_jumps(surfaces: PolygonSurfaces, step: PointStep, begin: Real, end: Real) -> Real:
    """Lower bound beyond jumps of the signed distance [m]: a ball that crosses an open mesh may be
    behind its front."""
    if (
        not has_inside(surfaces, step.row)
        and surfaces.meshes.arrays[0].header[surfaces.mesh[step.row]].has_front == 1
    ):
        return -step.radius
    return Real(wp.inf)


@wp.func
def bound_of_jumps(surfaces: GridSurfaces, step: PointStep, begin: Real, end: Real) -> Real:
    """Lower bound of the signed distance beyond jumps of it [m]: points above a heightfield's base
    ignore the base."""
    field = field_of(surfaces.fields, surfaces.field[step.row])
    low = wp.min(position_in_shape(step, begin)[2], position_in_shape(step, end)[2])
    low = low - Real(0.125) * step.curvature * (end - begin) * (end - begin) - step.rounding
    return Real(wp.inf) if low > field.bottom else field.bottom - step.size[2]


@wp.func
def advance_beyond(
    surfaces: PrimitiveSurfaces,
    step: PointStep,
    sample: Sample,
    point: Vec3,
    time: Real,
    sign: Real,
    known: Real,
) -> Real:
    """How long a particle stays apart from a plane or primitive from a time on, at least
    `known`."""
    height = separation_of_primitive(step, sample, point) - step.inflation - step.rounding
    rate = sign * wp.dot(sample.outward, velocity_in_shape(step, time))
    goal = Real(0.5) * step.tolerance
    return wp.max(known, time_above(height - goal, rate, curvature_along(step, sample.outward)))


@wp.func
def time_to_triangle(
    triangle: TriangleQuery, step: PointStep, time: Real, sign: Real, most: Real
) -> Real:
    """How long a particle stays apart from a triangle from a time on, at most `most`."""
    goal = Real(0.5) * step.tolerance
    passed = Real(0.0)
    rounds = int(0)
    while passed < most and rounds < wp.static(TRIANGLE_ROUNDS):
        rounds += 1
        moment = time + sign * passed
        point = position_in_shape(step, moment)
        slope = slope_at(triangle, point)
        distance = slope.value - step.inflation
        if distance + step.rounding <= step.tolerance:
            rounds = wp.static(TRIANGLE_ROUNDS)
        else:
            normal = slope.gradient
            support = wp.max(
                wp.dot(normal, triangle.p),
                wp.max(wp.dot(normal, triangle.q), wp.dot(normal, triangle.r)),
            )
            height = wp.dot(normal, point) - support - step.inflation - step.rounding
            rate = sign * wp.dot(normal, velocity_in_shape(step, moment))
            ahead = wp.max(
                time_above(height - goal, rate, curvature_along(step, normal)),
                time_at_speed(distance - step.rounding - goal, step.speed),
            )
            if ahead <= LEAST_ADVANCE:
                rounds = wp.static(TRIANGLE_ROUNDS)
            else:
                passed += SHORTENED * ahead
    return wp.min(passed, most)


@wp.func
def advance_beyond(
    surfaces: Any, step: PointStep, sample: Sample, point: Vec3, time: Real, sign: Real, known: Real
) -> Real:
    """How long a particle stays apart from a surface of triangles from a time on, at least `known`.

    Only triangles near the curve are searched, in a box around both ends of a part of it: between
    them the curve is within curvature t^2 / 8 of their line.
    """
    rest = wp.where(sign > Real(0.0), Real(1.0) - time, time)
    part = wp.min(rest, wp.max(LONGER * known, LEAST_PART))
    last = position_in_shape(step, time + sign * part)
    reach = (
        step.inflation + step.tolerance + step.rounding + Real(0.125) * step.curvature * part * part
    )
    grown = Vec3(reach, reach, reach)
    low = wp.min(point, last) - grown
    high = wp.max(point, last) + grown
    cursor = begin_near(surfaces, step.row, low, high)
    while cursor.number >= 0:
        if part > known:
            part = time_to_triangle(
                triangle_of(surfaces, step.row, cursor.number), step, time, sign, part
            )
            cursor = next_near(surfaces, step.row, cursor, low, high)
        else:
            cursor.number = -1
    return wp.max(part, known)


# Kernels of the touches of particles with shapes between frames: conservative advancement of each
# pair in its step.

CLEAR = wp.constant(0)
TOUCH = wp.constant(1)
UNDECIDED = wp.constant(2)
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
