"""Charts of collide.report/1 of hydroelastic surfaces and of contacts of particles over time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from collidecli.report.chart_style import Canvas
from collidecli.report.chart_words import edges_of, moment, time_axis
from collidecli.report.charts import along_time, short_number
from collidecli.report.short_names import pair_labels
from collidecli.report.words import ResultDict
from collidecli.scene.contact_groups import group_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("accent", "warm", "third", "muted")


def areas_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Area of the contact surfaces of pairs over time."""
    return _surfaces(result, canvas, "area", "m²", "area")


def forces_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Nominal force of the contact surfaces of pairs over time."""
    return _surfaces(result, canvas, "force", "N", "nominal force")


def pressures_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Mean pressure of the contact surfaces of pairs over time."""
    return _surfaces(result, canvas, "pressure", "Pa", "mean pressure")


def _surfaces(result: ResultDict, canvas: Canvas, field: str, unit: str, words: str) -> Figure:
    listed = result["groups"]["surfaces"]["listed"]
    lines = dict(zip(pair_labels(listed, 26 if canvas.narrow else 44), (one[field] for one in listed), strict=True))
    figure = _lines(result, canvas, lines, unit)
    if not canvas.in_page:
        figure.axes[0].set_ylabel(f"{words} [{unit}]", fontsize=canvas.font - 1.0)
    return figure


def particles_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts of particles with shapes and with each other in a frame."""
    counts = result["groups"]["counts"]
    return _lines(result, canvas, {group_words(name): held["per_frame"] for name, held in counts.items()}, "")


def _lines(result: ResultDict, canvas: Canvas, lines: dict[str, list[float]], unit: str) -> Figure:
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    series = result["groups"]
    times, label = time_axis(series)
    for (name, values), role in zip(lines.items(), COLOURS, strict=False):
        axes.plot(times, values, color=canvas.colours[role], linewidth=1.8, label=name)
    along_time(axes, times, label, canvas)
    axes.set_ylim(bottom=0)
    canvas.legend(axes, 1 if canvas.narrow else 2)
    for n, x in enumerate(pairwise(edges_of(times))):
        words = ", ".join(f"{name} {short_number(values[n])} {unit}".strip() for name, values in lines.items())
        canvas.hover(axes, x, axes.get_ylim(), f"{moment(series, result['frames'], n)}: {words}")
    return figure
