"""One shape's bounds against those of eight consecutive places at once: a bit for each that they meet.

The bounds of eight places stand as lanes (eight x, eight y, ...). The loops over them are in C++: Warp wraps and
strides every element that a kernel reads on its own, which keeps a compiler from testing the eight together.
"""

import warp as wp

from collidecli.engine.cells import CENTER, LOWER, NUMBERS, RADIUS, UPPER
from collidecli.engine.device_model import LANES
from collidecli.engine.geometry.bounds import INFINITE

SAFE = wp.constant(wp.float32(1.000001))
"""Widening of a sum of radii: more than what its square and the squared distance lose to rounding."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Rounding of a coordinate, and of three products of differences of two, relative to them."""


def lanes_that(lines: str, condition: str) -> str:
    """C++ that sets `met` to the bits of those lanes for which `condition` holds, after `lines`.

    Of what `number` points at, EIGHT(number) is each lane's. On a processor all lanes are one step, vectors of the
    compiler's own: a loop it would take apart and join half of it again, and gather the bits by five steps for one.
    """
    return f"""
#if defined(__clang__)
    {{
        typedef float Lanes __attribute__((ext_vector_type({LANES}), aligned(4)));
        typedef bool Flags __attribute__((ext_vector_type({LANES})));
        #define EIGHT(number) (*(const Lanes*)(number))
        #define MAGNITUDE(x) __builtin_elementwise_abs(x)
        {lines}
        met = __builtin_bit_cast(unsigned char, __builtin_convertvector({condition}, Flags));
        #undef EIGHT
        #undef MAGNITUDE
    }}
#else
    for (int k = 0; k < {LANES}; ++k) {{
        #define EIGHT(number) (number)[k]
        #define MAGNITUDE(x) fabsf(x)
        {lines}
        met |= (unsigned int)({condition}) << k;
        #undef EIGHT
        #undef MAGNITUDE
    }}
#endif"""


BOUNDS = f"""
    const float* one = bound.data + (instance / {LANES}) * {NUMBERS * LANES} + instance % {LANES};
    const float* center = bound.data + block * {NUMBERS * LANES} + {CENTER * LANES};
    const float* radius = bound.data + block * {NUMBERS * LANES} + {RADIUS * LANES};
    const float* lower = bound.data + block * {NUMBERS * LANES} + {LOWER * LANES};
    const float* upper = bound.data + block * {NUMBERS * LANES} + {UPPER * LANES};
    unsigned int met = 0;
"""
"""Where the numbers of an instance and those of a block stand: those of one place are LANES apart."""

BALLS = lanes_that(
    f"""
        const auto x = EIGHT(center) - cx, y = EIGHT(center + {LANES}) - cy, z = EIGHT(center + {2 * LANES}) - cz;
        const auto r = (EIGHT(radius) + cr) * {float(SAFE)!r}f;""",
    "x * x + y * y + z * z < r * r",
)
BOXES = lanes_that(
    f"""
        const auto below = (EIGHT(lower) < ux) & (EIGHT(lower + {LANES}) < uy) & (EIGHT(lower + {2 * LANES}) < uz);
        const auto above = (EIGHT(upper) > lx) & (EIGHT(upper + {LANES}) > ly) & (EIGHT(upper + {2 * LANES}) > lz);""",
    "below & above",
)
FRONT = lanes_that(
    f"""
        const auto x = EIGHT(corner_x) - px, y = EIGHT(corner_y) - py, z = EIGHT(corner_z) - pz;
        const auto rounding = (MAGNITUDE(x) + MAGNITUDE(y) + MAGNITUDE(z)) * {float(SLACK)!r}f;""",
    "nx * x + ny * y + nz * z - rounding < near",
)


@wp.func_native(
    f"""{BOUNDS}
    const float cx = one[{CENTER * LANES}], cy = one[{(CENTER + 1) * LANES}], cz = one[{(CENTER + 2) * LANES}];
    const float cr = one[{RADIUS * LANES}];
    {BALLS}
    const unsigned int near = met & asked;
    if (near == 0)
        return near;
    met = 0;
    const float lx = one[{LOWER * LANES}], ly = one[{(LOWER + 1) * LANES}], lz = one[{(LOWER + 2) * LANES}];
    const float ux = one[{UPPER * LANES}], uy = one[{(UPPER + 1) * LANES}], uz = one[{(UPPER + 2) * LANES}];
    {BOXES}
    return near & met;
"""
)
def near_bits(bound: wp.array[wp.float32], instance: int, block: int, asked: wp.uint32) -> wp.uint32:
    """Of the lanes `asked` of a block, those whose balls and boxes meet an instance's. A plane's meet all."""
    ...


@wp.func_native(
    f"""{BOUNDS}
    const float px = one[{CENTER * LANES}], py = one[{(CENTER + 1) * LANES}], pz = one[{(CENTER + 2) * LANES}];
    const float nx = normal[0], ny = normal[1], nz = normal[2];
    const float near = inflation + {float(SLACK)!r}f * (fabsf(px) + fabsf(py) + fabsf(pz));
    // The corner nearest to the solid side is the same for all lanes.
    const float* corner_x = nx > 0.0f ? lower : upper;
    const float* corner_y = (ny > 0.0f ? lower : upper) + {LANES};
    const float* corner_z = (nz > 0.0f ? lower : upper) + {2 * LANES};
    {FRONT}
    return met;
"""
)
def half_space_bits(
    bound: wp.array[wp.float32], instance: int, block: int, normal: wp.vec3f, inflation: wp.float32
) -> wp.uint32:
    """Bits of those lanes of a block whose boxes reach into the half-space of an instance that is a plane.

    Args:
        normal: the plane's, unit, world. inflation: the plane's [m].
    """
    ...


@wp.func_native(
    f"""
    const float* radius = bound.data + (block * {NUMBERS} + {RADIUS}) * {LANES};
    unsigned int met = 0;
    {lanes_that("", f"EIGHT(radius) >= {float(INFINITE)!r}f")}
    return met;
"""
)
def plane_bits(bound: wp.array[wp.float32], block: int) -> wp.uint32:
    """Bits of those lanes of a block that are planes."""
    ...
