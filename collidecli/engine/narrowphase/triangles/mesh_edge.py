"""Contacts of an edge of one surface with the edges and triangles of the other."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.mesh_nearest import EDGE_PART
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.contact_priority import FALLBACK
from collidecli.engine.narrowphase.triangles.mesh_pair_context import (
    MeshPairContext,
    append_contact,
    append_crossing,
    is_facing,
    own_direction,
)
from collidecli.engine.narrowphase.triangles.surface_interior import (
    chord_of,
    deepest_of,
    depth_inside,
    is_within_by,
    nearest_on,
)
from collidecli.engine.narrowphase.triangles.triangle_source import (
    corner_on,
    edge_cone_contains,
    feature_on,
    is_front_facing,
    outward_on,
    priority_on,
)

PARALLEL = wp.constant(Real(1.0e-18))
"""Squared sine of two edges below which they count as parallel: only their vertices have contacts then."""
SHALLOWEST = wp.constant(Real(0.5))
"""Two edges that have passed each other have a contact if the midpoint of one's chord in the other mesh is inside by at
least this fraction of their depth. The fraction is 1 for crossing bars, 0.7 for the ridges of two roofs at right
angles.
"""


@wp.func
def edges_face(
    context: MeshPairContext, source: Any, face: int, k: int, target: int, side: int, direction: Vec3
) -> bool:
    """Whether a direction from own's edge to other's is in the normal cones of both, on their fronts."""
    if not is_facing(context, source, face, EDGE_PART + k, direction):
        return False
    outward = outward_on(source, context.other, target, EDGE_PART + side)
    if context.other_front == 1 and not is_front_facing(outward, -direction):
        return False
    return edge_cone_contains(source, context.other, target, side, -direction) and edge_cone_contains(
        source, context.own, face, k, own_direction(context, direction)
    )


@wp.func
def depth_of_chord(source: Any, mesh: int, start: Vec3, end: Vec3, at: Real) -> Real:
    """Depth inside a closed surface of the midpoint of a segment's chord around parameter `at` [m]."""
    chord = chord_of(source, mesh, start, end, at)
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
    """Whether two edges have passed each other, at parameters s and t by `depth` [m], and separate best along this
    axis.

    Each point is inside or on the other surface, and the midpoint of one edge's chord in the other surface is not much
    less deep than `depth`.
    """
    into_own = wp.transform_inverse(context.pose)
    own_start = wp.transform_point(into_own, from_other)
    own_end = wp.transform_point(into_own, to_other)
    inside = depth_inside(source, context.other, start + s * (end - start), context.touch)
    if inside < -context.touch:
        return False
    if depth_inside(source, context.own, own_start + t * (own_end - own_start), context.touch) < -context.touch:
        return False
    if depth <= context.touch or depth_of_chord(source, context.other, start, end, s) >= SHALLOWEST * depth:
        return True
    return depth_of_chord(source, context.own, own_start, own_end, t) >= SHALLOWEST * depth


@wp.func
def edges_are_apart(context: MeshPairContext, source: Any, on_own: Vec3, on_other: Vec3) -> bool:
    """Whether the points of two edges are outside the surfaces that are closed."""
    if context.other_closed == 1 and depth_inside(source, context.other, on_own, Real(0.0)) > context.touch:
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
    """Appends the contact of own's edge and side `side` of other's triangle `target` where they cross, if any.

    overlaps: whether to test edges of closed surfaces that overlap, see `edges_overlap`; else edges that are apart,
    with both points outside. Returns the count of contacts after it.
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
    across = across / wp.sqrt(square)
    height = wp.dot(off, across)
    on_own = start + s * u
    on_other = from_other + t * v
    direction = wp.where((height >= Real(0.0)) != overlaps, across, -across)
    separation = wp.dot(on_other - on_own, direction)
    if separation >= context.max_separation or not edges_face(context, source, face, k, target, side, direction):
        return count
    if overlaps:
        if not edges_overlap(context, source, start, end, s, from_other, from_other + v, t, -separation):
            return count
    elif not edges_are_apart(context, source, on_own, on_other):
        return count
    code = feature_on(source, context.own, face, EDGE_PART + k)
    code_other = feature_on(source, context.other, target, EDGE_PART + side)
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    return append_contact(context, rows, count, on_own, direction, separation, code, code_other, priority, 0)


@wp.func(inline=False)
def edge_through_sheet(
    context: MeshPairContext, source: Any, face: int, k: int, start: Vec3, end: Vec3, rows: ContactRows, count: int
) -> int:
    """Appends both ends of an edge of own that crosses an open surface; `region_depth` finds the end that is behind."""
    count = append_crossing(context, rows, count, start, feature_on(source, context.own, face, k))
    return append_crossing(context, rows, count, end, feature_on(source, context.own, face, (k + 1) % 3))


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
    """Appends the contact of the midpoint of an edge's chord in a closed surface. enters: parameter of its start."""
    chord = chord_of(source, context.other, start, end, enters)
    if chord[1] > Real(1.0):
        return count
    middle = start + deepest_of(source, context.other, start, end, enters, chord[1]) * (end - start)
    closest = nearest_on(source, context.other, middle)
    if closest.face < 0:
        return count
    depth = wp.sqrt(closest.square)
    off = middle - closest.point
    if depth <= context.touch or not is_within_by(source, context.other, middle, closest):
        return count
    direction = off / depth
    priority = int(FALLBACK)
    if is_facing(context, source, face, EDGE_PART + k, direction) and edge_cone_contains(
        source, context.own, face, k, own_direction(context, direction)
    ):
        priority = 0
    code = feature_on(source, context.own, face, EDGE_PART + k)
    code_other = feature_on(source, context.other, closest.face, closest.part)
    return append_contact(context, rows, count, middle, direction, -depth, code, code_other, priority, 1)
