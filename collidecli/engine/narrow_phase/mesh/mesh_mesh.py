"""Two triangle meshes: the vertices and edges of each against the surface of the other."""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.mesh_nearest import goes_through, mesh_corner
from collidecli.engine.geometry.meshes import HEADER, Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrow_phase.mesh.edge import chord_contact, edge_on_edge, edge_through_sheet, share_through
from collidecli.engine.narrow_phase.mesh.join import finish_contacts
from collidecli.engine.narrow_phase.mesh.mid_phase import Near, Pieces, box_of_shape, meets
from collidecli.engine.narrow_phase.mesh.vertex import vertex_behind, vertex_on_triangle
from collidecli.engine.narrow_phase.mesh.view import Rows, View, view_of
from collidecli.engine.narrow_phase.query import query_of
from collidecli.engine.narrow_phase.staging import Candidates, StagedContact
from collidecli.engine.workspace import Workspace

VERTEX_OWNED = wp.constant(0)
EDGE_OWNED = wp.constant(3)
VERTEX_SALIENT = wp.constant(6)
EDGE_SALIENT = wp.constant(9)


@wp.func
def has_bits(bits: int, first: int, second: int, k: int) -> bool:
    """Whether two of the bits of `Meshes.owned` are set for corner or side k."""
    return ((bits >> (first + k)) & (bits >> (second + k)) & 1) == 1


@wp.func(inline=False)
def near_mesh(rows: ShapeRows, instances: Instances, candidates: Candidates, candidate: int, of_a: bool) -> Near:
    """Which triangles of one mesh of a candidate may meet the other: a box, in its own frame, and its tree.

    All of them where the other is open and anywhere near: what is behind a sheet may be far from it.
    """
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    own = query.row_b
    other = query.row_a
    pose_other_to_own = wp.transform_inverse(query.pose_b_to_a)
    if of_a:
        own = query.row_a
        other = query.row_b
        pose_other_to_own = query.pose_b_to_a
    near = box_of_shape(rows.type[other], rows.size[other], pose_other_to_own, wp.max(query.reach, Real(0.0)))
    head = rows.mesh[own] * wp.static(HEADER)
    near.first = rows.meshes.header[head + 3]
    near.end = rows.meshes.header[head + 4]
    if rows.meshes.header[rows.mesh[other] * wp.static(HEADER) + 6] == 0 and meets(near, rows.meshes, near.first):
        near.upper = Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
        near.lower = -near.upper
    return near


@wp.func
def has_work(bits: int) -> bool:
    """Whether a triangle is the first with a salient corner or side."""
    return ((bits >> VERTEX_OWNED) & (bits >> VERTEX_SALIENT) & 63) != 0


@wp.kernel(module="unique", enable_backward=False)
def find_pieces(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    end: wp.array[wp.int32],
    piece: wp.array[wp.vec2i],
    writes: int,
):
    """One thread a candidate: how many triangles of its meshes have work, or, once that is scanned, which.

    piece: the candidate's number, and a triangle of a; ~triangle of b. In the order of the trees, a's first.
    """
    thread = wp.tid()
    slot = int(0)
    if writes == 1 and thread > 0:
        slot = end[thread - 1]
    found = int(0)
    for turn in range(2):
        near = near_mesh(rows, instances, candidates, order[start + thread], turn == 0)
        node = near.first
        while node < near.end:
            if not meets(near, rows.meshes, node):
                node = rows.meshes.skip[node]
                continue
            face = rows.meshes.leaf[node]
            if face >= 0 and has_work(rows.meshes.owned[face]):
                if writes == 1:
                    piece[slot + found] = wp.vec2i(order[start + thread], wp.where(turn == 0, face, ~face))
                found += 1
            node += 1
    if writes == 0:
        end[thread] = found


@wp.struct
class Work:
    """What of an own triangle is asked of the other mesh. bits: as of `Meshes`; corners in other's frame.

    behind: bit k where corner k is behind the other's surface. through: for each side how many of the other's triangles
    it goes through. enters: share of the side where it first goes in.
    """

    bits: int
    p: Vec3
    q: Vec3
    r: Vec3
    behind: int
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
            if view.is_a == 1:
                count = edge_on_edge(view, meshes, face, k, start, end, target, side, False, rows, count)
            if overlaps:
                count = edge_on_edge(view, meshes, face, k, start, end, target, side, True, rows, count)
    return wp.vec2d(Real(count), share)


@wp.func(inline=False)
def meet_surface(view: View, meshes: Meshes, face: int, work: Work, rows: Rows, count: int) -> int:
    """Contacts of an own triangle's salient corners and sides with all of other's surface that is within reach."""
    grown = wp.max(view.reach, Real(0.0)) + view.touch
    low = wp.min(work.p, wp.min(work.q, work.r)) - Vec3(grown, grown, grown)
    high = wp.max(work.p, wp.max(work.q, work.r)) + Vec3(grown, grown, grown)
    node = meshes.header[view.other * wp.static(HEADER) + 3]
    stop = meshes.header[view.other * wp.static(HEADER) + 4]
    while node < stop:
        lower = meshes.lower[node]
        upper = meshes.upper[node]
        apart = bool(False)
        for axis in range(3):
            apart = apart or lower[axis] > high[axis] or upper[axis] < low[axis]
        if apart:
            node = meshes.skip[node]
            continue
        target = meshes.leaf[node]
        node += 1
        if target < 0:
            continue
        for k in range(3):
            if has_bits(work.bits, VERTEX_OWNED, VERTEX_SALIENT, k) and ((work.behind >> k) & 1) == 0:
                count = vertex_on_triangle(view, meshes, face, k, corner_of_work(work, k), target, rows, count)
            if has_bits(work.bits, EDGE_OWNED, EDGE_SALIENT, k):
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
    count = int(0)
    for k in range(3):
        if has_bits(work.bits, VERTEX_OWNED, VERTEX_SALIENT, k):
            found = vertex_behind(view, meshes, face, k, corner_of_work(work, k), rows, count)
            count = found[0]
            work.behind = work.behind | (found[1] << k)
    return meet_surface(view, meshes, face, work, rows, count)


@wp.kernel(module="unique", enable_backward=False)
def collide_meshes(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    piece: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
    contact: wp.array[StagedContact],
    first_row: int,
    writes: int,
):
    """One thread a piece: counts its contacts, or, once the counts are scanned, writes them from first_row on."""
    thread = wp.tid()
    out = Rows()
    out.writes = writes
    if writes == 1:
        begin = int(0)
        if thread > 0:
            begin = end[thread - 1]
        if begin == end[thread]:
            return
        out.contact = contact
        out.first = first_row + begin
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
    piece_end: wp.array[wp.int32],
    row_end: wp.array[wp.int32],
    contact: wp.array[StagedContact],
    first_row: int,
):
    """One thread a candidate: its pieces' contacts, which stand together, as those of the pair."""
    thread = wp.tid()
    begin = int(0)
    if thread > 0 and piece_end[thread - 1] > 0:
        begin = row_end[piece_end[thread - 1] - 1]
    count = int(0)
    if piece_end[thread] > 0:
        count = row_end[piece_end[thread] - 1] - begin
    finish_contacts(candidates, order[start + thread], contact, first_row + begin, count, False, -Real(wp.inf), limit)


MESH_PAIR_KERNELS = (find_pieces, join_mesh_contacts)
"""Besides the room's own, `collide_meshes`."""


def find_mesh_pieces(shared: list[Any], order: wp.array, start: int, size: int, workspace: Workspace) -> Pieces:
    """The pieces of the bucket order[start:start + size], and how many rows their contacts take, duplicates included.

    shared: rows, instances, candidates.
    """
    end = workspace.array("mesh_pair_end", size, wp.int32)
    piece = workspace.array("mesh_pair_piece", 1, wp.vec2i)
    workspace.launch(find_pieces, size, [*shared, order, start, end, piece, 0])
    count = scan_counts(workspace, end, size)
    piece = workspace.array("mesh_pair_piece", count, wp.vec2i)
    workspace.launch(find_pieces, size, [*shared, order, start, end, piece, 1])
    row_end = workspace.array("mesh_pair_row_end", count, wp.int32)
    contact = workspace.array("staged_contact", 1, StagedContact)
    workspace.launch(collide_meshes, count, [*shared, piece, row_end, contact, 0, 0])
    return Pieces(piece, end, count, scan_counts(workspace, row_end, count), row_end)


def collide_mesh_pairs(
    shared: list[Any],
    pieces: Pieces,
    order: wp.array,
    bucket: tuple[int, int, int],
    staged: tuple[wp.array, int],
    workspace: Workspace,
) -> None:
    """Contacts of a bucket of mesh pairs. bucket: as in `room.collide_pieces`. staged: the contacts, the first row."""
    start, size, limit = bucket
    contact, first_row = staged
    workspace.launch(collide_meshes, pieces.count, [*shared, pieces.piece, pieces.row_end, contact, first_row, 1])
    arguments = [shared[2], order, start, limit, pieces.end, pieces.row_end, contact, first_row]
    workspace.launch(join_mesh_contacts, size, arguments)
