"""The nearest contact of each particle object with each shape, of all contacts of its particles,
edges and faces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.particles.soft_contacts import SoftContacts
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_blocks import GroupRows
from collidecli.scene.contact_columns import SOFT_CONTACTS


@dataclass(frozen=True)
class NearestSoftContacts:
    """Finds, of the contacts of a cell, the one of least distance of each shape and particle
    object, the first of equal ones.

    owner: int32[P], object of each particle. Rows of parts of a cell are reduced again when they
    are joined (`reduced`), so that they do not depend on the parts.
    """

    contacts: SoftContacts
    owner: np.ndarray

    group = SOFT_CONTACTS

    @property
    def width(self) -> int:
        return self.contacts.width

    def kernels(self) -> list[wp.Kernel]:
        return self.contacts.kernels()

    def issue_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> Callable[[], GroupRows]:
        """As `ElementStage.issue_part`, of the nearest rows."""
        finished = self.contacts.issue_part(chunk, batch, workspace, begin, end)
        return lambda: self.reduced(finished())

    def reduced(self, rows: GroupRows) -> GroupRows:
        """The nearest row of each cell, shape and object, in the order of the rows."""
        cells = len(rows.cell_counts)
        cell = np.repeat(np.arange(cells), rows.cell_counts)
        shape = rows.columns["shape"]
        owner = self.owner[rows.columns["indices"][:, 0]]
        order = np.lexsort((rows.columns["distance"], owner, shape, cell))
        is_first = np.ones(len(order), bool)
        is_first[1:] = (
            (np.diff(cell[order]) != 0)
            | (np.diff(shape[order]) != 0)
            | (np.diff(owner[order]) != 0)
        )
        kept = np.sort(order[is_first])
        counts = np.bincount(cell[kept], minlength=cells).astype(np.int64)
        return GroupRows(counts, {name: values[kept] for name, values in rows.columns.items()})
