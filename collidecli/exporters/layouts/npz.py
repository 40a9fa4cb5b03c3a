"""The contact set's own columns and tables as arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collidecli.exporters.arrays import Array, Layout, frames_and_worlds, held, starts, texts
from collidecli.exporters.layouts.columns import stored, unknown_columns
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import ListColumn
from collidecli.storage.contact_sets.selected import SelectedContacts


def npz_layout(selected: SelectedContacts) -> Layout:
    """Every column under its name, and the tables of shapes, bodies, frames and worlds."""
    contacts = selected.contacts
    shapes = contacts.shapes
    arrays: list[Array] = [*frames_and_worlds(selected)]
    for column in selected.columns:
        row = () if column.width == 1 else (column.width,)
        arrays.append(
            stored(
                selected, column.name, column.name, column.dtype_for(contacts.float_type).name, row
            )
        )
    for held_list in selected.group.lists:
        arrays += _list(selected, held_list)
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
    return Layout(tuple(arrays), unknown_columns(selected))


def _objects(selected: SelectedContacts) -> list[Array]:
    objects = selected.contacts.particle_objects
    if not selected.group.objects:
        return []
    return [
        texts("particle_object_path", objects.path),
        texts("particle_object_kind", objects.kind),
        held("particle_object_template", objects.template),
        held("particle_object_first_particle", objects.first_particle),
        held("particle_object_particle_count", objects.particle_count),
    ]


def _list(selected: SelectedContacts, entries: ListColumn) -> tuple[Array, Array]:
    """The values of a list column, and the first of each row."""
    name = entries.column.name
    group = selected.group.name
    width = entries.column.width

    def values() -> Iterator[np.ndarray]:
        return (block.groups[group].lists[name][1] for block in selected.blocks((name,)))

    def lengths(block: ContactBlock) -> np.ndarray:
        return block.groups[group].lists[name][0]

    shape = (selected.value_count(name), *(() if width == 1 else (width,)))
    first = starts(entries.start, selected.contact_count, (name,), selected, lengths)
    return Array(name, entries.column.dtype_for(selected.contacts.float_type), shape, values), first
