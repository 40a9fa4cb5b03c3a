"""The chart of an audit: greatest depths over time, and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collidecli.pages.canvas import Canvas
from collidecli.pages.chart_kinds import ChartKind
from collidecli.pages.quantities import ResultDict, length, length_unit
from collidecli.pages.time_axis import intervals_around, set_time_axes, time_axis
from collidecli.verbs.audit.words import audit_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LINES = (
    ("depth", "all pairs", "warm", "depth"),
    ("self_depth", "one robot", "accent", "self"),
    ("ground_depth", "ground", "third", "ground"),
)
"""Name in the series, label, role of the colour and check of each line."""


def audit_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Greatest depth over time of all pairs, of one robot's and of the ground's; limits are dashed,
    unusable frames shaded.
    """
    figure, axes = canvas.axes(220 if canvas.narrow else 260)
    series = result["series"]
    colours = canvas.colours
    limits = {
        entry["name"]: entry["limit"] for entry in result["checks"] if entry["limit"] is not None
    }
    factor, unit = length_unit(max([*series["depth"], *limits.values()], default=0.0))
    for (left, right), is_unusable in zip(
        intervals_around(series), series["unusable"], strict=True
    ):
        if is_unusable:
            axes.axvspan(left, right, color=colours["muted"], alpha=0.14, linewidth=0)
    for name, words, role, check in LINES:
        depth = np.array(series[name], float) * factor
        if name == "depth" or depth.any():
            width = 2.6 if name == "depth" else 1.3
            axes.plot(
                time_axis(series)[0], depth, color=colours[role], linewidth=width, label=words
            )
            if check in limits:
                axes.axhline(
                    limits[check] * factor,
                    color=colours[role],
                    linewidth=1.0,
                    linestyle=(0, (4, 3)),
                )
    set_time_axes(axes, canvas, series)
    canvas.legend(axes, 3)
    axes.set_ylabel(f"greatest depth [{unit}]", fontsize=canvas.font - 1.0)
    for n, x in enumerate(intervals_around(series)):
        texts = [
            f"{words} {length(series[name][n])}" for name, words, _, _ in LINES if series[name][n]
        ]
        canvas.hover(
            axes,
            x,
            axes.get_ylim(),
            f"frame {series['frame'][n]}: {', '.join(texts) or 'no penetration'}",
        )
    return figure


def _missing(result: ResultDict) -> str:
    audit = result.get("audit")
    if not audit:
        return "it needs an audit; give --audit"
    if audit.get("touch_only"):
        return "the audit is of a set of a run with --touch-only, whose depths are not known"
    return ""


AUDIT_CHART = ChartKind(
    lambda result, canvas: audit_chart(result["audit"], canvas),
    lambda result: f"Greatest depth over time and limits: {audit_words(result['audit'])}.",
    _missing,
)
