"""A sphere, capsule or triangle of a shape against the field of another: contacts of its points, edges and inside."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactRecord
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import SPHERE
from collidecli.engine.geometry.support import core_is_curved
from collidecli.engine.narrowphase.contact_merging import RANK
from collidecli.engine.narrowphase.sdf.contact_priority import FRONT_FACING, NOT_LOWEST
from collidecli.engine.narrowphase.sdf.field_minimum import (
    COARSE_VOXELS,
    Found,
    Probe,
    found_at,
    least_along,
    least_over,
)
from collidecli.engine.narrowphase.sdf.fields import Fields

LOWER = wp.constant(Real(0.1))
"""Voxels by which an edge or a triangle must be lower inside than at its vertices."""
BENDS = wp.constant(Real(0.1))
"""Sine of an angle between facets of round shapes, and a little more: the corners about the lowest point all count."""
NOT_COUNTED = wp.constant(-1)
BACK_FACING = wp.constant(Real(0.05))
"""Cosine between a normal and the field's gradient from which on a surface looks away."""


@wp.func(inline=False)
def put(
    contact: wp.array[ContactRecord],
    row: int,
    probe: Probe,
    of_a: bool,
    radius: Real,
    found: Found,
    feature: int,
    rank: int,
):
    """Writes the contact of a point of the probe, with its rank. The field's shape has no parts."""  # fmt: skip
    result = ContactRecord()
    result.separation = found.value - radius
    result.feature_a = -1
    result.feature_b = feature
    result.point = wp.transform_point(probe.pose, found.point) - found.value * found.gradient
    result.normal = found.gradient
    if of_a:
        # The field is b's: its gradient points from b to a.
        way = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), found.gradient)
        result.normal = -way
        result.point = found.point - radius * way
        result.feature_a = feature
        result.feature_b = -1
    result.kind = rank * RANK
    contact[row] = result


@wp.func(inline=False)
def collide_core(
    fields: wp.array[Fields], probe: Probe, of_a: bool, max_separation: Real, contact: wp.array[ContactRecord], row: int
) -> int:
    """A sphere or capsule against a grid: the ends, and the least between them. Returns how many contacts."""
    size = fields[0].size[probe.row]
    voxel = probe.spacing / COARSE_VOXELS
    if fields[0].type[probe.row] == SPHERE or size[1] == Real(0.0):
        found = found_at(fields, probe, Vec3())
        if found.value - size[0] >= max_separation:
            return 0
        put(contact, row, probe, of_a, size[0], found, -1, 0)
        return 1
    top = Vec3(Real(0.0), Real(0.0), size[1])
    count = int(0)
    least = Real(wp.inf)
    for k in range(2):
        end = wp.where(k == 0, -top, top)
        found = found_at(fields, probe, end)
        least = wp.min(least, found.value)
        if found.value - size[0] < max_separation:
            put(contact, row + count, probe, of_a, size[0], found, k, 0)
            count += 1
    found = least_along(fields, probe, -top, top)
    if found.value < least - LOWER * voxel and found.value - size[0] < max_separation:
        put(contact, row + count, probe, of_a, size[0], found, 2, 0)
        count += 1
    return count


@wp.func
def is_back_facing(fields: wp.array[Fields], probe: Probe, closed: bool, normal: Vec3, found: Found) -> int:
    """FRONT_FACING where a surface with this normal, the shape's frame, looks the way out of the field, else 0."""
    if not closed:
        return 0
    along = wp.dot(wp.transform_vector(probe.pose, normal), found.gradient)
    return wp.where(along > BACK_FACING * wp.length(normal), FRONT_FACING, 0)


@wp.func
def priority_within(fields: wp.array[Fields], probe: Probe, away: int, value: Real) -> int:
    """Rank of a place within an edge or triangle; NOT_COUNTED where it is none.

    Against a surface without a grid it counts where it overlaps deepest: what rests there is said by its own corners.
    """
    if fields[0].grid[probe.of] >= 0:
        return away
    return wp.where(value < -LOWER * probe.spacing / COARSE_VOXELS, FRONT_FACING, NOT_COUNTED)


@wp.func(inline=False)
def is_lowest(meshes: wp.array[Meshes], probe: Probe, vertex: int, found: Found) -> bool:
    """Whether no neighbour of a vertex is lower by more than the facets of a round shape bend."""
    way = wp.quat_rotate_inv(wp.transform_get_rotation(probe.pose), found.gradient)
    for at in range(meshes[0].ring[vertex], meshes[0].ring[vertex + 1]):
        along = meshes[0].point[meshes[0].around[at]] - meshes[0].point[vertex]
        if wp.dot(way, along) < -BENDS * wp.length(along):
            return False
    return True


@wp.struct
class OnTriangle:
    """What is found of a triangle so far. value: of the field at its corners; least: of all places looked at [m].

    count: contacts that are written.
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
) -> OnTriangle:
    """The corners of a triangle; those that belong to it have contacts."""  # fmt: skip
    mesh = fields[0].facet[probe.row]
    header = fields[0].meshes[0].header[mesh]
    closed = header.is_closed == 1
    owned = fields[0].meshes[0].owned[face]
    result = OnTriangle()
    result.least = Real(wp.inf)
    for k in range(3):
        vertex = fields[0].meshes[0].corner[3 * face + k]
        found = found_at(fields, probe, fields[0].meshes[0].point[vertex])
        result.value[k] = found.value
        result.least = wp.min(result.least, found.value)
        if (owned >> k) & 1 == 1 and found.value < max_separation:
            away = is_back_facing(fields, probe, closed, fields[0].meshes[0].vertex_normal[vertex], found)
            is_curved = core_is_curved(fields[0].type[probe.row])
            if away == 0 and is_curved and not is_lowest(fields[0].meshes, probe, vertex, found):
                away = NOT_LOWEST
            code = 3 * (vertex - header.first_vertex)
            put(contact, row + result.count, probe, of_a, Real(0.0), found, code, away)
            result.count += 1
    return result


@wp.func
def emit_within(
    fields: wp.array[Fields],
    probe: Probe,
    of_a: bool,
    closed: bool,
    normal: Vec3,
    found: Found,
    code: int,
    contact: wp.array[ContactRecord],
    row: int,
) -> int:
    """A contact within an edge or triangle of this outward normal, where it counts. Returns how many."""
    rank = priority_within(fields, probe, is_back_facing(fields, probe, closed, normal, found), found.value)
    if rank == NOT_COUNTED:
        return 0
    put(contact, row, probe, of_a, Real(0.0), found, code, rank)
    return 1


@wp.func(inline=False)
def collide_sides(
    fields: wp.array[Fields],
    probe: Probe,
    of_a: bool,
    max_separation: Real,
    face: int,
    corners: OnTriangle,
    contact: wp.array[ContactRecord],
    row: int,
) -> OnTriangle:
    """The sides of a triangle, after its corners."""  # fmt: skip
    header = fields[0].meshes[0].header[fields[0].facet[probe.row]]
    closed = header.is_closed == 1
    voxel = probe.spacing / COARSE_VOXELS
    result = corners
    for k in range(3):
        first = fields[0].meshes[0].corner[3 * face + k]
        second = fields[0].meshes[0].corner[3 * face + (k + 1) % 3]
        ends = wp.min(corners.value[k], corners.value[(k + 1) % 3])
        p = fields[0].meshes[0].point[wp.min(first, second)]
        q = fields[0].meshes[0].point[wp.max(first, second)]
        # A field falls by no more than the way between.
        bound = Real(0.5) * (corners.value[k] + corners.value[(k + 1) % 3] - wp.length(q - p))
        # No place on a shorter edge is farther than half a voxel from an end.
        if bound < max_separation and bound < ends - LOWER * voxel and wp.length(q - p) > voxel:
            found = least_along(fields, probe, p, q)
            result.least = wp.min(result.least, found.value)
            if found.value < ends - LOWER * voxel and found.value < max_separation:
                edge = fields[0].meshes[0].side[3 * face + k]
                normal = fields[0].meshes[0].edge_normal[edge]
                code = 3 * (edge - header.first_edge) + 1
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
    """A triangle of a shape against a field: its corners, its sides, its inside. Returns how many contacts."""
    corners = collide_corners(fields, probe, of_a, max_separation, face, contact, row)
    sides = collide_sides(fields, probe, of_a, max_separation, face, corners, contact, row)
    header = fields[0].meshes[0].header[fields[0].facet[probe.row]]
    closed = header.is_closed == 1
    voxel = probe.spacing / COARSE_VOXELS
    p = fields[0].meshes[0].point[fields[0].meshes[0].corner[3 * face]]
    q = fields[0].meshes[0].point[fields[0].meshes[0].corner[3 * face + 1]]
    r = fields[0].meshes[0].point[fields[0].meshes[0].corner[3 * face + 2]]
    longest = wp.max(wp.length(q - p), wp.max(wp.length(r - q), wp.length(p - r)))
    count = sides.count
    if sides.least - longest < max_separation and longest > Real(2.0) * voxel:
        found = least_over(fields, probe, p, q, r)
        if found.value < sides.least - LOWER * voxel and found.value < max_separation:
            normal = fields[0].meshes[0].face_normal[face]
            code = 3 * (face - header.first_face) + 2
            count += emit_within(fields, probe, of_a, closed, normal, found, code, contact, row + count)
    return count
