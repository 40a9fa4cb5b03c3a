"""Writer of the groups of a contact set beside /rigid_contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collidecli.scene.columns import Column
from collidecli.scene.contact_groups import ContactGroup, GroupRows
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.content_hash import DatasetDigest
from collidecli.storage.h5_chunks import CHUNK_ROWS, ChunkedColumn, ChunkedColumns, ChunkThreads
from collidecli.storage.h5_objects import NewObjects


class GroupWriter:
    """Writes the rows of groups, block by block in the order of cells, with a few chunks of each dataset in memory.

    float_type: of the columns that follow the motion. digest: of the datasets. chunk_rows: 0 is CHUNK_ROWS.
    Raises ValueError for a group that refers to rows of a group that is not written.
    """

    def __init__(
        self,
        objects: NewObjects,
        groups: Sequence[ContactGroup],
        float_type: np.dtype,
        compression: str,
        digest: type[DatasetDigest],
        chunk_rows: int = 0,
    ) -> None:
        self._tables = {
            group.name: _Table(objects, group, float_type, compression, digest, chunk_rows or CHUNK_ROWS)
            for group in groups
        }
        names = {group.name for group in groups}
        for group in groups:
            if missing := set(group.references.values()) - names:
                raise ValueError(f"{group.name} refers to rows of {sorted(missing)}, which is not written")

    def append(self, groups: Mapping[str, GroupRows], cell_count: int, threads: ChunkThreads | None = None) -> None:
        """Adds the rows of the next cells. threads: for hashing and filtering; None is the calling thread."""
        if set(groups) != set(self._tables):
            raise ValueError(f"block has groups {sorted(groups)}, the file {sorted(self._tables)}")
        first_row = {name: table.row_count for name, table in self._tables.items()}
        for name, table in self._tables.items():
            rows = groups[name]
            if len(rows.cell_counts) != cell_count:
                raise ValueError(f"group {name} has {len(rows.cell_counts)} cells, the block {cell_count}")
            table.append(rows, first_row, threads)

    def finish(self, threads: ChunkThreads | None = None) -> list[DatasetDigest]:
        """Writes the last chunks; returns the datasets' digests."""
        return [digest for table in self._tables.values() for digest in table.finish(threads)]


class _Table:
    """One group of the file: its columns grow together, each list's values and every start on their own."""

    def __init__(
        self,
        objects: NewObjects,
        group: ContactGroup,
        float_type: np.dtype,
        compression: str,
        digest: type[DatasetDigest],
        chunk_rows: int,
    ) -> None:
        def column(definition: Column) -> ChunkedColumn:
            path, dtype = f"/{group.name}/{definition.name}", definition.dtype_for(float_type)
            row_shape = schema.row_shape(definition)
            return ChunkedColumn(objects, path, dtype, row_shape, definition.unit, compression, digest)

        def start(name: str) -> ChunkedColumn:
            return ChunkedColumn(objects, f"/{group.name}/{name}", np.dtype(np.int64), (), "", compression, digest)

        self.row_count = 0
        self._group = group
        self._rows_of = [column(definition) for definition in group.columns]
        self._values_of = [column(held.column) for held in group.lists]
        self._starts_of = [start("cell_start"), *(start(held.start) for held in group.lists)]
        self._rows = ChunkedColumns(self._rows_of, chunk_rows)
        self._values = [ChunkedColumns([values], chunk_rows) for values in self._values_of]
        self._starts = [ChunkedColumns([starts], chunk_rows) for starts in self._starts_of]
        self._ends = [0] * len(self._starts)
        for starts in self._starts:
            starts.append([np.zeros(1, np.int64)])

    def append(self, rows: GroupRows, first_row: Mapping[str, int], threads: ChunkThreads | None) -> None:
        """Adds rows. first_row: of each group in the file, at this block."""
        group = self._group
        if set(rows.columns) != {column.name for column in group.columns}:
            raise ValueError(f"group {group.name} has columns {sorted(rows.columns)}")
        if set(rows.lists) != {held.column.name for held in group.lists}:
            raise ValueError(f"group {group.name} has lists {sorted(rows.lists)}")
        count = rows.row_count
        columns = [rows.columns[column.name] for column in group.columns]
        lists = [rows.lists[held.column.name] for held in group.lists]
        for values in (*columns, *(lengths for lengths, _ in lists)):
            if len(values) != count:
                raise ValueError(f"group {group.name}: a column has {len(values)} rows for {count}")
        for index, column in enumerate(group.columns):
            if column.name in group.references:
                columns[index] = columns[index] + columns[index].dtype.type(first_row[group.references[column.name]])
        self._rows.append(columns, threads)
        self._append_starts(0, rows.cell_counts)
        for index, (lengths, values) in enumerate(lists):
            if int(lengths.sum()) != len(values):
                raise ValueError(f"group {group.name}: lists of {int(lengths.sum())} values have {len(values)}")
            self._append_starts(index + 1, lengths)
            self._values[index].append([values], threads)
        self.row_count += count

    def _append_starts(self, index: int, lengths: np.ndarray) -> None:
        ends = self._ends[index] + np.cumsum(lengths, dtype=np.int64)
        if len(ends):
            self._ends[index] = int(ends[-1])
        self._starts[index].append([ends])

    def finish(self, threads: ChunkThreads | None) -> list[DatasetDigest]:
        for grown in (*self._starts, self._rows, *self._values):
            grown.finish(threads)
        return [each.digest for each in (*self._starts_of, *self._rows_of, *self._values_of)]
