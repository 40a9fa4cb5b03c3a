"""Sphere and capsule."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.segments import END_HIGH, END_LOW, SIDE, TOUCHING, away_from_axis

MAX_CONTACTS = 1


@wp.func
def collide_sphere_capsule(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of a sphere and a capsule: closest point of the capsule's inner segment to the sphere's centre.

    Args:
        size_a: (radius, 0, 0) [m]. size_b: (radius, half length, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS. Features of b: 0 its end at -z, 1 its end at +z, 2 its side.
    Degenerate: a centre on the segment is separated along -x of the capsule.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radii = size_a[0] + size_b[0]
    bound = radii + max_separation + size_b[1]
    if bound <= Real(0.0) or wp.dot(center, center) >= bound * bound:
        return 0
    rotation = wp.transform_get_rotation(pose_b_to_a)
    in_b = -wp.quat_rotate_inv(rotation, center)
    z = wp.clamp(in_b[2], -size_b[1], size_b[1])
    feature = SIDE
    if z != in_b[2]:
        feature = END_HIGH if z > Real(0.0) else END_LOW
    outward = Vec3(in_b[0], in_b[1], in_b[2] - z)
    core_distance = wp.length(outward)
    separation = core_distance - radii
    if separation >= max_separation:
        return 0
    if core_distance > TOUCHING * size_b[1]:
        outward = outward / core_distance
    else:
        outward = away_from_axis(in_b)
    normal = -wp.quat_rotate(rotation, outward)
    emit_contact(out, row, size_a[0] * normal, normal, separation, -1, feature, 0)
    return 1
