"""Depths of penetrating pairs over the cells of a motion: of each pair, and the deepest of each
cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collidecli.analysis.deepest import deepest_order
from collidecli.analysis.touch_graph import Rows
from collidecli.analysis.touch_intervals import touches
from collidecli.analysis.touching_rows import UNKNOWN_DISTANCE

NONE = -1
UNKNOWN_DEPTH = np.float32(np.inf)
"""Depth of a pair of a set of touches: above every limit."""


@dataclass(frozen=True)
class PairDepths(Rows):
    """Penetrating pairs, ordered by key; arrays of one length.

    key: int64, of the pair. depth: float32, the greatest [m]. cell: int64, the first with it.
    cells: int64, number with penetration. over: int64, number with a depth above the pair's limit.
    start: float32, greatest depth in a first frame [m], 0 without.
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
        """One row for each number in `of`, int64[n], in ascending order; its key is that of its
        deepest row."""
        if not len(self):
            return self
        order = deepest_order(-self.depth, self.cell, self.key)
        order = order[np.argsort(of[order], kind="stable")]
        both = self.take(order)
        of = of[order]
        start = np.flatnonzero(np.concatenate([[True], of[1:] > of[:-1]]))
        return PairDepths(
            both.key[start],
            both.depth[start],
            both.cell[start],
            np.add.reduceat(both.cells, start),
            np.add.reduceat(both.over, start),
            np.maximum.reduceat(both.start, start),
        )


class MotionDepths:
    """Depths of the cells of a motion, collected block by block.

    Args:
        is_start: bool[cells], first frames of worlds or demonstrations.
    Attributes:
        pairs: of all cells so far. depth: float32[cells], the greatest [m], 0 without penetration.
        deepest:
        int64[cells], the key of its pair, NONE without. by_class: greatest depth float32[cells] of
            each class of pairs
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
        self,
        key: np.ndarray,
        cell: np.ndarray,
        depth: np.ndarray,
        limit: np.ndarray,
        classes: dict[str, np.ndarray],
        name: np.ndarray,
    ) -> None:
        """Adds the depths of `depths_of`. limit: float[n] of each row's pair [m], infinite for
        none. classes: bool[n], the rows of each class. name: int64[n], the pair of names of each.
        """
        over = depth > limit.astype(np.float32)
        ones = np.ones(len(key), np.int64)
        start = np.where(self._is_start[cell], depth, np.float32(0.0))
        self.pairs = self.pairs.joined(
            PairDepths(key, depth, cell, ones, over.astype(np.int64), start)
        )
        np.maximum.at(self.depth, cell, depth)
        # of one cell the first row of the order is written last
        order = deepest_order(-depth, cell, name)[::-1]
        ordered = order[depth[order] == self.depth[cell[order]]]
        self.deepest[cell[ordered]] = key[ordered]
        self.usable[cell[over]] = False
        for class_name, rows in classes.items():
            of_class = self.by_class.setdefault(class_name, np.zeros_like(self.depth))
            np.maximum.at(of_class, cell[rows], depth[rows])


def depths_of(
    key: np.ndarray, cell: np.ndarray, distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Key, cell and depth [m] of each penetrating pair in each cell, from the contacts of cells in
    order.

    key, cell: int64[n]. distance: float32[n] [m], negative is penetration. The pairs of a set of
    touches have a depth of UNKNOWN_DEPTH.
    """
    distance = np.where(distance == UNKNOWN_DISTANCE, -UNKNOWN_DEPTH, distance)
    inside = np.flatnonzero(distance < 0.0)
    rows = touches(key[inside], cell[inside], distance[inside])
    return rows.key, rows.first, -rows.distance


def leading_run(bad: np.ndarray) -> np.ndarray:
    """int64[n]: number of leading True in each row of bool[n, m]."""
    return (
        np.where(bad.all(axis=1), bad.shape[1], np.argmin(bad, axis=1))
        if bad.shape[1]
        else np.zeros(len(bad), int)
    )
