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

MOST_PAIRS = 4_000_000
"""Of a template: above it, counting would take longer than a minute for a thousand cells."""
MOST_TESTS = 1 << 21
"""Pairs that are tested together."""


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
                kept = self._kept(placed, pairs)
                for name, is_kept in kept.items():
                    sums[name][part] = is_kept.sum(axis=1)
                row, pair = np.nonzero(kept[NEWTON_PAIRS])
                yield part, row, placed, pairs[pair]
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

    def _kept(self, placed: Placed, pairs: np.ndarray) -> dict[str, np.ndarray]:
        """bool[cells, pairs] of each of OTHER_PAIRS."""
        side = (pairs[:, 0], pairs[:, 1])
        newton = _overlap([(placed.low[:, rows], placed.high[:, rows]) for rows in side])
        is_plane = self._is_plane[placed.rows]
        half = np.where(is_plane[:, None], 0.0, self._half[placed.rows])
        apart = self._apart[placed.rows]
        of_box = np.einsum("csij,si->csj", np.abs(placed.axes), half) + apart[:, None]
        position = placed.pose[..., :3]
        low = np.where(is_plane[:, None], placed.low, position - of_box)
        high = np.where(is_plane[:, None], placed.high, position + of_box)
        genesis = _overlap([(low[:, rows], high[:, rows]) for rows in side])
        mujoco = np.zeros_like(newton)
        with_plane = is_plane[pairs].any(axis=1)
        if with_plane.any():
            mujoco[:, with_plane] = self._plane_reaches(placed, pairs[with_plane])
        if not with_plane.all():
            mujoco[:, ~with_plane] = self._spheres_meet(placed, pairs[~with_plane], half)
        return dict(zip(OTHER_PAIRS, (newton, mujoco, genesis), strict=True))

    def _plane_reaches(self, placed: Placed, pairs: np.ndarray) -> np.ndarray:
        """Whether the surface of the plane is within the bounding sphere of the other shape."""
        first = self._is_plane[placed.rows[pairs[:, 0]]]
        plane = np.where(first, pairs[:, 0], pairs[:, 1])
        other = np.where(first, pairs[:, 1], pairs[:, 0])
        offset = placed.pose[:, other, :3] - placed.pose[:, plane, :3]
        height = np.einsum("cpi,cpi->cp", offset, placed.axes[:, plane, 2])
        apart = self._apart[placed.rows[pairs]].sum(axis=1)
        return height <= self._radius[placed.rows[other]] + apart

    def _spheres_meet(self, placed: Placed, pairs: np.ndarray, half: np.ndarray) -> np.ndarray:
        """Whether the bounding spheres overlap, and the oriented boxes on the axes of both."""
        rows = placed.rows[pairs]
        apart = self._apart[rows].sum(axis=1)
        offset = placed.pose[:, pairs[:, 1], :3] - placed.pose[:, pairs[:, 0], :3]
        bound = self._radius[rows].sum(axis=1) + apart
        kept = np.einsum("cpi,cpi->cp", offset, offset) <= bound**2
        cell, pair = np.nonzero(kept)
        axes = [placed.axes[cell, pairs[pair, side]] for side in (0, 1)]
        along = np.concatenate(axes, axis=1)
        reach = sum(
            np.einsum(
                "nki,ni->nk",
                np.abs(np.einsum("nkj,nij->nki", along, own)),
                half[pairs[pair, side]],
            )
            for side, own in enumerate(axes)
        )
        distance = np.abs(np.einsum("nkj,nj->nk", along, offset[cell, pair]))
        kept[cell, pair] = (distance <= np.asarray(reach) + apart[pair, None]).all(axis=1)
        return kept


def _overlap(sides: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    (low0, high0), (low1, high1) = sides
    return np.all((low0 <= high1) & (low1 <= high0), axis=-1)
