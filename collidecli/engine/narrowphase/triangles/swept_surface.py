"""Surfaces of triangles that a convex shape is swept against: triangles near to a box, and what is in the solid."""

import warp as wp

from collidecli.engine.geometry.heightfields import Field, field_triangle, named_triangle
from collidecli.engine.geometry.mesh_nearest import is_inside_mesh, nearest_place, square_to_box
from collidecli.engine.geometry.meshes import Meshes, TriangleShape, triangle_shape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import MESH
from collidecli.engine.narrowphase.triangles.heightfield_nearest import height_over, nearest_part
from collidecli.engine.narrowphase.triangles.heightfield_segment_triangles import Targets, begin_targets, next_target
from collidecli.engine.narrowphase.triangles.heightfield_triangles import base_begins, walls_begin

# Each question has an answer for each kind of surface: Warp picks by the type of the first argument.
# ruff: noqa: F811


@wp.struct
class MeshSurface:
    """A mesh as the surface that a convex shape is swept against. closed: 1 where it has an inside."""

    meshes: Meshes
    mesh: int
    closed: int


@wp.struct
class FieldSurface:
    """A heightfield as that surface. beneath: 1 where the shape's middle is below the base, which then counts, and the
    surface over the rectangle does not; else the base does not count (docs/adr/0026).

    reach: how far beyond their ends walls go on, so that nothing leaves under or over them [m].
    """

    field: Field
    closed: int
    beneath: int
    max_separation: Real


@wp.func
def is_one_sided(surface: MeshSurface) -> bool:
    """Whether a surface is open and is left by its front only."""
    front = surface.meshes.header[surface.mesh].has_front
    return surface.closed == 0 and front == 1


@wp.func
def is_one_sided(surface: FieldSurface) -> bool:
    """The same; a heightfield is a solid."""
    return False


@wp.struct
class TreeCursor:
    """The triangle in hand, -1 behind the last, and the box of the tree that comes next."""

    number: int
    node: int


@wp.func
def next_near(surface: MeshSurface, before: TreeCursor, lower: Vec3, upper: Vec3) -> TreeCursor:
    """At the next triangle whose box overlaps another."""
    cursor = before
    stop = surface.meshes.header[surface.mesh].end_node
    while cursor.node < stop:
        node = cursor.node
        low = surface.meshes.lower[node]
        high = surface.meshes.upper[node]
        apart = bool(False)
        for axis in range(3):
            apart = apart or low[axis] > upper[axis] or high[axis] < lower[axis]
        if apart:
            cursor.node = surface.meshes.skip[node]
        else:
            cursor.node = node + 1
            if surface.meshes.leaf[node] >= 0:
                cursor.number = surface.meshes.leaf[node]
                return cursor
    cursor.number = -1
    return cursor


@wp.func
def begin_near(surface: MeshSurface, lower: Vec3, upper: Vec3) -> TreeCursor:
    """At the first triangle whose box overlaps another."""
    cursor = TreeCursor()
    cursor.node = surface.meshes.header[surface.mesh].first_node
    return next_near(surface, cursor, lower, upper)


@wp.func
def counts(surface: FieldSurface, number: int) -> bool:
    """Whether a shape may leave the solid through a triangle, see `FieldSurface`."""
    if surface.beneath == 1:
        return number >= walls_begin(surface.field)
    return number < base_begins(surface.field)


@wp.func(inline=False)
def next_near(surface: FieldSurface, before: Targets, lower: Vec3, upper: Vec3) -> Targets:
    """At the next triangle that counts."""
    cursor = next_target(surface.field, before)
    while cursor.number >= 0 and not counts(surface, cursor.number):
        cursor = next_target(surface.field, cursor)
    return cursor


@wp.func(inline=False)
def begin_near(surface: FieldSurface, lower: Vec3, upper: Vec3) -> Targets:
    """At the first triangle that counts near to a box, which is taken as a segment that is grown on all sides."""
    half = Real(0.5) * (upper - lower)
    start = lower + half
    # Walls go on beyond their ends: a box there is brought to where they are.
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
    cursor = begin_targets(surface.field, start, end, grown)
    while cursor.number >= 0 and not counts(surface, cursor.number):
        cursor = next_target(surface.field, cursor)
    return cursor


@wp.func
def corners_of(surface: MeshSurface, number: int) -> TriangleShape:
    """A triangle without the names of its features."""
    meshes = surface.meshes
    shape = TriangleShape()
    shape.type = MESH
    shape.number = number
    shape.p = meshes.point[meshes.corner[3 * number]]
    shape.q = meshes.point[meshes.corner[3 * number + 1]]
    shape.r = meshes.point[meshes.corner[3 * number + 2]]
    shape.size = Real(0.5) * (wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r)))
    shape.normal = meshes.face_normal[number]
    return shape


@wp.func
def lengthened(surface: FieldSurface, corner: Vec3) -> Vec3:
    """A corner of a wall, moved on where the wall goes on beyond it."""
    result = corner
    is_low = corner[2] <= surface.field.bottom
    if surface.beneath == 0 and is_low:
        result[2] = corner[2] - surface.max_separation
    elif surface.beneath == 1 and not is_low:
        result[2] = corner[2] + surface.max_separation
    return result


@wp.func(inline=False)
def corners_of(surface: FieldSurface, number: int) -> TriangleShape:
    """The same on a heightfield."""
    shape = named_triangle(surface.field, number)
    shape.type = MESH
    if number >= walls_begin(surface.field) and number < base_begins(surface.field):
        shape.p = lengthened(surface, shape.p)
        shape.q = lengthened(surface, shape.q)
        shape.r = lengthened(surface, shape.r)
    shape.size = Real(0.5) * (wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r)))
    shape.normal = wp.normalize(wp.cross(shape.q - shape.p, shape.r - shape.p))
    return shape


@wp.func
def named_of(surface: MeshSurface, number: int) -> TriangleShape:
    """A triangle with the names of its features."""
    return triangle_shape(surface.meshes, surface.mesh, number)


@wp.func(inline=False)
def named_of(surface: FieldSurface, number: int) -> TriangleShape:
    """The same on a heightfield."""
    return field_triangle(surface.field, number)


@wp.func(inline=False)
def depth_inside(surface: MeshSurface, point: Vec3) -> Real:
    """How far a point in the solid is from the surface [m]; 0 for one that is not in it."""
    if surface.closed == 0:
        return Real(0.0)
    root = surface.meshes.header[surface.mesh].first_node
    if square_to_box(surface.meshes, root, point) > Real(0.0):
        return Real(0.0)
    place = nearest_place(surface.meshes, surface.mesh, point)
    off = point - place.point
    if not is_inside_mesh(surface.meshes, surface.mesh, point, place):
        return Real(0.0)
    return wp.length(off)


@wp.func(inline=False)
def depth_inside(surface: FieldSurface, point: Vec3) -> Real:
    """The same in a heightfield, whose solid goes on where the base does not count."""
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
def allowed_way(surface: MeshSurface, way: Vec3) -> Vec3:
    """The direction of the surface's frame that is tried in place of `way`: any is."""
    return way


@wp.func
def allowed_way(surface: FieldSurface, way: Vec3) -> Vec3:
    """None that goes on below what does not count: what goes so far is free no sooner than without going down."""
    result = way
    if surface.beneath == 1:
        result[2] = wp.min(way[2], Real(0.0))
    else:
        result[2] = wp.max(way[2], Real(0.0))
    if wp.length(result) < Real(1.0e-3):
        return Vec3(Real(0.0), Real(0.0), wp.where(surface.beneath == 1, Real(-1.0), Real(1.0)))
    return wp.normalize(result)
