"""Differences of one group of contacts beside /rigid_contacts in two contact sets, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collidecli.analysis.contact_differences import CHANGED, EXTRA, KINDS, MISSING
from collidecli.analysis.contact_matching import match_keys
from collidecli.analysis.field_comparison import FieldTally, Tolerances, compare_field
from collidecli.scene.contact_groups import entries_of


@dataclass(frozen=True)
class KeyedRows:
    """Rows of some cells. keys: integers [n] that identify a row, the first is its cell, ascending.

    columns: by name. lists: by name, lengths [n] and values. limit: of reported distances [m]; None is unknown.
    objects: numbers [n] of the particle objects of a row.
    """

    keys: Sequence[np.ndarray]
    columns: Mapping[str, np.ndarray]
    lists: Mapping[str, tuple[np.ndarray, np.ndarray]]
    limit: float | None = None
    objects: Sequence[np.ndarray] = ()

    def __len__(self) -> int:
        return len(self.keys[0])


@dataclass
class GroupDifferences:
    """Running differences of one group.

    fields: of each compared column; of a list column, counted by value. rows_a, rows_b, matched: numbers of rows.
    counts: of rows by kind. at_limit: missing and extra rows whose distance is within its tolerance of the limit at
    which it is reported; they are no differences. shallow: those within this of the limit are ignored [m]; -1 none.
    first_cell: that differs, -1 without any. by_object: rows by kind, of each combination of particle objects.
    """

    name: str
    fields: Sequence[FieldTally]
    tolerances: Tolerances
    shallow: float = -1.0
    rows_a: int = 0
    rows_b: int = 0
    matched: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    at_limit: dict[str, int] = field(default_factory=lambda: {MISSING: 0, EXTRA: 0})
    ignored_shallow: int = 0
    first_cell: int = -1
    by_object: dict[tuple[int, ...], dict[str, int]] = field(default_factory=dict)

    def add(self, a: KeyedRows, b: KeyedRows, first_cell: int) -> None:
        """Adds a block of cells, in order. first_cell: the first of the block, counted over matched frames."""
        rows_a, rows_b, missing, extra = match_keys(a.keys, b.keys)
        self.rows_a += len(a)
        self.rows_b += len(b)
        self.matched += len(rows_a)
        changed = self._changed(a, b, rows_a, rows_b)
        missing, extra = self._deep(MISSING, a, missing), self._deep(EXTRA, b, extra)
        for kind, side, rows in ((MISSING, a, missing), (EXTRA, b, extra), (CHANGED, a, rows_a[changed])):
            self.counts[kind] += len(rows)
            self._count_objects(kind, side, rows)
        cells = np.concatenate([a.keys[0][missing], b.keys[0][extra], a.keys[0][rows_a[changed]]])
        if len(cells) and self.first_cell < 0:
            self.first_cell = first_cell + int(cells.min())

    def _count_objects(self, kind: str, side: KeyedRows, rows: np.ndarray) -> None:
        if not side.objects or not len(rows):
            return
        keys, counts = np.unique(np.stack([each[rows] for each in side.objects]), axis=1, return_counts=True)
        for key, count in zip(keys.T.tolist(), counts.tolist(), strict=True):
            self.by_object.setdefault(tuple(key), dict.fromkeys(KINDS, 0))[kind] += count

    def _changed(self, a: KeyedRows, b: KeyedRows, rows_a: np.ndarray, rows_b: np.ndarray) -> np.ndarray:
        """Indices into the matched rows whose columns or lists differ beyond the tolerances."""
        differs = np.zeros(len(rows_a), bool)
        for tally in self.fields:
            if tally.name in a.lists:
                differs |= self._lists_differ(tally, a.lists[tally.name], b.lists[tally.name], rows_a, rows_b)
            elif tally.name in a.columns:
                values = a.columns[tally.name][rows_a], b.columns[tally.name][rows_b]
                differs[compare_field(tally, self.tolerances, *values)[0]] = True
        return np.flatnonzero(differs)

    def _lists_differ(
        self,
        tally: FieldTally,
        a: tuple[np.ndarray, np.ndarray],
        b: tuple[np.ndarray, np.ndarray],
        rows_a: np.ndarray,
        rows_b: np.ndarray,
    ) -> np.ndarray:
        """bool: rows whose lists have other lengths or values."""
        lengths = a[0][rows_a]
        differs = lengths != b[0][rows_b]
        tally.differing += int(differs.sum())
        tally.changed += int(differs.sum())
        alike = np.flatnonzero(~differs)
        row = np.repeat(alike, lengths[alike])
        values = [held[entries_of(size, rows[alike])] for (size, held), rows in ((a, rows_a), (b, rows_b))]
        differs[row[compare_field(tally, self.tolerances, *values)[0]]] = True
        return differs

    def _deep(self, kind: str, side: KeyedRows, rows: np.ndarray) -> np.ndarray:
        """`rows` without those at the limit, and without shallow ones."""
        if side.limit is None or "distance" not in side.columns or not len(rows):
            return rows
        beyond = side.limit - side.columns["distance"][rows].astype(np.float64)
        atol, rtol = self.tolerances.of("distance")
        tolerance = atol + rtol * abs(side.limit)
        # Distances are float32: one within the tolerance of the limit can be a unit in the last place below.
        at_limit = beyond <= (tolerance + float(np.spacing(np.float32(side.limit))) if tolerance > 0.0 else -1.0)
        is_shallow = ~at_limit & (self.shallow >= 0.0) & (beyond <= self.shallow)
        self.at_limit[kind] += int(at_limit.sum())
        self.ignored_shallow += int(is_shallow.sum())
        return rows[~(at_limit | is_shallow)]
