"""Writers and readers of results: tables as CSV and Parquet, arrays as HDF5, profiles, and what verbs print as JSON."""

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError, extra_module
from collidecli.scene.motion import SECOND, Episodes
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.schema import creator
from collidecli.storage.h5_files import (
    AttributeRule,
    format_of,
    json_object,
    one_of,
    open_h5,
    refuse_attributes,
    refuse_values,
    sha256,
    text,
    version,
)
from collidecli.storage.input_files import read_json
from collidecli.storage.process_activity import reading
from collidecli.texts import csv_text

# Flat tables, CSV or Parquet, block by block to an atomic output.

CSV_LINES = 32768
"""Lines of CSV in one vectorized step."""
GROUP_ROWS = 65536
"""Least rows of a Parquet row group, except the last; as many are in memory."""

Append = Callable[..., None]
"""Appends rows, given as values [n] by column name. Raises OutputError after a failed write."""


@dataclass(frozen=True)
class TableColumn:
    """A column of numbers or bool. unit: "" for none. words: texts that the values index; None for plain values.

    nan_is_none: NaN of floats is a missing value: an empty cell, a null.
    """

    name: str
    dtype: np.dtype
    unit: str = ""
    words: tuple[str, ...] | None = None
    nan_is_none: bool = False


def cell_columns(episodes: Episodes | None, time_unit: str = SECOND) -> tuple[TableColumn, ...]:
    """The columns of a row's place: frame, step, time and world, and the episode of a motion that has episodes."""
    whole = np.dtype(np.int64)
    return (
        TableColumn("frame", whole),
        TableColumn("step", whole),
        TableColumn("time", np.dtype(np.float64), time_unit),
        TableColumn("world", whole),
        *([] if episodes is None else [TableColumn("episode", whole, words=("", *episodes.name))]),
    )


@contextmanager
def csv_table(output: AtomicOutput, columns: Sequence[TableColumn]) -> Iterator[Append]:
    """CSV by RFC 4180 in UTF-8, with a header line; lines end with LF; bool is true or false; texts are `csv_text`.

    Numbers have the shortest text that parses to an equal float32 or float64. The caller commits the output.
    """
    output.write((",".join(csv_text(column.name) for column in columns) + "\n").encode())
    words = {column.name: np.array([csv_text(w) for w in column.words or ()], object) for column in columns}

    def append(block: Mapping[str, np.ndarray]) -> None:
        count = len(next(iter(block.values())))
        for first in range(0, count, CSV_LINES):
            rows = slice(first, first + CSV_LINES)
            texts = [_texts(column, block[column.name][rows], words[column.name]) for column in columns]
            output.write(("\n".join(map(",".join, zip(*texts, strict=True))) + "\n").encode())
            output.check()

    yield append
    output.check()


def _texts(column: TableColumn, values: np.ndarray, words: np.ndarray) -> list[str]:
    if column.words is not None:
        return words[values].tolist()
    # Frames, times and normals repeat in consecutive rows, and formatting a float is slow: each distinct value is
    # formatted once. Values are compared by bits, as 0 and -0 have different texts.
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
    """The package pyarrow. Raises InputError if it is not installed. wanted_for: the option that requires it."""
    pyarrow = extra_module("pyarrow", "tables", wanted_for)
    extra_module("pyarrow", "tables", wanted_for, "pyarrow.parquet")
    return pyarrow


@contextmanager
def parquet_table(
    output: AtomicOutput, columns: Sequence[TableColumn], about: Mapping[str, str] | None = None
) -> Iterator[Append]:
    """Parquet through pyarrow: words as dictionaries, units as metadata of fields, `about` as that of the file.

    `append` takes words of a block, by column, in place of those of the column.
    The owner of the output commits it, and calls `require_pyarrow` before opening it.
    """
    pa = require_pyarrow("Parquet")
    schema = _schema(pa, columns, about)
    words = _words(pa, columns)
    batches: list[Any] = []

    with pa.PythonFile(_Sink(output), mode="w") as sink, pa.parquet.ParquetWriter(sink, schema) as writer:

        def write_held() -> None:
            table = pa.Table.from_batches(batches, schema).unify_dictionaries()
            batches.clear()
            writer.write_table(table, row_group_size=max(len(table), 1))
            output.check()

        def append(block: Mapping[str, np.ndarray], texts_of_block: Mapping[str, Sequence[str]] | None = None) -> None:
            of_block = words | {name: pa.array(texts, pa.string()) for name, texts in (texts_of_block or {}).items()}
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
        kind = pa.dictionary(pa.int32(), pa.string()) if column.words is not None else pa.from_numpy_dtype(column.dtype)
        unit = {"unit": column.unit} if column.unit else None
        fields.append(pa.field(column.name, kind, nullable=column.nan_is_none, metadata=unit))
    return pa.schema(fields, dict(about or {}))


def _words(pa: Any, columns: Sequence[TableColumn]) -> dict[str, Any]:
    return {column.name: pa.array(column.words, pa.string()) for column in columns if column.words is not None}


def _batch(
    pa: Any, columns: Sequence[TableColumn], schema: Any, words: Mapping[str, Any], block: Mapping[str, np.ndarray]
) -> Any:
    arrays = []
    for column in columns:
        values, of_column = block[column.name], words.get(column.name)
        if of_column is not None:
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), of_column))
        else:
            arrays.append(pa.array(np.ascontiguousarray(values, column.dtype), from_pandas=column.nan_is_none))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _Sink:
    """File interface of the output for pyarrow; closing it leaves the output open for its owner to commit."""

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


# Writer of arrays as HDF5 with a format name: labels, masks, least distances, profiles.

LABELS_FORMAT, AUDIT_FORMAT = "collide-labels", "collide-audit"
VERSION = (1, 0)
_CHUNK_BYTES = 1 << 18


@contextmanager
def arrays_h5(
    output: AtomicOutput,
    form: str,
    about: Mapping[str, Any],
    tables: Mapping[str, np.ndarray],
    units: Mapping[str, str],
    dense: Mapping[str, tuple[np.dtype, tuple[int, ...]]] | None = None,
    compression: str = "gzip",
    checksums: bool = True,
) -> Iterator[Callable[[int, Mapping[str, np.ndarray]], None]]:
    """Writes the file to an output, which the caller commits. Raises OutputError.

    The value is a function of a first row and of rows by name, which fills the arrays of `dense`.

    Args:
        form: name of the format. about: root attributes; mappings and lists become JSON. tables: arrays by name; texts
            are objects or of NumPy's type. units: by name, of those that have one. dense: types and shapes of arrays.
        compression, checksums: of `dense`: "gzip" or "none", and whether a chunk has one.
    """
    packing: dict[str, Any] = {"fletcher32": True} if checksums else {}
    if compression == "gzip":
        packing |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    with h5py.File(output, "w") as file:
        file.attrs["format"] = form
        file.attrs["format_version"] = np.array(VERSION, np.int32)
        file.attrs["creator"] = creator()
        for name, value in about.items():
            file.attrs[name] = json.dumps(value, sort_keys=True) if isinstance(value, (Mapping, list)) else value
        arrays: dict[str, h5py.Dataset] = {}
        for name, values in tables.items():
            is_text = values.dtype.kind in "OU"
            values = values.astype(object) if is_text else values
            arrays[name] = file.create_dataset(name, data=values, dtype=h5py.string_dtype() if is_text else None)
        for name, (dtype, shape) in (dense or {}).items():
            row = max(1, int(np.prod(shape[1:], dtype=np.int64)) * np.dtype(dtype).itemsize)
            chunks = (max(1, min(shape[0], _CHUNK_BYTES // row)), *shape[1:])
            arrays[name] = file.create_dataset(
                name, shape, dtype, **({} if 0 in shape else {"chunks": chunks, **packing})
            )
        for name, unit in units.items():
            if unit and name in arrays:
                arrays[name].attrs["unit"] = unit
        output.check()

        def append(first: int, rows: Mapping[str, np.ndarray]) -> None:
            for name, values in rows.items():
                arrays[name][first : first + len(values)] = values
            output.check()

        yield append
    output.check()


# Reader and writer of profiles, in HDF5 and JSON with equal contents (schema collide.profile/1).
#
# HDF5, `format = "collide-profile"` 1.0: `/phase` string[P]; `/skipped` string[P], empty for a phase that ran;
# `/stage` string[G]; `/compute_seconds` and `/wall_seconds` float64[P, R]; `/stage_seconds` float64[P, R, G], NaN for
# skipped phases; `/candidates`, `/touching_pairs`, `/contacts` int64[P], -1 for skipped phases; `/contacts_sha256`
# string[P]. The other values are root attributes, `versions` and `auto` as JSON.

PROFILE_FORMAT, SCHEMA = "collide-profile", "collide.profile/1"
FIX = "give a file of collide profile"
TIMES = ("compute_seconds", "wall_seconds", "stage_seconds")
ATTRIBUTE_RULES = (
    AttributeRule("", "format_version", version(VERSION[0])),
    AttributeRule("", "creator", text),
    *(AttributeRule(f"/{name}", "unit", one_of(("s",)), required=False) for name in TIMES),
    *(AttributeRule("", name, json_object, required=False) for name in ("versions", "auto")),
)
"""Of the HDF5 file alone."""
VALUE_RULES = (AttributeRule("", "scene_sha256", sha256), AttributeRule("", "scene", text, required=False))
"""Of root attributes in HDF5 and of values in JSON."""
COUNTS = ("candidates", "touching_pairs", "contacts")


def write_profile_h5(path: str | os.PathLike[str], profile: Mapping[str, Any], force: bool) -> None:
    """Writes the HDF5 file. Raises OutputError; then no file remains."""
    phases = profile["phases"]
    run = [phase for phase in phases if not phase["skipped"]]
    stages = list(run[0]["stages"]) if run else []
    shape = (len(phases), profile["repeats"])
    tables = {
        "phase": np.array([phase["name"] for phase in phases], object),
        "skipped": np.array([phase["skipped"] or "" for phase in phases], object),
        "stage": np.array(stages, object),
        "contacts_sha256": np.array([phase.get("contacts_sha256", "") for phase in phases], object),
        "stage_seconds": np.full((*shape, len(stages)), np.nan),
        **{name: np.array([phase.get(name, -1) for phase in phases], np.int64) for name in COUNTS},
        **{name: np.full(shape, np.nan) for name in ("compute_seconds", "wall_seconds")},
    }
    for row, phase in enumerate(phases):
        if not phase["skipped"]:
            tables["stage_seconds"][row] = np.transpose([phase["stages"][stage]["repeats"] for stage in stages])
            for name in ("compute_seconds", "wall_seconds"):
                tables[name][row] = phase[name]["repeats"]
    about = {n: value for n, value in profile.items() if n not in ("phases", "schema") and value is not None}
    units: dict[str, str] = dict.fromkeys(TIMES, "s")
    with AtomicOutput(path, force) as output:
        with arrays_h5(output, PROFILE_FORMAT, about, tables, units):
            pass
        output.commit()


def write_json(path: str | os.PathLike[str], profile: Mapping[str, Any], force: bool) -> None:
    """Writes a JSON file. Raises OutputError; then no file remains."""
    with AtomicOutput(path, force) as output:
        output.write(json.dumps(profile, indent=2, allow_nan=False).encode() + b"\n")
        output.commit()


def read_profile(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Scene hash and phases of a profile, JSON or HDF5: `name` and `skipped` of each phase, and of phases that ran
    `compute_seconds` (the median) and the counts. Raises InputError for a file that is no profile."""
    name = os.fspath(path)
    with reading("profile", name):
        is_hdf5 = os.path.isfile(name) and h5py.is_hdf5(name)
        try:
            profile = _from_h5(name) if is_hdf5 else read_json(name, FIX, "is neither JSON nor HDF5")
            if not isinstance(profile, dict) or profile.get("schema") != SCHEMA:
                raise InputError("is no profile", name, FIX)
            refuse_values(profile, VALUE_RULES, name, FIX)
            return {"scene_sha256": profile["scene_sha256"], "phases": [_phase(phase) for phase in profile["phases"]]}
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"is an incomplete profile: {error}", name, FIX) from error


def _phase(phase: Mapping[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {"name": str(phase["name"]), "skipped": str(phase["skipped"] or "")}
    if not figures["skipped"]:
        figures["compute_seconds"] = float(phase["compute_seconds"]["median"])
        figures |= {name: int(np.int64(phase[name])) for name in COUNTS}
    return figures


def _from_h5(path: str) -> dict[str, Any]:
    """The values of an HDF5 file that `read_profile` reads, by their names in JSON."""
    with open_h5(path) as file:
        if format_of(file) != PROFILE_FORMAT:
            raise InputError("is no profile", path, FIX)
        refuse_attributes(file, (*ATTRIBUTE_RULES, *VALUE_RULES), path, FIX)
        columns = [*(_values(file, name, True) for name in ("phase", "skipped")), _values(file, "compute_seconds")]
        counts = {name: _values(file, name) for name in COUNTS}
        phases = [
            {"name": name, "skipped": skipped, "compute_seconds": {"median": np.median(seconds)}}
            | {count: values[row] for count, values in counts.items()}
            for row, (name, skipped, seconds) in enumerate(zip(*columns, strict=True))
        ]
        return {"schema": SCHEMA, "scene_sha256": str(file.attrs["scene_sha256"]), "phases": phases}


def _values(file: h5py.File, name: str, text: bool = False) -> np.ndarray:
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise TypeError(f"{name} is no dataset")
    return np.asarray((dataset.asstr() if text else dataset)[()])


PAIR = {"shape0": str, "shape1": str}
DEPTHS = ("depth", "self_depth", "ground_depth")
SERIES = {"frame": [int], "time": [float]}
AUDIT = {
    **dict.fromkeys(("input", "scene_sha256", "trajectory_sha256"), str),
    **dict.fromkeys(("frames", "worlds", "cells"), int),
    "passed": bool,
    "limits": {"pairs": [dict]},
    "checks": [{"name": str, "limit": (float, None), "pairs": int, "deepest": float, "failing": int, "reason": str}],
    "usable": {"cells": int, "share": float, "unusable_from_start": int},
    "series": {**SERIES, **{name: [float] for name in DEPTHS}, "unusable": [bool]},
    "pairs": [
        {
            **PAIR, "check": str, "allowed": bool, "exceeds": [str], "depth": float, "start_depth": float, "frame": int,
            "world": int, "cells": int, "cells_over": int,
        }
    ],
    "tunnels": ([{**PAIR, "exceeds": bool, "steps": int, "frame": int, "world": int, "time": float}], None),
    "baseline": (dict, None),
}  # fmt: skip
"""The values of collide.audit/1 that a page shows, see `fits`."""
BASELINE_PAIRS = [{"baseline_depth": float, "worse": bool}]
"""Of the pairs of an audit with a baseline."""
LABELS = {
    **dict.fromkeys(("file", "scene_sha256", "trajectory_sha256"), str),
    **dict.fromkeys(("recorded", "labelled", "pairs"), int),
    "options": {"enter": float, "leave": float, "min_frames": int, "slip": bool},
    "shape": dict.fromkeys(("frames", "worlds", "sensors", "partners"), int),
    "listed": [{"sensor": str, "partner": str, "cells": int, "share": float, "least_distance": (float, str)}],
    "series": {"frames_per_bin": int, **SERIES, "labelled": [[float]]},
}
"""The values of collide.label/1 that a page shows."""
CLEARANCE = {
    **dict.fromkeys(("scene", "scene_sha256", "trajectory_sha256", "by"), str),
    **dict.fromkeys(("frames", "worlds", "pairs", "items"), int),
    "listed": [{**PAIR, "least_distance": float, "frame": int, "world": int, "body": (str, None)}],
    "series": {"frames_per_bin": int, **SERIES, "least": [[(float, str)]]},
}
"""The values of collide.clearance/1 that a page shows."""


MOST = 2**63
"""Integers of JSON beyond this are damaged: arrays cannot hold them."""


def read_result(path: str, schema: str, values: object, fix: str = "") -> dict[str, Any]:
    """The object of a file of `--json`. schema: its name and version. values: what it must have, see `fits`. fix: of
    errors.

    Raises InputError for another file, and for one without these values.
    """
    fix = fix or f"give the output of collide {schema.split('/')[0].removeprefix('collide.')} --json"
    content = read_json(path, fix)
    if not isinstance(content, dict) or content.get("schema") != schema:
        raise InputError(f"is not a result of {schema}", path, fix)
    if not fits(content, values):
        raise InputError("lacks values, or has damaged ones", path, fix)
    return content


def fits(value: object, wanted: Any) -> bool:
    """Whether a value of JSON has a form: a type (float: any finite number), [form] for a list of any length, a
    dictionary of the forms of its keys, which may be fewer than there are, or a tuple of forms of which one fits.
    """
    if isinstance(wanted, tuple):
        return any(fits(value, form) for form in wanted)
    if isinstance(wanted, list):
        return isinstance(value, list) and all(fits(form, wanted[0]) for form in value)
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(fits(value.get(name), form) for name, form in wanted.items())
    if type(value) is int:
        return wanted in (int, float) and abs(value) < MOST
    if wanted is float:
        return isinstance(value, float) and math.isfinite(value)
    return value is None if wanted is None else type(value) is wanted
