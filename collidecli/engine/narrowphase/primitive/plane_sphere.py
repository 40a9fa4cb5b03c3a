"""Plane and sphere."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 1


@wp.func
def collide_plane_sphere(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of the half-space z <= 0 and a sphere: its lowest point.

    Args:
        size_a: unused. size_b: (radius, 0, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    separation = center[2] - size_b[0]
    if separation >= max_separation:
        return 0
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    emit_contact(out, row, Vec3(center[0], center[1], Real(0.0)), up, separation, -1, -1, 0)
    return 1
