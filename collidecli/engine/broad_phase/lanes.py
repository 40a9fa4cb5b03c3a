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

EACH_LANE = f"""
#if defined(__clang__)
    #pragma clang loop vectorize_width({LANES}) interleave(disable) unroll(disable)
#endif
    for (int k = 0; k < {LANES}; ++k)"""
"""A loop that is one step on a processor: left alone, its compiler takes it apart and joins half of it again."""

BOUNDS = f"""
    const float* one = bound.data + (instance / {LANES}) * {NUMBERS * LANES} + instance % {LANES};
    const float* center = bound.data + block * {NUMBERS * LANES} + {CENTER * LANES};
    const float* radius = bound.data + block * {NUMBERS * LANES} + {RADIUS * LANES};
    const float* lower = bound.data + block * {NUMBERS * LANES} + {LOWER * LANES};
    const float* upper = bound.data + block * {NUMBERS * LANES} + {UPPER * LANES};
    unsigned int bits = 0;
"""
"""Where the numbers of an instance and those of a block stand: those of one place are LANES apart."""


@wp.func_native(
    f"""{BOUNDS}
    const float cx = one[{CENTER * LANES}], cy = one[{(CENTER + 1) * LANES}], cz = one[{(CENTER + 2) * LANES}];
    const float cr = one[{RADIUS * LANES}];
    {EACH_LANE} {{
        const float x = center[k] - cx, y = center[{LANES} + k] - cy, z = center[{2 * LANES} + k] - cz;
        const float r = (radius[k] + cr) * {float(SAFE)!r}f;
        bits |= (unsigned int)(x * x + y * y + z * z < r * r) << k;
    }}
    bits &= asked;
    if (bits == 0)
        return bits;
    unsigned int meet = 0;
    const float lx = one[{LOWER * LANES}], ly = one[{(LOWER + 1) * LANES}], lz = one[{(LOWER + 2) * LANES}];
    const float ux = one[{UPPER * LANES}], uy = one[{(UPPER + 1) * LANES}], uz = one[{(UPPER + 2) * LANES}];
    {EACH_LANE} {{
        const bool below = (lower[k] < ux) & (lower[{LANES} + k] < uy) & (lower[{2 * LANES} + k] < uz);
        const bool above = (lx < upper[k]) & (ly < upper[{LANES} + k]) & (lz < upper[{2 * LANES} + k]);
        meet |= (unsigned int)(below & above) << k;
    }}
    return bits & meet;
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
    {EACH_LANE} {{
        const float x = corner_x[k] - px, y = corner_y[k] - py, z = corner_z[k] - pz;
        const float rounding = {float(SLACK)!r}f * (fabsf(x) + fabsf(y) + fabsf(z));
        bits |= (unsigned int)(nx * x + ny * y + nz * z - rounding < near) << k;
    }}
    return bits;
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
    unsigned int bits = 0;
    {EACH_LANE}
        bits |= (unsigned int)(radius[k] >= {float(INFINITE)!r}f) << k;
    return bits;
"""
)
def plane_bits(bound: wp.array[wp.float32], block: int) -> wp.uint32:
    """Bits of those lanes of a block that are planes."""
    ...
