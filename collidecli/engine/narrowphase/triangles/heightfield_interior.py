"""Whether a point or a segment is in a heightfield's solid, and the way out: what meshes ask of their other."""

import warp as wp

from collidecli.engine.geometry.heightfields import Field
from collidecli.engine.geometry.mesh_nearest import MeshPoint
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.triangles.heightfield_nearest import (
    foot_on_side,
    height_over,
    is_inside,
    is_nearer_on_field,
    nearest_part,
    wall_under,
)
from collidecli.engine.narrowphase.triangles.heightfield_segment_triangles import begin_targets, next_target
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    base_begins,
    face_corner,
    face_normal,
    goes_through_face,
    place_on_face,
    walls_begin,
)

AT_BASE = wp.constant(Real(1.0e-9))
"""Share of a heightfield's size: what is this near to the level of the base is on it."""


@wp.struct
class HeightfieldPair:
    """The surfaces of a pair of a mesh and a heightfield. In place of a mesh's number, any below 0 is the heightfield.

    beneath: 1 where the mesh's middle is lower than the base; under: and below the rectangle. What is inside then does
    not leave through the surface; else it does not leave through the base (docs/adr/0026).
    """

    meshes: Meshes
    field: Field
    beneath: int
    under: int


@wp.func
def is_exit(heightfield_pair: HeightfieldPair, number: int) -> bool:
    """Whether what is inside may leave through a triangle."""
    if number >= base_begins(heightfield_pair.field):
        return heightfield_pair.beneath == 1
    return heightfield_pair.under == 0 or number >= walls_begin(heightfield_pair.field)


@wp.func(inline=False)
def exit_place(heightfield_pair: HeightfieldPair, point: Vec3) -> MeshPoint:
    """The nearest place that lets a point inside out; of equals the first, walls before surface and base."""
    field = heightfield_pair.field
    number = int(-1)
    least = Real(wp.inf)
    if heightfield_pair.under == 0:
        part = nearest_part(field, point)
        number = part.number
        least = part.distance
    else:
        for segment in range(4):
            foot = foot_on_side(field, segment, point)
            distance = wp.length(foot - point)
            if distance < least and height_over(field, foot) >= point[2]:
                least = distance
                number = wall_under(field, segment, point)
    if heightfield_pair.beneath == 1 and point[2] - field.bottom < least:
        number = base_begins(field)
        # Above the diagonal is the first, seen from below.
        if point[0] * field.half_y > point[1] * field.half_x:
            number += 1
    return place_on_face(field, number, point)


@wp.func
def is_at_field(field: Field, point: Vec3, touch: Real) -> bool:
    """Whether a point outside is within `touch` [m] of the solid."""
    if point[2] <= field.bottom and wp.abs(point[0]) <= field.half_x and wp.abs(point[1]) <= field.half_y:
        return field.bottom - point[2] <= touch
    return is_nearer_on_field(field, point, touch, Vec3())


@wp.func(inline=False)
def depth_in_field(heightfield_pair: HeightfieldPair, point: Vec3, touch: Real) -> Real:
    """As `mesh.view.depth_inside`; outside 0 within `touch` [m], -inf beyond."""
    if is_inside(heightfield_pair.field, point):
        return wp.sqrt(exit_place(heightfield_pair, point).square)
    if is_at_field(heightfield_pair.field, point, touch):
        return Real(0.0)
    return -Real(wp.inf)


@wp.func
def share_through_face(field: Field, number: int, start: Vec3, end: Vec3) -> Real:
    """Share of a segment at which it meets the plane of a triangle that it goes through."""
    normal = face_normal(field, number)
    corner = face_corner(field, number, 0)
    low = wp.dot(normal, start - corner)
    high = wp.dot(normal, end - corner)
    return low / (low - high)


@wp.func(inline=False)
def chord_in_field(field: Field, start: Vec3, end: Vec3, at: Real) -> wp.vec2d:
    """As `mesh.edge.chord_of`."""
    begins = Real(-1.0)
    ends = Real(2.0)
    targets = begin_targets(field, start, end, Real(0.0))
    while targets.number >= 0:
        if goes_through_face(field, targets.number, start, end):
            share = share_through_face(field, targets.number, start, end)
            if share <= at:
                begins = wp.max(begins, share)
            else:
                ends = wp.min(ends, share)
        targets = next_target(field, targets)
    return wp.vec2d(begins, ends)


@wp.func
def deepest_of_part(heightfield_pair: HeightfieldPair, start: Vec3, end: Vec3, enters: Real, leaves: Real) -> Real:
    """The share of a segment that stands for its part inside: the middle, or where it goes through a base that lets
    nothing out."""
    field = heightfield_pair.field
    near = AT_BASE * (field.half_x + field.half_y - field.bottom)
    if heightfield_pair.beneath == 0 and wp.abs(start[2] + leaves * (end[2] - start[2]) - field.bottom) <= near:
        return leaves + AT_BASE * (enters - leaves)
    if heightfield_pair.beneath == 0 and wp.abs(start[2] + enters * (end[2] - start[2]) - field.bottom) <= near:
        return enters + AT_BASE * (leaves - enters)
    return Real(0.5) * (enters + leaves)
