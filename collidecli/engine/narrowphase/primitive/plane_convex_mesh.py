"""Plane and convex hull."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.hulls import HullShape, farthest_vertex, hull_point
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.support import Primitive
from collidecli.engine.narrowphase.convex.feature import MAX_CODES, POINT, RIM_COUNT
from collidecli.engine.narrowphase.convex.features import feature_corners, support_feature

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
