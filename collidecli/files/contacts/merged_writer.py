"""Writes a contact set whose tables are those of another: what is stored is stored again, to the bit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.files.atomic_output import AtomicOutput
from collidecli.files.contacts import schema
from collidecli.files.contacts.content_hash import DatasetDigest, content_hash
from collidecli.files.contacts.stored_tables import MODEL, StoredTable
from collidecli.files.h5_chunks import ChunkedColumn
from collidecli.files.h5_input import DAMAGE
from collidecli.model.contacts import Column, ContactBlock


@dataclass(frozen=True)
class MergedHeader:
    """Everything but contacts. version: of the format. attributes: of the root, by schema.SOURCE_ATTRIBUTES.

    tables: of /model and /time. rules: attributes of /model. columns: with the type of each. timing: of /timing, arrays
    and lists of strings as datasets, mappings as groups, the rest as attributes.
    """

    version: tuple[int, int]
    attributes: Mapping[str, str]
    tables: Sequence[StoredTable]
    rules: Mapping[str, Any]
    columns: Sequence[tuple[Column, np.dtype]]
    timing: Mapping[str, Any]


def write_merged(
    path: str | os.PathLike[str], header: MergedHeader, blocks: Iterable[ContactBlock], compression: str, force: bool
) -> str:
    """The content hash of the set that is then at `path`. A block of contacts is in memory at a time.

    Raises OutputError where it cannot be written, and what reading the blocks raises; nothing is then left.
    """
    with AtomicOutput(path, force) as output:
        file = h5py.File(output, "w")
        try:
            sha = _write(file, output, header, blocks, compression)
            file.attrs["content_sha256"] = sha
            _write_timing(file.require_group("timing"), header.timing)
            file.flush()
            file.attrs["complete"] = np.int32(1)
            file.close()
        except BaseException:
            with contextlib.suppress(*DAMAGE):  # the file is thrown away
                file.close()
            raise
        output.commit()
    return sha


def _write(
    file: h5py.File, output: AtomicOutput, header: MergedHeader, blocks: Iterable[ContactBlock], compression: str
) -> str:
    start = ChunkedColumn(file, schema.CELL_START, np.dtype(np.int64), compression=compression)
    columns = {
        column.name: ChunkedColumn(
            file, schema.column_path(column), dtype, schema.row_shape(column), column.unit, compression
        )
        for column, dtype in header.columns
    }
    lines = _write_header(file, header)
    rows = 0
    start.append(np.zeros(1, np.int64))
    for block in blocks:
        start.append(rows + np.cumsum(block.cell_counts, dtype=np.int64))
        rows += block.contact_count
        for name, column in columns.items():
            column.append(block.columns[name])
        output.check()
    for column in (start, *columns.values()):
        column.finish()
        lines.append((column.path, column.digest.line()))
    output.check()
    return content_hash(lines)


def _write_header(file: h5py.File, header: MergedHeader) -> list[tuple[str, bytes]]:
    """Lines of the content hash, of the tables."""
    file.attrs["format"] = schema.FORMAT
    file.attrs["format_version"] = np.array(header.version, np.int32)
    file.attrs["creator"] = schema.creator()
    for name in schema.SOURCE_ATTRIBUTES:
        file.attrs[name] = header.attributes[name]
    lines = []
    for table in header.tables:
        if table.dtype is None:
            digest = DatasetDigest(table.path, None)
            digest.update_strings(table.values)
            dataset = file.create_dataset(table.path, (len(table.values),), h5py.string_dtype())
            dataset[:] = np.array(table.values, object)
        else:
            digest = DatasetDigest(table.path, table.dtype, table.values.shape[1:])
            digest.update(table.values)
            dataset = file.create_dataset(table.path, data=table.values, dtype=table.dtype)
        if table.unit:
            dataset.attrs["unit"] = table.unit
        lines.append((table.path, digest.line()))
    for name, value in header.rules.items():
        file[MODEL].attrs[name] = value
    return lines


def _write_timing(group: h5py.Group, report: Mapping[str, Any]) -> None:
    for name, value in report.items():
        if isinstance(value, Mapping):
            _write_timing(group.require_group(name), value)
        elif isinstance(value, list):
            group.create_dataset(name, (len(value),), h5py.string_dtype(), data=np.array(value, object))
        elif isinstance(value, np.ndarray):
            group.create_dataset(name, data=value)
        else:
            group.attrs[name] = value
