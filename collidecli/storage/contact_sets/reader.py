"""Reader of contact sets, format `collide-contacts` 1.x and 2.x
(docs/reference/file-formats.md)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, TypeVar

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import RIGID_COLUMNS, RIGID_CONTACTS, TABLES_BY_NAME, Column
from collidecli.scene.episodes import Episodes
from collidecli.scene.materials import MATERIAL_RULES, Materials, PairMaterials
from collidecli.scene.model_source import scene_kind_of
from collidecli.scene.motion import SECOND
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.triangle_materials import TriangleMaterialTable
from collidecli.storage.array_files import LABELS_FORMAT, SENSORS_FORMAT
from collidecli.storage.contact_sets import header
from collidecli.storage.contact_sets.contact_table import (
    AGAIN,
    dataset_of_table,
    is_kind,
    read_error,
    rows_of_cells,
    tables_of_file,
)
from collidecli.storage.contact_sets.header import (
    ENGINE_ATTRIBUTES,
    ENGINE_GROUP,
    ENGINE_TABLES,
    EPISODE_GROUP,
    EPISODE_TABLES,
    FORCED_TABLES,
    FORMAT,
    MODEL_TABLES,
    PARTICLE_GROUP,
    PARTICLE_TABLES,
    SCENE_KIND,
    TIME,
    TIME_TABLES,
    TREATMENTS,
    TRIGGER,
    TRIGGER_TABLES,
    VERSIONS,
    EngineRecord,
)
from collidecli.storage.contact_sets.header_rules import (
    has_engine,
    has_triangle_materials,
    has_triggers,
    header_faults,
)
from collidecli.storage.contact_sets.material_schema import (
    PAIR_GROUP,
    TRIANGLE_GROUP,
    TRIANGLE_TABLES,
)
from collidecli.storage.contact_sets.material_tables import read_materials, tables_of
from collidecli.storage.contact_sets.spans import BLOCK_ROWS, spans
from collidecli.storage.h5_files import DAMAGE, IndexedFile, damaged, exact_texts, open_h5
from collidecli.storage.process_activity import data, structure, structure_step
from collidecli.wording import numbered

Opened = TypeVar("Opened", bound="ContactSet")
EPISODES_SINCE = (1, 2)
GROUPS_SINCE = (1, 3)
MOST_CHUNK_BYTES = 64 << 20
"""Largest chunk that is read; this program writes chunks of a few MiB."""


@dataclass(frozen=True, repr=False)
class ShapeTable:
    """The table of shapes of a contact set; shape0 and shape1 are its rows.

    path, type: str. body: int32[S], -1 static. template: int32[S], -1 in every world. margin, gap:
    float32[S] [m]. is_trigger: bool[S], volumes that are not solid.
    """

    path: tuple[str, ...]
    type: tuple[str, ...]
    body: np.ndarray
    template: np.ndarray
    margin: np.ndarray
    gap: np.ndarray
    is_trigger: np.ndarray

    def __repr__(self) -> str:
        return f"<ShapeTable {len(self)}>"

    def __len__(self) -> int:
        return len(self.path)


@dataclass(frozen=True)
class ForcedPairs:
    """Forced pairs. shape0, shape1: int32[K]. margin, gap: float32[K] [m], own values; NaN keeps
    the shapes'.

    A forced pair's margin is the sum for both shapes.
    """

    shape0: np.ndarray
    shape1: np.ndarray
    margin: np.ndarray
    gap: np.ndarray

    def __len__(self) -> int:
        return len(self.shape0)


def _check_readable(file: h5py.File, path: str, trusted: bool) -> None:
    """Raises InputError for a contact set that is incomplete, and, unless it is trusted, for large
    chunks and faults of its attributes."""
    if not trusted:
        refuse_large_chunks(file, path)
    if not is_complete(file):
        raise InputError(
            "the contact set is incomplete: its writer was stopped", path, "make it again"
        )
    for where, what in () if trusted else header_faults(file):
        raise InputError(
            what, f"{path}: {where}" if where else path, "collide check lists every fault"
        )


class ContactSet:
    """A complete contact set, open for reading; a context manager. Tables are in memory, columns
    are in the file.

    scene, scene_sha256, trajectory_sha256, content_sha256: str. scene_kind: "files", or "model" of
    a model that was given in Python. config: the options of the run.
    shapes: ShapeTable. body_path: of each body. world_template: int32[W]. forced: ForcedPairs.
    material_rule: "combine", "mujoco" or, for a file of version 1.0, "".
    gap_rule: "max" or "sum". up_axis: "X", "Y" or "Z". time: float64[F] in `time_unit`, which is
        SECOND, or FRAME where the times of the frames are unknown. step: int64[F].
    episodes: of a recording that consists of demonstrations, or None. engine: EngineRecord of
    another engine, or None. particle_objects: ParticleObjects, of a scene with particles. tables:
    of contacts, by name. rigid: the table
        /rigid_contacts. groups: the other tables.
    """

    def __init__(
        self, file: h5py.File, path: str, trusted: bool = False, like: ContactSet | None = None
    ) -> None:
        """Wraps an open file and owns it; use `open`. trusted: leaves out the rules of attributes
        and chunks.

        like: a set that may have the same model, whose tables of shapes, bodies and materials are
        then not read.
        """
        self.path = path
        self._file = file
        self.version = require_version(file, path)
        _check_readable(file, path, trusted)
        root = file.attrs
        self.creator = str(root["creator"])
        self.scene = str(root["scene"])
        self.scene_kind = scene_kind_of(str(root.get(SCENE_KIND, "")), self.scene)
        self.scene_sha256 = str(root["scene_sha256"])
        self.trajectory_sha256 = str(root["trajectory_sha256"])
        self.content_sha256 = str(root["content_sha256"])
        self.config: dict[str, Any] = json.loads(str(root["config"]))

        self._read_tables(like)
        model = file["/model"]
        self.gap_rule = str(model.attrs["gap_rule"])
        self.up_axis = str(model.attrs["up_axis"])
        self.material_rule = str(model.attrs.get("material_rule", ""))
        if self.material_rule and self.material_rule not in MATERIAL_RULES:
            fix = f"known rules: {', '.join(MATERIAL_RULES)}"
            raise InputError(f"material_rule is '{self.material_rule}'", f"{path}: /model", fix)
        if not trusted:
            _ = self._materials
            _ = self.triangle_materials
        self.episodes = self._episodes()
        self.engine = self._engine()
        known = TABLES_BY_NAME if self.version >= GROUPS_SINCE else (RIGID_CONTACTS.name,)
        cells = (self.frame_count, self.world_count)
        self.tables = tables_of_file(file, path, cells, known, bool(self.material_rule))
        self.rigid, *others = self.tables.values()
        self.groups = {table.definition.name: table for table in others}
        self.particle_objects = self._particle_objects()

    def _read_tables(self, like: ContactSet | None) -> None:
        """Reads the tables of times and of the model, or takes the model of `like`, if it is the
        same."""
        same = ("creator", "version", "scene_sha256", "config")
        is_like = like is not None and all(
            getattr(self, name) == getattr(like, name) for name in same
        )
        tables = self._tables((*(MODEL_TABLES[-1:] if is_like else MODEL_TABLES), *TIME_TABLES))
        self.world_template: np.ndarray = tables["/model/world/template"]
        self.time: np.ndarray = tables[TIME]
        self.time_unit = str(
            dataset_of_table(self._file, self.path, TIME).attrs.get("unit", SECOND)
        )
        self.step: np.ndarray = tables["/time/step"]
        if (
            like is not None
            and is_like
            and np.array_equal(self.world_template, like.world_template)
        ):
            self.shapes = like.shapes
            self.body_path = like.body_path
            self.forced = like.forced
        else:
            tables = self._tables(MODEL_TABLES) if is_like else tables
            names = ("path", "type", "body", "template", "margin", "gap")
            columns = {name: tables[f"/model/shape/{name}"] for name in names}
            self.shapes = ShapeTable(**columns, is_trigger=self._triggers(len(columns["path"])))
            self.body_path: tuple[str, ...] = tables["/model/body/path"]
            self.forced = self._forced_pairs()

    @classmethod
    def open(cls: type[Opened], path: str | os.PathLike[str]) -> Opened:
        """Opens a file. Raises InputError for a file that is no complete contact set of a supported
        version."""
        file = open_h5(path, index=True)
        try:
            with structure():
                return cls(file, os.fspath(path))
        except DAMAGE as error:
            file.close()
            raise damaged(os.fspath(path), error) from error
        except BaseException:
            file.close()
            raise

    @property
    def group_rows(self) -> dict[str, int]:
        """Number of rows of each table beside /rigid_contacts, by name."""
        return {name: table.row_count for name, table in self.groups.items()}

    def _tables(self, tables: tuple[header.Table, ...]) -> dict[str, Any]:
        """Each table by its path. Raises InputError for tables of one extent with different numbers
        of rows."""
        columns = {table.path: self._table(table) for table in tables}
        first = {table.extent: table.path for table in reversed(tables)}
        for table in tables:
            rows = len(columns[table.path])
            wanted = len(columns[first[table.extent]])
            if rows != wanted:
                what = f"has {rows} rows, and {first[table.extent]} has {wanted}"
                raise InputError(what, f"{self.path}: {table.path}")
        return columns

    def _table(self, table: header.Table) -> Any:
        dataset = dataset_of_table(self._file, self.path, table.path)
        where = f"{self.path}: {table.path}"
        row_shape = header.row_shape(table)
        if (
            not dataset.shape
            or dataset.shape[1:] != row_shape
            or not is_kind(dataset.dtype, table.dtype)
        ):
            kind = "strings" if table.dtype is None else f"{table.dtype}"
            extent = f"of shape {('n', *row_shape)}" if row_shape else "of one extent"
            raise InputError(f"is {dataset.dtype}{dataset.shape}, not {kind} {extent}", where)
        try:
            if table.dtype is not None:
                with data():
                    return dataset[()].astype(table.dtype)
            structure_step()
            return exact_texts(dataset[()], where)
        except OSError as error:
            raise read_error(self.path, dataset, slice(None), error) from error

    def _forced_pairs(self) -> ForcedPairs:
        if "/model/forced_pair" not in self._file:
            none = np.zeros(0, np.float32)
            return ForcedPairs(none.astype(np.int32), none.astype(np.int32), none, none)
        return ForcedPairs(*self._tables(FORCED_TABLES).values())

    def _episodes(self) -> Episodes | None:
        """Raises InputError for names that are not unique, and ranges that are not in the file or
        overlap."""
        if self.version < EPISODES_SINCE or EPISODE_GROUP not in self._file:
            return None
        episodes = Episodes(*self._tables(EPISODE_TABLES).values())
        self._refuse(episodes.faults(self.frame_count, self.world_count), EPISODE_GROUP)
        return episodes

    def _refuse(self, faults: Iterable[tuple[str, int, str]], group: str) -> None:
        """Raises InputError for the first fault: column, row, and what is wrong."""
        for column, row, what in faults:
            raise InputError(what, f"{self.path}: {group}/{column}, row {row}", "make it again")

    def _engine(self) -> EngineRecord | None:
        if not has_engine(self._file, self.version):
            return None
        group: Any = self._file[ENGINE_GROUP]
        values = {name: group.attrs.get(name) for name in ENGINE_ATTRIBUTES}
        values |= {
            name: bool(values[name])
            for name in ("stateful", "reports_gap")
            if values[name] is not None
        }
        record = EngineRecord(*values.values(), *self._tables(ENGINE_TABLES).values())
        count = len(self.shapes)
        pairs = np.append(record.not_asked0, record.not_asked1)
        for what, is_fault in {
            f"has {len(record.treated)} rows for {count} shapes": len(record.treated) != count,
            f"is not {', '.join(TREATMENTS)}": not set(record.treated) <= set(TREATMENTS),
            "has a pair that is no rows of /model/shape": ((pairs < 0) | (pairs >= count)).any(),
        }.items():
            if is_fault:
                raise InputError(what, f"{self.path}: {ENGINE_GROUP}", AGAIN)
        return record

    def _triggers(self, count: int) -> np.ndarray:
        """bool[count]: the shapes that are triggers. Raises InputError for another number of
        rows."""
        if not has_triggers(self._file, self.version):
            return np.zeros(count, bool)
        trigger = self._tables(TRIGGER_TABLES)[TRIGGER]
        if len(trigger) != count:
            what = f"has {len(trigger)} rows for {count} shapes"
            raise InputError(what, f"{self.path}: {TRIGGER}", AGAIN)
        return trigger != 0

    def _particle_objects(self) -> ParticleObjects:
        """Raises InputError for a missing table if a group has particles, and for rows that are not
        consecutive."""
        are_needed = any(table.definition.objects for table in self.groups.values())
        if self.version < GROUPS_SINCE or not (are_needed or PARTICLE_GROUP in self._file):
            return ParticleObjects()
        objects = ParticleObjects(*self._tables(PARTICLE_TABLES).values())
        self._refuse(objects.faults(int(self.world_template.max(initial=-1)) + 1), PARTICLE_GROUP)
        return objects

    @property
    def materials(self) -> Materials | None:
        """Of the shapes; None for a file of version 1.0."""
        return self._materials[0]

    @property
    def forced_materials(self) -> PairMaterials:
        """Of the forced pairs."""
        return self._materials[1]

    @cached_property
    def _materials(self) -> tuple[Materials | None, PairMaterials]:
        tables = tables_of(self.material_rule, self._file.__contains__)
        stored = {table.path: self._table(table) for table in tables}
        expected = {"shapes": len(self.shapes), "forced pairs": len(self.forced)}
        for table in tables:
            if len(stored[table.path]) != expected[table.extent]:
                what = (
                    f"has {len(stored[table.path])} rows for {expected[table.extent]}"
                    f" {table.extent}"
                )
                raise InputError(what, f"{self.path}: {table.path}")
        columns = vars(PairMaterials.of([None] * len(self.forced)))
        of_pairs = {
            name: stored.get(f"{PAIR_GROUP}/{name}", values) for name, values in columns.items()
        }
        return (
            read_materials(len(self.shapes), stored) if self.material_rule else None
        ), PairMaterials(**of_pairs)

    @cached_property
    def triangle_materials(self) -> TriangleMaterialTable:
        """Materials of triangles, to which the columns material0 and material1 refer; without the
        triangles of the shapes, which a contact set does not have."""
        if not (self.material_rule and has_triangle_materials(self._file, self.version)):
            return TriangleMaterialTable()
        stored = self._tables(TRIANGLE_TABLES[self.material_rule])
        names = stored[f"{TRIANGLE_GROUP}/path"]
        materials = read_materials(len(names), stored, TRIANGLE_GROUP)
        return TriangleMaterialTable(names, materials)

    @property
    def file(self) -> h5py.File:
        """The open file, for data that has no attribute here."""
        return self._file

    @property
    def frame_count(self) -> int:
        """F, the frames of the run."""
        return len(self.time)

    @property
    def world_count(self) -> int:
        """W, worlds of every frame."""
        return len(self.world_template)

    @property
    def cell_count(self) -> int:
        """Number of cells; cell c is frame c // world_count of world c % world_count."""
        return self.frame_count * self.world_count

    @property
    def contact_count(self) -> int:
        """N, contacts of all frames and worlds."""
        return self.rigid.row_count

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of /rigid_contacts, the required ones first."""
        return self.rigid.names

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """Names of the file's columns of OPTIONAL_COLUMNS."""
        return tuple(column.name for column in self.columns[len(RIGID_COLUMNS) :])

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that this version knows: the required ones, then the optional ones of the
        file."""
        return self.rigid.columns

    @property
    def float_type(self) -> np.dtype:
        """float32 or float64, of point0 and point1."""
        return self.rigid.chunks("point0").dtype

    def column(self, name: str, rows: slice = slice(None)) -> np.ndarray:
        """Rows of one column of /rigid_contacts, see `ContactTable.column`."""
        return self.rigid.column(name, rows)

    def cell_start(self, cells: slice = slice(None)) -> np.ndarray:
        """int64: first row of each cell in /rigid_contacts; the last entry is the end of the last
        cell."""
        return self.rigid.cell_start(cells)

    def cell(self, frame: int, world: int = 0) -> ContactBlock:
        """The contacts of one cell and the rows of its groups. Raises InputError for a frame or
        world out of range."""
        if not (0 <= frame < self.frame_count and 0 <= world < self.world_count):
            fix = (
                f"it has {numbered(self.frame_count, 'frame')} and"
                f" {numbered(self.world_count, 'world')}"
            )
            raise InputError(f"frame {frame}, world {world} is not there", self.path, fix)
        cell = frame * self.world_count + world
        return self.cells(cell, cell + 1, with_groups=True)

    def cells(
        self, first: int, last: int, names: tuple[str, ...] | None = None, with_groups: bool = False
    ) -> ContactBlock:
        """The contacts of cells first to last - 1, with the rows of all groups if asked for.

        names: the columns to read; None is all.
        """
        rows = self.rigid.rows(first, last, names)
        groups = rows_of_cells(self.groups, first, last) if with_groups else {}
        return ContactBlock(first, rows.cell_counts, rows.columns, groups)

    def blocks(
        self,
        max_rows: int = BLOCK_ROWS,
        names: tuple[str, ...] | None = None,
        first: int = 0,
        last: int | None = None,
        with_groups: bool = False,
    ) -> Iterator[ContactBlock]:
        """Cells in order, in blocks of whole cells with at most `max_rows` contacts, or one cell
        with more.

        names: the columns to read; None is all. first, last: range of cells, the last excluded; all
        by default. with_groups: of all groups too, whose rows count as contacts.
        """
        if first < 0 or max_rows < 1:
            what = f"first is {first}, max_rows {max_rows}"
            raise InputError(what, self.path, "give a cell from 0 on, and at least 1 row")
        end = self.cell_count if last is None else min(last, self.cell_count)
        tables = self.tables.values() if with_groups else (self.rigid,)
        for begin, stop in spans([table.cell_start for table in tables], max_rows, first, end):
            yield self.cells(begin, stop, names, with_groups)

    def close(self) -> None:
        """Closes the file; tables remain readable, columns do not."""
        self._file.close()

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_complete(file: h5py.File) -> bool:
    """Whether the writer of an open contact set finished it."""
    return bool(np.array_equal(file.attrs.get("complete", 0), 1))


def refuse_large_chunks(file: h5py.File, path: str) -> None:
    """Raises InputError for large chunks: a read of any of its rows unpacks a whole chunk."""

    def visit(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Dataset) and item.chunks is not None:
            size = math.prod(item.chunks) * item.dtype.itemsize
            if size > MOST_CHUNK_BYTES:
                what = (
                    f"has chunks of {size >> 20} MiB, and at most {MOST_CHUNK_BYTES >> 20} MiB are"
                    " read"
                )
                raise InputError(
                    what, f"{path}: /{name}", "make the contact set again, or repack it"
                )

    if isinstance(file, IndexedFile) and file.objects is not None:
        for name, item in file.objects.items():
            visit(name[1:], item)
    else:
        file.visititems(visit)


OTHER_FORMATS = {
    SENSORS_FORMAT: (
        "give a contact set; collide label --sensors with --chart sensors.svg draws sensors, and"
        " with --chart-of distance, count or force what they measure"
    ),
    LABELS_FORMAT: "give a contact set; collide label with --chart labels.svg draws labels",
}
"""What to do with files of other formats, where a contact set is wanted."""


def require_version(file: h5py.File, path: str) -> tuple[int, int]:
    """The file's (major, minor). Raises InputError for another format, an unsupported major
    version."""
    known = f"this program reads {FORMAT} {' and '.join(f'{major}.x' for major in VERSIONS)}"
    stored_format = file.attrs.get("format")
    if stored_format is None:
        raise InputError("this HDF5 file has no root attribute format", path, known)
    if str(stored_format) != FORMAT:
        fix = OTHER_FORMATS.get(str(stored_format), known)
        raise InputError(f"the format is {stored_format!s}, not a contact set", path, fix)
    version = np.atleast_1d(file.attrs.get("format_version", []))
    if version.shape != (2,) or version.dtype.kind not in "iu":
        raise InputError("the root attribute format_version is not two integers", path, known)
    if int(version[0]) not in VERSIONS:
        raise InputError(f"the contact set has version {version[0]}.{version[1]}", path, known)
    return int(version[0]), int(version[1])


Block = TypeVar("Block")


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """Iterates over `blocks`; a second thread takes the next block while the caller processes the
    current one.

    Two blocks at a time are in memory. Exceptions of `blocks` are raised at the position of their
    block.
    """
    with ThreadPoolExecutor(1, "collide-read") as thread:
        following = thread.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block
