"""Distinct values by stable sorts.

NumPy's other sorts have variants for AVX2 and AVX512, which qemu 7.2 emulates wrongly; a stable sort has none.
"""

from __future__ import annotations

import numpy as np


def distinct(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The distinct values, or rows along an axis, in ascending order."""
    return np.unique(values, return_index=True, axis=axis)[0]


def numbered(values: np.ndarray, axis: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, or rows along an axis, in ascending order; and the number of each value among them."""
    found, _, number = np.unique(values, return_index=True, return_inverse=True, axis=axis)
    return found, number.reshape(-1)
