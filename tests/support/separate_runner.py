"""Runs `separate` over arrays of poses, and says whether points are on shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import warp as wp

from collidecli.engine.geometry.primitives import primitive
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.penetration import separate, separate_by_mpr
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.shape_types import ShapeType

CONVEX = (
    ShapeType.SPHERE,
    ShapeType.CAPSULE,
    ShapeType.BOX,
    ShapeType.CYLINDER,
    ShapeType.CONE,
    ShapeType.ELLIPSOID,
)
SIZES = {
    ShapeType.SPHERE: (0.5, 0.0, 0.0),
    ShapeType.CAPSULE: (0.3, 0.6, 0.0),
    ShapeType.BOX: (0.4, 0.5, 0.6),
    ShapeType.CYLINDER: (0.4, 0.6, 0.0),
    ShapeType.CONE: (0.5, 0.6, 0.0),
    ShapeType.ELLIPSOID: (0.4, 0.5, 0.7),
}
PAIRS = [(a, b) for i, a in enumerate(CONVEX) for b in CONVEX[i:]]


@dataclass(frozen=True)
class Found:
    """What `separate` returned for each pose: arrays of its fields."""

    separation: np.ndarray
    normal: np.ndarray
    point_a: np.ndarray
    exact: np.ndarray


@cache
def _kernel(separate: Callable) -> wp.Kernel:
    @kernel
    def run_separate(
        type_a: int,
        size_a: Vec3,
        type_b: int,
        size_b: Vec3,
        pose_b_to_a: wp.array[Pose],
        max_separation: Real,
        separation: wp.array[Real],
        normal: wp.array[Vec3],
        point_a: wp.array[Vec3],
        exact: wp.array[int],
    ):
        i = wp.tid()
        found = separate(primitive(type_a, size_a), primitive(type_b, size_b), pose_b_to_a[i], max_separation)
        separation[i] = found.separation
        normal[i] = found.normal
        point_a[i] = found.point_a
        exact[i] = found.exact

    return run_separate


def run_separate(type_a, size_a, type_b, size_b, poses, max_separation=1e300, by_mpr=False) -> Found:
    """`separate`, or `separate_by_mpr`, at poses [P, 7] of b in a's frame."""
    poses = np.ascontiguousarray(np.atleast_2d(poses), np.float64)
    count = len(poses)
    out = [wp.zeros(count, dtype=dtype, device="cpu") for dtype in (Real, Vec3, Vec3, int)]
    pose_array = wp.array(poses, dtype=Pose, device="cpu")
    inputs = [int(type_a), Vec3(*size_a), int(type_b), Vec3(*size_b), pose_array, Real(max_separation)]
    wp.launch(_kernel(separate_by_mpr if by_mpr else separate), count, inputs, out, device="cpu")
    return Found(*(x.numpy() for x in out))


def outside_by(shape_type: ShapeType, size, points: np.ndarray) -> np.ndarray:
    """How far points [P, 3] are beyond the shape's surface, to within its slopes: 0 on it, negative inside."""
    x, y, z = points.T
    r, h, _ = size
    across = np.hypot(x, y)
    if shape_type == ShapeType.SPHERE:
        return np.linalg.norm(points, axis=1) - r
    if shape_type == ShapeType.CAPSULE:
        return np.hypot(across, np.maximum(np.abs(z) - h, 0.0)) - r
    if shape_type == ShapeType.BOX:
        return (np.abs(points) - np.asarray(size)).max(1)
    if shape_type == ShapeType.CYLINDER:
        return np.maximum(across - r, np.abs(z) - h)
    if shape_type == ShapeType.CONE:
        return np.maximum(across - r * (h - z) / (2 * h), -h - z)
    return (np.linalg.norm(points / np.asarray(size), axis=1) - 1.0) * min(size)
