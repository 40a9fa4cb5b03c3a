"""Parquet through pyarrow, a row group for each block that is read."""

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.files.atomic_output import AtomicOutput
from collidecli.files.exports.rows import FlatTable, RowColumn


def require_pyarrow() -> Any:
    """The package pyarrow. Raises InputError where it is not installed."""
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise InputError(
            "Parquet needs the package pyarrow, which is not installed",
            "--to parquet",
            "pip install 'collidecli[tables]', or choose csv or npz",
        ) from error


def write_parquet(output: AtomicOutput, table: FlatTable, about: Mapping[str, str]) -> None:
    """Words as dictionaries; units as metadata of fields, `about` as that of the file. Raises OutputError."""
    pa = require_pyarrow()
    schema = pa.schema([_field(pa, column) for column in table.columns], dict(about))
    words = {column.name: pa.array(column.words, pa.string()) for column in table.columns if column.words}
    with pa.PythonFile(_Sink(output), mode="w") as sink, pa.parquet.ParquetWriter(sink, schema) as writer:
        for block in table.blocks():
            arrays = [_array(pa, column, block[column.name], words.get(column.name)) for column in table.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            output.check()
    output.check()


def _field(pa: Any, column: RowColumn) -> Any:
    kind = pa.dictionary(pa.int32(), pa.string()) if column.words else pa.from_numpy_dtype(column.dtype)
    return pa.field(column.name, kind, nullable=False, metadata={"unit": column.unit} if column.unit else None)


def _array(pa: Any, column: RowColumn, values: np.ndarray, words: Any) -> Any:
    if words is not None:
        return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), words)
    return pa.array(np.ascontiguousarray(values, column.dtype))


class _Sink:
    """The output as pyarrow uses a file; closing it leaves the output open, for its owner to commit."""

    def __init__(self, output: AtomicOutput) -> None:
        self._output, self.closed = output, False

    def write(self, data: Any) -> int:
        return self._output.write(memoryview(data))

    def tell(self) -> int:
        return self._output.tell()

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        self.closed = True
