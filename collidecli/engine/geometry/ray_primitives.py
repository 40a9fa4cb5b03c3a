"""Crossings of a ray's line with the surfaces of primitives, as an interval of its parameter.

A convex solid contains one interval of a line. That of a cylinder or cone is the common part of the
intervals of its side and its slab, that of a capsule the union of its parts' ones, so that no line
passes between two parts by rounding. Lines start at their closest point to the solid's centre,
where coordinates are of the solid's size and the square roots lose no digits, however far the ray's
start is (Haines, Guenther and Akenine-Moeller 2019, chapter 7 of Ray Tracing Gems).
"""

import warp as wp

from collidecli.engine.geometry.real import (
    BOX,
    CAPSULE,
    CONE,
    CYLINDER,
    ELLIPSOID,
    UP,
    Real,
    Vec3,
)


@wp.struct
class LineInterval:
    """The part of a line inside a convex solid: parameters of both ends [m], begin > end for none,
    and the solid's unit outward normals there."""

    begin: Real
    end: Real
    begin_normal: Vec3
    end_normal: Vec3


@wp.func
def no_interval() -> LineInterval:
    """The interval of a line that misses."""
    return LineInterval(Real(wp.inf), -Real(wp.inf), Vec3(), Vec3())


@wp.func
def common_interval(a: LineInterval, b: LineInterval) -> LineInterval:
    """The part that two intervals have in common."""
    result = a
    if b.begin > a.begin:
        result.begin = b.begin
        result.begin_normal = b.begin_normal
    if b.end < a.end:
        result.end = b.end
        result.end_normal = b.end_normal
    return result


@wp.func
def joined_interval(a: LineInterval, b: LineInterval) -> LineInterval:
    """The least interval that contains two, of which one may be none."""
    result = a
    if b.begin > b.end:
        return result
    if a.begin > a.end:
        return b
    if b.begin < a.begin:
        result.begin = b.begin
        result.begin_normal = b.begin_normal
    if b.end > a.end:
        result.end = b.end
        result.end_normal = b.end_normal
    return result


@wp.func
def slab_interval(low: Real, high: Real, start: Vec3, along: Vec3, axis: int) -> LineInterval:
    """Interval between two planes across an axis. Degenerate: a parallel line is inside with the
    planes, or outside."""
    upward = Vec3()
    upward[axis] = Real(1.0)
    if along[axis] == Real(0.0):
        if start[axis] < low or start[axis] > high:
            return no_interval()
        return LineInterval(-Real(wp.inf), Real(wp.inf), -upward, upward)
    to_low = (low - start[axis]) / along[axis]
    to_high = (high - start[axis]) / along[axis]
    if along[axis] > Real(0.0):
        return LineInterval(to_low, to_high, -upward, upward)
    return LineInterval(to_high, to_low, upward, -upward)


@wp.func
def ball_interval(radius: Real, centre: Vec3, start: Vec3, along: Vec3) -> LineInterval:
    """Interval in a ball. along: unit. Degenerate: a tangent line has an interval of length 0."""
    off = start - centre
    nearest = wp.dot(off, along)
    across = off - nearest * along
    square = radius * radius - wp.dot(across, across)
    if square < Real(0.0):
        return no_interval()
    half = wp.sqrt(square)
    return LineInterval(
        -nearest - half,
        -nearest + half,
        (across - half * along) / radius,
        (across + half * along) / radius,
    )


@wp.func
def tube_interval(radius: Real, start: Vec3, along: Vec3) -> LineInterval:
    """Interval in an infinite cylinder about z. Degenerate: a line along the axis is inside with
    the surface, or outside."""
    square = along[0] * along[0] + along[1] * along[1]
    flat = Vec3(start[0], start[1], Real(0.0))
    if square == Real(0.0):
        if wp.length(flat) > radius:
            return no_interval()
        return LineInterval(-Real(wp.inf), Real(wp.inf), Vec3(), Vec3())
    step = Vec3(along[0], along[1], Real(0.0))
    nearest = -wp.dot(flat, step) / square
    across = flat + nearest * step
    left = radius * radius - wp.dot(across, across)
    if left < Real(0.0):
        return no_interval()
    half = wp.sqrt(left / square)
    return LineInterval(
        nearest - half,
        nearest + half,
        (across - half * step) / radius,
        (across + half * step) / radius,
    )


@wp.func
def cone_normal(radius: Real, half_height: Real, point: Vec3) -> Vec3:
    """Unit normal of a cone's side beside a point; +z on the axis."""
    flat = wp.length(Vec3(point[0], point[1], Real(0.0)))
    if flat == Real(0.0):
        return UP
    rise = Real(2.0) * half_height
    return wp.normalize(Vec3(rise * point[0] / flat, rise * point[1] / flat, radius))


@wp.func
def nappe_interval(radius: Real, half_height: Real, start: Vec3, along: Vec3) -> LineInterval:
    """Interval in the infinite solid cone below the apex, or, of a line that is flatter than the
    side, in the cone's other nappe above the apex, where the solid's slab leaves it out.

    With the slope k = radius / height and the depth w below the apex, the cone is x^2 + y^2 <= (k
    w)^2 and w >= 0; the first is a quadratic of the line's parameter t, a t^2 + 2 b t + c <= 0.
    """
    k = radius / (Real(2.0) * half_height)
    depth = half_height - start[2]
    a = along[0] * along[0] + along[1] * along[1] - k * k * along[2] * along[2]
    b = start[0] * along[0] + start[1] * along[1] + k * k * depth * along[2]
    c = start[0] * start[0] + start[1] * start[1] - k * k * depth * depth
    square = b * b - a * c
    if square < Real(0.0):
        if a >= Real(0.0):
            return no_interval()
        square = Real(0.0)  # a line that is steeper than the side crosses both nappes
    root = wp.sqrt(square)
    q = -(b + wp.where(b >= Real(0.0), root, -root))
    infinite = Real(wp.inf)
    first = infinite
    second = infinite
    if a != Real(0.0):
        first = q / a
    if q != Real(0.0):
        second = c / q
    elif a != Real(0.0):
        second = first
    low = wp.min(first, second)
    high = wp.max(first, second)
    result = LineInterval()
    if a > Real(0.0):
        result.begin = low
        result.end = high
    else:
        # One nappe is before the first root, the other one after the last; where a is 0 there is
        # one root.
        upwards = along[2] > Real(0.0)
        if a == Real(0.0):
            low = second
            high = second
            if q == Real(0.0):
                low = wp.where(upwards, infinite, -infinite)
                high = low
        result.begin = wp.where(upwards, -infinite, high)
        result.end = wp.where(upwards, low, infinite)
    if wp.abs(result.begin) < infinite:
        result.begin_normal = cone_normal(radius, half_height, start + result.begin * along)
    if wp.abs(result.end) < infinite:
        result.end_normal = cone_normal(radius, half_height, start + result.end * along)
    return result


@wp.func
def capsule_interval(size: Vec3, start: Vec3, along: Vec3) -> LineInterval:
    """Interval in a capsule along z."""
    end = Vec3(Real(0.0), Real(0.0), size[1])
    tube = common_interval(
        tube_interval(size[0], start, along),
        slab_interval(-size[1], size[1], start, along, 2),
    )
    balls = joined_interval(
        ball_interval(size[0], -end, start, along), ball_interval(size[0], end, start, along)
    )
    return joined_interval(balls, tube)


@wp.func
def ellipsoid_interval(size: Vec3, start: Vec3, along: Vec3) -> LineInterval:
    """Interval in an ellipsoid: that of the unit ball after a scaling, which keeps parameters."""
    step = wp.cw_div(along, size)
    length = wp.length(step)
    ball = ball_interval(Real(1.0), Vec3(), wp.cw_div(start, size), step / length)
    if ball.begin > ball.end:
        return ball
    return LineInterval(
        ball.begin / length,
        ball.end / length,
        wp.normalize(wp.cw_div(ball.begin_normal, size)),
        wp.normalize(wp.cw_div(ball.end_normal, size)),
    )


@wp.func
def primitive_interval(shape_type: int, size: Vec3, start: Vec3, along: Vec3) -> LineInterval:
    """Interval of a line in a sphere, capsule, box, cylinder, cone or ellipsoid.

    Args:
        size: see `ShapeType` [m]. start: of the line, near the shape. along: unit direction; both
            in the shape's frame.
    """
    if shape_type == BOX:
        result = slab_interval(-size[0], size[0], start, along, 0)
        for axis in range(1, 3):
            result = common_interval(
                result, slab_interval(-size[axis], size[axis], start, along, axis)
            )
        return result
    if shape_type == CAPSULE:
        return capsule_interval(size, start, along)
    if shape_type == ELLIPSOID:
        return ellipsoid_interval(size, start, along)
    if shape_type == CYLINDER or shape_type == CONE:
        slab = slab_interval(-size[1], size[1], start, along, 2)
        if shape_type == CYLINDER:
            return common_interval(tube_interval(size[0], start, along), slab)
        return common_interval(nappe_interval(size[0], size[1], start, along), slab)
    return ball_interval(size[0], Vec3(), start, along)
