"""Values of USD attributes from arrays."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Vt

_NOWHERE = float(np.finfo(np.float32).max)


def vectors(values: np.ndarray) -> Vt.Vec3fArray:
    """Vectors [n, 3] in single precision."""
    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, np.float32).reshape(-1, 3))


def extent_of(points: np.ndarray) -> Vt.Vec3fArray:
    """The AABB of points [n, 3]; USD's empty extent for no points."""
    if not len(points):
        return Vt.Vec3fArray([Gf.Vec3f(_NOWHERE), Gf.Vec3f(-_NOWHERE)])
    return vectors(np.stack([points.min(axis=0), points.max(axis=0)]))
