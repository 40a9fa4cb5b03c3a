"""The context of a surface of a pair whose features are tested against the other surface.

All quantities are in the frame of the other surface. `direction` is a unit vector from the own
surface to the other.
"""

from typing import Any

import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.contact_record import (
    CROSSING_A,
    CROSSING_B,
    FALLBACK,
    INNER_A,
    INNER_B,
    ContactRecord,
)
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import NEAR, TOUCHES, ContactRows
from collidecli.engine.narrowphase.triangles.surface import (
    closed_flag,
    front_flag,
    is_front_facing,
    outward_on,
)


@wp.struct
class MeshPairContext:
    """Surfaces `own` and `other` of a pair. pose: own's frame in other's. origin: of own's frame.
    max_separation [m].

    is_a: 1 where own is the pair's first shape. pose_other_to_a: other's frame in that shape's.
    own_front, other_front: 1 where that surface has a front; own_closed, other_closed: 1 where it
    has an interior. touch: TOUCHES of the size [m].
    """

    own: int
    other: int
    pose: Pose
    origin: Vec3
    max_separation: Real
    is_a: int
    pose_other_to_a: Pose
    own_front: int
    own_closed: int
    other_front: int
    other_closed: int
    touch: Real


@wp.func
def touch_of_pair(rows: ShapeRows, query: Query) -> Real:
    """TOUCHES of the size of two surfaces [m]."""
    return TOUCHES * wp.max(wp.max(rows.size[query.row_a], rows.size[query.row_b]))


@wp.func
def context_of_pair(rows: ShapeRows, source: Any, query: Query, is_a: bool) -> MeshPairContext:
    """The context of a pair with surface a as own, or where not `is_a` with surface b as own."""
    context = MeshPairContext()
    context.touch = touch_of_pair(rows, query)
    context.max_separation = wp.max(query.max_separation, NEAR * context.touch)
    # The mesh number of a heightfield's row is -1, which denotes the heightfield in a triangle
    # source.
    if is_a:
        context.is_a = 1
        context.own = rows.mesh[query.row_a]
        context.other = rows.mesh[query.row_b]
        context.pose = wp.transform_inverse(query.pose_b_to_a)
        context.pose_other_to_a = query.pose_b_to_a
    else:
        context.own = rows.mesh[query.row_b]
        context.other = rows.mesh[query.row_a]
        context.pose = query.pose_b_to_a
        context.pose_other_to_a = wp.transform_identity(dtype=Real)
    context.origin = wp.transform_get_translation(context.pose)
    context.own_front = front_flag(source, context.own)
    context.own_closed = closed_flag(source, context.own)
    context.other_front = front_flag(source, context.other)
    context.other_closed = closed_flag(source, context.other)
    return context


@wp.func(inline=False)
def append_contact(
    context: MeshPairContext,
    rows: ContactRows,
    count: int,
    on_own: Vec3,
    direction: Vec3,
    separation: Real,
    feature_own: int,
    feature_other: int,
    priority: int,
    is_inner: int,
) -> int:
    """Writes contact `count` of a sub-pair, or counts it; returns the count after it.

    is_inner: 1 where own's point is inside other by the contact's depth.
    """
    if rows.first + count >= rows.end:
        return count + 1
    contact = ContactRecord()
    contact.separation = separation
    contact.priority = priority
    if context.is_a == 1:
        contact.point = wp.transform_point(context.pose_other_to_a, on_own)
        contact.normal = wp.transform_vector(context.pose_other_to_a, direction)
        contact.feature_a = feature_own
        contact.feature_b = feature_other
    else:
        contact.point = on_own + separation * direction
        contact.normal = -direction
        contact.feature_a = feature_other
        contact.feature_b = feature_own
    if is_inner == 1:
        contact.role = wp.where(context.is_a == 1, INNER_A, INNER_B)
    rows.contact[rows.first + count] = contact
    return count + 1


@wp.func(inline=False)
def append_crossing(
    context: MeshPairContext, rows: ContactRows, count: int, on_own: Vec3, feature_own: int
) -> int:
    """Writes an end of an edge of own that crosses other, or counts it; returns the count after
    it."""
    if rows.first + count >= rows.end:
        return count + 1
    contact = ContactRecord()
    contact.separation = Real(wp.inf)
    contact.priority = FALLBACK
    contact.point = on_own
    contact.role = CROSSING_B
    contact.feature_b = feature_own
    if context.is_a == 1:
        contact.point = wp.transform_point(context.pose_other_to_a, on_own)
        contact.role = CROSSING_A
        contact.feature_a = feature_own
    rows.contact[rows.first + count] = contact
    return count + 1


@wp.func
def own_direction(context: MeshPairContext, direction: Vec3) -> Vec3:
    """A direction in own's frame."""
    return wp.quat_rotate_inv(wp.transform_get_rotation(context.pose), direction)


@wp.func
def is_facing(context: MeshPairContext, source: Any, face: int, part: int, direction: Vec3) -> bool:
    """Whether a part of a triangle of own faces a direction; every part of a surface without a
    front does."""
    if context.own_front == 0:
        return True
    return is_front_facing(
        outward_on(source, context.own, face, part),
        own_direction(context, direction),
        context.own_closed,
    )
