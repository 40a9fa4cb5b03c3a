"""Sums over the labels that are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.summary import TimeBins
from collidecli.numerics.products import norm
from collidecli.results.result import Progress
from collidecli.verbs.label.contact_labels import ContactLabels

if TYPE_CHECKING:
    from collidecli.verbs.label.contact_labels import LabelBlock

MAX_BINS = 160


class LabelTally:
    """Sums over the blocks that are written: labels, and of each pair the cells, the least
    distance, the slip and the greatest nominal force.

    bins: of the frames. distance: float32[S, P] [m], infinite where no label has a known distance.
    force: float64[S, P] [N], NaN where none is known.
    """

    def __init__(self, labels: ContactLabels, progress: Progress = None) -> None:
        self.labels = labels
        self.bins = TimeBins(len(labels.frames), MAX_BINS)
        self._bin_ends = set((self.bins.start + self.bins.lengths).tolist())
        self._progress = progress
        shape = labels.shape[2:]
        self.cells = np.zeros(shape, np.int64)
        self.slipping = np.zeros(shape, np.int64)
        self.distance = np.full(shape, np.inf, np.float32)
        self.slip = np.zeros(shape)
        self.force = np.full(shape, np.nan)
        self._binned: list[tuple[np.ndarray, np.ndarray]] = []

    def blocks(self) -> Iterator[LabelBlock]:
        """The blocks of the labels, each counted once it is taken."""
        of_bin = np.zeros_like(self.cells)
        frame = 0
        for block in self.labels.blocks(self._progress):
            bins = self.bins.of[block.first : block.first + len(block.touch)]
            for touch in np.split(block.touch, np.flatnonzero(np.diff(bins)) + 1):
                frame += len(touch)
                of_bin += touch.sum(axis=(0, 1))
                if frame in self._bin_ends:
                    self._add_bin(of_bin)
                    of_bin = np.zeros_like(self.cells)
            is_known = block.touch & ~np.isnan(block.distance)
            least = np.where(is_known, block.distance, np.inf).min(axis=(0, 1), initial=np.inf)
            self.distance = np.minimum(self.distance, least.astype(np.float32))
            if block.slip is not None:
                known = ~np.isnan(block.slip)
                self.slipping += known.sum(axis=(0, 1))
                self.slip += np.where(known, block.slip, 0.0).sum(axis=(0, 1), dtype=np.float64)
            if block.nominal_force is not None:
                size = norm(block.nominal_force.reshape(-1, 3).astype(np.float64))
                size = size.reshape(-1, *self.force.shape)
                self.force = np.fmax(self.force, np.fmax.reduce(size, axis=0, initial=np.nan))
            yield block

    def _add_bin(self, cells: np.ndarray) -> None:
        """Counts the labels of the frames of the next bin."""
        self.cells += cells
        pairs = np.flatnonzero(cells)
        self._binned.append((pairs, cells.ravel()[pairs]))

    def labelled(self, sensor: int, partner: int) -> np.ndarray:
        """int64[bins]: labels of a pair in the frames of each bin."""
        pair = sensor * self.cells.shape[1] + partner
        return np.array([cells[pairs == pair].sum() for pairs, cells in self._binned], np.int64)
