"""Points in the order of a space-filling curve."""

from __future__ import annotations

import numpy as np

_BITS = 20


def morton_order(points: np.ndarray) -> np.ndarray:
    """int64[n]: points [n, 3] sorted by the Morton code of their cell in a grid over their box; equal ones by number.

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
    """Each bit of a number below 2^21 at three times its place."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        value = (value | (value << np.uint64(shift))) & np.uint64(mask)
    return value
