"""Rotation, scale and position of USD world matrices, in float64; shears and zero scales are
refused.

Components are computed one by one: NumPy's products of many small matrices take ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import cross, dot, norm

ROUNDING = 1e-6
"""Relative tolerance of equal scales and of orthogonal axes.

Matrices authored in float32 are accurate to 1e-7; an error of 1e-6 is within the tolerance 1e-5 of
distances.
"""
MOVE_RIGIDLY = (
    "give it a finite position, a rotation, and a scale along its own axes that is not zero"
)


class TransformError(Exception):
    """A transform that a rigid shape cannot have; the message describes it, without the prim."""


_MOST_SCALE = 1e100
"""Volumes, products of three lengths, stay finite in float64."""


def columns_of(matrix: np.ndarray) -> np.ndarray:
    """float64[..., 3, 3]: images of the local axes as columns, of USD's row-vector matrices [...,
    4, 4]."""
    return np.swapaxes(matrix[..., :3, :3], -1, -2)


def check_lengths(columns: np.ndarray) -> np.ndarray:
    """float64[..., 3]: lengths of the axes of [..., 3, 3]; raises TransformError where one is not
    finite or zero."""
    if not np.all(np.isfinite(columns)):
        raise TransformError("a transform that is not finite")
    length = _lengths(columns)
    if np.any(length == 0.0):
        raise TransformError("a scale of zero")
    if not np.all(length < _MOST_SCALE):
        raise TransformError(f"a scale beyond {_MOST_SCALE:g}")
    return length


@contextmanager
def located_transform(what: str, where: str) -> Iterator[None]:
    """Converts a TransformError in the block to an InputError: that `what` has the fault."""
    try:
        yield
    except TransformError as error:
        raise InputError(f"{what} has {error}", where, MOVE_RIGIDLY) from None


def check_columns(columns: np.ndarray) -> None:
    """Raises TransformError where an axis of [..., 3, 3] is not finite, is zero, or is not
    orthogonal to the others."""
    length = check_lengths(columns)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        cosine = np.abs(dot(columns[..., i], columns[..., j]))
        if np.any(cosine > ROUNDING * length[..., i] * length[..., j]):
            raise TransformError("a shear (a rotation below a non-uniform scale)")


def scales_of(columns: np.ndarray) -> np.ndarray:
    """float64[..., 3]: lengths of the columns, all negative for a reflection."""
    volume = dot(cross(columns[..., 0], columns[..., 1]), columns[..., 2])
    return _lengths(columns) * np.where(volume < 0.0, -1.0, 1.0)[..., None]


def scale_keys(scale: np.ndarray, digits: int) -> list[tuple[str, bytes]]:
    """Keys of matrices [n, 3, 3], to `digits` relative to the largest entry; equal except at a
    rounding boundary."""
    largest = np.abs(scale).max(axis=(1, 2))
    relative = np.round(scale / largest[:, None, None], digits) + 0.0  # makes -0.0 equal to 0.0
    return [
        (f"{size:.{digits - 1}e}", matrix.tobytes())
        for size, matrix in zip(largest, relative, strict=True)
    ]


def rotation_of(columns: np.ndarray) -> np.ndarray:
    """float64[..., 3, 3]: the rotation of orthogonal columns.

    A reflection is a scale of -1 along all three axes, as in pxr's rigid bodies. The result is
    orthonormal to rounding; the direction of the z axis is unchanged.
    """
    scale = scales_of(columns)
    z = columns[..., 2] / scale[..., 2, None]
    x = columns[..., 0] / scale[..., 0, None]
    x = x - z * dot(x, z)[..., None]
    x /= np.sqrt(dot(x, x))[..., None]
    return np.stack([x, cross(z, x), z], axis=-1)


def quaternion_of(rotation: np.ndarray) -> np.ndarray:
    """float64[..., 4], xyzw, unit: of rotation matrices [..., 3, 3].

    Four times the outer product of the quaternion with itself is linear in the matrix; its row with
    the largest diagonal entry, normalized, is the quaternion (Shepperd 1978). That largest
    component is then positive.
    """
    r = np.moveaxis(rotation, (-2, -1), (0, 1))
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    outer = np.empty((4, 4, *trace.shape))
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        outer[i, i] = 1.0 + 2.0 * r[i, i] - trace
        outer[i, j] = outer[j, i] = r[i, j] + r[j, i]
        outer[i, 3] = outer[3, i] = r[k, j] - r[j, k]
    outer[3, 3] = 1.0 + trace
    largest = np.argmax(outer[range(4), range(4)], axis=0)
    row = np.take_along_axis(outer, largest[None, None], axis=0)[0]
    return np.moveaxis(row / norm(np.moveaxis(row, 0, -1)), 0, -1)


def pose_of(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """float64[..., 7]: x y z qx qy qz qw."""
    return np.concatenate([position, quaternion_of(rotation)], axis=-1)


def _lengths(columns: np.ndarray) -> np.ndarray:
    """float64[..., 3]: length of each column; infinite where a square overflows."""
    with np.errstate(over="ignore"):
        return norm(np.swapaxes(columns, -1, -2))
