"""The order of contacts by depth, in which every verb and Python name the deepest one."""

from __future__ import annotations

import numpy as np


def deepest_order(distance: np.ndarray, cell: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """int64[n]: rows by distance; equal ones by cell, that is by frame and then world, and those of
    one cell by pair.

    distance: float[n] [m], the least is the deepest. cell: int64[n]. pair: int64[n], shape0 *
    number of shapes + shape1, of the first shapes of their names.
    """
    return np.lexsort((pair, cell, distance))
