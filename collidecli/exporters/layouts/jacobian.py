"""Jacobian of the contacts' distances over joint velocities, as a sparse matrix that SciPy reads.

The points of a contact are taken as fixed to their bodies: d distance / d qvel = normal . (J(point1) - J(point0)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.exporters.arrays import POINTS, Array, Layout, frames_and_worlds, held, per_contact, texts
from collidecli.exporters.selection import SelectedContacts
from collidecli.numerics.matrices import cross, dot
from collidecli.scene.contacts import ContactBlock

PAIR = ("shape0", "shape1")
STRIP = 1 << 16
"""Velocities of all cells in one vectorized step."""


@dataclass(frozen=True)
class MovingJoints:
    """The joint velocities of a scene in motion.

    names: of the nv velocities. affects: bool[S, nv], whether a velocity moves a shape of the contact set. at: of
    frames and worlds of the contact set, [n] each: angular velocities, and velocities of the point at the world's
    origin, float64[n, 2, nv, 3].
    """

    names: Sequence[str]
    affects: np.ndarray
    at: Callable[[np.ndarray, np.ndarray], np.ndarray]


def layout(selected: SelectedContacts, joints: MovingJoints) -> Layout:
    """A row a contact, a column a velocity; entries of the velocities that move either shape, in ascending order."""
    entries = _Entries(selected, joints)
    arrays = (
        *frames_and_worlds(selected),
        per_contact(selected, "distance", "float32", (), ("distance",), lambda columns: columns["distance"]),
        held("format", np.array(b"csr")),
        held("shape", np.array([selected.contact_count, len(joints.names)], np.int64)),
        Array("indptr", np.dtype(np.int64), (selected.contact_count + 1,), entries.starts),
        Array("indices", np.dtype(np.int64), (entries.count,), entries.indices),
        Array("data", np.dtype(np.float64), (entries.count,), entries.values),
        texts("velocity_name", joints.names),
    )
    return Layout(arrays)


class _Entries:
    """The entries of the matrix, block by block."""

    def __init__(self, selected: SelectedContacts, joints: MovingJoints) -> None:
        self._selected, self._joints = selected, joints
        self._of_pair: dict[tuple[int, int], np.ndarray] = {}

    @property
    def count(self) -> int:
        return sum(int(self._lengths(block).sum()) for block in self._selected.blocks(PAIR))

    def starts(self) -> Iterator[np.ndarray]:
        total = 0
        yield np.zeros(1, np.int64)
        for block in self._selected.blocks(PAIR):
            ends = total + np.cumsum(self._lengths(block), dtype=np.int64)
            total = int(ends[-1]) if len(ends) else total
            yield ends

    def indices(self) -> Iterator[np.ndarray]:
        for block in self._selected.blocks(PAIR):
            yield np.concatenate([np.zeros(0, np.int64), *self._columns(block)])

    def values(self) -> Iterator[np.ndarray]:
        for block in self._selected.blocks((*PAIR, *POINTS, "normal")):
            ends = np.cumsum(block.cell_counts)
            held = np.flatnonzero(block.cell_counts)
            step = max(1, STRIP // (1 + len(self._joints.names)))
            for first in range(0, len(held), step):
                cells = held[first : first + step]
                rows = slice(int(ends[cells[0]] - block.cell_counts[cells[0]]), int(ends[cells[-1]]))
                yield self._of_cells(block, rows, cells)

    def _columns(self, block: ContactBlock) -> list[np.ndarray]:
        """The columns of the entries of each contact."""
        pairs = zip(block.columns["shape0"].tolist(), block.columns["shape1"].tolist(), strict=True)
        return [self._union(*pair) for pair in pairs]

    def _lengths(self, block: ContactBlock) -> np.ndarray:
        return np.array([len(columns) for columns in self._columns(block)], np.int64)

    def _union(self, shape0: int, shape1: int) -> np.ndarray:
        found = self._of_pair.get((shape0, shape1))
        if found is None:
            affects = self._joints.affects
            found = self._of_pair[shape0, shape1] = np.flatnonzero(affects[shape0] | affects[shape1])
        return found

    def _of_cells(self, block: ContactBlock, rows: slice, cells: np.ndarray) -> np.ndarray:
        """Values of the entries of some cells of a block, whose contacts are `rows`."""
        selected, columns = self._selected, {name: values[rows] for name, values in block.columns.items()}
        frame, world = np.divmod(block.first_cell + cells, selected.world_count)
        axes = self._joints.at(np.asarray(selected.frames)[frame], selected.worlds[world])
        pairs = zip(columns["shape0"].tolist(), columns["shape1"].tolist(), strict=True)
        of_contact = [self._union(*pair) for pair in pairs]
        contact = np.repeat(np.arange(len(of_contact)), [len(each) for each in of_contact])
        column = np.concatenate(of_contact)
        cell = np.repeat(np.arange(len(cells)), block.cell_counts[cells])[contact]
        turn, velocity = axes[cell, 0, column], axes[cell, 1, column]
        total = np.zeros((len(column), 3))
        for side, sign in ((0, -1.0), (1, 1.0)):
            moves = self._joints.affects[columns[f"shape{side}"][contact], column]
            point = columns[f"point{side}"][contact].astype(np.float64)
            total += (sign * moves)[:, None] * (velocity + cross(turn, point))
        return dot(total, columns["normal"][contact].astype(np.float64))
