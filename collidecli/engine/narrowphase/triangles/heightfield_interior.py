"""Interior queries of a heightfield's solid for a triangle source: containment, exit points and chords."""

import warp as wp

from collidecli.engine.geometry.heightfields import Field, base_begins, walls_begin
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
from collidecli.engine.narrowphase.triangles.heightfield_traversal import begin_near_segment, next_near_segment
from collidecli.engine.narrowphase.triangles.heightfield_triangles import (
    closest_point_on_face,
    face_corner,
    face_normal,
    is_face_crossed,
)

AT_BASE = wp.constant(Real(1.0e-9))
"""Fraction of a heightfield's size: points this close to the level of the base are on it."""


@wp.struct
class HeightfieldPair:
    """The triangle source of a mesh and a heightfield. A surface number below 0 denotes the heightfield.

    beneath: 1 where the mesh's middle is below the level of the base; under: 1 where it is also below the rectangle. An
    inner point exits through the base only if `beneath`, and through the surface unless `under` (docs/adr/0026).
    """

    meshes: Meshes
    field: Field
    beneath: int
    under: int


@wp.func
def is_exit(heightfield_pair: HeightfieldPair, number: int) -> bool:
    """Whether an inner point may exit through a triangle."""
    if number >= base_begins(heightfield_pair.field):
        return heightfield_pair.beneath == 1
    return heightfield_pair.under == 0 or number >= walls_begin(heightfield_pair.field)


@wp.func(inline=False)
def exit_point(heightfield_pair: HeightfieldPair, point: Vec3) -> MeshPoint:
    """The closest exit point of an inner point; of equally close ones the first, walls before surface and base."""
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
        # The base is split by its diagonal; seen from below, its first triangle is above it.
        if point[0] * field.half_y > point[1] * field.half_x:
            number += 1
    return closest_point_on_face(field, number, point)


@wp.func
def is_at_field(field: Field, point: Vec3, touch: Real) -> bool:
    """Whether a point outside the solid is within `touch` [m] of it."""
    if point[2] <= field.bottom and wp.abs(point[0]) <= field.half_x and wp.abs(point[1]) <= field.half_y:
        return field.bottom - point[2] <= touch
    return is_nearer_on_field(field, point, touch, Vec3())


@wp.func(inline=False)
def depth_in_field(heightfield_pair: HeightfieldPair, point: Vec3, touch: Real) -> Real:
    """Depth of a point inside the solid [m]; outside 0 within `touch` [m], else -inf. See `surface_interior`."""
    if is_inside(heightfield_pair.field, point):
        return wp.sqrt(exit_point(heightfield_pair, point).square)
    if is_at_field(heightfield_pair.field, point, touch):
        return Real(0.0)
    return -Real(wp.inf)


@wp.func
def crossing_of_face(field: Field, number: int, start: Vec3, end: Vec3) -> Real:
    """Parameter at which a segment crosses the plane of a triangle that it crosses."""
    normal = face_normal(field, number)
    corner = face_corner(field, number, 0)
    low = wp.dot(normal, start - corner)
    high = wp.dot(normal, end - corner)
    return low / (low - high)


@wp.func(inline=False)
def chord_in_field(field: Field, start: Vec3, end: Vec3, at: Real) -> wp.vec2d:
    """The interval of a segment's parameter around `at` in which it crosses no triangle; see
    `surface_interior.chord_of`."""
    begins = Real(-1.0)
    ends = Real(2.0)
    cursor = begin_near_segment(field, start, end, Real(0.0))
    while cursor.number >= 0:
        if is_face_crossed(field, cursor.number, start, end):
            t = crossing_of_face(field, cursor.number, start, end)
            if t <= at:
                begins = wp.max(begins, t)
            else:
                ends = wp.min(ends, t)
        cursor = next_near_segment(field, cursor)
    return wp.vec2d(begins, ends)


@wp.func
def deepest_of_part(heightfield_pair: HeightfieldPair, start: Vec3, end: Vec3, enters: Real, leaves: Real) -> Real:
    """The parameter that represents the part of a segment inside: the middle, or its end at a base that is no exit."""
    field = heightfield_pair.field
    near = AT_BASE * (field.half_x + field.half_y - field.bottom)
    if heightfield_pair.beneath == 0 and wp.abs(start[2] + leaves * (end[2] - start[2]) - field.bottom) <= near:
        return leaves + AT_BASE * (enters - leaves)
    if heightfield_pair.beneath == 0 and wp.abs(start[2] + enters * (end[2] - start[2]) - field.bottom) <= near:
        return enters + AT_BASE * (leaves - enters)
    return Real(0.5) * (enters + leaves)
