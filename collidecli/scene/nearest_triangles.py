"""The triangle that is nearest to a point, by float64 NumPy and SciPy's KDTree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collidecli.numerics.products import dot, norm
from collidecli.scene.distinct_values import distinct
from collidecli.scene.surface_distance import distances, surface_distance

_CHUNK = 1 << 20
"""Pairs of a point and a triangle in one vectorized step."""
FACING_DIGITS = 6
"""Triangles whose directions agree with another one to this number of digits face it equally."""


def nearest_triangle(
    points: np.ndarray, directions: np.ndarray, corners: np.ndarray, slack: np.ndarray
) -> np.ndarray:
    """int64[n]: the nearest of triangles [t, 3, 3], all with area, to each of points [n, 3].

    Of triangles whose distance exceeds the least one by at most slack [n], such as those of an edge
    that contains the point, the one whose normal is nearest to the point's unit direction [n, 3];
    of several, the first.
    """
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= norm(normal)[:, None]
    best = np.full(len(points), -1)
    facing = np.full(len(points), -np.inf)
    reach = surface_distance(points, corners) + slack
    for point, triangle in _pairs_within(points, corners, reach):
        turned = np.round(dot(directions[point], normal[triangle]), FACING_DIGITS)
        order = np.lexsort((triangle, -turned, point))
        first = order[np.diff(point[order], prepend=-1) != 0]
        at = point[first]
        is_better = (turned[first] > facing[at]) | (
            (turned[first] == facing[at]) & (triangle[first] < best[at])
        )
        at = at[is_better]
        best[at] = triangle[first][is_better]
        facing[at] = turned[first][is_better]
    return best


def _pairs_within(
    points: np.ndarray, corners: np.ndarray, reach: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Points and triangles, int64[k] each, at a distance of at most the point's reach [n].

    A triangle of an octave of radii is only near if its centroid is within the reach and its
    radius, see `surface_distance`.
    """
    from scipy.spatial import KDTree

    middle = corners.mean(axis=1)
    radius = norm(corners - middle[:, None]).max(axis=1)
    octave = np.frexp(np.maximum(radius, np.finfo(float).tiny))[1]
    for level in distinct(octave):
        rows = np.flatnonzero(octave == level)
        tree = KDTree(middle[rows])
        # Rounding of a distance must exclude no triangle.
        around = (reach + radius[rows].max()) * (1.0 + 1e-12)
        ends = np.cumsum(tree.query_ball_point(points, around, return_length=True))
        start = 0
        while start < len(points):
            done = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + _CHUNK, side="right")))
            within = tree.query_ball_point(points[start:stop], around[start:stop])
            point = start + np.repeat(np.arange(stop - start), [len(found) for found in within])
            triangle = rows[np.concatenate([np.asarray(found, np.int64) for found in within])]
            is_near = distances(points[point], corners[triangle]) <= reach[point]
            yield point[is_near], triangle[is_near]
            start = stop
