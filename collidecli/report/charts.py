"""Charts of collide.report/1 over time, of pairs and of depths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from collidecli.analysis.contact_summary import BINS_PER_DECADE
from collidecli.report.chart_style import MAP_COLOUR, Canvas
from collidecli.report.chart_words import edges_of, moment, time_axis
from collidecli.report.short_names import pair_labels
from collidecli.report.words import ResultDict, length
from collidecli.scene.text_format import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Texts = Callable[[ResultDict], list[str]]
LEAST_OPACITY = 0.14
"""Least opacity of a field of a map that is not empty."""


def contacts_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts and penetrating contacts over time; a faint band from the mean of a bin to its maximum."""
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    series, colours = result["series"], canvas.colours
    times, label = time_axis(series)
    one_by_one = series["frames_per_bin"] == 1
    if not one_by_one:
        axes.fill_between(times, series["contacts"], series["most"], color=colours["accent"], alpha=0.18, linewidth=0)
    axes.fill_between(times, 0, series["contacts"], color=colours["accent"], alpha=0.10, linewidth=0)
    axes.plot(times, series["contacts"], color=colours["accent"], linewidth=3.0, label="contacts")
    axes.plot(times, series["penetrating"], color=colours["warm"], linewidth=1.3, label="that penetrate")
    along_time(axes, times, label, canvas)
    axes.set_ylim(bottom=0)
    canvas.legend(axes, 2)
    for n, x in enumerate(pairwise(edges_of(times))):
        counts = f"{series['contacts'][n]:.4g} contacts, {series['penetrating'][n]:.4g} penetrate"
        canvas.hover(axes, x, axes.get_ylim(), f"{moment(series, result['frames'], n)}: {counts}")
    return figure


def depth_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Deepest penetration over time."""
    figure, axes = canvas.axes(200 if canvas.narrow else 220)
    times, label = time_axis(result["series"])
    depth = np.array(result["series"]["depth"], float)
    factor, unit = length_unit(float(depth.max(initial=0.0)))
    axes.fill_between(times, 0, depth * factor, color=canvas.colours["warm"], alpha=0.14, linewidth=0)
    axes.plot(times, depth * factor, color=canvas.colours["warm"], linewidth=1.6)
    along_time(axes, times, label, canvas)
    axes.set_ylim(bottom=0)
    for n, x in enumerate(pairwise(edges_of(times))):
        canvas.hover(axes, x, axes.get_ylim(), f"{moment(result['series'], result['frames'], n)}: {length(depth[n])}")
    canvas.title(axes, f"[{unit}]" if canvas.in_page else f"deepest penetration [{unit}]")
    return figure


def _contacts_texts(pair: ResultDict) -> list[str]:
    return [f"{count:.3g} contacts" for count in pair["contacts_per_frame"]]


def pairs_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of pairs over time: number of contacts of a pair in a frame."""
    return pair_map(result, canvas, "contacts_per_frame", "contacts in a frame", 1.0)


def pair_depths_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of pairs over time: penetration depth of a pair; pairs within their gap are faint."""
    deepest = max((max(p["depth"], default=0.0) for p in result["pairs"]["listed"]), default=0.0)
    factor, unit = length_unit(deepest)
    return pair_map(result, canvas, "depth", f"{unit} deep", factor)


def pair_map(
    result: ResultDict, canvas: Canvas, field: str, words: str, factor: float, texts_of: Texts = _contacts_texts
) -> Figure:
    """Map of the pairs in `result["pairs"]` over time. field: name of the values, which are multiplied by a factor.
    words: title of their scale. texts_of: a pair's texts on hover, by bin.
    """
    pairs = result["pairs"]
    listed = pairs["listed"]
    row = 17 if canvas.narrow else 20
    figure = canvas.figure(max(3, len(listed)) * row + (66 if canvas.narrow else 76))
    axes = figure.add_subplot()
    canvas.plain(axes, grid="")
    touching = np.array([[c > 0 for c in pair["contacts_per_frame"]] for pair in listed], bool)
    values = np.array([pair[field] for pair in listed], float).clip(0.0) * factor
    most = float(values.max(initial=0.0))
    opacity = np.where(touching, LEAST_OPACITY + (1.0 - LEAST_OPACITY) * values / (most or 1.0), 0.0)
    image = np.zeros((*opacity.shape, 4))
    image[..., :3], image[..., 3] = MAP_COLOUR, opacity
    times, label = time_axis(pairs)
    step = times[1] - times[0] if len(times) > 1 else 1.0
    first, last = (times[0], times[-1] + step) if len(times) else (0.0, 1.0)
    if image.size:
        axes.imshow(image, aspect="auto", interpolation="none", extent=(first, last, len(listed) - 0.5, -0.5))
    for edge in range(1, len(listed)):
        axes.axhline(edge - 0.5, color=canvas.colours["paper"], linewidth=1.5)
    labels = pair_labels(listed, 26 if canvas.narrow else 44)
    axes.set_yticks(range(len(listed)), labels)
    axes.tick_params(axis="y", labelsize=canvas.font - (2.5 if canvas.narrow else 1.5))
    axes.set_xlim(first, last)
    axes.set_xlabel(label, fontsize=canvas.font - 1.0)
    _scale(axes, canvas, most, words)
    for row, pair in enumerate(listed):
        y = (row - 0.5, row + 0.5)
        canvas.hover(axes, None, y, f"{pair['shape0']} and {pair['shape1']}")
        texts = texts_of(pair)
        if field == "depth":
            texts = [length(depth) if depth > 0.0 else "within the gap" for depth in pair["depth"]]
        for first, last in _runs(texts, touching[row]):
            x = (times[first], times[last + 1] if last + 1 < len(times) else times[-1] + step)
            canvas.hover(axes, x, y, f"{labels[row]}, {moment(pairs, result['frames'], first, last)}: {texts[first]}")
    return figure


def _runs(texts: Sequence[str], shown: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last index of each run of equal texts that are shown."""
    for (_, kept), group in groupby(range(len(texts)), lambda n: (texts[n], bool(shown[n]))):
        held = list(group)
        if kept:
            yield held[0], held[-1]


def _scale(axes: Axes, canvas: Canvas, most: float, words: str) -> None:
    """The colour scale above the map."""
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, OffsetImage, TextArea

    strip = np.ones((8, 64, 4))
    strip[..., :3], strip[..., 3] = MAP_COLOUR, np.linspace(LEAST_OPACITY, 1.0, 64)
    style = {"color": canvas.colours["muted"], "fontsize": canvas.font - 1.0}
    parts = [
        TextArea("0", textprops=style),
        OffsetImage(strip, zoom=1.0),
        TextArea(f"{most:.3g} {words}", textprops=style),
    ]
    box = AnchoredOffsetbox(
        "lower left", child=HPacker(children=parts, align="center", pad=0, sep=6), frameon=False, pad=0.3,
        borderpad=0, bbox_to_anchor=(0.0, 1.0), bbox_transform=axes.transAxes,
    )  # fmt: skip
    axes.add_artist(box)


def depths_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Histogram of penetration depths, on a logarithmic scale."""
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    bins = result["depths"]
    if bins:
        width = next((math.log10(b["to"] / b["from"]) for b in bins if b["from"] and b["to"]), 1.0 / BINS_PER_DECADE)
        left = np.array([np.log10(one["from"]) if one["from"] else np.log10(one["to"]) - width for one in bins])
        counts = [one["contacts"] for one in bins]
        axes.bar(left, counts, width * 0.9, align="edge", color=canvas.colours["warm"], alpha=0.85, linewidth=0)
        decades = np.arange(math.floor(left[0]), math.ceil(left[-1] + width) + 1)
        axes.set_xlim(left[0] - width, left[-1] + 2 * width)
        inside = [d for d in decades if left[0] - width <= d <= left[-1] + 2 * width]
        axes.set_xticks(inside, [short_length(10.0**d) for d in inside])
        for start, one in zip(left.tolist(), bins, strict=True):
            words = f"{_bin_words(one)}: {plural(one['contacts'], 'contact')}"
            canvas.hover(axes, (start, start + width), axes.get_ylim(), words)
    axes.locator_params("y", nbins=5, integer=True)
    _counts(axes)
    canvas.title(axes, "contacts" if canvas.in_page else "contacts, by depth")
    return figure


def _bin_words(one: ResultDict) -> str:
    """Range of a bin of depths; the first has no lower end, the last no upper end."""
    if one["to"] is None:
        return f"over {length(one['from'])}"
    return f"{length(one['from'])} to {length(one['to'])}" if one["from"] else f"below {length(one['to'])}"


def along_time(axes: Axes, times: Sequence[float], label: str, canvas: Canvas) -> None:
    """Sets the horizontal axis of a line over time, its label, and the number of labels of both axes."""
    if len(times):
        pad = 0.5 if times[0] == times[-1] else 0.0
        axes.set_xlim(times[0] - pad, times[-1] + pad)
    axes.set_xlabel(label, fontsize=canvas.font - 1.0)
    axes.locator_params("y", nbins=5)
    axes.locator_params("x", nbins=5 if canvas.narrow else 9)
    _counts(axes)


def _counts(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def length_unit(metres: float) -> tuple[float, str]:
    """(factor, unit) for a length: the largest unit in which it is at least 1."""
    for factor, unit in ((1.0, "m"), (1e3, "mm"), (1e6, "µm")):
        if metres * factor >= 1.0:
            return factor, unit
    return (1e3, "mm") if metres == 0.0 else (1e9, "nm")


def short_length(metres: float) -> str:
    """A power of ten with its unit, such as 10 µm."""
    factor, unit = length_unit(metres * (1.0 + 1e-9))
    return f"{metres * factor:.3g} {unit}"


def short_number(value: float) -> str:
    """A count on an axis, such as 12, 3.4k or 5M."""
    for least, factor, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.4g}"
