"""Every shape as a signed distance field: its grid where it has one, else its surface itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.by_reference import by_reference
from collidecli.engine.geometry.mesh_nearest import winding_number
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import CONVEX_MESH
from collidecli.engine.geometry.signed_distance.exact import surface_point
from collidecli.engine.geometry.signed_distance.grid import FieldSample, SdfGrid, SdfGrids, sample_grid, upload_grids
from collidecli.scene.facets import facets
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import box_of
from collidecli.scene.triangle_mesh import TriangleMesh

LEVEL = wp.constant(Real(1.0e-6))
"""Length of a gradient below which it has no direction: at the middle of a cell between equal values."""


@wp.struct
class Fields:
    """What pairs with a signed distance field need of shapes, by row; and their grids and surfaces.

    type, size: as in `ShapeRows`. grid: which of `grids` a shape has, or -1. facet: which of `meshes` its triangles
    are, or -1. steps: of the search along edges against it. half: half extents of its box [m].

    Functions take it by reference, see `by_reference`.
    """

    type: wp.array[wp.int32]
    size: wp.array[Vec3]
    grid: wp.array[wp.int32]
    facet: wp.array[wp.int32]
    steps: wp.array[wp.int32]
    half: wp.array[Vec3]
    grids: SdfGrids
    meshes: wp.array[Meshes]


@wp.struct
class NearestOnMesh:
    """Of a point: the nearest place of a mesh. off: from there to the point [m]. outward: tells the side, not unit."""

    off: Vec3
    outward: Vec3


@wp.func
def nearest_on_segment(p: Vec3, q: Vec3, point: Vec3) -> Real:
    """Share of q in the point of a segment that is nearest to a point."""
    along = q - p
    return wp.clamp(wp.dot(point - p, along) / wp.dot(along, along), Real(0.0), Real(1.0))


@wp.func(inline=False)
def on_triangle(meshes: wp.array[Meshes], face: int, point: Vec3) -> NearestOnMesh:
    """The nearest place of one triangle; the outward sum of the corner, edge or face that it is on."""
    result = NearestOnMesh()
    p = meshes[0].point[meshes[0].corner[3 * face]]
    normal = meshes[0].face_normal[face]
    height = wp.dot(point - p, normal)
    foot = point - height * normal
    within = bool(True)
    least = Real(wp.inf)
    for k in range(3):
        a = meshes[0].point[meshes[0].corner[3 * face + k]]
        b = meshes[0].point[meshes[0].corner[3 * face + (k + 1) % 3]]
        if wp.dot(wp.cross(b - a, foot - a), normal) < Real(0.0):
            within = False
        share = nearest_on_segment(a, b, point)
        off = point - (a + share * (b - a))
        if wp.dot(off, off) < least:
            least = wp.dot(off, off)
            result.off = off
            result.outward = meshes[0].edge_normal[meshes[0].side[3 * face + k]]
            if share == Real(0.0):
                result.outward = meshes[0].vertex_normal[meshes[0].corner[3 * face + k]]
            elif share == Real(1.0):
                result.outward = meshes[0].vertex_normal[meshes[0].corner[3 * face + (k + 1) % 3]]
    if within:
        result.off = height * normal
        result.outward = normal
    return result


@wp.func(inline=False)
def nearest_on_mesh(meshes: wp.array[Meshes], mesh: int, point: Vec3) -> NearestOnMesh:
    """The nearest place of a mesh to a point of its frame; of equally near ones the first in the order of its tree."""
    best = NearestOnMesh()
    node = meshes[0].header[mesh].first_node
    end = meshes[0].header[mesh].end_node
    # A first guess, so that most of the tree is passed over: the nearest of the vertices of every box on the way down.
    square = Real(wp.inf)
    at = node
    while at < end and meshes[0].leaf[at] < 0:
        near = at + 1
        far = meshes[0].skip[near]
        off_near = point - wp.max(meshes[0].lower[near], wp.min(meshes[0].upper[near], point))
        off_far = point - wp.max(meshes[0].lower[far], wp.min(meshes[0].upper[far], point))
        at = near
        if wp.dot(off_far, off_far) < wp.dot(off_near, off_near):
            at = far
    best = on_triangle(meshes, meshes[0].leaf[at], point)
    square = wp.dot(best.off, best.off)
    while node < end:
        off = point - wp.max(meshes[0].lower[node], wp.min(meshes[0].upper[node], point))
        if wp.dot(off, off) >= square:
            node = meshes[0].skip[node]
            continue
        if meshes[0].leaf[node] >= 0:
            here = on_triangle(meshes, meshes[0].leaf[node], point)
            if wp.dot(here.off, here.off) < square:
                best = here
                square = wp.dot(here.off, here.off)
        node += 1
    return best


@wp.func(inline=False)
def exact_field(fields: wp.array[Fields], row: int, point: Vec3) -> FieldSample:
    """Distance and unit gradient of a shape's surface itself. An open mesh has no inside: both its sides are outside.

    Source of the sign: Baerentzen and Aanaes 2005.
    """
    result = FieldSample()
    result.inside = 1
    if fields[0].type[row] < CONVEX_MESH:
        nearest = surface_point(fields[0].type[row], fields[0].size[row], point)
        result.value = nearest.distance
        result.gradient = nearest.outward
        return result
    mesh = fields[0].facet[row]
    found = nearest_on_mesh(fields[0].meshes, mesh, point)
    result.value = wp.length(found.off)
    if result.value > Real(0.0):
        result.gradient = found.off / result.value
    else:
        result.gradient = wp.normalize(found.outward)
    inside = fields[0].meshes[0].header[mesh].is_closed == 1
    if inside and fields[0].meshes[0].header[mesh].first_winding_node >= 0:
        inside = winding_number(fields[0].meshes[0], mesh, point) != 0
    elif inside:
        inside = wp.dot(found.off, found.outward) < Real(0.0)
    if inside:
        result.value = -result.value
        result.gradient = -result.gradient
    return result


@wp.func(inline=False)
def field_at(fields: wp.array[Fields], row: int, point: Vec3) -> FieldSample:
    """Distance and unit gradient of the field of a row at a point of its frame.

    Degenerate: where the grid has no gradient, that of the surface itself.
    """
    if fields[0].grid[row] >= 0:
        found = sample_grid(fields[0].grids, fields[0].grid[row], point)
        if found.inside == 1:
            length = wp.length(found.gradient)
            if length > LEVEL:
                found.gradient = found.gradient / length
            else:
                found.gradient = exact_field(fields, row, point).gradient
            return found
        outside = exact_field(fields, row, point)
        if outside.value < Real(0.0):  # nothing beyond the grid is inside, whatever the mesh's windings say
            outside.value = -outside.value
            outside.gradient = -outside.gradient
        return outside
    return exact_field(fields, row, point)


@wp.func(inline=False)
def field_is_beyond(fields: wp.array[Fields], row: int, point: Vec3, distance: Real) -> bool:
    """Whether the field of a row is surely more than `distance` at a point, found without a search of its surface."""
    half = fields[0].half[row]
    off = point - wp.max(-half, wp.min(half, point))
    if wp.dot(off, off) > wp.max(distance, Real(0.0)) * wp.max(distance, Real(0.0)):
        return True
    if fields[0].grid[row] < 0:
        return False
    found = sample_grid(fields[0].grids, fields[0].grid[row], point)
    # Twice what a value may be off, see build.
    return found.inside == 1 and found.value - Real(2.0) * fields[0].grids.voxel[fields[0].grid[row]] > distance


def upload_fields(model: Model, rows: ShapeRows, grids: Sequence[SdfGrid], device: wp.Device) -> wp.array:
    """The fields of a model on a device: `Fields`, an array of one. rows: of the model. grids: of its `sdfs`."""
    shapes = model.shapes
    facet = np.full(len(shapes), -1, np.int32)
    number: dict[bytes, int] = {}
    held: list[TriangleMesh] = []
    for row, shape_type in enumerate(shapes.types()):
        hull = model.hulls[shapes.hull[row]] if shape_type == ShapeType.CONVEX_MESH else None
        mesh = model.meshes[shapes.mesh[row]] if shape_type == ShapeType.MESH else None
        key = bytes([shape_type]) + shapes.size[row].tobytes()
        key += shapes.hull[row].tobytes() + shapes.mesh[row].tobytes()
        if key not in number:
            triangles = facets(shape_type, shapes.size[row], hull, mesh)
            number[key] = -1 if triangles is None else len(held)
            held += [] if triangles is None else [triangles]
        facet[row] = number[key]
    result = Fields()
    steps = np.array([model.sdfs[k].edge_iterations if k >= 0 else 0 for k in shapes.sdf], np.int32)
    result.type, result.size = rows.type, rows.size
    result.grid = wp.array(shapes.sdf, dtype=wp.int32, device=device)
    result.facet = wp.array(facet, dtype=wp.int32, device=device)
    # A pair where one has a field alone is searched with that one's steps.
    result.steps = wp.array(steps, dtype=wp.int32, device=device)
    result.half = wp.array(_half_extents(model), dtype=Vec3, device=device)
    result.grids = upload_grids(grids, device)
    result.meshes = by_reference(Meshes, upload_meshes(held, device), device)
    return by_reference(Fields, result, device)


def _half_extents(model: Model) -> np.ndarray:
    shapes = model.shapes
    return np.array([box_of(kind, size) for kind, size in zip(shapes.types(), shapes.size, strict=True)])
