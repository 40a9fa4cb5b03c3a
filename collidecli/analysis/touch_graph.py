"""The graph of touching paths: an edge for each two paths, with durations, over all worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True)
class Edges:
    """Edges of the graph, arrays of one length.

    pair: int64, smaller * number of names + larger. intervals, touching (frames), contacts: int64, counts.
    seconds: float64, of all intervals [s]. distance: float32, the least [m].
    worlds: int64, number of worlds. unknown: int64, intervals whose begin or end is not recorded.
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
    """Sums of intervals by pair of names, independent of the division of the intervals into batches.

    Items of one name are one node; so items of equal paths in different templates are not distinguished.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """paths: of the items, as in `PairKeys`."""
        rows = {path: row for row, path in enumerate(dict.fromkeys(paths))}
        self.names = list(rows)
        self._name = np.array([rows[path] for path in paths], np.int64)
        whole = np.zeros(0, np.int64)
        self._sums = Edges(whole, whole, whole, whole, whole.astype(float), whole.astype(np.float32), whole, whole)
        self._met = whole

    def add(
        self,
        world: np.ndarray,
        items: tuple[np.ndarray, np.ndarray],
        touching: np.ndarray,
        contacts: np.ndarray,
        seconds: np.ndarray,
        distance: np.ndarray,
        unknown: np.ndarray,
    ) -> None:
        """Adds intervals, in the order of `IntervalTracker`. items: rows of paths. All arrays have one length."""
        if not len(world):
            return
        count = max(1, len(self.names))
        one, other = self._name[items[0]], self._name[items[1]]
        pair = np.minimum(one, other) * count + np.maximum(one, other)
        self._grow(np.unique(pair))
        sums = self._sums
        row = np.searchsorted(sums.pair, pair)
        for name, values in (("touching", touching), ("contacts", contacts), ("unknown", unknown)):
            np.add.at(getattr(sums, name), row, values)
        np.add.at(sums.intervals, row, 1)
        # Added one by one in the order of the intervals: partial sums of floats would depend on the batches.
        np.add.at(sums.seconds, row, seconds)
        np.minimum.at(sums.distance, row, distance)
        met = np.union1d(self._met, world * count**2 + pair)
        new = met[np.isin(met, self._met, assume_unique=True, invert=True)]
        np.add.at(sums.worlds, np.searchsorted(sums.pair, new % count**2), 1)
        self._met = met

    @property
    def pairs_and_worlds(self) -> int:
        """Number of touching pairs, each counted once in every world."""
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
        """The edges by descending duration, then by descending number of intervals, then by pair."""
        sums = self._sums
        return sums.take(np.lexsort((sums.pair, -sums.intervals, -sums.seconds)))

    def ends(self, edges: Edges) -> list[tuple[int, int]]:
        """Rows of `names` of each edge."""
        count = max(1, len(self.names))
        return [divmod(pair, count) for pair in edges.pair.tolist()]
