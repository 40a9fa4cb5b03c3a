"""Of very many points, those that are vertices of their hull: what `convex_hull` then has to work on."""

from __future__ import annotations

from itertools import product

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import dot

FEW = 20_000
"""Up to so many points are left to `convex_hull` as they are."""
CANDIDATE_LIMIT = 1_000_000
"""Points that may be vertices; Qhull takes some 20 s for so many on a sphere."""
VERTEX_LIMIT = 50_000
"""Vertices of a hull; so many take some 40 s, most of it to join their faces."""
INNER = 1e-9
"""A point that is deeper than this share of the size inside the hull of some of the points is no vertex."""
_CHUNK = 1 << 16


def hull_points(points: np.ndarray, where: str) -> np.ndarray:
    """Those of finite points [n, 3] that are vertices of their hull; all of them where they are few, or flat.

    Raises InputError, naming `where`, for a hull of more vertices than can be worked on in bounded time.
    Source: the points inside the hull of those that are extreme in some directions go first (Akl, Toussaint 1978).
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
    """bool[n]: points that are not well inside all the planes."""
    kept = np.empty(len(points), bool)
    for start in range(0, len(points), _CHUNK):
        scaled = (points[start : start + _CHUNK] - low) / extent
        kept[start : start + _CHUNK] = (dot(scaled[:, None], equations[:, :3]) + equations[:, 3]).max(axis=1) > -INNER
    return kept


def _too_many(what: str, where: str, limit: int) -> InputError:
    return InputError(
        f"the mesh has {what}, and {limit} are the most", where, "simplify the mesh, or collide with its bounding box"
    )
