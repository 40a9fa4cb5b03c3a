"""Sub-pairs of two meshes: triangles with candidate features that may be within the maximum separation of the other."""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair
from collidecli.engine.narrowphase.triangles.mesh_mid_phase import ShapeBounds, box_intersects, box_of_shape
from collidecli.engine.narrowphase.triangles.mesh_pair_context import TOUCHES
from collidecli.engine.pair_query import Query

VERTEX_OWNED = wp.constant(0)
EDGE_OWNED = wp.constant(3)
VERTEX_SALIENT = wp.constant(6)
EDGE_SALIENT = wp.constant(9)
SPARE_ROWS = wp.constant(1 << 30)
"""Number, in place of a triangle's, of the sub-pair that reserves rows for the contacts of `region_depth`."""


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
    own = query.row_b
    other = query.row_a
    side = SearchSide()
    side.pose = query.pose_b_to_a
    if of_a:
        own = query.row_a
        other = query.row_b
        side.pose = wp.transform_inverse(query.pose_b_to_a)
    max_separation = wp.max(query.max_separation, Real(0.0))
    side.bounds = box_of_shape(rows.type[other], rows.size[other], wp.transform_inverse(side.pose), max_separation)
    side.bounds.first = meshes.header[rows.mesh[own]].first_node
    side.bounds.end = meshes.header[rows.mesh[own]].end_node
    side.other = rows.mesh[other]
    extent = wp.max(rows.size[own], rows.size[other])
    side.grown = max_separation + TOUCHES * wp.max(extent[0], wp.max(extent[1], extent[2]))
    return side


@wp.func(inline=False)
def is_beyond_max_separation(side: SearchSide, meshes: Meshes, node: int) -> bool:
    """Whether a node of own's BVH is outside other and farther from it than `grown`, from other's clearance grid."""
    lower = meshes.lower[node]
    upper = meshes.upper[node]
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
    found = int(0)
    for turn in range(2):
        side = side_of(rows, meshes, query, turn == 0)
        # A part begins at any node: nodes are in depth-first order, and each is tested by itself.
        length = (side.bounds.end - side.bounds.first) / parts + 1
        node = side.bounds.first + length * part
        stop = wp.min(side.bounds.end, node + length)
        while node < stop:
            if not box_intersects(side.bounds, meshes, node) or is_beyond_max_separation(side, meshes, node):
                node = meshes.skip[node]
                continue
            face = meshes.leaf[node]
            if face >= 0 and has_candidate_feature(meshes.owned[face]):
                found = append_sub_pair(out, found, wp.where(turn == 0, face, ~face))
            node += 1
    if part == 0 and (found > 0 or parts > 1):
        found = append_sub_pair(out, found, SPARE_ROWS)
    return found
