"""Rows of the Parquet files of a recording, in bounded memory."""

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from collidecli.errors import InputError, extra_module
from collidecli.storage.regular_files import require_regular_file
from collidecli.wording import some_names

INTEGER = 0
"""Width of a column of integers."""
BATCH_ROWS = 65536
"""Rows that are decoded at a time: a few bytes of a file can be any number of equal rows."""
AGAIN = "copy or download the data set again"


def parquet_rows(
    path: str,
    columns: Mapping[str, int],
    most_rows: int,
    among: tuple[str, Collection[int]] | None = None,
) -> dict[str, np.ndarray]:
    """Columns of a file by name: int64[n] of an INTEGER, float64[n, k] of a width of k numbers.

    columns: widths by name. among: an INTEGER column and values; only the rows with one of them.
    Raises InputError for a damaged or missing file, columns that are missing or of another type or
    width, missing values, and more than `most_rows` rows.
    """
    require_regular_file(path, "Parquet file", AGAIN)
    try:
        parts = list(_parts(path, columns, most_rows, among))
    except InputError:
        raise
    except Exception as error:  # pyarrow has errors of several types for damaged files
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"cannot be read: {said}", path, AGAIN) from error
    return {name: np.concatenate([part[name] for part in parts]) for name in columns}


def _parts(
    path: str,
    columns: Mapping[str, int],
    most_rows: int,
    among: tuple[str, Collection[int]] | None,
) -> Iterator[dict[str, np.ndarray]]:
    """The rows of `parquet_rows`, some at a time."""
    parquet = extra_module("pyarrow", "tables", "LeRobot data sets", "pyarrow.parquet")
    file = parquet.ParquetFile(path)
    names = file.schema_arrow.names
    if missing := [name for name in columns if name not in names]:
        raise InputError(f"has no column {some_names(missing)}", path, AGAIN)
    groups = [k for k in range(file.num_row_groups) if among is None or _may_have(file, k, *among)]
    declared = sum(file.metadata.row_group(k).num_rows for k in groups)
    read = kept = 0
    yield {
        name: np.zeros((0, width)) if width else np.zeros(0, np.int64)
        for name, width in columns.items()
    }
    for batch in file.iter_batches(BATCH_ROWS, groups, list(columns)):
        read += len(batch)
        values = {
            name: _values(batch.column(name), width, f"{path}: {name}")
            for name, width in columns.items()
        }
        if among is not None:
            is_chosen = np.isin(values[among[0]], list(among[1]))
            values = {name: column[is_chosen] for name, column in values.items()}
        kept += len(next(iter(values.values())))
        if kept > most_rows:
            what = f"has more rows than the {most_rows} that are expected here"
            raise InputError(what, path, AGAIN)
        yield values
    every = sum(file.metadata.row_group(k).num_rows for k in range(file.num_row_groups))
    if read != declared or every != file.metadata.num_rows:
        what = f"declares {file.metadata.num_rows} rows, its groups {every}; {read} were read"
        raise InputError(what, path, AGAIN)


def _may_have(file: Any, group: int, name: str, values: Collection[int]) -> bool:
    """Whether a row group may have rows with one of some values of a column, by its statistics."""
    column = file.metadata.row_group(group).column(file.schema_arrow.names.index(name))
    known = column.statistics if column.path_in_schema == name else None
    if known is None or not known.has_min_max or not isinstance(known.min, int):
        return True
    return any(known.min <= value <= known.max for value in values)


def _values(column: Any, width: int, where: str) -> np.ndarray:
    """The values of a column. Raises InputError for another type or width, and missing rows."""
    types = extra_module("pyarrow", "tables", "LeRobot data sets").types
    if column.null_count:
        raise InputError("has rows without a value", where, AGAIN)
    if width == INTEGER:
        if not types.is_integer(column.type):
            raise InputError(f"is {column.type}, not an integer", where, AGAIN)
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64)
    is_list = types.is_list(column.type) or types.is_large_list(column.type)
    numbers = column.flatten() if is_list or types.is_fixed_size_list(column.type) else column
    if not (types.is_floating(numbers.type) or types.is_integer(numbers.type)):
        raise InputError(f"is {column.type}, not numbers", where, AGAIN)
    lengths = column.value_lengths().to_numpy(zero_copy_only=False) if is_list else np.zeros(0)
    other = lengths[lengths != width]
    if len(numbers) != width * len(column) or len(other):
        found = int(other[0]) if len(other) else len(numbers) // len(column)
        raise InputError(f"has {found} numbers in a row, not {width}", where, AGAIN)
    flat = np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)
    return flat.reshape(len(column), width)
