"""Fixed directions of the reduction: twenty bins of normals, and six tangential directions per bin.

The bins are the faces of an icosahedron. It is rotated so that the axes of a frame, along which
most normals point, are 10.7 degrees inside their bins, and the diagonals between two or three
axes 5.3 degrees: normals that differ by rounding are in the same bin.
"""

from __future__ import annotations

import math

import numpy as np

from collidecli.numerics.products import length, matmul, norm
from collidecli.numerics.trigonometry import sincos

BIN_COUNT = 20
DIRECTION_COUNT = 6
_ROTATION_XYZW = np.array([0.893, -0.258, 0.260, 0.262])
"""Quaternion xyzw, found by a search over rotations; not normalized."""


def bin_normals() -> np.ndarray:
    """float64[20, 3]: unit normals of the bins; the normal of bin 19 - k is opposite to that of bin
    k."""
    golden = (1.0 + math.sqrt(5.0)) / 2.0
    half = [(1.0, y, z) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
    for sign in (-1.0, 1.0):
        half += [
            (0.0, sign / golden, golden),
            (1.0 / golden, sign * golden, 0.0),
            (golden, 0.0, sign / golden),
        ]
    first = np.array(half) / math.sqrt(3.0)
    return matmul(np.concatenate([first, -first[::-1]]), _rotation().T)


def bin_directions() -> np.ndarray:
    """float64[120, 3]: unit vectors orthogonal to each bin's normal, 60 degrees apart; rows 6 k to
    6 k + 5 are bin k's.

    Opposite bins have the same six directions, so that the extremes do not depend on the order of
    the two shapes.
    """
    normal = bin_normals()[: BIN_COUNT // 2]
    axis = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    u = np.cross(normal, axis)
    u /= norm(u)[:, None]
    v = np.cross(normal, u)
    angle = np.arange(DIRECTION_COUNT) * (2.0 * np.pi / DIRECTION_COUNT)
    sine, cosine = sincos(angle)
    first = cosine[:, None] * u[:, None] + sine[:, None] * v[:, None]
    return np.concatenate([first, first[::-1]]).reshape(-1, 3)


def _rotation() -> np.ndarray:
    x, y, z, w = _ROTATION_XYZW / length(_ROTATION_XYZW)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
