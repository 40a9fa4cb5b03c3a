"""Pairs of a particle, or a line or triangle of particles, and a shape that may touch between two
frames: overlap of the boxes of their motions.

A particle moves in a straight line, so that the box around both its positions contains it; the box
around the particles of a line or triangle in both frames contains it. Boxes of shapes are those of
`candidates`. Particles, lines and triangles are sorted along one axis: a shape is compared with
those that overlap it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.particles.cloud import active_items
from collidecli.engine.sweep.candidates import SweptCandidates
from collidecli.engine.sweep.motion import BodySteps, Rows, in_blocks, shape_steps
from collidecli.engine.sweep.row_keys import RowKeys, StepParts
from collidecli.engine.sweep.stage import ROWS_AT_ONCE
from collidecli.engine.sweep.supports import ROUNDING
from collidecli.numerics.poses import rotated
from collidecli.numerics.products import dot, norm
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.shape_types import ShapeType

HELD_ITEMS = 1 << 15
"""Particles, lines or triangles that are compared with a shape at a time."""


class PointCandidates:
    """The pairs of particles and shapes of a model whose swept boxes overlap; or of lines or
    triangles and shapes.

    tolerance: they touch at this distance or less [m]. elements: int32[n, k], lines or triangles;
    None for the particles. An element touches a shape only if each of its particles may, and a
    plane nowhere before one of them does.
    """

    def __init__(
        self,
        model: Model,
        shapes: SweptCandidates,
        tolerance: float,
        elements: np.ndarray | None = None,
    ) -> None:
        self._model = model
        self._shapes = shapes
        particles = model.particles
        touched = model.particles.touched_shapes
        if elements is not None:
            touched = touched & (model.shapes.type != ShapeType.PLANE)
        self.touched = touched
        """bool[S]: shapes that may touch a particle, or an element."""
        self._inflation = model.shapes.margin + 0.5 * tolerance
        self._reach = particles.radius + 0.5 * tolerance
        templates = range(int(model.world_template.max()) + 1)
        self._items = [active_items(particles, template, elements) for template in templates]
        self._rows = [rows[self.touched[rows]] for rows in map(model.template_shapes, templates)]

    def find(
        self, bodies: BodySteps, positions: Positions, step: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Particles, lines or triangles int32[n, k], and shapes int32[n], of candidates in a step,
        an entry of `bodies`, in blocks."""
        template = int(self._model.world_template[bodies.world[step]])
        items = self._items[template]
        rows = self._rows[template]
        if not len(items) or not len(rows):
            return
        begin, end = (ends[items] for ends in positions.of(step))
        reach = self._reach[items][..., None]
        reach = reach + ROUNDING * (np.abs(begin) + np.abs(end))
        low = (np.minimum(begin, end) - reach).min(axis=1)
        high = (np.maximum(begin, end) + reach).max(axis=1)
        lower, upper = (
            ends[0] for ends in self._shapes.boxes(bodies, np.array([step]), rows, self._inflation)
        )
        axis = int(np.argmax((low + high).max(axis=0) - (low + high).min(axis=0)))
        order = np.argsort(low[:, axis], kind="stable")
        longest = float((high[:, axis] - low[:, axis]).max())
        first = np.searchsorted(low[order, axis], lower[:, axis] - longest, side="left")
        last = np.searchsorted(low[order, axis], upper[:, axis], side="right")
        for shape in range(len(rows)):
            row = int(rows[shape])
            for start in range(int(first[shape]), int(last[shape]), HELD_ITEMS):
                in_box = order[start : min(start + HELD_ITEMS, int(last[shape]))]
                hit = (low[in_box] <= upper[shape]) & (lower[shape] <= high[in_box])
                in_box = in_box[hit.all(axis=1)]
                in_box = in_box[self._may_touch(items[in_box], row)]
                if self._model.shapes.type[row] == ShapeType.PLANE and len(in_box):
                    near = self._near_plane(
                        bodies, step, row, begin[in_box, 0], end[in_box, 0], reach[in_box, 0]
                    )
                    in_box = in_box[near]
                if len(in_box):
                    yield items[in_box], np.full(len(in_box), row, np.int32)

    def _may_touch(self, items: np.ndarray, row: int) -> np.ndarray:
        """bool[n]: whether the filters let all particles of a row touch a shape; none touches one
        of the body it moves with."""
        particles = self._model.particles
        body = int(self._model.shapes.body[row])
        classes = particles.object_class[particles.owner[items]]
        may = particles.class_table[classes, particles.shape_class[row]]
        return (may & ((particles.body[items] != body) | (body == STATIC_BODY))).all(axis=1)

    def _near_plane(
        self,
        bodies: BodySteps,
        step: int,
        row: int,
        begin: np.ndarray,
        end: np.ndarray,
        reach: np.ndarray,
    ) -> np.ndarray:
        """bool[n]: whether particles are near a plane at an end of the step; all are that of a
        plane that turns."""
        motion = shape_steps(self._model, bodies, np.array([step]), np.array([row]))
        if norm(motion.turn)[0] > 0.0:
            return np.ones(len(begin), bool)
        up = rotated(motion.quat, np.array([[0.0, 0.0, 1.0]]))
        ends = (motion.at(np.full(1, time))[:, :3] for time in (0.0, 1.0))
        heights = [
            dot(up, point - origin) for point, origin in zip((begin, end), ends, strict=True)
        ]
        size = (
            np.abs(begin).sum(axis=1)
            + np.abs(end).sum(axis=1)
            + np.abs(motion.origin + motion.arm).sum()
        )
        return np.minimum(*heights) <= reach.max(axis=1) + self._inflation[row] + ROUNDING * size


class Positions:
    """Positions of the particles at the begin and the end of steps [m]."""

    def __init__(self, model: Model, batch: PoseBatch, bodies: BodySteps) -> None:
        assert batch.particle_position is not None
        positions = np.asarray(batch.particle_position, np.float64)
        if positions.shape[1] == 1:
            positions = model.particles_moved_with_worlds(positions)
        frame, self._world = np.divmod(batch.first_cell + bodies.cell, model.world_count)
        self._positions = positions
        self._frame = frame - batch.first_frame

    def of(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """float64[P, 3] twice: of a step, an entry of `bodies`."""
        world = self._world[step] if self._positions.shape[1] > 1 else 0
        frame = self._frame[step]
        begin, end = (frame, frame + 1) if len(self._positions) > 1 else (0, 0)
        return self._positions[begin, world], self._positions[end, world]


@dataclass(frozen=True)
class ItemPairs(Rows):
    """Particles, lines or triangles, and shapes, in steps, a row each. step: int64[n], entries of
    `BodySteps`. items: int32[n, k], their particles. shape: int32[n]. begin, end: float64[n, k, 3],
    positions of the particles [m]. parts: of the steps, in which they are swept.
    """

    step: np.ndarray
    items: np.ndarray
    shape: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    parts: StepParts

    def __len__(self) -> int:
        return len(self.step)

    def cut(self) -> ItemPairs:
        """The pairs with the positions of their particles at the ends of their parts of steps."""
        since = self.parts.since[:, None, None]
        until = self.parts.until[:, None, None]
        change = self.end - self.begin
        begin = np.where(since == 0.0, self.begin, self.begin + since * change)
        end = np.where(until == 1.0, self.end, self.begin + until * change)
        return replace(self, begin=begin, end=end)


def pairs_in_blocks(
    candidates: PointCandidates,
    bodies: BodySteps,
    positions: Positions,
    told: RowKeys | None = None,
) -> Iterator[ItemPairs]:
    """The candidates in blocks, each in the parts of its step that the touches of its particles in
    `told` do not cover."""

    def parts() -> Iterator[tuple[np.ndarray, ...]]:
        for step in range(len(bodies.cell)):
            for items, shape in candidates.find(bodies, positions, step):
                of_step = StepParts.whole(len(items))
                if told is not None:
                    row, of_step = told.uncovered(step, items, shape)
                    items = items[row]
                    shape = shape[row]
                begin, end = (ends[items] for ends in positions.of(step))
                pairs = np.full(len(items), step), items, shape, begin, end
                yield *pairs, *vars(of_step).values()

    for columns in in_blocks(parts(), ROWS_AT_ONCE):
        step, items, shape, begin, end = columns[:5]
        yield ItemPairs(step, items, shape, begin, end, StepParts(*columns[5:]))
