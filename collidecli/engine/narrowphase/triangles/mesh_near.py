"""Triangles of a mesh near a shape."""

from __future__ import annotations

import warp as wp

from collidecli.engine.collider_query import Query, hull_of
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import box_intersects, box_of_shape
from collidecli.engine.geometry.mesh_points import is_inside_mesh, nearest_mesh_point
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.primitives import middle_of
from collidecli.engine.geometry.real import CONVEX_MESH, PLANE, Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair, has_all
from collidecli.engine.narrowphase.triangles.surface import is_in_box


@wp.func(inline=False)
def middle_of_row(rows: ShapeRows, row: int) -> Vec3:
    """An interior point of a convex shape, its own frame [m]."""
    if rows.type[row] == CONVEX_MESH:
        return middle_of(hull_of(rows, row))
    return Vec3()


@wp.func(inline=False)
def exit_face(meshes: Meshes, mesh: int, middle: Vec3) -> int:
    """The triangle closest to the middle of a shape, if the middle is inside a closed mesh; else
    -1."""
    if meshes.arrays[0].header[mesh].is_closed == 0:
        return -1
    if not is_in_box(meshes, mesh, middle, Real(0.0)):
        return -1
    closest = nearest_mesh_point(meshes, mesh, middle)
    return wp.where(is_inside_mesh(meshes, mesh, middle, closest), closest.face, -1)


@wp.func(inline=True)
def mesh_triangles_near(
    rows: ShapeRows, meshes: Meshes, query: Query, part: int, parts: int, out: SubPairList
) -> int:
    """Appends the triangles in the bounds, in BVH order, then ~ that of `exit_face`; `parts` is
    1."""
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    max_separation = wp.max(query.max_separation, Real(0.0))
    bounds = box_of_shape(
        rows.type[query.row_a], rows.size[query.row_a], pose_a_to_b, max_separation
    )
    mesh = rows.mesh[query.row_b]
    count = int(0)
    node = meshes.arrays[0].header[mesh].first_node
    stop = meshes.arrays[0].header[mesh].end_node
    while node < stop:
        if box_intersects(bounds, meshes, node):
            if meshes.arrays[0].leaf[node] >= 0:
                count = append_sub_pair(out, count, meshes.arrays[0].leaf[node])
            node += 1
        else:
            node = meshes.arrays[0].skip[node]
    if rows.type[query.row_a] != PLANE and not has_all(out, count):
        face = exit_face(
            meshes, mesh, wp.transform_point(pose_a_to_b, middle_of_row(rows, query.row_a))
        )
        if face >= 0:
            count = append_sub_pair(out, count, ~face)
    return count
