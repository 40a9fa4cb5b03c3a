"""Contacts of an edge of a mesh with the surface of the other mesh, or with a heightfield.

The quantities are those of `surface_pair.MeshPairContext`: in the frame of the other surface.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import FALLBACK
from collidecli.engine.geometry.mesh_points import EDGE_PART, RISE
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.mesh_pair_context import (
    MeshPairContext,
    append_contact,
    is_facing,
    own_direction,
)
from collidecli.engine.narrowphase.triangles.surface import (
    NO_TOLERANCE,
    chord_of,
    corner_on,
    deepest_of,
    depth_inside,
    edge_cone_contains,
    exit_point_of,
    feature_on,
    is_front_facing,
    outward_on,
    priority_on,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an
# `and`.
# ruff: noqa: SIM102

PARALLEL = wp.constant(Real(1.0e-18))
"""Squared sine of two edges below which they count as parallel: only their vertices have contacts
then."""
SHALLOWEST = wp.constant(Real(0.45))
"""Two edges that have passed each other have a contact if the midpoint of one's chord in the other
mesh is inside by at least this fraction of their depth. The fraction is 1 for crossing bars, 0.7
for the ridges of two roofs at right angles, 0.5 where the overlap is a wedge, as of a face that
dips into another.
"""


@wp.func
def edges_face(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    target: int,
    side: int,
    direction: Vec3,
    rise: Real,
) -> bool:
    """Whether a direction from own's edge to other's is in the normal cones of both, to a sine of
    `rise`, on their fronts."""
    if not is_facing(context, source, face, EDGE_PART + k, direction):
        return False
    outward = outward_on(source, context.other, target, EDGE_PART + side)
    if context.other_front == 1 and not is_front_facing(outward, -direction, context.other_closed):
        return False
    return edge_cone_contains(
        source, context.other, target, side, -direction, rise
    ) and edge_cone_contains(source, context.own, face, k, own_direction(context, direction), rise)


MOST_RISE = wp.constant(Real(1.0e-3))
"""Greatest sine to which the normal of two edges that have passed each other is in their normal
cones. It is RISE over the sine of the edges' angle: faces that lean by RISE turn the normal of two
edges at a small angle by as much."""
BESIDE_EDGE = wp.constant(Real(0.01))
"""Fraction of the depth of two edges that have passed each other by which the point of either may
be outside the other's solid: the faces beside an edge that rests on another lean by as much."""
BESIDE_CHORD = wp.constant(Real(0.1))
"""Fraction of that depth up to which the end of a chord is at the point: ten times BESIDE_EDGE, as
the edges may cross at a small angle, and far below the length of a chord as deep as SHALLOWEST."""


@wp.func
def depth_of_chord(source: Any, mesh: int, start: Vec3, end: Vec3, at: Real, near: Real) -> Real:
    """Depth inside a closed surface of the midpoint of a segment's chord around parameter `at` [m].

    near: distance up to which the chord's end may be at the point [m]. At the corner of a contact
    patch the edge passes the other edge where it crosses the face beside it.
    """
    chord = chord_of(source, mesh, start, end, at, near / wp.length(end - start))
    middle = Real(0.5) * (wp.max(chord[0], Real(0.0)) + wp.min(chord[1], Real(1.0)))
    return depth_inside(source, mesh, start + middle * (end - start), Real(0.0))


@wp.func(inline=False)
def edges_overlap(
    context: MeshPairContext,
    source: Any,
    start: Vec3,
    end: Vec3,
    s: Real,
    from_other: Vec3,
    to_other: Vec3,
    t: Real,
    depth: Real,
) -> bool:
    """Whether two edges have passed each other, at parameters s and t by `depth` [m], and separate
    best along this axis.

    Each point is inside or on the other surface, if that is closed, and the midpoint of one edge's
    chord in a closed surface is not much less deep than `depth`.
    """
    outside = context.touch + BESIDE_EDGE * wp.max(depth, Real(0.0))
    if context.other_closed == 1:
        on_own = start + s * (end - start)
        if depth_inside(source, context.other, on_own, outside) < -outside:
            return False
    into_own = wp.transform_inverse(context.pose)
    own_start = wp.transform_point(into_own, from_other)
    own_end = wp.transform_point(into_own, to_other)
    if context.own_closed == 1:
        on_other = own_start + t * (own_end - own_start)
        if depth_inside(source, context.own, on_other, outside) < -outside:
            return False
    if depth <= context.touch:
        return True
    least = SHALLOWEST * depth
    near = context.touch + BESIDE_CHORD * depth
    if context.other_closed == 1:
        if depth_of_chord(source, context.other, start, end, s, near) >= least:
            return True
    if context.own_closed == 1:
        return depth_of_chord(source, context.own, own_start, own_end, t, near) >= least
    return False


@wp.func
def edges_are_apart(context: MeshPairContext, source: Any, on_own: Vec3, on_other: Vec3) -> bool:
    """Whether the points of two edges are outside the surfaces that are closed."""
    if (
        context.other_closed == 1
        and depth_inside(source, context.other, on_own, Real(0.0)) > context.touch
    ):
        return False
    if context.own_closed == 0:
        return True
    own_point = wp.transform_point(wp.transform_inverse(context.pose), on_other)
    return depth_inside(source, context.own, own_point, Real(0.0)) <= context.touch


@wp.func(inline=False)
def edge_on_edge(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    start: Vec3,
    end: Vec3,
    target: int,
    side: int,
    overlaps: bool,
    rows: ContactRows,
    count: int,
) -> int:
    """Appends the contact of own's edge and side `side` of other's triangle `target` where they
    cross, if any.

    overlaps: whether to test edges that have passed each other, of surfaces of which one is closed,
    see `edges_overlap`; else edges that are apart, with both points outside. Returns the count of
    contacts after it.
    """
    u = end - start
    from_other = corner_on(source, context.other, target, side)
    v = corner_on(source, context.other, target, side + 1) - from_other
    across = wp.cross(u, v)
    square = wp.length_sq(across)
    if square <= PARALLEL * wp.length_sq(u) * wp.length_sq(v):
        return count
    off = from_other - start
    s = wp.dot(wp.cross(off, v), across) / square
    t = wp.dot(wp.cross(off, u), across) / square
    if s <= Real(0.0) or s >= Real(1.0) or t <= Real(0.0) or t >= Real(1.0):
        return count
    rise = RISE
    if overlaps:
        sine = wp.sqrt(square / (wp.length_sq(u) * wp.length_sq(v)))
        rise = wp.min(RISE / sine, MOST_RISE)
    across = across / wp.sqrt(square)
    height = wp.dot(off, across)
    on_own = start + s * u
    on_other = from_other + t * v
    direction = wp.where((height >= Real(0.0)) != overlaps, across, -across)
    separation = wp.dot(on_other - on_own, direction)
    if separation >= context.max_separation:
        return count
    if not edges_face(context, source, face, k, target, side, direction, rise):
        # The sign of the height of edges that touch is rounding.
        direction = -direction
        separation = -separation
        turns = not overlaps and wp.abs(height) <= context.touch
        if not turns or not edges_face(context, source, face, k, target, side, direction, rise):
            return count
    if overlaps:
        if not edges_overlap(
            context, source, start, end, s, from_other, from_other + v, t, -separation
        ):
            return count
    elif not edges_are_apart(context, source, on_own, on_other):
        return count
    code = feature_on(source, context.own, face, EDGE_PART + k)
    code_other = feature_on(source, context.other, target, EDGE_PART + side)
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    return append_contact(
        context, rows, count, on_own, direction, separation, code, code_other, priority, 0
    )


BESIDE = wp.constant(Real(8.0))
"""Distance in touches of the points beside the middle of a chord, see `exit_offset`."""


@wp.func
def faces_exit(context: MeshPairContext, source: Any, face: int, k: int, direction: Vec3) -> bool:
    """Whether side k of an own triangle faces a direction, and has it in its normal cone."""
    if not is_facing(context, source, face, EDGE_PART + k, direction):
        return False
    return edge_cone_contains(source, context.own, face, k, own_direction(context, direction), RISE)


@wp.func(inline=False)
def exit_offset(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    middle: Vec3,
    along: Vec3,
    exit_point: Vec3,
) -> Vec3:
    """The vector from the middle of a chord in other's solid to the point that is taken for its
    exit.

    exit_point: the closest point of other's surface to the middle. along: unit, toward side k's
    end. It is zero unless the middle is equally far from two places, as between parallel faces. So
    that rounding does not choose one, the point is beside the middle: where side k faces one exit
    alone, toward that one, else toward the side's start.
    """
    # Away from the closest point, another that is as close becomes the closest.
    is_ahead = wp.dot(along, middle - exit_point) >= Real(0.0)
    away = BESIDE * context.touch * wp.where(is_ahead, along, -along)
    other_exit = exit_point_of(source, context.other, middle + away, context.touch)
    apart = wp.length(other_exit.point - exit_point)
    if other_exit.face < 0 or apart <= Real(2.0) * wp.length(away):
        return Vec3()
    other_direction = wp.normalize(middle + away - other_exit.point)
    faces_other = faces_exit(context, source, face, k, other_direction)
    if faces_other == faces_exit(context, source, face, k, wp.normalize(middle - exit_point)):
        return -BESIDE * context.touch * along
    return wp.where(faces_other, away, -away)


@wp.func(inline=False)
def chord_contact(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    start: Vec3,
    end: Vec3,
    enters: Real,
    rows: ContactRows,
    count: int,
) -> int:
    """Appends the contact of the midpoint of an edge's chord in a closed surface. enters: parameter
    of its start."""
    chord = chord_of(source, context.other, start, end, enters, NO_TOLERANCE)
    if chord[1] > Real(1.0):
        return count
    middle = start + deepest_of(source, context.other, start, end, enters, chord[1]) * (end - start)
    closest = exit_point_of(source, context.other, middle, context.touch)
    if closest.face < 0:
        return count
    offset = exit_offset(context, source, face, k, middle, wp.normalize(end - start), closest.point)
    sample = middle + offset
    if wp.length_sq(offset) > Real(0.0):
        closest = exit_point_of(source, context.other, sample, context.touch)
        if closest.face < 0:
            return count
    direction = wp.normalize(sample - closest.point)
    depth = wp.dot(direction, middle - closest.point)
    priority = int(FALLBACK)
    if faces_exit(context, source, face, k, direction):
        priority = 0
    code = feature_on(source, context.own, face, EDGE_PART + k)
    code_other = feature_on(source, context.other, closest.face, closest.part)
    return append_contact(
        context, rows, count, middle, direction, -depth, code, code_other, priority, 1
    )
