"""Where a pair's room puts its contacts: slots of its own, in the frame of the pair's first shape."""

from __future__ import annotations

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3


@wp.struct
class Staging:
    """Contacts as the rooms of the narrow phase write them, one row each.

    point: witness on a's surface, a's frame [m]. normal: unit, from a to b, a's frame.
    separation: signed distance of the two un-inflated surfaces along normal [m]; b's witness is
    point + separation * normal. feature: of a, of b; -1 none. kind: point, edge, face, patch.
    """

    point: wp.array[Vec3]
    normal: wp.array[Vec3]
    separation: wp.array[Real]
    feature: wp.array[wp.vec2i]
    kind: wp.array[wp.uint8]


@wp.func
def stage(
    out: Staging, row: int, point: Vec3, normal: Vec3, separation: Real, feature_a: int, feature_b: int, kind: int
):
    """Writes one contact into `row`."""
    out.point[row] = point
    out.normal[row] = normal
    out.separation[row] = separation
    out.feature[row] = wp.vec2i(feature_a, feature_b)
    out.kind[row] = wp.uint8(kind)
