"""Chart of least distances over time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from collidecli.escaping import printable_values
from collidecli.report.chart_kinds import FILE_SCALE
from collidecli.report.chart_style import THEMES, Canvas, drawing, file_bytes
from collidecli.report.chart_words import edges_of, moment, time_axis
from collidecli.report.charts import along_time, length_unit
from collidecli.report.short_names import pair_labels, shortened
from collidecli.report.words import ResultDict, length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES = [(colour, line) for line in ("-", "--") for colour in ("accent", "warm", "third")]
"""Colours by role and styles of the lines; as many lines are drawn."""


def clearance_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Least distances of the first listed items of collide.clearance/1 over time."""
    series, most = result["series"], 26 if canvas.narrow else 44
    figure, axes = canvas.axes(300)
    listed = result["listed"][: len(STYLES)]
    times, label = time_axis(series)
    values = np.array([[float(value) for value in row] for row in series["least"][: len(listed)]])
    values = values.reshape(len(listed), len(times))
    finite = np.abs(values[np.isfinite(values)])
    factor, unit = length_unit(float(finite.max(initial=0.0)))
    pairs = pair_labels(listed, most)
    for one, pair, row, (colour, line) in zip(listed, pairs, values, STYLES, strict=False):
        name = shortened(one["body"], most) if "body" in one else pair
        shown = np.where(np.isfinite(row), row * factor, np.nan)
        axes.plot(times, shown, color=canvas.colours[colour], linestyle=line, linewidth=1.6, label=name)
    axes.axhline(0.0, color=canvas.colours["muted"], linewidth=0.8)
    along_time(axes, times, label, canvas)
    axes.set_ylabel(f"least distance [{unit}]", fontsize=canvas.font - 1.0)
    if listed:
        canvas.legend(axes, 1 if canvas.narrow else 2)
    for n, x in enumerate(pairwise(edges_of(times))):
        if np.isfinite(least := values[:, n].min(initial=np.inf)):
            canvas.hover(axes, x, axes.get_ylim(), f"{moment(series, result['frames'], n)}: {length(float(least))}")
    return figure


def measured_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """The chart of the distances in collide.report/1."""
    return clearance_chart(result["clearance"], canvas)


def clearance_chart_file(result: ResultDict, form: str, width: int) -> bytes:
    """The chart as a "png" or "svg" file."""
    with drawing():
        canvas = Canvas(width, THEMES["light"])
        figure = clearance_chart(printable_values(result), canvas)
        return file_bytes(figure, form, canvas.colours["paper"], FILE_SCALE if form == "png" else 1.0, canvas.hovers)
