"""Matching of the contacts of two blocks of cells: by cell, shapes and features, then by least distance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.particles import EVERY_TEMPLATE, ParticleObjects
from collidecli.scene.patterns import chosen_rows
from collidecli.scene.tables import RIGID_CONTACTS, columns_of_sides, entries_of

SMALL = 4
"""Pairs with at most so many contacts are matched in vectorized groups, by enumeration of all 24 permutations."""
MOST_COSTS = 4_000_000
"""Most entries of a cost matrix; a pair with more in one cell is matched in order along its longest extent."""


@dataclass(frozen=True)
class Contacts:
    """Contacts of some cells, with shape numbers common to both files.

    cell: int64[n], ascending. first, second: int64[n], numbers of the two shapes, first < second; of a table without
    pairs of shapes both are 0. columns: by name; index 0 in a name is the first shape. lists: by name, lengths [n] and
    values. keys: integers [n] that identify a row in its cell; None is the pair, its features and the position.
    objects: numbers [n] of the particle objects of a row.
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
            {name: (size[rows], values[entries_of(size, rows)]) for name, (size, values) in self.lists.items()},
            None if self.keys is None else [key[rows] for key in self.keys],
            [owner[rows] for owner in self.objects],
        )


@dataclass(frozen=True)
class Matches:
    """Matched rows of two blocks. a, b: int64[n], rows of one contact. missing, extra: unmatched rows of A, of B.

    identical: both blocks have the same contacts in the same order; a and b are then 0, 1, 2 ...
    missing_pairs, extra_pairs: rows of A, of B: first row of each pair in a cell in which the other has no such pair.
    crowded: number of pairs in cells with too many contacts for a least-cost assignment.
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
    cell_counts: np.ndarray, columns: Mapping[str, np.ndarray], numbers: np.ndarray, kept: np.ndarray | None = None
) -> Contacts:
    """Rows of a file as `Contacts`. For a pair of descending numbers, 0 and 1 are exchanged and the normal is flipped.

    cell_counts: int64[cells]. columns: with shape0 and shape1, rows of the file's shapes. numbers: int64[shapes].
    kept: bool[numbers, 2]: a pair has at least one shape of the first column, and both of the second; None keeps all.
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
    """Two numbers of shapes in ascending order, and the columns with 0 and 1 exchanged and the vectors `flipped` of
    opposite sign where the numbers were descending.
    """
    ordered, swapped = dict(columns), shapes[0] > shapes[1]
    if not swapped.any():
        return list(shapes), ordered

    def chosen(name: str, other: np.ndarray) -> np.ndarray:
        return np.where(swapped.reshape(-1, *(1 for _ in other.shape[1:])), other, ordered[name])

    for side, other in columns_of_sides(ordered):
        ordered[side], ordered[other] = chosen(side, ordered[other]), chosen(other, ordered[side])
    ordered |= {name: chosen(name, -ordered[name]) for name in flipped if name in ordered}
    return [np.minimum(*shapes), np.maximum(*shapes)], ordered


def kept_rows(contacts: Contacts, kept: np.ndarray, items: Sequence[np.ndarray]) -> Contacts:
    """The rows that `NamedItems.kept` keeps. items: int64[n] each, numbers of the shapes and objects of a row."""
    wanted = chosen_rows(kept, items)
    return contacts if wanted.all() else contacts.at(np.flatnonzero(wanted))


def match_rows(a: Contacts, b: Contacts, shape_count: int) -> Matches:
    """Matches rows by their keys, repeated keys in order, or as `match_contacts` those that have none."""
    if a.keys is None or b.keys is None:
        return match_contacts(a, b, shape_count)
    keys_a, keys_b = [a.cell, *a.keys], [b.cell, *b.keys]
    if identical := _identical(keys_a, keys_b):
        return identical
    key = _labels([np.concatenate([x, y]) for x, y in zip(keys_a, keys_b, strict=True)])
    rows_a, rows_b = _same(key[: len(a)], key[len(a) :])
    order = np.argsort(rows_a)
    rows_a, rows_b = rows_a[order], rows_b[order]
    return Matches(rows_a, rows_b, _without(len(a), rows_a), _without(len(b), rows_b), _NONE, _NONE)


def match_contacts(a: Contacts, b: Contacts, shape_count: int) -> Matches:
    """Matches rows by cell, pair and features; the remaining rows of a pair by least cost of position and normal.

    shape_count: of numbers. Without feature columns pairs are matched: the first row of each pair of a cell.
    """
    pair_a, pair_b = a.first * shape_count + a.second, b.first * shape_count + b.second
    keys_a, keys_b = _keys(a, pair_a), _keys(b, pair_b)
    if identical := _identical(keys_a, keys_b):
        return identical
    alike_a, alike_b = _alike_cells(keys_a, keys_b)
    rows_a, rows_b = np.flatnonzero(~alike_a), np.flatnonzero(~alike_b)
    key = _labels([np.concatenate([x[rows_a], y[rows_b]]) for x, y in zip(keys_a, keys_b, strict=True)])
    pair = _labels([np.concatenate([x[rows_a], y[rows_b]]) for x, y in zip(keys_a[:2], keys_b[:2], strict=True)])
    count = len(rows_a)
    by_key_a, by_key_b = _same(key[:count], key[count:])
    matched_a, matched_b = [rows_a[by_key_a]], [rows_b[by_key_b]]
    left_a, left_b = _without(count, by_key_a), _without(len(rows_b), by_key_b)
    crowded = 0
    if "point0" in a.columns and "normal" in a.columns and len(left_a) and len(left_b):
        near_a, near_b, crowded = _nearest(
            a.at(rows_a[left_a]), b.at(rows_b[left_b]), pair[:count][left_a], pair[count:][left_b]
        )
        matched_a.append(rows_a[left_a[near_a]])
        matched_b.append(rows_b[left_b[near_b]])
        left_a, left_b = _without(len(left_a), near_a, left_a), _without(len(left_b), near_b, left_b)
    both = np.concatenate([np.flatnonzero(alike_a), *matched_a]), np.concatenate([np.flatnonzero(alike_b), *matched_b])
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
    features = [contacts.columns[name] for name in ("feature0", "feature1") if name in contacts.columns]
    return [contacts.cell, pair, *features]


def _alike_cells(keys_a: list[np.ndarray], keys_b: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """bool for the rows of each file: whether the row's cell has equal keys in equal order in both files."""
    cell_a, cell_b = keys_a[0], keys_b[0]
    cells = int(max(cell_a.max(initial=-1), cell_b.max(initial=-1))) + 1
    alike = np.bincount(cell_a, minlength=cells) == np.bincount(cell_b, minlength=cells)
    rows_a, rows_b = alike[cell_a], alike[cell_b]
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
        label = np.unique(label * max(1, len(values)) + ranks.reshape(-1), return_inverse=True)[1].reshape(-1)
    return label


def _same(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of equal labels; repeated labels are paired in order."""
    order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    sorted_a, sorted_b = a[order_a], b[order_b]
    turn_a = np.arange(len(a)) - np.searchsorted(sorted_a, sorted_a)
    start, end = np.searchsorted(sorted_b, sorted_a), np.searchsorted(sorted_b, sorted_a, side="right")
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


def _nearest(a: Contacts, b: Contacts, pair_a: np.ndarray, pair_b: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows matched within each pair of a cell, and the number of pairs that exceed MOST_COSTS."""
    order_a, order_b = np.argsort(pair_a, kind="stable"), np.argsort(pair_b, kind="stable")
    shared = np.intersect1d(pair_a, pair_b)
    start_a, start_b = np.searchsorted(pair_a[order_a], shared), np.searchsorted(pair_b[order_b], shared)
    count_a = np.searchsorted(pair_a[order_a], shared, side="right") - start_a
    count_b = np.searchsorted(pair_b[order_b], shared, side="right") - start_b
    position_a, position_b = (_positions(one) for one in (a, b))
    found_a, found_b, crowded = [_NONE], [_NONE], 0
    for size_a, size_b in np.unique(np.stack([count_a, count_b], axis=1), axis=0).tolist():
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
    """[..., n, m]: costs of positions [..., n, 6] and [..., m, 6]: their distance, plus that of the normals times the
    group's extent."""
    middles = np.concatenate([a, b], axis=-2)[..., :3]
    extent = np.linalg.norm(middles.max(axis=-2) - middles.min(axis=-2), axis=-1)
    apart = a[..., :, None, :] - b[..., None, :, :]
    turned = np.linalg.norm(apart[..., 3:], axis=-1)
    scale = np.where(extent > 0.0, extent, 1.0)[..., None, None]
    return np.nan_to_num(np.linalg.norm(apart[..., :3], axis=-1) + scale * turned, nan=np.inf, posinf=1e300)


def _assign_small(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matched columns [groups, min(n, m)] of positions [groups, n, 6] and [groups, m, 6], by enumeration."""
    n, m = a.shape[1], b.shape[1]
    if n > m:
        other, one = _assign_small(b, a)
        return one, other
    assignments = np.array(list(permutations(range(m), n)))
    costs = np.minimum(_costs(a, b), 1e300)
    total = sum(costs[:, i, assignments[:, i]] for i in range(n))
    chosen = assignments[np.argmin(np.asarray(total), axis=1)]
    return np.broadcast_to(np.arange(n), chosen.shape), chosen


def _assign_large(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Matched rows of positions [n, 6] and [m, 6] of one pair in one cell, and whether their cost is the least."""
    if len(a) * len(b) > MOST_COSTS:
        axis = int(np.argmax(np.ptp(np.concatenate([a, b])[:, :3], axis=0)))
        count = min(len(a), len(b))
        return np.argsort(a[:, axis], kind="stable")[:count], np.argsort(b[:, axis], kind="stable")[:count], False
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.minimum(_costs(a, b), 1e300))
    return rows, columns, True


# Matching of two contact sets: shapes by path within a world, independent of rows and templates; frames.


@dataclass(frozen=True)
class FrameAlignment:
    """Matched frames. by: the key. a, b: int64[n], frames, ascending in A. only_a, only_b: unmatched frames."""

    by: str
    a: np.ndarray
    b: np.ndarray
    only_a: np.ndarray
    only_b: np.ndarray


def align_frames(
    step_a: np.ndarray, time_a: np.ndarray, step_b: np.ndarray, time_b: np.ndarray, by: str = ""
) -> FrameAlignment:
    """Frames matched `by` "step", "time" or "index".

    "" selects the first of step and time that is unique in both files and has common values; else the first unique
    one; else the index. Raises InputError for a requested key that is not unique.
    """
    if not by:
        keys = {"step": (step_a, step_b), "time": (time_a, time_b)}
        unique = [name for name, (side_a, side_b) in keys.items() if not _repeats(side_a) and not _repeats(side_b)]
        shared = [name for name in unique if len(np.intersect1d(*keys[name]))]
        by = (shared or unique or ["index"])[0]
    if by == "index":
        a, b = np.arange(len(step_a)), np.arange(len(step_b))
    else:
        a, b = (step_a, step_b) if by == "step" else (time_a, time_b)
        for name, key in (("the first file", a), ("the second file", b)):
            if _repeats(key):
                raise InputError(f"frames of {name} have the same {by}", f"/time/{by}", "match frames by index")
    _, rows_a, rows_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    order = np.argsort(rows_a)
    rows_a, rows_b = rows_a[order], rows_b[order]
    only_a = np.setdiff1d(np.arange(len(step_a)), rows_a)
    only_b = np.setdiff1d(np.arange(len(step_b)), rows_b)
    return FrameAlignment(by, rows_a, rows_b, only_a, only_b)


def _repeats(values: np.ndarray) -> bool:
    return len(np.unique(values)) < len(values)


GLOBAL = -1


@dataclass(frozen=True)
class ShapeRecords:
    """The shapes of one contact set.

    path, type, body: str of each shape; body is the body's path, "" for a static shape. template: int[S], -1 in every
    world. world_template: int[W]. values: further properties of shapes by name, [S] or [S, n].
    where: the file, for messages.
    """

    path: Sequence[str]
    type: Sequence[str]
    body: Sequence[str]
    template: np.ndarray
    world_template: np.ndarray
    values: Mapping[str, np.ndarray]
    where: str = ""


@dataclass(frozen=True)
class ShapeDifference:
    """Difference of a shape. kind: removed, added, renamed or changed. path: in A, else in B. what: changed property.

    a, b: the values, or both paths of a renamed shape. world: the first one, -1 for a shape of every world.
    """

    kind: str
    path: str
    what: str = ""
    a: object = None
    b: object = None
    world: int = GLOBAL


@dataclass
class ShapeAlignment:
    """Common numbers of the shapes of both files.

    names: of each number, the path in A if it exists, else in B. number_a: int64[SA]. number_b: int64[SB].
    row_pairs: rows (A, B) of one shape. reordered: whether common rows have different orders.
    """

    names: list[str]
    number_a: np.ndarray
    number_b: np.ndarray
    row_pairs: list[tuple[int, int]]
    differences: list[ShapeDifference] = field(default_factory=list)
    reordered: bool = False


def align_shapes(a: ShapeRecords, b: ShapeRecords, renames: Sequence[tuple[str, str]] = ()) -> ShapeAlignment:
    """Matches the shapes of every world by path, then detects renamed shapes, then compares the properties.

    renames: (start of a path in A, its replacement in B), applied first; they are no difference.
    A shape is renamed if both files have exactly one unmatched shape in that world with its last path element and
    type, or exactly one with its type, margin, gap, and static or not.
    Worlds of only one file are ignored. Raises InputError for a path that occurs twice in one world.
    """
    rows_a, rows_b = _rows_by_template(a, renames), _rows_by_template(b, ())
    pairs: dict[tuple[int, int], int] = {}
    differences: dict[tuple[str, str, str], ShapeDifference] = {}
    renamed_rows: set[tuple[int, int]] = set()
    for world, here_a, here_b in _scopes(a, b, rows_a, rows_b):
        left_a = {path: row for path, row in here_a.items() if path not in here_b}
        left_b = {path: row for path, row in here_b.items() if path not in here_a}
        for path, row in here_a.items():
            if path in here_b:
                pairs.setdefault((row, here_b[path]), world)
        for old, new in _renamed(a, b, left_a, left_b):
            pair = (left_a.pop(old), left_b.pop(new))
            pairs.setdefault(pair, world)
            renamed_rows.add(pair)
            difference = ShapeDifference("renamed", a.path[pair[0]], "path", a.path[pair[0]], b.path[pair[1]], world)
            differences.setdefault(("renamed", difference.path, str(difference.b)), difference)
        removed = [ShapeDifference("removed", a.path[row], a=a.type[row], world=world) for row in left_a.values()]
        added = [ShapeDifference("added", b.path[row], b=b.type[row], world=world) for row in left_b.values()]
        for difference in (*removed, *added):
            differences.setdefault((difference.kind, difference.path, ""), difference)
    alignment = _numbered(a, b, list(pairs))
    alignment.differences += differences.values()
    alignment.differences += _changed(a, b, pairs, renamed_rows)
    return alignment


def _rows_by_template(shapes: ShapeRecords, renames: Sequence[tuple[str, str]]) -> dict[int, dict[str, int]]:
    tables: dict[int, dict[str, int]] = {GLOBAL: {}}
    for row, (path, template) in enumerate(zip(shapes.path, shapes.template.tolist(), strict=True)):
        path = renamed_path(path, renames)
        table = tables.setdefault(template, {})
        if path in table or (template != GLOBAL and path in tables[GLOBAL]):
            what = f"the path {path} is in one world twice"
            raise InputError(what, f"{shapes.where}: /model/shape/path", "make it again")
        table[path] = row
    return tables


def renamed_path(path: str, renames: Sequence[tuple[str, str]]) -> str:
    """The path with its start replaced by the first of `renames` that fits."""
    for old, new in renames:
        if path.startswith(old):
            return new + path[len(old) :]
    return path


def _scopes(
    a: ShapeRecords, b: ShapeRecords, rows_a: dict[int, dict[str, int]], rows_b: dict[int, dict[str, int]]
) -> Iterator[tuple[int, dict[str, int], dict[str, int]]]:
    """(world, shapes of A, shapes of B), once for global shapes, and once for each pair of templates.

    A shape that is global in one file only is compared with the shapes of the worlds.
    """
    global_a, global_b = rows_a[GLOBAL], rows_b[GLOBAL]
    worlds = min(len(a.world_template), len(b.world_template))
    templates: dict[tuple[int, int], int] = {}
    for world in range(worlds):
        templates.setdefault((int(a.world_template[world]), int(b.world_template[world])), world)
    of_worlds_a = set().union(*(rows_a.get(template, {}) for template, _ in templates))
    of_worlds_b = set().union(*(rows_b.get(template, {}) for _, template in templates))
    demoted_a = {path: row for path, row in global_a.items() if path not in global_b and path in of_worlds_b}
    demoted_b = {path: row for path, row in global_b.items() if path not in global_a and path in of_worlds_a}
    yield (
        GLOBAL,
        {path: row for path, row in global_a.items() if path not in demoted_a},
        {path: row for path, row in global_b.items() if path not in demoted_b},
    )
    for (template_a, template_b), world in templates.items():
        yield world, rows_a.get(template_a, {}) | demoted_a, rows_b.get(template_b, {}) | demoted_b


def _renamed(a: ShapeRecords, b: ShapeRecords, left_a: dict[str, int], left_b: dict[str, int]) -> list[tuple[str, str]]:
    """(path in A, path in B) of unmatched shapes with a unique partner."""
    renamed: list[tuple[str, str]] = []

    def leaf(shapes: ShapeRecords, path: str, row: int) -> tuple:
        return path.rsplit("/", 1)[-1], shapes.type[row]

    def likeness(shapes: ShapeRecords, path: str, row: int) -> tuple:
        values = tuple(np.asarray(shapes.values[name][row]).tobytes() for name in ("margin", "gap"))
        return shapes.type[row], shapes.body[row] == "", *values

    rest_a, rest_b = dict(left_a), dict(left_b)
    for key in (leaf, likeness):
        if not rest_a or not rest_b:
            break
        groups: tuple[dict[tuple, list[str]], dict[tuple, list[str]]] = ({}, {})
        for side, shapes, rest in ((0, a, rest_a), (1, b, rest_b)):
            for path, row in rest.items():
                groups[side].setdefault(key(shapes, path, row), []).append(path)
        for signature, paths in groups[0].items():
            others = groups[1].get(signature, [])
            if len(paths) == len(others) == 1:
                renamed.append((paths[0], others[0]))
                del rest_a[paths[0]], rest_b[others[0]]
    return renamed


def _numbered(a: ShapeRecords, b: ShapeRecords, pairs: list[tuple[int, int]]) -> ShapeAlignment:
    """Numbers by path, ascending in A's order: shapes of one path in different worlds share a number."""
    number_of: dict[str, int] = {}
    number_a = np.array([number_of.setdefault(path, len(number_of)) for path in a.path], np.int64)
    partner = {row_b: row_a for row_a, row_b in reversed(pairs)}
    number_b = np.empty(len(b.path), np.int64)
    for row, path in enumerate(b.path):
        if row in partner:
            number_b[row] = number_a[partner[row]]
        else:
            # The path of a shape of B only may be that of a shape of A that is renamed in B.
            name = path if path not in number_of else f"{path} (of B)"
            number_b[row] = number_of.setdefault(name, len(number_of))
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    reordered = bool((np.diff(rows[:, 1]) < 0).any())
    return ShapeAlignment(list(number_of), number_a, number_b, pairs, reordered=reordered)


def _changed(
    a: ShapeRecords, b: ShapeRecords, pairs: dict[tuple[int, int], int], renamed: set[tuple[int, int]]
) -> list[ShapeDifference]:
    if not pairs:
        return []
    rows_a, rows_b = np.array(list(pairs), np.int64).T
    worlds = list(pairs.values())
    texts = {"type": (a.type, b.type), "body": (a.body, b.body)}
    changes: list[ShapeDifference] = []
    for name, (of_a, of_b) in texts.items():
        for (row_a, row_b), world in pairs.items():
            if of_a[row_a] != of_b[row_b] and not (name == "body" and (row_a, row_b) in renamed):
                changes.append(ShapeDifference("changed", a.path[row_a], name, of_a[row_a], of_b[row_b], world))
    for name in a.values:
        if name not in b.values:
            continue
        of_a, of_b = np.asarray(a.values[name])[rows_a], np.asarray(b.values[name])[rows_b]
        equal = (of_a == of_b) | (_is_nan(of_a) & _is_nan(of_b))
        for at in np.flatnonzero(~equal.reshape(len(equal), -1).all(axis=1)).tolist():
            path = a.path[int(rows_a[at])]
            changes.append(ShapeDifference("changed", path, name, of_a[at].tolist(), of_b[at].tolist(), worlds[at]))
    of_world_a, of_world_b = a.template[rows_a] != GLOBAL, b.template[rows_b] != GLOBAL
    words = ("in every world", "in its own worlds")
    for at in np.flatnonzero(of_world_a != of_world_b).tolist():
        was, now = words[int(of_world_a[at])], words[int(of_world_b[at])]
        changes.append(ShapeDifference("changed", a.path[int(rows_a[at])], "worlds", was, now, worlds[at]))
    return changes


def _is_nan(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)


# Matching of the particles of two contact sets: objects by path, particles by their number within the object.

MINUS_ONE = np.array([-1], np.int64)


@dataclass(frozen=True)
class ParticleAlignment:
    """Common numbers of the particle objects and particles of both files.

    names: path of each object number. objects: of A and of B, int64[O]. numbers: of the particles of A and of B,
    int64[P + 1]; the last is -1, of the particle -1.
    """

    names: list[str]
    objects: tuple[np.ndarray, np.ndarray]
    numbers: tuple[np.ndarray, np.ndarray]
    differences: list[ShapeDifference]


def align_particles(
    a: ParticleObjects, b: ParticleObjects, renames: Sequence[tuple[str, str]] = ()
) -> ParticleAlignment:
    """Matches particle objects by path, and compares kind, number of particles, and whether they are in every world.

    Objects of one path in different worlds share numbers. renames: (start of a path in A, its replacement in B).
    """
    names_a, names_b = [renamed_path(path, renames) for path in a.path], list(b.path)
    sizes: dict[str, int] = {}
    for names, objects in ((names_a, a), (names_b, b)):
        for name, count in zip(names, objects.particle_count.tolist(), strict=True):
            sizes[name] = max(sizes.get(name, 0), count)
    first = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    numbers = [
        np.concatenate([*(np.arange(n) + first[name] for name, n in zip(names, counts, strict=True)), MINUS_ONE])
        for names, counts in ((names_a, a.particle_count.tolist()), (names_b, b.particle_count.tolist()))
    ]
    properties = [_properties(names, objects) for names, objects in ((names_a, a), (names_b, b))]
    differences = []
    for name in sizes:
        was, now = (object_names.get(name) for object_names in properties)
        if was is None or now is None:
            kind = "added" if was is None else "removed"
            texts = [None if object_names is None else "; ".join(object_names) for object_names in (was, now)]
            differences.append(ShapeDifference(kind, name, a=texts[0], b=texts[1]))
        elif was != now:
            differences.append(ShapeDifference("changed", name, "particles", "; ".join(was), "; ".join(now)))
    row_of = {name: row for row, name in enumerate(sizes)}
    rows = [np.array([row_of[name] for name in names], np.int64) for names in (names_a, names_b)]
    return ParticleAlignment(list(sizes), (rows[0], rows[1]), (numbers[0], numbers[1]), differences)


def _properties(names: Sequence[str], objects: ParticleObjects) -> dict[str, list[str]]:
    """Kind, number of particles and worlds of the objects of each name, as sorted texts."""
    texts_of: dict[str, set[str]] = {}
    for row, name in enumerate(names):
        where = "in every world" if objects.template[row] == EVERY_TEMPLATE else "in its own worlds"
        texts_of.setdefault(name, set()).add(f"{objects.kind[row]} of {objects.particle_count[row]}, {where}")
    return {name: sorted(texts) for name, texts in texts_of.items()}
