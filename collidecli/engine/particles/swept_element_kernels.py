"""Kernels of the touches of triangles and edges of particles with shapes between frames.

A convex shape is advanced to as a whole. A mesh, convex mesh or heightfield is touched where one of
its triangles is, unless the element is inside, which its particles tell: each triangle near a part
of the motion is advanced to by itself, and the earliest touch is that of the surface.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import primitive
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.particles import swept_points
from collidecli.engine.particles.element_surfaces import begin_near, next_near, triangle_of
from collidecli.engine.particles.surfaces import PrimitiveSurfaces, family_kernels
from collidecli.engine.particles.swept_elements import (
    ElementAdvance,
    ElementStep,
    advance,
    corners_in_shape,
    highest_corner,
    lowest_corner,
)

# ruff: noqa: F811


@wp.struct
class ElementTouch:
    """Result of a pair in a step. status: CLEAR, TOUCH or UNDECIDED; the rest is not set where it
    is CLEAR.

    enter, leave: begin of the first touch and end of the last one, in 0 to 1. least: least distance
    at these times. bound: lower bound of the distance between them, by its speed; -inf where there
    is none [m]. point: of the shape's surface, from the body's origin, and normal: unit, from the
    shape to the element, in world axes, at `enter`. weights, weights_left: of the particles at the
    points that touch at `enter` and `leave`. crosses: 1 where the element crosses the surface at
    the begin of the step.
    """

    status: int
    enter: Real
    leave: Real
    least: Real
    bound: Real
    point: Vec3
    normal: Vec3
    weights: Vec3
    weights_left: Vec3
    crosses: int


@wp.func
def first_touch(
    surfaces: PrimitiveSurfaces, step: ElementStep, start: Real, sign: Real
) -> ElementAdvance:
    """The first touch of an element and a primitive from `start` on, 0 forwards (sign 1) or 1
    backwards (sign -1)."""
    result = advance(primitive(step.type, step.size), step, start, sign, Real(1.0))
    result.time = start + sign * result.time
    return result


@wp.func
def first_touch(surfaces: Any, step: ElementStep, start: Real, sign: Real) -> ElementAdvance:
    """The first touch of an element and a surface of triangles from `start` on."""
    radius = wp.max(step.inflation)
    # Triangles are searched near a part of the step for which the corners move by about the size of
    # the element.
    corners = corners_in_shape(step, start)
    size = wp.length(highest_corner(corners) - lowest_corner(corners))
    part = wp.max(size / step.speed, swept_points.LEAST_PART) if size < step.speed else Real(1.0)
    passed = Real(0.0)
    result = ElementAdvance()
    result.status = swept_points.CLEAR
    while passed < Real(1.0) and result.status == swept_points.CLEAR:
        most = wp.min(part, Real(1.0) - passed)
        time = start + sign * passed
        first = corners_in_shape(step, time)
        last = corners_in_shape(step, time + sign * most)
        # Between both ends a corner is within curvature t^2 / 8 of their line.
        reach = radius + step.tolerance + step.rounding + Real(0.125) * step.curvature * most * most
        grown = Vec3(reach, reach, reach)
        low = wp.min(lowest_corner(first), lowest_corner(last)) - grown
        high = wp.max(highest_corner(first), highest_corner(last)) + grown
        cursor = begin_near(surfaces, step.row, low, high)
        while cursor.number >= 0:
            triangle = triangle_of(surfaces, step.row, cursor.number)
            step_touch = advance(triangle, step, time, sign, most)
            if step_touch.status != swept_points.CLEAR:
                # A touch that is certain stays one, if the distance from another triangle is
                # undecided before it.
                status = wp.where(
                    result.status == swept_points.TOUCH, swept_points.TOUCH, step_touch.status
                )
                most = step_touch.time
                result = step_touch
                result.status = status
                result.time = time + sign * most
            if most > Real(0.0):
                cursor = next_near(surfaces, step.row, cursor, low, high)
            else:
                cursor.number = -1
        passed += part
    return result


@wp.func
def bound_between(step: ElementStep, entered: ElementAdvance, left: ElementAdvance) -> Real:
    """Lower bound of the distance between two times by its speed, -inf if it is known at neither
    [m]."""
    fall = step.speed * wp.max(left.time - entered.time, Real(0.0))
    if entered.lower == -Real(wp.inf):
        return left.lower - fall
    if left.lower == -Real(wp.inf):
        return entered.lower - fall
    return wp.min(
        wp.min(entered.lower, left.lower), Real(0.5) * (entered.lower + left.lower - fall)
    )


def _kernel_of(surface_type: Any, low_type: int, high_type: int) -> Callable[..., None]:
    """The kernel of the shapes of types low_type to high_type."""

    def sweep_elements(
        surfaces: surface_type, steps: wp.array[ElementStep], touch: wp.array[ElementTouch]
    ):
        """One thread per pair of an element and a shape in a step."""
        index = wp.tid()
        step = steps[index]
        if step.type < wp.static(low_type) or step.type > wp.static(high_type):
            return
        result = ElementTouch()
        entered = first_touch(surfaces, step, Real(0.0), Real(1.0))
        if entered.status != swept_points.CLEAR:
            left = first_touch(surfaces, step, Real(1.0), Real(-1.0))
            # As of particles: one direction may decide or find what the other does not.
            if entered.status == swept_points.TOUCH or left.status != swept_points.CLEAR:
                status = wp.where(
                    left.status == swept_points.TOUCH, swept_points.TOUCH, entered.status
                )
                if left.status == swept_points.CLEAR or left.time < entered.time:
                    left = entered
                result = ElementTouch(
                    status,
                    entered.time,
                    left.time,
                    wp.min(entered.distance, left.distance),
                    bound_between(step, entered, left),
                    swept_points.from_shape(step, entered.time, entered.point),
                    swept_points.direction_from_shape(step, entered.time, entered.normal),
                    entered.weights,
                    left.weights,
                    entered.crosses,
                )
        touch[index] = result

    return sweep_elements


SWEEPERS = family_kernels("sweep_elements_past", _kernel_of)
