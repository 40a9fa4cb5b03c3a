"""Plane and each primitive with a closed form; see `plane_convex_mesh` and `triangles.mesh_colliders` for other shapes.

Every function has these arguments and result:

Args:
    size_a: unused: the plane is the half-space z <= 0 of its frame. size_b: size of the primitive, see `ShapeType` [m].
    pose_b_to_a: pose of b in a's frame.
    max_separation: contacts with at least this separation are omitted [m].
    out, row: contacts are written to rows `row` and up; a's feature is -1.
Returns:
    number of contacts written.
"""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry.hulls import HullShape, farthest_vertex, hull_point
from collidecli.engine.geometry.primitives import Primitive, lowest_on_rim
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.features import MAX_CODES, POINT, RIM_COUNT, feature_corners, support_feature

UP = wp.constant(Vec3(Real(0.0), Real(0.0), Real(1.0)))
APEX = wp.constant(4)


@wp.func
def _emit(out: ContactBuffer, row: int, above: Vec3, separation: Real, feature: int, kind: int):
    """Writes the contact at the plane's point below a point."""
    emit_contact(out, row, Vec3(above[0], above[1], Real(0.0)), UP, separation, -1, feature, kind)


@wp.func
def collide_plane_sphere(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of a plane and a sphere: its lowest point."""
    center = wp.transform_get_translation(pose_b_to_a)
    separation = center[2] - size_b[0]
    if separation >= max_separation:
        return 0
    _emit(out, row, center, separation, -1, 0)
    return 1


@wp.func
def collide_plane_capsule(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of a plane and a capsule: the lowest point, and the far end of the line under its side; at most 2.

    Features of b: 0 its end at -z, 1 its end at +z.
    Degenerate: a horizontal capsule has both ends equally low, 0 first. A capsule steeper than 45 degrees, or of length
    0, has its lowest point only.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radius = size_b[0]
    axis = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), UP)
    low_end = 0
    if axis[2] < Real(0.0):
        low_end = 1
        axis = -axis
    along = size_b[1] * axis
    separation = center[2] - along[2] - radius
    if separation >= max_separation:
        return 0
    flatness = axis[0] * axis[0] + axis[1] * axis[1]
    count = 1
    if flatness > Real(0.5) and size_b[1] > Real(0.0):
        # The lowest point of the upper end's ball is inside the capsule. The line under the side is one radius off the
        # axis, along the unit vector (axis_z * axis - up) / across.
        across = wp.sqrt(flatness)
        sideways = radius * axis[2] / across
        far_separation = center[2] + along[2] - radius * across
        if far_separation < max_separation:
            _emit(out, row + 1, center + along + sideways * axis, far_separation, 1 - low_end, 1)
            count = 2
    _emit(out, row, center - along, separation, low_end, count - 1)
    return count


@wp.func
def collide_plane_box(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of a plane and a box: each of its corners closer than the maximum separation.

    Features of b: corners 0 to 7, with bit 0, 1, 2 set on the positive side of x, y, z. Kind: 0 for one corner (point),
    1 for two (edge), 2 for more (face).
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    x = size_b[0] * rotation[2, 0]
    y = size_b[1] * rotation[2, 1]
    z = size_b[2] * rotation[2, 2]
    if center[2] - wp.abs(x) - wp.abs(y) - wp.abs(z) >= max_separation:
        return 0
    count = 0
    for corner in range(8):
        separation = center[2] + _signed(corner, x, y, z)
        if separation < max_separation:
            above = Vec3(
                center[0]
                + _signed(corner, size_b[0] * rotation[0, 0], size_b[1] * rotation[0, 1], size_b[2] * rotation[0, 2]),
                center[1]
                + _signed(corner, size_b[0] * rotation[1, 0], size_b[1] * rotation[1, 1], size_b[2] * rotation[1, 2]),
                Real(0.0),
            )
            _emit(out, row + count, above, separation, corner, 0)
            count += 1
    set_kind(out, row, count, wp.min(count - 1, 2))
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


@wp.func
def _quarter(lowest: Vec3, aside: Vec3, k: int) -> Vec3:
    """Point k of a rim, relative to its centre: the lowest, then by quarter turns."""
    if k == 1:
        return aside
    if k == 2:
        return -lowest
    if k == 3:
        return -aside
    return lowest


@wp.func
def collide_plane_cylinder(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of a plane and a cylinder: points of its rims closer than the maximum separation; at most 5.

    Of the lower cap's rim, its lowest point and the three at quarter turns from it; of the upper cap's, its lowest
    point, which with the first bounds the contact line of a lying cylinder.

    Features of b: 0 to 3 on the cap at -z, 4 to 7 on that at +z; the lowest point first, then by quarter turns about
    +z. Kind: 0 for one contact (point), 1 for two (edge), 2 for more (face).
    Degenerate: a cylinder with a vertical axis has its own +x as the lowest direction; of a horizontal one, the cap at
    -z is the lower.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    axis = wp.quat_rotate(rotation, UP)
    radius = size_b[0]
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if center[2] - size_b[1] * wp.abs(axis[2]) - radius * flatness >= max_separation:
        return 0
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
        point = cap + _quarter(lowest, aside, quarter)
        if point[2] < max_separation:
            _emit(out, row + count, point, point[2], low_cap + quarter, 0)
            count += 1
    point = center + rise + lowest
    if point[2] < max_separation:
        _emit(out, row + count, point, point[2], 4 - low_cap, 0)
        count += 1
    set_kind(out, row, count, wp.min(count - 1, 2))
    return count


@wp.func
def collide_plane_cone(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of a plane and a cone: its apex and four points of its rim closer than the maximum separation.

    Features of b: 0 to 3 on the rim, the lowest point first, then by quarter turns about +z; 4 the apex. Kind: 0 for
    one contact (point), 1 for two (edge), 2 for more (face).
    Degenerate: a cone with a vertical axis has its own +x as the lowest direction of the rim.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    axis = wp.quat_rotate(rotation, UP)
    radius = size_b[0]
    apex = center + size_b[1] * axis
    base = center - size_b[1] * axis
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if wp.min(apex[2], base[2] - radius * flatness) >= max_separation:
        return 0
    lowest = radius * lowest_on_rim(rotation, axis)
    aside = wp.cross(axis, lowest)
    count = 0
    for feature in range(5):
        point = base + _quarter(lowest, aside, feature)
        if feature == APEX:
            point = apex
        if point[2] < max_separation:
            _emit(out, row + count, point, point[2], feature, 0)
            count += 1
    set_kind(out, row, count, wp.min(count - 1, 2))
    return count


@wp.func
def collide_plane_ellipsoid(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of a plane and an ellipsoid: its lowest point."""
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    # The support point along d is D D d / |D d| with D the semi-axes; its distance from the centre along d is |D d|.
    scaled = wp.cw_mul(size_b, wp.quat_rotate_inv(rotation, UP))
    height = wp.length(scaled)
    separation = center[2] - height
    if separation >= max_separation:
        return 0
    _emit(out, row, center - wp.quat_rotate(rotation, wp.cw_mul(size_b, scaled)) / height, separation, -1, 0)
    return 1


# Plane and convex hull.

MAX_CONTACTS = RIM_COUNT + 1
"""The corners of the face that faces the plane, and the deepest vertex if it is none of them."""


@wp.func
def collide_plane_convex_mesh(
    plane: Primitive, hull: HullShape, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contacts of a plane and a hull: the corners of the face or edge that faces the plane, and the deepest vertex.

    Args:
        pose_b_to_a: pose of the hull in the plane's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up; features: -1, and the vertex as in `convex.features`.
    Returns:
        number of contacts written, at most MAX_CONTACTS. The smallest separation is exact.
    """
    up = Vec3(Real(0.0), Real(0.0), Real(1.0))
    down_in_hull = -wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), up)
    deepest = farthest_vertex(hull, down_in_hull)
    corner = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    code = wp.zeros(shape=MAX_CODES, dtype=int)
    feature = support_feature(hull, down_in_hull)
    if feature.kind != POINT:
        feature_corners(hull, feature, down_in_hull, corner, code)
    written = int(0)
    has_deepest = int(0)
    for k in range(feature.count):
        p = wp.transform_point(pose_b_to_a, corner[k])
        if code[k] == 3 * deepest:
            has_deepest = 1
        if p[2] < max_separation:
            on_plane = Vec3(p[0], p[1], Real(0.0))
            emit_contact(out, row + written, on_plane, up, p[2], -1, code[k], 0)
            written += 1
    if has_deepest == 0:
        p = wp.transform_point(pose_b_to_a, hull_point(hull, hull.vertex + deepest))
        if p[2] < max_separation:
            on_plane = Vec3(p[0], p[1], Real(0.0))
            emit_contact(out, row + written, on_plane, up, p[2], -1, 3 * deepest, 0)
            written += 1
    return written
