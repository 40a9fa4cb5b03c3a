"""Closest points of two segments, and feature numbers of a capsule."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3

END_LOW = wp.constant(0)
END_HIGH = wp.constant(1)
SIDE = wp.constant(2)
"""Features of a capsule: its end at -z, its end at +z, and the side."""

TOUCHING = wp.constant(Real(1e-9))
"""Distance of two segments relative to their lengths below which rounding dominates the direction between them."""


@wp.func
def away_from_axis(point: Vec3) -> Vec3:
    """Unit direction from the z axis to `point`, perpendicular to the axis; +x for a point on the axis."""
    radial = wp.sqrt(point[0] * point[0] + point[1] * point[1])
    if radial > Real(0.0):
        return Vec3(point[0] / radial, point[1] / radial, Real(0.0))
    return Vec3(Real(1.0), Real(0.0), Real(0.0))


@wp.func
def segment_end(at: Real, half_length: Real) -> int:
    """END_LOW or END_HIGH where `at` is an end of the segment -half_length to half_length, else SIDE."""
    if at <= -half_length:
        return END_LOW
    if at >= half_length:
        return END_HIGH
    return SIDE


@wp.struct
class SegmentPair:
    """Closest points of two segments.

    on_a, on_b: signed lengths along each segment from its centre [m]. normal: unit, from a to b. distance: along normal
    [m].
    """

    on_a: Real
    on_b: Real
    normal: Vec3
    distance: Real


@wp.func
def nearest_of_segments(half_a: Real, center_b: Vec3, axis_b: Vec3, half_b: Real) -> SegmentPair:
    """Closest points of two segments, the first along z and centred at the origin.

    Args:
        half_a, half_b: half lengths [m]. center_b: centre of b [m]. axis_b: unit direction of b.
    Degenerate: parallel segments give the midpoint of their overlap. Segments that cross or touch have distance 0 and
    the common perpendicular of their axes as normal; parallel ones the perpendicular from a's axis to b's centre, else
    +x.
    Source: Ericson, Real-Time Collision Detection, 2005, 5.1.9, with z for the first direction.
    """
    result = SegmentPair()
    cross_x = axis_b[0]
    cross_y = axis_b[1]
    sine_square = cross_x * cross_x + cross_y * cross_y
    cosine = axis_b[2]
    # Projected along z, the closest point of the line b is that of a point to a line in the plane: avoids 1 - cosine^2.
    on_a = Real(0.0)
    if sine_square > Real(0.0):
        on_a = center_b[2] - cosine * (center_b[0] * cross_x + center_b[1] * cross_y) / sine_square
    else:
        low = wp.max(-half_a, center_b[2] - half_b)
        high = wp.min(half_a, center_b[2] + half_b)
        on_a = Real(0.5) * (low + high)
    on_a = wp.clamp(on_a, -half_a, half_a)
    free_b = on_a * cosine - wp.dot(center_b, axis_b)
    on_b = wp.clamp(free_b, -half_b, half_b)
    free_a = center_b[2] + on_b * cosine
    if on_b != free_b:
        on_a = wp.clamp(free_a, -half_a, half_a)
    between = center_b + on_b * axis_b
    between[2] = between[2] - on_a
    inside_a = wp.abs(on_a) < half_a
    inside_b = wp.abs(on_b) < half_b
    # The normal at an inner point is perpendicular to its segment; this removes the tilt by rounding for close
    # segments.
    perpendicular = Vec3(-cross_y, cross_x, Real(0.0))
    if inside_a and inside_b and sine_square > Real(0.0):
        between = wp.dot(between, perpendicular) / sine_square * perpendicular
    elif inside_a:
        between[2] = Real(0.0)
    elif inside_b:
        between = between - wp.dot(between, axis_b) * axis_b
    distance = wp.length(between)
    result.on_a = on_a
    result.on_b = on_b
    if distance > TOUCHING * (half_a + half_b):
        result.normal = between / distance
        result.distance = distance
        return result
    if sine_square > Real(0.0):
        result.normal = perpendicular / wp.sqrt(sine_square)
    else:
        result.normal = away_from_axis(center_b)
    result.distance = wp.dot(between, result.normal)
    if result.distance < Real(0.0):
        result.normal = -result.normal
        result.distance = -result.distance
    return result
