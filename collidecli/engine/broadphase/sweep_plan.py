"""Parameters of sweep and prune for a scene: axis, grid of columns, shapes that are not swept.

They are chosen from a sample of the recorded motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.broadphase.pair_groups import PairGroups, upload_groups
from collidecli.engine.device_model import DeviceModel
from collidecli.scene.allowed_pairs import are_allowed
from collidecli.scene.shape_types import ShapeType

COLUMN_WIDTH = 2.0
"""Width of a column in extents of a large shape (90th percentile)."""
MAX_COLUMNS_PER_SHAPE = 8.0
"""A shape longer than this many columns is not swept; its pairs with all others are listed."""
MIN_SHAPES_PER_COLUMN = 8.0
"""Least mean number of shapes per column: with fewer, duplicates at the borders cost more than
columns save."""


@wp.struct
class Columns:
    """axis: sweep axis; u, v: the two others. origin, per_metre, count: grid of columns along u and
    v.

    offset: per world, offset of its grid along u and v from that of the first world of its template
    [m]. swept: per row, 0 for planes and shapes too large for columns.
    """

    axis: int
    u: int
    v: int
    origin: wp.vec2f
    per_metre: wp.vec2f
    count: wp.vec2i
    offset: wp.array[wp.vec2f]
    swept: wp.array[wp.uint8]


@dataclass(frozen=True)
class SweepPlan:
    """Columns, and the listed pairs with a shape that is not swept."""

    columns: Columns
    listed: PairGroups
    listed_per_block: int

    @property
    def column_count(self) -> int:
        count = self.columns.count
        return count[0] * count[1]  # pyright: ignore[reportIndexIssue]


def plan_sweep(
    device_model: DeviceModel,
    row_lower: np.ndarray,
    row_upper: np.ndarray,
    world_offset: np.ndarray,
    template_pairs: list[np.ndarray] | None,
) -> SweepPlan:
    """Parameters of the sweep for a model.

    Args:
        row_lower, row_upper: float64[samples, S, 3], inflated bounds of each row in sample frames
            [m].
        world_offset: float64[W, 3], offset of each world from the first world of its template [m].
        template_pairs: allowed pairs of each template where they are enumerated, else None.
    """
    model = device_model.model
    shapes = model.shapes
    finite = shapes.type != ShapeType.PLANE
    swept = finite.copy()
    axis = 0
    u = 1
    v = 2
    origin = np.zeros(2)
    per_metre = np.zeros(2)
    count = np.ones(2, np.int32)
    if finite.any():
        lower = row_lower[:, finite]
        upper = row_upper[:, finite]
        center = 0.5 * (lower + upper)
        extent = upper - lower
        low = np.quantile(center, 0.01, axis=(0, 1))
        high = np.quantile(center, 0.99, axis=(0, 1))
        axis, u, v = (int(a) for a in np.argsort(-(high - low), kind="stable"))
        width = COLUMN_WIDTH * np.quantile(extent[..., [u, v]], 0.9, axis=(0, 1))
        span = (high - low)[[u, v]]
        count = np.maximum(1, np.floor(span / np.maximum(width, 1e-30))).astype(np.int64)
        max_count = max(
            1.0, max(len(p) for p in device_model.template_rows) / MIN_SHAPES_PER_COLUMN
        )
        if count.prod() > max_count:
            count = np.maximum(1, np.floor(count * np.sqrt(max_count / count.prod()))).astype(
                np.int64
            )
        origin = low[[u, v]]
        per_metre = np.where(count > 1, count / np.maximum(span, 1e-30), 0.0)
        if count.prod() > 1:
            columns_long = (extent[..., [u, v]] * per_metre).max(axis=(0, 2))
            swept[np.flatnonzero(finite)[columns_long > MAX_COLUMNS_PER_SHAPE]] = False
    columns = Columns()
    columns.axis = axis
    columns.u = u
    columns.v = v
    columns.origin, columns.per_metre = wp.vec2f(*origin), wp.vec2f(*per_metre)
    columns.count = wp.vec2i(*(int(c) for c in count))
    device = device_model.device
    columns.offset = wp.array(
        world_offset[:, [u, v]].astype(np.float32), dtype=wp.vec2f, device=device
    )
    columns.swept = wp.array(swept.astype(np.uint8), dtype=wp.uint8, device=device)
    listed = _unswept_pairs(device_model, swept, template_pairs)
    return SweepPlan(columns, *upload_groups(device_model, listed))


def _unswept_pairs(
    device_model: DeviceModel, swept: np.ndarray, template_pairs: list[np.ndarray] | None
) -> list[np.ndarray]:
    """Allowed pairs of each template in which at least one shape is not swept."""
    lists = []
    for template, rows in enumerate(device_model.template_rows):
        others = rows[~swept[rows]]
        if template_pairs is not None:
            pairs = template_pairs[template]
            lists.append(pairs[~(swept[pairs[:, 0]] & swept[pairs[:, 1]])])
            continue
        first = np.repeat(others, len(rows))
        second = np.tile(rows, len(others))
        keep = (first < second) | ((first > second) & swept[second])
        pairs = np.sort(np.stack([first[keep], second[keep]], axis=1), axis=1)
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        lists.append(pairs[are_allowed(device_model.model, pairs)])
    return lists
