"""Differences of two contact sets, block by block: counts, pairs, fields, and the first differences
in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.contact_matching import Contacts, Matches
from collidecli.analysis.deviations import compare_field
from collidecli.scene.contact_blocks import entries_of
from collidecli.scene.distinct_values import distinct

if TYPE_CHECKING:
    from collidecli.analysis.deviations import FieldTally, Tolerances

GAP = "pair gap"
"""Column: the gap of the pair [m], the limit below which its contacts are reported. It is not
compared."""
KINDS: tuple[str, ...] = ("missing", "extra", "changed")
MISSING, EXTRA, CHANGED = KINDS
RowsByKind = Mapping[str, tuple[Contacts, np.ndarray]]
"""The rows of each kind, with their side: extra ones are of B."""
DENSE_KEYS = 1 << 16
"""Up to so many pairs of shapes are counted in a dense table, without sorting."""


@dataclass
class PairTally:
    """Differences of one pair of shapes over all cells: contacts of each kind, and cells with the
    pair in one file."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    missing_cells: int = 0
    extra_cells: int = 0
    first_cell: int = -1


@dataclass
class Difference:
    """One differing contact. kind: of KINDS. cell: counted over matched frames. pair: numbers of
    the shapes.

    features: of A's contact, or of B's extra one. values: changed fields with their values in A and
    B.
    """

    kind: str
    cell: int
    pair: tuple[int, int]
    features: tuple[int, int]
    values: dict[str, tuple[Any, Any]]
    distance: float | None


class TableDifferences:
    """Running differences of one table of two contact sets.

    fields: FieldTally of each compared column; of a list column, counted by value. counts: of rows
    by kind. by_pair: whether differences are counted by pair of shapes. first: number of
    differences kept in full, the first by cell. at_limit: missing and extra rows whose distance is
    within its tolerance of the limit at which they are reported, the column GAP; they are no
    differences, as a deviation within the tolerance decides whether they are reported.
    at_limit_pairs: by pair. shallow: missing and extra rows with a distance at most this below
    their limit are ignored [m]; -1 none. first_cell: that differs, -1 without any. by_object: rows
    by kind, of each combination of particle objects.
    """

    def __init__(
        self,
        name: str,
        fields: Sequence[FieldTally],
        tolerances: Tolerances,
        worlds: int,
        first: int = 0,
        shallow: float = -1.0,
        by_pair: bool = True,
    ) -> None:
        self.name = name
        self.fields = list(fields)
        self.by_pair = by_pair
        self.pairs: dict[tuple[int, int], PairTally] = {}
        self.by_object: dict[tuple[int, ...], dict[str, int]] = {}
        self.differences: list[Difference] = []
        self.counts = dict.fromkeys(KINDS, 0)
        self.pair_cells: dict[str, int] = {MISSING: 0, EXTRA: 0}
        self.at_limit: dict[str, int] = {MISSING: 0, EXTRA: 0}
        self.at_limit_pairs: dict[tuple[int, int], int] = {}
        self.rows_a = self.rows_b = self.matched = self.ignored_shallow = self.crowded = 0
        self.first_cell = -1
        self.world_differs = np.zeros(worlds, bool)
        self.frames_differing = 0
        self._last_frame = -1
        self._worlds = worlds
        self._first = first
        self._shallow = shallow
        self._tolerances = tolerances

    def add(self, a: Contacts, b: Contacts, matches: Matches, first_cell: int) -> None:
        """Adds a block of cells, in order. first_cell: first cell of the block, counted over
        matched frames."""
        self.rows_a += len(a)
        self.rows_b += len(b)
        self.matched += len(matches.a)
        self.crowded += matches.crowded
        missing, missing_pairs = self._deep(MISSING, a, matches.missing, matches.missing_pairs)
        extra, extra_pairs = self._deep(EXTRA, b, matches.extra, matches.extra_pairs)
        changed, by_field = self._compare(a, b, matches, first_cell)
        if not (len(missing) or len(extra) or len(changed)):
            return
        rows = {MISSING: (a, missing), EXTRA: (b, extra), CHANGED: (a, matches.a[changed])}
        for kind, (_, chosen) in rows.items():
            self.counts[kind] += len(chosen)
            self._count_objects(kind, *rows[kind])
        cells = _distinct(
            np.concatenate([side.cell[chosen] for side, chosen in rows.values()]) + first_cell
        )
        self.first_cell = int(cells[0]) if self.first_cell < 0 else self.first_cell
        self.world_differs[cells % self._worlds] = True
        frames = _distinct(cells // self._worlds)
        self.frames_differing += len(frames) - int(frames[0] == self._last_frame)
        self._last_frame = int(frames[-1])
        if not self.by_pair:
            return
        for kind, (side, pair_rows) in rows.items():
            for pair, count, cell in _per_pair(side, pair_rows):
                tally = self.pairs.setdefault(pair, PairTally())
                tally.counts[kind] += count
                set_cell = cell + first_cell
                tally.first_cell = (
                    set_cell if tally.first_cell < 0 else min(tally.first_cell, set_cell)
                )
        for kind, side, chosen in ((MISSING, a, missing_pairs), (EXTRA, b, extra_pairs)):
            self.pair_cells[kind] += len(chosen)
            for pair, count, _ in _per_pair(side, chosen):
                tally = self.pairs[pair]
                tally.missing_cells += count if kind == MISSING else 0
                tally.extra_cells += count if kind == EXTRA else 0
        if len(self.differences) < self._first:
            self._keep(
                rows,
                matches.b[changed],
                [(f, np.isin(changed, c)) for f, c in by_field],
                first_cell,
            )

    def add_same(self, count: int) -> None:
        """Adds contacts of blocks that are equal in both files."""
        self.rows_a += count
        self.rows_b += count
        self.matched += count

    def _count_objects(self, kind: str, side: Contacts, rows: np.ndarray) -> None:
        if side.objects and len(rows):
            keys, counts = np.unique(
                np.stack([owner[rows] for owner in side.objects]), axis=1, return_counts=True
            )
            for key, count in zip(keys.T.tolist(), counts.tolist(), strict=True):
                self.by_object.setdefault(tuple(key), dict.fromkeys(KINDS, 0))[kind] += count

    def _deep(
        self, kind: str, side: Contacts, rows: np.ndarray, pairs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`rows` and `pairs` without contacts at the limit and shallow contacts."""
        if GAP not in side.columns or not len(rows):
            return rows, pairs
        gap = side.columns[GAP][rows]
        distance = side.columns["distance"][rows].astype(np.float64)
        atol, rtol = self._tolerances.of("distance")
        tolerance = atol + rtol * np.abs(gap)
        # Distances are float32: a contact within the tolerance of the limit can be a unit in the
        # last place below.
        rounding = np.where(tolerance > 0.0, np.spacing(gap.astype(np.float32)), -1.0)
        at_limit = gap - distance <= tolerance + rounding
        is_shallow = ~at_limit & (self._shallow >= 0.0) & (gap - distance <= self._shallow)
        self.at_limit[kind] += int(at_limit.sum())
        for pair, count, _ in _per_pair(side, rows[at_limit]) if self.by_pair else ():
            self.at_limit_pairs[pair] = self.at_limit_pairs.get(pair, 0) + count
        self.ignored_shallow += int(is_shallow.sum())
        deep = rows[~(at_limit | is_shallow)]
        if not len(pairs):
            return deep, pairs
        deep_keys = {(int(side.cell[r]), int(side.first[r]), int(side.second[r])) for r in deep}
        kept = [
            r
            for r in pairs
            if (int(side.cell[r]), int(side.first[r]), int(side.second[r])) in deep_keys
        ]
        return deep, np.array(kept, np.int64)

    def _compare(
        self, a: Contacts, b: Contacts, matches: Matches, first_cell: int
    ) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
        """Indices into `matches` of changed contacts, and those of each changed field."""
        by_field: list[tuple[str, np.ndarray]] = []
        for tally in self.fields:
            if tally.name in a.lists:
                differing = self._lists_differ(
                    tally, a.lists[tally.name], b.lists[tally.name], matches
                )
                by_field.append((tally.name, np.flatnonzero(differing)))
                continue
            if tally.name not in a.columns and tally.name not in b.columns:
                continue  # the caller skips columns that are equal in both files
            values_a = a.columns[tally.name]
            values_b = b.columns[tally.name]
            if not matches.identical:
                values_a = values_a[matches.a]
                values_b = values_b[matches.b]
            changed, most = compare_field(tally, self._tolerances, values_a, values_b)
            if len(changed):
                by_field.append((tally.name, changed))
            if most >= 0 and self.by_pair:
                row = int(matches.a[most])
                tally.largest_at = {
                    "cell": int(a.cell[row]) + first_cell,
                    "pair": (int(a.first[row]), int(a.second[row])),
                    "a": values_a[most].tolist(),
                    "b": values_b[most].tolist(),
                }
        differs = np.zeros(len(matches.a), bool)
        for _, rows in by_field:
            differs[rows] = True
        return np.flatnonzero(differs), by_field

    def _lists_differ(
        self,
        tally: FieldTally,
        a: tuple[np.ndarray, np.ndarray],
        b: tuple[np.ndarray, np.ndarray],
        matches: Matches,
    ) -> np.ndarray:
        """bool: matched rows whose lists have other lengths or values."""
        lengths = a[0][matches.a]
        differs = lengths != b[0][matches.b]
        tally.differing += int(differs.sum())
        tally.changed += int(differs.sum())
        alike = np.flatnonzero(~differs)
        row = np.repeat(alike, lengths[alike])
        values = [
            entries[entries_of(size, rows[alike])]
            for (size, entries), rows in ((a, matches.a), (b, matches.b))
        ]
        differs[row[compare_field(tally, self._tolerances, *values)[0]]] = True
        return differs

    def _keep(
        self,
        rows: RowsByKind,
        partners: np.ndarray,
        by_field: list[tuple[str, np.ndarray]],
        first_cell: int,
    ) -> None:
        """Keeps the first differences by cell and pair, up to `first`. partners: B's rows of the
        changed contacts."""
        (a, _) = rows[MISSING]
        (b, _) = rows[EXTRA]
        kinds = np.concatenate(
            [np.full(len(kind_rows), n) for n, (_, kind_rows) in enumerate(rows.values())]
        )
        indices = np.concatenate([np.arange(len(kind_rows)) for _, kind_rows in rows.values()])
        keys = [
            np.concatenate([getattr(s, key)[f] for s, f in rows.values()])
            for key in ("second", "first", "cell")
        ]
        for at in np.lexsort((indices, kinds, *keys))[
            : self._first - len(self.differences)
        ].tolist():
            kind = KINDS[int(kinds[at])]
            index = int(indices[at])
            side, kind_rows = rows[kind]
            row = int(kind_rows[index])
            values = {}
            if kind == CHANGED:
                other = int(partners[index])
                for name, mask in by_field:
                    if mask[index]:
                        values[name] = (
                            a.columns[name][row].tolist(),
                            b.columns[name][other].tolist(),
                        )
            features = tuple(
                int(side.columns[n][row]) if n in side.columns else -1
                for n in ("feature0", "feature1")
            )
            distance = float(side.columns["distance"][row]) if "distance" in side.columns else None
            pair = (int(side.first[row]), int(side.second[row]))
            cell = int(side.cell[row]) + first_cell
            self.differences.append(
                Difference(kind, cell, pair, (features[0], features[1]), values, distance)
            )


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values of a non-empty array, ascending. Values are usually ascending, and then
    need no sort."""
    steps = np.diff(values)
    return values[np.concatenate([[True], steps > 0])] if (steps >= 0).all() else distinct(values)


def _per_pair(side: Contacts, rows: np.ndarray) -> list[tuple[tuple[int, int], int, int]]:
    """(pair, number of rows, least cell) of each pair of the rows."""
    if not len(rows):
        return []
    shapes = int(side.second.max()) + 1
    key = side.first[rows] * shapes + side.second[rows]
    cell = side.cell[rows]
    if shapes * shapes <= DENSE_KEYS:
        pairs = np.arange(shapes * shapes)
        index = key
    else:
        pairs, index = np.unique(key, return_inverse=True)
    counts = np.bincount(index, minlength=len(pairs))
    least = np.full(len(pairs), np.iinfo(np.int64).max)
    np.minimum.at(least, index, cell)
    return [
        ((pair // shapes, pair % shapes), int(counts[n]), int(least[n]))
        for n, pair in zip(np.flatnonzero(counts).tolist(), pairs[counts > 0].tolist(), strict=True)
    ]


def pairs_alone(contacts: Contacts) -> Contacts:
    """One row for each pair of a cell, with the least distance and GAP as the only columns, if they
    are read."""
    keys = np.stack([contacts.cell, contacts.first, contacts.second])
    starts = np.flatnonzero(
        np.concatenate([[True], (np.diff(keys, axis=1) != 0).any(axis=0)])[: len(contacts)]
    )
    columns = {}
    if GAP in contacts.columns:
        distance = contacts.columns["distance"]
        least = np.minimum.reduceat(distance, starts) if len(starts) else distance[:0]
        columns = {GAP: contacts.columns[GAP][starts], "distance": least}
    return Contacts(contacts.cell[starts], contacts.first[starts], contacts.second[starts], columns)
