"""SIMD tests of one shape's bounds against those of eight consecutive slots: one bit for each overlap.

The bounds of eight slots are stored as lanes (eight x, eight y, ...). The loops over lanes are in C++: Warp's own array
reads wrap and stride each element, which prevents vectorization by the compiler.
"""

import warp as wp

from collidecli.engine.cells import CENTER, LOWER, NUMBERS, RADIUS, UPPER
from collidecli.engine.device_model import LANES
from collidecli.engine.geometry.bounds import INFINITE

RADIUS_SLACK = wp.constant(wp.float32(1.000001))
"""Factor on a sum of radii: more than the rounding of its square and of the squared distance."""
SLACK = wp.constant(wp.float32(5.0e-7))
"""Relative rounding of a coordinate, and of the sum of three products of coordinate differences."""


def lanes_that(lines: str, condition: str) -> str:
    """C++ that sets the bits of those lanes in `overlap` for which `condition` holds, after `lines`.

    EIGHT(number) is the lane's element at the pointer `number`. On the CPU it is a Clang vector of all lanes: a loop
    over the lanes is only half vectorized, and gathers the bits in five instructions instead of one.
    """
    return f"""
#if defined(__clang__)
    {{
        typedef float Lanes __attribute__((ext_vector_type({LANES}), aligned(4)));
        typedef bool Flags __attribute__((ext_vector_type({LANES})));
        #define EIGHT(number) (*(const Lanes*)(number))
        #define MAGNITUDE(x) __builtin_elementwise_abs(x)
        {lines}
        overlap = __builtin_bit_cast(unsigned char, __builtin_convertvector({condition}, Flags));
        #undef EIGHT
        #undef MAGNITUDE
    }}
#else
    for (int k = 0; k < {LANES}; ++k) {{
        #define EIGHT(number) (number)[k]
        #define MAGNITUDE(x) fabsf(x)
        {lines}
        overlap |= (unsigned int)({condition}) << k;
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
    unsigned int overlap = 0;
"""
"""Pointers to the numbers of an instance and of a block; consecutive numbers of one slot are LANES apart."""

BALLS = lanes_that(
    f"""
        const auto x = EIGHT(center) - cx, y = EIGHT(center + {LANES}) - cy, z = EIGHT(center + {2 * LANES}) - cz;
        const auto r = (EIGHT(radius) + cr) * {float(RADIUS_SLACK)!r}f;""",
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
    const unsigned int near = overlap & mask;
    if (near == 0)
        return near;
    overlap = 0;
    const float lx = one[{LOWER * LANES}], ly = one[{(LOWER + 1) * LANES}], lz = one[{(LOWER + 2) * LANES}];
    const float ux = one[{UPPER * LANES}], uy = one[{(UPPER + 1) * LANES}], uz = one[{(UPPER + 2) * LANES}];
    {BOXES}
    return near & overlap;
"""
)
def near_bits(bound: wp.array[wp.float32], instance: int, block: int, mask: wp.uint32) -> wp.uint32:
    """Of the lanes `mask` of a block, those whose balls and boxes overlap an instance's. A plane's overlap all."""
    ...


@wp.func_native(
    f"""{BOUNDS}
    const float px = one[{CENTER * LANES}], py = one[{(CENTER + 1) * LANES}], pz = one[{(CENTER + 2) * LANES}];
    const float nx = normal[0], ny = normal[1], nz = normal[2];
    const float near = inflation + {float(SLACK)!r}f * (fabsf(px) + fabsf(py) + fabsf(pz));
    // The corner farthest into the half-space is the same for all lanes.
    const float* corner_x = nx > 0.0f ? lower : upper;
    const float* corner_y = (ny > 0.0f ? lower : upper) + {LANES};
    const float* corner_z = (nz > 0.0f ? lower : upper) + {2 * LANES};
    {FRONT}
    return overlap;
"""
)
def half_space_bits(
    bound: wp.array[wp.float32], instance: int, block: int, normal: wp.vec3f, inflation: wp.float32
) -> wp.uint32:
    """Lanes of a block whose boxes overlap the half-space of a plane instance, as bits.

    Args:
        normal: unit normal of the plane, world. inflation: of the plane [m].
    """
    ...


@wp.func_native(
    f"""
    const float* radius = bound.data + (block * {NUMBERS} + {RADIUS}) * {LANES};
    unsigned int overlap = 0;
    {lanes_that("", f"EIGHT(radius) >= {float(INFINITE)!r}f")}
    return overlap;
"""
)
def plane_bits(bound: wp.array[wp.float32], block: int) -> wp.uint32:
    """Lanes of a block that are planes, as bits."""
    ...
