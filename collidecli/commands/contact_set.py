"""The Python API of contact set files: cells, blocks, pairs, events, named columns, data frames."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.patterns import listed
from collidecli.analysis.summary import PairTotals, touches_of
from collidecli.analysis.touches import Intervals, MergeGap
from collidecli.commands.event_stream import DURATION, EventOptions, EventStream
from collidecli.commands.events import leading
from collidecli.commands.results import html_table
from collidecli.commands.scenes import frames_text, parse_frames
from collidecli.errors import InputError, extra_module
from collidecli.exporters.rows import ContactRows, SelectedContacts, is_spatial, kept_items
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.motion import SECOND, check_seconds
from collidecli.scene.options import changed_options
from collidecli.scene.tables import RIGID_COLUMNS, RIGID_CONTACTS, Column, ContactBlock, group_words
from collidecli.storage.contact_sets import reader
from collidecli.storage.contact_sets.check import check_shape_rows
from collidecli.texts import count

if TYPE_CHECKING:
    import pandas
    import xarray


# Variables of an xarray dataset of the rows of a table.


def variable(column: Column, values: Mapping[str, np.ndarray], of_rows: str) -> tuple[list[str], np.ndarray, dict]:
    """Dimensions, values and attributes of a column. of_rows: the dimension of its rows."""
    more = [] if column.width == 1 else ["axis"] if is_spatial(column) else [f"{column.name}_part"]
    about = {"long_name": column.meaning} | ({"units": column.unit} if column.unit else {})
    return [of_rows, *more], values[column.name], about


def table_variables(rows: SelectedContacts, of_rows: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables of the columns and lists of a table, and coordinates: rows of list entries, paths of objects.

    of_rows: the dimension of the rows.
    """
    definition, float_type = rows.group, rows.contacts.float_type
    lists = [entries.column for entries in definition.lists]
    empty = {
        column.name: np.zeros((0, column.width) if column.width > 1 else 0, column.dtype_for(float_type))
        for column in (*rows.columns, *lists)
    }
    columns = {column.name: [empty[column.name]] for column in rows.columns}
    values = {column.name: [empty[column.name]] for column in lists}
    lengths: dict[str, list[np.ndarray]] = {column.name: [np.zeros(0, np.int64)] for column in lists}
    for block in rows.blocks([*columns, *values]):
        for name, parts in columns.items():
            parts.append(block.columns[name])
        for name, parts in values.items():
            entries = block.groups[definition.name].lists[name]
            lengths[name].append(entries[0])
            parts.append(entries[1])
    joined = {name: np.concatenate(parts) for name, parts in (columns | values).items()}
    variables = {column.name: variable(column, joined, of_rows) for column in rows.columns}
    coordinates: dict[str, Any] = {}
    for column in lists:
        variables[column.name] = variable(column, joined, f"{column.name}_entry")
        numbers = np.concatenate(lengths[column.name])
        coordinates[f"{column.name}_row"] = (f"{column.name}_entry", np.repeat(np.arange(len(numbers)), numbers))
    objects = rows.contacts.particle_objects
    for name, entry in definition.objects.items():
        coordinates[name] = (of_rows, np.array(objects.path, object)[objects.of(joined["indices"][:, entry])])
    return variables, coordinates


def frames_and_worlds(rows: SelectedContacts) -> dict[str, np.ndarray]:
    """Frame and world of each selected row, as numbered in the contact set."""
    none = np.zeros(0, np.int64)
    cells = [none, *(np.repeat(_cells(block), block.cell_counts) for block in rows.blocks(()))]
    frame, world = np.divmod(np.concatenate(cells), rows.world_count)
    return {"frame": np.asarray(rows.frames, np.int64)[frame], "world": rows.worlds[world]}


def _cells(block: Any) -> np.ndarray:
    return block.first_cell + np.arange(len(block.cell_counts))


class NamedColumns(Mapping[str, np.ndarray]):
    """A mapping of names to arrays [row_count]; texts are arrays of objects of type str.

    refused: names that raise InputError, with the error.
    """

    def __init__(self, columns: Mapping[str, np.ndarray], refused: Mapping[str, InputError] | None = None) -> None:
        self._refused = dict(refused or {})
        self._columns = {name: values for name, values in columns.items() if name not in self._refused}

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self._refused:
            raise self._refused[name]
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.row_count} rows: {', '.join(self._columns)})"

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of the columns. Raises InputError without pandas."""
        pandas = extra_module("pandas", "tables", "to_pandas")
        return pandas.DataFrame(self._columns)


AXES = ("x", "y", "z")
Axes = Sequence[Mapping[str, np.ndarray]]
"""Named values along each dimension of dense arrays."""


def dense_rows(axes: Axes, arrays: Mapping[str, np.ndarray], kept: np.ndarray) -> NamedColumns:
    """A row for each entry of arrays that is kept, a vector as name_x, name_y, name_z. kept: bool[...]."""
    index = np.nonzero(kept)
    columns = {
        name: values[rows] for of_axis, rows in zip(axes, index, strict=True) for name, values in of_axis.items()
    }
    for name, values in arrays.items():
        dense = values[index]
        columns |= {name: dense} if dense.ndim == 1 else {f"{name}_{axis}": dense[:, k] for k, axis in enumerate(AXES)}
    return NamedColumns(columns)


def dense_intervals(axes: Axes, touches: np.ndarray) -> NamedColumns:
    """A row for each run of frames of an entry that touches, ordered by its begin; bool[F, ...].

    Columns: those of the other axes, begin_frame, last_frame, begin_time, last_time. axes: the first one has `frame`
    and `time`.
    """
    step = np.diff(np.pad(touches.astype(np.int8), ((1, 1), *((0, 0),) * (touches.ndim - 1))), axis=0)
    begin, end = (np.stack(np.nonzero(np.moveaxis(step, 0, -1) == sign)) for sign in (1, -1))
    order = np.argsort(begin[-1], kind="stable")
    begin, last = begin[:, order], end[-1, order] - 1
    columns = {
        name: values[row] for of_axis, row in zip(axes[1:], begin, strict=False) for name, values in of_axis.items()
    }
    for name, values in axes[0].items():
        columns |= {f"begin_{name}": values[begin[-1]], f"last_{name}": values[last]}
    return NamedColumns(columns)


class ContactSet(reader.ContactSet):
    """A contact set file, open for reading; a context manager.

    >>> import collidecli
    >>> with collidecli.ContactSet.open("out.h5") as contacts:  # doctest: +SKIP
    ...     contacts.cell(frame=3).columns["distance"]

    Tables (shapes, time, ...) are in memory; contacts are read on demand: one `cell`, `blocks` of whole cells, or a
    `column`. Iteration yields the blocks.
    """

    def __repr__(self) -> str:
        size = f"contacts={self.contact_count} frames={self.frame_count} worlds={self.world_count}"
        return f"<ContactSet {self.path} {size}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows: file, scene, counts and options, every text escaped."""
        has_span = self.frame_count > 0 and self.time_unit == SECOND
        span = f", {self.time[0]:.6g} to {self.time[-1]:.6g} s" if has_span else ""
        changed = ", ".join(f"{name} {value}" for name, value in changed_options(self.config).items())
        rows: dict[str, object] = {
            "contact set": self.path,
            "scene": self.scene,
            "contacts": self.contact_count,
            "frames": f"{count(self.frame_count)}{span}",
            "worlds": self.world_count,
            "shapes": len(self.shapes),
            "bodies": len(self.body_path),
            "options": changed or "at their defaults",
        }
        rows |= {group_words(name): table.row_count for name, table in self.groups.items()}
        if self.episodes is not None:
            rows["demonstrations"] = len(self.episodes)
        if optional := [column.name for column in self.columns if column not in RIGID_COLUMNS]:
            rows["optional columns"] = ", ".join(optional)
        return html_table(rows)

    def __iter__(self) -> Iterator[ContactBlock]:
        """All contacts in order, in blocks of whole cells."""
        return self.blocks()

    def pairs(self) -> NamedColumns:
        """Every pair of shapes with contacts, including those within the gap, in descending order of contacts.

        Columns: shape0, shape1 (paths, as in `to_pandas`), row0, row1 (rows of `shapes`), contacts, cells (number of
        cells with contacts), least_distance [m], negative is penetration.
        """
        totals, count = PairTotals.none(), len(self.shapes)
        for block in self.blocks(names=("shape0", "shape1", "distance")):
            check_shape_rows(self, block)
            totals = totals.joined(PairTotals.of(touches_of(block), count))
        order = np.lexsort((totals.key, -totals.contacts))
        row0, row1 = np.divmod(totals.key[order], max(1, count))
        paths = np.array(self.shapes.path, object)
        return NamedColumns(
            {
                "shape0": paths[row0],
                "shape1": paths[row1],
                "row0": row0.astype(np.int32),
                "row1": row1.astype(np.int32),
                "contacts": totals.contacts[order],
                "cells": totals.touches[order],
                "least_distance": totals.least[order].astype(np.float32),
            }
        )

    @python_call
    def events(
        self,
        *,
        threshold: float | str = 0.0,
        merge_gap: int = 0,
        merge_seconds: float | None = None,
        by: str = "shapes",
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        bodies: str | Sequence[str] = (),
        exclude_bodies: str | Sequence[str] = (),
        between: str | Sequence[str] = (),
        worlds: Sequence[int] = (),
        frames: str | int | slice = "",
    ) -> NamedColumns:
        """Intervals in which pairs touch, ordered by begin, world and pair; columns as in docs/howto/list-touches.md.

        The paths of a pair are in shape0 and shape1, or in body0 and body1 with by="bodies".

        Args: the options of `collide events`. threshold: [m]; "any" or math.inf counts every contact. merge_gap: number
        of frames without touch that do not end an interval; merge_seconds: in place of it, time between touches [s].
        include, exclude, bodies (`--body`), exclude_bodies, between: patterns, a sequence or a text with commas.
        worlds: numbers (`--world`). frames: "A:B:S", a slice or a number. Raises InputError as `collide events` does.
        Of an array of poses without times, begin_time, end_time and deepest_time are numbers of frames, and `seconds`
        and merge_seconds raise InputError.
        """
        threshold = math.inf if threshold in ("any", math.inf) else checked_metres(threshold, "threshold")
        if not isinstance(merge_gap, int):
            raise InputError(f"'{merge_gap}' is no number of frames", "merge_gap", "for a time give merge_seconds=0.02")
        if merge_gap < 0 or (merge_seconds is not None and not merge_seconds >= 0.0):
            raise InputError("a pause is at least 0", "merge_gap, merge_seconds")
        if merge_seconds is not None:
            check_seconds(self.time_unit, "merge_seconds")
        gap = MergeGap(merge_gap, merge_seconds)
        patterns = [listed(given) for given in (include, exclude, bodies, exclude_bodies)]
        options = EventOptions(
            threshold, gap, by, *patterns, between=listed(between), worlds=worlds, frames=frames_text(frames)
        )
        stream = EventStream(self, options)
        for note in stream.notes:
            warnings.warn(note, stacklevel=3)
        intervals = Intervals.chained(*stream.batches())
        first = leading(intervals, stream.frames, "begin")
        return NamedColumns(stream.columns(first), self._unknown_seconds(DURATION))

    def _unknown_seconds(self, name: str) -> dict[str, InputError]:
        """The error of a column in seconds where the times of the frames are unknown."""
        try:
            check_seconds(self.time_unit, name)
        except InputError as error:
            return {name: error}
        return {}

    @python_call
    def to_pandas(
        self,
        frames: str | int | slice = "",
        *,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        group: str = "",
    ) -> pandas.DataFrame:
        """A row per contact, with the columns of `collide export --to csv`, and episode if there are any.

        group: the rows of this table instead, such as "soft_contacts", with the columns of `collide export --group`.

        shape0, shape1, body0, body1: paths, "" is the body of a static shape. kind: point, edge, face or patch. All
        five are categories. Vectors are name_x, name_y, name_z. frames: "A:B:S", a slice or a number; "" is all.
        include, exclude: patterns of paths of shapes and particle objects, as of `collide export`. The selected
        contacts are in memory. Raises InputError without pandas, and for a pattern without a match.
        """
        pandas = extra_module("pandas", "tables", "to_pandas")
        rows = ContactRows(self._selected(group, frames, include, exclude))
        parts = [{column.name: np.zeros(0, column.dtype) for column in rows.columns}, *rows.blocks()]
        data: dict[str, Any] = {}
        for column in rows.columns:
            values = np.concatenate([part[column.name] for part in parts])
            if column.name == "episode" and self.episodes is not None:
                data["episode"] = pandas.Categorical.from_codes(values - 1, list(self.episodes.name))
            else:
                data[column.name] = values if column.words is None else _categories(pandas, column.words, values)
        return pandas.DataFrame(data)

    @python_call
    def to_xarray(
        self,
        frames: str | int | slice = "",
        *,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        group: str = "",
    ) -> xarray.Dataset:
        """A dataset over the dimension `contact`, with the table of shapes.

        group: the rows of this table instead, such as "soft_contacts", over the dimension `row`. Rows of lists, such as
        the corners of faces, have the dimension `<list>_entry` and the coordinate `<list>_row`. Paths of the particle
        objects of a row are coordinates.

        Coordinates are frame, world, time and, if there are any, episode. Vectors have the dimension `axis` (x, y, z).
        Units are attributes. frames, include, exclude: as of `to_pandas`. Raises InputError without xarray.
        """
        xarray = extra_module("xarray", "tables", "to_xarray")
        rows, of_rows = self._selected(group, frames, include, exclude), "row" if group else "contact"
        variables, coordinates = table_variables(rows, of_rows)
        columns = frames_and_worlds(rows)
        shapes = self.shapes
        for name in ("type", "body", "margin", "gap"):
            variables[f"shape_{name}"] = ("shape", np.array(getattr(shapes, name)))
        coordinates |= {name: (of_rows, columns[name]) for name in ("frame", "world")}
        coordinates["time"] = (of_rows, self.time[columns["frame"]], {"units": self.time_unit})
        if self.episodes is not None:
            names = np.array([*self.episodes.name, ""], object)
            coordinates["episode"] = (of_rows, names[self.episodes.row(columns["world"], columns["frame"])])
        coordinates |= {"axis": list(AXES), "shape_path": ("shape", np.array(shapes.path, object))}
        about = {"scene": self.scene, "content_sha256": self.content_sha256, "up_axis": self.up_axis}
        return xarray.Dataset(variables, coordinates, about)

    @python_call
    def export(self, to: str, output: str | os.PathLike[str] = "", **options: Any) -> str:
        """Writes the set as another format, as `collide export` does; returns the path of the output.

        to: "usd", "csv", "parquet", "npz", "newton", "genesis", "dart", "raisim" or "mujoco". output: "" is the set's
        name with the format's extension, in the current folder. options: those of `collide export`, with underscores:
        scene, trajectory, frames, worlds=[0, 3], include, exclude, normal_length, force=True. Raises InputError and
        OutputError as the command does.
        """
        from collidecli.commands.export import export, python_request

        return export(python_request(self.path, to, output, options)).output

    def _selected(
        self, group: str, frames: str | int | slice, include: str | Sequence[str], exclude: str | Sequence[str]
    ) -> SelectedContacts:
        """The selected rows of a group; "" is the contacts. Raises InputError for an unknown group."""
        picked = parse_frames(frames_text(frames), self.frame_count)
        kept = kept_items(self, listed(include), listed(exclude))
        return SelectedContacts(self, picked, np.arange(self.world_count), kept, group or RIGID_CONTACTS.name)


def _categories(pandas: Any, names: Sequence[str], rows: np.ndarray) -> Any:
    """A categorical column of `names` by row; equal names are one category."""
    distinct = list(dict.fromkeys(names))
    number = {name: n for n, name in enumerate(distinct)}
    return pandas.Categorical.from_codes(np.array([number[name] for name in names], np.int64)[rows], distinct)
