"""An edge of one mesh against the edges and triangles of the other."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.mesh_nearest import EDGE_PLACE, goes_through
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.contact_merging import RANK
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.convex_triangle import FALLBACK
from collidecli.engine.narrowphase.triangles.heightfield_interior import (
    HeightfieldPair,
    chord_in_field,
    deepest_of_part,
)
from collidecli.engine.narrowphase.triangles.mesh_pair_context import (
    View,
    depth_inside,
    emit_crossing,
    faces,
    own_direction,
    put,
)
from collidecli.engine.narrowphase.triangles.surface_interior import is_within_by
from collidecli.engine.narrowphase.triangles.triangle_queries import (
    corner_on,
    feature_on,
    is_front_facing,
    nearest_on,
    normal_on,
    outward_on,
    priority_on,
    takes_on_edge,
)

# ruff: noqa: F811

PARALLEL = wp.constant(Real(1.0e-18))
"""Squared sine of two edges below which they cross nowhere: their ends say where they are near."""
SHALLOWEST = wp.constant(Real(0.5))
"""Edges that have passed each other are a contact as long as the middle of one's part inside the other mesh is at least
this share as deep. Of two crossing bars it is as deep, of the ridges of two roofs at right angles 0.7."""


@wp.func
def edges_face(view: View, meshes: Any, face: int, k: int, target: int, side: int, way: Vec3) -> bool:
    """Whether a direction from own's edge to other's belongs to both, on their fronts."""
    if not faces(view, meshes, face, EDGE_PLACE + k, way):
        return False
    outward = outward_on(meshes, view.other, target, EDGE_PLACE + side)
    if view.other_front == 1 and not is_front_facing(outward, -way):
        return False
    return takes_on_edge(meshes, view.other, target, side, -way) and takes_on_edge(
        meshes, view.own, face, k, own_direction(view, way)
    )


@wp.func
def share_through(meshes: Any, surface: int, target: int, start: Vec3, end: Vec3) -> Real:
    """Share of a segment at which it meets a triangle's plane, which it goes through; negative where it leaves."""
    normal = normal_on(meshes, surface, target)
    corner = corner_on(meshes, surface, target, 0)
    low = wp.dot(normal, start - corner)
    high = wp.dot(normal, end - corner)
    share = low / (low - high)
    return wp.where(low > high, share, -share)


@wp.func(inline=False)
def chord_of(meshes: Meshes, mesh: int, start: Vec3, end: Vec3, at: Real) -> wp.vec2d:
    """Between which shares of a segment, on either side of share `at`, it goes through no triangle of a mesh.

    -1 and 2 where it goes through none on that side.
    """
    low = wp.min(start, end)
    high = wp.max(start, end)
    begins = Real(-1.0)
    ends = Real(2.0)
    node = meshes.header[mesh].first_node
    stop = meshes.header[mesh].end_node
    while node < stop:
        lower = meshes.lower[node]
        upper = meshes.upper[node]
        apart = bool(False)
        for axis in range(3):
            apart = apart or lower[axis] > high[axis] or upper[axis] < low[axis]
        if apart:
            node = meshes.skip[node]
            continue
        face = meshes.leaf[node]
        if face >= 0 and goes_through(meshes, face, start, end):
            share = wp.abs(share_through(meshes, mesh, face, start, end))
            if share <= at:
                begins = wp.max(begins, share)
            else:
                ends = wp.min(ends, share)
        node += 1
    return wp.vec2d(begins, ends)


@wp.func
def chord_of(heightfield_pair: HeightfieldPair, mesh: int, start: Vec3, end: Vec3, at: Real) -> wp.vec2d:
    """The same."""
    if mesh < 0:
        return chord_in_field(heightfield_pair.field, start, end, at)
    return chord_of(heightfield_pair.meshes, mesh, start, end, at)


@wp.func
def deepest_of(meshes: Meshes, mesh: int, start: Vec3, end: Vec3, enters: Real, leaves: Real) -> Real:
    """The share of a segment that stands for its part inside a surface: the middle."""
    return Real(0.5) * (enters + leaves)


@wp.func
def deepest_of(
    heightfield_pair: HeightfieldPair, mesh: int, start: Vec3, end: Vec3, enters: Real, leaves: Real
) -> Real:
    """The same; another one where the part ends at a base that lets nothing out."""
    if mesh < 0:
        return deepest_of_part(heightfield_pair, start, end, enters, leaves)
    return Real(0.5) * (enters + leaves)


@wp.func
def depth_of_chord(meshes: Any, mesh: int, start: Vec3, end: Vec3, at: Real) -> Real:
    """How deep the middle of that part of a segment around share `at` is inside a closed mesh [m]."""
    chord = chord_of(meshes, mesh, start, end, at)
    middle = Real(0.5) * (wp.max(chord[0], Real(0.0)) + wp.min(chord[1], Real(1.0)))
    return depth_inside(meshes, mesh, start + middle * (end - start), Real(0.0))


@wp.func(inline=False)
def edges_overlap(
    view: View, meshes: Any, start: Vec3, end: Vec3, s: Real, from_other: Vec3, to_other: Vec3, t: Real, depth: Real
) -> bool:
    """Whether two edges at shares s and t have passed each other by `depth` [m], and leave each other best that way.

    Each point is inside the other mesh, or on it; and the middle of one edge's part inside the other mesh is not much
    nearer to a way out of its own.
    """
    into_own = wp.transform_inverse(view.pose)
    own_start = wp.transform_point(into_own, from_other)
    own_end = wp.transform_point(into_own, to_other)
    inside = depth_inside(meshes, view.other, start + s * (end - start), view.touch)
    if inside < -view.touch:
        return False
    if depth_inside(meshes, view.own, own_start + t * (own_end - own_start), view.touch) < -view.touch:
        return False
    if depth <= view.touch or depth_of_chord(meshes, view.other, start, end, s) >= SHALLOWEST * depth:
        return True
    return depth_of_chord(meshes, view.own, own_start, own_end, t) >= SHALLOWEST * depth


@wp.func
def edges_are_apart(view: View, meshes: Any, on_own: Vec3, on_other: Vec3) -> bool:
    """Whether points of two edges are outside of the meshes that are closed."""
    if view.other_closed == 1 and depth_inside(meshes, view.other, on_own, Real(0.0)) > view.touch:
        return False
    if view.own_closed == 0:
        return True
    own_point = wp.transform_point(wp.transform_inverse(view.pose), on_other)
    return depth_inside(meshes, view.own, own_point, Real(0.0)) <= view.touch


@wp.func(inline=False)
def edge_on_edge(
    view: View,
    meshes: Any,
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
    """The contact of own's edge and side `side` of other's triangle `target` where they cross, if any.

    overlaps: whether to ask for one of edges that overlap; else for one of edges that are apart.

    Apart: both points are outside. Overlapping, of closed meshes: see `edges_overlap`.
    """
    u = end - start
    from_other = corner_on(meshes, view.other, target, side)
    v = corner_on(meshes, view.other, target, side + 1) - from_other
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
    way = wp.where((height >= Real(0.0)) != overlaps, across, -across)
    separation = wp.dot(on_other - on_own, way)
    if separation >= view.max_separation or not edges_face(view, meshes, face, k, target, side, way):
        return count
    if overlaps:
        if not edges_overlap(view, meshes, start, end, s, from_other, from_other + v, t, -separation):
            return count
    elif not edges_are_apart(view, meshes, on_own, on_other):
        return count
    code = feature_on(meshes, view.own, face, EDGE_PLACE + k)
    code_other = feature_on(meshes, view.other, target, EDGE_PLACE + side)
    kind = priority_on(meshes, view.own, face) + priority_on(meshes, view.other, target)
    return put(view, rows, count, on_own, way, separation, code, code_other, kind, 0)


@wp.func(inline=False)
def edge_through_sheet(
    view: View, meshes: Any, face: int, k: int, start: Vec3, end: Vec3, rows: ContactRows, count: int
) -> int:
    """Both ends of an edge of own that goes through an open surface: which is behind it, `region_depth` finds out."""
    count = emit_crossing(view, rows, count, start, feature_on(meshes, view.own, face, k))
    return emit_crossing(view, rows, count, end, feature_on(meshes, view.own, face, (k + 1) % 3))


@wp.func(inline=False)
def chord_contact(
    view: View, meshes: Any, face: int, k: int, start: Vec3, end: Vec3, enters: Real, rows: ContactRows, count: int
) -> int:
    """The contact of the middle of an edge's part inside a closed mesh. enters: share of the edge where it begins."""
    chord = chord_of(meshes, view.other, start, end, enters)
    if chord[1] > Real(1.0):
        return count
    middle = start + deepest_of(meshes, view.other, start, end, enters, chord[1]) * (end - start)
    place = nearest_on(meshes, view.other, middle)
    if place.face < 0:
        return count
    depth = wp.sqrt(place.square)
    off = middle - place.point
    if depth <= view.touch or not is_within_by(meshes, view.other, middle, place):
        return count
    way = off / depth
    kind = int(FALLBACK * RANK)
    if faces(view, meshes, face, EDGE_PLACE + k, way) and takes_on_edge(
        meshes, view.own, face, k, own_direction(view, way)
    ):
        kind = 0
    code = feature_on(meshes, view.own, face, EDGE_PLACE + k)
    code_other = feature_on(meshes, view.other, place.face, place.part)
    return put(view, rows, count, middle, way, -depth, code, code_other, kind, 1)
