"""Contact surfaces of pairs of convex polytopes: for each pair of faces, the plane of equal pressure clipped by cells.

Within the cells of face i and face j both pressures are linear, so the surface is one convex polygon with a linear
pressure. Exact, apart from rounding; no resolution.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.hydroelastic.fields import PressureFields
from collidecli.engine.hydroelastic.pairs import POLYTOPES, ROUNDING, HydroPair, rotated_half
from collidecli.engine.hydroelastic.polygon import IN_PLANE, Clipped, HydroFace, LinearField, clip_polygon
from collidecli.engine.hydroelastic.pressure_face import clip_by_depth, face_of_polygon
from collidecli.engine.hydroelastic.ranges import range_with, start_of
from collidecli.engine.runtime.kernel import kernel

PARALLEL = wp.constant(Real(1.0e-12))
"""Weighted difference of two unit normals below which two faces have equal pressure everywhere or nowhere."""


@wp.struct
class CellBox:
    """A face whose cell may contain some of a pair's surface, and the box of that part in the reference frame.

    face: counted through all polytopes. side: 0 or 1, its shape in the pair.
    """

    face: int
    pair: int
    side: int
    lower: Vec3
    upper: Vec3


@wp.func
def pose_of(pair: HydroPair, side: int) -> Pose:
    """Pose of shape 0 or 1 of a pair in its reference frame."""
    if side == 0:
        return pair.pose0
    return pair.pose1


@wp.func
def row_of_side(pair: HydroPair, side: int) -> int:
    """Row of shape 0 or 1 of a pair."""
    return wp.where(side == 0, pair.row0, pair.row1)


@wp.func
def face_range(fields: PressureFields, row: int) -> wp.vec2i:
    """First face of a polytope, and the end."""
    polytope = fields.polytope[row]
    return wp.vec2i(fields.first[polytope], fields.first[polytope + 1])


@kernel
def count_faces(fields: PressureFields, hydro: wp.array[HydroPair], end: wp.array[wp.int32]):
    """One thread a pair: the faces of both shapes of a pair of polytopes."""
    thread = wp.tid()
    end[thread] = 0
    if hydro[thread].method == POLYTOPES:
        faces0 = face_range(fields, hydro[thread].row0)
        faces1 = face_range(fields, hydro[thread].row1)
        end[thread] = faces0[1] - faces0[0] + faces1[1] - faces1[0]


@wp.func
def cell_box(fields: PressureFields, pair: HydroPair, side: int, face: int) -> CellBox:
    """Box of the part of a face's cell whose depth is possible on the surface.

    A point of a cell projects along the face's normal into the face, so the part is within the face's extrusion.
    """
    result = CellBox()
    result.side = side
    result.face = face
    depth = pair.sink * wp.where(side == 0, pair.weight1, pair.weight0)
    inward = depth * fields.normal[face]
    lower = wp.min(fields.lower[face], fields.lower[face] - inward)
    upper = wp.max(fields.upper[face], fields.upper[face] - inward)
    result.lower = pair.lower
    result.upper = pair.upper
    if wp.isfinite(upper[0]):
        pose = pose_of(pair, side)
        middle = wp.transform_point(pose, Real(0.5) * (lower + upper))
        half = rotated_half(pose, Real(0.5) * (upper - lower))
        slack = ROUNDING * pair.size
        half = half + Vec3(slack, slack, slack)
        result.lower = wp.max(pair.lower, middle - half)
        result.upper = wp.min(pair.upper, middle + half)
    return result


@wp.func
def is_empty(lower: Vec3, upper: Vec3) -> bool:
    """Whether a box is empty."""
    return lower[0] > upper[0] or lower[1] > upper[1] or lower[2] > upper[2]


@kernel
def find_cells(
    fields: PressureFields,
    hydro: wp.array[HydroPair],
    pair_count: int,
    face_end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
    cell: wp.array[CellBox],
    writes: int,
):
    """One thread a face of a pair: 1 where its cell may contain some of the surface; in the second pass, its box."""
    thread = wp.tid()
    pair = range_with(face_end, pair_count, thread)
    number = thread - start_of(face_end, pair)
    faces0 = face_range(fields, hydro[pair].row0)
    faces1 = face_range(fields, hydro[pair].row1)
    count0 = faces0[1] - faces0[0]
    side = wp.where(number < count0, 0, 1)
    face = wp.where(number < count0, faces0[0] + number, faces1[0] + number - count0)
    if writes == 1 and cell_end[thread] == start_of(cell_end, thread):
        return
    found = cell_box(fields, hydro[pair], side, face)
    found.pair = pair
    if writes == 1:
        cell[start_of(cell_end, thread)] = found
    else:
        cell_end[thread] = wp.where(is_empty(found.lower, found.upper), 0, 1)


@kernel
def find_cell_pairs(
    fields: PressureFields,
    hydro: wp.array[HydroPair],
    face_end: wp.array[wp.int32],
    cell_end: wp.array[wp.int32],
    cell: wp.array[CellBox],
    end: wp.array[wp.int32],
    cell_pair: wp.array[wp.vec2i],
    writes: int,
):
    """One thread a cell of shape 0: counts or writes the cells of shape 1 whose boxes overlap its own."""
    thread = wp.tid()
    here = cell[thread]
    found = int(0)
    if here.side == 0:
        faces0 = face_range(fields, hydro[here.pair].row0)
        first = start_of(face_end, here.pair) + faces0[1] - faces0[0]
        row = int(0)
        if writes == 1:
            row = start_of(end, thread)
        for other in range(start_of(cell_end, first), cell_end[face_end[here.pair] - 1]):
            lower = wp.max(here.lower, cell[other].lower)
            upper = wp.min(here.upper, cell[other].upper)
            if not is_empty(lower, upper):
                if writes == 1:
                    cell_pair[row + found] = wp.vec2i(thread, other)
                found += 1
    if writes == 0:
        end[thread] = found


@wp.func
def plane_of(fields: PressureFields, pair: HydroPair, side: int, face: int) -> LinearField:
    """Signed distance from a face's plane in the reference frame."""
    pose = pose_of(pair, side)
    plane = LinearField()
    plane.slope = wp.quat_rotate(wp.transform_get_rotation(pose), fields.normal[face])
    plane.value = -fields.offset[face] - wp.dot(plane.slope, wp.transform_get_translation(pose))
    return plane


@wp.func
def clip_by_cell(
    fields: PressureFields,
    pair: HydroPair,
    side: int,
    face: int,
    plane: LinearField,
    difference: Vec3,
    corner: wp.array[Vec3],
    polygon: Clipped,
) -> Clipped:
    """The part of a polygon in a face's cell.

    A polygon in the boundary of two cells belongs to the cell on whose side the reference shape's weighted distance is
    the lower one; so it counts once, also where both are equal in the whole of the other cell. difference: the gradient
    of the reference shape's less the other's.
    """
    result = polygon
    for at in range(fields.neighbor_start[face], fields.neighbor_start[face + 1]):
        if result.count < 3:
            break
        other = plane_of(fields, pair, side, fields.neighbor[at])
        normal = other.slope - plane.slope
        result = clip_polygon(corner, result, normal, plane.value - other.value, IN_PLANE * pair.size)
        if result.in_plane == 1 and wp.dot(difference, normal) <= Real(0.0):
            result.count = 0
    return result


@wp.func
def polygon_of_cells(
    fields: PressureFields, pair: HydroPair, face0: int, face1: int, corner: wp.array[Vec3], polygon: Clipped
) -> HydroFace:
    """Contact surface within the cells of two faces."""
    none = HydroFace()
    plane0 = plane_of(fields, pair, 0, face0)
    plane1 = plane_of(fields, pair, 1, face1)
    difference = pair.weight0 * plane0.slope - pair.weight1 * plane1.slope
    length = wp.length(difference)
    if length <= PARALLEL:
        return none
    normal = difference / length
    height = (pair.weight1 * plane1.value - pair.weight0 * plane0.value) / length
    if wp.abs(height) > pair.size * (Real(1.0) + ROUNDING):
        return none
    across = Vec3(Real(1.0), Real(0.0), Real(0.0))
    if wp.abs(normal[0]) > Real(0.7):
        across = Vec3(Real(0.0), Real(1.0), Real(0.0))
    u = wp.normalize(wp.cross(across, normal)) * (Real(1.5) * pair.size)
    v = wp.cross(normal, u)
    result = polygon
    result.count = 4
    corner[result.source] = height * normal - u - v
    corner[result.source + 1] = height * normal + u - v
    corner[result.source + 2] = height * normal + u + v
    corner[result.source + 3] = height * normal - u + v
    result = clip_by_depth(pair, plane0, plane1, corner, result)
    if result.count < 3:
        return none
    inward = pair.sign * difference
    result = clip_by_cell(fields, pair, 0, face0, plane0, inward, corner, result)
    result = clip_by_cell(fields, pair, 1, face1, plane1, inward, corner, result)
    if result.count < 3:
        return none
    return face_of_polygon(pair, plane0, plane1, normal, corner, result)


@kernel
def clip_cells(
    fields: PressureFields,
    hydro: wp.array[HydroPair],
    cell: wp.array[CellBox],
    cell_pair: wp.array[wp.vec2i],
    start: int,
    stride: int,
    corner: wp.array[Vec3],
    face: wp.array[HydroFace],
    vertex_end: wp.array[wp.int32],
    vertex: wp.array[Vec3],
    writes: int,
):
    """One thread a pair of cells, from `start` on: the face of the surface; in the second pass, its vertices.

    corner: scratch, `stride` corners a thread.
    """
    thread = wp.tid()
    number = start + thread
    if writes == 1 and face[number].count == 0:
        return
    cells = cell_pair[number]
    polygon = Clipped()
    polygon.source = thread * stride
    polygon.target = thread * stride + stride / 2
    pair = cell[cells[0]].pair
    found = polygon_of_cells(fields, hydro[pair], cell[cells[0]].face, cell[cells[1]].face, corner, polygon)
    found.pair = pair
    if writes == 0:
        face[number] = found
        vertex_end[number] = found.count
        return
    for k in range(found.count):
        at = corner[found.first_corner + k]
        vertex[start_of(vertex_end, number) + k] = wp.transform_point(hydro[pair].world, at)
