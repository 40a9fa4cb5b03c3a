"""Who touched whom, and how long: an edge for each two paths, over all worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class Edges:
    """Arrays of one length, a row for each two things that touch.

    pair: int64, smaller * number of names + larger. intervals, touching (frames), contacts: int64.
    seconds: float64, of all intervals [s]. distance: float32, the least [m].
    worlds: int64, in how many. unknown: int64, intervals whose begin or end is not recorded.
    """

    pair: np.ndarray
    intervals: np.ndarray
    touching: np.ndarray
    contacts: np.ndarray
    seconds: np.ndarray
    distance: np.ndarray
    worlds: np.ndarray
    unknown: np.ndarray

    def __len__(self) -> int:
        return len(self.pair)

    def take(self, rows: np.ndarray) -> Edges:
        return Edges(*(getattr(self, one.name)[rows] for one in fields(self)))


class TouchGraph:
    """Sums of intervals by pair of names; the sums do not depend on how the intervals are parted into batches.

    Things of one name are one node, so that templates with a part of the same path are not told apart.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """paths: of the things, as in `PairKeys`."""
        rows = {path: row for row, path in enumerate(dict.fromkeys(paths))}
        self.names = list(rows)
        self._name = np.array([rows[path] for path in paths], np.int64)
        whole = np.zeros(0, np.int64)
        self._sums = Edges(whole, whole, whole, whole, whole.astype(float), whole.astype(np.float32), whole, whole)
        self._met = whole

    def add(
        self,
        world: np.ndarray,
        things: tuple[np.ndarray, np.ndarray],
        touching: np.ndarray,
        contacts: np.ndarray,
        seconds: np.ndarray,
        distance: np.ndarray,
        unknown: np.ndarray,
    ) -> None:
        """Intervals, in the order of `IntervalTracker`. world, things (rows of paths), ...: arrays of one length."""
        if not len(world):
            return
        count = max(1, len(self.names))
        one, other = self._name[things[0]], self._name[things[1]]
        pair = np.minimum(one, other) * count + np.maximum(one, other)
        self._grow(np.unique(pair))
        sums = self._sums
        row = np.searchsorted(sums.pair, pair)
        for name, values in (("touching", touching), ("contacts", contacts), ("unknown", unknown)):
            np.add.at(getattr(sums, name), row, values)
        np.add.at(sums.intervals, row, 1)
        # One by one, in the order of the intervals: a sum of floats by batches would depend on the batches.
        np.add.at(sums.seconds, row, seconds)
        np.minimum.at(sums.distance, row, distance)
        met = np.union1d(self._met, world * count**2 + pair)
        new = met[np.isin(met, self._met, assume_unique=True, invert=True)]
        np.add.at(sums.worlds, np.searchsorted(sums.pair, new % count**2), 1)
        self._met = met

    @property
    def pairs_and_worlds(self) -> int:
        """How many pairs touched, each counted once in every world."""
        return len(self._met)

    def _grow(self, pairs: np.ndarray) -> None:
        together = np.union1d(self._sums.pair, pairs)
        if len(together) == len(self._sums):
            return
        old = np.searchsorted(together, self._sums.pair)
        columns = []
        for one in fields(Edges):
            values = getattr(self._sums, one.name)
            grown = np.full(len(together), np.inf if one.name == "distance" else 0, values.dtype)
            grown[old] = values
            columns.append(grown)
        self._sums = Edges(together, *columns[1:])

    def edges(self) -> Edges:
        """Those that touched longest first; of equal ones those with more intervals, then by pair."""
        sums = self._sums
        return sums.take(np.lexsort((sums.pair, -sums.intervals, -sums.seconds)))

    def ends(self, edges: Edges) -> list[tuple[int, int]]:
        """Rows of `names` of each edge."""
        count = max(1, len(self.names))
        return [divmod(pair, count) for pair in edges.pair.tolist()]
