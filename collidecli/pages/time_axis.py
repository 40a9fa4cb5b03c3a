"""The time axis of charts, and the texts that are shown on hover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from collidecli.pages.quantities import ResultDict, moment, short_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from collidecli.pages.canvas import Canvas


def time_axis(series: ResultDict) -> tuple[list[float], str]:
    """Times if they increase strictly, else frames; and the label of the axis."""
    times = series["time"]
    if len(times) > 1 and all(a < b for a, b in pairwise(times)):
        return times, "time [s]"
    return [float(frame) for frame in series["frame"]], "frame"


def intervals_around(series: ResultDict) -> Iterator[tuple[float, float]]:
    """The intervals around the points of a line over time."""
    times = time_axis(series)[0]
    if len(times) < 2:
        return pairwise([time + side for time in times for side in (-0.5, 0.5)])
    return pairwise([times[0], *((a + b) / 2.0 for a, b in pairwise(times)), times[-1]])


def set_time_axes(axes: Axes, canvas: Canvas, series: ResultDict, from_zero: bool = True) -> None:
    """Sets the axes of lines over time: range, label and number of labels. from_zero: whether the
    vertical one is."""
    times, label = time_axis(series)
    if len(times):
        pad = 0.5 if times[0] == times[-1] else 0.0
        axes.set_xlim(times[0] - pad, times[-1] + pad)
    axes.set_xlabel(label, fontsize=canvas.font - 1.0)
    axes.locator_params("y", nbins=5)
    axes.locator_params("x", nbins=5 if canvas.narrow else 9)
    format_counts(axes)
    if from_zero:
        axes.set_ylim(bottom=0)


def hover_bins(
    axes: Axes, canvas: Canvas, series: ResultDict, frames: int, texts: Iterable[str]
) -> None:
    """Adds a text for each bin of lines over time, after its frames and time; none for ""."""
    for n, (x, text) in enumerate(zip(intervals_around(series), texts, strict=True)):
        if text:
            canvas.hover(axes, x, axes.get_ylim(), f"{moment(series, frames, n)}: {text}")


def format_counts(axes: Axes) -> None:
    """Short numbers at the vertical axis."""
    from matplotlib.ticker import FuncFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
