"""Matching of the shapes of two contact sets by path within a world, and of their frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.distinct_values import common, distinct


@dataclass(frozen=True)
class FrameAlignment:
    """Matched frames. by: the key. a, b: int64[n], frames, ascending in A. only_a, only_b:
    unmatched frames."""

    by: str
    a: np.ndarray
    b: np.ndarray
    only_a: np.ndarray
    only_b: np.ndarray


def align_frames(
    step_a: np.ndarray, time_a: np.ndarray, step_b: np.ndarray, time_b: np.ndarray, by: str = ""
) -> FrameAlignment:
    """Frames matched `by` "step", "time" or "index".

    "" selects the first of step and time that is unique in both files and has common values; else
    the first unique one; else the index. Raises InputError for a requested key that is not unique.
    """
    if not by:
        keys = {"step": (step_a, step_b), "time": (time_a, time_b)}
        unique = [
            name
            for name, (side_a, side_b) in keys.items()
            if not _repeats(side_a) and not _repeats(side_b)
        ]
        shared = [name for name in unique if len(common(*keys[name]))]
        by = (shared or unique or ["index"])[0]
    if by == "index":
        a = np.arange(len(step_a))
        b = np.arange(len(step_b))
    else:
        a, b = (step_a, step_b) if by == "step" else (time_a, time_b)
        for name, key in (("the first file", a), ("the second file", b)):
            if _repeats(key):
                raise InputError(
                    f"frames of {name} have the same {by}", f"/time/{by}", "match frames by index"
                )
    _, rows_a, rows_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    order = np.argsort(rows_a)
    rows_a = rows_a[order]
    rows_b = rows_b[order]
    only_a = np.setdiff1d(np.arange(len(step_a)), rows_a)
    only_b = np.setdiff1d(np.arange(len(step_b)), rows_b)
    return FrameAlignment(by, rows_a, rows_b, only_a, only_b)


def _repeats(values: np.ndarray) -> bool:
    return len(distinct(values)) < len(values)


GLOBAL = -1


@dataclass(frozen=True)
class ShapeRecords:
    """The shapes of one contact set.

    path, type, body: str of each shape; body is the body's path, "" for a static shape. template:
    int[S], -1 in every world. world_template: int[W]. values: further properties of shapes by name,
    [S] or [S, n]. where: the file, for messages.
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
    """Difference of a shape. kind: removed, added, renamed or changed. path: in A, else in B. what:
    changed property.

    a, b: the values, or both paths of a renamed shape. world: the first one, -1 for a shape of
    every world.
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

    names: of each number, the path in A if it exists, else in B. number_a: int64[SA]. number_b:
    int64[SB]. row_pairs: rows (A, B) of one shape. reordered: whether common rows have different
    orders.
    """

    names: list[str]
    number_a: np.ndarray
    number_b: np.ndarray
    row_pairs: list[tuple[int, int]]
    differences: list[ShapeDifference] = field(default_factory=list)
    reordered: bool = False


def align_shapes(
    a: ShapeRecords, b: ShapeRecords, renames: Sequence[tuple[str, str]] = ()
) -> ShapeAlignment:
    """Matches the shapes of every world by path, then detects renamed shapes, then compares the
    properties.

    renames: (start of a path in A, its replacement in B), applied first; they are no difference. A
    shape is renamed if both files have exactly one unmatched shape in that world with its last path
    element and type, or exactly one with its type, margin, gap, and static or not. Worlds of only
    one file are ignored. Raises InputError for a path that occurs twice in one world.
    """
    rows_a = _rows_by_template(a, renames)
    rows_b = _rows_by_template(b, ())
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
            difference = ShapeDifference(
                "renamed", a.path[pair[0]], "path", a.path[pair[0]], b.path[pair[1]], world
            )
            differences.setdefault(("renamed", difference.path, str(difference.b)), difference)
        removed = [
            ShapeDifference("removed", a.path[row], a=a.type[row], world=world)
            for row in left_a.values()
        ]
        added = [
            ShapeDifference("added", b.path[row], b=b.type[row], world=world)
            for row in left_b.values()
        ]
        for difference in (*removed, *added):
            differences.setdefault((difference.kind, difference.path, ""), difference)
    alignment = _numbered(a, b, list(pairs))
    alignment.differences += differences.values()
    alignment.differences += _changed(a, b, pairs, renamed_rows)
    return alignment


def _rows_by_template(
    shapes: ShapeRecords, renames: Sequence[tuple[str, str]]
) -> dict[int, dict[str, int]]:
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
    a: ShapeRecords,
    b: ShapeRecords,
    rows_a: dict[int, dict[str, int]],
    rows_b: dict[int, dict[str, int]],
) -> Iterator[tuple[int, dict[str, int], dict[str, int]]]:
    """(world, shapes of A, shapes of B), once for global shapes, and once for each pair of
    templates.

    A shape that is global in one file only is compared with the shapes of the worlds.
    """
    global_a = rows_a[GLOBAL]
    global_b = rows_b[GLOBAL]
    worlds = min(len(a.world_template), len(b.world_template))
    templates: dict[tuple[int, int], int] = {}
    for world in range(worlds):
        templates.setdefault((int(a.world_template[world]), int(b.world_template[world])), world)
    of_worlds_a = set().union(*(rows_a.get(template, {}) for template, _ in templates))
    of_worlds_b = set().union(*(rows_b.get(template, {}) for _, template in templates))
    demoted_a = {
        path: row for path, row in global_a.items() if path not in global_b and path in of_worlds_b
    }
    demoted_b = {
        path: row for path, row in global_b.items() if path not in global_a and path in of_worlds_a
    }
    yield (
        GLOBAL,
        {path: row for path, row in global_a.items() if path not in demoted_a},
        {path: row for path, row in global_b.items() if path not in demoted_b},
    )
    for (template_a, template_b), world in templates.items():
        yield world, rows_a.get(template_a, {}) | demoted_a, rows_b.get(template_b, {}) | demoted_b


def _renamed(
    a: ShapeRecords, b: ShapeRecords, left_a: dict[str, int], left_b: dict[str, int]
) -> list[tuple[str, str]]:
    """(path in A, path in B) of unmatched shapes with a unique partner."""
    renamed: list[tuple[str, str]] = []

    def leaf(shapes: ShapeRecords, path: str, row: int) -> tuple:
        return path.rsplit("/", 1)[-1], shapes.type[row]

    def likeness(shapes: ShapeRecords, path: str, row: int) -> tuple:
        values = tuple(np.asarray(shapes.values[name][row]).tobytes() for name in ("margin", "gap"))
        return shapes.type[row], shapes.body[row] == "", *values

    rest_a = dict(left_a)
    rest_b = dict(left_b)
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
    """Numbers by path, ascending in A's order: shapes of one path in different worlds share a
    number."""
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
    a: ShapeRecords,
    b: ShapeRecords,
    pairs: dict[tuple[int, int], int],
    renamed: set[tuple[int, int]],
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
                changes.append(
                    ShapeDifference("changed", a.path[row_a], name, of_a[row_a], of_b[row_b], world)
                )
    for name in a.values:
        if name not in b.values:
            continue
        of_a = np.asarray(a.values[name])[rows_a]
        of_b = np.asarray(b.values[name])[rows_b]
        equal = (of_a == of_b) | (_is_nan(of_a) & _is_nan(of_b))
        for at in np.flatnonzero(~equal.reshape(len(equal), -1).all(axis=1)).tolist():
            path = a.path[int(rows_a[at])]
            changes.append(
                ShapeDifference(
                    "changed", path, name, of_a[at].tolist(), of_b[at].tolist(), worlds[at]
                )
            )
    of_world_a = a.template[rows_a] != GLOBAL
    of_world_b = b.template[rows_b] != GLOBAL
    words = ("in every world", "in its own worlds")
    for at in np.flatnonzero(of_world_a != of_world_b).tolist():
        was = words[int(of_world_a[at])]
        now = words[int(of_world_b[at])]
        changes.append(
            ShapeDifference("changed", a.path[int(rows_a[at])], "worlds", was, now, worlds[at])
        )
    return changes


def _is_nan(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
