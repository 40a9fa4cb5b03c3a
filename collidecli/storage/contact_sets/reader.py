"""Reader of contact sets, format `collide-contacts` 1.x and 2.x (docs/reference/file-formats.md)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, TypeVar

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.model import Model
from collidecli.scene.motion import SECOND, Episodes
from collidecli.scene.particles import ParticleObjects
from collidecli.scene.shape_config import (
    COMBINE_FIELDS,
    COMBINE_MODES,
    MATERIAL_RULES,
    PENALTY_PARAMETERS,
    Material,
    Materials,
    PairMaterials,
)
from collidecli.scene.tables import (
    RIGID_COLUMNS,
    RIGID_CONTACTS,
    TABLES,
    TABLES_BY_NAME,
    Column,
    ContactBlock,
    ContactGroup,
    GroupRows,
)
from collidecli.storage.contact_sets import schema
from collidecli.storage.contact_sets.schema import Table
from collidecli.storage.h5_chunks import ChunkRows
from collidecli.storage.h5_files import DAMAGE, IndexedFile, damaged, exact_texts, open_h5
from collidecli.storage.process_activity import data, structure, structure_step
from collidecli.texts import numbered

# Ranges of consecutive cells whose rows fit in memory.

BLOCK_ROWS = 262144
"""Rows that are read together."""


def spans(
    starts: Sequence[Callable[[slice], np.ndarray]], max_rows: int, first: int, last: int
) -> Iterator[tuple[int, int]]:
    """(first, last) of consecutive ranges of cells with at most `max_rows` rows, or of one cell with more.

    starts: each returns the first rows of cells in one table; the rows of all tables count.
    """
    window = max(1, max_rows)
    while first < last:
        cells = slice(first, min(last, first + window) + 1)
        cell_starts = [start(cells) for start in starts]
        rows = sum(start - start[0] for start in cell_starts)
        following = first + max(1, int(np.searchsorted(rows, max_rows, side="right")) - 1)
        yield first, following
        first = following


# Reader of one table of contacts.

AGAIN = "make the contact set again"


class ContactTable:
    """One table of contacts of an open contact set. Columns are read on demand.

    definition: its columns, lists and references; the optional columns are those of the file. names: of all columns
    and lists, with columns that this version does not know. row_count: number of rows.
    """

    def __init__(
        self,
        file: h5py.File,
        path: str,
        definition: ContactGroup,
        float_type: np.dtype,
        cells: tuple[int, int],
        extra: Sequence[str] = (),
    ) -> None:
        """float_type: of columns that follow the motion. cells: numbers of frames and of worlds. extra: more columns.

        Raises InputError for missing datasets, and for other types and shapes.
        """
        self.definition, self._path, self._file, self._cell_count = definition, path, file, cells[0] * cells[1]
        self._chunks: dict[str, ChunkRows] = {}
        self._held: dict[str, h5py.Dataset] = {}
        whole, reason = np.dtype(np.int64), f": {cells[0]} frames of {cells[1]} worlds, and one more"
        self._check("cell_start", whole, (self._cell_count + 1,), reason)
        self.row_count = self._extent(definition.columns[0].name)
        self._value_count = {entries.column.name: self._extent(entries.column.name) for entries in definition.lists}
        for entries in definition.lists:
            self._check(entries.start, whole, (self.row_count + 1,))
        for column in (*definition.columns, *(entries.column for entries in definition.lists)):
            extent = self._value_count.get(column.name, self.row_count)
            self._check(column.name, column.dtype_for(float_type), (extent, *schema.row_shape(column)))
        required = (column.name for column in definition.columns if column.name not in extra)
        self.names = (*required, *extra, *self._value_count)

    def _dataset(self, name: str) -> h5py.Dataset:
        if not self._file:
            raise InputError("the contact set is closed", self._path, "read it within its with block")
        if name not in self._held:
            self._held[name] = _dataset(self._file, self._path, f"/{self.definition.name}/{name}", AGAIN)
        return self._held[name]

    def _extent(self, name: str) -> int:
        return int((self._dataset(name).shape or (0,))[0])

    def _check(self, name: str, dtype: np.dtype, shape: tuple[int, ...], reason: str = "") -> None:
        dataset = self._dataset(name)
        if dataset.shape != shape or not _is_kind(dataset.dtype, dtype):
            raise InputError(f"is {dataset.dtype}{dataset.shape}, not {dtype}{shape}{reason}", self.where(name), AGAIN)

    def where(self, name: str) -> str:
        """File and dataset, for messages."""
        return f"{self._path}: /{self.definition.name}/{name}"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns with one value or vector a row, that this version knows."""
        return self.definition.columns

    def value_count(self, name: str) -> int:
        """Number of values of all lists of a list column."""
        return self._value_count[name]

    def chunks(self, name: str) -> ChunkRows:
        """The chunked rows of a dataset of the table. Raises InputError for a missing one."""
        if self._file and name not in self.names and name not in self.definition.dataset_names:
            what = f"it has {', '.join((*self.names, 'cell_start'))}"
            raise InputError(f"there is no column '{name}'", self._path, what)
        if name not in self._chunks or not self._file:
            self._chunks[name] = ChunkRows(self._dataset(name))
        return self._chunks[name]

    def column(self, name: str, rows: slice = slice(None)) -> np.ndarray:
        """Rows of one dataset, [n] or [n, width]. Raises InputError for a missing one or a wrong checksum."""
        chunks = self.chunks(name)
        try:
            return chunks.read(rows)
        except OSError as error:
            raise read_error(self._path, self._dataset(name), rows, error) from error

    def cell_start(self, cells: slice = slice(None)) -> np.ndarray:
        """int64: first row of each cell; the last entry is the end of the last cell."""
        return self.column("cell_start", cells).astype(np.int64, copy=False)

    def _starts(self, name: str, first: int, last: int, end: int) -> np.ndarray:
        """int64: entries first to last of a dataset of starts. Raises InputError if they are not ascending to `end`."""
        start = self.column(name, slice(first, last + 1)).astype(np.int64, copy=False)
        if start[0] < 0 or start[-1] > end or (np.diff(start) < 0).any():
            where = f"{self.where(name)}, entries {first} to {last}"
            raise InputError(f"is not ascending from 0 to {end}", where, AGAIN)
        return start

    def row_starts(self, first: int, last: int) -> np.ndarray:
        """int64: first rows of cells first to last. Raises InputError if they are not ascending or out of range."""
        return self._starts("cell_start", first, last, self.row_count)

    def rows(self, first: int, last: int, names: Iterable[str] | None = None) -> GroupRows:
        """The rows of cells first to last - 1, with references as in the file. names: the columns; None is all."""
        start = self.row_starts(first, last)
        rows = slice(int(start[0]), int(start[-1]))
        wanted = list(self.names if names is None else names)
        columns = {name: self.column(name, rows) for name in wanted if name not in self._value_count}
        lists = {}
        starts = {entries.column.name: entries.start for entries in self.definition.lists}
        for name in filter(starts.__contains__, wanted):
            values = self._starts(starts[name], rows.start, rows.stop, self._value_count[name])
            lists[name] = np.diff(values), self.column(name, slice(int(values[0]), int(values[-1])))
        return GroupRows(np.diff(start), columns, lists)

    def blocks(
        self, max_rows: int = BLOCK_ROWS, names: Iterable[str] | None = None, first: int = 0, last: int | None = None
    ) -> Iterator[ContactBlock]:
        """The rows in blocks of whole cells as of `ContactSet.blocks`; columns are the table's, lists in `groups`."""
        end = self._cell_count if last is None else min(last, self._cell_count)
        for begin, stop in spans([self.cell_start], max_rows, first, end):
            rows = self.rows(begin, stop, names)
            yield ContactBlock(begin, rows.cell_counts, rows.columns, {self.definition.name: rows})


def _dataset(file: h5py.File, path: str, name: str, fix: str = "") -> h5py.Dataset:
    """A dataset by its absolute name. Raises InputError for a closed file and a missing dataset."""
    if not file:
        raise InputError("the contact set is closed", path, "read it within its with block")
    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset):
        raise InputError("the dataset is missing", f"{path}: {name}", fix)
    return dataset


def tables_of_file(
    file: h5py.File, path: str, cells: tuple[int, int], names: Container[str], optional: bool
) -> dict[str, ContactTable]:
    """Those tables of a file that are in `names`, by name. optional: whether it may have optional columns.

    Raises InputError for a table that is not as the format specifies.
    """
    tables: dict[str, ContactTable] = {}
    float_type = np.dtype(np.float64)  # of the rigid contacts, whose points give the type of the other tables' points
    for definition in TABLES:
        where = f"{path}: /{definition.name}"
        group = file.get(f"/{definition.name}") if definition.name in names else None
        if group is None and definition is not RIGID_CONTACTS:
            continue
        if not isinstance(group, h5py.Group):
            raise InputError("is missing" if group is None else "is not a group", where, AGAIN)
        for target in definition.references.values():
            if target not in tables:
                raise InputError(f"refers to /{target}, which is missing", where, AGAIN)
        is_rigid = definition is RIGID_CONTACTS
        extra = [str(name) for name in group if name not in definition.dataset_names] if is_rigid else ()
        definition = definition.having(extra if optional else ())
        tables[definition.name] = ContactTable(file, path, definition, float_type, cells, extra)
        if is_rigid:
            float_type = tables[definition.name].chunks("point0").dtype
    return tables


def rows_of_cells(
    tables: Mapping[str, ContactTable], first: int, last: int, names: Mapping[str, Iterable[str]] | None = None
) -> dict[str, GroupRows]:
    """The rows of cells first to last - 1 of all groups, references counted from the first row of these cells.

    names: the columns of each group to read; None is all. Raises InputError for a row that refers to another cell than
    its own.
    """
    rows_of_tables: dict[str, GroupRows] = {}
    for name, table in tables.items():
        rows = rows_of_tables[name] = table.rows(first, last, None if names is None else names[name])
        for column, target in table.definition.references.items():
            if column not in rows.columns:
                continue
            begin = int(tables[target].row_starts(first, first)[0])
            numbers = rows.columns[column] = rows.columns[column].astype(np.int64) - begin
            ends = np.cumsum(rows_of_tables[target].cell_counts)
            cell = np.repeat(np.arange(last - first), rows.cell_counts)
            outside = (numbers < (ends - rows_of_tables[target].cell_counts)[cell]) | (numbers >= ends[cell])
            if outside.any():
                where = f"{table.where(column)}, cell {first + int(cell[int(np.argmax(outside))])}"
                raise InputError(f"is no row of /{target} of its cell", where, AGAIN)
    return rows_of_tables


# The material tables of a contact set: conversion from and to `Materials`.


def material_values(model: Model) -> dict[str, tuple[Table, np.ndarray | Sequence[str]]]:
    """The material tables of a model and their values, by path."""
    material, pairs = model.shapes.material, model.forced_material
    found: dict[str, tuple[Table, np.ndarray | Sequence[str]]] = {}
    tables = schema.MATERIAL_TABLES[model.material_rule]
    if any(np.isfinite(getattr(material, name)).any() for name in PENALTY_PARAMETERS):
        tables += schema.PENALTY_TABLES
    for table in tables:
        name = table.path.rpartition("/")[2]
        values = getattr(material, name)
        found[table.path] = table, [COMBINE_MODES[mode] for mode in values] if name in COMBINE_FIELDS else values
    if len(pairs) and pairs.any():
        found |= {table.path: (table, getattr(pairs, table.path.rpartition("/")[2])) for table in schema.PAIR_TABLES}
    return found


def tables_of(rule: str, is_there: Callable[[str], bool]) -> tuple[Table, ...]:
    """The required tables of a file of material rule `rule`; "" is a file of version 1.0, which has none."""
    tables = schema.MATERIAL_TABLES.get(rule, ())
    for optional in (schema.PENALTY_TABLES, schema.PAIR_TABLES):
        if rule and any(is_there(table.path) for table in optional):
            tables += optional
    return tables


def _read_materials(shape_count: int, tables: dict[str, Any]) -> Materials:
    """The materials of a file's tables, given by path; fields outside the file's rule have the values of `Material()`.

    An unknown combine mode is -1.
    """
    columns = dict(vars(Materials.of([Material()] * shape_count)))
    for path, values in tables.items():
        group, _, name = path.rpartition("/")
        if group == schema.SHAPE_GROUP and name in columns:
            if name in COMBINE_FIELDS:
                modes = [COMBINE_MODES.index(word) if word in COMBINE_MODES else -1 for word in values]
                values = np.array(modes, np.int8)
            columns[name] = values
    return Materials(**columns)


Opened = TypeVar("Opened", bound="ContactSet")

EPISODES_SINCE = (1, 2)
GROUPS_SINCE = (1, 3)
MOST_CHUNK_BYTES = 64 << 20
"""Largest chunk that is read; this program writes chunks of a few MiB."""


@dataclass(frozen=True, repr=False)
class ShapeTable:
    """The table of shapes of a contact set; shape0 and shape1 are its rows.

    path, type: str. body: int32[S], -1 static. template: int32[S], -1 in every world. margin, gap: float32[S] [m].
    """

    path: tuple[str, ...]
    type: tuple[str, ...]
    body: np.ndarray
    template: np.ndarray
    margin: np.ndarray
    gap: np.ndarray

    def __repr__(self) -> str:
        return f"<ShapeTable {len(self)}>"

    def __len__(self) -> int:
        return len(self.path)


@dataclass(frozen=True)
class ForcedPairs:
    """Forced pairs. shape0, shape1: int32[K]. margin, gap: float32[K] [m], own values; NaN keeps the shapes'.

    A forced pair's margin is the sum for both shapes.
    """

    shape0: np.ndarray
    shape1: np.ndarray
    margin: np.ndarray
    gap: np.ndarray

    def __len__(self) -> int:
        return len(self.shape0)


class ContactSet:
    """A complete contact set, open for reading; a context manager. Tables are in memory, columns are in the file.

    scene, scene_sha256, trajectory_sha256, content_sha256: str. config: the options of the run.
    shapes: ShapeTable. body_path: of each body. world_template: int32[W]. forced: ForcedPairs.
    material_rule: "combine", "mujoco" or, for a file of version 1.0, "".
    gap_rule: "max" or "sum". up_axis: "X", "Y" or "Z". time: float64[F] in `time_unit`, which is
        SECOND, or FRAME where the times of the frames are unknown. step: int64[F].
    episodes: of a recording that consists of demonstrations, or None. engine: EngineRecord of another engine, or None.
    particle_objects: ParticleObjects, of a scene with particles. tables: of contacts, by name. rigid: the table
        /rigid_contacts. groups: the other tables.
    """

    def __init__(self, file: h5py.File, path: str, trusted: bool = False, like: ContactSet | None = None) -> None:
        """Wraps an open file and owns it; use `open`. trusted: leaves out the rules of attributes and chunks.

        like: a set that may have the same model, whose tables of shapes, bodies and materials are then not read.
        """
        self.path = path
        self._file = file
        self.version = require_version(file, path)
        if not trusted:
            refuse_large_chunks(file, path)
        if not is_complete(file):
            raise InputError("the contact set is incomplete: its writer was stopped", path, "make it again")
        for where, what in () if trusted else schema.header_faults(file):
            raise InputError(what, f"{path}: {where}" if where else path, "collide check lists every fault")
        root = file.attrs
        self.creator = str(root["creator"])
        self.scene = str(root["scene"])
        self.scene_sha256 = str(root["scene_sha256"])
        self.trajectory_sha256 = str(root["trajectory_sha256"])
        self.content_sha256 = str(root["content_sha256"])
        self.config: dict[str, Any] = json.loads(str(root["config"]))

        same = ("creator", "version", "scene_sha256", "config")
        is_like = like is not None and all(getattr(self, name) == getattr(like, name) for name in same)
        tables = self._tables((*(schema.MODEL_TABLES[-1:] if is_like else schema.MODEL_TABLES), *schema.TIME_TABLES))
        self.world_template: np.ndarray = tables["/model/world/template"]
        self.time: np.ndarray = tables[schema.TIME]
        self.time_unit = str(_dataset(file, path, schema.TIME).attrs.get("unit", SECOND))
        self.step: np.ndarray = tables["/time/step"]
        if like is not None and is_like and np.array_equal(self.world_template, like.world_template):
            self.shapes, self.body_path, self.forced = like.shapes, like.body_path, like.forced
        else:
            tables = self._tables(schema.MODEL_TABLES) if is_like else tables
            self.shapes = ShapeTable(*(tables[f"/model/shape/{name}"] for name in ShapeTable.__dataclass_fields__))
            self.body_path: tuple[str, ...] = tables["/model/body/path"]
            self.forced = self._forced_pairs()
        model = file["/model"]
        self.gap_rule = str(model.attrs["gap_rule"])
        self.up_axis = str(model.attrs["up_axis"])
        self.material_rule = str(model.attrs.get("material_rule", ""))
        if self.material_rule and self.material_rule not in MATERIAL_RULES:
            fix = f"known rules: {', '.join(MATERIAL_RULES)}"
            raise InputError(f"material_rule is '{self.material_rule}'", f"{path}: /model", fix)
        if not trusted:
            _ = self._materials
        self.episodes = self._episodes()
        self.engine = self._engine()
        known = TABLES_BY_NAME if self.version >= GROUPS_SINCE else (RIGID_CONTACTS.name,)
        cells = (self.frame_count, self.world_count)
        self.tables = tables_of_file(file, path, cells, known, bool(self.material_rule))
        self.rigid, *others = self.tables.values()
        self.groups = {table.definition.name: table for table in others}
        self.particle_objects = self._particle_objects()

    @classmethod
    def open(cls: type[Opened], path: str | os.PathLike[str]) -> Opened:
        """Opens a file. Raises InputError for a file that is no complete contact set of a supported version."""
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

    def _tables(self, tables: tuple[schema.Table, ...]) -> dict[str, Any]:
        """Each table by its path. Raises InputError for tables of one extent with different numbers of rows."""
        columns = {table.path: self._table(table) for table in tables}
        first = {table.extent: table.path for table in reversed(tables)}
        for table in tables:
            rows, wanted = len(columns[table.path]), len(columns[first[table.extent]])
            if rows != wanted:
                what = f"has {rows} rows, and {first[table.extent]} has {wanted}"
                raise InputError(what, f"{self.path}: {table.path}")
        return columns

    def _table(self, table: schema.Table) -> Any:
        dataset, where = _dataset(self._file, self.path, table.path), f"{self.path}: {table.path}"
        row_shape = schema.row_shape(table)
        if not dataset.shape or dataset.shape[1:] != row_shape or not _is_kind(dataset.dtype, table.dtype):
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
        return ForcedPairs(*self._tables(schema.FORCED_TABLES).values())

    def _episodes(self) -> Episodes | None:
        """Raises InputError for names that are not unique, and ranges that are not in the file or overlap."""
        if self.version < EPISODES_SINCE or schema.EPISODE_GROUP not in self._file:
            return None
        episodes = Episodes(*self._tables(schema.EPISODE_TABLES).values())
        self._refuse(episodes.faults(self.frame_count, self.world_count), schema.EPISODE_GROUP)
        return episodes

    def _refuse(self, faults: Iterable[tuple[str, int, str]], group: str) -> None:
        """Raises InputError for the first fault: column, row, and what is wrong."""
        for column, row, what in faults:
            raise InputError(what, f"{self.path}: {group}/{column}, row {row}", "make it again")

    def _engine(self) -> schema.EngineRecord | None:
        if not schema.has_engine(self._file, self.version):
            return None
        group: Any = self._file[schema.ENGINE_GROUP]
        values = {name: group.attrs.get(name) for name in schema.ENGINE_ATTRIBUTES}
        values |= {name: bool(values[name]) for name in ("stateful", "reports_gap") if values[name] is not None}
        record = schema.EngineRecord(*values.values(), *self._tables(schema.ENGINE_TABLES).values())
        count, pairs = len(self.shapes), np.append(record.not_asked0, record.not_asked1)
        for what, is_fault in {
            f"has {len(record.treated)} rows for {count} shapes": len(record.treated) != count,
            f"is not {', '.join(schema.TREATMENTS)}": not set(record.treated) <= set(schema.TREATMENTS),
            "has a pair that is no rows of /model/shape": ((pairs < 0) | (pairs >= count)).any(),
        }.items():
            if is_fault:
                raise InputError(what, f"{self.path}: {schema.ENGINE_GROUP}", AGAIN)
        return record

    def _particle_objects(self) -> ParticleObjects:
        """Raises InputError for a missing table if a group has particles, and for rows that are not consecutive."""
        are_needed = any(table.definition.objects for table in self.groups.values())
        if self.version < GROUPS_SINCE or not (are_needed or schema.PARTICLE_GROUP in self._file):
            return ParticleObjects()
        objects = ParticleObjects(*self._tables(schema.PARTICLE_TABLES).values())
        self._refuse(objects.faults(int(self.world_template.max(initial=-1)) + 1), schema.PARTICLE_GROUP)
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
                what = f"has {len(stored[table.path])} rows for {expected[table.extent]} {table.extent}"
                raise InputError(what, f"{self.path}: {table.path}")
        columns = vars(PairMaterials.of([None] * len(self.forced)))
        of_pairs = {name: stored.get(f"{schema.PAIR_GROUP}/{name}", values) for name, values in columns.items()}
        return (_read_materials(len(self.shapes), stored) if self.material_rule else None), PairMaterials(**of_pairs)

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
        """The columns that this version knows: the required ones, then the optional ones of the file."""
        return self.rigid.columns

    @property
    def float_type(self) -> np.dtype:
        """float32 or float64, of point0 and point1."""
        return self.rigid.chunks("point0").dtype

    def column(self, name: str, rows: slice = slice(None)) -> np.ndarray:
        """Rows of one column of /rigid_contacts, see `ContactTable.column`."""
        return self.rigid.column(name, rows)

    def cell_start(self, cells: slice = slice(None)) -> np.ndarray:
        """int64: first row of each cell in /rigid_contacts; the last entry is the end of the last cell."""
        return self.rigid.cell_start(cells)

    def cell(self, frame: int, world: int = 0) -> ContactBlock:
        """The contacts of one cell and the rows of its groups. Raises InputError for a frame or world out of range."""
        if not (0 <= frame < self.frame_count and 0 <= world < self.world_count):
            fix = f"it has {numbered(self.frame_count, 'frame')} and {numbered(self.world_count, 'world')}"
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
        """Cells in order, in blocks of whole cells with at most `max_rows` contacts, or one cell with more.

        names: the columns to read; None is all. first, last: range of cells, the last excluded; all by default.
        with_groups: of all groups too, whose rows count as contacts.
        """
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
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_kind(dtype: np.dtype, wanted: np.dtype | None) -> bool:
    """Whether every value of type `dtype` is a value of type `wanted`; None is strings."""
    if wanted is None:
        return h5py.check_string_dtype(dtype) is not None
    return dtype.kind in "iuf" and np.can_cast(dtype, wanted, "safe")


def is_complete(file: h5py.File) -> bool:
    """Whether the writer of an open contact set finished it."""
    return bool(np.array_equal(file.attrs.get("complete", 0), 1))


def refuse_large_chunks(file: h5py.File, path: str) -> None:
    """Raises InputError for large chunks: a read of any of its rows unpacks a whole chunk."""

    def visit(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Dataset) and item.chunks is not None:
            size = math.prod(item.chunks) * item.dtype.itemsize
            if size > MOST_CHUNK_BYTES:
                what = f"has chunks of {size >> 20} MiB, and at most {MOST_CHUNK_BYTES >> 20} MiB are read"
                raise InputError(what, f"{path}: /{name}", "make the contact set again, or repack it")

    if isinstance(file, IndexedFile) and file.objects is not None:
        for name, item in file.objects.items():
            visit(name[1:], item)
    else:
        file.visititems(visit)


def require_version(file: h5py.File, path: str) -> tuple[int, int]:
    """The file's (major, minor). Raises InputError for another format, an unsupported major version."""
    known = f"this program reads {schema.FORMAT} {' and '.join(f'{major}.x' for major in schema.VERSIONS)}"
    stored_format = file.attrs.get("format")
    if stored_format is None:
        raise InputError("this HDF5 file has no root attribute format", path, known)
    if str(stored_format) != schema.FORMAT:
        raise InputError(f"the format is {stored_format!s}, not a contact set", path, known)
    version = np.atleast_1d(file.attrs.get("format_version", []))
    if version.shape != (2,) or version.dtype.kind not in "iu":
        raise InputError("the root attribute format_version is not two integers", path, known)
    if int(version[0]) not in schema.VERSIONS:
        raise InputError(f"the contact set has version {version[0]}.{version[1]}", path, known)
    return int(version[0]), int(version[1])


def read_error(path: str, dataset: h5py.Dataset, rows: slice, error: OSError) -> InputError:
    """The error for a failed read of `dataset`."""
    what = f"cannot be read: {str(error).splitlines()[0]}"
    if "filter returned failure" in str(error):
        what = "a chunk is damaged: its checksum does not match"
    stop = dataset.shape[0] if rows.stop is None else rows.stop
    return InputError(what, f"{path}: {dataset.name}, rows {rows.start or 0} to {stop}", "make the file again")


Block = TypeVar("Block")


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """Iterates over `blocks`; a second thread takes the next block while the caller processes the current one.

    Two blocks at a time are in memory. Exceptions of `blocks` are raised at the position of their block.
    """
    with ThreadPoolExecutor(1, "collide-read") as thread:
        following = thread.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block
