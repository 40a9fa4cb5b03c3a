"""Flat tables, CSV or Parquet, block by block to an atomic output."""

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.errors import extra_module
from collidecli.escaping import csv_text, unicode_text
from collidecli.scene.motion import SECOND
from collidecli.storage.atomic_output import AtomicOutput

CSV_LINES = 32768
"""Lines of CSV in one vectorized step."""
GROUP_ROWS = 65536
"""Least rows of a Parquet row group, except the last; as many are in memory."""
Append = Callable[..., None]
"""Appends rows, given as values [n] by column name. Raises OutputError after a failed write."""


@dataclass(frozen=True)
class TableColumn:
    """A column of numbers or bool. unit: "" for none. words: texts that the values index; None for
    plain values.

    nan_is_none: NaN of floats is a missing value: an empty cell, a null.
    """

    name: str
    dtype: np.dtype
    unit: str = ""
    words: tuple[str, ...] | None = None
    nan_is_none: bool = False


def cell_columns(
    episodes: Sequence[str] | None, time_unit: str = SECOND
) -> tuple[TableColumn, ...]:
    """The columns of a row's place: frame, step, time and world, and the episode of a motion that
    has episodes. episodes: their names."""
    whole = np.dtype(np.int64)
    return (
        TableColumn("frame", whole),
        TableColumn("step", whole),
        TableColumn("time", np.dtype(np.float64), time_unit),
        TableColumn("world", whole),
        *([] if episodes is None else [TableColumn("episode", whole, words=("", *episodes))]),
    )


@contextmanager
def csv_table(output: AtomicOutput, columns: Sequence[TableColumn]) -> Iterator[Append]:
    """CSV by RFC 4180 in UTF-8, with a header line; lines end with LF; bool is true or false; texts
    are `csv_text`.

    Numbers have the shortest text that parses to an equal float32 or float64. The caller commits
    the output.
    """
    output.write((",".join(csv_text(column.name) for column in columns) + "\n").encode())
    words = {
        column.name: np.array([csv_text(w) for w in column.words or ()], object)
        for column in columns
    }

    def append(block: Mapping[str, np.ndarray]) -> None:
        count = len(next(iter(block.values())))
        for first in range(0, count, CSV_LINES):
            rows = slice(first, first + CSV_LINES)
            texts = [
                _texts(column, block[column.name][rows], words[column.name]) for column in columns
            ]
            output.write(("\n".join(map(",".join, zip(*texts, strict=True))) + "\n").encode())
            output.check()

    yield append
    output.check()


def _texts(column: TableColumn, values: np.ndarray, words: np.ndarray) -> list[str]:
    if column.words is not None:
        return words[values].tolist()
    # Frames, times and normals repeat in consecutive rows, and formatting a float is slow: each
    # distinct value is formatted once. Values are compared by bits, as 0 and -0 have different
    # texts.
    values = np.ascontiguousarray(values, column.dtype)
    bits, index = np.unique(values.view(f"u{values.itemsize}"), return_inverse=True)
    return np.array(_formatted(bits.view(column.dtype), column.nan_is_none), object)[index].tolist()


def _formatted(values: np.ndarray, nan_is_none: bool) -> list[str]:
    if values.dtype.kind == "b":
        return ["true" if value else "false" for value in values.tolist()]
    # A float32 converted to a Python float would have superfluous digits.
    texts = [str(value) for value in (values if values.dtype == np.float32 else values.tolist())]
    return ["" if text == "nan" else text for text in texts] if nan_is_none else texts


def require_pyarrow(wanted_for: str) -> Any:
    """The package pyarrow. Raises InputError if it is not installed. wanted_for: the option that
    requires it."""
    pyarrow = extra_module("pyarrow", "tables", wanted_for)
    extra_module("pyarrow", "tables", wanted_for, "pyarrow.parquet")
    return pyarrow


@contextmanager
def parquet_table(
    output: AtomicOutput, columns: Sequence[TableColumn], about: Mapping[str, str] | None = None
) -> Iterator[Append]:
    """Parquet through pyarrow: words as dictionaries, units as metadata of fields, `about` as that
    of the file.

    `append` takes words of a block, by column, in place of those of the column.
    The owner of the output commits it, and calls `require_pyarrow` before opening it.
    """
    pa = require_pyarrow("Parquet")
    schema = _schema(pa, columns, about)
    words = _words(pa, columns)
    batches: list[Any] = []

    with (
        pa.PythonFile(_Sink(output), mode="w") as sink,
        pa.parquet.ParquetWriter(sink, schema) as writer,
    ):

        def write_held() -> None:
            table = pa.Table.from_batches(batches, schema).unify_dictionaries()
            batches.clear()
            writer.write_table(table, row_group_size=max(len(table), 1))
            output.check()

        def append(
            block: Mapping[str, np.ndarray],
            texts_of_block: Mapping[str, Sequence[str]] | None = None,
        ) -> None:
            of_block = words | {
                name: _text_array(pa, texts) for name, texts in (texts_of_block or {}).items()
            }
            batches.append(_batch(pa, columns, schema, of_block, block))
            if sum(map(len, batches)) >= GROUP_ROWS:
                write_held()

        yield append
        if batches:
            write_held()
    output.check()


def record_batch(columns: Sequence[TableColumn], block: Mapping[str, np.ndarray]) -> Any:
    """Rows as a record batch of pyarrow, with the schema of `parquet_table`."""
    pa = require_pyarrow("Parquet")
    return _batch(pa, columns, _schema(pa, columns), _words(pa, columns), block)


def _schema(pa: Any, columns: Sequence[TableColumn], about: Mapping[str, str] | None = None) -> Any:
    fields = []
    for column in columns:
        kind = (
            pa.dictionary(pa.int32(), pa.string())
            if column.words is not None
            else pa.from_numpy_dtype(column.dtype)
        )
        unit = {"unit": column.unit} if column.unit else None
        fields.append(pa.field(column.name, kind, nullable=column.nan_is_none, metadata=unit))
    return pa.schema(fields, dict(about or {}))


def _words(pa: Any, columns: Sequence[TableColumn]) -> dict[str, Any]:
    return {
        column.name: _text_array(pa, column.words) for column in columns if column.words is not None
    }


def _text_array(pa: Any, texts: Sequence[str]) -> Any:
    return pa.array(list(map(unicode_text, texts)), pa.string())


def _batch(
    pa: Any,
    columns: Sequence[TableColumn],
    schema: Any,
    words: Mapping[str, Any],
    block: Mapping[str, np.ndarray],
) -> Any:
    arrays = []
    for column in columns:
        values = block[column.name]
        of_column = words.get(column.name)
        if of_column is not None:
            arrays.append(
                pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), of_column)
            )
        else:
            arrays.append(
                pa.array(np.ascontiguousarray(values, column.dtype), from_pandas=column.nan_is_none)
            )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Sink:
    """File interface of the output for pyarrow; closing it leaves the output open for its owner to
    commit."""

    def __init__(self, output: AtomicOutput) -> None:
        self._output = output
        self.closed = False

    def write(self, data: Any) -> int:
        return self._output.write(memoryview(data))

    def tell(self) -> int:
        return self._output.tell()

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        self.closed = True
