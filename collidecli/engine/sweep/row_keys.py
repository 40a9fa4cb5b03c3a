"""Rows of touches that are found already, by step, particle and shape."""

from __future__ import annotations

import numpy as np

from collidecli.engine.sweep.conservative_advancement import TOUCH
from collidecli.engine.sweep.motion import Rows

SoftRows = tuple[np.ndarray, dict[str, np.ndarray]]
"""Steps of rows, entries int64[n] of `BodySteps`, and their columns."""


class StepParts(Rows):
    """Parts of steps in which elements are swept, a row each.

    since, until: float64[n], times in 0 to 1. told: bool[n], whether a particle of the element has
    a row with the shape in the step. in_frame: bool[n], whether one touches it in a frame.
    """

    def __init__(
        self, since: np.ndarray, until: np.ndarray, told: np.ndarray, in_frame: np.ndarray
    ) -> None:
        self.since = since
        self.until = until
        self.told = told
        self.in_frame = in_frame

    def __len__(self) -> int:
        return len(self.since)

    @classmethod
    def whole(cls, count: int) -> StepParts:
        """Whole steps, of particles, or of elements whose particles have no row."""
        none = np.zeros(count, bool)
        return cls(np.zeros(count), np.ones(count), none, none)

    def times(self, time: np.ndarray) -> np.ndarray:
        """Times of the steps, of times in 0 to 1 of their parts; the ends of a part are exact."""
        inner = np.minimum(self.since + time * (self.until - self.since), self.until)
        return np.where(time == 0.0, self.since, np.where(time == 1.0, self.until, inner))


class RowKeys:
    """The pairs of a particle and a shape that have a row in a step, with the times of those that
    touch for certain. particles, shapes: numbers of both."""

    def __init__(self, parts: list[SoftRows], particles: int, shapes: int) -> None:
        self._particles = particles
        self._shapes = shapes
        keys = [
            self._of(step, columns["indices"][:, 0], columns["shape"]) for step, columns in parts
        ]
        keys = np.concatenate([np.zeros(0, np.int64), *keys])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        columns = [columns for _, columns in parts]
        touches = np.concatenate([np.zeros(0, bool), *(of["status"] == TOUCH for of in columns)])
        enter = np.concatenate([np.zeros(0), *(of["enter"] for of in columns)])
        leave = np.concatenate([np.zeros(0), *(of["leave"] for of in columns)])
        self._enter = np.where(touches, enter, np.inf)[order]
        self._leave = np.where(touches, leave, -np.inf)[order]

    def _of(self, step: np.ndarray, particle: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return (step.astype(np.int64) * self._particles + particle) * self._shapes + shape

    def uncovered(
        self, step: int, items: np.ndarray, shape: np.ndarray
    ) -> tuple[np.ndarray, StepParts]:
        """The parts of a step in which none of an element's particles touches the shape for
        certain: the row int64[n] of `items`, int32[m, k], of each part. A row has up to k + 1
        parts; one whose particles touch from 0 to 1 has none."""
        enter, leave, told = self._intervals(step, items, shape)
        order = np.argsort(enter, axis=1, kind="stable")
        enter = np.take_along_axis(enter, order, axis=1)
        leave = np.take_along_axis(leave, order, axis=1)
        in_frame = (enter == 0.0).any(axis=1) | (leave == 1.0).any(axis=1)
        reached = np.zeros(len(items))
        found = []
        for until, last in zip((*enter.T, np.ones(len(items))), (*leave.T, None), strict=True):
            row = np.flatnonzero((reached < until) & (until <= 1.0))
            found.append((row, reached[row], until[row]))
            if last is not None:
                reached = np.maximum(reached, last)
        row, since, until = (np.concatenate(values) for values in zip(*found, strict=True))
        return row, StepParts(since, until, told[row], in_frame[row])

    def _intervals(
        self, step: int, items: np.ndarray, shape: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times of the touches of each particle of `items` with the shapes in a step, float64[m, k]
        each, infinite and -infinite without one; and bool[m], whether one has a row."""
        enter = np.full(items.shape, np.inf)
        leave = np.full(items.shape, -np.inf)
        told = np.zeros(len(items), bool)
        if len(self._keys):
            for column, particle in enumerate(items.T):
                keys = self._of(np.full(len(items), step), particle, shape)
                at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
                has_row = self._keys[at] == keys
                enter[has_row, column] = self._enter[at[has_row]]
                leave[has_row, column] = self._leave[at[has_row]]
                told |= has_row
        return enter, leave, told
