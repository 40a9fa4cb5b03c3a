"""Newton's `Contacts`: points and offsets in body frames, the normal from shape 0 to shape 1.

Fields are those of Newton 1.8. Newton's point of a sphere is its centre, with the radius in margin and offset; here
every point is on the surface, with the authored margin. The separation
dot(normal, point1 - point0) - margin0 - margin1, and point + offset on the inflated surface, are equal in both.
`soft_contact_*`: body_pos is the point of the shape's surface in its body frame, the normal points to the particle.
"""

from __future__ import annotations

import numpy as np

from collidecli.exporters.arrays import Array, Layout, frames_and_worlds, held, per_cell, per_contact, starts, texts
from collidecli.exporters.group_selection import SINGLE_PARTICLE, rows_of
from collidecli.exporters.selection import SelectedContacts
from collidecli.exporters.surfaces import Surfaces

PAIR = ("shape0", "shape1")


def layout(selected: SelectedContacts) -> Layout:
    """The arrays `rigid_contact_*`, float32 and int32 as in Newton; offsets only if no margin is set."""
    contacts = selected.contacts
    surfaces = Surfaces(contacts)

    def margin(name: str) -> Array:
        return per_contact(
            selected,
            f"rigid_contact_{name}",
            "float32",
            (),
            PAIR,
            lambda c: surfaces.of(name, c["shape0"], c["shape1"]),
        )

    def column(field: str, source: str, dtype: str, row: tuple[int, ...]) -> Array:
        return per_contact(selected, f"rigid_contact_{field}", dtype, row, (source,), lambda c: c[source])

    arrays = [
        *frames_and_worlds(selected),
        per_cell(selected, "rigid_contact_count", (), lambda block: block.cell_counts),
        column("shape0", "shape0", "int32", ()),
        column("shape1", "shape1", "int32", ()),
        column("point0", "offset0", "float32", (3,)),
        column("point1", "offset1", "float32", (3,)),
        column("normal", "normal", "float32", (3,)),
        margin("margin0"),
        margin("margin1"),
    ]
    left_out = []
    if _inflated(selected):
        left_out.append(
            "rigid_contact_offset0, rigid_contact_offset1: margins in body frames, which require the bodies' poses"
        )
    else:
        arrays += [
            per_contact(selected, f"rigid_contact_offset{k}", "float32", (3,), ("shape0",), _zeros) for k in (0, 1)
        ]
    if "soft_contacts" in contacts.groups:
        soft, without = _soft_arrays(selected)
        arrays += soft
        left_out += without
    arrays += [
        texts("shape_label", contacts.shapes.path),
        held("shape_body", contacts.shapes.body),
        texts("body_label", contacts.body_path),
    ]
    return Layout(tuple(arrays), tuple(left_out))


def _soft_arrays(selected: SelectedContacts) -> tuple[list[Array], list[str]]:
    """The arrays `soft_contact_*` of contacts of single particles, and what is left out."""
    every, rows = (rows_of(selected, "soft_contacts", kind) for kind in (None, SINGLE_PARTICLE))

    def column(field: str, source: str, dtype: str, row: tuple[int, ...]) -> Array:
        return per_contact(rows, f"soft_contact_{field}", dtype, row, (source,), lambda c: c[source])

    arrays = [
        per_cell(rows, "soft_contact_count", (), lambda block: block.cell_counts),
        starts("soft_contact_cell_start", rows.cell_count, (), rows, lambda block: block.cell_counts),
        per_contact(rows, "soft_contact_particle", "int32", (), ("indices",), lambda c: c["indices"][:, 0]),
        column("shape", "shape", "int32", ()),
        column("body_pos", "point_body", "float32", (3,)),
        column("normal", "normal", "float32", (3,)),
    ]
    left_out = [
        "soft_contact_body_vel, soft_contact_tids: velocities and threads, which a contact set does not contain"
    ]
    if every.contact_count > rows.contact_count:
        left_out.append(
            f"{every.contact_count - rows.contact_count} soft contacts of edges and faces, which have no particle"
        )
    return arrays, left_out


def _zeros(columns) -> np.ndarray:
    return np.zeros((len(columns["shape0"]), 3), np.float32)


def _inflated(selected: SelectedContacts) -> bool:
    """Whether any shape or forced pair has a margin."""
    contacts = selected.contacts
    return bool((contacts.shapes.margin != 0.0).any() or (np.nan_to_num(contacts.forced.margin) != 0.0).any())
