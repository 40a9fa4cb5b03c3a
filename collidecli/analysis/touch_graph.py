"""The graph of touching paths, with an edge for each two paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np

from collidecli.scene.distinct_values import distinct


@dataclass(frozen=True)
class Rows:
    """Arrays of one length: a subclass has them as its fields. DTYPES: of those that are not
    int64."""

    DTYPES: ClassVar[Mapping[str, type]] = {}

    @classmethod
    def none(cls) -> Self:
        return cls(*(np.zeros(0, cls.DTYPES.get(column.name, np.int64)) for column in fields(cls)))

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, rows: np.ndarray | slice) -> Self:
        """Some rows. rows: bool[n], numbers of rows or a slice."""
        return type(self)(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def chained(cls, *parts: Self) -> Self:
        """The rows of all parts, one part after the other."""
        return cls(
            *(
                np.concatenate([getattr(part, column.name) for part in parts])
                for column in fields(cls)
            )
        )


@dataclass(frozen=True)
class Edges(Rows):
    """Edges of the graph, arrays of one length.

    pair: int64, smaller * number of items + larger. intervals, touching (frames), contacts: int64,
    counts. seconds: float64, of all intervals [s]. distance: float32, the least [m]. worlds: int64,
    number of worlds. unknown: int64, intervals whose begin or end is not recorded.
    """

    DTYPES: ClassVar = {"seconds": np.float64, "distance": np.float32}

    pair: np.ndarray
    intervals: np.ndarray
    touching: np.ndarray
    contacts: np.ndarray
    seconds: np.ndarray
    distance: np.ndarray
    worlds: np.ndarray
    unknown: np.ndarray


class TouchGraph:
    """Sums of intervals by pair of items, independent of the division of the intervals into
    batches.

    count: number of items, see `PairKeys`.
    """

    def __init__(self, count: int) -> None:
        self._count = max(1, count)
        self._sums = Edges.none()
        self._met = np.zeros(0, np.int64)

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
        """Adds intervals, in the order of `IntervalTracker`. items: the smaller first. All arrays
        have one length."""
        if not len(world):
            return
        count = self._count
        pair = items[0] * count + items[1]
        self._grow(distinct(pair))
        sums = self._sums
        row = np.searchsorted(sums.pair, pair)
        for name, values in (("touching", touching), ("contacts", contacts), ("unknown", unknown)):
            np.add.at(getattr(sums, name), row, values)
        np.add.at(sums.intervals, row, 1)
        # Added one by one in the order of the intervals: partial sums of floats would depend on the
        # batches.
        np.add.at(sums.seconds, row, seconds)
        np.minimum.at(sums.distance, row, distance)
        met = distinct(np.concatenate([self._met, world * count**2 + pair]))
        new = met[np.isin(met, self._met, assume_unique=True, invert=True)]
        np.add.at(sums.worlds, np.searchsorted(sums.pair, new % count**2), 1)
        self._met = met

    @property
    def pairs_and_worlds(self) -> int:
        """Number of touching pairs, each counted once in every world."""
        return len(self._met)

    def _grow(self, pairs: np.ndarray) -> None:
        together = distinct(np.concatenate([self._sums.pair, pairs]))
        if len(together) == len(self._sums):
            return
        old = np.searchsorted(together, self._sums.pair)
        columns = []
        for column in fields(Edges):
            values = getattr(self._sums, column.name)
            grown = np.full(len(together), np.inf if column.name == "distance" else 0, values.dtype)
            grown[old] = values
            columns.append(grown)
        self._sums = Edges(together, *columns[1:])

    def edges(self) -> Edges:
        """The edges by descending duration, then by descending number of intervals, then by
        pair."""
        sums = self._sums
        return sums.take(np.lexsort((sums.pair, -sums.intervals, -sums.seconds)))

    def ends(self, edges: Edges) -> list[tuple[int, int]]:
        """The items of each edge."""
        return [divmod(pair, self._count) for pair in edges.pair.tolist()]
