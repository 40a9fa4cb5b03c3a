"""Sphere and sphere."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 1


@wp.func
def collide_sphere_sphere(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of two spheres: the points of each on the line of centres.

    Args:
        size_a, size_b: (radius, 0, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS.
    Degenerate: coincident centres give the normal +z of a.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    center_distance = wp.length(center_b)
    separation = center_distance - size_a[0] - size_b[0]
    if separation >= max_separation:
        return 0
    normal = Vec3(Real(0.0), Real(0.0), Real(1.0))
    if center_distance > Real(0.0):
        normal = center_b / center_distance
    emit_contact(out, row, size_a[0] * normal, normal, separation, -1, -1, 0)
    return 1
