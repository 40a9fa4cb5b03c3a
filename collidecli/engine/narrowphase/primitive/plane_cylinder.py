"""Plane and cylinder."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry.nearest_on_primitive import lowest_on_rim
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 5


@wp.func
def collide_plane_cylinder(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of the half-space z <= 0 and a cylinder: points of its rims closer than the maximum separation.

    Of the lower cap's rim, its lowest point and the three at quarter turns from it; of the upper cap's, its lowest
    point, which with the first bounds the contact line of a lying cylinder.

    Args:
        size_a: unused. size_b: (radius, half height, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS. Features of b: 0 to 3 on the cap at -z, 4 to 7 on that at +z;
        the lowest point first, then by quarter turns about +z. Kind: 0 for one contact (point), 1 for two (edge), 2 for
        more (face).
    Degenerate: a cylinder with a vertical axis has its own +x as the lowest direction; of a horizontal one, the cap at
    -z is the lower.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    axis = wp.quat_rotate(rotation, Vec3(Real(0.0), Real(0.0), Real(1.0)))
    radius = size_b[0]
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if center[2] - size_b[1] * wp.abs(axis[2]) - radius * flatness >= max_separation:
        return 0
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    lowest = radius * lowest_on_rim(rotation, axis)
    aside = wp.cross(axis, lowest)
    low_cap = 0
    rise = size_b[1] * axis
    if axis[2] < Real(0.0):
        low_cap = 4
        rise = -rise
    cap = center - rise
    count = 0
    for quarter in range(4):
        offset = lowest
        if quarter == 1:
            offset = aside
        if quarter == 2:
            offset = -lowest
        if quarter == 3:
            offset = -aside
        point = cap + offset
        if point[2] < max_separation:
            emit_contact(out, row + count, Vec3(point[0], point[1], Real(0.0)), up, point[2], -1, low_cap + quarter, 0)
            count += 1
    point = center + rise + lowest
    if point[2] < max_separation:
        emit_contact(out, row + count, Vec3(point[0], point[1], Real(0.0)), up, point[2], -1, 4 - low_cap, 0)
        count += 1
    kind = wp.min(count - 1, 2)
    set_kind(out, row, count, kind)
    return count
