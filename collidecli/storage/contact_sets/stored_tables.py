"""Tables and header of a contact set, as they are stored."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import ContactGroup
from collidecli.scene.episodes import Episodes
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.content import write_content_hash
from collidecli.storage.contact_sets.header import (
    EPISODE_TABLES,
    FORMAT,
    SCENE_KIND,
    SOURCE_ATTRIBUTES,
    creator,
)
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.table_writer import TableWriter
from collidecli.storage.content_hash import (
    DatasetDigest,
    content_hash,
    digest_class,
    excluded_groups,
)
from collidecli.storage.h5_files import DAMAGE, damaged, exact_texts
from collidecli.storage.new_objects import NewObjects
from collidecli.storage.process_activity import data, structure, structure_step

MODEL = "/model"
EPISODE_NAMES = tuple(table.path.rpartition("/")[2] for table in EPISODE_TABLES)


@dataclass(frozen=True)
class StoredTable:
    """A dataset. dtype: little-endian; None is strings. values: an array, or a tuple of strings.
    unit: "" for none."""

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
    tables: dict[str, StoredTable] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset):
            tables[f"{MODEL}/{name}"] = _stored(contacts.path, f"{MODEL}/{name}", item)

    model: Any = contacts.file[MODEL]
    model.visititems(visit)
    return dict(sorted(tables.items()))


@structure()
def model_attributes(contacts: ContactSet) -> dict[str, Any]:
    """Attributes of the group /model: the rules. Raises InputError for damaged ones."""
    try:
        return {str(name): value for name, value in contacts.file[MODEL].attrs.items()}
    except DAMAGE as error:
        raise damaged(contacts.path, error) from error


def check_groups(contacts: ContactSet) -> None:
    """Raises InputError for data that this version cannot merge."""
    if contacts.engine is not None:
        what = f"it has contacts of another engine: {contacts.engine.name}"
        raise InputError(what, contacts.path, "run the engine on the whole motion")
    file: Any = contacts.file
    known = (
        "model",
        "time",
        *excluded_groups(contacts.version),
        *contacts.tables,
        *(("episode",) if contacts.episodes is not None else ()),
    )
    unknown = [f"/{name}" for name in file if name not in known]
    if contacts.episodes is not None:
        unknown += [f"/episode/{name}" for name in file["episode"] if name not in EPISODE_NAMES]
    unknown += [f"/time/{name}" for name in file["time"] if name not in ("step", "time")]
    for group, table in contacts.tables.items():
        unknown += [
            f"/{group}/{name}" for name in file[group] if name not in table.definition.dataset_names
        ]
    if unknown:
        what = f"this version cannot merge {unknown[0]}, which is not part of its format"
        raise InputError(what, contacts.path, "merge with the version of collide that wrote it")


def episode_tables(episodes: Episodes | None) -> list[StoredTable]:
    """The datasets of /episode; none without episodes."""
    if episodes is None:
        return []
    named = zip(EPISODE_NAMES, EPISODE_TABLES, strict=True)
    return [
        StoredTable(table.path, table.dtype, getattr(episodes, name), "") for name, table in named
    ]


def _stored(file: str, path: str, dataset: h5py.Dataset) -> StoredTable:
    unit = str(dataset.attrs.get("unit", ""))
    if h5py.check_string_dtype(dataset.dtype) is None:
        with data():
            return StoredTable(path, dataset.dtype.newbyteorder("<"), np.asarray(dataset[()]), unit)
    structure_step()
    return StoredTable(path, None, exact_texts(dataset[()], f"{file}: {path}"), unit)


@dataclass(frozen=True)
class Header:
    """Everything except contacts. version: of the format. attributes: of the root, by
    schema.SOURCE_ATTRIBUTES, and SCENE_KIND where it is known.

    tables: of /model and /time. rules: attributes of /model. contacts: the tables of contacts, with
    points of float_type. timing: of /timing; arrays and lists of strings become datasets, mappings
    groups, other values attributes.
    """

    version: tuple[int, int]
    attributes: Mapping[str, str]
    tables: Sequence[StoredTable]
    rules: Mapping[str, Any]
    contacts: Sequence[ContactGroup]
    float_type: np.dtype
    timing: Mapping[str, Any]


def write_merged(
    path: str | os.PathLike[str],
    header: Header,
    blocks: Iterable[ContactBlock],
    compression: str,
    force: bool,
) -> str:
    """Writes the set to `path` and returns its content hash. One block of contacts at a time is in
    memory.

    Raises OutputError if it cannot be written, and the exceptions of `blocks`; then no file
    remains.
    """
    with AtomicOutput(path, force) as output:
        with h5py.File(output, "w") as file:
            objects = NewObjects(file)
            digest = digest_class(header.version)
            contacts = TableWriter(objects, header.contacts, header.float_type, compression, digest)
            digests = write_header(objects, header)
            for block in blocks:
                contacts.append(block.tables)
                output.check()
            digests += contacts.finish()
            output.check()
            sha = content_hash(digests)
            write_content_hash(objects, header.version, digests, sha)
            objects.report("/timing", header.timing)
            objects.attribute("/", "complete", np.int32(1))
        output.commit()
    return sha


def write_header(objects: NewObjects, header: Header) -> list[DatasetDigest]:
    """Writes the tables and attributes; returns the tables' digests."""
    objects.attribute("/", "format", FORMAT)
    objects.attribute("/", "format_version", np.array(header.version, np.int32))
    objects.attribute("/", "creator", creator())
    for name in (*SOURCE_ATTRIBUTES, SCENE_KIND):
        if name in header.attributes:
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
