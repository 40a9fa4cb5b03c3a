"""Interior queries of a triangle source: closest point, clearance, containment, depth and chords of a surface.

Each function has one overload for `Meshes` and one for `HeightfieldPair`; `triangle_source` states the contract. Points
are in the frame of the surface.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.mesh_nearest import (
    MeshPoint,
    is_inside_mesh,
    nearest_mesh_point_within,
    segment_crosses_triangle,
)
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_interior import (
    HeightfieldPair,
    chord_in_field,
    deepest_of_part,
    depth_in_field,
    exit_point,
)
from collidecli.engine.narrowphase.triangles.heightfield_nearest import is_inside
from collidecli.engine.narrowphase.triangles.heightfield_triangles import outward_of_face
from collidecli.engine.narrowphase.triangles.triangle_source import (
    begin_in_box,
    closed_flag,
    corner_on,
    next_in_box,
    normal_on,
)

# ruff: noqa: F811


@wp.func
def nearest_on(meshes: Meshes, surface: int, point: Vec3) -> MeshPoint:
    """Closest point of a mesh."""
    return nearest_mesh_point_within(meshes, surface, point, clearance_at(meshes, surface, point).square)


@wp.func
def nearest_on(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> MeshPoint:
    """Closest point of the mesh; of the heightfield, closest exit point, with face -1 for a point outside."""
    closest = MeshPoint()
    closest.face = -1
    if surface >= 0:
        closest = nearest_mesh_point_within(
            heightfield_pair.meshes, surface, point, clearance_at(heightfield_pair.meshes, surface, point).square
        )
    elif is_inside(heightfield_pair.field, point):
        closest = exit_point(heightfield_pair, point)
    return closest


@wp.func
def free_radius(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that is on the outer side of a mesh [m]; not positive where none is known."""
    return clearance_at(meshes, surface, point).free


@wp.func
def free_radius(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that is outside the mesh, or outside the heightfield's box, [m].

    The origin of the heightfield's frame is the centre of its box.
    """
    if surface < 0:
        field = heightfield_pair.field
        beside = wp.max(wp.abs(point[0]) - field.half_x, wp.abs(point[1]) - field.half_y)
        return wp.max(beside, wp.abs(point[2]) + field.bottom)
    return clearance_at(heightfield_pair.meshes, surface, point).free


@wp.func
def surface_clearance(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that intersects no triangle of a mesh [m]; not positive where none is known."""
    return clearance_at(meshes, surface, point).empty


@wp.func
def surface_clearance(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that intersects no triangle; for the heightfield from its box [m]."""
    if surface < 0:
        return free_radius(heightfield_pair, surface, point)
    return clearance_at(heightfield_pair.meshes, surface, point).empty


@wp.func(inline=False)
def is_within(meshes: Meshes, surface: int, point: Vec3) -> bool:
    """Whether a point is inside a closed mesh."""
    return is_inside_mesh(meshes, surface, point, nearest_on(meshes, surface, point))


@wp.func
def is_within(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> bool:
    """Whether a point is inside the mesh or the heightfield; below a base that is no exit counts as inside."""
    if surface >= 0:
        return is_within(heightfield_pair.meshes, surface, point)
    field = heightfield_pair.field
    if is_inside(field, point):
        return True
    over_base = wp.abs(point[0]) < field.half_x and wp.abs(point[1]) < field.half_y
    return heightfield_pair.beneath == 0 and over_base and point[2] <= field.bottom


@wp.func
def is_within_by(meshes: Meshes, surface: int, point: Vec3, closest: MeshPoint) -> bool:
    """Whether a point is inside a closed mesh, from its closest point."""
    return is_inside_mesh(meshes, surface, point, closest)


@wp.func
def is_within_by(heightfield_pair: HeightfieldPair, surface: int, point: Vec3, closest: MeshPoint) -> bool:
    """Whether a point is inside the mesh, from its closest point, or inside the heightfield, from its exit point."""
    if surface < 0:
        outward = outward_of_face(heightfield_pair.field, closest.face, closest.part)
        return wp.dot(point - closest.point, outward) < Real(0.0)
    return is_inside_mesh(heightfield_pair.meshes, surface, point, closest)


@wp.func
def is_in_box(meshes: Meshes, mesh: int, point: Vec3) -> bool:
    """Whether a point is in the AABB of a mesh."""
    root = meshes.arrays[0].header[mesh].first_node
    inside = bool(True)
    for axis in range(3):
        inside = (
            inside
            and point[axis] >= meshes.arrays[0].lower[root][axis]
            and point[axis] <= meshes.arrays[0].upper[root][axis]
        )
    return inside


@wp.func(inline=False)
def depth_inside(meshes: Meshes, mesh: int, point: Vec3, touch: Real) -> Real:
    """Depth of a point inside a closed mesh, negative outside [m]; -inf, without a search, far outside.

    touch: least distance outside that counts as far [m].
    """
    if not is_in_box(meshes, mesh, point):
        return -Real(wp.inf)
    clearance = clearance_at(meshes, mesh, point)
    if clearance.free > touch:
        return -Real(wp.inf)
    closest = nearest_mesh_point_within(meshes, mesh, point, clearance.square)
    depth = wp.sqrt(closest.square)
    if not is_inside_mesh(meshes, mesh, point, closest):
        return -depth
    return depth


@wp.func
def depth_inside(heightfield_pair: HeightfieldPair, mesh: int, point: Vec3, touch: Real) -> Real:
    """Depth of a point inside the mesh or the heightfield [m]; outside the heightfield 0 within touch, else -inf."""
    if mesh < 0:
        return depth_in_field(heightfield_pair, point, touch)
    return depth_inside(heightfield_pair.meshes, mesh, point, touch)


@wp.func
def exit_point_of(meshes: Meshes, surface: int, point: Vec3, touch: Real) -> MeshPoint:
    """Closest point of a closed mesh to a point inside it by more than touch [m]; face -1 for any other point."""
    result = MeshPoint()
    result.face = -1
    if closed_flag(meshes, surface) == 0:
        return result
    clearance = clearance_at(meshes, surface, point)
    if clearance.free > Real(0.0) or not is_in_box(meshes, surface, point):
        return result
    closest = nearest_mesh_point_within(meshes, surface, point, clearance.square)
    if wp.sqrt(closest.square) <= touch or not is_inside_mesh(meshes, surface, point, closest):
        return result
    return closest


@wp.func
def exit_point_of(heightfield_pair: HeightfieldPair, surface: int, point: Vec3, touch: Real) -> MeshPoint:
    """Closest exit point of the mesh or the heightfield for a point deeper inside than touch [m]; else face -1."""
    if surface >= 0:
        return exit_point_of(heightfield_pair.meshes, surface, point, touch)
    result = MeshPoint()
    result.face = -1
    if not is_inside(heightfield_pair.field, point):
        return result
    closest = exit_point(heightfield_pair, point)
    if wp.sqrt(closest.square) <= touch:
        return result
    return closest


@wp.func
def origin_on(meshes: Meshes, surface: int, origin: Vec3, pose: Pose, point: Vec3) -> Vec3:
    """A point behind a surface point, in the frame that `pose` maps to: the mesh's origin, which is given."""
    return origin


@wp.func
def origin_on(heightfield_pair: HeightfieldPair, surface: int, origin: Vec3, pose: Pose, point: Vec3) -> Vec3:
    """A point behind a surface point, in the frame that `pose` maps to.

    The mesh's origin; on the heightfield the point of its base below the surface point.
    """
    if surface < 0:
        below = wp.transform_point(wp.transform_inverse(pose), point)
        below[2] = wp.min(below[2], heightfield_pair.field.bottom)
        return wp.transform_point(pose, below)
    return origin


@wp.func
def crossing_parameter(source: Any, surface: int, target: int, start: Vec3, end: Vec3) -> Real:
    """Parameter t in [0, 1] at which a segment crosses the plane of a triangle; negated where it exits the solid."""
    normal = normal_on(source, surface, target)
    corner = corner_on(source, surface, target, 0)
    low = wp.dot(normal, start - corner)
    high = wp.dot(normal, end - corner)
    t = low / (low - high)
    return wp.where(low > high, t, -t)


@wp.func(inline=False)
def chord_of(meshes: Meshes, mesh: int, start: Vec3, end: Vec3, at: Real) -> wp.vec2d:
    """The interval of a segment's parameter around `at` in which the segment crosses no triangle of a mesh.

    Its ends are -1 and 2 where the segment crosses no triangle on that side.
    """
    low = wp.min(start, end)
    high = wp.max(start, end)
    begins = Real(-1.0)
    ends = Real(2.0)
    cursor = begin_in_box(meshes, mesh, low, high)
    while cursor.number >= 0:
        if segment_crosses_triangle(meshes, cursor.number, start, end):
            t = wp.abs(crossing_parameter(meshes, mesh, cursor.number, start, end))
            if t <= at:
                begins = wp.max(begins, t)
            else:
                ends = wp.min(ends, t)
        cursor = next_in_box(meshes, mesh, cursor, low, high)
    return wp.vec2d(begins, ends)


@wp.func
def chord_of(heightfield_pair: HeightfieldPair, mesh: int, start: Vec3, end: Vec3, at: Real) -> wp.vec2d:
    """The interval of a segment's parameter around `at` without a crossing of the mesh or the heightfield."""
    if mesh < 0:
        return chord_in_field(heightfield_pair.field, start, end, at)
    return chord_of(heightfield_pair.meshes, mesh, start, end, at)


@wp.func
def deepest_of(meshes: Meshes, mesh: int, start: Vec3, end: Vec3, enters: Real, leaves: Real) -> Real:
    """The parameter that represents the part of a segment inside a mesh: the middle of the part."""
    return Real(0.5) * (enters + leaves)


@wp.func
def deepest_of(
    heightfield_pair: HeightfieldPair, mesh: int, start: Vec3, end: Vec3, enters: Real, leaves: Real
) -> Real:
    """The parameter that represents the part of a segment inside: the middle, or the end at a base that is no exit."""
    if mesh < 0:
        return deepest_of_part(heightfield_pair, start, end, enters, leaves)
    return Real(0.5) * (enters + leaves)
