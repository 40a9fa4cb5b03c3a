"""The groups of a contact set beside /rigid_contacts as lines of text, for the verb `textconv`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from collidecli.escaping import printable_line
from collidecli.scene.contact_groups import ContactGroup, GroupRows, shapes_of
from collidecli.storage.contact_sets.cell_ranges import BLOCK_ROWS, spans
from collidecli.storage.contact_sets.group_reader import rows_of_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_group_rows, objects_of

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
    """For each group its rows by shapes and particle objects, and, if `cells`, a line for these in each cell with the
    mean of each column.

    Raises InputError for unreadable rows, references to other cells and unknown shapes.
    """
    for name in contacts.groups:
        totals: dict[tuple[str, ...], list[int]] = {}
        for _, parts in _blocks(contacts, name):
            for part in parts:
                total = totals.setdefault(part.paths, [0, 0])
                total[0] += len(part.rows)
                total[1] += 1
        yield from ("", name)
        for paths in sorted(totals):
            rows, held = totals[paths]
            yield f"  {_shapes(paths)}{_count(rows, 'row')} in {_count(held, 'cell')}"
        if cells:
            yield from _cell_lines(contacts, name, number)


def _cell_lines(contacts: ContactSet, name: str, number: Number) -> Iterator[str]:
    definition = contacts.groups[name].definition
    last, lines = -1, []
    for held, parts in _blocks(contacts, name):
        for part in parts:
            if part.cell != last:
                yield from sorted(lines)
                last, lines = part.cell, []
                frame, world = divmod(part.cell, contacts.world_count)
                yield ""
                yield f"{name}, frame {frame}, world {world}, t = {contacts.time[frame]:.9g} s"
            lines.append(
                f"  {_shapes(part.paths)}{_count(len(part.rows), 'row')}{_means(definition, held, part, number)}"
            )
    yield from sorted(lines)


def _means(definition: ContactGroup, held: GroupRows, part: _Rows, number: Number) -> str:
    found = []
    for column in definition.columns:
        if column.dtype.kind == "f":
            values = held.columns[column.name][part.rows].astype(np.float64).reshape(len(part.rows), -1)
            sign = -1.0 if part.turned and column.name in definition.flipped else 1.0
            found.append(f"  {column.name} {number(sign * values.mean(axis=0))}")
    return "".join(found)


def _blocks(contacts: ContactSet, name: str) -> Iterator[tuple[GroupRows, Iterator[_Rows]]]:
    """Rows of blocks of cells, and these by cell and shapes."""
    tables = contacts.groups
    definition = tables[name].definition
    needed = {target: tables[target] for target in definition.references.values()} | {name: tables[name]}
    starts = [table.cell_start for table in needed.values()]
    for first, last in spans(starts, BLOCK_ROWS, 0, contacts.cell_count):
        groups = rows_of_cells(needed, first, last)
        check_group_rows(contacts, groups, first, last)
        yield groups[name], _parts(contacts, groups, name, first)


def _parts(contacts: ContactSet, groups: dict[str, GroupRows], name: str, first: int) -> Iterator[_Rows]:
    held, shapes = groups[name], shapes_of(groups, name)
    objects = objects_of(contacts, name, held)
    cell = first + np.repeat(np.arange(len(held.cell_counts)), held.cell_counts)
    if not len(cell):
        return
    order = np.lexsort((*objects[::-1], *shapes[::-1], cell))
    keys = np.stack([key[order] for key in (cell, *shapes, *objects)])
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(keys, axis=1) != 0).any(axis=0)]))
    for rows in np.split(order, begins[1:]):
        paths = [printable_line(contacts.shapes.path[int(shape[rows[0]])]) for shape in shapes]
        turned = paths != sorted(paths)
        paths += [printable_line(contacts.particle_objects.path[int(owner[rows[0]])]) for owner in objects]
        yield _Rows(int(cell[rows[0]]), tuple(sorted(paths)), turned, rows)


def _shapes(paths: tuple[str, ...]) -> str:
    return f"{' | '.join(paths)}  " if paths else ""


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
