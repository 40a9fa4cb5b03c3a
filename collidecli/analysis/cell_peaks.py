"""Peaks of a count of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Peak:
    """The greatest count and the first frame, and world, that has it. frame: -1 without a frame;
    world: -1 for the sum over all worlds."""

    count: int
    frame: int
    world: int = -1


class CellPeaks:
    """Greatest count of a cell for each world, and greatest sum over the worlds of one frame.

    The cells are added in order: the worlds of a frame, then the next frame. A block may end within
    a frame. The memory grows with the number of worlds alone.
    """

    def __init__(self, world_count: int) -> None:
        self.counts = np.zeros(world_count, np.int64)
        self.frames = np.full(world_count, -1, np.int64)
        self._last = Peak(0, -1)
        self._most = Peak(0, -1)

    def add(self, first_cell: int, counts: np.ndarray) -> None:
        """Adds the counts of consecutive cells. counts: int64[cells]."""
        if not len(counts):
            return
        worlds = len(self.counts)
        first_frame, skipped = divmod(first_cell, worlds)
        frames = -(-(skipped + len(counts)) // worlds)
        table = np.full(frames * worlds, -1, np.int64)
        table[skipped : skipped + len(counts)] = counts
        table = table.reshape(frames, worlds)
        rows = np.argmax(table, axis=0)
        most = table[rows, np.arange(worlds)]
        first = (self.frames < 0) & (most >= 0)
        greater = first | (most > self.counts)
        self.frames[greater] = first_frame + rows[greater]
        self.counts[greater] = most[greater]
        self._add_sums(first_frame, np.maximum(table, 0).sum(axis=1))

    def _add_sums(self, first_frame: int, sums: np.ndarray) -> None:
        if self._last.frame == first_frame:
            sums[0] += self._last.count
        row = int(np.argmax(sums))
        if self._most.frame < 0 or sums[row] > self._most.count:
            self._most = Peak(int(sums[row]), first_frame + row)
        self._last = Peak(int(sums[-1]), first_frame + len(sums) - 1)

    @property
    def of_a_world(self) -> Peak:
        """The greatest count of a cell; the first world that has it."""
        world = int(np.argmax(self.counts)) if len(self.counts) else -1
        if world < 0:
            return Peak(0, -1)
        return Peak(int(self.counts[world]), int(self.frames[world]), world)

    @property
    def of_all_worlds(self) -> Peak:
        """The greatest sum over the worlds of one frame."""
        return self._most
