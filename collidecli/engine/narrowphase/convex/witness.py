"""The witness of two convex shapes along a direction: where they are closest, or deepest."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import support_point
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.directions import Direction, is_along
from collidecli.engine.narrowphase.convex.feature_types import (
    FACE,
    POINT,
    Feature,
    missed_by_samples,
    rounding_level,
)
from collidecli.engine.narrowphase.convex.features import (
    face_normal,
    is_on_face,
)
from collidecli.engine.narrowphase.convex.off_samples import overlap_off_samples

ON_SURFACE = wp.constant(Real(1.0e-10))
"""Distance relative to the larger shape's size below which a witness is on a face."""


@wp.struct
class Witness:
    """A contact: its separation [m], unit normal from a to b, and a's point, in a's frame."""

    separation: Real
    normal: Vec3
    point: Vec3


@wp.func
def witness_on_face(
    a: Any, b: Any, pose_b_to_a: Pose, along: Direction, of: int, other: Vec3, searched: Witness
) -> Witness:
    """Contact along a face's normal at a point of the other shape; `searched` if the point's
    projection is off the face.

    Args:
        of: 1 if the face is a's, 2 if it is b's. other: the other shape's point, in a's frame [m].
    """
    near = ON_SURFACE * wp.max(wp.max(a.size), wp.max(b.size))
    if of == 1:
        point = other - along.separation * along.normal
        if is_on_face(a, face_normal(a, along.normal), point, near):
            return Witness(along.separation, along.normal, point)
        return searched
    on_b = wp.transform_point(
        wp.transform_inverse(pose_b_to_a), other + along.separation * along.normal
    )
    normal_in_b = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), along.normal)
    if is_on_face(b, face_normal(b, -normal_in_b), on_b, near):
        return Witness(along.separation, along.normal, other)
    return searched


@wp.func
def witness_along(
    a: Any,
    b: Any,
    pose_b_to_a: Pose,
    best: Direction,
    facing_a: Feature,
    facing_b: Feature,
    normal_in_b: Vec3,
    searched: Witness,
) -> Witness:
    """The witness of a direction: above a face that the direction is normal to, `searched` if there
    is none.

    The witness above a face needs no search, which gives an arbitrary point of the face's support
    set.
    """
    if facing_b.kind == POINT and facing_a.kind == FACE and is_along(facing_a.normal, best.normal):
        on_b = wp.transform_point(pose_b_to_a, support_point(b, -normal_in_b))
        return witness_on_face(a, b, pose_b_to_a, best, 1, on_b, searched)
    if facing_a.kind == POINT and facing_b.kind == FACE and is_along(facing_b.normal, normal_in_b):
        return witness_on_face(a, b, pose_b_to_a, best, 2, support_point(a, best.normal), searched)
    if best.of == 1:
        return witness_on_face(
            a,
            b,
            pose_b_to_a,
            best,
            1,
            searched.point + searched.separation * searched.normal,
            searched,
        )
    return (
        witness_on_face(a, b, pose_b_to_a, best, 2, searched.point, searched)
        if best.of == 2
        else searched
    )


@wp.func
def witness_off_samples(
    a: Any,
    b: Any,
    pose_b_to_a: Pose,
    best: Direction,
    facing_a: Feature,
    facing_b: Feature,
    normal_in_b: Vec3,
    searched: Witness,
) -> Witness:
    """The witness of a sampled face whose polygon the other feature does not reach; `searched`
    where that is deeper.

    See `overlap_off_samples`.
    """
    common = overlap_off_samples(a, b, pose_b_to_a, best.normal, normal_in_b, facing_a, facing_b)
    miss = common.separation - best.separation
    if common.found == 0 or miss > missed_by_samples(a, b, facing_a, facing_b) + rounding_level(
        a, b
    ):
        return searched
    return Witness(best.separation, best.normal, common.point + Real(0.5) * miss * best.normal)
