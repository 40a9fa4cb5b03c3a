"""Rows of a contact set selected by frames, worlds and pairs of shape paths; arrays of them, by blocks; NPZ files."""

from __future__ import annotations

import os
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib import format as npy

from collidecli.analysis.patterns import NamedItems, chosen_rows
from collidecli.errors import InputError
from collidecli.scene import tables
from collidecli.scene.mixing import RULE_COLUMNS, ContactMixing
from collidecli.scene.motion import Episodes
from collidecli.scene.shape_config import Material, Materials
from collidecli.scene.tables import (
    KIND_UNKNOWN,
    RIGID_COLUMNS,
    RIGID_CONTACTS,
    Column,
    ContactBlock,
    GroupRows,
    entries_of,
)
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.check import check_body_rows, check_group_rows
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet, rows_of_cells, spans
from collidecli.storage.result_files import TableColumn, cell_columns, require_pyarrow
from collidecli.texts import numbered

SINGLE_PARTICLE = 0
"""Kind of the rows of /soft_contacts that are of one particle each."""


class SelectedContacts:
    """The rows of a table in some frames and worlds of a set, read in blocks; cells are numbered in the selection.

    frames: range of the set's frames. worlds: intp[W], ascending, of its worlds. kept: bool[S + O, 2] of shapes and
    particle objects: a row has at least one of the first column, and only those of the second; None is all rows.
    time: float64[F] [s]. step: int64[F]. group: the table. Rows that refer to a row with shapes have these in shape0
    and shape1, and the number of that row in the file. Lists are in the blocks' groups, if named.
    """

    def __init__(
        self,
        contacts: ContactSet,
        frames: range,
        worlds: np.ndarray,
        kept: np.ndarray | None,
        table: str = RIGID_CONTACTS.name,
        kind: int | None = None,
    ) -> None:
        """kind: only rows of this kind. Raises InputError for a table that the set does not have."""
        self.contacts, self.frames, self.worlds, self.kept = contacts, frames, worlds, kept
        if table not in contacts.tables:
            groups_text = f"it has {', '.join(contacts.groups)}" if contacts.groups else "it has none"
            raise InputError(f"there is no group '{table}'", contacts.path, groups_text)
        self.group, self._kind, rows = contacts.tables[table].definition, kind, np.asarray(frames, np.intp)
        self.frame_count, self.world_count, self.cell_count = len(frames), len(worlds), len(frames) * len(worlds)
        self.time, self.step = contacts.time[rows], contacts.step[rows]
        self._needed = {name: contacts.tables[name] for name in (*self.group.references.values(), table)}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the rows that this version knows."""
        names = {column.name for column in self.group.columns}
        shapes = [column for column in RIGID_COLUMNS if column.name in self.shape_columns and column.name not in names]
        return (*shapes, *self.group.columns)

    @cached_property
    def shape_columns(self) -> tuple[str, ...]:
        """The columns that number shapes."""
        return next((tables.TABLES_BY_NAME[name].shapes for name in self.group.references.values()), self.group.shapes)

    @cached_property
    def episodes(self) -> Episodes | None:
        """The episodes of the selected worlds, in the selected frames; None without episodes."""
        episodes = self.contacts.episodes
        return None if episodes is None else episodes.of_worlds(self.worlds).sliced(self.frames)

    @property
    def _items(self) -> tuple[str, ...]:
        """The columns that give the shapes and particle objects of a row."""
        return (*self.shape_columns, *(("indices",) if self.group.objects else ()))

    @cached_property
    def contact_count(self) -> int:
        """Number of selected contacts; reads cell_start, and the columns of shapes if pairs are selected."""
        return sum(block.contact_count for block in self.blocks(()))

    def blocks(self, names: Sequence[str], max_rows: int = BLOCK_ROWS) -> Iterator[ContactBlock]:
        """Every selected cell in order, in blocks of about `max_rows` rows and cells; a cell is never split."""
        needed = tuple(dict.fromkeys((*names, *(self._items if self.kept is not None else ()))))
        pending: list[ContactBlock] = []
        size = first = 0
        for piece in self._pieces(needed, max_rows):
            weight = piece.contact_count + len(piece.cell_counts)
            if pending and size + weight > max_rows:
                yield _joined(first, pending)
                first += sum(len(block_before.cell_counts) for block_before in pending)
                pending, size = [], 0
            pending.append(piece if self.kept is None else self._filtered(piece))
            size += weight
        if pending:
            yield _joined(first, pending)

    def value_count(self, name: str) -> int:
        """Number of values of the selected lists of a list column."""
        return sum(len(block.groups[self.group.name].lists[name][1]) for block in self.blocks((name,)))

    def _pieces(self, names: tuple[str, ...], max_rows: int) -> Iterator[ContactBlock]:
        starts = [table.cell_start for table in self._needed.values()]
        read = self._read(names)
        for cell, count in self._spans():
            for first, last in spans(starts, max_rows, cell, cell + count):
                groups = rows_of_cells(self._needed, first, last, read)
                check_group_rows(self.contacts, groups, first, last)
                rows = groups[self.group.name]
                columns = {name: values for name, values in rows.columns.items() if name in names}
                if any(name in names for name in self.shape_columns):
                    columns |= dict(zip(self.shape_columns, tables.shapes_of(groups, self.group.name), strict=True))
                for name, target in self.group.references.items():
                    if name in columns:
                        columns[name] = columns[name] + int(self._needed[target].row_starts(first, first)[0])
                lists = {self.group.name: GroupRows(rows.cell_counts, {}, rows.lists)} if rows.lists else {}
                block = ContactBlock(first, rows.cell_counts, columns, lists)
                if self._kind is not None:
                    block = rows_of_block(block, np.flatnonzero(rows.columns["kind"] == self._kind))
                yield block

    def _read(self, names: tuple[str, ...]) -> dict[str, list[str]]:
        """Columns and lists to read of each group, for the columns and lists `names` of the rows."""
        of_group = [column.name for column in self.group.columns] + [
            entries.column.name for entries in self.group.lists
        ]
        wanted = [name for name in of_group if name in names]
        wanted += ["kind"] if self._kind is not None and "kind" not in wanted else []
        if not any(name in names for name in self.shape_columns):
            return {name: [] for name in self._needed} | {self.group.name: wanted}
        wanted += [name for name in (*self.group.shapes, *self.group.references) if name not in wanted]
        names_of_tables = {name: list(table.definition.shapes) for name, table in self._needed.items()}
        return names_of_tables | {self.group.name: wanted}

    def _spans(self) -> Iterator[tuple[int, int]]:
        """(first cell in the set, count) of contiguous cells of the file."""
        worlds = self.contacts.world_count
        if not len(self.worlds) or not len(self.frames):
            return
        if len(self.worlds) == worlds and self.frames.step == 1:
            yield self.frames.start * worlds, len(self.frames) * worlds
            return
        breaks = np.flatnonzero(np.diff(self.worlds) != 1) + 1
        runs = [(int(run[0]), len(run)) for run in np.split(self.worlds, breaks)]
        for frame in self.frames:
            for world, count in runs:
                yield frame * worlds + world, count

    def _filtered(self, block: ContactBlock) -> ContactBlock:
        assert self.kept is not None
        objects, shapes = self.contacts.particle_objects, len(self.contacts.shapes)
        items = [block.columns[name] for name in self.shape_columns]
        for entry in self.group.objects.values():
            items.append(shapes + objects.of(block.columns["indices"][:, entry]))
        return rows_of_block(block, np.flatnonzero(chosen_rows(self.kept, items)))


def kept_items(contacts: ContactSet, include: Sequence[str], exclude: Sequence[str]) -> np.ndarray | None:
    """See `NamedItems.kept`, of the items of a set."""
    return named_items(contacts).kept(include, exclude)


def named_items(contacts: ContactSet) -> NamedItems:
    """The shapes of a set, then its particle objects."""
    shapes, objects = contacts.shapes, contacts.particle_objects.path
    body = np.append(shapes.body, np.full(len(objects), -1))
    what = "shape, particle object or body" if objects else "shape or body"
    return NamedItems((*shapes.path, *objects), body, contacts.body_path, f"{what} of {contacts.path}")


def rows_of_block(block: ContactBlock, rows: np.ndarray) -> ContactBlock:
    """A block with some of its rows, and their lists."""
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)[rows]
    counts = np.bincount(cell, minlength=len(block.cell_counts)).astype(np.int64)
    columns = {name: values[rows] for name, values in block.columns.items()}
    lists = {}
    for group, own in block.groups.items():
        entries = {n: (lengths[rows], values[entries_of(lengths, rows)]) for n, (lengths, values) in own.lists.items()}
        lists[group] = GroupRows(counts, {}, entries)
    return ContactBlock(block.first_cell, counts, columns, lists)


def _joined(first: int, blocks: Sequence[ContactBlock]) -> ContactBlock:
    if len(blocks) == 1:
        return ContactBlock(first, blocks[0].cell_counts, blocks[0].columns, blocks[0].groups)
    groups = tables.consecutive_groups([block.groups for block in blocks])
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in blocks[0].columns}
    return ContactBlock(first, np.concatenate([block.cell_counts for block in blocks]), columns, groups)


def chosen_worlds(worlds: Sequence[int], contacts: ContactSet) -> np.ndarray:
    """intp[W], distinct worlds, ascending; all if `worlds` is empty. Raises InputError for a world out of range."""
    for world in worlds:
        if not 0 <= world < contacts.world_count:
            worlds_text = numbered(contacts.world_count, "world")
            raise InputError(f"world {world} is not there", contacts.path, f"it has {worlds_text}")
    return np.unique(np.asarray(worlds, np.intp)) if len(worlds) else np.arange(contacts.world_count)


def rows_of(selected: SelectedContacts, group: str, kind: int | None = None) -> SelectedContacts:
    """The rows of a table of the frames, worlds and shapes of a selection."""
    return SelectedContacts(selected.contacts, selected.frames, selected.worlds, selected.kept, group, kind)


def cells_of(selected: SelectedContacts, names: Sequence[str]) -> Iterator[tuple[int, int, dict[str, np.ndarray]]]:
    """(frame, world, columns) of each selected cell, numbered in the selection.

    Of a list among `names`, the columns have its values, and in `lengths` their number in each row.
    """
    for block in selected.blocks(names):
        start = np.concatenate([[0], np.cumsum(block.cell_counts)])
        groups = block.groups.get(selected.group.name)
        lists = {name: entries for name, entries in groups.lists.items() if name in names} if groups is not None else {}
        first = {name: np.concatenate([[0], np.cumsum(lengths)]) for name, (lengths, _) in lists.items()}
        for k in range(len(block.cell_counts)):
            frame, world = divmod(block.first_cell + k, selected.world_count)
            rows = slice(int(start[k]), int(start[k + 1]))
            columns = {name: values[rows] for name, values in block.columns.items()}
            for name, (lengths, values) in lists.items():
                columns["lengths"] = lengths[rows]
                columns[name] = values[int(first[name][rows.start]) : int(first[name][rows.stop])]
            yield frame, world, columns


# Parameters of contacts from their two surfaces: margins, and material parameters if the file has materials.

MARGINS = ("margin0", "margin1")


class Surfaces:
    """Parameters of pairs of shapes from the file's tables, computed in float64 as its optional columns are.

    names: of the parameters that the file's tables define.
    """

    def __init__(self, contacts: ContactSet) -> None:
        shapes, forced = contacts.shapes, contacts.forced
        rule = self._rule = contacts.material_rule
        materials = contacts.materials or Materials.of([Material()] * len(shapes))
        self.names: tuple[str, ...] = RULE_COLUMNS[rule] if rule else MARGINS
        pairs, of_pairs = np.stack([forced.shape0, forced.shape1], axis=1), contacts.forced_materials
        self._mixing = ContactMixing(rule or "combine", materials, shapes.margin, pairs, forced.margin, of_pairs)
        self._columns = {column.name: column for column in tables.OPTIONAL_COLUMNS}

    def of(self, name: str, shape0: np.ndarray, shape1: np.ndarray, dtype: str = "") -> np.ndarray:
        """One of `names` for contacts of shape0 [n] and shape1 [n]; `dtype` "" is the column's type."""
        if name not in self.names:
            raise ValueError(f"the file's materials do not define {name}")
        column = self._columns[name]
        column = replace(column, dtype=np.dtype(dtype)) if dtype else column
        return self._mixing.columns([column], shape0, shape1)[name]

    def absent(self, field: str) -> str:
        """Message for a missing `field` of a layout, with the reason."""
        if not self._rule:
            return f"{field}: a contact set of version 1.0 has no materials"
        return f"{field}: the material rule '{self._rule}' does not define it"


# Exported arrays: name, type and shape are known in advance, rows are computed block by block; NPZ files of them.

POINTS = ("point0", "point1")

Rows = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Rows of an array from columns of as many contacts."""
Counts = Callable[[ContactBlock], np.ndarray]
"""Sizes of groups of a block's contacts, such as its cells."""


@dataclass(frozen=True)
class Array:
    """An exported array. pieces: each call yields the rows in order, from the start; their total shape is `shape`."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Layout:
    """The arrays of one export. left_out: fields of the layout that a contact set lacks, each with the reason."""

    arrays: tuple[Array, ...]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [array.name for array in self.arrays]
        if len(set(names)) != len(names):
            raise ValueError(f"two arrays of one name among {names}")


def held(name: str, values: np.ndarray) -> Array:
    """An array in memory."""
    return Array(name, values.dtype, values.shape, lambda: iter((values,)))


def texts(name: str, values: Sequence[str]) -> Array:
    """Strings as NumPy's fixed-width Unicode, which readers load without pickles."""
    return held(name, np.array(values, dtype=f"<U{max((len(value) for value in values), default=1) or 1}"))


def per_contact(
    selected: SelectedContacts, name: str, dtype: str, row_shape: tuple[int, ...], columns: Sequence[str], rows: Rows
) -> Array:
    """One row for each contact, from some of its columns; one block of contacts at a time is in memory."""
    kind = np.dtype(dtype)

    def pieces() -> Iterator[np.ndarray]:
        for block in selected.blocks(columns):
            yield np.ascontiguousarray(rows(block.columns), kind).reshape(block.contact_count, *row_shape)

    return Array(name, kind, (selected.contact_count, *row_shape), pieces)


def per_cell(selected: SelectedContacts, name: str, columns: Sequence[str], counts: Counts) -> Array:
    """int32[F, W]: a count for each cell."""

    def pieces() -> Iterator[np.ndarray]:
        rest = np.zeros(0, np.int32)
        for block in selected.blocks(columns):
            rest = np.concatenate([rest, counts(block).astype(np.int32)])
            whole = len(rest) // selected.world_count * selected.world_count
            yield rest[:whole].reshape(-1, selected.world_count)
            rest = rest[whole:]

    return Array(name, np.dtype(np.int32), (selected.frame_count, selected.world_count), pieces)


def starts(name: str, count: int, columns: Sequence[str], selected: SelectedContacts, counts: Counts) -> Array:
    """int64[count + 1]: first row of each of `count` groups, from their sizes `counts` of each block."""

    def pieces() -> Iterator[np.ndarray]:
        total = 0
        yield np.zeros(1, np.int64)
        for block in selected.blocks(columns):
            sums = total + np.cumsum(counts(block), dtype=np.int64)
            total = int(sums[-1]) if len(sums) else total
            yield sums

    return Array(name, np.dtype(np.int64), (count + 1,), pieces)


def cell_start(selected: SelectedContacts) -> Array:
    """int64[F * W + 1]: cell c, frame c // W of world c % W, has the rows cell_start[c] to cell_start[c + 1] - 1."""
    return starts("cell_start", selected.cell_count, (), selected, lambda block: block.cell_counts)


def frames_and_worlds(selected: SelectedContacts) -> tuple[Array, ...]:
    """The arrays of every layout: frames, worlds, and the rows of their cells."""
    return (
        held("frame_index", np.asarray(selected.frames, np.int64)),
        held("step", selected.step),
        held("time", selected.time),
        held("world", selected.worlds.astype(np.int64)),
        cell_start(selected),
        *episode_arrays(selected.episodes),
    )


def episode_arrays(episodes: Episodes | None) -> tuple[Array, ...]:
    """The arrays of the selected episodes: which cells are recorded. Worlds are those of the set."""
    if episodes is None:
        return ()
    return (
        texts("episode_name", episodes.name),
        held("episode_world", episodes.world),
        held("episode_first_frame", episodes.first_frame),
        held("episode_frame_count", episodes.frame_count),
    )


def midpoint(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Midpoint of the two witness points: [n, 3] [m], in the world, of the points' type."""
    point0 = columns["point0"]
    return point0 + (columns["point1"] - point0) * point0.dtype.type(0.5)


def towards_shape0(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The normal from shape1 to shape0: [n, 3]; no component is a negative zero."""
    return 0.0 - columns["normal"]


def depth(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Penetration [n] [m]: positive where the inflated surfaces overlap, negative where they are apart."""
    return 0.0 - columns["distance"]


_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time of the ZIP format, so that equal contacts give equal bytes."""


def write_npz(output: AtomicOutput, arrays: Iterable[Array]) -> None:
    """Writes an uncompressed NPZ, which `numpy.load` reads without pickles. Raises OutputError after a failed write."""
    stream: Any = output
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for array in arrays:
            member = zipfile.ZipInfo(f"{array.name}.npy", _EPOCH)
            with archive.open(member, "w", force_zip64=True) as file:
                dtype = array.dtype.newbyteorder("<")
                header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": array.shape}
                npy.write_array_header_1_0(file, header)
                rows = 0
                for piece in array.pieces():
                    rows += len(piece) if array.shape else 0
                    file.write(np.ascontiguousarray(piece, dtype).tobytes())
                    output.check()
                if array.shape and rows != array.shape[0]:
                    raise ValueError(f"{array.name}: {rows} rows were made for {array.shape}")
    output.check()


# Contacts as the rows of a flat table, for CSV and Parquet.


class ContactRows:
    """A row for each row of a table. columns: in order; those of vectors are normal_x, friction5_0."""

    def __init__(self, selected: SelectedContacts) -> None:
        self._selected = selected
        self._stored = selected.columns
        self._kinds = (*selected.group.kinds, *(("unknown",) if selected.contacts.engine is not None else ()))
        shapes, contacts = selected.contacts.shapes, selected.contacts
        self._episodes = contacts.episodes
        bodies, objects = ("", *contacts.body_path), contacts.particle_objects.path
        check_body_rows(contacts)
        columns = [
            *cell_columns(self._episodes, contacts.time_unit),
            *(TableColumn(name, np.dtype(np.int32), words=shapes.path) for name in selected.shape_columns),
            *(TableColumn(_body(name), np.dtype(np.int32), words=bodies) for name in selected.shape_columns),
            *(TableColumn(name, np.dtype(np.int64), words=objects) for name in selected.group.objects),
        ]
        for column in self._stored:
            if column.name not in selected.shape_columns:
                dtype = column.dtype_for(contacts.float_type)
                words = self._kinds if column.name == "kind" else None
                names = flat_names(column)
                columns += [TableColumn(name, dtype, column.unit, words) for name in names]
        self.columns = tuple(columns)

    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Values [n] of every column by name; indices for a column with words."""
        selected, shapes = self._selected, self._selected.contacts.shapes
        for block in selected.blocks([column.name for column in self._stored]):
            if not block.contact_count:
                continue
            cell = np.repeat(block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts)
            frame, world = np.divmod(cell, selected.world_count)
            rows = {
                "frame": np.asarray(selected.frames)[frame],
                "step": selected.step[frame],
                "time": selected.time[frame],
                "world": selected.worlds[world],
            }
            for name in selected.shape_columns:
                rows[name] = block.columns[name]
                rows[_body(name)] = shapes.body[block.columns[name]] + 1
            for name, entry in selected.group.objects.items():
                rows[name] = selected.contacts.particle_objects.of(block.columns["indices"][:, entry])
            if self._episodes is not None:
                rows["episode"] = self._episodes.row(rows["world"], rows["frame"]) + 1
            yield rows | self._stored_values(block.columns)

    def _stored_values(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        arrays = {}
        for column in self._stored:
            if column.name in self._selected.shape_columns:
                continue
            values = columns[column.name].reshape(-1, column.width)
            if column.name == "kind":
                values = np.where(values == KIND_UNKNOWN, len(self._selected.group.kinds), values).astype(values.dtype)
            if column.name == "kind" and len(values) and values.max() >= len(self._kinds):
                where = f"{self._selected.contacts.path}: /{self._selected.group.name}/kind"
                raise InputError(f"{values.max()} is no kind of a contact", where)
            arrays |= dict(zip(flat_names(column), values.T, strict=True))
        return arrays


def _body(shape: str) -> str:
    return shape.replace("shape", "body")


def is_spatial(column: Column) -> bool:
    """Whether a column has vectors with the components x, y and z."""
    return column.width == 3 and column.dtype.kind == "f" and column.name != "barycentric"


def flat_names(column: Column) -> list[str]:
    """Names of the components of a column; of a vector in the world or a body they end with x, y and z."""
    if column.width == 1:
        return [column.name]
    ends = ("x", "y", "z") if is_spatial(column) else [str(k) for k in range(column.width)]
    return [f"{column.name}_{end}" for end in ends]


# Tables as numbered Parquet files of a least size, whose row groups end with an episode.

PART_BYTES = 64 << 20
"""Least size of a file, except the last."""
GROUP_BYTES = 16 << 20
"""Least size of a row group in memory, except the last of a file."""
LARGE_GROUP_BYTES = 256 << 20
"""Size in memory of a row group that ends within an episode."""


class ParquetParts:
    """Parquet files that are written one after another; `close` completes the last.

    A file ends where it has PART_BYTES at the end of an episode, and where the columns change. A row group has
    GROUP_BYTES at least and ends with an episode; episodes of more than LARGE_GROUP_BYTES have several. Readers find
    dictionaries as strings, since the package `datasets` reads no dictionary. name_of: path of a file for its number;
    its folder is created.
    """

    def __init__(self, name_of: Callable[[int], str]) -> None:
        self._pa = require_pyarrow("batch gather")
        self._name_of = name_of
        self.number = 0
        self._writer: Any = None
        self._schema: Any = None
        self._held: list[Any] = []
        self._held_bytes = 0

    def append(self, batch: Any) -> None:
        """Appends a record batch of pyarrow to the episode."""
        if self._writer is not None and not self._schema.equals(batch.schema):
            self.close()
        if self._writer is None:
            path, self._schema = self._name_of(self.number), batch.schema
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._writer = self._pa.parquet.ParquetWriter(path, batch.schema, compression="zstd", store_schema=False)
            text, is_dictionary = self._pa.string(), self._pa.types.is_dictionary
            read = self._pa.schema(f.with_type(text) if is_dictionary(f.type) else f for f in batch.schema).serialize()
            self._writer.add_key_value_metadata({"ARROW:schema": b64encode(read)})
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= LARGE_GROUP_BYTES:
            self._write_group()

    def end_episode(self) -> None:
        """Ends an episode: the row group if it is large enough, and the file if it has enough bytes."""
        if self._held_bytes >= GROUP_BYTES:
            self._write_group()
        if self._writer is not None and self._writer.file_handle.tell() >= PART_BYTES:
            self.close()

    def _write_group(self) -> None:
        table = self._pa.Table.from_batches(self._held).unify_dictionaries()
        self._held.clear()
        self._held_bytes = 0
        self._writer.write_table(table, row_group_size=max(1, len(table)))

    def close(self) -> None:
        """Completes the last file."""
        if self._writer is None:
            return
        if self._held:
            self._write_group()
        self._writer.close()
        self._writer = None
        self.number += 1
