"""Comparison of the groups beside /rigid_contacts of two contact sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.contact_matching import Contacts, in_order_of_shapes, kept_rows, match_rows
from collidecli.analysis.deviations import FieldTally, Tolerances
from collidecli.analysis.differences import GAP, TableDifferences
from collidecli.analysis.model_alignment import FrameAlignment
from collidecli.scene.contact_blocks import GroupRows, shapes_of
from collidecli.scene.contact_columns import GROUPS, GROUPS_BY_NAME, ContactGroup
from collidecli.scene.options import recorded_number
from collidecli.storage.contact_sets.contact_table import rows_of_cells
from collidecli.storage.contact_sets.readable_rows import check_group_rows, objects_of
from collidecli.verbs.diff.blocks import matched_blocks

if TYPE_CHECKING:
    from collidecli.storage.contact_sets.reader import ContactSet
    from collidecli.verbs.diff.blocks import Side
    from collidecli.verbs.diff.request import DiffRequest

UNMATCHED = ("feature",)
"""Keys that are compared: a row whose feature changed is the same contact."""


def group_fields(group: ContactGroup) -> list[tuple[str, str, np.dtype]]:
    """(name, unit, type) of the compared columns of a group: those that do not identify a row."""
    keys = set(group.keys) - set(UNMATCHED) | set(group.references) | set(group.shapes)
    columns = [column for column in group.columns if column.name not in keys] + [
        own.column for own in group.lists
    ]
    return [(one.name, "rad" if one.name == "normal" else one.unit, one.dtype) for one in columns]


def shared_groups(a: ContactSet, b: ContactSet) -> list[ContactGroup]:
    """The groups that both sets have, with the optional columns that both have."""
    names = [group.name for group in GROUPS if group.name in a.groups and group.name in b.groups]
    of_b = {name: b.groups[name].names for name in names}
    return [
        GROUPS_BY_NAME[name].having([n for n in a.groups[name].names if n in of_b[name]])
        for name in names
    ]


def compare_groups(
    sides: Sequence[Side], frames: FrameAlignment, request: DiffRequest, tolerances: Tolerances
) -> list[TableDifferences]:
    """Differences of each group that both sets have. Raises InputError for unreadable rows."""
    a, b = (side.contacts for side in sides)
    shared = shared_groups(a, b)
    worlds = min(a.world_count, b.world_count)
    compared = {}
    for group in shared:
        fields = [
            field
            for field in group_fields(group)
            if not request.fields or field[0] in request.fields
        ]
        tallies = [
            FieldTally(name, unit, dtype.kind != "f")
            for name, unit, dtype in fields
            if not request.pairs_only
        ]
        compared[group.name] = TableDifferences(
            group.name, tallies, tolerances, worlds, shallow=request.ignore_shallow, by_pair=False
        )
    tables = [(a.groups[group.name], b.groups[group.name]) for group in shared]
    for first, cell_a, cell_b, cells in matched_blocks(a, b, frames, tables, request.block_rows):
        rows_a, rows_b = (
            _keyed(*side_rows, cells, shared)
            for side_rows in zip(sides, (cell_a, cell_b), strict=True)
        )
        for name, differences in compared.items():
            differences.add(
                rows_a[name], rows_b[name], match_rows(rows_a[name], rows_b[name], 0), first
            )
    return list(compared.values())


def _keyed(
    side: Side, first: int, count: int, shared: Sequence[ContactGroup]
) -> dict[str, Contacts]:
    """The rows of cells by group, numbered from 0; common numbers of shapes, the lower one first,
    and of particles."""
    tables = {group.name: side.contacts.groups[group.name] for group in shared}
    groups = rows_of_cells(tables, first, first + count)
    check_group_rows(side.contacts, groups, first, first + count)
    return {group.name: _rows(side, group, groups) for group in shared}


def _rows(side: Side, group: ContactGroup, groups: dict[str, GroupRows]) -> Contacts:
    group_rows = groups[group.name]
    kept = side.model.kept
    particles = side.model.particles
    owners = objects_of(side.contacts, group.name, group_rows)
    objects = [particles.objects[side.index][owner] for owner in owners]
    limit = recorded_number(side.contacts.config, group.limit)
    cell = np.repeat(np.arange(len(group_rows.cell_counts)), group_rows.cell_counts)
    shapes = [side.numbers[shape] for shape in shapes_of(groups, group.name)]
    columns = dict(group_rows.columns)
    if group.objects:
        columns["indices"] = particles.numbers[side.index][columns["indices"]]
    if len(shapes) == 2:
        shapes, columns = in_order_of_shapes(shapes, columns, group.flipped)
    if limit is not None and "distance" in columns:
        columns[GAP] = np.full(len(cell), limit)
    keys = [*shapes, *(objects if side.pairs_only else ())]
    for name in () if side.pairs_only else group.keys:
        if name not in (*group.shapes, *group.references, *UNMATCHED):
            values = columns[name]
            keys += list(values.reshape(len(cell), math.prod(values.shape[1:])).T)
    none = np.zeros(len(cell), np.int64)
    contacts = Contacts(cell, none, none, columns, group_rows.lists, keys, objects)
    if kept is not None:
        first_object = len(kept) - len(particles.names)
        contacts = kept_rows(
            contacts, kept, [*shapes, *(first_object + owner for owner in objects)]
        )
    if side.pairs_only and len(contacts):
        rows = np.unique(
            np.stack([contacts.cell, *(contacts.keys or ())]), axis=1, return_index=True
        )[1]
        contacts = contacts.at(np.sort(rows))
    return contacts
