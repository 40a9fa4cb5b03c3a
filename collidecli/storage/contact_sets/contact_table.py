"""Reader of one table of contacts."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock, GroupRows
from collidecli.scene.contact_columns import RIGID_CONTACTS, TABLES, Column, ContactGroup
from collidecli.storage.chunk_rows import ChunkRows
from collidecli.storage.contact_sets import header
from collidecli.storage.contact_sets.spans import BLOCK_ROWS, spans

AGAIN = "make the contact set again"


class ContactTable:
    """One table of contacts of an open contact set. Columns are read on demand.

    definition: its columns, lists and references; the optional columns are those of the file.
    names: of all columns and lists, with columns that this version does not know. row_count: number
    of rows.
    """

    def __init__(
        self,
        file: h5py.File,
        path: str,
        definition: ContactGroup,
        float_type: np.dtype,
        cells: tuple[int, int],
        extra: Sequence[str] = (),
    ) -> None:
        """float_type: of columns that follow the motion. cells: numbers of frames and of worlds.
        extra: more columns.

        Raises InputError for missing datasets, and for other types and shapes.
        """
        self.definition = definition
        self._path = path
        self._file = file
        self._cell_count = cells[0] * cells[1]
        self._chunks: dict[str, ChunkRows] = {}
        self._held: dict[str, h5py.Dataset] = {}
        whole = np.dtype(np.int64)
        reason = f": {cells[0]} frames of {cells[1]} worlds, and one more"
        self._check("cell_start", whole, (self._cell_count + 1,), reason)
        self.row_count = self._extent(definition.columns[0].name)
        self._value_count = {
            entries.column.name: self._extent(entries.column.name) for entries in definition.lists
        }
        for entries in definition.lists:
            self._check(entries.start, whole, (self.row_count + 1,))
        for column in (*definition.columns, *(entries.column for entries in definition.lists)):
            extent = self._value_count.get(column.name, self.row_count)
            self._check(
                column.name, column.dtype_for(float_type), (extent, *header.row_shape(column))
            )
        required = (column.name for column in definition.columns if column.name not in extra)
        self.names = (*required, *extra, *self._value_count)

    def _dataset(self, name: str) -> h5py.Dataset:
        if not self._file:
            raise InputError(
                "the contact set is closed", self._path, "read it within its with block"
            )
        if name not in self._held:
            self._held[name] = dataset_of_table(
                self._file, self._path, f"/{self.definition.name}/{name}", AGAIN
            )
        return self._held[name]

    def _extent(self, name: str) -> int:
        return int((self._dataset(name).shape or (0,))[0])

    def _check(self, name: str, dtype: np.dtype, shape: tuple[int, ...], reason: str = "") -> None:
        dataset = self._dataset(name)
        if dataset.shape != shape or not is_kind(dataset.dtype, dtype):
            raise InputError(
                f"is {dataset.dtype}{dataset.shape}, not {dtype}{shape}{reason}",
                self.where(name),
                AGAIN,
            )

    def where(self, name: str) -> str:
        """File and dataset, for messages."""
        return f"{self._path}: /{self.definition.name}/{name}"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns with one value or vector a row, that this version knows."""
        return self.definition.columns

    def value_count(self, name: str) -> int:
        """Number of values of all lists of a list column."""
        return self._value_count[name]

    def chunks(self, name: str) -> ChunkRows:
        """The chunked rows of a dataset of the table. Raises InputError for a missing one."""
        if self._file and name not in self.names and name not in self.definition.dataset_names:
            what = f"it has {', '.join((*self.names, 'cell_start'))}"
            raise InputError(f"there is no column '{name}'", self._path, what)
        if name not in self._chunks or not self._file:
            self._chunks[name] = ChunkRows(self._dataset(name))
        return self._chunks[name]

    def column(self, name: str, rows: slice = slice(None)) -> np.ndarray:
        """Rows of one dataset, [n] or [n, width]. Raises InputError for a missing one or a wrong
        checksum."""
        chunks = self.chunks(name)
        try:
            return chunks.read(rows)
        except OSError as error:
            raise read_error(self._path, self._dataset(name), rows, error) from error

    def cell_start(self, cells: slice = slice(None)) -> np.ndarray:
        """int64: first row of each cell; the last entry is the end of the last cell."""
        return self.column("cell_start", cells).astype(np.int64, copy=False)

    def _starts(self, name: str, first: int, last: int, end: int) -> np.ndarray:
        """int64: entries first to last of a dataset of starts. Raises InputError if they are not
        ascending to `end`."""
        start = self.column(name, slice(first, last + 1)).astype(np.int64, copy=False)
        if start[0] < 0 or start[-1] > end or (np.diff(start) < 0).any():
            where = f"{self.where(name)}, entries {first} to {last}"
            raise InputError(f"is not ascending from 0 to {end}", where, AGAIN)
        return start

    def row_starts(self, first: int, last: int) -> np.ndarray:
        """int64: first rows of cells first to last. Raises InputError if they are not ascending or
        out of range."""
        return self._starts("cell_start", first, last, self.row_count)

    def rows(self, first: int, last: int, names: Iterable[str] | None = None) -> GroupRows:
        """The rows of cells first to last - 1, with references as in the file. names: the columns;
        None is all."""
        start = self.row_starts(first, last)
        rows = slice(int(start[0]), int(start[-1]))
        wanted = list(self.names if names is None else names)
        columns = {
            name: self.column(name, rows) for name in wanted if name not in self._value_count
        }
        lists = {}
        starts = {entries.column.name: entries.start for entries in self.definition.lists}
        for name in filter(starts.__contains__, wanted):
            values = self._starts(starts[name], rows.start, rows.stop, self._value_count[name])
            lists[name] = np.diff(values), self.column(name, slice(int(values[0]), int(values[-1])))
        return GroupRows(np.diff(start), columns, lists)

    def blocks(
        self,
        max_rows: int = BLOCK_ROWS,
        names: Iterable[str] | None = None,
        first: int = 0,
        last: int | None = None,
    ) -> Iterator[ContactBlock]:
        """The rows in blocks of whole cells as of `ContactSet.blocks`; columns are the table's,
        lists in `groups`."""
        end = self._cell_count if last is None else min(last, self._cell_count)
        for begin, stop in spans([self.cell_start], max_rows, first, end):
            rows = self.rows(begin, stop, names)
            yield ContactBlock(begin, rows.cell_counts, rows.columns, {self.definition.name: rows})


def dataset_of_table(file: h5py.File, path: str, name: str, fix: str = "") -> h5py.Dataset:
    """A dataset by its absolute name. Raises InputError for a closed file and a missing dataset."""
    if not file:
        raise InputError("the contact set is closed", path, "read it within its with block")
    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset):
        raise InputError("the dataset is missing", f"{path}: {name}", fix)
    return dataset


def tables_of_file(
    file: h5py.File, path: str, cells: tuple[int, int], names: Container[str], optional: bool
) -> dict[str, ContactTable]:
    """Those tables of a file that are in `names`, by name. optional: whether it may have optional
    columns.

    Raises InputError for a table that is not as the format specifies.
    """
    tables: dict[str, ContactTable] = {}
    # of the rigid contacts, whose points give the type of the other tables' points
    float_type = np.dtype(np.float64)
    for definition in TABLES:
        where = f"{path}: /{definition.name}"
        group = file.get(f"/{definition.name}") if definition.name in names else None
        if group is None and definition is not RIGID_CONTACTS:
            continue
        if not isinstance(group, h5py.Group):
            raise InputError("is missing" if group is None else "is not a group", where, AGAIN)
        for target in definition.references.values():
            if target not in tables:
                raise InputError(f"refers to /{target}, which is missing", where, AGAIN)
        is_rigid = definition is RIGID_CONTACTS
        extra = (
            [str(name) for name in group if name not in definition.dataset_names]
            if is_rigid
            else ()
        )
        definition = definition.having(group if optional else ())
        tables[definition.name] = ContactTable(file, path, definition, float_type, cells, extra)
        if is_rigid:
            float_type = tables[definition.name].chunks("point0").dtype
    return tables


def rows_of_cells(
    tables: Mapping[str, ContactTable],
    first: int,
    last: int,
    names: Mapping[str, Iterable[str]] | None = None,
) -> dict[str, GroupRows]:
    """The rows of cells first to last - 1 of all groups, references counted from the first row of
    these cells.

    names: the columns of each group to read; None is all. Raises InputError for a row that refers
    to another cell than its own.
    """
    rows_of_tables: dict[str, GroupRows] = {}
    for name, table in tables.items():
        rows = rows_of_tables[name] = table.rows(
            first, last, None if names is None else names[name]
        )
        for column, target in table.definition.references.items():
            if column not in rows.columns:
                continue
            begin = int(tables[target].row_starts(first, first)[0])
            numbers = rows.columns[column] = rows.columns[column].astype(np.int64) - begin
            ends = np.cumsum(rows_of_tables[target].cell_counts)
            cell = np.repeat(np.arange(last - first), rows.cell_counts)
            outside = (numbers < (ends - rows_of_tables[target].cell_counts)[cell]) | (
                numbers >= ends[cell]
            )
            if outside.any():
                where = f"{table.where(column)}, cell {first + int(cell[int(np.argmax(outside))])}"
                raise InputError(f"is no row of /{target} of its cell", where, AGAIN)
    return rows_of_tables


def is_kind(dtype: np.dtype, wanted: np.dtype | None) -> bool:
    """Whether every value of type `dtype` is a value of type `wanted`; None is strings."""
    if wanted is None:
        return h5py.check_string_dtype(dtype) is not None
    return dtype.kind in "iuf" and np.can_cast(dtype, wanted, "safe")


def read_error(path: str, dataset: h5py.Dataset, rows: slice, error: OSError) -> InputError:
    """The error for a failed read of `dataset`."""
    what = f"cannot be read: {str(error).splitlines()[0]}"
    if "filter returned failure" in str(error):
        what = "a chunk is damaged: its checksum does not match"
    stop = dataset.shape[0] if rows.stop is None else rows.stop
    return InputError(
        what, f"{path}: {dataset.name}, rows {rows.start or 0} to {stop}", "make the file again"
    )
