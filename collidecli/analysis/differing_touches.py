"""Touches of each world that most worlds of its template lack, and those of most that it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.summary import Touches
from collidecli.analysis.touch_graph import Rows
from collidecli.scene.episodes import Episodes

LISTED_PAIRS = 3
"""Pairs with the most differing touches that are listed of a world."""
CELLS_AT_ONCE = 1 << 22
"""Entries of an array of touches by worlds that is held at once [bytes]."""


@dataclass(frozen=True)
class DifferingPairs(Rows):
    """A row for each world and pair with differing touches, ascending by world and pair.

    pair: shape0 * number of shapes + shape1. fewer: frames in which most worlds of the template
    touch and this one does not. more: the reverse. first_frame: the first of both.
    """

    world: np.ndarray
    pair: np.ndarray
    fewer: np.ndarray
    more: np.ndarray
    first_frame: np.ndarray

    def summed(self) -> DifferingPairs:
        """The sums by world and pair."""
        if not len(self):
            return self
        order = np.lexsort((self.pair, self.world))
        world = self.world[order]
        pair = self.pair[order]
        begins = (np.diff(world, prepend=-1) != 0) | (np.diff(pair, prepend=-1) != 0)
        start = np.flatnonzero(begins)
        return DifferingPairs(
            world[start],
            pair[start],
            np.add.reduceat(self.fewer[order], start),
            np.add.reduceat(self.more[order], start),
            np.minimum.reduceat(self.first_frame[order], start),
        )


class DifferingTouches:
    """Differing touches of worlds, block by block.

    A touch is a pair of shapes in a frame. Of a template, the common touches are those of more than
    half of its worlds that are recorded in the frame. A touch differs in a world if it is common
    and the world lacks it, or the reverse; a world that is not recorded in a frame has none there.

    Args:
        world_template: int[W], the template of each world. shape_count: of the set.
        worlds: int[W], their numbers in `episodes`; None is all in order.
    """

    def __init__(
        self,
        world_template: np.ndarray,
        shape_count: int,
        episodes: Episodes | None = None,
        worlds: np.ndarray | None = None,
    ) -> None:
        count = len(world_template)
        self.world_count = count
        _, self._template = np.unique(world_template, return_inverse=True)
        self._numbers = np.arange(count) if worlds is None else np.asarray(worlds)
        self._members = [
            np.flatnonzero(self._template == template)
            for template in range(int(self._template.max(initial=-1)) + 1)
        ]
        self._place = np.zeros(count, np.int64)  # of each world in its template
        for members in self._members:
            self._place[members] = np.arange(len(members))
        self._shape_count = shape_count
        self._episodes = episodes
        self._waiting = np.zeros((2, 0), np.int64)  # cell and pair, of a frame without its end
        self._sums = DifferingPairs.none()

    def add(self, touches: Touches, end_cell: int) -> None:
        """Adds the touches of the cells before `end_cell` that were not added yet."""
        if len(self._members) == self.world_count:
            return  # each world is the only one of its template
        shapes = (touches.shape0.astype(np.int64), touches.shape1.astype(np.int64))
        pair = np.minimum(*shapes) * self._shape_count + np.maximum(*shapes)
        rows = np.concatenate([self._waiting, np.stack([touches.cell, pair])], axis=1)
        is_whole = rows[0] < end_cell // self.world_count * self.world_count
        self._waiting = rows[:, ~is_whole]
        self._add_frames(*rows[:, is_whole])

    def pairs(self) -> DifferingPairs:
        """The sums of all frames, where each cell was added."""
        return self._sums

    def counts(self) -> np.ndarray:
        """int64[W]: number of differing touches of each world."""
        counts = np.zeros(self.world_count, np.int64)
        np.add.at(counts, self._sums.world, self._sums.fewer + self._sums.more)
        return counts

    def templates(self) -> list[np.ndarray]:
        """Rows of the worlds of each template."""
        return self._members

    def listed(self, world: int) -> list[dict[str, Any]]:
        """The pairs of a world with the most differing touches, as rows of shapes, frames `fewer`
        and `more`, and `first_frame`."""
        sums = self._sums
        rows = np.arange(*np.searchsorted(sums.world, [world, world + 1]))
        rows = rows[np.lexsort((rows, -(sums.fewer + sums.more)[rows]))][:LISTED_PAIRS]
        return [
            {
                "shape0": int(sums.pair[row]) // self._shape_count,
                "shape1": int(sums.pair[row]) % self._shape_count,
                "fewer": int(sums.fewer[row]),
                "more": int(sums.more[row]),
                "first_frame": int(sums.first_frame[row]),
            }
            for row in rows
        ]

    def _is_recorded(self, frame: np.ndarray, world: np.ndarray) -> np.ndarray:
        """bool, of the broadcast shape of both: whether a world is recorded in a frame."""
        frame, world = np.broadcast_arrays(frame, world)
        if self._episodes is None:
            return np.ones(frame.shape, bool)
        row = self._episodes.row(self._numbers[world].ravel(), frame.ravel())
        return (row >= 0).reshape(frame.shape)

    def _add_frames(self, cell: np.ndarray, pair: np.ndarray) -> None:
        """Adds the touches of whole frames."""
        frame, world = np.divmod(cell, self.world_count)
        kept = self._is_recorded(frame, world)
        pairs, column = np.unique(pair[kept], return_inverse=True)
        if not len(pairs):
            return
        first = int(frame[0])
        # One key of frame, template, pair and world: sorted, and each touch once.
        key = (frame[kept] - first) * len(self._members) + self._template[world[kept]]
        key = np.unique((key * len(pairs) + column) * self.world_count + world[kept])
        touch, world = np.divmod(key, self.world_count)
        start = np.flatnonzero(np.diff(touch, prepend=-1))
        counts = np.diff(start, append=len(touch))
        row, column = np.divmod(touch[start], len(pairs))
        frame, template = np.divmod(row, len(self._members))
        pair = pairs[column]
        frame += first
        parts = []
        for number, members in enumerate(self._members):
            own = np.flatnonzero(template == number)
            step = max(1, CELLS_AT_ONCE // len(members))
            for part in np.split(own, range(step, len(own), step)):
                where = (start[part], counts[part], frame[part], pair[part])
                parts.append(self._differing(members, world, *where))
        self._sums = DifferingPairs.chained(self._sums, *parts).summed()

    def _differing(
        self,
        members: np.ndarray,
        world: np.ndarray,
        start: np.ndarray,
        counts: np.ndarray,
        frame: np.ndarray,
        pair: np.ndarray,
    ) -> DifferingPairs:
        """Sums of some touches of one template: of each its frame, its pair, and its range of
        `world`. members: int[n], the worlds of the template."""
        row = np.repeat(np.arange(len(start)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        touches = np.zeros((len(start), len(members)), bool)
        touches[row, self._place[world[start[row] + within]]] = True
        recorded = self._is_recorded(frame[:, None], members)
        is_common = 2 * counts > np.count_nonzero(recorded, axis=1)
        row, place = np.nonzero((touches != is_common[:, None]) & recorded)
        is_fewer = is_common[row].astype(np.int64)
        return DifferingPairs(
            members[place], pair[row], is_fewer, 1 - is_fewer, frame[row]
        ).summed()
