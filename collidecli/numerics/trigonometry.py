"""Sine, cosine, arc tangent and arc cosine, with errors below 0.8 ulp, equal to the bit on every
processor.

Sources: arguments are reduced after Cody and Waite (1980), with π/2 in four parts, and beyond
`MODERATE` exactly, in integers, after Payne and Hanek (1983). The polynomials are those of fdlibm
(Sun Microsystems, 1993).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

MODERATE = 2.0**20
"""Up to this magnitude a product of an argument's quadrant and a part of π/2 of 33 bits is
exact."""
_BLOCK = 4096
"""Numbers worked on at a time: the intermediate arrays stay in the processor's cache."""
# π/2 as a sum: three parts of 33 bits each, and the rest.
HALF_PI_PARTS = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)
_PI_HI = math.pi
_PI_LO = 1.2246467991473531772e-16
_HALF_PI_HI = 0.5 * _PI_HI
_HALF_PI_LO = 0.5 * _PI_LO
TWO_OVER_PI = 6.36619772367581382433e-01
_FRACTION_BITS = 1200
"""Of π/2 as an integer: 1024 for the largest quadrant, 64 for the closest approach to one, and 112
of the result."""
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
_STEEP_HALF = 7.0 / 16.0
_STEEP_ONE = 11.0 / 16.0
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
    """float64[...] twice: sine and cosine of angles [rad] of any magnitude; NaN of what is not
    finite."""
    sine, cosine = _blockwise(_sincos, 2, angle)
    return sine, cosine


def atan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """float64[...]: angle of the vectors (x, y) from the x axis, in [-π, π] [rad]; shapes are
    broadcast.

    Signs of zeros and infinities as in IEEE 754: atan2(±0, -0) is ±π.
    """
    y, x = np.broadcast_arrays(y, x)
    return _blockwise(_atan2, 1, y, x)[0]


def acos(cosine: np.ndarray) -> np.ndarray:
    """float64[...]: angle in [0, π] [rad] of a cosine; NaN outside [-1, 1].

    The arc tangent of sine over cosine, plus what the rounded sine lacks times the derivative,
    which is the cosine.
    """
    return _blockwise(_acos, 1, np.asarray(cosine))[0]


def _blockwise(
    function: Callable[..., tuple[np.ndarray, ...]], outputs: int, *arguments: np.ndarray | float
):
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
    swapped = (quadrant & 1) == 1
    negative_sine = (quadrant & 2) == 2
    negative_cosine = ((quadrant + 1) & 2) == 2
    out_sine = np.where(swapped, cosine, sine)
    out_cosine = np.where(swapped, sine, cosine)
    out_sine = np.where(negative_sine, -out_sine, out_sine)
    # The difference above would make +0 of a sine of -0.
    return np.where(angle == 0.0, angle, out_sine), np.where(
        negative_cosine, -out_cosine, out_cosine
    )


def _reduced(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quadrant, int64, and the angle from that multiple of π/2, at most π/4 in magnitude, as a sum
    of two numbers."""
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
    # beyond MODERATE the denominator is a small power of two
    numerator, denominator = angle.as_integer_ratio()
    half_pi = _half_pi()
    unit = 1 << _FRACTION_BITS
    scaled = (numerator << _FRACTION_BITS) // denominator
    number = (2 * scaled + half_pi) // (2 * half_pi)
    rest = scaled - number * half_pi
    high = rest / unit  # rounds to nearest
    top, bottom = high.as_integer_ratio()
    return number & 3, high, (rest - (top << _FRACTION_BITS) // bottom) / unit


@cache
def _half_pi() -> int:
    """π/2 with `_FRACTION_BITS` behind the point, by Machin's formula: π/4 = 4 atan(1/5) -
    atan(1/239)."""
    guard = 32
    unit = 1 << (_FRACTION_BITS + guard)

    def atan_of_inverse(n: int) -> int:
        term = unit // n
        total = 0
        k = 1
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
    long = np.where(steep, np.abs(y), np.abs(x))
    short = np.where(steep, np.abs(x), np.abs(y))
    both_infinite = np.isinf(short)
    zero = long == 0.0
    long = np.where(both_infinite | zero, 1.0, long)
    short = np.where(both_infinite, 1.0, np.where(zero, 0.0, short))
    plain = short / long  # rounded once, subnormal quotients included
    # Both by one power of two, so that products of them neither overflow nor lose bits; a slope
    # below _FLAT is `plain`.
    exponent = np.frexp(np.where(np.isinf(long), 1.0, long))[1]
    flat = (plain < _FLAT) | np.isinf(long)
    a = np.where(flat, 1.0, np.ldexp(long, -exponent))
    b = np.where(flat, 0.0, np.ldexp(short, -exponent))
    high, low = _atan_of_quotient(b, a)
    high = np.where(flat, plain, high)
    low = np.where(flat, 0.0, low)
    # The octant: 0 ± angle, π/2 ± angle, π - angle.
    backward = np.signbit(x)
    base = np.where(steep, _HALF_PI_HI, np.where(backward, _PI_HI, 0.0))
    base_low = np.where(steep, _HALF_PI_LO, np.where(backward, _PI_LO, 0.0))
    sign = np.where(steep == backward, 1.0, -1.0)
    total, rest = _two_sum(base, sign * high)
    angle = np.where(
        base == 0.0,
        high + (low + correction),
        total + (rest + (base_low + sign * low) + correction),
    )
    return (np.where(np.isnan(x) | np.isnan(y), np.nan, np.copysign(angle, y)),)


def _atan_of_quotient(b: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arc tangent of b / a as a sum of two numbers, 0 <= b <= a, a near 1.

    atan(b/a) - atan(c) is the arc tangent of (b - c a) / (a + c b), for c of 0, 1/2 and 1.
    """
    half = b >= _STEEP_HALF * a
    is_over_one = b >= _STEEP_ONE * a
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
