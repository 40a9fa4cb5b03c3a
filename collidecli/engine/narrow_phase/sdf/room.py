"""Pairs of which one shape or both have a signed distance field.

The triangles of each shape (see `model.facets`) are held against the field of the other. Against a grid every vertex
within reach gives a contact, and so do an edge and a triangle where the field is lower inside than at its vertices.
Against a shape without a grid, whose surface is then its field, vertices alone do: its own edges and triangles are held
against the other's grid. Spheres and capsules are a point and a segment with a radius.

A contact whose surface looks away from the other shape counts where its pair has no deeper one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from collidecli.engine.broad_phase.hit_words import scan_counts
from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.meshes import HEADER
from collidecli.engine.geometry.real import Real
from collidecli.engine.geometry.shape_codes import CAPSULE, SPHERE
from collidecli.engine.narrow_phase.query import Query, query_of
from collidecli.engine.narrow_phase.sdf.fields import Fields, field_is_beyond
from collidecli.engine.narrow_phase.sdf.join import MOST, join_field_contacts
from collidecli.engine.narrow_phase.sdf.pieces import collide_core, collide_triangle
from collidecli.engine.narrow_phase.sdf.search import COARSE_VOXELS, Probe
from collidecli.engine.narrow_phase.staging import Candidates, StagedContact
from collidecli.engine.workspace import Workspace


@wp.func(inline=False)
def probe_of(rows: ShapeRows, fields: Fields, query: Query, of_a: bool) -> Probe:
    """Shape a against the field of b, or b against that of a."""
    probe = Probe()
    probe.row = query.row_b
    probe.of = query.row_a
    probe.pose = query.pose_b_to_a
    if of_a:
        probe.row = query.row_a
        probe.of = query.row_b
        probe.pose = wp.transform_inverse(query.pose_b_to_a)
    grid = fields.grid[probe.of]
    if grid >= 0:
        probe.spacing = COARSE_VOXELS * fields.grids.voxel[grid]
        probe.steps = fields.steps[probe.of]
    return probe


@wp.func
def is_core(rows: ShapeRows, row: int) -> bool:
    """Whether a shape is a point or a segment with a radius."""
    return rows.type[row] == SPHERE or rows.type[row] == CAPSULE


@wp.func
def find_of_probe(
    rows: ShapeRows,
    fields: Fields,
    probe: Probe,
    reach: Real,
    candidate: int,
    code: int,
    slot: int,
    write: int,
    piece: wp.array[wp.vec2i],
) -> int:
    """How many pieces a shape has against a field; they are written from `slot` on where `write` is 1.

    code: 0 for a against b, 1 for b against a; of a triangle twice its number and that, of a core -1 less that.
    """  # fmt: skip
    if is_core(rows, probe.row):
        if fields.grid[probe.of] < 0:
            return 0
        if write == 1:
            piece[slot] = wp.vec2i(candidate, -1 - code)
        return 1
    if fields.grid[probe.of] < 0 and is_core(rows, probe.of):
        return 0
    mesh = fields.facet[probe.row]
    node = fields.meshes.header[mesh * wp.static(HEADER) + 3]
    end = fields.meshes.header[mesh * wp.static(HEADER) + 4]
    found = int(0)
    while node < end:
        lower = fields.meshes.lower[node]
        upper = fields.meshes.upper[node]
        middle = wp.transform_point(probe.pose, Real(0.5) * (lower + upper))
        if field_is_beyond(rows, fields, probe.of, middle, reach + Real(0.5) * wp.length(upper - lower)):
            node = fields.meshes.skip[node]
            continue
        if fields.meshes.leaf[node] >= 0:
            if write == 1:
                piece[slot + found] = wp.vec2i(candidate, 2 * fields.meshes.leaf[node] + code)
            found += 1
        node += 1
    return found


@wp.kernel(module="unique", enable_backward=False)
def find_field_pieces(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    fields: Fields,
    order: wp.array[wp.int32],
    start: int,
    write: int,
    end: wp.array[wp.int32],
    piece: wp.array[wp.vec2i],
):
    """One thread a candidate: counts its pieces into `end`, or with `write` 1, `end` scanned, writes them."""
    thread = wp.tid()
    candidate = order[start + thread]
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    slot = int(0)
    if write == 1 and thread > 0:
        slot = end[thread - 1]
    reach = wp.max(query.reach, Real(0.0))
    probe = probe_of(rows, fields, query, True)
    found = find_of_probe(rows, fields, probe, reach, candidate, 0, slot, write, piece)
    probe = probe_of(rows, fields, query, False)
    found += find_of_probe(rows, fields, probe, reach, candidate, 1, slot + found, write, piece)
    if write == 0:
        end[thread] = found


@wp.kernel(module="unique", enable_backward=False)
def collide_field_pieces(
    rows: ShapeRows,
    instances: Instances,
    candidates: Candidates,
    fields: Fields,
    piece: wp.array[wp.vec2i],
    contact: wp.array[StagedContact],
    first_row: int,
    piece_found: wp.array[wp.int32],
):
    """One thread a piece: its contacts, from its own row on."""
    thread = wp.tid()
    candidate = piece[thread][0]
    code = piece[thread][1]
    query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
    row = first_row + thread * wp.static(MOST)
    if code < 0:
        of_a = code == -1
        probe = probe_of(rows, fields, query, of_a)
        piece_found[thread] = collide_core(rows, fields, probe, of_a, query.reach, contact, row)
    else:
        of_a = code % 2 == 0
        probe = probe_of(rows, fields, query, of_a)
        piece_found[thread] = collide_triangle(rows, fields, probe, of_a, query.reach, code // 2, contact, row)


SDF_KERNELS = (find_field_pieces, join_field_contacts)
"""Besides `collide_field_pieces`."""


@dataclass(frozen=True)
class FieldPieces:
    """A bucket's candidates with a part of one of their shapes each. end: of each candidate's. rows: they need."""

    piece: wp.array
    end: wp.array
    count: int

    @property
    def rows(self) -> int:
        return self.count * MOST


def find_pieces(
    shared: list[Any], fields: Fields, order: wp.array, start: int, size: int, workspace: Workspace
) -> FieldPieces:
    """The pieces of the bucket order[start:start + size]. shared: rows, instances, candidates."""
    end = workspace.array("field_end", size, wp.int32)
    piece = workspace.array("field_piece", 1, wp.vec2i)
    workspace.launch(find_field_pieces, size, [*shared, fields, order, start, 0, end, piece])
    count = scan_counts(workspace, end, size)
    piece = workspace.array("field_piece", count, wp.vec2i)
    workspace.launch(find_field_pieces, size, [*shared, fields, order, start, 1, end, piece])
    return FieldPieces(piece, end, count)


def collide_pieces(
    shared: list[Any],
    fields: Fields,
    pieces: FieldPieces,
    order: wp.array,
    bucket: tuple[int, int, int],
    staged: tuple[wp.array, int],
    workspace: Workspace,
) -> None:
    """Contacts of a bucket's pieces, joined to those of its candidates.

    shared: rows, instances, candidates. bucket: where it starts in `order`, its size, and how many contacts a pair may
    keep. staged: the contacts and the first row.
    """
    start, size, limit = bucket
    contact, first_row = staged
    found = workspace.array("field_piece_found", pieces.count, wp.int32)
    arguments = [*shared, fields, pieces.piece, contact, first_row, found]
    workspace.launch(collide_field_pieces, pieces.count, arguments)
    rows, _, candidates = shared
    arguments = [rows, candidates, order, start, limit, pieces.end, found, contact, first_row]
    workspace.launch(join_field_contacts, size, arguments)
