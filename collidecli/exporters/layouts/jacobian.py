"""Jacobian of the contacts' distances over joint velocities, as a sparse matrix that SciPy reads.

The points of a contact are taken as fixed to their bodies: d distance / d qvel = normal .
(J(point1) - J(point0)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.exporters.arrays import (
    POINTS,
    Array,
    Layout,
    frames_and_worlds,
    held,
    starts,
    texts,
)
from collidecli.exporters.layouts.columns import PAIR, stored
from collidecli.numerics.products import cross, dot
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.storage.contact_sets.selected import SelectedContacts

STRIP = 1 << 16
"""Velocities of all cells in one vectorized step."""


@dataclass(frozen=True)
class MovingJoints:
    """The joint velocities of a scene in motion.

    names: of the nv velocities. affects: bool[S, nv], whether a velocity moves a shape of the
    contact set. at: of frames and worlds of the contact set, [n] each: angular velocities, and
    velocities of the point at the world's origin, float64[n, 2, nv, 3].
    """

    names: Sequence[str]
    affects: np.ndarray
    at: Callable[[np.ndarray, np.ndarray], np.ndarray]


def jacobian_layout(selected: SelectedContacts, joints: MovingJoints) -> Layout:
    """A row a contact, a column a velocity; entries of the velocities that move either shape, in
    ascending order."""
    entries = _Entries(selected, joints)
    arrays = (
        *frames_and_worlds(selected),
        stored(selected, "distance", "distance", "float32"),
        held("format", np.array(b"csr")),
        held("shape", np.array([selected.contact_count, len(joints.names)], np.int64)),
        starts("indptr", selected.contact_count, PAIR, selected, entries.lengths),
        Array("indices", np.dtype(np.int64), (entries.count,), entries.indices),
        Array("data", np.dtype(np.float64), (entries.count,), entries.values),
        texts("velocity_name", joints.names),
    )
    return Layout(arrays)


class _Entries:
    def __init__(self, selected: SelectedContacts, joints: MovingJoints) -> None:
        self._selected = selected
        self._joints = joints
        self._of_pair: dict[tuple[int, int], np.ndarray] = {}

    @property
    def count(self) -> int:
        return sum(int(self.lengths(block).sum()) for block in self._selected.blocks(PAIR))

    def indices(self) -> Iterator[np.ndarray]:
        for block in self._selected.blocks(PAIR):
            yield np.concatenate([np.zeros(0, np.int64), *self._columns(block.columns)])

    def values(self) -> Iterator[np.ndarray]:
        for block in self._selected.blocks((*PAIR, *POINTS, "normal")):
            ends = np.cumsum(block.cell_counts)
            cells_in_use = np.flatnonzero(block.cell_counts)
            step = max(1, STRIP // (1 + len(self._joints.names)))
            for first in range(0, len(cells_in_use), step):
                cells = cells_in_use[first : first + step]
                rows = slice(
                    int(ends[cells[0]] - block.cell_counts[cells[0]]), int(ends[cells[-1]])
                )
                yield self._of_cells(block, rows, cells)

    def _columns(self, contacts: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        pairs = zip(contacts["shape0"].tolist(), contacts["shape1"].tolist(), strict=True)
        return [self._union(*pair) for pair in pairs]

    def lengths(self, block: ContactBlock) -> np.ndarray:
        """int64[n]: number of entries of each contact."""
        return np.array([len(columns) for columns in self._columns(block.columns)], np.int64)

    def _union(self, shape0: int, shape1: int) -> np.ndarray:
        dofs = self._of_pair.get((shape0, shape1))
        if dofs is None:
            affects = self._joints.affects
            dofs = self._of_pair[shape0, shape1] = np.flatnonzero(affects[shape0] | affects[shape1])
        return dofs

    def _of_cells(self, block: ContactBlock, rows: slice, cells: np.ndarray) -> np.ndarray:
        selected = self._selected
        columns = {name: values[rows] for name, values in block.columns.items()}
        frame, world = np.divmod(block.first_cell + cells, selected.world_count)
        axes = self._joints.at(np.asarray(selected.frames)[frame], selected.worlds[world])
        of_contact = self._columns(columns)
        contact = np.repeat(np.arange(len(of_contact)), [len(entries) for entries in of_contact])
        column = np.concatenate(of_contact)
        cell = np.repeat(np.arange(len(cells)), block.cell_counts[cells])[contact]
        turn = axes[cell, 0, column]
        velocity = axes[cell, 1, column]
        total = np.zeros((len(column), 3))
        for side, sign in ((0, -1.0), (1, 1.0)):
            moves = self._joints.affects[columns[f"shape{side}"][contact], column]
            point = columns[f"point{side}"][contact].astype(np.float64)
            total += (sign * moves)[:, None] * (velocity + cross(turn, point))
        return dot(total, columns["normal"][contact].astype(np.float64))
