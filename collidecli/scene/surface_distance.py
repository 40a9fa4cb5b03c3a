"""Exact distances of points from triangles, and winding numbers: float64 NumPy and SciPy's
KDTree."""

from __future__ import annotations

import numpy as np

from collidecli.numerics.products import dot, norm
from collidecli.numerics.trigonometry import atan2
from collidecli.scene.distinct_values import distinct

_CHUNK = 1 << 20
"""Pairs of a point and a triangle in one vectorized step."""


def surface_distance(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """float64[n]: distance of points [n, 3] from the nearest of triangles [t, 3, 3], all with area.

    The triangles are processed by octaves of their radius, the largest first: a triangle of an
    octave can be nearer than the nearest so far only if its centroid is within the sum of that
    distance and its radius.
    """
    from scipy.spatial import KDTree

    middle = corners.mean(axis=1)
    radius = norm(corners - middle[:, None]).max(axis=1)
    octave = np.frexp(np.maximum(radius, np.finfo(float).tiny))[1]
    best = np.full(len(points), np.inf)
    for level in distinct(octave)[::-1]:
        rows = np.flatnonzero(octave == level)
        tree = KDTree(middle[rows])
        # The centroid is on its triangle, so its distance is an upper bound.
        best = np.minimum(best, tree.query(points)[0])
        near = tree.query_ball_point(points, best + radius[rows].max(), return_length=True)
        ends = np.cumsum(near)
        start = 0
        while start < len(points):
            done = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + _CHUNK, side="right")))
            chosen = points[start:stop]
            within = tree.query_ball_point(
                chosen, best[start:stop] + radius[rows].max(), return_sorted=True
            )
            point = np.repeat(np.arange(stop - start), [len(level) for level in within])
            triangle = rows[np.concatenate([np.asarray(level, np.int64) for level in within])]
            np.minimum.at(best[start:stop], point, distances(chosen[point], corners[triangle]))
            start = stop
    return best


def winding_number(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """float64[n]: winding numbers of triangles [t, 3, 3] about points [n, 3]; of a closed mesh 1
    inside, 0 outside.

    Source: van Oosterom, Strackee 1983, a triangle's solid angle; Jacobson, Kavan, Sorkine 2013 for
    open meshes.
    """
    result = np.empty(len(points))
    step = max(1, _CHUNK // len(corners))
    for start in range(0, len(points), step):
        a, b, c = (corners[None, :, k] - points[start : start + step, None] for k in range(3))
        la, lb, lc = (norm(side) for side in (a, b, c))
        over = dot(a, np.cross(b, c))
        under = la * lb * lc
        for p, q, length in ((a, b, lc), (b, c, la), (c, a, lb)):
            under += dot(p, q) * length
        result[start : start + step] = atan2(over, under).sum(axis=1) / (2.0 * np.pi)
    return result


def distances(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """float64[n]: distance of each point from its own triangle."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= norm(normal)[:, None]
    height = dot(points - corners[:, 0], normal)
    foot = points - height[:, None] * normal
    inside = np.ones(len(points), bool)
    rim = np.full(len(points), np.inf)
    for k in range(3):
        start = corners[:, k]
        side = corners[:, (k + 1) % 3] - corners[:, k]
        inside &= dot(np.cross(side, foot - start), normal) >= 0.0
        t = dot(points - start, side) / dot(side, side)
        nearest = start + np.clip(t, 0.0, 1.0)[:, None] * side
        rim = np.minimum(rim, norm(points - nearest))
    return np.where(inside, np.abs(height), rim)
