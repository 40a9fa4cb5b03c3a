"""Values and labels of pairs, read frame by frame from the touches of a contact set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collidecli.analysis.labelled_runs import LabelRule, Runs, RunTracker
from collidecli.analysis.touch_graph import Rows
from collidecli.analysis.touch_intervals import Intervals


@dataclass(frozen=True)
class PairValues(Rows):
    """A value of each pair in each frame with a contact. key, frame: int64[n]. value: float32[n],
    the least of the contacts."""

    DTYPES: ClassVar = {"value": np.float32}

    key: np.ndarray
    frame: np.ndarray
    value: np.ndarray


class ValueReader:
    """The least distances of pairs; those of the frames that are not taken yet are in memory.

    touches: lower bounds of the frames of later touches, and touches, as of
    `EventStream.frame_touches`. following: lower bound of the frames that are not read.
    """

    def __init__(self, touches: Iterator[tuple[int, Intervals]], frame_count: int) -> None:
        self._touches = touches
        self._frame_count = frame_count
        self._parts: list[PairValues] = []
        self.following = 0

    def read(self) -> Intervals | None:
        """The touches of the next block, None at the end. Raises InputError for a damaged file."""
        following, touches = next(self._touches, (self._frame_count, None))
        self.following = following
        if touches is not None:
            self._parts.append(PairValues(touches.key, touches.first, touches.distance))
        return touches

    def take(self, before: int) -> PairValues:
        """The values of the frames before a frame that are not taken yet."""
        while self.following < before:
            self.read()
        values = PairValues.chained(PairValues.none(), *self._parts)
        is_taken = values.frame < before
        self._parts = [values.take(~is_taken)]
        return values.take(is_taken)


class LabelReader:
    """The labels of pairs; reads the blocks of `values` that they require.

    A label is known `min_frames` frames later at most, so that as many more are in memory.
    always: bool of keys, whether the pair touches at any distance. run_count: of the runs that
    ended.
    """

    def __init__(
        self, values: ValueReader, rule: LabelRule, always: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self._values = values
        self._rule = rule
        self._always = always
        self._tracker = RunTracker(rule)
        self._ended = Runs.none()
        self._taken = 0
        self.run_count = 0

    def take(self, before: int) -> Runs:
        """The parts of runs in the frames before a frame that are not taken yet."""
        while self._decided < before and self._read():
            pass
        open_runs = self._tracker.open
        known = Runs.chained(
            self._ended, open_runs.take(open_runs.frame_count >= self._rule.min_frames)
        )
        first = np.maximum(known.first, self._taken)
        last = np.minimum(known.last, before - 1)
        self._taken = before
        self._ended = self._ended.take(self._ended.last >= before)
        within = first <= last
        return Runs(known.key, first, last, known.end).take(within)

    def finish(self) -> None:
        """Reads the rest."""
        while self._read():
            pass

    @property
    def _decided(self) -> int:
        """Lower bound of the frames whose labels are not known."""
        runs = self._tracker.open
        is_label = runs.frame_count >= self._rule.min_frames
        unknown = np.where(is_label, runs.last + 1, runs.first)
        return int(unknown.min(initial=self._values.following))

    def _read(self) -> bool:
        """Reads a block; false after the last one."""
        touches = self._values.read()
        found = Intervals.none() if touches is None else touches
        distance = np.where(self._always(found.key), np.float32(-np.inf), found.distance)
        ended = self._tracker.add(
            found.key, found.first, distance, found.end, self._values.following
        )
        self.run_count += len(ended)
        self._ended = Runs.chained(self._ended, ended)
        return touches is not None
