"""Colliders of a plane and each convex shape: the lowest points of the shape.

Every collider here has these arguments and result:

Args:
    size_a: unused: a plane is the half-space z <= 0 of its frame.
    size_b: size of b, see `ShapeType` [m].
    pose_b_to_a: pose of b in a's frame.
    max_separation: contacts with at least this separation are omitted [m].
    out, row: contacts are written to rows `row` and up; a's feature is -1.
Returns:
    number of contacts written.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry import primitives
from collidecli.engine.geometry.hulls import HullShape, farthest_vertex, hull_point
from collidecli.engine.geometry.real import UP, Pose, Quat, Real, Vec3
from collidecli.engine.narrowphase.convex.feature_types import (
    LINE_SINE,
    MAX_CODES,
    POINT,
    RIM_COUNT,
    ROUND_FACE_TILT,
    missed_by_samples,
)
from collidecli.engine.narrowphase.convex.features import feature_corners, support_feature

APEX = wp.constant(4)


@wp.func
def _emit(out: ContactBuffer, row: int, above: Vec3, separation: Real, feature: int, kind: int):
    """Writes the contact at the plane's point below a point."""
    emit_contact(out, row, Vec3(above[0], above[1], Real(0.0)), UP, separation, -1, feature, kind)


@wp.func
def collide_plane_sphere(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
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
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a plane and a capsule: the lowest point, and the far end of the line under its
    side; at most 2.

    Features of b: 0 its end at -z, 1 its end at +z. Degenerate: a horizontal capsule has both ends
    equally low, 0 first. A capsule steeper than 45 degrees, or of length 0, has its lowest point
    only.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radius = size_b[0]
    axis = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), UP)
    low_end = wp.where(axis[2] < Real(0.0), 1, 0)
    axis = -axis if low_end == 1 else axis
    along = size_b[1] * axis
    separation = center[2] - along[2] - radius
    if separation >= max_separation:
        return 0
    flatness = axis[0] * axis[0] + axis[1] * axis[1]
    count = 1
    if flatness > Real(0.5) and size_b[1] > Real(0.0):
        # The lowest point of the upper end's ball is inside the capsule. The line under the side is
        # one radius off the axis, along the unit vector (axis_z * axis - up) / across.
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
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a plane and a box: each of its corners closer than the maximum separation.

    Features of b: corners 0 to 7, with bit 0, 1, 2 set on the positive side of x, y, z. Kind: 0 for
    one corner (point), 1 for two (edge), 2 for more (face).
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    x, y, z = size_b[0] * rotation[2, 0], size_b[1] * rotation[2, 1], size_b[2] * rotation[2, 2]
    if center[2] - wp.abs(x) - wp.abs(y) - wp.abs(z) >= max_separation:
        return 0
    count = 0
    for corner in range(8):
        separation = center[2] + _signed(corner, x, y, z)
        if separation < max_separation:
            x_axis = wp.cw_mul(size_b, rotation[0])
            y_axis = wp.cw_mul(size_b, rotation[1])
            above_x = center[0] + _signed(corner, x_axis[0], x_axis[1], x_axis[2])
            above_y = center[1] + _signed(corner, y_axis[0], y_axis[1], y_axis[2])
            _emit(out, row + count, Vec3(above_x, above_y, Real(0.0)), separation, corner, 0)
            count += 1
    set_kind(out, row, count, wp.min(count - 1, 2))
    return count


@wp.func
def _signed(corner: int, x: Real, y: Real, z: Real) -> Real:
    """Sum of x, y and z with the corner's signs."""
    total = -x if corner & 1 == 0 else x
    total += -y if corner & 2 == 0 else y
    return total - z if corner & 4 == 0 else total + z


@wp.struct
class _Rim:
    """A rim above a plane: centre [m], the two perpendicular radii to its points 0 and 1, and its
    lowest point.

    miss: by how much its four points, a quarter turn from each other, are higher than the lowest
    [m].
    """

    center: Vec3
    first: Vec3
    second: Vec3
    lowest: Vec3
    miss: Real


@wp.func
def _rim_at(center: Vec3, rotation: Quat, axis: Vec3, radius: Real) -> _Rim:
    """The rim about `axis`, the shape's z axis; its point 0 is on the shape's +x."""
    rim = _Rim()
    rim.center = center
    rim.first = radius * wp.quat_rotate(rotation, primitives.AXIS_X)
    rim.second = wp.cross(axis, rim.first)
    rim.lowest = center + radius * primitives.lowest_on_rim(rotation, axis)
    rim.miss = center[2] - wp.max(wp.abs(rim.first[2]), wp.abs(rim.second[2])) - rim.lowest[2]
    return rim


@wp.func
def _emit_rim(
    rim: _Rim,
    max_separation: Real,
    first_feature: int,
    lowest_feature: int,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a rim's four points, and of its lowest if they miss it; see ROUND_FACE_TILT.
    Returns the number."""
    is_missed = rim.miss > ROUND_FACE_TILT * wp.length(rim.first)
    lowered = wp.where(is_missed, Real(0.0), wp.max(rim.miss, Real(0.0)))
    count = int(0)
    for quarter in range(4):
        radius = wp.where(quarter % 2 == 0, rim.first, rim.second)
        point = rim.center + wp.where(quarter < 2, radius, -radius)
        separation = point[2] - lowered
        if separation < max_separation:
            _emit(out, row + count, point, separation, first_feature + quarter, 0)
            count += 1
    if is_missed and rim.lowest[2] < max_separation:
        _emit(out, row + count, rim.lowest, rim.lowest[2], lowest_feature, 0)
        count += 1
    return count


LOWEST_OF_CAP = wp.constant(8)
LOWEST_OF_BASE = wp.constant(5)


@wp.func
def collide_plane_cylinder(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a plane and a cylinder: points of its rims closer than the maximum separation; at
    most 5.

    Of the lower cap's rim, four points a quarter turn from each other, the first on the cylinder's
    +x, and its lowest point where that is deeper; see ROUND_FACE_TILT. Of a cylinder that lies, its
    axis within LINE_SINE of the plane, the lowest point of each rim: the ends of the contact line.

    Features of b: 0 to 3 on the cap at -z, by quarter turns about +z; 4 to 7 on that at +z; 8, 9
    the lowest points of the two. Kind: 0 for one contact (point), 1 for two (edge), 2 for more
    (face). Degenerate: of a horizontal cylinder, the cap at -z is the lower.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    axis = wp.quat_rotate(rotation, UP)
    radius = size_b[0]
    flatness = wp.sqrt(axis[0] * axis[0] + axis[1] * axis[1])
    if center[2] - size_b[1] * wp.abs(axis[2]) - radius * flatness >= max_separation:
        return 0
    upper_is_low = axis[2] < Real(0.0)
    rise = size_b[1] * axis
    rise = -rise if upper_is_low else rise
    rim = _rim_at(center - rise, rotation, axis, radius)
    count = int(0)
    if wp.abs(axis[2]) >= LINE_SINE:
        first = wp.where(upper_is_low, 4, 0)
        lowest = LOWEST_OF_CAP + wp.where(upper_is_low, 1, 0)
        count = _emit_rim(rim, max_separation, first, lowest, out, row)
    else:
        for end in range(2):
            point = rim.lowest + wp.where(end == 1, Real(2.0), Real(0.0)) * rise
            is_upper = (end == 1) != upper_is_low
            if point[2] < max_separation:
                _emit(
                    out, row + count, point, point[2], LOWEST_OF_CAP + wp.where(is_upper, 1, 0), 0
                )
                count += 1
    set_kind(out, row, count, wp.min(count - 1, 2))
    return count


@wp.func
def collide_plane_cone(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a plane and a cone: its apex and points of its rim closer than the maximum
    separation; at most 6.

    Of the rim, four points a quarter turn from each other, the first on the cone's +x, and its
    lowest point where that is deeper; see ROUND_FACE_TILT.

    Features of b: 0 to 3 on the rim, by quarter turns about +z; 4 the apex; 5 the rim's lowest
    point. Kind: 0 for one contact (point), 1 for two (edge), 2 for more (face).
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
    rim = _rim_at(base, rotation, axis, radius)
    count = _emit_rim(rim, max_separation, 0, LOWEST_OF_BASE, out, row)
    if apex[2] < max_separation:
        _emit(out, row + count, apex, apex[2], APEX, 0)
        count += 1
    set_kind(out, row, count, wp.min(count - 1, 2))
    return count


@wp.func
def collide_plane_ellipsoid(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contact of a plane and an ellipsoid: its lowest point."""
    center = wp.transform_get_translation(pose_b_to_a)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    # The support point along d is D D d / |D d| with D the semi-axes; its distance from the centre
    # along d is |D d|.
    scaled = wp.cw_mul(size_b, wp.quat_rotate_inv(rotation, UP))
    height = wp.length(scaled)
    separation = center[2] - height
    if separation >= max_separation:
        return 0
    _emit(
        out,
        row,
        center - wp.quat_rotate(rotation, wp.cw_mul(size_b, scaled)) / height,
        separation,
        -1,
        0,
    )
    return 1


MAX_CONTACTS = RIM_COUNT + 1
"""The corners of the face that faces the plane, and the deepest vertex if it is none of them."""


@wp.func
def collide_plane_convex_mesh(
    plane: primitives.Primitive,
    hull: HullShape,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a plane and a hull: the corners of the face or edge that faces the plane, and the
    deepest vertex.

    Args:
        pose_b_to_a: pose of the hull in the plane's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up; features: -1, and the vertex as in
            `convex.features`.
    Returns:
        number of contacts written, at most MAX_CONTACTS. The smallest separation is exact.
    """
    down_in_hull = -wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), UP)
    deepest = farthest_vertex(hull, down_in_hull)
    lowest = wp.transform_point(pose_b_to_a, hull_point(hull, hull.vertex + deepest))
    corner = wp.zeros(shape=RIM_COUNT, dtype=Vec3)
    code = wp.zeros(shape=MAX_CODES, dtype=int)
    feature = support_feature(hull, down_in_hull)
    if feature.kind != POINT:
        feature_corners(hull, feature, down_in_hull, corner, code)
    has_deepest = bool(False)
    miss = Real(wp.inf)
    for k in range(feature.count):
        corner[k] = wp.transform_point(pose_b_to_a, corner[k])
        has_deepest = has_deepest or code[k] == 3 * deepest
        miss = wp.min(miss, corner[k][2] - lowest[2])
    is_missed = not has_deepest and miss > missed_by_samples(hull, hull, feature, feature)
    lowered = wp.where(has_deepest or is_missed, Real(0.0), miss)
    written = int(0)
    for k in range(feature.count):
        separation = corner[k][2] - lowered
        if separation < max_separation:
            _emit(out, row + written, corner[k], separation, code[k], 0)
            written += 1
    if is_missed and lowest[2] < max_separation:
        _emit(out, row + written, lowest, lowest[2], 3 * deepest, 0)
        written += 1
    return written


@wp.func
def collide_plane_primitive(
    plane: Any, shape: Any, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Contact of a plane and a primitive that has no closed form with planes: its lowest point, of
    no feature."""
    down_in_shape = -wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), UP)
    lowest = wp.transform_point(pose_b_to_a, primitives.support_point(shape, down_in_shape))
    if lowest[2] >= max_separation:
        return 0
    _emit(out, row, lowest, lowest[2], -1, 0)
    return 1
