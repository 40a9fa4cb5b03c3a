"""Plane and capsule."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 2


@wp.func
def collide_plane_capsule(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of the half-space z <= 0 and a capsule: the lowest point, and the far end of the line under its side.

    Args:
        size_a: unused. size_b: (radius, half length, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS. Features of b: 0 its end at -z, 1 its end at +z.
    Degenerate: a horizontal capsule has both ends equally low, 0 first. A capsule steeper than 45 degrees, or of length
    0, has its lowest point only.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radius = size_b[0]
    axis = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), Vec3(Real(0.0), Real(0.0), Real(1.0)))
    low_end = 0
    if axis[2] < Real(0.0):
        low_end = 1
        axis = -axis
    along = size_b[1] * axis
    separation = center[2] - along[2] - radius
    if separation >= max_separation:
        return 0
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    flatness = axis[0] * axis[0] + axis[1] * axis[1]
    count = 1
    if flatness > Real(0.5) and size_b[1] > Real(0.0):
        # The lowest point of the upper end's ball is inside the capsule. The line under the side is one radius off the
        # axis, along the unit vector (axis_z * axis - up) / across.
        across = wp.sqrt(flatness)
        sideways = radius * axis[2] / across
        far_separation = center[2] + along[2] - radius * across
        if far_separation < max_separation:
            far = center + along + sideways * axis
            emit_contact(out, row + 1, Vec3(far[0], far[1], Real(0.0)), up, far_separation, -1, 1 - low_end, 1)
            count = 2
    lowest = center - along
    emit_contact(out, row, Vec3(lowest[0], lowest[1], Real(0.0)), up, separation, -1, low_end, count - 1)
    return count
