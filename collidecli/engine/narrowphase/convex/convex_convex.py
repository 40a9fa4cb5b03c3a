"""General collider of two convex shapes: distance by GJK, depth by EPA or MPR, then the manifold
along the normal.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import INEXACT
from collidecli.engine.narrowphase.convex.directions import along_face
from collidecli.engine.narrowphase.convex.features import (
    with_facing,
)
from collidecli.engine.narrowphase.convex.manifold import MAX_MANIFOLD, manifold_along
from collidecli.engine.narrowphase.convex.separation import separate, separate_by_mpr
from collidecli.engine.narrowphase.convex.touch import APART_BY_LIMIT, TOUCHING, touch_of
from collidecli.engine.narrowphase.convex.witness import Witness

MAX_CONTACTS = MAX_MANIFOLD


def collision_by(separate: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`collide_convex_convex` with one separation function."""

    @wp.func(name=name)
    def collide_convex_convex(
        a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
    ) -> int:
        gap = separate(a, b, pose_b_to_a, max_separation)
        if gap.separation >= max_separation:
            return 0
        rotation = wp.transform_get_rotation(pose_b_to_a)
        facing_a = with_facing(a, gap.normal)
        facing_b = with_facing(b, wp.quat_rotate_inv(rotation, -gap.normal))
        best = along_face(facing_a, facing_b, pose_b_to_a, gap.separation, gap.normal)
        if best.separation >= max_separation:
            return 0
        # The face that gave the normal supports it still.
        if best.of == 1:
            facing_b = with_facing(b, wp.quat_rotate_inv(rotation, -best.normal))
        elif best.of == 2:
            facing_a = with_facing(a, best.normal)
        searched = Witness(gap.separation, gap.normal, gap.point_a)
        count = manifold_along(
            facing_a, facing_b, pose_b_to_a, max_separation, best, searched, out, row
        )
        return count + INEXACT if gap.exact == 0 else count

    return collide_convex_convex


collide_convex_convex = collision_by(separate, "collide_convex_convex")
"""Contacts of two convex shapes of any types but plane.

Args:
    a, b: `Primitive` of any type but plane, or `HullShape`.
    pose_b_to_a: pose of b in a's frame.
    max_separation: contacts with at least this separation are omitted [m].
    out, row: contacts are written to rows `row` and up; features as in `convex.features`.
Returns:
    number of contacts written, at most MAX_CONTACTS; plus INEXACT if the depth is an upper bound.
"""

collide_convex_convex_by_mpr = collision_by(separate_by_mpr, "collide_convex_convex_by_mpr")
"""`collide_convex_convex` with MPR's approximate depth of overlapping shapes."""


@wp.func
def touch_convex_convex(
    a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Whether `collide_convex_convex` has a contact, without its depth and manifold: 1 or 0, and an
    empty contact."""
    state = touch_of(a, b, pose_b_to_a, max_separation)
    if state == APART_BY_LIMIT:
        return 0
    if state != TOUCHING:
        gap = separate(a, b, pose_b_to_a, max_separation)
        if gap.separation >= max_separation:
            return 0
        facing_a = with_facing(a, gap.normal)
        facing_b = with_facing(
            b, wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), -gap.normal)
        )
        best = along_face(facing_a, facing_b, pose_b_to_a, gap.separation, gap.normal)
        if best.separation >= max_separation:
            return 0
    emit_contact(out, row, Vec3(), Vec3(), Real(0.0), -1, -1, 0)
    return 1
