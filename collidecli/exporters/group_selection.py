"""Selection of the rows of a group of contacts beside /rigid_contacts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.selection import SelectedContacts, rows_of_block
from collidecli.scene.columns import Column
from collidecli.scene.contact_groups import GROUPS_BY_NAME, GroupRows, shapes_of
from collidecli.scene.contacts import RIGID_COLUMNS, ContactBlock
from collidecli.storage.contact_sets.cell_ranges import spans
from collidecli.storage.contact_sets.group_reader import rows_of_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_group_rows

SINGLE_PARTICLE = 0
"""Kind of the rows of /soft_contacts that are of one particle each."""


class SelectedRows(SelectedContacts):
    """The rows of a group of some frames and worlds, as `SelectedContacts`; lists are in the blocks' groups, if named.

    Rows that refer to a row with shapes have these in shape0 and shape1, and the number of that row in the file.
    """

    def __init__(
        self,
        contacts: ContactSet,
        frames: range,
        worlds: np.ndarray,
        kept: np.ndarray | None,
        group: str,
        kind: int | None = None,
    ) -> None:
        """kind: only rows of this kind. Raises InputError for a group that the set does not have."""
        super().__init__(contacts, frames, worlds, kept)
        if group not in contacts.groups:
            held = f"it has {', '.join(contacts.groups)}" if contacts.groups else "it has none"
            raise InputError(f"there is no group '{group}'", contacts.path, held)
        self.group, self._kind = GROUPS_BY_NAME[group], kind
        self._needed = {name: contacts.groups[name] for name in (*self.group.references.values(), group)}

    @property
    def table_name(self) -> str:
        return f"/{self.group.name}"

    @property
    def columns(self) -> tuple[Column, ...]:
        own = {column.name for column in self.group.columns}
        shapes = [column for column in RIGID_COLUMNS if column.name in self.shape_columns and column.name not in own]
        return (*shapes, *self.group.columns)

    @cached_property
    def shape_columns(self) -> tuple[str, ...]:
        if self.group.references:
            return tuple(GROUPS_BY_NAME[next(iter(self.group.references.values()))].shapes)
        return self.group.shapes

    @property
    def object_columns(self) -> Mapping[str, int]:
        return self.group.objects

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.group.kinds

    def value_count(self, name: str) -> int:
        """Number of values of the selected lists of a list column."""
        return sum(len(block.groups[self.group.name].lists[name][1]) for block in self.blocks((name,)))

    def _pieces(self, names: tuple[str, ...], max_rows: int) -> Iterator[ContactBlock]:
        starts = [table.cell_start for table in self._needed.values()]
        read = self._read(names)
        for cell, count in self._spans():
            for first, last in spans(starts, max_rows, cell, cell + count):
                groups = rows_of_cells(self._needed, first, last, read)
                check_group_rows(self.contacts, groups, first, last)
                rows = groups[self.group.name]
                columns = {name: values for name, values in rows.columns.items() if name in names}
                if any(name in names for name in self.shape_columns):
                    columns |= dict(zip(self.shape_columns, shapes_of(groups, self.group.name), strict=True))
                for name, target in self.group.references.items():
                    if name in columns:
                        columns[name] = columns[name] + int(self._needed[target].row_starts(first, first)[0])
                lists = {self.group.name: GroupRows(rows.cell_counts, {}, rows.lists)}
                block = ContactBlock(first, rows.cell_counts, columns, lists)
                if self._kind is not None:
                    block = rows_of_block(block, np.flatnonzero(rows.columns["kind"] == self._kind))
                yield block

    def _read(self, names: tuple[str, ...]) -> dict[str, list[str]]:
        """Columns and lists to read of each group, for the columns and lists `names` of the rows."""
        own = [column.name for column in self.group.columns] + [held.column.name for held in self.group.lists]
        wanted = [name for name in own if name in names]
        wanted += ["kind"] if self._kind is not None and "kind" not in wanted else []
        if not any(name in names for name in self.shape_columns):
            return {name: [] for name in self._needed} | {self.group.name: wanted}
        wanted += [name for name in (*self.group.shapes, *self.group.references) if name not in wanted]
        found = {name: list(table.definition.shapes) for name, table in self._needed.items()}
        return found | {self.group.name: wanted}


def rows_of(selected: SelectedContacts, group: str, kind: int | None = None) -> SelectedRows:
    """The rows of a group of the same frames, worlds and shapes."""
    return SelectedRows(selected.contacts, selected.frames, selected.worlds, selected.kept, group, kind)
