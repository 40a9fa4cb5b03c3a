"""Whether contacts name shapes that are there: reading them does not check it, using them as rows must."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contacts import ContactBlock
from collidecli.storage.contact_sets.reader import ContactSet


def check_shape_rows(contacts: ContactSet, block: ContactBlock) -> None:
    """Raises InputError for a shape0 or shape1 of a block that is no row of the table of shapes."""
    count = len(contacts.shapes)
    for name in ("shape0", "shape1"):
        rows = block.columns[name]
        if len(rows) and not (rows.min() >= 0 and rows.max() < count):
            row = int(np.argmax((rows < 0) | (rows >= count)))
            last = block.first_cell + len(block.cell_counts) - 1
            where = f"{contacts.path}: /rigid_contacts/{name}, cells {block.first_cell} to {last}"
            raise InputError(f"{rows[row]} is no row of /model/shape", where, "make the contact set again")


def check_body_rows(contacts: ContactSet) -> None:
    """Raises InputError for a shape whose body is neither -1 nor a row of the table of bodies."""
    body = contacts.shapes.body
    outside = (body < -1) | (body >= len(contacts.body_path))
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError("is no row of /model/body", f"{contacts.path}: /model/shape/body, row {row}", "make it again")
