"""A vertex of one mesh against the other."""

import warp as wp

from collidecli.engine.geometry.mesh_nearest import (
    EDGE_PLACE,
    FACE_PLACE,
    feature_of_place,
    mesh_corner,
    outward_at,
    place_on_triangle,
)
from collidecli.engine.geometry.meshes import Meshes, square_to_segment
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrow_phase.in_pieces import ContactRows
from collidecli.engine.narrow_phase.join import RANK
from collidecli.engine.narrow_phase.mesh.spot import RISE
from collidecli.engine.narrow_phase.mesh.surface import place_takes, vertex_takes
from collidecli.engine.narrow_phase.mesh.triangle import LAST_RESORT
from collidecli.engine.narrow_phase.mesh.view import View, behind_of, faces, own_direction, put


@wp.func
def part_snapped(meshes: Meshes, face: int, part: int, point: Vec3, near: Real) -> int:
    """The corner or side that a point of a triangle is on, to `near` [m]; else the part it has. All triangles around an
    edge or vertex then agree who has it."""
    if part < EDGE_PLACE:
        return part
    for k in range(3):
        if wp.length(point - mesh_corner(meshes, face, k)) <= near:
            return k
    if part < FACE_PLACE:
        return part
    for k in range(3):
        square = square_to_segment(mesh_corner(meshes, face, k), mesh_corner(meshes, face, k + 1), point)
        if square <= near * near:
            return EDGE_PLACE + k
    return part


@wp.func
def side_toward(view: View, normal: Vec3, at: Vec3, height: Real) -> Real:
    """1 where a point is on the front of a triangle of other, -1 behind; what touches it, by own's origin."""
    if view.other_front == 1:
        return Real(1.0)
    if wp.abs(height) > view.touch:
        return wp.sign(height)
    return wp.where(wp.dot(normal, view.origin - at) < Real(0.0), Real(-1.0), Real(1.0))


@wp.func(inline=False)
def vertex_on_triangle(
    view: View, meshes: Meshes, face: int, k: int, point: Vec3, target: int, rows: ContactRows, count: int
) -> int:
    """The contact of corner k of own's triangle `face`, at `point`, in front of other's triangle `target`, if any.

    Above the inside of the triangle, or above an edge or vertex that this triangle is the first of: along a direction
    that belongs to both places, or that is the triangle's normal. Returns the count of contacts then.
    """
    place = place_on_triangle(meshes, target, point)
    if place.square >= view.reach * view.reach:
        return count
    part = part_snapped(meshes, target, place.part, place.point, view.touch)
    if part < FACE_PLACE and ((meshes.owned[target] >> part) & 1) == 0:
        return count
    normal = meshes.face_normal[target]
    distance = wp.sqrt(place.square)
    height = wp.dot(normal, point - mesh_corner(meshes, target, 0))
    side = side_toward(view, normal, place.point, height)
    way = -side * normal
    is_level = bool(True)
    if part < FACE_PLACE:
        if distance > view.touch:
            way = (place.point - point) / distance
            is_level = wp.length(wp.cross(way, normal)) < RISE
            if not place_takes(meshes, target, part, -way):
                return count
            if view.other_front == 1 and wp.dot(way, outward_at(meshes, target, part)) >= Real(0.0):
                return count
        elif view.other_front == 1:
            way = -wp.normalize(outward_at(meshes, target, part))
    elif side * height < -view.touch:
        return count
    if not faces(view, meshes, face, k, way):
        if distance > view.touch:
            return count
        # What looks the same way as the surface it lies on overlaps: said where nothing else of the pair is.
        code = feature_of_place(meshes, view.own, face, k)
        code_other = feature_of_place(meshes, view.other, target, part)
        kind = LAST_RESORT * RANK
        return put(view, rows, count, point, way, wp.dot(place.point - point, way), code, code_other, kind)
    if not is_level and not vertex_takes(meshes, meshes.corner[3 * face + k], own_direction(view, way)):
        return count
    code = feature_of_place(meshes, view.own, face, k)
    code_other = feature_of_place(meshes, view.other, target, part)
    return put(view, rows, count, point, way, wp.dot(place.point - point, way), code, code_other, 0)


@wp.func
def vertex_behind(
    view: View, meshes: Meshes, face: int, k: int, point: Vec3, rows: ContactRows, count: int
) -> wp.vec2i:
    """Count of contacts, with that of a corner that is behind other's surface; and 1 where it is."""
    behind = behind_of(view, meshes, point)
    if behind.found == 0:
        return wp.vec2i(count, 0)
    kind = wp.where(faces(view, meshes, face, k, behind.way), 0, LAST_RESORT * RANK)
    code = feature_of_place(meshes, view.own, face, k)
    return wp.vec2i(put(view, rows, count, point, behind.way, -behind.depth, code, behind.feature, kind), 1)
