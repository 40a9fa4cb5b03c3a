"""Collider of pairs in which one shape or both have a signed distance field.

The triangles of each shape (see `facets`) are tested against the field of the other: its grid, or
the exact distance to its surface where it has no grid. Every vertex within the maximum separation
has a contact, as has an edge or a triangle whose field has a lower minimum in its interior than at
its vertices. Spheres and capsules are tested as a point and a segment with a radius.

A back-facing contact counts where its pair has no deeper contact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.contact_record import ContactBuffer, ContactRecord, swap_contacts
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.device_arrays import by_reference
from collidecli.engine.geometry.meshes import Meshes, facet_meshes, mesh_corner, upload_meshes
from collidecli.engine.geometry.primitives import core_is_curved
from collidecli.engine.geometry.real import CAPSULE, SPHERE, Real, Vec3
from collidecli.engine.geometry.sdf_grids import SdfGrid, upload_grids
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.contact_merging import merge_kernel, partition_by_priority
from collidecli.engine.narrowphase.fields import (
    FieldMinimum,
    Fields,
    Probe,
    evaluate,
    field_is_beyond,
    minimum_along,
    minimum_over,
)
from collidecli.engine.narrowphase.sub_pairs import (
    SubPairKernels,
    SubPairList,
    append_sub_pair,
    search_kernel,
    sub_pair_kernel,
)
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import check_three_sizes, half_extents


def upload_fields(
    model: Model, rows: ShapeRows, grids: Sequence[SdfGrid], device: wp.Device
) -> wp.array:
    """The fields of a model on a device: `Fields`, an array of one. rows: of the model. grids: of
    its `sdfs`."""
    shapes = model.shapes
    check_three_sizes(shapes.type, shapes.path, "contacts beside signed distance fields")
    meshes, facet = facet_meshes(model, np.arange(len(shapes)))
    result = Fields()
    steps = np.array([model.sdfs[k].edge_iterations if k >= 0 else 0 for k in shapes.sdf], np.int32)
    result.type = rows.type
    result.size = rows.size
    result.grid = wp.array(shapes.sdf, dtype=wp.int32, device=device)
    result.facet = wp.array(facet, dtype=wp.int32, device=device)
    # A pair in which only one shape has a field uses the steps of that field.
    result.steps = wp.array(steps, dtype=wp.int32, device=device)
    half = np.where(
        shapes.type[:, None] == ShapeType.PLANE, 0.0, half_extents(shapes.type, shapes.size)
    )
    result.half = wp.array(half, dtype=Vec3, device=device)
    result.grids = upload_grids(grids, device)
    result.meshes = upload_meshes(meshes, device)
    return by_reference(Fields, [result], device)


LOWER = wp.constant(Real(0.1))
"""Voxels by which an interior minimum of an edge or triangle must be lower than the field at its
vertices."""
BENDS = wp.constant(Real(0.1))
"""Sine of slightly more than the angle between facets of round shapes: all corners around the
lowest point count."""
BACK_FACING = wp.constant(1)
"""Priority of a contact whose surface is back-facing: it counts where it is nearest."""
NOT_LOWEST = wp.constant(2)
"""Priority of a corner of a round shape's facets with a lower neighbour: it counts where it is
closest."""
FACING_AWAY = wp.constant(Real(0.05))
"""Cosine between a normal and the field's gradient above which a surface is back-facing."""


@wp.func(inline=False)
def emit_field_contact(
    contact: wp.array[ContactRecord],
    row: int,
    probe: Probe,
    minimum: FieldMinimum,
    radius: Real,
    feature: int,
    priority: int,
):
    """Writes the contact of a point of the probe, of a ball around it. The field's shape has no
    features."""
    result = ContactRecord()
    result.separation = minimum.value - radius
    result.feature_a = -1
    result.feature_b = feature
    result.point = wp.transform_point(probe.pose, minimum.point) - minimum.value * minimum.gradient
    result.normal = minimum.gradient
    if probe.of_a:
        # The field is b's: its gradient points from b to a.
        direction = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), minimum.gradient)
        result.normal = -direction
        result.point = minimum.point - radius * direction
        result.feature_a = feature
        result.feature_b = -1
    result.priority = priority
    contact[row] = result


@wp.func(inline=False)
def collide_core(
    fields: wp.array[Fields], probe: Probe, contact: wp.array[ContactRecord], row: int
) -> int:
    """Writes the contacts of a sphere or capsule with a grid: ends and minimum between; returns
    their number."""
    size = fields[0].size[probe.row]
    if fields[0].type[probe.row] == SPHERE or size[1] == Real(0.0):
        minimum = evaluate(fields, probe, Vec3())
        if minimum.value - size[0] >= probe.max_separation:
            return 0
        emit_field_contact(contact, row, probe, minimum, size[0], -1, 0)
        return 1
    top = Vec3(Real(0.0), Real(0.0), size[1])
    count = int(0)
    least = Real(wp.inf)
    for k in range(2):
        end = wp.where(k == 0, -top, top)
        minimum = evaluate(fields, probe, end)
        least = wp.min(least, minimum.value)
        if minimum.value - size[0] < probe.max_separation:
            emit_field_contact(contact, row + count, probe, minimum, size[0], k, 0)
            count += 1
    minimum = minimum_along(fields, probe, -top, top)
    if (
        minimum.value < least - LOWER * probe.voxel
        and minimum.value - size[0] < probe.max_separation
    ):
        emit_field_contact(contact, row + count, probe, minimum, size[0], 2, 0)
        count += 1
    return count


@wp.func
def is_back_facing(probe: Probe, normal: Vec3, minimum: FieldMinimum) -> int:
    """BACK_FACING where a normal of the shape, its frame, points along the field's gradient, else
    0."""
    if not probe.closed:
        return 0
    along = wp.dot(wp.transform_vector(probe.pose, normal), minimum.gradient)
    return wp.where(along > FACING_AWAY * wp.length(normal), BACK_FACING, 0)


@wp.func(inline=False)
def is_lowest(meshes: Meshes, probe: Probe, vertex: int, minimum: FieldMinimum) -> bool:
    """Whether no neighbour of a vertex is lower by more than the angle between facets of a round
    shape."""
    direction = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), minimum.gradient)
    for at in range(meshes.arrays[0].ring[vertex], meshes.arrays[0].ring[vertex + 1]):
        along = meshes.arrays[0].point[meshes.arrays[0].around[at]] - meshes.arrays[0].point[vertex]
        if wp.dot(direction, along) < -BENDS * wp.length(along):
            return False
    return True


@wp.struct
class TriangleMinimum:
    """State of the collision of a triangle. value: of the field at its corners; least: of all
    samples [m]. count: contacts written."""

    value: Vec3
    least: Real
    count: int


@wp.func(inline=False)
def collide_corners(
    fields: wp.array[Fields], probe: Probe, face: int, contact: wp.array[ContactRecord], row: int
) -> TriangleMinimum:
    """Samples the corners of a triangle and writes the contacts of those that it owns."""
    owned = fields[0].meshes.arrays[0].owned[face]
    result = TriangleMinimum()
    result.least = Real(wp.inf)
    for k in range(3):
        vertex = fields[0].meshes.arrays[0].corner[3 * face + k]
        minimum = evaluate(fields, probe, fields[0].meshes.arrays[0].point[vertex])
        result.value[k] = minimum.value
        result.least = wp.min(result.least, minimum.value)
        if (owned >> k) & 1 == 1 and minimum.value < probe.max_separation:
            away = is_back_facing(probe, fields[0].meshes.arrays[0].vertex_normal[vertex], minimum)
            is_curved = core_is_curved(fields[0].type[probe.row])
            if away == 0 and is_curved and not is_lowest(fields[0].meshes, probe, vertex, minimum):
                away = NOT_LOWEST
            code = 3 * (vertex - fields[0].meshes.arrays[0].header[probe.mesh].first_vertex)
            emit_field_contact(contact, row + result.count, probe, minimum, Real(0.0), code, away)
            result.count += 1
    return result


@wp.func
def emit_within(
    probe: Probe,
    has_grid: bool,
    normal: Vec3,
    minimum: FieldMinimum,
    code: int,
    contact: wp.array[ContactRecord],
    row: int,
) -> int:
    """Writes a contact in the interior of an edge or triangle, where it counts; returns the number.

    Against a surface without a grid it counts where it overlaps deepest: resting contacts are those
    of the corners.
    """
    if not has_grid and minimum.value >= -LOWER * probe.voxel:
        return 0
    priority = is_back_facing(probe, normal, minimum) if has_grid else BACK_FACING
    emit_field_contact(contact, row, probe, minimum, Real(0.0), code, priority)
    return 1


@wp.func(inline=False)
def collide_sides(
    fields: wp.array[Fields],
    probe: Probe,
    face: int,
    corners: TriangleMinimum,
    contact: wp.array[ContactRecord],
    row: int,
) -> TriangleMinimum:
    """Searches the sides of a triangle, after its corners, and writes their contacts."""
    has_grid = fields[0].grid[probe.field_row] >= 0
    result = corners
    for k in range(3):
        first = fields[0].meshes.arrays[0].corner[3 * face + k]
        second = fields[0].meshes.arrays[0].corner[3 * face + (k + 1) % 3]
        ends = wp.min(corners.value[k], corners.value[(k + 1) % 3])
        p = fields[0].meshes.arrays[0].point[wp.min(first, second)]
        q = fields[0].meshes.arrays[0].point[wp.max(first, second)]
        # A distance field has slope at most 1.
        bound = Real(0.5) * (corners.value[k] + corners.value[(k + 1) % 3] - wp.length(q - p))
        # Every point of a shorter edge is within half a voxel of an end.
        if (
            bound < probe.max_separation
            and bound < ends - LOWER * probe.voxel
            and wp.length(q - p) > probe.voxel
        ):
            minimum = minimum_along(fields, probe, p, q)
            result.least = wp.min(result.least, minimum.value)
            if minimum.value < ends - LOWER * probe.voxel and minimum.value < probe.max_separation:
                edge = fields[0].meshes.arrays[0].side[3 * face + k]
                normal = fields[0].meshes.arrays[0].edge_normal[edge]
                code = 3 * (edge - fields[0].meshes.arrays[0].header[probe.mesh].first_edge) + 1
                result.count += emit_within(
                    probe, has_grid, normal, minimum, code, contact, row + result.count
                )
    return result


@wp.func(inline=False)
def collide_triangle(
    fields: wp.array[Fields], probe: Probe, face: int, contact: wp.array[ContactRecord], row: int
) -> int:
    """Writes the contacts of a triangle with a field: corners, sides, interior; returns their
    number."""
    corners = collide_corners(fields, probe, face, contact, row)
    sides = collide_sides(fields, probe, face, corners, contact, row)
    p = mesh_corner(fields[0].meshes, face, 0)
    q = mesh_corner(fields[0].meshes, face, 1)
    r = mesh_corner(fields[0].meshes, face, 2)
    longest = wp.max(wp.length(q - p), wp.max(wp.length(r - q), wp.length(p - r)))
    count = sides.count
    if sides.least - longest < probe.max_separation and longest > Real(2.0) * probe.voxel:
        minimum = minimum_over(fields, probe, p, q, r)
        if (
            minimum.value < sides.least - LOWER * probe.voxel
            and minimum.value < probe.max_separation
        ):
            normal = fields[0].meshes.arrays[0].face_normal[face]
            code = 3 * (face - fields[0].meshes.arrays[0].header[probe.mesh].first_face) + 2
            has_grid = fields[0].grid[probe.field_row] >= 0
            count += emit_within(probe, has_grid, normal, minimum, code, contact, row + count)
    return count


MAX_CONTACTS = 7
"""Contacts of a triangle: three vertices, three edges, one interior point."""


@wp.func(inline=False)
def probe_of(fields: wp.array[Fields], query: Query, of_a: bool) -> Probe:
    """The probe of shape a against the field of b, or of b against the field of a."""
    probe = Probe()
    probe.of_a = of_a
    probe.max_separation = query.max_separation
    probe.row = query.row_b
    probe.field_row = query.row_a
    probe.pose = query.pose_b_to_a
    if of_a:
        probe.row = query.row_a
        probe.field_row = query.row_b
        probe.pose = wp.transform_inverse(query.pose_b_to_a)
    # Against a surface without a grid, the other shape's grid gives the sample spacing.
    fine = probe.field_row
    if fields[0].grid[probe.field_row] < 0:
        fine = probe.row
    probe.voxel = fields[0].grids.voxel[fields[0].grid[fine]]
    probe.steps = fields[0].steps[fine]
    probe.mesh = fields[0].facet[probe.row]
    if probe.mesh >= 0:
        probe.closed = fields[0].meshes.arrays[0].header[probe.mesh].is_closed == 1
    return probe


@wp.func
def is_core(fields: wp.array[Fields], row: int) -> bool:
    """Whether a shape is a point or a segment with a radius."""
    return fields[0].type[row] == SPHERE or fields[0].type[row] == CAPSULE


@wp.func
def sub_pairs_of_probe(fields: wp.array[Fields], probe: Probe, out: SubPairList, start: int) -> int:
    """Appends the sub-pairs of a shape against a field, after `start` others; returns their number.

    With code 0 for a against b, 1 for b against a, the number of a sub-pair is 2 * face + code for
    a triangle, -1 - code for a core.
    """
    code = wp.where(probe.of_a, 0, 1)
    max_separation = wp.max(probe.max_separation, Real(0.0))
    if is_core(fields, probe.row):
        if fields[0].grid[probe.field_row] < 0:
            return start
        return append_sub_pair(out, start, -1 - code)
    if fields[0].grid[probe.field_row] < 0 and is_core(fields, probe.field_row):
        return start
    node = fields[0].meshes.arrays[0].header[probe.mesh].first_node
    end = fields[0].meshes.arrays[0].header[probe.mesh].end_node
    count = start
    while node < end:
        lower = fields[0].meshes.arrays[0].lower[node]
        upper = fields[0].meshes.arrays[0].upper[node]
        middle = wp.transform_point(probe.pose, Real(0.5) * (lower + upper))
        if field_is_beyond(
            fields, probe.field_row, middle, max_separation + Real(0.5) * wp.length(upper - lower)
        ):
            node = fields[0].meshes.arrays[0].skip[node]
            continue
        if fields[0].meshes.arrays[0].leaf[node] >= 0:
            count = append_sub_pair(out, count, 2 * fields[0].meshes.arrays[0].leaf[node] + code)
        node += 1
    return count


@wp.func(inline=True)
def find_sub_pairs(
    rows: ShapeRows, fields: wp.array[Fields], query: Query, part: int, parts: int, out: SubPairList
) -> int:
    """Appends the parts of each shape that may be near the other's field; `parts` is 1."""
    count = sub_pairs_of_probe(fields, probe_of(fields, query, True), out, 0)
    return sub_pairs_of_probe(fields, probe_of(fields, query, False), out, count)


@wp.func(inline=True)
def collide_sub_pair(
    rows: ShapeRows, fields: wp.array[Fields], query: Query, code: int, out: ContactBuffer, row: int
) -> int:
    """Contacts of a sub-pair, see `sub_pairs_of_probe`; returns their number."""
    of_a = code == -1
    if code >= 0:
        of_a = code % 2 == 0
    probe = probe_of(fields, query, of_a)
    # Rows of sub-pairs are consecutive, see `SubPairKernels.collide`.
    if code < 0:
        return collide_core(fields, probe, out.contact, out.start + row)
    return collide_triangle(fields, probe, code // 2, out.contact, out.start + row)


@wp.func
def without_back_facing(
    rows: ShapeRows,
    row: wp.vec2i,
    swapped: bool,
    contact: wp.array[ContactRecord],
    first: int,
    count: int,
) -> int:
    """Drops contacts with a priority value above 0, except the nearest where no other is as near.

    A gap that reaches more contacts therefore keeps the nearest one of a smaller gap. Returns the
    number of contacts left.
    """
    counted = partition_by_priority(contact, first, count, BACK_FACING)
    kept = int(-1)
    nearest = counted.deepest
    for i in range(counted.count, count):
        separation = contact[first + i].separation
        if separation < nearest:
            nearest = separation
            kept = i
    if kept < 0:
        return counted.count
    swap_contacts(contact, first + counted.count, first + kept)
    return counted.count + 1


SDF = SubPairKernels(
    "sdf",
    "fields",
    search_kernel(wp.array[Fields], find_sub_pairs),
    merge_kernel(without_back_facing),
)


COLLIDER = Collider(
    "sdf", MAX_CONTACTS, sub_pair_kernel(wp.array[Fields], collide_sub_pair), sub_pair_kernels=SDF
)
