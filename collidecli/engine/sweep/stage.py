"""Contacts between recorded frames: the rows of the group `sweep` of a batch of cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.pair_distances import PairDistances
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.sweep.advancement import CLEAR, ROUNDS_TO_TOUCH, TOUCH, UNDECIDED, Advance, Sweeper
from collidecli.engine.sweep.candidates import SweptCandidates
from collidecli.engine.sweep.least_distance import least_distance
from collidecli.engine.sweep.speeds import PairSteps, pair_steps
from collidecli.engine.sweep.steps import BodySteps, body_steps, shape_steps
from collidecli.engine.sweep.supports import Supports
from collidecli.scene.contact_groups import SWEEP, ContactGroup, GroupRows, no_rows
from collidecli.scene.model import Model

if TYPE_CHECKING:
    from collidecli.engine.geometry.signed_distance.build import FieldStore

ROWS_AT_ONCE = 1 << 15
"""Pairs in steps that are advanced at a time. Rows do not depend on it."""


@dataclass(frozen=True)
class SweepStage:
    """Finds the pairs of shapes that touch between frames. tolerance: they touch at this distance or less [m]."""

    model: Model
    distances: PairDistances
    candidates: SweptCandidates
    sweeper: Sweeper
    inflation: np.ndarray
    float_type: np.dtype

    def kernels(self) -> list[wp.Kernel]:
        """None: those of the distances are loaded with them."""
        return []

    @property
    def group(self) -> ContactGroup:
        return SWEEP

    @property
    def width(self) -> int:
        """One: the pairs of a cell are found together."""
        return 1

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the steps that begin in the cells of a batch, and the number of pairs whose swept boxes overlap.

        Raises InputError for a rotation of half a turn in one step.
        """
        return self.sweep(batch)

    def sweep(self, batch: PoseBatch) -> tuple[GroupRows, int]:
        """See `collide_part`."""
        bodies = body_steps(self.model, batch)
        cells, parts, count = [], [], 0
        for step, rows in self._blocks(bodies):
            count += len(step)
            kept, columns = self._touches(bodies, step, rows)
            cells.append(bodies.cell[step[kept]])
            parts.append(columns)
        if not parts:
            return no_rows(SWEEP, batch.cell_count, self.float_type), count
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return GroupRows(
            np.bincount(np.concatenate(cells), minlength=batch.cell_count).astype(np.int64), columns
        ), count

    def _blocks(self, bodies: BodySteps) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The candidates in blocks of about ROWS_AT_ONCE."""
        steps, pairs, held = [], [], 0
        for step, rows in self.candidates.find(bodies, self.inflation):
            for first in range(0, len(step), ROWS_AT_ONCE):
                steps.append(step[first : first + ROWS_AT_ONCE])
                pairs.append(rows[first : first + ROWS_AT_ONCE])
                held += len(steps[-1])
                if held >= ROWS_AT_ONCE:
                    yield np.concatenate(steps), np.concatenate(pairs)
                    steps, pairs, held = [], [], 0
        if held:
            yield np.concatenate(steps), np.concatenate(pairs)

    def _touches(
        self, bodies: BodySteps, step: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Indices of the pairs that touch in their step or are undecided, and their columns."""
        motions = (shape_steps(self.model, bodies, step, rows[:, side]) for side in (0, 1))
        pairs = pair_steps(self.sweeper.supports, rows, *motions, pair_margins(self.model, rows))
        entered = self.sweeper.advance(pairs)
        kept = np.flatnonzero(entered.status != CLEAR)
        pairs, entered = pairs.take(kept), taken(entered, kept)
        left = self.sweeper.advance(pairs.reversed())
        # Backwards a pair may be found clear that forwards is undecided.
        held = np.flatnonzero((entered.status == TOUCH) | (left.status != CLEAR))
        return kept[held], self._columns(pairs.take(held), taken(entered, held), taken(left, held))

    def _columns(self, pairs: PairSteps, entered: Advance, left: Advance) -> dict[str, np.ndarray]:
        """The columns of pairs. entered, left: first touches of the steps and of the reversed steps."""
        # A touch between half the tolerance and the tolerance may be found in one direction only.
        leave, is_one = _leave(entered, left), left.status == CLEAR
        of_leave, bound_of_leave = (
            np.where(is_one, getattr(entered, name), getattr(left, name)) for name in ("distance", "lower")
        )
        known = entered.distance, of_leave, entered.lower, bound_of_leave
        least = least_distance(self.sweeper, pairs, entered.time, leave, known)
        touches = (entered.status == TOUCH) | (left.status == TOUCH) | least.touches
        entered, left = self._to_touch(pairs, entered, touches, 1), self._to_touch(pairs, left, touches, -1)
        leave = _leave(entered, left)
        # Outside of the touch no distance is below half the tolerance; of a pair at relative rest it does not change.
        bound = np.minimum(least.bound, 0.5 * self.sweeper.tolerance)
        bound = np.where(pairs.speed > 0.0, bound, least.found)
        found = {
            "shape0": pairs.rows[:, 0], "shape1": pairs.rows[:, 1], "status": np.where(touches, TOUCH, UNDECIDED),
            "tunnel": touches & (entered.time > 0.0) & (leave < 1.0), "enter": entered.time, "leave": leave,
            "least": least.found, "least_bound": bound, "point0": entered.point0, "point1": entered.point1,
            "normal": entered.normal,
        }  # fmt: skip
        return {
            column.name: np.ascontiguousarray(found[column.name], column.dtype_for(self.float_type))
            for column in SWEEP.columns
        }

    def _to_touch(self, pairs: PairSteps, found: Advance, touches: np.ndarray, sign: int) -> Advance:
        """A result whose undecided rows, of those that touch for certain, go on to the touch. sign: -1 backwards."""
        late = np.flatnonzero(touches & (found.status == UNDECIDED))
        if not len(late):
            return found
        held = pairs.take(late)
        more = self.sweeper.advance(held if sign > 0 else held.reversed(), ROUNDS_TO_TOUCH)
        reached = np.flatnonzero(more.status == TOUCH)
        changed = {name: values.copy() for name, values in vars(found).items()}
        for name, values in changed.items():
            values[late[reached]] = getattr(more, name)[reached]
        return Advance(**changed)


def _leave(entered: Advance, left: Advance) -> np.ndarray:
    """float64[n]: the ends of the last touches; those of a reversed step that is clear are their begins."""
    return np.where(left.status == CLEAR, entered.time, np.maximum(1.0 - left.time, entered.time))


def taken(found: Advance, rows: np.ndarray) -> Advance:
    """Some rows of a result."""
    return Advance(**{name: values[rows] for name, values in vars(found).items()})


def pair_margins(model: Model, rows: np.ndarray) -> np.ndarray:
    """float64[n]: sum of both shapes' margins, or the margin of the forced pair [m]."""
    found = model.shapes.margin[rows].sum(axis=1)
    forced, own = model.pair_filter.forced, model.forced_margin
    if not len(own):
        return found
    count = len(model.shapes)
    keys, wanted = (pairs[:, 0].astype(np.int64) * count + pairs[:, 1] for pairs in (forced, rows))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    given = (keys[at] == wanted) & ~np.isnan(own[at])
    return np.where(given, own[at], found)


def swept_inflation(model: Model, tolerance: float) -> np.ndarray:
    """float64[S]: inflation of swept boxes: those of shapes within their margin and the tolerance overlap [m]."""
    found = model.shapes.margin + 0.5 * tolerance
    own = model.forced_margin
    if len(own):
        forced = np.unique(model.pair_filter.forced)
        found[forced] = np.maximum(found[forced], 0.5 * (np.nanmax(own, initial=0.0) + tolerance))
    return found


def sweep_stage(
    device_model: DeviceModel, tolerance: float, float_type: np.dtype, store: FieldStore | None = None
) -> SweepStage:
    """The sweep of a model with its margins. tolerance: see `SweepStage`. store: cache of signed distance fields."""
    model = device_model.model
    supports = Supports(model)
    candidates = SweptCandidates(model, supports)
    distances = PairDistances(model, device_model.device, candidates.pairs_of_kinds(), store)
    sweeper, inflation = Sweeper(distances, supports, tolerance), swept_inflation(model, tolerance)
    return SweepStage(model, distances, candidates, sweeper, inflation, np.dtype(float_type))
