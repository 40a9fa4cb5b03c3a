"""Between broad and narrow phase: which triangles of its mesh each candidate is to be tested against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import bounding_box
from collidecli.engine.geometry.mesh_nearest import nearest_place, outward_at, square_to_box
from collidecli.engine.geometry.meshes import HEADER, Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import PLANE
from collidecli.engine.narrow_phase.query import query_of
from collidecli.engine.narrow_phase.staging import Candidates
from collidecli.engine.workspace import Workspace


@wp.struct
class Near:
    """What a shape can reach, in the frame of a mesh [m]: a box, or of a plane what is not above its surface.

    normal, height: points x with normal.x below height; the normal is zero for other shapes.
    """

    lower: Vec3
    upper: Vec3
    normal: Vec3
    height: Real
    first: int
    end: int


@wp.func
def box_of_shape(shape_type: int, size: Vec3, pose: Pose, reach: Real) -> Near:
    """What a shape can reach, of a pose in the mesh's frame; the mesh's boxes are left open."""
    near = Near()
    box = bounding_box(shape_type, size, pose, reach)
    # Grown by more than the rounding of the pose.
    position = wp.abs(wp.transform_get_translation(pose))
    slack = Real(1.0e-12) * (position[0] + position[1] + position[2])
    near.lower = box.lower - Vec3(slack, slack, slack)
    near.upper = box.upper + Vec3(slack, slack, slack)
    if shape_type == PLANE:
        near.normal = wp.transform_vector(pose, Vec3(Real(0.0), Real(0.0), Real(1.0)))
        near.height = wp.dot(near.normal, wp.transform_get_translation(pose)) + reach + slack
    return near


@wp.func(inline=False)
def near_of(rows: ShapeRows, instances: Instances, candidates: Candidates, candidate: int) -> Near:
    """What the shape of a candidate can reach, and the boxes of its mesh."""
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    reach = wp.max(query.reach, Real(0.0))
    near = box_of_shape(rows.type[query.row_a], rows.size[query.row_a], pose_a_to_b, reach)
    head = rows.mesh[query.row_b] * wp.static(HEADER)
    near.first = rows.meshes.header[head + 3]
    near.end = rows.meshes.header[head + 4]
    return near


@wp.func
def meets(near: Near, meshes: Meshes, node: int) -> bool:
    """Whether a box of the tree is within reach."""
    lower = meshes.lower[node]
    upper = meshes.upper[node]
    for axis in range(3):
        if lower[axis] > near.upper[axis] or upper[axis] < near.lower[axis]:
            return False
    lowest = wp.min(wp.cw_mul(near.normal, lower), wp.cw_mul(near.normal, upper))
    return lowest[0] + lowest[1] + lowest[2] <= near.height


@wp.func(inline=False)
def way_out(rows: ShapeRows, instances: Instances, candidates: Candidates, candidate: int) -> int:
    """The triangle nearest to the origin of a shape that is inside a closed mesh; else -1."""
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    mesh = rows.mesh[query.row_b]
    if rows.type[query.row_a] == PLANE or rows.meshes.header[mesh * wp.static(HEADER) + 6] == 0:
        return -1
    origin = wp.transform_get_translation(wp.transform_inverse(query.pose_b_to_a))
    root = rows.meshes.header[mesh * wp.static(HEADER) + 3]
    if square_to_box(rows.meshes, root, origin) > Real(0.0):
        return -1
    place = nearest_place(rows.meshes, mesh, origin)
    if wp.dot(origin - place.point, outward_at(rows.meshes, place.face, place.part)) >= Real(0.0):
        return -1
    return place.face


@wp.kernel(module="unique", enable_backward=False)
def count_triangles(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    end: wp.array[wp.int32],
):
    """One thread a candidate of a bucket: how many triangles it may meet."""
    thread = wp.tid()
    near = near_of(rows, instances, candidates, order[start + thread])
    found = int(0)
    node = near.first
    while node < near.end:
        if meets(near, rows.meshes, node):
            if rows.meshes.leaf[node] >= 0:
                found += 1
            node += 1
        else:
            node = rows.meshes.skip[node]
    if way_out(rows, instances, candidates, order[start + thread]) >= 0:
        found += 1
    end[thread] = found


@wp.kernel(module="unique", enable_backward=False)
def write_triangles(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    end: wp.array[wp.int32],
    piece: wp.array[wp.vec2i],
):
    """One thread a candidate: its number and each triangle, in the order of the tree; then ~ that of `way_out`."""
    thread = wp.tid()
    slot = int(0)
    if thread > 0:
        slot = end[thread - 1]
    if slot == end[thread]:
        return
    near = near_of(rows, instances, candidates, order[start + thread])
    node = near.first
    while node < near.end:
        if meets(near, rows.meshes, node):
            if rows.meshes.leaf[node] >= 0:
                piece[slot] = wp.vec2i(order[start + thread], rows.meshes.leaf[node])
                slot += 1
            node += 1
        else:
            node = rows.meshes.skip[node]
    if slot < end[thread]:
        piece[slot] = wp.vec2i(order[start + thread], ~way_out(rows, instances, candidates, order[start + thread]))


@dataclass(frozen=True)
class Pieces:
    """A bucket's candidates with a triangle each. piece: vec2i, candidate and triangle, or ~triangle of `way_out`.
    end: of each candidate's."""

    piece: wp.array
    end: wp.array
    count: int


def find_triangles(
    name: str, shared: list[Any], order: wp.array, start: int, size: int, workspace: Workspace
) -> Pieces:
    """The pieces of the bucket order[start:start + size]. name: of the room. shared: rows, instances, candidates."""
    end = workspace.array(f"{name}_end", size, wp.int32)
    arguments = [*shared, order, start]
    workspace.launch(count_triangles, size, [*arguments, end])
    count = scan_counts(workspace, end, size)
    piece = workspace.array(f"{name}_piece", count, wp.vec2i)
    workspace.launch(write_triangles, size, [*arguments, end, piece])
    return Pieces(piece, end, count)
