"""Contacts of a vertex of a mesh with the surface of the other mesh, or with a heightfield.

The quantities are those of `surface_pair.MeshPairContext`: in the frame of the other surface.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import FALLBACK
from collidecli.engine.geometry.mesh_points import EDGE_PART, FACE_PART, RISE
from collidecli.engine.geometry.meshes import square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.mesh_pair_context import (
    MeshPairContext,
    append_contact,
    append_crossing,
    is_facing,
    own_direction,
)
from collidecli.engine.narrowphase.triangles.surface import (
    closest_point_on,
    corner_cone_contains,
    corner_on,
    edge_cone_contains,
    exit_point_of,
    feature_on,
    is_front_facing,
    is_owned,
    normal_on,
    origin_on,
    outward_on,
    priority_on,
)

# Cheap conditions precede expensive ones in nested ifs: Warp may evaluate both operands of an
# `and`.
# ruff: noqa: SIM102


@wp.func
def part_cone_contains(
    source: Any, surface: int, face: int, part: int, direction: Vec3, rise: Real
) -> bool:
    """Whether a unit direction is in the normal cone of a side or a corner of a triangle, to a sine
    of `rise`."""
    if part >= EDGE_PART:
        return edge_cone_contains(source, surface, face, part - EDGE_PART, direction, rise)
    return corner_cone_contains(source, surface, face, part, direction, rise)


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
def side_toward(
    context: MeshPairContext, source: Any, normal: Vec3, at: Vec3, height: Real
) -> Real:
    """1 where a point is in front of a triangle of other, -1 behind; for a point that touches it,
    by own's origin."""
    if context.other_front == 1:
        return Real(1.0)
    if wp.abs(height) > context.touch:
        return wp.sign(height)
    # The point that decides on which side of an open surface a touching point of own is.
    origin = origin_on(source, context.own, context.origin, context.pose, at)
    return wp.where(wp.dot(normal, origin - at) < Real(0.0), Real(-1.0), Real(1.0))


BETWEEN_NORMALS = wp.constant(1)
"""Term of the priority of a vertex that touches an edge or a vertex along no triangle's normal."""


@wp.func(inline=False)
def touching_vertex(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    point: Vec3,
    target: int,
    part: int,
    on_other: Vec3,
    side: Real,
    rows: ContactRows,
    count: int,
) -> int:
    """Appends the contact of a corner that touches part `part` of other's triangle `target`, if
    any.

    The direction to a point that touches is rounding. The contact is along the triangle's normal
    where that is in the corner's normal cone, so that surfaces that rest on each other have one
    normal at corners and borders too; any triangle around an edge or vertex may give it. Else,
    where the part is no interior and other has a front, along the pseudonormal there. Of contacts
    of one feature from several triangles one is kept. A corner that does not face along the
    direction, or from which a triangle rises along it, passes through the other surface: a fallback
    contact, and where its region has a depth the corner exits along it.
    """
    direction = -side * normal_on(source, context.other, target)
    separation = wp.dot(on_other - point, direction)
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    in_own = own_direction(context, direction)
    rises_nowhere = corner_cone_contains(source, context.own, face, k, in_own, RISE)
    if not rises_nowhere and part < FACE_PART and context.other_front == 1:
        outward = outward_on(source, context.other, target, part)
        if wp.length_sq(outward) > Real(0.0):
            direction = -wp.normalize(outward)
            # Not negative: a contact along a normal precedes it.
            separation = wp.length(on_other - point)
            priority += BETWEEN_NORMALS
            in_own = own_direction(context, direction)
            rises_nowhere = corner_cone_contains(source, context.own, face, k, in_own, RISE)
    code = feature_on(source, context.own, face, k)
    passes_through = not rises_nowhere or not is_facing(context, source, face, k, direction)
    if passes_through:
        priority = FALLBACK
        count = append_crossing(context, rows, count, point, code)
    code_other = feature_on(source, context.other, target, part)
    return append_contact(
        context, rows, count, point, direction, separation, code, code_other, priority, 0
    )


@wp.func(inline=False)
def vertex_on_triangle(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    point: Vec3,
    target: int,
    rows: ContactRows,
    count: int,
) -> int:
    """Appends the contact of corner k of own's triangle `face`, at `point`, with other's triangle
    `target`, if any.

    The point is above the interior of the triangle, or above an edge or vertex that the triangle
    owns. The direction is in the normal cones of both features, or is the triangle's normal. A
    point above the interior within a touch of an edge or vertex has the feature of that, whichever
    triangles find it. Returns the count of contacts after it.
    """
    closest = closest_point_on(source, context.other, target, point)
    if closest.square >= context.max_separation * context.max_separation:
        return count
    part = part_snapped(source, context.other, target, closest.part, closest.point, context.touch)
    normal = normal_on(source, context.other, target)
    distance = wp.sqrt(closest.square)
    height = wp.dot(normal, point - corner_on(source, context.other, target, 0))
    side = side_toward(context, source, normal, closest.point, height)
    if distance <= context.touch:
        return touching_vertex(
            context, source, face, k, point, target, part, closest.point, side, rows, count
        )
    if closest.part < FACE_PART:
        if not is_owned(source, context.other, target, closest.part):
            return count
    off = closest.point - point
    direction = -side * normal
    is_level = bool(True)
    if closest.part < FACE_PART and wp.length(wp.cross(off, normal)) > context.touch:
        direction = off / distance
        is_level = wp.length(wp.cross(direction, normal)) < RISE
        if not part_cone_contains(source, context.other, target, closest.part, -direction, RISE):
            return count
        if context.other_front == 1 and not is_front_facing(
            outward_on(source, context.other, target, closest.part),
            -direction,
            context.other_closed,
        ):
            return count
    elif side * height < -context.touch:
        return count
    if not is_facing(context, source, face, k, direction):
        return count
    if not is_level:
        in_own = own_direction(context, direction)
        if not corner_cone_contains(source, context.own, face, k, in_own, RISE):
            return count
    priority = priority_on(source, context.own, face) + priority_on(source, context.other, target)
    separation = wp.dot(closest.point - point, direction)
    code = feature_on(source, context.own, face, k)
    code_other = feature_on(source, context.other, target, part)
    return append_contact(
        context, rows, count, point, direction, separation, code, code_other, priority, 0
    )


@wp.func
def vertex_inside(
    context: MeshPairContext,
    source: Any,
    face: int,
    k: int,
    point: Vec3,
    rows: ContactRows,
    count: int,
) -> wp.vec2i:
    """Appends the contact of a corner that is inside other; returns the count, and 1 where the
    corner is inside."""
    closest = exit_point_of(source, context.other, point, context.touch)
    if closest.face < 0:
        return wp.vec2i(count, 0)
    depth = wp.sqrt(closest.square)
    direction = (point - closest.point) / depth
    priority = int(FALLBACK)
    if is_facing(context, source, face, k, direction):
        priority = priority_on(source, context.own, face)
    code = feature_on(source, context.own, face, k)
    code_other = feature_on(source, context.other, closest.face, closest.part)
    after = append_contact(
        context, rows, count, point, direction, -depth, code, code_other, priority, 1
    )
    return wp.vec2i(after, 1)
