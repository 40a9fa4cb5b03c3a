"""Contact counts of shape pairs, the deepest contact and ranges of columns, accumulated block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from collidecli.scene.contacts import ContactBlock

if TYPE_CHECKING:
    from collidecli.scene.model import Model
    from collidecli.storage.contact_sets.reader import ContactSet

MAX_TABLE_SIZE = 1 << 16
"""Largest number of shape pairs that are counted in a dense table; above it the pairs that occur are sorted."""
TOP_PAIRS = 10
"""Number of pairs that a result lists."""


@dataclass(frozen=True)
class DeepestContact:
    """The contact with the least distance. distance: negative is penetration [m]. shape0, shape1: names."""

    distance: float
    shape0: str
    shape1: str
    frame: int
    world: int


@dataclass(frozen=True)
class PairContacts:
    """Number of contacts of two shapes. shape0, shape1: names."""

    shape0: str
    shape1: str
    contacts: int


def shape_name(model: Model | ContactSet, row: int) -> str:
    """A shape's path; in a model of several templates with the number of its template, as the path may be ambiguous."""
    path, template = model.shapes.path[row], int(model.shapes.template[row])
    several = int(model.world_template.max(initial=0)) > 0
    return f"{path} (template {template})" if several and template >= 0 else path


class Tally:
    """Contact counts of shape pairs and the deepest contact, accumulated block by block.

    deepest: (distance, shape0, shape1, cell), or None without a contact.
    """

    def __init__(self, shape_count: int) -> None:
        self._shape_count = shape_count
        self._table = np.zeros(shape_count**2 if shape_count**2 <= MAX_TABLE_SIZE else 0, np.int64)
        self._added: list[tuple[np.ndarray, np.ndarray]] = []
        self._added_rows = 0
        self.deepest: tuple[float, int, int, int] | None = None

    def add(self, block: ContactBlock) -> None:
        """Adds the contacts of a block."""
        if not block.contact_count:
            return
        columns = block.columns
        shape0, shape1 = columns["shape0"], columns["shape1"]
        if len(self._table):
            self._table += np.bincount(self._keys(shape0, shape1), minlength=len(self._table))
        else:
            self._append(shape0, shape1)
        row = int(np.argmin(columns["distance"]))
        distance = float(columns["distance"][row])
        if self.deepest is None or distance < self.deepest[0]:
            cell = block.first_cell + int(np.searchsorted(np.cumsum(block.cell_counts), row, side="right"))
            self.deepest = (distance, int(columns["shape0"][row]), int(columns["shape1"][row]), cell)

    def _keys(self, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        return shape0.astype(np.int64) * self._shape_count + shape1

    def _append(self, shape0: np.ndarray, shape1: np.ndarray) -> None:
        """Appends the pairs of a block; sums the appended pairs when they are more than twice the distinct ones."""
        is_first = np.ones(len(shape0), bool)  # of the contacts of a pair, which follow each other
        np.logical_or(shape0[1:] != shape0[:-1], shape1[1:] != shape1[:-1], out=is_first[1:])
        begins = np.flatnonzero(is_first)
        self._added.append((self._keys(shape0[begins], shape1[begins]), np.diff(begins, append=len(shape0))))
        self._added_rows += len(begins)
        if self._added_rows > MAX_TABLE_SIZE + 2 * len(self._added[0][0]):
            self._added = [self._summed()]
            self._added_rows = len(self._added[0][0])

    def _summed(self) -> tuple[np.ndarray, np.ndarray]:
        """Sorted keys of the appended pairs and the contact count of each."""
        if not self._added:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys, counts = (np.concatenate(parts) for parts in zip(*self._added, strict=True))
        together, inverse = np.unique(keys, return_inverse=True)
        return together, np.bincount(inverse, counts, len(together)).astype(np.int64)

    def pairs(self) -> dict[tuple[int, int], int]:
        """Contact count of each pair (shape0, shape1), in descending order of count."""
        if len(self._table):
            keys = np.flatnonzero(self._table)
            counts = self._table[keys]
        else:
            keys, counts = self._summed()
        order = np.lexsort((keys, -counts))
        return {
            (int(key) // self._shape_count, int(key) % self._shape_count): int(count)
            for key, count in zip(keys[order], counts[order], strict=True)
        }

    def deepest_contact(self, model: Model | ContactSet) -> DeepestContact | None:
        """The deepest contact with the names of its shapes; None without a contact."""
        if self.deepest is None:
            return None
        distance, shape0, shape1, cell = self.deepest
        frame, world = divmod(cell, model.world_count)
        return DeepestContact(distance, shape_name(model, shape0), shape_name(model, shape1), frame, world)


def top_pairs(pairs: dict[tuple[int, int], int], model: Model | ContactSet) -> list[PairContacts]:
    """The first TOP_PAIRS of `Tally.pairs`, with the names of their shapes."""
    return [
        PairContacts(shape_name(model, a), shape_name(model, b), count)
        for (a, b), count in islice(pairs.items(), TOP_PAIRS)
    ]


class ColumnRanges:
    """Least and greatest value of each column, per component of a vector, accumulated block by block."""

    def __init__(self, names: Sequence[str]) -> None:
        self._ends: dict[str, list[np.ndarray]] = {name: [] for name in names}

    def add(self, block: ContactBlock) -> None:
        """Adds the columns of a block."""
        if not block.contact_count:
            return
        for name, ends in self._ends.items():
            values = block.columns[name].reshape(block.contact_count, -1)
            both = np.concatenate([values, *ends])
            self._ends[name] = [both.min(axis=0, keepdims=True), both.max(axis=0, keepdims=True)]

    def as_dict(self) -> dict[str, dict[str, list[float]]]:
        """By column name {"least": [...], "most": [...]}, a number per component; empty lists without a contact."""
        return {
            name: {"least": ends[0][0].tolist(), "most": ends[1][0].tolist()} if ends else {"least": [], "most": []}
            for name, ends in self._ends.items()
        }
