"""Comparison of the groups beside /rigid_contacts of two contact sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.contact_differences import KINDS
from collidecli.analysis.field_comparison import FieldTally, Tolerances
from collidecli.analysis.group_differences import GroupDifferences, KeyedRows
from collidecli.analysis.particle_alignment import ParticleAlignment
from collidecli.analysis.path_patterns import chosen_rows
from collidecli.analysis.shape_alignment import FrameAlignment
from collidecli.commands.diff_blocks import matched_spans
from collidecli.scene.contact_groups import GROUPS, ContactGroup, GroupRows, entries_of, group_words, shapes_of
from collidecli.scene.run_options import recorded_number
from collidecli.scene.text_format import count, plural
from collidecli.storage.contact_sets.cell_ranges import spans
from collidecli.storage.contact_sets.group_reader import rows_of_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_group_rows, objects_of

UNMATCHED = ("feature",)
"""Keys that are compared: a row whose feature changed is the same contact."""


def group_fields(group: ContactGroup) -> list[tuple[str, str, np.dtype]]:
    """(name, unit, type) of the compared columns of a group: those that do not identify a row."""
    keys = set(group.keys) - set(UNMATCHED) | set(group.references) | set(group.shapes)
    columns = [column for column in group.columns if column.name not in keys] + [held.column for held in group.lists]
    return [(one.name, "rad" if one.name == "normal" else one.unit, one.dtype) for one in columns]


@dataclass(frozen=True)
class GroupOptions:
    """What is compared. numbers: common numbers of the shapes of A and of B. particles: of their particles.

    kept: see `kept_pairs`, of the numbers of shapes, then of particle objects.

    The others are those of DiffRequest.
    """

    numbers: tuple[np.ndarray, np.ndarray]
    particles: ParticleAlignment
    kept: np.ndarray | None
    fields: Sequence[str]
    pairs_only: bool
    ignore_shallow: float
    block_rows: int


def compare_groups(
    a: ContactSet, b: ContactSet, frames: FrameAlignment, options: GroupOptions, tolerances: Tolerances
) -> list[GroupDifferences]:
    """Differences of each group that both sets have. Raises InputError for unreadable rows."""
    shared = [group for group in GROUPS if group.name in a.groups and group.name in b.groups]
    found = {}
    for group in shared:
        fields = [field for field in group_fields(group) if not options.fields or field[0] in options.fields]
        tallies = [FieldTally(name, unit, dtype.kind != "f") for name, unit, dtype in fields]
        found[group.name] = GroupDifferences(
            group.name, [] if options.pairs_only else tallies, tolerances, options.ignore_shallow
        )
    for first, cell_a, cell_b, cells in matched_spans(a, b, frames) if shared else ():
        for done, stop in spans(_starts(a, shared, cell_a) + _starts(b, shared, cell_b), options.block_rows, 0, cells):
            sides = [
                _keyed(one, shared, (cell + done, cell + stop), options, side)
                for side, (one, cell) in enumerate(((a, cell_a), (b, cell_b)))
            ]
            for name, differences in found.items():
                differences.add(sides[0][name], sides[1][name], first + done)
    return list(found.values())


def _starts(contacts: ContactSet, shared: Sequence[ContactGroup], first: int) -> list[Callable[[slice], np.ndarray]]:
    """Functions that return the first rows of cells, which are counted from the cell `first` on."""

    def start_of(read: Callable[[slice], np.ndarray]) -> Callable[[slice], np.ndarray]:
        return lambda cells: read(slice(first + cells.start, first + cells.stop))

    return [start_of(contacts.groups[group.name].cell_start) for group in shared]


def _keyed(
    contacts: ContactSet,
    shared: Sequence[ContactGroup],
    cells: tuple[int, int],
    options: GroupOptions,
    side: int,
) -> dict[str, KeyedRows]:
    """The rows of cells by group, numbered from 0; common numbers of shapes, the lower one first, and of particles.

    side: 0 is A, 1 is B.
    """
    groups = rows_of_cells({group.name: contacts.groups[group.name] for group in shared}, *cells)
    check_group_rows(contacts, groups, *cells)
    found = {}
    for group in shared:
        owners = objects_of(contacts, group.name, groups[group.name])
        objects = [options.particles.objects[side][owner] for owner in owners]
        found[group.name] = _rows(group, groups, objects, options, side, recorded_number(contacts.config, group.limit))
    return found


def _rows(
    group: ContactGroup,
    groups: dict[str, GroupRows],
    objects: Sequence[np.ndarray],
    options: GroupOptions,
    side: int,
    limit: float | None,
) -> KeyedRows:
    held, kept, pairs_only = groups[group.name], options.kept, options.pairs_only
    cell = np.repeat(np.arange(len(held.cell_counts)), held.cell_counts)
    shapes = [options.numbers[side][shape] for shape in shapes_of(groups, group.name)]
    columns = dict(held.columns)
    if group.objects:
        columns["indices"] = options.particles.numbers[side][columns["indices"]]
    if len(shapes) == 2:
        swapped = shapes[0] > shapes[1]
        shapes = [np.minimum(*shapes), np.maximum(*shapes)]
        for name in group.flipped if swapped.any() else ():
            values = columns[name]
            columns[name] = np.where(swapped.reshape(-1, *(1,) * (values.ndim - 1)), -values, values)
    first_object = len(kept) - len(options.particles.names) if kept is not None else 0
    items = [*shapes, *(first_object + each for each in objects)]
    rows = np.arange(len(cell)) if kept is None else np.flatnonzero(chosen_rows(kept, items))
    if pairs_only and len(rows):
        keys = np.stack([key[rows] for key in (cell, *shapes, *objects)])
        rows = rows[np.sort(np.unique(keys, axis=1, return_index=True)[1])]
    others = [] if pairs_only else [name for name in group.keys if name not in (*group.shapes, *group.references)]
    keys = [cell, *shapes, *(objects if pairs_only else ())]
    for name in others:
        if name not in UNMATCHED:
            keys += list(columns[name].reshape(len(cell), -1).T)
    lists = {name: (size[rows], values[entries_of(size, rows)]) for name, (size, values) in held.lists.items()}
    found = {name: values[rows] for name, values in columns.items()}
    return KeyedRows([key[rows] for key in keys], found, lists, limit, [each[rows] for each in objects])


def groups_alone(a: ContactSet, b: ContactSet) -> list[str]:
    """A reason for each group that only one set has."""
    return [
        f"only {name} has {group_words(group)}"
        for one, other, name in ((a, b, "A"), (b, a, "B"))
        for group in one.groups
        if group not in other.groups
    ]


def group_reasons(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The differences of groups, given by `group_results` with what is allowed, that are beyond it."""
    reasons = []
    for one in results:
        for kind in KINDS:
            if one[kind] > one["allowed"][kind]:
                words = f"{plural(one[kind], 'row')} of {group_words(one['name'])} {kind}"
                allowed = one["allowed"][kind]
                reasons.append(f"{words}, and {count(allowed)} allowed" if allowed else words)
    return reasons


def group_results(
    found: Sequence[GroupDifferences], cells: Callable[[int], dict[str, Any]], objects: Sequence[str]
) -> list[dict[str, Any]]:
    """The differences of groups for results. cells: describes a cell. objects: paths of the particle objects."""
    return [
        {
            "name": one.name,
            "a": one.rows_a,
            "b": one.rows_b,
            "matched": one.matched,
            **one.counts,
            "at_limit": dict(one.at_limit),
            "ignored_shallow": one.ignored_shallow,
            "first": cells(one.first_cell) if one.first_cell >= 0 else None,
            "objects": [
                {"paths": [objects[row] for row in rows], **counts} for rows, counts in sorted(one.by_object.items())
            ],
            "fields": [
                {
                    "name": tally.name,
                    "unit": tally.unit,
                    "differing": tally.differing,
                    "changed": tally.changed,
                    "largest": tally.largest,
                }
                for tally in one.fields
                if tally.differing
            ],
        }
        for one in found
    ]
