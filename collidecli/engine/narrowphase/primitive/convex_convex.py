"""General collider of two convex shapes: distance by GJK, depth by EPA or MPR, manifold along the normal.

A convex mesh is collided as its hull; `name_features` then replaces the ids of the hull's features by the mesh's.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.contact_record import Candidates, ContactBuffer, emit_contact, memory_row
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import MESH, Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import INEXACT, Bucket
from collidecli.engine.narrowphase.convex.features import with_facing
from collidecli.engine.narrowphase.convex.manifold import MAX_MANIFOLD, along_face, manifold_along, witness_of
from collidecli.engine.narrowphase.convex.penetration import (
    APART_BY_LIMIT,
    TOUCHING,
    separate,
    separate_by_mpr,
    touch_of,
)
from collidecli.engine.runtime.kernel import kernel


@wp.func
def mesh_feature(rows: ShapeRows, row: int, feature: int) -> int:
    """The mesh's id of a feature of the hull of a row; other shapes' ids are unchanged."""
    if rows.type[row] != MESH or feature < 0:
        return feature
    return rows.hulls.table[rows.hulls.header[rows.hull[row]].name + feature]


@kernel
def name_features(rows: ShapeRows, candidates: Candidates, bucket: Bucket, out: ContactBuffer):
    """Replaces hull feature ids by mesh feature ids; one thread per candidate of a bucket."""
    thread = wp.tid()
    candidate = bucket.order[bucket.start + thread]
    pair = candidates.row[candidate]
    row_a = pair[0]
    row_b = pair[1]
    if rows.type[row_a] > rows.type[row_b]:
        row_a = pair[1]
        row_b = pair[0]
    for i in range(candidates.found[candidate]):
        slot = memory_row(out, thread * out.most + i)
        contact = out.contact[slot]
        contact.feature_a = mesh_feature(rows, row_a, contact.feature_a)
        contact.feature_b = mesh_feature(rows, row_b, contact.feature_b)
        out.contact[slot] = contact


MAX_CONTACTS = MAX_MANIFOLD


def collision_by(separate: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`collide_convex_convex` with one separation function."""

    @wp.func(name=name)
    def collide_convex_convex(
        a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
    ) -> int:
        found = separate(a, b, pose_b_to_a, max_separation)
        if found.separation >= max_separation:
            return 0
        rotation = wp.transform_get_rotation(pose_b_to_a)
        facing_a = with_facing(a, found.normal)
        facing_b = with_facing(b, wp.quat_rotate_inv(rotation, -found.normal))
        best = along_face(facing_a, facing_b, pose_b_to_a, found.separation, found.normal)
        if best.separation >= max_separation:
            return 0
        # The face that gave the normal supports it still.
        if best.of == 1:
            facing_b = with_facing(b, wp.quat_rotate_inv(rotation, -best.normal))
        elif best.of == 2:
            facing_a = with_facing(a, best.normal)
        searched = witness_of(found.separation, found.normal, found.point_a)
        count = manifold_along(facing_a, facing_b, pose_b_to_a, max_separation, best, searched, out, row)
        if found.exact == 0:
            count += INEXACT
        return count

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
def touch_convex_convex(a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int) -> int:
    """Whether `collide_convex_convex` has a contact, without its depth and manifold: 1 or 0, and an empty contact."""
    state = touch_of(a, b, pose_b_to_a, max_separation)
    if state == APART_BY_LIMIT:
        return 0
    if state != TOUCHING:
        found = separate(a, b, pose_b_to_a, max_separation)
        if found.separation >= max_separation:
            return 0
        facing_a = with_facing(a, found.normal)
        facing_b = with_facing(b, wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), -found.normal))
        best = along_face(facing_a, facing_b, pose_b_to_a, found.separation, found.normal)
        if best.separation >= max_separation:
            return 0
    emit_contact(out, row, Vec3(), Vec3(), Real(0.0), -1, -1, 0)
    return 1
