"""The contact set's own columns and tables as arrays."""

from __future__ import annotations

import numpy as np

from collidecli.exporters.arrays import Array, Layout, frames_and_worlds, held, per_contact, texts
from collidecli.exporters.selection import SelectedContacts


def unknown_columns(selected: SelectedContacts) -> tuple[str, ...]:
    """Messages for columns that are unknown to this version."""
    known = {column.name for column in selected.contacts.columns}
    return tuple(
        f"{name}: a column unknown to this version" for name in selected.contacts.column_names if name not in known
    )


def layout(selected: SelectedContacts) -> Layout:
    """Every column under its name, and the tables of shapes, bodies, frames and worlds."""
    contacts = selected.contacts
    shapes = contacts.shapes
    arrays: list[Array] = [*frames_and_worlds(selected)]
    for column in selected.contacts.columns:
        row = () if column.width == 1 else (column.width,)
        dtype = column.dtype_for(contacts.float_type).name
        arrays.append(per_contact(selected, column.name, dtype, row, (column.name,), _itself(column.name)))
    arrays += [
        texts("shape_path", shapes.path),
        texts("shape_type", shapes.type),
        held("shape_body", shapes.body),
        held("shape_template", shapes.template),
        held("shape_margin", shapes.margin),
        held("shape_gap", shapes.gap),
        texts("body_path", contacts.body_path),
        held("world_template", np.asarray(contacts.world_template)[selected.worlds]),
    ]
    return Layout(tuple(arrays), unknown_columns(selected))


def _itself(name: str):
    return lambda columns: columns[name]
