"""Matrices of USD's transform operations, float64, equal to the bit on every processor.

pxr computes a rotation's sine and cosine, and the angle of an `orient`, with the C library, whose last bit depends on
the processor. Here the same formulas are evaluated by `numerics.elementary`. Matrices are USD's: vectors are rows, so a
product's left factor acts first.
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
"""GF_MIN_VECTOR_LENGTH: the imaginary part of a quaternion below which pxr takes it for no rotation."""
_UNIT = 1e-10
"""How far the square of an axis may be from 1 before pxr normalizes it."""
_NEARLY_EQUAL = 1e-5
"""1 - cosine of the angle between two quaternions below which pxr interpolates them linearly."""


@dataclass(frozen=True)
class XformOp:
    """One operation of a prim. name: of its attribute. kind: as `translate` or `rotateXYZ`."""

    name: str
    kind: str
    inverse: bool


@cache
def parsed_order(order: tuple[str, ...]) -> tuple[bool, tuple[XformOp, ...]]:
    """Whether xformOpOrder resets the transform stack, and its operations, the outermost first.

    Those before a reset do not count, and an operation beside its own inverse cancels it, as in pxr.
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

    The kinds not handled use no function of the C library: pxr's own matrix of them is the same everywhere.
    """
    value = np.asarray(value, np.float64)
    if op.kind == "orient":
        return _framed(_of_axis(*_axis_and_angle(value), op.inverse))
    if op.kind.startswith("rotate"):
        letters = op.kind.removeprefix("rotate")
        if len(letters) == 1:
            axis = np.eye(3)["XYZ".index(letters)]
            return _framed(_of_axis(axis, value, op.inverse))
        turns = {letter: _of_axis(np.eye(3)[k], value[:, k], False) for k, letter in enumerate("XYZ")}
        product = matmul(matmul(turns[letters[0]], turns[letters[1]]), turns[letters[2]])
        return _framed(np.swapaxes(product, -1, -2) if op.inverse else product)
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


def slerp(share: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float64[n, 4]: quaternions [n, 4] interpolated on the shorter arc by shares [n], with pxr's formula, in float64.

    pxr rounds each step of the interpolation of float32 quaternions to float32.
    """
    cosine = dot(first, second)
    sign = np.where(cosine < 0.0, -1.0, 1.0)
    angle = elementary.acos(np.minimum(np.abs(cosine), 1.0))
    nearly = 1.0 - np.abs(cosine) <= _NEARLY_EQUAL
    sine = np.where(nearly, 1.0, elementary.sin(angle))
    left = np.where(nearly, 1.0 - share, elementary.sin((1.0 - share) * angle) / sine)
    right = np.where(nearly, share, elementary.sin(share * angle) / sine)
    return left[:, None] * first + (sign * right)[:, None] * second


def _axis_and_angle(quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axis, float64[n, 3], and angle [degree] of quaternions xyzw, which need not be of unit length: pxr's GfRotation.

    The angle is that of the real part alone: pxr does not normalize.
    """
    imaginary = quaternion[:, :3]
    length = norm(imaginary)
    turned = length > _SHORTEST
    with np.errstate(all="ignore"):
        angle = np.where(turned, 2.0 * _degrees(elementary.acos(np.clip(quaternion[:, 3], -1.0, 1.0))), 0.0)
        axis = np.where(turned[:, None], imaginary * (1.0 / length)[:, None], np.array([1.0, 0.0, 0.0]))
        size = norm(axis)
        off = np.abs(size * size - 1.0) >= _UNIT
        return np.where(off[:, None], axis * (1.0 / size)[:, None], axis), angle


def _of_axis(axis: np.ndarray, angle: np.ndarray, inverse: bool) -> np.ndarray:
    """float64[n, 3, 3]: rotations about an axis by angles [degree]."""
    sine, cosine = elementary.sincos(_radians(-angle if inverse else angle) / 2.0)
    x, y, z = np.moveaxis(axis * sine[:, None], -1, 0)
    length = np.sqrt(cosine * cosine + ((x * x + y * y) + z * z))
    share = 1.0 / length
    x, y, z, w = x * share, y * share, z * share, cosine * share
    found = np.empty((len(sine), 3, 3))
    found[:, 0] = np.stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (z * x - y * w)], axis=-1)
    found[:, 1] = np.stack([2.0 * (x * y - z * w), 1.0 - 2.0 * (z * z + x * x), 2.0 * (y * z + x * w)], axis=-1)
    found[:, 2] = np.stack([2.0 * (z * x + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (y * y + x * x)], axis=-1)
    return found


def _framed(rotation: np.ndarray) -> np.ndarray:
    found = _identities(len(rotation))
    found[:, :3, :3] = rotation
    return found


def _identities(count: int) -> np.ndarray:
    return np.broadcast_to(np.eye(4), (count, 4, 4)).copy()


def _radians(degrees: np.ndarray) -> np.ndarray:
    return degrees * (np.pi / 180.0)


def _degrees(radians: np.ndarray) -> np.ndarray:
    return radians * (180.0 / np.pi)
