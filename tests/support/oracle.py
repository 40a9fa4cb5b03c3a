"""Signed distance of two convex shapes in float64 NumPy by a global search over directions; independent of the engine.

For a unit direction n from a to b, let s(n) = min over b of n.x - max over a of n.x. The signed distance is the largest
s(n), and the n that attains it the normal: the separating direction when they are apart, the direction of the minimum
translation when they overlap. Every n gives a lower bound, so the largest of many candidates is never too large.

s is smooth except on circles of the sphere of directions (where a support face of dimension one begins) and at isolated
directions (caps). So its maximum is an isolated direction, a crossing of two circles, a maximum along one circle, or
a smooth maximum: all four are searched.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from collidecli.scene.shape_types import ShapeType
from tests.support.direction_search import best_on_circle, best_smooth, circle_crossings, separation, tangents, unit
from tests.support.supports import ISOLATED, circles, extents, support_height

SWEEP_COUNT = 1200
NEIGHBOUR_COUNT = 8
START_COUNT = 6
RING_SIZES = (1e-1, 1e-2, 1e-3, 1e-5)
CHUNK = 100


def rotation_of(pose: np.ndarray) -> np.ndarray:
    """Rotation matrices float64[..., 3, 3] of poses [..., 7], x y z then quaternion xyzw."""
    x, y, z, w = np.moveaxis(np.asarray(pose, np.float64)[..., 3:], -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(r, -1) for r in rows], -2)


def separation_along(type_a, size_a, type_b, size_b, pose_b_to_a, normal) -> np.ndarray:
    """s(normal): how far apart the shapes are along `normal`, negative when their shadows on it overlap.

    Args:
        size_a, size_b: float64[P, 3] or [3]. pose_b_to_a: [P, 7]. normal: [P, D, 3] or [P, 3], a's frame.
    Returns:
        float64[P, D] or [P].
    """
    pose = np.atleast_2d(pose_b_to_a)
    normal = np.asarray(normal, np.float64)
    flat = normal.ndim == 2
    n = normal[:, None] if flat else normal
    size_a, size_b = (np.broadcast_to(s, (len(pose), 3)) for s in (size_a, size_b))
    n_in_b = np.einsum("pji,pdj->pdi", rotation_of(pose), n)
    low_b = np.einsum("pdi,pi->pd", n, pose[:, :3]) - support_height(type_b, size_b, -n_in_b)
    if type_a == ShapeType.PLANE:
        value = np.where(n[..., 2] > 1 - 1e-12, low_b, -np.inf)
    else:
        value = low_b - support_height(type_a, size_a, n)
    return value[:, 0] if flat else value


def signed_distance(type_a, size_a, type_b, size_b, pose_b_to_a) -> tuple[np.ndarray, np.ndarray]:
    """Signed distance of convex shapes and a direction that attains it.

    Args:
        type_a, type_b: `ShapeType`; a may be a plane, which is the half-space z <= 0.
        size_a, size_b: float64[3] or [P, 3] [m].
        pose_b_to_a: float64[7] or [P, 7], b's frame in a's, quaternion xyzw.
    Returns:
        distance float64[P], negative when they overlap; unit normal float64[P, 3] from a to b, in a's frame. For one
        pose [7]: a scalar and [3]. Where several directions attain the distance, one of them.
    """
    pose = np.asarray(pose_b_to_a, np.float64)
    poses = np.atleast_2d(pose)
    size_a, size_b = (np.broadcast_to(np.asarray(s, np.float64), (len(poses), 3)) for s in (size_a, size_b))
    if type_a == ShapeType.PLANE:
        normal = np.broadcast_to([0.0, 0.0, 1.0], (len(poses), 3)).copy()
        distance = separation_along(type_a, size_a, type_b, size_b, poses, normal)
    else:
        parts = [
            _search(type_a, size_a[i : i + CHUNK], type_b, size_b[i : i + CHUNK], poses[i : i + CHUNK])
            for i in range(0, len(poses), CHUNK)
        ]
        distance = np.concatenate([d for d, _ in parts])
        normal = np.concatenate([n for _, n in parts])
    return (distance, normal) if pose.ndim == 2 else (distance[0], normal[0])


def _search(type_a, size_a, type_b, size_b, pose) -> tuple[np.ndarray, np.ndarray]:
    rotation = rotation_of(pose)

    def value(n: np.ndarray) -> np.ndarray:
        return separation(type_a, size_a, type_b, size_b, rotation, pose[:, :3], n)

    axes, heights = _all_circles(type_a, size_a, type_b, size_b, rotation)
    candidates = [_isolated(type_a, type_b, pose, rotation), circle_crossings(axes, heights)]
    starts = [candidates[0]]
    for sweep in _sweeps(size_a, type_a, size_b, type_b, rotation):
        starts.append(_local_maxima(sweep, value(sweep)))
    start = np.concatenate(starts, 1)
    candidates.append(best_smooth(type_a, size_a, type_b, size_b, rotation, pose[:, :3], start))
    for k in range(axes.shape[1]):
        candidates.append(
            best_on_circle(axes[:, k], heights[:, k], np.concatenate([start, *candidates[-1:]], 1), value)
        )
    found = np.concatenate(candidates, 1)
    around = _around_best(found, value(found))
    smooth = best_smooth(type_a, size_a, type_b, size_b, rotation, pose[:, :3], around)
    n = np.concatenate([found, smooth], 1)
    s = value(n)
    best = np.argmax(s, 1)
    rows = np.arange(len(pose))
    return s[rows, best], n[rows, best]


def _around_best(n: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Directions around the best ones found, in the cells between circles that meet there: [P, D, 3]."""
    order = np.argsort(-s, 1)[:, :1]
    best = np.take_along_axis(n, order[..., None], 1)
    first, second = tangents(best)
    angle = np.arange(8) * np.pi / 4 + 0.2
    ring = np.cos(angle)[:, None] * first + np.sin(angle)[:, None] * second
    return np.concatenate([unit(best + size * ring) for size in RING_SIZES], 1)


def _all_circles(type_a, size_a, type_b, size_b, rotation) -> tuple[np.ndarray, np.ndarray]:
    """The circles n.axis = height where s has kinks: axes [P, K, 3], heights [P, K]."""
    axis_a, height_a = circles(type_a, size_a)
    axis_b, height_b = circles(type_b, size_b)
    axis_b = np.einsum("pij,pkj->pki", rotation, -axis_b)  # b's support is taken along -n
    return np.concatenate([axis_a, axis_b], 1), np.concatenate([height_a, height_b], 1)


def _isolated(type_a, type_b, pose, rotation) -> np.ndarray:
    count = len(pose)
    own = np.broadcast_to(ISOLATED[type_a], (count, *ISOLATED[type_a].shape))
    other = np.einsum("pij,kj->pki", rotation, -ISOLATED[type_b])
    centers = pose[:, None, :3]
    length = np.linalg.norm(centers, axis=-1, keepdims=True)
    line = np.where(length > 0, centers / np.where(length > 0, length, 1.0), [0.0, 0.0, 1.0])
    frame = np.broadcast_to(np.concatenate([np.eye(3), -np.eye(3)]), (count, 6, 3))
    frame_b = np.einsum("pij,pkj->pki", rotation, frame)
    return np.concatenate([own, other, line, -line, frame, frame_b], 1)


@cache
def _sphere() -> tuple[np.ndarray, np.ndarray]:
    """Directions spread evenly over the sphere (Fibonacci), and each one's nearest others."""
    i = np.arange(SWEEP_COUNT) + 0.5
    z = 1 - 2 * i / SWEEP_COUNT
    turn = np.pi * (1 + 5**0.5) * i
    r = np.sqrt(1 - z * z)
    points = np.stack([r * np.cos(turn), r * np.sin(turn), z], -1)
    return points, cKDTree(points).query(points, NEIGHBOUR_COUNT + 1)[1][:, 1:]


def _sweeps(size_a, type_a, size_b, type_b, rotation) -> list[np.ndarray]:
    """Directions even on the sphere, and even over the surface of each shape's bounding ellipsoid (thin shapes)."""
    u = _sphere()[0]
    even = np.broadcast_to(u, (len(size_a), *u.shape))
    warped_a = u / extents(type_a, size_a)[:, None]
    warped_b = np.einsum("pij,pdj->pdi", rotation, u / extents(type_b, size_b)[:, None])
    return [even] + [w / np.linalg.norm(w, axis=-1, keepdims=True) for w in (warped_a, warped_b)]


def _local_maxima(n: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The directions of the START_COUNT highest local maxima of a sweep: [P, START_COUNT, 3]."""
    neighbours = _sphere()[1]
    highest = s >= s[:, neighbours].max(-1)
    order = np.argsort(np.where(highest, -s, np.inf), 1)[:, :START_COUNT]
    return np.take_along_axis(n, order[..., None], 1)
