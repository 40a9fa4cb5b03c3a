"""Touches: the contacts of one pair of shapes in one cell, which are contiguous in canonical order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.contacts import ContactBlock


@dataclass(frozen=True)
class Touches:
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

    def __len__(self) -> int:
        return len(self.start)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """float64[m, ...]: the mean of a column over each touch. Mean vectors are not normalized."""
        if not len(self):
            return np.zeros((0, *values.shape[1:]))
        sums = np.add.reduceat(values.astype(np.float64), self.start)
        return sums / self.contact_count.reshape(-1, *(1,) * (values.ndim - 1))


def touches_of(block: ContactBlock) -> Touches:
    """The touches of a block with the columns shape0, shape1 and distance."""
    shape0, shape1, distance = (block.columns[name] for name in ("shape0", "shape1", "distance"))
    begins = np.ones(len(shape0), bool)
    if len(shape0):
        begins[1:] = (shape0[1:] != shape0[:-1]) | (shape1[1:] != shape1[:-1])
        cell_end = np.cumsum(block.cell_counts)
        begins[cell_end[cell_end < len(shape0)]] = True
    start = np.flatnonzero(begins)
    cell = np.repeat(block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts)[start]
    least = np.minimum.reduceat(distance, start) if len(start) else distance[:0]
    return Touches(start, np.diff(start, append=len(shape0)), cell, shape0[start], shape1[start], least)
