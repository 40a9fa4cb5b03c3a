"""Sphere and cylinder."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.nearest_on_round import nearest_on_cylinder
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 1


@wp.func
def collide_sphere_cylinder(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of a sphere and a cylinder: the point of its surface nearest to the sphere's centre.

    Args:
        size_a: (radius, 0, 0) [m]. size_b: (radius, half height, 0) [m].
        pose_b_to_a: b's frame in a's.
        reach: contacts whose separation is at least this are left out [m].
        out, row: contacts go to rows `row` and up.
    Returns:
        how many were written, at most MAX_CONTACTS. Features of b: 0 and 1 the caps at -z and +z,
        2 the side, 3 and 4 the rims at -z and +z.
    Degenerate: a centre on the axis nearest to the side leaves along +x of the cylinder, one in the middle of both
    caps by that at +z.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radius = size_a[0]
    bound = radius + max_separation + wp.sqrt(size_b[0] * size_b[0] + size_b[1] * size_b[1])
    if bound <= Real(0.0) or wp.dot(center, center) >= bound * bound:
        return 0
    rotation = wp.transform_get_rotation(pose_b_to_a)
    nearest = nearest_on_cylinder(size_b, -wp.quat_rotate_inv(rotation, center))
    separation = nearest.distance - radius
    if separation >= max_separation:
        return 0
    normal = -wp.quat_rotate(rotation, nearest.outward)
    emit_contact(out, row, radius * normal, normal, separation, -1, nearest.feature, 0)
    return 1
