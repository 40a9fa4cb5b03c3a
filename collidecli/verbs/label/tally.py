"""Sums over the labels that are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from collidecli.verbs.label.contact_labels import ContactLabels

if TYPE_CHECKING:
    from collidecli.verbs.label.contact_labels import LabelBlock


class LabelTally:
    """Sums over the blocks that are written: labels, and of each pair the cells, the least distance
    and the slip."""

    def __init__(self, labels: ContactLabels) -> None:
        self.labels = labels
        shape = labels.shape[2:]
        self.cells, self.slipping = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.distance, self.slip = np.full(shape, np.inf, np.float32), np.zeros(shape)

    def blocks(self) -> Iterator[LabelBlock]:
        """The blocks of the labels, each counted once it is taken."""
        for block in self.labels.blocks():
            self.cells += block.touch.sum(axis=(0, 1))
            least = np.where(block.touch, block.distance, np.inf).min(axis=(0, 1), initial=np.inf)
            self.distance = np.minimum(self.distance, least.astype(np.float32))
            if block.slip is not None:
                known = ~np.isnan(block.slip)
                self.slipping += known.sum(axis=(0, 1))
                self.slip += np.where(known, block.slip, 0.0).sum(axis=(0, 1), dtype=np.float64)
            yield block
