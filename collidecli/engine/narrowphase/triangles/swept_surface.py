"""Surfaces against which a convex shape is swept: traversal of the triangles near a box, and depth inside the solid.

The functions have an overload for each of `MeshSurface` and `FieldSurface`: Warp picks by the type of the first
argument.
"""

import warp as wp

from collidecli.engine.geometry.heightfields import Field, base_begins, field_triangle, named_triangle, walls_begin
from collidecli.engine.geometry.mesh_nearest import is_inside_mesh, nearest_mesh_point, outward_at, square_to_box
from collidecli.engine.geometry.meshes import Meshes, TriangleShape, triangle_shape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import MESH
from collidecli.engine.narrowphase.triangles.heightfield_nearest import height_over, nearest_part
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    SegmentCursor,
    begin_near_segment,
    next_near_segment,
)
from collidecli.engine.narrowphase.triangles.triangle_source import TreeCursor, begin_in_box, next_in_box

# ruff: noqa: F811


@wp.struct
class MeshSurface:
    """A mesh against which a convex shape is swept. closed: 1 where it has an interior."""

    meshes: Meshes
    mesh: int
    closed: int


@wp.struct
class FieldSurface:
    """A heightfield against which a convex shape is swept.

    beneath: 1 where the shape's middle is below the base; the base then counts and the surface over the rectangle does
    not; else the base does not count (docs/adr/0026). max_separation: length by which walls are extended beyond their
    ends, so that no shape exits below or above them [m].
    """

    field: Field
    closed: int
    beneath: int
    max_separation: Real


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
def next_near(surface: FieldSurface, before: SegmentCursor, lower: Vec3, upper: Vec3) -> SegmentCursor:
    """The traversal at the next triangle near the box that counts."""
    cursor = next_near_segment(surface.field, before)
    while cursor.number >= 0 and not counts(surface, cursor.number):
        cursor = next_near_segment(surface.field, cursor)
    return cursor


@wp.func(inline=False)
def begin_near(surface: FieldSurface, lower: Vec3, upper: Vec3) -> SegmentCursor:
    """The traversal at the first triangle that counts near a box, which is taken as a segment grown on all sides."""
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
    shape.size = Real(0.5) * (wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r)))
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
    shape.size = Real(0.5) * (wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r)))
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
    """`depth_inside`; of a one-sided mesh, how far a point is behind the plane of its closest feature [m]."""
    if not is_one_sided(surface):
        return depth_inside(surface, point)
    closest = nearest_mesh_point(surface.meshes, surface.mesh, point)
    outward = wp.normalize(outward_at(surface.meshes, closest.face, closest.part))
    return wp.max(Real(0.0), wp.dot(closest.point - point, outward))


@wp.func(inline=False)
def depth_inside(surface: FieldSurface, point: Vec3) -> Real:
    """Distance of a point inside a heightfield from its surface [m]; the solid extends below a base that does not
    count."""
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
    """The allowed direction closest to `direction`: without its part towards the side that does not count.

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
