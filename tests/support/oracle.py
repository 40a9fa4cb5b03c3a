"""Signed distance of convex shapes: the largest separation over all directions, by search on the
sphere."""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from collidecli.scene.shape_types import ShapeType
from tests.support.meshes import dot, length
from tests.support.supports import (
    ISOLATED,
    circles,
    extents,
    support_curvature,
    support_height,
    support_point,
)

GRID_COUNT = 96
BRACKET_COUNT = 4
GOLDEN = 0.5 * (5**0.5 - 1)
GOLDEN_STEPS = 52  # shrinks a bracket of 0.1 to 1e-12
NEWTON_STEPS = 24
STEP_ROUNDING = 1e-15
"""Of the larger shape: a gain below it is none."""
SHRINK = 0.8
"""Rows are dropped when fewer than this share still gain: to drop them costs a copy."""

Value = Callable[[np.ndarray], np.ndarray]


def tangents(n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors perpendicular to unit n and to each other, each of n's shape."""
    x, y, z = np.moveaxis(n, -1, 0)
    across_x = np.abs(x) < 0.6  # n and x, else n and y
    first = np.stack(
        [np.where(across_x, 0.0, -z), np.where(across_x, z, 0.0), np.where(across_x, -y, x)], -1
    )
    first /= length(first)[..., None]
    u, v, w = np.moveaxis(first, -1, 0)
    return first, np.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)


def directions_on_sphere(count: int) -> np.ndarray:
    """float64[count, 3]: unit vectors on a Fibonacci spiral, evenly spread."""
    k = np.arange(count) + 0.5
    z = 1.0 - 2.0 * k / count
    angle = np.pi * (1.0 + 5.0**0.5) * k
    across = np.sqrt(1.0 - z * z)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1)


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def circle_crossings(axes: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Both crossings of each two of the circles axis.n = height: [P, K * (K - 1), 3]; +z where they
    do not cross."""
    found = [np.zeros((len(axes), 0, 3))]
    for i in range(axes.shape[1]):
        for j in range(i + 1, axes.shape[1]):
            found.append(_crossing(axes[:, i], heights[:, i], axes[:, j], heights[:, j]))
    return np.concatenate(found, 1)


def _crossing(u: np.ndarray, c: np.ndarray, v: np.ndarray, d: np.ndarray) -> np.ndarray:
    across = np.cross(u, v)
    sine_square = (across**2).sum(-1)
    cosine = (u * v).sum(-1)
    apart = sine_square > 1e-24
    safe = np.where(apart, sine_square, 1.0)
    middle = ((c - d * cosine) / safe)[:, None] * u + ((d - c * cosine) / safe)[:, None] * v
    rest = 1 - (middle**2).sum(-1)
    meets = apart & (rest >= 0)
    side = np.sqrt(np.maximum(rest, 0.0) / safe)[:, None] * across
    both = np.stack([middle + side, middle - side], 1)
    return unit(np.where(meets[:, None, None], both, [0.0, 0.0, 1.0]))


def best_on_circle(
    axis: np.ndarray, height: np.ndarray, hints: np.ndarray, value: Value
) -> np.ndarray:
    """The highest maxima of `value` along the circles axis.n = height: [P, BRACKET_COUNT, 3].

    Args:
        axis: [P, 3], unit. height: [P]. hints: [P, D, 3], directions near which the grid is
            refined.
    """
    first, second = tangents(axis)
    radius = np.sqrt(np.maximum(1 - height**2, 0.0))

    def at(angle: np.ndarray) -> np.ndarray:
        around = (
            np.cos(angle)[..., None] * first[:, None] + np.sin(angle)[..., None] * second[:, None]
        )
        return height[:, None, None] * axis[:, None] + radius[:, None, None] * around

    even = np.broadcast_to(
        np.linspace(-np.pi, np.pi, GRID_COUNT, endpoint=False), (len(axis), GRID_COUNT)
    )
    near = np.arctan2(np.einsum("pdi,pi->pd", hints, second), np.einsum("pdi,pi->pd", hints, first))
    grid = _spread(np.concatenate([even, near], 1))
    grid = np.concatenate([grid[:, -1:] - 2 * np.pi, grid, grid[:, :1] + 2 * np.pi], 1)
    s = value(at(grid))
    highest = (s[:, 1:-1] >= s[:, :-2]) & (s[:, 1:-1] >= s[:, 2:])
    order = 1 + np.argsort(np.where(highest, -s[:, 1:-1], np.inf), 1)[:, :BRACKET_COUNT]
    low = np.take_along_axis(grid, order - 1, 1)
    high = np.take_along_axis(grid, order + 1, 1)
    return at(golden_section(lambda angle: value(at(angle)), low, high))


def _spread(angle: np.ndarray) -> np.ndarray:
    """Sorted angles with those that repeat another moved elsewhere, so that no bracket between them
    is empty."""
    elsewhere = np.random.default_rng(0).uniform(-np.pi, np.pi, angle.shape)
    angle = np.sort(angle, 1)
    repeats = np.diff(angle, axis=1, prepend=-np.inf) < 1e-7
    return np.sort(np.where(repeats, elsewhere, angle), 1)


def golden_section(
    value: Value, low: np.ndarray, high: np.ndarray, steps: int = GOLDEN_STEPS
) -> np.ndarray:
    """Where the value is highest, between low and high [...]."""
    x, y = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_x = value(x)
    at_y = value(y)
    for _ in range(steps):
        left = at_x >= at_y
        low = np.where(left, low, x)
        high = np.where(left, y, high)
        kept = np.where(left, x, y)
        at_kept = np.where(left, at_x, at_y)
        fresh = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_fresh = value(fresh)
        x, y = np.where(left, fresh, kept), np.where(left, kept, fresh)
        at_x = np.where(left, at_fresh, at_kept)
        at_y = np.where(left, at_kept, at_fresh)
    return 0.5 * (low + high)


def best_smooth(type_a, size_a, type_b, size_b, rotation, center, start: np.ndarray) -> np.ndarray:
    """Local maxima of s(n) reached from `start` [P, D, 3] by a damped Newton's method on the
    sphere; never lower.

    Each start is left alone from where no step promises more than rounding.
    """
    pair = np.repeat(np.arange(len(start)), start.shape[1])
    # One direction a row from here on: [P * D, 1, 3].
    result = start.reshape(-1, 1, 3).copy()
    n = result.copy()
    damping = np.full((len(pair), 1), 1e-3)
    going = np.arange(len(pair))
    least = (
        STEP_ROUNDING
        * np.maximum(extents(type_a, size_a).max(1), extents(type_b, size_b).max(1))[pair]
    )
    held = (size_a[pair], size_b[pair], rotation[pair], center[pair])
    s = separation(type_a, held[0], type_b, held[1], held[2], held[3], n)
    for _ in range(NEWTON_STEPS):
        first, second = tangents(n)
        gx, gy, *curvature = _derivatives(
            type_a, held[0], type_b, held[1], held[2], held[3], n, s, first, second
        )
        x, y = _damped_step(gx, gy, *curvature, damping)
        promising = (gx * x + gy * y)[:, 0] > least
        if not promising.any():
            break
        if promising.sum() < SHRINK * len(promising):
            result[going] = n
            held = tuple(one[promising] for one in held)
            n, s, damping, first, second = (
                one[promising] for one in (n, s, damping, first, second)
            )
            going, least, x, y = (one[promising] for one in (going, least, x, y))
        tried = n + x[..., None] * first + y[..., None] * second
        tried /= length(tried)[..., None]
        at_tried = separation(type_a, held[0], type_b, held[1], held[2], held[3], tried)
        better = at_tried > s
        n = np.where(better[..., None], tried, n)
        s = np.where(better, at_tried, s)
        damping = np.where(better, damping * 0.1, damping * 10.0).clip(1e-15, 1e12)
    result[going] = n
    return result.reshape(start.shape)


def separation(type_a, size_a, type_b, size_b, rotation, center, n) -> np.ndarray:
    """s(n) [P, D] at directions n [P, D, 3]; b's rotation [P, 3, 3] and center [P, 3] in a's
    frame."""
    low_b = (n @ center[..., None])[..., 0] - support_height(type_b, size_b, -(n @ rotation))
    return low_b - support_height(type_a, size_a, n)


def _derivatives(
    type_a, size_a, type_b, size_b, rotation, center, n, s, first, second
) -> tuple[np.ndarray, ...]:
    """Derivatives of s along two tangents at n, x and y, and minus the second ones, xx, xy and yy,
    each [P, D]."""
    back = -(n @ rotation)
    difference = center[:, None] - support_point(type_a, size_a, n)
    difference = difference + support_point(type_b, size_b, back) @ np.swapaxes(rotation, 1, 2)
    of_a = support_curvature(type_a, size_a, n, first, second)
    of_b = support_curvature(type_b, size_b, back, first @ rotation, second @ rotation)
    slopes = dot(first, difference), dot(second, difference)
    return (
        *slopes,
        of_a[0] + of_b[0] + s,
        of_a[1] + of_b[1] + np.zeros_like(s),
        of_a[2] + of_b[2] + s,
    )


def _damped_step(gx, gy, xx, xy, yy, damping: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(curvature + shift) step = gradient, the shift making it positive definite and growing with
    the damping."""
    mean = 0.5 * (xx + yy)
    spread = np.hypot(0.5 * (xx - yy), xy)
    scale = np.abs(mean) + spread + 1e-300
    shift = np.maximum(0.0, spread - mean) + damping * scale + 1e-14 * scale
    xx, yy = xx + shift, yy + shift
    determinant = np.maximum(xx * yy - xy * xy, 1e-300)
    x, y = (yy * gx - xy * gy) / determinant, (xx * gy - xy * gx) / determinant
    shorter = np.minimum(1.0, 0.5 / np.maximum(np.hypot(x, y), 1e-300))
    return x * shorter, y * shorter


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
    """s(normal): how far apart the shapes are along `normal`, negative when their shadows on it
    overlap.

    Args:
        size_a, size_b: float64[P, 3] or [3]. pose_b_to_a: [P, 7]. normal: [P, D, 3] or [P, 3], a's
            frame.
    Returns:
        float64[P, D] or [P].
    """
    pose = np.atleast_2d(pose_b_to_a)
    normal = np.asarray(normal, np.float64)
    flat = normal.ndim == 2
    n = normal[:, None] if flat else normal
    size_a, size_b = (np.broadcast_to(s, (len(pose), 3)) for s in (size_a, size_b))
    value = separation(type_a, size_a, type_b, size_b, rotation_of(pose), pose[:, :3], n)
    return value[:, 0] if flat else value


def signed_distance(type_a, size_a, type_b, size_b, pose_b_to_a) -> tuple[np.ndarray, np.ndarray]:
    """Signed distance of convex shapes and a direction that attains it.

    Args:
        type_a, type_b: `ShapeType`; a may be a plane, which is the half-space z <= 0.
        size_a, size_b: float64[3] or [P, 3] [m].
        pose_b_to_a: float64[7] or [P, 7], b's frame in a's, quaternion xyzw.
    Returns:
        distance float64[P], negative when they overlap; unit normal float64[P, 3] from a to b, in
        a's frame. For one
        pose [7]: a scalar and [3]. Where several directions attain the distance, one of them.
    """
    pose = np.asarray(pose_b_to_a, np.float64)
    poses = np.atleast_2d(pose)
    size_a, size_b = (
        np.broadcast_to(np.asarray(s, np.float64), (len(poses), 3)) for s in (size_a, size_b)
    )
    if type_a == ShapeType.PLANE:
        normal = np.broadcast_to([0.0, 0.0, 1.0], (len(poses), 3)).copy()
        distance = separation_along(type_a, size_a, type_b, size_b, poses, normal)
    else:
        parts = [
            _search(
                type_a, size_a[i : i + CHUNK], type_b, size_b[i : i + CHUNK], poses[i : i + CHUNK]
            )
            for i in range(0, len(poses), CHUNK)
        ]
        distance, normal = (np.concatenate(each) for each in zip(*parts, strict=True))
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
            best_on_circle(
                axes[:, k], heights[:, k], np.concatenate([start, *candidates[-1:]], 1), value
            )
        )
    found = np.concatenate(candidates, 1)
    around = _around_best(found, value(found))
    smooth = best_smooth(type_a, size_a, type_b, size_b, rotation, pose[:, :3], around)
    n = np.concatenate([found, smooth], 1)
    s = value(n)
    return s.max(1), n[np.arange(len(pose)), s.argmax(1)]


def _around_best(n: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Directions around the best ones found, in the cells between circles that meet there: [P, D,
    3]."""
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
    far = length(centers)[..., None]
    line = np.where(far > 0, centers / np.where(far > 0, far, 1.0), [0.0, 0.0, 1.0])
    frame = np.broadcast_to(np.concatenate([np.eye(3), -np.eye(3)]), (count, 6, 3))
    frame_b = np.einsum("pij,pkj->pki", rotation, frame)
    return np.concatenate([own, other, line, -line, frame, frame_b], 1)


@cache
def _sphere() -> tuple[np.ndarray, np.ndarray]:
    """Directions spread evenly over the sphere (Fibonacci), and each one's nearest others."""
    points = directions_on_sphere(SWEEP_COUNT)
    return points, cKDTree(points).query(points, NEIGHBOUR_COUNT + 1)[1][:, 1:]


def _sweeps(size_a, type_a, size_b, type_b, rotation) -> list[np.ndarray]:
    """Directions even on the sphere, and even over the surface of each shape's bounding ellipsoid
    (thin shapes)."""
    u = _sphere()[0]
    even = np.broadcast_to(u, (len(size_a), *u.shape))
    warped_a = u / extents(type_a, size_a)[:, None]
    warped_b = np.einsum("pij,pdj->pdi", rotation, u / extents(type_b, size_b)[:, None])
    return [even, *(w / length(w)[..., None] for w in (warped_a, warped_b))]


def _local_maxima(n: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The directions of the START_COUNT highest local maxima of a sweep: [P, START_COUNT, 3]."""
    neighbours = _sphere()[1]
    highest = s >= s[:, neighbours].max(-1)
    order = np.argsort(np.where(highest, -s, np.inf), 1)[:, :START_COUNT]
    return np.take_along_axis(n, order[..., None], 1)


ROUNDING = 3e-7
"""Distances are written in float32, points in the recording's type; of the size."""
COLUMNS = (
    "distance",
    "normal",
    "point0",
    "point1",
    "feature0",
    "feature1",
    "shape0",
    "shape1",
    "kind",
    "cell_start",
)


def check_contract(cell, size: float) -> None:
    """The equation that every contact obeys, unit normals, and no two of one name. size: of the
    scene [m]."""
    off = np.abs(dot(cell.point1 - cell.point0, cell.normal) - cell.distance)
    # 1e-7: float32 of a distance
    assert (off - 1e-7 * np.abs(cell.distance)).max(initial=0.0) <= 10 * ROUNDING * size
    assert np.abs(np.linalg.norm(cell.normal, axis=1) - 1.0).max(initial=0.0) <= 1e-6
    names = list(zip(cell.feature0.tolist(), cell.feature1.tolist(), strict=True))
    assert names == sorted(set(names))


def columns(contacts) -> dict[str, bytes]:
    """Every column's bytes: equal where two answers are one to the bit."""
    return {name: np.ascontiguousarray(getattr(contacts, name)).tobytes() for name in COLUMNS}
