"""Closest points of two segments, and of a segment and a box."""

import warp as wp

from collidecli.engine.geometry.real import AXIS_X, Real, Vec3

END_LOW = wp.constant(0)
END_HIGH = wp.constant(1)
SIDE = wp.constant(2)
"""Features of a capsule: its end at -z, its end at +z, and the side."""
TOUCHING = wp.constant(Real(1e-9))
"""Distance of two segments relative to their lengths below which rounding dominates the direction
between them."""


@wp.func
def perpendicular(n: Vec3) -> Vec3:
    """A unit vector perpendicular to unit n."""
    if wp.abs(n[0]) < Real(0.6):
        return wp.normalize(Vec3(Real(0.0), n[2], -n[1]))
    return wp.normalize(Vec3(-n[1], n[0], Real(0.0)))


@wp.func
def away_from_axis(point: Vec3) -> Vec3:
    """Unit direction from the z axis to `point`, perpendicular to the axis; +x for a point on the
    axis."""
    radial = wp.sqrt(point[0] * point[0] + point[1] * point[1])
    return Vec3(point[0] / radial, point[1] / radial, Real(0.0)) if radial > Real(0.0) else AXIS_X


@wp.func
def segment_end(at: Real, half_length: Real) -> int:
    """END_LOW or END_HIGH where `at` is an end of the segment -half_length to half_length, else
    SIDE."""
    if at <= -half_length:
        return END_LOW
    return END_HIGH if at >= half_length else SIDE


@wp.struct
class SegmentPair:
    """Closest points of two segments.

    on_a, on_b: signed lengths along each segment from its centre [m]. normal: unit, from a to b.
    distance: along normal [m].
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
    Degenerate: parallel segments give the midpoint of their overlap. Segments that cross or touch
    have distance 0 and
    the common perpendicular of their axes as normal; parallel ones the perpendicular from a's axis
    to b's centre, else
    +x.
    Source: Ericson, Real-Time Collision Detection, 2005, 5.1.9, with z for the first direction.
    """
    cross_x = axis_b[0]
    cross_y = axis_b[1]
    cosine = axis_b[2]
    sine_square = cross_x * cross_x + cross_y * cross_y
    # Projected along z, the closest point of the line b is that of a point to a line in the plane:
    # avoids 1 - cosine^2.
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
    if on_b != free_b:
        on_a = wp.clamp(center_b[2] + on_b * cosine, -half_a, half_a)
    between = center_b + on_b * axis_b
    between[2] = between[2] - on_a
    inside_a = wp.abs(on_a) < half_a
    inside_b = wp.abs(on_b) < half_b
    # The normal at an inner point is perpendicular to its segment; this removes the tilt by
    # rounding for close segments.
    perpendicular = Vec3(-cross_y, cross_x, Real(0.0))
    if inside_a and inside_b and sine_square > Real(0.0):
        between = wp.dot(between, perpendicular) / sine_square * perpendicular
    elif inside_a:
        between[2] = Real(0.0)
    elif inside_b:
        between = between - wp.dot(between, axis_b) * axis_b
    distance = wp.length(between)
    if distance > TOUCHING * (half_a + half_b):
        return SegmentPair(on_a, on_b, between / distance, distance)
    normal = (
        perpendicular / wp.sqrt(sine_square)
        if sine_square > Real(0.0)
        else away_from_axis(center_b)
    )
    distance = wp.dot(between, normal)
    if distance < Real(0.0):
        return SegmentPair(on_a, on_b, -normal, -distance)
    return SegmentPair(on_a, on_b, normal, distance)


NEAR = wp.constant(Real(1e-6))
"""Relative distance d below which the direction between closest points competes with the face and
edge normals.

Rounding tilts that direction by 1e-16 / d and reduces the distance along it by as much; the others
lose at most d."""
FACE_PREFERENCE = wp.constant(Real(1e-10))
"""Relative margin by which an edge's direction must exceed the best face's: ties go to a face."""


@wp.struct
class SegmentBox:
    """Closest or deepest points of a segment and a box, in the box's frame.

    on_segment: signed length along the segment from its centre to its closest, or deepest, point
    [m]. outward: unit, from box to segment. distance: signed, along outward [m].
    """

    on_segment: Real
    outward: Vec3
    distance: Real


@wp.func
def segment_and_box(center: Vec3, axis: Vec3, half_length: Real, half: Vec3) -> SegmentBox:
    """Signed distance of a segment and a box, with the direction that attains it.

    Args:
        center, axis: centre of the segment [m] and its unit direction. half_length: of the segment
            [m]. half: half extents of the box [m].
    Degenerate: if a range of points of a segment along a face or an edge is closest, one end of the
        range.
    """
    on_segment = _nearest_on_segment(center, axis, half_length, half)
    outside = _excess(center + on_segment * axis, half)
    scale = half_length + wp.length(half)
    square = wp.dot(outside, outside)
    least = SegmentBox()
    if square <= NEAR * NEAR * scale * scale:
        least = _least_translation(center, axis, half_length, half)
        if square == Real(0.0):
            return least
    result = SegmentBox(on_segment, wp.normalize(outside), wp.sqrt(square))
    if square > NEAR * NEAR * scale * scale:
        return result
    # Rounding rotates the direction between points this close, so the separation along it decides.
    outward = result.outward
    half_projection = half_length * wp.abs(wp.dot(outward, axis))
    result.distance = wp.dot(outward, center) - half_projection - wp.dot(wp.abs(outward), half)
    return (
        SegmentBox(on_segment, least.outward, least.distance)
        if result.distance < least.distance
        else result
    )


@wp.func
def _excess(point: Vec3, half: Vec3) -> Vec3:
    """Vector from the closest point of the box to `point`; 0 inside."""
    return point - wp.max(-half, wp.min(half, point))


@wp.func
def _slope(center: Vec3, axis: Vec3, half: Vec3, at: Real) -> Real:
    """Half the derivative of the squared distance to the box along the segment."""
    return wp.dot(axis, _excess(center + at * axis, half))


@wp.func
def _nearest_on_segment(center: Vec3, axis: Vec3, half_length: Real, half: Vec3) -> Real:
    """Parameter of the least squared distance to the box: its derivative is monotone and piecewise
    linear between six planes.
    """
    low = -half_length
    high = half_length
    slope_low = _slope(center, axis, half, low)
    if slope_low >= Real(0.0):
        return low
    slope_high = _slope(center, axis, half, high)
    if slope_high <= Real(0.0):
        return high
    for i in range(3):
        if axis[i] != Real(0.0):
            for side in range(2):
                at = (Real(2 * side - 1) * half[i] - center[i]) / axis[i]
                if at > low and at < high:
                    slope = _slope(center, axis, half, at)
                    if slope <= Real(0.0):
                        low = at
                        slope_low = slope
                    else:
                        high = at
                        slope_high = slope
    return low - slope_low * (high - low) / (slope_high - slope_low)


@wp.func
def _least_translation(center: Vec3, axis: Vec3, half_length: Real, half: Vec3) -> SegmentBox:
    """Penetration of a segment that overlaps the box. The Minkowski sum of segment and box is a
    zonotope whose face normals are the box's three normals and the three cross products of its
    edges with the segment; one of the six is exact.
    """
    result = SegmentBox()
    result.distance = Real(-1.0e300)
    for i in range(3):
        distance = wp.abs(center[i]) - half[i] - half_length * wp.abs(axis[i])
        if distance > result.distance:
            side = _sign(center[i])
            outward = Vec3()
            outward[i] = side
            on_segment = -side * _sign(axis[i]) * half_length if axis[i] != Real(0.0) else Real(0.0)
            result = SegmentBox(on_segment, outward, distance)
    to_beat = result.distance + FACE_PREFERENCE * (half_length + wp.length(half))
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        length = wp.sqrt(axis[j] * axis[j] + axis[k] * axis[k])
        if length > Real(0.0):
            along_j = -axis[k] / length
            along_k = axis[j] / length
            across = along_j * center[j] + along_k * center[k]
            distance = wp.abs(across) - half[j] * wp.abs(along_j) - half[k] * wp.abs(along_k)
            if distance > to_beat:
                to_beat = distance
                outward = Vec3()
                outward[j] = _sign(across) * along_j
                outward[k] = _sign(across) * along_k
                on_segment = _over_edge(center, axis, half_length, half, outward, distance, j, k)
                result = SegmentBox(on_segment, outward, distance)
    return result


@wp.func
def _over_edge(
    center: Vec3,
    axis: Vec3,
    half_length: Real,
    half: Vec3,
    outward: Vec3,
    distance: Real,
    j: int,
    k: int,
) -> Real:
    """Parameter where the segment, translated by -distance * outward, crosses the edge farthest
    along `outward`."""
    across = k if wp.abs(axis[k]) > wp.abs(axis[j]) else j
    edge = _sign(outward[across]) * half[across]
    at = (edge + distance * outward[across] - center[across]) / axis[across]
    return wp.clamp(at, -half_length, half_length)


@wp.func
def _sign(x: Real) -> Real:
    """-1 below zero, else 1."""
    return Real(-1.0) if x < Real(0.0) else Real(1.0)
