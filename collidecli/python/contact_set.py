"""The Python API of contact set files: cells, blocks, pairs, events, named columns, data frames."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.event_stream import EventStream
from collidecli.analysis.frame_texts import frames_text, parse_frames
from collidecli.analysis.interval_rows import DURATION
from collidecli.analysis.pair_selection import EventOptions
from collidecli.analysis.summary import PairTotals, touches_of
from collidecli.analysis.touch_intervals import Intervals, MergeGap
from collidecli.errors import InputError, extra_module
from collidecli.exporters.contact_rows import ContactRows
from collidecli.exporters.dense_columns import (
    AXES,
    NamedColumns,
    frames_and_worlds,
    table_variables,
)
from collidecli.results.result import html_table
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.contact_columns import (
    RIGID_COLUMNS,
    RIGID_CONTACTS,
    ContactBlock,
    group_words,
)
from collidecli.scene.motion import SECOND, check_seconds
from collidecli.scene.options import changed_options
from collidecli.scene.patterns import listed
from collidecli.storage.contact_sets import reader
from collidecli.storage.contact_sets.row_rules import check_has_contacts, check_shape_rows
from collidecli.storage.contact_sets.selected import SelectedContacts, kept_items
from collidecli.verbs.events.events import leading
from collidecli.wording import count

if TYPE_CHECKING:
    import pandas
    import xarray


class ContactSet(reader.ContactSet):
    """A contact set file, open for reading; a context manager.

    >>> import collidecli
    >>> with collidecli.ContactSet.open("out.h5") as contacts:  # doctest: +SKIP
    ...     contacts.cell(frame=3).columns["distance"]

    Tables (shapes, time, ...) are in memory; contacts are read on demand: one `cell`, `blocks` of
    whole cells, or a `column`. Iteration yields the blocks.
    """

    def __repr__(self) -> str:
        size = f"contacts={self.contact_count} frames={self.frame_count} worlds={self.world_count}"
        return f"<ContactSet {self.path} {size}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows: file, scene, counts and options, every text escaped."""
        has_span = self.frame_count > 0 and self.time_unit == SECOND
        span = f", {self.time[0]:.6g} to {self.time[-1]:.6g} s" if has_span else ""
        changed = ", ".join(
            f"{name} {value}" for name, value in changed_options(self.config).items()
        )
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
        """Every pair of shapes with contacts, including those within the gap, in descending order
        of contacts.

        Columns: shape0, shape1 (paths, as in `to_pandas`), row0, row1 (rows of `shapes`), contacts,
        cells (number of cells with contacts), least_distance [m], negative is penetration.
        """
        totals = PairTotals.none()
        count = len(self.shapes)
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
        """Intervals in which pairs touch, ordered by begin, world and pair; columns as in
        docs/howto/list-touches.md.

        The paths of a pair are in shape0 and shape1, or in body0 and body1 with by="bodies".

        Args: the options of `collide events`. threshold: [m]; "any" or math.inf counts every
        contact. merge_gap: number of frames without touch that do not end an interval;
        merge_seconds: in place of it, time between touches [s]. include, exclude, bodies
        (`--body`), exclude_bodies, between: patterns, a sequence or a text with commas. worlds:
        numbers (`--world`). frames: "A:B:S", a slice or a number. Raises InputError as `collide
        events` does. Of an array of poses without times, begin_time, end_time and deepest_time are
        numbers of frames, and `seconds` and merge_seconds raise InputError.
        """
        threshold = (
            math.inf if threshold in ("any", math.inf) else checked_metres(threshold, "threshold")
        )
        if not isinstance(merge_gap, int):
            raise InputError(
                f"'{merge_gap}' is no number of frames",
                "merge_gap",
                "for a time give merge_seconds=0.02",
            )
        if merge_gap < 0 or (merge_seconds is not None and not merge_seconds >= 0.0):
            raise InputError("a pause is at least 0", "merge_gap, merge_seconds")
        if merge_seconds is not None:
            check_seconds(self.time_unit, "merge_seconds")
        gap = MergeGap(merge_gap, merge_seconds)
        patterns = [listed(given) for given in (include, exclude, bodies, exclude_bodies)]
        options = EventOptions(
            threshold,
            gap,
            by,
            *patterns,
            between=listed(between),
            worlds=worlds,
            frames=frames_text(frames),
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
        """A row per contact, with the columns of `collide export --to csv`, and episode if there
        are any.

        group: the rows of this table instead, such as "soft_contacts", with the columns of `collide
        export --group`.

        shape0, shape1, body0, body1: paths, "" is the body of a static shape. kind: point, edge,
        face or patch. All five are categories. Vectors are name_x, name_y, name_z. frames: "A:B:S",
        a slice or a number; "" is all. include, exclude: patterns of paths of shapes and particle
        objects, as of `collide export`. The selected contacts are in memory. Raises InputError
        without pandas, and for a pattern without a match.
        """
        pandas = extra_module("pandas", "tables", "to_pandas")
        rows = ContactRows(self._selected(group, frames, include, exclude))
        parts = [
            {column.name: np.zeros(0, column.dtype) for column in rows.columns},
            *rows.blocks(),
        ]
        data: dict[str, Any] = {}
        for column in rows.columns:
            values = np.concatenate([part[column.name] for part in parts])
            if column.name == "episode" and self.episodes is not None:
                data["episode"] = pandas.Categorical.from_codes(
                    values - 1, list(self.episodes.name)
                )
            else:
                data[column.name] = (
                    values if column.words is None else _categories(pandas, column.words, values)
                )
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

        group: the rows of this table instead, such as "soft_contacts", over the dimension `row`.
        Rows of lists, such as the corners of faces, have the dimension `<list>_entry` and the
        coordinate `<list>_row`. Paths of the particle objects of a row are coordinates.

        Coordinates are frame, world, time and, if there are any, episode. Vectors have the
        dimension `axis` (x, y, z). Units are attributes. frames, include, exclude: as of
        `to_pandas`. Raises InputError without xarray.
        """
        xarray = extra_module("xarray", "tables", "to_xarray")
        rows = self._selected(group, frames, include, exclude)
        of_rows = "row" if group else "contact"
        variables, coordinates = table_variables(rows, of_rows)
        columns = frames_and_worlds(rows)
        shapes = self.shapes
        for name in ("type", "body", "margin", "gap"):
            variables[f"shape_{name}"] = ("shape", np.array(getattr(shapes, name)))
        coordinates |= {name: (of_rows, columns[name]) for name in ("frame", "world")}
        coordinates["time"] = (of_rows, self.time[columns["frame"]], {"units": self.time_unit})
        if self.episodes is not None:
            names = np.array([*self.episodes.name, ""], object)
            coordinates["episode"] = (
                of_rows,
                names[self.episodes.row(columns["world"], columns["frame"])],
            )
        coordinates |= {"axis": list(AXES), "shape_path": ("shape", np.array(shapes.path, object))}
        about = {
            "scene": self.scene,
            "content_sha256": self.content_sha256,
            "up_axis": self.up_axis,
        }
        return xarray.Dataset(variables, coordinates, about)

    @python_call
    def export(self, to: str, output: str | os.PathLike[str] = "", **options: Any) -> str:
        """Writes the set as another format, as `collide export` does; returns the path of the
        output.

        to: "usd", "csv", "parquet", "npz", "newton", "genesis", "dart", "raisim" or "mujoco".
        output: "" is the set's name with the format's extension, in the current folder. options:
        those of `collide export`, with underscores: scene, trajectory, frames, worlds=[0, 3],
        include, exclude, normal_length, force=True. Raises InputError and OutputError as the
        command does.
        """
        from collidecli.verbs.export.export import export, python_request

        return export(python_request(self.path, to, output, options)).output

    def _selected(
        self,
        group: str,
        frames: str | int | slice,
        include: str | Sequence[str],
        exclude: str | Sequence[str],
    ) -> SelectedContacts:
        """The selected rows of a group; "" is the contacts. Raises InputError for an unknown group,
        and for the contacts of a set of touches."""
        if not group:
            check_has_contacts(self)
        picked = parse_frames(frames_text(frames), self.frame_count)
        kept = kept_items(self, listed(include), listed(exclude))
        return SelectedContacts(
            self, picked, np.arange(self.world_count), kept, group or RIGID_CONTACTS.name
        )


def _categories(pandas: Any, names: Sequence[str], rows: np.ndarray) -> Any:
    """A categorical column of `names` by row; equal names are one category."""
    distinct = list(dict.fromkeys(names))
    number = {name: n for n, name in enumerate(distinct)}
    return pandas.Categorical.from_codes(
        np.array([number[name] for name in names], np.int64)[rows], distinct
    )
