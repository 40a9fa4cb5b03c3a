"""Genesis' contact data: penetration positive, the normal from B to A, the position at the middle of the overlap."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collidecli.exporters.arrays import (
    POINTS,
    Layout,
    depth,
    frames_and_worlds,
    midpoint,
    per_cell,
    per_contact,
    texts,
    towards_shape0,
)
from collidecli.exporters.selection import SelectedContacts
from collidecli.exporters.surfaces import Surfaces

PAIR = ("shape0", "shape1")


def layout(selected: SelectedContacts) -> Layout:
    """A is shape0. Friction and sol_params follow from the file's materials, if those define them."""
    contacts = selected.contacts
    surfaces = Surfaces(contacts)
    body = contacts.shapes.body
    arrays = [
        *frames_and_worlds(selected),
        per_cell(selected, "n_contacts", (), lambda block: block.cell_counts),
        per_contact(selected, "geom_a", "int32", (), ("shape0",), lambda c: c["shape0"]),
        per_contact(selected, "geom_b", "int32", (), ("shape1",), lambda c: c["shape1"]),
        per_contact(selected, "link_a", "int32", (), PAIR, lambda c: body[c["shape0"]]),
        per_contact(selected, "link_b", "int32", (), PAIR, lambda c: body[c["shape1"]]),
        per_contact(selected, "penetration", "float32", (), ("distance",), depth),
        per_contact(selected, "normal", "float32", (3,), ("normal",), towards_shape0),
        per_contact(selected, "pos", contacts.float_type.name, (3,), POINTS, midpoint),
    ]
    left_out = []
    if "friction" in surfaces.names:
        arrays.append(per_contact(selected, "friction", "float32", (), PAIR, lambda c: _of(surfaces, "friction", c)))
    else:
        left_out.append(surfaces.absent("friction"))
    if {"solref", "solimp"} <= set(surfaces.names):
        arrays.append(
            per_contact(
                selected, "sol_params", "float32", (7,), PAIR,
                lambda c: np.concatenate([_of(surfaces, name, c) for name in ("solref", "solimp")], axis=1),
            )
        )  # fmt: skip
    else:
        left_out.append(surfaces.absent("sol_params"))
    arrays += [texts("geom_name", contacts.shapes.path), texts("link_name", contacts.body_path)]
    return Layout(tuple(arrays), (*left_out, "force: a contact set has no forces"))


def _of(surfaces: Surfaces, name: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    return surfaces.of(name, columns["shape0"], columns["shape1"])
