"""Questions about contacts that a contact set answers, in memory or in a file."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collidecli.analysis.event_stream import EventStream
from collidecli.analysis.frame_texts import frames_text, parse_frames
from collidecli.analysis.interval_rows import DURATION
from collidecli.analysis.nominal_forces import (
    FORCE_COLUMNS,
    FORCE_ROWS,
    ForceTable,
    check_nominal_stiffness,
    force_table,
)
from collidecli.analysis.pair_selection import EventOptions
from collidecli.analysis.summary import PairTotals, touches_of
from collidecli.analysis.swept_touches import named_rows, swept_touches
from collidecli.analysis.touch_intervals import Intervals, MergeGap
from collidecli.errors import InputError, extra_module
from collidecli.exporters.contact_rows import ContactRows
from collidecli.exporters.dense_columns import (
    AXES,
    NamedColumns,
    frames_and_worlds,
    table_variables,
)
from collidecli.python.option_parameters import FRAMES, NAMES, PATH, field_parameters, with_options
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.contact_columns import RIGID_CONTACTS
from collidecli.scene.episodes import row_names
from collidecli.scene.motion import check_seconds
from collidecli.scene.patterns import listed
from collidecli.storage.contact_sets import reader
from collidecli.storage.contact_sets.readable_rows import check_has_contacts, check_shape_rows
from collidecli.storage.contact_sets.selected import SelectedContacts, kept_items
from collidecli.verbs.events.events import leading
from collidecli.verbs.export.request import ExportRequest

if TYPE_CHECKING:
    import pandas
    import xarray

EXPORT_PARAMETERS = field_parameters(
    ExportRequest,
    {"scene": PATH, "trajectory": PATH, "frames": FRAMES, "include": NAMES, "exclude": NAMES},
    without=["contacts", "to", "output"],
)


class ContactQueries:
    """The methods that `Contacts` and `ContactSet` share: pairs, events, data frames, exports."""

    @property
    def _set(self) -> reader.ContactSet:
        """The contact set that answers."""
        raise NotImplementedError

    def pairs(self) -> NamedColumns:
        """Every pair of shapes with contacts, including those within the gap, in descending order
        of contacts.

        Columns: shape0, shape1 (paths, as in `to_pandas`), row0, row1 (rows of `shapes`), contacts,
        cells (number of cells with contacts), least_distance [m], negative is penetration. Raises
        InputError for a set of pairs in place of contacts, as `touch_only` finds.
        """
        contacts = self._set
        check_has_contacts(contacts)
        totals = PairTotals.none()
        count = len(contacts.shapes)
        for block in contacts.blocks(names=("shape0", "shape1", "distance")):
            check_shape_rows(contacts, block)
            totals = totals.joined(PairTotals.of(touches_of(block), count))
        order = np.lexsort((totals.key, -totals.contacts))
        row0, row1 = np.divmod(totals.key[order], max(1, count))
        paths = np.array(contacts.shapes.path, object)
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
        by: Literal["shapes", "bodies", "particles"] = "shapes",
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        bodies: str | Sequence[str] = (),
        exclude_bodies: str | Sequence[str] = (),
        between: str | Sequence[str] = (),
        worlds: Sequence[int] = (),
        frames: str | int | slice = "",
        sweep: bool = False,
    ) -> NamedColumns:
        """Intervals in which pairs touch, ordered by begin, world and pair; columns as in
        docs/howto/list-touches.md.

        The paths of a pair are in shape0 and shape1, or in body0 and body1 with by="bodies".

        Args: the options of `collide events`. threshold: [m]; "any" or math.inf counts every
        contact. merge_gap: number of frames without touch that do not end an interval;
        merge_seconds: in place of it, time between touches [s]. include, exclude, bodies
        (`--body`), exclude_bodies, between: patterns, a sequence or a text with commas; of between
        two, or the twos of several pairs one after another. worlds: numbers (`--world`). frames:
        "A:B:S", a slice or a number. sweep: of a set made with sweep=True, with the columns
        enter_time, leave_time and missed, and with the touches in no frame as last rows, as
        `collide events --sweep --csv` writes them. Raises InputError as `collide events` does.
        Of an array of poses without times, begin_time, end_time and deepest_time are numbers of
        frames, and `seconds` and merge_seconds raise InputError.
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
            check_seconds(self._set.time_unit, "merge_seconds")
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
        stream = EventStream(self._set, options)
        for note in stream.notes:
            warnings.warn(note, stacklevel=3)
        intervals = Intervals.chained(*stream.batches())
        first = leading(intervals, stream.frames, "begin")
        if sweep:
            rows = named_rows(swept_touches(stream), stream, first)
        else:
            rows = stream.columns(first)
        return NamedColumns(rows, self._unknown_seconds(DURATION))

    @python_call
    def nominal_forces(
        self, stiffness: float, *, by: Literal["contacts", "pairs"] = "contacts"
    ) -> NamedColumns:
        """Nominal penalty forces of contacts, in the order of the contacts. Poses determine no
        forces, see docs/reference/sensors.md.

        Columns: frame, time, world, shape0, shape1 (paths), distance (of a pair the least) [m], and
        force_x, force_y, force_z on shape1 [N] at point_x, point_y, point_z, in the world [m]; of a
        contact the middle of its witness points, of a pair its centre of pressure.

        stiffness: of a pair of shapes, whose contacts share it [N/m]. by: "contacts", or "pairs"
        with a row for each pair of a cell. Only those with a force have rows; contacts of
        hydroelastic surfaces and of particles have none. Raises InputError for a stiffness that is
        not above zero and for a set of touches.
        """
        contacts = self._set
        check_nominal_stiffness(stiffness, "nominal_forces: stiffness")
        if by not in FORCE_ROWS:
            raise InputError(f"'{by}' is none of {', '.join(FORCE_ROWS)}", "nominal_forces: by")
        check_has_contacts(contacts)
        parts = []
        for block in contacts.blocks(names=FORCE_COLUMNS):
            check_shape_rows(contacts, block)
            parts.append(force_table(block, stiffness, contacts.shapes.is_trigger, by == "pairs"))
        rows = ForceTable.chained(ForceTable.none(), *parts)
        frame, world = np.divmod(rows.cell, max(1, contacts.world_count))
        paths = np.array(contacts.shapes.path, object)
        vectors = {"force": rows.force, "point": rows.point}
        return NamedColumns(
            {
                "frame": frame,
                "time": contacts.time[frame],
                "world": world,
                "shape0": paths[rows.shape0],
                "shape1": paths[rows.shape1],
                "distance": rows.distance,
                **{
                    f"{name}_{axis}": values[:, k]
                    for name, values in vectors.items()
                    for k, axis in enumerate(AXES)
                },
            }
        )

    def _unknown_seconds(self, name: str) -> dict[str, InputError]:
        """The error of a column in seconds where the times of the frames are unknown."""
        try:
            check_seconds(self._set.time_unit, name)
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
        episodes = self._set.episodes
        rows = ContactRows(self._selected(group, frames, include, exclude))
        parts = [
            {column.name: np.zeros(0, column.dtype) for column in rows.columns},
            *rows.blocks(),
        ]
        data: dict[str, Any] = {}
        for column in rows.columns:
            values = np.concatenate([part[column.name] for part in parts])
            if column.name == "episode" and episodes is not None:
                names = row_names(episodes, self._set.path)
                data["episode"] = pandas.Categorical.from_codes(values - 1, list(names))
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
        contacts = self._set
        rows = self._selected(group, frames, include, exclude)
        of_rows = "row" if group else "contact"
        variables, coordinates = table_variables(rows, of_rows)
        columns = frames_and_worlds(rows)
        shapes = contacts.shapes
        for name in ("type", "body", "margin", "gap"):
            variables[f"shape_{name}"] = ("shape", np.array(getattr(shapes, name)))
        coordinates |= {name: (of_rows, columns[name]) for name in ("frame", "world")}
        coordinates["time"] = (
            of_rows,
            contacts.time[columns["frame"]],
            {"units": contacts.time_unit},
        )
        if contacts.episodes is not None:
            names = np.array([*row_names(contacts.episodes, contacts.path), ""], object)
            coordinates["episode"] = (
                of_rows,
                names[contacts.episodes.row(columns["world"], columns["frame"])],
            )
        coordinates |= {"axis": list(AXES), "shape_path": ("shape", np.array(shapes.path, object))}
        about = {
            "scene": contacts.scene,
            "content_sha256": contacts.content_sha256,
            "up_axis": contacts.up_axis,
        }
        return xarray.Dataset(variables, coordinates, about)

    @python_call
    @with_options(EXPORT_PARAMETERS)
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

        return export(python_request(self._set.path, to, output, options)).output

    def _selected(
        self,
        group: str,
        frames: str | int | slice,
        include: str | Sequence[str],
        exclude: str | Sequence[str],
    ) -> SelectedContacts:
        """The selected rows of a group; "" is the contacts. Raises InputError for an unknown group,
        and for the contacts of a set of touches."""
        contacts = self._set
        if not group:
            check_has_contacts(contacts)
        picked = parse_frames(frames_text(frames), contacts.frame_count)
        kept = kept_items(contacts, listed(include), listed(exclude))
        return SelectedContacts(
            contacts, picked, np.arange(contacts.world_count), kept, group or RIGID_CONTACTS.name
        )


def _categories(pandas: Any, names: Sequence[str], rows: np.ndarray) -> Any:
    """A categorical column of `names` by row; equal names are one category."""
    distinct = list(dict.fromkeys(names))
    number = {name: n for n, name in enumerate(distinct)}
    return pandas.Categorical.from_codes(
        np.array([number[name] for name in names], np.int64)[rows], distinct
    )
