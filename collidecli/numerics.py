"""Elementary functions and sums of products in float64, equal to the bit on every processor.

They use +, -, *, /, square root and integers alone: IEEE 754 fixes the last bit of each of these, and NumPy applies
them one after the other, so that no fused multiply-add occurs. The functions of the C library, of NumPy, BLAS and
LAPACK select an implementation by the processor, and these implementations differ in the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

# Sine, cosine, arc tangent and arc cosine, with errors below 0.8 ulp (tests/unit/test_numerics.py).
#
# Sources: arguments are reduced after Cody and Waite (1980), with π/2 in four parts, and beyond `MODERATE` exactly, in
# integers, after Payne and Hanek (1983). The polynomials are those of fdlibm (Sun Microsystems, 1993).

MODERATE = 2.0**20
"""Up to this magnitude a product of an argument's quadrant and a part of π/2 of 33 bits is exact."""
_BLOCK = 4096
"""Numbers worked on at a time: the intermediate arrays stay in the processor's cache."""

# π/2 as a sum: three parts of 33 bits each, and the rest.
HALF_PI_PARTS = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)
_PI_HI, _PI_LO = math.pi, 1.2246467991473531772e-16
_HALF_PI_HI, _HALF_PI_LO = 0.5 * _PI_HI, 0.5 * _PI_LO
TWO_OVER_PI = 6.36619772367581382433e-01
_FRACTION_BITS = 1200
"""Of π/2 as an integer: 1024 for the largest quadrant, 64 for the closest approach to one, and 112 of the result."""

SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
_ARC_TANGENT = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
_ATAN_HALF = (4.63647609000806093515e-01, 2.26987774529616870924e-17)
"""Arc tangent of 1/2, and what the first number lacks."""
_STEEP_HALF, _STEEP_ONE = 7.0 / 16.0, 11.0 / 16.0
"""Slopes from which the difference to atan(1/2) or to atan(1) is taken."""
_FLAT = 2.0**-28
"""A slope whose arc tangent is the slope itself, to rounding."""


def sin(angle: np.ndarray) -> np.ndarray:
    """float64[...]: sine of angles [rad]; NaN of what is not finite."""
    return sincos(angle)[0]


def cos(angle: np.ndarray | float) -> np.ndarray:
    """float64[...]: cosine of angles [rad]; NaN of what is not finite."""
    return sincos(angle)[1]


def sincos(angle: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """float64[...] twice: sine and cosine of angles [rad] of any magnitude; NaN of what is not finite."""
    sine, cosine = _blockwise(_sincos, 2, angle)
    return sine, cosine


def atan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """float64[...]: angle of the vectors (x, y) from the x axis, in [-π, π] [rad]; shapes are broadcast.

    Signs of zeros and infinities as in IEEE 754: atan2(±0, -0) is ±π.
    """
    y, x = np.broadcast_arrays(y, x)
    return _blockwise(_atan2, 1, y, x)[0]


def acos(cosine: np.ndarray) -> np.ndarray:
    """float64[...]: angle in [0, π] [rad] of a cosine; NaN outside [-1, 1].

    The arc tangent of sine over cosine, plus what the rounded sine lacks times the derivative, which is the cosine.
    """
    return _blockwise(_acos, 1, np.asarray(cosine))[0]


def _blockwise(function: Callable[..., tuple[np.ndarray, ...]], outputs: int, *arguments: np.ndarray | float):
    """`function` applied to arrays of one shape, block by block."""
    flat = [np.asarray(array, np.float64).reshape(-1) for array in arguments]
    shape = np.shape(arguments[0])
    values = np.empty((outputs, len(flat[0])))
    with np.errstate(all="ignore"):
        for start in range(0, len(flat[0]), _BLOCK):
            rows = slice(start, start + _BLOCK)
            values[:, rows] = function(*(array[rows] for array in flat))
    return [array.reshape(shape) for array in values]


def _sincos(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    quadrant, r, r_low = _reduced(angle)
    z = r * r
    # sin(r + r_low), in the order that keeps the rounding of r's cube small.
    s1, s2, s3, s4, s5, s6 = SINE
    cube = z * r
    tail = s2 + z * (s3 + z * (s4 + z * (s5 + z * s6)))
    sine = r - ((z * (0.5 * r_low - cube * tail) - r_low) - cube * s1)
    # cos(r + r_low): what 1 - r²/2 loses in rounding is added back.
    c1, c2, c3, c4, c5, c6 = COSINE
    square = z * z
    tail = z * (c1 + z * (c2 + z * c3)) + square * square * (c4 + z * (c5 + z * c6))
    half = 0.5 * z
    lead = 1.0 - half
    cosine = lead + (((1.0 - lead) - half) + (z * tail - r * r_low))
    swapped, negative_sine = (quadrant & 1) == 1, (quadrant & 2) == 2
    negative_cosine = ((quadrant + 1) & 2) == 2
    out_sine, out_cosine = np.where(swapped, cosine, sine), np.where(swapped, sine, cosine)
    out_sine = np.where(negative_sine, -out_sine, out_sine)
    # The difference above would make +0 of a sine of -0.
    return np.where(angle == 0.0, angle, out_sine), np.where(negative_cosine, -out_cosine, out_cosine)


def _reduced(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quadrant, int64, and the angle from that multiple of π/2, at most π/4 in magnitude, as a sum of two numbers."""
    moderate = np.abs(angle) <= MODERATE
    within = np.where(moderate, angle, 0.0)
    number = np.rint(within * TWO_OVER_PI)
    p1, p2, p3, p4 = HALF_PI_PARTS
    high, low = _two_sum(within - number * p1, -(number * p2))
    high, more = _two_sum(high, -(number * p3))
    low = low + (more - number * p4)
    high, low = _fast_two_sum(high, low)
    quadrant = number.astype(np.int64)
    if not moderate.all():
        for k in np.flatnonzero(~moderate):
            quadrant[k], high[k], low[k] = _exactly_reduced(float(angle[k]))
    return quadrant, high, low


def _exactly_reduced(angle: float) -> tuple[int, float, float]:
    if not math.isfinite(angle):
        return 0, math.nan, 0.0
    numerator, denominator = angle.as_integer_ratio()  # beyond MODERATE the denominator is a small power of two
    half_pi, unit = _half_pi(), 1 << _FRACTION_BITS
    scaled = (numerator << _FRACTION_BITS) // denominator
    number = (2 * scaled + half_pi) // (2 * half_pi)
    rest = scaled - number * half_pi
    high = rest / unit  # rounds to nearest
    top, bottom = high.as_integer_ratio()
    return number & 3, high, (rest - (top << _FRACTION_BITS) // bottom) / unit


@cache
def _half_pi() -> int:
    """π/2 with `_FRACTION_BITS` behind the point, by Machin's formula: π/4 = 4 atan(1/5) - atan(1/239)."""
    guard = 32
    unit = 1 << (_FRACTION_BITS + guard)

    def atan_of_inverse(n: int) -> int:
        term, total, k = unit // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    return (2 * (4 * atan_of_inverse(5) - atan_of_inverse(239))) >> guard


def _acos(cosine: np.ndarray) -> tuple[np.ndarray]:
    size = np.abs(cosine)
    less, less_low = _two_sum(1.0, -size)
    more, more_low = _two_sum(1.0, size)
    square, square_low = _two_product(less, more)
    square_low = square_low + (less * more_low + less_low * more)
    sine = np.sqrt(square)
    again, again_low = _two_product(sine, sine)
    sine_low = np.where(sine > 0.0, ((square - again) - again_low + square_low) / (2.0 * sine), 0.0)
    return _atan2(sine, cosine, cosine * sine_low)


def _atan2(y: np.ndarray, x: np.ndarray, correction: np.ndarray | float = 0.0) -> tuple[np.ndarray]:
    """correction: added to the angle before it is rounded, for y >= 0."""
    steep = np.abs(y) > np.abs(x)
    long, short = np.where(steep, np.abs(y), np.abs(x)), np.where(steep, np.abs(x), np.abs(y))
    both_infinite, zero = np.isinf(short), long == 0.0
    long, short = np.where(both_infinite | zero, 1.0, long), np.where(both_infinite, 1.0, np.where(zero, 0.0, short))
    plain = short / long  # rounded once, subnormal quotients included
    # Both by one power of two, so that products of them neither overflow nor lose bits; a slope below _FLAT is `plain`.
    exponent = np.frexp(np.where(np.isinf(long), 1.0, long))[1]
    flat = (plain < _FLAT) | np.isinf(long)
    a = np.where(flat, 1.0, np.ldexp(long, -exponent))
    b = np.where(flat, 0.0, np.ldexp(short, -exponent))
    high, low = _atan_of_quotient(b, a)
    high, low = np.where(flat, plain, high), np.where(flat, 0.0, low)
    # The octant: 0 ± angle, π/2 ± angle, π - angle.
    backward = np.signbit(x)
    base = np.where(steep, _HALF_PI_HI, np.where(backward, _PI_HI, 0.0))
    base_low = np.where(steep, _HALF_PI_LO, np.where(backward, _PI_LO, 0.0))
    sign = np.where(steep == backward, 1.0, -1.0)
    total, rest = _two_sum(base, sign * high)
    angle = np.where(base == 0.0, high + (low + correction), total + (rest + (base_low + sign * low) + correction))
    return (np.where(np.isnan(x) | np.isnan(y), np.nan, np.copysign(angle, y)),)


def _atan_of_quotient(b: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arc tangent of b / a as a sum of two numbers, 0 <= b <= a, a near 1.

    atan(b/a) - atan(c) is the arc tangent of (b - c a) / (a + c b), for c of 0, 1/2 and 1.
    """
    half, is_over_one = b >= _STEEP_HALF * a, b >= _STEEP_ONE * a
    c = np.where(is_over_one, 1.0, np.where(half, 0.5, 0.0))
    base = np.where(is_over_one, 0.5 * _HALF_PI_HI, np.where(half, _ATAN_HALF[0], 0.0))
    base_low = np.where(is_over_one, 0.5 * _HALF_PI_LO, np.where(half, _ATAN_HALF[1], 0.0))
    top, top_low = _two_sum(b, -(c * a))
    bottom, bottom_low = _two_sum(a, c * b)
    t = top / bottom
    product, product_low = _two_product(t, bottom)
    t_low = (((top - product) - product_low) + (top_low - t * bottom_low)) / bottom
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11 = _ARC_TANGENT
    z = t * t
    w = z * z
    even = z * (a1 + w * (a3 + w * (a5 + w * (a7 + w * (a9 + w * a11)))))
    odd = w * (a2 + w * (a4 + w * (a6 + w * (a8 + w * a10))))
    correction = t_low * (1.0 - z) - t * (even + odd)
    high, low = _two_sum(base, t)
    return _fast_two_sum(high, low + (base_low + correction))


def _two_sum(a: np.ndarray | float, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sum, and exactly what its rounding loses (Knuth 1969)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _fast_two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sum, and what its rounding loses, of an a that is zero or not smaller than b."""
    total = a + b
    return total, b - (total - a)


def _two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The product, and exactly what its rounding loses (Dekker 1971)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of at most 27 bits whose sum is a."""
    spread = 134217729.0 * a
    high = spread - (spread - a)
    return high, a - high


# Sums of products: dot products, norms, products of matrices.
#
# Each sum is one addition after the other, in the order of its index. Where sums are short, as in three dimensions,
# passes over whole arrays are also faster than NumPy's products of many small matrices.

_SWEEPS = 30
"""Of Jacobi rotations; about six reach rounding."""
SINGULAR = 1e-14
"""Volume of a matrix's rows, as a fraction of that of a box with their lengths, at which the matrix is singular."""
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
    """[..., m, n]: products of matrices [..., m, k] and [..., k, n], k at least 1; the leading axes are broadcast."""
    total = a[..., :, :1] * b[..., :1, :]
    for k in range(1, a.shape[-1]):
        total += a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total


def matvec(a: np.ndarray, v: np.ndarray) -> np.ndarray:
    """[..., m]: products of matrices [..., m, k] and vectors [..., k]; the leading axes are broadcast."""
    return dot(a, v[..., None, :])


def length(vector: Sequence[float] | np.ndarray) -> float:
    """Euclidean length of one vector of numbers."""
    total = 0.0
    for number in vector:
        total += float(number) * float(number)
    return math.sqrt(total)


def integer_power(base: float, exponent: int) -> float:
    """base to a whole power, rounded once; infinite beyond float64. Raises ZeroDivisionError for 0 to less than 0."""
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
    """Eigenvalues, ascending, float64[3], and unit eigenvectors as columns float64[3, 3], of a symmetric matrix.

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
    t = math.copysign(1.0, tau) / (abs(tau) + (math.sqrt(1.0 + tau * tau) if abs(tau) < 1e150 else abs(tau)))
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    a[p][p], a[q][q], a[p][q], a[q][p] = a[p][p] - t * apq, a[q][q] + t * apq, 0.0, 0.0
    r = 3 - p - q
    arp, arq = a[r][p], a[r][q]
    a[r][p] = a[p][r] = c * arp - s * arq
    a[r][q] = a[q][r] = s * arp + c * arq
    for row in v:
        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]


def polar(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and stretch, float64[3, 3] each, whose product is the matrix.

    The rotation is the nearest to the matrix, or to its negative for a matrix with a reflection; the stretch is
    symmetric and contains the reflection as a scale of -1 along all axes. A singular matrix has no such rotation: its
    rotation is the identity, and the stretch is the matrix.
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


# Products of many poses at once: float64[7, n], the components first, x y z qx qy qz qw.
#
# With the components first, every operation is one pass over n contiguous numbers.

WXYZ_TO_XYZW = [1, 2, 3, 0]
XYZW_TO_WXYZ = [3, 0, 1, 2]
"""Index of each component in the other order; MuJoCo's is wxyz."""
IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def column(pose: np.ndarray) -> np.ndarray:
    """float64[7, 1] of one pose float64[7], which broadcasts over any number of others."""
    return np.asarray(pose, np.float64).reshape(7, 1)


def compose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[7, n]: products a b: b, given in a's frame, in the frame in which a is given; either may be [7, 1]."""
    out = np.empty((7, max(a.shape[1], b.shape[1])))
    out[:3] = a[:3] + rotate(a[3:], b[:3])
    out[3:] = multiply(a[3:], b[3:])
    return out


def inverse(a: np.ndarray) -> np.ndarray:
    """float64[7, n]: inverse transforms of poses with unit quaternions."""
    out = np.empty_like(a)
    out[3:6], out[6] = -a[3:6], a[6]
    out[:3] = -rotate(out[3:], a[:3])
    return out


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """float64[4, n]: quaternion products, xyzw; q's rotation first."""
    px, py, pz, pw = p
    qx, qy, qz, qw = q
    return np.stack(
        [
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
            pw * qw - px * qx - py * qy - pz * qz,
        ]
    )


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[3, n]: vectors rotated by unit quaternions, xyzw."""
    x, y, z, w = q
    vx, vy, vz = v
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    return np.stack([vx + w * tx + y * tz - z * ty, vy + w * ty + z * tx - x * tz, vz + w * tz + x * ty - y * tx])


# Poses with the components last, float64[..., 7], the layout of storage. Their sums are in another order than those
# above, and so their last bits: contact sets depend on both.


def compose_poses(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[..., 7]: the product a b: b, given in a's frame, in the frame in which a is given; shapes are broadcast.

    A translation a adds its position and changes no bit of the rotation.
    """
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    p, q = a[..., 3:], b[..., 3:]
    out[..., :3] = moved_points(a, b[..., :3])
    pv, pw, qv, qw = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    out[..., 3:6] = pw * qv + qw * pv + cross(pv, qv)
    out[..., 6] = pw[..., 0] * qw[..., 0] - (pv * qv).sum(-1)
    return out


def compose_as_kernels(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[..., 7]: the product a b with the bits of `COMPOSITION` in engine/geometry/real.h.

    Of nearly equal exits a search may take another one after a difference of the last bit.
    """
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    p, w, q, u = a[..., 3:6], a[..., 6:], b[..., 3:6], b[..., 6:]
    twice = 2.0 * sum(p[..., k : k + 1] * b[..., k : k + 1] for k in range(3))
    out[..., :3] = b[..., :3] * (2.0 * w * w - 1.0) + p * twice + cross(p, b[..., :3]) * w * 2.0 + a[..., :3]
    out[..., 3:6] = w * q + u * p + p[..., [1, 2, 0]] * q[..., [2, 0, 1]] - q[..., [1, 2, 0]] * p[..., [2, 0, 1]]
    out[..., 6:] = w * u - p[..., :1] * q[..., :1] - p[..., 1:2] * q[..., 1:2] - p[..., 2:] * q[..., 2:]
    return out


def inverse_poses(a: np.ndarray) -> np.ndarray:
    """float64[..., 7]: inverse transforms."""
    out = np.concatenate([a[..., :3], -a[..., 3:6], a[..., 6:]], axis=-1)
    out[..., :3] = -rotated(out[..., 3:], a[..., :3])
    return out


def moved_points(poses: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[..., 3]: points of poses' frames in the frames in which the poses are given; shapes are broadcast."""
    return poses[..., :3] + rotated(poses[..., 3:], points)


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """float64[..., 3]: vectors rotated by unit quaternions float64[..., 4], xyzw; shapes are broadcast."""
    twice = 2.0 * cross(q[..., :3], v)
    return v + q[..., 3:] * twice + cross(q[..., :3], twice)
