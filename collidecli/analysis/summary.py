"""Touches, sums and totals of contacts, block by block: by frame, pair of shapes, group and depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis.touches import Names, Rows, touches
from collidecli.scene.motion import Episodes
from collidecli.scene.tables import OF_STEPS, ContactBlock, pair_begins, shapes_of


@dataclass(frozen=True)
class Touches(Rows):
    """A row for each touching pair of each cell of a block, in the order of the contacts.

    start: int64[m], first contact in the block. contact_count: int64[m]. cell: int64[m], counted over the file.
    shape0, shape1: int32[m]. distance: float32[m], the least distance [m].
    """

    start: np.ndarray
    contact_count: np.ndarray
    cell: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    distance: np.ndarray

    def named(self, names: Names) -> Touches:
        """The touches with the first shapes of the names."""
        shape0, shape1 = names.pair(self.shape0, self.shape1)
        return replace(self, shape0=shape0, shape1=shape1)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """float64[m, ...]: the mean of a column over each touch. Mean vectors are not normalized."""
        if not len(self):
            return np.zeros((0, *values.shape[1:]))
        sums = np.add.reduceat(values.astype(np.float64), self.start)
        return sums / self.contact_count.reshape(-1, *(1,) * (values.ndim - 1))


def touches_of(block: ContactBlock) -> Touches:
    """The touches of a block with the columns shape0, shape1 and distance."""
    shape0, shape1, distance = (block.columns[name] for name in ("shape0", "shape1", "distance"))
    start = np.flatnonzero(pair_begins(block))
    cell = np.repeat(block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts)[start]
    least = np.minimum.reduceat(distance, start) if len(start) else distance[:0]
    return Touches(start, np.diff(start, append=len(shape0)), cell, shape0[start], shape1[start], least)


LEAST_DECADE, MOST_DECADE = -9, 2
"""The histogram resolves depths from 1 nm to 100 m [powers of ten, m]."""
BINS_PER_DECADE = 5


class FrameSums:
    """Per frame, over its worlds: contacts, penetrating contacts, and the least distance.

    contacts, penetrating: int64[frames]. least: float64[frames] [m], inf for a frame without contacts.
    """

    def __init__(self, frames: int, worlds: int) -> None:
        self.contacts = np.zeros(frames, np.int64)
        self.penetrating = np.zeros(frames, np.int64)
        self.least = np.full(frames, np.inf)
        self._worlds = worlds

    def add(self, block: ContactBlock) -> None:
        """Adds a block with the column distance."""
        counts = block.cell_counts
        frame = (block.first_cell + np.arange(len(counts))) // self._worlds
        if not len(frame):
            return
        first = int(frame[0])
        span = slice(first, int(frame[-1]) + 1)
        self.contacts[span] += np.bincount(frame - first, counts).astype(np.int64)
        filled = np.flatnonzero(counts)
        if not len(filled):
            return
        start = (np.cumsum(counts) - counts)[filled]
        distance = block.columns["distance"]
        below = np.add.reduceat((distance < 0.0).astype(np.int64), start)
        self.penetrating[span] += np.bincount(frame[filled] - first, below, span.stop - first).astype(np.int64)
        np.minimum.at(self.least, frame[filled], np.minimum.reduceat(distance, start))


class DepthHistogram:
    """Histogram of penetrating contacts by depth: int64 counts of bins of equal width on a logarithmic scale.

    The first bin includes all smaller depths, the last all larger ones.
    """

    def __init__(self) -> None:
        decades = np.arange((MOST_DECADE - LEAST_DECADE) * BINS_PER_DECADE + 1) / BINS_PER_DECADE
        self.edges = 10.0 ** (LEAST_DECADE + decades)
        self.counts = np.zeros(len(self.edges) + 1, np.int64)

    def add(self, distance: np.ndarray) -> None:
        """Adds contacts; separated and touching ones are ignored."""
        depth = -distance[distance < 0.0].astype(np.float64)
        with np.errstate(divide="ignore"):
            bins = np.floor((np.log10(depth) - LEAST_DECADE) * BINS_PER_DECADE).astype(np.int64) + 1
        self.counts += np.bincount(np.clip(bins, 0, len(self.edges)), minlength=len(self.counts))


@dataclass(frozen=True)
class PairTotals(Rows):
    """A row for each pair of shapes with contacts, in ascending order of its key, shape0 * shapes + shape1.

    contacts, touches: int64[n], numbers of contacts and cells. first, last: int64[n], cells. least: float64[n], the
    least distance [m]. at: int64[n], the first cell with it.
    """

    DTYPES: ClassVar = {"least": np.float64}

    key: np.ndarray
    contacts: np.ndarray
    touches: np.ndarray
    first: np.ndarray
    last: np.ndarray
    least: np.ndarray
    at: np.ndarray

    @classmethod
    def of(cls, touches: Touches, shape_count: int) -> PairTotals:
        """The totals of one block."""
        key = touches.shape0.astype(np.int64) * shape_count + touches.shape1
        return cls(
            key, touches.contact_count, np.ones(len(key), np.int64), touches.cell, touches.cell,
            touches.distance.astype(np.float64), touches.cell,
        )._summed()  # fmt: skip

    def joined(self, later: PairTotals) -> PairTotals:
        """The totals including those of later cells."""
        return PairTotals.chained(self, later)._summed()

    def _summed(self) -> PairTotals:
        if not len(self):
            return self
        # Stable: the rows of a pair remain in the order of their cells.
        order = np.argsort(self.key, kind="stable")
        key = self.key[order]
        start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        least = np.minimum.reduceat(self.least[order], start)
        lengths = np.diff(start, append=len(key))
        deepest = self.least[order] == np.repeat(least, lengths)
        cells = np.where(deepest, self.at[order], np.iinfo(np.int64).max)
        return PairTotals(
            key[start],
            np.add.reduceat(self.contacts[order], start),
            np.add.reduceat(self.touches[order], start),
            np.minimum.reduceat(self.first[order], start),
            np.maximum.reduceat(self.last[order], start),
            least,
            np.minimum.reduceat(cells, start),
        )


class PairMap:
    """Contacts and least distance of some pairs over time. key: int64[n], ascending. bin_of: int64[frames].

    contacts: int64[n, bins]. least: float64[n, bins] [m], inf for a pair without contacts.
    """

    def __init__(self, key: np.ndarray, bin_of: np.ndarray, worlds: int, shape_count: int) -> None:
        self._key, self._bin_of, self._worlds, self._shape_count = key, bin_of, worlds, shape_count
        bins = int(bin_of[-1]) + 1 if len(bin_of) else 0
        self.contacts = np.zeros((len(key), bins), np.int64)
        self.least = np.full((len(key), bins), np.inf)

    def add(self, touches: Touches) -> None:
        """Adds the touches of a block."""
        if not len(self._key) or not len(touches):
            return
        key = touches.shape0.astype(np.int64) * self._shape_count + touches.shape1
        row = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        kept = np.flatnonzero(self._key[row] == key)
        index = (row[kept], self._bin_of[touches.cell[kept] // self._worlds])
        np.add.at(self.contacts, index, touches.contact_count[kept])
        np.minimum.at(self.least, index, touches.distance[kept])


class TimeBins:
    """At most `most` bins of frames, of equal length except the last.

    of: int64[frames], the bin of each. start, lengths: int64[bins] [frames].
    """

    def __init__(self, frames: int, most: int) -> None:
        self.of = np.arange(frames) // max(1, -(-frames // most))
        self.start = np.flatnonzero(np.diff(self.of, prepend=-1))
        self.lengths = np.diff(self.start, append=frames)

    def axis(self, time: np.ndarray, number: np.ndarray | None = None) -> dict[str, Any]:
        """Frames per bin, and number and time of the first frame of each. time, number: of all frames."""
        frame = self.start if number is None else number[self.start]
        per_bin = int(self.lengths[0]) if len(self.lengths) else 1
        return {"frames_per_bin": per_bin, "frame": frame.tolist(), "time": time[self.start].tolist()}

    def means(self, values: np.ndarray) -> list[float]:
        """The mean of the values of the frames of each bin."""
        return (np.add.reduceat(values, self.start) / self.lengths).tolist()

    def greatest(self, values: np.ndarray) -> list[Any]:
        """The greatest value of the frames of each bin."""
        return np.maximum.reduceat(values, self.start).tolist()


# Totals of rows of groups by frame and by pair of shapes.


class PairForces:
    """Area and force of contact surfaces by pair, summed over all frames.

    key: shape0 * shapes + shape1, int64, ascending. force, area: float64, sums of the sizes.
    """

    def __init__(self, shape_count: int) -> None:
        self._shapes = shape_count
        self.key = np.zeros(0, np.int64)
        self.force = self.area = np.zeros(0)

    def add(self, shape0: np.ndarray, shape1: np.ndarray, area: np.ndarray, force: np.ndarray) -> None:
        """Adds patches. force: float64[n, 3] [N]."""
        key = np.concatenate([self.key, shape0.astype(np.int64) * self._shapes + shape1])
        sizes = np.concatenate([self.force, np.linalg.norm(force, axis=1)])
        areas = np.concatenate([self.area, area])
        self.key, index = np.unique(key, return_inverse=True)
        self.force = np.bincount(index, sizes, len(self.key))
        self.area = np.bincount(index, areas, len(self.key))

    def largest(self, most: int) -> np.ndarray:
        """int64[up to most]: the keys of the pairs with the largest sums of forces, then of areas."""
        return self.key[np.lexsort((self.key, -self.area, -self.force))[:most]]


class SurfaceSeries:
    """Area [m^2] and size of the force [N] of chosen pairs in each frame, summed over worlds.

    area, force: float64[pairs, frames].
    """

    def __init__(self, keys: np.ndarray, shape_count: int, frame_count: int) -> None:
        self._keys, self._shapes = keys, shape_count
        self.area = np.zeros((len(keys), frame_count))
        self.force = np.zeros((len(keys), frame_count))

    def add(
        self, frame: np.ndarray, shape0: np.ndarray, shape1: np.ndarray, area: np.ndarray, force: np.ndarray
    ) -> None:
        """Adds patches. frame: int64[n]."""
        key = shape0.astype(np.int64) * self._shapes + shape1
        size = np.linalg.norm(force, axis=1)
        for row, wanted in enumerate(self._keys):
            is_wanted = key == wanted
            np.add.at(self.area[row], frame[is_wanted], area[is_wanted])
            np.add.at(self.force[row], frame[is_wanted], size[is_wanted])

    def binned(self, start: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Largest area, force and mean pressure [Pa] of the frames of each bin: float64[pairs, bins].

        start: first frame of each bin. The mean pressure of a frame is the force divided by the area.
        """
        if not len(start):
            return self.area, self.force, self.force
        pressure = np.divide(self.force, self.area, out=np.zeros_like(self.force), where=self.area > 0.0)
        area, force, pressure = (np.maximum.reduceat(v, start, axis=1) for v in (self.area, self.force, pressure))
        return area, force, pressure


# Depths of penetrating pairs over the cells of a motion: of each pair, and the deepest of each cell.

NONE = -1


@dataclass(frozen=True)
class PairDepths(Rows):
    """Penetrating pairs, ordered by key; arrays of one length.

    key: int64, of the pair. depth: float32, the greatest [m]. cell: int64, the first with it. cells: int64, number
    with penetration. over: int64, number with a depth above the pair's limit. start: float32, greatest depth in a first
    frame [m], 0 without.
    """

    DTYPES: ClassVar = {"depth": np.float32, "start": np.float32}

    key: np.ndarray
    depth: np.ndarray
    cell: np.ndarray
    cells: np.ndarray
    over: np.ndarray
    start: np.ndarray

    def joined(self, other: PairDepths) -> PairDepths:
        """Both, each pair once."""
        both = PairDepths.chained(self, other)
        return both.merged(both.key)

    def merged(self, of: np.ndarray) -> PairDepths:
        """One row for each number in `of`, int64[n], in ascending order; its key is that of its deepest row."""
        if not len(self):
            return self
        order = np.lexsort((self.cell, -self.depth, of))
        both, of = self.take(order), of[order]
        start = np.flatnonzero(np.concatenate([[True], of[1:] > of[:-1]]))
        return PairDepths(
            both.key[start], both.depth[start], both.cell[start], np.add.reduceat(both.cells, start),
            np.add.reduceat(both.over, start), np.maximum.reduceat(both.start, start),
        )  # fmt: skip


class MotionDepths:
    """Depths of the cells of a motion, collected block by block.

    Args:
        is_start: bool[cells], first frames of worlds or demonstrations.
    Attributes:
        pairs: of all cells so far. depth: float32[cells], the greatest [m], 0 without penetration. deepest:
        int64[cells], the key of its pair, NONE without. by_class: greatest depth float32[cells] of each class of pairs
        that `add` names. usable: bool[cells], no pair is above its limit.
    """

    def __init__(self, is_start: np.ndarray) -> None:
        count = len(is_start)
        self._is_start = is_start
        self.pairs = PairDepths.none()
        self.depth = np.zeros(count, np.float32)
        self.deepest = np.full(count, NONE, np.int64)
        self.by_class: dict[str, np.ndarray] = {}
        self.usable = np.ones(count, bool)

    def add(
        self, key: np.ndarray, cell: np.ndarray, depth: np.ndarray, limit: np.ndarray, classes: dict[str, np.ndarray]
    ) -> None:
        """Adds the depths of `depths_of`. limit: float[n] of each row's pair [m], infinite for none. classes: bool[n],
        the rows of each class.
        """
        over = depth > limit.astype(np.float32)
        ones = np.ones(len(key), np.int64)
        start = np.where(self._is_start[cell], depth, np.float32(0.0))
        self.pairs = self.pairs.joined(PairDepths(key, depth, cell, ones, over.astype(np.int64), start))
        order = np.lexsort((-key, depth))  # of equal depths the pair of the least key is written last
        np.maximum.at(self.depth, cell, depth)
        ordered = order[depth[order] == self.depth[cell[order]]]
        self.deepest[cell[ordered]] = key[ordered]
        self.usable[cell[over]] = False
        for name, rows in classes.items():
            of_class = self.by_class.setdefault(name, np.zeros_like(self.depth))
            np.maximum.at(of_class, cell[rows], depth[rows])


def depths_of(key: np.ndarray, cell: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Key, cell and depth [m] of each penetrating pair in each cell, from the contacts of cells in order.

    key, cell: int64[n]. distance: float32[n] [m], negative is penetration.
    """
    inside = np.flatnonzero(distance < 0.0)
    rows = touches(key[inside], cell[inside], distance[inside])
    return rows.key, rows.first, -rows.distance


def leading_run(bad: np.ndarray) -> np.ndarray:
    """int64[n]: number of leading True in each row of bool[n, m]."""
    return np.where(bad.all(axis=1), bad.shape[1], np.argmin(bad, axis=1)) if bad.shape[1] else np.zeros(len(bad), int)


# Totals that verbs print: contacts and touching contacts of pairs of shapes, rows of groups, ranges of columns.

MAX_TABLE_SIZE = 1 << 16
"""Largest number of shape pairs that are counted in a dense table; above it the pairs that occur are sorted."""
HELD_ROWS = 65536
"""Cells and contacts that are counted together: the dozen calls of NumPy take longer than counting a small block."""
DEPTHS = ("depth", "distance", "least")
"""Columns of groups with a signed distance."""
TOUCHES = 1
"""Status of a row between frames that touches; of an undecided one it is 2."""
TOP_PAIRS = 10
"""Number of pairs that a result lists."""


@dataclass(frozen=True)
class DeepestContact:
    """The contact, or row of a group, with the least distance. distance: of a surface's row its `depth`; negative is
    penetration [m]. shape0, shape1: names, "" for particles and for a group without them. episode: "" without any.
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


@dataclass(frozen=True, kw_only=True)
class ContactCounts:
    """Counts of the contacts of a run. A contact touches if its distance is at most 0, else it is near: in the gap.

    contacts: all; touching_contacts, near_contacts: the parts of it. contact_pair_count, touching_pair_count: pairs of
    shapes with a contact, and with a touching one, in any cell. contact_pair_cells, touching_pair_cells: each pair
    counted once in every cell in which it has one. deepest: None without a contact. top_pairs: the first pairs by
    contact count.
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


@dataclass(frozen=True)
class GroupCounts:
    """Rows of a table of contacts beside /rigid_contacts, cells with rows, and the deepest row, None without rows."""

    rows: int
    cells: int
    deepest: DeepestContact | None


@dataclass(frozen=True)
class SweepCounts:
    """Pairs between frames, of shapes, of a particle and a shape or of elements, each counted in every step.

    touches: that touch. tunnels: those of them that are apart in both frames, which the recording misses. undecided: of
    which neither is certain.
    """

    touches: int
    tunnels: int
    undecided: int


class Tally:
    """Counts of contacts and touching contacts of pairs of shapes by name, and the deepest contact, block by block.

    deepest: (distance, (shape0, shape1), cell), or None without a contact of a finite distance.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        shape_count = self._shape_count = len(names.row)
        self._contact_table = np.zeros(shape_count**2 if shape_count**2 <= MAX_TABLE_SIZE else 0, np.int64)
        self._touching_table = self._contact_table.copy()
        self._added: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._added_rows = 0
        self._held: list[ContactBlock] = []
        self._held_rows = 0
        self.contact_pair_cells = self.touching_pair_cells = 0
        self.deepest: tuple[float, tuple[int, int], int] | None = None

    def add(self, block: ContactBlock) -> None:
        """Adds the contacts of a block; consecutive small blocks are counted together, `count_held` counts the last."""
        if self._held and self._held[-1].first_cell + len(self._held[-1].cell_counts) != block.first_cell:
            self.count_held()
        columns = {name: block.columns[name] for name in ("shape0", "shape1", "distance")}
        self._held.append(ContactBlock(block.first_cell, block.cell_counts, columns))
        self._held_rows += block.contact_count + len(block.cell_counts)
        if self._held_rows >= HELD_ROWS:
            self.count_held()

    def count_held(self) -> None:
        """Counts the blocks that were added and not counted yet."""
        blocks, self._held, self._held_rows = self._held, [], 0
        if len(blocks) > 1:
            columns = {name: np.concatenate([b.columns[name] for b in blocks]) for name in blocks[0].columns}
            blocks = [ContactBlock(blocks[0].first_cell, np.concatenate([b.cell_counts for b in blocks]), columns)]
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
        row = int(np.argmin(columns["distance"]))
        if not np.isfinite(columns["distance"][row]):  # of another engine
            row = int(np.argmin(np.nan_to_num(columns["distance"], nan=np.inf, neginf=np.inf)))
        distance = float(columns["distance"][row])
        if np.isfinite(distance) and (self.deepest is None or distance < self.deepest[0]):
            cell = block.first_cell + int(np.searchsorted(np.cumsum(block.cell_counts), row, side="right"))
            self.deepest = distance, (int(columns["shape0"][row]), int(columns["shape1"][row])), cell

    def _keys(self, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        one, other = self._names.pair(shape0, shape1)
        return one.astype(np.int64) * self._shape_count + other

    def _append(self, keys: np.ndarray, contacts: np.ndarray, touching: np.ndarray) -> None:
        """Appends the pairs of a block; sums the appended pairs when they are more than twice the distinct ones."""
        self._added.append((keys, contacts, touching))
        self._added_rows += len(keys)
        if self._added_rows > MAX_TABLE_SIZE + 2 * len(self._added[0][0]):
            self._added = [self._summed()]
            self._added_rows = len(self._added[0][0])

    def _summed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sorted keys of the appended pairs, and the counts of contacts and of touching ones of each."""
        if not self._added:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
        keys, *counts = (np.concatenate(parts) for parts in zip(*self._added, strict=True))
        together, inverse = np.unique(keys, return_inverse=True)
        contacts, touching = (np.bincount(inverse, values, len(together)).astype(np.int64) for values in counts)
        return together, contacts, touching

    def pairs(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Counts of contacts and of touching ones of each pair (shape0, shape1), in descending order of contacts."""
        self.count_held()
        if len(self._contact_table):
            keys = np.flatnonzero(self._contact_table)
            contacts, touching = self._contact_table[keys], self._touching_table[keys]
        else:
            keys, contacts, touching = self._summed()
        order = np.lexsort((keys, -contacts))
        rows = zip(*(values[order].tolist() for values in (keys, contacts, touching)), strict=True)
        return {divmod(key, self._shape_count): (of_contacts, of_touching) for key, of_contacts, of_touching in rows}

    def counts(self, worlds: int, episodes: Episodes | None) -> ContactCounts:
        """The counts of all added blocks. worlds: number of them."""
        pairs, text = self.pairs(), self._names.text
        contacts, touching = (sum(counts[k] for counts in pairs.values()) for k in (0, 1))
        return ContactCounts(
            contacts=contacts,
            touching_contacts=touching,
            near_contacts=contacts - touching,
            contact_pair_count=len(pairs),
            touching_pair_count=sum(of_pair > 0 for _, of_pair in pairs.values()),
            contact_pair_cells=self.contact_pair_cells,
            touching_pair_cells=self.touching_pair_cells,
            deepest=None if self.deepest is None else _deepest(*self.deepest, self._names, worlds, episodes),
            top_pairs=[PairContacts(text[a], text[b], *counts) for (a, b), counts in islice(pairs.items(), TOP_PAIRS)],
        )


def _deepest(
    distance: float, shapes: Sequence[int], cell: int, names: Names, worlds: int, episodes: Episodes | None
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
        return tuple(SweepCounts(*self._swept[name].tolist()) if name in self._counts else None for name in OF_STEPS)

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
                cell = block.first_cell + int(np.searchsorted(np.cumsum(rows.cell_counts), row, side="right"))
                shapes = tuple(int(column[row]) for column in shapes_of(block.groups, name))
                self._deepest[name] = float(depths[row]), shapes, cell

    def counts(self, names: Names, worlds: int, episodes: Episodes | None) -> dict[str, GroupCounts]:
        """The counts of all added blocks. names: of the shapes. worlds: number of them."""
        deepest = {name: _deepest(*row, names, worlds, episodes) for name, row in self._deepest.items()}
        return {name: GroupCounts(rows, cells, deepest.get(name)) for name, (rows, cells) in self._counts.items()}


class ColumnRanges:
    """Least and greatest value of each column, per component of a vector, accumulated block by block."""

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
        """By column name {"least": [...], "most": [...]}, a number per component; empty lists without a contact."""
        return {
            name: {"least": ends[0][0].tolist(), "most": ends[1][0].tolist()} if ends else {"least": [], "most": []}
            for name, ends in self._ends.items()
        }
