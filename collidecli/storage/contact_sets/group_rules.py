"""The rules for the groups of a contact set beside /rigid_contacts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_groups import (
    OF_STEPS,
    SELF_CONTACTS,
    SELF_SWEEP,
    SOFT_CONTACTS,
    SOFT_SWEEP,
    ContactGroup,
    GroupRows,
    shapes_of,
)
from collidecli.storage.contact_sets.cell_ranges import BLOCK_ROWS, spans
from collidecli.storage.contact_sets.group_reader import GroupTable, rows_of_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import Finding

NORMAL_TOLERANCE = 1e-6
"""Of n.n, for a normal rounded to float32."""
WEIGHT_TOLERANCE = 1e-6
"""Of the sum of three weights rounded to float32."""


def group_findings(contacts: ContactSet) -> list[Finding]:
    """The rules that the groups break, each with its first row. Rows are checked only if all starts are valid."""
    found = [finding for table in contacts.groups.values() for finding in _start_findings(contacts, table)]
    return found or _row_findings(contacts)


def _start_findings(contacts: ContactSet, table: GroupTable) -> list[Finding]:
    found = _starts(table.where("cell_start"), table.cell_start, contacts.cell_count, table.row_count, "rows")
    for held in table.definition.lists:
        values, read = table.value_count(held.column.name), partial(table.column, held.start)
        found += _starts(table.where(held.start), read, table.row_count, values, "values")
    return found


def _starts(where: str, read: Callable[[slice], np.ndarray], count: int, end: int, what: str) -> list[Finding]:
    """Findings of a dataset of starts with `count` + 1 entries, from 0 to `end`."""
    previous = 0
    for first in range(0, count + 1, BLOCK_ROWS):
        start = read(slice(first, min(first + BLOCK_ROWS, count + 1)))
        if first == 0 and start[0] != 0:
            return [Finding(where, f"begins with {start[0]}, not 0")]
        falls = np.flatnonzero(start < np.concatenate([[previous], start[:-1]]))
        if len(falls):
            return [Finding(f"{where}, entry {first + int(falls[0])}", "is less than the one before it")]
        previous = int(start[-1])
    return [Finding(where, f"ends with {previous}, not the number of {what}, {end}")] if previous != end else []


def _row_findings(contacts: ContactSet) -> list[Finding]:
    first_row: dict[tuple[str, str], str] = {}
    counts: dict[tuple[str, str], int] = {}
    tables = contacts.groups
    starts = [table.cell_start for table in tables.values()]
    for first, last in spans(starts, BLOCK_ROWS, 0, contacts.cell_count) if tables else ():
        try:
            groups = rows_of_cells(tables, first, last)
        except InputError as error:
            return [Finding(error.where, error.what)]
        for name, rows in groups.items():
            cell = first + np.repeat(np.arange(last - first), rows.cell_counts)
            for what, broken in _rules(contacts, groups, name, cell):
                if broken.any():
                    row = int(np.argmax(broken))
                    frame, world = divmod(int(cell[row]), contacts.world_count)
                    in_cell = row - int(np.searchsorted(cell, cell[row]))
                    where = f"{contacts.path}: /{name}, frame {frame}, world {world}, row {in_cell} of the cell"
                    first_row.setdefault((name, what), where)
                    counts[name, what] = counts.get((name, what), 0) + int(broken.sum())
    return [
        Finding(where, key[1] + (f" ({counts[key]} rows)" if counts[key] > 1 else ""))
        for key, where in first_row.items()
    ]


def _rules(
    contacts: ContactSet, groups: dict[str, GroupRows], name: str, cell: np.ndarray
) -> Iterator[tuple[str, Any]]:
    """Each rule's text and the rows that break it; stops after shapes out of range."""
    rows, definition = groups[name], contacts.groups[name].definition
    if not len(cell):
        return
    if contacts.episodes is not None:
        frame, world = np.divmod(cell, contacts.world_count)
        yield "is outside every episode", contacts.episodes.row(world, frame) < 0
    shapes = shapes_of(groups, name) if definition.shapes else ()
    outside = np.zeros(len(cell), bool)
    for shape in shapes:
        outside |= (shape < 0) | (shape >= len(contacts.shapes))
    yield "a shape is no row of /model/shape", outside
    if outside.any():
        return
    if len(shapes) == 2:
        yield "shape0 is not less than shape1", shapes[0] >= shapes[1]
    template = contacts.world_template[cell % contacts.world_count]
    for shape in shapes:
        own = contacts.shapes.template[shape]
        yield "a shape is not in this world", (own != -1) & (own != template)
    if definition.objects:
        yield from _object_rules(contacts, definition, rows, template)
    strict = not definition.references
    order = ", ".join(("cell", *definition.keys))
    once = ", each row once" if strict else ""
    yield f"rows are out of order: {order}{once}", _out_of_order(rows, cell, definition.keys, strict)
    yield from _value_rules(contacts.groups[name], rows)
    if name in (SOFT_CONTACTS.name, SOFT_SWEEP.name):
        yield from _element_rules(rows)
    if name in OF_STEPS:
        yield "is in the last frame, which has no step", cell // contacts.world_count == contacts.frame_count - 1
        yield from _sweep_rules(rows)
    for held in definition.lists:
        lengths, values = rows.lists[held.column.name]
        yield f"{held.column.name} has fewer than {held.least} entries", lengths < held.least
        row = np.repeat(np.arange(len(cell)), lengths)
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        yield f"{held.column.name} is not finite", np.bincount(row[bad], minlength=len(cell)) > 0
    if name == "hydro_patches" and "hydro_faces" in groups:
        faces = np.bincount(groups["hydro_faces"].columns["patch"], minlength=len(cell))
        yield "face_count is not the number of faces", rows.columns["face_count"] != faces


def _object_rules(
    contacts: ContactSet, definition: ContactGroup, rows: GroupRows, template: np.ndarray
) -> Iterator[tuple[str, Any]]:
    """Rules for particles: those of an element are of one object, which is in the world. template: of each row."""
    objects, indices = contacts.particle_objects, rows.columns["indices"]
    outside = indices >= objects.total
    yield "a particle is of no object", outside.any(axis=1)
    is_there = (indices >= 0) & ~outside
    yield "a row has no particle", ~is_there[:, list(definition.objects.values())].all(axis=1)
    row = objects.of(np.where(is_there, indices, 0))
    expected = np.repeat(row[:, :1], indices.shape[1], axis=1)
    if definition.name in (SELF_CONTACTS.name, SELF_SWEEP.name):  # a vertex and a triangle, or two edges
        expected[:, 1] = np.where(rows.columns["kind"] == 1, row[:, 0], row[:, 3])
        expected[:, 2] = row[:, 3]
        expected[:, 3] = row[:, 3]
    yield "the particles of an element are of several objects", (is_there & (row != expected)).any(axis=1)
    own = np.append(objects.template, -1)[row]
    yield "a particle is not in this world", (is_there & (own != -1) & (own != template[:, None])).any(axis=1)


def _element_rules(rows: GroupRows) -> Iterator[tuple[str, Any]]:
    """Rules for vertices, edges and faces: as many particles as the kind has, with weights."""
    indices, weights = rows.columns["indices"], rows.columns["barycentric"]
    held = np.arange(3) <= rows.columns["kind"][:, None]
    yield "indices are not as many as the kind has", ((indices >= 0) != held).any(axis=1)
    with np.errstate(invalid="ignore"):
        wrong = (weights < 0.0).any(axis=1) | (np.abs(weights.sum(axis=1, dtype=np.float64) - 1.0) > WEIGHT_TOLERANCE)
    yield "the weights are not at least 0 with the sum 1", wrong | ((weights != 0.0) & ~held).any(axis=1)


def _sweep_rules(rows: GroupRows) -> Iterator[tuple[str, Any]]:
    """Rules for pairs that touch between frames."""
    held = rows.columns
    yield "status is not 1 or 2", (held["status"] < 1) | (held["status"] > 2)
    is_between = (held["enter"] > 0.0) & (held["leave"] < 1.0) & (held["status"] == 1)
    yield "tunnel does not follow from enter, leave and status", held["tunnel"] != is_between
    yield "enter and leave are not ascending in 0 to 1", (held["enter"] > held["leave"]) | (held["leave"] > 1.0)
    yield "least_bound is above least", held["least_bound"] > held["least"]


def _value_rules(table: GroupTable, rows: GroupRows) -> Iterator[tuple[str, Any]]:
    definition = table.definition
    for column in definition.columns:
        values = rows.columns[column.name].reshape(-1, column.width)
        if column.dtype.kind == "f":
            yield f"{column.name} is not finite", ~np.isfinite(values).all(axis=1)
        if column.name in definition.least:
            least = definition.least[column.name]
            yield f"{column.name} is less than {least}", (values < least).any(axis=1)
        if column.name == "kind":
            yield f"kind is not 0 to {len(definition.kinds) - 1}", values[:, 0] >= len(definition.kinds)
        if column.name == "normal":
            with np.errstate(over="ignore", invalid="ignore"):
                size = np.square(values.astype(np.float64)).sum(axis=1)
                yield "the normal has not unit length", np.abs(size - 1.0) > NORMAL_TOLERANCE


def _out_of_order(rows: GroupRows, cell: np.ndarray, keys: tuple[str, ...], strict: bool) -> np.ndarray:
    """Rows that do not sort after the row before. strict: equal keys are out of order too."""
    broken, equal = np.zeros(len(cell), bool), np.ones(max(0, len(cell) - 1), bool)
    for key in (cell, *(values for name in keys for values in rows.columns[name].reshape(len(cell), -1).T)):
        broken[1:] |= equal & (key[1:] < key[:-1])
        equal &= key[1:] == key[:-1]
    if strict:
        broken[1:] |= equal
    return broken
