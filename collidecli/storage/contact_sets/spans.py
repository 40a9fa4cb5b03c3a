"""Ranges of consecutive cells whose rows fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

BLOCK_ROWS = 262144
"""Rows that are read together."""


def spans(
    starts: Sequence[Callable[[slice], np.ndarray]], max_rows: int, first: int, last: int
) -> Iterator[tuple[int, int]]:
    """(first, last) of consecutive ranges of cells with at most `max_rows` rows, or of one cell
    with more.

    starts: each returns the first rows of cells in one table; the rows of all tables count.
    """
    window = max(1, max_rows)
    while first < last:
        cells = slice(first, min(last, first + window) + 1)
        cell_starts = [start(cells) for start in starts]
        rows = sum(start - start[0] for start in cell_starts)
        following = first + max(1, int(np.searchsorted(rows, max_rows, side="right")) - 1)
        yield first, following
        first = following
