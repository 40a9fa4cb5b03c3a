"""Reader of one group of a contact set beside /rigid_contacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.columns import Column
from collidecli.scene.contact_groups import GROUPS, ContactGroup, GroupRows
from collidecli.scene.contacts import ContactBlock
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.cell_ranges import BLOCK_ROWS, spans
from collidecli.storage.h5_unpack import ChunkRows

AGAIN = "make the contact set again"

ReadRows = Callable[[ChunkRows, h5py.Dataset, slice], np.ndarray]
"""Reads rows of a dataset; raises InputError for unreadable ones."""


class GroupTable:
    """One group of an open contact set. Columns are read on demand.

    definition: its columns, lists and references. row_count: number of rows. float_type: of columns that follow the
    motion.
    """

    def __init__(
        self,
        file: h5py.File,
        path: str,
        definition: ContactGroup,
        cell_count: int,
        float_type: np.dtype,
        read: ReadRows,
    ) -> None:
        """read: reads rows of a dataset. Raises InputError for missing datasets, and for other types and shapes."""
        self.definition, self.float_type, self._cell_count = definition, float_type, cell_count
        self._path, self._file, self._read = path, file, read
        self._chunks: dict[str, ChunkRows] = {}
        whole = np.dtype(np.int64)
        self.row_count = self._extent(definition.columns[0].name)
        for column in definition.columns:
            self._check(column.name, column.dtype_for(float_type), (self.row_count, *schema.row_shape(column)))
        self._check("cell_start", whole, (cell_count + 1,))
        self._value_count = {held.column.name: self._extent(held.column.name) for held in definition.lists}
        for held in definition.lists:
            extent = self._value_count[held.column.name]
            self._check(held.column.name, held.column.dtype_for(float_type), (extent, *schema.row_shape(held.column)))
            self._check(held.start, whole, (self.row_count + 1,))

    def _dataset(self, name: str) -> h5py.Dataset:
        if not self._file:
            raise InputError("the contact set is closed", self._path, "read it within its with block")
        dataset = self._file.get(f"/{self.definition.name}/{name}")
        if not isinstance(dataset, h5py.Dataset):
            raise InputError("the dataset is missing", self.where(name), AGAIN)
        return dataset

    def _extent(self, name: str) -> int:
        return int((self._dataset(name).shape or (0,))[0])

    def _check(self, name: str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        held = self._dataset(name)
        if held.shape != shape or held.dtype.kind not in "iuf" or not np.can_cast(held.dtype, dtype, "safe"):
            raise InputError(f"is {held.dtype}{held.shape}, not {dtype}{shape}", self.where(name), AGAIN)

    def where(self, name: str) -> str:
        """File and dataset, for messages."""
        return f"{self._path}: /{self.definition.name}/{name}"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns with one value or vector a row."""
        return self.definition.columns

    @property
    def dataset_names(self) -> tuple[str, ...]:
        """Names of all datasets of the group."""
        lists = (name for held in self.definition.lists for name in (held.column.name, held.start))
        return ("cell_start", *(column.name for column in self.columns), *lists)

    def value_count(self, name: str) -> int:
        """Number of values of all lists of a list column."""
        return self._value_count[name]

    def chunks(self, name: str) -> ChunkRows:
        """The chunked rows of a dataset of the group."""
        if name not in self._chunks or not self._file:
            self._chunks[name] = ChunkRows(self._dataset(name))
        return self._chunks[name]

    def column(self, name: str, rows: slice = slice(None)) -> np.ndarray:
        """Rows of one dataset of the group. Raises InputError for a missing one or a wrong checksum."""
        return self._read(self.chunks(name), self._dataset(name), rows)

    def cell_start(self, cells: slice = slice(None)) -> np.ndarray:
        """int64: first row of each cell; the last entry is the end of the last cell."""
        return self.column("cell_start", cells).astype(np.int64, copy=False)

    def _starts(self, name: str, first: int, last: int, end: int) -> np.ndarray:
        """int64: entries first to last of a dataset of starts. Raises InputError if they are not ascending to `end`."""
        start = self.column(name, slice(first, last + 1)).astype(np.int64, copy=False)
        if start[0] < 0 or start[-1] > end or (np.diff(start) < 0).any():
            where = f"{self.where(name)}, entries {first} to {last}"
            raise InputError(f"is not ascending from 0 to {end}", where, AGAIN)
        return start

    def row_starts(self, first: int, last: int) -> np.ndarray:
        """int64: first rows of cells first to last. Raises InputError if they are not ascending or out of range."""
        return self._starts("cell_start", first, last, self.row_count)

    def list_starts(self, name: str, first: int, last: int) -> np.ndarray:
        """int64: first values of the lists of rows first to last. Raises InputError as `row_starts`."""
        start = next(held.start for held in self.definition.lists if held.column.name == name)
        return self._starts(start, first, last, self._value_count[name])

    def rows(self, first: int, last: int, names: Iterable[str] | None = None) -> GroupRows:
        """The rows of cells first to last - 1, with references as in the file. names: the columns; None is all."""
        start = self.row_starts(first, last)
        rows = slice(int(start[0]), int(start[-1]))
        every = [column.name for column in self.columns] + list(self._value_count)
        wanted = every if names is None else list(names)
        columns = {name: self.column(name, rows) for name in wanted if name not in self._value_count}
        lists = {}
        for name in wanted:
            if name in self._value_count:
                values = self.list_starts(name, rows.start, rows.stop)
                lists[name] = np.diff(values), self.column(name, slice(int(values[0]), int(values[-1])))
        return GroupRows(np.diff(start), columns, lists)

    def blocks(
        self,
        max_rows: int = BLOCK_ROWS,
        names: Iterable[str] | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> Iterator[ContactBlock]:
        """The rows in blocks of whole cells as of `ContactSet.blocks`; columns are the group's, lists in `groups`."""
        end = self._cell_count if last is None else min(last, self._cell_count)
        for begin, stop in spans([self.cell_start], max_rows, first, end):
            rows = self.rows(begin, stop, names)
            yield ContactBlock(begin, rows.cell_counts, rows.columns, {self.definition.name: rows})


def groups_of(
    file: h5py.File, path: str, cell_count: int, float_type: np.dtype, read: ReadRows
) -> dict[str, GroupTable]:
    """The groups of a file by name. Raises InputError for a group that is not as the format specifies."""
    found: dict[str, GroupTable] = {}
    for group in GROUPS:
        if group.name not in file:
            continue
        if not isinstance(file[group.name], h5py.Group):
            raise InputError("is not a group", f"{path}: /{group.name}", AGAIN)
        for target in group.references.values():
            if target not in found:
                raise InputError(f"refers to /{target}, which is missing", f"{path}: /{group.name}", AGAIN)
        found[group.name] = GroupTable(file, path, group, cell_count, float_type, read)
    return found


def rows_of_cells(
    tables: Mapping[str, GroupTable], first: int, last: int, names: Mapping[str, Iterable[str]] | None = None
) -> dict[str, GroupRows]:
    """The rows of cells first to last - 1 of all groups, references counted from the first row of these cells.

    names: the columns of each group to read; None is all. Raises InputError for a row that refers to another cell than
    its own.
    """
    found: dict[str, GroupRows] = {}
    for name, table in tables.items():
        rows = found[name] = table.rows(first, last, None if names is None else names[name])
        for column, target in table.definition.references.items():
            if column not in rows.columns:
                continue
            begin = int(tables[target].row_starts(first, first)[0])
            numbers = rows.columns[column].astype(np.int64) - begin
            check_references(table, column, numbers, rows.cell_counts, found[target].cell_counts, first)
            rows.columns[column] = numbers
    return found


def check_references(
    table: GroupTable, column: str, numbers: np.ndarray, counts: np.ndarray, target_counts: np.ndarray, first: int
) -> None:
    """Raises InputError for a row that refers to another cell than its own. numbers: int64, from the first cell on."""
    ends = np.cumsum(target_counts)
    cell = np.repeat(np.arange(len(counts)), counts)
    outside = (numbers < (ends - target_counts)[cell]) | (numbers >= ends[cell])
    if outside.any():
        where = f"{table.where(column)}, cell {first + int(cell[int(np.argmax(outside))])}"
        target = table.definition.references[column]
        raise InputError(f"is no row of /{target} of its cell", where, AGAIN)
