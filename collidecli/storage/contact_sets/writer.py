"""Writer of contact sets, format `collide-contacts` 1.3 to 1.5 and 2.0 to 2.2
(docs/reference/file-formats.md)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import h5py
import numpy as np

from collidecli.errors import OutputError
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import (
    MATERIAL_COLUMNS,
    RIGID_COLUMNS,
    RIGID_CONTACTS,
    Column,
    ContactGroup,
)
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import Model
from collidecli.scene.motion import SECOND
from collidecli.scene.option_values import CONTACT_FORMATS
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.triangle_materials import TriangleMaterialTable
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.content import write_content_hash
from collidecli.storage.contact_sets.header import (
    ENGINE_GROUP,
    ENGINE_TABLES,
    FORCED_TABLES,
    MODEL_TABLES,
    PARTICLE_TABLES,
    SCENE_KIND,
    SOURCE_ATTRIBUTES,
    TIME,
    TIME_TABLES,
    TRIGGER,
    TRIGGER_TABLES,
    EngineRecord,
    Table,
    row_shape,
    version_of,
)
from collidecli.storage.contact_sets.material_tables import material_values
from collidecli.storage.contact_sets.stored_tables import (
    Header,
    StoredTable,
    episode_tables,
    write_header,
)
from collidecli.storage.contact_sets.table_writer import TYPE_LABELS, TableWriter
from collidecli.storage.content_hash import DatasetDigest, content_hash, digest_class
from collidecli.storage.h5_chunks import CHUNK_ROWS, ChunkThreads
from collidecli.storage.h5_files import DAMAGE
from collidecli.storage.new_objects import NewObjects
from collidecli.storage.output_writer import OutputWriter


def _check_source(attributes: Mapping[str, str]) -> None:
    """Raises ValueError for other attributes than those of a source."""
    if set(attributes) - {SCENE_KIND} != set(SOURCE_ATTRIBUTES):
        raise ValueError(f"attributes are {sorted(attributes)}, not {sorted(SOURCE_ATTRIBUTES)}")


def _check_times(
    frame_count: int,
    time: np.ndarray,
    step: np.ndarray,
    episodes: Episodes | None,
    world_count: int,
) -> None:
    """Raises ValueError for other times, steps or episodes than those of the frames."""
    if len(time) != frame_count or len(step) != frame_count:
        raise ValueError(f"{len(time)} times and {len(step)} steps for {frame_count} frames")
    if episodes is not None and (faults := episodes.faults(frame_count, world_count)):
        raise ValueError(f"the episodes are not valid: {faults}")


class ContactWriter(OutputWriter):
    """Writes one contact set, block by block in the order of cells, in bounded memory.

    A context manager: `finish` moves the file to its path; without it no file remains. Not
    thread-safe, but one other thread may append blocks, and must end before the context does:
    hashing, filtering and file writes release the GIL.

    Args:
        path: the destination. force: replace an existing file.
        model: source of the shapes, bodies, worlds and forced pairs.
        time: float64[F], in `time_unit`: SECOND, or FRAME where the times of the frames are
            unknown. step: int64[F].
        frame_count: F.
        float_type: of point0 and point1, float32 or float64.
        attributes: strings `scene`, `scene_sha256`, `trajectory_sha256` and `config` (JSON); also
            `scene_kind`, unless it is unknown.
        compression: gzip, none, lzf or zstd.
        columns: RIGID_COLUMNS, and any optional ones after them.
        threads: threads that filter chunks while blocks are appended; 1 is the calling thread
            alone. One more filters the last chunks, when the computation has ended.
        chunk_rows: 0 is CHUNK_ROWS, or fewer if the first contacts predict a short set.
        environment: attributes of /timing that are known before the first block.
        episodes: of the motion, or None.
        major: version of the format, 1 or 2. engine: of contacts of another engine.
        groups: of the file beside /rigid_contacts; every block has rows of all of them, and of no
            other.
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
        engine: EngineRecord | None = None,
        time_unit: str = SECOND,
    ) -> None:
        _check_source(attributes)
        _check_times(frame_count, time, step, episodes, model.world_count)
        self._cell_count = frame_count * model.world_count
        self._next_cell = 0
        self._ended = False
        self.content_sha256 = ""
        self._engine = engine
        self._time_unit = time_unit
        model = _without_unused_materials(model, columns)
        self._version = _version(major, groups, engine, model)
        self._digest = digest_class(self._version)
        self._digests: list[DatasetDigest] = []
        self._output = AtomicOutput(path, force)
        self._file: h5py.File | None = None
        self._threads: ChunkThreads | None = None
        try:
            tables = (replace(RIGID_CONTACTS, columns=tuple(columns)), *groups)
            self._create(tables, float_type, compression, chunk_rows, threads)
            # Dozens of small datasets, written with the first block, while the engine computes the
            # next ones.
            self._header: Callable[[], None] | None = partial(
                self._write_header,
                model,
                time,
                step,
                episodes,
                attributes,
                tables,
                float_type,
                environment or {},
            )
        except BaseException:
            self._abandon()
            raise

    def _create(
        self,
        tables: tuple[ContactGroup, ...],
        float_type: np.dtype,
        compression: str,
        chunk_rows: int,
        threads: int,
    ) -> None:
        """Creates the file with its tables, and the threads that compress their chunks."""
        self._file = h5py.File(self._output, "w")
        self._objects = NewObjects(self._file)
        self._tables = TableWriter(
            self._objects, tables, float_type, compression, self._digest, chunk_rows
        )
        self._settled = chunk_rows > 0
        self._threads = ChunkThreads(threads + 1)
        self._alone = threads == 1

    def _begin(self) -> None:
        write = self._header
        self._header = None
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
        tables = [
            replace(each, unit=self._time_unit) if each.path == TIME else each for each in tables
        ]
        if engine is not None:
            values = (engine.treated, engine.reason, engine.not_asked0, engine.not_asked1)
            tables += [_stored_values(*entry) for entry in zip(ENGINE_TABLES, values, strict=True)]
        rules = {name: getattr(model, name) for name in ("gap_rule", "up_axis", "material_rule")}
        header = Header(self._version, attributes, tables, rules, contacts, float_type, environment)
        self._digests += write_header(self._objects, header)
        for name, value in engine.attributes.items() if engine is not None else ():
            self._objects.attribute(ENGINE_GROUP, name, value)
        for name, value in environment.items():
            self._objects.attribute("/timing", name, value)

    def append(self, block: ContactBlock) -> None:
        """Adds the contacts of the next cells. Raises OutputError after a failed write."""
        if block.first_cell != self._next_cell:
            raise ValueError(
                f"block begins at cell {block.first_cell}, the next cell is {self._next_cell}"
            )
        self._begin()
        self._next_cell += len(block.cell_counts)
        self._settle_chunks(block.contact_count)
        self._tables.append(block.tables, None if self._alone else self._threads)
        self._output.check()

    def _settle_chunks(self, count: int) -> None:
        """Shortens the chunks of a short set, once, so that most chunks are filtered before the
        last block arrives.

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
        """Writes the last chunks and the content hash; no `append` may follow. `finish` calls it if
        needed."""
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
        """Stores `report` in /timing: arrays and lists as datasets, mappings as groups, other
        values as attributes."""
        self._open_file()
        self._objects.report("/timing", report)
        self._output.check()

    def finish(self) -> None:
        """Completes the file and moves it to its path. Raises OutputError; then no file remains or
        is replaced."""
        self.end_contacts()
        file = self._open_file()
        self._objects.attribute("/", "complete", np.int32(1))
        file.close()
        self._file = None
        self._output.commit()

    def _leave(self, failed: bool) -> None:
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


def _without_unused_materials(model: Model, columns: Sequence[Column]) -> Model:
    """The model, without materials of triangles if no column refers to them."""
    if MATERIAL_COLUMNS[0] in columns:
        return model
    return replace(model, triangle_materials=TriangleMaterialTable())


def _version(
    major: int, groups: Sequence[ContactGroup], engine: EngineRecord | None, model: Model
) -> tuple[int, int]:
    """The version of a file with these groups, of an engine and a model."""
    names = [group.name for group in groups]
    has_triggers = bool(model.shapes.is_trigger.any())
    return version_of(
        major, names, engine is not None, has_triggers, len(model.triangle_materials) > 0
    )


def _header_tables(
    model: Model, time: np.ndarray, step: np.ndarray, episodes: Episodes | None
) -> list[StoredTable]:
    shapes = model.shapes
    forced = model.pair_filter.forced
    values: dict[str, Any] = {"/time/step": step, "/time/time": time}
    values |= {
        f"/model/shape/{name}": getattr(shapes, name)
        for name in ("path", "body", "template", "margin", "gap")
    }
    values["/model/shape/type"] = [TYPE_LABELS[kind] for kind in shapes.type.tolist()]
    values |= {"/model/body/path": model.bodies.path, "/model/world/template": model.world_template}
    if shapes.is_trigger.any():
        values[TRIGGER] = shapes.is_trigger
    if len(forced):
        no_lengths = np.full(len(forced), np.nan)
        values |= {
            "/model/forced_pair/shape0": forced[:, 0],
            "/model/forced_pair/shape1": forced[:, 1],
            "/model/forced_pair/margin": model.forced_margin
            if len(model.forced_margin)
            else no_lengths,
            "/model/forced_pair/gap": model.forced_gap if len(model.forced_gap) else no_lengths,
        }
    if len(model.particles.path):
        objects = ParticleObjects.of_scene(model.particles)
        values |= {
            table.path: getattr(objects, table.path.rpartition("/")[2]) for table in PARTICLE_TABLES
        }
    tables = (*MODEL_TABLES, *TRIGGER_TABLES, *TIME_TABLES, *FORCED_TABLES, *PARTICLE_TABLES)
    stored = [_stored_values(table, values[table.path]) for table in tables if table.path in values]
    return [
        *stored,
        *episode_tables(episodes),
        *(_stored_values(*entry) for entry in material_values(model).values()),
    ]


def _stored_values(table: Table, values: Any) -> StoredTable:
    if table.dtype is None:
        return StoredTable(table.path, None, tuple(values), table.unit)
    values = np.asarray(values, table.dtype).reshape(len(values), *row_shape(table))
    return StoredTable(table.path, table.dtype, values, table.unit)


SHORT_CHUNK_ROWS = 8192
LEAST_CHUNKS = 8
"""A column has at least LEAST_CHUNKS chunks, unless they are shorter than this: a chunk costs some
60 us besides its contents."""
