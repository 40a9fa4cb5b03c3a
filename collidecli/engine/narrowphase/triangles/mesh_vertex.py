"""Contacts of a vertex of one surface with the other surface."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.mesh_nearest import EDGE_PART, FACE_PART
from collidecli.engine.geometry.meshes import square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.contact_priority import FALLBACK
from collidecli.engine.narrowphase.triangles.mesh_pair_context import (
    MeshPairContext,
    append_contact,
    is_facing,
    origin_of,
    own_direction,
    penetration_of_point,
)
from collidecli.engine.narrowphase.triangles.normal_cones import RISE
from collidecli.engine.narrowphase.triangles.triangle_source import (
    closest_point_on,
    corner_cone_contains,
    corner_on,
    edge_cone_contains,
    feature_on,
    is_front_facing,
    is_owned,
    normal_on,
    outward_on,
    priority_on,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an `and`.
# ruff: noqa: SIM102


@wp.func
def part_cone_contains(source: Any, surface: int, face: int, part: int, direction: Vec3) -> bool:
    """Whether a unit direction is in the normal cone of a side or a corner of a triangle."""
    if part >= EDGE_PART:
        return edge_cone_contains(source, surface, face, part - EDGE_PART, direction)
    return corner_cone_contains(source, surface, face, part, direction)


@wp.func
def part_snapped(source: Any, surface: int, face: int, part: int, point: Vec3, near: Real) -> int:
    """The corner or side within `near` [m] of a point of a triangle; else its part.

    All triangles around an edge or vertex then assign the point to one feature.
    """
    if part < EDGE_PART:
        return part
    for k in range(3):
        if wp.length(point - corner_on(source, surface, face, k)) <= near:
            return k
    if part < FACE_PART:
        return part
    for k in range(3):
        start = corner_on(source, surface, face, k)
        square = square_to_segment(start, corner_on(source, surface, face, k + 1), point)
        if square <= near * near:
            return EDGE_PART + k
    return part


@wp.func
def side_toward(context: MeshPairContext, source: Any, normal: Vec3, at: Vec3, height: Real) -> Real:
    """1 where a point is in front of a triangle of other, -1 behind; for a point that touches it, by own's origin."""
    if context.other_front == 1:
        return Real(1.0)
    if wp.abs(height) > context.touch:
        return wp.sign(height)
    return wp.where(wp.dot(normal, origin_of(context, source, at) - at) < Real(0.0), Real(-1.0), Real(1.0))


@wp.func(inline=False)
def vertex_on_triangle(
    context: MeshPairContext, source: Any, face: int, k: int, point: Vec3, target: int, rows: ContactRows, count: int
) -> int:
    """Appends the contact of corner k of own's triangle `face`, at `point`, with other's triangle `target`, if any.

    The point is above the interior of the triangle, or above an edge or vertex that the triangle owns. The direction is
    in the normal cones of both features, or is the triangle's normal. Returns the count of contacts after it.
    """
    closest = closest_point_on(source, context.other, target, point)
    if closest.square >= context.max_separation * context.max_separation:
        return count
    part = part_snapped(source, context.other, target, closest.part, closest.point, context.touch)
    if part < FACE_PART:
        if not is_owned(source, context.other, target, part):
            return count
    normal = normal_on(source, context.other, target)
    distance = wp.sqrt(closest.square)
    height = wp.dot(normal, point - corner_on(source, context.other, target, 0))
    side = side_toward(context, source, normal, closest.point, height)
    direction = -side * normal
    is_level = bool(True)
    if part < FACE_PART:
        if distance > context.touch:
            direction = (closest.point - point) / distance
            is_level = wp.length(wp.cross(direction, normal)) < RISE
            if not part_cone_contains(source, context.other, target, part, -direction):
                return count
            if context.other_front == 1 and not is_front_facing(
                outward_on(source, context.other, target, part), -direction
            ):
                return count
        elif context.other_front == 1 and wp.length_sq(outward_on(source, context.other, target, part)) > Real(0.0):
            direction = -wp.normalize(outward_on(source, context.other, target, part))
    elif side * height < -context.touch:
        return count
    if not is_facing(context, source, face, k, direction):
        if distance > context.touch:
            return count
        # A vertex that faces in the direction of the surface it touches overlaps: a fallback contact.
        code = feature_on(source, context.own, face, k)
        code_other = feature_on(source, context.other, target, part)
        separation = wp.dot(closest.point - point, direction)
        return append_contact(context, rows, count, point, direction, separation, code, code_other, FALLBACK, 0)
    if not is_level and not corner_cone_contains(source, context.own, face, k, own_direction(context, direction)):
        return count
    code = feature_on(source, context.own, face, k)
    code_other = feature_on(source, context.other, target, part)
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    return append_contact(
        context, rows, count, point, direction, wp.dot(closest.point - point, direction), code, code_other, priority, 0
    )


@wp.func
def vertex_inside(
    context: MeshPairContext, source: Any, face: int, k: int, point: Vec3, rows: ContactRows, count: int
) -> wp.vec2i:
    """Appends the contact of a corner that is inside other; returns the count, and 1 where the corner is inside."""
    penetration = penetration_of_point(context, source, point)
    if penetration.found == 0:
        return wp.vec2i(count, 0)
    priority = wp.where(
        is_facing(context, source, face, k, penetration.direction), priority_on(source, context.own, face), FALLBACK
    )
    code = feature_on(source, context.own, face, k)
    return wp.vec2i(
        append_contact(
            context,
            rows,
            count,
            point,
            penetration.direction,
            -penetration.depth,
            code,
            penetration.feature,
            priority,
            1,
        ),
        1,
    )
