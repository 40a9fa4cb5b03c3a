"""The groups of a contact set beside /rigid_contacts as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np

from collidecli.escaping import printable_line
from collidecli.scene.contact_blocks import GroupRows, shapes_of
from collidecli.scene.contact_columns import ContactGroup
from collidecli.storage.contact_sets.contact_table import rows_of_cells
from collidecli.storage.contact_sets.readable_rows import check_group_rows, objects_of
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import BLOCK_ROWS, spans

Number = Callable[[np.ndarray], str]
"""Rounded text of numbers."""


@dataclass(frozen=True)
class _Rows:
    """Rows of one cell with the same shapes and particle objects. paths: of these, sorted.

    turned: the shapes were exchanged.
    """

    cell: int
    paths: tuple[str, ...]
    turned: bool
    rows: np.ndarray


def group_lines(contacts: ContactSet, cells: bool, number: Number) -> Iterator[str]:
    """For each group its rows by shapes and particle objects, and, if `cells`, a line for these in
    each cell with the mean of each column.

    Raises InputError for unreadable rows, references to other cells and unknown shapes.
    """
    for name in contacts.groups:
        totals: dict[tuple[str, ...], list[int]] = {}
        for _, parts in _group_blocks(contacts, name):
            for part in parts:
                total = totals.setdefault(part.paths, [0, 0])
                total[0] += len(part.rows)
                total[1] += 1
        yield from ("", name)
        for paths in sorted(totals):
            rows, cell_count = totals[paths]
            yield f"  {_shapes(paths)}{counted(rows, 'row')} in {counted(cell_count, 'cell')}"
        if cells:
            yield from lines_by_cell(
                contacts, _group_cell_lines(contacts, name, number), f"{name}, "
            )


def _group_cell_lines(contacts: ContactSet, name: str, number: Number) -> Iterator[tuple[int, str]]:
    definition = contacts.groups[name].definition
    for group_rows, parts in _group_blocks(contacts, name):
        for part in parts:
            rows = counted(len(part.rows), "row")
            yield (
                part.cell,
                f"  {_shapes(part.paths)}{rows}{_means(definition, group_rows, part, number)}",
            )


def lines_by_cell(
    contacts: ContactSet, lines: Iterable[tuple[int, str]], name: str = ""
) -> Iterator[str]:
    """Lines of cells in order, those of each sorted, under a heading. name: of the table."""
    for cell, of_cell in groupby(lines, itemgetter(0)):
        frame, world = divmod(cell, contacts.world_count)
        yield ""
        yield (
            f"{name}frame {frame}, world {world}, t = {contacts.time[frame]:.9g}"
            f" {contacts.time_unit}"
        )
        yield from sorted(line for _, line in of_cell)


def _means(definition: ContactGroup, group_rows: GroupRows, part: _Rows, number: Number) -> str:
    texts = []
    for column in definition.columns:
        if column.dtype.kind == "f":
            values = (
                group_rows.columns[column.name][part.rows]
                .astype(np.float64)
                .reshape(len(part.rows), -1)
            )
            sign = -1.0 if part.turned and column.name in definition.flipped else 1.0
            texts.append(f"  {column.name} {number(sign * values.mean(axis=0))}")
    return "".join(texts)


def _group_blocks(contacts: ContactSet, name: str) -> Iterator[tuple[GroupRows, Iterator[_Rows]]]:
    tables = contacts.groups
    definition = tables[name].definition
    needed = {target: tables[target] for target in definition.references.values()} | {
        name: tables[name]
    }
    starts = [table.cell_start for table in needed.values()]
    for first, last in spans(starts, BLOCK_ROWS, 0, contacts.cell_count):
        groups = rows_of_cells(needed, first, last)
        check_group_rows(contacts, groups, first, last)
        yield groups[name], _parts(contacts, groups, name, first)


def _parts(
    contacts: ContactSet, groups: dict[str, GroupRows], name: str, first: int
) -> Iterator[_Rows]:
    group_rows = groups[name]
    shapes = shapes_of(groups, name)
    objects = objects_of(contacts, name, group_rows)
    cell = first + np.repeat(np.arange(len(group_rows.cell_counts)), group_rows.cell_counts)
    if not len(cell):
        return
    order = np.lexsort((*objects[::-1], *shapes[::-1], cell))
    keys = np.stack([key[order] for key in (cell, *shapes, *objects)])
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(keys, axis=1) != 0).any(axis=0)]))
    for rows in np.split(order, begins[1:]):
        paths = [printable_line(contacts.shapes.path[int(shape[rows[0]])]) for shape in shapes]
        turned = paths != sorted(paths)
        paths += [
            printable_line(contacts.particle_objects.path[int(owner[rows[0]])]) for owner in objects
        ]
        yield _Rows(int(cell[rows[0]]), tuple(sorted(paths)), turned, rows)


def _shapes(paths: tuple[str, ...]) -> str:
    return f"{' | '.join(paths)}  " if paths else ""


def counted(count: int, noun: str) -> str:
    """A number and its noun, in the plural but for 1."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
