"""Matching of the contacts of two blocks of cells: by cell, shapes and features, then by least
distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from collidecli.scene.contact_blocks import entries_of
from collidecli.scene.contact_columns import RIGID_CONTACTS, columns_of_sides
from collidecli.scene.distinct_values import common, distinct
from collidecli.scene.patterns import chosen_rows

SMALL = 4
"""Pairs with at most so many contacts are matched in vectorized groups, by enumeration of all 24
permutations."""
MOST_COSTS = 4_000_000
"""Most entries of a cost matrix; a pair with more in one cell is matched in order along its longest
extent."""


@dataclass(frozen=True)
class Contacts:
    """Contacts of some cells, with shape numbers common to both files.

    cell: int64[n], ascending. first, second: int64[n], numbers of the two shapes, first < second;
    of a table without pairs of shapes both are 0. columns: by name; index 0 in a name is the first
    shape. lists: by name, lengths [n] and values. keys: integers [n] that identify a row in its
    cell; None is the pair, its features and the position. objects: numbers [n] of the particle
    objects of a row.
    """

    cell: np.ndarray
    first: np.ndarray
    second: np.ndarray
    columns: Mapping[str, np.ndarray]
    lists: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    keys: Sequence[np.ndarray] | None = None
    objects: Sequence[np.ndarray] = ()

    def __len__(self) -> int:
        return len(self.cell)

    def at(self, rows: np.ndarray) -> Contacts:
        """The contacts of `rows`."""
        return Contacts(
            self.cell[rows],
            self.first[rows],
            self.second[rows],
            {name: values[rows] for name, values in self.columns.items()},
            {
                name: (size[rows], values[entries_of(size, rows)])
                for name, (size, values) in self.lists.items()
            },
            None if self.keys is None else [key[rows] for key in self.keys],
            [owner[rows] for owner in self.objects],
        )


@dataclass(frozen=True)
class Matches:
    """Matched rows of two blocks. a, b: int64[n], rows of one contact. missing, extra: unmatched
    rows of A, of B.

    identical: both blocks have the same contacts in the same order; a and b are then 0, 1, 2 ...
    missing_pairs, extra_pairs: rows of A, of B: first row of each pair in a cell in which the other
    has no such pair. crowded: number of pairs in cells with too many contacts for a least-cost
    assignment.
    """

    a: np.ndarray
    b: np.ndarray
    missing: np.ndarray
    extra: np.ndarray
    missing_pairs: np.ndarray
    extra_pairs: np.ndarray
    identical: bool = False
    crowded: int = 0


_NONE = np.zeros(0, np.int64)


def contacts_of(
    cell_counts: np.ndarray,
    columns: Mapping[str, np.ndarray],
    numbers: np.ndarray,
    kept: np.ndarray | None = None,
) -> Contacts:
    """Rows of a file as `Contacts`. For a pair of descending numbers, 0 and 1 are exchanged and the
    normal is flipped.

    cell_counts: int64[cells]. columns: with shape0 and shape1, rows of the file's shapes. numbers:
    int64[shapes]. kept: bool[numbers, 2]: a pair has at least one shape of the first column, and
    both of the second; None keeps all.
    """
    cell = np.repeat(np.arange(len(cell_counts)), cell_counts)
    chosen = {name: values for name, values in columns.items() if name not in ("shape0", "shape1")}
    shapes = numbers[columns["shape0"]], numbers[columns["shape1"]]
    shapes, chosen = in_order_of_shapes(shapes, chosen, RIGID_CONTACTS.flipped)
    contacts = Contacts(cell, shapes[0], shapes[1], chosen)
    return contacts if kept is None else kept_rows(contacts, kept, shapes)


def in_order_of_shapes(
    shapes: Sequence[np.ndarray], columns: Mapping[str, np.ndarray], flipped: Sequence[str]
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Two numbers of shapes in ascending order, and the columns with 0 and 1 exchanged and the
    vectors `flipped` of opposite sign where the numbers were descending.
    """
    ordered = dict(columns)
    swapped = shapes[0] > shapes[1]
    if not swapped.any():
        return list(shapes), ordered

    def chosen(name: str, other: np.ndarray) -> np.ndarray:
        return np.where(swapped.reshape(-1, *(1 for _ in other.shape[1:])), other, ordered[name])

    for side, other in columns_of_sides(ordered):
        of_side = chosen(side, ordered[other])
        ordered[other] = chosen(other, ordered[side])
        ordered[side] = of_side
    ordered |= {name: chosen(name, -ordered[name]) for name in flipped if name in ordered}
    return [np.minimum(*shapes), np.maximum(*shapes)], ordered


def kept_rows(contacts: Contacts, kept: np.ndarray, items: Sequence[np.ndarray]) -> Contacts:
    """The rows that `NamedItems.kept` keeps. items: int64[n] each, numbers of the shapes and
    objects of a row."""
    wanted = chosen_rows(kept, items)
    return contacts if wanted.all() else contacts.at(np.flatnonzero(wanted))


def match_rows(a: Contacts, b: Contacts, shape_count: int) -> Matches:
    """Matches rows by their keys, repeated keys in order, or as `match_contacts` those that have
    none."""
    if a.keys is None or b.keys is None:
        return match_contacts(a, b, shape_count)
    keys_a = [a.cell, *a.keys]
    keys_b = [b.cell, *b.keys]
    if identical := _identical(keys_a, keys_b):
        return identical
    key = _labels([np.concatenate([x, y]) for x, y in zip(keys_a, keys_b, strict=True)])
    rows_a, rows_b = _same(key[: len(a)], key[len(a) :])
    order = np.argsort(rows_a)
    rows_a = rows_a[order]
    rows_b = rows_b[order]
    return Matches(rows_a, rows_b, _without(len(a), rows_a), _without(len(b), rows_b), _NONE, _NONE)


def match_contacts(a: Contacts, b: Contacts, shape_count: int) -> Matches:
    """Matches rows by cell, pair and features; the remaining rows of a pair by least cost of
    position and normal.

    shape_count: of numbers. Without feature columns pairs are matched: the first row of each pair
    of a cell.
    """
    pair_a = a.first * shape_count + a.second
    pair_b = b.first * shape_count + b.second
    keys_a = _keys(a, pair_a)
    keys_b = _keys(b, pair_b)
    if identical := _identical(keys_a, keys_b):
        return identical
    alike_a, alike_b = _alike_cells(keys_a, keys_b)
    rows_a = np.flatnonzero(~alike_a)
    rows_b = np.flatnonzero(~alike_b)
    key = _labels(
        [np.concatenate([x[rows_a], y[rows_b]]) for x, y in zip(keys_a, keys_b, strict=True)]
    )
    pair = _labels(
        [
            np.concatenate([x[rows_a], y[rows_b]])
            for x, y in zip(keys_a[:2], keys_b[:2], strict=True)
        ]
    )
    count = len(rows_a)
    by_key_a, by_key_b = _same(key[:count], key[count:])
    matched_a = [rows_a[by_key_a]]
    matched_b = [rows_b[by_key_b]]
    left_a = _without(count, by_key_a)
    left_b = _without(len(rows_b), by_key_b)
    crowded = 0
    if "point0" in a.columns and "normal" in a.columns and len(left_a) and len(left_b):
        near_a, near_b, crowded = _nearest(
            a.at(rows_a[left_a]), b.at(rows_b[left_b]), pair[:count][left_a], pair[count:][left_b]
        )
        matched_a.append(rows_a[left_a[near_a]])
        matched_b.append(rows_b[left_b[near_b]])
        left_a = _without(len(left_a), near_a, left_a)
        left_b = _without(len(left_b), near_b, left_b)
    both = (
        np.concatenate([np.flatnonzero(alike_a), *matched_a]),
        np.concatenate([np.flatnonzero(alike_b), *matched_b]),
    )
    order = np.argsort(both[0], kind="stable")
    return Matches(
        both[0][order],
        both[1][order],
        rows_a[left_a],
        rows_b[left_b],
        rows_a[_only_here(pair[:count], pair[count:])],
        rows_b[_only_here(pair[count:], pair[:count])],
        crowded=crowded,
    )


def _identical(keys_a: list[np.ndarray], keys_b: list[np.ndarray]) -> Matches | None:
    """The matches of blocks with equal keys in equal order; None for others."""
    if not all(np.array_equal(x, y) for x, y in zip(keys_a, keys_b, strict=True)):
        return None
    rows = np.arange(len(keys_a[0]))
    return Matches(rows, rows, _NONE, _NONE, _NONE, _NONE, identical=True)


def _keys(contacts: Contacts, pair: np.ndarray) -> list[np.ndarray]:
    features = [
        contacts.columns[name] for name in ("feature0", "feature1") if name in contacts.columns
    ]
    return [contacts.cell, pair, *features]


def _alike_cells(
    keys_a: list[np.ndarray], keys_b: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """bool for the rows of each file: whether the row's cell has equal keys in equal order in both
    files."""
    cell_a = keys_a[0]
    cell_b = keys_b[0]
    cells = int(max(cell_a.max(initial=-1), cell_b.max(initial=-1))) + 1
    alike = np.bincount(cell_a, minlength=cells) == np.bincount(cell_b, minlength=cells)
    rows_a = alike[cell_a]
    rows_b = alike[cell_b]
    differs = np.zeros(int(rows_a.sum()), bool)
    for x, y in zip(keys_a[1:], keys_b[1:], strict=True):
        differs |= x[rows_a] != y[rows_b]
    alike[cell_a[rows_a][differs]] = False
    return alike[cell_a], alike[cell_b]


def _labels(keys: Sequence[np.ndarray]) -> np.ndarray:
    """int64[n]: labels, equal for equal keys, ascending with the keys."""
    label = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        values, ranks = np.unique(key, return_inverse=True)
        label = np.unique(label * max(1, len(values)) + ranks.reshape(-1), return_inverse=True)[
            1
        ].reshape(-1)
    return label


def _same(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of equal labels; repeated labels are paired in order."""
    order_a = np.argsort(a, kind="stable")
    order_b = np.argsort(b, kind="stable")
    sorted_a = a[order_a]
    sorted_b = b[order_b]
    turn_a = np.arange(len(a)) - np.searchsorted(sorted_a, sorted_a)
    start = np.searchsorted(sorted_b, sorted_a)
    end = np.searchsorted(sorted_b, sorted_a, side="right")
    exists = start + turn_a < end
    return order_a[exists], order_b[(start + turn_a)[exists]]


def _without(count: int, taken: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """The indices below `count` that are not taken, or the elements of `of` at these indices."""
    left = np.ones(count, bool)
    left[taken] = False
    return np.flatnonzero(left) if of is None else of[left]


def _only_here(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """First index of each label of `here` that is not in `there`."""
    labels, first = np.unique(here, return_index=True)
    return np.sort(first[~np.isin(labels, there)])


def _nearest(
    a: Contacts, b: Contacts, pair_a: np.ndarray, pair_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows matched within each pair of a cell, and the number of pairs that exceed MOST_COSTS."""
    order_a = np.argsort(pair_a, kind="stable")
    order_b = np.argsort(pair_b, kind="stable")
    shared = common(pair_a, pair_b)
    start_a = np.searchsorted(pair_a[order_a], shared)
    start_b = np.searchsorted(pair_b[order_b], shared)
    count_a = np.searchsorted(pair_a[order_a], shared, side="right") - start_a
    count_b = np.searchsorted(pair_b[order_b], shared, side="right") - start_b
    position_a, position_b = (_positions(one) for one in (a, b))
    found_a = [_NONE]
    found_b = [_NONE]
    crowded = 0
    for size_a, size_b in distinct(np.stack([count_a, count_b], axis=1), axis=0).tolist():
        groups = np.flatnonzero((count_a == size_a) & (count_b == size_b))
        rows_a = order_a[start_a[groups][:, None] + np.arange(size_a)]
        rows_b = order_b[start_b[groups][:, None] + np.arange(size_b)]
        if max(size_a, size_b) <= SMALL:
            near_a, near_b = _assign_small(position_a[rows_a], position_b[rows_b])
            found_a.append(np.take_along_axis(rows_a, near_a, axis=1).reshape(-1))
            found_b.append(np.take_along_axis(rows_b, near_b, axis=1).reshape(-1))
            continue
        for group_a, group_b in zip(rows_a, rows_b, strict=True):
            one, other, exact = _assign_large(position_a[group_a], position_b[group_b])
            found_a.append(group_a[one])
            found_b.append(group_b[other])
            crowded += not exact
    return np.concatenate(found_a), np.concatenate(found_b), crowded


def _positions(contacts: Contacts) -> np.ndarray:
    """float64[n, 6]: the midpoint of the two witness points, and the normal."""
    middle = (contacts.columns["point0"].astype(np.float64) + contacts.columns["point1"]) / 2
    return np.concatenate([middle, contacts.columns["normal"]], axis=1)


def _costs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[..., n, m]: costs of positions [..., n, 6] and [..., m, 6]: their distance, plus that of the
    normals times the group's extent."""
    middles = np.concatenate([a, b], axis=-2)[..., :3]
    extent = np.linalg.norm(middles.max(axis=-2) - middles.min(axis=-2), axis=-1)
    apart = a[..., :, None, :] - b[..., None, :, :]
    turned = np.linalg.norm(apart[..., 3:], axis=-1)
    scale = np.where(extent > 0.0, extent, 1.0)[..., None, None]
    return np.nan_to_num(
        np.linalg.norm(apart[..., :3], axis=-1) + scale * turned, nan=np.inf, posinf=1e300
    )


def _assign_small(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matched columns [groups, min(n, m)] of positions [groups, n, 6] and [groups, m, 6], by
    enumeration."""
    n = a.shape[1]
    m = b.shape[1]
    if n > m:
        other, one = _assign_small(b, a)
        return one, other
    assignments = np.array(list(permutations(range(m), n)))
    costs = np.minimum(_costs(a, b), 1e300)
    total = sum(costs[:, i, assignments[:, i]] for i in range(n))
    chosen = assignments[np.argmin(np.asarray(total), axis=1)]
    return np.broadcast_to(np.arange(n), chosen.shape), chosen


def _assign_large(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Matched rows of positions [n, 6] and [m, 6] of one pair in one cell, and whether their cost
    is the least."""
    if len(a) * len(b) > MOST_COSTS:
        axis = int(np.argmax(np.ptp(np.concatenate([a, b])[:, :3], axis=0)))
        count = min(len(a), len(b))
        return (
            np.argsort(a[:, axis], kind="stable")[:count],
            np.argsort(b[:, axis], kind="stable")[:count],
            False,
        )
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.minimum(_costs(a, b), 1e300))
    return rows, columns, True
