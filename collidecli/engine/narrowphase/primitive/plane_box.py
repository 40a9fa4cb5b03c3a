"""Plane and box."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3

MAX_CONTACTS = 8


@wp.func
def collide_plane_box(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of the half-space z <= 0 and a box: each of its corners closer than the maximum separation.

    Args:
        size_a: unused. size_b: half extents along x, y, z [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most MAX_CONTACTS. Features of b: corners 0 to 7, with bit 0, 1, 2 set on the
        positive side of x, y, z. Kind: 0 for one corner (point), 1 for two (edge), 2 for more (face).
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    x = size_b[0] * rotation[2, 0]
    y = size_b[1] * rotation[2, 1]
    z = size_b[2] * rotation[2, 2]
    if center[2] - wp.abs(x) - wp.abs(y) - wp.abs(z) >= max_separation:
        return 0
    near = 0
    for corner in range(8):
        if center[2] + _signed(corner, x, y, z) < max_separation:
            near += 1
    kind = wp.min(near - 1, 2)
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    count = 0
    for corner in range(8):
        separation = center[2] + _signed(corner, x, y, z)
        if separation < max_separation:
            point = Vec3(
                center[0]
                + _signed(corner, size_b[0] * rotation[0, 0], size_b[1] * rotation[0, 1], size_b[2] * rotation[0, 2]),
                center[1]
                + _signed(corner, size_b[0] * rotation[1, 0], size_b[1] * rotation[1, 1], size_b[2] * rotation[1, 2]),
                Real(0.0),
            )
            emit_contact(out, row + count, point, up, separation, -1, corner, kind)
            count += 1
    return count


@wp.func
def _signed(corner: int, x: Real, y: Real, z: Real) -> Real:
    """Sum of x, y and z with the corner's signs."""
    total = x
    if corner & 1 == 0:
        total = -x
    if corner & 2 == 0:
        total -= y
    else:
        total += y
    if corner & 4 == 0:
        return total - z
    return total + z
