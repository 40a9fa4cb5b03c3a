"""Capsule and capsule."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.segments import END_HIGH, END_LOW, SIDE, nearest_of_segments, segment_end

PARALLEL_SINE = wp.constant(Real(1e-4))
"""Sine of the angle between axes below which capsules touch along a line. Over a length L its ends are L * sine beside
the true line, so a witness is (L * sine)^2 / (2 radius) off the surface: 5e-8 of L for a capsule ten times longer than
thick."""

SAME_POINT = wp.constant(Real(2e-9))
"""Distance relative to the sizes below which the two ends of parallel capsules' overlap are one contact."""


@wp.func
def collide_capsule_capsule(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of two capsules: the closest points of their inner segments; both ends of the overlap for parallel ones.

    Args:
        size_a, size_b: (radius, half length, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most 2. Features: 0 the end at -z, 1 the end at +z, 2 the side.
    Degenerate: see `nearest_of_segments`; segments that cross are separated along their common perpendicular.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    half_a = size_a[1]
    half_b = size_b[1]
    radii = size_a[0] + size_b[0]
    bound = radii + max_separation + half_a + half_b
    if bound <= Real(0.0) or wp.dot(center_b, center_b) >= bound * bound:
        return 0
    axis_b = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), Vec3(Real(0.0), Real(0.0), Real(1.0)))
    nearest = nearest_of_segments(half_a, center_b, axis_b, half_b)
    if nearest.distance - radii >= max_separation:
        return 0
    normal = nearest.normal
    if axis_b[0] * axis_b[0] + axis_b[1] * axis_b[1] < PARALLEL_SINE * PARALLEL_SINE:
        projected = half_b * wp.abs(axis_b[2])
        low = wp.max(-half_a, center_b[2] - projected)
        high = wp.min(half_a, center_b[2] + projected)
        if high - low > SAME_POINT * (radii + half_a + half_b):
            return _emit_shared_ends(size_a, size_b, center_b, axis_b, low, high, normal, max_separation, out, row)
    point = size_a[0] * normal + Vec3(Real(0.0), Real(0.0), nearest.on_a)
    feature_a = segment_end(nearest.on_a, half_a)
    emit_contact(out, row, point, normal, nearest.distance - radii, feature_a, segment_end(nearest.on_b, half_b), 0)
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
    """Contacts of nearly parallel capsules at both ends, `low` and `high` on a's axis, of their segments' overlap."""
    count = 0
    for end in range(2):
        z = low
        feature_a = END_LOW
        if end == 1:
            z = high
            feature_a = END_HIGH
        feature_b = SIDE
        if wp.abs(z) < size_a[1]:
            feature_a = SIDE
            feature_b = END_LOW
            if (end == 1) == (axis_b[2] > Real(0.0)):
                feature_b = END_HIGH
        on_a = Vec3(Real(0.0), Real(0.0), z)
        on_b = center_b + (z - center_b[2]) / axis_b[2] * axis_b
        separation = wp.dot(normal, on_b - on_a) - size_a[0] - size_b[0]
        if separation < max_separation:
            emit_contact(out, row + count, on_a + size_a[0] * normal, normal, separation, feature_a, feature_b, 1)
            count += 1
    if count == 1:
        set_kind(out, row, 1, 0)
    return count
