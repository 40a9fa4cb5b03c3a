"""Variables of an xarray dataset of contacts or of the rows of a group beside /rigid_contacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from collidecli.exporters.group_selection import SelectedRows
from collidecli.exporters.rows import is_spatial
from collidecli.scene.columns import Column


def variable(column: Column, values: Mapping[str, np.ndarray], of_rows: str) -> tuple[list[str], np.ndarray, dict]:
    """Dimensions, values and attributes of a column. of_rows: the dimension of its rows."""
    more = [] if column.width == 1 else ["axis"] if is_spatial(column) else [f"{column.name}_part"]
    about = {"long_name": column.meaning} | ({"units": column.unit} if column.unit else {})
    return [of_rows, *more], values[column.name], about


def group_variables(rows: SelectedRows) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables of the columns and lists of a group, and coordinates: rows of list entries, paths of objects."""
    definition, float_type = rows.group, rows.contacts.float_type
    lists = [held.column for held in definition.lists]
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
            held = block.groups[definition.name].lists[name]
            lengths[name].append(held[0])
            parts.append(held[1])
    joined = {name: np.concatenate(parts) for name, parts in (columns | values).items()}
    variables = {column.name: variable(column, joined, "row") for column in rows.columns}
    coordinates: dict[str, Any] = {}
    for column in lists:
        variables[column.name] = variable(column, joined, f"{column.name}_entry")
        numbers = np.concatenate(lengths[column.name])
        coordinates[f"{column.name}_row"] = (f"{column.name}_entry", np.repeat(np.arange(len(numbers)), numbers))
    objects = rows.contacts.particle_objects
    for name, entry in rows.object_columns.items():
        coordinates[name] = ("row", np.array(objects.path, object)[objects.of(joined["indices"][:, entry])])
    return variables, coordinates


def frames_and_worlds(rows: SelectedRows) -> dict[str, np.ndarray]:
    """Frame and world of each selected row, as numbered in the contact set."""
    none = np.zeros(0, np.int64)
    cells = [none, *(np.repeat(_cells(block), block.cell_counts) for block in rows.blocks(()))]
    frame, world = np.divmod(np.concatenate(cells), rows.world_count)
    return {"frame": np.asarray(rows.frames, np.int64)[frame], "world": rows.worlds[world]}


def _cells(block: Any) -> np.ndarray:
    return block.first_cell + np.arange(len(block.cell_counts))
