"""Chart of an audit: the greatest depth over time, with the limits and the unusable frames."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from collidecli.report.chart_kinds import FILE_SCALE, FILE_WIDTH
from collidecli.report.chart_style import THEMES, Canvas, drawing, file_bytes
from collidecli.report.chart_words import edges_of, time_axis
from collidecli.report.charts import along_time, length_unit
from collidecli.report.words import ResultDict, length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = (
    ("depth", "all pairs", "warm", "depth"),
    ("self_depth", "one robot", "accent", "self"),
    ("ground_depth", "ground", "third", "ground"),
)
"""Name in the series, label, role of the colour and check of each line."""


def audit_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Greatest depth over time of all pairs, of one robot's and of the ground's; limits are dashed, unusable frames
    shaded.
    """
    figure, axes = canvas.axes(220 if canvas.narrow else 260)
    series, colours = result["series"], canvas.colours
    times, label = time_axis(series)
    limits = {one["name"]: one["limit"] for one in result["checks"]}
    deepest = max([*series["depth"], *(limit for limit in limits.values() if limit is not None)], default=0.0)
    factor, unit = length_unit(deepest)
    for (left, right), is_unusable in zip(pairwise(edges_of(times)), series["unusable"], strict=True):
        if is_unusable:
            axes.axvspan(left, right, color=colours["muted"], alpha=0.14, linewidth=0)
    for name, words, role, check in LINES:
        depth = np.array(series[name], float)
        if name == "depth" or depth.any():
            axes.plot(
                times, depth * factor, color=colours[role], linewidth=2.6 if name == "depth" else 1.3, label=words
            )
            if limits.get(check) is not None:
                axes.axhline(limits[check] * factor, color=colours[role], linewidth=1.0, linestyle=(0, (4, 3)))
    along_time(axes, times, label, canvas)
    axes.set_ylim(bottom=0)
    canvas.legend(axes, 3)
    axes.set_ylabel(f"greatest depth [{unit}]", fontsize=canvas.font - 1.0)
    for n, x in enumerate(pairwise(edges_of(times))):
        texts = [f"{words} {length(series[name][n])}" for name, words, _, _ in LINES if series[name][n]]
        canvas.hover(axes, x, axes.get_ylim(), f"frame {series['frame'][n]}: {', '.join(texts) or 'no penetration'}")
    return figure


def audited_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """The chart of the audit in collide.report/1."""
    return audit_chart(result["audit"], canvas)


def audit_chart_file(result: ResultDict, form: str) -> bytes:
    """The chart as a "png" or "svg" file. Raises InputError without matplotlib."""
    with drawing():
        canvas = Canvas(FILE_WIDTH, THEMES["light"])
        figure = audit_chart(result, canvas)
        return file_bytes(figure, form, canvas.colours["paper"], FILE_SCALE if form == "png" else 1.0, canvas.hovers)
