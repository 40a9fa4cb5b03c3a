"""Colliders in closed form: a plane, a sphere or a capsule and each primitive for which there is
one.

Every collider of a plane or a sphere has these arguments and result:

Args:
    size_a: (radius, 0, 0) of a sphere [m]; unused for a plane, the half-space z <= 0 of its frame.
    size_b: size of b, see `ShapeType` [m].
    pose_b_to_a: pose of b in a's frame.
    max_separation: contacts with at least this separation are omitted [m].
    out, row: contacts are written to rows `row` and up; a's feature is -1.
Returns:
    number of contacts written.

A sphere has one contact, at the point of b's surface closest to its centre. `sphere_collider` takes
the radius of b as a function, declared for each type: `wp.length` named outside of a kernel would
register all functions of Warp in every run.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, set_kind
from collidecli.engine.geometry import nearest_on_primitive, primitives
from collidecli.engine.geometry.hulls import HullShape, farthest_vertex, hull_point
from collidecli.engine.geometry.real import UP, Pose, Quat, Real, Vec3
from collidecli.engine.geometry.segments import (
    END_HIGH,
    END_LOW,
    SIDE,
    TOUCHING,
    SegmentBox,
    away_from_axis,
    nearest_of_segments,
    segment_and_box,
    segment_end,
)
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


@wp.func
def collide_sphere_sphere(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contact of two spheres: the points of each on the line of centres.

    Degenerate: coincident centres give the normal +z of a.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    center_distance = wp.length(center_b)
    separation = center_distance - size_a[0] - size_b[0]
    if separation >= max_separation:
        return 0
    normal = center_b / center_distance if center_distance > Real(0.0) else UP
    emit_contact(out, row, size_a[0] * normal, normal, separation, -1, -1, 0)
    return 1


@wp.func
def collide_sphere_capsule(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contact of a sphere and a capsule: closest point of the capsule's inner segment to the
    sphere's centre.

    Features of b: 0 its end at -z, 1 its end at +z, 2 its side. Degenerate: a centre on the segment
    leaves along +x of the capsule, as it does from a cylinder's axis: the normal is the capsule's
    -x.
    """
    center = wp.transform_get_translation(pose_b_to_a)
    radii = size_a[0] + size_b[0]
    bound = radii + max_separation + size_b[1]
    if bound <= Real(0.0) or wp.dot(center, center) >= bound * bound:
        return 0
    rotation = wp.transform_get_rotation(pose_b_to_a)
    in_b = -wp.quat_rotate_inv(rotation, center)
    z = wp.clamp(in_b[2], -size_b[1], size_b[1])
    feature = SIDE
    if z != in_b[2]:
        feature = END_HIGH if z > Real(0.0) else END_LOW
    outward = Vec3(in_b[0], in_b[1], in_b[2] - z)
    core_distance = wp.length(outward)
    separation = core_distance - radii
    if separation >= max_separation:
        return 0
    outward = (
        outward / core_distance if core_distance > TOUCHING * size_b[1] else away_from_axis(in_b)
    )
    normal = -wp.quat_rotate(rotation, outward)
    emit_contact(out, row, size_a[0] * normal, normal, separation, -1, feature, 0)
    return 1


def sphere_collider(
    nearest_point: Callable[..., Any], bounding_radius: Callable[..., Any], name: str
) -> Any:
    """Collider of a sphere and a shape b: contact at the point of b's surface closest to the
    sphere's centre.

    Args:
        nearest_point: (size, point) -> `SurfacePoint` of b. bounding_radius: (size) -> radius of b
            about its origin [m].
        name: of the collider.
    """

    @wp.func(name=name)
    def collide_sphere(
        size_a: Vec3,
        size_b: Vec3,
        pose_b_to_a: Pose,
        max_separation: Real,
        out: ContactBuffer,
        row: int,
    ) -> int:
        center = wp.transform_get_translation(pose_b_to_a)
        radius = size_a[0]
        bound = radius + max_separation + bounding_radius(size_b)
        if bound <= Real(0.0) or wp.dot(center, center) >= bound * bound:
            return 0
        rotation = wp.transform_get_rotation(pose_b_to_a)
        nearest = nearest_point(size_b, -wp.quat_rotate_inv(rotation, center))
        separation = nearest.distance - radius
        if separation >= max_separation:
            return 0
        normal = -wp.quat_rotate(rotation, nearest.outward)
        emit_contact(out, row, radius * normal, normal, separation, -1, nearest.feature, 0)
        return 1

    return collide_sphere


@wp.func
def _radius_of_box(size: Vec3) -> Real:
    return wp.length(size)


@wp.func
def _radius_of_round(size: Vec3) -> Real:
    return wp.sqrt(size[0] * size[0] + size[1] * size[1])


@wp.func
def _radius_of_ellipsoid(size: Vec3) -> Real:
    return wp.max(size)


collide_sphere_box = sphere_collider(
    nearest_on_primitive.nearest_on_box, _radius_of_box, "collide_sphere_box"
)
collide_sphere_cylinder = sphere_collider(
    nearest_on_primitive.nearest_on_cylinder, _radius_of_round, "collide_sphere_cylinder"
)
collide_sphere_cone = sphere_collider(
    nearest_on_primitive.nearest_on_cone, _radius_of_round, "collide_sphere_cone"
)
collide_sphere_ellipsoid = sphere_collider(
    nearest_on_primitive.nearest_on_ellipsoid, _radius_of_ellipsoid, "collide_sphere_ellipsoid"
)
"""Contact of a sphere and a box, cylinder, cone or ellipsoid; features of b and degenerate
positions of the centre are those of the closest point of b's surface."""


FACE_COSINE = wp.constant(Real(0.9999))
"""Cosine of the angle (0.8 degrees) to a face's normal above which a contact has two points along
that face."""

PARALLEL_SINE = wp.constant(Real(1e-4))
"""Sine of the angle below which a capsule touches an edge at two points; see
`_emit_shared_ends`."""

SLACK = wp.constant(Real(5e-10))
"""Distance relative to a face's half extent up to which a point beyond its border is on it, by
rounding."""

SAME_POINT = wp.constant(Real(2e-9))
"""Distance relative to the sizes below which two contacts are one, as for a capsule's end over an
edge."""


@wp.struct
class _CapsuleInBox:
    """The capsule in the box's frame, with the closest points of its segment and the box."""

    center: Vec3
    axis: Vec3
    half_length: Real
    radius: Real
    half: Vec3
    nearest: SegmentBox


@wp.struct
class _Touch:
    """A contact in the box's frame: the point on the capsule."""

    point: Vec3
    separation: Real
    feature_a: int
    feature_b: int


@wp.func
def collide_capsule_box(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a capsule and a box: the closest or deepest point, or two along the face or edge
    that it touches.

    Args:
        size_a: (radius, half length, 0) [m]. size_b: half extents along x, y, z [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most 2. Features of a: 0 the end at -z, 1 the end at +z, 2
            the side;
        of b: `box_feature`.
    Degenerate: a segment through the box's centre is separated through the closest face, x before y
    before z, on its
    positive side; ties between a face and an edge go to the face.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    bound = size_a[0] + size_a[1] + max_separation + wp.length(size_b)
    if bound <= Real(0.0) or wp.dot(center_b, center_b) >= bound * bound:
        return 0
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    center = -(center_b * rotation)
    axis = rotation[2]
    for i in range(3):
        if (
            wp.abs(center[i]) - size_b[i] - size_a[1] * wp.abs(axis[i]) - size_a[0]
            >= max_separation
        ):
            return 0
    nearest = segment_and_box(center, axis, size_a[1], size_b)
    capsule = _CapsuleInBox(center, axis, size_a[1], size_a[0], size_b, nearest)
    outward = capsule.nearest.outward
    first = _nearest_touch(capsule)
    if first.separation >= max_separation:
        return 0
    second = first
    two = False
    face = _largest(outward)
    slant = wp.dot(outward, capsule.axis)
    if wp.abs(outward[face]) > FACE_COSINE:
        # At more than 45 degrees the capsule's side does not support the direction to the box.
        if slant * slant < Real(0.5):
            first, second, two = _along_face(capsule, face, first)
    else:
        edge = _largest(capsule.axis)
        is_parallel = _square_off(capsule.axis, edge) < PARALLEL_SINE * PARALLEL_SINE
        # Where the closest point is the end of the edge, rounding leaves a component along it.
        if is_parallel and wp.abs(outward[edge]) <= ROUND_FACE_TILT:
            first, second, two = _along_edge(capsule, edge, first)
    scale = size_a[0] + size_a[1] + wp.length(size_b)
    if two and wp.length(first.point - second.point) <= SAME_POINT * scale:
        two = False
        if second.separation < first.separation:
            first = second
    normal = -(rotation * outward)
    kind = 0
    count = 0
    if two and first.separation < max_separation and second.separation < max_separation:
        kind = 1
    if first.separation < max_separation:
        point = rotation * first.point + center_b
        emit_contact(
            out, row, point, normal, first.separation, first.feature_a, first.feature_b, kind
        )
        count = 1
    if two and second.separation < max_separation:
        point = rotation * second.point + center_b
        emit_contact(
            out,
            row + count,
            point,
            normal,
            second.separation,
            second.feature_a,
            second.feature_b,
            kind,
        )
        count += 1
    return count


@wp.func
def _nearest_touch(capsule: _CapsuleInBox) -> _Touch:
    on_segment = capsule.nearest.on_segment
    outward = capsule.nearest.outward
    point = capsule.center + on_segment * capsule.axis - capsule.radius * outward
    feature_b = primitives.box_feature(
        primitives.side_of(outward[0]),
        primitives.side_of(outward[1]),
        primitives.side_of(outward[2]),
    )
    separation = capsule.nearest.distance - capsule.radius
    return _Touch(point, separation, segment_end(on_segment, capsule.half_length), feature_b)


@wp.func
def _along_face(capsule: _CapsuleInBox, face: int, nearest: _Touch):
    """Contacts at both ends of the part over a face of the line under the capsule's side, and
    whether there are two.

    The line is one radius from the axis, towards the box. `nearest` remains one of the two if it is
    at an end of the capsule: the lowest point of an inclined capsule is not on the line.
    """
    outward = capsule.nearest.outward
    slant = wp.dot(outward, capsule.axis)
    under = (outward - slant * capsule.axis) * (
        -capsule.radius / wp.sqrt(Real(1.0) - slant * slant)
    )
    middle = capsule.center + under
    plane = wp.sign(outward[face]) * capsule.half[face]
    low = -capsule.half_length
    high = capsule.half_length
    face_feature = primitives.box_feature(0, 0, 0) + primitives.feature_step(
        face, primitives.side_of(outward[face])
    )
    low_border = face_feature
    high_border = face_feature
    for j in range(3):
        if j != face:
            # Projected along the normal into the face's plane, the line is start + t * rate in the
            # face's axis j.
            lean = outward[j] / outward[face]
            start = middle[j] - (middle[face] - plane) * lean
            rate = capsule.axis[j] - capsule.axis[face] * lean
            half = capsule.half[j] * (Real(1.0) + SLACK)
            if wp.abs(rate) * capsule.half_length > SLACK * half:
                t_in = (-half - start) / rate
                t_out = (half - start) / rate
                step = primitives.feature_step(j, primitives.side_of(rate))
                if rate < Real(0.0):
                    t_in = (half - start) / rate
                    t_out = (-half - start) / rate
                if t_in > low:
                    low = t_in
                    low_border = face_feature - step
                if t_out < high:
                    high = t_out
                    high_border = face_feature + step
            elif wp.abs(start) > half * (Real(1.0) + SLACK):
                high = low
    two = high - low > SLACK * capsule.half_length
    first = _on_line(capsule, middle, face, plane, low, low_border)
    second = _on_line(capsule, middle, face, plane, high, high_border)
    on_segment = capsule.nearest.on_segment
    is_end = wp.abs(on_segment) >= capsule.half_length
    scale = capsule.radius + capsule.half_length + wp.length(capsule.half)
    falls_short = wp.min(first.separation, second.separation) > nearest.separation + SLACK * scale
    # If no part of the line is over the face, its ends may be beyond those of the capsule.
    if falls_short or low > high or ((is_end or not two) and _is_over_face(capsule, face)):
        if on_segment > Real(0.0):
            second = first
        first = nearest
    return first, second, two


@wp.func
def _on_line(
    capsule: _CapsuleInBox, middle: Vec3, face: int, plane: Real, at: Real, feature_b: int
) -> _Touch:
    point = middle + at * capsule.axis
    separation = (point[face] - plane) / capsule.nearest.outward[face]
    return _Touch(point, separation, segment_end(at, capsule.half_length), feature_b)


@wp.func
def _is_over_face(capsule: _CapsuleInBox, face: int) -> bool:
    """Whether the closest point's witness on the box is on the face, to rounding."""
    nearest = capsule.nearest
    witness = (
        capsule.center + nearest.on_segment * capsule.axis - nearest.distance * nearest.outward
    )
    over = True
    for j in range(3):
        if j != face and wp.abs(witness[j]) > capsule.half[j] * (Real(1.0) + SLACK):
            over = False
    return over


@wp.func
def _along_edge(capsule: _CapsuleInBox, edge: int, nearest: _Touch):
    """Contacts at both ends of the overlap of a capsule and a nearly parallel edge of the box, and
    whether there are two.
    """
    projected = capsule.half_length * wp.abs(capsule.axis[edge])
    low = wp.max(-capsule.half[edge], capsule.center[edge] - projected)
    high = wp.min(capsule.half[edge], capsule.center[edge] + projected)
    two = high - low > SLACK * capsule.half_length
    first = nearest
    second = nearest
    if two:
        first = _over_edge(capsule, edge, low, nearest.feature_b)
        second = _over_edge(capsule, edge, high, nearest.feature_b)
    return first, second, two


@wp.func
def _over_edge(capsule: _CapsuleInBox, edge: int, at: Real, edge_feature: int) -> _Touch:
    outward = capsule.nearest.outward
    on_segment = (at - capsule.center[edge]) / capsule.axis[edge]
    on_axis = capsule.center + on_segment * capsule.axis
    # The witness on the box is exactly on its edge: the deviation from parallel affects the witness
    # on the capsule.
    on_edge = Vec3(at, at, at)
    for j in range(3):
        if j != edge:
            on_edge[j] = wp.sign(outward[j]) * capsule.half[j]
    separation = wp.dot(outward, on_axis - on_edge) - capsule.radius
    point = on_edge + separation * outward
    # The overlap ends at a vertex of the box or at an end of the capsule.
    if wp.abs(at) >= capsule.half[edge]:
        return _Touch(
            point,
            separation,
            SIDE,
            edge_feature + primitives.feature_step(edge, primitives.side_of(at)),
        )
    return _Touch(point, separation, END_HIGH if on_segment > Real(0.0) else END_LOW, edge_feature)


@wp.func
def _largest(v: Vec3) -> int:
    largest = wp.where(wp.abs(v[1]) > wp.abs(v[0]), 1, 0)
    return 2 if wp.abs(v[2]) > wp.abs(v[largest]) else largest


@wp.func
def _square_off(axis: Vec3, along: int) -> Real:
    """Squared sine of the angle between unit `axis` and a coordinate axis."""
    square = Real(0.0)
    for j in range(3):
        if j != along:
            square += axis[j] * axis[j]
    return square


@wp.func
def collide_capsule_capsule(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of two capsules: the closest points of their inner segments; both ends of the
    overlap for parallel ones.

    Args:
        size_a, size_b: (radius, half length, 0) [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up.
    Returns:
        number of contacts written, at most 2. Features: 0 the end at -z, 1 the end at +z, 2 the
            side.
    Degenerate: see `nearest_of_segments`; segments that cross are separated along their common
        perpendicular.
    """
    center_b = wp.transform_get_translation(pose_b_to_a)
    half_a = size_a[1]
    half_b = size_b[1]
    radii = size_a[0] + size_b[0]
    bound = radii + max_separation + half_a + half_b
    if bound <= Real(0.0) or wp.dot(center_b, center_b) >= bound * bound:
        return 0
    axis_b = wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), UP)
    nearest = nearest_of_segments(half_a, center_b, axis_b, half_b)
    if nearest.distance - radii >= max_separation:
        return 0
    normal = nearest.normal
    if axis_b[0] * axis_b[0] + axis_b[1] * axis_b[1] < PARALLEL_SINE * PARALLEL_SINE:
        projected = half_b * wp.abs(axis_b[2])
        low = wp.max(-half_a, center_b[2] - projected)
        high = wp.min(half_a, center_b[2] + projected)
        if high - low > SAME_POINT * (radii + half_a + half_b):
            return _emit_shared_ends(
                size_a, size_b, center_b, axis_b, low, high, normal, max_separation, out, row
            )
    point = size_a[0] * normal + Vec3(Real(0.0), Real(0.0), nearest.on_a)
    feature_a = segment_end(nearest.on_a, half_a)
    emit_contact(
        out,
        row,
        point,
        normal,
        nearest.distance - radii,
        feature_a,
        segment_end(nearest.on_b, half_b),
        0,
    )
    return 1


@wp.func
def _emit_shared_ends(
    size_a: Vec3,
    size_b: Vec3,
    center_b: Vec3,
    axis_b: Vec3,
    low: Real,
    high: Real,
    normal: Vec3,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of nearly parallel capsules at both ends, `low` and `high` on a's axis, of their
    segments' overlap."""
    count = 0
    for end in range(2):
        z = low if end == 0 else high
        feature_a = END_LOW if end == 0 else END_HIGH
        feature_b = SIDE
        if wp.abs(z) < size_a[1]:
            feature_a = SIDE
            feature_b = END_HIGH if (end == 1) == (axis_b[2] > Real(0.0)) else END_LOW
        on_a = Vec3(Real(0.0), Real(0.0), z)
        on_b = center_b + (z - center_b[2]) / axis_b[2] * axis_b
        separation = wp.dot(normal, on_b - on_a) - size_a[0] - size_b[0]
        if separation < max_separation:
            emit_contact(
                out,
                row + count,
                on_a + size_a[0] * normal,
                normal,
                separation,
                feature_a,
                feature_b,
                1,
            )
            count += 1
    if count == 1:
        set_kind(out, row, 1, 0)
    return count
