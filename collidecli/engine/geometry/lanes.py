"""C++ for functions over lanes: consecutive cells of one shape or of one pair, several at once on
the CPU.

A native function works on numbers of type `Many`, with the operators of a number. Clang compiles it
with vectors of LANE_STEP lanes; a compiler for a GPU, or Clang with SCALAR_LANES, with single
numbers: there each lane has a thread. Every lane has the bits of the scalar code, since operations
are elementwise and nothing is contracted.
"""

from collidecli.engine.runtime.native_code import native

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
