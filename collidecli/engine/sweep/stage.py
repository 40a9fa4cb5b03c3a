"""Contacts between recorded frames: the rows of the group `sweep` of a batch of cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.distances.pairs import PairDistances
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.sweep.candidates import SweptCandidates
from collidecli.engine.sweep.conservative_advancement import (
    CLEAR,
    ROUNDS_TO_TOUCH,
    TOUCH,
    UNDECIDED,
    Advance,
    Sweeper,
)
from collidecli.engine.sweep.least_distance import least_distance
from collidecli.engine.sweep.motion import BodySteps, PairSteps, body_steps, in_blocks, shape_steps
from collidecli.engine.sweep.speed_bounds import pair_steps
from collidecli.engine.sweep.supports import Supports
from collidecli.scene.allowed_pairs import pair_lengths
from collidecli.scene.contact_blocks import GroupRows, no_rows
from collidecli.scene.contact_columns import SWEEP
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import Model

if TYPE_CHECKING:
    from collidecli.engine.geometry.sdf_construction import FieldStore


ROWS_AT_ONCE = 1 << 15
"""Pairs in steps that are advanced at a time. Rows do not depend on it."""


@dataclass(frozen=True)
class SweepStage:
    """Finds the pairs of shapes that touch between frames. inflation: float64[S], of swept boxes
    [m]."""

    model: Model
    candidates: SweptCandidates
    sweeper: Sweeper
    inflation: np.ndarray
    float_type: np.dtype

    group = SWEEP
    width = 1
    """The pairs of a cell are found together."""

    def kernels(self) -> list[wp.Kernel]:
        """None: those of the distances are loaded with them."""
        return []

    def issue_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> Callable[[], GroupRows]:
        """A function that returns the rows of the steps that begin in the cells of a batch."""
        rows = self._rows(batch)
        return lambda: rows

    def _rows(self, batch: PoseBatch) -> GroupRows:
        """The rows of the steps that begin in the cells of a batch. Raises InputError for a
        rotation of half a turn in one step."""
        bodies = body_steps(self.model, batch)
        cells = []
        parts = []
        for step, rows in in_blocks(self.candidates.find(bodies, self.inflation), ROWS_AT_ONCE):
            kept, columns = self._touches(bodies, step, rows)
            cells.append(bodies.cell[step[kept]])
            parts.append(columns)
        if not parts:
            return no_rows(SWEEP, batch.cell_count, self.float_type)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        counts = np.bincount(np.concatenate(cells), minlength=batch.cell_count).astype(np.int64)
        return GroupRows(counts, columns)

    def _touches(
        self, bodies: BodySteps, step: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Indices of the pairs that touch in their step or are undecided, and their columns."""
        motion0, motion1 = (shape_steps(self.model, bodies, step, rows[:, side]) for side in (0, 1))
        pairs = pair_steps(
            self.sweeper.supports, rows, motion0, motion1, pair_lengths(self.model, rows, "margin")
        )
        entered = self.sweeper.advance(pairs)
        kept = np.flatnonzero(entered.status != CLEAR)
        pairs = pairs.take(kept)
        entered = entered.take(kept)
        left = self.sweeper.advance(pairs.reversed())
        # Backwards a pair may be found clear that forwards is undecided.
        in_step = np.flatnonzero((entered.status == TOUCH) | (left.status != CLEAR))
        return kept[in_step], self._columns(
            pairs.take(in_step), entered.take(in_step), left.take(in_step)
        )

    def _columns(self, pairs: PairSteps, entered: Advance, left: Advance) -> dict[str, np.ndarray]:
        """The columns of pairs. entered, left: first touches of the steps and of the reversed
        steps."""
        # A touch between half the tolerance and the tolerance may be found in one direction only.
        leave = _leave(entered, left)
        is_one = left.status == CLEAR
        of_leave, bound_of_leave = (
            np.where(is_one, getattr(entered, name), getattr(left, name))
            for name in ("distance", "lower")
        )
        known = entered.distance, of_leave, entered.lower, bound_of_leave
        least, bound, touches = least_distance(self.sweeper, pairs, entered.time, leave, known)
        touches |= (entered.status == TOUCH) | (left.status == TOUCH)
        entered = self._to_touch(pairs, entered, touches, 1)
        left = self._to_touch(pairs, left, touches, -1)
        leave = _leave(entered, left)
        # Outside of the touch no distance is below half the tolerance; of a pair at relative rest
        # it does not change.
        bound = np.where(pairs.speed > 0.0, np.minimum(bound, 0.5 * self.sweeper.tolerance), least)
        values = {
            "shape0": pairs.rows[:, 0],
            "shape1": pairs.rows[:, 1],
            "status": np.where(touches, TOUCH, UNDECIDED),
            "tunnel": touches & (entered.time > 0.0) & (leave < 1.0),
            "enter": entered.time,
            "leave": leave,
            "least": least,
            "least_bound": bound,
            "point0": entered.point0,
            "point1": entered.point1,
            "normal": entered.normal,
        }
        return {
            column.name: np.ascontiguousarray(
                values[column.name], column.dtype_for(self.float_type)
            )
            for column in SWEEP.columns
        }

    def _to_touch(
        self, pairs: PairSteps, advanced: Advance, touches: np.ndarray, sign: int
    ) -> Advance:
        """A result whose undecided rows, of those that touch for certain, go on to the touch. sign:
        -1 backwards."""
        late = np.flatnonzero(touches & (advanced.status == UNDECIDED))
        if not len(late):
            return advanced
        late_pairs = pairs.take(late)
        more = self.sweeper.advance(
            late_pairs if sign > 0 else late_pairs.reversed(), ROUNDS_TO_TOUCH
        )
        reached = np.flatnonzero(more.status == TOUCH)
        changed = {name: values.copy() for name, values in vars(advanced).items()}
        for name, values in changed.items():
            values[late[reached]] = getattr(more, name)[reached]
        return Advance(**changed)


def _leave(entered: Advance, left: Advance) -> np.ndarray:
    """float64[n]: the ends of the last touches; those of a reversed step that is clear are their
    begins."""
    return np.where(left.status == CLEAR, entered.time, np.maximum(1.0 - left.time, entered.time))


def sweep_stage(
    device_model: DeviceModel,
    tolerance: float,
    float_type: np.dtype,
    store: FieldStore | None = None,
) -> SweepStage:
    """The sweep of a model with its margins. tolerance: see `Sweeper`. store: cache of signed
    distance fields."""
    model = device_model.model
    supports = Supports(model)
    candidates = SweptCandidates(model, supports)
    distances = PairDistances(model, device_model.device, candidates.pairs_of_kinds(), store)
    # Swept boxes of shapes within their margin and the tolerance overlap.
    inflation = model.shapes.margin + 0.5 * tolerance
    if len(model.forced_margin):
        forced = distinct(model.pair_filter.forced)
        margin = np.nanmax(model.forced_margin, initial=0.0)
        inflation[forced] = np.maximum(inflation[forced], 0.5 * (margin + tolerance))
    return SweepStage(
        model, candidates, Sweeper(distances, supports, tolerance), inflation, np.dtype(float_type)
    )
