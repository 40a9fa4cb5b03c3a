"""C++ for functions over lanes: consecutive cells of one shape or of one pair, several at once on the CPU.

A native function works on numbers of type `Many`, with the operators of a number. Clang compiles it with vectors of
LANE_STEP lanes; a compiler for a GPU, or Clang with SCALAR_LANES, with single numbers: there each lane has a thread.
Every lane has the bits of the scalar code, since operations are elementwise and nothing is contracted.
"""

LANE_STEP = 4
"""Lanes of a vector: four numbers in float64 are one register of AVX2."""

PRELUDE = f"""
#if defined(__clang__) && !defined(__CUDA_ARCH__)
    #define MAGNITUDE(x) __builtin_elementwise_abs(x)
    #define GREATER(x, y) __builtin_elementwise_max(x, y)
    #define LESSER(x, y) __builtin_elementwise_min(x, y)
    #define ROOT(x) __builtin_elementwise_sqrt(x)
    #if !defined(SCALAR_LANES)
    #define VECTOR_LANES
    typedef double Doubles __attribute__((ext_vector_type({LANE_STEP}), aligned(8)));
    typedef float Floats __attribute__((ext_vector_type({LANE_STEP}), aligned(4)));
    #endif
#else
    #define MAGNITUDE(x) fabs(x)
    #define GREATER(x, y) max(x, y)
    #define LESSER(x, y) min(x, y)
    #define ROOT(x) sqrt(x)
#endif
"""
"""Vector types and elementwise functions; VECTOR_LANES is defined where vectors are used."""

EPILOGUE = """
    #undef MAGNITUDE
    #undef GREATER
    #undef LESSER
    #undef ROOT
    #undef VECTOR_LANES
"""
