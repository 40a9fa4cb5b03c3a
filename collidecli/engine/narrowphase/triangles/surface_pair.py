"""A pair of triangle surfaces, its regions of overlap, and the traversal of surface a near surface b."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Mat33, Pose, Real, Vec3
from collidecli.engine.geometry.triangle_pair import TrianglePair
from collidecli.engine.narrowphase.triangles.triangle_source import (
    corner_on,
    normal_on,
)


@wp.struct
class SurfacePair:
    """Surfaces: mesh a, and mesh b or, where b < 0, the heightfield. turn: the rotation of pose_b_to_a as a matrix.

    closed_a, closed_b: 1 where a surface has an interior; front_a, front_b: 1 where it is exited only through its
    front. touch: surfaces that overlap by no more only touch [m]. span: upper bound of every separating translation
    [m]. blocked: the direction in which b must not move, a's frame; zero where there is none. size: half of the longest
    side of the smaller surface [m].
    """

    a: int
    b: int
    pose_b_to_a: Pose
    turn: Mat33
    closed_a: int
    closed_b: int
    front_a: int
    front_b: int
    touch: Real
    span: Real
    blocked: Vec3
    size: Real


@wp.struct
class OverlapRegion:
    """A connected part of the overlap. low, high: its box, a's frame [m].

    front: sum of the normals, a to b, of triangles in it that are exited only through their front; zero for none.
    inner_a, inner_b: points of a inside b and of b inside a, at depths depth_a and depth_b [m]; depth 0 for none.
    """

    low: Vec3
    high: Vec3
    front: Vec3
    inner_a: Vec3
    depth_a: Real
    inner_b: Vec3
    depth_b: Real


@wp.func
def triangles_of_pair(source: Any, pair: SurfacePair, face_a: int, face_b: int) -> TrianglePair:
    """A triangle of a, and one of b before any translation, in the frame of a."""
    result = TrianglePair()
    result.p = corner_on(source, pair.a, face_a, 0)
    result.q = corner_on(source, pair.a, face_a, 1)
    result.r = corner_on(source, pair.a, face_a, 2)
    result.normal_pqr = normal_on(source, pair.a, face_a)
    result.a = wp.transform_point(pair.pose_b_to_a, corner_on(source, pair.b, face_b, 0))
    result.b = wp.transform_point(pair.pose_b_to_a, corner_on(source, pair.b, face_b, 1))
    result.c = wp.transform_point(pair.pose_b_to_a, corner_on(source, pair.b, face_b, 2))
    result.normal_abc = pair.turn * normal_on(source, pair.b, face_b)
    return result


@wp.func
def box_in_b(pair: SurfacePair, half: Vec3) -> Vec3:
    """Half extents in b's frame of the AABB of a box of a's frame, grown by touch [m]."""
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    for axis in range(3):
        for k in range(3):
            grown[axis] = grown[axis] + wp.abs(pair.turn[k, axis]) * half[k]
    return grown
