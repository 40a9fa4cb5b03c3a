"""Contacts added up, block by block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.scene.contacts import ContactBlock

MOST_PLACES = 1 << 16
"""Pairs of shapes that are counted in a table of all; of more shapes those that touch are sorted."""


class Tally:
    """Contacts per pair of shapes and the deepest contact, added up block by block."""

    def __init__(self, shape_count: int) -> None:
        self._shape_count = shape_count
        self._table = np.zeros(shape_count**2 if shape_count**2 <= MOST_PLACES else 0, np.int64)
        self._added: list[tuple[np.ndarray, np.ndarray]] = []
        self._added_rows = 0
        self.deepest: tuple[float, int, int, int] | None = None

    def add(self, block: ContactBlock) -> None:
        """Adds a block. deepest becomes (distance, shape0, shape1, cell)."""
        if not block.contact_count:
            return
        columns = block.columns
        shape0, shape1 = columns["shape0"], columns["shape1"]
        if len(self._table):
            self._table += np.bincount(self._keys(shape0, shape1), minlength=len(self._table))
        else:
            self._note(shape0, shape1)
        row = int(np.argmin(columns["distance"]))
        distance = float(columns["distance"][row])
        if self.deepest is None or distance < self.deepest[0]:
            cell = block.first_cell + int(np.searchsorted(np.cumsum(block.cell_counts), row, side="right"))
            self.deepest = (distance, int(columns["shape0"][row]), int(columns["shape1"][row]), cell)

    def _keys(self, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        return shape0.astype(np.int64) * self._shape_count + shape1

    def _note(self, shape0: np.ndarray, shape1: np.ndarray) -> None:
        """Notes the pairs of a block; they are added up when they have become many."""
        is_first = np.ones(len(shape0), bool)  # of the contacts of a pair, which follow each other
        np.logical_or(shape0[1:] != shape0[:-1], shape1[1:] != shape1[:-1], out=is_first[1:])
        begins = np.flatnonzero(is_first)
        self._added.append((self._keys(shape0[begins], shape1[begins]), np.diff(begins, append=len(shape0))))
        self._added_rows += len(begins)
        if self._added_rows > MOST_PLACES + 2 * len(self._added[0][0]):
            self._added = [self._sorted()]
            self._added_rows = len(self._added[0][0])

    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Every pair that is noted, once, with its contacts."""
        if not self._added:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys, counts = (np.concatenate(parts) for parts in zip(*self._added, strict=True))
        together, inverse = np.unique(keys, return_inverse=True)
        return together, np.bincount(inverse, counts, len(together)).astype(np.int64)

    def pairs(self) -> dict[tuple[int, int], int]:
        """Contacts of each pair, most first."""
        if len(self._table):
            keys = np.flatnonzero(self._table)
            counts = self._table[keys]
        else:
            keys, counts = self._sorted()
        order = np.lexsort((keys, -counts))
        return {
            (int(key) // self._shape_count, int(key) % self._shape_count): int(count)
            for key, count in zip(keys[order], counts[order], strict=True)
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
