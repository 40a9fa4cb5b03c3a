"""Reads matched cells of two contact sets in blocks, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.alignment import (
    EXCHANGED,
    Contacts,
    FrameAlignment,
    ParticleAlignment,
    contacts_of,
    in_order_of_shapes,
    kept_rows,
    match_rows,
)
from collidecli.analysis.differences import GAP, KINDS, FieldTally, TableDifferences, Tolerances, pairs_alone
from collidecli.scene.options import recorded_number
from collidecli.scene.tables import GROUPS, ContactBlock, ContactGroup, GroupRows, group_words, shapes_of
from collidecli.scene.text_format import count, plural
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet, read_ahead, rows_of_cells, spans
from collidecli.storage.contact_sets.rules import check_group_rows, check_shape_rows, objects_of, pair_values
from collidecli.system_resources import processor_count

CELL_WINDOW = 65536
MATCHED_BY = ("shape0", "shape1", "feature0", "feature1")
THREADS = min(4, processor_count())
"""Number of threads that decompress columns."""


@dataclass(frozen=True)
class Side:
    """One of the two files. numbers: of its shapes, as aligned. kept: see `contacts_of`. names: columns to read.

    gap: function that returns the gap of pairs of shapes [m], or None. pairs_only: one row per pair and cell.
    """

    contacts: ContactSet
    numbers: np.ndarray
    kept: np.ndarray | None
    names: tuple[str, ...]
    gap: Callable[[np.ndarray, np.ndarray], np.ndarray] | None
    pairs_only: bool

    @classmethod
    def of(
        cls,
        contacts: ContactSet,
        numbers: np.ndarray,
        kept: np.ndarray | None,
        names: tuple[str, ...],
        limits: bool,
        pairs_only: bool,
    ) -> Side:
        """limits: whether the gap of the pairs is needed."""
        if limits and "distance" not in names:
            names = (*names, "distance")
        return cls(contacts, numbers, kept, names, pair_values(contacts)[1] if limits else None, pairs_only)

    def read(self, first: int, last: int) -> Contacts:
        """Contacts of cells first to last - 1, numbered from 0. Raises InputError for an unknown shape."""
        return self.named(self.contacts.cells(first, last, self.names))

    def named(self, block: ContactBlock) -> Contacts:
        """Contacts of a block with the columns `names`; see `read`."""
        check_shape_rows(self.contacts, block)
        columns = dict(block.columns)
        if self.gap is not None:
            columns[GAP] = self.gap(columns["shape0"], columns["shape1"])
        found = contacts_of(block.cell_counts, columns, self.numbers, self.kept)
        return pairs_alone(found) if self.pairs_only else found


@dataclass(frozen=True)
class MatchedBlock:
    """Consecutive matched cells of both files. first: the first cell, counted over matched frames.

    same: number of contacts if all columns are bit-identical and were not decompressed; then a and b are None.
    """

    first: int
    a: Contacts | None
    b: Contacts | None
    same: int = 0


def side_by_side(a: Side, b: Side, frames: FrameAlignment, max_rows: int = BLOCK_ROWS) -> Iterator[MatchedBlock]:
    """Blocks of the matched frames and common worlds, in order; the next block is read ahead.

    A block has at most `max_rows` contacts of each file, or is one cell with more contacts.
    """
    with ThreadPoolExecutor(THREADS, "collide-unpack") as pool:
        yield from read_ahead(_side_by_side(a, b, frames, max_rows, pool))


def _side_by_side(
    a: Side, b: Side, frames: FrameAlignment, max_rows: int, pool: ThreadPoolExecutor
) -> Iterator[MatchedBlock]:
    for first, cell_a, cell_b, cell_count in matched_spans(a.contacts, b.contacts, frames):
        done = 0
        while done < cell_count:
            window = min(CELL_WINDOW, cell_count - done)
            fitting = window
            for contacts, cell in ((a.contacts, cell_a), (b.contacts, cell_b)):
                start = contacts.cell_start(slice(cell + done, cell + done + window + 1))
                fitting = min(fitting, int(np.searchsorted(start, start[0] + max_rows, side="right")) - 1)
            step = max(1, fitting)
            yield _matched_block(a, b, first + done, cell_a + done, cell_b + done, step, pool)
            done += step


def _matched_block(
    a: Side, b: Side, first: int, cell_a: int, cell_b: int, cell_count: int, pool: ThreadPoolExecutor
) -> MatchedBlock:
    """Columns with equal compressed bytes are decompressed once, or not at all if nothing depends on them."""
    start_a = a.contacts.rigid.row_starts(cell_a, cell_a + cell_count)
    start_b = b.contacts.rigid.row_starts(cell_b, cell_b + cell_count)
    rows_a, rows_b = (slice(int(start[0]), int(start[-1])) for start in (start_a, start_b))
    same = set()
    if np.array_equal(start_a, start_b):
        chunks = [[side.contacts.rigid.chunks(name) for name in a.names] for side in (a, b)]
        alike = pool.map(lambda one, other: one.same_as(other, rows_a), *chunks)
        same = {name for name, one in zip(a.names, alike, strict=True) if one}
    alike = np.array_equal(a.numbers, b.numbers)
    if len(same) == len(a.names) and a.kept is None and not a.pairs_only and alike:
        return MatchedBlock(first, None, None, rows_a.stop - rows_a.start)
    names = [name for name in a.names if not alike or name not in _idle(same)]
    wanted = [(a, name, rows_a) for name in names] + [(b, name, rows_b) for name in b.names if name not in same]
    values = list(pool.map(lambda one: one[0].contacts.column(one[1], one[2]), wanted))
    of_a = dict(zip(names, values, strict=False))
    of_b = {name: of_a[name] for name in names if name in same}
    of_b |= {name: held for (side, name, _), held in zip(wanted, values, strict=True) if side is b}
    one = a.named(ContactBlock(cell_a, np.diff(start_a), of_a))
    return MatchedBlock(first, one, b.named(ContactBlock(cell_b, np.diff(start_b), of_b)))


def _idle(same: set[str]) -> set[str]:
    """Equal columns that the comparison of the other columns does not need.

    If the columns of MATCHED_BY are equal, contacts are matched without positions and normals. Of two columns that are
    exchanged when the shapes of a pair are, both are read or neither.
    """
    if not same.issuperset(MATCHED_BY):
        return set()
    idle = same - {*MATCHED_BY, "distance"}
    for one, other in EXCHANGED:
        if not {one, other} <= idle:
            idle -= {one, other}
    return idle


def matched_spans(a: ContactSet, b: ContactSet, frames: FrameAlignment) -> Iterator[tuple[int, int, int, int]]:
    """(cell over matched frames, cell of A, cell of B, count) of runs of cells that are consecutive in both files."""
    worlds = min(a.world_count, b.world_count)
    follows = (np.diff(frames.a) == 1) & (np.diff(frames.b) == 1) & (a.world_count == b.world_count)
    starts = np.concatenate([[0], np.flatnonzero(~follows) + 1, [len(frames.a)]])
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if last > first and worlds:
            frame_a, frame_b = int(frames.a[first]), int(frames.b[first])
            yield first * worlds, frame_a * a.world_count, frame_b * b.world_count, (last - first) * worlds


# Comparison of the groups beside /rigid_contacts of two contact sets.

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
) -> list[TableDifferences]:
    """Differences of each group that both sets have. Raises InputError for unreadable rows."""
    shared = [group for group in GROUPS if group.name in a.groups and group.name in b.groups]
    worlds = min(a.world_count, b.world_count)
    found = {}
    for group in shared:
        fields = [field for field in group_fields(group) if not options.fields or field[0] in options.fields]
        tallies = [FieldTally(name, unit, dtype.kind != "f") for name, unit, dtype in fields if not options.pairs_only]
        found[group.name] = TableDifferences(
            group.name, tallies, tolerances, worlds, shallow=options.ignore_shallow, by_pair=False
        )
    for first, cell_a, cell_b, cells in matched_spans(a, b, frames) if shared else ():
        for done, stop in spans(_starts(a, shared, cell_a) + _starts(b, shared, cell_b), options.block_rows, 0, cells):
            sides = [
                _keyed(one, shared, (cell + done, cell + stop), options, side)
                for side, (one, cell) in enumerate(((a, cell_a), (b, cell_b)))
            ]
            for name, differences in found.items():
                one, other = (of_side[name] for of_side in sides)
                differences.add(one, other, match_rows(one, other, 0), first + done)
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
) -> dict[str, Contacts]:
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
) -> Contacts:
    held, kept = groups[group.name], options.kept
    cell = np.repeat(np.arange(len(held.cell_counts)), held.cell_counts)
    shapes = [options.numbers[side][shape] for shape in shapes_of(groups, group.name)]
    columns = dict(held.columns)
    if group.objects:
        columns["indices"] = options.particles.numbers[side][columns["indices"]]
    if len(shapes) == 2:
        shapes, columns = in_order_of_shapes(shapes, columns, group.flipped)
    if limit is not None and "distance" in columns:
        columns[GAP] = np.full(len(cell), limit)
    keys = [*shapes, *(objects if options.pairs_only else ())]
    for name in () if options.pairs_only else group.keys:
        if name not in (*group.shapes, *group.references, *UNMATCHED):
            keys += list(columns[name].reshape(len(cell), -1).T)
    none = np.zeros(len(cell), np.int64)
    found = Contacts(cell, none, none, columns, held.lists, keys, objects)
    if kept is not None:
        first_object = len(kept) - len(options.particles.names)
        found = kept_rows(found, kept, [*shapes, *(first_object + owner for owner in objects)])
    if options.pairs_only and len(found):
        rows = np.unique(np.stack([found.cell, *(found.keys or ())]), axis=1, return_index=True)[1]
        found = found.at(np.sort(rows))
    return found


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
    found: Sequence[TableDifferences], cells: Callable[[int], dict[str, Any]], objects: Sequence[str]
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
