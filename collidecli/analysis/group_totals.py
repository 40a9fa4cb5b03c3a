"""Totals of rows of groups by frame and by pair of shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class PairForces:
    """Area and force of contact surfaces by pair, summed over all frames.

    key: shape0 * shapes + shape1, int64, ascending. force, area: float64, sums of the sizes.
    """

    def __init__(self, shape_count: int) -> None:
        self._shapes = shape_count
        self.key = np.zeros(0, np.int64)
        self.force = self.area = np.zeros(0)

    def add(
        self, shape0: np.ndarray, shape1: np.ndarray, area: np.ndarray, force: np.ndarray
    ) -> None:
        """Adds patches. force: float64[n, 3] [N]."""
        key = np.concatenate([self.key, shape0.astype(np.int64) * self._shapes + shape1])
        sizes = np.concatenate([self.force, np.linalg.norm(force, axis=1)])
        areas = np.concatenate([self.area, area])
        self.key, index = np.unique(key, return_inverse=True)
        self.force = np.bincount(index, sizes, len(self.key))
        self.area = np.bincount(index, areas, len(self.key))

    def largest(self, most: int) -> np.ndarray:
        """int64[up to most]: the keys of the pairs with the largest sums of forces, then of
        areas."""
        return self.key[np.lexsort((self.key, -self.area, -self.force))[:most]]


class SurfaceSeries:
    """Area [m^2] and size of the force [N] of chosen pairs in each frame, summed over worlds.

    area, force: float64[pairs, frames].
    """

    def __init__(self, keys: np.ndarray, shape_count: int, frame_count: int) -> None:
        self._keys = keys
        self._shapes = shape_count
        self.area = np.zeros((len(keys), frame_count))
        self.force = np.zeros((len(keys), frame_count))

    def add(
        self,
        frame: np.ndarray,
        shape0: np.ndarray,
        shape1: np.ndarray,
        area: np.ndarray,
        force: np.ndarray,
    ) -> None:
        """Adds patches. frame: int64[n]."""
        key = shape0.astype(np.int64) * self._shapes + shape1
        size = np.linalg.norm(force, axis=1)
        for row, wanted in enumerate(self._keys):
            is_wanted = key == wanted
            np.add.at(self.area[row], frame[is_wanted], area[is_wanted])
            np.add.at(self.force[row], frame[is_wanted], size[is_wanted])

    def binned(
        self, start: Sequence[int] | np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Largest area, force and mean pressure [Pa] of the frames of each bin: float64[pairs,
        bins].

        start: first frame of each bin. The mean pressure of a frame is the force divided by the
        area.
        """
        if not len(start):
            return self.area, self.force, self.force
        pressure = np.divide(
            self.force, self.area, out=np.zeros_like(self.force), where=self.area > 0.0
        )
        area, force, pressure = (
            np.maximum.reduceat(v, start, axis=1) for v in (self.area, self.force, pressure)
        )
        return area, force, pressure
