"""Reads two contact sets side by side, cell by cell, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.contact_differences import ROOM, pairs_alone
from collidecli.analysis.contact_matching import Contacts, contacts_of
from collidecli.analysis.frame_alignment import FrameAlignment
from collidecli.files.contacts.reader import BLOCK_ROWS, ContactSet
from collidecli.files.contacts.rules import pair_values
from collidecli.files.contacts.shape_rows import check_shape_rows

CELL_WINDOW = 65536


@dataclass(frozen=True)
class Side:
    """One of the two files. numbers: of its shapes, as aligned. kept: see `contacts_of`. names: columns to read.

    gap: of pairs of its shapes [m], None where nobody asks. pairs_only: one row for each pair of a cell.
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
        shallow: bool,
        pairs_only: bool,
    ) -> Side:
        if shallow and "distance" not in names:
            names = (*names, "distance")
        return cls(contacts, numbers, kept, names, pair_values(contacts)[1] if shallow else None, pairs_only)

    def read(self, first: int, last: int) -> Contacts:
        """The contacts of cells first to last - 1, numbered from 0. Raises InputError for a shape that is not there."""
        block = self.contacts.cells(first, last, self.names)
        check_shape_rows(self.contacts, block)
        columns = dict(block.columns)
        if self.gap is not None:
            columns[ROOM] = self.gap(columns["shape0"], columns["shape1"]) - columns["distance"]
        found = contacts_of(block.cell_counts, columns, self.numbers, self.kept)
        return pairs_alone(found) if self.pairs_only else found


def side_by_side(
    a: Side, b: Side, frames: FrameAlignment, max_rows: int = BLOCK_ROWS
) -> Iterator[tuple[int, Contacts, Contacts]]:
    """(first cell, contacts of A, of B) of the matched frames and the worlds that both have, in order.

    Cells are counted over matched frames. A block has at most `max_rows` contacts of each file, or one cell that has
    more.
    """
    for first, cell_a, cell_b, count in _spans(a.contacts, b.contacts, frames):
        done = 0
        while done < count:
            window = min(CELL_WINDOW, count - done)
            fitting = window
            for contacts, cell in ((a.contacts, cell_a), (b.contacts, cell_b)):
                start = contacts.cell_start(slice(cell + done, cell + done + window + 1))
                fitting = min(fitting, int(np.searchsorted(start, start[0] + max_rows, side="right")) - 1)
            step = max(1, fitting)
            yield (
                first + done,
                a.read(cell_a + done, cell_a + done + step),
                b.read(cell_b + done, cell_b + done + step),
            )
            done += step


def _spans(a: ContactSet, b: ContactSet, frames: FrameAlignment) -> Iterator[tuple[int, int, int, int]]:
    """(cell over matched frames, cell of A, cell of B, how many): cells that follow each other in both files."""
    worlds = min(a.world_count, b.world_count)
    follows = (np.diff(frames.a) == 1) & (np.diff(frames.b) == 1) & (a.world_count == b.world_count)
    starts = np.concatenate([[0], np.flatnonzero(~follows) + 1, [len(frames.a)]])
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if last > first and worlds:
            frame_a, frame_b = int(frames.a[first]), int(frames.b[first])
            yield first * worlds, frame_a * a.world_count, frame_b * b.world_count, (last - first) * worlds
