"""Hydroelastic pairs of a chunk: separation from the other candidates, and their common data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells, Instances, row_of, row_of_slot
from collidecli.engine.collider_query import relative_pose
from collidecli.engine.contact_record import start_of
from collidecli.engine.device_model import DeviceModel, Layout, Margins, ShapeRows
from collidecli.engine.geometry.bounds import local_half_extents
from collidecli.engine.geometry.heightfields import (
    Field,
    Heightfields,
    field_of,
    upload_heightfields,
)
from collidecli.engine.geometry.mesh_points import is_inside_mesh, nearest_mesh_point
from collidecli.engine.geometry.meshes import Meshes, facet_meshes, upload_meshes
from collidecli.engine.geometry.primitives import surface_point
from collidecli.engine.geometry.real import HEIGHTFIELD, PLANE, UP, Pose, Real, Vec3
from collidecli.engine.hydroelastic.mesh_sides import NO_FEATURE, feature_number
from collidecli.engine.narrowphase.triangles.heightfield_traversal import (
    NearestPart,
    height_over,
    nearest_part,
    nearest_top,
)
from collidecli.engine.pair_limits import forced_index
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.model import Model
from collidecli.scene.pressure_cells import PressureCells, box_cells, half_space_cells, hull_cells
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import check_three_sizes

# Pressure fields on the device: the cells of convex polytopes, and the stiffness of every shape.


@wp.struct
class PressureFields:
    """Stiffness of each shape row, and the cells of polytopes; see `scene.hydroelastic`.

    stiffness: [N/m^3], 0 without a pressure field, infinite for a rigid shape. polytope: of each
    row; -1 for none. first: first face of each polytope, and one more. normal, offset, lower,
    upper: of each face. neighbor_start: of each face, and one more. neighbor: faces, counted
    through all polytopes.
    """

    stiffness: wp.array[Real]
    polytope: wp.array[int]
    first: wp.array[int]
    normal: wp.array[Vec3]
    offset: wp.array[Real]
    lower: wp.array[Vec3]
    upper: wp.array[Vec3]
    neighbor_start: wp.array[int]
    neighbor: wp.array[int]


@dataclass(frozen=True)
class UploadedFields:
    """most_neighbors: largest number of neighbours of a cell. polytope: int32[S], see
    `PressureFields`."""

    fields: PressureFields
    polytope: np.ndarray
    most_neighbors: int

    @property
    def has_polytope_pairs(self) -> bool:
        """Whether two hydroelastic shapes are polytopes."""
        return int((self.polytope >= 0).sum()) > 1


def upload_fields(device_model: DeviceModel, shapes: HydroShapes) -> UploadedFields:
    """Device arrays of the pressure fields of the hydroelastic shapes of a model."""
    device = device_model.device
    cells, polytope = _polytopes(device_model.model, shapes.stiffness)
    first = np.cumsum([0, *(len(field_cells.offset) for field_cells in cells)])
    neighbor_count = np.concatenate([np.diff(field_cells.neighbor_start) for field_cells in cells])
    neighbor = np.concatenate(
        [field_cells.neighbor + start for field_cells, start in zip(cells, first, strict=False)]
    )
    fields = PressureFields()
    fields.stiffness = wp.array(shapes.stiffness, dtype=Real, device=device)
    fields.polytope = wp.array(polytope, dtype=int, device=device)
    fields.first = wp.array(first.astype(np.int32), dtype=int, device=device)
    for name, kind in (("normal", Vec3), ("offset", Real), ("lower", Vec3), ("upper", Vec3)):
        values = np.concatenate([getattr(field_cells, name) for field_cells in cells])
        setattr(fields, name, wp.array(values, dtype=kind, device=device))
    start = np.concatenate([[0], np.cumsum(neighbor_count)]).astype(np.int32)
    fields.neighbor_start = wp.array(start, dtype=int, device=device)
    fields.neighbor = wp.array(np.append(neighbor, 0).astype(np.int32), dtype=int, device=device)
    return UploadedFields(fields, polytope, int(neighbor_count.max()))


def _polytopes(model: Model, stiffness: np.ndarray) -> tuple[list[PressureCells], np.ndarray]:
    """The distinct polytopes among the hydroelastic shapes, the half-space first, and int32[S],
    that of each shape."""
    shapes = model.shapes
    cells = [half_space_cells()]
    index_of = {}
    polytope = np.full(len(shapes), -1, np.int32)
    polytope[(stiffness > 0.0) & (shapes.type == ShapeType.PLANE)] = 0
    for row in np.flatnonzero(stiffness > 0.0):
        kind = shapes.type[row]
        surface = None
        if kind == ShapeType.MESH:
            surface = model.convex_surfaces[shapes.mesh[row]]
        if kind not in (ShapeType.BOX, ShapeType.CONVEX_MESH) and surface is None:
            continue
        key = (kind, shapes.size[row].tobytes(), int(shapes.hull[row]), int(shapes.mesh[row]))
        if key not in index_of:
            index_of[key] = len(cells)
            if kind == ShapeType.BOX:
                cells.append(box_cells(shapes.size[row, :3]))
            else:
                cells.append(hull_cells(surface.hull if surface else model.hulls[shapes.hull[row]]))
        polytope[row] = index_of[key]
    return cells, polytope


POLYTOPES = wp.constant(1)
"""Method of a pair of convex polytopes without margins: exact clipping of cells."""
VOXELS = wp.constant(2)
"""Method of every other pair: sampling of the distances on a grid."""
ROUNDING = wp.constant(Real(1.0e-9))
"""Relative allowance for rounding in bounds."""


@wp.struct
class HydroPair:
    """A hydroelastic pair. Everything is in the reference frame, that of the shape with the shorter
    longest side.

    row0, row1: shape rows. method: POLYTOPES, VOXELS, or 0 for shapes whose boxes do not overlap.
    sign: 1 where the reference shape is shape 0, else -1. world: pose of the reference frame in the
    world. pose0, pose1: of the shapes; one is the identity. weight0, weight1: the surface is where
    weight0 phi0 = weight1 phi1; they add up to 1, and a rigid shape has 1. soft: the shape whose
    depth gives the pressure, and stiffness its own [N/m^3]. rigid: 0, 1 or -1 for none. stiffness0,
    stiffness1: of both shapes; those of a pair with a rigid shape are equal to `stiffness` [N/m^3].
    margin0, margin1: inflation of the shapes [m]. sink: upper bound of the sum of depths on the
    surface [m]. lower, upper: box that contains the surface. half: half extents of the reference
    shape's box, with its margin, and size their length [m].
    """

    row0: int
    row1: int
    method: int
    sign: Real
    world: Pose
    pose0: Pose
    pose1: Pose
    weight0: Real
    weight1: Real
    soft: int
    stiffness: Real
    rigid: int
    stiffness0: Real
    stiffness1: Real
    margin0: Real
    margin1: Real
    sink: Real
    lower: Vec3
    upper: Vec3
    half: Vec3
    size: Real


@kernel
def mark_hydro_pairs(
    layout: Layout,
    chunk: ChunkCells,
    fields: PressureFields,
    slots: wp.array[wp.vec2i],
    end: wp.array[wp.int32],
):
    """One thread a pair of slots: 1 where both shapes have a pressure field and one of them is
    compliant, else 0."""
    thread = wp.tid()
    stiffness0 = fields.stiffness[row_of_slot(chunk, layout, slots[thread][0])]
    stiffness1 = fields.stiffness[row_of_slot(chunk, layout, slots[thread][1])]
    least = wp.min(stiffness0, stiffness1)
    end[thread] = wp.where(least > Real(0.0) and wp.isfinite(least), 1, 0)


@kernel
def split_pairs(
    slots: wp.array[wp.vec2i],
    mask: wp.array[wp.uint32],
    end: wp.array[wp.int32],
    hydro: wp.array[wp.vec2i],
    hydro_mask: wp.array[wp.uint32],
    others: wp.array[wp.vec2i],
    other_mask: wp.array[wp.uint32],
):
    """One thread a pair of slots: writes it and its lanes to one of two lists. end: inclusive scan
    of the marks."""
    thread = wp.tid()
    before = start_of(end, thread)
    if end[thread] > before:
        hydro[before] = slots[thread]
        hydro_mask[before] = mask[thread]
    else:
        others[thread - before] = slots[thread]
        other_mask[thread - before] = mask[thread]


@wp.func
def rotated_half(pose: Pose, half: Vec3) -> Vec3:
    """Half extents of the box around a rotated box."""
    rotation = wp.transform_get_rotation(pose)
    x = wp.abs(wp.quat_rotate(rotation, Vec3(half[0], Real(0.0), Real(0.0))))
    y = wp.abs(wp.quat_rotate(rotation, Vec3(Real(0.0), half[1], Real(0.0))))
    z = wp.abs(wp.quat_rotate(rotation, Vec3(Real(0.0), Real(0.0), half[2])))
    return x + y + z


@wp.func
def bound_overlap(
    other_is_plane: bool, pair: HydroPair, other_half: Vec3, other: Pose
) -> HydroPair:
    """Sets the box of the surface, `sink`, and method 0 where the boxes do not overlap.

    other_half, other: box of the shape that is not the reference, inflated by its margin, and its
    pose.
    """
    result = pair
    half = pair.half
    result.lower = -half
    result.upper = half
    if other_is_plane:
        normal = wp.quat_rotate(wp.transform_get_rotation(other), UP)
        margin = wp.where(pair.sign > Real(0.0), pair.margin1, pair.margin0)
        height = -wp.dot(normal, wp.transform_get_translation(other)) - margin
        result.sink = wp.dot(wp.abs(normal), half) - height
    else:
        middle = wp.transform_get_translation(other)
        reach = rotated_half(other, other_half)
        below = middle + reach + half
        above = half - middle + reach
        result.sink = wp.min(wp.min(below, above))
        result.lower = wp.max(-half, middle - reach)
        result.upper = wp.min(half, middle + reach)
    result.sink = result.sink * (Real(1.0) + ROUNDING)
    if result.sink <= Real(0.0):
        result.method = 0
    return result


@wp.func
def stiffness_of_pair(pair: HydroPair, stiffness0: Real, stiffness1: Real) -> HydroPair:
    """Sets the weights, the soft and the rigid shape."""
    result = pair
    result.soft = wp.where(stiffness1 < stiffness0, 1, 0)
    result.stiffness = wp.min(stiffness0, stiffness1)
    result.stiffness0 = result.stiffness
    result.stiffness1 = result.stiffness
    if wp.isinf(stiffness0):
        result.rigid = 0
        result.weight0 = Real(1.0)
    elif wp.isinf(stiffness1):
        result.rigid = 1
        result.weight1 = Real(1.0)
    else:
        result.rigid = -1
        result.weight0 = stiffness0 / (stiffness0 + stiffness1)
        result.weight1 = stiffness1 / (stiffness0 + stiffness1)
        result.stiffness0 = stiffness0
        result.stiffness1 = stiffness1
    return result


@kernel
def prepare_pairs(
    rows: ShapeRows,
    margins: Margins,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    fields: PressureFields,
    pair: wp.array[wp.vec2i],
    hydro: wp.array[HydroPair],
):
    """One thread a hydroelastic pair: its frame, weights, method and bounds."""
    thread = wp.tid()
    row0 = row_of(chunk, layout, pair[thread][0])
    row1 = row_of(chunk, layout, pair[thread][1])
    result = stiffness_of_pair(HydroPair(), fields.stiffness[row0], fields.stiffness[row1])
    result.row0 = row0
    result.row1 = row1
    result.margin0 = margins.margin[row0]
    result.margin1 = margins.margin[row1]
    forced = forced_index(margins.forced_start, margins.forced, row0, row1)
    if forced >= 0 and not wp.isnan(margins.forced_margin[wp.max(forced, 0)]):
        result.margin0 = Real(0.5) * margins.forced_margin[forced]
        result.margin1 = result.margin0
    inflated = result.margin0 > Real(0.0) or result.margin1 > Real(0.0)
    result.method = VOXELS
    if fields.polytope[row0] >= 0 and fields.polytope[row1] >= 0 and not inflated:
        result.method = POLYTOPES
    half0 = local_half_extents(rows.type[row0], rows.size[row0]) + Vec3(
        result.margin0, result.margin0, result.margin0
    )
    half1 = local_half_extents(rows.type[row1], rows.size[row1]) + Vec3(
        result.margin1, result.margin1, result.margin1
    )
    pose0 = instances.pose[pair[thread][0]]
    pose1 = instances.pose[pair[thread][1]]
    second = wp.max(half1) < wp.max(half0)
    if wp.max(half1) == wp.max(half0):
        second = wp.length_sq(half1) < wp.length_sq(half0)
    if half0 == half1:  # by what does not depend on the order in the file
        stiffer = (
            rows.type[row0] == rows.type[row1] and fields.stiffness[row1] > fields.stiffness[row0]
        )
        second = rows.type[row1] < rows.type[row0] or stiffer
    result.sign = wp.where(second, Real(-1.0), Real(1.0))
    result.world = wp.where(second, pose1, pose0)
    result.pose0 = relative_pose(result.world, pose0)
    result.pose1 = relative_pose(result.world, pose1)
    identity = wp.transform_identity(dtype=Real)
    if second:
        result.pose1 = identity
    else:
        result.pose0 = identity
    result.half = wp.where(second, half1, half0)
    result.size = wp.length(result.half)
    is_plane = rows.type[wp.where(second, row0, row1)] == PLANE
    other_half = wp.where(second, half0, half1)
    hydro[thread] = bound_overlap(
        is_plane, result, other_half, wp.where(second, result.pose0, result.pose1)
    )


# Searches in lists that are ordered by pair.


@wp.func
def first_of_pair(item: wp.array[Any], count: int, pair: int) -> int:
    """Number of items of earlier pairs in a list of structs ordered by their member `pair`."""
    low = int(0)
    high = count
    while low < high:
        middle = (low + high) // 2
        if item[middle].pair < pair:
            low = middle + 1
        else:
            high = middle
    return low


# Exact signed distances of every shape type, with their gradients.


@wp.struct
class Solids:
    """Shapes, with the meshes and heightfields of the hydroelastic ones. mesh: of each row, -1 for
    none; also those of hulls."""

    rows: ShapeRows
    meshes: Meshes
    heightfields: Heightfields
    mesh: wp.array[int]


@wp.struct
class Distance:
    """Signed distance of a point from a surface [m], negative inside, and its gradient, unit; 0
    where not unique. feature: nearest one of a mesh, see `feature_number`."""

    value: Real
    gradient: Vec3
    feature: int


@wp.func
def mesh_distance(meshes: Meshes, mesh: int, point: Vec3) -> Distance:
    """Distance from a closed mesh."""
    result = Distance()
    nearest = nearest_mesh_point(meshes, mesh, point)
    result.feature = feature_number(nearest.face, nearest.part)
    off = point - nearest.point
    result.value = wp.length(off)
    if result.value > Real(0.0):
        result.gradient = off / result.value
    if is_inside_mesh(meshes, mesh, point, nearest):
        result.value = -result.value
        result.gradient = -result.gradient
    return result


@wp.func
def heightfield_distance(field: Field, point: Vec3) -> Distance:
    """Distance from the surface and the walls of a heightfield, whose solid has no lower end. No
    gradient.

    Below the base the depth is that of the base's height, so that it does not increase there
    without bound.
    """
    result = Distance()
    result.feature = NO_FEATURE
    clamped = Vec3(
        wp.clamp(point[0], -field.half_x, field.half_x),
        wp.clamp(point[1], -field.half_y, field.half_y),
        point[2],
    )
    top = height_over(field, clamped)
    over = clamped[0] == point[0] and clamped[1] == point[1]
    if over and point[2] < top:
        lifted = Vec3(point[0], point[1], wp.max(point[2], field.bottom))
        result.value = -nearest_part(field, lifted).distance
        return result
    bound = wp.length_sq(
        Vec3(point[0] - clamped[0], point[1] - clamped[1], wp.max(point[2] - top, Real(0.0)))
    )
    result.value = nearest_top(field, point, NearestPart(-1, wp.sqrt(bound)), bound).distance
    return result


def distance_function(with_meshes: bool, with_heightfields: bool) -> Any:
    """distance(solids, row, point) -> Distance, with the code of the types that a scene has."""

    @wp.func
    def distance(solids: Solids, row: int, point: Vec3) -> Distance:
        if wp.static(with_meshes):
            mesh = solids.mesh[row]
            if mesh >= 0:
                return mesh_distance(solids.meshes, mesh, point)
        if wp.static(with_heightfields):  # noqa: SIM102
            if solids.rows.type[row] == HEIGHTFIELD:
                return heightfield_distance(
                    field_of(solids.heightfields, solids.rows.heightfield[row]), point
                )
        if solids.rows.type[row] == PLANE:
            return Distance(point[2], UP, NO_FEATURE)
        nearest = surface_point(solids.rows.type[row], solids.rows.size[row], point)
        return Distance(nearest.distance, nearest.outward, NO_FEATURE)

    return distance


def upload_solids(device_model: DeviceModel, sampled: np.ndarray) -> Solids:
    """Meshes, hulls and heightfields of the shapes `sampled`, bool[S], on the device."""
    model = device_model.model
    device = device_model.device
    shapes = model.shapes
    of_sampled = [path for path, chosen in zip(shapes.path, sampled, strict=True) if chosen]
    check_three_sizes(shapes.type[sampled], of_sampled, "distances of points")
    polygons = np.isin(model.shapes.type, (ShapeType.MESH, ShapeType.CONVEX_MESH))
    meshes, mesh = facet_meshes(model, np.flatnonzero(sampled & polygons))
    solids = Solids()
    solids.rows = device_model.rows
    solids.meshes = upload_meshes(meshes, device)
    solids.heightfields = upload_heightfields(model.heightfields, device)
    solids.mesh = wp.array(mesh, dtype=int, device=device)
    return solids
