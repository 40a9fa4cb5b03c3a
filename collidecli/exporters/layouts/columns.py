"""The contact set's own columns and tables as arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collidecli.exporters.arrays import Array, Layout, frames_and_worlds, held, per_contact, starts, texts
from collidecli.exporters.group_selection import SelectedRows
from collidecli.exporters.selection import SelectedContacts


def unknown_columns(selected: SelectedContacts) -> tuple[str, ...]:
    """Messages for columns that are unknown to this version."""
    known = {column.name for column in selected.contacts.columns}
    found = [
        f"{name}: a column unknown to this version" for name in selected.contacts.column_names if name not in known
    ]
    return tuple(found)


def layout(selected: SelectedContacts) -> Layout:
    """Every column under its name, and the tables of shapes, bodies, frames and worlds."""
    contacts = selected.contacts
    shapes = contacts.shapes
    arrays: list[Array] = [*frames_and_worlds(selected)]
    for column in selected.columns:
        row = () if column.width == 1 else (column.width,)
        dtype = column.dtype_for(contacts.float_type).name
        arrays.append(per_contact(selected, column.name, dtype, row, (column.name,), _itself(column.name)))
    if isinstance(selected, SelectedRows):
        arrays += _lists(selected)
    arrays += [
        texts("shape_path", shapes.path),
        texts("shape_type", shapes.type),
        held("shape_body", shapes.body),
        held("shape_template", shapes.template),
        held("shape_margin", shapes.margin),
        held("shape_gap", shapes.gap),
        texts("body_path", contacts.body_path),
        *_objects(selected),
        held("world_template", np.asarray(contacts.world_template)[selected.worlds]),
    ]
    return Layout(tuple(arrays), () if isinstance(selected, SelectedRows) else unknown_columns(selected))


def _objects(selected: SelectedContacts) -> list[Array]:
    """The table of particle objects, for rows that have particles."""
    objects = selected.contacts.particle_objects
    if not selected.object_columns:
        return []
    return [
        texts("particle_object_path", objects.path),
        texts("particle_object_kind", objects.kind),
        held("particle_object_template", objects.template),
        held("particle_object_first_particle", objects.first_particle),
        held("particle_object_particle_count", objects.particle_count),
    ]


def _lists(selected: SelectedRows) -> list[Array]:
    """Values and starts of the list columns of a group."""
    found, group = [], selected.group.name
    for one in selected.group.lists:
        name, dtype = one.column.name, one.column.dtype_for(selected.contacts.float_type)
        row = () if one.column.width == 1 else (one.column.width,)

        def values(name: str = name) -> Iterator[np.ndarray]:
            return (block.groups[group].lists[name][1] for block in selected.blocks((name,)))

        found.append(Array(name, dtype, (selected.value_count(name), *row), values))
        found.append(starts(one.start, selected.contact_count, (name,), selected, _lengths(group, name)))
    return found


def _lengths(group: str, name: str):
    return lambda block: block.groups[group].lists[name][0]


def _itself(name: str):
    return lambda columns: columns[name]
