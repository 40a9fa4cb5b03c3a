"""Free translations of two closed meshes along a direction, from all pairs of triangles in
NumPy."""

from __future__ import annotations

import numpy as np

from tests.support.meshes import windings

LEVEL = 1e-12
"""Cosine of an axis and a direction below which a translation does not move the projection."""


def overlap_intervals(
    corners_a: np.ndarray, corners_b: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end, float64[A, B], of the translations of b at which two triangles cross [m].

    The triangles are not parallel: the axes are both normals and the cross products of the edges.
    """
    edges_a = np.roll(corners_a, -1, axis=1) - corners_a
    edges_b = np.roll(corners_b, -1, axis=1) - corners_b
    shape = (len(corners_a), len(corners_b), 3)
    normals_a = np.cross(edges_a[:, 0], edges_a[:, 1])
    normals_b = np.cross(edges_b[:, 0], edges_b[:, 1])
    axes = [np.broadcast_to(normals_a[:, None], shape), np.broadcast_to(normals_b[None], shape)]
    axes += [np.cross(edges_a[:, None, i], edges_b[None, :, j]) for i in range(3) for j in range(3)]
    axis = np.stack(axes, axis=2)
    axis = axis / np.maximum(np.sqrt((axis * axis).sum(-1, keepdims=True)), np.finfo(float).tiny)
    on_a = np.einsum("abkx,acx->abkc", axis, corners_a)
    on_b = np.einsum("abkx,bcx->abkc", axis, corners_b)
    rate = axis @ direction
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (on_a.min(-1) - on_b.max(-1)) / rate
        second = (on_a.max(-1) - on_b.min(-1)) / rate
    is_level = np.abs(rate) < LEVEL
    is_disjoint = (on_b.min(-1) >= on_a.max(-1)) | (on_b.max(-1) <= on_a.min(-1))
    start = np.where(is_level, np.where(is_disjoint, np.inf, -np.inf), np.minimum(first, second))
    end = np.where(is_level, np.where(is_disjoint, -np.inf, np.inf), np.maximum(first, second))
    return start.max(-1), end.min(-1)


def is_nested(corners_a: np.ndarray, corners_b: np.ndarray) -> bool:
    """Whether one of two closed meshes that do not cross is inside the other."""
    in_a = windings(corners_a, corners_b.mean(1))
    in_b = windings(corners_b, corners_a.mean(1))
    return bool((np.abs(in_a) > 0.5).any() or (np.abs(in_b) > 0.5).any())


def first_free(corners_a: np.ndarray, corners_b: np.ndarray, direction: np.ndarray) -> float:
    """The least translation of b along a unit direction at which nothing crosses or is inside
    [m]."""
    start, end = overlap_intervals(corners_a, corners_b, direction)
    counts = (end > start) & (end > 0.0)
    at = 0.0
    for begins, ends in sorted(zip(start[counts].tolist(), end[counts].tolist(), strict=True)):
        if begins > at and not is_nested(corners_a, corners_b + 0.5 * (at + begins) * direction):
            return at
        at = max(at, ends)
    return at
