"""Exact distances of the pairs that are near or reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from collidecli.adapters.problem import Problem
from collidecli.adapters.rows import EngineRows
from collidecli.engine.distances.pairs import PairDistanceRows
from collidecli.engine.distances.points import point_distances
from collidecli.engine.pipeline_build import find_device
from collidecli.motions.clearance import distance_bounds
from collidecli.numerics.poses import compose_poses, inverse_poses
from collidecli.scene.distinct_values import distinct
from collidecli.scene.shape_types import ShapeType

CELLS_AT_ONCE = 1 << 20
"""Pairs times cells whose bounds are computed together."""


@dataclass(frozen=True)
class Exact:
    """Distances of N pairs in cells of a problem, by `PairDistances`, ordered by key.

    band: distances that differ by less are not told apart [m]. key: int64[N], `cell` times the
    number of pairs, plus `pair`. rows: their distances. outside: float64[N], of `distance_outside`,
    the greater of both points of an overlap: at an acute edge the normal leaves a shape. before,
    after: int64[N], index of the pair in the cell before and after in its world; -1 where there is
    none.
    """

    problem: Problem
    band: float
    key: np.ndarray
    cell: np.ndarray
    pair: np.ndarray
    rows: PairDistanceRows
    outside: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def shapes(self) -> np.ndarray:
        """int32[N, 2]: rows of the shapes of each pair."""
        return self.problem.arrays["pair"][self.pair]

    def index(self, key: np.ndarray) -> np.ndarray:
        """int64[n]: index of each key; -1 for none."""
        if not len(self.key):
            return np.full(len(key), -1)
        row = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[row] == key, row, -1)


def measure_exact(problem: Problem, engines: Iterable[EngineRows], band: float) -> Exact:
    """Distances of the pairs that are not certainly farther than the band [m], or have a row of an
    engine, and of these pairs in the cells before and after.
    """
    poses = problem.arrays["pose"]
    pair = problem.arrays["pair"]
    count = len(pair)
    none = np.zeros(len(pair))
    keys = [rows.cell * count + rows.pair for rows in engines]
    size = max(1, CELLS_AT_ONCE // max(1, count))
    for first in range(0, len(poses), size):
        bound = distance_bounds(problem.model, pair, none, poses[first : first + size, None])[:, 0]
        cell, row = np.nonzero(bound <= band)
        keys.append((cell + first) * count + row)
    frame = problem.arrays["frame"]
    world = problem.arrays["world"].astype(np.int64)
    worlds = problem.model.world_count
    number = np.full((problem.frames + 2) * worlds, -1)
    number[(frame + 1) * worlds + world] = np.arange(len(frame))
    # The cell of the frame before and after in the same world; -1 for none.
    before = number[frame * worlds + world]
    after = number[(frame + 2) * worlds + world]
    key = distinct(np.concatenate(keys))
    beside = np.concatenate([_moved(key, cells, count) for cells in (before, after)])
    key = distinct(np.concatenate([key, beside[beside >= 0]]))
    cell, row = np.divmod(key, count)
    measured = problem.distances(cell, row, problem.request.engine.device)
    exact = Exact(problem, band, key, cell, row, measured, key, key, key)
    outside = [
        distance_outside(exact, point, measured.distance < 0.0)
        for point in (measured.point0, measured.point1)
    ]
    beside = {
        name: exact.index(_moved(key, cells, count))
        for name, cells in (("before", before), ("after", after))
    }
    return replace(exact, outside=np.maximum(*outside), **beside)


def _moved(key: np.ndarray, cell_of: np.ndarray, count: int) -> np.ndarray:
    """The keys of the same pairs in other cells; -1 for none."""
    cell, row = np.divmod(key, count)
    return np.where(cell_of[cell] < 0, -1, cell_of[cell] * count + row)


def distance_outside(exact: Exact, point: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """float64[N]: how far a point is outside of one of both shapes, which overlap; NaN where no
    shape has an inside."""
    problem = exact.problem
    cell = exact.cell
    model = problem.model
    poses = problem.arrays["pose"]
    device = find_device(problem.request.engine.device)
    outside = np.where(chosen & np.isfinite(point).all(axis=1), 0.0, np.nan)
    for shape in exact.shapes.T:
        for shape_row in distinct(shape[np.isfinite(outside)]).tolist():
            mine = np.flatnonzero((shape == shape_row) & np.isfinite(outside))
            kind = model.shapes.type[shape_row]
            is_open = (
                kind == ShapeType.MESH and not model.meshes[model.shapes.mesh[shape_row]].is_closed
            )
            if kind == ShapeType.HEIGHTFIELD or is_open:
                outside[mine] = np.nan
                continue
            world = np.zeros((len(mine), 7))
            world[:, :3] = point[mine]
            world[:, 6] = 1.0
            local = compose_poses(inverse_poses(poses[cell[mine], shape_row]), world)[:, :3]
            outside[mine] = np.maximum(
                outside[mine], point_distances(model, shape_row, local, device)
            )
    return outside


def pair_types(exact: Exact) -> np.ndarray:
    """int[N, 2]: the types of the shapes of `Exact`, in ascending order."""
    return np.sort(exact.problem.model.shapes.type[exact.shapes], axis=1)
