"""Motion of a triangle or edge of particles relative to a shape between two frames, and how long
both stay apart.

In the frame of the shape each corner moves along a curve with bounds of its speed and of its second
derivative, see `swept_points`; so does every point of the element, whose position is an average of
theirs. Of a convex set and the element, grown by the radii of its particles, the separation along a
unit vector n is the least over the corners of n.x - radius, less the support height of the set:
each corner gives a parabola below it, and the separation is positive as long as all of them are.
GJK finds n, and any n is a proof: one that is not the best costs time only.

Source: Gilbert, Johnson, Keerthi 1988; Mirtich 1996; docs/adr/0111.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import Primitive, Vertex, core_support
from collidecli.engine.geometry.real import UP, Quat, Real, Vec3
from collidecli.engine.narrowphase.convex.gjk import closest_to_origin, reduce_simplex
from collidecli.engine.particles import swept_points
from collidecli.engine.particles.element_minimum import TriangleQuery

# ruff: noqa: F811


Mat33 = wp.mat33d

ROUNDS = 400
"""Largest number of distances of an element and a convex set in a step, after which it is
undecided."""
GJK_LIMIT = 64
"""Largest number of steps of GJK. Measured: at most about 30."""
FAR_PART = wp.constant(Real(0.05))
"""Of the distance: a direction along which the separation is this much less is good enough to
advance."""
NEAR_PART = wp.constant(Real(0.125))
"""Of the tolerance, for elements that nearly touch."""
CLOSEST = wp.constant(Real(1.0e-12))
"""Of the distance, for the direction of a touch."""


@wp.struct
class ElementStep:
    """A triangle and a shape in a step, which lasts from time 0 to 1; vectors in world axes. An
    edge has its second particle twice.

    row, type, size: of the shape. tolerance: they touch at this distance or less [m]. inflation:
    radii of the particles with the shape's margin [m]. rounding: bound of the rounding of positions
    and distances [m]. between, shift: rows from the body's origin to the particles at the begin,
    and their changes over the step [m]. axis, angle, arm, quat: see `PointStep`. speed, curvature:
    bounds of the first and second derivative of every particle's position in the frame of the shape
    [m].
    """

    row: int
    type: int
    size: Vec3
    tolerance: Real
    inflation: Vec3
    rounding: Real
    between: Mat33
    shift: Mat33
    axis: Vec3
    angle: Real
    arm: Vec3
    quat: Quat
    speed: Real
    curvature: Real


@wp.func
def into_shape(step: ElementStep, time: Real) -> Mat33:
    """Rotation from world axes to those of the shape at a time, to be multiplied to rows from the
    right."""
    return wp.quat_to_matrix(swept_points.turned(step, time)) * wp.quat_to_matrix(step.quat)


@wp.func
def corners_in_shape(step: ElementStep, time: Real) -> Mat33:
    """The particles in the frame of the shape, in rows [m]."""
    corners = (step.between + time * step.shift) * into_shape(step, time)
    arm = wp.quat_rotate_inv(step.quat, step.arm)
    for k in range(3):
        for axis in range(3):
            corners[k, axis] = corners[k, axis] - arm[axis]
    return corners


@wp.func
def lowest_corner(corners: Mat33) -> Vec3:
    """Least coordinates of the particles."""
    return wp.min(corners[0], wp.min(corners[1], corners[2]))


@wp.func
def highest_corner(corners: Mat33) -> Vec3:
    """Greatest coordinates of the particles."""
    return wp.max(corners[0], wp.max(corners[1], corners[2]))


@wp.func
def farthest_point(shape: Primitive, direction: Vec3) -> Vec3:
    """Support point of the core of a primitive."""
    return core_support(shape.type, shape.size, shape.radius, direction).point


@wp.func
def farthest_point(shape: TriangleQuery, direction: Vec3) -> Vec3:
    """Support point of a triangle."""
    p = wp.dot(shape.p, direction)
    q = wp.dot(shape.q, direction)
    r = wp.dot(shape.r, direction)
    return shape.p if p >= q and p >= r else wp.where(q >= r, shape.q, shape.r)


@wp.func
def rounding_radius(shape: Primitive) -> Real:
    """Radius of the ball that rounds the core of a primitive [m]."""
    return shape.radius


@wp.func
def rounding_radius(shape: TriangleQuery) -> Real:
    """A triangle is its core [m]."""
    return Real(0.0)


@wp.func
def without_middle(shape: Primitive, sum_of_corners: Vec3) -> Vec3:
    """The sum of three corners less three times the middle of a convex set, which is the origin."""
    return sum_of_corners


@wp.func
def without_middle(shape: TriangleQuery, sum_of_corners: Vec3) -> Vec3:
    """The sum of three corners less three times the middle of a triangle."""
    return sum_of_corners - shape.p - shape.q - shape.r


@wp.struct
class Separation:
    """An element and the core of a convex set. distance: of two of their points, an upper bound; 0
    where they overlap [m]. apart: their separation along `normal`, a lower bound; negative where
    they overlap along it [m].

    normal: unit, from the convex set to the element. point: the core's nearest point. weights: of
    the corners at the element's nearest point.
    """

    distance: Real
    apart: Real
    normal: Vec3
    point: Vec3
    weights: Vec3


@wp.func
def support_of(shape: Any, corners: Mat33, radii: Vec3, direction: Vec3) -> Vertex:
    """Support point of the core less the element, whose corners are balls. patch: the number of the
    corner."""
    heights = corners * direction - radii
    k = int(0)
    for other in range(1, 3):
        if heights[other] < heights[k]:
            k = other
    on_a = farthest_point(shape, direction)
    return Vertex(on_a - (corners[k] - radii[k] * direction), on_a, k)


@wp.func
def direction_of(simplex: wp.array[Vertex], count: int, v: Vec3, distance: Real) -> Vec3:
    """Unit vector from the point v of a simplex that is closest to the origin towards it.

    It is normal to a triangle of which v is an inner point, whose normal is accurate where v, the
    difference of close points, is not.
    """
    if count == 3:
        u, w = simplex[1].point - simplex[0].point, simplex[2].point - simplex[0].point
        across = wp.cross(u, w)
        twice = wp.length(across)
        if twice > distance * wp.max(wp.length(u), wp.max(wp.length(w), wp.length(w - u))):
            return wp.where(wp.dot(across, v) < Real(0.0), across / twice, -across / twice)
    return -v / distance


@wp.func(inline=False)
def separation_of(
    shape: Any,
    corners: Mat33,
    radii: Vec3,
    start: Vec3,
    enough: Real,
    base: Real,
    part: Real,
    slack: Real,
) -> Separation:
    """Bounds of the distance of an element and the core of a convex set, by GJK from a first
    direction.

    radii: of the balls at the corners [m]. The search ends at a distance of at most `enough`, and
    where both bounds differ by at most `slack` [m], or by `part` of the distance less `base` [m].
    """
    simplex = wp.zeros(shape=4, dtype=Vertex)
    result = Separation(Real(wp.inf), -Real(wp.inf), Vec3(), Vec3(), Vec3())
    direction = start
    square = Real(wp.inf)
    count = int(0)
    rounds = int(0)
    while rounds < wp.static(GJK_LIMIT):
        rounds += 1
        w = support_of(shape, corners, radii, direction)
        apart = -wp.dot(direction, w.point)
        if apart > result.apart:
            result.apart = apart
            result.normal = direction
        simplex[count] = w
        closest = closest_to_origin(simplex, count + 1)
        next_square = wp.length_sq(closest.v)
        close = count > 0 and result.distance - result.apart <= wp.max(
            slack, part * (result.distance - base)
        )
        if close or next_square >= square:
            rounds = wp.static(GJK_LIMIT)
        else:
            square = next_square
            result.distance = wp.where(closest.vertex_count == 4, Real(0.0), wp.sqrt(square))
            result.point = closest.on_a
            result.weights = Vec3()
            for k in range(count + 1):
                corner = simplex[k].patch
                result.weights[corner] = result.weights[corner] + closest.weights[k]
            reduce_simplex(simplex, count + 1, closest.weights)
            count = closest.vertex_count
            if result.distance <= wp.max(enough, Real(0.0)):
                rounds = wp.static(GJK_LIMIT)
            else:
                direction = direction_of(simplex, count, closest.v, result.distance)
    return result


@wp.struct
class ElementAdvance:
    """Result of an advancement. time: of the touch, or up to which there is none. distance: of the
    last query, and `lower`, its lower bound, -inf where there is none [m].

    point: of the shape's surface, normal: unit, from the shape to the element, both in the frame of
    the shape. weights: of the particles there. crosses: 1 where they overlap at the first query, so
    that there is no point and no normal.
    """

    status: int
    time: Real
    distance: Real
    lower: Real
    point: Vec3
    normal: Vec3
    weights: Vec3
    crosses: int


@wp.func
def touch_of(
    shape: Any, step: ElementStep, corners: Mat33, radii: Vec3, base: Real, normal: Vec3
) -> ElementAdvance:
    """Distance, point and normal of an element and a convex set that are nearly touching."""
    separation = separation_of(
        shape, corners, radii, normal, Real(-1.0), Real(0.0), CLOSEST, Real(0.0)
    )
    crosses = wp.where(separation.apart <= Real(0.0), 1, 0)
    lower = -Real(wp.inf) if crosses == 1 else separation.apart - base - step.rounding
    point = separation.point + rounding_radius(shape) * separation.normal
    distance = separation.distance - base
    return ElementAdvance(
        0, Real(0.0), distance, lower, point, separation.normal, separation.weights, crosses
    )


@wp.func(inline=False)
def advance(shape: Any, step: ElementStep, start: Real, sign: Real, most: Real) -> ElementAdvance:
    """The first touch of an element and a convex set from `start` on, forwards (sign 1) or
    backwards (sign -1), within `most` of the step."""
    least_radius = wp.min(step.inflation[0], wp.min(step.inflation[1], step.inflation[2]))
    radii = step.inflation - Vec3(least_radius, least_radius, least_radius)
    base = rounding_radius(shape) + least_radius
    goal = Real(0.5) * step.tolerance
    enough = base + step.tolerance - step.rounding
    slack = NEAR_PART * step.tolerance
    corners = corners_in_shape(step, start)
    # From the middle of the convex set to that of the element.
    between = without_middle(shape, corners[0] + corners[1] + corners[2])
    normal = wp.normalize(between) if wp.length(between) > Real(0.0) else UP
    status = int(swept_points.UNDECIDED)
    passed = Real(0.0)
    rounds = int(0)
    while rounds < wp.static(ROUNDS):
        rounds += 1
        time = start + sign * passed
        corners = corners_in_shape(step, time)
        separation = separation_of(shape, corners, radii, normal, enough, base, FAR_PART, slack)
        normal = separation.normal
        if separation.distance <= enough:
            status = swept_points.TOUCH
            rounds = wp.static(ROUNDS)
        else:
            # Above the goal: those of the corners, whose least is that of the element.
            height = separation.apart - base - step.rounding - goal
            heights = corners * normal - radii
            turning = (step.between + time * step.shift) * wp.transpose(wp.skew(step.axis))
            rates = sign * ((step.shift - step.angle * turning) * into_shape(step, time) * normal)
            least = wp.min(heights[0], wp.min(heights[1], heights[2]))
            curvature = swept_points.curvature_along(step, normal)
            ahead = Real(wp.inf)
            for k in range(3):
                ahead = wp.min(
                    ahead,
                    swept_points.time_above(height + (heights[k] - least), rates[k], curvature),
                )
            ahead = swept_points.SHORTENED * wp.max(
                ahead, swept_points.time_at_speed(height, step.speed)
            )
            if height > Real(0.0) and passed + ahead >= most:
                status = swept_points.CLEAR
                rounds = wp.static(ROUNDS)
            elif height <= Real(0.0) or ahead <= swept_points.LEAST_ADVANCE:
                rounds = wp.static(ROUNDS)
            elif rounds < wp.static(ROUNDS):
                passed += ahead
    result = (
        touch_of(shape, step, corners, radii, base, normal)
        if status != swept_points.CLEAR
        else ElementAdvance()
    )
    result.status = status
    result.time = wp.where(status == swept_points.CLEAR, most, passed)
    return result
