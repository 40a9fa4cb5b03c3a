"""Rows of sensors: in memory up to a limit, beyond it in a temporary file."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import fields
from typing import Any, BinaryIO

import numpy as np

from collidecli.analysis.sensor_contacts import SensorRows
from collidecli.storage.regular_files import open_input
from collidecli.temporary_folders import TemporaryFolder

NOMINAL = "nominal"


def record_type(nominal_width: int) -> np.dtype:
    """The type of a row as it is stored. nominal_width: of `SensorRows.nominal`."""
    shapes = {**dict.fromkeys(SensorRows.VECTORS, (3,)), NOMINAL: (nominal_width,), "distance": ()}
    return np.dtype(
        [
            (name, np.float64, shapes[name]) if name in shapes else (name, np.int64)
            for name in (each.name for each in fields(SensorRows))
        ]
    )


class SensorRowStore:
    """Rows of sensors in parts, each in the order of its cells.

    Of each row its cell, column and distance stay in memory, 20 bytes. limit: of the rows in
    memory [bytes]; the parts are in a temporary file from the first one on that exceeds it. No two
    rows have one cell and one column. nominal_width: of `SensorRows.nominal`.
    """

    def __init__(self, limit: int, nominal_width: int = 0) -> None:
        self.nominal_width = nominal_width
        self._record = record_type(nominal_width)
        self._limit = limit
        self._kept: list[np.ndarray] = []
        self._cells: list[np.ndarray] = []
        self._columns: list[np.ndarray] = []
        self._distances: list[np.ndarray] = []
        self._stack = ExitStack()
        self._path = ""
        self._file: BinaryIO | None = None
        self._starts = [0]

    def __enter__(self) -> SensorRowStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def is_in_file(self) -> bool:
        """Whether the rows are in a file."""
        return self._file is not None

    def add(self, rows: SensorRows) -> None:
        """Adds a part. Raises OSError for a temporary file that cannot be written."""
        if not len(rows.cell):
            return
        rows = rows.take(np.lexsort((rows.column, rows.cell)))
        record = np.empty(len(rows.cell), self._record)
        for name in self._record.names or ():
            record[name] = getattr(rows, name)
        self._cells.append(rows.cell)
        self._columns.append(rows.column.astype(np.int32))
        self._distances.append(rows.distance)
        self._starts.append(self._starts[-1] + len(record))
        if self._file is None and self._starts[-1] * self._record.itemsize > self._limit:
            folder = self._stack.enter_context(TemporaryFolder("sensors"))
            self._path = os.path.join(folder, "rows")
            self._file = self._stack.enter_context(open(self._path, "wb"))  # noqa: SIM115
            for part in self._kept:
                self._file.write(part.tobytes())
            self._kept = []
        if self._file is None:
            self._kept.append(record)
        else:
            self._file.write(record.tobytes())

    def keys(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cell int64[n], column int64[n] and distance float64[n] of all rows."""
        return (
            np.concatenate([np.zeros(0, np.int64), *self._cells]),
            np.concatenate([np.zeros(0, np.int64), *self._columns]),
            np.concatenate([np.zeros(0), *self._distances]),
        )

    def of_cells(self, first: int, last: int) -> SensorRows:
        """The rows of cells first to last - 1, ordered by column, then cell."""
        parts = [np.empty(0, self._record)]
        if self._file is not None:
            self._file.flush()
        with ExitStack() as stack:
            file: Any = stack.enter_context(open_input(self._path)) if self._path else None
            for number, cells in enumerate(self._cells):
                low, high = np.searchsorted(cells, (first, last)).tolist()
                if low == high:
                    continue
                if file is None:
                    parts.append(self._kept[number][low:high])
                    continue
                file.seek((self._starts[number] + low) * self._record.itemsize)
                content = file.read((high - low) * self._record.itemsize)
                parts.append(np.frombuffer(content, self._record))
        record = np.concatenate(parts)
        record = record[np.lexsort((record["cell"], record["column"]))]
        names = self._record.names or ()
        return SensorRows(*(np.ascontiguousarray(record[name]) for name in names))
