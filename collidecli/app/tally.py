"""Contacts added up, block by block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.model.contacts import ContactBlock

MOST_PLACES = 1 << 16
"""Pairs of shapes that are counted in a table of all; of more shapes those that touch are sorted."""


class Tally:
    """Contacts per pair of shapes and the deepest contact, added up block by block."""

    def __init__(self, shape_count: int) -> None:
        self._shape_count = shape_count
        self._table = np.zeros(shape_count**2 if shape_count**2 <= MOST_PLACES else 0, np.int64)
        self._keys = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self.deepest: tuple[float, int, int, int] | None = None

    def add(self, block: ContactBlock) -> None:
        """Adds a block. deepest becomes (distance, shape0, shape1, cell)."""
        if not block.contact_count:
            return
        columns = block.columns
        keys = columns["shape0"].astype(np.int64) * self._shape_count + columns["shape1"]
        if len(self._table):
            self._table += np.bincount(keys, minlength=len(self._table))
        else:
            # The contacts of a pair follow each other: sorting what is left of them takes a fraction of the time.
            begins = np.flatnonzero(np.diff(keys, prepend=-1))
            self._add_sorted(keys[begins], np.diff(begins, append=len(keys)))
        row = int(np.argmin(columns["distance"]))
        distance = float(columns["distance"][row])
        if self.deepest is None or distance < self.deepest[0]:
            cell = block.first_cell + int(np.searchsorted(np.cumsum(block.cell_counts), row, side="right"))
            self.deepest = (distance, int(columns["shape0"][row]), int(columns["shape1"][row]), cell)

    def _add_sorted(self, keys: np.ndarray, counts: np.ndarray) -> None:
        together, inverse = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        self._counts = np.bincount(inverse, np.concatenate([self._counts, counts])).astype(np.int64)
        self._keys = together

    def pairs(self) -> dict[tuple[int, int], int]:
        """Contacts of each pair, most first."""
        if len(self._table):
            self._keys = np.flatnonzero(self._table)
            self._counts = self._table[self._keys]
        order = np.lexsort((self._keys, -self._counts))
        return {
            (int(key) // self._shape_count, int(key) % self._shape_count): int(count)
            for key, count in zip(self._keys[order], self._counts[order], strict=True)
        }


class ColumnRanges:
    """The least and the greatest value of columns, of vectors a component at a time, block by block."""

    def __init__(self, names: Sequence[str]) -> None:
        self._ends: dict[str, list[np.ndarray]] = {name: [] for name in names}

    def add(self, block: ContactBlock) -> None:
        if not block.contact_count:
            return
        for name, ends in self._ends.items():
            values = block.columns[name].reshape(block.contact_count, -1)
            both = np.concatenate([values, *ends])
            self._ends[name] = [both.min(axis=0, keepdims=True), both.max(axis=0, keepdims=True)]

    def facts(self) -> dict[str, dict[str, list[float]]]:
        """Name to {"least": [...], "most": [...]}, a number a component; empty lists without a contact."""
        return {
            name: {"least": ends[0][0].tolist(), "most": ends[1][0].tolist()} if ends else {"least": [], "most": []}
            for name, ends in self._ends.items()
        }
