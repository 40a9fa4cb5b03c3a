"""Distinct values and Morton order of points, by stable sorts.

NumPy's other sorts have variants for AVX2 and AVX512, which qemu 7.2 emulates wrongly; a stable
sort has none.
"""

from __future__ import annotations

import numpy as np

_BITS = 20


def distinct(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """The distinct values, or rows along an axis, in ascending order."""
    return np.unique(values, return_index=True, axis=axis)[0]


def numbered(values: np.ndarray, axis: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, or rows along an axis, in ascending order; and the number of each value
    among them."""
    distinct_values, _, number = np.unique(
        values, return_index=True, return_inverse=True, axis=axis
    )
    return distinct_values, number.reshape(-1)


def morton_order(points: np.ndarray) -> np.ndarray:
    """int64[n]: points [n, 3] sorted by the Morton code of their cell in a grid over their box;
    equal codes by index.

    Source: Karras 2012, section 4.
    """
    low = points.min(axis=0)
    extent = float((points.max(axis=0) - low).max())
    scale = ((1 << _BITS) - 1) / extent if extent > 0.0 else 0.0
    cell = ((points - low) * scale).astype(np.uint64)
    code = np.zeros(len(points), np.uint64)
    for axis in range(3):
        code |= _spread(cell[:, axis]) << np.uint64(axis)
    return np.argsort(code, kind="stable")


def _spread(value: np.ndarray) -> np.ndarray:
    """Numbers below 2^21 with each bit moved to three times its position."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        value = (value | (value << np.uint64(shift))) & np.uint64(mask)
    return value
