"""Durations of touching and of the pauses between, of labels over frames."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.touch_intervals import Frames
from collidecli.verbs.label.dense import DenseArray

_SECONDS = DenseArray(np.dtype(np.float64), "s", nan_is_none=True)
_FLAG = DenseArray(np.dtype(bool))
TIMES = {
    "begins": _FLAG,
    "ends": _FLAG,
    "contact_time": _SECONDS,
    "air_time": _SECONDS,
    "last_contact_time": _SECONDS,
    "last_air_time": _SECONDS,
}
"""The arrays of `PhaseTimes.of`."""


class PhaseTimes:
    """Times of the phases of labels [F, W, K], which blocks of consecutive frames continue.

    A phase is a run of frames with or without a label. It begins at the time of its first frame,
    which is the end of the phase before it, or at the first frame of a demonstration.
    """

    def __init__(self, frames: Frames, recorded: np.ndarray, present: np.ndarray) -> None:
        """recorded: bool[F, W]. present: bool[W, K]."""
        self._time = frames.time
        self._recorded = recorded
        self._present = present
        self._starts = np.zeros(recorded.shape, bool)
        self._starts[:1] = True
        if (episodes := frames.episodes) is not None:
            begins = episodes.first_frame < len(recorded)
            self._starts[episodes.first_frame[begins], episodes.world[begins]] = True
        self._touch = np.zeros(present.shape, bool)
        self._begin = np.zeros(present.shape, np.int64)
        self._last = {kind: np.full(present.shape, np.nan) for kind in (True, False)}

    def of(self, first: int, touch: np.ndarray) -> dict[str, np.ndarray]:
        """TIMES of the next frames, from index `first`, with labels bool[f, W, K].

        begins, ends: a label begins, or has ended, in the frame. contact_time, air_time: since the
        begin of the phase, 0 in the other one [s]. last_contact_time, last_air_time: of the last
        phase that has ended, NaN before the first [s]. NaN and false where nothing is recorded.
        """
        end = first + len(touch)
        frame = np.arange(first, end)[:, None, None]
        start = np.broadcast_to(self._starts[first:end, :, None], touch.shape)
        before = np.concatenate([self._touch[None], touch])[:-1]
        changes = (touch != before) & ~start
        begin = np.where(changes | start, frame, np.int64(-1))
        begin[:1] = np.maximum(begin[:1], self._begin)
        begin = np.maximum.accumulate(begin, axis=0)
        time = self._time[first:end, None, None]
        passed = time - self._time[begin]
        # what a phase lasted, in the frame after its last one
        begin_before = np.concatenate([self._begin[None], begin])[:-1]
        lasted = time - self._time[begin_before]
        is_known = (self._recorded[first:end, :, None] & self._present)[: len(touch)]
        found = {"begins": changes & touch & is_known, "ends": changes & ~touch & is_known}
        found["contact_time"] = np.where(touch, passed, 0.0)
        found["air_time"] = np.where(touch, 0.0, passed)
        for name, kind in (("last_contact_time", True), ("last_air_time", False)):
            ended = changes & (before == kind)
            found[name] = self._filled(np.where(ended, lasted, np.nan), ended | start, kind)
        for name, array in TIMES.items():
            if array.nan_is_none:
                found[name] = np.where(is_known, found[name], np.nan)
        if len(touch):
            self._touch = touch[-1].copy()
            self._begin = begin[-1].copy()
        return found

    def _filled(self, values: np.ndarray, is_set: np.ndarray, kind: bool) -> np.ndarray:
        """Values that hold until the next that is set; the last ones are carried."""
        if not len(values):
            return values
        row = np.where(is_set, np.arange(1, len(values) + 1)[:, None, None], 0)
        row = np.maximum.accumulate(row, axis=0)
        held = np.concatenate([self._last[kind][None], values])
        filled = np.take_along_axis(held, row, axis=0)
        self._last[kind] = filled[-1].copy()
        return filled
