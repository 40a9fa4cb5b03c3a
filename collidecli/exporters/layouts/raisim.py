"""RaiSim's contacts: a frame at each contact; its z axis is the normal from object B to object
A."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collidecli.exporters.arrays import (
    POINTS,
    Layout,
    depth,
    frames_and_worlds,
    midpoint,
    per_contact,
    texts,
    towards_shape0,
)
from collidecli.exporters.layouts.columns import PAIR, stored
from collidecli.storage.contact_sets.selected import SelectedContacts


def raisim_layout(selected: SelectedContacts) -> Layout:
    """A is shape0. Each contact is listed once; RaiSim lists it for each of its two objects."""
    contacts = selected.contacts
    body = contacts.shapes.body
    arrays = (
        *frames_and_worlds(selected),
        stored(selected, "object_a", "shape0", "int32"),
        stored(selected, "object_b", "shape1", "int32"),
        per_contact(selected, "body_a", "int32", (), PAIR, lambda c: body[c["shape0"]]),
        per_contact(selected, "body_b", "int32", (), PAIR, lambda c: body[c["shape1"]]),
        per_contact(selected, "position", "float64", (3,), POINTS, midpoint),
        per_contact(selected, "normal", "float64", (3,), ("normal",), towards_shape0),
        per_contact(selected, "contact_frame", "float64", (3, 3), ("normal",), contact_frames),
        per_contact(selected, "depth", "float64", (), ("distance",), depth),
        texts("object_name", contacts.shapes.path),
        texts("body_name", contacts.body_path),
    )
    return Layout(arrays, ("impulse, inverse inertia: not in a contact set",))


def contact_frames(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """float64[n, 3, 3]: the rows are the frame's axes in the world: the matrix transforms world
    vectors to the frame.

    z is the normal towards A; x is horizontal, +x of the world for a vertical z; y is z cross x.
    """
    z = towards_shape0(columns).astype(np.float64)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    x = np.stack([z[:, 1], -z[:, 0], np.zeros(len(z))], axis=1)
    x[(z[:, 0] == 0.0) & (z[:, 1] == 0.0)] = (1.0, 0.0, 0.0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=1)
