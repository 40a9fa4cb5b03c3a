"""Contacts of two opposing features: the corners of the intersection of their footprints.

Both features are projected along the normal. Each corner of the intersection gives a contact: the
points of a's and b's surface on the line through it along the normal, whose difference is their
separation times the normal.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry.real import CAPSULE, CONE, CYLINDER, Pose, Real, Vec2, Vec3
from collidecli.engine.narrowphase.convex.contact_frame import (
    AT_CORNER,
    END_MARGIN,
    FLAT_CORNER,
    MAX_OVERLAP,
    ON_BORDER,
    PARALLEL_SINE,
    ContactFrame,
    clamped_to_polygon,
    frame_of_contact,
    height_on_line,
    is_beside,
    lifted_from_frame,
    project_on_frame,
    slope_of,
)
from collidecli.engine.narrowphase.convex.feature_types import (
    AT_BORDER,
    EDGES,
    FACE,
    LINE,
    MAX_CODES,
    POINT,
    RIM_COUNT,
    Feature,
)
from collidecli.engine.narrowphase.convex.features import feature_corners, support_feature
from collidecli.engine.narrowphase.convex.polygon_clipping import (
    MAX_POLYGON_VERTICES,
    clip_polygon,
    clip_segment,
    drop_flat_corners,
)


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
    contact_frame = frame_of_contact(shape_a, shape_b, pose_b_to_a, max_separation, normal)
    contact_frame.shift = shift
    feature_corners(shape_a, a, normal, corner_a, code_a)
    feature_corners(shape_b, b, -normal_in_b, corner_b, code_b)
    project_on_frame(contact_frame, normal_in_b, a, corner_a, b, corner_b)
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
    slope_a = slope_of(contact_frame, a.normal)
    slope_b = slope_of(contact_frame, b.normal)
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
            point = lifted_from_frame(contact_frame, corner[k][0], corner[k][1], height_a)
            emit_contact(
                out, row + written, point, contact_frame.normal, separation, ids[k][0], ids[k][1], 2
            )
            written += 1
    return written


@wp.func
def _plane_of_face(contact_frame: ContactFrame, face: Feature, corner: Vec3) -> Vec3:
    """Slopes of a face's plane along the frame's axes, and its height at the origin [m]."""
    slope = slope_of(contact_frame, face.normal)
    return Vec3(slope[0], slope[1], corner[2] + slope[0] * corner[0] + slope[1] * corner[1])


@wp.func
def _moved_onto_face(
    contact_frame: ContactFrame, corner: wp.array[Vec3], count: int, footprint: Vec3
) -> Vec3:
    """A footprint beside a face, by the error `shift` of the footprints, moved to its border."""
    if contact_frame.shift > Real(0.0):
        return clamped_to_polygon(corner, count, footprint)
    return footprint


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
    """Contacts at both ends of the part of a line that is over a face; one where that part is
    short. line_shape: the shape of the line."""
    tolerance = ON_BORDER * face.half_width + contact_frame.shift
    part = clip_segment(end[0], end[1], face_corner, face.count, tolerance)
    plane = _plane_of_face(contact_frame, face, face_corner[0])
    if part.low > part.high:
        return 0
    written = int(0)
    length = wp.length(end[1] - end[0])
    shortest = FLAT_CORNER * wp.min(face.half_width, Real(0.5) * length)
    is_short = (part.high - part.low) * length <= wp.max(shortest, contact_frame.merge_distance)
    ends = wp.where(is_short, 1, 2)
    first = Vec3()
    least = Real(wp.inf)
    for k in range(ends):
        t = part.low if k == 0 else part.high
        edge = part.low_edge if k == 0 else part.high_edge
        on_line = end[0] + t * (end[1] - end[0])
        p = _moved_onto_face(contact_frame, face_corner, face.count, on_line)
        height_face = plane[2] - plane[0] * p[0] - plane[1] * p[1]
        offset = is_beside(p, on_line)
        height_line = height_on_line(
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
        # Both ends of a line beside a corner are clamped to it: one contact of a point, the closer.
        is_same = written == 1 and is_beside(p, first) <= contact_frame.merge_distance
        if is_same:
            set_kind(out, row, 1, 0)
        if separation < contact_frame.max_separation and (not is_same or separation < least):
            written = wp.where(is_same, 0, written)
            kind = wp.where(is_same, 0, ends - 1)
            first = p
            least = separation
            point = lifted_from_frame(contact_frame, p[0], p[1], height_a)
            emit_contact(
                out, row + written, point, contact_frame.normal, separation, id_a, id_b, kind
            )
            written += 1
    return written


@wp.func
def has_round_side(shape_type: int) -> bool:
    """Whether a shape has lines on a curved side, any of which may face an edge."""
    return shape_type == CAPSULE or shape_type == CYLINDER or shape_type == CONE


@wp.func
def _border_at(
    face: Feature, corner: wp.array[Vec3], code: wp.array[int], edge: int, p: Vec3, near: Real
) -> int:
    """Id of a face's edge that contains footprint p, or of its end if that is within `near` [m], as
    in `feature_at`."""
    following = (edge + 1) % face.count
    if is_beside(corner[edge], p) < near:
        return code[edge]
    return code[following] if is_beside(corner[following], p) < near else code[EDGES + edge]


@wp.struct
class _LineOverlap:
    """The overlap of the footprints of two nearly parallel lines, as coordinates along the line
    midway [m].

    low, high: its ends. margin_low, margin_high: by how much a contact is inside of these.
    start_a, start_b: first ends of both lines; rate_a, rate_b: from there to the second ones, that
    of a positive. low_b, high_b: ends of line b in order.
    """

    low: Real
    high: Real
    margin_low: Real
    margin_high: Real
    start_a: Real
    start_b: Real
    rate_a: Real
    rate_b: Real
    low_b: Real
    high_b: Real


@wp.func
def _overlap_of_lines(
    end_a: wp.array[Vec3], end_b: wp.array[Vec3], along_a: Vec2, along_b: Vec2
) -> _LineOverlap:
    """The overlap of two nearly parallel lines; `low` is above `high` where there is none."""
    result = _LineOverlap()
    facing = wp.sign(wp.dot(along_a, along_b))
    e = wp.normalize(along_a / wp.length(along_a) + facing * along_b / wp.length(along_b))
    result.start_a = e[0] * end_a[0][0] + e[1] * end_a[0][1]
    result.start_b = e[0] * end_b[0][0] + e[1] * end_b[0][1]
    result.rate_a = wp.dot(along_a, e)
    result.rate_b = wp.dot(along_b, e)
    result.low_b = wp.min(result.start_b, result.start_b + result.rate_b)
    result.high_b = wp.max(result.start_b, result.start_b + result.rate_b)
    result.low = wp.max(result.start_a, result.low_b)
    result.high = wp.min(result.start_a + result.rate_a, result.high_b)
    result.margin_low = END_MARGIN * _apart(
        end_a,
        end_b,
        (result.low - result.start_a) / result.rate_a,
        (result.low - result.start_b) / result.rate_b,
    )
    result.margin_high = END_MARGIN * _apart(
        end_a,
        end_b,
        (result.high - result.start_a) / result.rate_a,
        (result.high - result.start_b) / result.rate_b,
    )
    return result


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
    overlap = _overlap_of_lines(end_a, end_b, along_a, along_b)
    long = overlap.high - overlap.margin_high - overlap.low - overlap.margin_low
    if long <= ON_BORDER * wp.min(length_a, length_b):
        return 0
    written = int(0)
    a_is_edge = not has_round_side(shape_a.type)
    ends = wp.where(long <= contact_frame.merge_distance, 1, 2)
    for k in range(ends):
        s = overlap.low + overlap.margin_low
        ends_a = overlap.low == overlap.start_a
        ends_b = overlap.low_b == overlap.start_b
        if k == 1:
            s = overlap.high - overlap.margin_high
            ends_a = overlap.high == overlap.start_a + overlap.rate_a
            ends_b = overlap.high_b != overlap.start_b
        on_a = end_a[0] + ((s - overlap.start_a) / overlap.rate_a) * (end_a[1] - end_a[0])
        on_b = end_b[0] + ((s - overlap.start_b) / overlap.rate_b) * (end_b[1] - end_b[0])
        middle = Real(0.5) * (on_a + on_b)
        if is_beside(on_a, on_b) <= contact_frame.shift:
            middle = wp.where(a_is_edge, on_a, on_b)
        height_a = height_on_line(
            contact_frame, shape_a, True, a, middle, on_a[2], is_beside(on_a, middle)
        )
        height_b = height_on_line(
            contact_frame, shape_b, False, b, middle, on_b[2], is_beside(on_b, middle)
        )
        id_a = wp.where(ends_a, code_a[k], a.code)
        id_b = wp.where(ends_a, b.code, code_b[wp.where(ends_b, k, 1 - k)])
        if height_b - height_a < contact_frame.max_separation:
            point = lifted_from_frame(contact_frame, middle[0], middle[1], height_a)
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
    height_a = height_on_line(contact_frame, shape_a, True, a, on_a, on_a[2], Real(0.0))
    height_b = height_on_line(contact_frame, shape_b, False, b, on_b, on_b[2], Real(0.0))
    if height_b - height_a >= contact_frame.max_separation:
        return 0
    point = lifted_from_frame(contact_frame, on_a[0], on_a[1], height_a)
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
    return is_beside(end_a[0] + t_a * (end_a[1] - end_a[0]), end_b[0] + t_b * (end_b[1] - end_b[0]))
