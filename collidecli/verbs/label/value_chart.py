"""Charts of what sensors measure over time: contacts, distances, nominal forces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collidecli.pages.canvas import Canvas
from collidecli.pages.chart_kinds import ChartKind
from collidecli.pages.names import pair_labels
from collidecli.pages.quantities import ResultDict, force, length, moment, plain
from collidecli.pages.time_axis import intervals_around, time_axis
from collidecli.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_PART = 0.3
"""Part of a row's height that two texts of its axis are apart at least."""
LINE_HEIGHT = 1.0 - LEAST_PART
"""Part of a row's height that is its line's; the texts of the next row are beyond the rest."""


@dataclass(frozen=True)
class _Quantity:
    """A quantity of `series`. words: of a value of a bin. text: of a value. missing: why a result
    has none."""

    words: str
    text: Callable[[float], str]
    missing: str


QUANTITIES = {
    "count": _Quantity("most contacts", plain, "no listed sensor counts contacts"),
    "distance": _Quantity("least distance", length, "no listed sensor has a distance"),
    "force": _Quantity("greatest nominal force", force, "no listed sensor has a nominal force"),
}
"""By their names in `SENSOR_CHARTS`."""


def _rows(result: ResultDict, name: str) -> np.ndarray:
    """float64[sensors, bins]: the values of the listed sensors; NaN without one."""
    rows = result["series"].get(name) or [[]]
    return np.array([[np.nan if x is None else x for x in row] for row in rows], float)


def value_chart(result: ResultDict, canvas: Canvas, name: str) -> Figure:
    """A line over time for each listed sensor of collide.sensors/1, one above another and with one
    scale; the grey line of a row is 0. name: of QUANTITIES."""
    quantity = QUANTITIES[name]
    series = result["series"]
    values = _rows(result, name)
    listed = [{"shape0": entry["sensor"], "shape1": ""} for entry in result["listed"]]
    figure, axes = canvas.axes(max(3, len(listed)) * (34 if canvas.narrow else 40) + 76, grid="")
    low = min(0.0, float(np.nanmin(values)))
    high = max(0.0, float(np.nanmax(values)))
    times, label = time_axis(series)
    frames = series["frame"][0] + result["shape"]["frames"]
    scale = LINE_HEIGHT / ((high - low) or 1.0)
    labels = pair_labels(listed, canvas.label_length)
    for row, of_sensor in enumerate(values):
        base = row + 0.5 * LINE_HEIGHT + low * scale
        axes.axhline(base, color=canvas.colours["grid"], linewidth=1.0)
        axes.plot(times, base - of_sensor * scale, color=canvas.colours["accent"], marker=".")
        for number, x in enumerate(intervals_around(series)):
            if np.isfinite(of_sensor[number]):
                words = f"{quantity.words} {quantity.text(float(of_sensor[number]))}"
                about = f"{labels[row]}, {moment(series, frames, number)}: {words}"
                canvas.hover(axes, x, (row - 0.5, row + 0.5), about)
    axes.set_yticks(range(len(listed)), labels)
    axes.tick_params(axis="y", labelsize=canvas.font - (2.5 if canvas.narrow else 1.5))
    axes.set_ylim(len(listed) - 0.5, -0.5)
    _value_axis(axes, canvas, len(listed), (low, high), quantity.text)
    axes.set_xlabel(label, fontsize=canvas.font - 1.0)
    ends = f"{quantity.text(low)} to {quantity.text(high)}"
    canvas.title(axes, f"{quantity.words}, each row {ends}; the grey line is 0")
    return figure


def _value_axis(
    axes: Axes,
    canvas: Canvas,
    rows: int,
    ends: tuple[float, float],
    text: Callable[[float], str],
) -> None:
    """An axis on the right with 0 and the ends of the scale of each row, with their unit."""
    low, high = ends
    scale = LINE_HEIGHT / ((high - low) or 1.0)
    shown = sorted({low, 0.0, high} if (high - low) * scale else {0.0})
    if len(shown) == 3 and min(-low, high) * scale < LEAST_PART:
        shown.remove(low if -low < high else high)  # its text would be on that of 0
    offsets = [0.5 * LINE_HEIGHT + (low - value) * scale for value in shown]
    places = [row + offset for row in range(rows) for offset in offsets]
    right = axes.twinx()
    canvas.plain(right, grid="")
    right.set_ylim(*axes.get_ylim())
    right.set_yticks(places, [text(value) for value in shown] * rows)
    right.tick_params(axis="y", labelsize=canvas.font - 2.5)


def _missing(result: ResultDict, name: str) -> str:
    return "" if np.isfinite(_rows(result, name)).any() else QUANTITIES[name].missing


def _words(result: ResultDict, name: str) -> str:
    number = plural(len(result["listed"]), "sensor")
    return f"{QUANTITIES[name].words.capitalize()} over time of {number}."


VALUE_CHARTS = {
    name: ChartKind(
        lambda result, canvas, name=name: value_chart(result["labels"], canvas, name),
        lambda result, name=name: _words(result["labels"], name),
        lambda result, name=name: _missing(result["labels"], name),
    )
    for name in QUANTITIES
}
