"""Anchor contact of a reduced pair; the friction scale that preserves the friction moment."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ANCHOR, ContactRecord
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.reduction_marks import PairContacts, depth_of, is_kept, middle_of

PATCH = wp.constant(3)
NOT_SCALED = wp.constant(wp.vec2f(1.0, 1.0))


@wp.func
def anchor_of(pair: PairContacts, direction: Vec3) -> ContactRecord:
    """Anchor contact: mean midpoint and mean depth of all contacts, both weighted by depth.

    Its witness points are on neither surface.
    """
    weight = Real(0.0)
    weighted = Vec3()
    squares = Real(0.0)
    most = Real(0.0)
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        depth = wp.max(depth_of(pair.contact[at], pair.margin), Real(0.0))
        most = wp.max(most, depth)
        weight += depth
        weighted = weighted + depth * middle_of(pair.contact[at])
        squares += depth * depth
    anchor = ContactRecord()
    # Rounding may give a mean above the maximum.
    anchor.separation = pair.margin - wp.min(squares / weight, most)
    anchor.normal = direction
    anchor.point = weighted / weight - Real(0.5) * anchor.separation * direction
    anchor.feature_a = ANCHOR
    anchor.feature_b = ANCHOR
    anchor.kind = PATCH
    return anchor


@wp.func
def friction_scales(pair: PairContacts, anchor: ContactRecord) -> wp.vec2f:
    """Friction scales: of the kept contacts, and of their anchor.

    With normal forces in proportion to depth, the friction moment about the anchor's normal per
    newton of normal force equals that of all contacts, and the sliding friction is as without a
    scale. Where this would need a negative friction at the anchor, which has no lever arm, the
    anchor's scale is 0 and the others have all sliding friction.
    """
    axis = anchor.normal
    center = middle_of(anchor)
    force_all = Real(0.0)
    moment_all = Real(0.0)
    force = Real(0.0)
    moment = Real(0.0)
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        depth = wp.max(depth_of(pair.contact[at], pair.margin), Real(0.0))
        arm = wp.length(wp.cross(middle_of(pair.contact[at]) - center, axis))
        force_all += depth
        moment_all += depth * arm
        if is_kept(pair.contact[at]):
            force += depth
            moment += depth * arm
    if moment == Real(0.0):
        return NOT_SCALED
    of_anchor = depth_of(anchor, pair.margin)
    together = force + of_anchor
    scale = wp.min(moment_all / force_all * together / moment, together / force)
    # Rounding would leave an anchor without friction slightly below 0.
    return wp.vec2f(
        wp.float32(scale), wp.float32(wp.max(together - scale * force, Real(0.0)) / of_anchor)
    )
