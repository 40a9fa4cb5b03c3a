"""Writer of a contact set with the tables of another contact set, unchanged to the bit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.columns import Column
from collidecli.scene.contact_groups import ContactGroup
from collidecli.scene.contacts import ContactBlock
from collidecli.scene.episodes import Episodes
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.content_hash import DatasetDigest, content_hash, digest_class, excluded_groups
from collidecli.storage.contact_sets.group_writer import GroupWriter
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.writer import write_content_hash
from collidecli.storage.h5_chunks import ChunkedColumn, ChunkedColumns
from collidecli.storage.h5_input import DAMAGE, damaged, exact_texts
from collidecli.storage.h5_objects import NewObjects
from collidecli.storage.process_activity import data, structure, structure_step

MODEL = "/model"
KNOWN_GROUPS = ("model", "time", "rigid_contacts")
EPISODE_NAMES = tuple(table.path.rpartition("/")[2] for table in schema.EPISODE_TABLES)


@dataclass(frozen=True)
class StoredTable:
    """A dataset. dtype: little-endian; None is strings. values: an array, or a tuple of strings. unit: "" for none."""

    path: str
    dtype: np.dtype | None
    values: Any
    unit: str

    def equals(self, other: StoredTable) -> bool:
        """Whether type and values are equal to the bit; NaN equals NaN of the same bits."""
        if self.dtype is None or other.dtype is None:
            return self.dtype is other.dtype and self.values == other.values
        alike = self.dtype == other.dtype and self.values.shape == other.values.shape
        return alike and self.values.tobytes() == other.values.tobytes()


@structure()
def model_tables(contacts: ContactSet) -> dict[str, StoredTable]:
    """Every dataset of /model, by path. Raises InputError for a string that is not UTF-8."""
    found: dict[str, StoredTable] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            found[f"{MODEL}/{name}"] = _stored(contacts.path, f"{MODEL}/{name}", item)

    model: Any = contacts.file[MODEL]
    model.visititems(visit)
    return dict(sorted(found.items()))


@structure()
def model_attributes(contacts: ContactSet) -> dict[str, Any]:
    """Attributes of the group /model: the rules. Raises InputError for damaged ones."""
    try:
        return {str(name): value for name, value in contacts.file[MODEL].attrs.items()}
    except DAMAGE as error:
        raise damaged(contacts.path, error) from error


def check_groups(contacts: ContactSet) -> None:
    """Raises InputError for data that this version cannot merge."""
    columns = {"cell_start", *schema.COLUMN_NAMES, *contacts.optional_columns}
    file: Any = contacts.file
    known = (
        *KNOWN_GROUPS,
        *excluded_groups(contacts.version),
        *contacts.groups,
        *(("episode",) if contacts.episodes is not None else ()),
    )
    unknown = [f"/{name}" for name in file if name not in known]
    if contacts.episodes is not None:
        unknown += [f"/episode/{name}" for name in file["episode"] if name not in EPISODE_NAMES]
    unknown += [f"/time/{name}" for name in file["time"] if name not in ("step", "time")]
    for group, table in contacts.groups.items():
        unknown += [f"/{group}/{name}" for name in file[group] if name not in table.dataset_names]
    unknown += [f"/rigid_contacts/{name}" for name in file["rigid_contacts"] if name not in columns]
    if unknown:
        raise InputError(
            f"this version cannot merge {unknown[0]}, which is not part of its format",
            contacts.path,
            "merge with the version of collide that wrote it",
        )


def episode_tables(episodes: Episodes | None) -> list[StoredTable]:
    """The datasets of /episode; none without episodes."""
    if episodes is None:
        return []
    held = zip(EPISODE_NAMES, schema.EPISODE_TABLES, strict=True)
    return [StoredTable(table.path, table.dtype, getattr(episodes, name), "") for name, table in held]


def _stored(file: str, path: str, dataset: h5py.Dataset) -> StoredTable:
    unit = str(dataset.attrs.get("unit", ""))
    if h5py.check_string_dtype(dataset.dtype) is None:
        with data():
            return StoredTable(path, dataset.dtype.newbyteorder("<"), np.asarray(dataset[()]), unit)
    structure_step()
    return StoredTable(path, None, exact_texts(dataset[()], f"{file}: {path}"), unit)


@dataclass(frozen=True)
class MergedHeader:
    """Everything except contacts. version: of the format. attributes: of the root, by schema.SOURCE_ATTRIBUTES.

    tables: of /model and /time. rules: attributes of /model. columns: each with its type. groups: beside
    /rigid_contacts, with points of float_type. timing: of /timing; arrays and lists of strings become datasets,
    mappings groups, other values attributes.
    """

    version: tuple[int, int]
    attributes: Mapping[str, str]
    tables: Sequence[StoredTable]
    rules: Mapping[str, Any]
    columns: Sequence[tuple[Column, np.dtype]]
    groups: Sequence[ContactGroup]
    float_type: np.dtype
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
    digest = digest_class(header.version)
    start = ChunkedColumn(objects, schema.CELL_START, np.dtype(np.int64), (), "", compression, digest)
    columns = {
        column.name: ChunkedColumn(
            objects, schema.column_path(column), dtype, schema.row_shape(column), column.unit, compression, digest
        )
        for column, dtype in header.columns
    }
    starts, contacts = ChunkedColumns([start]), ChunkedColumns(list(columns.values()))
    groups = GroupWriter(objects, header.groups, header.float_type, compression, digest)
    digests = _write_header(objects, header)
    rows = 0
    starts.append([np.zeros(1, np.int64)])
    for block in blocks:
        starts.append([rows + np.cumsum(block.cell_counts, dtype=np.int64)])
        rows += block.contact_count
        contacts.append([block.columns[name] for name in columns])
        groups.append(block.groups, len(block.cell_counts))
        output.check()
    for grown in (starts, contacts):
        grown.finish()
    digests += groups.finish()
    digests += [column.digest for column in (start, *columns.values())]
    output.check()
    sha = content_hash(digests)
    write_content_hash(objects, header.version, digests, sha)
    return sha


def _write_header(objects: NewObjects, header: MergedHeader) -> list[DatasetDigest]:
    """Writes the tables and attributes; returns the tables' digests."""
    objects.attribute("/", "format", schema.FORMAT)
    objects.attribute("/", "format_version", np.array(header.version, np.int32))
    objects.attribute("/", "creator", schema.creator())
    for name in schema.SOURCE_ATTRIBUTES:
        objects.attribute("/", name, header.attributes[name])
    new_digest = digest_class(header.version)
    digests: list[DatasetDigest] = []
    for table in header.tables:
        if table.dtype is None:
            digest = new_digest(table.path, None)
            digest.update_strings(table.values)
            objects.strings(table.path, table.values, table.unit)
        else:
            digest = new_digest(table.path, table.dtype, table.values.shape[1:])
            digest.update(table.values)
            objects.numbers(table.path, table.values, table.unit)
        digests.append(digest)
    for name, value in header.rules.items():
        objects.attribute(MODEL, name, value)
    return digests
