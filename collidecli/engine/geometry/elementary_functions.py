"""Elementary functions of kernels, bit-identical on every processor: sine, cosine, arc tangent,
logarithm, exponential, power.

Warp's functions call the C library, whose last bit depends on the processor. These use +, -, *, /
and integers only, and kernels are compiled without fused multiply-adds (`runtime.kernel`).
Polynomials: fdlibm (Sun Microsystems, 1993).
"""

import math

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2

HALF_PI = wp.constant(Real(0.5 * math.pi))
HALF_PI_REST = wp.constant(Real(6.123233995736766e-17))
"""What HALF_PI lacks."""
QUARTER_PI = wp.constant(Real(0.25 * math.pi))
ATAN_HALF = wp.constant(Real(4.63647609000806093515e-01))
LN2_HIGH = wp.constant(Real(6.93147180369123816490e-01))
"""Leading 32 bits of ln 2: its product with an exponent is exact. LN2_LOW: the remainder."""
LN2_LOW = wp.constant(Real(1.90821492927058770002e-10))
INVERSE_LN2 = wp.constant(Real(1.44269504088896338700e00))
SQRT2 = wp.constant(Real(math.sqrt(2.0)))
MANTISSA = wp.constant(wp.int64((1 << 52) - 1))
EXPONENT_OF_ONE = wp.constant(wp.int64(1023))
SUBNORMAL = wp.constant(Real(2.0**-1022))
MOST_EXPONENT = wp.constant(Real(1023.0))


@wp.func
def cosine_and_sine(angle: Real) -> Vec2:
    """Cosine and sine of an angle in [0, pi / 2]. Error: 1 ulp."""
    x = (HALF_PI - angle) + HALF_PI_REST if angle > QUARTER_PI else angle
    z = x * x
    odd = Real(-2.50507602534068634195e-08) + z * Real(1.58969099521155010221e-10)
    odd = Real(-1.98412698298579493134e-04) + z * (Real(2.75573137070700676789e-06) + z * odd)
    sine = x + z * x * (
        Real(-1.66666666666666324348e-01) + z * (Real(8.33333333332248946124e-03) + z * odd)
    )
    even = Real(2.08757232129817482790e-09) + z * Real(-1.13596475577881948265e-11)
    even = Real(2.48015872894767294178e-05) + z * (Real(-2.75573143513906633035e-07) + z * even)
    even = z * (
        Real(4.16666666666666019037e-02) + z * (Real(-1.38888888888741095749e-03) + z * even)
    )
    half = Real(0.5) * z
    top = Real(1.0) - half
    cosine = top + (((Real(1.0) - top) - half) + z * even)
    return Vec2(sine, cosine) if angle > QUARTER_PI else Vec2(cosine, sine)


@wp.func
def arc_tangent(y: Real, x: Real) -> Real:
    """Angle in [0, pi] of the vector (x, y) from the x axis, for y >= 0; 0 for the zero vector.
    Error: 2 ulp."""
    long = wp.abs(x)
    short = y
    steep = y > long
    if steep:
        long = y
        short = wp.abs(x)
    if long == Real(0.0):
        return Real(0.0)
    # atan(short / long) - atan(c) is the arc tangent of (short - c long) / (long + c short), for c
    # of 0, 1/2 and 1.
    base = Real(0.0)
    t = short / long
    if t >= Real(0.6875):
        base = QUARTER_PI
        t = (t - Real(1.0)) / (Real(1.0) + t)
    elif t >= Real(0.4375):
        base = ATAN_HALF
        t = (Real(2.0) * t - Real(1.0)) / (Real(2.0) + t)
    z = t * t
    w = z * z
    even = Real(4.97687799461593236017e-02) + w * Real(1.62858201153657823623e-02)
    even = Real(9.09088713343650656196e-02) + w * (Real(6.66107313738753120669e-02) + w * even)
    even = z * (
        Real(3.33333333333329318027e-01) + w * (Real(1.42857142725034663711e-01) + w * even)
    )
    odd = Real(-5.83357013379057348645e-02) + w * Real(-3.65315727442169155270e-02)
    odd = Real(-1.11111104054623557880e-01) + w * (Real(-7.69187620504482999495e-02) + w * odd)
    odd = w * (Real(-1.99999999998764832476e-01) + w * odd)
    angle = base - (t * (even + odd) - t)
    if steep:
        return HALF_PI + angle if x < Real(0.0) else HALF_PI - angle
    return Real(2.0) * HALF_PI - angle if x < Real(0.0) else angle


@wp.func
def natural_logarithm(x: Real) -> Real:
    """Natural logarithm of a positive number. Error: 1 ulp."""
    k = wp.int64(0)
    if x < SUBNORMAL:
        x = x * Real(18014398509481984.0)  # 2^54
        k = wp.int64(-54)
    bits = wp.cast(x, wp.int64)
    k = k + (bits >> wp.int64(52)) - EXPONENT_OF_ONE
    m = wp.cast((bits & MANTISSA) | (EXPONENT_OF_ONE << wp.int64(52)), Real)
    if m > SQRT2:
        m = m * Real(0.5)
        k = k + wp.int64(1)
    f = m - Real(1.0)
    s = f / (Real(2.0) + f)
    z = s * s
    w = z * z
    odd = Real(2.222219843214978396e-01) + w * Real(1.531383769920937332e-01)
    odd = w * (Real(3.999999999940941908e-01) + w * odd)
    even = Real(1.818357216161805012e-01) + w * Real(1.479819860511658591e-01)
    even = z * (Real(6.666666666666735130e-01) + w * (Real(2.857142874366239149e-01) + w * even))
    half = Real(0.5) * f * f
    e = Real(k)
    return e * LN2_HIGH - ((half - (s * (half + (odd + even)) + e * LN2_LOW)) - f)


@wp.func
def exponential(x: Real) -> Real:
    """e^x; 0 or infinity outside the range of normal numbers. Error: 1 ulp."""
    e = wp.rint(x * INVERSE_LN2)
    if e > MOST_EXPONENT:
        return Real(wp.inf)
    if e <= -MOST_EXPONENT:
        return Real(0.0)
    high = x - e * LN2_HIGH
    low = e * LN2_LOW
    r = high - low
    t = r * r
    p = Real(-1.65339022054652515390e-06) + t * Real(4.13813679705723846039e-08)
    p = Real(-2.77777777770155933842e-03) + t * (Real(6.61375632143793436117e-05) + t * p)
    c = r - t * (Real(1.66666666666666019037e-01) + t * p)
    y = Real(1.0) - ((low - (r * c) / (Real(2.0) - c)) - high)
    scale = wp.cast((wp.int64(e) + EXPONENT_OF_ONE) << wp.int64(52), Real)
    return y * scale


@wp.func
def power(base: Real, exponent: Real) -> Real:
    """A positive base to a power. The error grows with |exponent ln base|: 1e-14 of the result at
    50."""
    return exponential(exponent * natural_logarithm(base))
