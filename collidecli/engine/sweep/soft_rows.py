"""Rows of the group `soft_sweep`: touches of particles and of their triangles with shapes in steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.engine.sweep.advancement import TOUCH
from collidecli.engine.sweep.steps import BodySteps, ShapeSteps
from collidecli.scene.contact_groups import SOFT_SWEEP, GroupRows, no_rows


@dataclass(frozen=True)
class SoftRows:
    """Rows of steps, entries int64[n] of `BodySteps`, and their columns."""

    step: np.ndarray
    columns: dict[str, np.ndarray]


@dataclass(frozen=True)
class Touches:
    """Touches of particles or triangles with shapes in steps. step: int64[n], items: int32[n, k], shape: int32[n].

    kind: 0 of particles, 2 of triangles. weights: float64[n, 3], of their particles at `enter`. found: status, enter,
    leave, least, least_bound, normal, and point from the origin of the shape's body, by name. motion: of the shapes.
    """

    step: np.ndarray
    items: np.ndarray
    shape: np.ndarray
    kind: int
    weights: np.ndarray
    found: dict[str, np.ndarray]
    motion: ShapeSteps

    def rows(self, float_type: np.dtype) -> SoftRows:
        """The rows of the group."""
        found, enter = self.found, self.found["enter"]
        indices = np.full((len(self.step), 3), -1, np.int32)
        indices[:, : self.items.shape[1]] = self.items
        tunnel = (found["status"] == TOUCH) & (enter > 0.0) & (found["leave"] < 1.0)
        of = {
            **found, "kind": np.full(len(self.step), self.kind), "indices": indices, "barycentric": self.weights,
            "shape": self.shape, "tunnel": tunnel,
            "point_world": found["point"] + self.motion.origin + enter[:, None] * self.motion.shift,
        }  # fmt: skip
        columns = {
            column.name: np.ascontiguousarray(of[column.name], column.dtype_for(float_type)) + column.dtype.type(0)
            for column in SOFT_SWEEP.columns
        }
        return SoftRows(self.step, columns)


def group_rows(parts: list[SoftRows], bodies: BodySteps, cell_count: int, float_type: np.dtype) -> GroupRows:
    """The rows of all parts in the order of the group."""
    if not parts:
        return no_rows(SOFT_SWEEP, cell_count, float_type)
    cell = np.concatenate([bodies.cell[part.step] for part in parts])
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    order = np.lexsort((columns["shape"], *columns["indices"].T[::-1], columns["kind"], cell))
    columns = {name: values[order] for name, values in columns.items()}
    return GroupRows(np.bincount(cell, minlength=cell_count).astype(np.int64), columns)


class RowKeys:
    """The pairs of a particle and a shape that have a row in a step. particles, shapes: numbers of both."""

    def __init__(self, parts: list[SoftRows], particles: int, shapes: int) -> None:
        self._particles, self._shapes = particles, shapes
        keys = [self._of(part.step, part.columns["indices"][:, 0], part.columns["shape"]) for part in parts]
        self._keys = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))

    def _of(self, step: np.ndarray, particle: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return (step.astype(np.int64) * self._particles + particle) * self._shapes + shape

    def any_of(self, step: int, items: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """bool[n]: whether a particle of each row of `items`, int32[n, k], has a row with its shape in a step."""
        found = np.zeros(len(items), bool)
        if len(self._keys):
            for particle in items.T:
                keys = self._of(np.full(len(items), step), particle, shape)
                at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
                found |= self._keys[at] == keys
        return found
