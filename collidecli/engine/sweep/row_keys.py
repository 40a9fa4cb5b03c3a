"""Rows of touches that are found already, by step, particle and shape."""

from __future__ import annotations

import numpy as np

SoftRows = tuple[np.ndarray, dict[str, np.ndarray]]
"""Steps of rows, entries int64[n] of `BodySteps`, and their columns."""


class RowKeys:
    """The pairs of a particle and a shape that have a row in a step. particles, shapes: numbers of
    both."""

    def __init__(self, parts: list[SoftRows], particles: int, shapes: int) -> None:
        self._particles = particles
        self._shapes = shapes
        keys = [
            self._of(step, columns["indices"][:, 0], columns["shape"]) for step, columns in parts
        ]
        self._keys = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))

    def _of(self, step: np.ndarray, particle: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return (step.astype(np.int64) * self._particles + particle) * self._shapes + shape

    def any_of(self, step: int, items: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """bool[n]: whether a particle of each row of `items`, int32[n, k], has a row with its shape
        in a step."""
        is_any = np.zeros(len(items), bool)
        if len(self._keys):
            for particle in items.T:
                keys = self._of(np.full(len(items), step), particle, shape)
                at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
                is_any |= self._keys[at] == keys
        return is_any
