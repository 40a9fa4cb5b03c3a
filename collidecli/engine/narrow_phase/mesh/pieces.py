"""Which triangles of two meshes may say anything of each other: those with work, and not known to be out of reach."""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import clearance_at, is_free
from collidecli.engine.geometry.meshes import HEADER, Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrow_phase.mesh.mid_phase import Near, box_of_shape, meets
from collidecli.engine.narrow_phase.mesh.view import TOUCHES
from collidecli.engine.narrow_phase.query import query_of
from collidecli.engine.narrow_phase.staging import Candidates
from collidecli.engine.workspace import Workspace

VERTEX_OWNED = wp.constant(0)
EDGE_OWNED = wp.constant(3)
VERTEX_SALIENT = wp.constant(6)
EDGE_SALIENT = wp.constant(9)
CUDA_PARTS = 32
"""Threads that share a candidate's trees where there are many cores; a core of its own goes through them in one."""


@wp.struct
class Side:
    """One mesh of a candidate, whose triangles are sought, and the other.

    near: what the other can reach, in its own frame, and its tree. other: the other mesh. pose: own's frame in other's.
    origin: of own's frame there. grown: what is farther than this from the other's surface does not meet it [m].
    is_open: 1 where the other has no inside.
    """

    near: Near
    other: int
    pose: Pose
    origin: Vec3
    grown: Real
    is_open: int


@wp.func(inline=False)
def side_of(rows: ShapeRows, instances: Instances, candidates: Candidates, candidate: int, of_a: bool) -> Side:
    """One mesh of a candidate. What is behind an open sheet may be far from it: no box bounds that."""
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    own = query.row_b
    other = query.row_a
    side = Side()
    side.pose = query.pose_b_to_a
    if of_a:
        own = query.row_a
        other = query.row_b
        side.pose = wp.transform_inverse(query.pose_b_to_a)
    reach = wp.max(query.reach, Real(0.0))
    side.near = box_of_shape(rows.type[other], rows.size[other], wp.transform_inverse(side.pose), reach)
    head = rows.mesh[own] * wp.static(HEADER)
    side.near.first = rows.meshes.header[head + 3]
    side.near.end = rows.meshes.header[head + 4]
    side.other = rows.mesh[other]
    side.origin = wp.transform_get_translation(side.pose)
    extent = wp.max(rows.size[own], rows.size[other])
    side.grown = reach + TOUCHES * wp.max(extent[0], wp.max(extent[1], extent[2]))
    if rows.meshes.header[side.other * wp.static(HEADER) + 6] == 0:
        side.is_open = 1
        if meets(side.near, rows.meshes, side.near.first):
            side.near.upper = Vec3(Real(wp.inf), Real(wp.inf), Real(wp.inf))
            side.near.lower = -side.near.upper
    return side


@wp.func(inline=False)
def is_out_of_reach(side: Side, meshes: Meshes, node: int) -> bool:
    """Whether all of a box of own's tree is known to be out of reach, and not behind the other's surface."""
    lower = meshes.lower[node]
    upper = meshes.upper[node]
    middle = wp.transform_point(side.pose, Real(0.5) * (lower + upper))
    radius = Real(0.5) * wp.length(upper - lower)
    if clearance_at(meshes, side.other, middle).free - radius < side.grown:
        return False
    return side.is_open == 0 or is_free(meshes, side.other, middle, radius, side.origin)


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
    parts: int,
    end: wp.array[wp.int32],
    piece: wp.array[wp.vec2i],
    writes: int,
):
    """`parts` threads a candidate, each with a share of both trees: how many triangles there, or, once that is scanned,
    which.

    piece: the candidate's number, and a triangle of a; ~triangle of b. In the order of the trees, a's first.
    """
    thread = wp.tid()
    candidate = order[start + thread / parts]
    slot = int(0)
    if writes == 1 and thread > 0:
        slot = end[thread - 1]
    found = int(0)
    for turn in range(2):
        side = side_of(rows, instances, candidates, candidate, turn == 0)
        # A share begins anywhere: boxes are in depth-first order, and each is asked for itself.
        share = (side.near.end - side.near.first) / parts + 1
        node = side.near.first + share * (thread % parts)
        stop = wp.min(side.near.end, node + share)
        while node < stop:
            if not meets(side.near, rows.meshes, node) or is_out_of_reach(side, rows.meshes, node):
                node = rows.meshes.skip[node]
                continue
            face = rows.meshes.leaf[node]
            if face >= 0 and has_work(rows.meshes.owned[face]):
                if writes == 1:
                    piece[slot + found] = wp.vec2i(candidate, wp.where(turn == 0, face, ~face))
                found += 1
            node += 1
    if writes == 0:
        end[thread] = found


def find_mesh_triangles(
    shared: list[Any], order: wp.array, start: int, size: int, workspace: Workspace
) -> tuple[wp.array, wp.array, int, int]:
    """The pieces of the bucket order[start:start + size], where each thread's end, how many, and threads a candidate.

    shared: rows, instances, candidates.
    """
    parts = 1 if workspace.device.is_cpu else CUDA_PARTS
    end = workspace.array("mesh_pair_end", size * parts, wp.int32)
    piece = workspace.array("mesh_pair_piece", 1, wp.vec2i)
    workspace.launch(find_pieces, size * parts, [*shared, order, start, parts, end, piece, 0])
    count = scan_counts(workspace, end, size * parts)
    piece = workspace.array("mesh_pair_piece", count, wp.vec2i)
    workspace.launch(find_pieces, size * parts, [*shared, order, start, parts, end, piece, 1])
    return piece, end, count, parts
