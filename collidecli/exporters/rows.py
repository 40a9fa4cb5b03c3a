"""Contacts as the rows of a flat table, for CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.selection import SelectedContacts
from collidecli.storage.contact_sets.rules import check_body_rows
from collidecli.storage.flat_tables import TableColumn

KINDS = ("point", "edge", "face", "patch")
_AXES = ("x", "y", "z")


class ContactRows:
    """A row for each contact. columns: in order; components of vectors are separate: normal_x, friction5_0."""

    def __init__(self, selected: SelectedContacts) -> None:
        self._selected = selected
        self._stored = selected.contacts.columns
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
            *(TableColumn(name, np.dtype(np.int32), words=shapes.path) for name in ("shape0", "shape1")),
            *(TableColumn(name, np.dtype(np.int32), words=bodies) for name in ("body0", "body1")),
        ]
        for column in self._stored:
            if column.name not in ("shape0", "shape1"):
                dtype = column.dtype_for(contacts.float_type)
                words = KINDS if column.name == "kind" else None
                names = _flat(column.name, column.width)
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
                "shape0": block.columns["shape0"],
                "shape1": block.columns["shape1"],
                "body0": shapes.body[block.columns["shape0"]] + 1,
                "body1": shapes.body[block.columns["shape1"]] + 1,
            }
            if self._episodes is not None:
                rows["episode"] = self._episodes.row(rows["world"], rows["frame"]) + 1
            yield rows | self._stored_values(block.columns)

    def _stored_values(self, columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = {}
        for column in self._stored:
            if column.name in ("shape0", "shape1"):
                continue
            values = columns[column.name].reshape(-1, column.width)
            if column.name == "kind" and len(values) and values.max() >= len(KINDS):
                raise InputError(
                    f"{values.max()} is no kind of a contact", f"{self._selected.contacts.path}: /rigid_contacts/kind"
                )
            found |= dict(zip(_flat(column.name, column.width), values.T, strict=True))
        return found


def _flat(name: str, width: int) -> list[str]:
    if width == 1:
        return [name]
    ends = _AXES if width == 3 else [str(k) for k in range(width)]
    return [f"{name}_{end}" for end in ends]
