"""Poses of b in a's frame on which a pair's collider is tested: random, grazing, deep and degenerate ones."""

from __future__ import annotations

import numpy as np

from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import signed_distance
from tests.support.supports import extents

HALF = 0.5**0.5
QUARTER_TURNS = np.array(
    [
        [0, 0, 0, 1],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [HALF, 0, 0, HALF],
        [0, HALF, 0, HALF],
        [0, 0, HALF, HALF],
        [-HALF, 0, 0, HALF],
        [0, HALF, 0, -HALF],
        [0.5, 0.5, 0.5, 0.5],
        [-0.5, 0.5, 0.5, 0.5],
    ],
    np.float64,
)
"""Quaternions xyzw that turn axes onto axes: none, 180 degrees, 90 degrees, and two cyclic ones."""

_EIGHTH = np.array([0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)])
TILTS = np.array(
    [
        _EIGHTH,
        _EIGHTH[[2, 0, 1, 3]],
        _EIGHTH[[0, 2, 1, 3]],
        [-0.27984814, 0.36470520, 0.11591689, 0.88047624],  # (1,1,1) turned onto z: vertex on face
        [1e-9, 0, 0, 1],
        [0, 1e-7, 0, 1],
        [0, 0, 1e-5, 1],
        [1e-4, 2e-4, 0, 1],
    ]
)
"""Quaternions xyzw with an edge or a vertex facing an axis, and some a hair off the identity."""
TILTS = TILTS / np.linalg.norm(TILTS, axis=-1, keepdims=True)


def _reach_of(shape_type: ShapeType, size: np.ndarray) -> np.ndarray:
    if shape_type == ShapeType.PLANE:
        return np.zeros(3)
    return extents(shape_type, np.asarray(size, np.float64)[None])[0]


def random_quaternions(rng: np.random.Generator, count: int) -> np.ndarray:
    """Uniform rotations float64[count, 4], xyzw."""
    q = rng.standard_normal((count, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def random_poses(type_a, size_a, type_b, size_b, count: int, rng: np.random.Generator) -> np.ndarray:
    """Poses [count, 7] that mix apart, near and overlapping: b's centre within twice the sum of the extents."""
    size = np.linalg.norm(_reach_of(type_b, size_b))
    box = _reach_of(type_a, size_a) + size
    scale = rng.choice([0.3, 0.8, 1.1, 2.0], (count, 1))
    position = rng.uniform(-1.0, 1.0, (count, 3)) * box * scale
    return np.concatenate([position, random_quaternions(rng, count)], 1)


def touching_poses(type_a, size_a, type_b, size_b, poses: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """`poses` moved along the normal so that the distance becomes `offsets` [P] [m], as near as one move gets."""
    distance, normal = signed_distance(type_a, size_a, type_b, size_b, poses)
    moved = poses.copy()
    moved[:, :3] += (offsets - distance)[:, None] * normal
    return moved


def grazing_poses(type_a, size_a, type_b, size_b, count: int, rng: np.random.Generator) -> np.ndarray:
    """Poses [count, 7] that touch within 1e-6 of the smaller shape's size, on either side."""
    poses = random_poses(type_a, size_a, type_b, size_b, count, rng)
    sizes = [np.max(_reach_of(t, s)) for t, s in ((type_a, size_a), (type_b, size_b)) if t != ShapeType.PLANE]
    offsets = rng.uniform(-1e-6, 1e-6, count) * min(sizes)
    return touching_poses(type_a, size_a, type_b, size_b, poses, offsets)


def deep_poses(type_a, size_a, type_b, size_b, count: int, rng: np.random.Generator) -> np.ndarray:
    """Poses [count, 7] with b's centre inside a's bounds or a's centre inside b's."""
    position = rng.uniform(-0.5, 0.5, (count, 3)) * np.maximum(_reach_of(type_a, size_a), _reach_of(type_b, size_b))
    return np.concatenate([position, random_quaternions(rng, count)], 1)


def degenerate_poses(type_a, size_a, type_b, size_b) -> np.ndarray:
    """Poses [P, 7] with parallel or crossing axes and faces, at the same centre, and offset along axes and diagonals.

    Offsets along an axis are none, half the sum of the extents, just touching for boxes that are aligned, and apart.
    """
    quaternions = np.concatenate([QUARTER_TURNS, TILTS])
    total = _reach_of(type_a, size_a) + _reach_of(type_b, size_b)
    steps = [(0, 0, 0)]
    for k in (0.5, 1.0, 1.05):
        steps += [(k, 0, 0), (0, -k, 0), (0, 0, k), (0, 0, -k), (k, k, 0), (k, 0, k), (0, k, -k), (k, k, k)]
    positions = np.array(steps) * total
    count = len(positions) * len(quaternions)
    poses = np.empty((count, 7))
    poses[:, :3] = np.repeat(positions, len(quaternions), 0)
    poses[:, 3:] = np.tile(quaternions, (len(positions), 1))
    return poses


def pose_set(type_a, size_a, type_b, size_b, count: int, seed: int = 0) -> np.ndarray:
    """All four kinds together, `count` of each of the three drawn ones: float64[P, 7]."""
    rng = np.random.default_rng(seed)
    arguments = (type_a, size_a, type_b, size_b)
    drawn = [make(*arguments, count, rng) for make in (random_poses, grazing_poses, deep_poses)]
    return np.concatenate([*drawn, degenerate_poses(*arguments)])


def core_touching_poses(type_a, size_a, type_b, size_b, count: int, seed: int = 0) -> np.ndarray:
    """Poses [count, 7] of capsules and others with the capsules' inner segments a hair from touching, on either side.

    The direction between nearest points is at its worst there. Half are degenerate poses with noise of every size.
    """
    rng = np.random.default_rng(seed)
    difference = [np.array(s, np.float64) for s in (size_a, size_b)]
    for shape_type, core in zip((type_a, type_b), difference, strict=True):
        if shape_type == ShapeType.CAPSULE:
            core[0] = 1e-7
    degenerate = degenerate_poses(type_a, size_a, type_b, size_b)
    degenerate = degenerate[rng.choice(len(degenerate), count // 2)]
    poses = np.concatenate([degenerate, random_poses(type_a, size_a, type_b, size_b, count - count // 2, rng)])
    poses[:, 3:] += rng.standard_normal((count, 4)) * 10 ** rng.uniform(-17, -3, (count, 1))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    radii = 1e-7 * (type_a == ShapeType.CAPSULE) + 1e-7 * (type_b == ShapeType.CAPSULE)
    offsets = rng.choice([-1.0, 1.0], count) * 10 ** rng.uniform(-15, -3, count) - radii
    return touching_poses(type_a, difference[0], type_b, difference[1], poses, offsets)
