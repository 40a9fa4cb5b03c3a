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

from typing import Any

import warp as wp

from collidecli.engine.geometry.elementary_functions import cosine_and_sine
from collidecli.engine.geometry.heightfields import field_of
from collidecli.engine.geometry.primitives import primitive, support_point
from collidecli.engine.geometry.real import ELLIPSOID, PLANE, Quat, Real, Vec3
from collidecli.engine.particles.element_minimum import TriangleQuery, slope_at
from collidecli.engine.particles.element_surfaces import (
    begin_near,
    has_inside,
    next_near,
    triangle_of,
)
from collidecli.engine.particles.surfaces import (
    GridSurfaces,
    PolygonSurfaces,
    PrimitiveSurfaces,
    Sample,
    sample_surface,
)

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


CLEAR = wp.constant(0)
TOUCH = wp.constant(1)
UNDECIDED = wp.constant(2)
