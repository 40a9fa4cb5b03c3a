"""Reads matched cells of two contact sets in blocks, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.contact_differences import GAP, pairs_alone
from collidecli.analysis.contact_matching import EXCHANGED, Contacts, contacts_of
from collidecli.analysis.shape_alignment import FrameAlignment
from collidecli.scene.contacts import ContactBlock
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet, read_ahead
from collidecli.storage.contact_sets.rules import check_shape_rows, pair_values
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
    for first, cell_a, cell_b, count in matched_spans(a.contacts, b.contacts, frames):
        done = 0
        while done < count:
            window = min(CELL_WINDOW, count - done)
            fitting = window
            for contacts, cell in ((a.contacts, cell_a), (b.contacts, cell_b)):
                start = contacts.cell_start(slice(cell + done, cell + done + window + 1))
                fitting = min(fitting, int(np.searchsorted(start, start[0] + max_rows, side="right")) - 1)
            step = max(1, fitting)
            yield _matched_block(a, b, first + done, cell_a + done, cell_b + done, step, pool)
            done += step


def _matched_block(
    a: Side, b: Side, first: int, cell_a: int, cell_b: int, count: int, pool: ThreadPoolExecutor
) -> MatchedBlock:
    """Columns with equal compressed bytes are decompressed once, or not at all if nothing depends on them."""
    start_a = a.contacts.row_starts(cell_a, cell_a + count)
    start_b = b.contacts.row_starts(cell_b, cell_b + count)
    rows_a, rows_b = (slice(int(start[0]), int(start[-1])) for start in (start_a, start_b))
    same = set()
    if np.array_equal(start_a, start_b):
        alike = pool.map(lambda name: a.contacts.chunks(name).same_as(b.contacts.chunks(name), rows_a), a.names)
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
