"""Kernels of the touches of triangles and edges of particles with shapes between frames.

A convex shape is advanced to as a whole. A mesh, convex mesh or heightfield is touched where one of its triangles is,
unless the element is inside, which its particles tell: each triangle near a part of the motion is advanced to by
itself, and the earliest touch is that of the surface.
"""

from typing import Any

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH, HEIGHTFIELD, MESH, PLANE
from collidecli.engine.geometry.support import primitive
from collidecli.engine.particles.soft_queries import NoSurfaces
from collidecli.engine.particles.surface_queries import begin_near, next_near, triangle_of
from collidecli.engine.particles.surfaces import GridSurfaces, PolygonSurfaces
from collidecli.engine.particles.swept_elements import (
    CLEAR,
    TOUCH,
    ElementAdvance,
    ElementStep,
    advance,
    corners_in_shape,
    highest_corner,
    lowest_corner,
)
from collidecli.engine.particles.swept_points import direction_from_shape, from_shape
from collidecli.engine.runtime.kernel import kernel

# Functions of surfaces have one overload for each struct of surfaces: Warp selects by argument type.
# ruff: noqa: F811

LEAST_PART = wp.constant(Real(1.0 / 32.0))
"""Of a step for which the triangles near an element are searched at least."""


@wp.struct
class ElementTouch:
    """Result of a pair in a step. status: CLEAR, TOUCH or UNDECIDED; the rest is not set where it is CLEAR.

    enter, leave: begin of the first touch and end of the last one, in 0 to 1. least: least distance at these times.
    bound: lower bound of the distance between them, by its speed; -inf where there is none [m]. point: of the shape's
    surface, from the body's origin, and normal: unit, from the shape to the element, in world axes, at `enter`.
    weights, weights_left: of the particles at the points that touch at `enter` and `leave`. crosses: 1 where the
    element crosses the surface at the begin of the step.
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
    rows: ShapeRows, surfaces: NoSurfaces, step: ElementStep, start: Real, sign: Real, tolerance: Real
) -> ElementAdvance:
    """The first touch of an element and a primitive from `start` on, 0 forwards (sign 1) or 1 backwards (sign -1)."""
    shape = primitive(rows.type[step.row], rows.size[step.row])
    result = advance(shape, step, start, sign, Real(1.0), tolerance)
    result.time = start + sign * result.time
    return result


@wp.func
def part_of_step(step: ElementStep, start: Real) -> Real:
    """Part of a step for which the triangles near an element are searched: its corners move by about its size."""
    corners = corners_in_shape(step, start)
    size = wp.length(highest_corner(corners) - lowest_corner(corners))
    if size < step.speed:
        return wp.max(size / step.speed, LEAST_PART)
    return Real(1.0)


@wp.func
def first_touch(
    rows: ShapeRows, surfaces: Any, step: ElementStep, start: Real, sign: Real, tolerance: Real
) -> ElementAdvance:
    """The first touch of an element and a surface of triangles from `start` on."""
    radius = wp.max(step.inflation[0], wp.max(step.inflation[1], step.inflation[2]))
    part = part_of_step(step, start)
    passed = Real(0.0)
    result = ElementAdvance()
    result.status = CLEAR
    while passed < Real(1.0) and result.status == CLEAR:
        most = wp.min(part, Real(1.0) - passed)
        here = start + sign * passed
        first = corners_in_shape(step, here)
        last = corners_in_shape(step, here + sign * most)
        # Between both ends a corner is within curvature t^2 / 8 of their line.
        reach = radius + tolerance + step.rounding + Real(0.125) * step.curvature * most * most
        grown = Vec3(reach, reach, reach)
        low = wp.min(lowest_corner(first), lowest_corner(last)) - grown
        high = wp.max(highest_corner(first), highest_corner(last)) + grown
        cursor = begin_near(surfaces, step.row, low, high)
        while cursor.number >= 0:
            triangle = triangle_of(surfaces, step.row, cursor.number)
            found = advance(triangle, step, here, sign, most, tolerance)
            if found.status != CLEAR:
                # A touch that is certain stays one, if the distance from another triangle is undecided before it.
                status = wp.where(result.status == TOUCH, TOUCH, found.status)
                most = found.time
                result = found
                result.status = status
                result.time = here + sign * most
            if most > Real(0.0):
                cursor = next_near(surfaces, step.row, cursor, low, high)
            else:
                cursor.number = -1
        passed += part
    return result


@wp.func
def bound_between(step: ElementStep, entered: ElementAdvance, left: ElementAdvance) -> Real:
    """Lower bound of the distance between two times by its speed, -inf if it is known at neither [m]."""
    fall = step.speed * wp.max(left.time - entered.time, Real(0.0))
    if entered.lower == -Real(wp.inf):
        return left.lower - fall
    if left.lower == -Real(wp.inf):
        return entered.lower - fall
    return wp.min(wp.min(entered.lower, left.lower), Real(0.5) * (entered.lower + left.lower - fall))


def _kernel_of(name: str, surface_type: Any, low_type: int, high_type: int) -> wp.Kernel:
    """The kernel of the shapes of types low_type to high_type."""

    def sweep_elements(
        rows: ShapeRows,
        surfaces: surface_type,
        tolerance: Real,
        steps: wp.array[ElementStep],
        touch: wp.array[ElementTouch],
    ):
        """One thread per pair of an element and a shape in a step."""
        index = wp.tid()
        step = steps[index]
        shape_type = rows.type[step.row]
        if shape_type < wp.static(low_type) or shape_type > wp.static(high_type):
            return
        result = ElementTouch()
        entered = first_touch(rows, surfaces, step, Real(0.0), Real(1.0), tolerance)
        if entered.status != CLEAR:
            left = first_touch(rows, surfaces, step, Real(1.0), Real(-1.0), tolerance)
            # As of particles: one direction may decide or find what the other does not.
            if entered.status == TOUCH or left.status != CLEAR:
                result.status = wp.where(left.status == TOUCH, TOUCH, entered.status)
                if left.status == CLEAR or left.time < entered.time:
                    left = entered
                result.enter = entered.time
                result.leave = left.time
                result.least = wp.min(entered.distance, left.distance)
                result.bound = bound_between(step, entered, left)
                result.point = from_shape(step, entered.time, entered.point)
                result.normal = direction_from_shape(step, entered.time, entered.normal)
                result.weights = entered.weights
                result.weights_left = left.weights
                result.crosses = entered.crosses
        touch[index] = result

    sweep_elements.__name__ = sweep_elements.__qualname__ = name
    return kernel(sweep_elements)


SWEEP_PRIMITIVES = _kernel_of("sweep_elements_past_primitives", NoSurfaces, int(PLANE) + 1, int(CONVEX_MESH) - 1)
SWEEP_POLYGONS = _kernel_of("sweep_elements_past_polygons", PolygonSurfaces, int(CONVEX_MESH), int(MESH))
SWEEP_GRIDS = _kernel_of("sweep_elements_past_heightfields", GridSurfaces, int(HEIGHTFIELD), int(HEIGHTFIELD))
