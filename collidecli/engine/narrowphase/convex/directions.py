"""Directions along which two convex shapes are compared: the search's, or a face's exact normal."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.primitives import support_point
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.feature_types import (
    rounding_level,
)
from collidecli.engine.narrowphase.convex.features import (
    face_normal,
)

ALIGNED = wp.constant(Real(1.0e-8))
"""Angle to a face's normal (1 - cosine; 1.4e-4 rad) below which the exact normal may be the face's,
given the error of the search."""


ON_FACE = wp.constant(Real(1.0e-12))
"""Sine of the angle below which a normal is a face's: rounding is 1e-16."""


@wp.struct
class Direction:
    """A unit normal from a to b, in a's frame, and the separation along it [m].

    of: 0 for the normal of the search, 1 and 2 for the normal of a face of a or of b.
    """

    normal: Vec3
    separation: Real
    of: int


@wp.func
def is_along(face_normal: Vec3, normal: Vec3) -> bool:
    """Whether a normal is a face's, except for rounding."""
    return wp.length(wp.cross(face_normal, normal)) < ON_FACE


@wp.func
def along_face(a: Any, b: Any, pose_b_to_a: Pose, separation: Real, normal: Vec3) -> Direction:
    """Normal of a face if `normal` is ALIGNED with it and it attains the separation; else `normal`.

    GJK's direction is accurate to 1e-6 rad only, which over a face would cost 1e-6 of its width.
    The exact normal has the largest separation of all directions, so a face normal that attains it
    is the more accurate one.
    """
    least = separation - rounding_level(a, b)
    face = face_normal(a, normal)
    if Real(1.0) - wp.dot(face, normal) < ALIGNED:
        along = separation_along(a, b, pose_b_to_a, face)
        if along >= least:
            return Direction(face, along, 1)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    face = -wp.quat_rotate(rotation, face_normal(b, wp.quat_rotate_inv(rotation, -normal)))
    if Real(1.0) - wp.dot(face, normal) < ALIGNED:
        along = separation_along(a, b, pose_b_to_a, face)
        if along >= least:
            return Direction(face, along, 2)
    return Direction(normal, separation, 0)


@wp.func(inline=False)
def separation_along(a: Any, b: Any, pose_b_to_a: Pose, normal: Vec3) -> Real:
    """Separation of two shapes along a unit direction from a to b [m]; at most their signed
    distance."""
    on_a = support_point(a, normal)
    on_b = support_point(b, wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), -normal))
    return wp.dot(wp.transform_point(pose_b_to_a, on_b) - on_a, normal)
