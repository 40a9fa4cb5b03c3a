"""Chart of least distances over time."""

from __future__ import annotations

import numpy as np

from collidecli.escaping import printable_values
from collidecli.report.chart_kinds import FILE_SCALE
from collidecli.report.chart_style import THEMES, Canvas, drawing, file_bytes
from collidecli.report.chart_words import time_axis
from collidecli.report.charts import along_time, length_unit
from collidecli.report.short_names import pair_labels, shortened
from collidecli.report.words import ResultDict

STYLES = [(colour, line) for line in ("-", "--") for colour in ("accent", "warm", "third")]
"""Colours by role and styles of the lines; as many lines are drawn."""


def clearance_chart(result: ResultDict, form: str, width: int) -> bytes:
    """A "png" or "svg" file with the least distances of the first listed items of collide.clearance/1 over time."""
    result = printable_values(result)
    colours = THEMES["light"]
    with drawing():
        canvas = Canvas(width, colours)
        figure, axes = canvas.axes(300)
        listed = result["listed"][: len(STYLES)]
        times, label = time_axis(result["series"])
        values = np.array([[float(value) for value in row] for row in result["series"]["least"][: len(listed)]])
        finite = np.abs(values[np.isfinite(values)])
        factor, unit = length_unit(float(finite.max(initial=0.0)))
        pairs = pair_labels(listed, 44)
        for one, pair, row, (colour, line) in zip(listed, pairs, values, STYLES, strict=False):
            name = shortened(one["body"], 44) if "body" in one else pair
            shown = np.where(np.isfinite(row), row * factor, np.nan)
            axes.plot(times, shown, color=colours[colour], linestyle=line, linewidth=1.6, label=name)
        axes.axhline(0.0, color=colours["muted"], linewidth=0.8)
        along_time(axes, times, label, canvas)
        axes.set_ylabel(f"least distance [{unit}]", fontsize=canvas.font - 1.0)
        if listed:
            canvas.legend(axes, 2)
        return file_bytes(figure, form, colours["paper"], FILE_SCALE if form == "png" else 1.0, canvas.hovers)
