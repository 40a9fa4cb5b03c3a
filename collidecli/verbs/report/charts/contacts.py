"""Charts of contacts, of pairs and of depths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.summary import BINS_PER_DECADE
from collidecli.pages.pair_map import pair_map
from collidecli.pages.quantities import ResultDict, length, length_unit, plain, short_length
from collidecli.pages.time_axis import format_counts, hover_bins, set_time_axes, time_axis
from collidecli.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collidecli.pages.canvas import Canvas


def contacts_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts and penetrating contacts over time, of a set of touches its pairs; a faint band from
    the mean of a bin to its maximum."""
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    series = result["series"]
    colours = canvas.colours
    times = time_axis(series)[0]
    contacts = series["contacts"]
    penetrating = series["penetrating"]
    if series["frames_per_bin"] != 1:
        axes.fill_between(
            times, contacts, series["most"], color=colours["accent"], alpha=0.18, linewidth=0
        )
    axes.fill_between(times, 0, contacts, color=colours["accent"], alpha=0.10, linewidth=0)
    counted = "pairs that touch" if result.get("touch_only") else "contacts"
    axes.plot(times, contacts, color=colours["accent"], linewidth=3.0, label=counted)
    texts = [f"{plain(number)} {counted}" for number in contacts]
    if not result.get("touch_only"):
        axes.plot(times, penetrating, color=colours["warm"], linewidth=1.3, label="that penetrate")
        texts = [
            f"{text}, {plain(number)} penetrate"
            for text, number in zip(texts, penetrating, strict=True)
        ]
    set_time_axes(axes, canvas, series)
    canvas.legend(axes, 2)
    hover_bins(axes, canvas, series, result["frames"], texts)
    return figure


def depth_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Deepest penetration over time."""
    figure, axes = canvas.axes(200 if canvas.narrow else 220)
    series = result["series"]
    colour = canvas.colours["warm"]
    times = time_axis(series)[0]
    depth = np.array(series["depth"], float)
    factor, unit = length_unit(float(depth.max(initial=0.0)))
    axes.fill_between(times, 0, depth * factor, color=colour, alpha=0.14, linewidth=0)
    axes.plot(times, depth * factor, color=colour, linewidth=1.6)
    set_time_axes(axes, canvas, series)
    hover_bins(axes, canvas, series, result["frames"], map(length, depth))
    canvas.title(axes, f"[{unit}]" if canvas.in_page else f"deepest penetration [{unit}]")
    return figure


def pairs_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of pairs over time: number of contacts of a pair in a frame."""
    texts = [
        [f"{plain(number, 3)} contacts" for number in p["contacts_per_frame"]]
        for p in result["pairs"]["listed"]
    ]
    return pair_map(result, canvas, "contacts_per_frame", "contacts in a frame", 1.0, texts)


def pair_depths_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of pairs over time: penetration depth of a pair; pairs within their gap are faint."""
    depths = [pair["depth"] for pair in result["pairs"]["listed"]]
    texts = [
        [length(depth) if depth > 0.0 else "within the gap" for depth in row] for row in depths
    ]
    factor, unit = length_unit(max((max(row, default=0.0) for row in depths), default=0.0))
    return pair_map(result, canvas, "depth", f"{unit} deep", factor, texts)


def depths_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Histogram of penetration depths, on a logarithmic scale."""
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    bins = result["depths"]
    if bins:
        width = next(
            (math.log10(b["to"] / b["from"]) for b in bins if b["from"] and b["to"]),
            1.0 / BINS_PER_DECADE,
        )
        left = np.array(
            [np.log10(row["from"]) if row["from"] else np.log10(row["to"]) - width for row in bins]
        )
        counts = [row["contacts"] for row in bins]
        axes.bar(
            left,
            counts,
            width * 0.9,
            align="edge",
            color=canvas.colours["warm"],
            alpha=0.85,
            linewidth=0,
        )
        low = left[0] - width
        high = left[-1] + 2 * width
        axes.set_xlim(low, high)
        decades = np.arange(math.floor(left[0]), math.ceil(left[-1] + width) + 1)
        inside = [decade for decade in decades if low <= decade <= high]
        axes.set_xticks(inside, [short_length(10.0**decade) for decade in inside])
        for start, row in zip(left.tolist(), bins, strict=True):
            words = f"{_bin_words(row)}: {plural(row['contacts'], 'contact')}"
            canvas.hover(axes, (start, start + width), axes.get_ylim(), words)
    axes.locator_params("y", nbins=5, integer=True)
    format_counts(axes)
    canvas.title(axes, "contacts" if canvas.in_page else "contacts, by depth")
    return figure


def _bin_words(row: ResultDict) -> str:
    """Range of a bin of depths; the first has no lower end, the last no upper end."""
    if row["to"] is None:
        return f"over {length(row['from'])}"
    return (
        f"{length(row['from'])} to {length(row['to'])}"
        if row["from"]
        else f"below {length(row['to'])}"
    )
