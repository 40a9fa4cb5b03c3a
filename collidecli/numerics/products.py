"""Sums of products: dot products, norms, products of matrices, equal to the bit on every processor.

Each sum is one addition after the other, in the order of its index. Where sums are short, as in
three dimensions, passes over whole arrays are also faster than NumPy's products of many small
matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_SWEEPS = 30
"""Of Jacobi rotations; about six reach rounding."""
SINGULAR = 1e-14
"""Volume of a matrix's rows, as a fraction of that of a box with their lengths, at which the matrix
is singular."""
_NEWTON_STEPS = 100
"""About ten reach rounding."""
_CONVERGED = 1e-15
"""Change of an entry of a rotation in one step."""


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[...]: sums of products over the last axis; the other axes are broadcast."""
    total = a[..., 0] * b[..., 0]
    for k in range(1, a.shape[-1]):
        total = total + a[..., k] * b[..., k]
    return total


def norm(a: np.ndarray) -> np.ndarray:
    """[...]: Euclidean lengths over the last axis."""
    return np.sqrt(dot(a, a))


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[..., 3]: cross products over the last axis."""
    pairs = ((1, 2), (2, 0), (0, 1))
    return np.stack([a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in pairs], axis=-1)


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[..., m, n]: products of matrices [..., m, k] and [..., k, n], k at least 1; the leading axes
    are broadcast."""
    total = a[..., :, :1] * b[..., :1, :]
    for k in range(1, a.shape[-1]):
        total += a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total


def matvec(a: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[..., m]: products of matrices [..., m, k] and vectors [..., k]; the leading axes are
    broadcast."""
    return dot(a, v[..., None, :])


def length(vector: Sequence[float] | np.ndarray) -> float:
    """Euclidean length of one vector of numbers."""
    total = 0.0
    for number in vector:
        total += float(number) * float(number)
    return math.sqrt(total)


def integer_power(base: float, exponent: int) -> float:
    """base to a whole power, rounded once; infinite beyond float64. Raises ZeroDivisionError for 0
    to less than 0."""
    if exponent in (0, 1):
        return base if exponent else 1.0
    if not math.isfinite(base):
        return base**exponent  # exact
    from fractions import Fraction

    try:
        return float(Fraction(base) ** exponent)
    except OverflowError:
        return -math.inf if base < 0.0 and exponent % 2 else math.inf


def symmetric_eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, float64[3], and unit eigenvectors as columns float64[3, 3], of a
    symmetric matrix.

    Source: Golub and Van Loan, section 8.5, the cyclic Jacobi method.
    """
    a = [[float(matrix[i, j]) for j in range(3)] for i in range(3)]
    v = [[1.0 if i == j else 0.0 for j in range(3)] for i in range(3)]
    for _ in range(_SWEEPS):
        if a[0][1] == 0.0 and a[0][2] == 0.0 and a[1][2] == 0.0:
            break
        for p, q in ((0, 1), (0, 2), (1, 2)):
            _annihilate(a, v, p, q)
    values = np.array([a[0][0], a[1][1], a[2][2]])
    order = np.argsort(values, kind="stable")
    return values[order], np.array(v)[:, order]


def _annihilate(a: list[list[float]], v: list[list[float]], p: int, q: int) -> None:
    """One Jacobi rotation: makes a[p][q] zero, and applies the rotation to the columns of v."""
    apq = a[p][q]
    if abs(apq) <= 1e-18 * math.sqrt(abs(a[p][p])) * math.sqrt(abs(a[q][q])):
        a[p][q] = a[q][p] = 0.0
        return
    tau = (a[q][q] - a[p][p]) / (2.0 * apq)
    t = math.copysign(1.0, tau) / (
        abs(tau) + (math.sqrt(1.0 + tau * tau) if abs(tau) < 1e150 else abs(tau))
    )
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    a[p][p] = a[p][p] - t * apq
    a[q][q] = a[q][q] + t * apq
    a[p][q] = 0.0
    a[q][p] = 0.0
    r = 3 - p - q
    arp = a[r][p]
    arq = a[r][q]
    a[r][p] = a[p][r] = c * arp - s * arq
    a[r][q] = a[q][r] = s * arp + c * arq
    for row in v:
        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]


def polar(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and stretch, float64[3, 3] each, whose product is the matrix.

    The rotation is the nearest to the matrix, or to its negative for a matrix with a reflection;
    the stretch is symmetric and contains the reflection as a scale of -1 along all axes. A singular
    matrix has no such rotation: its rotation is the identity, and the stretch is the matrix.
    Source: Higham (1986), Newton's iteration with scaling by the Frobenius norms.
    """
    x = np.array(matrix, np.float64)
    x /= np.abs(x).max()
    for _ in range(_NEWTON_STEPS):
        cofactors = _cofactors(x)
        determinant = dot(x[0], cofactors[0])
        if abs(determinant) <= SINGULAR * length(x[0]) * length(x[1]) * length(x[2]):
            return np.eye(3), np.array(matrix, np.float64)
        inverse_transposed = cofactors / determinant
        factor = math.sqrt(length(inverse_transposed.ravel()) / length(x.ravel()))
        after = 0.5 * (factor * x + inverse_transposed / factor)
        change = np.abs(after - x).max()
        x = after
        if change <= _CONVERGED:
            break
    if dot(x[0], _cofactors(x)[0]) < 0.0:
        x = -x
    return x, matmul(x.T, matrix)


def _cofactors(x: np.ndarray) -> np.ndarray:
    return np.stack([cross(x[1], x[2]), cross(x[2], x[0]), cross(x[0], x[1])])
