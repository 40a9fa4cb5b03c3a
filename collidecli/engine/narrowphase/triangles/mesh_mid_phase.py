"""Mid phase of convex shapes against meshes: the triangles that each candidate is tested against, by BVH traversal."""

import warp as wp

from collidecli.engine.candidates import Query, hull_of
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.bounds import bounding_box
from collidecli.engine.geometry.hulls import HullShape
from collidecli.engine.geometry.meshes import Meshes, is_inside_mesh, nearest_mesh_point, square_to_box
from collidecli.engine.geometry.primitives import Primitive, support_point
from collidecli.engine.geometry.real import CONVEX_MESH, PLANE, Pose, Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import SubPairList, append_sub_pair, has_all

# Interior points of convex shapes.

# ruff: noqa: F811


@wp.func
def middle_of(shape: Primitive) -> Vec3:
    """An interior point of a primitive, its own frame [m]."""
    return Vec3()


@wp.func
def middle_of(shape: HullShape) -> Vec3:
    """An interior point of a hull, its own frame [m]; the middle of its AABB need not be one."""
    total = Vec3()
    for axis in range(3):
        direction = Vec3()
        direction[axis] = Real(1.0)
        total += support_point(shape, direction) + support_point(shape, -direction)
    return total / Real(6.0)


@wp.func(inline=False)
def middle_of_row(rows: ShapeRows, row: int) -> Vec3:
    """An interior point of a convex shape, its own frame [m]."""
    if rows.type[row] == CONVEX_MESH:
        return middle_of(hull_of(rows, row))
    return Vec3()


@wp.struct
class ShapeBounds:
    """Bounds of a shape grown by the maximum separation, in the frame of a mesh [m].

    lower, upper: AABB. normal, height: of a plane, the half-space normal.x <= height; the normal of other shapes is
    zero. first, end: nodes of the mesh's BVH.
    """

    lower: Vec3
    upper: Vec3
    normal: Vec3
    height: Real
    first: int
    end: int


@wp.func
def box_of_shape(shape_type: int, size: Vec3, pose: Pose, max_separation: Real) -> ShapeBounds:
    """Bounds of a shape at a pose in the mesh's frame; the BVH is left unset."""
    bounds = ShapeBounds()
    box = bounding_box(shape_type, size, pose, max_separation)
    # Grown by more than the rounding error of the pose.
    position = wp.abs(wp.transform_get_translation(pose))
    slack = Real(1.0e-12) * (position[0] + position[1] + position[2])
    bounds.lower = box.lower - Vec3(slack, slack, slack)
    bounds.upper = box.upper + Vec3(slack, slack, slack)
    if shape_type == PLANE:
        bounds.normal = wp.transform_vector(pose, Vec3(Real(0.0), Real(0.0), Real(1.0)))
        bounds.height = wp.dot(bounds.normal, wp.transform_get_translation(pose)) + max_separation + slack
    return bounds


@wp.func
def bounds_of_shape(rows: ShapeRows, meshes: Meshes, query: Query) -> ShapeBounds:
    """Bounds of the convex shape of a pair, and the BVH of its mesh."""
    pose_a_to_b = wp.transform_inverse(query.pose_b_to_a)
    max_separation = wp.max(query.max_separation, Real(0.0))
    bounds = box_of_shape(rows.type[query.row_a], rows.size[query.row_a], pose_a_to_b, max_separation)
    bounds.first = meshes.arrays[0].header[rows.mesh[query.row_b]].first_node
    bounds.end = meshes.arrays[0].header[rows.mesh[query.row_b]].end_node
    return bounds


@wp.func
def box_intersects(bounds: ShapeBounds, meshes: Meshes, node: int) -> bool:
    """Whether a node of the BVH intersects the bounds."""
    lower = meshes.arrays[0].lower[node]
    upper = meshes.arrays[0].upper[node]
    for axis in range(3):
        if lower[axis] > bounds.upper[axis] or upper[axis] < bounds.lower[axis]:
            return False
    lowest = wp.min(wp.cw_mul(bounds.normal, lower), wp.cw_mul(bounds.normal, upper))
    return lowest[0] + lowest[1] + lowest[2] <= bounds.height


@wp.func(inline=False)
def exit_face(meshes: Meshes, mesh: int, middle: Vec3) -> int:
    """The triangle closest to the middle of a shape, if the middle is inside a closed mesh; else -1."""
    if meshes.arrays[0].header[mesh].is_closed == 0:
        return -1
    root = meshes.arrays[0].header[mesh].first_node
    if square_to_box(meshes, root, middle) > Real(0.0):
        return -1
    closest = nearest_mesh_point(meshes, mesh, middle)
    if not is_inside_mesh(meshes, mesh, middle, closest):
        return -1
    return closest.face


@wp.func(inline=True)
def triangles_near(rows: ShapeRows, meshes: Meshes, query: Query, part: int, parts: int, out: SubPairList) -> int:
    """Appends the triangles in the bounds, in BVH order, then ~ that of `exit_face`; `parts` is 1."""
    bounds = bounds_of_shape(rows, meshes, query)
    found = int(0)
    node = bounds.first
    while node < bounds.end:
        if box_intersects(bounds, meshes, node):
            if meshes.arrays[0].leaf[node] >= 0:
                found = append_sub_pair(out, found, meshes.arrays[0].leaf[node])
            node += 1
        else:
            node = meshes.arrays[0].skip[node]
    if rows.type[query.row_a] != PLANE and not has_all(out, found):
        middle = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), middle_of_row(rows, query.row_a))
        face = exit_face(meshes, rows.mesh[query.row_b], middle)
        if face >= 0:
            found = append_sub_pair(out, found, ~face)
    return found
