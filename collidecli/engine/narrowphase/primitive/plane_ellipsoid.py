"""Plane and ellipsoid."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 1


@wp.func
def collide_plane_ellipsoid(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of the half-space z <= 0 and an ellipsoid: its lowest point.

    Args:
        size_a: unused. size_b: semi-axes along x, y, z [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    rotation = wp.transform_get_rotation(pose_b_to_a)
    # The support point along d is D D d / |D d| with D the semi-axes; its distance from the centre along d is |D d|.
    scaled = wp.cw_mul(size_b, wp.quat_rotate_inv(rotation, up))
    height = wp.length(scaled)
    separation = center[2] - height
    if separation >= max_separation:
        return 0
    lowest = center - wp.quat_rotate(rotation, wp.cw_mul(size_b, scaled)) / height
    emit_contact(out, row, Vec3(lowest[0], lowest[1], Real(0.0)), up, separation, -1, -1, 0)
    return 1
