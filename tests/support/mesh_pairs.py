"""What is true of two triangle meshes, by brute force over all pairs of their features in float64."""

from __future__ import annotations

import numpy as np

from tests.support.meshes import nearest_to_segments, winding
from tests.support.oracle import rotation_of


def placed(mesh: tuple[np.ndarray, np.ndarray], pose: np.ndarray, size: float = 1.0) -> np.ndarray:
    """float64[F, 3, 3]: a mesh's triangles in the world."""
    vertices, faces = mesh
    return (size * vertices @ rotation_of(pose[None])[0].T + pose[:3])[faces]


def box(hx: float, hy: float, hz: float) -> tuple[np.ndarray, np.ndarray]:
    """A closed box of twelve triangles around the origin, its triangles outwards."""
    vertices = np.array([[x, y, z] for x in (-hx, hx) for y in (-hy, hy) for z in (-hz, hz)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return vertices, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def points_to_triangles(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """float64[P]: distance of each point from the nearest of triangles [F, 3, 3]."""
    p, q, r = (corners[None, :, k] for k in range(3))
    normal = np.cross(q - p, r - p)
    normal = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    x = points[:, None]
    height = ((x - p) * normal).sum(-1)
    inside = np.ones(height.shape, bool)
    best = np.full(height.shape, np.inf)
    for a, b in ((p, q), (q, r), (r, p)):
        inside &= (np.cross(b - a, x - a) * normal).sum(-1) >= 0.0
        share = np.clip(((x - a) * (b - a)).sum(-1) / ((b - a) ** 2).sum(-1), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(a + share[..., None] * (b - a) - x, axis=-1))
    return np.where(inside, np.abs(height), best).min(axis=1)


def sides(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends, float64[E, 3], of every side of triangles, each once."""
    ends = np.stack([corners, np.roll(corners, -1, axis=1)], axis=2).reshape(-1, 2, 3)
    low_first = np.lexsort((ends[..., 2], ends[..., 1], ends[..., 0]), axis=1)
    ends = np.take_along_axis(ends, low_first[..., None], axis=1)
    ends = np.unique(ends.reshape(-1, 6), axis=0).reshape(-1, 2, 3)
    return ends[:, 0], ends[:, 1]


def crosses(corners_a: np.ndarray, corners_b: np.ndarray) -> bool:
    """Whether a side of a goes through a triangle of b."""
    start, end = (x[:, None] for x in sides(corners_a))
    p, q, r = (corners_b[None, :, k] for k in range(3))
    normal = np.cross(q - p, r - p)
    low, high = ((start - p) * normal).sum(-1), ((end - p) * normal).sum(-1)
    with np.errstate(all="ignore"):
        cut = start + (low / (low - high))[..., None] * (end - start)
        through = low * high < 0.0
        for a, b in ((p, q), (q, r), (r, p)):
            through &= (np.cross(b - a, cut - a) * normal).sum(-1) >= 0.0
    return bool(through.any())


def mesh_distance(corners_a: np.ndarray, corners_b: np.ndarray) -> float:
    """Distance of two surfaces; 0 where they cross."""
    if crosses(corners_a, corners_b) or crosses(corners_b, corners_a):
        return 0.0
    of_a = points_to_triangles(np.unique(corners_a.reshape(-1, 3), axis=0), corners_b).min()
    of_b = points_to_triangles(np.unique(corners_b.reshape(-1, 3), axis=0), corners_a).min()
    (p, q), (a, b) = sides(corners_a), sides(corners_b)
    of_edges = nearest_to_segments(p[:, None], q[:, None], a[None], b[None]).min()
    return float(min(of_a, of_b, of_edges))


def deepest_vertex(corners_a: np.ndarray, corners_b: np.ndarray) -> float:
    """How deep the deepest vertex of a is inside closed b; 0 where none is inside."""
    points = np.unique(corners_a.reshape(-1, 3), axis=0)
    box = (points > corners_b.min(axis=(0, 1))).all(axis=1) & (points < corners_b.max(axis=(0, 1))).all(axis=1)
    points = points[box]
    inside = np.array([winding(corners_b, point) > 0.5 for point in points], bool)
    return float(points_to_triangles(points[inside], corners_b).max()) if inside.any() else 0.0
