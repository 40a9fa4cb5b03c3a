"""Heightfields for tests, and what is true of them by brute force over their triangles in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.support.meshes import point_distances


@dataclass(frozen=True)
class Terrain:
    """heights[rows, cols] over a rectangle of half sizes hx, hy [m], solid down to `bottom`."""

    heights: np.ndarray
    hx: float
    hy: float
    base: float

    @property
    def bottom(self) -> float:
        return float(self.heights.min()) - self.base

    def scaled(self, size: float) -> Terrain:
        return Terrain(self.heights * size, self.hx * size, self.hy * size, self.base * size)

    def vertices(self) -> np.ndarray:
        """float64[rows * cols, 3]."""
        rows, cols = self.heights.shape
        x, y = np.meshgrid(np.linspace(-self.hx, self.hx, cols), np.linspace(-self.hy, self.hy, rows))
        return np.stack([x, y, self.heights], axis=2).reshape(-1, 3)

    def faces(self) -> np.ndarray:
        """int64[F, 3] of the surface: two a cell, beside the diagonal from low to high."""
        rows, cols = self.heights.shape
        place = np.arange(rows * cols).reshape(rows, cols)
        a, b, c, d = place[:-1, :-1], place[:-1, 1:], place[1:, 1:], place[1:, :-1]
        return np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)], axis=2).reshape(-1, 3)

    def border(self) -> np.ndarray:
        """Vertices of the border, counterclockwise."""
        rows, cols = self.heights.shape
        place = np.arange(rows * cols).reshape(rows, cols)
        return np.concatenate([place[0, :-1], place[:-1, -1], place[-1, :0:-1], place[:0:-1, 0]])

    def solid(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and triangles of the whole solid, closed; the base is a fan about its middle."""
        top, border = self.vertices(), self.border()
        low = top[border].copy()
        low[:, 2] = self.bottom
        count, ring = len(top), np.arange(len(border))
        following = np.roll(ring, -1)
        walls = [
            np.stack([count + ring, count + following, border[following]], axis=1),
            np.stack([count + ring, border[following], border[ring]], axis=1),
        ]
        middle = count + len(border)
        base = np.stack([np.full(len(ring), middle), count + following, count + ring], axis=1)
        vertices = np.concatenate([top, low, [[0.0, 0.0, self.bottom]]])
        return vertices, np.concatenate([self.faces(), *walls, base])

    def height_over(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights of the surface, by which side of its cell's diagonal a point is on."""
        rows, cols = self.heights.shape
        s, t = (x / self.hx + 1.0) * 0.5 * (cols - 1), (y / self.hy + 1.0) * 0.5 * (rows - 1)
        c, r = np.floor(s).clip(0, cols - 2).astype(int), np.floor(t).clip(0, rows - 2).astype(int)
        s, t = s - c, t - r
        a, b, d, e = self.heights[r, c], self.heights[r, c + 1], self.heights[r + 1, c], self.heights[r + 1, c + 1]
        return np.where(s >= t, a + s * (b - a) + t * (e - b), a + t * (d - a) + s * (e - d))

    def is_inside(self, point: np.ndarray) -> np.ndarray:
        """Of points [..., 3], bool[...]."""
        x, y, z = np.moveaxis(np.asarray(point), -1, 0)
        return (np.abs(x) < self.hx) & (np.abs(y) < self.hy) & (self.bottom < z) & (z < self.height_over(x, y))

    def signed_distance(self, point: np.ndarray) -> float:
        """Of a point from the solid; inside, the base does not count."""
        vertices, faces = self.solid()
        if not self.is_inside(point):
            return float(point_distances(vertices[faces], point).min())
        return -float(point_distances(vertices[faces[: len(faces) - len(self.border())]], point).min())


def rough(seed: int, rows: int = 9, cols: int = 12, rise: float = 0.25) -> Terrain:
    """A surface that goes up and down at random."""
    return Terrain(np.random.default_rng(seed).uniform(-rise, rise, (rows, cols)).astype(np.float32), 1.0, 0.8, 0.3)


def smooth(rows: int = 24, cols: int = 30) -> Terrain:
    """Soft hills."""
    y, x = np.meshgrid(np.linspace(-0.8, 0.8, rows), np.linspace(-1.0, 1.0, cols), indexing="ij")
    return Terrain((0.15 * np.sin(4.0 * x + 1.0) * np.cos(3.0 * y)).astype(np.float32), 1.0, 0.8, 0.3)
