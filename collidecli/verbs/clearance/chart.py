"""The chart of least distances over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from collidecli.pages.canvas import Canvas
from collidecli.pages.chart_kinds import ChartKind, missing_unless
from collidecli.pages.names import pair_labels
from collidecli.pages.quantities import ResultDict, length, length_unit
from collidecli.pages.time_axis import hover_bins, set_time_axes, time_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STYLES = [(colour, line) for line in ("-", "--") for colour in ("accent", "warm", "third")]
"""Colours by role and styles of the lines; as many lines are drawn."""


def clearance_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Least distances of the first listed items of collide.clearance/1 over time."""
    series = result["series"]
    most = canvas.label_length
    figure, axes = canvas.axes(300)
    listed = result["listed"][: len(STYLES)]
    times, _ = time_axis(series)
    values = np.array([[float(value) for value in row] for row in series["least"][: len(listed)]])
    values = values.reshape(len(listed), len(times))
    finite = np.isfinite(values)
    factor, unit = length_unit(float(np.abs(values[finite]).max(initial=0.0)))
    shown = np.where(finite, values * factor, np.nan)
    for name, row, (role, line) in zip(
        pair_labels([_named(item) for item in listed], most), shown, STYLES, strict=False
    ):
        axes.plot(times, row, color=canvas.colours[role], linestyle=line, linewidth=1.6, label=name)
    axes.axhline(0.0, color=canvas.colours["muted"], linewidth=0.8)
    set_time_axes(axes, canvas, series, from_zero=False)
    axes.set_ylabel(f"least distance [{unit}]", fontsize=canvas.font - 1.0)
    if listed:
        canvas.legend(axes, 1 if canvas.narrow else 2)
    least = values.min(axis=0, initial=np.inf).tolist()
    hover_bins(
        axes,
        canvas,
        series,
        result["frames"],
        (length(item) if math.isfinite(item) else "" for item in least),
    )
    return figure


def _named(item: ResultDict) -> ResultDict:
    """An item as a pair, of which a body has no second name."""
    return {"shape0": item["body"], "shape1": ""} if "body" in item else item


CLEARANCE_CHART = ChartKind(
    lambda result, canvas: clearance_chart(result["clearance"], canvas),
    lambda result: (
        "Least distances over time; the least is"
        f" {length(result['clearance']['listed'][0]['least_distance'])}."
    ),
    missing_unless(
        "it has no distances; give --clearance", lambda r: (r.get("clearance") or {}).get("listed")
    ),
)
