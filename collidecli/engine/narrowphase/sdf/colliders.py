"""Collider of pairs in which one shape or both have a signed distance field.

The triangles of each shape (see `scene.facets`) are tested against the field of the other: its grid, or the exact
distance to its surface where it has no grid. Every vertex within the maximum separation has a contact, as has an edge
or a triangle whose field has a lower minimum in its interior than at its vertices. Spheres and capsules are tested as a
point and a segment with a radius.

A back-facing contact counts where its pair has no deeper contact.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, ContactRecord, swap_contacts
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.geometry.shape_codes import CAPSULE, SPHERE
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.contact_merging import merge_kernel, partition_by_priority
from collidecli.engine.narrowphase.sdf.field_minimum import COARSE_VOXELS, Probe
from collidecli.engine.narrowphase.sdf.fields import Fields, field_is_beyond
from collidecli.engine.narrowphase.sdf.sub_pairs import BACK_FACING, NOT_LOWEST, collide_core, collide_triangle
from collidecli.engine.narrowphase.sub_pairs import (
    SubPairKernels,
    SubPairList,
    append_sub_pair,
    search_kernel,
    sub_pair_kernel,
)
from collidecli.engine.pair_query import Query
from collidecli.scene.shape_types import ShapeType

MAX_CONTACTS = 7
"""Contacts of a triangle: three vertices, three edges, one interior point."""


@wp.func(inline=False)
def probe_of(fields: wp.array[Fields], query: Query, of_a: bool) -> Probe:
    """The probe of shape a against the field of b, or of b against the field of a."""
    probe = Probe()
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
    probe.spacing = COARSE_VOXELS * fields[0].grids.voxel[fields[0].grid[fine]]
    probe.steps = fields[0].steps[fine]
    return probe


@wp.func
def is_core(fields: wp.array[Fields], row: int) -> bool:
    """Whether a shape is a point or a segment with a radius."""
    return fields[0].type[row] == SPHERE or fields[0].type[row] == CAPSULE


@wp.func
def sub_pairs_of_probe(
    fields: wp.array[Fields], probe: Probe, max_separation: Real, code: int, out: SubPairList, start: int
) -> int:
    """Appends the sub-pairs of a shape against a field, after `start` others; returns their number.

    code: 0 for a against b, 1 for b against a. The number of a sub-pair is 2 * face + code for a triangle, -1 - code
    for a core.
    """
    if is_core(fields, probe.row):
        if fields[0].grid[probe.field_row] < 0:
            return start
        return append_sub_pair(out, start, -1 - code)
    if fields[0].grid[probe.field_row] < 0 and is_core(fields, probe.field_row):
        return start
    mesh = fields[0].facet[probe.row]
    node = fields[0].meshes[0].header[mesh].first_node
    end = fields[0].meshes[0].header[mesh].end_node
    found = start
    while node < end:
        lower = fields[0].meshes[0].lower[node]
        upper = fields[0].meshes[0].upper[node]
        middle = wp.transform_point(probe.pose, Real(0.5) * (lower + upper))
        if field_is_beyond(fields, probe.field_row, middle, max_separation + Real(0.5) * wp.length(upper - lower)):
            node = fields[0].meshes[0].skip[node]
            continue
        if fields[0].meshes[0].leaf[node] >= 0:
            found = append_sub_pair(out, found, 2 * fields[0].meshes[0].leaf[node] + code)
        node += 1
    return found


@wp.func(inline=True)
def find_sub_pairs(
    rows: ShapeRows, fields: wp.array[Fields], query: Query, part: int, parts: int, out: SubPairList
) -> int:
    """Appends the parts of each shape that may be near the other's field; `parts` is 1."""
    max_separation = wp.max(query.max_separation, Real(0.0))
    probe = probe_of(fields, query, True)
    found = sub_pairs_of_probe(fields, probe, max_separation, 0, out, 0)
    probe = probe_of(fields, query, False)
    return sub_pairs_of_probe(fields, probe, max_separation, 1, out, found)


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
        return collide_core(fields, probe, of_a, query.max_separation, out.contact, out.start + row)
    return collide_triangle(fields, probe, of_a, query.max_separation, code // 2, out.contact, out.start + row)


@wp.func
def without_back_facing(
    rows: ShapeRows, row: wp.vec2i, swapped: bool, contact: wp.array[ContactRecord], first: int, count: int
) -> int:
    """Drops contacts with a priority value above 0, except the deepest where no other is as deep or there is no other.

    A back-facing contact is kept only where it overlaps. Returns the number of contacts left.
    """
    counted = partition_by_priority(contact, first, count, BACK_FACING)
    held = int(-1)
    nearest = counted.deepest
    for i in range(counted.count, count):
        here = contact[first + i].separation
        may = counted.count == 0 or here < Real(0.0) or contact[first + i].priority >= NOT_LOWEST
        if may and here < nearest:
            nearest = here
            held = i
    if held < 0:
        return counted.count
    swap_contacts(contact, first + counted.count, first + held)
    return counted.count + 1


SDF = SubPairKernels(
    "sdf", "fields", search_kernel(wp.array[Fields], find_sub_pairs), merge_kernel(without_back_facing)
)


COLLIDER = Collider("sdf", MAX_CONTACTS, sub_pair_kernel(wp.array[Fields], collide_sub_pair), sub_pair_kernels=SDF)


def collider_for(type_a: ShapeType) -> Collider:
    """The collider of all pairs with a field."""
    return COLLIDER
