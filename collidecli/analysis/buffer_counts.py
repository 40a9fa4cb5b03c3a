"""Counts of the cells of a motion that buffers of physics engines hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.cell_peaks import CellPeaks, Peak
from collidecli.analysis.engine_contact_rules import MESHES, RULES, TYPES
from collidecli.scene.contact_blocks import ContactBlock, pair_begins

CANDIDATES = "candidates"
CONTACTS = "contacts"
PAIRS = "pairs"
NEWTON_PAIRS = "newton_pairs"
MUJOCO_PAIRS = "mujoco_warp_pairs"
GENESIS_PAIRS = "genesis_pairs"
OTHER_PAIRS = (NEWTON_PAIRS, MUJOCO_PAIRS, GENESIS_PAIRS)
"""Pairs after the broad phases of other engines, by their rules."""
COUNTS = (CANDIDATES, PAIRS, CONTACTS)
"""Candidates after the broad phase; pairs of shapes with a contact; contacts."""


@dataclass(frozen=True)
class PairPeak:
    """The greatest number of contacts of one pair in one cell. shape0, shape1: paths; "" without a
    contact, with frame and world -1."""

    contacts: int
    shape0: str
    shape1: str
    frame: int
    world: int


@dataclass(frozen=True)
class MeshContact:
    """A contact of two shapes that are meshes or heightfields. shape0, shape1: paths."""

    shape0: str
    shape1: str
    frame: int
    world: int


class BufferCounts:
    """Peaks of COUNTS by world and over all worlds, and of the contacts by the rule of each engine.

    shape_type: label of each shape's type. peaks: by the name of a count, or of an engine for the
    most contacts that it can have of the pairs with a contact. has_candidates: whether
    `add_candidates` was called for the cells. mesh_contact: the first of two meshes or
    heightfields, None without one.
    """

    def __init__(self, paths: Sequence[str], shape_type: Sequence[str], world_count: int) -> None:
        self._paths = paths
        self._type = np.array([TYPES.index(label) for label in shape_type], np.int64)
        self._is_mesh = np.array([label in MESHES for label in shape_type], bool)
        self._tables = {rule.engine: rule.table() for rule in RULES}
        self._worlds = world_count
        self.peaks = {name: CellPeaks(world_count) for name in (*COUNTS, *self._tables)}
        self.most_of_a_pair = PairPeak(0, "", "", -1, -1)
        self.mesh_contact: MeshContact | None = None
        self.has_candidates = False

    def add_candidates(self, first_cell: int, cell_counts: np.ndarray) -> None:
        """Adds the candidates of consecutive cells. cell_counts: int64[cells]."""
        self.has_candidates = True
        self.peaks[CANDIDATES].add(first_cell, cell_counts)

    def add(self, block: ContactBlock) -> None:
        """Adds a block with the columns shape0 and shape1."""
        cells = len(block.cell_counts)
        start = np.flatnonzero(pair_begins(block))
        number = np.diff(start, append=block.contact_count)
        cell = np.repeat(np.arange(cells), block.cell_counts)[start]
        shapes = [block.columns[f"shape{side}"][start] for side in (0, 1)]
        self.peaks[CONTACTS].add(block.first_cell, block.cell_counts)
        self.peaks[PAIRS].add(block.first_cell, np.bincount(cell, minlength=cells))
        types = [self._type[rows] for rows in shapes]
        for engine, table in self._tables.items():
            most = np.zeros(cells, np.int64)
            np.add.at(most, cell, table[types[0], types[1]])
            self.peaks[engine].add(block.first_cell, most)
        of_meshes = np.flatnonzero(self._is_mesh[shapes[0]] & self._is_mesh[shapes[1]])
        if len(of_meshes) and self.mesh_contact is None:
            row = int(of_meshes[0])
            place = self._place(block.first_cell + int(cell[row]))
            self.mesh_contact = MeshContact(*self._names(shapes, row), *place)
        if len(start) and number.max() > self.most_of_a_pair.contacts:
            row = int(np.argmax(number))
            place = self._place(block.first_cell + int(cell[row]))
            self.most_of_a_pair = PairPeak(int(number[row]), *self._names(shapes, row), *place)

    def _place(self, cell: int) -> tuple[int, int]:
        """The frame and the world of a cell."""
        return divmod(cell, self._worlds)

    def _names(self, shapes: Sequence[np.ndarray], row: int) -> tuple[str, str]:
        """The paths of the two shapes of a row."""
        return self._paths[int(shapes[0][row])], self._paths[int(shapes[1][row])]

    @property
    def names(self) -> tuple[str, ...]:
        """The counts that were added."""
        return COUNTS if self.has_candidates else COUNTS[1:]

    def as_dict(self) -> dict[str, Any]:
        """The entry `counts` of a result: of each count the peaks, and the peaks of each world."""
        return {
            "peaks": [
                {
                    "name": name,
                    "a_world": _peak(self.peaks[name].of_a_world),
                    "all_worlds": _peak(self.peaks[name].of_all_worlds),
                }
                for name in self.names
            ],
            "contacts_of_a_pair": vars(self.most_of_a_pair),
            "worlds": [
                {
                    "world": world,
                    **{
                        name: {
                            "count": int(self.peaks[name].counts[world]),
                            "frame": int(self.peaks[name].frames[world]),
                        }
                        for name in self.names
                    },
                }
                for world in range(self._worlds)
            ],
        }


def _peak(peak: Peak) -> dict[str, int]:
    return dict(vars(peak))
