"""Collider of two triangle meshes: the vertices and edges of each against the surface of the other.

The functions read either surface through a triangle source (see `surface`), so that `heightfield_solid` uses
them too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.candidates import Query
from collidecli.engine.contact_record import FALLBACK, SPARE, SPARE_UNTESTED
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import ShapeBounds, box_intersects, box_of_shape, clearance_at, measure_grid
from collidecli.engine.geometry.meshes import EDGE_PART, FACE_PART, RISE, Meshes, square_to_segment
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.contact_merging import merge_surfaces
from collidecli.engine.narrowphase.sub_pairs import (
    NEAR,
    ContactRows,
    SubPairKernels,
    SubPairList,
    append_sub_pair,
    counted_kernel,
    overlap_kernel,
    search_kernel,
    spare_rows,
)
from collidecli.engine.narrowphase.triangles.heightfield_traversal import begin_near_segment, next_near_segment
from collidecli.engine.narrowphase.triangles.heightfield_triangles import HeightfieldPair
from collidecli.engine.narrowphase.triangles.separating_translation import measure_meshes
from collidecli.engine.narrowphase.triangles.surface import (
    AS_IT_IS,
    chord_of,
    closed_flag,
    closest_point_on,
    corner_cone_contains,
    corner_on,
    crossing_parameter,
    deepest_of,
    depth_inside,
    edge_cone_contains,
    exit_point_of,
    feature_on,
    free_radius,
    front_flag,
    has_one_side,
    is_crossed,
    is_front_facing,
    is_owned,
    meets_triangle,
    mesh_arrays,
    normal_on,
    origin_on,
    other_bits,
    outward_on,
    own_bits,
    priority_on,
)
from collidecli.engine.narrowphase.triangles.surface_pair import (
    CAPACITY,
    MeshPairContext,
    SurfacePair,
    append_contact,
    append_crossing,
    context_of_pair,
    is_facing,
    own_direction,
    touch_of_pair,
)

# ruff: noqa: F811, SIM102

# Contacts of a vertex or an edge of the own surface with the other.
#
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
    # The point that decides on which side of an open surface a touching point of own is.
    origin = origin_on(source, context.own, context.origin, context.pose, at)
    return wp.where(wp.dot(normal, origin - at) < Real(0.0), Real(-1.0), Real(1.0))


BETWEEN_NORMALS = wp.constant(1)
"""Term of the priority of a vertex that touches an edge or a vertex along no triangle's normal."""


@wp.func(inline=False)
def touching_vertex(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    point: Vec3,
    target: int,
    part: int,
    on_other: Vec3,
    side: Real,
    rows: ContactRows,
    count: int,
) -> int:
    """Appends the contact of a corner that touches part `part` of other's triangle `target`, if any.

    The direction to a point that touches is rounding. The contact is along the triangle's normal
    where that is in the corner's normal cone, so that surfaces that rest on each other have one
    normal at corners and borders too; any triangle around an edge or vertex may give it. Else,
    where the part is no interior, along the pseudonormal there, of its owner alone. A corner that
    does not face along the direction, or from which a triangle rises along it, passes through the
    other surface: a fallback contact, and where its region has a depth the corner exits along it.
    """
    owns = part == FACE_PART
    if not owns:
        owns = is_owned(source, context.other, target, part)
    direction = -side * normal_on(source, context.other, target)
    separation = wp.dot(on_other - point, direction)
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    in_own = own_direction(context, direction)
    rises_nowhere = corner_cone_contains(source, context.own, face, k, in_own, RISE)
    if not rises_nowhere:
        if not owns:
            return count
        if part < FACE_PART:
            outward = outward_on(source, context.other, target, part)
            if context.other_front == 1 and wp.length_sq(outward) > Real(0.0):
                direction = -wp.normalize(outward)
            separation = wp.length(on_other - point)
            priority += BETWEEN_NORMALS
            in_own = own_direction(context, direction)
            rises_nowhere = corner_cone_contains(source, context.own, face, k, in_own, RISE)
    code = feature_on(source, context.own, face, k)
    passes_through = not rises_nowhere or not is_facing(context, source, face, k, direction)
    if passes_through:
        priority = FALLBACK
        count = append_crossing(context, rows, count, point, code)
    code_other = feature_on(source, context.other, target, part)
    return append_contact(context, rows, count, point, direction, separation, code, code_other, priority, 0)


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
    normal = normal_on(source, context.other, target)
    distance = wp.sqrt(closest.square)
    if part < FACE_PART and distance > context.touch:
        if not is_owned(source, context.other, target, part):
            return count
    height = wp.dot(normal, point - corner_on(source, context.other, target, 0))
    side = side_toward(context, source, normal, closest.point, height)
    if distance <= context.touch:
        return touching_vertex(context, source, face, k, point, target, part, closest.point, side, rows, count)
    direction = -side * normal
    is_level = bool(True)
    rise = Real(RISE)
    off = closest.point - point
    if part < FACE_PART and wp.length(wp.cross(off, normal)) > context.touch:
        # The owner of an edge or vertex sees it as the closest, where a neighbour's point up to `touch`
        # beside it is: the direction to the point turns by up to touch / distance.
        direction = off / distance
        is_level = wp.length(wp.cross(direction, normal)) < RISE
        rise = RISE + context.touch / distance
        if not part_cone_contains(source, context.other, target, part, -direction, rise):
            return count
        if context.other_front == 1 and not is_front_facing(
            outward_on(source, context.other, target, part), -direction
        ):
            return count
    elif side * height < -context.touch:
        return count
    if not is_facing(context, source, face, k, direction):
        return count
    if not is_level:
        in_own = own_direction(context, direction)
        if not corner_cone_contains(source, context.own, face, k, in_own, rise):
            return count
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    separation = wp.dot(closest.point - point, direction)
    code = feature_on(source, context.own, face, k)
    code_other = feature_on(source, context.other, target, part)
    return append_contact(context, rows, count, point, direction, separation, code, code_other, priority, 0)


@wp.func
def vertex_inside(
    context: MeshPairContext, source: Any, face: int, k: int, point: Vec3, rows: ContactRows, count: int
) -> wp.vec2i:
    """Appends the contact of a corner that is inside other; returns the count, and 1 where the corner is inside."""
    closest = exit_point_of(source, context.other, point, context.touch)
    if closest.face < 0:
        return wp.vec2i(count, 0)
    depth = wp.sqrt(closest.square)
    direction = (point - closest.point) / depth
    priority = int(FALLBACK)
    if is_facing(context, source, face, k, direction):
        priority = priority_on(source, context.own, face)
    code = feature_on(source, context.own, face, k)
    code_other = feature_on(source, context.other, closest.face, closest.part)
    after = append_contact(context, rows, count, point, direction, -depth, code, code_other, priority, 1)
    return wp.vec2i(after, 1)


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
def depth_of_chord(source: Any, mesh: int, start: Vec3, end: Vec3, at: Real, touch: Real) -> Real:
    """Depth inside a closed surface of the midpoint of a segment's chord around parameter `at` [m].

    At the corner of a contact patch the edge passes the other edge where it crosses the face beside
    it: within `touch` [m] of the chord's end.
    """
    chord = chord_of(source, mesh, start, end, at, touch / wp.length(end - start))
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

    Each point is inside or on the other surface, if that is closed, and the midpoint of one edge's
    chord in a closed surface is not much less deep than `depth`.
    """
    if context.other_closed == 1:
        on_own = start + s * (end - start)
        if depth_inside(source, context.other, on_own, context.touch) < -context.touch:
            return False
    into_own = wp.transform_inverse(context.pose)
    own_start = wp.transform_point(into_own, from_other)
    own_end = wp.transform_point(into_own, to_other)
    if context.own_closed == 1:
        on_other = own_start + t * (own_end - own_start)
        if depth_inside(source, context.own, on_other, context.touch) < -context.touch:
            return False
    if depth <= context.touch:
        return True
    least = SHALLOWEST * depth
    if context.other_closed == 1:
        if depth_of_chord(source, context.other, start, end, s, context.touch) >= least:
            return True
    if context.own_closed == 1:
        return depth_of_chord(source, context.own, own_start, own_end, t, context.touch) >= least
    return False


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


BESIDE = wp.constant(Real(8.0))
"""Distance in touches of the points beside the middle of a chord, see `exit_sample`."""


@wp.func
def faces_exit(context: MeshPairContext, source: Any, face: int, k: int, direction: Vec3) -> bool:
    """Whether side k of an own triangle faces a direction, and has it in its normal cone."""
    if not is_facing(context, source, face, EDGE_PART + k, direction):
        return False
    return edge_cone_contains(source, context.own, face, k, own_direction(context, direction), RISE)


@wp.func(inline=False)
def exit_sample(
    context: MeshPairContext, source: Any, face: int, k: int, middle: Vec3, along: Vec3
) -> Vec3:
    """The point of a chord that is taken for its exit from other's solid: the middle, or a point close to it.

    The middle of a chord between parallel faces is equally far from both. So that rounding does not choose the exit,
    it is that of a point beside the middle, of those toward the edge's start and end the first whose exit side k faces.
    """
    off = BESIDE * context.touch * along
    exit_before = exit_point_of(source, context.other, middle - off, context.touch)
    exit_after = exit_point_of(source, context.other, middle + off, context.touch)
    if wp.min(exit_before.face, exit_after.face) < 0:
        return middle
    if wp.length(exit_before.point - exit_after.point) <= Real(4.0) * wp.length(off):
        return middle
    if faces_exit(context, source, face, k, wp.normalize(middle - off - exit_before.point)):
        return middle - off
    if faces_exit(context, source, face, k, wp.normalize(middle + off - exit_after.point)):
        return middle + off
    return middle - off


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
    chord = chord_of(source, context.other, start, end, enters, AS_IT_IS)
    if chord[1] > Real(1.0):
        return count
    middle = start + deepest_of(source, context.other, start, end, enters, chord[1]) * (end - start)
    sample = exit_sample(context, source, face, k, middle, wp.normalize(end - start))
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
    return append_contact(context, rows, count, middle, direction, -depth, code, code_other, priority, 1)


# Contacts of a triangle of the own surface with the other surface.

VERTEX_OWNED = wp.constant(0)
EDGE_OWNED = wp.constant(3)
VERTEX_SALIENT = wp.constant(6)
EDGE_SALIENT = wp.constant(9)
SPARE_ROWS = wp.constant(1 << 30)
"""Number, in place of a triangle's, of the sub-pair that reserves rows for the contacts of `measure_pair`."""


@wp.struct
class SearchSide:
    """One mesh of a pair, whose triangles are searched, and the other.

    bounds: of the other in own's frame, and own's BVH. other: the other mesh. pose: own's frame in other's.
    grown: greatest distance from other's surface at which a triangle has contacts [m].
    """

    bounds: ShapeBounds
    other: int
    pose: Pose
    grown: Real


@wp.func(inline=False)
def side_of(rows: ShapeRows, meshes: Meshes, query: Query, of_a: bool) -> SearchSide:
    """The search of the triangles of mesh a, or of mesh b, of a pair."""
    row = query.row_b
    other = query.row_a
    side = SearchSide()
    side.pose = query.pose_b_to_a
    if of_a:
        row = query.row_a
        other = query.row_b
        side.pose = wp.transform_inverse(query.pose_b_to_a)
    max_separation = wp.max(query.max_separation, Real(0.0))
    side.bounds = box_of_shape(rows.type[other], rows.size[other], wp.transform_inverse(side.pose), max_separation)
    side.bounds.first = meshes.arrays[0].header[rows.mesh[row]].first_node
    side.bounds.end = meshes.arrays[0].header[rows.mesh[row]].end_node
    side.other = rows.mesh[other]
    side.grown = max_separation + NEAR * touch_of_pair(rows, query)
    return side


@wp.func(inline=False)
def is_beyond_max_separation(side: SearchSide, meshes: Meshes, node: int) -> bool:
    """Whether a node of own's BVH is outside other and farther from it than `grown`, from other's clearance grid."""
    lower = meshes.arrays[0].lower[node]
    upper = meshes.arrays[0].upper[node]
    middle = wp.transform_point(side.pose, Real(0.5) * (lower + upper))
    radius = Real(0.5) * wp.length(upper - lower)
    return clearance_at(meshes, side.other, middle).free - radius >= side.grown


@wp.func
def has_candidate_feature(bits: int) -> bool:
    """Whether a triangle owns a salient corner or side."""
    return ((bits >> VERTEX_OWNED) & (bits >> VERTEX_SALIENT) & 63) != 0


@wp.func(inline=True)
def find_sub_pairs(rows: ShapeRows, meshes: Meshes, query: Query, part: int, parts: int, out: SubPairList) -> int:
    """Appends, in BVH order, the triangles of a, then ~ those of b, with candidate features in a part of the BVHs."""
    count = int(0)
    for turn in range(2):
        side = side_of(rows, meshes, query, turn == 0)
        # A part begins at any node: nodes are in depth-first order, and each is tested by itself.
        length = (side.bounds.end - side.bounds.first) / parts + 1
        node = side.bounds.first + length * part
        stop = wp.min(side.bounds.end, node + length)
        while node < stop:
            if not box_intersects(side.bounds, meshes, node) or is_beyond_max_separation(side, meshes, node):
                node = meshes.arrays[0].skip[node]
                continue
            face = meshes.arrays[0].leaf[node]
            if face >= 0 and has_candidate_feature(meshes.arrays[0].owned[face]):
                count = append_sub_pair(out, count, wp.where(turn == 0, face, ~face))
            node += 1
    one_sided = has_one_side(meshes, rows.mesh[query.row_a]) or has_one_side(meshes, rows.mesh[query.row_b])
    if part == 0 and (count > 0 or parts > 1 or one_sided):
        count = append_sub_pair(out, count, SPARE_ROWS)
    return count


@wp.func
def has_bits(bits: int, first: int, second: int, k: int) -> bool:
    """Whether two bits of `Meshes.owned` are set for corner or side k."""
    return ((bits >> (first + k)) & (bits >> (second + k)) & 1) == 1


@wp.struct
class CandidateFeatures:
    """The features of an own triangle that are tested against other.

    bits: as in `Meshes.owned`. p, q, r: corners, other's frame [m].
    candidates: bit k for corner k, 3 + k for side k; a candidate corner is in front of other's surface. low, high: AABB
    of the candidates [m]. max_distance: greatest distance at which they have contacts [m].
    """

    bits: int
    p: Vec3
    q: Vec3
    r: Vec3
    candidates: int
    low: Vec3
    high: Vec3
    max_distance: Real


@wp.struct
class Found:
    """What the traversal of other's triangles has found. count: of contacts.

    crossings: for each side of the own triangle the number of other's triangles that it crosses. enters: the parameter
    of the side at which it first enters other.
    """

    count: int
    crossings: wp.vec3i
    enters: Vec3


@wp.func
def corner_of_features(features: CandidateFeatures, k: int) -> Vec3:
    """Corner 0, 1 or 2 of the triangle; 3 is 0 again."""
    if k == 1:
        return features.q
    if k == 2:
        return features.r
    return features.p


@wp.func(inline=False)
def edge_on_triangle(
    context: MeshPairContext,
    source: Any,
    face: int,
    features: CandidateFeatures,
    target: int,
    k: int,
    rows: ContactRows,
    before: Found,
) -> Found:
    """Appends the contacts of side k of an own triangle with a triangle of other."""
    found = before
    count = before.count
    start = corner_of_features(features, k)
    end = corner_of_features(features, k + 1)
    crosses = bool(False)
    if context.other_closed == 0:
        t = meets_triangle(source, context.other, target, start, end, context.touch)
        crosses = t <= Real(1.0)
        if crosses:
            # Both ends of an edge that crosses an open surface; one is behind, see `measured_crossing`.
            count = append_crossing(context, rows, count, start, feature_on(source, context.own, face, k))
            count = append_crossing(context, rows, count, end, feature_on(source, context.own, face, (k + 1) % 3))
    elif is_crossed(source, context.other, target, start, end):
        crosses = True
        t = crossing_parameter(source, context.other, target, start, end)
        found.crossings[k] = found.crossings[k] + 1
        if t >= Real(0.0):
            found.enters[k] = wp.min(found.enters[k], t)
    # Edges that overlap are found from either surface: one of the two crosses a triangle beside the other.
    overlaps = crosses and (context.own_closed == 1 or context.other_closed == 1)
    bits = other_bits(source, context.other, target)
    sides = int(3)
    for side in range(sides):
        if ((bits >> (EDGE_SALIENT + side)) & 1) == 1:
            if context.is_a == 1 and ((bits >> (EDGE_OWNED + side)) & 1) == 1:
                count = edge_on_edge(context, source, face, k, start, end, target, side, False, rows, count)
            if overlaps:
                count = edge_on_edge(context, source, face, k, start, end, target, side, True, rows, count)
    found.count = count
    return found


@wp.func
def square_between(lower: Vec3, upper: Vec3, low: Vec3, high: Vec3) -> Real:
    """Squared distance of two boxes [m^2]."""
    return wp.length_sq(wp.max(Vec3(), wp.max(lower - high, low - upper)))


@wp.func
def chord_contacts(
    context: MeshPairContext, source: Any, face: int, features: CandidateFeatures, rows: ContactRows, found: Found
) -> int:
    """Appends the contacts of the sides of an own triangle that enter and exit other's solid; returns the count."""
    count = found.count
    for k in range(3):
        if found.crossings[k] > 1 and found.enters[k] <= Real(1.0):
            start = corner_of_features(features, k)
            end = corner_of_features(features, k + 1)
            count = chord_contact(context, source, face, k, start, end, found.enters[k], rows, count)
    return count


@wp.func
def collide_with_mesh(
    context: MeshPairContext, source: Any, face: int, features: CandidateFeatures, rows: ContactRows, count: int
) -> int:
    """Appends the contacts of an own triangle with a mesh, by a traversal of its BVH."""
    found = Found(count, wp.vec3i(), Vec3(Real(2.0), Real(2.0), Real(2.0)))
    square = features.max_distance * features.max_distance
    meshes = mesh_arrays(source)
    node = meshes.arrays[0].header[context.other].first_node
    stop = meshes.arrays[0].header[context.other].end_node
    while node < stop:
        lower = meshes.arrays[0].lower[node]
        upper = meshes.arrays[0].upper[node]
        if square_between(lower, upper, features.low, features.high) > square:
            node = meshes.arrays[0].skip[node]
            continue
        target = meshes.arrays[0].leaf[node]
        node += 1
        if target < 0:
            continue
        for k in range(3):
            start = corner_of_features(features, k)
            if ((features.candidates >> k) & 1) == 1 and square_between(lower, upper, start, start) <= square:
                found.count = vertex_on_triangle(context, source, face, k, start, target, rows, found.count)
            if ((features.candidates >> (EDGE_OWNED + k)) & 1) == 0:
                continue
            end = corner_of_features(features, k + 1)
            if square_between(lower, upper, wp.min(start, end), wp.max(start, end)) <= square:
                found = edge_on_triangle(context, source, face, features, target, k, rows, found)
    if context.other_closed == 0:
        return found.count
    return chord_contacts(context, source, face, features, rows, found)


@wp.func
def collide_with_heightfield(
    context: MeshPairContext,
    heightfield_pair: HeightfieldPair,
    face: int,
    features: CandidateFeatures,
    rows: ContactRows,
    count: int,
) -> int:
    """Appends the contacts of an own triangle with a heightfield, by traversals of its grid."""
    found = Found(count, wp.vec3i(), Vec3(Real(2.0), Real(2.0), Real(2.0)))
    for k in range(3):
        start = corner_of_features(features, k)
        end = corner_of_features(features, k + 1)
        if ((features.candidates >> k) & 1) == 1:
            cursor = begin_near_segment(heightfield_pair.field, start, start, features.max_distance)
            while cursor.number >= 0:
                target = cursor.number
                found.count = vertex_on_triangle(context, heightfield_pair, face, k, start, target, rows, found.count)
                cursor = next_near_segment(heightfield_pair.field, cursor)
        if ((features.candidates >> (EDGE_OWNED + k)) & 1) == 1:
            cursor = begin_near_segment(heightfield_pair.field, start, end, features.max_distance)
            while cursor.number >= 0:
                found = edge_on_triangle(context, heightfield_pair, face, features, cursor.number, k, rows, found)
                cursor = next_near_segment(heightfield_pair.field, cursor)
    return chord_contacts(context, heightfield_pair, face, features, rows, found)


@wp.func(inline=False)
def collide_with_surface(
    context: MeshPairContext, source: Meshes, face: int, features: CandidateFeatures, rows: ContactRows, count: int
) -> int:
    """Appends the contacts of an own triangle's candidate features with other's surface; returns the count."""
    return collide_with_mesh(context, source, face, features, rows, count)


@wp.func(inline=False)
def collide_with_surface(
    context: MeshPairContext,
    heightfield_pair: HeightfieldPair,
    face: int,
    features: CandidateFeatures,
    rows: ContactRows,
    count: int,
) -> int:
    """Appends the contacts of an own triangle's candidate features with the mesh or the heightfield."""
    if context.other < 0:
        return collide_with_heightfield(context, heightfield_pair, face, features, rows, count)
    return collide_with_mesh(context, heightfield_pair, face, features, rows, count)


@wp.func
def contacts_of_triangle(context: MeshPairContext, source: Any, face: int, rows: ContactRows) -> int:
    """Appends the contacts of the corners and sides that an own triangle owns; returns the count."""
    features = CandidateFeatures()
    features.bits = own_bits(source, context.own, face)
    features.p = wp.transform_point(context.pose, corner_on(source, context.own, face, 0))
    features.q = wp.transform_point(context.pose, corner_on(source, context.own, face, 1))
    features.r = wp.transform_point(context.pose, corner_on(source, context.own, face, 2))
    features.max_distance = wp.max(context.max_separation, Real(0.0)) + context.touch
    features.low = Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
    features.high = -features.low
    count = int(0)
    for k in range(3):
        start = corner_of_features(features, k)
        if has_bits(features.bits, VERTEX_OWNED, VERTEX_SALIENT, k):
            counts = vertex_inside(context, source, face, k, start, rows, count)
            count = counts[0]
            if counts[1] == 0 and free_radius(source, context.other, start) < features.max_distance:
                features.candidates = features.candidates | (1 << k)
                features.low = wp.min(features.low, start)
                features.high = wp.max(features.high, start)
        if has_bits(features.bits, EDGE_OWNED, EDGE_SALIENT, k):
            end = corner_of_features(features, k + 1)
            free = free_radius(source, context.other, Real(0.5) * (start + end))
            if free - Real(0.5) * wp.length(end - start) < features.max_distance:
                features.candidates = features.candidates | (1 << (EDGE_OWNED + k))
                features.low = wp.min(features.low, wp.min(start, end))
                features.high = wp.max(features.high, wp.max(start, end))
    if features.candidates == 0:
        return count
    return collide_with_surface(context, source, face, features, rows, count)


@wp.func
def surface_pair_of(rows: ShapeRows, source: Any, query: Query) -> SurfacePair:
    """The two surfaces of a pair, for the search of a separating translation."""
    pair = SurfacePair()
    pair.a = rows.mesh[query.row_a]
    pair.b = rows.mesh[query.row_b]
    pair.pose_b_to_a = query.pose_b_to_a
    pair.turn = wp.quat_to_matrix(wp.transform_get_rotation(query.pose_b_to_a))
    pair.closed_a = closed_flag(source, pair.a)
    pair.closed_b = closed_flag(source, pair.b)
    pair.front_a = front_flag(source, pair.a)
    pair.front_b = front_flag(source, pair.b)
    pair.touch = touch_of_pair(rows, query)
    pair.grown = pair.touch
    pair.ignored = pair.touch
    pair.tie.touch = pair.touch
    # For any poses: two boxes that overlap are apart once one has been moved by the sum of their diagonals.
    pair.span = Real(2.0) * (wp.length(rows.size[query.row_a]) + wp.length(rows.size[query.row_b]))
    pair.size = wp.min(wp.max(rows.size[query.row_a]), wp.max(rows.size[query.row_b]))
    return pair


def feature_kernel(surfaces_type: Any, source_of: Callable[..., Any]) -> wp.Kernel:
    """The kernel of the sub-pairs of two surfaces: an own triangle's features against the other surface.

    source_of(rows, surfaces, query): the triangle source of a pair.
    """

    @wp.func(inline=True)
    def contacts_of_sub_pair(rows: ShapeRows, surfaces: Any, query: Query, number: int, out: ContactRows) -> int:
        count = int(1)
        source = source_of(rows, surfaces, query)
        if number == SPARE_ROWS:
            # Concave edges have no contacts, yet alone may cross a surface behind a one-sided mesh.
            one_sided = has_one_side(source, rows.mesh[query.row_a]) or has_one_side(source, rows.mesh[query.row_b])
            count = spare_rows(out, wp.static(CAPACITY), FALLBACK, wp.where(one_sided, SPARE_UNTESTED, SPARE))
        else:
            is_a = number >= 0
            context = context_of_pair(rows, source, query, is_a)
            count = contacts_of_triangle(context, source, wp.where(is_a, number, ~number), out)
        return count

    return counted_kernel(surfaces_type, contacts_of_sub_pair)


@wp.func(inline=True)
def source_of_meshes(rows: ShapeRows, meshes: Meshes, query: Query) -> Meshes:
    """The triangle source of two meshes."""
    return meshes


@wp.func(inline=True)
def measure_pair(rows: ShapeRows, meshes: Meshes, query: Query, out: ContactRows) -> int:
    """Replaces the contacts of two overlapping meshes by those of their regions of overlap, see `measure_regions`."""
    return measure_meshes(meshes, surface_pair_of(rows, meshes, query), out)


MESHES = SubPairKernels(
    "meshes",
    "measured_meshes",
    search_kernel(Meshes, find_sub_pairs),
    merge_surfaces,
    parts_on_cuda=32,
    others=(measure_grid,),
    overlap=overlap_kernel(Meshes, measure_pair),
)
COLLIDER = Collider(
    "mesh_mesh", 0, feature_kernel(Meshes, source_of_meshes), may_be_inexact=True, sub_pair_kernels=MESHES
)
