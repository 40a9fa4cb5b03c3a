"""Contacts as the rows of a flat table, for CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_columns import KIND_UNKNOWN, Column
from collidecli.scene.episodes import row_names
from collidecli.storage.contact_sets.readable_rows import check_body_rows
from collidecli.storage.flat_tables import TableColumn, cell_columns

if TYPE_CHECKING:
    from collidecli.storage.contact_sets.selected import SelectedContacts


class ContactRows:
    """A row for each row of a table. columns: in order; those of vectors are normal_x,
    friction5_0."""

    def __init__(self, selected: SelectedContacts) -> None:
        self._selected = selected
        self._stored = selected.columns
        self._kinds = (
            *selected.group.kinds,
            *(("unknown",) if selected.contacts.engine is not None else ()),
        )
        shapes = selected.contacts.shapes
        contacts = selected.contacts
        self._episodes = contacts.episodes
        names = row_names(self._episodes, contacts.path)
        bodies = ("", *contacts.body_path)
        objects = contacts.particle_objects.path
        check_body_rows(contacts)
        columns = [
            *cell_columns(None if self._episodes is None else names, contacts.time_unit),
            *(
                TableColumn(name, np.dtype(np.int32), words=shapes.path)
                for name in selected.shape_columns
            ),
            *(
                TableColumn(_body(name), np.dtype(np.int32), words=bodies)
                for name in selected.shape_columns
            ),
            *(
                TableColumn(name, np.dtype(np.int64), words=objects)
                for name in selected.group.objects
            ),
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
        selected = self._selected
        shapes = self._selected.contacts.shapes
        for block in selected.blocks([column.name for column in self._stored]):
            if not block.contact_count:
                continue
            cell = np.repeat(
                block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts
            )
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
                rows[name] = selected.contacts.particle_objects.of(
                    block.columns["indices"][:, entry]
                )
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
                values = np.where(
                    values == KIND_UNKNOWN, len(self._selected.group.kinds), values
                ).astype(values.dtype)
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
    """Names of the components of a column; of a vector in the world or a body they end with x, y
    and z."""
    if column.width == 1:
        return [column.name]
    ends = ("x", "y", "z") if is_spatial(column) else [str(k) for k in range(column.width)]
    return [f"{column.name}_{end}" for end in ends]
