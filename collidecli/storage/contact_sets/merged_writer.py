"""Writer of a contact set with the tables of another contact set, unchanged to the bit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.scene.contacts import Column, ContactBlock
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.content_hash import DatasetDigest, content_hash
from collidecli.storage.contact_sets.stored_tables import MODEL, StoredTable
from collidecli.storage.h5_chunks import ChunkedColumn, ChunkedColumns
from collidecli.storage.h5_input import DAMAGE
from collidecli.storage.h5_objects import NewObjects


@dataclass(frozen=True)
class MergedHeader:
    """Everything except contacts. version: of the format. attributes: of the root, by schema.SOURCE_ATTRIBUTES.

    tables: of /model and /time. rules: attributes of /model. columns: each with its type. timing: of /timing; arrays
    and lists of strings become datasets, mappings groups, other values attributes.
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
    """Writes the set to `path` and returns its content hash. One block of contacts at a time is in memory.

    Raises OutputError if it cannot be written, and the exceptions of `blocks`; then no file remains.
    """
    with AtomicOutput(path, force) as output:
        file = h5py.File(output, "w")
        try:
            objects = NewObjects(file)
            sha = _write(objects, output, header, blocks, compression)
            objects.attribute("/", "content_sha256", sha)
            objects.report("/timing", header.timing)
            objects.attribute("/", "complete", np.int32(1))
            file.close()
        except BaseException:
            with contextlib.suppress(*DAMAGE):  # the file is discarded
                file.close()
            raise
        output.commit()
    return sha


def _write(
    objects: NewObjects, output: AtomicOutput, header: MergedHeader, blocks: Iterable[ContactBlock], compression: str
) -> str:
    start = ChunkedColumn(objects, schema.CELL_START, np.dtype(np.int64), compression=compression)
    columns = {
        column.name: ChunkedColumn(
            objects, schema.column_path(column), dtype, schema.row_shape(column), column.unit, compression
        )
        for column, dtype in header.columns
    }
    starts, contacts = ChunkedColumns([start]), ChunkedColumns(list(columns.values()))
    lines = _write_header(objects, header)
    rows = 0
    starts.append([np.zeros(1, np.int64)])
    for block in blocks:
        starts.append([rows + np.cumsum(block.cell_counts, dtype=np.int64)])
        rows += block.contact_count
        contacts.append([block.columns[name] for name in columns])
        output.check()
    for grown in (starts, contacts):
        grown.finish()
    lines += [(column.path, column.digest.line()) for column in (start, *columns.values())]
    output.check()
    return content_hash(lines)


def _write_header(objects: NewObjects, header: MergedHeader) -> list[tuple[str, bytes]]:
    """Writes the tables and attributes; returns the tables' lines of the content hash."""
    objects.attribute("/", "format", schema.FORMAT)
    objects.attribute("/", "format_version", np.array(header.version, np.int32))
    objects.attribute("/", "creator", schema.creator())
    for name in schema.SOURCE_ATTRIBUTES:
        objects.attribute("/", name, header.attributes[name])
    lines = []
    for table in header.tables:
        if table.dtype is None:
            digest = DatasetDigest(table.path, None)
            digest.update_strings(table.values)
            objects.strings(table.path, table.values, table.unit)
        else:
            digest = DatasetDigest(table.path, table.dtype, table.values.shape[1:])
            digest.update(table.values)
            objects.numbers(table.path, table.values, table.unit)
        lines.append((table.path, digest.line()))
    for name, value in header.rules.items():
        objects.attribute(MODEL, name, value)
    return lines
