"""Number types of the engine, and functions of numbers that are bit-identical on every processor.

Float64: witness points on a 1 km shape are accurate to micrometres, EPA converges to 1e-7 of a
shape's size, and results do not depend on the position of the scene in the world. See
docs/adr/0068.
"""

import math
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.native_code import native
from collidecli.scene.shape_types import ShapeType

Real = wp.float64
Vec2 = wp.vec2d
Vec3 = wp.vec3d
Mat33 = wp.mat33d
Quat = wp.quatd
Pose = wp.transformd
"""Position, then rotation xyzw."""
UP = wp.constant(Vec3(Real(0.0), Real(0.0), Real(1.0)))
AXIS_X = wp.constant(Vec3(Real(1.0), Real(0.0), Real(0.0)))


def struct_type(name: str, fields: dict[str, Any], module: str) -> Any:
    """Warp struct of `module` with these fields, for structs that differ in a type only."""
    return wp.struct(type(name, (), {"__annotations__": fields, "__module__": module}))


# Kernel arguments passed as arrays of one struct.
#
# A non-inlined Warp function receives a struct by value: a copy of a kilobyte and more for a struct
# of many arrays. An array of one struct is passed by address, and `meshes[0].point` reads only the
# named member.


def by_reference(kind: Any, values: list[Any], device: wp.Device) -> wp.array:
    """Array with copies of structs, which later changes of `values` do not change. Keeps the
    structs' arrays alive."""
    result = wp.array(values, dtype=kind, device=device)
    vars(result)["held"] = values
    return result


def array_of(dtype: Any, name: str) -> Any:
    """Function that returns a local array as one of any length: for fields of structs, and to be
    passed by address.

    Not for a generic function that others call with a local array: Warp compiles it for the kind of
    array of the first.
    """

    @wp.func(name=name)
    def as_array(scratch: wp.array[dtype]) -> wp.array[dtype]:  # type: ignore[valid-type]
        return scratch

    return as_array


def device_array(values: np.ndarray, dtype: Any, device: wp.Device) -> wp.array:
    """Array of values on a device; of none, one unused element: Warp passes no array of length zero
    by pointer."""
    filled = values if len(values) else np.zeros((1, *values.shape[1:]), values.dtype)
    return wp.array(np.ascontiguousarray(filled), dtype=dtype, device=device)


def referenced(array: wp.array) -> Any:
    """The struct of which `by_reference` copied the array's only element."""
    return vars(array)["held"][0]


# `ShapeType` values as Warp constants.

PLANE = wp.constant(int(ShapeType.PLANE))
SPHERE = wp.constant(int(ShapeType.SPHERE))
CAPSULE = wp.constant(int(ShapeType.CAPSULE))
BOX = wp.constant(int(ShapeType.BOX))
CYLINDER = wp.constant(int(ShapeType.CYLINDER))
CONE = wp.constant(int(ShapeType.CONE))
ELLIPSOID = wp.constant(int(ShapeType.ELLIPSOID))
CONVEX_MESH = wp.constant(int(ShapeType.CONVEX_MESH))
MESH = wp.constant(int(ShapeType.MESH))
HEIGHTFIELD = wp.constant(int(ShapeType.HEIGHTFIELD))


# C++ for functions over lanes: consecutive cells of one shape or of one pair, several at once on
# the CPU.
#
# A native function works on numbers of type `Many`, with the operators of a number. Clang compiles
# it with vectors of LANE_STEP lanes; a compiler for a GPU, or Clang with SCALAR_LANES, with single
# numbers: there each lane has a thread. Every lane has the bits of the scalar code, since
# operations are elementwise and nothing is contracted.

LANE_STEP = 4
"""Lanes of a vector: four numbers in float64 are one register of AVX2."""

PRELUDE = native(__file__, "prelude", LANE_STEP=LANE_STEP)
"""Vector types and elementwise functions; VECTOR_LANES is defined where vectors are used."""

EPILOGUE = """
    #undef MAGNITUDE
    #undef GREATER
    #undef LESSER
    #undef ROOT
    #undef VECTOR_LANES
"""

LOAD = native(__file__, "load", LANE_STEP=LANE_STEP)
"""`load(out, address)`: seven numbers of each lane, a pose, from the addresses of the lanes' first
numbers."""

COMPOSITION = native(__file__, "composition")
"""`compose(a, b, out)`: the product of two poses."""

ROTATION = native(__file__, "rotation")
"""`rotate(q, x, sign, out)`: a rotated vector, or with sign -1 one rotated back."""


# Sine and cosine, arc tangent, logarithm, exponential and power for kernels, bit-identical on every
# processor.
#
# Warp's functions call the C library, whose last bit depends on the processor. These use +, -, *, /
# and integers only, and kernels are compiled without fused multiply-adds (`runtime.kernel`).
# Polynomials: fdlibm (Sun Microsystems, 1993).

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
