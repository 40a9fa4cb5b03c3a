"""Matched cells of two contact sets in blocks, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.contact_matching import Contacts, contacts_of
from collidecli.analysis.differences import GAP, pairs_alone
from collidecli.analysis.model_alignment import FrameAlignment
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import RIGID_CONTACTS, columns_of_sides
from collidecli.storage.contact_sets.contact_table import ContactTable
from collidecli.storage.contact_sets.readable_rows import check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet, read_ahead
from collidecli.storage.contact_sets.row_rules import pair_values
from collidecli.storage.contact_sets.spans import BLOCK_ROWS, spans
from collidecli.system import processor_count

if TYPE_CHECKING:
    from collidecli.verbs.diff.models import ModelComparison

Tables = Sequence[tuple[ContactTable, ContactTable]]
"""Tables of A and of B."""
MATCHED_BY = ("shape0", "shape1", "feature0", "feature1")
THREADS = min(4, processor_count())
"""Number of threads that decompress columns."""


@dataclass(frozen=True)
class Side:
    """One of the two files. index: 0 of A, 1 of B. names: columns of its contacts to read.

    has_gap: the gap of the pairs of shapes is a column too. pairs_only: one row per pair and cell.
    """

    contacts: ContactSet
    index: int
    model: ModelComparison
    names: tuple[str, ...]
    has_gap: bool = False
    pairs_only: bool = False

    @property
    def numbers(self) -> np.ndarray:
        """Of the shapes, as aligned."""
        return (self.model.shapes.number_a, self.model.shapes.number_b)[self.index]

    @cached_property
    def _gap(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        return pair_values(self.contacts)[1]

    def read(self, first: int, last: int) -> Contacts:
        """Contacts of cells first to last - 1, numbered from 0. Raises InputError for an unknown
        shape."""
        return self.named(self.contacts.cells(first, last, self.names))

    def named(self, block: ContactBlock) -> Contacts:
        """Contacts of a block with the columns `names`; see `read`."""
        check_shape_rows(self.contacts, block)
        columns = dict(block.columns)
        if self.has_gap:
            columns[GAP] = self._gap(columns["shape0"], columns["shape1"])
        contacts = contacts_of(block.cell_counts, columns, self.numbers, self.model.kept)
        return pairs_alone(contacts) if self.pairs_only else contacts


@dataclass(frozen=True)
class MatchedBlock:
    """Consecutive matched cells of both files. first: the first cell, counted over matched frames.

    same: number of contacts if all columns are bit-identical and were not decompressed; then a and
    b are None.
    """

    first: int
    a: Contacts | None
    b: Contacts | None
    same: int = 0


def side_by_side(
    a: Side, b: Side, frames: FrameAlignment, max_rows: int = BLOCK_ROWS
) -> Iterator[MatchedBlock]:
    """Blocks of the matched frames and common worlds, in order; the next block is read ahead.

    A block has at most `max_rows` contacts of a file on average, or is one cell with more contacts.
    """

    def blocks(pool: ThreadPoolExecutor) -> Iterator[MatchedBlock]:
        tables = a.contacts.rigid, b.contacts.rigid
        for cells in matched_blocks(a.contacts, b.contacts, frames, [tables], 2 * max_rows):
            yield _matched_block(a, b, *cells, pool)

    with ThreadPoolExecutor(THREADS, "collide-unpack") as pool:
        yield from read_ahead(blocks(pool))


def matched_blocks(
    a: ContactSet, b: ContactSet, frames: FrameAlignment, tables: Tables, max_rows: int
) -> Iterator[tuple[int, int, int, int]]:
    """(cell over matched frames, cell of A, cell of B, count) of blocks of cells that are
    consecutive in both files.

    A block has at most `max_rows` rows of all tables of both files, or is one cell with more.
    """

    def start_of(table: ContactTable, first: int) -> Callable[[slice], np.ndarray]:
        return lambda cells: table.cell_start(slice(first + cells.start, first + cells.stop))

    worlds = min(a.world_count, b.world_count)
    follows = (np.diff(frames.a) == 1) & (np.diff(frames.b) == 1) & (a.world_count == b.world_count)
    starts = np.concatenate([[0], np.flatnonzero(~follows) + 1, [len(frames.a)]])
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if last > first and worlds and tables:
            cell_a = int(frames.a[first]) * a.world_count
            cell_b = int(frames.b[first]) * b.world_count
            rows = [
                start_of(table, cell)
                for pair in tables
                for table, cell in zip(pair, (cell_a, cell_b), strict=True)
            ]
            for done, stop in spans(rows, max_rows, 0, (last - first) * worlds):
                yield first * worlds + done, cell_a + done, cell_b + done, stop - done


def _matched_block(
    a: Side,
    b: Side,
    first: int,
    cell_a: int,
    cell_b: int,
    cell_count: int,
    pool: ThreadPoolExecutor,
) -> MatchedBlock:
    """Columns with equal compressed bytes are decompressed once, or not at all if nothing depends
    on them."""
    start_a = a.contacts.rigid.row_starts(cell_a, cell_a + cell_count)
    start_b = b.contacts.rigid.row_starts(cell_b, cell_b + cell_count)
    rows_a, rows_b = (slice(int(start[0]), int(start[-1])) for start in (start_a, start_b))
    same = set()
    if np.array_equal(start_a, start_b):
        chunks = [[side.contacts.rigid.chunks(name) for name in a.names] for side in (a, b)]
        alike = pool.map(lambda one, other: one.same_as(other, rows_a), *chunks)
        same = {name for name, one in zip(a.names, alike, strict=True) if one}
    alike = np.array_equal(a.numbers, b.numbers)
    if len(same) == len(a.names) and a.model.kept is None and not a.pairs_only and alike:
        return MatchedBlock(first, None, None, rows_a.stop - rows_a.start)
    names = [name for name in a.names if not alike or name not in _idle(same)]
    wanted = [(a, name, rows_a) for name in names] + [
        (b, name, rows_b) for name in b.names if name not in same
    ]
    values = list(pool.map(lambda one: one[0].contacts.column(one[1], one[2]), wanted))
    of_a = dict(zip(names, values, strict=False))
    of_b = {name: of_a[name] for name in names if name in same}
    of_b |= {
        name: values_b
        for (side, name, _), values_b in zip(wanted, values, strict=True)
        if side is b
    }
    one = a.named(ContactBlock(cell_a, np.diff(start_a), of_a))
    return MatchedBlock(first, one, b.named(ContactBlock(cell_b, np.diff(start_b), of_b)))


def _idle(same: set[str]) -> set[str]:
    """Equal columns that the comparison of the other columns does not need.

    If the columns of MATCHED_BY are equal, contacts are matched without positions and normals. Of
    two columns that are exchanged when the shapes of a pair are, both are read or neither.
    """
    if not same.issuperset(MATCHED_BY):
        return set()
    idle = same - {*MATCHED_BY, "distance"}
    for one, other in columns_of_sides(
        column.name for column in (*RIGID_CONTACTS.columns, *RIGID_CONTACTS.optional)
    ):
        if not {one, other} <= idle:
            idle -= {one, other}
    return idle
