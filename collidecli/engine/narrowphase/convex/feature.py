"""Feature of a convex shape, and the constants that classify features; see `features`."""

import math

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3

POINT = wp.constant(0)
LINE = wp.constant(1)
FACE = wp.constant(2)

FACE_COSINE = wp.constant(Real(0.9))
LINE_SINE = wp.constant(Real(0.3))

RIM_COUNT = 6
"""Corners of the inscribed polygon of a disc: two polygons intersect in at most 12 points; it covers 83 % of the
disc.
"""
MAX_CODES = 2 * RIM_COUNT
EDGES = wp.constant(RIM_COUNT)
"""Index in a feature's ids: the corners' ids first, from EDGES on those of a face's edges, each after its corner."""
RIM_CORNERS = wp.constant(RIM_COUNT)
RIM_SINE = wp.constant(Real(math.sqrt(0.75)))
LOWER_RIM = wp.constant(8)
UPPER_RIM = wp.constant(20)

AT_BORDER = wp.constant(Real(1.0e-5))
"""Distance relative to a size below which a witness is on an edge or vertex: ten times the error that GJK's directions,
accurate to 1e-6, cause, so that a witness at a vertex gets its id for every orientation of the pair."""


@wp.struct
class Feature:
    """Kind (POINT, LINE, FACE), id, corner count; for a face, outward normal and half its smallest width [m]."""

    kind: int
    code: int
    count: int
    normal: Vec3
    half_width: Real
