"""Touches of each world that most worlds of its template lack, and those of most that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.summary import Touches
from collidecli.analysis.touch_graph import Rows
from collidecli.scene.distinct_values import distinct
from collidecli.scene.episodes import Episodes

LISTED_PAIRS = 3
"""Pairs with the most differing touches that are listed of a world."""
CELLS_AT_ONCE = 1 << 20
"""Entries of an array of touches by worlds."""
LEAST_ROWS = 1 << 16
"""Rows that are kept before they are summed."""


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


@dataclass(frozen=True)
class SharedNames:
    """Names that shapes of several templates share.

    row: int64[S], the first shape with the name of each. text: of each shape, the name.
    of_template: bool[T, S], whether a template has the name of which a shape is the first.
    """

    row: np.ndarray
    text: tuple[str, ...]
    of_template: np.ndarray

    @classmethod
    def of(cls, text: Sequence[str], template: np.ndarray, count: int) -> SharedNames:
        """template: int[S] of each shape, -1 in every world. count: of templates."""
        first: dict[str, int] = {}
        row = np.array([first.setdefault(name, at) for at, name in enumerate(text)], np.int64)
        has = np.zeros((count, len(text)), bool)
        for at, number in enumerate(template.tolist()):
            has[number if number >= 0 else slice(None), row[at]] = True
        return cls(row.reshape(len(text)), tuple(text), has)


class DifferingTouches:
    """Differing touches of worlds, block by block.

    A touch is a pair of shapes in a frame. Of a template, the common touches are those of more than
    half of its worlds that are recorded in the frame. A touch differs in a world if it is common
    and the world lacks it, or the reverse; a world that is not recorded in a frame has none there.

    Args:
        world_template: int[W], the template of each world. shape_count: of the set.
        worlds: int[W], their numbers in `episodes`; None is all in order.
        shared: names of the shapes, by which the worlds of all templates are compared together;
            None compares those of each template.
    """

    def __init__(
        self,
        world_template: np.ndarray,
        shape_count: int,
        episodes: Episodes | None = None,
        worlds: np.ndarray | None = None,
        shared: SharedNames | None = None,
    ) -> None:
        count = len(world_template)
        self.world_count = count
        self._shared = shared
        self._own_template = world_template
        compared = world_template if shared is None else np.zeros(count, np.int64)
        _, self._template = np.unique(compared, return_inverse=True)
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
        self._parts = [DifferingPairs.none()]  # the sums, and those that are not added yet

    def add(self, touches: Touches, end_cell: int) -> None:
        """Adds the touches of the cells before `end_cell` that were not added yet."""
        if len(self._members) == self.world_count:
            return  # each world is the only one of its template
        shapes = (touches.shape0.astype(np.int64), touches.shape1.astype(np.int64))
        if self._shared is not None:
            shapes = tuple(self._shared.row[side] for side in shapes)
        pair = np.minimum(*shapes) * self._shape_count + np.maximum(*shapes)
        rows = np.concatenate([self._waiting, np.stack([touches.cell, pair])], axis=1)
        is_whole = rows[0] < end_cell // self.world_count * self.world_count
        self._waiting = rows[:, ~is_whole]
        self._add_frames(*rows[:, is_whole])

    def pairs(self) -> DifferingPairs:
        """The sums of all frames, where each cell was added."""
        if len(self._parts) > 1:
            self._parts = [DifferingPairs.chained(*self._parts).summed()]
        return self._parts[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the shapes, where worlds of all templates are compared; else none."""
        return () if self._shared is None else self._shared.text

    def counts(self) -> np.ndarray:
        """int64[W]: number of differing touches of each world."""
        counts = np.zeros(self.world_count, np.int64)
        sums = self.pairs()
        np.add.at(counts, sums.world, sums.fewer + sums.more)
        return counts

    def templates(self) -> list[np.ndarray]:
        """Rows of the worlds of each template."""
        return self._members

    def listed(self, world: int) -> list[dict[str, Any]]:
        """The pairs of a world with the most differing touches, as rows of shapes, frames `fewer`
        and `more`, and `first_frame`."""
        sums = self.pairs()
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
        # Sorted, not by np.unique, whose hashes of such keys take ten times as long.
        key = np.sort((key * len(pairs) + column) * self.world_count + world[kept])
        key = key[np.diff(key, prepend=-1) != 0]
        touch, world = np.divmod(key, self.world_count)
        start = np.flatnonzero(np.diff(touch, prepend=-1))
        counts = np.diff(start, append=len(touch))
        row, column = np.divmod(touch[start], len(pairs))
        frame, template = np.divmod(row, len(self._members))
        frame += first
        is_common = 2 * counts > self._recorded_counts(frame, template, pairs[column])
        is_more = np.repeat(~is_common, counts)
        of_row = np.repeat(np.arange(len(start)), counts)[is_more]
        self._parts.append(_more(world[is_more], column[of_row], frame[of_row], pairs))
        for number, members in enumerate(self._members):
            # By pair: the frames of a pair follow each other.
            own = np.flatnonzero(is_common & (template == number))
            own = own[np.argsort(column[own], kind="stable")]
            step = max(1, CELLS_AT_ONCE // len(members))
            for begin in range(0, len(own), step):
                part = own[begin : begin + step]
                lacks = self._lacks(members, world, start[part], counts[part], frame[part])
                if self._shared is not None:
                    lacks &= self._has(pairs[column[part]])[:, self._own_template[members]]
                self._parts.append(_fewer(lacks, members, pairs[column[part]], frame[part]))
        if sum(map(len, self._parts[1:])) > max(LEAST_ROWS, len(self._parts[0])):
            self.pairs()

    def _has(self, pair: np.ndarray) -> np.ndarray:
        """bool[n, templates]: whether a template has both shapes of each pair of names."""
        assert self._shared is not None
        has = self._shared.of_template
        return (has[:, pair // self._shape_count] & has[:, pair % self._shape_count]).T

    def _recorded_counts(
        self, frame: np.ndarray, template: np.ndarray, pair: np.ndarray
    ) -> np.ndarray:
        """int64[n]: number of worlds of each template that are recorded in each frame; of all
        templates those that have the pair of names."""
        if self._shared is not None:
            frames, row = np.unique(frame, return_inverse=True)
            number = np.zeros((len(frames), len(self._shared.of_template)), np.int64)
            recorded = self._is_recorded(frames[:, None], np.arange(self.world_count))
            np.add.at(number.T, self._own_template, recorded.T.astype(np.int64))
            return (number[row] * self._has(pair)).sum(axis=1)
        if self._episodes is None:
            return np.array([len(members) for members in self._members])[template]
        frames, row = np.unique(frame, return_inverse=True)
        counts = [
            np.count_nonzero(self._is_recorded(frames[:, None], members), axis=1)
            for members in self._members
        ]
        return np.array(counts)[template, row]

    def _lacks(
        self,
        members: np.ndarray,
        world: np.ndarray,
        start: np.ndarray,
        counts: np.ndarray,
        frame: np.ndarray,
    ) -> np.ndarray:
        """bool[touches, members]: whether a recorded world lacks a touch of its template. start,
        counts: the range of `world` of the worlds that have each touch."""
        row = np.repeat(np.arange(len(start)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        lacks = np.ones((len(start), len(members)), bool)
        lacks[row, self._place[world[start[row] + within]]] = False
        if self._episodes is not None:
            lacks &= self._is_recorded(frame[:, None], members)
        return lacks


def shared_touches(
    world_template: np.ndarray,
    names: Sequence[str],
    template: np.ndarray,
    episodes: Episodes | None = None,
    worlds: np.ndarray | None = None,
) -> DifferingTouches | None:
    """Differing touches of the worlds of all templates by names that shapes share; None for one
    template. names, template: of each shape. See `DifferingTouches`."""
    if len(distinct(world_template)) < 2:
        return None
    count = int(max(world_template.max(), template.max(initial=0))) + 1
    shared = SharedNames.of(names, template, count)
    return DifferingTouches(world_template, len(names), episodes, worlds, shared)


def _more(
    world: np.ndarray, column: np.ndarray, frame: np.ndarray, pairs: np.ndarray
) -> DifferingPairs:
    """Sums of touches that are not common, in the order of frames. column: of `pairs`."""
    key = world * len(pairs) + column
    key, at, counts = np.unique(key, return_index=True, return_counts=True)
    world, column = np.divmod(key, len(pairs))
    return DifferingPairs(world, pairs[column], np.zeros_like(counts), counts, frame[at])


def _fewer(
    lacks: np.ndarray, members: np.ndarray, pair: np.ndarray, frame: np.ndarray
) -> DifferingPairs:
    """Sums of common touches that worlds lack, bool[touches, members], which are in the order of
    pair and frame."""
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    counts = np.add.reduceat(lacks, start, axis=0, dtype=np.int64)
    frames = np.where(lacks, frame[:, None], np.iinfo(np.int64).max)
    first = np.minimum.reduceat(frames, start, axis=0)
    row, place = np.nonzero(counts)
    fewer = counts[row, place]
    return DifferingPairs(
        members[place], pair[start][row], fewer, np.zeros_like(fewer), first[row, place]
    )
