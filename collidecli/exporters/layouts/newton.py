"""Newton's `Contacts`: points and offsets in body frames, the normal from shape 0 to shape 1.

Fields are those of Newton 1.8. Newton's point of a sphere is its centre, with the radius in margin
and offset; here every point is on the surface, with the authored margin. The separation dot(normal,
point1 - point0) - margin0 - margin1, and point + offset on the inflated surface, are equal in both.
`soft_contact_*`: body_pos is the point of the shape's surface in its body frame, the normal points
to the particle. body_vel is the velocity of the surface in that frame: Newton adds the body's own,
and it is 0 of every shape whose surface does not move in its body.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collidecli.exporters.arrays import (
    Array,
    Layout,
    frames_and_worlds,
    held,
    per_cell,
    per_contact,
    starts,
    texts,
)
from collidecli.exporters.layouts.columns import mixed, stored
from collidecli.exporters.surfaces import Surfaces
from collidecli.storage.contact_sets.selected import SINGLE_PARTICLE, SelectedContacts, rows_of


def newton_layout(selected: SelectedContacts) -> Layout:
    """The arrays `rigid_contact_*`, float32 and int32 as in Newton; offsets only if no margin is
    set."""
    contacts = selected.contacts
    surfaces = Surfaces(contacts)

    arrays = [
        *frames_and_worlds(selected),
        per_cell(selected, "rigid_contact_count", (), lambda block: block.cell_counts),
        stored(selected, "rigid_contact_shape0", "shape0", "int32"),
        stored(selected, "rigid_contact_shape1", "shape1", "int32"),
        stored(selected, "rigid_contact_point0", "offset0", "float32", (3,)),
        stored(selected, "rigid_contact_point1", "offset1", "float32", (3,)),
        stored(selected, "rigid_contact_normal", "normal", "float32", (3,)),
        mixed(selected, surfaces, "rigid_contact_margin0", "margin0"),
        mixed(selected, surfaces, "rigid_contact_margin1", "margin1"),
    ]
    left_out = []
    margins = (contacts.shapes.margin, np.nan_to_num(contacts.forced.margin))
    offsets = ("rigid_contact_offset0", "rigid_contact_offset1")
    if any((margin != 0.0).any() for margin in margins):
        left_out.append(
            f"{', '.join(offsets)}: margins in body frames, which require the bodies' poses"
        )
    else:
        zeros = (lambda c: np.zeros((len(c["shape0"]), 3), np.float32),)
        arrays += [
            per_contact(selected, name, "float32", (3,), ("shape0",), *zeros) for name in offsets
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

    arrays = [
        per_cell(rows, "soft_contact_count", (), lambda block: block.cell_counts),
        starts(
            "soft_contact_cell_start", rows.cell_count, (), rows, lambda block: block.cell_counts
        ),
        per_contact(
            rows, "soft_contact_particle", "int32", (), ("indices",), lambda c: c["indices"][:, 0]
        ),
        stored(rows, "soft_contact_shape", "shape", "int32"),
        stored(rows, "soft_contact_body_pos", "point_body", "float32", (3,)),
        per_contact(rows, "soft_contact_body_vel", "float32", (3,), ("shape",), _at_rest),
        stored(rows, "soft_contact_normal", "normal", "float32", (3,)),
    ]
    left_out = ["soft_contact_tids: threads, which a contact set does not contain"]
    unhandled = every.contact_count - rows.contact_count
    if unhandled:
        left_out.append(f"{unhandled} soft contacts of edges and faces, which have no particle")
    return arrays, left_out


def _at_rest(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """float32[n, 3]: velocities of surfaces in the frames of their bodies."""
    return np.zeros((len(columns["shape"]), 3), np.float32)
