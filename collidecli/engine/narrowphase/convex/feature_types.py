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
"""Corners of the inscribed polygon of a disc: two polygons intersect in at most 12 points; it
covers 83 % of the disc.
"""
MAX_CODES = 2 * RIM_COUNT
EDGES = wp.constant(RIM_COUNT)
"""Index in a feature's ids: the corners' ids first, from EDGES on those of a face's edges, each
after its corner."""
RIM_CORNERS = wp.constant(RIM_COUNT)
RIM_SINE = wp.constant(Real(math.sqrt(0.75)))
ROUND_FACE_TILT = wp.constant(Real(1.0e-6))
"""Angle up to which a face represented by some of its outline's points is parallel to what it faces
[rad].

The points have azimuths fixed in the body's frame, so they move no farther than the body. The
lowest point of a rim turns about the axis with the direction of the tilt: at a tilt t, noise e in
the poses moves it by radius * e / t, anywhere on the rim where the tilt itself is noise. It is a
contact of its own where it is deeper than the points by more than ROUND_FACE_TILT * radius.
Elsewhere the points' separations are reduced by what they miss, so that the least separation stays
exact, and points are off the surface by at most that.

A disc of radius r has no point that is farther than r from the nearest of its points above the
other face, so below a tilt of ROUND_FACE_TILT there is no such contact. Between two of n points all
over the face the rim is lower by r * tilt * (1 - cos(pi / n)) at most: six points suffice up to
7.5e-6 rad, four up to 3.4e-6 rad.

Rounding of float32 quaternions tilts a body by 1.2e-7 rad, twice the 6e-8 of a component, and a
pair by 2.4e-7 rad; cylinders that MuJoCo lets settle on a plane keep tilts of 1e-10 to 1e-7 rad."""
LOWER_RIM = wp.constant(8)
UPPER_RIM = wp.constant(20)

AT_BORDER = wp.constant(Real(1.0e-5))
"""Distance relative to a size below which a witness is on an edge or vertex: ten times the error
that GJK's directions, accurate to 1e-6, cause, so that a witness at a vertex gets its id for every
orientation of the pair."""

ATTAINED = wp.constant(Real(1.0e-9))
"""Difference relative to the smaller shape's size below which a contact attains the exact
separation."""
SAME_POINT = wp.constant(Real(2.0e-9))
"""Distance relative to the larger shape's size below which two contacts of a pair are one: twice
the points' error."""


@wp.struct
class Feature:
    """Kind (POINT, LINE, FACE), id, corner count; for a face, outward normal and half its smallest
    width [m]."""

    kind: int
    code: int
    count: int
    normal: Vec3
    half_width: Real


@wp.func
def rounding_level(a: Any, b: Any) -> Real:
    """Difference below which separations are equal [m]: ATTAINED of the smaller shape's size, and
    rounding at the larger's.
    """
    largest_a = wp.max(a.size)
    largest_b = wp.max(b.size)
    return ATTAINED * wp.min(largest_a, largest_b) + Real(1.0e-14) * wp.max(largest_a, largest_b)


@wp.func
def missed_by_samples(shape_a: Any, shape_b: Any, a: Feature, b: Feature) -> Real:
    """Separation by which contacts of two features may miss the exact one [m]; see ROUND_FACE_TILT.

    Only of a face of RIM_COUNT corners, which may be points of a longer outline; 0 for all others.
    The overlap with a small shape is small.
    """
    width = Real(0.0)
    if is_sampled(a):
        width = a.half_width
    if is_sampled(b):
        width = wp.max(width, b.half_width)
    return ROUND_FACE_TILT * wp.min(width, wp.min(wp.max(shape_a.size), wp.max(shape_b.size)))


@wp.func
def is_sampled(feature: Feature) -> bool:
    """Whether a feature's corners may be points of a longer outline: a rim, or a hull's face of
    many corners."""
    return feature.kind == FACE and feature.count == RIM_CORNERS


@wp.func
def is_partly_sampled(a: Feature, b: Feature) -> bool:
    """Whether one of two features is sampled and neither is a point."""
    return a.kind != POINT and b.kind != POINT and (is_sampled(a) or is_sampled(b))


@wp.func
def merge_distance(a: Any, b: Any) -> Real:
    """Maximum distance of two contacts of a pair that are one contact [m]."""
    largest_a = wp.max(a.size)
    largest_b = wp.max(b.size)
    return SAME_POINT * wp.max(largest_a, largest_b)
