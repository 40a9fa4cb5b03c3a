"""The contacts of a contact set by which pairs of shapes touch: rigid contacts and hydroelastic surfaces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collidecli.scene.contact_groups import HYDRO_PATCHES
from collidecli.scene.contacts import ContactBlock
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_group_rows

COLUMNS = ("shape0", "shape1", "distance")
PATCH_COLUMNS = ("shape0", "shape1", "depth")


def touching_blocks(contacts: ContactSet, max_rows: int, first: int, last: int) -> Iterator[ContactBlock]:
    """Blocks of the cells `first` to `last` - 1 with the columns shape0, shape1 and distance.

    A hydroelastic surface is a contact of its pair, whose distance is the least separation of its faces. Raises
    InputError for a surface of an unknown shape.
    """
    patches = contacts.groups.get(HYDRO_PATCHES.name)
    for block in contacts.blocks(max_rows, COLUMNS, first, last):
        if patches is None:
            yield block
            continue
        end = block.first_cell + len(block.cell_counts)
        rows = patches.rows(block.first_cell, end, PATCH_COLUMNS)
        check_group_rows(contacts, {HYDRO_PATCHES.name: rows}, block.first_cell, end)
        cell = np.concatenate(
            [np.repeat(np.arange(len(counts)), counts) for counts in (block.cell_counts, rows.cell_counts)]
        )
        order = np.argsort(cell, kind="stable")
        columns = {
            name: np.concatenate([block.columns[name], rows.columns[of_patch].astype(block.columns[name].dtype)])[order]
            for name, of_patch in zip(COLUMNS, PATCH_COLUMNS, strict=True)
        }
        yield ContactBlock(block.first_cell, block.cell_counts + rows.cell_counts, columns)
