"""Triangle sources: the accessors by which collision functions read the surfaces of a pair.

Contract of a triangle source: a Warp struct that holds both surfaces of a pair. There are three:
`Meshes` (two triangle meshes), `HeightfieldPair` (a mesh and a heightfield) and, for the search of
a least translation alone, `LaneMeshes` (two meshes, and the lanes that search them). A surface is
an integer: the number of a mesh, or a negative number for the heightfield of a `HeightfieldPair`.
`face` is a triangle, numbered as its surface numbers it; `part` is a part of a triangle as in
`MeshPoint`: corner, side or interior. Collision functions declare their source as `Any`; Warp picks
the overload by the type of the first argument. Every source has an overload of:

- flags: `front_flag`, `closed_flag`;
- threads of a pair: `first_row_of_thread`, `rows_step`, `await_threads`;
- triangles: `corner_on`, `normal_on`, `outward_on`, `feature_on`, `closest_point_on`, `is_crossed`;
- features that a triangle owns: `own_bits`, `other_bits`, `is_owned`, `priority_on`;
- normal cones: `edge_cone_contains`, `corner_cone_contains`;
- traversals: `begin_in_box` and `next_in_box`, the triangles of surface b of a pair near a box;
  `mesh_arrays` and `first_face_of`, for the BVH of a mesh of the pair;
- interior: `nearest_on`, `free_radius`, `surface_clearance`, `is_within`, `exit_point_of`,
  `first_crossings`,
  `depth_inside`, `origin_on`, `chord_of`, `deepest_of`; points are in the frame of the surface.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import FALLBACK
from collidecli.engine.geometry.heightfields import base_begins, named_triangle
from collidecli.engine.geometry.mesh_clearance import clearance_at
from collidecli.engine.geometry.mesh_points import (
    MeshPoint,
    feature_of_mesh_point,
    is_inside_mesh,
    mesh_edge_cone_contains,
    mesh_point_on_triangle,
    mesh_vertex_cone_contains,
    nearest_mesh_point_within,
    nearest_triangle_point,
    outward_at,
    segment_crosses_triangle,
)
from collidecli.engine.geometry.meshes import Meshes, mesh_corner
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.lane_meshes import LaneMeshes, synchronize_lanes
from collidecli.engine.narrowphase.triangles.heightfield_inside import is_inside
from collidecli.engine.narrowphase.triangles.heightfield_near_segment import (
    SegmentCursor,
    begin_near_segment,
    next_near_segment,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    DOWN,
    HeightfieldPair,
    bits_of_face,
    bounded_chord,
    chord_in_field,
    closest_point_on_face,
    deepest_of_part,
    depth_in_field,
    exit_point,
    face_corner,
    face_normal,
    feature_of_face,
    field_edge_cone,
    field_vertex_cone,
    is_exit,
    is_face_crossed,
    outward_of_face,
    owned_of_face,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an
# `and`.
# ruff: noqa: F811, SIM102


@wp.func
def front_flag(meshes: Meshes, surface: int) -> int:
    """1 where a surface has a front, through which alone it is exited; else 0."""
    return meshes.arrays[0].header[surface].has_front


@wp.func
def front_flag(heightfield_pair: HeightfieldPair, surface: int) -> int:
    """1 for the heightfield; the flag of a mesh."""
    if surface < 0:
        return 1
    return heightfield_pair.meshes.arrays[0].header[surface].has_front


@wp.func
def closed_flag(meshes: Meshes, surface: int) -> int:
    """1 where a surface is closed and has an interior; else 0."""
    return meshes.arrays[0].header[surface].is_closed


@wp.func
def closed_flag(heightfield_pair: HeightfieldPair, surface: int) -> int:
    """1 for the heightfield, which is a solid; the flag of a mesh."""
    if surface < 0:
        return 1
    return heightfield_pair.meshes.arrays[0].header[surface].is_closed


@wp.func
def first_row_of_thread(meshes: Meshes) -> int:
    """The first of a pair's rows that a thread changes: 0, one thread has a pair."""
    return 0


@wp.func
def first_row_of_thread(heightfield_pair: HeightfieldPair) -> int:
    """The first of a pair's rows that a thread changes: 0, one thread has a pair."""
    return 0


@wp.func
def first_row_of_thread(lanes: LaneMeshes) -> int:
    """The first of a pair's rows that a thread changes. The thread with 0 also makes the changes
    that depend on each other."""
    return lanes.first


@wp.func
def rows_step(meshes: Meshes) -> int:
    """Number of rows from one that a thread changes to the next."""
    return 1


@wp.func
def rows_step(heightfield_pair: HeightfieldPair) -> int:
    """Number of rows from one that a thread changes to the next."""
    return 1


@wp.func
def rows_step(lanes: LaneMeshes) -> int:
    """Number of rows from one that a thread changes to the next."""
    return lanes.step


@wp.func
def await_threads(meshes: Meshes):
    """Waits for the threads of a pair before rows are changed that others read, and afterwards."""
    return


@wp.func
def await_threads(heightfield_pair: HeightfieldPair):
    """Waits for the threads of a pair before rows are changed that others read, and afterwards."""
    return


@wp.func
def await_threads(lanes: LaneMeshes):
    """Waits for the threads of a pair before rows are changed that others read, and afterwards."""
    synchronize_lanes()


@wp.func
def has_one_side(source: Any, surface: int) -> bool:
    """Whether a surface has a front and no interior: it collides from one side."""
    return front_flag(source, surface) == 1 and closed_flag(source, surface) == 0


@wp.func
def corner_on(meshes: Meshes, surface: int, face: int, k: int) -> Vec3:
    """Corner 0, 1 or 2 of a triangle; 3 and 4 are 0 and 1 again."""
    return mesh_corner(meshes, face, k)


@wp.func
def corner_on(heightfield_pair: HeightfieldPair, surface: int, face: int, k: int) -> Vec3:
    """Corner 0, 1 or 2 of a triangle of the heightfield or the mesh; 3 and 4 are 0 and 1 again."""
    if surface < 0:
        return face_corner(heightfield_pair.field, face, k)
    return mesh_corner(heightfield_pair.meshes, face, k)


@wp.func
def corner_on(lanes: LaneMeshes, surface: int, face: int, k: int) -> Vec3:
    """Corner 0, 1 or 2 of a triangle; 3 and 4 are 0 and 1 again."""
    return corner_on(lanes.meshes, surface, face, k)


@wp.func
def normal_on(meshes: Meshes, surface: int, face: int) -> Vec3:
    """Unit normal of a triangle."""
    return meshes.arrays[0].face_normal[face]


@wp.func
def normal_on(heightfield_pair: HeightfieldPair, surface: int, face: int) -> Vec3:
    """Unit normal of a triangle of the heightfield or the mesh."""
    if surface < 0:
        return face_normal(heightfield_pair.field, face)
    return heightfield_pair.meshes.arrays[0].face_normal[face]


@wp.func
def normal_on(lanes: LaneMeshes, surface: int, face: int) -> Vec3:
    """Unit normal of a triangle."""
    return normal_on(lanes.meshes, surface, face)


@wp.func
def own_bits(meshes: Meshes, surface: int, face: int) -> int:
    """Bits of a triangle whose features are tested against the other surface, as in
    `Meshes.owned`."""
    return meshes.arrays[0].owned[face]


@wp.func
def own_bits(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """Bits of a triangle of the heightfield or the mesh, as in `Meshes.owned`."""
    if surface < 0:
        return bits_of_face(heightfield_pair.field, face, True)
    return heightfield_pair.meshes.arrays[0].owned[face]


@wp.func
def other_bits(meshes: Meshes, surface: int, face: int) -> int:
    """Bits of a triangle that features are tested against, as in `Meshes.owned`; salient corners
    may be unset."""
    return meshes.arrays[0].owned[face]


@wp.func
def other_bits(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """Bits of a triangle of the heightfield or the mesh; of the heightfield without salient
    corners."""
    if surface < 0:
        return bits_of_face(heightfield_pair.field, face, False)
    return heightfield_pair.meshes.arrays[0].owned[face]


@wp.func
def is_owned(meshes: Meshes, surface: int, face: int, part: int) -> bool:
    """Whether a triangle owns a corner or side: it is the first triangle with that feature."""
    return ((meshes.arrays[0].owned[face] >> part) & 1) == 1


@wp.func
def is_owned(heightfield_pair: HeightfieldPair, surface: int, face: int, part: int) -> bool:
    """Whether a triangle of the heightfield or the mesh owns a corner or side."""
    if surface < 0:
        return ((owned_of_face(heightfield_pair.field, face) >> part) & 1) == 1
    return ((heightfield_pair.meshes.arrays[0].owned[face] >> part) & 1) == 1


@wp.func
def outward_on(meshes: Meshes, surface: int, face: int, part: int) -> Vec3:
    """Outward vector at a part of a triangle, not unit: its sign separates outside from inside."""
    return outward_at(meshes, face, part)


@wp.func
def outward_on(heightfield_pair: HeightfieldPair, surface: int, face: int, part: int) -> Vec3:
    """Outward vector at a part of a triangle of the heightfield or the mesh, not unit."""
    if surface < 0:
        return outward_of_face(heightfield_pair.field, face, part)
    return outward_at(heightfield_pair.meshes, face, part)


LEVEL = wp.constant(Real(1.0e-7))
"""Sine to which a direction from a border of an open surface is in the surface's plane. Directions
of two meshes that are farther apart than 1e-8 of their size have smaller errors by rounding, so
that the last bit does not decide; shapes that are behind the surface by more are behind it."""


@wp.func
def is_front_facing(outward: Vec3, direction: Vec3, closed: int) -> bool:
    """Whether a feature with an outward vector faces a direction; one without (edge of a flat
    sheet) faces all. A border of an open surface (closed = 0) faces what is level with it too, to a
    sine of LEVEL."""
    least = Real(0.0)
    if closed == 0:
        least = -LEVEL * wp.length(outward)
    return wp.dot(outward, direction) > least or wp.length_sq(outward) == Real(0.0)


@wp.func
def edge_cone_contains(
    meshes: Meshes, surface: int, face: int, k: int, direction: Vec3, rise: Real
) -> bool:
    """Whether a unit direction is in the normal cone of the interior of side k of a triangle, to a
    sine of `rise`."""
    return mesh_edge_cone_contains(meshes, face, k, direction, rise)


@wp.func
def edge_cone_contains(
    heightfield_pair: HeightfieldPair, surface: int, face: int, k: int, direction: Vec3, rise: Real
) -> bool:
    """Whether a unit direction is in the normal cone of side k, on the heightfield or the mesh."""
    if surface < 0:
        field = heightfield_pair.field
        if face >= base_begins(field):
            return wp.length(wp.cross(DOWN, direction)) <= rise
        return field_edge_cone(field, named_triangle(field, face), k, direction, rise).belongs == 1
    return mesh_edge_cone_contains(heightfield_pair.meshes, face, k, direction, rise)


@wp.func
def corner_cone_contains(
    meshes: Meshes, surface: int, face: int, k: int, direction: Vec3, rise: Real
) -> bool:
    """Whether a unit direction is in the normal cone of corner k of a triangle, to a sine of
    `rise`."""
    return mesh_vertex_cone_contains(meshes, meshes.arrays[0].corner[3 * face + k], direction, rise)


@wp.func
def corner_cone_contains(
    heightfield_pair: HeightfieldPair, surface: int, face: int, k: int, direction: Vec3, rise: Real
) -> bool:
    """Whether a unit direction is in the normal cone of corner k, on the heightfield or the
    mesh."""
    if surface < 0:
        field = heightfield_pair.field
        return (
            field_vertex_cone(field, named_triangle(field, face), k, direction, rise).belongs == 1
        )
    return mesh_vertex_cone_contains(
        heightfield_pair.meshes,
        heightfield_pair.meshes.arrays[0].corner[3 * face + k],
        direction,
        rise,
    )


@wp.func(inline=False)
def closest_point_on(meshes: Meshes, surface: int, face: int, point: Vec3) -> MeshPoint:
    """Closest point of a triangle.

    Without a call of `mesh_point_on_triangle`, which is not inlined and would copy the struct.
    """
    p = mesh_corner(meshes, face, 0)
    q = mesh_corner(meshes, face, 1)
    r = mesh_corner(meshes, face, 2)
    closest = nearest_triangle_point(p, q, r, meshes.arrays[0].face_normal[face], point)
    closest.face = face
    return closest


@wp.func
def closest_point_on(
    heightfield_pair: HeightfieldPair, surface: int, face: int, point: Vec3
) -> MeshPoint:
    """Closest point of a triangle of the heightfield or the mesh."""
    if surface < 0:
        return closest_point_on_face(heightfield_pair.field, face, point)
    return mesh_point_on_triangle(heightfield_pair.meshes, face, point)


@wp.func
def feature_on(meshes: Meshes, surface: int, face: int, part: int) -> int:
    """Feature id of a part of a triangle."""
    return feature_of_mesh_point(meshes, surface, face, part)


@wp.func
def feature_on(heightfield_pair: HeightfieldPair, surface: int, face: int, part: int) -> int:
    """Feature id of a part of a triangle of the heightfield or the mesh."""
    if surface < 0:
        return feature_of_face(heightfield_pair.field, face, part)
    return feature_of_mesh_point(heightfield_pair.meshes, surface, face, part)


@wp.func
def feature_on(lanes: LaneMeshes, surface: int, face: int, part: int) -> int:
    """Feature id of a part of a triangle."""
    return feature_on(lanes.meshes, surface, face, part)


@wp.func
def is_crossed(meshes: Meshes, surface: int, face: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment crosses a triangle."""
    return segment_crosses_triangle(meshes, face, start, end)


@wp.func
def is_crossed(
    heightfield_pair: HeightfieldPair, surface: int, face: int, start: Vec3, end: Vec3
) -> bool:
    """Whether a segment crosses a triangle of the heightfield or the mesh."""
    if surface < 0:
        return is_face_crossed(heightfield_pair.field, face, start, end)
    return segment_crosses_triangle(heightfield_pair.meshes, face, start, end)


@wp.func
def priority_on(meshes: Meshes, surface: int, face: int) -> int:
    """Term of the priority of a contact on a triangle."""
    return 0


@wp.func
def priority_on(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """FALLBACK for a triangle of the heightfield that is no exit, see `is_exit`; else 0."""
    if surface < 0:
        if not is_exit(heightfield_pair, face):
            return FALLBACK
    return 0


@wp.func
def mesh_arrays(meshes: Meshes) -> Meshes:
    """The meshes of a source. Take them once, outside of loops: the struct is large."""
    return meshes


@wp.func
def mesh_arrays(heightfield_pair: HeightfieldPair) -> Meshes:
    """The meshes of a mesh and a heightfield."""
    return heightfield_pair.meshes


@wp.func
def mesh_arrays(lanes: LaneMeshes) -> Meshes:
    """The meshes of a pair that is searched by lanes."""
    return lanes.meshes


@wp.func
def first_face_of(meshes: Meshes, mesh: int) -> int:
    """Number of a mesh's first triangle among those of all meshes."""
    return meshes.arrays[0].header[mesh].first_face


@wp.func
def first_face_of(heightfield_pair: HeightfieldPair, mesh: int) -> int:
    """Number of the mesh's first triangle among those of all meshes; 0 for the heightfield."""
    if mesh < 0:
        return 0
    return heightfield_pair.meshes.arrays[0].header[mesh].first_face


@wp.func
def first_face_of(lanes: LaneMeshes, mesh: int) -> int:
    """Number of a mesh's first triangle among those of all meshes."""
    return first_face_of(lanes.meshes, mesh)


@wp.func
def face_count(meshes: Meshes, mesh: int) -> int:
    """Number of a mesh's triangles that are not hidden: its BVH is binary, with one in each
    leaf."""
    return (
        meshes.arrays[0].header[mesh].end_node - meshes.arrays[0].header[mesh].first_node + 1
    ) / 2


@wp.func
def face_count(heightfield_pair: HeightfieldPair, mesh: int) -> int:
    """Number of triangles of the mesh, or of the heightfield, two in each cell."""
    if mesh < 0:
        return 2 * (heightfield_pair.field.rows - 1) * (heightfield_pair.field.cols - 1)
    return face_count(heightfield_pair.meshes, mesh)


@wp.func
def face_count(lanes: LaneMeshes, mesh: int) -> int:
    """Number of a mesh's triangles that are not hidden."""
    return face_count(lanes.meshes, mesh)


@wp.struct
class TreeCursor:
    """A traversal of a BVH. number: the current triangle, -1 after the last. node: the next box."""

    number: int
    node: int


@wp.func
def boxes_intersect(low: Vec3, high: Vec3, other_low: Vec3, other_high: Vec3) -> bool:
    """Whether two boxes have a point in common."""
    if low[0] > other_high[0] or low[1] > other_high[1] or low[2] > other_high[2]:
        return False
    return high[0] >= other_low[0] and high[1] >= other_low[1] and high[2] >= other_low[2]


@wp.func(inline=True)
def next_in_box(
    meshes: Meshes, surface: int, before: TreeCursor, low: Vec3, high: Vec3
) -> TreeCursor:
    """The traversal at the next triangle of a mesh whose box intersects a box of the mesh's
    frame."""
    cursor = before
    cursor.number = -1
    stop = meshes.arrays[0].header[surface].end_node
    while cursor.node < stop and cursor.number < 0:
        node = cursor.node
        if boxes_intersect(low, high, meshes.arrays[0].lower[node], meshes.arrays[0].upper[node]):
            cursor.node = node + 1
            cursor.number = meshes.arrays[0].leaf[node]
        else:
            cursor.node = meshes.arrays[0].skip[node]
    return cursor


@wp.func(inline=True)
def begin_in_box(meshes: Meshes, surface: int, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the first triangle of a mesh whose box intersects a box of the mesh's
    frame."""
    cursor = TreeCursor()
    cursor.node = meshes.arrays[0].header[surface].first_node
    return next_in_box(meshes, surface, cursor, low, high)


@wp.func
def next_in_box(
    heightfield_pair: HeightfieldPair, surface: int, before: SegmentCursor, low: Vec3, high: Vec3
) -> SegmentCursor:
    """The traversal at the next triangle of the heightfield near a box."""
    return next_near_segment(heightfield_pair.field, before)


@wp.func
def next_in_box(
    lanes: LaneMeshes, surface: int, before: TreeCursor, low: Vec3, high: Vec3
) -> TreeCursor:
    """The traversal at the next triangle of a mesh whose box intersects a box."""
    return next_in_box(lanes.meshes, surface, before, low, high)


@wp.func
def begin_in_box(
    heightfield_pair: HeightfieldPair, surface: int, low: Vec3, high: Vec3
) -> SegmentCursor:
    """The traversal at the first triangle of the heightfield near a box, which is taken as its
    bounding cube."""
    half = Real(0.5) * (high - low)
    middle = low + half
    return begin_near_segment(
        heightfield_pair.field, middle, middle, wp.max(half[0], wp.max(half[1], half[2]))
    )


@wp.func
def begin_in_box(lanes: LaneMeshes, surface: int, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the first triangle of a mesh whose box intersects a box."""
    return begin_in_box(lanes.meshes, surface, low, high)


@wp.func
def nearest_on(meshes: Meshes, surface: int, point: Vec3) -> MeshPoint:
    """Closest point of a mesh."""
    return nearest_mesh_point_within(
        meshes, surface, point, clearance_at(meshes, surface, point).square
    )


@wp.func
def nearest_on(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> MeshPoint:
    """Closest point of the mesh; of the heightfield, closest exit point, with face -1 for a point
    outside."""
    closest = MeshPoint()
    closest.face = -1
    if surface >= 0:
        closest = nearest_mesh_point_within(
            heightfield_pair.meshes,
            surface,
            point,
            clearance_at(heightfield_pair.meshes, surface, point).square,
        )
    elif is_inside(heightfield_pair.field, point):
        closest = exit_point(heightfield_pair, point)
    return closest


@wp.func
def nearest_on(lanes: LaneMeshes, surface: int, point: Vec3) -> MeshPoint:
    """Closest point of a mesh."""
    return nearest_on(lanes.meshes, surface, point)


@wp.func
def free_radius(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that is on the outer side of a mesh [m]; not positive where
    none is known."""
    return clearance_at(meshes, surface, point).free


@wp.func
def free_radius(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that is outside the mesh, or outside the heightfield's box,
    [m].

    The origin of the heightfield's frame is the centre of its box.
    """
    if surface < 0:
        field = heightfield_pair.field
        beside = wp.max(wp.abs(point[0]) - field.half_x, wp.abs(point[1]) - field.half_y)
        return wp.max(beside, wp.abs(point[2]) + field.bottom)
    return clearance_at(heightfield_pair.meshes, surface, point).free


@wp.func
def surface_clearance(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that intersects no triangle of a mesh [m]; not positive where
    none is known."""
    return clearance_at(meshes, surface, point).empty


@wp.func
def surface_clearance(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that intersects no triangle; for the heightfield from its box
    [m]."""
    if surface < 0:
        return free_radius(heightfield_pair, surface, point)
    return clearance_at(heightfield_pair.meshes, surface, point).empty


@wp.func
def surface_clearance(lanes: LaneMeshes, surface: int, point: Vec3) -> Real:
    """Radius of a ball around a point that intersects no triangle of a mesh [m]."""
    return surface_clearance(lanes.meshes, surface, point)


@wp.func(inline=False)
def is_within(meshes: Meshes, surface: int, point: Vec3) -> bool:
    """Whether a point is inside a closed mesh."""
    return is_inside_mesh(meshes, surface, point, nearest_on(meshes, surface, point))


@wp.func
def is_within(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> bool:
    """Whether a point is inside the mesh or the heightfield; below a base that is no exit counts as
    inside."""
    if surface >= 0:
        return is_within(heightfield_pair.meshes, surface, point)
    field = heightfield_pair.field
    if is_inside(field, point):
        return True
    over_base = wp.abs(point[0]) < field.half_x and wp.abs(point[1]) < field.half_y
    return heightfield_pair.beneath == 0 and over_base and point[2] <= field.bottom


@wp.func
def is_within(lanes: LaneMeshes, surface: int, point: Vec3) -> bool:
    """Whether a point is inside a closed mesh."""
    return is_within(lanes.meshes, surface, point)


@wp.func
def is_in_box(meshes: Meshes, mesh: int, point: Vec3, near: Real) -> bool:
    """Whether a point is in the AABB of a mesh, grown by `near` [m]."""
    root = meshes.arrays[0].header[mesh].first_node
    inside = bool(True)
    for axis in range(3):
        inside = (
            inside
            and point[axis] >= meshes.arrays[0].lower[root][axis] - near
            and point[axis] <= meshes.arrays[0].upper[root][axis] + near
        )
    return inside


@wp.func(inline=False)
def depth_inside(meshes: Meshes, mesh: int, point: Vec3, touch: Real) -> Real:
    """Depth of a point inside a closed mesh, negative outside [m]; -inf, without a search, far
    outside.

    touch: least distance outside that counts as far [m].
    """
    if not is_in_box(meshes, mesh, point, touch):
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
    """Depth of a point inside the mesh or the heightfield [m]; outside the heightfield 0 within
    touch, else -inf."""
    if mesh < 0:
        return depth_in_field(heightfield_pair, point, touch)
    return depth_inside(heightfield_pair.meshes, mesh, point, touch)


@wp.func
def exit_point_of(meshes: Meshes, surface: int, point: Vec3, touch: Real) -> MeshPoint:
    """Closest point of a closed mesh to a point inside it by more than touch [m]; face -1 for any
    other point."""
    result = MeshPoint()
    result.face = -1
    if closed_flag(meshes, surface) == 0:
        return result
    clearance = clearance_at(meshes, surface, point)
    if clearance.free > Real(0.0) or not is_in_box(meshes, surface, point, Real(0.0)):
        return result
    closest = nearest_mesh_point_within(meshes, surface, point, clearance.square)
    if wp.sqrt(closest.square) <= touch or not is_inside_mesh(meshes, surface, point, closest):
        return result
    return closest


@wp.func
def exit_point_of(
    heightfield_pair: HeightfieldPair, surface: int, point: Vec3, touch: Real
) -> MeshPoint:
    """Closest exit point of the mesh or the heightfield for a point deeper inside than touch [m];
    else face -1."""
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
    """A point behind a surface point, in the frame that `pose` maps to: the mesh's origin, which is
    given."""
    return origin


@wp.func
def origin_on(
    heightfield_pair: HeightfieldPair, surface: int, origin: Vec3, pose: Pose, point: Vec3
) -> Vec3:
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
    """Parameter t in [0, 1] at which a segment crosses the plane of a triangle; negated where it
    exits the solid."""
    normal = normal_on(source, surface, target)
    corner = corner_on(source, surface, target, 0)
    low = wp.dot(normal, start - corner)
    high = wp.dot(normal, end - corner)
    t = low / (low - high)
    return wp.where(low > high, t, -t)


@wp.func
def crossing_within(
    source: Any, surface: int, face: int, start: Vec3, end: Vec3, near: Real
) -> Real:
    """Parameter at which a segment crosses a triangle's plane within `near` [m] of the triangle;
    else 2.

    A surface's border belongs to it: every crossing is found, some from several triangles.
    `is_crossed` finds a crossing of a surface exactly once. A plane within `near` of the start is
    not crossed: where a segment in that plane crosses it is rounding.
    """
    normal = normal_on(source, surface, face)
    corner = corner_on(source, surface, face, 0)
    low = wp.dot(normal, start - corner)
    high = wp.dot(normal, end - corner)
    if (low >= Real(0.0)) == (high >= Real(0.0)) or wp.abs(low) <= near:
        return Real(2.0)
    t = low / (low - high)
    closest = closest_point_on(source, surface, face, start + t * (end - start))
    return wp.where(closest.square <= near * near, t, Real(2.0))


@wp.func
def edge_crosses(source: Any, surface: int, face: int, start: Vec3, end: Vec3, near: Real) -> bool:
    """Whether a segment crosses a triangle, see `crossing_within`, and no end is in its plane.

    What touches, to `near` [m], does not cross, whichever end the segment begins with.
    """
    if crossing_within(source, surface, face, start, end, near) > Real(1.0):
        return False
    return crossing_within(source, surface, face, end, start, near) <= Real(1.0)


@wp.func
def earlier_crossing(
    source: Any, surface: int, face: int, start: Vec3, end: Vec3, near: Real, first: wp.vec2d
) -> wp.vec2d:
    """The least parameters at which a segment exits a surface and enters it, with those of a
    triangle.

    A surface without a front is exited on either side.
    """
    t = crossing_within(source, surface, face, start, end, near)
    if t > Real(1.0):
        return first
    exits = wp.dot(normal_on(source, surface, face), end - start) > Real(0.0)
    if exits or front_flag(source, surface) == 0:
        return wp.vec2d(wp.min(first[0], t), first[1])
    return wp.vec2d(first[0], wp.min(first[1], t))


@wp.func(inline=False)
def first_crossings(meshes: Meshes, mesh: int, start: Vec3, end: Vec3, near: Real) -> wp.vec2d:
    """The least parameters at which a segment exits and enters a mesh; 2 where it does not."""
    grown = Vec3(near, near, near)
    low = wp.min(start, end) - grown
    high = wp.max(start, end) + grown
    first = wp.vec2d(Real(2.0), Real(2.0))
    cursor = begin_in_box(meshes, mesh, low, high)
    while cursor.number >= 0:
        first = earlier_crossing(meshes, mesh, cursor.number, start, end, near, first)
        cursor = next_in_box(meshes, mesh, cursor, low, high)
    return first


@wp.func
def first_crossings(
    heightfield_pair: HeightfieldPair, surface: int, start: Vec3, end: Vec3, near: Real
) -> wp.vec2d:
    """The least parameters at which a segment exits and enters the mesh or the heightfield."""
    if surface >= 0:
        return first_crossings(heightfield_pair.meshes, surface, start, end, near)
    first = wp.vec2d(Real(2.0), Real(2.0))
    cursor = begin_near_segment(heightfield_pair.field, start, end, near)
    while cursor.number >= 0:
        first = earlier_crossing(heightfield_pair, surface, cursor.number, start, end, near, first)
        cursor = next_near_segment(heightfield_pair.field, cursor)
    return first


@wp.func
def first_crossings(lanes: LaneMeshes, mesh: int, start: Vec3, end: Vec3, near: Real) -> wp.vec2d:
    """The least parameters at which a segment exits and enters a mesh; 2 where it does not."""
    return first_crossings(lanes.meshes, mesh, start, end, near)


@wp.func
def first_exit(source: Any, surface: int, start: Vec3, end: Vec3, near: Real) -> Real:
    """Parameter at which a segment exits a surface that its start is behind or on; 2 where it does
    not.

    near: distance up to which the surface's border and edges belong to it, and the start is on it
    [m].
    """
    first = first_crossings(source, surface, start, end, near)
    # At an edge where the surface turns back it is exited and entered at once.
    enters_before = (first[1] - first[0]) * wp.length(end - start) < -near
    return wp.where(enters_before, Real(2.0), first[0])


NO_TOLERANCE = wp.constant(Real(-1.0))
"""`near` of `chord_of`: no crossing is at `at`; one at exactly that parameter is before it."""


@wp.func(inline=False)
def chord_of(meshes: Meshes, mesh: int, start: Vec3, end: Vec3, at: Real, near: Real) -> wp.vec2d:
    """The interval of a segment's parameter around `at` in which it crosses no triangle of a mesh.

    near: of a closed mesh, the difference of parameters up to which a crossing is at `at`: it then
    bounds the interval on the side from which the segment is in the solid; negative for none.
    The interval's ends are -1 and 2 where the segment crosses no triangle on that side.
    """
    low = wp.min(start, end)
    high = wp.max(start, end)
    chord = wp.vec2d(Real(-1.0), Real(2.0))
    cursor = begin_in_box(meshes, mesh, low, high)
    while cursor.number >= 0:
        if segment_crosses_triangle(meshes, cursor.number, start, end):
            t = wp.abs(crossing_parameter(meshes, mesh, cursor.number, start, end))
            enters = wp.dot(normal_on(meshes, mesh, cursor.number), end - start) < Real(0.0)
            chord = bounded_chord(chord, at, near, t, enters)
        cursor = next_in_box(meshes, mesh, cursor, low, high)
    return chord


@wp.func
def chord_of(
    heightfield_pair: HeightfieldPair, mesh: int, start: Vec3, end: Vec3, at: Real, near: Real
) -> wp.vec2d:
    """The interval of a segment's parameter without a crossing of the mesh or the heightfield."""
    if mesh < 0:
        return chord_in_field(heightfield_pair.field, start, end, at, near)
    return chord_of(heightfield_pair.meshes, mesh, start, end, at, near)


@wp.func
def chord_of(
    lanes: LaneMeshes, mesh: int, start: Vec3, end: Vec3, at: Real, near: Real
) -> wp.vec2d:
    """The interval of a segment's parameter without a crossing of a mesh."""
    return chord_of(lanes.meshes, mesh, start, end, at, near)


@wp.func
def deepest_of(
    meshes: Meshes, mesh: int, start: Vec3, end: Vec3, enters: Real, leaves: Real
) -> Real:
    """The parameter that represents the part of a segment inside a mesh: the middle of the part."""
    return Real(0.5) * (enters + leaves)


@wp.func
def deepest_of(
    heightfield_pair: HeightfieldPair, mesh: int, start: Vec3, end: Vec3, enters: Real, leaves: Real
) -> Real:
    """The parameter that represents the part of a segment inside: the middle, or the end at a base
    that is no exit."""
    if mesh < 0:
        return deepest_of_part(heightfield_pair, start, end, enters, leaves)
    return Real(0.5) * (enters + leaves)
