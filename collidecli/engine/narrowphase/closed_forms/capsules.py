"""Colliders of a capsule with a capsule and with a box."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.real import UP, Pose, Real, Vec3
from collidecli.engine.geometry.segments import (
    END_HIGH,
    END_LOW,
    SIDE,
    SegmentBox,
    nearest_of_segments,
    segment_and_box,
    segment_end,
)
from collidecli.engine.narrowphase.convex.feature_types import (
    ROUND_FACE_TILT,
)

FACE_COSINE = wp.constant(Real(0.9999))
"""Cosine of the angle (0.8 degrees) to a face's normal above which a contact has two points along
that face."""

PARALLEL_SINE = wp.constant(Real(1e-4))
"""Sine of the angle below which a capsule touches an edge at two points; see
`_emit_shared_ends`."""

SLACK = wp.constant(Real(5e-10))
"""Distance relative to a face's half extent up to which a point beyond its border is on it, by
rounding."""

SAME_POINT = wp.constant(Real(2e-9))
"""Distance relative to the sizes below which two contacts are one, as for a capsule's end over an
edge."""


@wp.struct
class _CapsuleInBox:
    """The capsule in the box's frame, with the closest points of its segment and the box."""

    center: Vec3
    axis: Vec3
    half_length: Real
    radius: Real
    half: Vec3
    nearest: SegmentBox


@wp.struct
class _Touch:
    """A contact in the box's frame: the point on the capsule."""

    point: Vec3
    separation: Real
    feature_a: int
    feature_b: int


@wp.func
def _is_beyond(center: Vec3, axis: Vec3, size_a: Vec3, size_b: Vec3, max_separation: Real) -> bool:
    """Whether a face of the box separates a capsule, in the box's frame, by at least
    `max_separation` [m]. size_a, size_b: as in `collide_capsule_box`."""
    for i in range(3):
        if (
            wp.abs(center[i]) - size_b[i] - size_a[1] * wp.abs(axis[i]) - size_a[0]
            >= max_separation
        ):
            return True
    return False


@wp.func
def _touches(capsule: _CapsuleInBox, nearest: _Touch):
    """Two contacts along the face or edge that the capsule touches, and whether there are two; else
    the first is `nearest`."""
    first = nearest
    second = nearest
    two = False
    outward = capsule.nearest.outward
    face = _largest(outward)
    slant = wp.dot(outward, capsule.axis)
    if wp.abs(outward[face]) > FACE_COSINE:
        # At more than 45 degrees the capsule's side does not support the direction to the box.
        if slant * slant < Real(0.5):
            first, second, two = _along_face(capsule, face, nearest)
    else:
        edge = _largest(capsule.axis)
        is_parallel = _square_off(capsule.axis, edge) < PARALLEL_SINE * PARALLEL_SINE
        # Where the closest point is the end of the edge, rounding leaves a component along it.
        if is_parallel and wp.abs(outward[edge]) <= ROUND_FACE_TILT:
            first, second, two = _along_edge(capsule, edge, nearest)
    scale = capsule.radius + capsule.half_length + wp.length(capsule.half)
    if two and wp.length(first.point - second.point) <= SAME_POINT * scale:
        two = False
        if second.separation < first.separation:
            first = second
    return first, second, two


@wp.func
def _emit_touch(
    touch: _Touch, pose_b_to_a: Pose, normal: Vec3, kind: int, out: ContactBuffer, row: int
):
    """Writes a contact of the capsule and the box. normal: in the capsule's frame."""
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    point = rotation * touch.point + wp.transform_get_translation(pose_b_to_a)
    emit_contact(out, row, point, normal, touch.separation, touch.feature_a, touch.feature_b, kind)


@wp.func
def collide_capsule_box(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a capsule and a box: the closest or deepest point, or two along the face or edge
    that it touches.

    Args:
        size_a: (radius, half length, 0) [m]. size_b: half extents along x, y, z [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most 2. Features of a: 0 the end at -z, 1 the end at +z, 2
            the side;
        of b: `box_feature`.
    Degenerate: a segment through the box's centre is separated through the closest face, x before y
    before z, on its
    positive side; ties between a face and an edge go to the face.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    bound = size_a[0] + size_a[1] + max_separation + wp.length(size_b)
    if bound <= Real(0.0) or wp.dot(center_b, center_b) > bound * bound:
        return 0
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    center = -(center_b * rotation)
    axis = rotation[2]
    if _is_beyond(center, axis, size_a, size_b, max_separation):
        return 0
    nearest = segment_and_box(center, axis, size_a[1], size_b)
    capsule = _CapsuleInBox(center, axis, size_a[1], size_a[0], size_b, nearest)
    first = _nearest_touch(capsule)
    if first.separation >= max_separation:
        return 0
    first, second, two = _touches(capsule, first)
    normal = -(rotation * nearest.outward)
    kind = 0
    count = 0
    if two and first.separation < max_separation and second.separation < max_separation:
        kind = 1
    if first.separation < max_separation:
        _emit_touch(first, pose_b_to_a, normal, kind, out, row)
        count = 1
    if two and second.separation < max_separation:
        _emit_touch(second, pose_b_to_a, normal, kind, out, row + count)
        count += 1
    return count


@wp.func
def _nearest_touch(capsule: _CapsuleInBox) -> _Touch:
    on_segment = capsule.nearest.on_segment
    outward = capsule.nearest.outward
    point = capsule.center + on_segment * capsule.axis - capsule.radius * outward
    feature_b = primitives.box_feature(
        primitives.side_of(outward[0]),
        primitives.side_of(outward[1]),
        primitives.side_of(outward[2]),
    )
    separation = capsule.nearest.distance - capsule.radius
    return _Touch(point, separation, segment_end(on_segment, capsule.half_length), feature_b)


@wp.func
def _along_face(capsule: _CapsuleInBox, face: int, nearest: _Touch):
    """Contacts at both ends of the part over a face of the line under the capsule's side, and
    whether there are two.

    The line is one radius from the axis, towards the box. `nearest` remains one of the two if it is
    at an end of the capsule: the lowest point of an inclined capsule is not on the line.
    """
    outward = capsule.nearest.outward
    slant = wp.dot(outward, capsule.axis)
    under = (outward - slant * capsule.axis) * (
        -capsule.radius / wp.sqrt(Real(1.0) - slant * slant)
    )
    middle = capsule.center + under
    plane = wp.sign(outward[face]) * capsule.half[face]
    low = -capsule.half_length
    high = capsule.half_length
    face_feature = primitives.box_feature(0, 0, 0) + primitives.feature_step(
        face, primitives.side_of(outward[face])
    )
    low_border = face_feature
    high_border = face_feature
    for j in range(3):
        if j != face:
            # Projected along the normal into the face's plane, the line is start + t * rate in the
            # face's axis j.
            lean = outward[j] / outward[face]
            start = middle[j] - (middle[face] - plane) * lean
            rate = capsule.axis[j] - capsule.axis[face] * lean
            half = capsule.half[j] * (Real(1.0) + SLACK)
            if wp.abs(rate) * capsule.half_length > SLACK * half:
                t_in = (-half - start) / rate
                t_out = (half - start) / rate
                step = primitives.feature_step(j, primitives.side_of(rate))
                if rate < Real(0.0):
                    t_in = (half - start) / rate
                    t_out = (-half - start) / rate
                if t_in > low:
                    low = t_in
                    low_border = face_feature - step
                if t_out < high:
                    high = t_out
                    high_border = face_feature + step
            elif wp.abs(start) > half * (Real(1.0) + SLACK):
                high = low
    two = high - low > SLACK * capsule.half_length
    first = _on_line(capsule, middle, face, plane, low, low_border)
    second = _on_line(capsule, middle, face, plane, high, high_border)
    on_segment = capsule.nearest.on_segment
    is_end = wp.abs(on_segment) >= capsule.half_length
    scale = capsule.radius + capsule.half_length + wp.length(capsule.half)
    falls_short = wp.min(first.separation, second.separation) > nearest.separation + SLACK * scale
    # If no part of the line is over the face, its ends may be beyond those of the capsule.
    if falls_short or low > high or ((is_end or not two) and _is_over_face(capsule, face)):
        if on_segment > Real(0.0):
            second = first
        first = nearest
    return first, second, two


@wp.func
def _on_line(
    capsule: _CapsuleInBox, middle: Vec3, face: int, plane: Real, at: Real, feature_b: int
) -> _Touch:
    point = middle + at * capsule.axis
    separation = (point[face] - plane) / capsule.nearest.outward[face]
    return _Touch(point, separation, segment_end(at, capsule.half_length), feature_b)


@wp.func
def _is_over_face(capsule: _CapsuleInBox, face: int) -> bool:
    """Whether the closest point's witness on the box is on the face, to rounding."""
    nearest = capsule.nearest
    witness = (
        capsule.center + nearest.on_segment * capsule.axis - nearest.distance * nearest.outward
    )
    over = True
    for j in range(3):
        if j != face and wp.abs(witness[j]) > capsule.half[j] * (Real(1.0) + SLACK):
            over = False
    return over


@wp.func
def _along_edge(capsule: _CapsuleInBox, edge: int, nearest: _Touch):
    """Contacts at both ends of the overlap of a capsule and a nearly parallel edge of the box, and
    whether there are two.
    """
    projected = capsule.half_length * wp.abs(capsule.axis[edge])
    low = wp.max(-capsule.half[edge], capsule.center[edge] - projected)
    high = wp.min(capsule.half[edge], capsule.center[edge] + projected)
    two = high - low > SLACK * capsule.half_length
    first = nearest
    second = nearest
    if two:
        first = _over_edge(capsule, edge, low, nearest.feature_b)
        second = _over_edge(capsule, edge, high, nearest.feature_b)
    return first, second, two


@wp.func
def _over_edge(capsule: _CapsuleInBox, edge: int, at: Real, edge_feature: int) -> _Touch:
    outward = capsule.nearest.outward
    on_segment = (at - capsule.center[edge]) / capsule.axis[edge]
    on_axis = capsule.center + on_segment * capsule.axis
    # The witness on the box is exactly on its edge: the deviation from parallel affects the witness
    # on the capsule.
    on_edge = Vec3(at, at, at)
    for j in range(3):
        if j != edge:
            on_edge[j] = wp.sign(outward[j]) * capsule.half[j]
    separation = wp.dot(outward, on_axis - on_edge) - capsule.radius
    point = on_edge + separation * outward
    # The overlap ends at a vertex of the box or at an end of the capsule.
    if wp.abs(at) >= capsule.half[edge]:
        return _Touch(
            point,
            separation,
            SIDE,
            edge_feature + primitives.feature_step(edge, primitives.side_of(at)),
        )
    return _Touch(point, separation, END_HIGH if on_segment > Real(0.0) else END_LOW, edge_feature)


@wp.func
def _largest(v: Vec3) -> int:
    largest = wp.where(wp.abs(v[1]) > wp.abs(v[0]), 1, 0)
    return 2 if wp.abs(v[2]) > wp.abs(v[largest]) else largest


@wp.func
def _square_off(axis: Vec3, along: int) -> Real:
    """Squared sine of the angle between unit `axis` and a coordinate axis."""
    square = Real(0.0)
    for j in range(3):
        if j != along:
            square += axis[j] * axis[j]
    return square


@wp.func
def collide_capsule_capsule(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of two capsules: the closest points of their inner segments; both ends of the
    overlap for parallel ones.

    Args:
        size_a, size_b: (radius, half length, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most 2. Features: 0 the end at -z, 1 the end at +z, 2 the
            side.
    Degenerate: see `nearest_of_segments`; segments that cross are separated along their common
        perpendicular.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    half_a = size_a[1]
    half_b = size_b[1]
    radii = size_a[0] + size_b[0]
    bound = radii + max_separation + half_a + half_b
    if bound <= Real(0.0) or wp.dot(center_b, center_b) > bound * bound:
        return 0
    axis_b = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), UP)
    nearest = nearest_of_segments(half_a, center_b, axis_b, half_b)
    if nearest.distance - radii >= max_separation:
        return 0
    normal = nearest.normal
    if axis_b[0] * axis_b[0] + axis_b[1] * axis_b[1] < PARALLEL_SINE * PARALLEL_SINE:
        projected = half_b * wp.abs(axis_b[2])
        low = wp.max(-half_a, center_b[2] - projected)
        high = wp.min(half_a, center_b[2] + projected)
        if high - low > SAME_POINT * (radii + half_a + half_b):
            return _emit_shared_ends(
                size_a, size_b, center_b, axis_b, low, high, normal, max_separation, out, row
            )
    point = size_a[0] * normal + Vec3(Real(0.0), Real(0.0), nearest.on_a)
    feature_a = segment_end(nearest.on_a, half_a)
    emit_contact(
        out,
        row,
        point,
        normal,
        nearest.distance - radii,
        feature_a,
        segment_end(nearest.on_b, half_b),
        0,
    )
    return 1


@wp.func
def _emit_shared_ends(
    size_a: Vec3,
    size_b: Vec3,
    center_b: Vec3,
    axis_b: Vec3,
    low: Real,
    high: Real,
    normal: Vec3,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of nearly parallel capsules at both ends, `low` and `high` on a's axis, of their
    segments' overlap."""
    count = 0
    for end in range(2):
        z = low if end == 0 else high
        feature_a = END_LOW if end == 0 else END_HIGH
        feature_b = SIDE
        if wp.abs(z) < size_a[1]:
            feature_a = SIDE
            feature_b = END_HIGH if (end == 1) == (axis_b[2] > Real(0.0)) else END_LOW
        on_a = Vec3(Real(0.0), Real(0.0), z)
        on_b = center_b + (z - center_b[2]) / axis_b[2] * axis_b
        separation = wp.dot(normal, on_b - on_a) - size_a[0] - size_b[0]
        if separation < max_separation:
            emit_contact(
                out,
                row + count,
                on_a + size_a[0] * normal,
                normal,
                separation,
                feature_a,
                feature_b,
                1,
            )
            count += 1
    if count == 1:
        set_kind(out, row, 1, 0)
    return count
