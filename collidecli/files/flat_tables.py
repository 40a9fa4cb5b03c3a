"""Tables of equal columns written a piece at a time: CSV and Parquet."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from collidecli.errors import missing_extra
from collidecli.files.atomic_output import AtomicOutput

GROUP_ROWS = 65536
"""Rows of Parquet that are held until they are written together."""

Columns = Mapping[str, np.ndarray]
"""By name: numbers, bool, or objects that are str. Of numbers NaN stands for none."""


class FlatTable(Protocol):
    """A context manager; leaving it without `finish` leaves no file."""

    def append(self, columns: Columns) -> None: ...
    def finish(self) -> None: ...
    def __enter__(self) -> FlatTable: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class CsvTable:
    """Comma-separated, UTF-8, a line of names first; NaN is empty, bool is true or false."""

    def __init__(self, path: str | os.PathLike[str], force: bool = False) -> None:
        self._output = AtomicOutput(path, force)
        self._begun = False

    def append(self, columns: Columns) -> None:
        text = io.StringIO(newline="")
        rows = csv.writer(text, lineterminator="\n")
        if not self._begun:
            rows.writerow(columns)
            self._begun = True
        rows.writerows(zip(*(_texts(values) for values in columns.values()), strict=True))
        self._output.write(text.getvalue().encode("utf-8", "backslashreplace"))
        self._output.check()

    def finish(self) -> None:
        self._output.commit()

    def __enter__(self) -> CsvTable:
        self._output.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.discard()


def _texts(values: np.ndarray) -> list[Any]:
    if values.dtype.kind == "b":
        return np.where(values, "true", "false").tolist()
    if values.dtype.kind == "f":
        # As a text a float32 has no more digits than it needs; as a Python float it would.
        return ["" if text == "nan" else text for text in values.astype(str).tolist()]
    return values.tolist()


class ParquetTable:
    """Parquet through pyarrow; NaN is null.

    Raises InputError where pyarrow is not installed.
    """

    def __init__(self, path: str | os.PathLike[str], force: bool = False, wanted_for: str = "Parquet") -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise missing_extra("pyarrow", "tables", wanted_for) from error
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        self._output = AtomicOutput(path, force)
        self._writer: Any = None
        self._held: list[Any] = []
        self._rows = 0

    def append(self, columns: Columns) -> None:
        table = self._arrow.table({name: self._column(values) for name, values in columns.items()})
        self._held.append(table)
        self._rows += len(table)
        if self._rows >= GROUP_ROWS:
            self._write()

    def _column(self, values: np.ndarray) -> Any:
        if values.dtype.kind != "O":
            return self._arrow.array(values, from_pandas=True)
        return self._arrow.array(values, type=self._arrow.string())

    def _write(self) -> None:
        table = self._arrow.concat_tables(self._held)
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._arrow.PythonFile(_Sink(self._output), "w"), table.schema)
        self._writer.write_table(table)
        self._held, self._rows = [], 0
        self._output.check()

    def finish(self) -> None:
        self._write()
        self._writer.close()
        self._writer = None
        self._output.commit()

    def __enter__(self) -> ParquetTable:
        self._output.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()
        self._output.discard()


class _Sink:
    """An AtomicOutput as pyarrow wants a file; closing it does not put it into place."""

    closed = False

    def __init__(self, output: AtomicOutput) -> None:
        self._output = output

    def write(self, data: bytes) -> int:
        return self._output.write(memoryview(data))

    def tell(self) -> int:
        return self._output.tell()

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        """Whoever owns the output closes it."""
