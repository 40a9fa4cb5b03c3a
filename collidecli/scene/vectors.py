"""Products of arrays of vectors that have the same bits on every processor."""

from __future__ import annotations

import numpy as np


def length_of(vector: np.ndarray) -> np.ndarray:
    """Of vectors [..., 3]."""
    return np.sqrt(dot(vector, vector))


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of vectors [..., 3], as a sum in a fixed order: no BLAS."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2]
