"""Signed distances of points from convex solids, and of triangles by a search over each; float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import ConvexHull

from collidecli.scene.shape_types import ShapeType
from tests.support.supports import HULL, surface_residual

GOLDEN = 0.5 * (5**0.5 - 1)
STEPS = 32
"""Of a golden section, which leave 2e-7 of the side of a triangle."""
NEWTON_STEPS = 12
TINY = 1e-9
"""Coordinates nearer to a plane of symmetry than this are moved there: nothing else is off by more."""

Field = Callable[[np.ndarray], np.ndarray]


def field_of(shape_type: ShapeType, size: np.ndarray) -> Field:
    """The signed distance of points [..., 3] from a convex shape in its own frame: negative inside, and convex.

    Outside a convex mesh it is that from the planes of its faces, which is less, but above 0.
    """
    if shape_type == ShapeType.CONVEX_MESH:
        return _hull_field(size)
    if shape_type == ShapeType.ELLIPSOID:
        return lambda points: _ellipsoid(points.reshape(-1, 3), size).reshape(points.shape[:-1])

    def field(points: np.ndarray) -> np.ndarray:
        flat = points.reshape(-1, 3)
        sizes = np.broadcast_to(size, (len(flat), 3))
        return surface_residual(shape_type, sizes, flat).reshape(points.shape[:-1])

    return field


def _hull_field(size: np.ndarray) -> Field:
    planes = ConvexHull(HULL * size).equations
    return lambda points: (points @ planes[:, :3].T + planes[:, 3]).max(-1)


def _ellipsoid(points: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The nearest point is e² y / (t + e²) for the one root t > -min(e²) of sum (e y / (t + e²))² = 1 (Eberly).

    Newton's method on that convex function, from where one of its terms alone is 1, never passes the root.
    """
    y, square = np.maximum(np.abs(points), TINY), size**2
    t = (size * y - square).max(1)
    for _ in range(NEWTON_STEPS):
        part = size * y / (t[:, None] + square)
        t = t + 0.5 * ((part**2).sum(1) - 1.0) / (part**2 / (t[:, None] + square)).sum(1)
    foot = square * y / (t[:, None] + square)
    distance = np.linalg.norm(foot - y, axis=1)
    return np.where(((y / size) ** 2).sum(1) < 1.0, -distance, distance)


def least_over_triangles(field: Field, corners: np.ndarray, owner: np.ndarray, count: int) -> np.ndarray:
    """float64[count]: the least of a convex field over the triangles [n, 3, 3] of each owner.

    A convex function has one minimum over a triangle, which a golden section within a golden section finds. field:
    no steeper than 1, so that triangles far from the best are passed over.
    """
    middle = corners.mean(1)
    max_separation = np.linalg.norm(corners - middle[:, None], axis=2).max(1)
    at_middle, at_corners = field(middle), field(corners).min(1)
    best = np.full(count, np.inf)
    np.minimum.at(best, owner, np.minimum(at_middle, at_corners))
    near = at_middle - max_separation <= best[owner]
    a, b, c = (corners[near, k] for k in range(3))

    def along(s: np.ndarray) -> np.ndarray:
        start, end = a + s[:, None] * (b - a), a + s[:, None] * (c - a)
        return _golden(lambda t: field(start + t[:, None] * (end - start)), len(s))

    np.minimum.at(best, owner[near], _golden(along, len(a)))
    return best


def _golden(value: Field, count: int) -> np.ndarray:
    """The least of convex functions over [0, 1], one a row."""
    low, high = np.zeros(count), np.ones(count)
    least = np.minimum(value(low), value(high))
    x, y = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_x, at_y = value(x), value(y)
    for _ in range(STEPS):
        least = np.minimum(least, np.minimum(at_x, at_y))
        left = at_x <= at_y
        low, high = np.where(left, low, x), np.where(left, y, high)
        fresh = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_fresh = value(fresh)
        x, y = np.where(left, fresh, y), np.where(left, x, fresh)
        at_x, at_y = np.where(left, at_fresh, at_y), np.where(left, at_x, at_fresh)
    return least
