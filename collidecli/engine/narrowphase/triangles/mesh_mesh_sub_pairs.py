"""Which triangles of two meshes may say anything of each other: those with work, and not known to be out of reach."""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair
from collidecli.engine.narrowphase.triangles.mesh_mid_phase import Near, box_of_shape, meets
from collidecli.engine.narrowphase.triangles.mesh_pair_context import TOUCHES
from collidecli.engine.pair_query import Query

VERTEX_OWNED = wp.constant(0)
EDGE_OWNED = wp.constant(3)
VERTEX_SALIENT = wp.constant(6)
EDGE_SALIENT = wp.constant(9)
SPARE_ROWS = wp.constant(1 << 30)
"""Stands for a triangle's number in a piece that keeps rows for the contacts of `region_depth`."""


@wp.struct
class Side:
    """One mesh of a pair, whose triangles are sought, and the other.

    near: what the other can reach, in its own frame, and its tree. other: the other mesh. pose: own's frame in other's.
    grown: what is farther than this from the other's surface does not meet it [m].
    """

    near: Near
    other: int
    pose: Pose
    grown: Real


@wp.func(inline=False)
def side_of(rows: ShapeRows, meshes: Meshes, query: Query, of_a: bool) -> Side:
    """One mesh of a pair."""
    own = query.row_b
    other = query.row_a
    side = Side()
    side.pose = query.pose_b_to_a
    if of_a:
        own = query.row_a
        other = query.row_b
        side.pose = wp.transform_inverse(query.pose_b_to_a)
    max_separation = wp.max(query.max_separation, Real(0.0))
    side.near = box_of_shape(rows.type[other], rows.size[other], wp.transform_inverse(side.pose), max_separation)
    header = meshes.header[rows.mesh[own]]
    side.near.first = header.first_node
    side.near.end = header.end_node
    side.other = rows.mesh[other]
    extent = wp.max(rows.size[own], rows.size[other])
    side.grown = max_separation + TOUCHES * wp.max(extent[0], wp.max(extent[1], extent[2]))
    return side


@wp.func(inline=False)
def is_beyond_max_separation(side: Side, meshes: Meshes, node: int) -> bool:
    """Whether all of a box of own's tree is known to be out of reach of the other's surface, and outside."""
    lower = meshes.lower[node]
    upper = meshes.upper[node]
    middle = wp.transform_point(side.pose, Real(0.5) * (lower + upper))
    radius = Real(0.5) * wp.length(upper - lower)
    return clearance_at(meshes, side.other, middle).free - radius >= side.grown


@wp.func
def has_work(bits: int) -> bool:
    """Whether a triangle is the first with a salient corner or side."""
    return ((bits >> VERTEX_OWNED) & (bits >> VERTEX_SALIENT) & 63) != 0


@wp.func(inline=True)
def triangles_of_both(rows: ShapeRows, meshes: Meshes, query: Query, part: int, parts: int, out: SubPairList) -> int:
    """Notes the triangles with work in a share of both trees: those of a; ~ those of b. In the order of the trees."""
    found = int(0)
    for turn in range(2):
        side = side_of(rows, meshes, query, turn == 0)
        # A share begins anywhere: boxes are in depth-first order, and each is asked for itself.
        share = (side.near.end - side.near.first) / parts + 1
        node = side.near.first + share * part
        stop = wp.min(side.near.end, node + share)
        while node < stop:
            if not meets(side.near, meshes, node) or is_beyond_max_separation(side, meshes, node):
                node = meshes.skip[node]
                continue
            face = meshes.leaf[node]
            if face >= 0 and has_work(meshes.owned[face]):
                found = append_sub_pair(out, found, wp.where(turn == 0, face, ~face))
            node += 1
    if part == 0 and (found > 0 or parts > 1):
        found = append_sub_pair(out, found, SPARE_ROWS)
    return found
