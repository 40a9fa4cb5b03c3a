"""Which triangles of two meshes may say anything of each other: those with work, and not known to be out of reach."""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import clearance_at, is_free
from collidecli.engine.geometry.meshes import HEADER, Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrow_phase.in_pieces import PieceList, note_piece
from collidecli.engine.narrow_phase.mesh.mid_phase import Near, box_of_shape, meets
from collidecli.engine.narrow_phase.mesh.view import TOUCHES
from collidecli.engine.narrow_phase.query import Query

VERTEX_OWNED = wp.constant(0)
EDGE_OWNED = wp.constant(3)
VERTEX_SALIENT = wp.constant(6)
EDGE_SALIENT = wp.constant(9)
SWALLOWED = wp.constant(1 << 30)
"""Stands for a triangle's number in a piece that keeps room for a contact of `swallowed`."""


@wp.struct
class Side:
    """One mesh of a pair, whose triangles are sought, and the other.

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
def side_of(rows: ShapeRows, meshes: Meshes, query: Query, of_a: bool) -> Side:
    """One mesh of a pair. What is behind an open sheet may be far from it: no box bounds that."""
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
    side.near.first = meshes.header[head + 3]
    side.near.end = meshes.header[head + 4]
    side.other = rows.mesh[other]
    side.origin = wp.transform_get_translation(side.pose)
    extent = wp.max(rows.size[own], rows.size[other])
    side.grown = reach + TOUCHES * wp.max(extent[0], wp.max(extent[1], extent[2]))
    if meshes.header[side.other * wp.static(HEADER) + 6] == 0:
        side.is_open = 1
        if meets(side.near, meshes, side.near.first):
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


@wp.func
def hides_in(meshes: Meshes, own: int, other: int) -> bool:
    """Whether a mesh may have a place inside another that its vertices and edges do not tell of."""
    hides = meshes.header[own * wp.static(HEADER) + 7] == 1
    return hides and meshes.header[other * wp.static(HEADER) + 6] == 1


@wp.func
def may_hide(meshes: Meshes, mesh_a: int, mesh_b: int) -> bool:
    """Whether one of two meshes may in the other."""
    return hides_in(meshes, mesh_a, mesh_b) or hides_in(meshes, mesh_b, mesh_a)


@wp.func(inline=True)
def triangles_of_both(rows: ShapeRows, meshes: Meshes, query: Query, part: int, parts: int, out: PieceList) -> int:
    """Notes the triangles with work in a share of both trees: those of a; ~ those of b. In the order of the trees."""
    found = int(0)
    for turn in range(2):
        side = side_of(rows, meshes, query, turn == 0)
        # A share begins anywhere: boxes are in depth-first order, and each is asked for itself.
        share = (side.near.end - side.near.first) / parts + 1
        node = side.near.first + share * part
        stop = wp.min(side.near.end, node + share)
        while node < stop:
            if not meets(side.near, meshes, node) or is_out_of_reach(side, meshes, node):
                node = meshes.skip[node]
                continue
            face = meshes.leaf[node]
            if face >= 0 and has_work(meshes.owned[face]):
                found = note_piece(out, found, wp.where(turn == 0, face, ~face))
            node += 1
    if part == 0 and (found > 0 or parts > 1) and may_hide(meshes, rows.mesh[query.row_a], rows.mesh[query.row_b]):
        found = note_piece(out, found, SWALLOWED)
    return found
