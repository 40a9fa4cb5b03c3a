"""Values and labels of pairs, read frame by frame from the touches of a contact set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from collidecli.analysis.labelled_runs import LabelRule, Runs, RunTracker
from collidecli.analysis.touch_graph import Rows
from collidecli.analysis.touch_intervals import Intervals


@dataclass(frozen=True)
class FrameRows(Rows):
    """Rows of pairs in frames. key, frame: int64[n]."""

    key: np.ndarray
    frame: np.ndarray


@dataclass(frozen=True)
class PairValues(FrameRows):
    """A value of each pair in each frame with a contact. value: float32[n], the least of the
    contacts."""

    DTYPES: ClassVar = {"value": np.float32}

    value: np.ndarray


Kept = TypeVar("Kept", bound=FrameRows)


class FrameReader(ABC, Generic[Kept]):
    """Rows of pairs, read block by block; those of the frames that are not taken yet are in memory.

    kind: of the rows. frame_count: of all. following: lower bound of the frames that are not read.
    """

    def __init__(self, kind: type[Kept], frame_count: int) -> None:
        self._kind = kind
        self._parts: list[Kept] = []
        self.frame_count = frame_count
        self.following = 0

    @abstractmethod
    def read(self) -> object:
        """Reads the next block with `add`. Raises InputError for a damaged file."""

    def add(self, following: int, rows: Kept | None) -> None:
        """Keeps the rows of a block. following: lower bound of the frames of later blocks."""
        self.following = following
        if rows is not None:
            self._parts.append(rows)

    def take(self, before: int) -> Kept:
        """The rows of the frames before a frame that are not taken yet."""
        while self.following < before:
            self.read()
        rows = self._kind.chained(self._kind.none(), *self._parts)
        is_taken = rows.frame < before
        self._parts = [rows.take(~is_taken)]
        return rows.take(is_taken)


class ValueReader(FrameReader[PairValues]):
    """The least distances of pairs.

    touches: lower bounds of the frames of later touches, and touches, as of
    `EventStream.frame_touches`.
    """

    def __init__(self, touches: Iterator[tuple[int, Intervals]], frame_count: int) -> None:
        super().__init__(PairValues, frame_count)
        self._touches = touches

    def read(self) -> Intervals | None:
        """The touches of the next block, None at the end. Raises InputError for a damaged file."""
        following, touches = next(self._touches, (self.frame_count, None))
        rows = None
        if touches is not None:
            rows = PairValues(touches.key, touches.first, touches.distance)
        self.add(following, rows)
        return touches


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
