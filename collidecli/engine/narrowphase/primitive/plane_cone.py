"""Plane and cone."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry.nearest_on_primitive import lowest_on_rim
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 5
APEX = wp.constant(4)


@wp.func
def collide_plane_cone(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of the half-space z <= 0 and a cone: its apex and four points of its rim closer than the maximum
    separation.

    Args:
        size_a: unused. size_b: (base radius, half height, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS. Features of b: 0 to 3 on the rim, the lowest point first, then
        by quarter turns about +z; 4 the apex. Kind: 0 for one contact (point), 1 for two (edge), 2 for more (face).
    Degenerate: a cone with a vertical axis has its own +x as the lowest direction of the rim.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    axis = wp.quat_rotate(rotation, Vec3(Real(0.0), Real(0.0), Real(1.0)))
    radius = size_b[0]
    apex = center + size_b[1] * axis
    base = center - size_b[1] * axis
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if wp.min(apex[2], base[2] - radius * flatness) >= max_separation:
        return 0
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    lowest = radius * lowest_on_rim(rotation, axis)
    aside = wp.cross(axis, lowest)
    count = 0
    for feature in range(5):
        point = base + lowest
        if feature == 1:
            point = base + aside
        if feature == 2:
            point = base - lowest
        if feature == 3:
            point = base - aside
        if feature == APEX:
            point = apex
        if point[2] < max_separation:
            emit_contact(out, row + count, Vec3(point[0], point[1], Real(0.0)), up, point[2], -1, feature, 0)
            count += 1
    kind = wp.min(count - 1, 2)
    set_kind(out, row, count, kind)
    return count
