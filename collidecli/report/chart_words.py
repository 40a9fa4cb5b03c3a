"""The time axis of charts, and the texts that are shown on hover."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from collidecli.report.words import ResultDict


def time_axis(series: ResultDict) -> tuple[list[float], str]:
    """Times if they increase strictly, else frames; and the label of the axis."""
    times = series["time"]
    if len(times) > 1 and all(a < b for a, b in pairwise(times)):
        return times, "time [s]"
    return [float(frame) for frame in series["frame"]], "frame"


def edges_of(times: Sequence[float]) -> list[float]:
    """The ends of the intervals around the points of a line, one more than points."""
    if len(times) < 2:
        return [time + side for time in times for side in (-0.5, 0.5)]
    middle = [(a + b) / 2.0 for a, b in pairwise(times)]
    return [times[0], *middle, times[-1]]


def moment(series: ResultDict, frame_count: int, first: int, last: int | None = None) -> str:
    """Frames and time of the bins from `first` to `last` of a series, as text. frame_count: of all bins."""
    starts = [*series["frame"], frame_count]
    low, high = starts[first], starts[(first if last is None else last) + 1] - 1
    text = f"frame {low}" if low == high else f"frames {low} to {high}"
    return f"{text}, {series['time'][first]:.4g} s"
