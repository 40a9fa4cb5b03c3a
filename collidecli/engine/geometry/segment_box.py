"""Signed distance and closest points of a segment and a box."""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3

NEAR = wp.constant(Real(1e-6))
"""Relative distance d below which the direction between closest points competes with the face and edge normals.

Rounding tilts that direction by 1e-16 / d and reduces the distance along it by as much; the others lose at most d."""

FACE_PREFERENCE = wp.constant(Real(1e-10))
"""Relative margin by which an edge's direction must exceed the best face's: ties go to a face."""


@wp.struct
class SegmentBox:
    """Closest or deepest points of a segment and a box, in the box's frame.

    on_segment: signed length along the segment from its centre to its closest, or deepest, point [m]. outward: unit,
    from box to segment. distance: signed, along outward [m].
    """

    on_segment: Real
    outward: Vec3
    distance: Real


@wp.func
def segment_and_box(center: Vec3, axis: Vec3, half_length: Real, half: Vec3) -> SegmentBox:
    """Signed distance of a segment and a box, with the direction that attains it.

    Args:
        center, axis: centre of the segment [m] and its unit direction. half_length: of the segment [m]. half: half
            extents of the box [m].
    Degenerate: if a range of points of a segment along a face or an edge is closest, one end of the range.
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
    result = SegmentBox()
    result.on_segment = on_segment
    result.outward = wp.normalize(outside)
    result.distance = wp.sqrt(square)
    if square > NEAR * NEAR * scale * scale:
        return result
    # Rounding rotates the direction between points this close, so the separation along it decides.
    result.distance = (
        wp.dot(result.outward, center)
        - half_length * wp.abs(wp.dot(result.outward, axis))
        - wp.dot(wp.abs(result.outward), half)
    )
    if result.distance < least.distance:
        result.outward = least.outward
        result.distance = least.distance
    return result


@wp.func
def _excess(point: Vec3, half: Vec3) -> Vec3:
    """Vector from the closest point of the box to `point`; 0 inside."""
    return Vec3(
        point[0] - wp.clamp(point[0], -half[0], half[0]),
        point[1] - wp.clamp(point[1], -half[1], half[1]),
        point[2] - wp.clamp(point[2], -half[2], half[2]),
    )


@wp.func
def _slope(center: Vec3, axis: Vec3, half: Vec3, at: Real) -> Real:
    """Half the derivative of the squared distance to the box along the segment."""
    return wp.dot(axis, _excess(center + at * axis, half))


@wp.func
def _nearest_on_segment(center: Vec3, axis: Vec3, half_length: Real, half: Vec3) -> Real:
    """Parameter of the least squared distance to the box: its derivative is monotone and piecewise linear between six
    planes.
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
    """Penetration of a segment that overlaps the box. The Minkowski sum of segment and box is a zonotope whose face
    normals are the box's three normals and the three cross products of its edges with the segment; one of the six is
    exact.
    """
    result = SegmentBox()
    result.distance = Real(-1.0e300)
    for i in range(3):
        distance = wp.abs(center[i]) - half[i] - half_length * wp.abs(axis[i])
        if distance > result.distance:
            side = _sign(center[i])
            outward = Vec3(Real(0.0), Real(0.0), Real(0.0))
            outward[i] = side
            result.distance = distance
            result.outward = outward
            result.on_segment = Real(0.0)
            if axis[i] != Real(0.0):
                result.on_segment = -side * _sign(axis[i]) * half_length
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
                outward = Vec3(Real(0.0), Real(0.0), Real(0.0))
                outward[j] = _sign(across) * along_j
                outward[k] = _sign(across) * along_k
                result.distance = distance
                result.outward = outward
                result.on_segment = _over_edge(center, axis, half_length, half, outward, distance, j, k)
    return result


@wp.func
def _over_edge(
    center: Vec3, axis: Vec3, half_length: Real, half: Vec3, outward: Vec3, distance: Real, j: int, k: int
) -> Real:
    """Parameter where the segment, translated by -distance * outward, crosses the edge farthest along `outward`."""
    across = j
    if wp.abs(axis[k]) > wp.abs(axis[j]):
        across = k
    edge = _sign(outward[across]) * half[across]
    at = (edge + distance * outward[across] - center[across]) / axis[across]
    return wp.clamp(at, -half_length, half_length)


@wp.func
def _sign(x: Real) -> Real:
    """-1 below zero, else 1."""
    if x < Real(0.0):
        return Real(-1.0)
    return Real(1.0)
