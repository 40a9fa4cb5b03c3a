"""Sphere and box."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.nearest_on_box import nearest_on_box
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 1


@wp.func
def collide_sphere_box(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of a sphere and a box: the point of its surface nearest to the sphere's centre.

    Args:
        size_a: (radius, 0, 0) [m]. size_b: half extents along x, y, z [m].
        pose_b_to_a: b's frame in a's.
        reach: contacts whose separation is at least this are left out [m].
        out, row: contacts go to rows `row` and up.
    Returns:
        how many were written, at most MAX_CONTACTS. Features of b: `box_feature`.
    Degenerate: as `nearest_on_box`: a centre inside leaves through the nearest face.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radius = size_a[0]
    bound = radius + max_separation + wp.length(size_b)
    if bound <= Real(0.0) or wp.dot(center, center) >= bound * bound:
        return 0
    rotation = wp.transform_get_rotation(pose_b_to_a)
    nearest = nearest_on_box(size_b, -wp.quat_rotate_inv(rotation, center))
    separation = nearest.distance - radius
    if separation >= max_separation:
        return 0
    normal = -wp.quat_rotate(rotation, nearest.outward)
    emit_contact(out, row, radius * normal, normal, separation, -1, nearest.feature, 0)
    return 1
