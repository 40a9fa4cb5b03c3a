"""Closest points of two segments, of a segment and a box, and feature numbers of a capsule."""

import warp as wp

from collidecli.engine.geometry.meshes import (
    EDGE_PART,
    FACE_PART,
    barycentric_of,
    nearest_triangle_point,
)
from collidecli.engine.geometry.real import AXIS_X, UP, Real, Vec2, Vec3

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


# Closest points of a point and a triangle, and of two segments in general position.

PARALLEL = wp.constant(Real(1.0e-20))
"""Squared sine of the angle of two segments up to which they are parallel."""
EQUAL_DISTANCE = wp.constant(Real(1.0 + 1.0e-12))


@wp.struct
class ElementPair:
    """Closest points of two elements of particles.

    point0, point1: of the first and the second [m]. weights: of the four particles; those of each
    element sum to 1. normal: unit, from the first to the second. square: of their distance [m^2].
    """

    point0: Vec3
    point1: Vec3
    weights: wp.vec4d
    normal: Vec3
    square: Real


@wp.func
def along_segment(p: Vec3, q: Vec3, point: Vec3) -> Real:
    """Parameter in [0, 1] of the closest point p + t (q - p); 0 for a segment of length 0."""
    side = q - p
    square = wp.dot(side, side)
    return (
        Real(0.0)
        if square == Real(0.0)
        else wp.clamp(wp.dot(point - p, side) / square, Real(0.0), Real(1.0))
    )


@wp.func
def any_normal(side: Vec3) -> Vec3:
    """A unit vector perpendicular to `side`; +z for the zero vector."""
    length = wp.length(side)
    if length == Real(0.0):
        return UP
    axis = Vec3(Real(0.0), Real(1.0), Real(0.0)) if wp.abs(side[0]) > Real(0.6) * length else AXIS_X
    return wp.normalize(wp.cross(side, axis))


@wp.func(inline=False)
def vertex_and_face(point: Vec3, p: Vec3, q: Vec3, r: Vec3) -> ElementPair:
    """Closest points of a point and a triangle.

    Degenerate: a triangle without area is the longest of its sides; a point on the triangle has the
    triangle's normal. Source: Ericson 2005, 5.1.5.
    """
    across = wp.cross(q - p, r - p)
    area = wp.length(across)
    weights = AXIS_X
    part = int(0)
    normal = any_normal(q - p)
    if area > Real(0.0):
        normal = across / area
        part = nearest_triangle_point(p, q, r, normal, point).part
    else:
        part = EDGE_PART + 1 if wp.length_sq(r - q) > wp.length_sq(q - p) else EDGE_PART
        if wp.length_sq(p - r) > wp.max(wp.length_sq(r - q), wp.length_sq(q - p)):
            part = EDGE_PART + 2
    if part == 1:
        weights = Vec3(Real(0.0), Real(1.0), Real(0.0))
    elif part == 2:
        weights = UP
    elif part == EDGE_PART:
        t = along_segment(p, q, point)
        weights = Vec3(Real(1.0) - t, t, Real(0.0))
    elif part == EDGE_PART + 1:
        t = along_segment(q, r, point)
        weights = Vec3(Real(0.0), Real(1.0) - t, t)
    elif part == EDGE_PART + 2:
        t = along_segment(r, p, point)
        weights = Vec3(t, Real(0.0), Real(1.0) - t)
    nearest = weights[0] * p + weights[1] * q + weights[2] * r
    if part == FACE_PART:
        weights = barycentric_of(p, q, r, point)
        nearest = point - wp.dot(point - p, normal) * normal
    off = nearest - point
    square = wp.length_sq(off)
    if square > Real(0.0):
        if part != FACE_PART:
            normal = wp.normalize(off)
        elif wp.dot(off, normal) < Real(0.0):
            normal = -normal
    return ElementPair(
        point, nearest, wp.vec4d(Real(1.0), weights[0], weights[1], weights[2]), normal, square
    )


@wp.struct
class Parameters:
    """Points p0 + s d and q0 + t e of two segments, and their squared distance [m^2]. crossing: 1
    where it is that of the lines, at inner points of both segments."""

    s: Real
    t: Real
    square: Real
    crossing: int


@wp.func
def nearest_ends(p0: Vec3, p1: Vec3, q0: Vec3, q1: Vec3) -> Parameters:
    """The least of the four distances of an end of a segment from the other; of equal ones the
    first."""
    t = along_segment(q0, q1, p0)
    best = Parameters(Real(0.0), t, wp.length_sq(q0 + t * (q1 - q0) - p0), 0)
    t = along_segment(q0, q1, p1)
    square = wp.length_sq(q0 + t * (q1 - q0) - p1)
    if square < best.square:
        best = Parameters(Real(1.0), t, square, 0)
    for k in range(2):
        q = wp.where(k == 0, q0, q1)
        s = along_segment(p0, p1, q)
        square = wp.length_sq(q - p0 - s * (p1 - p0))
        if square < best.square:
            best = Parameters(s, Real(k), square, 0)
    return best


@wp.func
def middle_of_overlap(p0: Vec3, p1: Vec3, q0: Vec3, q1: Vec3, ends: Parameters) -> Parameters:
    """The middle of the overlap of two parallel segments where that is as near as their ends; else
    the ends."""
    d = p1 - p0
    first = wp.dot(q0 - p0, d) / wp.dot(d, d)
    last = wp.dot(q1 - p0, d) / wp.dot(d, d)
    low = wp.max(Real(0.0), wp.min(first, last))
    high = wp.min(Real(1.0), wp.max(first, last))
    if high > low:
        s = Real(0.5) * (low + high)
        t = along_segment(q0, q1, p0 + s * d)
        square = wp.length_sq(q0 + t * (q1 - q0) - p0 - s * d)
        if square <= ends.square * EQUAL_DISTANCE:
            return Parameters(s, t, square, 0)
    return ends


@wp.func
def segment_parameters(p0: Vec3, p1: Vec3, q0: Vec3, q1: Vec3) -> Parameters:
    """Closest points of two segments, see `edge_and_edge`."""
    best = nearest_ends(p0, p1, q0, q1)
    d = p1 - p0
    e = q1 - q0
    across = wp.cross(d, e)
    sine = wp.dot(across, across)
    lengths = wp.dot(d, d) * wp.dot(e, e)
    if sine > PARALLEL * lengths:
        between = q0 - p0
        s = wp.dot(wp.cross(between, e), across) / sine
        t = wp.dot(wp.cross(between, d), across) / sine
        if s > Real(0.0) and s < Real(1.0) and t > Real(0.0) and t < Real(1.0):
            height = wp.dot(between, across)
            return Parameters(s, t, height * height / sine, 1)
        return best
    return middle_of_overlap(p0, p1, q0, q1, best) if lengths > Real(0.0) else best


@wp.func(inline=False)
def edge_and_edge(p0: Vec3, p1: Vec3, q0: Vec3, q1: Vec3) -> ElementPair:
    """Closest points of two segments p0 p1 and q0 q1.

    The least of four distances of an end from the other segment, and of the distance of the lines
    where their common perpendicular meets both segments between their ends. Only the parameters are
    divided by the sine of a small angle, so the distance is accurate for nearly parallel segments
    too. Degenerate: parallel segments that overlap give the middle of the overlap; segments that
    cross have their common perpendicular as normal, from p to q along (p1 - p0) x (q1 - q0);
    segments of length 0 are points.
    """
    best = segment_parameters(p0, p1, q0, q1)
    d = p1 - p0
    e = q1 - q0
    point0 = p0 + best.s * d
    point1 = q0 + best.t * e
    off = point1 - point0
    across = wp.cross(d, e)
    sine = wp.dot(across, across)
    normal = across / wp.sqrt(sine) if sine > Real(0.0) else any_normal(d)
    if best.crossing == 1:
        normal = -normal if wp.dot(q0 - p0, across) < Real(0.0) else normal
    elif wp.length_sq(off) > Real(0.0):
        normal = wp.normalize(off)
    weights = wp.vec4d(Real(1.0) - best.s, best.s, Real(1.0) - best.t, best.t)
    return ElementPair(point0, point1, weights, normal, best.square)


# Two triangles, one of them translated: overlap interval, intersection segment and closest points.
#
# Two triangles are disjoint if and only if their projections onto one of a few axes are: both
# normals, the nine cross products of their edges and, for parallel triangles, the normals of the
# edges within the plane (separating axis theorem; Gottschalk, Lin and Manocha 1996). A translation
# shifts each projection at a constant rate, so each axis gives an interval of translations, and the
# triangles overlap in the intersection of all intervals.

PARALLEL_SINE = wp.constant(Real(1.0e-3))
"""Sine of the angle between two planes below which the edge normals within the planes are also
tested. Planes that are not exactly parallel do not need them, but the other axes lose digits in
proportion to the inverse of this sine."""
NO_RATE = wp.constant(Real(1.0e-13))
"""Cosine of the angle between an axis and the direction below which a translation does not move the
projection."""
AXES = wp.constant(11)
PARALLEL_AXES = wp.constant(17)


@wp.struct
class TrianglePair:
    """Corners p, q, r of the fixed triangle and a, b, c of the moving one, with unit normals; all
    in one frame [m]."""

    p: Vec3
    q: Vec3
    r: Vec3
    normal_pqr: Vec3
    a: Vec3
    b: Vec3
    c: Vec3
    normal_abc: Vec3


@wp.struct
class Tie:
    """What decides whether projections that only touch overlap: a translation of the moving
    triangle.

    nudge: its direction, not unit; zero where projections that touch do not overlap. touch:
    greatest distance of two ends that touch, and difference of two equal exits [m].
    """

    nudge: Vec3
    touch: Real


SAME_EXIT = wp.constant(Real(0.03125))
"""Multiple of a touch up to which two translations are equal: 3e-11 of the size, far above rounding
and far below the depths at which the direction of the least translation matters."""
LEVEL_RATE = wp.constant(Real(1.0e-6))
"""Cosine of an axis and the direction of a translation up to which a tie lasts throughout it. At
a greater rate the translation decides: what begins and what ceases to overlap does so at one
length."""
TIE_BELOW = wp.constant(Real(1.5))
"""Multiple of `Tie.touch` up to which projections that are apart touch. It is more than the 1 of
those that overlap, so that of two triangles on either side of an edge at least one overlaps."""
TIE_SHIFT = wp.constant(Real(4.0))
"""Multiple of `Tie.touch` by which the nudge moves a projection: what touched overlaps by more than
a touch then, or is apart by more."""


@wp.func
def tie_shift(tie: Tie, axis: Vec3, fixed: Vec2, moving: Vec2) -> Real:
    """The translation of the moving projection that decides whether the two overlap [m].

    Zero where they do not touch. Only the axes along which the triangles touch are moved: what
    overlaps along another axis by a few touches keeps its depth. One separating axis suffices, so
    that the triangles overlap as if all axes had been moved.
    """
    above = fixed[1] - moving[0]
    below = moving[1] - fixed[0]
    least = -TIE_BELOW * tie.touch
    touches_above = above <= tie.touch and above >= least
    touches_below = below <= tie.touch and below >= least
    if not touches_above and not touches_below:
        return Real(0.0)
    return wp.where(wp.dot(axis, tie.nudge) < Real(0.0), -TIE_SHIFT, TIE_SHIFT) * tie.touch


@wp.struct
class SweepInterval:
    """Translations of the moving triangle at which the two overlap: from start to end [m]; empty if
    start >= end.

    axis: unit normal of the plane that separates the triangles at `end`, on the side of the
    direction.
    """

    start: Real
    end: Real
    axis: Vec3


@wp.struct
class Segment:
    """Segment between two points in the pair's frame [m]."""

    start: Vec3
    end: Vec3


@wp.func
def _edge(p: Vec3, q: Vec3, r: Vec3, k: int) -> Vec3:
    """Edge k, from corner k to the next."""
    if k == 0:
        return q - p
    return r - q if k == 1 else p - r


@wp.func
def axis_of_pair(pair: TrianglePair, k: int) -> Vec3:
    """Candidate separating axis k, not unit."""
    if k == 0:
        return pair.normal_pqr
    if k == 1:
        return pair.normal_abc
    if k < 11:
        fixed = _edge(pair.p, pair.q, pair.r, (k - 2) / 3)
        return wp.cross(fixed, _edge(pair.a, pair.b, pair.c, (k - 2) % 3))
    if k < 14:
        return wp.cross(pair.normal_pqr, _edge(pair.p, pair.q, pair.r, k - 11))
    return wp.cross(pair.normal_abc, _edge(pair.a, pair.b, pair.c, k - 14))


@wp.func
def axis_count(pair: TrianglePair) -> int:
    """Number of axes that decide whether the triangles are disjoint."""
    return wp.where(
        wp.length(wp.cross(pair.normal_pqr, pair.normal_abc)) < PARALLEL_SINE, PARALLEL_AXES, AXES
    )


@wp.func
def _projection(axis: Vec3, p: Vec3, q: Vec3, r: Vec3) -> Vec2:
    """Least and greatest coordinate of a triangle along an axis."""
    at = Vec3(wp.dot(axis, p), wp.dot(axis, q), wp.dot(axis, r))
    return Vec2(wp.min(at[0], wp.min(at[1], at[2])), wp.max(at[0], wp.max(at[1], at[2])))


@wp.func
def _along(segment: Segment, direction: Vec3) -> Segment:
    """The segment, or its reverse where it runs against a direction."""
    is_reversed = wp.dot(direction, segment.end - segment.start) < Real(0.0)
    return Segment(segment.end, segment.start) if is_reversed else segment


@wp.func(inline=False)
def sweep_interval(pair: TrianglePair, direction: Vec3, after: Real, tie: Tie) -> SweepInterval:
    """Overlap interval while abc moves along a unit direction; empty if it does not end later than
    `after`.

    Of axes whose ends are equal to SAME_EXIT, `axis` is the first: where a vertex leaves at a
    vertex or an edge, rounding does not choose. Degenerate: triangles that only touch have an empty
    interval, or one of the width of rounding.
    """
    result = SweepInterval(-Real(wp.inf), Real(wp.inf), Vec3())
    nudges = wp.length_sq(tie.nudge) > Real(0.0)
    end_of_axis = Real(wp.inf)
    for k in range(axis_count(pair)):
        axis = axis_of_pair(pair, k)
        length = wp.length(axis)
        if length > Real(0.0):
            axis = axis / length
            fixed = _projection(axis, pair.p, pair.q, pair.r)
            moving = _projection(axis, pair.a, pair.b, pair.c)
            rate = wp.dot(axis, direction)
            if nudges and wp.abs(rate) <= LEVEL_RATE:
                shift = tie_shift(tie, axis, fixed, moving)
                moving = Vec2(moving[0] + shift, moving[1] + shift)
            if wp.abs(rate) <= NO_RATE:
                if moving[0] >= fixed[1] or moving[1] <= fixed[0]:
                    result.end = -Real(wp.inf)
            else:
                start = (fixed[0] - moving[1]) / rate
                end = (fixed[1] - moving[0]) / rate
                if rate < Real(0.0):
                    start = (fixed[1] - moving[0]) / rate
                    end = (fixed[0] - moving[1]) / rate
                    axis = -axis
                result.start = wp.max(result.start, start)
                result.end = wp.min(result.end, end)
                if end < end_of_axis - SAME_EXIT * tie.touch:
                    end_of_axis = end
                    result.axis = axis
            if result.start >= result.end or result.end <= after:
                result.end = -Real(wp.inf)
                return result
    return result


@wp.func(inline=False)
def overlap_of_projections(pair: TrianglePair, least: Real, tie: Tie) -> Real:
    """Least overlap of the projections over all axes [m], 0 or less if disjoint; stops at a value
    of at most `least`.
    """
    result = Real(wp.inf)
    nudges = wp.length_sq(tie.nudge) > Real(0.0)
    for k in range(axis_count(pair)):
        axis = axis_of_pair(pair, k)
        length = wp.length(axis)
        if length > Real(0.0):
            axis = axis / length
            fixed = _projection(axis, pair.p, pair.q, pair.r)
            moving = _projection(axis, pair.a, pair.b, pair.c)
            if nudges:
                shift = tie_shift(tie, axis, fixed, moving)
                moving = Vec2(moving[0] + shift, moving[1] + shift)
            result = wp.min(result, wp.min(fixed[1] - moving[0], moving[1] - fixed[0]))
            if result <= least:
                return result
    return result


@wp.func
def _cut_by_plane(p: Vec3, q: Vec3, r: Vec3, normal: Vec3, corner: Vec3) -> Segment:
    """Intersection of triangle pqr with a plane through `corner` that crosses it."""
    hp = wp.dot(normal, p - corner)
    hq = wp.dot(normal, q - corner)
    hr = wp.dot(normal, r - corner)
    # The corner that is alone on its side of the plane comes first.
    lone = p
    second = q
    third = r
    h = Vec3(hp, hq, hr)
    if (hp >= Real(0.0)) == (hr >= Real(0.0)):
        lone = q
        second = r
        third = p
        h = Vec3(hq, hr, hp)
    elif (hp >= Real(0.0)) == (hq >= Real(0.0)):
        lone = r
        second = p
        third = q
        h = Vec3(hr, hp, hq)
    result = Segment(lone, lone)
    if h[0] != h[1]:
        result.start = lone + wp.clamp(h[0] / (h[0] - h[1]), Real(0.0), Real(1.0)) * (second - lone)
    if h[0] != h[2]:
        result.end = lone + wp.clamp(h[0] / (h[0] - h[2]), Real(0.0), Real(1.0)) * (third - lone)
    return result


@wp.func
def common_box(pair: TrianglePair) -> Segment:
    """Two opposite corners of the intersection of the triangles' boxes."""
    low = wp.max(wp.min(pair.p, wp.min(pair.q, pair.r)), wp.min(pair.a, wp.min(pair.b, pair.c)))
    high = wp.min(wp.max(pair.p, wp.max(pair.q, pair.r)), wp.max(pair.a, wp.max(pair.b, pair.c)))
    return Segment(low, high)


@wp.func(inline=False)
def crossing_segment(pair: TrianglePair) -> Segment:
    """Intersection segment of two overlapping triangles.

    Degenerate: nearly parallel triangles give two opposite corners of the intersection of their
    bounding boxes.
    """
    along = wp.cross(pair.normal_pqr, pair.normal_abc)
    if wp.length(along) < PARALLEL_SINE:
        return common_box(pair)
    fixed = _along(_cut_by_plane(pair.p, pair.q, pair.r, pair.normal_abc, pair.a), along)
    moving = _along(_cut_by_plane(pair.a, pair.b, pair.c, pair.normal_pqr, pair.p), along)
    if wp.dot(along, moving.start - fixed.start) > Real(0.0):
        fixed.start = moving.start
    if wp.dot(along, fixed.end - moving.end) > Real(0.0):
        fixed.end = moving.end
    return fixed


@wp.struct
class ClosestPoints:
    """Closest points of two triangles. fixed, moving: points on pqr and abc [m]; part_fixed,
    part_moving: feature of each: corner k, EDGE_PART + k for the edge from corner k, or FACE_PART.
    square: squared distance [m^2].
    """

    fixed: Vec3
    moving: Vec3
    part_fixed: int
    part_moving: int
    square: Real


@wp.func
def _corner(p: Vec3, q: Vec3, r: Vec3, k: int) -> Vec3:
    """Corner 0, 1 or 2."""
    if k == 0:
        return p
    return q if k == 1 else r


@wp.func
def _closest_of_edges(pair: TrianglePair, i: int, j: int, best: ClosestPoints) -> ClosestPoints:
    """Closest points inside edge i of pqr and edge j of abc if closer than `best`, else `best`;
    parallel edges give `best`.
    """
    start = _corner(pair.p, pair.q, pair.r, i)
    u = _edge(pair.p, pair.q, pair.r, i)
    other = _corner(pair.a, pair.b, pair.c, j)
    v = _edge(pair.a, pair.b, pair.c, j)
    across = wp.cross(u, v)
    square = wp.length_sq(across)
    if square > Real(0.0):
        off = other - start
        s = wp.dot(wp.cross(off, v), across) / square
        t = wp.dot(wp.cross(off, u), across) / square
        if s > Real(0.0) and s < Real(1.0) and t > Real(0.0) and t < Real(1.0):
            gap = wp.length_sq(other + t * v - start - s * u)
            if gap < best.square:
                return ClosestPoints(
                    start + s * u, other + t * v, EDGE_PART + i, EDGE_PART + j, gap
                )
    return best


@wp.func(inline=False)
def closest_points(pair: TrianglePair) -> ClosestPoints:
    """Closest points of two triangles that do not intersect; ties go to the first: corners, then
    edges.

    Source: Ericson 2005, section 5.1.10.
    """
    best = ClosestPoints()
    best.square = Real(wp.inf)
    for k in range(3):
        corner = _corner(pair.a, pair.b, pair.c, k)
        nearest = nearest_triangle_point(pair.p, pair.q, pair.r, pair.normal_pqr, corner)
        if nearest.square < best.square:
            best = ClosestPoints(nearest.point, corner, nearest.part, k, nearest.square)
    for k in range(3):
        corner = _corner(pair.p, pair.q, pair.r, k)
        nearest = nearest_triangle_point(pair.a, pair.b, pair.c, pair.normal_abc, corner)
        if nearest.square < best.square:
            best = ClosestPoints(corner, nearest.point, k, nearest.part, nearest.square)
    for i in range(3):
        for j in range(3):
            best = _closest_of_edges(pair, i, j, best)
    return best
