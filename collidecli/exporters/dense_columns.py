"""Columns of a contact set by name, dense over frames and worlds, for data frames and xarray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError, extra_module
from collidecli.exporters.contact_rows import is_spatial
from collidecli.html_tables import rows_html
from collidecli.scene.contact_columns import Column
from collidecli.storage.contact_sets.selected import SelectedContacts

if TYPE_CHECKING:
    import pandas
    import xarray


def variable(
    column: Column, values: Mapping[str, np.ndarray], of_rows: str
) -> tuple[list[str], np.ndarray, dict]:
    """Dimensions, values and attributes of a column. of_rows: the dimension of its rows."""
    more = [] if column.width == 1 else ["axis"] if is_spatial(column) else [f"{column.name}_part"]
    about = {"long_name": column.meaning} | ({"units": column.unit} if column.unit else {})
    return [of_rows, *more], values[column.name], about


def table_variables(rows: SelectedContacts, of_rows: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables of the columns and lists of a table, and coordinates: rows of list entries, paths
    of objects.

    of_rows: the dimension of the rows.
    """
    definition = rows.group
    float_type = rows.contacts.float_type
    lists = [entries.column for entries in definition.lists]
    empty = {
        column.name: np.zeros(
            (0, column.width) if column.width > 1 else 0, column.dtype_for(float_type)
        )
        for column in (*rows.columns, *lists)
    }
    columns = {column.name: [empty[column.name]] for column in rows.columns}
    values = {column.name: [empty[column.name]] for column in lists}
    lengths: dict[str, list[np.ndarray]] = {
        column.name: [np.zeros(0, np.int64)] for column in lists
    }
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
        coordinates[f"{column.name}_row"] = (
            f"{column.name}_entry",
            np.repeat(np.arange(len(numbers)), numbers),
        )
    objects = rows.contacts.particle_objects
    for name, entry in definition.objects.items():
        coordinates[name] = (
            of_rows,
            np.array(objects.path, object)[objects.of(joined["indices"][:, entry])],
        )
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

    def __init__(
        self, columns: Mapping[str, np.ndarray], refused: Mapping[str, InputError] | None = None
    ) -> None:
        self._refused = dict(refused or {})
        self._columns = {
            name: values for name, values in columns.items() if name not in self._refused
        }

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

    def to_xarray(self) -> xarray.Dataset:
        """A dataset with the columns over the dimension `row`. Raises InputError without xarray."""
        xarray = extra_module("xarray", "tables", "to_xarray")
        return xarray.Dataset({name: ("row", values) for name, values in self._columns.items()})

    def _repr_html_(self) -> str:
        """The table that a notebook shows: the number of rows and the first ones, escaped."""
        return rows_html(self._columns, self.row_count)


AXES = ("x", "y", "z")
OF_PARTICLES = ("indices", "barycentric", "indices0", "barycentric0")
"""Arrays of three numbers that are of three particles, not along three axes."""
Axes = Sequence[Mapping[str, np.ndarray]]
"""Named values along each dimension of dense arrays."""


def dense_rows(axes: Axes, arrays: Mapping[str, np.ndarray], kept: np.ndarray) -> NamedColumns:
    """A row for each entry of arrays that is kept, a vector as name_x, name_y, name_z, weights and
    particles as name_0, name_1, name_2. kept: bool[...]."""
    index = np.nonzero(kept)
    columns = {
        name: values[rows]
        for of_axis, rows in zip(axes, index, strict=True)
        for name, values in of_axis.items()
    }
    for name, values in arrays.items():
        dense = values[index]
        columns |= (
            {name: dense}
            if dense.ndim == 1
            else {
                f"{name}_{k if name in OF_PARTICLES else axis}": dense[:, k]
                for k, axis in enumerate(AXES)
            }
        )
    return NamedColumns(columns)


def dense_dataset(
    dimensions: Sequence[str],
    axes: Axes,
    arrays: Mapping[str, np.ndarray],
    units: Mapping[str, str],
) -> xarray.Dataset:
    """Dense arrays as a dataset; a vector has the dimension `axis` too.

    dimensions: of the axes. axes: coordinates along each. units: of arrays that have one. Raises
    InputError without xarray.
    """
    xarray = extra_module("xarray", "tables", "to_xarray")
    coordinates: dict[str, Any] = {
        name: (dimension, values)
        for dimension, of_axis in zip(dimensions, axes, strict=True)
        for name, values in of_axis.items()
    }
    variables = {}
    for name, values in arrays.items():
        more = [] if values.ndim == len(dimensions) else [_last_dimension(name, values.shape[-1])]
        if more == ["axis"]:
            coordinates["axis"] = list(AXES)
        about = {"units": units[name]} if name in units else {}
        variables[name] = ([*dimensions, *more], values, about)
    return xarray.Dataset(variables, coordinates)


def _last_dimension(name: str, width: int) -> str:
    return "axis" if width == len(AXES) and name not in OF_PARTICLES else f"{name}_part"


def dense_intervals(
    axes: Axes,
    touches: np.ndarray,
    recorded: np.ndarray | None = None,
    distance: np.ndarray | None = None,
) -> NamedColumns:
    """A row for each run of frames of an entry that touches, ordered by its begin; bool[F, W, ...].

    Columns, with the names and meanings of those of `ContactSet.events`: those of the other axes,
    begin_frame, last_frame, begin_time, end_time, begin_known, end_known, touching_frames; with
    distances least_distance, deepest_frame and deepest_time. axes: the first one has `frame` and
    `time`. recorded: bool[F, W], None is all. distance: [F, W, ...] [m].
    """
    step = np.diff(
        np.pad(touches.astype(np.int8), ((1, 1), *((0, 0),) * (touches.ndim - 1))), axis=0
    )
    begin, end = (np.stack(np.nonzero(np.moveaxis(step, 0, -1) == sign)) for sign in (1, -1))
    order = np.argsort(begin[-1], kind="stable")
    entry = begin[:-1, order]
    first = begin[-1, order]
    following = end[-1, order]
    columns = {
        name: values[row]
        for of_axis, row in zip(axes[1:], entry, strict=False)
        for name, values in of_axis.items()
    }
    known = np.ones(touches.shape[:2], bool) if recorded is None else recorded
    known = np.pad(known, ((1, 1), (0, 0)))  # no frame before the first and after the last
    frame = axes[0]["frame"]
    time = axes[0]["time"]
    end_known = known[following + 1, entry[0]]
    next_time = np.append(time, np.nan)[following]
    columns |= {
        "begin_frame": frame[first],
        "last_frame": frame[following - 1],
        "begin_time": time[first],
        "end_time": np.where(end_known, next_time, np.nan),
        "begin_known": known[first, entry[0]],
        "end_known": end_known,
        "touching_frames": following - first,
    }
    if distance is not None:
        least, deepest = _least_of_runs(np.moveaxis(distance, 0, -1), entry, first, following)
        columns |= {
            "least_distance": least,
            "deepest_frame": frame[deepest],
            "deepest_time": time[deepest],
        }
    return NamedColumns(columns)


def _least_of_runs(
    values: np.ndarray, entry: np.ndarray, first: np.ndarray, following: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The least value of each run of frames, and the first frame with it. values: [..., F]. entry:
    int[D, n], the other indices of each run. first, following: int[n], its first frame and the one
    after its last."""
    length = following - first
    run = np.repeat(np.arange(len(first)), length)
    offset = np.cumsum(length) - length
    at = np.arange(length.sum()) - offset[run] + first[run]
    found = values[(*entry[:, run], at)]
    order = np.lexsort((at, found, run))
    best = order[offset]
    return found[best], at[best]
