"""What a feature of a convex shape is, and the limits that tell features apart; see `features`."""

import math

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3

POINT = wp.constant(0)
LINE = wp.constant(1)
FACE = wp.constant(2)

FACE_COSINE = wp.constant(Real(0.9))
LINE_SINE = wp.constant(Real(0.3))

RIM_COUNT = 6
"""Corners of the polygon that stands for a disc: two meet in at most 12 points; it covers 83 % of the disc."""
MAX_CODES = 2 * RIM_COUNT
EDGES = wp.constant(RIM_COUNT)
"""Numbers of a feature: its corners', and from EDGES on those of a face's edges, from each corner to the next."""
RIM_CORNERS = wp.constant(RIM_COUNT)
RIM_SINE = wp.constant(Real(math.sqrt(0.75)))
LOWER_RIM = wp.constant(8)
UPPER_RIM = wp.constant(20)

AT_BORDER = wp.constant(Real(1.0e-5))
"""A witness nearer than this share of a size to an edge or vertex is on it: ten times what GJK's directions, good to
1e-6, leave open, so that one at a vertex is named by it however the pair is turned."""


@wp.struct
class Feature:
    """Kind (POINT, LINE, FACE), number, corner count; of a face, outward normal and half its smallest width [m]."""

    kind: int
    code: int
    count: int
    normal: Vec3
    half_width: Real
