"""Rotation, scale and position of USD world matrices, in float64; refused where they shear or flatten."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-6
"""Relative: how far scales that should agree may differ, and axes that should be square may lean.

Matrices authored in float32 are good to 1e-7; a shape 1e-6 off is within the 1e-5 that a distance may be off.
"""


class TransformError(Exception):
    """A transform that a rigid shape cannot have; the message says which, without the place."""


def columns_of(matrix: np.ndarray) -> np.ndarray:
    """float64[..., 3, 3]: images of the local axes as columns, of USD's row-vector matrices [..., 4, 4]."""
    return np.swapaxes(matrix[..., :3, :3], -1, -2)


def check_columns(columns: np.ndarray) -> None:
    """Raises TransformError where an axis of [N, 3, 3] is not finite, is zero, or is not square to the others."""
    if not np.all(np.isfinite(columns)):
        raise TransformError("a transform that is not finite")
    length = np.linalg.norm(columns, axis=-2)
    if np.any(length == 0.0):
        raise TransformError("a scale of zero")
    unit = columns / length[..., None, :]
    lean = np.swapaxes(unit, -1, -2) @ unit - np.eye(3)
    if np.max(np.abs(lean), initial=0.0) > ROUNDING:
        raise TransformError("a shear (a rotation below a non-uniform scale)")


def scales_of(columns: np.ndarray) -> np.ndarray:
    """float64[..., 3]: lengths of the columns, negative throughout where they are a reflection."""
    length = np.linalg.norm(columns, axis=-2)
    return np.where(np.linalg.det(columns)[..., None] < 0.0, -length, length)


def rotation_of(columns: np.ndarray) -> np.ndarray:
    """float64[..., 3, 3]: the rotation of square columns.

    A reflection is taken as a scale of -1 along all three axes, as pxr's own rigid bodies have it; what is left is
    orthonormal to rounding, the z axis keeping its direction.
    """
    scaled = columns / scales_of(columns)[..., None, :]
    z = scaled[..., 2]
    x = scaled[..., 0] - z * np.sum(scaled[..., 0] * z, axis=-1, keepdims=True)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def quaternion_of(rotation: np.ndarray) -> np.ndarray:
    """float64[..., 4], xyzw, unit: of rotation matrices [..., 3, 3]. Its largest component is positive.

    Four times the outer product of the quaternion with itself is linear in the matrix; the row of the largest
    diagonal entry, normalized, is the quaternion (Shepperd 1978).
    """
    r = rotation
    trace = np.trace(r, axis1=-2, axis2=-1)
    outer = np.empty((*r.shape[:-2], 4, 4))
    for i in range(3):
        for j in range(3):
            outer[..., i, j] = r[..., i, j] + r[..., j, i]
        outer[..., i, i] += 1.0 - trace
        k, m = (i + 1) % 3, (i + 2) % 3
        outer[..., i, 3] = outer[..., 3, i] = r[..., m, k] - r[..., k, m]
    outer[..., 3, 3] = 1.0 + trace
    largest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    row = np.take_along_axis(outer, largest[..., None, None], axis=-2)[..., 0, :]
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


def pose_of(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """float64[..., 7]: x y z qx qy qz qw."""
    return np.concatenate([position, quaternion_of(rotation)], axis=-1)
