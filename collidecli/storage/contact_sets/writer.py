"""Writer of contact sets, format `collide-contacts` 1.3 to 1.5 and 2.0 to 2.2 (docs/reference/file-formats.md)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError, OutputError
from collidecli.scene.model import Model
from collidecli.scene.motion import SECOND, Episodes
from collidecli.scene.options import CONTACT_FORMATS
from collidecli.scene.particles import ParticleObjects
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.tables import RIGID_COLUMNS, RIGID_CONTACTS, Column, ContactBlock, ContactGroup, GroupRows
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.reader import ContactSet, material_values
from collidecli.storage.contact_sets.schema import (
    HASHED_ROWS,
    DatasetDigest,
    block_hashes,
    content_hash,
    digest_class,
    excluded_groups,
)
from collidecli.storage.h5_chunks import CHUNK_ROWS, ChunkedColumn, ChunkedColumns, ChunkThreads
from collidecli.storage.h5_files import DAMAGE, NewObjects, damaged, exact_texts
from collidecli.storage.process_activity import data, structure, structure_step

# Writer of the tables of contacts.


class TableWriter:
    """Writes the rows of tables, block by block in the order of cells, with a few chunks of each dataset in memory.

    float_type: of the columns that follow the motion. digest: of the datasets. chunk_rows: 0 is CHUNK_ROWS.
    Raises ValueError for a table that refers to rows of a table that is not written.
    """

    def __init__(
        self,
        objects: NewObjects,
        tables: Sequence[ContactGroup],
        float_type: np.dtype,
        compression: str,
        digest: type[DatasetDigest],
        chunk_rows: int = 0,
    ) -> None:
        self.tables = {
            table.name: _Table(objects, table, float_type, compression, digest, chunk_rows or CHUNK_ROWS)
            for table in tables
        }
        for table in tables:
            if missing := set(table.references.values()) - set(self.tables):
                raise ValueError(f"{table.name} refers to rows of {sorted(missing)}, which is not written")

    def append(self, rows: Mapping[str, GroupRows], threads: ChunkThreads | None = None) -> None:
        """Adds the rows of the next cells. threads: for hashing and filtering; None is the calling thread."""
        if set(rows) != set(self.tables):
            raise ValueError(f"block has groups {sorted(rows)}, the file {sorted(self.tables)}")
        cell_count = len(next(iter(rows.values())).cell_counts)
        first_row = {name: table.row_count for name, table in self.tables.items()}
        for name, table in self.tables.items():
            if len(rows[name].cell_counts) != cell_count:
                raise ValueError(f"table {name} has {len(rows[name].cell_counts)} cells, the block {cell_count}")
            table.append(rows[name], first_row, threads)

    def finish(self, threads: ChunkThreads | None = None) -> list[DatasetDigest]:
        """Writes the last chunks; returns the datasets' digests."""
        return [digest for table in self.tables.values() for digest in table.finish(threads)]


class _Table:
    """One table of the file: its columns grow together, each list's values and every start on their own."""

    def __init__(
        self,
        objects: NewObjects,
        definition: ContactGroup,
        float_type: np.dtype,
        compression: str,
        digest: type[DatasetDigest],
        chunk_rows: int,
    ) -> None:
        def column(column: Column) -> ChunkedColumn:
            path, dtype = f"/{definition.name}/{column.name}", column.dtype_for(float_type)
            return ChunkedColumn(objects, path, dtype, schema.row_shape(column), column.unit, compression, digest)

        starts = ("cell_start", *(entries.start for entries in definition.lists))
        self.row_count = 0
        self._definition = definition
        self._starts_of = [column(Column(name, "int64", 1, "", "")) for name in starts]
        self._rows_of = [column(row_column) for row_column in definition.columns]
        self._values_of = [column(entries.column) for entries in definition.lists]
        self.rows = ChunkedColumns(self._rows_of, chunk_rows)
        self._values = [ChunkedColumns([values], chunk_rows) for values in self._values_of]
        self._starts = [ChunkedColumns([starts], chunk_rows) for starts in self._starts_of]
        self._ends = [0] * len(self._starts)
        for starts in self._starts:
            starts.append([np.zeros(1, np.int64)])

    def append(self, rows: GroupRows, first_row: Mapping[str, int], threads: ChunkThreads | None) -> None:
        """Adds rows. first_row: of each table in the file, at this block."""
        table, count = self._definition, rows.row_count
        if set(rows.columns) != {column.name for column in table.columns}:
            raise ValueError(f"table {table.name} has columns {sorted(rows.columns)}")
        if set(rows.lists) != {entries.column.name for entries in table.lists}:
            raise ValueError(f"table {table.name} has lists {sorted(rows.lists)}")
        columns = [rows.columns[column.name] for column in table.columns]
        lists = [rows.lists[entries.column.name] for entries in table.lists]
        for values in (*columns, *(lengths for lengths, _ in lists)):
            if len(values) != count:
                raise ValueError(f"table {table.name}: a column has {len(values)} rows for {count}")
        for index, column in enumerate(table.columns):
            if column.name in table.references:
                columns[index] = columns[index] + columns[index].dtype.type(first_row[table.references[column.name]])
        self.rows.append(columns, threads)
        self._append_starts(0, rows.cell_counts)
        for index, (lengths, values) in enumerate(lists):
            if int(lengths.sum()) != len(values):
                raise ValueError(f"table {table.name}: lists of {int(lengths.sum())} values have {len(values)}")
            self._append_starts(index + 1, lengths)
            self._values[index].append([values], threads)
        self.row_count += count

    def _append_starts(self, index: int, lengths: np.ndarray) -> None:
        ends = self._ends[index] + np.cumsum(lengths, dtype=np.int64)
        if len(ends):
            self._ends[index] = int(ends[-1])
        self._starts[index].append([ends])

    def finish(self, threads: ChunkThreads | None) -> list[DatasetDigest]:
        for grown in (*self._starts, self.rows, *self._values):
            grown.finish(threads)
        return [stored.digest for stored in (*self._starts_of, *self._rows_of, *self._values_of)]


SHORT_CHUNK_ROWS, LEAST_CHUNKS = 8192, 8
"""A column has at least LEAST_CHUNKS chunks, unless they are shorter than this: a chunk costs some 60 us besides its
contents."""

_TYPE_LABELS = {int(kind): kind.label for kind in ShapeType}


class ContactWriter:
    """Writes one contact set, block by block in the order of cells, in bounded memory.

    A context manager: `finish` moves the file to its path; without it no file remains. Not thread-safe, but one other
    thread may append blocks, and must end before the context does: hashing, filtering and file writes release the GIL.

    Args:
        path: the destination. force: replace an existing file.
        model: source of the shapes, bodies, worlds and forced pairs.
        time: float64[F], in `time_unit`: SECOND, or FRAME where the times of the frames are unknown. step: int64[F].
        frame_count: F.
        float_type: of point0 and point1, float32 or float64.
        attributes: strings `scene`, `scene_sha256`, `trajectory_sha256` and `config` (JSON).
        compression: gzip, none, lzf or zstd.
        columns: RIGID_COLUMNS, and any optional ones after them.
        threads: threads that filter chunks while blocks are appended; 1 is the calling thread alone. One more filters
            the last chunks, when the computation has ended.
        chunk_rows: 0 is CHUNK_ROWS, or fewer if the first contacts predict a short set.
        environment: attributes of /timing that are known before the first block.
        episodes: of the motion, or None.
        major: version of the format, 1 or 2. engine: of contacts of another engine.
        groups: of the file beside /rigid_contacts; every block has rows of all of them, and of no other.
    Raises OutputError if the file cannot be written, InputError for an unavailable compression.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: Model,
        frame_count: int,
        time: np.ndarray,
        step: np.ndarray,
        float_type: np.dtype,
        attributes: Mapping[str, str],
        compression: str = "gzip",
        force: bool = False,
        columns: Sequence[Column] = RIGID_COLUMNS,
        threads: int = 1,
        chunk_rows: int = 0,
        environment: Mapping[str, object] | None = None,
        episodes: Episodes | None = None,
        groups: Sequence[ContactGroup] = (),
        major: int = CONTACT_FORMATS[0],
        engine: schema.EngineRecord | None = None,
        time_unit: str = SECOND,
    ) -> None:
        if set(attributes) != set(schema.SOURCE_ATTRIBUTES):
            raise ValueError(f"attributes are {sorted(attributes)}, not {sorted(schema.SOURCE_ATTRIBUTES)}")
        if len(time) != frame_count or len(step) != frame_count:
            raise ValueError(f"{len(time)} times and {len(step)} steps for {frame_count} frames")
        if episodes is not None and (faults := episodes.faults(frame_count, model.world_count)):
            raise ValueError(f"the episodes are not valid: {faults}")
        self._cell_count = frame_count * model.world_count
        self._next_cell = 0
        self._ended = False
        self.content_sha256 = ""
        self._engine = engine
        self._time_unit = time_unit
        self._version = schema.version_of(major, [group.name for group in groups], engine is not None)
        self._digest = digest_class(self._version)
        self._digests: list[DatasetDigest] = []
        self._output = AtomicOutput(path, force)
        self._file: h5py.File | None = None
        self._threads: ChunkThreads | None = None
        try:
            self._file = h5py.File(self._output, "w")
            self._objects = NewObjects(self._file)
            tables = (replace(RIGID_CONTACTS, columns=tuple(columns)), *groups)
            self._tables = TableWriter(self._objects, tables, float_type, compression, self._digest, chunk_rows)
            self._settled = chunk_rows > 0
            self._threads = ChunkThreads(threads + 1)
            self._alone = threads == 1
            # Dozens of small datasets, written with the first block, while the engine computes the next ones.
            self._header: Callable[[], None] | None = partial(
                self._write_header, model, time, step, episodes, attributes, tables, float_type, environment or {}
            )
        except BaseException:
            self._abandon()
            raise

    def _begin(self) -> None:
        write, self._header = self._header, None
        if write is not None:
            write()

    def _write_header(
        self,
        model: Model,
        time: np.ndarray,
        step: np.ndarray,
        episodes: Episodes | None,
        attributes: Mapping[str, str],
        contacts: Sequence[ContactGroup],
        float_type: np.dtype,
        environment: Mapping[str, object],
    ) -> None:
        engine = self._engine
        tables = _header_tables(model, time, step, episodes)
        tables = [replace(each, unit=self._time_unit) if each.path == schema.TIME else each for each in tables]
        if engine is not None:
            values = (engine.treated, engine.reason, engine.not_asked0, engine.not_asked1)
            tables += [_stored_values(*entry) for entry in zip(schema.ENGINE_TABLES, values, strict=True)]
        rules = {name: getattr(model, name) for name in ("gap_rule", "up_axis", "material_rule")}
        header = Header(self._version, attributes, tables, rules, contacts, float_type, environment)
        self._digests += write_header(self._objects, header)
        for name, value in engine.attributes.items() if engine is not None else ():
            self._objects.attribute(schema.ENGINE_GROUP, name, value)
        for name, value in environment.items():
            self._objects.attribute("/timing", name, value)

    def append(self, block: ContactBlock) -> None:
        """Adds the contacts of the next cells. Raises OutputError after a failed write."""
        if block.first_cell != self._next_cell:
            raise ValueError(f"block begins at cell {block.first_cell}, the next cell is {self._next_cell}")
        self._begin()
        self._next_cell += len(block.cell_counts)
        self._settle_chunks(block.contact_count)
        self._tables.append(block.tables, None if self._alone else self._threads)
        self._output.check()

    def _settle_chunks(self, count: int) -> None:
        """Shortens the chunks of a short set, once, so that most chunks are filtered before the last block arrives.

        count: of the contacts of the next block. Before, less than a chunk has been appended.
        """
        contacts = self._tables.tables[RIGID_CONTACTS.name]
        row_count = contacts.row_count + count
        if self._settled or row_count < SHORT_CHUNK_ROWS:
            return
        self._settled = True
        expected = row_count * self._cell_count // self._next_cell
        rows = CHUNK_ROWS
        while rows > SHORT_CHUNK_ROWS and rows * LEAST_CHUNKS > expected:
            rows //= 2
        contacts.rows.shorten(rows)

    def end_contacts(self) -> None:
        """Writes the last chunks and the content hash; no `append` may follow. `finish` calls it if needed."""
        if self._ended:
            return
        if self._next_cell != self._cell_count:
            raise ValueError(f"{self._next_cell} of {self._cell_count} cells were appended")
        self._ended = True
        self._begin()
        self._digests += self._tables.finish(self._threads)
        self.content_sha256 = content_hash(self._digests)
        self._open_file()
        write_content_hash(self._objects, self._version, self._digests, self.content_sha256)
        self._output.check()

    def write_timing(self, report: Mapping[str, object]) -> None:
        """Stores `report` in /timing: arrays and lists as datasets, mappings as groups, other values as attributes."""
        self._open_file()
        self._objects.report("/timing", report)
        self._output.check()

    def finish(self) -> None:
        """Completes the file and moves it to its path. Raises OutputError; then no file remains or is replaced."""
        self.end_contacts()
        file = self._open_file()
        self._objects.attribute("/", "complete", np.int32(1))
        file.close()
        self._file = None
        self._output.commit()

    def __enter__(self) -> ContactWriter:
        self._output.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._abandon()

    def _abandon(self) -> None:
        try:
            if self._threads is not None:
                self._threads.close()
            if self._file is not None:
                with contextlib.suppress(*DAMAGE):  # the file is discarded
                    self._file.close()
                self._file = None
        finally:
            self._output.discard()

    def _open_file(self) -> h5py.File:
        if self._file is None:
            raise OutputError("the contact set is closed already", str(self._output.path))
        return self._file


def write_content_hash(
    objects: NewObjects, version: tuple[int, int], digests: Sequence[DatasetDigest], content: str
) -> None:
    """Writes the content hash and, of version 2, the hashes of its blocks."""
    objects.attribute("/", "content_sha256", content)
    if version[0] > 1:
        objects.attribute("/", schema.BLOCK_ROWS_ATTRIBUTE, np.int64(HASHED_ROWS))
        objects.numbers(schema.BLOCK_HASHES, block_hashes(digests))


def _header_tables(model: Model, time: np.ndarray, step: np.ndarray, episodes: Episodes | None) -> list[StoredTable]:
    shapes, forced = model.shapes, model.pair_filter.forced
    values: dict[str, Any] = {"/time/step": step, "/time/time": time}
    values |= {f"/model/shape/{name}": getattr(shapes, name) for name in ("path", "body", "template", "margin", "gap")}
    values["/model/shape/type"] = [_TYPE_LABELS[kind] for kind in shapes.type.tolist()]
    values |= {"/model/body/path": model.bodies.path, "/model/world/template": model.world_template}
    if len(forced):
        no_lengths = np.full(len(forced), np.nan)
        values |= {
            "/model/forced_pair/shape0": forced[:, 0],
            "/model/forced_pair/shape1": forced[:, 1],
            "/model/forced_pair/margin": model.forced_margin if len(model.forced_margin) else no_lengths,
            "/model/forced_pair/gap": model.forced_gap if len(model.forced_gap) else no_lengths,
        }
    if len(model.particles.path):
        objects = ParticleObjects.of_scene(model.particles)
        values |= {table.path: getattr(objects, table.path.rpartition("/")[2]) for table in schema.PARTICLE_TABLES}
    tables = (*schema.MODEL_TABLES, *schema.TIME_TABLES, *schema.FORCED_TABLES, *schema.PARTICLE_TABLES)
    stored = [_stored_values(table, values[table.path]) for table in tables if table.path in values]
    return [*stored, *episode_tables(episodes), *(_stored_values(*entry) for entry in material_values(model).values())]


def _stored_values(table: schema.Table, values: Any) -> StoredTable:
    if table.dtype is None:
        return StoredTable(table.path, None, tuple(values), table.unit)
    values = np.asarray(values, table.dtype).reshape(len(values), *schema.row_shape(table))
    return StoredTable(table.path, table.dtype, values, table.unit)


# Writer of a contact set with the tables of another contact set, unchanged to the bit.

MODEL = "/model"
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
        unknown += [f"/{group}/{name}" for name in file[group] if name not in table.definition.dataset_names]
    if unknown:
        what = f"this version cannot merge {unknown[0]}, which is not part of its format"
        raise InputError(what, contacts.path, "merge with the version of collide that wrote it")


def episode_tables(episodes: Episodes | None) -> list[StoredTable]:
    """The datasets of /episode; none without episodes."""
    if episodes is None:
        return []
    named = zip(EPISODE_NAMES, schema.EPISODE_TABLES, strict=True)
    return [StoredTable(table.path, table.dtype, getattr(episodes, name), "") for name, table in named]


def _stored(file: str, path: str, dataset: h5py.Dataset) -> StoredTable:
    unit = str(dataset.attrs.get("unit", ""))
    if h5py.check_string_dtype(dataset.dtype) is None:
        with data():
            return StoredTable(path, dataset.dtype.newbyteorder("<"), np.asarray(dataset[()]), unit)
    structure_step()
    return StoredTable(path, None, exact_texts(dataset[()], f"{file}: {path}"), unit)


@dataclass(frozen=True)
class Header:
    """Everything except contacts. version: of the format. attributes: of the root, by schema.SOURCE_ATTRIBUTES.

    tables: of /model and /time. rules: attributes of /model. contacts: the tables of contacts, with points of
    float_type. timing: of /timing; arrays and lists of strings become datasets, mappings groups, other values
    attributes.
    """

    version: tuple[int, int]
    attributes: Mapping[str, str]
    tables: Sequence[StoredTable]
    rules: Mapping[str, Any]
    contacts: Sequence[ContactGroup]
    float_type: np.dtype
    timing: Mapping[str, Any]


def write_merged(
    path: str | os.PathLike[str], header: Header, blocks: Iterable[ContactBlock], compression: str, force: bool
) -> str:
    """Writes the set to `path` and returns its content hash. One block of contacts at a time is in memory.

    Raises OutputError if it cannot be written, and the exceptions of `blocks`; then no file remains.
    """
    with AtomicOutput(path, force) as output:
        with h5py.File(output, "w") as file:
            objects, digest = NewObjects(file), digest_class(header.version)
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
