"""Reduction of many points to the vertices of their hull, as input of `convex_hull`."""

from __future__ import annotations

from itertools import product

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import dot

FEW = 20_000
"""Points up to which `convex_hull` needs no reduction."""
CANDIDATE_LIMIT = 1_000_000
"""Most points that may be vertices; Qhull takes some 20 s for so many on a sphere."""
VERTEX_LIMIT = 50_000
"""Most vertices of a hull; so many take some 40 s, most of it for merging faces."""
INNER = 1e-9
"""A point deeper than this fraction of the size inside the hull of some of the points is no vertex."""
_CHUNK = 1 << 16


def hull_points(points: np.ndarray, where: str) -> np.ndarray:
    """The vertices of the hull of finite points [n, 3]; all points if they are few.

    Flat points give their extreme points in 26 directions.
    Raises InputError, with `where`, for more candidates or vertices than the limits, which bound the time.
    Source: Akl, Toussaint 1978: points inside the hull of the extreme points of some directions are discarded first.
    """
    if len(points) <= FEW:
        return points
    from scipy.spatial import ConvexHull, QhullError

    low = points.min(axis=0)
    extent = float((points.max(axis=0) - low).max())
    if extent == 0.0:
        return points[:1]
    directions = np.array([d for d in product((-1.0, 0.0, 1.0), repeat=3) if any(d)])
    extreme = np.unique(np.array([int(np.argmax(dot(points, d))) for d in directions]))
    try:
        inner = ConvexHull((points[extreme] - low) / extent)
        candidates = points[_outside(points, low, extent, inner.equations)]
        if len(candidates) > CANDIDATE_LIMIT:
            raise _too_many(f"{len(candidates)} points near its hull", where, CANDIDATE_LIMIT)
        vertices = ConvexHull((candidates - low) / extent).vertices
    except QhullError:
        return points[extreme]  # flat
    if len(vertices) > VERTEX_LIMIT:
        raise _too_many(f"a hull of {len(vertices)} vertices", where, VERTEX_LIMIT)
    return candidates[vertices]


def _outside(points: np.ndarray, low: np.ndarray, extent: float, equations: np.ndarray) -> np.ndarray:
    """bool[n]: points that are less than INNER inside some plane."""
    kept = np.empty(len(points), bool)
    for start in range(0, len(points), _CHUNK):
        scaled = (points[start : start + _CHUNK] - low) / extent
        kept[start : start + _CHUNK] = (dot(scaled[:, None], equations[:, :3]) + equations[:, 3]).max(axis=1) > -INNER
    return kept


def _too_many(what: str, where: str, limit: int) -> InputError:
    return InputError(
        f"the mesh has {what}, and {limit} are the most", where, "simplify the mesh, or collide with its bounding box"
    )
