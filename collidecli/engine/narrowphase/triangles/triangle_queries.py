"""What is asked of a surface of a pair: of a mesh, by its number in `Meshes`; of the one heightfield, by any below 0.

Each function has an overload for `Meshes` alone, for two meshes, and one for `HeightfieldPair`; Warp picks by the
type of the first argument. `face` is a triangle, numbered as the surface has it; `part` a part of it, as in `Place`.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.mesh_nearest import (
    EDGE_PLACE,
    Place,
    feature_of_place,
    goes_through,
    mesh_corner,
    nearest_place_within,
    outward_at,
    place_among,
    place_on_triangle,
)
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.contact_merging import RANK
from collidecli.engine.narrowphase.triangles.convex_triangle import FALLBACK
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair, exit_place, is_exit
from collidecli.engine.narrowphase.triangles.heightfield_nearest import is_inside
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    bits_of_face,
    edge_of_face_takes,
    face_corner,
    face_normal,
    feature_of_face,
    goes_through_face,
    outward_of_face,
    owned_of_face,
    place_on_face,
    vertex_of_face_takes,
)
from collidecli.engine.narrowphase.triangles.mesh_normal_cones import edge_takes, vertex_takes

# What asks for much comes after what asks for little: an `and` may work out both.
# ruff: noqa: F811, SIM102


@wp.func
def corner_on(meshes: Meshes, surface: int, face: int, k: int) -> Vec3:
    """Corner 0, 1 or 2 of a triangle; 3 and 4 are 0 and 1 again."""
    return mesh_corner(meshes, face, k)


@wp.func
def corner_on(heightfield_pair: HeightfieldPair, surface: int, face: int, k: int) -> Vec3:
    """The same."""
    if surface < 0:
        return face_corner(heightfield_pair.field, face, k)
    return mesh_corner(heightfield_pair.meshes, face, k)


@wp.func
def normal_on(meshes: Meshes, surface: int, face: int) -> Vec3:
    """Unit normal of a triangle."""
    return meshes.face_normal[face]


@wp.func
def normal_on(heightfield_pair: HeightfieldPair, surface: int, face: int) -> Vec3:
    """The same."""
    if surface < 0:
        return face_normal(heightfield_pair.field, face)
    return heightfield_pair.meshes.face_normal[face]


@wp.func
def own_bits(meshes: Meshes, surface: int, face: int) -> int:
    """As `Meshes.owned`, of a triangle that asks."""
    return meshes.owned[face]


@wp.func
def own_bits(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """The same."""
    if surface < 0:
        return bits_of_face(heightfield_pair.field, face, True)
    return heightfield_pair.meshes.owned[face]


@wp.func
def other_bits(meshes: Meshes, surface: int, face: int) -> int:
    """As `Meshes.owned`, of a triangle that is asked: whether corners stick out is left open."""
    return meshes.owned[face]


@wp.func
def other_bits(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """The same."""
    if surface < 0:
        return bits_of_face(heightfield_pair.field, face, False)
    return heightfield_pair.meshes.owned[face]


@wp.func
def is_owned(meshes: Meshes, surface: int, face: int, part: int) -> bool:
    """Whether a triangle is the first with a corner or side."""
    return ((meshes.owned[face] >> part) & 1) == 1


@wp.func
def is_owned(heightfield_pair: HeightfieldPair, surface: int, face: int, part: int) -> bool:
    """The same."""
    if surface < 0:
        return ((owned_of_face(heightfield_pair.field, face) >> part) & 1) == 1
    return ((heightfield_pair.meshes.owned[face] >> part) & 1) == 1


@wp.func
def outward_on(meshes: Meshes, surface: int, face: int, part: int) -> Vec3:
    """A vector whose sign tells outside from inside at a place, not unit."""
    return outward_at(meshes, face, part)


@wp.func
def outward_on(heightfield_pair: HeightfieldPair, surface: int, face: int, part: int) -> Vec3:
    """The same."""
    if surface < 0:
        return outward_of_face(heightfield_pair.field, face, part)
    return outward_at(heightfield_pair.meshes, face, part)


@wp.func
def is_front_facing(outward: Vec3, way: Vec3) -> bool:
    """Whether what has an outward vector faces a direction; what has none, as an edge of a flat sheet, faces all."""
    return wp.dot(outward, way) > Real(0.0) or wp.length_sq(outward) == Real(0.0)


@wp.func
def takes_on_edge(meshes: Meshes, surface: int, face: int, k: int, direction: Vec3) -> bool:
    """Whether a unit direction belongs to the inside of side k of a triangle."""
    return edge_takes(meshes, face, k, direction)


@wp.func
def takes_on_edge(heightfield_pair: HeightfieldPair, surface: int, face: int, k: int, direction: Vec3) -> bool:
    """The same."""
    if surface < 0:
        return edge_of_face_takes(heightfield_pair.field, face, k, direction)
    return edge_takes(heightfield_pair.meshes, face, k, direction)


@wp.func
def takes_on_corner(meshes: Meshes, surface: int, face: int, k: int, direction: Vec3) -> bool:
    """Whether a unit direction belongs to corner k of a triangle."""
    return vertex_takes(meshes, meshes.corner[3 * face + k], direction)


@wp.func
def takes_on_corner(heightfield_pair: HeightfieldPair, surface: int, face: int, k: int, direction: Vec3) -> bool:
    """The same."""
    if surface < 0:
        return vertex_of_face_takes(heightfield_pair.field, face, k, direction)
    return vertex_takes(heightfield_pair.meshes, heightfield_pair.meshes.corner[3 * face + k], direction)


@wp.func(inline=False)
def place_on(meshes: Meshes, surface: int, face: int, point: Vec3) -> Place:
    """The place of one triangle that is nearest to a point.

    Not by way of `place_on_triangle`: a function that is not inlined has its own copy of the struct.
    """
    p = mesh_corner(meshes, face, 0)
    q = mesh_corner(meshes, face, 1)
    r = mesh_corner(meshes, face, 2)
    place = place_among(p, q, r, meshes.face_normal[face], point)
    place.face = face
    return place


@wp.func
def place_on(heightfield_pair: HeightfieldPair, surface: int, face: int, point: Vec3) -> Place:
    """The same."""
    if surface < 0:
        return place_on_face(heightfield_pair.field, face, point)
    return place_on_triangle(heightfield_pair.meshes, face, point)


@wp.func
def feature_on(meshes: Meshes, surface: int, face: int, part: int) -> int:
    """The number of a place's feature."""
    return feature_of_place(meshes, surface, face, part)


@wp.func
def feature_on(heightfield_pair: HeightfieldPair, surface: int, face: int, part: int) -> int:
    """The same."""
    if surface < 0:
        return feature_of_face(heightfield_pair.field, face, part)
    return feature_of_place(heightfield_pair.meshes, surface, face, part)


@wp.func
def is_gone_through(meshes: Meshes, surface: int, face: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment goes through a triangle."""
    return goes_through(meshes, face, start, end)


@wp.func
def is_gone_through(heightfield_pair: HeightfieldPair, surface: int, face: int, start: Vec3, end: Vec3) -> bool:
    """The same."""
    if surface < 0:
        return goes_through_face(heightfield_pair.field, face, start, end)
    return goes_through(heightfield_pair.meshes, face, start, end)


@wp.func
def nearest_on(meshes: Meshes, surface: int, point: Vec3) -> Place:
    """The place of a surface that is nearest to a point; of a heightfield, that lets it out, -1 for a point outside."""
    return nearest_place_within(meshes, surface, point, clearance_at(meshes, surface, point).square)


@wp.func
def nearest_on(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Place:
    """The same."""
    place = Place()
    place.face = -1
    if surface >= 0:
        place = nearest_place_within(
            heightfield_pair.meshes, surface, point, clearance_at(heightfield_pair.meshes, surface, point).square
        )
    elif is_inside(heightfield_pair.field, point):
        place = exit_place(heightfield_pair, point)
    return place


@wp.func
def clear_of(meshes: Meshes, surface: int, point: Vec3) -> Real:
    """A ball of this radius around a point is on the outer side of a surface [m], where it is above 0."""
    return clearance_at(meshes, surface, point).free


@wp.func
def clear_of(heightfield_pair: HeightfieldPair, surface: int, point: Vec3) -> Real:
    """The same; of a heightfield, whose frame is in the middle of its box, by that box."""
    if surface < 0:
        field = heightfield_pair.field
        beside = wp.max(wp.abs(point[0]) - field.half_x, wp.abs(point[1]) - field.half_y)
        return wp.max(beside, wp.abs(point[2]) + field.bottom)
    return clearance_at(heightfield_pair.meshes, surface, point).free


@wp.func
def mesh_arrays(meshes: Meshes) -> Meshes:
    """The meshes among the surfaces of a pair."""
    return meshes


@wp.func
def mesh_arrays(heightfield_pair: HeightfieldPair) -> Meshes:
    """The same."""
    return heightfield_pair.meshes


@wp.func
def priority_on(meshes: Meshes, surface: int, face: int) -> int:
    """What is added to the kind of a contact that a triangle has part in."""
    return 0


@wp.func
def priority_on(heightfield_pair: HeightfieldPair, surface: int, face: int) -> int:
    """The same: where it lets nothing out it counts where nothing of the pair is nearer."""
    if surface < 0:
        if not is_exit(heightfield_pair, face):
            return FALLBACK * RANK
    return 0


@wp.func
def origin_on(meshes: Meshes, surface: int, origin: Vec3, pose: Pose, point: Vec3) -> Vec3:
    """A point that stands for what is behind a place of a surface, in the frame that `pose` leads to.

    Of a mesh its origin, which is given; of a heightfield the place of the base below.
    """
    return origin


@wp.func
def origin_on(heightfield_pair: HeightfieldPair, surface: int, origin: Vec3, pose: Pose, point: Vec3) -> Vec3:
    """The same."""
    if surface < 0:
        below = wp.transform_point(wp.transform_inverse(pose), point)
        below[2] = wp.min(below[2], heightfield_pair.field.bottom)
        return wp.transform_point(pose, below)
    return origin


@wp.func
def takes_on_place(meshes: Any, surface: int, face: int, part: int, direction: Vec3) -> bool:
    """Whether a unit direction belongs to a place that is an edge or a vertex."""
    if part >= EDGE_PLACE:
        return takes_on_edge(meshes, surface, face, part - EDGE_PLACE, direction)
    return takes_on_corner(meshes, surface, face, part, direction)


@wp.func
def tree_of(meshes: Meshes, mesh: int) -> wp.vec2i:
    """The first box of a mesh's tree, and the end of its boxes."""
    header = meshes.header[mesh]
    return wp.vec2i(header.first_node, header.end_node)


@wp.func
def tree_of(heightfield_pair: HeightfieldPair, mesh: int) -> wp.vec2i:
    """The same."""
    header = heightfield_pair.meshes.header[mesh]
    return wp.vec2i(header.first_node, header.end_node)


@wp.func
def lower_of(meshes: Meshes, node: int) -> Vec3:
    """The low corner of a box of the tree [m]."""
    return meshes.lower[node]


@wp.func
def lower_of(heightfield_pair: HeightfieldPair, node: int) -> Vec3:
    """The same."""
    return heightfield_pair.meshes.lower[node]


@wp.func
def upper_of(meshes: Meshes, node: int) -> Vec3:
    """The high corner of a box of the tree [m]."""
    return meshes.upper[node]


@wp.func
def upper_of(heightfield_pair: HeightfieldPair, node: int) -> Vec3:
    """The same."""
    return heightfield_pair.meshes.upper[node]


@wp.func
def skip_of(meshes: Meshes, node: int) -> int:
    """What stands behind a box of the tree and all in it."""
    return meshes.skip[node]


@wp.func
def skip_of(heightfield_pair: HeightfieldPair, node: int) -> int:
    """The same."""
    return heightfield_pair.meshes.skip[node]


@wp.func
def leaf_of(meshes: Meshes, node: int) -> int:
    """The triangle of a box of the tree, -1 for none."""
    return meshes.leaf[node]


@wp.func
def leaf_of(heightfield_pair: HeightfieldPair, node: int) -> int:
    """The same."""
    return heightfield_pair.meshes.leaf[node]
