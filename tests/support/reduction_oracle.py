"""Which contacts a reduction keeps, in NumPy and plain loops; shares only the fixed directions with the engine."""

from __future__ import annotations

import math

import numpy as np

from collidecli.engine.contacts.reduction import bin_directions, bin_normals

NORMALS, DIRECTIONS = bin_normals(), bin_directions().reshape(20, 6, 3)


def along(vectors: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """float64[n]: dot products, summed from x to z."""
    return vectors[:, 0] * axis[0] + vectors[:, 1] * axis[1] + vectors[:, 2] * axis[2]


def kept_contacts(
    normal: np.ndarray, middle: np.ndarray, depth: np.ndarray, betas: tuple[float, ...] = (10.0, -0.5)
) -> list[int]:
    """Ascending numbers of the contacts that stay. normal, middle: float64[n, 3]. depth: float64[n], below 0 apart.

    The contacts are in canonical order, in the frame of the reduction.
    """
    bins = np.argmax(np.stack([along(normal, n).astype(np.float32) for n in NORMALS], axis=1), axis=1)
    kept: set[int] = set()
    for k in np.unique(bins):
        rows = np.flatnonzero(bins == k)
        kept.add(int(rows[np.argmax(depth[rows])]))
        offset = middle[rows] - np.cumsum(middle[rows], axis=0)[-1] / len(rows)
        deep = depth[rows] > 0.0
        for beta in betas:
            for direction in DIRECTIONS[k]:
                place = along(offset, direction)
                if beta >= 0.0:
                    score = place + depth[rows] * beta
                elif deep.any():
                    score = np.where(deep, place * np.where(deep, depth[rows], 1.0) ** -beta, -np.inf)
                else:
                    score = place
                kept.add(int(rows[np.argmax(score.astype(np.float32))]))
    return _balanced(kept, normal, depth)


def total_force(normal: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """float64[3]: depths times normals of what penetrates, in order."""
    total = np.zeros(3)
    for n, d in zip(normal, depth, strict=True):
        total = total + max(d, 0.0) * n
    return total


def cosine(force: np.ndarray, direction: np.ndarray) -> float:
    size = math.sqrt(force[0] * force[0] + force[1] * force[1] + force[2] * force[2])
    return float(along(force[None], direction)[0] / size) if size else -1.0


def _balanced(kept: set[int], normal: np.ndarray, depth: np.ndarray) -> list[int]:
    """With what turns the force of those kept to within a degree of that of all: deep ones first, at last any."""
    whole = total_force(normal, depth)
    strength = math.sqrt(along(whole[None], whole)[0])
    if strength <= 1e-6 * np.maximum(depth, 0.0).sum():
        return sorted(kept)
    direction = whole / strength
    aligned = math.cos(math.radians(1.0))
    order = sorted(kept)
    force = total_force(normal[order], depth[order])
    now = cosine(force, direction)
    for least in [*(depth.max() * 0.5**step for step in range(1, 13)), 0.0, None]:
        for row in range(len(depth)):
            if now >= aligned:
                return sorted(kept)
            if row in kept or depth[row] <= (least or 0.0):
                continue
            moved = force + depth[row] * normal[row]
            then = cosine(moved, direction)
            if then > now + 1e-9 or least is None:
                kept.add(row)
                force, now = moved, then
    return sorted(kept)
