"""Writer of the tables of contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collidecli.scene.contact_blocks import GroupRows
from collidecli.scene.contact_columns import Column, ContactGroup
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.contact_sets.header import row_shape
from collidecli.storage.content_hash import DatasetDigest
from collidecli.storage.h5_chunks import CHUNK_ROWS, ChunkedColumn, ChunkedColumns, ChunkThreads
from collidecli.storage.new_objects import NewObjects


class TableWriter:
    """Writes the rows of tables, block by block in the order of cells, with a few chunks of each
    dataset in memory.

    float_type: of the columns that follow the motion. digest: of the datasets. chunk_rows: 0 is
    CHUNK_ROWS. Raises ValueError for a table that refers to rows of a table that is not written.
    """

    def __init__(
        self,
        objects: NewObjects,
        tables: Sequence[ContactGroup],
        float_type: np.dtype,
        compression: str,
        digest: type[DatasetDigest],
        chunk_rows: int = 0,
    ) -> None:
        self.tables = {
            table.name: _Table(
                objects, table, float_type, compression, digest, chunk_rows or CHUNK_ROWS
            )
            for table in tables
        }
        for table in tables:
            if missing := set(table.references.values()) - set(self.tables):
                raise ValueError(
                    f"{table.name} refers to rows of {sorted(missing)}, which is not written"
                )

    def append(self, rows: Mapping[str, GroupRows], threads: ChunkThreads | None = None) -> None:
        """Adds the rows of the next cells. threads: for hashing and filtering; None is the calling
        thread."""
        if set(rows) != set(self.tables):
            raise ValueError(f"block has groups {sorted(rows)}, the file {sorted(self.tables)}")
        cell_count = len(next(iter(rows.values())).cell_counts)
        first_row = {name: table.row_count for name, table in self.tables.items()}
        for name, table in self.tables.items():
            if len(rows[name].cell_counts) != cell_count:
                raise ValueError(
                    f"table {name} has {len(rows[name].cell_counts)} cells, the block {cell_count}"
                )
            table.append(rows[name], first_row, threads)

    def finish(self, threads: ChunkThreads | None = None) -> list[DatasetDigest]:
        """Writes the last chunks; returns the datasets' digests."""
        return [digest for table in self.tables.values() for digest in table.finish(threads)]


class _Table:
    """One table of the file: its columns grow together, each list's values and every start on their
    own."""

    def __init__(
        self,
        objects: NewObjects,
        definition: ContactGroup,
        float_type: np.dtype,
        compression: str,
        digest: type[DatasetDigest],
        chunk_rows: int,
    ) -> None:
        def column(column: Column) -> ChunkedColumn:
            path = f"/{definition.name}/{column.name}"
            dtype = column.dtype_for(float_type)
            return ChunkedColumn(
                objects, path, dtype, row_shape(column), column.unit, compression, digest
            )

        starts = ("cell_start", *(entries.start for entries in definition.lists))
        self.row_count = 0
        self._definition = definition
        self._starts_of = [column(Column(name, "int64", 1, "", "")) for name in starts]
        self._rows_of = [column(row_column) for row_column in definition.columns]
        self._values_of = [column(entries.column) for entries in definition.lists]
        self.rows = ChunkedColumns(self._rows_of, chunk_rows)
        self._values = [ChunkedColumns([values], chunk_rows) for values in self._values_of]
        self._starts = [ChunkedColumns([starts], chunk_rows) for starts in self._starts_of]
        self._ends = [0] * len(self._starts)
        for starts in self._starts:
            starts.append([np.zeros(1, np.int64)])

    def append(
        self, rows: GroupRows, first_row: Mapping[str, int], threads: ChunkThreads | None
    ) -> None:
        """Adds rows. first_row: of each table in the file, at this block."""
        table = self._definition
        count = rows.row_count
        if set(rows.columns) != {column.name for column in table.columns}:
            raise ValueError(f"table {table.name} has columns {sorted(rows.columns)}")
        if set(rows.lists) != {entries.column.name for entries in table.lists}:
            raise ValueError(f"table {table.name} has lists {sorted(rows.lists)}")
        columns = [rows.columns[column.name] for column in table.columns]
        lists = [rows.lists[entries.column.name] for entries in table.lists]
        for values in (*columns, *(lengths for lengths, _ in lists)):
            if len(values) != count:
                raise ValueError(f"table {table.name}: a column has {len(values)} rows for {count}")
        for index, column in enumerate(table.columns):
            if column.name in table.references:
                columns[index] = columns[index] + columns[index].dtype.type(
                    first_row[table.references[column.name]]
                )
        self.rows.append(columns, threads)
        self._append_starts(0, rows.cell_counts)
        for index, (lengths, values) in enumerate(lists):
            if int(lengths.sum()) != len(values):
                raise ValueError(
                    f"table {table.name}: lists of {int(lengths.sum())} values have {len(values)}"
                )
            self._append_starts(index + 1, lengths)
            self._values[index].append([values], threads)
        self.row_count += count

    def _append_starts(self, index: int, lengths: np.ndarray) -> None:
        ends = self._ends[index] + np.cumsum(lengths, dtype=np.int64)
        if len(ends):
            self._ends[index] = int(ends[-1])
        self._starts[index].append([ends])

    def finish(self, threads: ChunkThreads | None) -> list[DatasetDigest]:
        for grown in (*self._starts, self.rows, *self._values):
            grown.finish(threads)
        return [stored.digest for stored in (*self._starts_of, *self._rows_of, *self._values_of)]


TYPE_LABELS = {int(kind): kind.label for kind in ShapeType}
