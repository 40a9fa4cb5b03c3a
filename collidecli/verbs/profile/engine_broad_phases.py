"""Pairs that the broad phases of other engines keep, counted in float64 by their rules.

They keep more pairs, or others, than the broad phase of this engine, which compares balls and
half-spaces besides boxes. The sources are newton 1.8.0 (sim/collide.py), mujoco_warp 4.0.0
(collision_driver.py, with its default filter of planes, spheres and oriented boxes) and Genesis
(broadphase over boxes of rotated boxes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.buffer_counts import NEWTON_PAIRS, OTHER_PAIRS
from collidecli.analysis.cell_peaks import CellPeaks
from collidecli.analysis.cell_poses import shape_poses
from collidecli.engine.cells import PoseBatch
from collidecli.numerics.poses import moved_points, rotated
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import ball_radius, half_extents, support_heights

MOST_PAIRS = 16_000_000
"""Of a template: their numbers are in a table of at most 128 MB."""
MOST_TESTS = 1 << 21
"""Pairs that are tested together."""
MOST_RULES = 1 << 17
"""Pairs with overlapping boxes to which the rules of the engines are applied together."""
ROUNDING = 1e-12
"""Of positions and radii, by which a box around a bounding sphere is larger than it."""


Boxes = tuple[np.ndarray, np.ndarray]
"""Lows and highs of boxes, float64[C, S, 3] each [m]."""


@dataclass(frozen=True)
class Placed:
    """The shapes of a template in C cells. rows: int64[S], of the shapes. pose: float64[C, S, 7],
    in the world. axes: float64[C, S, 3, 3], the frame's axes in the world as rows. low, high:
    float64[C, S, 3], the tight box with the margin and the gap of the shape [m]; of a heightfield
    from its lowest height, as Newton has it.
    """

    rows: np.ndarray
    pose: np.ndarray
    axes: np.ndarray
    low: np.ndarray
    high: np.ndarray


class EngineBroadPhases:
    """Peaks of the pairs that each of OTHER_PAIRS keeps.

    Filters of pairs are those of the model. Of a plane, boxes end at its surface where it is
    aligned with an axis of the world; a tilted one is infinite. left_out: why nothing is counted;
    "" where it is.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        shapes = model.shapes
        templates = range(int(model.world_template.max(initial=-1)) + 1)
        widths = [len(model.template_shapes(template)) for template in templates]
        self.left_out = ""
        self.peaks = {name: CellPeaks(model.world_count) for name in OTHER_PAIRS}
        if max(widths, default=0) ** 2 > 2 * MOST_PAIRS:
            self.left_out = f"a world has over {MOST_PAIRS} pairs of shapes"
            return
        self._rows = [model.template_shapes(template).astype(np.int64) for template in templates]
        self._pairs = [
            np.searchsorted(self._rows[template], allowed_pairs(model, template))
            for template in templates
        ]
        self._number = [
            _numbers(pairs, len(rows)) for pairs, rows in zip(self._pairs, self._rows, strict=True)
        ]
        self._half = half_extents(shapes.type, shapes.size)
        self._radius = ball_radius(shapes.type, shapes.size, self._half)
        self._apart = shapes.margin + shapes.gap
        self._is_plane = shapes.type == ShapeType.PLANE
        self._size = np.array(shapes.size, np.float64)
        self._middle = np.zeros((len(shapes), 3))
        for row in np.flatnonzero(shapes.heightfield >= 0).tolist():
            heights = model.heightfields[shapes.heightfield[row]].heights
            self._size[row, 2] = 0.5 * (heights.max() - heights.min())
            self._middle[row, 2] = 0.5 * (heights.max() + heights.min())

    def add(
        self, first_cell: int, cell_count: int, batch: PoseBatch
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Placed, np.ndarray]]:
        """Adds consecutive cells, which lie in the batch.

        Yields parts of them with the pairs that Newton keeps: the numbers of the part's cells,
        counted from first_cell; for each pair the row of its cell in the part, int64[n]; the placed
        shapes; and the rows in these of both shapes of each pair, int64[n, 2].
        """
        if self.left_out:
            return
        frame, world = np.divmod(first_cell + np.arange(cell_count), self._model.world_count)
        template = self._model.world_template[world]
        sums = {name: np.zeros(cell_count, np.int64) for name in OTHER_PAIRS}
        for one in distinct(template).tolist():
            pairs = self._pairs[one]
            cells = np.flatnonzero(template == one)
            step = max(1, MOST_TESTS // max(1, len(pairs), 16 * len(self._rows[one])))
            for begin in range(0, len(cells), step):
                part = cells[begin : begin + step]
                placed = self._placed(one, frame[part] - batch.first_frame, world[part], batch)
                genesis = self._genesis_boxes(placed)
                row, pair = self._near(placed, genesis, self._number[one])
                kept = self._kept(placed, genesis, row, pairs[pair])
                for name, is_kept in kept.items():
                    sums[name][part] = np.bincount(row[is_kept], minlength=len(part))
                of_newton = kept[NEWTON_PAIRS]
                yield part, row[of_newton], placed, pairs[pair[of_newton]]
        for name, counts in sums.items():
            self.peaks[name].add(first_cell, counts)

    def _placed(
        self, template: int, frame: np.ndarray, world: np.ndarray, batch: PoseBatch
    ) -> Placed:
        shapes = self._model.shapes
        rows = self._rows[template]
        count = len(rows)
        of_cells = (np.repeat(frame, count), np.repeat(world, count))
        pose = shape_poses(self._model, batch.body_pose, *of_cells, np.tile(rows, len(frame)))
        axes = np.stack([rotated(pose[:, 3:], axis) for axis in np.eye(3)], axis=1)
        low = np.empty((len(pose), 3))
        high = np.empty((len(pose), 3))
        kinds = np.tile(shapes.type[rows], len(frame))
        sizes = np.tile(self._size[rows], (len(frame), 1))
        apart = np.tile(self._apart[rows], len(frame))
        for axis in range(3):
            direction = axes[:, :, axis]
            low[:, axis] = -support_heights(kinds, sizes, -direction)
            high[:, axis] = support_heights(kinds, sizes, direction)
        is_plane = np.tile(self._is_plane[rows], len(frame))
        low[is_plane] = -np.inf
        high[is_plane] = np.inf
        normal = axes[:, 2]
        for axis in range(3):
            high[is_plane & (normal[:, axis] > 1.0 - 1e-9), axis] = 0.0
            low[is_plane & (normal[:, axis] < -1.0 + 1e-9), axis] = 0.0
        middle = moved_points(pose, np.tile(self._middle[rows], (len(frame), 1)))
        low += middle - apart[:, None]
        high += middle + apart[:, None]
        cells = len(frame)
        return Placed(
            rows,
            pose.reshape(cells, count, 7),
            axes.reshape(cells, count, 3, 3),
            low.reshape(cells, count, 3),
            high.reshape(cells, count, 3),
        )

    def _near(
        self, placed: Placed, genesis: Boxes, number: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The cells and numbers of the pairs that any of OTHER_PAIRS may keep, int64[n], ascending:
        boxes around all bounds of their shapes overlap. genesis: `_genesis_boxes`. number:
        int32[S, S], see `_numbers`."""
        position = placed.pose[..., :3]
        reach = (self._radius + self._apart)[placed.rows][:, None]
        reach = reach + ROUNDING * (np.abs(position) + reach)
        is_plane = self._is_plane[placed.rows][:, None]
        box_low, box_high = genesis
        low = np.minimum(np.minimum(placed.low, box_low), position - reach)
        high = np.maximum(np.maximum(placed.high, box_high), position + reach)
        low = np.where(is_plane, -np.inf, low)
        high = np.where(is_plane, np.inf, high)
        cell, one, other = overlapping_boxes(low, high)
        pair = number[one, other]
        is_allowed = pair >= 0
        cell = cell[is_allowed]
        pair = pair[is_allowed].astype(np.int64)
        order = np.lexsort((pair, cell))
        return cell[order], pair[order]

    def _genesis_boxes(self, placed: Placed) -> Boxes:
        """float64[C, S, 3] twice: lows and highs of boxes of rotated boxes; of planes those of
        `placed`."""
        is_plane = self._is_plane[placed.rows]
        half = self._half_of(placed)
        of_box = np.einsum("csij,si->csj", np.abs(placed.axes), half)
        of_box += self._apart[placed.rows][:, None]
        position = placed.pose[..., :3]
        low = np.where(is_plane[:, None], placed.low, position - of_box)
        high = np.where(is_plane[:, None], placed.high, position + of_box)
        return low, high

    def _half_of(self, placed: Placed) -> np.ndarray:
        """float64[S, 3]: half extents; of planes 0."""
        return np.where(self._is_plane[placed.rows][:, None], 0.0, self._half[placed.rows])

    def _kept(
        self, placed: Placed, genesis: Boxes, cell: np.ndarray, pairs: np.ndarray
    ) -> dict[str, np.ndarray]:
        """bool[n] of each of OTHER_PAIRS: whether it keeps a pair int64[n, 2] of a cell."""
        slices = [
            slice(begin, begin + MOST_RULES) for begin in range(0, max(1, len(cell)), MOST_RULES)
        ]
        parts = [self._kept_of_part(placed, genesis, cell[at], pairs[at]) for at in slices]
        return {name: np.concatenate([part[name] for part in parts]) for name in OTHER_PAIRS}

    def _kept_of_part(
        self, placed: Placed, genesis: Boxes, cell: np.ndarray, pairs: np.ndarray
    ) -> dict[str, np.ndarray]:
        of_newton = _overlap(placed.low, placed.high, cell, pairs)
        of_genesis = _overlap(*genesis, cell, pairs)
        mujoco = np.zeros_like(of_newton)
        with_plane = self._is_plane[placed.rows][pairs].any(axis=1)
        mujoco[with_plane] = self._plane_reaches(placed, cell[with_plane], pairs[with_plane])
        mujoco[~with_plane] = self._spheres_meet(placed, cell[~with_plane], pairs[~with_plane])
        return dict(zip(OTHER_PAIRS, (of_newton, mujoco, of_genesis), strict=True))

    def _plane_reaches(self, placed: Placed, cell: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Whether the surface of the plane is within the bounding sphere of the other shape."""
        first = self._is_plane[placed.rows[pairs[:, 0]]]
        plane = np.where(first, pairs[:, 0], pairs[:, 1])
        other = np.where(first, pairs[:, 1], pairs[:, 0])
        offset = placed.pose[cell, other, :3] - placed.pose[cell, plane, :3]
        height = np.einsum("ni,ni->n", offset, placed.axes[cell, plane, 2])
        apart = self._apart[placed.rows[pairs]].sum(axis=1)
        return height <= self._radius[placed.rows[other]] + apart

    def _spheres_meet(self, placed: Placed, cell: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Whether the bounding spheres overlap, and the oriented boxes on the axes of both."""
        rows = placed.rows[pairs]
        half = self._half_of(placed)
        apart = self._apart[rows].sum(axis=1)
        offset = placed.pose[cell, pairs[:, 1], :3] - placed.pose[cell, pairs[:, 0], :3]
        bound = self._radius[rows].sum(axis=1) + apart
        kept = np.einsum("ni,ni->n", offset, offset) <= bound**2
        meeting = np.flatnonzero(kept)
        axes = [placed.axes[cell[meeting], pairs[meeting, side]] for side in (0, 1)]
        along = np.concatenate(axes, axis=1)
        reach = sum(
            np.einsum(
                "nki,ni->nk",
                np.abs(np.einsum("nkj,nij->nki", along, own)),
                half[pairs[meeting, side]],
            )
            for side, own in enumerate(axes)
        )
        distance = np.abs(np.einsum("nkj,nj->nk", along, offset[meeting]))
        kept[meeting] = (distance <= np.asarray(reach) + apart[meeting, None]).all(axis=1)
        return kept


def overlapping_boxes(
    low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of boxes float64[C, S, 3] of one cell that overlap or touch: cell, smaller and
    larger row, int64[n] each, in no particular order.

    Boxes are sorted along the axis along which the fewest intervals overlap.
    """
    order, last = min(
        (_intervals(low[..., axis], high[..., axis]) for axis in range(3)),
        key=lambda found: int(found[1].sum()),
    )
    cells, count = order.shape
    # the boxes that begin behind each box and before its end, in the order of their lows
    behind = np.maximum(last - np.arange(count), 0).ravel()
    begin = np.repeat(np.arange(cells * count), behind)
    step = np.arange(len(begin)) - np.repeat(np.cumsum(behind) - behind, behind) + 1
    cell = begin // count if count else begin
    flat = order.ravel()
    one = flat[begin]
    other = flat[begin + step]
    overlaps = np.ones(len(begin), bool)
    for axis in range(3):
        overlaps &= low[cell, one, axis] <= high[cell, other, axis]
        overlaps &= low[cell, other, axis] <= high[cell, one, axis]
    cell, one, other = (values[overlaps] for values in (cell, one, other))
    return cell, np.minimum(one, other), np.maximum(one, other)


def _intervals(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64[C, S] twice: the rows of the intervals by their lows, and for each of these the place
    of the last one that begins before its end."""
    count = low.shape[1]
    order = np.argsort(low, axis=1, kind="stable")
    # at equal values a low comes before a high, as intervals that touch overlap
    ends = np.argsort(np.concatenate([low, high], axis=1), axis=1, kind="stable")
    is_low = ends < count
    begun = np.cumsum(is_low, axis=1)
    last = np.empty(low.shape, np.int64)
    cell, place = np.nonzero(~is_low)
    last[cell, ends[cell, place] - count] = begun[cell, place] - 1
    return order, np.take_along_axis(last, order, axis=1)


def _overlap(low: np.ndarray, high: np.ndarray, cell: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """bool[n]: whether the boxes of pairs int64[n, 2] of a cell overlap or touch."""
    low0, low1 = (low[cell, pairs[:, side]] for side in (0, 1))
    high0, high1 = (high[cell, pairs[:, side]] for side in (0, 1))
    return np.all((low0 <= high1) & (low1 <= high0), axis=-1)


def _numbers(pairs: np.ndarray, count: int) -> np.ndarray:
    """int32[S, S]: the number of each pair of rows int64[n, 2], -1 for none."""
    number = np.full((count, count), -1, np.int32)
    number[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    return number
