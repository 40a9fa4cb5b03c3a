"""Collision of a sphere, capsule or triangle with a signed distance field: contacts of vertices, edges and interior."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactRecord
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import SPHERE
from collidecli.engine.geometry.support import core_is_curved
from collidecli.engine.narrowphase.sdf.field_minimum import (
    COARSE_VOXELS,
    FieldMinimum,
    Probe,
    evaluate,
    minimum_along,
    minimum_over,
)
from collidecli.engine.narrowphase.sdf.fields import Fields

LOWER = wp.constant(Real(0.1))
"""Voxels by which an interior minimum of an edge or triangle must be lower than the field at its vertices."""
BENDS = wp.constant(Real(0.1))
"""Sine of slightly more than the angle between facets of round shapes: all corners around the lowest point count."""
BACK_FACING = wp.constant(1)
"""Priority of a contact whose surface is back-facing: it counts where it overlaps deepest."""
NOT_LOWEST = wp.constant(2)
"""Priority of a corner of a round shape's facets with a lower neighbour: it counts where it is closest."""
NOT_COUNTED = wp.constant(-1)
FACING_AWAY = wp.constant(Real(0.05))
"""Cosine between a normal and the field's gradient above which a surface is back-facing."""


@wp.func(inline=False)
def emit_field_contact(
    contact: wp.array[ContactRecord],
    row: int,
    probe: Probe,
    of_a: bool,
    radius: Real,
    found: FieldMinimum,
    feature: int,
    priority: int,
):
    """Writes the contact of a point of the probe. The field's shape has no features."""  # fmt: skip
    result = ContactRecord()
    result.separation = found.value - radius
    result.feature_a = -1
    result.feature_b = feature
    result.point = wp.transform_point(probe.pose, found.point) - found.value * found.gradient
    result.normal = found.gradient
    if of_a:
        # The field is b's: its gradient points from b to a.
        direction = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), found.gradient)
        result.normal = -direction
        result.point = found.point - radius * direction
        result.feature_a = feature
        result.feature_b = -1
    result.priority = priority
    contact[row] = result


@wp.func(inline=False)
def collide_core(
    fields: wp.array[Fields], probe: Probe, of_a: bool, max_separation: Real, contact: wp.array[ContactRecord], row: int
) -> int:
    """Writes the contacts of a sphere or capsule with a grid: ends and minimum between; returns their number."""
    size = fields[0].size[probe.row]
    voxel = probe.spacing / COARSE_VOXELS
    if fields[0].type[probe.row] == SPHERE or size[1] == Real(0.0):
        found = evaluate(fields, probe, Vec3())
        if found.value - size[0] >= max_separation:
            return 0
        emit_field_contact(contact, row, probe, of_a, size[0], found, -1, 0)
        return 1
    top = Vec3(Real(0.0), Real(0.0), size[1])
    count = int(0)
    least = Real(wp.inf)
    for k in range(2):
        end = wp.where(k == 0, -top, top)
        found = evaluate(fields, probe, end)
        least = wp.min(least, found.value)
        if found.value - size[0] < max_separation:
            emit_field_contact(contact, row + count, probe, of_a, size[0], found, k, 0)
            count += 1
    found = minimum_along(fields, probe, -top, top)
    if found.value < least - LOWER * voxel and found.value - size[0] < max_separation:
        emit_field_contact(contact, row + count, probe, of_a, size[0], found, 2, 0)
        count += 1
    return count


@wp.func
def is_back_facing(fields: wp.array[Fields], probe: Probe, closed: bool, normal: Vec3, found: FieldMinimum) -> int:
    """BACK_FACING where a normal of the shape, its frame, points along the field's gradient, else 0."""
    if not closed:
        return 0
    along = wp.dot(wp.transform_vector(probe.pose, normal), found.gradient)
    return wp.where(along > FACING_AWAY * wp.length(normal), BACK_FACING, 0)


@wp.func
def priority_within(fields: wp.array[Fields], probe: Probe, away: int, value: Real) -> int:
    """Priority of a contact in the interior of an edge or triangle; NOT_COUNTED where there is none.

    Against a surface without a grid it counts where it overlaps deepest: resting contacts are those of the corners.
    """
    if fields[0].grid[probe.field_row] >= 0:
        return away
    return wp.where(value < -LOWER * probe.spacing / COARSE_VOXELS, BACK_FACING, NOT_COUNTED)


@wp.func(inline=False)
def is_lowest(meshes: wp.array[Meshes], probe: Probe, vertex: int, found: FieldMinimum) -> bool:
    """Whether no neighbour of a vertex is lower by more than the angle between facets of a round shape."""
    direction = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), found.gradient)
    for at in range(meshes[0].ring[vertex], meshes[0].ring[vertex + 1]):
        along = meshes[0].point[meshes[0].around[at]] - meshes[0].point[vertex]
        if wp.dot(direction, along) < -BENDS * wp.length(along):
            return False
    return True


@wp.struct
class TriangleMinimum:
    """State of the collision of a triangle. value: of the field at its corners; least: of all samples [m].

    count: contacts written.
    """

    value: Vec3
    least: Real
    count: int


@wp.func(inline=False)
def collide_corners(
    fields: wp.array[Fields],
    probe: Probe,
    of_a: bool,
    max_separation: Real,
    face: int,
    contact: wp.array[ContactRecord],
    row: int,
) -> TriangleMinimum:
    """Samples the corners of a triangle and writes the contacts of those that it owns."""  # fmt: skip
    mesh = fields[0].facet[probe.row]
    closed = fields[0].meshes[0].header[mesh].is_closed == 1
    owned = fields[0].meshes[0].owned[face]
    result = TriangleMinimum()
    result.least = Real(wp.inf)
    for k in range(3):
        vertex = fields[0].meshes[0].corner[3 * face + k]
        found = evaluate(fields, probe, fields[0].meshes[0].point[vertex])
        result.value[k] = found.value
        result.least = wp.min(result.least, found.value)
        if (owned >> k) & 1 == 1 and found.value < max_separation:
            away = is_back_facing(fields, probe, closed, fields[0].meshes[0].vertex_normal[vertex], found)
            is_curved = core_is_curved(fields[0].type[probe.row])
            if away == 0 and is_curved and not is_lowest(fields[0].meshes, probe, vertex, found):
                away = NOT_LOWEST
            code = 3 * (vertex - fields[0].meshes[0].header[mesh].first_vertex)
            emit_field_contact(contact, row + result.count, probe, of_a, Real(0.0), found, code, away)
            result.count += 1
    return result


@wp.func
def emit_within(
    fields: wp.array[Fields],
    probe: Probe,
    of_a: bool,
    closed: bool,
    normal: Vec3,
    found: FieldMinimum,
    code: int,
    contact: wp.array[ContactRecord],
    row: int,
) -> int:
    """Writes a contact in the interior of an edge or triangle, where it counts; returns the number."""
    priority = priority_within(fields, probe, is_back_facing(fields, probe, closed, normal, found), found.value)
    if priority == NOT_COUNTED:
        return 0
    emit_field_contact(contact, row, probe, of_a, Real(0.0), found, code, priority)
    return 1


@wp.func(inline=False)
def collide_sides(
    fields: wp.array[Fields],
    probe: Probe,
    of_a: bool,
    max_separation: Real,
    face: int,
    corners: TriangleMinimum,
    contact: wp.array[ContactRecord],
    row: int,
) -> TriangleMinimum:
    """Searches the sides of a triangle, after its corners, and writes their contacts."""  # fmt: skip
    closed = fields[0].meshes[0].header[fields[0].facet[probe.row]].is_closed == 1
    voxel = probe.spacing / COARSE_VOXELS
    result = corners
    for k in range(3):
        first = fields[0].meshes[0].corner[3 * face + k]
        second = fields[0].meshes[0].corner[3 * face + (k + 1) % 3]
        ends = wp.min(corners.value[k], corners.value[(k + 1) % 3])
        p = fields[0].meshes[0].point[wp.min(first, second)]
        q = fields[0].meshes[0].point[wp.max(first, second)]
        # A distance field has slope at most 1.
        bound = Real(0.5) * (corners.value[k] + corners.value[(k + 1) % 3] - wp.length(q - p))
        # Every point of a shorter edge is within half a voxel of an end.
        if bound < max_separation and bound < ends - LOWER * voxel and wp.length(q - p) > voxel:
            found = minimum_along(fields, probe, p, q)
            result.least = wp.min(result.least, found.value)
            if found.value < ends - LOWER * voxel and found.value < max_separation:
                edge = fields[0].meshes[0].side[3 * face + k]
                normal = fields[0].meshes[0].edge_normal[edge]
                code = 3 * (edge - fields[0].meshes[0].header[fields[0].facet[probe.row]].first_edge) + 1
                result.count += emit_within(
                    fields, probe, of_a, closed, normal, found, code, contact, row + result.count
                )
    return result


@wp.func(inline=False)
def collide_triangle(
    fields: wp.array[Fields],
    probe: Probe,
    of_a: bool,
    max_separation: Real,
    face: int,
    contact: wp.array[ContactRecord],
    row: int,
) -> int:
    """Writes the contacts of a triangle with a field: corners, sides, interior; returns their number."""
    corners = collide_corners(fields, probe, of_a, max_separation, face, contact, row)
    sides = collide_sides(fields, probe, of_a, max_separation, face, corners, contact, row)
    closed = fields[0].meshes[0].header[fields[0].facet[probe.row]].is_closed == 1
    voxel = probe.spacing / COARSE_VOXELS
    p = fields[0].meshes[0].point[fields[0].meshes[0].corner[3 * face]]
    q = fields[0].meshes[0].point[fields[0].meshes[0].corner[3 * face + 1]]
    r = fields[0].meshes[0].point[fields[0].meshes[0].corner[3 * face + 2]]
    longest = wp.max(wp.length(q - p), wp.max(wp.length(r - q), wp.length(p - r)))
    count = sides.count
    if sides.least - longest < max_separation and longest > Real(2.0) * voxel:
        found = minimum_over(fields, probe, p, q, r)
        if found.value < sides.least - LOWER * voxel and found.value < max_separation:
            normal = fields[0].meshes[0].face_normal[face]
            code = 3 * (face - fields[0].meshes[0].header[fields[0].facet[probe.row]].first_face) + 2
            count += emit_within(fields, probe, of_a, closed, normal, found, code, contact, row + count)
    return count
