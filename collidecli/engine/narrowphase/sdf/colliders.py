"""Pairs of which one shape or both have a signed distance field.

The triangles of each shape (see `model.facets`) are held against the field of the other, which is its surface itself
where it has no grid. Every vertex within reach gives a contact, and so do an edge and a triangle where the field is
lower inside than at its vertices. Spheres and capsules are a point and a segment with a radius.

A contact whose surface looks away from the other shape counts where its pair has no deeper one.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactBuffer
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.geometry.shape_codes import CAPSULE, SPHERE
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.sdf.contact_priority import merge_field_contacts
from collidecli.engine.narrowphase.sdf.field_minimum import COARSE_VOXELS, Probe
from collidecli.engine.narrowphase.sdf.fields import Fields, field_is_beyond
from collidecli.engine.narrowphase.sdf.sub_pairs import collide_core, collide_triangle
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
"""Of a triangle: three vertices, three edges, one inside."""


@wp.func(inline=False)
def probe_of(fields: wp.array[Fields], query: Query, of_a: bool) -> Probe:
    """Shape a against the field of b, or b against that of a."""
    probe = Probe()
    probe.row = query.row_b
    probe.of = query.row_a
    probe.pose = query.pose_b_to_a
    if of_a:
        probe.row = query.row_a
        probe.of = query.row_b
        probe.pose = wp.transform_inverse(query.pose_b_to_a)
    # A surface without a grid is looked at as closely as the other's grid is fine.
    fine = probe.of
    if fields[0].grid[probe.of] < 0:
        fine = probe.row
    probe.spacing = COARSE_VOXELS * fields[0].grids.voxel[fields[0].grid[fine]]
    probe.steps = fields[0].steps[fine]
    return probe


@wp.func
def is_core(fields: wp.array[Fields], row: int) -> bool:
    """Whether a shape is a point or a segment with a radius."""
    return fields[0].type[row] == SPHERE or fields[0].type[row] == CAPSULE


@wp.func
def pieces_of_probe(
    fields: wp.array[Fields], probe: Probe, max_separation: Real, code: int, out: SubPairList, start: int
) -> int:
    """Notes the pieces that a shape has against a field, behind `start` others; returns how many there are then.

    code: 0 for a against b, 1 for b against a; of a triangle twice its number and that, of a core -1 less that.
    """
    if is_core(fields, probe.row):
        if fields[0].grid[probe.of] < 0:
            return start
        return append_sub_pair(out, start, -1 - code)
    if fields[0].grid[probe.of] < 0 and is_core(fields, probe.of):
        return start
    mesh = fields[0].facet[probe.row]
    node = fields[0].meshes[0].header[mesh].first_node
    end = fields[0].meshes[0].header[mesh].end_node
    found = start
    while node < end:
        lower = fields[0].meshes[0].lower[node]
        upper = fields[0].meshes[0].upper[node]
        middle = wp.transform_point(probe.pose, Real(0.5) * (lower + upper))
        if field_is_beyond(fields, probe.of, middle, max_separation + Real(0.5) * wp.length(upper - lower)):
            node = fields[0].meshes[0].skip[node]
            continue
        if fields[0].meshes[0].leaf[node] >= 0:
            found = append_sub_pair(out, found, 2 * fields[0].meshes[0].leaf[node] + code)
        node += 1
    return found


@wp.func(inline=True)
def sub_pairs_near(
    rows: ShapeRows, fields: wp.array[Fields], query: Query, part: int, parts: int, out: SubPairList
) -> int:
    """Notes the parts of each shape that the other's field may be near to, in one part."""
    max_separation = wp.max(query.max_separation, Real(0.0))
    probe = probe_of(fields, query, True)
    found = pieces_of_probe(fields, probe, max_separation, 0, out, 0)
    probe = probe_of(fields, query, False)
    return pieces_of_probe(fields, probe, max_separation, 1, out, found)


@wp.func(inline=True)
def collide_sub_pair(
    rows: ShapeRows, fields: wp.array[Fields], query: Query, code: int, out: ContactBuffer, row: int
) -> int:
    """The contacts of a piece, see `pieces_of_probe`."""
    of_a = code == -1
    if code >= 0:
        of_a = code % 2 == 0
    probe = probe_of(fields, query, of_a)
    # Rows of pieces stand one after another, see `in_pieces`.
    if code < 0:
        return collide_core(fields, probe, of_a, query.max_separation, out.contact, out.start + row)
    return collide_triangle(fields, probe, of_a, query.max_separation, code // 2, out.contact, out.start + row)


SDF = SubPairKernels("sdf", "fields", search_kernel(wp.array[Fields], sub_pairs_near), merge_field_contacts)


COLLIDER = Collider("sdf", MAX_CONTACTS, sub_pair_kernel(wp.array[Fields], collide_sub_pair), kind=SDF)


def collider_for(type_a: ShapeType) -> Collider:
    """The one room of all pairs with a field."""
    return COLLIDER
