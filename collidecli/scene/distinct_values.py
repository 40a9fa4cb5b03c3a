"""Distinct and common values, and Morton order of points, by stable sorts.

NumPy's other sorts have variants for AVX2 and AVX512, which qemu 7.2 emulates wrongly; a stable
sort has none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_BITS = 20
_STRIDE = 1 << 32
_LEAST = -(1 << 31)
"""Of int32."""


def distinct(values: ArrayLike, axis: int | None = None) -> np.ndarray:
    """The distinct values, or rows along an axis, in ascending order, as `np.unique` gives them.

    `np.unique` puts integers into a hash table: 3 million take 2 s, against 0.03 s here where they
    are a few ascending runs, as keys of pairs mostly are, and 0.25 s in random order; of rows of
    two integers 2 s, against the same.
    """
    given = np.asarray(values)
    if given.dtype.kind not in "iu":
        return np.unique(given, return_index=True, axis=axis)[0]
    if axis is None:
        return _without_repeats(np.sort(given, axis=None, kind="stable"))
    if axis == 0 and given.ndim == 2 and given.shape[1] == 2 and _fits_keys(given):
        key = _without_repeats(np.sort(_key_of_pair(given), kind="stable"))
        return _pair_of_key(key).astype(given.dtype)
    return np.unique(given, return_index=True, axis=axis)[0]


def common(one: ArrayLike, other: ArrayLike) -> np.ndarray:
    """The distinct values that are in both, in ascending order, as `np.intersect1d` gives them."""
    both = np.sort(np.concatenate([distinct(one), distinct(other)]), kind="stable")
    return both[1:][both[1:] == both[:-1]]


def numbered(values: np.ndarray, axis: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, or rows along an axis, in ascending order; and the number of each value
    among them."""
    distinct_values, _, number = np.unique(
        values, return_index=True, return_inverse=True, axis=axis
    )
    return distinct_values, number.reshape(-1)


def _without_repeats(ascending: np.ndarray) -> np.ndarray:
    begins = np.ones(len(ascending), bool)
    np.not_equal(ascending[1:], ascending[:-1], out=begins[1:])
    return ascending[begins]


def _fits_keys(pairs: np.ndarray) -> bool:
    """Whether all numbers are of 32 bits with a sign."""
    if pairs.dtype == np.int32 or not len(pairs):
        return True
    return int(pairs.min()) >= _LEAST and int(pairs.max()) < -_LEAST


def _key_of_pair(pairs: np.ndarray) -> np.ndarray:
    """int64[n]: ascending as pairs [n, 2] are by their first and then their second numbers."""
    return pairs[:, 0].astype(np.int64) * _STRIDE + (pairs[:, 1].astype(np.int64) - _LEAST)


def _pair_of_key(key: np.ndarray) -> np.ndarray:
    first, second = np.divmod(key, _STRIDE)
    return np.stack([first, second + _LEAST], axis=1)


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
