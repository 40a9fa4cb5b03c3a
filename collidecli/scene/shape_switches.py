"""Shapes of a scene that collide in some frames of its motion alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock, groups_with_rows, shapes_of
from collidecli.scene.contact_columns import RIGID_CONTACTS


@dataclass(frozen=True)
class ShapeSwitches:
    """Shapes that are enabled and disabled over a motion, the same in every world.

    path: of each of n shapes. row: int64[n], in the model. enabled: bool[F, n], of each frame.
    """

    path: tuple[str, ...]
    row: np.ndarray
    enabled: np.ndarray

    def sliced(self, frames: range) -> ShapeSwitches:
        """Those of a selection of frames."""
        return ShapeSwitches(self.path, self.row, self.enabled[np.asarray(frames, np.intp)])

    def without_disabled(self, block: ContactBlock, world_count: int) -> ContactBlock:
        """The block without the rows, of every table, with a shape that is disabled in the row's
        frame; the block itself if there are none."""
        tables = block.tables
        rows = {}
        for name, table in tables.items():
            cell = block.first_cell + np.repeat(
                np.arange(len(table.cell_counts)), table.cell_counts
            )
            kept = np.ones(len(cell), bool)
            for shape in shapes_of(tables, name):
                kept &= self._is_enabled(shape, cell // world_count)
            rows[name] = np.flatnonzero(kept)
        if all(len(rows[name]) == table.row_count for name, table in tables.items()):
            return block
        chosen = groups_with_rows(tables, rows)
        rigid = chosen.pop(RIGID_CONTACTS.name)
        return ContactBlock(block.first_cell, rigid.cell_counts, rigid.columns, chosen)

    def _is_enabled(self, shape: np.ndarray, frame: np.ndarray) -> np.ndarray:
        """bool[n]: whether each shape, -1 for none, is enabled in its frame."""
        order = np.argsort(self.row)
        at = order[np.minimum(np.searchsorted(self.row, shape, sorter=order), len(order) - 1)]
        return (self.row[at] != shape) | self.enabled[frame, at]


def switches_of(motion: object) -> ShapeSwitches | None:
    """The shapes that a motion enables and disables: its attribute `switches`; None without any."""
    return getattr(motion, "switches", None)


def refuse_switches(paths: Sequence[str], where: str, what: str) -> None:
    """Raises InputError for shapes that are enabled and disabled over time, where that cannot be
    honoured. what: the reason."""
    if paths:
        raise InputError(
            f"physics:collisionEnabled of <{paths[0]}> changes over time, and {what}",
            where,
            "give it one value, or use collide run, audit or profile with the scene's own motion",
        )
