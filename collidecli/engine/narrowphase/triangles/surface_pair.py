"""Two surfaces of triangles, a region in which they overlap, and their triangles in one frame."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Mat33, Pose, Real, Vec3
from collidecli.engine.geometry.triangle_pair import TrianglePair
from collidecli.engine.narrowphase.triangles.triangle_queries import (
    corner_on,
    normal_on,
)


@wp.struct
class SurfacePair:
    """Two surfaces: mesh a, and mesh b or, where b < 0, the heightfield. pose_b_to_a, and its rotation as a matrix.

    closed_a, closed_b: 1 where they have an inside; front_a, front_b: 1 where only their front is left by.
    touch: what overlaps by no more only touches [m]. span: no translation that separates them is longer [m].
    blocked: no translation of b goes this way, a's frame; zero where none is ruled out. size: half of the smaller one's
    longest side [m].
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

    front: sum of the normals that front-only surfaces of it must be left by, a to b; zero where there is none.
    inner_a, inner_b: points of a inside b and of b inside a, as deep as depth_a and depth_b [m]; depth 0 for none.
    """

    low: Vec3
    high: Vec3
    front: Vec3
    inner_a: Vec3
    depth_a: Real
    inner_b: Vec3
    depth_b: Real


@wp.func
def boxes_meet(low: Vec3, high: Vec3, other_low: Vec3, other_high: Vec3) -> bool:
    """Whether two boxes have a point in common."""
    if low[0] > other_high[0] or low[1] > other_high[1] or low[2] > other_high[2]:
        return False
    return high[0] >= other_low[0] and high[1] >= other_low[1] and high[2] >= other_low[2]


@wp.func
def triangles_of_pair(surfaces: Any, pair: SurfacePair, face_a: int, face_b: int) -> TrianglePair:
    """A triangle of a and, as it lies before any translation, one of b."""
    result = TrianglePair()
    result.p = corner_on(surfaces, pair.a, face_a, 0)
    result.q = corner_on(surfaces, pair.a, face_a, 1)
    result.r = corner_on(surfaces, pair.a, face_a, 2)
    result.normal_pqr = normal_on(surfaces, pair.a, face_a)
    result.a = wp.transform_point(pair.pose_b_to_a, corner_on(surfaces, pair.b, face_b, 0))
    result.b = wp.transform_point(pair.pose_b_to_a, corner_on(surfaces, pair.b, face_b, 1))
    result.c = wp.transform_point(pair.pose_b_to_a, corner_on(surfaces, pair.b, face_b, 2))
    result.normal_abc = pair.turn * normal_on(surfaces, pair.b, face_b)
    return result


@wp.func
def box_in_b(pair: SurfacePair, half: Vec3) -> Vec3:
    """Half extents of the box, along b's axes, around a box of a's frame."""
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    for axis in range(3):
        for k in range(3):
            grown[axis] = grown[axis] + wp.abs(pair.turn[k, axis]) * half[k]
    return grown
