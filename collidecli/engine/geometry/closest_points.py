"""Two triangles, one of them translated: overlap interval, intersection segment and closest points.

Two triangles are disjoint if and only if their projections onto one of a few axes are: both
normals, the nine cross products of their edges and, for parallel triangles, the normals of the
edges within the plane (separating axis theorem; Gottschalk, Lin and Manocha 1996). A translation
shifts each projection at a constant rate, so each axis gives an interval of translations, and the
triangles overlap in the intersection of all intervals.
"""

import warp as wp

from collidecli.engine.geometry.mesh_points import EDGE_PART, nearest_triangle_point
from collidecli.engine.geometry.real import Real, Vec2, Vec3

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
def square_without_axis(pair: TrianglePair, k: int, touch: Real) -> Real:
    """Square of the length up to which candidate axis k is none: its edges are parallel.

    Edges are, where the shorter one turns off the other by no more than a touch. Their axis is
    noise then, and along noise surfaces that touch may overlap or not. The faces at the edges have
    axes of their own.
    """
    if k < 2 or k >= 11:
        return Real(0.0)
    fixed = wp.length_sq(_edge(pair.p, pair.q, pair.r, (k - 2) / 3))
    moving = wp.length_sq(_edge(pair.a, pair.b, pair.c, (k - 2) % 3))
    return touch * touch * wp.max(fixed, moving)


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
def sweep_interval(
    pair: TrianglePair, direction: Vec3, after: Real, until: Real, tie: Tie
) -> SweepInterval:
    """Overlap interval while abc moves along a unit direction; empty unless it ends later than
    `after` and starts before `until`.

    Of axes whose ends are equal to SAME_EXIT, `axis` is the first: where a vertex leaves at a
    vertex or an edge, rounding does not choose. Degenerate: triangles that only touch have an empty
    interval, or one of the width of rounding.
    """
    result = SweepInterval(-Real(wp.inf), Real(wp.inf), Vec3())
    nudges = wp.length_sq(tie.nudge) > Real(0.0)
    end_of_axis = Real(wp.inf)
    for k in range(axis_count(pair)):
        # Projections onto an axis and its rate are multiples of its length, translations are not.
        axis = axis_of_pair(pair, k)
        square = wp.length_sq(axis)
        if square > square_without_axis(pair, k, tie.touch):
            fixed = _projection(axis, pair.p, pair.q, pair.r)
            moving = _projection(axis, pair.a, pair.b, pair.c)
            rate = wp.dot(axis, direction)
            if nudges and rate * rate <= LEVEL_RATE * LEVEL_RATE * square:
                length = wp.sqrt(square)
                shift = length * tie_shift(tie, axis, fixed / length, moving / length)
                moving = Vec2(moving[0] + shift, moving[1] + shift)
            if rate * rate <= NO_RATE * NO_RATE * square:
                if moving[0] >= fixed[1] or moving[1] <= fixed[0]:
                    result.end = -Real(wp.inf)
            else:
                per_rate = Real(1.0) / rate
                start = (fixed[0] - moving[1]) * per_rate
                end = (fixed[1] - moving[0]) * per_rate
                if rate < Real(0.0):
                    start = (fixed[1] - moving[0]) * per_rate
                    end = (fixed[0] - moving[1]) * per_rate
                    axis = -axis
                result.start = wp.max(result.start, start)
                result.end = wp.min(result.end, end)
                if end < end_of_axis - SAME_EXIT * tie.touch:
                    end_of_axis = end
                    result.axis = axis
            if result.start >= wp.min(result.end, until) or result.end <= after:
                result.end = -Real(wp.inf)
                return result
    result.axis = wp.normalize(result.axis)
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
        square = wp.length_sq(axis)
        if square > square_without_axis(pair, k, tie.touch):
            axis = axis / wp.sqrt(square)
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
