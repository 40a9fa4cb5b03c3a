"""Two triangle meshes: the vertices and edges of each against the surface of the other."""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import measure_grid
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.sub_pairs import (
    ContactRows,
    PairRows,
    SubPairKernels,
    counted_kernel,
    overlap_kernel,
    search_kernel,
    spare_rows,
)
from collidecli.engine.narrowphase.triangles.contact_priority import FALLBACK, merge_surfaces
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair
from collidecli.engine.narrowphase.triangles.heightfield_segment_triangles import begin_targets, next_target
from collidecli.engine.narrowphase.triangles.mesh_edge import (
    chord_contact,
    edge_on_edge,
    edge_through_sheet,
    share_through,
)
from collidecli.engine.narrowphase.triangles.mesh_mesh_sub_pairs import (
    EDGE_OWNED,
    EDGE_SALIENT,
    SPARE_ROWS,
    VERTEX_OWNED,
    VERTEX_SALIENT,
    triangles_of_both,
)
from collidecli.engine.narrowphase.triangles.mesh_pair_context import View, view_of
from collidecli.engine.narrowphase.triangles.mesh_vertex import vertex_behind, vertex_on_triangle
from collidecli.engine.narrowphase.triangles.overlap_regions import CAPACITY
from collidecli.engine.narrowphase.triangles.region_depth import measure_meshes
from collidecli.engine.narrowphase.triangles.surface_pair import SurfacePair
from collidecli.engine.narrowphase.triangles.triangle_queries import (
    clear_of,
    corner_on,
    is_gone_through,
    leaf_of,
    lower_of,
    other_bits,
    own_bits,
    skip_of,
    tree_of,
    upper_of,
)
from collidecli.engine.pair_query import Query
from collidecli.scene.shape_types import ShapeType

# ruff: noqa: F811


@wp.func
def has_bits(bits: int, first: int, second: int, k: int) -> bool:
    """Whether two of the bits of `Meshes.owned` are set for corner or side k."""
    return ((bits >> (first + k)) & (bits >> (second + k)) & 1) == 1


@wp.struct
class Work:
    """What of an own triangle is asked of the other mesh. bits: as of `Meshes`; corners in other's frame.

    asks: bit k where corner k, 3 + k where side k may meet the other's surface, which is in front of that corner.
    low, high: box around these [m]. grown: how far they reach [m]. through: for each side how many of the other's
    triangles it goes through. enters: share of the side where it first goes in.
    """

    bits: int
    p: Vec3
    q: Vec3
    r: Vec3
    asks: int
    low: Vec3
    high: Vec3
    grown: Real
    through: wp.vec3i
    enters: Vec3


@wp.func
def corner_of_work(work: Work, k: int) -> Vec3:
    """Corner 0, 1 or 2; 3 is 0 again."""
    if k == 1:
        return work.q
    if k == 2:
        return work.r
    return work.p


@wp.func(inline=False)
def meet_triangle(
    view: View, meshes: Any, face: int, work: Work, target: int, k: int, rows: ContactRows, count: int
) -> wp.vec2d:
    """Contacts of side k of an own triangle with one of other's; and the signed share where it goes through it, or 2.

    Returns the count then, and that share, see `share_through`.
    """
    start = corner_of_work(work, k)
    end = corner_of_work(work, k + 1)
    share = Real(2.0)
    goes = is_gone_through(meshes, view.other, target, start, end)
    if goes:
        share = share_through(meshes, view.other, target, start, end)
        if view.other_closed == 0:
            count = edge_through_sheet(view, meshes, face, k, start, end, rows, count)
    # Both meshes ask of edges that overlap, which is where one goes through a triangle beside the other.
    overlaps = goes and view.own_closed == 1 and view.other_closed == 1
    bits = other_bits(meshes, view.other, target)
    sides = int(3)
    for side in range(sides):
        if ((bits >> (EDGE_SALIENT + side)) & 1) == 1:
            if view.is_a == 1 and ((bits >> (EDGE_OWNED + side)) & 1) == 1:
                count = edge_on_edge(view, meshes, face, k, start, end, target, side, False, rows, count)
            if overlaps:
                count = edge_on_edge(view, meshes, face, k, start, end, target, side, True, rows, count)
    return wp.vec2d(Real(count), share)


@wp.func
def square_between(lower: Vec3, upper: Vec3, low: Vec3, high: Vec3) -> Real:
    """Squared distance of two boxes [m^2]."""
    return wp.length_sq(wp.max(Vec3(), wp.max(lower - high, low - upper)))


@wp.func
def chords_of(view: View, meshes: Any, face: int, work: Work, rows: ContactRows, count: int) -> int:
    """Contacts of the sides of an own triangle that go into other's solid and out again."""
    for k in range(3):
        if work.through[k] > 1 and work.enters[k] <= Real(1.0):
            start = corner_of_work(work, k)
            end = corner_of_work(work, k + 1)
            count = chord_contact(view, meshes, face, k, start, end, work.enters[k], rows, count)
    return count


@wp.func
def meet_mesh(view: View, meshes: Any, face: int, work: Work, rows: ContactRows, count: int) -> int:
    """As `meet_surface`, of a mesh."""
    square = work.grown * work.grown
    nodes = tree_of(meshes, view.other)
    node = nodes[0]
    stop = nodes[1]
    while node < stop:
        lower = lower_of(meshes, node)
        upper = upper_of(meshes, node)
        if square_between(lower, upper, work.low, work.high) > square:
            node = skip_of(meshes, node)
            continue
        target = leaf_of(meshes, node)
        node += 1
        if target < 0:
            continue
        for k in range(3):
            start = corner_of_work(work, k)
            if ((work.asks >> k) & 1) == 1 and square_between(lower, upper, start, start) <= square:
                count = vertex_on_triangle(view, meshes, face, k, start, target, rows, count)
            if ((work.asks >> (EDGE_OWNED + k)) & 1) == 0:
                continue
            end = corner_of_work(work, k + 1)
            if square_between(lower, upper, wp.min(start, end), wp.max(start, end)) <= square:
                met = meet_triangle(view, meshes, face, work, target, k, rows, count)
                count = int(met[0])
                if met[1] <= Real(1.0):
                    work.through[k] = work.through[k] + 1
                    if met[1] >= Real(0.0):
                        work.enters[k] = wp.min(work.enters[k], met[1])
    if view.other_closed == 1:
        count = chords_of(view, meshes, face, work, rows, count)
    return count


@wp.func
def meet_field(
    view: View, heightfield_pair: HeightfieldPair, face: int, work: Work, rows: ContactRows, count: int
) -> int:
    """As `meet_surface`, of a heightfield."""
    for k in range(3):
        start = corner_of_work(work, k)
        end = corner_of_work(work, k + 1)
        if ((work.asks >> k) & 1) == 1:
            targets = begin_targets(heightfield_pair.field, start, start, work.grown)
            while targets.number >= 0:
                count = vertex_on_triangle(view, heightfield_pair, face, k, start, targets.number, rows, count)
                targets = next_target(heightfield_pair.field, targets)
        if ((work.asks >> (EDGE_OWNED + k)) & 1) == 1:
            targets = begin_targets(heightfield_pair.field, start, end, work.grown)
            while targets.number >= 0:
                met = meet_triangle(view, heightfield_pair, face, work, targets.number, k, rows, count)
                count = int(met[0])
                if met[1] <= Real(1.0):
                    work.through[k] = work.through[k] + 1
                    if met[1] >= Real(0.0):
                        work.enters[k] = wp.min(work.enters[k], met[1])
                targets = next_target(heightfield_pair.field, targets)
    return chords_of(view, heightfield_pair, face, work, rows, count)


@wp.func(inline=False)
def meet_surface(view: View, meshes: Meshes, face: int, work: Work, rows: ContactRows, count: int) -> int:
    """Contacts of what an own triangle asks with all of other's surface that is within reach."""
    return meet_mesh(view, meshes, face, work, rows, count)


@wp.func(inline=False)
def meet_surface(
    view: View, heightfield_pair: HeightfieldPair, face: int, work: Work, rows: ContactRows, count: int
) -> int:
    """The same."""
    if view.other < 0:
        return meet_field(view, heightfield_pair, face, work, rows, count)
    return meet_mesh(view, heightfield_pair, face, work, rows, count)


@wp.func
def contacts_of_triangle(view: View, meshes: Any, face: int, rows: ContactRows) -> int:
    """Contacts of an own triangle's corners and sides, those that it is the first to have; returns how many."""
    work = Work()
    work.bits = own_bits(meshes, view.own, face)
    work.p = wp.transform_point(view.pose, corner_on(meshes, view.own, face, 0))
    work.q = wp.transform_point(view.pose, corner_on(meshes, view.own, face, 1))
    work.r = wp.transform_point(view.pose, corner_on(meshes, view.own, face, 2))
    work.enters = Vec3(Real(2.0), Real(2.0), Real(2.0))
    work.grown = wp.max(view.max_separation, Real(0.0)) + view.touch
    work.low = Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
    work.high = -work.low
    count = int(0)
    for k in range(3):
        start = corner_of_work(work, k)
        if has_bits(work.bits, VERTEX_OWNED, VERTEX_SALIENT, k):
            found = vertex_behind(view, meshes, face, k, start, rows, count)
            count = found[0]
            if found[1] == 0 and clear_of(meshes, view.other, start) < work.grown:
                work.asks = work.asks | (1 << k)
                work.low = wp.min(work.low, start)
                work.high = wp.max(work.high, start)
        if has_bits(work.bits, EDGE_OWNED, EDGE_SALIENT, k):
            end = corner_of_work(work, k + 1)
            free = clear_of(meshes, view.other, Real(0.5) * (start + end))
            if free - Real(0.5) * wp.length(end - start) < work.grown:
                work.asks = work.asks | (1 << (EDGE_OWNED + k))
                work.low = wp.min(work.low, wp.min(start, end))
                work.high = wp.max(work.high, wp.max(start, end))
    if work.asks == 0:
        return count
    return meet_surface(view, meshes, face, work, rows, count)


@wp.func
def view_of_pair(rows: ShapeRows, meshes: Meshes, query: Query, is_a: bool) -> View:
    """How b sees a, or where not `is_a` how a sees b."""
    extent = wp.max(rows.size[query.row_a], rows.size[query.row_b])
    size = wp.max(extent[0], wp.max(extent[1], extent[2]))
    mesh_a = rows.mesh[query.row_a]
    mesh_b = rows.mesh[query.row_b]
    return view_of(meshes, mesh_a, mesh_b, query.pose_b_to_a, query.max_separation, size, is_a)


@wp.func(inline=True)
def contacts_of_sub_pair(rows: ShapeRows, meshes: Meshes, query: Query, number: int, out: ContactRows) -> int:
    """Contacts of a piece, see `pieces.triangles_of_both`."""
    count = int(1)
    if number == SPARE_ROWS:
        count = spare_rows(out, wp.static(CAPACITY), FALLBACK)
    else:
        is_a = number >= 0
        view = view_of_pair(rows, meshes, query, is_a)
        count = contacts_of_triangle(view, meshes, wp.where(is_a, number, ~number), out)
    return count


@wp.func
def longest_of(extent: Vec3) -> Real:
    """The longest of a box's half sides."""
    return wp.max(extent[0], wp.max(extent[1], extent[2]))


@wp.func
def surface_pair_of(view_a: View, pose_b_to_a: Pose, span: Real) -> SurfacePair:
    """The two surfaces of a pair, of which a is `own` of its view. span: as of `SurfacePair` [m]."""
    pair = SurfacePair()
    pair.a = view_a.own
    pair.b = view_a.other
    pair.pose_b_to_a = pose_b_to_a
    pair.turn = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    pair.closed_a = view_a.own_closed
    pair.closed_b = view_a.other_closed
    pair.front_a = view_a.own_front
    pair.front_b = view_a.other_front
    pair.touch = view_a.touch
    pair.span = span
    return pair


@wp.func(inline=True)
def measure_pair(rows: ShapeRows, meshes: Meshes, query: Query, out: PairRows) -> int:
    """Makes the contacts of a pair of meshes those of its regions of overlap, see `region_depth`."""
    view = view_of_pair(rows, meshes, query, True)
    # Whatever the poses: two boxes that overlap are apart once one has been moved by the sum of their diagonals.
    span = Real(2.0) * (wp.length(rows.size[query.row_a]) + wp.length(rows.size[query.row_b]))
    pair = surface_pair_of(view, query.pose_b_to_a, span)
    pair.size = wp.min(longest_of(rows.size[query.row_a]), longest_of(rows.size[query.row_b]))
    return measure_meshes(meshes, pair, out)


MESHES = SubPairKernels(
    "meshes",
    "measured_meshes",
    search_kernel(Meshes, triangles_of_both),
    merge_surfaces,
    parts_on_cuda=32,
    others=(measure_grid,),
    overlap=overlap_kernel(Meshes, measure_pair),
)
COLLIDER = Collider("mesh_mesh", 0, counted_kernel(Meshes, contacts_of_sub_pair), may_be_inexact=True, kind=MESHES)


def collider_for(type_a: ShapeType) -> Collider:
    """The one room of two meshes, whose contacts are counted."""
    return COLLIDER
