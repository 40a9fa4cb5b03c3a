"""Feature of a convex shape, and the constants that classify features; see `features`."""

import math
from typing import Any

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

ATTAINED = wp.constant(Real(1.0e-9))
"""Difference relative to the smaller shape's size below which a contact attains the exact separation."""
SAME_POINT = wp.constant(Real(2.0e-9))
"""Distance relative to the larger shape's size below which two contacts of a pair are one: twice the points' error."""


@wp.struct
class Feature:
    """Kind (POINT, LINE, FACE), id, corner count; for a face, outward normal and half its smallest width [m]."""

    kind: int
    code: int
    count: int
    normal: Vec3
    half_width: Real


@wp.func
def rounding_level(a: Any, b: Any) -> Real:
    """Difference below which separations are equal [m]: ATTAINED of the smaller shape's size, and rounding at the
    larger's.
    """
    largest_a = wp.max(a.size[0], wp.max(a.size[1], a.size[2]))
    largest_b = wp.max(b.size[0], wp.max(b.size[1], b.size[2]))
    return ATTAINED * wp.min(largest_a, largest_b) + Real(1.0e-14) * wp.max(largest_a, largest_b)


@wp.func
def merge_distance(a: Any, b: Any) -> Real:
    """Maximum distance of two contacts of a pair that are one contact [m]."""
    largest_a = wp.max(a.size[0], wp.max(a.size[1], a.size[2]))
    largest_b = wp.max(b.size[0], wp.max(b.size[1], b.size[2]))
    return SAME_POINT * wp.max(largest_a, largest_b)
