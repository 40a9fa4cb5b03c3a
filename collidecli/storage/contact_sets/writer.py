"""Writer of contact sets, format `collide-contacts` 1.3, 1.4, 2.0 or 2.1 (docs/reference/file-formats.md)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType

import h5py
import numpy as np

from collidecli.errors import OutputError
from collidecli.scene.columns import Column
from collidecli.scene.contact_groups import ContactGroup
from collidecli.scene.contacts import RIGID_COLUMNS, ContactBlock
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import Model
from collidecli.scene.option_choices import CONTACT_FORMATS
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.content_hash import (
    BLOCK_ROWS,
    DatasetDigest,
    block_hashes,
    content_hash,
    digest_class,
)
from collidecli.storage.contact_sets.group_writer import GroupWriter
from collidecli.storage.contact_sets.materials import material_values
from collidecli.storage.h5_chunks import CHUNK_ROWS, ChunkedColumn, ChunkedColumns, ChunkThreads
from collidecli.storage.h5_input import DAMAGE
from collidecli.storage.h5_objects import NewObjects

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
        time: float64[F] [s]. step: int64[F]. frame_count: F.
        float_type: of point0 and point1, float32 or float64.
        attributes: strings `scene`, `scene_sha256`, `trajectory_sha256` and `config` (JSON).
        compression: gzip, none, lzf or zstd.
        columns: RIGID_COLUMNS, and any optional ones after them.
        threads: threads that filter chunks while blocks are appended; 1 is the calling thread alone. One more filters
            the last chunks, when the computation has ended.
        chunk_rows: 0 is CHUNK_ROWS, or fewer if the first contacts predict a short set.
        environment: attributes of /timing that are known before the first block.
        episodes: of the motion, or None.
        major: version of the format, 1 or 2.
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
    ) -> None:
        if set(attributes) != set(schema.SOURCE_ATTRIBUTES):
            raise ValueError(f"attributes are {sorted(attributes)}, not {sorted(schema.SOURCE_ATTRIBUTES)}")
        _check_frames(model, frame_count, time, step, episodes)
        self._cell_count = frame_count * model.world_count
        self._next_cell = 0
        self._row_count = 0
        self._ended = False
        self.content_sha256 = ""
        self._version = schema.version_of(major, [group.name for group in groups])
        self._digest = digest_class(self._version)
        self._digests: list[DatasetDigest] = []
        self._output = AtomicOutput(path, force)
        self._file: h5py.File | None = None
        self._threads: ChunkThreads | None = None
        try:
            self._file = h5py.File(self._output, "w")
            self._objects = NewObjects(self._file)
            start = ChunkedColumn(
                self._objects, schema.CELL_START, np.dtype(np.int64), (), "", compression, self._digest
            )
            self._columns = self._new_columns(columns, float_type, compression)
            self._datasets = [start, *self._columns.values()]
            self._starts = ChunkedColumns([start], chunk_rows or CHUNK_ROWS)
            self._contacts = ChunkedColumns(list(self._columns.values()), chunk_rows or CHUNK_ROWS)
            self._starts.append([np.zeros(1, np.int64)])
            self._groups = GroupWriter(self._objects, groups, float_type, compression, self._digest, chunk_rows)
            self._settled = chunk_rows > 0
            self._threads = ChunkThreads(threads + 1)
            self._alone = threads == 1
            # Dozens of small datasets, written with the first block, while the engine computes the next ones.
            self._header: Callable[[], None] | None = partial(
                self._write_header, model, time, step, attributes, environment or {}, episodes
            )
        except BaseException:
            self._abandon()
            raise

    def _new_columns(
        self, columns: Sequence[Column], float_type: np.dtype, compression: str
    ) -> dict[str, ChunkedColumn]:
        return {
            column.name: ChunkedColumn(
                self._objects,
                schema.column_path(column),
                column.dtype_for(float_type),
                schema.row_shape(column),
                column.unit,
                compression,
                self._digest,
            )
            for column in columns
        }

    def _begin(self) -> None:
        """Writes the header, once."""
        if self._header is not None:
            write, self._header = self._header, None
            write()

    def _write_header(
        self,
        model: Model,
        time: np.ndarray,
        step: np.ndarray,
        attributes: Mapping[str, str],
        environment: Mapping[str, object],
        episodes: Episodes | None,
    ) -> None:
        objects = self._objects
        objects.attribute("/", "format", schema.FORMAT)
        objects.attribute("/", "format_version", np.array(self._version, np.int32))
        objects.attribute("/", "creator", schema.creator())
        for name in schema.SOURCE_ATTRIBUTES:
            objects.attribute("/", name, attributes[name])
        values = {"/time/step": step, "/time/time": time, **_model_values(model)}
        for table in (*schema.MODEL_TABLES, *schema.TIME_TABLES, *schema.FORCED_TABLES, *schema.PARTICLE_TABLES):
            if table.path in values:
                self._write_table(table, values[table.path])
        for table in schema.EPISODE_TABLES if episodes is not None else ():
            self._write_table(table, getattr(episodes, table.path.rpartition("/")[2]))
        for table, held in material_values(model).values():
            self._write_table(table, held)
        for name in ("gap_rule", "up_axis", "material_rule"):
            objects.attribute("/model", name, getattr(model, name))
        for name, value in environment.items():
            objects.attribute("/timing", name, value)

    def _write_table(self, table: schema.Table, values: np.ndarray | Sequence[str]) -> None:
        digest = self._digest(table.path, table.dtype, schema.row_shape(table))
        if table.dtype is None:
            strings = list(values)
            digest.update_strings(strings)
            self._objects.strings(table.path, strings, table.unit)
        else:
            array = np.asarray(values, table.dtype)
            digest.update(array)
            self._objects.numbers(table.path, array, table.unit)
        self._digests.append(digest)

    def append(self, block: ContactBlock) -> None:
        """Adds the contacts of the next cells. Raises OutputError after a failed write."""
        if block.first_cell != self._next_cell:
            raise ValueError(f"block begins at cell {block.first_cell}, the next cell is {self._next_cell}")
        if set(block.columns) != set(self._columns):
            raise ValueError(f"block has columns {sorted(block.columns)}, the file {sorted(self._columns)}")
        count = block.contact_count
        for name, values in block.columns.items():
            if len(values) != count:
                raise ValueError(f"column {name} has {len(values)} rows for {count} contacts")
        self._begin()
        self._next_cell += len(block.cell_counts)
        self._starts.append([self._row_count + np.cumsum(block.cell_counts, dtype=np.int64)])
        self._row_count += count
        self._settle_chunks()

        threads = None if self._alone else self._threads
        self._contacts.append([block.columns[name] for name in self._columns], threads)
        self._groups.append(block.groups, len(block.cell_counts), threads)
        self._output.check()

    def _settle_chunks(self) -> None:
        """Shortens the chunks of a short set, once, so that most chunks are filtered before the last block arrives.

        Before, less than a chunk has been appended.
        """
        if self._settled or self._row_count < SHORT_CHUNK_ROWS:
            return
        self._settled = True
        expected = self._row_count * self._cell_count // self._next_cell
        rows = CHUNK_ROWS
        while rows > SHORT_CHUNK_ROWS and rows * LEAST_CHUNKS > expected:
            rows //= 2
        self._contacts.shorten(rows)

    def end_contacts(self) -> None:
        """Writes the last chunks and the content hash; no `append` may follow. `finish` calls it if needed."""
        if self._ended:
            return
        if self._next_cell != self._cell_count:
            raise ValueError(f"{self._next_cell} of {self._cell_count} cells were appended")
        self._ended = True
        self._begin()
        self._starts.finish()
        self._contacts.finish(self._threads)
        self._digests += self._groups.finish(self._threads) + [dataset.digest for dataset in self._datasets]
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
        objects.attribute("/", schema.BLOCK_ROWS_ATTRIBUTE, np.int64(BLOCK_ROWS))
        objects.numbers(schema.BLOCK_HASHES, block_hashes(digests))


def _check_frames(
    model: Model, frame_count: int, time: np.ndarray, step: np.ndarray, episodes: Episodes | None
) -> None:
    if len(time) != frame_count or len(step) != frame_count:
        raise ValueError(f"{len(time)} times and {len(step)} steps for {frame_count} frames")
    if episodes is not None and (faults := episodes.faults(frame_count, model.world_count)):
        raise ValueError(f"the episodes are not valid: {faults}")


def _model_values(model: Model) -> dict[str, np.ndarray | Sequence[str]]:
    shapes, forced = model.shapes, model.pair_filter.forced
    values: dict[str, np.ndarray | Sequence[str]] = {
        "/model/shape/path": shapes.path,
        "/model/shape/type": [_TYPE_LABELS[kind] for kind in shapes.type.tolist()],
        "/model/shape/body": shapes.body,
        "/model/shape/template": shapes.template,
        "/model/shape/margin": shapes.margin,
        "/model/shape/gap": shapes.gap,
        "/model/body/path": model.bodies.path,
        "/model/world/template": model.world_template,
    }
    if len(forced):
        own = np.full(len(forced), np.nan)
        values |= {
            "/model/forced_pair/shape0": forced[:, 0],
            "/model/forced_pair/shape1": forced[:, 1],
            "/model/forced_pair/margin": model.forced_margin if len(model.forced_margin) else own,
            "/model/forced_pair/gap": model.forced_gap if len(model.forced_gap) else own,
        }
    if len(model.particles.path):
        objects = ParticleObjects.of_scene(model.particles)
        values |= {table.path: getattr(objects, table.path.rpartition("/")[2]) for table in schema.PARTICLE_TABLES}
    return values
