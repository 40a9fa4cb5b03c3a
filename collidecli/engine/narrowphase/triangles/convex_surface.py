"""Surfaces of triangles that a convex shape is tested or swept against: meshes and heightfields by
one interface.

Contract: a surface is a `MeshSurface` or a `FieldSurface`; kernels declare it as `Any`, and Warp
picks the overload by its type. Every surface has `closed` and `front` and an overload of:

- traversal of the triangles near a box: `begin_near`, `next_near`;
- triangles: `corners_of`, `named_of`;
- normal cones: `normal_cone_of_edge`, `normal_cone_of_vertex`, and by these `normal_cone_at`;
- sharp edges: `is_sharp`;
- the solid: `is_one_sided`, `is_behind`, `has_nearer`, `depth_inside`, `depth_behind`,
    `allowed_direction`.

Points are in the frame of the surface.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import (
    Field,
    Heightfields,
    base_begins,
    field_of,
    field_triangle,
    named_triangle,
    walls_begin,
)
from collidecli.engine.geometry.mesh_points import (
    RISE,
    NormalCone,
    is_behind_mesh,
    is_inside_mesh,
    mesh_edge_cone_contains,
    mesh_vertex_cone_contains,
    nearest_mesh_point,
    outward_at,
    square_to_box,
)
from collidecli.engine.geometry.meshes import (
    Meshes,
    TriangleShape,
    is_nearer_elsewhere,
    square_to_segment,
    triangle_shape,
)
from collidecli.engine.geometry.primitives import middle_of
from collidecli.engine.geometry.real import MESH, Real, Vec3
from collidecli.engine.narrowphase.convex.feature_types import AT_BORDER
from collidecli.engine.narrowphase.convex.features import corner_of
from collidecli.engine.narrowphase.triangles.heightfield_inside import (
    height_over,
    is_nearer_on_field,
    nearest_part,
)
from collidecli.engine.narrowphase.triangles.heightfield_near_segment import (
    SegmentCursor,
    begin_near_segment,
    next_near_segment,
)
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    field_edge_cone,
    field_vertex_cone,
)
from collidecli.engine.narrowphase.triangles.surface import TreeCursor, begin_in_box, next_in_box

# ruff: noqa: F811


@wp.struct
class MeshSurface:
    """A mesh. closed: 1 where it has an interior. front: 1 where it has a front, through which
    alone it is exited."""

    meshes: Meshes
    mesh: int
    closed: int
    front: int


@wp.struct
class FieldSurface:
    """A heightfield, a solid. closed, front: 1.

    beneath: 1 where the shape's middle is below the base; the base then counts and the surface over
    the rectangle does not; else the base does not count (docs/adr/0026). max_separation: length by
    which walls are extended beyond their ends, so that no shape exits below or above them [m].
    """

    field: Field
    closed: int
    front: int
    beneath: int
    max_separation: Real


@wp.func(inline=True)
def mesh_surface(rows: ShapeRows, meshes: Meshes, query: Query) -> MeshSurface:
    """The mesh of a pair."""
    surface = MeshSurface()
    surface.meshes = meshes
    surface.mesh = rows.mesh[query.row_b]
    surface.closed = meshes.arrays[0].header[surface.mesh].is_closed
    surface.front = meshes.arrays[0].header[surface.mesh].has_front
    return surface


@wp.func
def surface_of_field(field: Field) -> FieldSurface:
    """A heightfield, for contacts with its triangles: `beneath` and `max_separation` are 0."""
    surface = FieldSurface()
    surface.field = field
    surface.closed = 1
    surface.front = 1
    return surface


@wp.func(inline=True)
def field_surface(rows: ShapeRows, fields: Heightfields, query: Query) -> FieldSurface:
    """The heightfield of a pair, as `surface_of_field`."""
    return surface_of_field(field_of(fields, rows.heightfield[query.row_b]))


def swept_field_surface(shape_a: Callable[..., Any]) -> Callable[..., Any]:
    """`field_surface` for a shape that is swept, with its `beneath` and `max_separation`.

    shape_a: `primitive_of` or `hull_of`.
    """

    @wp.func(inline=True)
    def surface_of(rows: ShapeRows, fields: Heightfields, query: Query) -> FieldSurface:
        surface = field_surface(rows, fields, query)
        middle = wp.transform_point(
            wp.transform_inverse(query.pose_b_to_a), middle_of(shape_a(rows, query.row_a))
        )
        surface.beneath = wp.where(middle[2] < surface.field.bottom, 1, 0)
        surface.max_separation = Real(4.0) * Real(rows.radius[query.row_a])
        return surface

    return surface_of


@wp.func
def is_one_sided(surface: MeshSurface) -> bool:
    """Whether a mesh is open and is exited only through its front."""
    front = surface.meshes.arrays[0].header[surface.mesh].has_front
    return surface.closed == 0 and front == 1


@wp.func
def is_one_sided(surface: FieldSurface) -> bool:
    """False: a heightfield is a solid."""
    return False


@wp.func
def next_near(surface: MeshSurface, before: TreeCursor, lower: Vec3, upper: Vec3) -> TreeCursor:
    """The traversal at the next triangle whose box intersects a box."""
    return next_in_box(surface.meshes, surface.mesh, before, lower, upper)


@wp.func
def begin_near(surface: MeshSurface, lower: Vec3, upper: Vec3) -> TreeCursor:
    """The traversal at the first triangle whose box intersects a box."""
    return begin_in_box(surface.meshes, surface.mesh, lower, upper)


@wp.func
def counts(surface: FieldSurface, number: int) -> bool:
    """Whether a shape may exit the solid through a triangle, see `FieldSurface`."""
    if surface.beneath == 1:
        return number >= walls_begin(surface.field)
    return number < base_begins(surface.field)


@wp.func(inline=False)
def next_near(
    surface: FieldSurface, before: SegmentCursor, lower: Vec3, upper: Vec3
) -> SegmentCursor:
    """The traversal at the next triangle near the box that counts."""
    cursor = next_near_segment(surface.field, before)
    while cursor.number >= 0 and not counts(surface, cursor.number):
        cursor = next_near_segment(surface.field, cursor)
    return cursor


@wp.func(inline=False)
def begin_near(surface: FieldSurface, lower: Vec3, upper: Vec3) -> SegmentCursor:
    """The traversal at the first triangle that counts near a box, which is taken as a segment grown
    on all sides."""
    half = Real(0.5) * (upper - lower)
    start = lower + half
    # Walls are extended beyond their ends: a box there is moved to the end of the walls.
    if surface.beneath == 1:
        start[2] = wp.min(start[2], surface.field.bottom)
    else:
        start[2] = wp.max(start[2], surface.field.bottom)
    end = start
    longest = int(0)
    for axis in range(1, 3):
        if half[axis] > half[longest]:
            longest = axis
    grown = wp.max(half[(longest + 1) % 3], half[(longest + 2) % 3])
    start[longest] = start[longest] - (half[longest] - grown)
    end[longest] = end[longest] + (half[longest] - grown)
    cursor = begin_near_segment(surface.field, start, end, grown)
    while cursor.number >= 0 and not counts(surface, cursor.number):
        cursor = next_near_segment(surface.field, cursor)
    return cursor


@wp.func
def corners_of(surface: MeshSurface, number: int) -> TriangleShape:
    """A triangle of a mesh without its feature ids."""
    meshes = surface.meshes
    shape = TriangleShape()
    shape.type = MESH
    shape.number = number
    shape.p = meshes.arrays[0].point[meshes.arrays[0].corner[3 * number]]
    shape.q = meshes.arrays[0].point[meshes.arrays[0].corner[3 * number + 1]]
    shape.r = meshes.arrays[0].point[meshes.arrays[0].corner[3 * number + 2]]
    shape.size = Real(0.5) * (
        wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r))
    )
    shape.normal = meshes.arrays[0].face_normal[number]
    return shape


@wp.func
def lengthened(surface: FieldSurface, corner: Vec3) -> Vec3:
    """A corner of a wall, moved by the extension of the wall beyond it."""
    result = corner
    is_low = corner[2] <= surface.field.bottom
    if surface.beneath == 0 and is_low:
        result[2] = corner[2] - surface.max_separation
    elif surface.beneath == 1 and not is_low:
        result[2] = corner[2] + surface.max_separation
    return result


@wp.func(inline=False)
def corners_of(surface: FieldSurface, number: int) -> TriangleShape:
    """A triangle of a heightfield without its feature ids; walls are extended."""
    shape = named_triangle(surface.field, number)
    shape.type = MESH
    if number >= walls_begin(surface.field) and number < base_begins(surface.field):
        shape.p = lengthened(surface, shape.p)
        shape.q = lengthened(surface, shape.q)
        shape.r = lengthened(surface, shape.r)
    shape.size = Real(0.5) * (
        wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r))
    )
    shape.normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
    return shape


@wp.func
def named_of(surface: MeshSurface, number: int) -> TriangleShape:
    """A triangle of a mesh with its feature ids."""
    return triangle_shape(surface.meshes, surface.mesh, number)


@wp.func(inline=False)
def named_of(surface: FieldSurface, number: int) -> TriangleShape:
    """A triangle of a heightfield with its feature ids."""
    return field_triangle(surface.field, number)


@wp.func
def normal_cone_of_edge(
    surface: MeshSurface, shape: TriangleShape, k: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of the interior of side k of a mesh triangle, for a unit direction."""
    meshes = surface.meshes
    normal_cone = NormalCone()
    normal_cone.outward = meshes.arrays[0].edge_normal[meshes.arrays[0].side[3 * shape.number + k]]
    normal_cone.belongs = wp.where(
        mesh_edge_cone_contains(meshes, shape.number, k, direction, rise), 1, 0
    )
    return normal_cone


@wp.func
def normal_cone_of_vertex(
    surface: MeshSurface, shape: TriangleShape, k: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of corner k of a mesh triangle, for a unit direction."""
    meshes = surface.meshes
    normal_cone = NormalCone()
    vertex = meshes.arrays[0].corner[3 * shape.number + k]
    normal_cone.outward = meshes.arrays[0].vertex_normal[vertex]
    normal_cone.belongs = wp.where(mesh_vertex_cone_contains(meshes, vertex, direction, rise), 1, 0)
    return normal_cone


@wp.func
def normal_cone_of_edge(
    surface: FieldSurface, shape: TriangleShape, k: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of the interior of side k of a heightfield triangle."""
    return field_edge_cone(surface.field, shape, k, direction, rise)


@wp.func
def normal_cone_of_vertex(
    surface: FieldSurface, shape: TriangleShape, k: int, direction: Vec3, rise: Real
) -> NormalCone:
    """Normal cone of corner k of a heightfield triangle."""
    return field_vertex_cone(surface.field, shape, k, direction, rise)


@wp.func
def normal_cone_at(surface: Any, shape: TriangleShape, point: Vec3, direction: Vec3) -> NormalCone:
    """Normal cone at a point of a triangle, for a unit direction, both in the surface's frame."""
    normal_cone = NormalCone()
    if wp.length(wp.cross(shape.normal, direction)) < RISE:
        normal_cone.belongs = 1
        normal_cone.outward = shape.normal
        return normal_cone
    near = AT_BORDER * wp.max(shape.size[0], wp.max(shape.size[1], shape.size[2]))
    corner = int(-1)
    side = int(0)
    least = Real(wp.inf)
    for k in range(3):
        if wp.length(point - corner_of(shape, k)) <= near:
            corner = k
        square = square_to_segment(corner_of(shape, k), corner_of(shape, k + 1), point)
        if square < least:
            least = square
            side = k
    if corner >= 0:
        normal_cone = normal_cone_of_vertex(surface, shape, corner, direction, RISE)
        # A point this close to a vertex may be of an edge: its direction is then perpendicular to
        # that edge.
        along = wp.normalize(corner_of(shape, side + 1) - corner_of(shape, side))
        if normal_cone.belongs == 1 or wp.abs(wp.dot(direction, along)) > RISE:
            return normal_cone
    return normal_cone_of_edge(surface, shape, side, direction, RISE)


@wp.func
def is_at_border(surface: MeshSurface, shape: TriangleShape, point: Vec3) -> bool:
    """Whether a point of a triangle is at a corner on the border of an open mesh."""
    bits = surface.meshes.arrays[0].owned[shape.number] >> 12
    near = AT_BORDER * wp.max(shape.size[0], wp.max(shape.size[1], shape.size[2]))
    result = bool(False)
    for k in range(3):
        if (bits >> k) & 1 == 1 and wp.length(point - corner_of(shape, k)) <= near:
            result = True
    return result


@wp.func
def is_at_border(surface: FieldSurface, shape: TriangleShape, point: Vec3) -> bool:
    """False: walls continue a heightfield at its border."""
    return False


@wp.func
def has_sharp_edge(surface: Any, shape: TriangleShape) -> bool:
    """Whether a triangle has a side at which a closed surface bends away by half a right angle."""
    middle = (shape.p + shape.q + shape.r) / Real(3.0)
    result = bool(False)
    for k in range(3):
        start = corner_of(shape, k)
        along = wp.normalize(corner_of(shape, k + 1) - start)
        outwards = start - middle
        outwards = wp.normalize(outwards - wp.dot(outwards, along) * along)
        leaning = wp.normalize(shape.normal + outwards)
        if normal_cone_of_edge(surface, shape, k, leaning, RISE).belongs == 1:
            result = True
    return result


@wp.func
def is_sharp(surface: MeshSurface, shape: TriangleShape) -> bool:
    """Whether a shape may leave a triangle over a sharp edge, or a border that it touches."""
    if (surface.meshes.arrays[0].owned[shape.number] >> 12) != 0:
        return True
    return has_sharp_edge(surface, shape)


@wp.func
def is_sharp(surface: FieldSurface, shape: TriangleShape) -> bool:
    """Whether a shape may leave a triangle over a sharp edge."""
    return has_sharp_edge(surface, shape)


@wp.func
def is_behind(surface: MeshSurface, point: Vec3, off: Vec3, outward: Vec3) -> bool:
    """`is_behind_mesh`: whether a point is behind the surface; one beside the border of an open
    mesh is not.

    off: from a surface point to it. outward: as in `NormalCone`."""
    if surface.closed == 0 and wp.dot(off, outward) > -RISE * wp.length(off) * wp.length(outward):
        return False
    return is_behind_mesh(surface.meshes, surface.mesh, point, off, outward)


@wp.func
def is_behind(surface: FieldSurface, point: Vec3, off: Vec3, outward: Vec3) -> bool:
    """Whether a point is behind a feature of a heightfield."""
    return wp.dot(off, outward) < Real(0.0)


@wp.func
def has_nearer(surface: MeshSurface, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle that does not face against `outward` is closer to a point than `distance`
    [m].

    point: the surface's frame. outward: unit; zero includes every triangle.
    """
    return is_nearer_elsewhere(surface.meshes, surface.mesh, point, distance, outward)


@wp.func
def has_nearer(surface: FieldSurface, point: Vec3, distance: Real, outward: Vec3) -> bool:
    """Whether a triangle of a heightfield, without its base, is closer to a point than `distance`
    [m]."""
    return is_nearer_on_field(surface.field, point, distance, outward)


@wp.func(inline=False)
def depth_inside(surface: MeshSurface, point: Vec3) -> Real:
    """Distance of a point inside a closed mesh from its surface [m]; 0 for a point outside."""
    if surface.closed == 0:
        return Real(0.0)
    root = surface.meshes.arrays[0].header[surface.mesh].first_node
    if square_to_box(surface.meshes, root, point) > Real(0.0):
        return Real(0.0)
    closest = nearest_mesh_point(surface.meshes, surface.mesh, point)
    off = point - closest.point
    if not is_inside_mesh(surface.meshes, surface.mesh, point, closest):
        return Real(0.0)
    return wp.length(off)


@wp.func(inline=False)
def depth_behind(surface: MeshSurface, point: Vec3) -> Real:
    """`depth_inside`; of a one-sided mesh, how far a point is behind the plane of its closest
    feature [m]."""
    if not is_one_sided(surface):
        return depth_inside(surface, point)
    closest = nearest_mesh_point(surface.meshes, surface.mesh, point)
    outward = wp.normalize(outward_at(surface.meshes, closest.face, closest.part))
    return wp.max(Real(0.0), wp.dot(closest.point - point, outward))


@wp.func(inline=False)
def depth_inside(surface: FieldSurface, point: Vec3) -> Real:
    """Distance of a point inside a heightfield from its surface [m]; the solid extends below a base
    that does not count."""
    field = surface.field
    if surface.beneath == 1 or wp.abs(point[0]) >= field.half_x or wp.abs(point[1]) >= field.half_y:
        return Real(0.0)
    if point[2] >= height_over(field, point):
        return Real(0.0)
    if point[2] > field.bottom:
        return nearest_part(field, point).distance
    beside = wp.min(field.half_x - wp.abs(point[0]), field.half_y - wp.abs(point[1]))
    return wp.max(Real(0.0), wp.min(beside, field.bottom - point[2]))


@wp.func
def depth_behind(surface: FieldSurface, point: Vec3) -> Real:
    """`depth_inside`."""
    return depth_inside(surface, point)


@wp.func
def allowed_direction(surface: MeshSurface, direction: Vec3) -> Vec3:
    """The direction itself: every direction is allowed for a mesh."""
    return direction


@wp.func
def allowed_direction(surface: FieldSurface, direction: Vec3) -> Vec3:
    """The allowed direction closest to `direction`: without its part towards the side that does not
    count.

    Motion towards that side does not free a shape sooner.
    """
    result = direction
    if surface.beneath == 1:
        result[2] = wp.min(direction[2], Real(0.0))
    else:
        result[2] = wp.max(direction[2], Real(0.0))
    if wp.length(result) < Real(1.0e-3):
        return Vec3(Real(0.0), Real(0.0), wp.where(surface.beneath == 1, Real(-1.0), Real(1.0)))
    return wp.normalize(result)
