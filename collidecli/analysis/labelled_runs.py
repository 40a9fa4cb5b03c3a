"""Runs of frames in which a pair is labelled as touching: hysteresis of its distance, and a least
length of runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.analysis.touch_graph import Rows
from collidecli.analysis.touch_intervals import NO_END
from collidecli.errors import InputError


@dataclass(frozen=True)
class LabelRule:
    """When a pair is labelled. enter: a run begins at a distance of at most this [m]. leave: it
    lasts while the distance is at most this [m], at least `enter`. min_frames: least number of
    frames of a run, and of a pause.
    """

    enter: float = 0.0
    leave: float = 0.0
    min_frames: int = 1


def beyond_gap(names: str, limit: float, leave: float, enter: float, fix: str) -> InputError:
    """The error of a rule that needs contacts beyond those that are reported: of the option that
    gives its distance, which is --enter where --leave is not given.

    names: whose contacts. limit: up to which they are reported [m]. fix: the run that reports them.
    """
    option = "--leave" if leave > enter else "--enter"
    return InputError(
        f"contacts of {names} are reported only up to {limit:.6g} m, their gap",
        f"{option} {leave:g}",
        f"{fix}, or give {option} {limit:.6g} at most",
    )


def gap_option(leave: float, gap_rule: str) -> str:
    """The option of a run that reports contacts up to a distance [m], by the rule of its gaps."""
    if gap_rule != "sum":
        return f"--gap {leave:g}"
    return f"--gap {leave / 2.0:g}, of which a pair has the sum of two"


@dataclass(frozen=True)
class Runs(Rows):
    """Runs of labelled frames, ordered by key, then first frame; int64[n] each.

    key: of the pair. first, last: frames. end: the frame after the last of the episode.
    """

    key: np.ndarray
    first: np.ndarray
    last: np.ndarray
    end: np.ndarray

    @property
    def frame_count(self) -> np.ndarray:
        """int64[n]: frames of each run."""
        return self.last - self.first + 1

    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[m] each: key and frame of every frame of every run."""
        lengths = self.frame_count
        offset = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(self.key, lengths), np.repeat(self.first, lengths) + offset


def labelled_runs(
    key: np.ndarray,
    frame: np.ndarray,
    distance: np.ndarray,
    rule: LabelRule,
    end: np.ndarray | None = None,
) -> Runs:
    """The runs of each key, from its least distance in each frame with a contact.

    A run lasts from a distance of at most `enter` to the last consecutive frame with one of at most
    `leave`. Then pauses of less than `min_frames` frames between two runs of an episode are filled,
    and then runs of less than `min_frames` frames are left out; so every run, and every pause
    between two runs, has at least `min_frames`.

    Args:
        key, frame: int64[n], ordered by key, then frame, each at most once.
        distance: float32[n] [m]; compared in float32, so that a distance written as 0.001 equals
            the limit 0.001.
        end: int64[n], the frame after the last of the episode; no run crosses it. None: no
            episodes.
    """
    end = np.full(len(key), NO_END) if end is None else end
    return RunTracker(rule).add(key, frame, distance, end, NO_END)


class RunTracker:
    """Runs of labelled frames, block by block in the order of frames; see `labelled_runs`.

    open: the runs that a later frame may continue, at most one for each key; a run that is shorter
    than `min_frames` is no label yet.
    """

    def __init__(self, rule: LabelRule) -> None:
        self._rule = rule
        self.open = Runs.none()

    def add(
        self,
        key: np.ndarray,
        frame: np.ndarray,
        distance: np.ndarray,
        end: np.ndarray,
        following: int,
    ) -> Runs:
        """The runs that ended. following: lower bound of the frames of later blocks; others as of
        `labelled_runs`."""
        least = self._rule.min_frames
        merged = self._merged(self._entered(key, frame, distance, end))
        goes_on = (following - merged.last - 1 < least) & (following < merged.end)
        self.open = merged.take(goes_on)
        return merged.take(~goes_on & (merged.frame_count >= least))

    def _entered(
        self, key: np.ndarray, frame: np.ndarray, distance: np.ndarray, end: np.ndarray
    ) -> Runs:
        """The runs of the block, pauses not filled. An open run is in the block with its last
        frame, from which it may go on beyond `enter`."""
        before = self.open
        near = np.flatnonzero(distance <= np.float32(self._rule.leave))
        key = np.concatenate([before.key, key[near]])
        order = np.argsort(key, kind="stable")
        key = key[order]
        frame = np.concatenate([before.last, frame[near]])[order]
        within = np.full(len(before), -np.inf, np.float32)
        distance = np.concatenate([within, distance[near]])[order]
        end = np.concatenate([before.end, end[near]])[order]
        begins = _breaks(key, frame[1:] != frame[:-1] + 1, frame, end)
        start = np.flatnonzero(begins)
        entered = np.flatnonzero(distance <= np.float32(self._rule.enter))
        number, at = np.unique(np.cumsum(begins)[entered] - 1, return_index=True)
        first = entered[at]
        last = np.append(start[1:], len(key))[number] - 1
        return Runs(key[first], frame[first], frame[last], end[first])

    def _merged(self, runs: Runs) -> Runs:
        """The open runs and those of a block, merged over pauses of less than `min_frames`."""
        runs = Runs.chained(self.open, runs)
        runs = runs.take(np.argsort(runs.key, kind="stable"))
        if not len(runs):
            return runs
        apart = runs.first[1:] - runs.last[:-1] - 1 >= self._rule.min_frames
        start = np.flatnonzero(_breaks(runs.key, apart, runs.first, runs.end))
        last = runs.last[np.append(start[1:], len(runs)) - 1]
        return Runs(runs.key[start], runs.first[start], last, runs.end[start])


def _breaks(key: np.ndarray, apart: np.ndarray, first: np.ndarray, end: np.ndarray) -> np.ndarray:
    """bool[n]: whether a row begins a new run: of another key or episode, or apart from the row
    before."""
    if not len(key):
        return np.zeros(0, bool)
    return np.concatenate([[True], apart | (key[1:] != key[:-1]) | (first[1:] >= end[:-1])])
