"""Between broad and narrow phase: which triangles of its mesh each candidate is to be tested against."""

from __future__ import annotations

import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import bounding_box
from collidecli.engine.geometry.mesh_nearest import is_inside_mesh, nearest_place, square_to_box
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.shape_codes import PLANE
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair, has_all
from collidecli.engine.pair_query import Query


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
def box_of_shape(shape_type: int, size: Vec3, pose: Pose, max_separation: Real) -> Near:
    """What a shape can reach, of a pose in the mesh's frame; the mesh's boxes are left open."""
    near = Near()
    box = bounding_box(shape_type, size, pose, max_separation)
    # Grown by more than the rounding of the pose.
    position = wp.abs(wp.transform_get_translation(pose))
    slack = Real(1.0e-12) * (position[0] + position[1] + position[2])
    near.lower = box.lower - Vec3(slack, slack, slack)
    near.upper = box.upper + Vec3(slack, slack, slack)
    if shape_type == PLANE:
        near.normal = wp.transform_vector(pose, Vec3(Real(0.0), Real(0.0), Real(1.0)))
        near.height = wp.dot(near.normal, wp.transform_get_translation(pose)) + max_separation + slack
    return near


@wp.func
def near_of(rows: ShapeRows, meshes: Meshes, query: Query) -> Near:
    """What the shape of a pair can reach, and the boxes of its mesh."""
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    max_separation = wp.max(query.max_separation, Real(0.0))
    near = box_of_shape(rows.type[query.row_a], rows.size[query.row_a], pose_a_to_b, max_separation)
    header = meshes.header[rows.mesh[query.row_b]]
    near.first = header.first_node
    near.end = header.end_node
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
def exit_place(meshes: Meshes, mesh: int, origin: Vec3) -> int:
    """The triangle nearest to the origin of a shape that is inside a closed mesh; else -1."""
    if meshes.header[mesh].is_closed == 0:
        return -1
    root = meshes.header[mesh].first_node
    if square_to_box(meshes, root, origin) > Real(0.0):
        return -1
    place = nearest_place(meshes, mesh, origin)
    if not is_inside_mesh(meshes, mesh, origin, place):
        return -1
    return place.face


@wp.func(inline=True)
def triangles_near(rows: ShapeRows, meshes: Meshes, query: Query, part: int, parts: int, out: SubPairList) -> int:
    """Notes the triangles that a shape may meet, in the order of the tree, in one part; then ~ that of `exit_place`."""
    near = near_of(rows, meshes, query)
    found = int(0)
    node = near.first
    while node < near.end:
        if meets(near, meshes, node):
            if meshes.leaf[node] >= 0:
                found = append_sub_pair(out, found, meshes.leaf[node])
            node += 1
        else:
            node = meshes.skip[node]
    if rows.type[query.row_a] != PLANE and not has_all(out, found):
        origin = wp.transform_get_translation(wp.transform_inverse(query.pose_b_to_a))
        face = exit_place(meshes, rows.mesh[query.row_b], origin)
        if face >= 0:
            found = append_sub_pair(out, found, ~face)
    return found
