"""Which pairs of shapes the filters leave, as rows of the model."""

from __future__ import annotations

import numpy as np

from collidecli.scene.model import Model

BLOCK_ROWS = 256
"""Rows of the pair table worked out at a time: 5000 shapes then need a few megabytes besides the answer."""


def allowed_pairs(model: Model, template: int) -> np.ndarray:
    """int32[K, 2]: the pairs of shapes that may touch in a world of `template`, rows of the model.

    First < second, lexically sorted. Template -1 gives the pairs of global shapes.
    """
    pair_filter = model.pair_filter
    rows = model.template_shapes(template)
    shape_class = pair_filter.shape_class[rows]
    excluded = _local_pairs(pair_filter.excluded, rows)
    forced = _local_pairs(pair_filter.forced, rows)
    blocks = [np.zeros((0, 2), np.int32)]
    for start in range(0, len(rows), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(rows))
        # Row i of the block meets only shapes after it, so columns begin at the block's first row.
        may = pair_filter.class_table[shape_class[start:stop, None], shape_class[start:]]
        may &= np.arange(start, stop)[:, None] < np.arange(start, len(rows))
        for pairs, value in ((excluded, False), (forced, True)):
            low, high = np.searchsorted(pairs[:, 0], (start, stop))
            may[pairs[low:high, 0] - start, pairs[low:high, 1] - start] = value
        first, second = np.nonzero(may)
        blocks.append(np.stack([rows[first + start], rows[second + start]], axis=1))
    return np.concatenate(blocks)


def _local_pairs(pairs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The pairs whose shapes are both among the ascending `rows`, as places in `rows`."""
    if not len(pairs) or not len(rows):
        return np.zeros((0, 2), np.int64)
    place = np.searchsorted(rows, pairs)
    held = (rows[np.minimum(place, len(rows) - 1)] == pairs).all(axis=1)
    return place[held]
