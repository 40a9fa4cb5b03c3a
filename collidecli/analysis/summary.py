"""Touches, sums and totals of contacts by frame, pair of shapes and depth, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis.deepest import deepest_order
from collidecli.analysis.touch_graph import Rows
from collidecli.analysis.touch_intervals import Names
from collidecli.scene.contact_blocks import ContactBlock, pair_begins

TOUCH_COLUMNS = ("shape0", "shape1", "distance")
"""Columns of contacts that `touches_of` and the penetrations of an audit follow from."""


@dataclass(frozen=True)
class Touches(Rows):
    """A row for each touching pair of each cell of a block, in the order of the contacts.

    start: int64[m], first contact in the block. contact_count: int64[m]. cell: int64[m], counted
    over the file. shape0, shape1: int32[m]. distance: float32[m], the least distance [m].
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
        """float64[m, ...]: the mean of a column over each touch. Mean vectors are not
        normalized."""
        if not len(self):
            return np.zeros((0, *values.shape[1:]))
        sums = np.add.reduceat(values.astype(np.float64), self.start)
        return sums / self.contact_count.reshape(-1, *(1,) * (values.ndim - 1))


def touches_of(block: ContactBlock) -> Touches:
    """The touches of a block with the columns shape0, shape1 and distance."""
    shape0, shape1, distance = (block.columns[name] for name in TOUCH_COLUMNS)
    start = np.flatnonzero(pair_begins(block))
    cell = np.repeat(block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts)[start]
    least = np.minimum.reduceat(distance, start) if len(start) else distance[:0]
    return Touches(
        start, np.diff(start, append=len(shape0)), cell, shape0[start], shape1[start], least
    )


LEAST_DECADE = -9
MOST_DECADE = 2
"""The histogram resolves depths from 1 nm to 100 m [powers of ten, m]."""
BINS_PER_DECADE = 5


class FrameSums:
    """Per frame, over its worlds: contacts, penetrating contacts, and the least distance.

    contacts, penetrating: int64[frames]. least: float64[frames] [m], inf for a frame without
    contacts.
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
        self.penetrating[span] += np.bincount(
            frame[filled] - first, below, span.stop - first
        ).astype(np.int64)
        np.minimum.at(self.least, frame[filled], np.minimum.reduceat(distance, start))


class DepthHistogram:
    """Histogram of penetrating contacts by depth: int64 counts of bins of equal width on a
    logarithmic scale.

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
    """A row for each pair of shapes with contacts, in ascending order of its key, shape0 * shapes +
    shape1.

    contacts, touches: int64[n], numbers of contacts and cells. first, last: int64[n], cells. least:
    float64[n], the least distance [m]. at: int64[n], the first cell with it.
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

    def deepest_order(self) -> np.ndarray:
        """int64[n]: the rows, the deepest pair first."""
        return deepest_order(self.least, self.at, self.key)

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
    """Contacts and least distance of some pairs over time. key: int64[n], ascending. bin_of:
    int64[frames].

    contacts: int64[n, bins]. least: float64[n, bins] [m], inf for a pair without contacts.
    """

    def __init__(self, key: np.ndarray, bin_of: np.ndarray, worlds: int, shape_count: int) -> None:
        self._key = key
        self._bin_of = bin_of
        self._worlds = worlds
        self._shape_count = shape_count
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

    @property
    def depths(self) -> np.ndarray:
        """float64[n, bins]: the depth of each pair [m], 0 for one within its gap or of unknown
        distance, -1 for one without contacts."""
        return np.where(self.contacts > 0, np.maximum(0.0, -self.least), -1.0)


class TimeBins:
    """At most `most` bins of frames, of equal length except the last.

    of: int64[frames], the bin of each. start, lengths: int64[bins] [frames].
    """

    def __init__(self, frames: int, most: int) -> None:
        self.of = np.arange(frames) // max(1, -(-frames // most))
        self.start = np.flatnonzero(np.diff(self.of, prepend=-1))
        self.lengths = np.diff(self.start, append=frames)

    def axis(self, time: np.ndarray, number: np.ndarray | None = None) -> dict[str, Any]:
        """Frames per bin, and number and time of the first frame of each. time, number: of all
        frames."""
        frame = self.start if number is None else number[self.start]
        per_bin = int(self.lengths[0]) if len(self.lengths) else 1
        return {
            "frames_per_bin": per_bin,
            "frame": frame.tolist(),
            "time": time[self.start].tolist(),
        }

    def means(self, values: np.ndarray) -> list[float]:
        """The mean of the values of the frames of each bin."""
        return (np.add.reduceat(values, self.start) / self.lengths).tolist()

    def greatest(self, values: np.ndarray) -> list[Any]:
        """The greatest value of the frames of each bin."""
        return np.maximum.reduceat(values, self.start).tolist()
