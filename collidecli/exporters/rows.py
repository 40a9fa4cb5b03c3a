"""Contacts as the rows of a flat table, for CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.selection import SelectedContacts
from collidecli.scene.columns import Column
from collidecli.storage.contact_sets.rules import check_body_rows
from collidecli.storage.flat_tables import TableColumn

_AXES = ("x", "y", "z")


class ContactRows:
    """A row for each contact or row of a group. columns: in order; those of vectors are normal_x, friction5_0."""

    def __init__(self, selected: SelectedContacts) -> None:
        self._selected = selected
        self._stored = selected.columns
        shapes, contacts = selected.contacts.shapes, selected.contacts
        self._episodes = contacts.episodes
        whole = np.dtype(np.int64)
        bodies = ("", *contacts.body_path)
        check_body_rows(contacts)
        columns = [
            TableColumn("frame", whole),
            TableColumn("step", whole),
            TableColumn("time", np.dtype(np.float64), "s"),
            TableColumn("world", whole),
            *([] if self._episodes is None else [TableColumn("episode", whole, words=("", *self._episodes.name))]),
            *(TableColumn(name, np.dtype(np.int32), words=shapes.path) for name in selected.shape_columns),
            *(TableColumn(_body(name), np.dtype(np.int32), words=bodies) for name in selected.shape_columns),
            *(TableColumn(name, whole, words=contacts.particle_objects.path) for name in selected.object_columns),
        ]
        for column in self._stored:
            if column.name not in selected.shape_columns:
                dtype = column.dtype_for(contacts.float_type)
                words = selected.kinds if column.name == "kind" else None
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
            for name, entry in selected.object_columns.items():
                rows[name] = selected.contacts.particle_objects.of(block.columns["indices"][:, entry])
            if self._episodes is not None:
                rows["episode"] = self._episodes.row(rows["world"], rows["frame"]) + 1
            yield rows | self._stored_values(block.columns)

    def _stored_values(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = {}
        for column in self._stored:
            if column.name in self._selected.shape_columns:
                continue
            values = columns[column.name].reshape(-1, column.width)
            if column.name == "kind" and len(values) and values.max() >= len(self._selected.kinds):
                where = f"{self._selected.contacts.path}: {self._selected.table_name}/kind"
                raise InputError(f"{values.max()} is no kind of a contact", where)
            found |= dict(zip(flat_names(column), values.T, strict=True))
        return found


def _body(shape: str) -> str:
    """Name of the column of the body of a shape."""
    return shape.replace("shape", "body")


def is_spatial(column: Column) -> bool:
    """Whether a column has vectors with the components x, y and z."""
    return column.width == 3 and column.dtype.kind == "f" and column.name != "barycentric"


def flat_names(column: Column) -> list[str]:
    """Names of the components of a column; of a vector in the world or a body they end with x, y and z."""
    if column.width == 1:
        return [column.name]
    ends = _AXES if is_spatial(column) else [str(k) for k in range(column.width)]
    return [f"{column.name}_{end}" for end in ends]
