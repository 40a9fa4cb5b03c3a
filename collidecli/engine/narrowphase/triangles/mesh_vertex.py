"""A vertex of one mesh against the other."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.mesh_nearest import EDGE_PART, FACE_PART
from collidecli.engine.geometry.meshes import square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.contact_merging import RANK
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.convex_triangle import FALLBACK
from collidecli.engine.narrowphase.triangles.mesh_pair_context import (
    View,
    behind_of,
    faces,
    origin_of,
    own_direction,
    put,
)
from collidecli.engine.narrowphase.triangles.normal_cone import RISE
from collidecli.engine.narrowphase.triangles.triangle_queries import (
    corner_on,
    feature_on,
    is_front_facing,
    is_owned,
    normal_on,
    outward_on,
    place_on,
    priority_on,
    takes_on_corner,
    takes_on_place,
)

# What asks for much comes after what asks for little: an `and` may work out both.
# ruff: noqa: SIM102


@wp.func
def part_snapped(meshes: Any, surface: int, face: int, part: int, point: Vec3, near: Real) -> int:
    """The corner or side that a point of a triangle is on, to `near` [m]; else the part it has. All triangles around an
    edge or vertex then agree who has it."""
    if part < EDGE_PART:
        return part
    for k in range(3):
        if wp.length(point - corner_on(meshes, surface, face, k)) <= near:
            return k
    if part < FACE_PART:
        return part
    for k in range(3):
        start = corner_on(meshes, surface, face, k)
        square = square_to_segment(start, corner_on(meshes, surface, face, k + 1), point)
        if square <= near * near:
            return EDGE_PART + k
    return part


@wp.func
def side_toward(view: View, meshes: Any, normal: Vec3, at: Vec3, height: Real) -> Real:
    """1 where a point is on the front of a triangle of other, -1 behind; what touches it, by own's origin."""
    if view.other_front == 1:
        return Real(1.0)
    if wp.abs(height) > view.touch:
        return wp.sign(height)
    return wp.where(wp.dot(normal, origin_of(view, meshes, at) - at) < Real(0.0), Real(-1.0), Real(1.0))


@wp.func(inline=False)
def vertex_on_triangle(
    view: View, meshes: Any, face: int, k: int, point: Vec3, target: int, rows: ContactRows, count: int
) -> int:
    """The contact of corner k of own's triangle `face`, at `point`, in front of other's triangle `target`, if any.

    Above the inside of the triangle, or above an edge or vertex that this triangle is the first of: along a direction
    that belongs to both places, or that is the triangle's normal. Returns the count of contacts then.
    """
    place = place_on(meshes, view.other, target, point)
    if place.square >= view.max_separation * view.max_separation:
        return count
    part = part_snapped(meshes, view.other, target, place.part, place.point, view.touch)
    if part < FACE_PART:
        if not is_owned(meshes, view.other, target, part):
            return count
    normal = normal_on(meshes, view.other, target)
    distance = wp.sqrt(place.square)
    height = wp.dot(normal, point - corner_on(meshes, view.other, target, 0))
    side = side_toward(view, meshes, normal, place.point, height)
    way = -side * normal
    is_level = bool(True)
    if part < FACE_PART:
        if distance > view.touch:
            way = (place.point - point) / distance
            is_level = wp.length(wp.cross(way, normal)) < RISE
            if not takes_on_place(meshes, view.other, target, part, -way):
                return count
            if view.other_front == 1 and not is_front_facing(outward_on(meshes, view.other, target, part), -way):
                return count
        elif view.other_front == 1 and wp.length_sq(outward_on(meshes, view.other, target, part)) > Real(0.0):
            way = -wp.normalize(outward_on(meshes, view.other, target, part))
    elif side * height < -view.touch:
        return count
    if not faces(view, meshes, face, k, way):
        if distance > view.touch:
            return count
        # What looks the same way as the surface it lies on overlaps: said where nothing else of the pair is.
        code = feature_on(meshes, view.own, face, k)
        code_other = feature_on(meshes, view.other, target, part)
        separation = wp.dot(place.point - point, way)
        return put(view, rows, count, point, way, separation, code, code_other, FALLBACK * RANK, 0)
    if not is_level and not takes_on_corner(meshes, view.own, face, k, own_direction(view, way)):
        return count
    code = feature_on(meshes, view.own, face, k)
    code_other = feature_on(meshes, view.other, target, part)
    kind = priority_on(meshes, view.own, face) + priority_on(meshes, view.other, target)
    return put(view, rows, count, point, way, wp.dot(place.point - point, way), code, code_other, kind, 0)


@wp.func
def vertex_behind(view: View, meshes: Any, face: int, k: int, point: Vec3, rows: ContactRows, count: int) -> wp.vec2i:
    """Count of contacts, with that of a corner that is inside other; and 1 where it is."""
    behind = behind_of(view, meshes, point)
    if behind.found == 0:
        return wp.vec2i(count, 0)
    kind = wp.where(faces(view, meshes, face, k, behind.way), priority_on(meshes, view.own, face), FALLBACK * RANK)
    code = feature_on(meshes, view.own, face, k)
    return wp.vec2i(put(view, rows, count, point, behind.way, -behind.depth, code, behind.feature, kind, 1), 1)
