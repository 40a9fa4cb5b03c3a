"""Triangle sources: the accessors by which collision functions read the surfaces of a pair.

Contract `TriangleSource`: a source is a Warp struct that holds both surfaces of a pair. There are two: `Meshes` (two
triangle meshes) and `HeightfieldPair` (a mesh and a heightfield). A surface is an integer: the number of a mesh, or a
negative number for the heightfield of a `HeightfieldPair`. `face` is a triangle, numbered as its surface numbers it;
`part` is a part of a triangle as in `MeshPoint`: corner, side or interior. Collision functions declare their source as
`Any`; Warp picks the overload by the type of the first argument. Every source has an overload of:

- flags: `front_flag`, `closed_flag`;
- triangles: `corner_on`, `normal_on`, `outward_on`, `feature_on`, `closest_point_on`, `is_crossed`;
- features that a triangle owns: `own_bits`, `other_bits`, `is_owned`, `priority_on`;
- normal cones: `edge_cone_contains`, `corner_cone_contains`;
- traversals: `begin_in_box` and `next_in_box`, the triangles of surface b of a pair near a box; `mesh_arrays`
  and `first_face_of`, for the BVH of a mesh of the pair;
- interior, in `surface_interior`: `nearest_on`, `free_radius`, `surface_clearance`, `is_within`, `is_within_by`,
  `exit_point_of`, `depth_inside`, `origin_on`, `chord_of`, `deepest_of`.
"""

import warp as wp

from collidecli.engine.geometry.heightfields import base_begins, named_triangle
from collidecli.engine.geometry.mesh_nearest import (
    MeshPoint,
    feature_of_mesh_point,
    mesh_corner,
    mesh_point_on_triangle,
    nearest_triangle_point,
    outward_at,
    segment_crosses_triangle,
)
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.contact_merging import FALLBACK
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair, is_exit
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    SegmentCursor,
    begin_near_segment,
    next_near_segment,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    bits_of_face,
    closest_point_on_face,
    face_corner,
    face_normal,
    feature_of_face,
    is_face_crossed,
    outward_of_face,
    owned_of_face,
)
from collidecli.engine.narrowphase.triangles.normal_cones import (
    DOWN,
    mesh_edge_cone_contains,
    mesh_vertex_cone_contains,
    normal_cone_of_edge,
    normal_cone_of_vertex,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an `and`.
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
def own_bits(meshes: Meshes, surface: int, face: int) -> int:
    """Bits of a triangle whose features are tested against the other surface, as in `Meshes.owned`."""
    return meshes.arrays[0].owned[face]


@wp.func
def own_bits(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """Bits of a triangle of the heightfield or the mesh, as in `Meshes.owned`."""
    if surface < 0:
        return bits_of_face(heightfield_pair.field, face, True)
    return heightfield_pair.meshes.arrays[0].owned[face]


@wp.func
def other_bits(meshes: Meshes, surface: int, face: int) -> int:
    """Bits of a triangle that features are tested against, as in `Meshes.owned`; salient corners may be unset."""
    return meshes.arrays[0].owned[face]


@wp.func
def other_bits(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """Bits of a triangle of the heightfield or the mesh; of the heightfield without salient corners."""
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


@wp.func
def is_front_facing(outward: Vec3, direction: Vec3) -> bool:
    """Whether a feature with an outward vector faces a direction; one without (edge of a flat sheet) faces all."""
    return wp.dot(outward, direction) > Real(0.0) or wp.length_sq(outward) == Real(0.0)


@wp.func
def edge_cone_contains(meshes: Meshes, surface: int, face: int, k: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of the interior of side k of a triangle, to a sine of `rise`."""
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
        return normal_cone_of_edge(field, named_triangle(field, face), k, direction, rise).belongs == 1
    return mesh_edge_cone_contains(heightfield_pair.meshes, face, k, direction, rise)


@wp.func
def corner_cone_contains(meshes: Meshes, surface: int, face: int, k: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of corner k of a triangle, to a sine of `rise`."""
    return mesh_vertex_cone_contains(meshes, meshes.arrays[0].corner[3 * face + k], direction, rise)


@wp.func
def corner_cone_contains(
    heightfield_pair: HeightfieldPair, surface: int, face: int, k: int, direction: Vec3, rise: Real
) -> bool:
    """Whether a unit direction is in the normal cone of corner k, on the heightfield or the mesh."""
    if surface < 0:
        field = heightfield_pair.field
        return normal_cone_of_vertex(field, named_triangle(field, face), k, direction, rise).belongs == 1
    return mesh_vertex_cone_contains(
        heightfield_pair.meshes, heightfield_pair.meshes.arrays[0].corner[3 * face + k], direction, rise
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
def closest_point_on(heightfield_pair: HeightfieldPair, surface: int, face: int, point: Vec3) -> MeshPoint:
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
def is_crossed(meshes: Meshes, surface: int, face: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment crosses a triangle."""
    return segment_crosses_triangle(meshes, face, start, end)


@wp.func
def is_crossed(heightfield_pair: HeightfieldPair, surface: int, face: int, start: Vec3, end: Vec3) -> bool:
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
def first_face_of(meshes: Meshes, mesh: int) -> int:
    """Number of a mesh's first triangle among those of all meshes."""
    return meshes.arrays[0].header[mesh].first_face


@wp.func
def first_face_of(heightfield_pair: HeightfieldPair, mesh: int) -> int:
    """Number of the mesh's first triangle among those of all meshes; 0 for the heightfield."""
    if mesh < 0:
        return 0
    return heightfield_pair.meshes.arrays[0].header[mesh].first_face


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
def next_in_box(meshes: Meshes, surface: int, before: TreeCursor, low: Vec3, high: Vec3) -> TreeCursor:
    """The traversal at the next triangle of a mesh whose box intersects a box of the mesh's frame."""
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
    """The traversal at the first triangle of a mesh whose box intersects a box of the mesh's frame."""
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
def begin_in_box(heightfield_pair: HeightfieldPair, surface: int, low: Vec3, high: Vec3) -> SegmentCursor:
    """The traversal at the first triangle of the heightfield near a box, which is taken as its bounding cube."""
    half = Real(0.5) * (high - low)
    middle = low + half
    return begin_near_segment(heightfield_pair.field, middle, middle, wp.max(half[0], wp.max(half[1], half[2])))
