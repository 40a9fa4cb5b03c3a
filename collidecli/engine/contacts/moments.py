"""The anchor of a reduced pair, and the scale of friction by which what stays resists turning as the whole did."""

import warp as wp

from collidecli.engine.contact_buffer import ContactRecord
from collidecli.engine.contacts.reduction_marks import depth_of, is_kept, middle_of
from collidecli.engine.geometry.real import Real, Vec3

ANCHOR = wp.constant(-2)
"""Feature of an anchor on both shapes; none of a shape's own is below -1."""
PATCH = wp.constant(3)
NOT_SCALED = wp.constant(wp.vec2f(1.0, 1.0))


@wp.func
def anchor_of(
    contact: wp.array[ContactRecord], first: int, stride: int, count: int, margin: Real, direction: Vec3
) -> ContactRecord:
    """The contact that stands for all: at the mean of their middles, and of their mean depth, each weighed by depth.

    Its witness points are on neither surface.
    """
    weight = Real(0.0)
    place = Vec3()
    squares = Real(0.0)
    most = Real(0.0)
    for i in range(count):
        at = first + i * stride
        depth = wp.max(depth_of(contact[at], margin), Real(0.0))
        most = wp.max(most, depth)
        weight += depth
        place = place + depth * middle_of(contact[at])
        squares += depth * depth
    anchor = ContactRecord()
    # Whatever rounding does to a mean, none is deeper than the deepest.
    anchor.separation = margin - wp.min(squares / weight, most)
    anchor.normal = direction
    anchor.point = place / weight - Real(0.5) * anchor.separation * direction
    anchor.feature_a = ANCHOR
    anchor.feature_b = ANCHOR
    anchor.kind = PATCH
    return anchor


@wp.func
def friction_scales(
    contact: wp.array[ContactRecord],
    first: int,
    stride: int,
    count: int,
    margin: Real,
    anchor: ContactRecord,
) -> wp.vec2f:
    """What friction is to be multiplied with: of the contacts that stay, and of their anchor.

    With normal forces in proportion to depth, friction then resists turning about the anchor's normal, for each
    newton of normal force, as that of all contacts does, and resists sliding as without a scale. Where this would take
    a friction below zero at the anchor, which has no arm, it gets none and the others all.
    """
    axis = anchor.normal
    center = middle_of(anchor)
    force_all = Real(0.0)
    moment_all = Real(0.0)
    force = Real(0.0)
    moment = Real(0.0)
    for i in range(count):
        at = first + i * stride
        depth = wp.max(depth_of(contact[at], margin), Real(0.0))
        arm = wp.length(wp.cross(middle_of(contact[at]) - center, axis))
        force_all += depth
        moment_all += depth * arm
        if is_kept(contact[at]):
            force += depth
            moment += depth * arm
    if moment == Real(0.0):
        return NOT_SCALED
    of_anchor = depth_of(anchor, margin)
    together = force + of_anchor
    scale = wp.min(moment_all / force_all * together / moment, together / force)
    # Rounding would leave an anchor that gets none a little below.
    return wp.vec2f(wp.float32(scale), wp.float32(wp.max(together - scale * force, Real(0.0)) / of_anchor))
