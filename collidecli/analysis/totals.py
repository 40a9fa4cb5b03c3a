"""Totals that verbs print: contacts and touching contacts of pairs, rows of groups, ranges of
columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from collidecli.analysis.deepest import deepest_order
from collidecli.analysis.summary import touches_of
from collidecli.analysis.touch_intervals import Names
from collidecli.scene.contact_blocks import ContactBlock, shapes_of
from collidecli.scene.contact_columns import OF_STEPS
from collidecli.scene.episodes import Episodes

MAX_TABLE_SIZE = 1 << 16
"""Largest number of shape pairs that are counted in a dense table; above it the pairs that occur
are sorted."""
HELD_ROWS = 65536
"""Cells and contacts that are counted together: the dozen calls of NumPy take longer than counting
a small block."""
DEPTHS = ("depth", "distance", "least")
"""Columns of groups with a signed distance."""
TOUCHES = 1
"""Status of a row between frames that touches; of an undecided one it is 2."""
TOP_PAIRS = 10
"""Number of pairs that a result lists."""


@dataclass(frozen=True)
class DeepestContact:
    """The contact, or row of a group, with the least distance. distance: of a surface's row its
    `depth`; negative is penetration [m]. shape0, shape1: names, "" for particles and for a group
    without them. episode: "" without any.
    """

    distance: float
    shape0: str
    shape1: str
    frame: int
    world: int
    episode: str = ""


@dataclass(frozen=True)
class PairContacts:
    """Number of contacts of two shapes, and of those that touch. shape0, shape1: names."""

    shape0: str
    shape1: str
    contacts: int
    touching: int


@dataclass(frozen=True)
class TriggerCounts:
    """Number of shapes that are not solid, of all templates, and of contacts with one."""

    shapes: int
    contacts: int


@dataclass(frozen=True, kw_only=True)
class ContactCounts:
    """Counts of the contacts of a run. A contact touches if its distance is at most 0, else it is
    near: in the gap.

    contacts: all; touching_contacts, near_contacts: the parts of it. contact_pair_count,
    touching_pair_count: pairs of shapes with a contact, and with a touching one, in any cell.
    contact_pair_cells, touching_pair_cells: each pair counted once in every cell in which it has
    one. deepest: of two solid shapes; None without a contact. top_pairs: the first pairs by contact
    count. triggers: None without any.
    """

    contacts: int
    touching_contacts: int
    near_contacts: int
    contact_pair_count: int
    touching_pair_count: int
    contact_pair_cells: int
    touching_pair_cells: int
    deepest: DeepestContact | None
    top_pairs: list[PairContacts]
    triggers: TriggerCounts | None = None


@dataclass(frozen=True)
class GroupCounts:
    """Rows of a table of contacts beside /rigid_contacts, cells with rows, and the deepest row,
    None without rows."""

    rows: int
    cells: int
    deepest: DeepestContact | None


@dataclass(frozen=True)
class SweepCounts:
    """Pairs between frames, of shapes, of a particle and a shape or of elements, each counted in
    every step.

    touches: that touch. tunnels: those of them that are apart in both frames, which the recording
    misses. undecided: of which neither is certain.
    """

    touches: int
    tunnels: int
    undecided: int


class Tally:
    """Counts of contacts and touching contacts of pairs of shapes by name, and the deepest contact,
    block by block.

    deepest: (distance, (shape0, shape1), cell), by the first shapes of their names, the first in
    `deepest_order`; None without a contact of a finite distance. triggers, bool[S] if any, do not
    count.
    """

    def __init__(self, names: Names, trigger: np.ndarray | None = None) -> None:
        self._names = names
        self._trigger = trigger if trigger is not None and trigger.any() else None
        shape_count = self._shape_count = len(names.row)
        self._contact_table = np.zeros(
            shape_count**2 if shape_count**2 <= MAX_TABLE_SIZE else 0, np.int64
        )
        self._touching_table = self._contact_table.copy()
        self._added: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._added_rows = 0
        self._held: list[ContactBlock] = []
        self._held_rows = 0
        self.contact_pair_cells = self.touching_pair_cells = 0
        self._trigger_contacts = 0
        self.deepest: tuple[float, tuple[int, int], int] | None = None

    def add(self, block: ContactBlock) -> None:
        """Adds the contacts of a block; consecutive small blocks are counted together, `count_held`
        counts the last."""
        if (
            self._held
            and self._held[-1].first_cell + len(self._held[-1].cell_counts) != block.first_cell
        ):
            self.count_held()
        columns = {name: block.columns[name] for name in ("shape0", "shape1", "distance")}
        self._held.append(ContactBlock(block.first_cell, block.cell_counts, columns))
        self._held_rows += block.contact_count + len(block.cell_counts)
        if self._held_rows >= HELD_ROWS:
            self.count_held()

    def count_held(self) -> None:
        """Counts the blocks that were added and not counted yet."""
        blocks = self._held
        self._held = []
        self._held_rows = 0
        if len(blocks) > 1:
            columns = {
                name: np.concatenate([b.columns[name] for b in blocks])
                for name in blocks[0].columns
            }
            blocks = [
                ContactBlock(
                    blocks[0].first_cell, np.concatenate([b.cell_counts for b in blocks]), columns
                )
            ]
        for block in blocks:
            self._count(block)

    def _count(self, block: ContactBlock) -> None:
        if not block.contact_count:
            return
        columns = block.columns
        touching = columns["distance"] <= 0.0
        begins = touches_of(block).start
        keys = self._keys(columns["shape0"], columns["shape1"])
        self.contact_pair_cells += len(begins)
        self.touching_pair_cells += int(np.logical_or.reduceat(touching, begins).sum())
        if size := len(self._contact_table):
            self._contact_table += np.bincount(keys, minlength=size)
            self._touching_table += np.bincount(keys[touching], minlength=size)
        else:
            counts = np.diff(begins, append=len(keys))
            self._append(keys[begins], counts, np.add.reduceat(touching, begins, dtype=np.int64))
        distances = columns["distance"]
        if self._trigger is not None:
            entered = self._trigger[columns["shape0"]] | self._trigger[columns["shape1"]]
            self._trigger_contacts += int(entered.sum())
            distances = np.where(entered, np.float32(np.inf), distances)
        row = int(np.argmin(distances))
        if not np.isfinite(distances[row]):  # of another engine, or of triggers alone
            row = int(np.argmin(np.nan_to_num(distances, nan=np.inf, neginf=np.inf)))
        distance = float(distances[row])
        if np.isfinite(distance) and (self.deepest is None or distance < self.deepest[0]):
            self.deepest = self._first_of_equal(block, keys, np.flatnonzero(distances == distance))

    def _first_of_equal(
        self, block: ContactBlock, keys: np.ndarray, rows: np.ndarray
    ) -> tuple[float, tuple[int, int], int]:
        """The value of `deepest` of rows of equal distances. keys: of the pairs of all rows."""
        distance = block.columns["distance"][rows]
        cell = np.searchsorted(np.cumsum(block.cell_counts), rows, side="right")
        first = deepest_order(distance, cell, keys[rows])[0]
        pair = divmod(int(keys[rows[first]]), self._shape_count)
        return float(distance[first]), pair, block.first_cell + int(cell[first])

    def _keys(self, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        one, other = self._names.pair(shape0, shape1)
        return one.astype(np.int64) * self._shape_count + other

    def _append(self, keys: np.ndarray, contacts: np.ndarray, touching: np.ndarray) -> None:
        """Appends the pairs of a block; sums the appended pairs when they are more than twice the
        distinct ones."""
        self._added.append((keys, contacts, touching))
        self._added_rows += len(keys)
        if self._added_rows > MAX_TABLE_SIZE + 2 * len(self._added[0][0]):
            self._added = [self._summed()]
            self._added_rows = len(self._added[0][0])

    def _summed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sorted keys of the appended pairs, and the counts of contacts and of touching ones of
        each."""
        if not self._added:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys, *counts = (np.concatenate(parts) for parts in zip(*self._added, strict=True))
        together, inverse = np.unique(keys, return_inverse=True)
        contacts, touching = (
            np.bincount(inverse, values, len(together)).astype(np.int64) for values in counts
        )
        return together, contacts, touching

    def pairs(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Counts of contacts and of touching ones of each pair (shape0, shape1), in descending
        order of contacts."""
        self.count_held()
        if len(self._contact_table):
            keys = np.flatnonzero(self._contact_table)
            contacts = self._contact_table[keys]
            touching = self._touching_table[keys]
        else:
            keys, contacts, touching = self._summed()
        order = np.lexsort((keys, -contacts))
        rows = zip(*(values[order].tolist() for values in (keys, contacts, touching)), strict=True)
        return {
            divmod(key, self._shape_count): (of_contacts, of_touching)
            for key, of_contacts, of_touching in rows
        }

    def counts(self, worlds: int, episodes: Episodes | None) -> ContactCounts:
        """The counts of all added blocks. worlds: number of them."""
        pairs = self.pairs()
        text = self._names.text
        contacts, touching = (sum(counts[k] for counts in pairs.values()) for k in (0, 1))
        return ContactCounts(
            contacts=contacts,
            touching_contacts=touching,
            near_contacts=contacts - touching,
            contact_pair_count=len(pairs),
            touching_pair_count=sum(of_pair > 0 for _, of_pair in pairs.values()),
            contact_pair_cells=self.contact_pair_cells,
            touching_pair_cells=self.touching_pair_cells,
            deepest=None
            if self.deepest is None
            else _deepest(*self.deepest, self._names, worlds, episodes),
            top_pairs=[
                PairContacts(text[a], text[b], *counts)
                for (a, b), counts in islice(pairs.items(), TOP_PAIRS)
            ],
            triggers=None
            if self._trigger is None
            else TriggerCounts(int(self._trigger.sum()), self._trigger_contacts),
        )


def _deepest(
    distance: float,
    shapes: Sequence[int],
    cell: int,
    names: Names,
    worlds: int,
    episodes: Episodes | None,
) -> DeepestContact:
    frame, world = divmod(cell, worlds)
    episode = "" if episodes is None else episodes.name_at(world, frame)
    shape0, shape1 = (*(names.text[shape] for shape in shapes), "", "")[:2]
    return DeepestContact(distance, shape0, shape1, frame, world, episode)


class GroupTally:
    """Counts of the rows of the groups of blocks, by name."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._deepest: dict[str, tuple[float, tuple[int, ...], int]] = {}
        self._swept = {name: np.zeros(3, np.int64) for name in OF_STEPS}

    @property
    def sweeps(self) -> tuple[SweepCounts | None, ...]:
        """Counts of contacts between frames, of the groups OF_STEPS; None without their group."""
        return tuple(
            SweepCounts(*self._swept[name].tolist()) if name in self._counts else None
            for name in OF_STEPS
        )

    def add(self, block: ContactBlock) -> None:
        for name in block.groups.keys() & self._swept.keys():
            columns = block.groups[name].columns
            touches = columns["status"] == TOUCHES
            counted = (touches, columns["tunnel"] == 1, ~touches)
            self._swept[name] += np.array([np.count_nonzero(steps) for steps in counted])
        for name, rows in block.groups.items():
            counts = self._counts.setdefault(name, [0, 0])
            counts[0] += rows.row_count
            counts[1] += int(np.count_nonzero(rows.cell_counts))
            depths = next((rows.columns[name] for name in DEPTHS if name in rows.columns), None)
            if depths is None or not len(depths):
                continue
            row = int(np.argmin(depths))
            if name not in self._deepest or depths[row] < self._deepest[name][0]:
                cell = block.first_cell + int(
                    np.searchsorted(np.cumsum(rows.cell_counts), row, side="right")
                )
                shapes = tuple(int(column[row]) for column in shapes_of(block.groups, name))
                self._deepest[name] = float(depths[row]), shapes, cell

    def counts(
        self, names: Names, worlds: int, episodes: Episodes | None
    ) -> dict[str, GroupCounts]:
        """The counts of all added blocks. names: of the shapes. worlds: number of them."""
        deepest = {
            name: _deepest(*row, names, worlds, episodes) for name, row in self._deepest.items()
        }
        return {
            name: GroupCounts(rows, cells, deepest.get(name))
            for name, (rows, cells) in self._counts.items()
        }


class ColumnRanges:
    """Least and greatest value of each column, per component of a vector, accumulated block by
    block."""

    def __init__(self, names: Sequence[str]) -> None:
        self._ends: dict[str, list[np.ndarray]] = {name: [] for name in names}

    def add(self, block: ContactBlock) -> None:
        if not block.contact_count:
            return
        for name, ends in self._ends.items():
            values = block.columns[name].reshape(block.contact_count, -1)
            both = np.concatenate([values, *ends])
            self._ends[name] = [both.min(axis=0, keepdims=True), both.max(axis=0, keepdims=True)]

    def as_dict(self) -> dict[str, dict[str, list[float]]]:
        """By column name {"least": [...], "most": [...]}, a number per component; empty lists
        without a contact."""
        return {
            name: {"least": ends[0][0].tolist(), "most": ends[1][0].tolist()}
            if ends
            else {"least": [], "most": []}
            for name, ends in self._ends.items()
        }
