"""First translation along a direction at which a convex shape no longer overlaps a surface of triangles.

A convex shape A overlaps triangle T while its translation x is in the Minkowski difference T - A, a convex set, so
along a ray it does so for one interval. `leave_triangle` gives the interval's end by conservative advancement from
beyond it: planes that separate A from T at an upper bound of the end lower the bound until the two touch (van den Bergh
2004, "Ray casting against general convex objects"). `first_free` goes from the end of one overlap to the end of the
next.

Directions and normals are in the shape's frame, boxes and points of the surface in the surface's.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.heightfields import Field, field_triangle, named_triangle
from collidecli.engine.geometry.mesh_nearest import nearest_place, outward_at, square_to_box
from collidecli.engine.geometry.meshes import HEADER, Meshes, TriangleShape, triangle_shape
from collidecli.engine.geometry.real import Mat33, Real, Vec3
from collidecli.engine.geometry.shape_codes import MESH
from collidecli.engine.geometry.support import Vertex, difference_support, support_point
from collidecli.engine.narrow_phase.convex.gjk import OVERLAP, nearest_of_cores
from collidecli.engine.narrow_phase.heightfield.faces import base_begins, walls_begin
from collidecli.engine.narrow_phase.heightfield.nearest import height_over, nearest_part
from collidecli.engine.narrow_phase.heightfield.targets import Targets, begin_targets, next_target
from collidecli.engine.narrow_phase.mesh.region import Region, boxes_overlap, is_in_region

# Each question has an answer for each kind of surface: Warp picks by the type of the first argument.
# ruff: noqa: F811

TOUCH = wp.constant(Real(1.0e-9))
"""Share of the pair's size: a shape that overlaps a triangle by no more touches it."""
ADVANCES = wp.constant(32)
"""Steps of conservative advancement. Measured: at most some 12."""
SWEEPS = wp.constant(64)
"""Traversals of the surface for one direction. Measured: at most some 10."""
RECENT = 4
"""Triangles that a shape had to leave last, along other directions: they are tested first."""


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
    reach: Real


@wp.struct
class TreeCursor:
    """The triangle in hand, -1 behind the last, and the box of the tree that comes next."""

    number: int
    node: int


@wp.func
def next_near(surface: MeshSurface, before: TreeCursor, lower: Vec3, upper: Vec3) -> TreeCursor:
    """At the next triangle whose box overlaps another."""
    cursor = before
    stop = surface.meshes.header[surface.mesh * wp.static(HEADER) + 4]
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
    cursor.node = surface.meshes.header[surface.mesh * wp.static(HEADER) + 3]
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
        result[2] = corner[2] - surface.reach
    elif surface.beneath == 1 and not is_low:
        result[2] = corner[2] + surface.reach
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
    root = surface.meshes.header[surface.mesh * wp.static(HEADER) + 3]
    if square_to_box(surface.meshes, root, point) > Real(0.0):
        return Real(0.0)
    place = nearest_place(surface.meshes, surface.mesh, point)
    off = point - place.point
    if wp.dot(off, outward_at(surface.meshes, place.face, place.part)) >= Real(0.0):
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


@wp.struct
class Sweep:
    """A convex shape before it is moved. rotation, position: the surface's frame in the shape's.

    lower, upper: the shape's box, and middle: a point in it, the surface's frame [m]. half: half extents of its own
    box, its own frame [m]. touch: TOUCH of the size; size: of the smaller of the two [m]. region: where in_region is 1,
    what of the surface is overlapped elsewhere does not count.
    """

    rotation: Mat33
    position: Vec3
    lower: Vec3
    upper: Vec3
    middle: Vec3
    half: Vec3
    touch: Real
    size: Real
    region: Region
    in_region: int


@wp.struct
class FreeAt:
    """Where a shape is free first along a direction, or that it is not before a limit.

    t: the translation [m]; at least the limit where it was reached. number: the triangle that it touches there, -1 for
    none; normal: unit, the shape's frame, away from that triangle. exact: 0 where the number of steps ended the search.
    """

    t: Real
    number: int
    normal: Vec3
    exact: int


@wp.struct
class Leaving:
    """t: where a shape leaves a triangle, or where it was asked if it does not overlap it there [m]. normal: away from
    the triangle, the shape's frame. exact: 0 where `t` is only an upper bound."""

    t: Real
    normal: Vec3
    exact: int


@wp.func(inline=False)
def leave_triangle(
    a: Any, cores: Any, way: Vec3, behind: Real, ahead: Real, t: Real, touch: Real, simplex: wp.array[Vertex]
) -> Leaving:
    """Where a shape that moves along `way` leaves a triangle that it overlaps once it is moved by t.

    cores: of the shape where it is and of the triangle. behind, ahead: the shape's extent along `way` [m].
    """
    result = Leaving()
    result.t = t
    result.exact = 1
    radius = cores.radius_a
    p = cores.rotation * cores.b.p + cores.position
    q = cores.rotation * cores.b.q + cores.position
    r = cores.rotation * cores.b.r + cores.position
    on_p = wp.dot(p, way)
    on_q = wp.dot(q, way)
    on_r = wp.dot(r, way)
    end = wp.max(on_p, wp.max(on_q, on_r)) - behind
    if end <= t + touch or wp.min(on_p, wp.min(on_q, on_r)) - ahead >= t - touch:
        return result
    normal = way
    face = cores.rotation * cores.b.normal
    level = wp.dot(p, face)
    rate = wp.dot(way, face)
    high = wp.dot(support_point(a, face), face) + t * rate - level
    low = wp.dot(support_point(a, -face), face) + t * rate - level
    if low >= -touch or high <= touch:
        return result
    if rate > Real(0.0) and -low < rate * (end - t):
        end = t - low / rate
        normal = face
    elif rate < Real(0.0) and high < -rate * (end - t):
        end = t - high / rate
        normal = -face
    moved = cores
    moved.position = cores.position - t * way
    guess = wp.where(wp.abs(high) < wp.abs(low), face, -face)
    nearest = nearest_of_cores(moved, guess, wp.max(radius - touch, Real(0.0)), simplex)
    if nearest.state != OVERLAP and nearest.distance >= radius - touch:
        return result
    result.exact = 0
    for _step in range(ADVANCES):
        moved.position = cores.position - end * way
        nearest = nearest_of_cores(moved, -normal, Real(wp.inf), simplex)
        if nearest.state == OVERLAP or nearest.distance <= radius + touch:
            result.exact = 1
            break
        height = wp.dot(difference_support(cores, nearest.normal).point, nearest.normal) + radius
        closing = -wp.dot(way, nearest.normal)
        if closing <= Real(0.0) or height / closing >= end:
            result.exact = 1
            break
        end = height / closing
        normal = -nearest.normal
    if end > t + touch:
        result.t = end
        result.normal = normal
    return result


@wp.func(inline=False)
def leave_region(
    a: Any, cores: Any, sweep: Sweep, way: Vec3, behind: Real, ahead: Real, t: Real, simplex: wp.array[Vertex]
) -> Leaving:
    """As `leave_triangle`, of a triangle that counts only where it is overlapped in the sweep's region."""
    left = leave_triangle(a, cores, way, behind, ahead, t, sweep.touch, simplex)
    if sweep.in_region == 1 and left.t > t:
        p = cores.rotation * cores.b.p + cores.position
        q = cores.rotation * cores.b.q + cores.position
        r = cores.rotation * cores.b.r + cores.position
        if not is_in_region(sweep.region, sweep.half, p, q, r, way, t, sweep.touch):
            left.t = t
    return left


@wp.func
def middle_in_region(sweep: Sweep, way: Vec3, t: Real) -> bool:
    """Whether the middle of a moved shape is in what the sweep's region covers when it moves along."""
    if sweep.in_region == 0:
        return True
    middle = sweep.rotation * sweep.middle + sweep.position + t * way
    lower = wp.min(sweep.region.lower, sweep.region.lower + t * way)
    upper = wp.max(sweep.region.upper, sweep.region.upper + t * way)
    return boxes_overlap(middle, middle, lower, upper, sweep.touch)


@wp.func(inline=False)
def first_free(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    way: Vec3,
    limit: Real,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> FreeAt:
    """The first translation along a unit direction at which a convex shape overlaps no part of a surface or its solid.

    Args:
        pair: cores of the shape and of any triangle of the surface.
        way: the shape's frame.
        limit: the search ends once the translation is known to be at least this [m].
        recent: triangles that are tested first; kept up to date.
    """
    result = FreeAt()
    result.number = -1
    result.normal = way
    result.exact = 1
    cores = pair
    ahead = wp.dot(support_point(a, way), way)
    behind = wp.dot(support_point(a, -way), way)
    along = wp.transpose(sweep.rotation) * way
    for k in range(wp.static(RECENT)):
        if recent[k] >= 0:
            cores.b = corners_of(surface, recent[k])
            left = leave_region(a, cores, sweep, way, behind, ahead, result.t, simplex)
            if left.t > result.t:
                result.t = left.t
                result.number = recent[k]
                result.normal = left.normal
                result.exact = wp.min(result.exact, left.exact)
    if result.t >= limit:
        return result
    grown = Vec3(sweep.touch, sweep.touch, sweep.touch)
    changed = bool(True)
    sweeps = int(0)
    while changed:
        changed = bool(False)
        sweeps += 1
        lower = sweep.lower + result.t * along - grown
        upper = sweep.upper + result.t * along + grown
        cursor = begin_near(surface, lower, upper)
        while cursor.number >= 0:
            cores.b = corners_of(surface, cursor.number)
            left = leave_region(a, cores, sweep, way, behind, ahead, result.t, simplex)
            if left.t > result.t:
                changed = True
                result.t = left.t
                result.number = cursor.number
                result.normal = left.normal
                result.exact = wp.min(result.exact, left.exact)
                if result.t >= limit:
                    for k in range(wp.static(RECENT - 1)):
                        recent[wp.static(RECENT - 1) - k] = recent[wp.static(RECENT - 2) - k]
                    recent[0] = cursor.number
                    return result
                lower = sweep.lower + result.t * along - grown
                upper = sweep.upper + result.t * along + grown
            cursor = next_near(surface, cursor, lower, upper)
        if not changed:
            # No triangle is overlapped: the shape is wholly in the solid, or wholly out of it.
            inside = Real(0.0)
            if middle_in_region(sweep, way, result.t):
                inside = depth_inside(surface, sweep.middle + result.t * along)
            if inside > Real(0.0):
                changed = True
                result.t += wp.max(inside, sweep.touch)
                if result.t >= limit:
                    return result
        if sweeps >= SWEEPS and changed:
            result.t = Real(wp.inf)
            result.exact = 0
            return result
    return result
