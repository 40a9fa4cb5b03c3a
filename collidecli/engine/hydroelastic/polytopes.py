"""Contact surfaces of pairs of convex polytopes: for each pair of faces, the plane of equal
pressure clipped by cells.

Within the cells of face i and face j both pressures are linear, so the surface is one convex
polygon with a linear pressure. Exact, apart from rounding; no resolution.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.contact_record import start_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.hydroelastic.pairs import POLYTOPES, ROUNDING, HydroPair, rotated_half
from collidecli.engine.hydroelastic.polygon_faces import (
    IN_PLANE,
    Clipped,
    HydroFace,
    LinearField,
    clip_by_depth,
    clip_polygon,
    face_of_polygon,
)
from collidecli.engine.hydroelastic.pressure_fields import PressureFields, UploadedFields
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import counted_kernels, kernel
from collidecli.engine.runtime.workspace import Rows, Workspace

PARALLEL = wp.constant(Real(1.0e-12))
"""Weighted difference of two unit normals below which two faces have equal pressure everywhere or
nowhere."""


@wp.struct
class CellBox:
    """A face whose cell may contain some of a pair's surface, and the box of that part in the
    reference frame. face: counted through all polytopes. side: 0 or 1, its shape in the pair."""

    face: int
    pair: int
    side: int
    lower: Vec3
    upper: Vec3


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

    A point of a cell projects along the face's normal into the face, so the part is within the
    face's extrusion.
    """
    result = CellBox(face, 0, side, pair.lower, pair.upper)
    depth = pair.sink * wp.where(side == 0, pair.weight1, pair.weight0)
    inward = depth * fields.normal[face]
    lower = wp.min(fields.lower[face], fields.lower[face] - inward)
    upper = wp.max(fields.upper[face], fields.upper[face] - inward)
    if wp.isfinite(upper[0]):
        pose = wp.where(side == 0, pair.pose0, pair.pose1)
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


@wp.func
def range_with(end: wp.array[wp.int32], count: int, index: int) -> int:
    """The range that contains an index, where end[k] is the end of range k."""
    low = int(0)
    high = count
    while low < high:
        middle = (low + high) // 2
        if end[middle] <= index:
            low = middle + 1
        else:
            high = middle
    return low


def _finding_cells(writes: bool) -> Callable[..., None]:
    """One thread a face of a pair: its cell, where that may contain some of the surface."""

    def find_cells(
        fields: PressureFields,
        hydro: wp.array[HydroPair],
        pair_count: int,
        face_end: wp.array[wp.int32],
        cell_end: wp.array[wp.int32],
        cell: wp.array[CellBox],
    ):
        thread = wp.tid()
        pair = range_with(face_end, pair_count, thread)
        if pair >= pair_count:  # beyond the last face
            if wp.static(not writes):
                cell_end[thread] = 0
            return
        number = thread - start_of(face_end, pair)
        faces0 = face_range(fields, hydro[pair].row0)
        faces1 = face_range(fields, hydro[pair].row1)
        count0 = faces0[1] - faces0[0]
        side = wp.where(number < count0, 0, 1)
        face = wp.where(number < count0, faces0[0] + number, faces1[0] + number - count0)
        if wp.static(writes):  # noqa: SIM102
            if cell_end[thread] == start_of(cell_end, thread):
                return
        box = cell_box(fields, hydro[pair], side, face)
        box.pair = pair
        if wp.static(writes):
            cell[start_of(cell_end, thread)] = box
        else:
            cell_end[thread] = wp.where(is_empty(box.lower, box.upper), 0, 1)

    return find_cells


def _finding_cell_pairs(writes: bool) -> Callable[..., None]:
    """One thread per cell of shape 0, as many as `cell_bound`: the cells of shape 1 whose boxes
    overlap its own."""

    def find_cell_pairs(
        fields: PressureFields,
        hydro: wp.array[HydroPair],
        face_end: wp.array[wp.int32],
        cell_end: wp.array[wp.int32],
        cell: wp.array[CellBox],
        cell_bound: wp.array[wp.int32],
        end: wp.array[wp.int32],
        cell_pair: wp.array[wp.vec2i],
    ):
        thread = wp.tid()
        if thread >= cell_bound[0]:
            if wp.static(not writes):
                end[thread] = 0
            return
        own_cell = cell[thread]
        count = int(0)
        if own_cell.side == 0:
            faces0 = face_range(fields, hydro[own_cell.pair].row0)
            first = start_of(face_end, own_cell.pair) + faces0[1] - faces0[0]
            row = int(0)
            if wp.static(writes):
                row = start_of(end, thread)
            for other in range(start_of(cell_end, first), cell_end[face_end[own_cell.pair] - 1]):
                lower = wp.max(own_cell.lower, cell[other].lower)
                upper = wp.min(own_cell.upper, cell[other].upper)
                if not is_empty(lower, upper):
                    if wp.static(writes):
                        cell_pair[row + count] = wp.vec2i(thread, other)
                    count += 1
        if wp.static(not writes):
            end[thread] = count

    return find_cell_pairs


CELLS = counted_kernels("cells", _finding_cells)
CELL_PAIRS = counted_kernels("cell_pairs", _finding_cell_pairs)


@wp.func
def plane_of(fields: PressureFields, pair: HydroPair, side: int, face: int) -> LinearField:
    """Signed distance from a face's plane in the reference frame."""
    pose = wp.where(side == 0, pair.pose0, pair.pose1)
    slope = wp.quat_rotate(wp.transform_get_rotation(pose), fields.normal[face])
    return LinearField(
        slope, -fields.offset[face] - wp.dot(slope, wp.transform_get_translation(pose))
    )


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

    A polygon in the boundary of two cells belongs to the cell on whose side the reference shape's
    weighted distance is the lower one; so it counts once, also where both are equal in the whole of
    the other cell. difference: the gradient of the reference shape's less the other's.
    """
    result = polygon
    for at in range(fields.neighbor_start[face], fields.neighbor_start[face + 1]):
        if result.count < 3:
            break
        other = plane_of(fields, pair, side, fields.neighbor[at])
        normal = other.slope - plane.slope
        result = clip_polygon(
            corner, result, normal, plane.value - other.value, IN_PLANE * pair.size
        )
        if result.in_plane == 1 and wp.dot(difference, normal) <= Real(0.0):
            result.count = 0
    return result


@wp.func
def polygon_of_cells(
    fields: PressureFields,
    pair: HydroPair,
    face0: int,
    face1: int,
    corner: wp.array[Vec3],
    polygon: Clipped,
) -> HydroFace:
    """Contact surface within the cells of two faces."""
    plane0 = plane_of(fields, pair, 0, face0)
    plane1 = plane_of(fields, pair, 1, face1)
    difference = pair.weight0 * plane0.slope - pair.weight1 * plane1.slope
    length = wp.length(difference)
    if length <= PARALLEL:
        return HydroFace()
    normal = difference / length
    height = (pair.weight1 * plane1.value - pair.weight0 * plane0.value) / length
    if wp.abs(height) > pair.size * (Real(1.0) + ROUNDING):
        return HydroFace()
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
        return HydroFace()
    inward = pair.sign * difference
    result = clip_by_cell(fields, pair, 0, face0, plane0, inward, corner, result)
    result = clip_by_cell(fields, pair, 1, face1, plane1, inward, corner, result)
    if result.count < 3:
        return HydroFace()
    return face_of_polygon(pair, plane0, plane1, normal, corner, result)


@kernel
def clip_cells(
    fields: PressureFields,
    hydro: wp.array[HydroPair],
    cell: wp.array[CellBox],
    cell_pair: wp.array[wp.vec2i],
    bound: wp.array[wp.int32],
    start: int,
    stride: int,
    corner: wp.array[Vec3],
    face: wp.array[HydroFace],
    vertex_end: wp.array[wp.int32],
    vertex: wp.array[Vec3],
    writes: int,
):
    """One thread per pair of cells, from `start` on and as many as the bound: the face of the
    surface; in the second pass, its vertices.

    corner: scratch, `stride` corners a thread.
    """
    thread = wp.tid()
    number = start + thread
    if writes == 1:
        if vertex_end[number] == start_of(vertex_end, number):
            return
    elif number >= bound[0]:
        vertex_end[number] = 0
        return
    cells = cell_pair[number]
    polygon = Clipped(0, 0, thread * stride, thread * stride + stride / 2)
    pair = cell[cells[0]].pair
    clipped = polygon_of_cells(
        fields, hydro[pair], cell[cells[0]].face, cell[cells[1]].face, corner, polygon
    )
    clipped.pair = pair
    if writes == 0:
        face[number] = clipped
        vertex_end[number] = clipped.count
        return
    for k in range(clipped.count):
        at = corner[clipped.first_corner + k]
        vertex[start_of(vertex_end, number) + k] = wp.transform_point(hydro[pair].world, at)


SCRATCH_BYTES = 1 << 20
CUDA_SCRATCH_BYTES = 1 << 28
"""Corners of the polygons of one launch: near a core's cache, or enough threads for a GPU
[bytes]."""
POLYTOPE_KERNELS = (count_faces, *CELLS, *CELL_PAIRS, clip_cells)


@dataclass(frozen=True)
class FaceList:
    """Faces ordered by pair. count: of faces, with those that do not exist.

    vertex: corners of the faces, one face's after the other's, if requested, and vertex_count of
    them.
    """

    face: wp.array
    count: ElementCount
    vertex: wp.array | None = None
    vertex_count: ElementCount | None = None

    @property
    def arrays(self) -> list[Rows]:
        """What the host reads."""
        faces = [Rows(self.face, self.count)]
        if self.vertex is None or self.vertex_count is None:
            return faces
        return [*faces, Rows(self.vertex, self.vertex_count)]

    def on_host(self, read: Iterator[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """`HydroFace` of each face, and the corners of those that exist. read: `arrays` on the
        host."""
        face = next(read)
        if self.vertex is None:
            return face, np.zeros((0, 3))
        return face, next(read)


def clip_polytopes(
    uploaded: UploadedFields, hydro: wp.array, count: int, surface: bool, workspace: Workspace
) -> FaceList:
    """Faces of the pairs of polytopes, among `count` pairs or their capacity."""
    fields = uploaded.fields
    face_end = workspace.array("hydro_face_end", count, wp.int32)
    workspace.launch(count_faces, count, [fields, hydro, face_end])
    most = 2 * uploaded.most_faces
    face_count = workspace.scanned("hydro_face", face_end, count, most, spare_for_none=0).most
    arguments = [fields, hydro, count, face_end]
    cell_end, cell, cells = workspace.counted(
        "hydro_cell", CellBox, CELLS, face_count, arguments, 1
    )
    arguments = [fields, hydro, face_end, cell_end, cell, cells.bound]
    _, cell_pair, cell_pairs = workspace.counted(
        "hydro_cell_pair", wp.vec2i, CELL_PAIRS, cells.most, arguments, cells.most
    )
    total = cell_pairs.most
    # Cells are clipped in launches whose scratch is limited.
    stride = 2 * (2 * uploaded.most_neighbors + 8)
    limit = CUDA_SCRATCH_BYTES if workspace.has_own_memory else SCRATCH_BYTES
    batch = max(1, min(total, limit // (stride * 24)))
    corner = workspace.array("hydro_corner", batch * stride, Vec3)
    face = workspace.array("hydro_polytope_face", total, HydroFace)
    vertex_end = workspace.array("hydro_vertex_end", total, wp.int32)
    vertex = workspace.array("hydro_polytope_vertex", 1, Vec3)

    def clip(writes: int) -> None:
        for start in range(0, total, batch):
            arguments = [
                fields,
                hydro,
                cell,
                cell_pair,
                cell_pairs.bound,
                start,
                stride,
                corner,
                face,
                vertex_end,
                vertex,
                writes,
            ]
            workspace.launch(clip_cells, min(batch, total - start), arguments)

    clip(0)
    if not surface:
        return FaceList(face, cell_pairs)
    vertex_count = workspace.scanned("hydro_vertex", vertex_end, total, stride // 2)
    vertex = workspace.array("hydro_polytope_vertex", vertex_count.most, Vec3)
    clip(1)
    return FaceList(face, cell_pairs, vertex, vertex_count)
