"""Pairs of a particle and a shape that may touch between two frames: overlap of the boxes of their motions.

A particle moves in a straight line, so that the box around both its positions contains it. Boxes of shapes are those
of `candidates`. Particles are sorted along one axis: a shape is compared with those that overlap it there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.sweep.candidates import SweptCandidates
from collidecli.engine.sweep.steps import BodySteps, shape_steps
from collidecli.engine.sweep.supports import ROUNDING, rotated
from collidecli.numerics.matrices import dot, norm
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.shape_types import ShapeType

HELD_POINTS = 1 << 15
"""Particles that are compared with a shape at a time."""


class PointCandidates:
    """The pairs of particles and shapes of a model whose swept boxes overlap.

    tolerance: particles touch at this distance or less [m].
    """

    def __init__(self, model: Model, shapes: SweptCandidates, tolerance: float) -> None:
        self._model, self._shapes = model, shapes
        particles = model.particles
        self._touched = particles.class_table.any(axis=0)[particles.shape_class]
        self._inflation = model.shapes.margin + 0.5 * tolerance
        self._reach = particles.radius + 0.5 * tolerance
        templates = range(int(model.world_template.max()) + 1)
        held = [particles.of_template(template) for template in templates]
        self._points = [rows[particles.active[rows]] for rows in held]
        self._rows = [rows[self._touched[rows]] for rows in map(model.template_shapes, templates)]

    @property
    def touched(self) -> np.ndarray:
        """bool[S]: shapes that may touch a particle."""
        return self._touched

    def find(self, bodies: BodySteps, positions: Positions, step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Particles int32[n] and shapes int32[n] of candidates in a step, an entry of `bodies`, in blocks."""
        template = int(self._model.world_template[bodies.world[step]])
        points, rows = self._points[template], self._rows[template]
        if not len(points) or not len(rows):
            return
        begin, end = (each[points] for each in positions.of(step))
        reach = self._reach[points, None]
        reach = reach + ROUNDING * (np.abs(begin) + np.abs(end))
        low, high = np.minimum(begin, end) - reach, np.maximum(begin, end) + reach
        lower, upper = (each[0] for each in self._shapes.boxes(bodies, np.array([step]), rows, self._inflation))
        axis = int(np.argmax((low + high).max(axis=0) - (low + high).min(axis=0)))
        order = np.argsort(low[:, axis], kind="stable")
        longest = float((high[:, axis] - low[:, axis]).max())
        first = np.searchsorted(low[order, axis], lower[:, axis] - longest, side="left")
        last = np.searchsorted(low[order, axis], upper[:, axis], side="right")
        for shape in range(len(rows)):
            row = int(rows[shape])
            for start in range(int(first[shape]), int(last[shape]), HELD_POINTS):
                held = order[start : min(start + HELD_POINTS, int(last[shape]))]
                hit = (low[held] <= upper[shape]) & (lower[shape] <= high[held])
                held = held[hit.all(axis=1)]
                held = held[self._may_touch(points[held], row)]
                if self._model.shapes.type[row] == ShapeType.PLANE and len(held):
                    held = held[self._near_plane(bodies, step, row, begin[held], end[held], reach[held])]
                if len(held):
                    yield points[held], np.full(len(held), row, np.int32)

    def _may_touch(self, points: np.ndarray, row: int) -> np.ndarray:
        """bool[n]: whether the filters let particles touch a shape; none touches one of the body it moves with."""
        particles, body = self._model.particles, int(self._model.shapes.body[row])
        classes = particles.object_class[particles.owner[points]]
        may = particles.class_table[classes, particles.shape_class[row]]
        return may & ((particles.body[points] != body) | (body == STATIC_BODY))

    def _near_plane(
        self, bodies: BodySteps, step: int, row: int, begin: np.ndarray, end: np.ndarray, reach: np.ndarray
    ) -> np.ndarray:
        """bool[n]: whether particles are near a plane at an end of the step; all are that of a plane that turns."""
        motion = shape_steps(self._model, bodies, np.array([step]), np.array([row]))
        if norm(motion.turn)[0] > 0.0:
            return np.ones(len(begin), bool)
        up = rotated(motion.quat, np.array([[0.0, 0.0, 1.0]]))
        ends = (motion.at(np.full(1, time))[:, :3] for time in (0.0, 1.0))
        heights = [dot(up, point - origin) for point, origin in zip((begin, end), ends, strict=True)]
        size = np.abs(begin).sum(axis=1) + np.abs(end).sum(axis=1) + np.abs(motion.origin + motion.arm).sum()
        return np.minimum(*heights) <= reach.max(axis=1) + self._inflation[row] + ROUNDING * size


class Positions:
    """Positions of the particles at the begin and the end of steps [m]."""

    def __init__(self, model: Model, batch: PoseBatch, bodies: BodySteps) -> None:
        assert batch.particle_position is not None
        found = np.asarray(batch.particle_position, np.float64)
        if found.shape[1] == 1:
            found = model.particles_moved_with_worlds(found)
        frame, self._world = np.divmod(batch.first_cell + bodies.cell, model.world_count)
        self._positions, self._frame = found, frame - batch.first_frame

    def of(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """float64[P, 3] twice: of a step, an entry of `bodies`."""
        found = self._positions
        world = int(self._world[step]) if found.shape[1] > 1 else 0
        frame = int(self._frame[step])
        return tuple(found[at if len(found) > 1 else 0, world] for at in (frame, frame + 1))  # pyright: ignore
