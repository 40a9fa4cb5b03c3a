"""Matrices of USD's transform operations, float64, bit-identical on every processor.

pxr computes a rotation's sine and cosine, and the angle of an `orient`, with the C library, whose last bit depends on
the processor. This module evaluates pxr's formulas with `numerics.elementary`. Matrices are USD's: vectors are rows, so
that the left factor of a product is applied first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from collidecli.numerics import elementary
from collidecli.numerics.matrices import dot, matmul, norm

RESET = "!resetXformStack!"
INVERSE = "!invert!"
_PREFIX = "xformOp:"
_SHORTEST = 1e-10
"""GF_MIN_VECTOR_LENGTH: length of a quaternion's imaginary part below which pxr uses the identity."""
_UNIT = 1e-10
"""Deviation of an axis' squared length from 1 above which pxr normalizes it."""
_NEARLY_EQUAL = 1e-5
"""1 - cosine of the angle between two quaternions below which pxr interpolates them linearly."""


@dataclass(frozen=True)
class XformOp:
    """One operation of a prim. name: of its attribute. kind: for example `translate` or `rotateXYZ`."""

    name: str
    kind: str
    inverse: bool


@cache
def parsed_order(order: tuple[str, ...]) -> tuple[bool, tuple[XformOp, ...]]:
    """Whether xformOpOrder resets the transform stack, and its operations, the outermost first.

    As in pxr, operations before a reset have no effect, and an operation next to its inverse cancels it.
    """
    reset = RESET in order
    found: list[XformOp] = []
    for token in order[len(order) - order[::-1].index(RESET) :] if reset else order:
        name = token.removeprefix(INVERSE)
        op = XformOp(name, name.removeprefix(_PREFIX).split(":")[0], token.startswith(INVERSE))
        if found and found[-1].name == op.name and found[-1].inverse != op.inverse:
            found.pop()
        else:
            found.append(op)
    return reset, tuple(found)


def op_matrices(op: XformOp, value: np.ndarray) -> np.ndarray | None:
    """float64[n, 4, 4] of an operation's values [n], [n, 3], [n, 4] xyzw or [n, 4, 4]; None for a kind not handled.

    The kinds that are not handled use no function of the C library: pxr's matrix has equal bits on every processor.
    """
    value = np.asarray(value, np.float64)
    if op.kind == "orient":
        return _matrices4(_of_axis(*_axis_and_angle(value), op.inverse))
    if op.kind.startswith("rotate"):
        letters = op.kind.removeprefix("rotate")
        if len(letters) == 1:
            axis = np.eye(3)["XYZ".index(letters)]
            return _matrices4(_of_axis(axis, value, op.inverse))
        rotations = {letter: _of_axis(np.eye(3)[k], value[:, k], False) for k, letter in enumerate("XYZ")}
        product = matmul(matmul(rotations[letters[0]], rotations[letters[1]]), rotations[letters[2]])
        return _matrices4(np.swapaxes(product, -1, -2) if op.inverse else product)
    if op.kind == "translate":
        found = _identities(len(value))
        found[:, 3, :3] = -value if op.inverse else value
        return found
    if op.kind == "transform" and not op.inverse:
        return value
    if op.kind == "scale" and not op.inverse:
        found = _identities(len(value))
        found[:, (0, 1, 2), (0, 1, 2)] = value
        return found
    return None


def slerp(t: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float64[n, 4]: quaternions [n, 4] interpolated on the shorter arc at parameters t [n], with pxr's formula.

    In float64; pxr rounds each step of the interpolation of float32 quaternions to float32.
    """
    cosine = dot(first, second)
    sign = np.where(cosine < 0.0, -1.0, 1.0)
    angle = elementary.acos(np.minimum(np.abs(cosine), 1.0))
    nearly = 1.0 - np.abs(cosine) <= _NEARLY_EQUAL
    sine = np.where(nearly, 1.0, elementary.sin(angle))
    left = np.where(nearly, 1.0 - t, elementary.sin((1.0 - t) * angle) / sine)
    right = np.where(nearly, t, elementary.sin(t * angle) / sine)
    return left[:, None] * first + (sign * right)[:, None] * second


def _axis_and_angle(quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axis, float64[n, 3], and angle [degree] of quaternions xyzw, which need not be of unit length: pxr's GfRotation.

    The angle is computed from the real part only: pxr does not normalize.
    """
    imaginary = quaternion[:, :3]
    length = norm(imaginary)
    rotates = length > _SHORTEST
    with np.errstate(all="ignore"):
        angle = np.where(rotates, 2.0 * _degrees(elementary.acos(np.clip(quaternion[:, 3], -1.0, 1.0))), 0.0)
        axis = np.where(rotates[:, None], imaginary * (1.0 / length)[:, None], np.array([1.0, 0.0, 0.0]))
        size = norm(axis)
        off = np.abs(size * size - 1.0) >= _UNIT
        return np.where(off[:, None], axis * (1.0 / size)[:, None], axis), angle


def _of_axis(axis: np.ndarray, angle: np.ndarray, inverse: bool) -> np.ndarray:
    """float64[n, 3, 3]: rotations about an axis by angles [degree]."""
    sine, cosine = elementary.sincos(_radians(-angle if inverse else angle) / 2.0)
    x, y, z = np.moveaxis(axis * sine[:, None], -1, 0)
    length = np.sqrt(cosine * cosine + ((x * x + y * y) + z * z))
    factor = 1.0 / length
    x, y, z, w = x * factor, y * factor, z * factor, cosine * factor
    found = np.empty((len(sine), 3, 3))
    found[:, 0] = np.stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (z * x - y * w)], axis=-1)
    found[:, 1] = np.stack([2.0 * (x * y - z * w), 1.0 - 2.0 * (z * z + x * x), 2.0 * (y * z + x * w)], axis=-1)
    found[:, 2] = np.stack([2.0 * (z * x + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (y * y + x * x)], axis=-1)
    return found


def _matrices4(rotation: np.ndarray) -> np.ndarray:
    found = _identities(len(rotation))
    found[:, :3, :3] = rotation
    return found


def _identities(count: int) -> np.ndarray:
    return np.broadcast_to(np.eye(4), (count, 4, 4)).copy()


def _radians(degrees: np.ndarray) -> np.ndarray:
    return degrees * (np.pi / 180.0)


def _degrees(radians: np.ndarray) -> np.ndarray:
    return radians * (180.0 / np.pi)
