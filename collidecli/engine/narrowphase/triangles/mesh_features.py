"""Contacts of a vertex or an edge of one surface with the other surface."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.meshes import EDGE_PART, FACE_PART, RISE, square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.contact_merging import FALLBACK
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.surface import (
    chord_of,
    closest_point_on,
    corner_cone_contains,
    corner_on,
    deepest_of,
    depth_inside,
    edge_cone_contains,
    feature_on,
    is_front_facing,
    is_owned,
    is_within_by,
    nearest_on,
    normal_on,
    outward_on,
    priority_on,
)
from collidecli.engine.narrowphase.triangles.surface_pair import (
    MeshPairContext,
    append_contact,
    append_crossing,
    is_facing,
    origin_of,
    own_direction,
    penetration_of_point,
)

# ruff: noqa: SIM102

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an `and`.


@wp.func
def part_cone_contains(source: Any, surface: int, face: int, part: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of a side or a corner of a triangle, to a sine of `rise`."""
    if part >= EDGE_PART:
        return edge_cone_contains(source, surface, face, part - EDGE_PART, direction, rise)
    return corner_cone_contains(source, surface, face, part, direction, rise)


@wp.func
def part_snapped(source: Any, surface: int, face: int, part: int, point: Vec3, near: Real) -> int:
    """The corner or side within `near` [m] of a point of a triangle; else its part.

    All triangles around an edge or vertex then assign the point to one feature.
    """
    if part < EDGE_PART:
        return part
    for k in range(3):
        if wp.length(point - corner_on(source, surface, face, k)) <= near:
            return k
    if part < FACE_PART:
        return part
    for k in range(3):
        start = corner_on(source, surface, face, k)
        square = square_to_segment(start, corner_on(source, surface, face, k + 1), point)
        if square <= near * near:
            return EDGE_PART + k
    return part


@wp.func
def side_toward(context: MeshPairContext, source: Any, normal: Vec3, at: Vec3, height: Real) -> Real:
    """1 where a point is in front of a triangle of other, -1 behind; for a point that touches it, by own's origin."""
    if context.other_front == 1:
        return Real(1.0)
    if wp.abs(height) > context.touch:
        return wp.sign(height)
    return wp.where(wp.dot(normal, origin_of(context, source, at) - at) < Real(0.0), Real(-1.0), Real(1.0))


@wp.func(inline=False)
def vertex_on_triangle(
    context: MeshPairContext, source: Any, face: int, k: int, point: Vec3, target: int, rows: ContactRows, count: int
) -> int:
    """Appends the contact of corner k of own's triangle `face`, at `point`, with other's triangle `target`, if any.

    The point is above the interior of the triangle, or above an edge or vertex that the triangle owns. The direction is
    in the normal cones of both features, or is the triangle's normal. Returns the count of contacts after it.
    """
    closest = closest_point_on(source, context.other, target, point)
    if closest.square >= context.max_separation * context.max_separation:
        return count
    part = part_snapped(source, context.other, target, closest.part, closest.point, context.touch)
    if part < FACE_PART:
        if not is_owned(source, context.other, target, part):
            return count
    normal = normal_on(source, context.other, target)
    distance = wp.sqrt(closest.square)
    height = wp.dot(normal, point - corner_on(source, context.other, target, 0))
    side = side_toward(context, source, normal, closest.point, height)
    direction = -side * normal
    is_level = bool(True)
    # The owner of an edge or vertex sees it as the closest, where a neighbour's point up to `touch` beside it is: the
    # direction to the point turns by up to touch / distance.
    rise = Real(RISE)
    if part < FACE_PART:
        if distance > context.touch:
            direction = (closest.point - point) / distance
            is_level = wp.length(wp.cross(direction, normal)) < RISE
            rise = RISE + context.touch / distance
            if not part_cone_contains(source, context.other, target, part, -direction, rise):
                return count
            if context.other_front == 1 and not is_front_facing(
                outward_on(source, context.other, target, part), -direction
            ):
                return count
        elif context.other_front == 1 and wp.length_sq(outward_on(source, context.other, target, part)) > Real(0.0):
            direction = -wp.normalize(outward_on(source, context.other, target, part))
    elif side * height < -context.touch:
        return count
    if not is_facing(context, source, face, k, direction):
        if distance > context.touch:
            return count
        # A vertex that faces in the direction of the surface it touches overlaps: a fallback contact.
        code = feature_on(source, context.own, face, k)
        code_other = feature_on(source, context.other, target, part)
        separation = wp.dot(closest.point - point, direction)
        return append_contact(context, rows, count, point, direction, separation, code, code_other, FALLBACK, 0)
    if not is_level and not corner_cone_contains(source, context.own, face, k, own_direction(context, direction), rise):
        return count
    code = feature_on(source, context.own, face, k)
    code_other = feature_on(source, context.other, target, part)
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    return append_contact(
        context, rows, count, point, direction, wp.dot(closest.point - point, direction), code, code_other, priority, 0
    )


@wp.func
def vertex_inside(
    context: MeshPairContext, source: Any, face: int, k: int, point: Vec3, rows: ContactRows, count: int
) -> wp.vec2i:
    """Appends the contact of a corner that is inside other; returns the count, and 1 where the corner is inside."""
    penetration = penetration_of_point(context, source, point)
    if penetration.found == 0:
        return wp.vec2i(count, 0)
    priority = wp.where(
        is_facing(context, source, face, k, penetration.direction), priority_on(source, context.own, face), FALLBACK
    )
    code = feature_on(source, context.own, face, k)
    return wp.vec2i(
        append_contact(
            context,
            rows,
            count,
            point,
            penetration.direction,
            -penetration.depth,
            code,
            penetration.feature,
            priority,
            1,
        ),
        1,
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
    return edge_cone_contains(source, context.other, target, side, -direction, RISE) and edge_cone_contains(
        source, context.own, face, k, own_direction(context, direction), RISE
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
    if separation >= context.max_separation:
        return count
    if not edges_face(context, source, face, k, target, side, direction):
        # The sign of the height of edges that touch is rounding.
        direction = -direction
        separation = -separation
        turns = not overlaps and wp.abs(height) <= context.touch
        if not turns or not edges_face(context, source, face, k, target, side, direction):
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
        source, context.own, face, k, own_direction(context, direction), RISE
    ):
        priority = 0
    code = feature_on(source, context.own, face, EDGE_PART + k)
    code_other = feature_on(source, context.other, closest.face, closest.part)
    return append_contact(context, rows, count, middle, direction, -depth, code, code_other, priority, 1)
