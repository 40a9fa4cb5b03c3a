"""Charts of collide.report/1 over time, of pairs and of depths."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.summary import BINS_PER_DECADE
from collidecli.errors import InputError
from collidecli.report.tables import ResultDict, length, pair_labels
from collidecli.scene.tables import group_words
from collidecli.scene.text_format import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Style of charts: colours by role, two widths, output as SVG of a page or as files. Matplotlib is optional.

ROLES = ("ink", "muted", "grid", "paper", "accent", "warm", "third")
THEMES = {
    "light": dict(
        zip(ROLES, ("#1b2530", "#5b6876", "#e2e7ec", "#ffffff", "#2b6cb0", "#c05621", "#2f855a"), strict=True)
    ),
    "dark": dict(
        zip(ROLES, ("#e8edf2", "#9fadbb", "#2d3742", "#151b22", "#63a4e6", "#ed9160", "#68c392"), strict=True)
    ),
}
PAGE = {role: f"#0000{n:02x}" for n, role in enumerate(ROLES, 1)}
"""Placeholders that `page_svg` replaces by CSS variables, so that one chart has a light and a dark theme."""
MAP_COLOUR = (0.25, 0.52, 0.80)
"""Colour of maps on any background; a value is shown by the opacity."""
FONTS = ["DejaVu Sans"]
DPI = 72.0
"""An inch of the figure is 72 units of its SVG, so that font sizes are pixels of the page."""


@dataclass(frozen=True)
class Hover:
    """A text for a rectangle of a chart. x: range in the data of the axes, None for the labels to their left."""

    axes: Axes
    x: tuple[float, float] | None
    y: tuple[float, float]
    text: str

    def element(self, height: float) -> str:
        """A transparent SVG element with the text as its title. height: of the figure [px]."""
        left, right = self.x or (0.0, 0.0)
        (x0, y0), (x1, y1) = self.axes.transData.transform([(left, self.y[0]), (right, self.y[1])]).tolist()
        if self.x is None:
            x0, x1 = 0.0, self.axes.bbox.x0
        low, high = sorted((y0, y1))
        path = f"M{x0:.1f} {height - high:.1f}h{x1 - x0:.1f}v{high - low:.1f}H{x0:.1f}z"
        return f'<path d="{path}"><title>{escape(self.text)}</title></path>'


@dataclass(frozen=True)
class Canvas:
    """Width [px] and colours by role of a chart. hovers: texts that an SVG shows on hover, added while it is drawn."""

    width: int
    colours: dict[str, str]
    hovers: list[Hover] = field(default_factory=list)

    @property
    def narrow(self) -> bool:
        """Whether the chart is for a phone."""
        return self.width < 600

    @property
    def in_page(self) -> bool:
        """Whether the chart is on a page, which has a heading for it."""
        return self.colours is PAGE

    @property
    def font(self) -> float:
        """Size of the font [px]."""
        return 11.0 if self.narrow else 12.5

    def figure(self, height: int) -> Figure:
        """An empty figure of this width and height [px]."""
        from matplotlib.figure import Figure

        return Figure(figsize=(self.width / DPI, height / DPI), dpi=DPI, facecolor="none", layout="constrained")

    def axes(self, height: int) -> tuple[Figure, Axes]:
        """A figure with one plain pair of axes."""
        figure = self.figure(height)
        axes = figure.add_subplot()
        self.plain(axes)
        return figure, axes

    def plain(self, axes: Axes, grid: str = "y") -> None:
        """Removes the frame and the tick marks; adds a faint grid along one direction."""
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_facecolor("none")
        axes.tick_params(length=0, colors=self.colours["muted"], labelsize=self.font - 1.0, pad=5)
        axes.tick_params(axis="x", pad=8)
        axes.xaxis.label.set_color(self.colours["muted"])
        axes.yaxis.label.set_color(self.colours["muted"])
        if grid:
            axes.grid(axis=grid, color=self.colours["grid"], linewidth=1.0)  # pyright: ignore[reportArgumentType]
        axes.set_axisbelow(True)

    def legend(self, axes: Axes, columns: int) -> None:
        """Adds a legend above the axes at their left; on a phone at the left of the figure, to avoid clipping."""
        from matplotlib.transforms import blended_transform_factory

        left = axes.figure.transFigure if self.narrow else axes.transAxes
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            bbox_transform=blended_transform_factory(left, axes.transAxes),
            ncols=columns,
            frameon=False,
            fontsize=self.font - 0.5,
            labelcolor=self.colours["muted"],
            handlelength=1.0,
            columnspacing=1.2,
            borderaxespad=0.0,
            borderpad=0.3,
        )

    def hover(self, axes: Axes, x: tuple[float, float] | None, y: tuple[float, float], text: str) -> None:
        """Adds a text for a rectangle; see `Hover`. A phone, which has no pointer, gets none."""
        if not self.narrow:
            self.hovers.append(Hover(axes, x, y, text))

    def title(self, axes: Axes, words: str) -> None:
        """Adds a small title above the axes at their left."""
        axes.set_title(words, loc="left", fontsize=self.font - 0.5, color=self.colours["muted"], pad=8)


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib settings for reproducible output, restored at the end. Raises InputError without matplotlib."""
    matplotlib = require_matplotlib()
    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": "collide",
        "font.family": FONTS,
        "font.size": 12.0,
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "path.simplify": True,
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A browser has other fonts for the characters of an SVG; a PNG has a box for them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def require_matplotlib() -> Any:
    """The module matplotlib. Raises InputError with the install command if it is missing."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("charts need matplotlib", "", "pip install 'collidecli[plots]'") from error
    return matplotlib


def page_svg(figure: Figure, prefix: str, words: str, hovers: Sequence[Hover] = ()) -> str:
    """An SVG element with the colours and width of the page. words: description for screen readers."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    # Tags only: a name of a shape may look like a colour or a reference.
    text = re.sub(r"<[^>]*>", lambda tag: _page_tag(tag[0], prefix), text)
    head = re.search(r'viewBox="([^"]*)"', text)
    assert head is not None
    opening = f'<svg viewBox="{head[1]}" role="img" aria-label="{escape(words)}" xmlns:xlink="{XLINK}">'
    return _with_hovers(re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1).strip(), figure, hovers)


def _page_tag(tag: str, prefix: str) -> str:
    """A tag with CSS variables in place of the placeholders of PAGE, and with ids that are unique in the page."""
    for role, colour in PAGE.items():
        tag = tag.replace(colour, f"var(--{role})")
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    return re.sub(r'(url\(|xlink:href="|href=")#', rf"\1#{prefix}-", tag)


def _with_hovers(text: str, figure: Figure, hovers: Sequence[Hover]) -> str:
    if not hovers:
        return text
    elements = "".join(one.element(figure.bbox.height) for one in hovers)
    end = text.rindex("</svg>")
    return f'{text[:end]}<g class="hover" fill="transparent">{elements}</g>{text[end:]}'


XLINK = "http://www.w3.org/1999/xlink"


def file_bytes(figure: Figure, kind: str, paper: str, scale: float, hovers: Sequence[Hover] = ()) -> bytes:
    """A figure as "png", with `scale` pixels per unit, or "svg", with hovers."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(buffer, format=kind, dpi=DPI * scale, facecolor=paper, metadata=metadata)
    if kind == "svg":
        return _with_hovers(buffer.getvalue().decode(), figure, hovers).encode()
    return buffer.getvalue()


# The time axis of charts, and the texts that are shown on hover.


def time_axis(series: ResultDict) -> tuple[list[float], str]:
    """Times if they increase strictly, else frames; and the label of the axis."""
    times = series["time"]
    if len(times) > 1 and all(a < b for a, b in pairwise(times)):
        return times, "time [s]"
    return [float(frame) for frame in series["frame"]], "frame"


def edges_of(times: Sequence[float]) -> list[float]:
    """The ends of the intervals around the points of a line, one more than points."""
    if len(times) < 2:
        return [time + side for time in times for side in (-0.5, 0.5)]
    middle = [(a + b) / 2.0 for a, b in pairwise(times)]
    return [times[0], *middle, times[-1]]


def moment(series: ResultDict, frame_count: int, first: int, last: int | None = None) -> str:
    """Frames and time of the bins from `first` to `last` of a series, as text. frame_count: of all bins."""
    starts = [*series["frame"], frame_count]
    low, high = starts[first], starts[(first if last is None else last) + 1] - 1
    text = f"frame {low}" if low == high else f"frames {low} to {high}"
    return f"{text}, {series['time'][first]:.4g} s"


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
    for (_, kept), group in groupby(range(len(texts)), lambda n: (texts[n], bool(shown[n]))):
        held = list(group)
        if kept:
            yield held[0], held[-1]


def _scale(axes: Axes, canvas: Canvas, most: float, words: str) -> None:
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


# Charts of collide.report/1 of hydroelastic surfaces and of contacts of particles over time.

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
