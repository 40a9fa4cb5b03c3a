"""Contacts of two opposing features: the corners of the intersection of their footprints.

Both features are projected along the normal. Each corner of the intersection gives a contact: the
points of a's and b's surface on the line through it along the normal, whose difference is their
separation times the normal.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.closest_points import perpendicular
from collidecli.engine.geometry.primitives import support_point
from collidecli.engine.geometry.real import CAPSULE, CONE, CYLINDER, Pose, Real, Vec2, Vec3
from collidecli.engine.narrowphase.convex.features import (
    AT_BORDER,
    EDGES,
    FACE,
    LINE,
    MAX_CODES,
    POINT,
    RIM_COUNT,
    Feature,
    feature_corners,
    is_on_face,
    is_sampled,
    line_exit,
    merge_distance,
    rounding_level,
    support_feature,
)

# Clipping of planar convex footprints: polygon by polygon (Sutherland-Hodgman), segment by polygon
# (Cyrus-Beck).
#
# Footprints are arrays of (u, v, height): coordinates perpendicular to the contact normal and along
# it [m]; clipping uses u and v only.

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
def _orientation(polygon: wp.array[Vec3]) -> Real:
    """+1 for a counterclockwise polygon, else -1."""
    p = polygon[1] - polygon[0]
    q = polygon[2] - polygon[1]
    return wp.sign(p[0] * q[1] - p[1] * q[0])


@wp.func
def _inward(polygon: wp.array[Vec3], count: int, k: int, orientation: Real) -> Vec3:
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
    orientation = _orientation(polygon)
    for k in range(count):
        line = _inward(polygon, count, k, orientation)
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
    orientation = _orientation(footprint_a)
    source = int(0)
    for k in range(feature_a.count):
        line = _inward(footprint_a, feature_a.count, k, orientation)
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


MAX_OVERLAP = 2 * RIM_COUNT

ON_BORDER = wp.constant(Real(1.0e-10))
"""Distance to an edge relative to the narrower face's half width up to which a corner is on it:
1e-6 of it is rounding."""
FLAT_CORNER = wp.constant(Real(1.0e-5))
"""Protrusion relative to the narrower face's half width below which a corner is dropped. Rotating
one of two equal faces by an angle t makes corners that protrude by t / 2, tilting it by t^2: a tilt
of 1e-3 keeps four corners."""
AT_CORNER = wp.constant(Real(0.4))
"""Distance between a line's end and a face's corner below which they coincide, relative to the
shortest overlap with two ends; below a half."""
PARALLEL_SINE = wp.constant(Real(0.05))
"""Sine of the angle above which lines give one contact, at their crossing; below it (3 degrees),
both ends of their overlap."""
END_MARGIN = wp.constant(Real(0.7))
"""Distance between the contacts of nearly parallel lines and the lines' ends, relative to the
distance of the lines there. At half that distance beside its line, a surface is at most 3.2 times
deeper (1 / LINE_SINE), and a box's end, inclined by LINE_SINE, is passed by less than (0.025 + 0.3
* 3.2) / 0.95 of that half."""


@wp.struct
class ContactFrame:
    """Relative pose of two shapes and their normal; u, v complete it to a right-handed frame. In
    a's frame [m].

    level: `rounding_level`. merge_distance: contacts at most this far from each other are one.
    shift: error of the footprints' relative position.
    """

    pose_b_to_a: Pose
    u: Vec3
    v: Vec3
    normal: Vec3
    max_separation: Real
    level: Real
    merge_distance: Real
    shift: Real


@wp.func
def feature_contacts(
    shape_a: Any,
    shape_b: Any,
    pose_b_to_a: Pose,
    max_separation: Real,
    normal: Vec3,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of the opposing features along `normal`; none if one is a point or their footprints
    do not overlap.

    Arguments and result as `manifold.contact_manifold`; at most MAX_OVERLAP. The smallest
    separation may be larger than that along the normal.
    """
    normal_in_b = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), normal)
    a = support_feature(shape_a, normal)
    b = support_feature(shape_b, -normal_in_b)
    if a.kind == POINT or b.kind == POINT:
        return 0
    return overlap_contacts(
        shape_a,
        shape_b,
        pose_b_to_a,
        max_separation,
        normal,
        normal_in_b,
        Real(0.0),
        a,
        b,
        out,
        row,
    )


@wp.func
def overlap_contacts(
    shape_a: Any,
    shape_b: Any,
    pose_b_to_a: Pose,
    max_separation: Real,
    normal: Vec3,
    normal_in_b: Vec3,
    shift: Real,
    feature_a: Feature,
    feature_b: Feature,
    out: ContactBuffer,
    row: int,
) -> int:
    """`feature_contacts` of known features, neither a point.

    Args:
        normal, normal_in_b: from a to b, in a's frame and in b's.
        shift: error of the footprints' relative position [m], which the normal's error causes: a
            line this far beside a face is above it, and lines this far from each other are one.
        feature_a, feature_b: those that support the normal and its opposite, each in its shape's
            frame.
    """
    a = feature_a
    b = feature_b
    corner_a = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    corner_b = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    code_a = wp.zeros(shape=MAX_CODES, dtype=int)
    code_b = wp.zeros(shape=MAX_CODES, dtype=int)
    contact_frame = _contact_frame(shape_a, shape_b, pose_b_to_a, max_separation, normal)
    contact_frame.shift = shift
    feature_corners(shape_a, a, normal, corner_a, code_a)
    feature_corners(shape_b, b, -normal_in_b, corner_b, code_b)
    _project(contact_frame, normal_in_b, a, corner_a, b, corner_b)
    b.normal = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), b.normal)
    if a.kind == FACE and b.kind == FACE:
        return _face_on_face(contact_frame, a, corner_a, code_a, b, corner_b, code_b, out, row)
    if a.kind == LINE and b.kind == LINE:
        return _line_on_line(
            contact_frame, shape_a, shape_b, a, corner_a, code_a, b, corner_b, code_b, out, row
        )
    if a.kind == FACE:
        return _line_on_face(
            contact_frame, shape_b, a, corner_a, code_a, b, corner_b, code_b, True, out, row
        )
    return _line_on_face(
        contact_frame, shape_a, b, corner_b, code_b, a, corner_a, code_a, False, out, row
    )


@wp.func
def _contact_frame(
    shape_a: Any, shape_b: Any, pose_b_to_a: Pose, max_separation: Real, normal: Vec3
) -> ContactFrame:
    u = perpendicular(normal)
    level = rounding_level(shape_a, shape_b)
    merged = merge_distance(shape_a, shape_b)
    return ContactFrame(
        pose_b_to_a, u, wp.cross(normal, u), normal, max_separation, level, merged, Real(0.0)
    )


@wp.func
def _project(
    contact_frame: ContactFrame,
    normal_in_b: Vec3,
    a: Feature,
    corner_a: wp.array[Vec3],
    b: Feature,
    corner_b: wp.array[Vec3],
):
    """Replaces corners, each in its shape's frame, by their footprints."""
    rotation = wp.transform_get_rotation(contact_frame.pose_b_to_a)
    for k in range(a.count):
        corner_a[k] = _footprint(
            corner_a[k], contact_frame.u, contact_frame.v, contact_frame.normal
        )
    # b's corners along the directions in b's frame: three rotations instead of one a corner.
    position = wp.transform_get_translation(contact_frame.pose_b_to_a)
    center = _footprint(position, contact_frame.u, contact_frame.v, contact_frame.normal)
    u_in_b = wp.quat_rotate_inv(rotation, contact_frame.u)
    v_in_b = wp.quat_rotate_inv(rotation, contact_frame.v)
    for k in range(b.count):
        corner_b[k] = center + _footprint(corner_b[k], u_in_b, v_in_b, normal_in_b)


@wp.func
def _footprint(p: Vec3, u: Vec3, v: Vec3, normal: Vec3) -> Vec3:
    return Vec3(wp.dot(p, u), wp.dot(p, v), wp.dot(p, normal))


@wp.func
def _lifted(contact_frame: ContactFrame, u: Real, v: Real, height: Real) -> Vec3:
    return u * contact_frame.u + v * contact_frame.v + height * contact_frame.normal


@wp.func
def _slope(contact_frame: ContactFrame, face_normal: Vec3) -> Vec2:
    """Rate at which a face's height decreases with u and v."""
    along = wp.dot(face_normal, contact_frame.normal)
    return Vec2(
        wp.dot(face_normal, contact_frame.u) / along, wp.dot(face_normal, contact_frame.v) / along
    )


@wp.func
def _face_on_face(
    contact_frame: ContactFrame,
    a: Feature,
    corner_a: wp.array[Vec3],
    code_a: wp.array[int],
    b: Feature,
    corner_b: wp.array[Vec3],
    code_b: wp.array[int],
    out: ContactBuffer,
    row: int,
) -> int:
    corner = wp.zeros(shape=MAX_POLYGON_VERTICES, dtype=Vec2)
    ids = wp.zeros(shape=MAX_POLYGON_VERTICES, dtype=wp.vec2i)
    width = wp.min(a.half_width, b.half_width)
    tolerance = ON_BORDER * width + contact_frame.shift
    count = clip_polygon(corner_a, a, code_a, corner_b, b, code_b, tolerance, corner, ids)
    slope_a = _slope(contact_frame, a.normal)
    slope_b = _slope(contact_frame, b.normal)
    level_a = corner_a[0][2] + slope_a[0] * corner_a[0][0] + slope_a[1] * corner_a[0][1]
    level_b = corner_b[0][2] + slope_b[0] * corner_b[0][0] + slope_b[1] * corner_b[0][1]
    count = drop_flat_corners(
        corner, ids, count, slope_b - slope_a, FLAT_CORNER * width, Real(0.1) * contact_frame.level
    )
    written = int(0)
    for k in range(count):
        height_a = level_a - wp.dot(slope_a, corner[k])
        separation = level_b - wp.dot(slope_b, corner[k]) - height_a
        # Faces that share a corner or a part of an edge give that point twice, as a corner of
        # either.
        is_new = bool(True)
        for other in range(k):
            is_new = is_new and wp.length(corner[other] - corner[k]) > contact_frame.merge_distance
        if separation < contact_frame.max_separation and is_new and written < MAX_OVERLAP:
            point = _lifted(contact_frame, corner[k][0], corner[k][1], height_a)
            emit_contact(
                out, row + written, point, contact_frame.normal, separation, ids[k][0], ids[k][1], 2
            )
            written += 1
    return written


@wp.func(inline=False)
def _line_on_face(
    contact_frame: ContactFrame,
    line_shape: Any,
    face: Feature,
    face_corner: wp.array[Vec3],
    face_code: wp.array[int],
    line: Feature,
    end: wp.array[Vec3],
    end_code: wp.array[int],
    face_is_a: bool,
    out: ContactBuffer,
    row: int,
) -> int:
    tolerance = ON_BORDER * face.half_width + contact_frame.shift
    part = clip_segment(end[0], end[1], face_corner, face.count, tolerance)
    slope = _slope(contact_frame, face.normal)
    level = face_corner[0][2] + slope[0] * face_corner[0][0] + slope[1] * face_corner[0][1]
    if part.low > part.high:
        return 0
    written = int(0)
    length = wp.length(end[1] - end[0])
    shortest = FLAT_CORNER * wp.min(face.half_width, Real(0.5) * length)
    is_short = (part.high - part.low) * length <= wp.max(shortest, contact_frame.merge_distance)
    ends = wp.where(is_short, 1, 2)
    for k in range(ends):
        t = part.low if k == 0 else part.high
        edge = part.low_edge if k == 0 else part.high_edge
        on_line = end[0] + t * (end[1] - end[0])
        p = on_line
        if contact_frame.shift > Real(0.0):
            p = _clamped_to(face_corner, face.count, on_line)
        height_face = level - slope[0] * p[0] - slope[1] * p[1]
        offset = _beside(p, on_line)
        height_line = _line_height(
            contact_frame, line_shape, not face_is_a, line, p, on_line[2], offset
        )
        face_id = face.code
        line_id = end_code[k]
        if edge >= 0:
            face_id = _border_at(face, face_corner, face_code, edge, p, AT_CORNER * shortest)
            line_id = line.code
        separation = height_line - height_face if face_is_a else height_face - height_line
        height_a = height_face if face_is_a else height_line
        id_a = face_id if face_is_a else line_id
        id_b = line_id if face_is_a else face_id
        if separation < contact_frame.max_separation:
            point = _lifted(contact_frame, p[0], p[1], height_a)
            emit_contact(
                out, row + written, point, contact_frame.normal, separation, id_a, id_b, ends - 1
            )
            written += 1
    return written


@wp.func
def has_round_side(shape_type: int) -> bool:
    """Whether a shape has lines on a curved side, any of which may face an edge."""
    return shape_type == CAPSULE or shape_type == CYLINDER or shape_type == CONE


@wp.func
def _beside(p: Vec3, q: Vec3) -> Real:
    """Distance of two footprints [m]."""
    return wp.sqrt((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]))


@wp.func
def _border_at(
    face: Feature, corner: wp.array[Vec3], code: wp.array[int], edge: int, p: Vec3, near: Real
) -> int:
    """Id of a face's edge that contains footprint p, or of its end if that is within `near` [m], as
    in `feature_at`."""
    following = (edge + 1) % face.count
    if _beside(corner[edge], p) < near:
        return code[edge]
    return code[following] if _beside(corner[following], p) < near else code[EDGES + edge]


@wp.func
def _line_on_line(
    contact_frame: ContactFrame,
    shape_a: Any,
    shape_b: Any,
    a: Feature,
    end_a: wp.array[Vec3],
    code_a: wp.array[int],
    b: Feature,
    end_b: wp.array[Vec3],
    code_b: wp.array[int],
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts at the overlap ends of two nearly parallel lines, on the line midway between them;
    of others at the crossing. Of an edge and the side of a round shape that are parallel but for
    noise (`shift`), on the edge, beside which the surface falls away at an angle.
    """
    along_a = Vec2(end_a[1][0] - end_a[0][0], end_a[1][1] - end_a[0][1])
    along_b = Vec2(end_b[1][0] - end_b[0][0], end_b[1][1] - end_b[0][1])
    length_a = wp.length(along_a)
    length_b = wp.length(along_b)
    sine = (along_a[0] * along_b[1] - along_a[1] * along_b[0]) / (length_a * length_b)
    if wp.abs(sine) > PARALLEL_SINE:
        return _line_across_line(
            contact_frame, shape_a, shape_b, a, end_a, code_a, b, end_b, code_b, out, row
        )
    facing = wp.sign(wp.dot(along_a, along_b))
    e = wp.normalize(along_a / length_a + facing * along_b / length_b)
    start_a = e[0] * end_a[0][0] + e[1] * end_a[0][1]
    start_b = e[0] * end_b[0][0] + e[1] * end_b[0][1]
    rate_a = wp.dot(along_a, e)
    rate_b = wp.dot(along_b, e)
    low_b = wp.min(start_b, start_b + rate_b)
    high_b = wp.max(start_b, start_b + rate_b)
    low = wp.max(start_a, low_b)
    high = wp.min(start_a + rate_a, high_b)
    margin_low = END_MARGIN * _apart(
        end_a, end_b, (low - start_a) / rate_a, (low - start_b) / rate_b
    )
    margin_high = END_MARGIN * _apart(
        end_a, end_b, (high - start_a) / rate_a, (high - start_b) / rate_b
    )
    long = high - margin_high - low - margin_low
    if long <= ON_BORDER * wp.min(length_a, length_b):
        return 0
    written = int(0)
    a_is_edge = not has_round_side(shape_a.type)
    ends = wp.where(long <= contact_frame.merge_distance, 1, 2)
    for k in range(ends):
        s = low + margin_low if k == 0 else high - margin_high
        ends_a = low == start_a if k == 0 else high == start_a + rate_a
        ends_b = low_b == start_b if k == 0 else high_b != start_b
        on_a = end_a[0] + ((s - start_a) / rate_a) * (end_a[1] - end_a[0])
        on_b = end_b[0] + ((s - start_b) / rate_b) * (end_b[1] - end_b[0])
        middle = Real(0.5) * (on_a + on_b)
        if _beside(on_a, on_b) <= contact_frame.shift:
            middle = wp.where(a_is_edge, on_a, on_b)
        height_a = _line_height(
            contact_frame, shape_a, True, a, middle, on_a[2], _beside(on_a, middle)
        )
        height_b = _line_height(
            contact_frame, shape_b, False, b, middle, on_b[2], _beside(on_b, middle)
        )
        id_a = wp.where(ends_a, code_a[k], a.code)
        id_b = wp.where(ends_a, b.code, code_b[wp.where(ends_b, k, 1 - k)])
        if height_b - height_a < contact_frame.max_separation:
            point = _lifted(contact_frame, middle[0], middle[1], height_a)
            emit_contact(
                out, row + written, point, contact_frame.normal, height_b - height_a, id_a, id_b, 1
            )
            written += 1
    return written


@wp.func
def _line_across_line(
    contact_frame: ContactFrame,
    shape_a: Any,
    shape_b: Any,
    a: Feature,
    end_a: wp.array[Vec3],
    code_a: wp.array[int],
    b: Feature,
    end_b: wp.array[Vec3],
    code_b: wp.array[int],
    out: ContactBuffer,
    row: int,
) -> int:
    """Contact where two lines cross, if the crossing is on both."""
    along_a = end_a[1] - end_a[0]
    along_b = end_b[1] - end_b[0]
    gap = end_b[0] - end_a[0]
    turn = along_a[0] * along_b[1] - along_a[1] * along_b[0]
    t_a = (gap[0] * along_b[1] - gap[1] * along_b[0]) / turn
    t_b = (gap[0] * along_a[1] - gap[1] * along_a[0]) / turn
    if wp.min(t_a, t_b) < -ON_BORDER or wp.max(t_a, t_b) > Real(1.0) + ON_BORDER:
        return 0
    on_a = end_a[0] + t_a * along_a
    on_b = end_b[0] + t_b * along_b
    height_a = _line_height(contact_frame, shape_a, True, a, on_a, on_a[2], Real(0.0))
    height_b = _line_height(contact_frame, shape_b, False, b, on_b, on_b[2], Real(0.0))
    if height_b - height_a >= contact_frame.max_separation:
        return 0
    point = _lifted(contact_frame, on_a[0], on_a[1], height_a)
    id_a = _crossed(a, code_a, t_a)
    emit_contact(
        out,
        row,
        point,
        contact_frame.normal,
        height_b - height_a,
        id_a,
        _crossed(b, code_b, t_b),
        0,
    )
    return 1


@wp.func
def _crossed(line: Feature, code: wp.array[int], t: Real) -> int:
    """Id of a line's end at which it is crossed, else of the line: as `feature_at` of a witness
    there."""
    if t < AT_BORDER:
        return code[0]
    return code[1] if t > Real(1.0) - AT_BORDER else line.code


@wp.func
def _apart(end_a: wp.array[Vec3], end_b: wp.array[Vec3], t_a: Real, t_b: Real) -> Real:
    """Distance of the footprints of a point of each line [m]."""
    return _beside(end_a[0] + t_a * (end_a[1] - end_a[0]), end_b[0] + t_b * (end_b[1] - end_b[0]))


@wp.func(inline=False)
def _line_height(
    contact_frame: ContactFrame,
    shape: Any,
    of_a: bool,
    line: Feature,
    p: Vec3,
    height: Real,
    offset: Real,
) -> Real:
    """Height of a shape's surface above footprint p, `offset` beside the line [m], where the line
    has `height`.

    -inf for a and +inf for b if there is no surface. A capsule's line is its axis; its surface is
    above.
    """
    origin = _lifted(contact_frame, p[0], p[1], height)
    direction = contact_frame.normal
    up = Real(1.0)
    if not of_a:
        origin = wp.transform_point(wp.transform_inverse(contact_frame.pose_b_to_a), origin)
        direction = wp.quat_rotate_inv(
            wp.transform_get_rotation(contact_frame.pose_b_to_a), -direction
        )
        up = Real(-1.0)
    if offset <= Real(0.1) * contact_frame.level and shape.type != CAPSULE:
        return height
    # The ray starts close to the surface: one from far away would round at the scale of its length.
    length = line_exit(shape, line.code, origin, direction)
    if length == -Real(wp.inf) and offset <= contact_frame.shift and shape.type != CAPSULE:
        return height
    return height + up * length


# Overlap of a face that is represented by points of its outline, outside of their polygon.


@wp.struct
class OffSamples:
    """A common point of two footprints; found: 1 if there is one. point: on a, in a's frame;
    separation there [m]."""

    point: Vec3
    separation: Real
    found: int


@wp.func(inline=False)
def overlap_off_samples(
    shape_a: Any,
    shape_b: Any,
    pose_b_to_a: Pose,
    normal: Vec3,
    normal_in_b: Vec3,
    feature_a: Feature,
    feature_b: Feature,
) -> OffSamples:
    """A point common to two features of which one is sampled (`is_sampled`), whose polygons do not
    overlap.

    The point of the other feature that is closest to the sampled face's middle; of two sampled
    faces whose overlap contains no such point, a point on the line of their middles. They move
    about as far as the bodies do, unlike the witness of a search, which is any point of the overlap
    if the faces are parallel. Arguments as those of `overlap_contacts`.
    """
    a = feature_a
    b = feature_b
    corner_a = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    corner_b = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    code = wp.zeros(shape=MAX_CODES, dtype=int)
    contact_frame = _contact_frame(shape_a, shape_b, pose_b_to_a, Real(wp.inf), normal)
    feature_corners(shape_a, a, normal, corner_a, code)
    feature_corners(shape_b, b, -normal_in_b, corner_b, code)
    _project(contact_frame, normal_in_b, a, corner_a, b, corner_b)
    b.normal = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), b.normal)
    result = OffSamples()
    if is_sampled(a):
        p = _closest_on_outline(corner_b, b.count, _middle(corner_a, a.count))
        result = _off_samples_at(
            contact_frame, shape_a, shape_b, feature_a, feature_b, b.normal, corner_a, corner_b, p
        )
    if result.found == 0 and is_sampled(b):
        p = _closest_on_outline(corner_a, a.count, _middle(corner_b, b.count))
        result = _off_samples_at(
            contact_frame, shape_a, shape_b, feature_a, feature_b, b.normal, corner_a, corner_b, p
        )
    if result.found == 0 and is_sampled(a) and is_sampled(b):
        p = _between_outlines(
            contact_frame, shape_a, shape_b, _middle(corner_a, a.count), _middle(corner_b, b.count)
        )
        result = _off_samples_at(
            contact_frame, shape_a, shape_b, feature_a, feature_b, b.normal, corner_a, corner_b, p
        )
    return result


@wp.func
def _off_samples_at(
    contact_frame: ContactFrame,
    shape_a: Any,
    shape_b: Any,
    a: Feature,
    b: Feature,
    normal_b: Vec3,
    corner_a: wp.array[Vec3],
    corner_b: wp.array[Vec3],
    p: Vec3,
) -> OffSamples:
    """The common point at footprint p, found if it is on each of the faces. normal_b: of b's face,
    in a's frame."""
    height_a = _height_at(contact_frame, shape_a, True, a, a.normal, corner_a, p)
    height_b = _height_at(contact_frame, shape_b, False, b, normal_b, corner_b, p)
    result = OffSamples(_lifted(contact_frame, p[0], p[1], height_a), height_b - height_a, 1)
    near = ON_BORDER * wp.max(wp.max(shape_a.size), wp.max(shape_b.size))
    if a.kind == FACE and not is_on_face(shape_a, a.normal, result.point, near):
        result.found = 0
    on_b = result.point + result.separation * contact_frame.normal
    on_b = wp.transform_point(wp.transform_inverse(contact_frame.pose_b_to_a), on_b)
    if b.kind == FACE and not is_on_face(shape_b, b.normal, on_b, near):
        result.found = 0
    return result


@wp.func
def _between_outlines(
    contact_frame: ContactFrame, shape_a: Any, shape_b: Any, middle_a: Vec3, middle_b: Vec3
) -> Vec3:
    """Footprint on the line of two faces' middles, midway between the ends of a toward b and of b
    toward a."""
    rotation = wp.transform_get_rotation(contact_frame.pose_b_to_a)
    apart = _beside(middle_a, middle_b)
    x, y = (middle_b[0] - middle_a[0]) / apart, (middle_b[1] - middle_a[1]) / apart
    toward_b = x * contact_frame.u + y * contact_frame.v
    # The support point along the sum of the face's normal and the line is on the face's outline.
    end_a = wp.dot(support_point(shape_a, contact_frame.normal + toward_b), toward_b)
    on_b = support_point(shape_b, -wp.quat_rotate_inv(rotation, contact_frame.normal + toward_b))
    end_b = wp.dot(wp.transform_point(contact_frame.pose_b_to_a, on_b), toward_b)
    along = Real(0.5) * (end_a + end_b) - (x * middle_a[0] + y * middle_a[1])
    return middle_a + Vec3(along * x, along * y, Real(0.0))


@wp.func
def _middle(corner: wp.array[Vec3], count: int) -> Vec3:
    total = Vec3()
    for k in range(count):
        total += corner[k]
    return total / Real(count)


@wp.func
def _clamped_to(corner: wp.array[Vec3], count: int, p: Vec3) -> Vec3:
    """Footprint p, or the closest point of a convex polygon's outline to it where p is outside."""
    orientation = _orientation(corner)
    for k in range(count):
        line = _inward(corner, count, k, orientation)
        if line[0] * p[0] + line[1] * p[1] + line[2] < Real(0.0):
            return _closest_on_outline(corner, count, p)
    return p


@wp.func
def _closest_on_outline(corner: wp.array[Vec3], count: int, p: Vec3) -> Vec3:
    """Closest point to footprint p of the sides of a polygon or of a segment; its height is the
    side's there."""
    closest = corner[0]
    for k in range(count):
        start = corner[k]
        along = corner[(k + 1) % count] - start
        square = along[0] * along[0] + along[1] * along[1]
        t = (along[0] * (p[0] - start[0]) + along[1] * (p[1] - start[1])) / square
        foot = start + wp.clamp(t, Real(0.0), Real(1.0)) * along
        if _beside(foot, p) < _beside(closest, p):
            closest = foot
    return closest


@wp.func
def _height_at(
    contact_frame: ContactFrame,
    shape: Any,
    of_a: bool,
    feature: Feature,
    face_normal: Vec3,
    corner: wp.array[Vec3],
    p: Vec3,
) -> Real:
    """Height of a feature's surface at footprint p; p is on a line, or its height is not used.

    face_normal: a face's, in a's frame.
    """
    if feature.kind == LINE:
        return _line_height(contact_frame, shape, of_a, feature, p, p[2], Real(0.0))
    slope = _slope(contact_frame, face_normal)
    at = corner[0]
    return at[2] - slope[0] * (p[0] - at[0]) - slope[1] * (p[1] - at[1])
