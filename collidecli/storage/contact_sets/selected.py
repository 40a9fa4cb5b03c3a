"""Rows of a contact set selected by frames, worlds and pairs of shape paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from collidecli.errors import InputError
from collidecli.scene import contact_blocks, contact_columns
from collidecli.scene.contact_blocks import ContactBlock, GroupRows, entries_of
from collidecli.scene.contact_columns import RIGID_COLUMNS, RIGID_CONTACTS, Column
from collidecli.scene.distinct_values import distinct
from collidecli.scene.episodes import Episodes
from collidecli.scene.patterns import NamedItems, chosen_rows
from collidecli.storage.contact_sets.contact_table import rows_of_cells
from collidecli.storage.contact_sets.readable_rows import check_group_rows
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import BLOCK_ROWS, spans
from collidecli.wording import numbered

SINGLE_PARTICLE = 0
"""Kind of the rows of /soft_contacts that are of one particle each."""


class SelectedContacts:
    """The rows of a table in some frames and worlds of a set, read in blocks; cells are numbered in
    the selection.

    frames: range of the set's frames. worlds: intp[W], ascending, of its worlds. kept: bool[S + O,
    2] of shapes and particle objects: a row has at least one of the first column, and only those of
    the second; None is all rows. time: float64[F] [s]. step: int64[F]. group: the table. Rows that
    refer to a row with shapes have these in shape0 and shape1, and the number of that row in the
    file. Lists are in the blocks' groups, if named.
    """

    def __init__(
        self,
        contacts: ContactSet,
        frames: range,
        worlds: np.ndarray,
        kept: np.ndarray | None,
        table: str = RIGID_CONTACTS.name,
        kind: int | None = None,
    ) -> None:
        """kind: only rows of this kind. Raises InputError for a table that the set does not
        have."""
        self.contacts = contacts
        self.frames = frames
        self.worlds = worlds
        self.kept = kept
        if table not in contacts.tables:
            groups_text = (
                f"it has {', '.join(contacts.groups)}" if contacts.groups else "it has none"
            )
            raise InputError(f"there is no group '{table}'", contacts.path, groups_text)
        self.group = contacts.tables[table].definition
        self._kind = kind
        rows = np.asarray(frames, np.intp)
        self.frame_count = len(frames)
        self.world_count = len(worlds)
        self.cell_count = len(frames) * len(worlds)
        self.time = contacts.time[rows]
        self.step = contacts.step[rows]
        self._needed = {
            name: contacts.tables[name] for name in (*self.group.references.values(), table)
        }

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the rows that this version knows."""
        names = {column.name for column in self.group.columns}
        shapes = [
            column
            for column in RIGID_COLUMNS
            if column.name in self.shape_columns and column.name not in names
        ]
        return (*shapes, *self.group.columns)

    @cached_property
    def shape_columns(self) -> tuple[str, ...]:
        """The columns that number shapes."""
        return next(
            (
                contact_columns.TABLES_BY_NAME[name].shapes
                for name in self.group.references.values()
            ),
            self.group.shapes,
        )

    @cached_property
    def episodes(self) -> Episodes | None:
        """The episodes of the selected worlds, in the selected frames; None without episodes."""
        episodes = self.contacts.episodes
        return None if episodes is None else episodes.of_worlds(self.worlds).sliced(self.frames)

    @property
    def _items(self) -> tuple[str, ...]:
        """The columns that give the shapes and particle objects of a row."""
        return (*self.shape_columns, *(("indices",) if self.group.objects else ()))

    @cached_property
    def contact_count(self) -> int:
        """Number of selected contacts; reads cell_start, and the columns of shapes if pairs are
        selected."""
        return sum(block.contact_count for block in self.blocks(()))

    def blocks(self, names: Sequence[str], max_rows: int = BLOCK_ROWS) -> Iterator[ContactBlock]:
        """Every selected cell in order, in blocks of about `max_rows` rows and cells; a cell is
        never split."""
        needed = tuple(dict.fromkeys((*names, *(self._items if self.kept is not None else ()))))
        pending: list[ContactBlock] = []
        size = first = 0
        for piece in self._pieces(needed, max_rows):
            weight = piece.contact_count + len(piece.cell_counts)
            if pending and size + weight > max_rows:
                yield _joined(first, pending)
                first += sum(len(block_before.cell_counts) for block_before in pending)
                pending = []
                size = 0
            pending.append(piece if self.kept is None else self._filtered(piece))
            size += weight
        if pending:
            yield _joined(first, pending)

    def value_count(self, name: str) -> int:
        """Number of values of the selected lists of a list column."""
        return sum(
            len(block.groups[self.group.name].lists[name][1]) for block in self.blocks((name,))
        )

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
                    columns |= dict(
                        zip(
                            self.shape_columns,
                            contact_blocks.shapes_of(groups, self.group.name),
                            strict=True,
                        )
                    )
                for name, target in self.group.references.items():
                    if name in columns:
                        columns[name] = columns[name] + int(
                            self._needed[target].row_starts(first, first)[0]
                        )
                lists = (
                    {self.group.name: GroupRows(rows.cell_counts, {}, rows.lists)}
                    if rows.lists
                    else {}
                )
                block = ContactBlock(first, rows.cell_counts, columns, lists)
                if self._kind is not None:
                    block = rows_of_block(block, np.flatnonzero(rows.columns["kind"] == self._kind))
                yield block

    def _read(self, names: tuple[str, ...]) -> dict[str, list[str]]:
        """Columns and lists to read of each group, for the columns and lists `names` of the
        rows."""
        of_group = [column.name for column in self.group.columns] + [
            entries.column.name for entries in self.group.lists
        ]
        wanted = [name for name in of_group if name in names]
        wanted += ["kind"] if self._kind is not None and "kind" not in wanted else []
        if not any(name in names for name in self.shape_columns):
            return {name: [] for name in self._needed} | {self.group.name: wanted}
        wanted += [
            name for name in (*self.group.shapes, *self.group.references) if name not in wanted
        ]
        names_of_tables = {
            name: list(table.definition.shapes) for name, table in self._needed.items()
        }
        return names_of_tables | {self.group.name: wanted}

    def _spans(self) -> Iterator[tuple[int, int]]:
        """(first cell in the set, count) of contiguous cells of the file."""
        worlds = self.contacts.world_count
        if not len(self.worlds) or not len(self.frames):
            return
        if len(self.worlds) == worlds and self.frames.step == 1:
            yield self.frames.start * worlds, len(self.frames) * worlds
            return
        breaks = np.flatnonzero(np.diff(self.worlds) != 1) + 1
        runs = [(int(run[0]), len(run)) for run in np.split(self.worlds, breaks)]
        for frame in self.frames:
            for world, count in runs:
                yield frame * worlds + world, count

    def _filtered(self, block: ContactBlock) -> ContactBlock:
        assert self.kept is not None
        objects = self.contacts.particle_objects
        shapes = len(self.contacts.shapes)
        items = [block.columns[name] for name in self.shape_columns]
        for entry in self.group.objects.values():
            items.append(shapes + objects.of(block.columns["indices"][:, entry]))
        return rows_of_block(block, np.flatnonzero(chosen_rows(self.kept, items)))


def kept_items(
    contacts: ContactSet, include: Sequence[str], exclude: Sequence[str]
) -> np.ndarray | None:
    """See `NamedItems.kept`, of the items of a set."""
    return named_items(contacts).kept(include, exclude)


def named_items(contacts: ContactSet) -> NamedItems:
    """The shapes of a set, then its particle objects."""
    shapes = contacts.shapes
    objects = contacts.particle_objects.path
    body = np.append(shapes.body, np.full(len(objects), -1))
    what = "shape, particle object or body" if objects else "shape or body"
    return NamedItems(
        (*shapes.path, *objects), body, contacts.body_path, f"{what} of {contacts.path}"
    )


def rows_of_block(block: ContactBlock, rows: np.ndarray) -> ContactBlock:
    """A block with some of its rows, and their lists."""
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)[rows]
    counts = np.bincount(cell, minlength=len(block.cell_counts)).astype(np.int64)
    columns = {name: values[rows] for name, values in block.columns.items()}
    lists = {}
    for group, own in block.groups.items():
        entries = {
            n: (lengths[rows], values[entries_of(lengths, rows)])
            for n, (lengths, values) in own.lists.items()
        }
        lists[group] = GroupRows(counts, {}, entries)
    return ContactBlock(block.first_cell, counts, columns, lists)


def _joined(first: int, blocks: Sequence[ContactBlock]) -> ContactBlock:
    if len(blocks) == 1:
        return ContactBlock(first, blocks[0].cell_counts, blocks[0].columns, blocks[0].groups)
    groups = contact_blocks.consecutive_groups([block.groups for block in blocks])
    columns = {
        name: np.concatenate([block.columns[name] for block in blocks])
        for name in blocks[0].columns
    }
    return ContactBlock(
        first, np.concatenate([block.cell_counts for block in blocks]), columns, groups
    )


def chosen_worlds(worlds: Sequence[int], contacts: ContactSet) -> np.ndarray:
    """intp[W], distinct worlds, ascending; all if `worlds` is empty. Raises InputError for a world
    out of range."""
    for world in worlds:
        if not 0 <= world < contacts.world_count:
            worlds_text = numbered(contacts.world_count, "world")
            raise InputError(f"world {world} is not there", contacts.path, f"it has {worlds_text}")
    return distinct(np.asarray(worlds, np.intp)) if len(worlds) else np.arange(contacts.world_count)


def rows_of(selected: SelectedContacts, group: str, kind: int | None = None) -> SelectedContacts:
    """The rows of a table of the frames, worlds and shapes of a selection."""
    return SelectedContacts(
        selected.contacts, selected.frames, selected.worlds, selected.kept, group, kind
    )


def cells_of(
    selected: SelectedContacts, names: Sequence[str]
) -> Iterator[tuple[int, int, dict[str, np.ndarray]]]:
    """(frame, world, columns) of each selected cell, numbered in the selection.

    Of a list among `names`, the columns have its values, and in `lengths` their number in each row.
    """
    for block in selected.blocks(names):
        start = np.concatenate([[0], np.cumsum(block.cell_counts)])
        groups = block.groups.get(selected.group.name)
        lists = (
            {name: entries for name, entries in groups.lists.items() if name in names}
            if groups is not None
            else {}
        )
        first = {
            name: np.concatenate([[0], np.cumsum(lengths)]) for name, (lengths, _) in lists.items()
        }
        for k in range(len(block.cell_counts)):
            frame, world = divmod(block.first_cell + k, selected.world_count)
            rows = slice(int(start[k]), int(start[k + 1]))
            columns = {name: values[rows] for name, values in block.columns.items()}
            for name, (lengths, values) in lists.items():
                columns["lengths"] = lengths[rows]
                columns[name] = values[int(first[name][rows.start]) : int(first[name][rows.stop])]
            yield frame, world, columns
