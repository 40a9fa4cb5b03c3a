"""Deviations of the fields of matched contacts, and tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.alignment import Contacts, Matches, match_keys
from collidecli.scene.tables import entries_of

LEAST_DECADE, MOST_DECADE = -10, 0
"""The histogram's first bin is below 1e-9, its last is 1 and above; each other bin is a decade."""
BINS = MOST_DECADE - LEAST_DECADE + 1
POINTS = (
    "point0", "point1", "offset0", "offset1", "center", "centroid", "vertices", "point_body", "point_world"
)  # fmt: skip
"""Columns of points; their deviation is a distance."""


@dataclass(frozen=True)
class Tolerances:
    """Largest allowed deviations: atol + rtol * the larger of the two sizes. The name "" is the default of fields.

    A normal's atol is an angle [rad], and it has no rtol. Integers have neither.
    """

    atol: Mapping[str, float] = field(default_factory=dict)
    rtol: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> tuple[float, float]:
        """(atol, rtol) of a field."""
        return tuple(float(table.get(name, table.get("", 0.0))) for table in (self.atol, self.rtol))  # pyright: ignore[reportReturnType]


@dataclass
class FieldTally:
    """Running comparison of one field.

    exact: an integer field. differing: contacts with a deviation. changed: contacts with a deviation beyond the
    tolerance. largest: the largest deviation. largest_at: its location, set by the caller. histogram: int64[BINS] of
    the deviations.
    """

    name: str
    unit: str
    exact: bool
    differing: int = 0
    changed: int = 0
    largest: float = 0.0
    largest_at: dict[str, Any] | None = None
    histogram: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))


def deviations(name: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64[n], deviations and sizes of values: for a point the distance [m], for a normal the angle [rad].

    For other vectors the largest deviation of a component. NaN deviates from NaN by 0, from a number by inf.
    """
    a, b = a.astype(np.float64).reshape(len(a), -1), b.astype(np.float64).reshape(len(b), -1)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(a == b, 0.0, np.abs(a - b))
        apart[np.isnan(a) & np.isnan(b)] = 0.0
        apart[np.isnan(apart)] = np.inf
        if name == "normal":
            # The chord: exact for tiny angles, where the cosine is 1.
            chord = np.linalg.norm(apart, axis=1) / 2.0
            angle = 2.0 * np.arcsin(np.minimum(chord, 1.0))
            return np.where(np.isfinite(chord), angle, np.inf), np.zeros(len(a))
        if name in POINTS:
            sizes = np.maximum(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
            return np.linalg.norm(apart, axis=1), np.nan_to_num(sizes, posinf=0.0)
        sizes = np.maximum(np.abs(a), np.abs(b)).max(axis=1)
    return apart.max(axis=1), np.nan_to_num(sizes, posinf=0.0)


def compare_field(tally: FieldTally, tolerances: Tolerances, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, int]:
    """Adds to `tally`; returns the changed rows, and the row of a new largest deviation or -1.

    a, b: [n] or [n, width], values of matched contacts.
    """
    none = np.zeros(0, np.int64)
    if a is b or np.array_equal(a, b):
        return none, -1
    unequal = (a != b).reshape(len(a), -1).any(axis=1)
    rows = np.flatnonzero(unequal)
    apart, size = deviations(tally.name, a[rows], b[rows])
    rows, apart, size = rows[apart > 0.0], apart[apart > 0.0], size[apart > 0.0]
    if not len(rows):
        return none, -1
    tally.differing += len(rows)
    atol, rtol = (0.0, 0.0) if tally.exact else tolerances.of(tally.name)
    changed = rows[~(apart <= atol + rtol * size)]
    tally.changed += len(changed)
    decades = np.floor(np.log10(np.minimum(apart, 10.0 ** (MOST_DECADE + 1)))).astype(np.int64)
    bins = np.clip(decades - LEAST_DECADE, 0, BINS - 1)
    tally.histogram += np.bincount(bins, minlength=BINS)
    most = int(np.argmax(apart))
    if apart[most] > tally.largest:
        tally.largest = float(apart[most])
        return changed, int(rows[most])
    return changed, -1


# Differences of two contact sets, block by block: counts, pairs, fields, and the first differences in full.

GAP = "pair gap"
"""Column: the gap of the pair [m], the limit below which its contacts are reported. It is not compared."""
KINDS: tuple[str, ...] = ("missing", "extra", "changed")
MISSING, EXTRA, CHANGED = KINDS
DENSE_KEYS = 1 << 16
"""Up to so many pairs of shapes are counted in a dense table, without sorting."""


@dataclass
class PairTally:
    """Differences of one pair of shapes over all cells: contacts of each kind, and cells with the pair in one file."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    missing_cells: int = 0
    extra_cells: int = 0
    first_cell: int = -1


@dataclass
class Difference:
    """One differing contact. kind: of KINDS. cell: counted over matched frames. pair: numbers of the shapes.

    features: of A's contact, or of B's extra one. values: changed fields with their values in A and B.
    """

    kind: str
    cell: int
    pair: tuple[int, int]
    features: tuple[int, int]
    values: dict[str, tuple[Any, Any]]
    distance: float | None


class ContactDifferences:
    """Running differences of two contact sets.

    fields: FieldTally of each compared column. first: number of differences kept in full, the first by cell.
    at_limit: missing and extra contacts whose distance is within its tolerance of the pair's gap; they are no
    differences, as a deviation within the tolerance decides whether they are reported. at_limit_pairs: by pair.
    shallow: missing and extra contacts with a distance at most this below their pair's gap are ignored [m]; -1 none.
    """

    def __init__(
        self, fields: Sequence[FieldTally], tolerances: Tolerances, worlds: int, first: int, shallow: float = -1.0
    ) -> None:
        self.fields = list(fields)
        self.pairs: dict[tuple[int, int], PairTally] = {}
        self.differences: list[Difference] = []
        self.counts = dict.fromkeys(KINDS, 0)
        self.pair_cells: dict[str, int] = {MISSING: 0, EXTRA: 0}
        self.at_limit: dict[str, int] = {MISSING: 0, EXTRA: 0}
        self.at_limit_pairs: dict[tuple[int, int], int] = {}
        self.contacts_a = self.contacts_b = self.matched = self.shallow_count = self.crowded = 0
        self.first_cell = -1
        self.world_differs = np.zeros(worlds, bool)
        self.frames_differing = 0
        self._last_frame = -1
        self._worlds, self._first, self._shallow, self._tolerances = worlds, first, shallow, tolerances

    def add(self, a: Contacts, b: Contacts, matches: Matches, first_cell: int) -> None:
        """Adds a block of cells, in order. first_cell: first cell of the block, counted over matched frames."""
        self.contacts_a += len(a)
        self.contacts_b += len(b)
        self.matched += len(matches.a)
        self.crowded += matches.crowded
        missing, missing_pairs = self._deep(MISSING, a, matches.missing, matches.missing_pairs)
        extra, extra_pairs = self._deep(EXTRA, b, matches.extra, matches.extra_pairs)
        changed, by_field = self._compare(a, b, matches, first_cell)
        if not (len(missing) or len(extra) or len(changed)):
            return
        rows = {MISSING: (a, missing), EXTRA: (b, extra), CHANGED: (a, matches.a[changed])}
        for kind, (_, found) in rows.items():
            self.counts[kind] += len(found)
        self._count_cells(np.concatenate([side.cell[found] for side, found in rows.values()]) + first_cell)
        self._count_pairs(rows, first_cell)
        for kind, side, found in ((MISSING, a, missing_pairs), (EXTRA, b, extra_pairs)):
            self.pair_cells[kind] += len(found)
            for pair, count, _ in _per_pair(side, found):
                tally = self.pairs[pair]
                tally.missing_cells += count if kind == MISSING else 0
                tally.extra_cells += count if kind == EXTRA else 0
        if len(self.differences) < self._first:
            self._keep(a, b, rows, matches.b[changed], [(f, np.isin(changed, c)) for f, c in by_field], first_cell)

    def add_same(self, count: int) -> None:
        """Adds contacts of blocks that are equal in both files."""
        self.contacts_a += count
        self.contacts_b += count
        self.matched += count

    def _deep(self, kind: str, side: Contacts, rows: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`rows` and `pairs` without contacts at the limit and shallow contacts."""
        if GAP not in side.columns or not len(rows):
            return rows, pairs
        gap, distance = side.columns[GAP][rows], side.columns["distance"][rows].astype(np.float64)
        atol, rtol = self._tolerances.of("distance")
        tolerance = atol + rtol * np.abs(gap)
        # Distances are float32: a contact within the tolerance of the limit can be a unit in the last place below.
        rounding = np.where(tolerance > 0.0, np.spacing(gap.astype(np.float32)), -1.0)
        at_limit = gap - distance <= tolerance + rounding
        is_shallow = ~at_limit & (self._shallow >= 0.0) & (gap - distance <= self._shallow)
        self.at_limit[kind] += int(at_limit.sum())
        for pair, count, _ in _per_pair(side, rows[at_limit]):
            self.at_limit_pairs[pair] = self.at_limit_pairs.get(pair, 0) + count
        self.shallow_count += int(is_shallow.sum())
        deep = rows[~(at_limit | is_shallow)]
        held = {(int(side.cell[r]), int(side.first[r]), int(side.second[r])) for r in deep}
        kept = [r for r in pairs if (int(side.cell[r]), int(side.first[r]), int(side.second[r])) in held]
        return deep, np.array(kept, np.int64)

    def _compare(
        self, a: Contacts, b: Contacts, matches: Matches, first_cell: int
    ) -> tuple[np.ndarray, list[tuple[str, np.ndarray]]]:
        """Indices into `matches` of changed contacts, and those of each changed field."""
        by_field: list[tuple[str, np.ndarray]] = []
        for tally in self.fields:
            if tally.name not in a.columns and tally.name not in b.columns:
                continue  # the caller skips columns that are equal in both files
            values_a, values_b = a.columns[tally.name], b.columns[tally.name]
            if not matches.identical:
                values_a, values_b = values_a[matches.a], values_b[matches.b]
            changed, most = compare_field(tally, self._tolerances, values_a, values_b)
            if len(changed):
                by_field.append((tally.name, changed))
            if most >= 0:
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

    def _count_cells(self, cells: np.ndarray) -> None:
        cells = _distinct(cells)
        self.first_cell = int(cells[0]) if self.first_cell < 0 else self.first_cell
        self.world_differs[cells % self._worlds] = True
        frames = _distinct(cells // self._worlds)
        self.frames_differing += len(frames) - int(frames[0] == self._last_frame)
        self._last_frame = int(frames[-1])

    def _count_pairs(self, rows: Mapping[str, tuple[Contacts, np.ndarray]], first_cell: int) -> None:
        for kind, (side, found) in rows.items():
            for pair, count, cell in _per_pair(side, found):
                tally = self.pairs.setdefault(pair, PairTally())
                tally.counts[kind] += count
                here = cell + first_cell
                tally.first_cell = here if tally.first_cell < 0 else min(tally.first_cell, here)

    def _keep(
        self,
        a: Contacts,
        b: Contacts,
        rows: Mapping[str, tuple[Contacts, np.ndarray]],
        partners: np.ndarray,
        by_field: list[tuple[str, np.ndarray]],
        first_cell: int,
    ) -> None:
        """Keeps the first differences by cell and pair, up to `first`. partners: B's rows of the changed contacts."""
        kinds = np.concatenate([np.full(len(found), n) for n, (_, found) in enumerate(rows.values())])
        indices = np.concatenate([np.arange(len(found)) for _, found in rows.values()])
        keys = [np.concatenate([getattr(s, key)[f] for s, f in rows.values()]) for key in ("second", "first", "cell")]
        for at in np.lexsort((indices, kinds, *keys))[: self._first - len(self.differences)].tolist():
            kind, index = KINDS[int(kinds[at])], int(indices[at])
            side, found = rows[kind]
            row = int(found[index])
            values = {}
            if kind == CHANGED:
                other = int(partners[index])
                for name, mask in by_field:
                    if mask[index]:
                        values[name] = (a.columns[name][row].tolist(), b.columns[name][other].tolist())
            features = tuple(int(side.columns[n][row]) if n in side.columns else -1 for n in ("feature0", "feature1"))
            distance = float(side.columns["distance"][row]) if "distance" in side.columns else None
            pair = (int(side.first[row]), int(side.second[row]))
            cell = int(side.cell[row]) + first_cell
            self.differences.append(Difference(kind, cell, pair, (features[0], features[1]), values, distance))


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values of a non-empty array, ascending. Values are usually ascending, and then need no sort."""
    steps = np.diff(values)
    return values[np.concatenate([[True], steps > 0])] if (steps >= 0).all() else np.unique(values)


def _per_pair(side: Contacts, rows: np.ndarray) -> list[tuple[tuple[int, int], int, int]]:
    """(pair, number of rows, least cell) of each pair of the rows."""
    if not len(rows):
        return []
    shapes = int(side.second.max()) + 1
    key, cell = side.first[rows] * shapes + side.second[rows], side.cell[rows]
    if shapes * shapes <= DENSE_KEYS:
        found, index = np.arange(shapes * shapes), key
    else:
        found, index = np.unique(key, return_inverse=True)
    counts = np.bincount(index, minlength=len(found))
    least = np.full(len(found), np.iinfo(np.int64).max)
    np.minimum.at(least, index, cell)
    return [
        ((pair // shapes, pair % shapes), int(counts[n]), int(least[n]))
        for n, pair in zip(np.flatnonzero(counts).tolist(), found[counts > 0].tolist(), strict=True)
    ]


def pairs_alone(contacts: Contacts) -> Contacts:
    """One row for each pair of a cell, with the least distance and GAP as the only columns, if they are read."""
    keys = np.stack([contacts.cell, contacts.first, contacts.second])
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(keys, axis=1) != 0).any(axis=0)])[: len(contacts)])
    columns = {}
    if GAP in contacts.columns:
        distance = contacts.columns["distance"]
        least = np.minimum.reduceat(distance, starts) if len(starts) else distance[:0]
        columns = {GAP: contacts.columns[GAP][starts], "distance": least}
    return Contacts(contacts.cell[starts], contacts.first[starts], contacts.second[starts], columns)


# Differences of one group of contacts beside /rigid_contacts in two contact sets, block by block.


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
