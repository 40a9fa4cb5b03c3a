"""How deep the deepest place of one closed surface is inside another, by points all over it, in float64."""

from __future__ import annotations

import numpy as np

from tests.support.mesh_pairs import points_to_triangles

ALONG = 12
"""Points along every side of a triangle."""
CHUNK = 200


def points_over(corners: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """float64[n, 3]: `count` random points of triangles [F, 3, 3], even by area, and points along all their sides."""
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    face = rng.choice(len(corners), count, p=area / area.sum())
    inside = np.einsum("nk,nki->ni", rng.dirichlet((1.0, 1.0, 1.0), count), corners[face])
    share = np.linspace(0.0, 1.0, ALONG)[:, None, None, None]
    sides = (corners + share * (np.roll(corners, -1, axis=1) - corners)).reshape(-1, 3)
    return np.unique(np.concatenate([inside, sides]), axis=0)


def windings(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[P]: how often triangles go around each point (van Oosterom and Strackee 1983)."""
    a, b, c = (corners[None, :, k] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    over = (a * np.cross(b, c)).sum(-1)
    under = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    return np.arctan2(over, under).sum(1) / (2.0 * np.pi)


def deepest_place(corners_a: np.ndarray, corners_b: np.ndarray, rng: np.random.Generator, count: int = 400) -> float:
    """How deep the deepest of many points of a's surface is inside closed b; 0 where none is."""
    points = points_over(corners_a, count, rng)
    points = points[np.all((points > corners_b.min((0, 1))) & (points < corners_b.max((0, 1))), axis=1)]
    deepest = 0.0
    for start in range(0, len(points), CHUNK):
        part = points[start : start + CHUNK]
        part = part[windings(corners_b, part) > 0.5]
        if len(part):
            deepest = max(deepest, float(points_to_triangles(part, corners_b).max()))
    return deepest


def deepest_of_pair(corners: list[np.ndarray], rng: np.random.Generator, count: int = 400) -> float:
    """The deepest place of either of two closed surfaces in the other."""
    first, second = corners
    return max(deepest_place(first, second, rng, count), deepest_place(second, first, rng, count))
