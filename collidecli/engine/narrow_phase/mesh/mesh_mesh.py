"""Two triangle meshes: the vertices and edges of each against the surface of the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import clearance_at, measure_grid
from collidecli.engine.geometry.mesh_nearest import goes_through, mesh_corner
from collidecli.engine.geometry.meshes import HEADER, Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrow_phase.mesh.edge import chord_contact, edge_on_edge, edge_through_sheet, share_through
from collidecli.engine.narrow_phase.mesh.join import finish_contacts
from collidecli.engine.narrow_phase.mesh.pieces import (
    EDGE_OWNED,
    EDGE_SALIENT,
    VERTEX_OWNED,
    VERTEX_SALIENT,
    find_mesh_triangles,
    find_pieces,
)
from collidecli.engine.narrow_phase.mesh.vertex import vertex_behind, vertex_on_triangle
from collidecli.engine.narrow_phase.mesh.view import Rows, View, view_of
from collidecli.engine.narrow_phase.query import query_of
from collidecli.engine.narrow_phase.staging import Candidates, StagedContact
from collidecli.engine.workspace import Workspace

HELD = wp.constant(2)
"""Contacts of a piece that are kept when they are counted; of pieces with more, all are sought again."""


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
    view: View, meshes: Meshes, face: int, work: Work, target: int, k: int, rows: Rows, count: int
) -> wp.vec2d:
    """Contacts of side k of an own triangle with one of other's; and the signed share where it goes through it, or 2.

    Returns the count then, and that share, see `share_through`.
    """
    start = corner_of_work(work, k)
    end = corner_of_work(work, k + 1)
    share = Real(2.0)
    goes = goes_through(meshes, target, start, end)
    if goes:
        share = share_through(meshes, target, start, end)
        if view.other_closed == 0:
            count = edge_through_sheet(view, meshes, face, k, start, end, target, rows, count)
    # Both meshes ask of edges that overlap, which is where one goes through a triangle beside the other.
    overlaps = goes and view.own_closed == 1 and view.other_closed == 1
    sides = int(3)
    for side in range(sides):
        if ((meshes.owned[target] >> (EDGE_SALIENT + side)) & 1) == 1:
            if view.is_a == 1 and ((meshes.owned[target] >> (EDGE_OWNED + side)) & 1) == 1:
                count = edge_on_edge(view, meshes, face, k, start, end, target, side, False, rows, count)
            if overlaps:
                count = edge_on_edge(view, meshes, face, k, start, end, target, side, True, rows, count)
    return wp.vec2d(Real(count), share)


@wp.func
def square_between(lower: Vec3, upper: Vec3, low: Vec3, high: Vec3) -> Real:
    """Squared distance of two boxes [m^2]."""
    return wp.length_sq(wp.max(Vec3(), wp.max(lower - high, low - upper)))


@wp.func(inline=False)
def meet_surface(view: View, meshes: Meshes, face: int, work: Work, rows: Rows, count: int) -> int:
    """Contacts of what an own triangle asks with all of other's surface that is within reach."""
    square = work.grown * work.grown
    node = meshes.header[view.other * wp.static(HEADER) + 3]
    stop = meshes.header[view.other * wp.static(HEADER) + 4]
    while node < stop:
        lower = meshes.lower[node]
        upper = meshes.upper[node]
        if square_between(lower, upper, work.low, work.high) > square:
            node = meshes.skip[node]
            continue
        target = meshes.leaf[node]
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
        for k in range(3):
            if work.through[k] > 1 and work.enters[k] <= Real(1.0):
                start = corner_of_work(work, k)
                end = corner_of_work(work, k + 1)
                count = chord_contact(view, meshes, face, k, start, end, work.enters[k], rows, count)
    return count


@wp.func
def contacts_of_piece(view: View, meshes: Meshes, face: int, rows: Rows) -> int:
    """Contacts of an own triangle's corners and sides, those that it is the first to have; returns how many."""
    work = Work()
    work.bits = meshes.owned[face]
    work.p = wp.transform_point(view.pose, mesh_corner(meshes, face, 0))
    work.q = wp.transform_point(view.pose, mesh_corner(meshes, face, 1))
    work.r = wp.transform_point(view.pose, mesh_corner(meshes, face, 2))
    work.enters = Vec3(Real(2.0), Real(2.0), Real(2.0))
    work.grown = wp.max(view.reach, Real(0.0)) + view.touch
    work.low = Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
    work.high = -work.low
    count = int(0)
    for k in range(3):
        start = corner_of_work(work, k)
        if has_bits(work.bits, VERTEX_OWNED, VERTEX_SALIENT, k):
            found = vertex_behind(view, meshes, face, k, start, rows, count)
            count = found[0]
            if found[1] == 0 and clearance_at(meshes, view.other, start).free < work.grown:
                work.asks = work.asks | (1 << k)
                work.low = wp.min(work.low, start)
                work.high = wp.max(work.high, start)
        if has_bits(work.bits, EDGE_OWNED, EDGE_SALIENT, k):
            end = corner_of_work(work, k + 1)
            free = clearance_at(meshes, view.other, Real(0.5) * (start + end)).free
            if free - Real(0.5) * wp.length(end - start) < work.grown:
                work.asks = work.asks | (1 << (EDGE_OWNED + k))
                work.low = wp.min(work.low, wp.min(start, end))
                work.high = wp.max(work.high, wp.max(start, end))
    if work.asks == 0:
        return count
    return meet_surface(view, meshes, face, work, rows, count)


@wp.kernel(module="unique", enable_backward=False)
def collide_meshes(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    piece: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    held: wp.array[StagedContact],
    contact: wp.array[StagedContact],
    first_row: int,
    writes: int,
):
    """One thread a piece: counts its contacts, or, once the counts are scanned, writes them from first_row on.

    held: the first HELD of each piece, from the pass that counts.
    """
    thread = wp.tid()
    out = Rows()
    out.contact = held
    out.first = thread * HELD
    out.end = out.first + HELD
    if writes == 1:
        begin = int(0)
        if thread > 0:
            begin = end[thread - 1]
        if end[thread] - begin <= HELD:
            for i in range(end[thread] - begin):
                contact[first_row + begin + i] = held[thread * HELD + i]
            return
        out.contact = contact
        out.first = first_row + begin
        out.end = first_row + end[thread]
    candidate = piece[thread][0]
    face = piece[thread][1]
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    extent = wp.max(rows.size[query.row_a], rows.size[query.row_b])
    size = wp.max(extent[0], wp.max(extent[1], extent[2]))
    is_a = face >= 0
    mesh_a = rows.mesh[query.row_a]
    mesh_b = rows.mesh[query.row_b]
    view = view_of(rows.meshes, mesh_a, mesh_b, query.pose_b_to_a, query.reach, size, is_a)
    found = contacts_of_piece(view, rows.meshes, wp.where(is_a, face, ~face), out)
    if writes == 0:
        end[thread] = found


@wp.kernel(module="unique", enable_backward=False)
def join_mesh_contacts(
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    limit: int,
    parts: int,
    piece_end: wp.array[wp.int32],
    row_end: wp.array[wp.int32],
    contact: wp.array[StagedContact],
    first_row: int,
):
    """One thread a candidate: its pieces' contacts, which stand together, as those of the pair.

    piece_end: where the pieces of each thread of `find_pieces` end, `parts` of them a candidate.
    """
    thread = wp.tid()
    begin = int(0)
    if thread > 0 and piece_end[thread * parts - 1] > 0:
        begin = row_end[piece_end[thread * parts - 1] - 1]
    count = int(0)
    last = piece_end[(thread + 1) * parts - 1]
    if last > 0:
        count = row_end[last - 1] - begin
    finish_contacts(
        candidates, order[start + thread], contact, first_row + begin, count, False, -Real(wp.inf), Real(0.0), limit
    )


MESH_PAIR_KERNELS = (find_pieces, join_mesh_contacts, measure_grid)
"""Besides the room's own, `collide_meshes`."""


@dataclass(frozen=True)
class MeshPieces:
    """A bucket's candidates with an own triangle each.

    piece: vec2i, see `find_pieces`. end: where the pieces of each of its threads end, `parts` of them a candidate.

    rows, row_end: how many rows the contacts take, and where those of each piece end. held: the first of each.
    """

    piece: wp.array
    end: wp.array
    count: int
    parts: int
    rows: int
    row_end: wp.array
    held: wp.array


def find_mesh_pieces(shared: list[Any], order: wp.array, start: int, size: int, workspace: Workspace) -> MeshPieces:
    """The pieces of the bucket order[start:start + size], and how many rows their contacts take, duplicates included.

    shared: rows, instances, candidates.
    """
    piece, end, count, parts = find_mesh_triangles(shared, order, start, size, workspace)
    row_end = workspace.array("mesh_pair_row_end", count, wp.int32)
    held = workspace.array("mesh_pair_held", count * int(HELD), StagedContact)
    contact = workspace.array("staged_contact", 1, StagedContact)
    workspace.launch(collide_meshes, count, [*shared, piece, row_end, held, contact, 0, 0])
    return MeshPieces(piece, end, count, parts, scan_counts(workspace, row_end, count), row_end, held)


def collide_mesh_pairs(
    shared: list[Any],
    pieces: MeshPieces,
    order: wp.array,
    bucket: tuple[int, int, int],
    staged: tuple[wp.array, int],
    workspace: Workspace,
) -> None:
    """Contacts of a bucket of mesh pairs. bucket: as in `room.collide_pieces`. staged: the contacts, the first row."""
    start, size, limit = bucket
    contact, first_row = staged
    arguments = [*shared, pieces.piece, pieces.row_end, pieces.held, contact, first_row, 1]
    workspace.launch(collide_meshes, pieces.count, arguments)
    arguments = [shared[2], order, start, limit, pieces.parts, pieces.end, pieces.row_end, contact, first_row]
    workspace.launch(join_mesh_contacts, size, arguments)
