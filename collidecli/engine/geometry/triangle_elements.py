"""Closest points of a point and a triangle, and of two segments in general position."""

import warp as wp

from collidecli.engine.geometry.mesh_points import EDGE_PART, FACE_PART, nearest_triangle_point
from collidecli.engine.geometry.meshes import barycentric_of
from collidecli.engine.geometry.real import AXIS_X, UP, Real, Vec3

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
