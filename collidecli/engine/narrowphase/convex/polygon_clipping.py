"""Clipping of planar convex footprints, after Sutherland and Hodgman, and Cyrus and Beck.

Footprints are arrays of (u, v, height): coordinates perpendicular to the contact normal and along
it [m]; clipping uses u and v only.
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.narrowphase.convex.feature_types import EDGES, Feature

MAX_POLYGON_VERTICES = 24
"""Polygon corners before and after each cut, 12 each: a line that cuts a convex polygon adds at
most one corner, so 6 clipped by 6 have at most 12."""
HALF = wp.constant(MAX_POLYGON_VERTICES // 2)


@wp.struct
class Interval:
    """Part of a segment inside a polygon, from parameter `low` to `high` in [0, 1]; empty if low >
    high.

    low_edge, high_edge: the polygon's edge that clips it there, -1 if the segment's own end is
    inside.
    """

    low: Real
    high: Real
    low_edge: int
    high_edge: int


@wp.func
def orientation_of(polygon: wp.array[Vec3]) -> Real:
    """+1 for a counterclockwise polygon, else -1."""
    p = polygon[1] - polygon[0]
    q = polygon[2] - polygon[1]
    return wp.sign(p[0] * q[1] - p[1] * q[0])


@wp.func
def inward_of(polygon: wp.array[Vec3], count: int, k: int, orientation: Real) -> Vec3:
    """Line of edge k as (x, y, offset): x u + y v + offset is the depth of (u, v) inside the edge
    times the edge's length.
    """
    p = polygon[k]
    q = polygon[(k + 1) % count]
    x, y = orientation * (p[1] - q[1]), orientation * (q[0] - p[0])
    return Vec3(x, y, -(x * p[0] + y * p[1]))


@wp.func
def _outside(line: Vec3, tolerance: Real) -> Real:
    """Depth below which a point is outside a line moved outwards by `tolerance`, in the line's
    unit."""
    return -tolerance * wp.sqrt(line[0] * line[0] + line[1] * line[1])


@wp.func
def clip_segment(
    p: Vec3, q: Vec3, polygon: wp.array[Vec3], count: int, tolerance: Real
) -> Interval:
    """Part of segment pq inside a convex polygon grown by `tolerance` [m]; ends within the
    tolerance of an edge are inside.
    """
    result = Interval(Real(0.0), Real(1.0), -1, -1)
    orientation = orientation_of(polygon)
    for k in range(count):
        line = inward_of(polygon, count, k, orientation)
        at_p = line[0] * p[0] + line[1] * p[1] + line[2]
        at_q = line[0] * q[0] + line[1] * q[1] + line[2]
        outside = _outside(line, tolerance)
        if at_p < outside and at_q < outside:
            result.low = Real(2.0)
        elif at_p < outside:
            t = wp.min(at_p / (at_p - at_q), Real(1.0))
            if t > result.low:
                result.low = t
                result.low_edge = k
        elif at_q < outside:
            t = wp.max(at_p / (at_p - at_q), Real(0.0))
            if t < result.high:
                result.high = t
                result.high_edge = k
    return result


@wp.func
def clip_polygon(
    footprint_a: wp.array[Vec3],
    feature_a: Feature,
    code_a: wp.array[int],
    footprint_b: wp.array[Vec3],
    feature_b: Feature,
    code_b: wp.array[int],
    tolerance: Real,
    corner: wp.array[Vec2],
    ids: wp.array[wp.vec2i],
) -> int:
    """Intersection of the footprints of two convex faces, by clipping b's with each edge of a's.

    Args:
        tolerance: a corner this close to an edge is inside it [m], so that coincident corners and
            edges stay unchanged.
        corner, ids: of length MAX_POLYGON_VERTICES; receive the corners in order, and the feature
            ids of a and b of each: a vertex of one and the face of the other, or two edges that
            cross. Each pair of ids is unique.
    Returns:
        corner count, from row 0; fewer than 3 when the footprints touch at most.
    Source: Sutherland and Hodgman 1974; each polygon edge carries the edge of a or b that contains
    it, which gives the
    ids of the crossings.
    """
    side = wp.zeros(shape=MAX_POLYGON_VERTICES, dtype=int)
    count = feature_b.count
    for i in range(count):
        corner[i] = Vec2(footprint_b[i][0], footprint_b[i][1])
        ids[i] = wp.vec2i(-1, i)
        side[i] = i
    orientation = orientation_of(footprint_a)
    source = int(0)
    for k in range(feature_a.count):
        line = inward_of(footprint_a, feature_a.count, k, orientation)
        outside = _outside(line, tolerance)
        lowest = Real(0.0)
        for i in range(source, source + count):
            lowest = wp.min(lowest, line[0] * corner[i][0] + line[1] * corner[i][1] + line[2])
        if lowest < outside:
            count = _cut(line, outside, k, corner, ids, side, source, count)
            source = HALF - source
    for i in range(count):
        corner[i] = corner[source + i]
        ids[i] = _feature_ids(ids[source + i], feature_a, code_a, feature_b, code_b)
    return count


@wp.func
def _cut(
    line: Vec3,
    outside: Real,
    k: int,
    corner: wp.array[Vec2],
    ids: wp.array[wp.vec2i],
    side: wp.array[int],
    source: int,
    count: int,
) -> int:
    """Clips the polygon in rows source and up with the line of a's edge k, into the other half of
    the rows.

    side: edge that follows each corner: i of b, or -1 - j for j of a. ids: (-1, i) for b's vertex
    i; (k, side) where a's edge k cuts a side.
    """
    target = HALF - source
    kept = int(0)
    p = corner[source]
    depth_p = line[0] * p[0] + line[1] * p[1] + line[2]
    first_depth = depth_p
    for i in range(count):
        index = source + i
        q = corner[source]
        depth_q = first_depth
        if i + 1 < count:
            q = corner[index + 1]
            depth_q = line[0] * q[0] + line[1] * q[1] + line[2]
        inside_p = depth_p >= outside
        inside_q = depth_q >= outside
        if inside_p and kept < HALF:
            corner[target + kept] = p
            ids[target + kept] = ids[index]
            side[target + kept] = side[index]
            if not inside_q and depth_p <= Real(0.0):
                side[target + kept] = -1 - k
            kept += 1
        leaves = inside_p and not inside_q and depth_p > Real(0.0)
        enters = inside_q and not inside_p and depth_q > Real(0.0)
        if (leaves or enters) and kept < HALF:
            corner[target + kept] = p + (depth_p / (depth_p - depth_q)) * (q - p)
            ids[target + kept] = wp.vec2i(k, side[index])
            side[target + kept] = side[index]
            if leaves:
                side[target + kept] = -1 - k
            kept += 1
        p = q
        depth_p = depth_q
    return kept


@wp.func
def _feature_ids(
    raw: wp.vec2i,
    feature_a: Feature,
    code_a: wp.array[int],
    feature_b: Feature,
    code_b: wp.array[int],
) -> wp.vec2i:
    """Feature ids of a and b of a corner as encoded by `_cut`."""
    edge = raw[0]
    side = raw[1]
    if edge < 0:
        return wp.vec2i(feature_a.code, code_b[side])
    if side >= 0:
        return wp.vec2i(code_a[EDGES + edge], code_b[EDGES + side])
    # Two edges of a meet at the end of the earlier one.
    vertex = -1 - side if -1 - side == (edge + 1) % feature_a.count else edge
    return wp.vec2i(code_a[vertex], feature_b.code)


@wp.func
def drop_flat_corners(
    corner: wp.array[Vec2],
    ids: wp.array[wp.vec2i],
    count: int,
    slope: Vec2,
    tolerance: Real,
    level: Real,
) -> int:
    """Drops corners within `tolerance` [m] of the line between their neighbours, which do not
    change the area.

    Equal faces that are rotated or tilted by rounding intersect in such corners at random. A corner
    is kept if its separation, which decreases along `slope`, is lower than at both neighbours by
    more than `level` [m].
    """
    kept = int(0)
    for i in range(count):
        before = kept - 1 if kept > 0 else count - 1
        after = i + 1 if i + 1 < count else 0
        p = corner[i]
        to_before = corner[before] - p
        to_after = corner[after] - p
        chord = to_after - to_before
        # Distance from p to the segment between the neighbours.
        square = wp.dot(chord, chord)
        t = (
            wp.clamp(-wp.dot(to_before, chord) / square, Real(0.0), Real(1.0))
            if square > Real(0.0)
            else Real(0.0)
        )
        offset = to_before + t * chord
        near = wp.dot(offset, offset) <= tolerance * tolerance
        # Separation at a neighbour minus that at p.
        rise = wp.min(-wp.dot(slope, to_before), -wp.dot(slope, to_after))
        if not near or rise > level or count - i + kept <= 2:
            corner[kept] = p
            ids[kept] = ids[i]
            kept += 1
    return kept
