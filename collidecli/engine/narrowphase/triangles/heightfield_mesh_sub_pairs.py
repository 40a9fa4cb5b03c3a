"""Which triangles of a mesh and of a heightfield may say anything of each other."""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.heightfields import Field, Heightfields, field_of, highest_of_cell, named_triangle
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair
from collidecli.engine.narrowphase.triangles.heightfield_segment_triangles import wall_range
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    Traversal,
    begin_traversal,
    go_down,
    go_on,
    is_under,
    range_of,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import bits_of_face
from collidecli.engine.narrowphase.triangles.mesh_mesh_sub_pairs import SPARE_ROWS, has_work
from collidecli.engine.narrowphase.triangles.mesh_mid_phase import Near, box_of_shape, meets
from collidecli.engine.narrowphase.triangles.mesh_pair_context import TOUCHES
from collidecli.engine.pair_query import Query


@wp.struct
class Surfaces:
    """Every mesh, measured, and every heightfield of a model."""

    meshes: Meshes
    heightfields: Heightfields


@wp.struct
class Both:
    """A candidate's mesh and heightfield, as each sees the other.

    to_field, to_mesh: poses of the mesh in the heightfield's frame, and back. of_field: what the heightfield can reach
    in the mesh's frame, and the mesh's tree. of_mesh: what the mesh can reach in the heightfield's. grown: what is
    farther than this from the other's surface does not meet it [m].
    """

    mesh: int
    to_field: Pose
    to_mesh: Pose
    of_field: Near
    of_mesh: Near
    grown: Real


@wp.func
def both_of(rows: ShapeRows, meshes: Meshes, query: Query) -> Both:
    """The two of a pair."""
    both = Both()
    both.mesh = rows.mesh[query.row_a]
    both.to_mesh = query.pose_b_to_a
    both.to_field = wp.transform_inverse(query.pose_b_to_a)
    extent = wp.max(rows.size[query.row_a], rows.size[query.row_b])
    both.grown = wp.max(query.max_separation, Real(0.0)) + TOUCHES * wp.max(extent[0], wp.max(extent[1], extent[2]))
    both.of_field = box_of_shape(rows.type[query.row_b], rows.size[query.row_b], both.to_mesh, both.grown)
    both.of_mesh = box_of_shape(rows.type[query.row_a], rows.size[query.row_a], both.to_field, both.grown)
    header = meshes.header[both.mesh]
    both.of_field.first = header.first_node
    both.of_field.end = header.end_node
    return both


@wp.func(inline=False)
def is_off_field(field: Field, low: Vec3, high: Vec3) -> bool:
    """Whether a box is above all of the surface under it, beside the rectangle, or below the base."""
    if high[2] < field.bottom:
        return True
    traversal = begin_traversal(field, low, high)
    while traversal.done == 0:
        passes = not is_under(traversal)
        if not passes:
            heights = range_of(field, traversal)
            passes = heights.known == 1 and heights.high < low[2]
        if passes:
            traversal = go_on(traversal)
        elif traversal.level > 0:
            traversal = go_down(traversal)
        else:
            highest = field.level + field.scale * Real(highest_of_cell(field, traversal.i, traversal.j))
            if highest >= low[2]:
                return False
            traversal = go_on(traversal)
    return True


@wp.func
def node_is_off(both: Both, meshes: Meshes, field: Field, node: int) -> bool:
    """Whether all of a box of the mesh's tree is out of reach of the solid."""
    half = Real(0.5) * (meshes.upper[node] - meshes.lower[node])
    middle = wp.transform_point(both.to_field, meshes.lower[node] + half)
    turn = wp.quat_to_matrix(wp.transform_get_rotation(both.to_field))
    extent = Vec3(both.grown, both.grown, both.grown)
    for axis in range(3):
        for k in range(3):
            extent[axis] = extent[axis] + wp.abs(turn[axis, k]) * half[k]
    return is_off_field(field, middle - extent, middle + extent)


@wp.func(inline=False)
def face_has_work(both: Both, meshes: Meshes, field: Field, number: int) -> bool:
    """Whether a triangle of the heightfield has what sticks out, and is not known to be out of the mesh's reach."""
    shape = named_triangle(field, number)
    lower = wp.min(shape.p, wp.min(shape.q, shape.r))
    upper = wp.max(shape.p, wp.max(shape.q, shape.r))
    for axis in range(3):
        if lower[axis] > both.of_mesh.upper[axis] or upper[axis] < both.of_mesh.lower[axis]:
            return False
    middle = wp.transform_point(both.to_mesh, Real(0.5) * (lower + upper))
    if clearance_at(meshes, both.mesh, middle).free - Real(0.5) * wp.length(upper - lower) >= both.grown:
        return False
    return has_work(bits_of_face(field, number, True))


@wp.func
def traversal_of_part(both: Both, field: Field, part: int, parts: int) -> Traversal:
    """The way through a thread's share of the rows of cells that the mesh is over."""
    traversal = begin_traversal(field, both.of_mesh.lower, both.of_mesh.upper)
    share = (traversal.last_row - traversal.first_row) / parts + 1
    traversal.first_row += share * part
    if traversal.first_row > traversal.last_row:
        traversal.done = 1
    traversal.last_row = wp.min(traversal.last_row, traversal.first_row + share - 1)
    return traversal


@wp.func
def note_face(both: Both, meshes: Meshes, field: Field, number: int, out: SubPairList, found: int) -> int:
    """Notes a triangle of the heightfield that has work; how many pieces there are then."""
    if face_has_work(both, meshes, field, number):
        return append_sub_pair(out, found, ~number)
    return found


@wp.func
def faces_of_field(
    both: Both, meshes: Meshes, field: Field, part: int, parts: int, out: SubPairList, before: int
) -> int:
    """Notes a share of the heightfield's triangles that have work; how many pieces there are then."""
    found = before
    traversal = traversal_of_part(both, field, part, parts)
    while traversal.done == 0:
        passes = not is_under(traversal)
        if not passes:
            heights = range_of(field, traversal)
            passes = heights.known == 1 and (
                heights.high < both.of_mesh.lower[2] or heights.low > both.of_mesh.upper[2]
            )
        if passes:
            traversal = go_on(traversal)
        elif traversal.level > 0:
            traversal = go_down(traversal)
        else:
            first = 2 * (traversal.i * field.cols + traversal.j)
            for upper in range(2):
                found = note_face(both, meshes, field, first + upper, out, found)
            traversal = go_on(traversal)
    if part == 0:
        for side in range(4):
            numbers = wall_range(field, side, both.of_mesh.lower, both.of_mesh.upper)
            for number in range(numbers[0], numbers[1]):
                found = note_face(both, meshes, field, number, out, found)
    return found


@wp.func
def triangles_of_both(
    rows: ShapeRows, surfaces: Surfaces, query: Query, part: int, parts: int, out: SubPairList
) -> int:
    """Notes the triangles with work in a share of the mesh's tree; ~ those of the heightfield's in one of its rows."""
    meshes = surfaces.meshes
    field = field_of(surfaces.heightfields, rows.heightfield[query.row_b])
    both = both_of(rows, meshes, query)
    share = (both.of_field.end - both.of_field.first) / parts + 1
    node = both.of_field.first + share * part
    stop = wp.min(both.of_field.end, node + share)
    found = int(0)
    while node < stop:
        if not meets(both.of_field, meshes, node) or node_is_off(both, meshes, field, node):
            node = meshes.skip[node]
            continue
        face = meshes.leaf[node]
        if face >= 0 and has_work(meshes.owned[face]):
            found = append_sub_pair(out, found, face)
        node += 1
    found = faces_of_field(both, meshes, field, part, parts, out, found)
    if part == 0 and (found > 0 or parts > 1):
        found = append_sub_pair(out, found, SPARE_ROWS)
    return found
