"""Contacts by which pairs touch: of shapes, of particle objects, and of single particles."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.scene import contact_columns
from collidecli.scene.contact_blocks import ContactBlock, GroupRows
from collidecli.scene.contact_columns import TABLES_BY_NAME
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.storage.contact_sets.readable_rows import check_group_rows, is_touch_set
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import spans

COLUMNS = ("shape0", "shape1", "distance")
OF_STEPS = ("status", "tunnel", "enter", "leave", "least")
COLUMNS_OF_GROUP = {
    contact_columns.RIGID_CONTACTS.name: COLUMNS,
    contact_columns.HYDRO_PATCHES.name: ("shape0", "shape1", "depth"),
    contact_columns.SOFT_CONTACTS.name: ("shape", "indices", "distance"),
    contact_columns.SELF_CONTACTS.name: ("kind", "indices", "distance"),
    contact_columns.SWEEP.name: ("shape0", "shape1", *OF_STEPS),
    contact_columns.SOFT_SWEEP.name: ("shape", "indices", *OF_STEPS),
    contact_columns.SELF_SWEEP.name: ("kind", "indices", *OF_STEPS),
    contact_columns.TOUCHES.name: ("shape0", "shape1"),
}
"""Columns of each table: two that have the items of its rows, then the distance or the columns of
steps, if it has some."""
UNKNOWN_DISTANCE = np.float32(np.inf)
"""Distance of a row of `touches`, whose pair is nearer than its gap: how near is not known. It is
the greatest number, so that the least distance of several rows is a known one if there is one."""


SWEPT_GROUPS = (
    contact_columns.SWEEP.name,
    contact_columns.SOFT_SWEEP.name,
    contact_columns.SELF_SWEEP.name,
)
"""Tables of touches between frames."""


@dataclass(frozen=True)
class TouchingItems:
    """The items of rows: the shapes, `shape_count` of them, then the particle objects, then the
    particles."""

    shape_count: int
    objects: ParticleObjects

    @classmethod
    def of_set(cls, contacts: ContactSet) -> TouchingItems:
        """The items of a contact set."""
        return cls(len(contacts.shapes), contacts.particle_objects)

    def of_rows(
        self, group: str, rows: GroupRows, each_particle: bool
    ) -> tuple[np.ndarray | slice, np.ndarray, np.ndarray]:
        """Rows and their two items: with `each_particle` each particle of a row, and what its
        element touches. The rows of a file must have passed `check_group_rows`."""
        one, other = (rows.columns[name] for name in COLUMNS_OF_GROUP[group][:2])
        entries = TABLES_BY_NAME[group].objects.values()
        if not entries:
            return slice(None), one, other
        first = self.shape_count
        owners = [first + self.objects.of(other[:, entry]) for entry in entries]
        is_self = len(owners) == 2
        if not each_particle:
            return slice(None), owners[0] if is_self else one, owners[-1]
        row, entry = np.nonzero(other >= 0)
        partner = one[row]
        if is_self:  # the first element is a vertex, or an edge of two particles
            partner = np.where(entry <= partner, owners[1][row], owners[0][row])
        return row, partner, first + len(self.objects) + other[row, entry].astype(np.int64)

    def touching(
        self, first_cell: int, groups: Mapping[str, GroupRows], each_particle: bool = False
    ) -> ContactBlock:
        """The rows of tables of the same cells as one block with the columns shape0, shape1 and
        distance, whose shapes are items."""
        parts = []
        for name, rows in groups.items():
            row, one, other = self.of_rows(name, rows, each_particle)
            cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)[row]
            parts.append((cell, one, other, _distances(name, rows)[row]))
        cell, *columns = (np.concatenate(values) for values in zip(*parts, strict=True))
        order = np.argsort(cell, kind="stable") if len(parts) > 1 else slice(None)
        cells = max(len(rows.cell_counts) for rows in groups.values())
        counts = np.bincount(cell, minlength=cells).astype(np.int64)
        values = zip(COLUMNS, columns, strict=True)
        return ContactBlock(first_cell, counts, {name: column[order] for name, column in values})

    def steps(
        self,
        first_cell: int,
        groups: Mapping[str, GroupRows],
        each_particle: bool = False,
        names: Sequence[str] = OF_STEPS,
    ) -> dict[str, np.ndarray]:
        """The rows of SWEPT_GROUPS of the same cells, with the columns cell, shape0 and shape1,
        whose shapes are items, and `names` of OF_STEPS; in the order of the tables."""
        parts = []
        for name, rows in groups.items():
            row, one, other = self.of_rows(name, rows, each_particle)
            cell = first_cell + np.arange(len(rows.cell_counts))
            items = {"cell": np.repeat(cell, rows.cell_counts)[row], "shape0": one, "shape1": other}
            parts.append(items | {column: rows.columns[column][row] for column in names})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def touching_blocks(
    contacts: ContactSet,
    max_rows: int,
    first: int,
    last: int,
    with_particles: bool,
    each_particle: bool,
    with_self_contacts: bool = True,
) -> Generator[ContactBlock, None, None]:
    """Blocks of the cells `first` to `last` - 1 with the columns shape0, shape1 and distance.

    Items are those of `TouchingItems`. A hydroelastic surface is a contact of its pair, whose
    distance is the least separation of its faces. A pair of a set of touches is one contact, of
    UNKNOWN_DISTANCE.
    with_particles: a contact of particles is one of its shape and object, or of both objects; those
    of objects with each other only with `with_self_contacts` too. each_particle: only contacts of
    particles, each one of its shape, or of the other object, with each of its particles. Raises
    InputError for unknown shapes and particles.
    """
    names = (
        []
        if each_particle
        else [
            contact_columns.RIGID_CONTACTS.name,
            contact_columns.HYDRO_PATCHES.name,
        ]
    )
    names += [contact_columns.SOFT_CONTACTS.name] if with_particles else []
    names += [contact_columns.SELF_CONTACTS.name] if with_particles and with_self_contacts else []
    if is_touch_set(contacts) and not each_particle:
        names.append(contact_columns.TOUCHES.name)
    selected = {name: contacts.tables[name] for name in names if name in contacts.tables}
    starts = [table.cell_start for table in selected.values()]
    items = TouchingItems.of_set(contacts)
    for begin, end in spans(starts, max_rows, first, last) if starts else ():
        groups = {
            name: table.rows(begin, end, COLUMNS_OF_GROUP[name]) for name, table in selected.items()
        }
        check_group_rows(contacts, groups, begin, end)
        yield items.touching(begin, groups, each_particle)


def _distances(group: str, rows: GroupRows) -> np.ndarray:
    """float32[n]: the distance of each row [m]."""
    if group == contact_columns.TOUCHES.name:
        return np.full(int(rows.cell_counts.sum()), UNKNOWN_DISTANCE, np.float32)
    return rows.columns[COLUMNS_OF_GROUP[group][2]].astype(np.float32, copy=False)
