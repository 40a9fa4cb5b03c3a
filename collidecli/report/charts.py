"""Charts of collide.report/1 and of other results: their style, drawing, text for screen readers, and missing data."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from html import escape
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.summary import BINS_PER_DECADE
from collidecli.errors import InputError
from collidecli.report.results import audit_words
from collidecli.report.tables import (
    ResultDict,
    length,
    length_unit,
    moment,
    pair_labels,
    percent,
    plain,
    seconds,
    short_length,
    short_number,
    shortened,
)
from collidecli.scene.tables import group_words
from collidecli.texts import count, plural, printable_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Style of charts: colours by role, two widths, output as SVG of a page or as files. Matplotlib is optional.

WIDE, NARROW = 920, 320
ROLES = ("ink", "muted", "grid", "paper", "accent", "warm", "third")
_COLOURS = {
    "light": ("#1b2530", "#5b6876", "#e2e7ec", "#ffffff", "#2b6cb0", "#c05621", "#2f855a"),
    "dark": ("#e8edf2", "#9fadbb", "#2d3742", "#151b22", "#63a4e6", "#ed9160", "#68c392"),
}
THEMES = {theme: dict[str, str](zip(ROLES, colours, strict=True)) for theme, colours in _COLOURS.items()}
PAGE = {role: f"#0000{n:02x}" for n, role in enumerate(ROLES, 1)}
"""Placeholders that a page replaces by CSS variables, so that one chart has a light and a dark theme."""
MAP_COLOUR = (0.25, 0.52, 0.80)
"""Colour of maps on any background; a value is shown by the opacity."""
LEAST_OPACITY = 0.14
"""Least opacity of a field of a map that is not empty."""
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

    @property
    def label_length(self) -> int:
        """Longest label of a pair [characters]."""
        return 26 if self.narrow else 44

    def figure(self, height: int) -> Figure:
        """An empty figure of this width and height [px]."""
        from matplotlib.figure import Figure

        return Figure(figsize=(self.width / DPI, height / DPI), dpi=DPI, facecolor="none", layout="constrained")

    def axes(self, height: int, grid: str = "y") -> tuple[Figure, Axes]:
        """A figure with one plain pair of axes."""
        figure = self.figure(height)
        axes = figure.add_subplot()
        self.plain(axes, grid)
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
        place = {"bbox_to_anchor": (0.0, 1.0), "bbox_transform": blended_transform_factory(left, axes.transAxes)}
        space = {"handlelength": 1.0, "columnspacing": 1.2, "borderaxespad": 0.0, "borderpad": 0.3}
        text = {"fontsize": self.font - 0.5, "labelcolor": self.colours["muted"]}
        axes.legend(loc="lower left", ncols=columns, frameon=False, **place, **space, **text)

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
    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": "collide",
        "font.family": ["DejaVu Sans"],
        "font.size": 12.0,
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "path.simplify": True,
    }
    with require_matplotlib().rc_context(settings), warnings.catch_warnings():
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


def with_hovers(text: str, figure: Figure, hovers: Sequence[Hover]) -> str:
    """An SVG with elements that show texts on hover."""
    if not hovers:
        return text
    elements = "".join(hover.element(figure.bbox.height) for hover in hovers)
    end = text.rindex("</svg>")
    return f'{text[:end]}<g class="hover" fill="transparent">{elements}</g>{text[end:]}'


# The time axis of charts, and the texts that are shown on hover.


def time_axis(series: ResultDict) -> tuple[list[float], str]:
    """Times if they increase strictly, else frames; and the label of the axis."""
    times = series["time"]
    if len(times) > 1 and all(a < b for a, b in pairwise(times)):
        return times, "time [s]"
    return [float(frame) for frame in series["frame"]], "frame"


def _intervals(series: ResultDict) -> Iterator[tuple[float, float]]:
    """The intervals around the points of a line over time."""
    times = time_axis(series)[0]
    if len(times) < 2:
        return pairwise([time + side for time in times for side in (-0.5, 0.5)])
    return pairwise([times[0], *((a + b) / 2.0 for a, b in pairwise(times)), times[-1]])


def _along_time(axes: Axes, canvas: Canvas, series: ResultDict, from_zero: bool = True) -> None:
    """Sets the axes of lines over time: range, label and number of labels. from_zero: whether the vertical one is."""
    times, label = time_axis(series)
    if len(times):
        pad = 0.5 if times[0] == times[-1] else 0.0
        axes.set_xlim(times[0] - pad, times[-1] + pad)
    axes.set_xlabel(label, fontsize=canvas.font - 1.0)
    axes.locator_params("y", nbins=5)
    axes.locator_params("x", nbins=5 if canvas.narrow else 9)
    _counts(axes)
    if from_zero:
        axes.set_ylim(bottom=0)


def _hover_bins(axes: Axes, canvas: Canvas, series: ResultDict, frames: int, texts: Iterable[str]) -> None:
    """Adds a text for each bin of lines over time, after its frames and time; none for ""."""
    for n, (x, text) in enumerate(zip(_intervals(series), texts, strict=True)):
        if text:
            canvas.hover(axes, x, axes.get_ylim(), f"{moment(series, frames, n)}: {text}")


def _counts(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


# Charts of contacts, of pairs and of depths.


def contacts_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts and penetrating contacts over time; a faint band from the mean of a bin to its maximum."""
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    series, colours = result["series"], canvas.colours
    times, contacts, penetrating = time_axis(series)[0], series["contacts"], series["penetrating"]
    if series["frames_per_bin"] != 1:
        axes.fill_between(times, contacts, series["most"], color=colours["accent"], alpha=0.18, linewidth=0)
    axes.fill_between(times, 0, contacts, color=colours["accent"], alpha=0.10, linewidth=0)
    axes.plot(times, contacts, color=colours["accent"], linewidth=3.0, label="contacts")
    axes.plot(times, penetrating, color=colours["warm"], linewidth=1.3, label="that penetrate")
    _along_time(axes, canvas, series)
    canvas.legend(axes, 2)
    texts = (f"{plain(a)} contacts, {plain(b)} penetrate" for a, b in zip(contacts, penetrating, strict=True))
    _hover_bins(axes, canvas, series, result["frames"], texts)
    return figure


def depth_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Deepest penetration over time."""
    figure, axes = canvas.axes(200 if canvas.narrow else 220)
    series, colour = result["series"], canvas.colours["warm"]
    times, depth = time_axis(series)[0], np.array(series["depth"], float)
    factor, unit = length_unit(float(depth.max(initial=0.0)))
    axes.fill_between(times, 0, depth * factor, color=colour, alpha=0.14, linewidth=0)
    axes.plot(times, depth * factor, color=colour, linewidth=1.6)
    _along_time(axes, canvas, series)
    _hover_bins(axes, canvas, series, result["frames"], map(length, depth))
    canvas.title(axes, f"[{unit}]" if canvas.in_page else f"deepest penetration [{unit}]")
    return figure


def pairs_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of pairs over time: number of contacts of a pair in a frame."""
    texts = [[f"{plain(number, 3)} contacts" for number in p["contacts_per_frame"]] for p in result["pairs"]["listed"]]
    return pair_map(result, canvas, "contacts_per_frame", "contacts in a frame", 1.0, texts)


def pair_depths_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of pairs over time: penetration depth of a pair; pairs within their gap are faint."""
    depths = [pair["depth"] for pair in result["pairs"]["listed"]]
    texts = [[length(depth) if depth > 0.0 else "within the gap" for depth in row] for row in depths]
    factor, unit = length_unit(max((max(row, default=0.0) for row in depths), default=0.0))
    return pair_map(result, canvas, "depth", f"{unit} deep", factor, texts)


def pair_map(
    result: ResultDict, canvas: Canvas, field: str, words: str, factor: float, texts: Sequence[Sequence[str]]
) -> Figure:
    """Map of the pairs in `result["pairs"]` over time. field: name of the values, which are multiplied by a factor.
    words: title of their scale. texts: on hover, of each pair by bin.
    """
    pairs, listed = result["pairs"], result["pairs"]["listed"]
    height = max(3, len(listed)) * (17 if canvas.narrow else 20)
    figure, axes = canvas.axes(height + (66 if canvas.narrow else 76), grid="")
    touching = np.array([[c > 0 for c in pair["contacts_per_frame"]] for pair in listed], bool)
    values = np.array([pair[field] for pair in listed], float).clip(0.0) * factor
    most = float(values.max(initial=0.0))
    opacity = np.where(touching, LEAST_OPACITY + (1.0 - LEAST_OPACITY) * values / (most or 1.0), 0.0)
    image = np.zeros((*opacity.shape, 4))
    image[..., :3], image[..., 3] = MAP_COLOUR, opacity
    times, label = time_axis(pairs)
    step = times[1] - times[0] if len(times) > 1 else 1.0
    ends = [*times, times[-1] + step] if len(times) else [0.0, 1.0]
    if image.size:
        extent = (ends[0], ends[-1], len(listed) - 0.5, -0.5)
        axes.imshow(image, aspect="auto", interpolation="none", extent=extent)
    for edge in range(1, len(listed)):
        axes.axhline(edge - 0.5, color=canvas.colours["paper"], linewidth=1.5)
    labels = pair_labels(listed, canvas.label_length)
    axes.set_yticks(range(len(listed)), labels)
    axes.tick_params(axis="y", labelsize=canvas.font - (2.5 if canvas.narrow else 1.5))
    axes.set_xlim(ends[0], ends[-1])
    axes.set_xlabel(label, fontsize=canvas.font - 1.0)
    _scale(axes, canvas, most, words)
    for row, (pair, of_bins) in enumerate(zip(listed, texts, strict=True)):
        y = (row - 0.5, row + 0.5)
        canvas.hover(axes, None, y, f"{pair['shape0']} and {pair['shape1']}")
        bins = enumerate(zip(of_bins, touching[row].tolist(), strict=True))
        for (text, shown), group in groupby(bins, itemgetter(1)):
            numbers = [number for number, _ in group]
            if shown:
                words = f"{labels[row]}, {moment(pairs, result['frames'], numbers[0], numbers[-1])}: {text}"
                canvas.hover(axes, (ends[numbers[0]], ends[numbers[-1] + 1]), y, words)
    return figure


def _scale(axes: Axes, canvas: Canvas, most: float, words: str) -> None:
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, OffsetImage, TextArea

    strip = np.ones((8, 64, 4))
    strip[..., :3], strip[..., 3] = MAP_COLOUR, np.linspace(LEAST_OPACITY, 1.0, 64)
    style = {"color": canvas.colours["muted"], "fontsize": canvas.font - 1.0}
    texts = [TextArea(text, textprops=style) for text in ("0", f"{plain(most, 3)} {words}")]
    child = HPacker(children=[texts[0], OffsetImage(strip, zoom=1.0), texts[1]], align="center", pad=0, sep=6)
    place: dict[str, Any] = {"bbox_to_anchor": (0.0, 1.0), "bbox_transform": axes.transAxes}
    axes.add_artist(AnchoredOffsetbox("lower left", child=child, frameon=False, pad=0.3, borderpad=0, **place))


def depths_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Histogram of penetration depths, on a logarithmic scale."""
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    bins = result["depths"]
    if bins:
        width = next((math.log10(b["to"] / b["from"]) for b in bins if b["from"] and b["to"]), 1.0 / BINS_PER_DECADE)
        left = np.array([np.log10(row["from"]) if row["from"] else np.log10(row["to"]) - width for row in bins])
        counts = [row["contacts"] for row in bins]
        axes.bar(left, counts, width * 0.9, align="edge", color=canvas.colours["warm"], alpha=0.85, linewidth=0)
        low, high = left[0] - width, left[-1] + 2 * width
        axes.set_xlim(low, high)
        decades = np.arange(math.floor(left[0]), math.ceil(left[-1] + width) + 1)
        inside = [decade for decade in decades if low <= decade <= high]
        axes.set_xticks(inside, [short_length(10.0**decade) for decade in inside])
        for start, row in zip(left.tolist(), bins, strict=True):
            words = f"{_bin_words(row)}: {plural(row['contacts'], 'contact')}"
            canvas.hover(axes, (start, start + width), axes.get_ylim(), words)
    axes.locator_params("y", nbins=5, integer=True)
    _counts(axes)
    canvas.title(axes, "contacts" if canvas.in_page else "contacts, by depth")
    return figure


def _bin_words(row: ResultDict) -> str:
    """Range of a bin of depths; the first has no lower end, the last no upper end."""
    if row["to"] is None:
        return f"over {length(row['from'])}"
    return f"{length(row['from'])} to {length(row['to'])}" if row["from"] else f"below {length(row['to'])}"


# Charts of hydroelastic surfaces and of contacts of particles over time.


def surfaces_chart(result: ResultDict, canvas: Canvas, field: str, unit: str, words: str) -> Figure:
    """A quantity of the contact surfaces of pairs over time. field: its name in the result. words: its name."""
    listed = result["groups"]["surfaces"]["listed"]
    labels = pair_labels(listed, canvas.label_length)
    figure = _lines(result, canvas, dict(zip(labels, (surface[field] for surface in listed), strict=True)), unit)
    if not canvas.in_page:
        figure.axes[0].set_ylabel(f"{words} [{unit}]", fontsize=canvas.font - 1.0)
    return figure


def particles_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts of particles with shapes and with each other in a frame."""
    counts = result["groups"]["counts"]
    return _lines(result, canvas, {group_words(name): of_group["per_frame"] for name, of_group in counts.items()}, "")


def _lines(result: ResultDict, canvas: Canvas, lines: dict[str, list[float]], unit: str) -> Figure:
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    series = result["groups"]
    for (name, values), role in zip(lines.items(), ("accent", "warm", "third", "muted"), strict=False):
        axes.plot(time_axis(series)[0], values, color=canvas.colours[role], linewidth=1.8, label=name)
    _along_time(axes, canvas, series)
    canvas.legend(axes, 1 if canvas.narrow else 2)
    texts = (
        ", ".join(f"{name} {short_number(values[n])} {unit}".strip() for name, values in lines.items())
        for n in range(len(series["frame"]))
    )
    _hover_bins(axes, canvas, series, result["frames"], texts)
    return figure


# Charts of an audit and of least distances.

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
    limits = {entry["name"]: entry["limit"] for entry in result["checks"] if entry["limit"] is not None}
    factor, unit = length_unit(max([*series["depth"], *limits.values()], default=0.0))
    for (left, right), is_unusable in zip(_intervals(series), series["unusable"], strict=True):
        if is_unusable:
            axes.axvspan(left, right, color=colours["muted"], alpha=0.14, linewidth=0)
    for name, words, role, check in LINES:
        depth = np.array(series[name], float) * factor
        if name == "depth" or depth.any():
            width = 2.6 if name == "depth" else 1.3
            axes.plot(time_axis(series)[0], depth, color=colours[role], linewidth=width, label=words)
            if check in limits:
                axes.axhline(limits[check] * factor, color=colours[role], linewidth=1.0, linestyle=(0, (4, 3)))
    _along_time(axes, canvas, series)
    canvas.legend(axes, 3)
    axes.set_ylabel(f"greatest depth [{unit}]", fontsize=canvas.font - 1.0)
    for n, x in enumerate(_intervals(series)):
        texts = [f"{words} {length(series[name][n])}" for name, words, _, _ in LINES if series[name][n]]
        canvas.hover(axes, x, axes.get_ylim(), f"frame {series['frame'][n]}: {', '.join(texts) or 'no penetration'}")
    return figure


STYLES = [(colour, line) for line in ("-", "--") for colour in ("accent", "warm", "third")]
"""Colours by role and styles of the lines; as many lines are drawn."""


def clearance_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Least distances of the first listed items of collide.clearance/1 over time."""
    series, most = result["series"], canvas.label_length
    figure, axes = canvas.axes(300)
    listed = result["listed"][: len(STYLES)]
    times, _ = time_axis(series)
    values = np.array([[float(value) for value in row] for row in series["least"][: len(listed)]])
    values = values.reshape(len(listed), len(times))
    finite = np.isfinite(values)
    factor, unit = length_unit(float(np.abs(values[finite]).max(initial=0.0)))
    shown = np.where(finite, values * factor, np.nan)
    for item, pair, row, (role, line) in zip(listed, pair_labels(listed, most), shown, STYLES, strict=False):
        name = shortened(item["body"], most) if "body" in item else pair
        axes.plot(times, row, color=canvas.colours[role], linestyle=line, linewidth=1.6, label=name)
    axes.axhline(0.0, color=canvas.colours["muted"], linewidth=0.8)
    _along_time(axes, canvas, series, from_zero=False)
    axes.set_ylabel(f"least distance [{unit}]", fontsize=canvas.font - 1.0)
    if listed:
        canvas.legend(axes, 1 if canvas.narrow else 2)
    least = values.min(axis=0, initial=np.inf).tolist()
    _hover_bins(axes, canvas, series, result["frames"], (length(item) if math.isfinite(item) else "" for item in least))
    return figure


# Charts about costs and differences: stages, broad phases, differences from a baseline.

BEFORE = ("load", "compile")
"""Stages before the run, which are not part of its time."""
PHASE_COUNTS = {"candidates": "muted", "touching_pairs": "accent", "contacts": "warm"}
DIFFERENCE_KINDS = {"missing": "accent", "extra": "third", "changed": "warm"}
MAX_PAIRS = 12


def _timed(result: ResultDict) -> list[ResultDict]:
    return [stage for stage in result["timing"].get("stages", []) if stage["seconds"]]


def stages_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Time of each stage of the run [s], and, with a scale of their own, of those before the run."""
    stages = _timed(result)
    parts = (
        ([stage for stage in stages if stage["stage"] not in BEFORE], "accent", "of the run"),
        ([stage for stage in stages if stage["stage"] in BEFORE], "muted", "before the run: scene and kernels"),
    )
    shown = [stage for stage in parts if stage[0]]
    heights = [len(part) * 26 + 30 for part, _, _ in shown]
    figure = canvas.figure(sum(heights) + 10)
    grid = figure.subplots(len(shown), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (part, role, words) in zip(grid.ravel(), shown, strict=True):
        canvas.plain(axes)
        values = [stage["seconds"] for stage in part]
        axes.barh(range(len(part)), values, 0.62, color=canvas.colours[role], linewidth=0, alpha=0.9)
        _rows(axes, canvas, [stage["stage"].replace("_", " ") for stage in part], values, [*map(seconds, values)])
        canvas.title(axes, words)
    return figure


def phases_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Candidates, touching pairs, contacts and compute time of each broad phase."""
    phases = phases_of(result)
    timed = [phase for phase in phases if phase.get("compute_seconds") is not None]
    height, of_times = len(phases) * 66 + 50, len(timed) * 28 + 40
    beside = bool(timed) and not canvas.narrow
    figure = canvas.figure(height + (of_times if timed and canvas.narrow else 0))
    ratios = {"width_ratios": [3, 2]} if beside else {"height_ratios": [height, of_times]} if timed else {}
    axes_grid = figure.subplots(1 if beside or not timed else 2, 2 if beside else 1, squeeze=False, gridspec_kw=ratios)
    axes = axes_grid.ravel()[0]
    canvas.plain(axes, grid="")
    ends: list[tuple[float, float]] = []
    for k, (name, role) in enumerate(PHASE_COUNTS.items()):
        at, values = np.arange(len(phases)) + (k - 1) * 0.27, [phase[name] for phase in phases]
        axes.barh(at, values, 0.23, color=canvas.colours[role], label=name.replace("_", " "), linewidth=0, alpha=0.9)
        ends += zip(at.tolist(), values, strict=True)
    positions, values = zip(*ends, strict=True) if ends else ((), ())
    _rows(axes, canvas, [phase["name"] for phase in phases], values, [*map(short_number, values)], positions)
    canvas.legend(axes, 3)
    for row, phase in enumerate(phases):
        counts = ", ".join(f"{count(phase[name])} {name.replace('_', ' ')}" for name in PHASE_COUNTS)
        canvas.hover(axes, axes.get_xlim(), (row - 0.5, row + 0.5), f"{phase['name']}: {counts}")
    if timed:
        axes = axes_grid.ravel()[1]
        canvas.plain(axes, grid="")
        values = [phase["compute_seconds"] for phase in timed]
        axes.barh(range(len(timed)), values, 0.5, color=canvas.colours["third"], alpha=0.9, linewidth=0)
        _rows(axes, canvas, [phase["name"] for phase in timed], values, [*map(seconds, values)])
        canvas.title(axes, "time of the engine")
    return figure


def phases_of(result: ResultDict) -> list[dict[str, Any]]:
    """The measured broad phases of the profile, or else the broad phase of the run."""
    if result["profile"] is not None:
        return [phase for phase in result["profile"]["phases"] if not phase["skipped"]]
    timing = result["timing"]
    if "candidate_count" not in timing:
        return []
    return [
        {
            "name": timing.get("broad_phase", "this run"),
            "candidates": timing["candidate_count"],
            "touching_pairs": timing.get("touching_pair_count", result["contact_pair_cells"]),
            "contacts": timing.get("contact_count", result["contacts"]),
        }
    ]


def differences_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Missing, extra and changed contacts of the pairs that differ."""
    pairs = result["difference"]["pairs"]["listed"][:MAX_PAIRS]
    figure, axes = canvas.axes(len(pairs) * 28 + 40)
    left = np.zeros(len(pairs))
    for kind, role in DIFFERENCE_KINDS.items():
        values = np.array([pair[kind] for pair in pairs], float)
        axes.barh(range(len(pairs)), values, 0.62, left, color=canvas.colours[role], label=kind, linewidth=0, alpha=0.9)
        left += values
    _rows(axes, canvas, pair_labels(pairs, canvas.label_length), left.tolist(), [*map(short_number, left)])
    for row, pair in enumerate(pairs):
        counts = ", ".join(f"{count(pair[kind])} {kind}" for kind in DIFFERENCE_KINDS)
        for x in (None, axes.get_xlim()):
            canvas.hover(axes, x, (row - 0.5, row + 0.5), f"{pair['shape0']} and {pair['shape1']}: {counts}")
    canvas.legend(axes, 3)
    return figure


def deviations_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts by field and decade of the deviation."""
    fields = [entry for entry in result["difference"]["fields"] if entry["histogram"]]
    histograms = [{b["from"] or 0.0: b["contacts"] for b in entry["histogram"]} for entry in fields]
    edges = sorted({edge for entry in histograms for edge in entry})
    figure, axes = canvas.axes(len(fields) * 30 + 50, grid="")
    counts = np.array([[entry.get(edge, 0) for edge in edges] for entry in histograms], float)
    scaled = np.log1p(counts) / np.log1p(counts.max(initial=1.0))
    texts = [[short_number(value) if value else "" for value in row] for row in counts]
    value_map(axes, canvas, np.where(counts > 0, scaled, np.nan), texts, canvas.font - 2)
    for (row, column), value in np.ndenumerate(counts):
        if value:
            cell = (column - 0.5, column + 0.5), (row - 0.5, row + 0.5)
            canvas.hover(axes, *cell, f"{fields[row]['name']}: {count(int(value))} contacts")
    units = {entry["unit"] for entry in fields}
    words = ["<1e-9" if edge == 0.0 else short_length(edge) if units == {"m"} else f"{edge:.0e}" for edge in edges]
    axes.set_xticks(range(len(edges)), [word.replace("e-0", "e-").replace("e+00", "") for word in words])
    axes.set_yticks(range(len(fields)), [entry["name"] for entry in fields])
    axes.tick_params(axis="x", labelsize=canvas.font - (3.0 if canvas.narrow else 1.0))
    unit = units.pop() if len(units) == 1 else "m or rad"
    canvas.title(axes, f"deviation from [{unit}] to ten times that")
    return figure


def value_map(
    axes: Axes,
    canvas: Canvas,
    values: np.ndarray,
    texts: Sequence[Sequence[str]],
    size: float,
    colour: tuple[float, float, float] = MAP_COLOUR,
) -> None:
    """A field for each value [rows, columns] from 0 to 1, which is its opacity; none for NaN. texts: of all fields.

    size: of the texts [px].
    """
    image = np.zeros((*values.shape, 4))
    image[..., :3] = colour
    image[..., 3] = np.where(np.isfinite(values), LEAST_OPACITY + (0.75 - LEAST_OPACITY) * values, 0.0)
    axes.imshow(image, aspect="auto", interpolation="none")
    style: dict[str, Any] = {"ha": "center", "va": "center", "color": canvas.colours["ink"], "fontsize": size}
    for row, column in np.ndindex(values.shape):
        if texts[row][column]:
            axes.text(column, row, str(texts[row][column]), **style)


def _rows(
    axes: Axes, canvas: Canvas, names: Sequence[str], ends: Sequence[float], words: Sequence[str],
    positions: Sequence[float] = (),
) -> None:  # fmt: skip
    """Names to the left of bars and labels at their ends, the first bar on top, without other axes."""
    axes.grid(False)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelsize=canvas.font - 1.0, labelcolor=canvas.colours["ink"])
    axes.set_xticks([])
    most = max(ends, default=0.0) or 1.0
    axes.set_xlim(0, most * (1.28 if canvas.narrow else 1.12))
    axes.set_ylim(max(1, len(names)) - 0.5, -0.5)
    positions = positions or range(len(ends))
    style: dict[str, Any] = {"va": "center", "color": canvas.colours["muted"], "fontsize": canvas.font - 1.5}
    for position, end, word in zip(positions, ends, words, strict=True):
        axes.text(end + most * 0.012, position, word, **style)
    for row, name in enumerate(names):
        row_words = [word for at, word in zip(positions, words, strict=True) if round(at) == row]
        canvas.hover(axes, axes.get_xlim(), (row - 0.5, row + 0.5), f"{name}: {', '.join(row_words)}")


def label_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of the listed pairs of collide.label/1 over time: the fraction of the recorded frames that have the label."""
    series = result["series"]
    listed = [
        {"shape0": entry["sensor"], "shape1": entry["partner"], "contacts_per_frame": labelled}
        for entry, labelled in zip(result["listed"], series["labelled"], strict=True)
    ]
    pairs = {"listed": listed, "frame": series["frame"], "time": series["time"]}
    frames = series["frame"][0] + result["shape"]["frames"] if series["frame"] else 0
    texts = [
        ["touching" if share == 1.0 else f"touching in {percent(share)}" for share in row] for row in series["labelled"]
    ]
    shown = {"pairs": pairs, "frames": frames}
    return pair_map(shown, canvas, "contacts_per_frame", "of the frames labelled", 1.0, texts)


# Kinds of charts, of a page and as files.


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart. draw: makes its figure. words: description. missing: why there is no data; "" if there is."""

    draw: Callable[[ResultDict, Canvas], Figure]
    words: Callable[[ResultDict], str]
    missing: Callable[[ResultDict], str]


def _unless(words: str, data: Callable[[ResultDict], object]) -> Callable[[ResultDict], str]:
    """The function `missing` of a kind of chart. data: of a result, false without any."""
    return lambda result: "" if data(result) else words


def _if_compared(words: str, rows: Callable[[ResultDict], Iterable[object]]) -> Callable[[ResultDict], str]:
    def missing(result: ResultDict) -> str:
        if result["difference"] is None:
            return "it needs a baseline; give --against"
        return "" if any(rows(result["difference"])) else words

    return missing


_NO_CONTACTS = _unless("it has no contacts", itemgetter("contacts"))
_NO_PENETRATION = _unless("no contact penetrates", itemgetter("penetrating"))


def _of_pairs(result: ResultDict) -> str:
    listed, pairs = len(result["pairs"]["listed"]), plural(result["pairs"]["count"], "pair")
    return f"When {listed} of {pairs} touch, over {plural(result['frames'], 'frame')}."


def _deepest(result: ResultDict) -> str:
    deepest = result["deepest"]
    if deepest is None or deepest["distance"] >= 0.0:
        return "Deepest penetration over time: none."
    return f"Deepest penetration over time: at most {length(-deepest['distance'])}, in frame {deepest['frame']}."


def _of_particles(result: ResultDict) -> str:
    words = (f"{count(of_group['rows'])} {group_words(name)}" for name, of_group in result["groups"]["counts"].items())
    return f"Contacts of particles in each of {plural(result['frames'], 'frame')}: {', '.join(words)} in all."


def _of_surface(field: str, unit: str, words: str) -> ChartKind:
    """A kind of chart of contact surfaces, see `surfaces_chart`."""

    def about(result: ResultDict) -> str:
        surfaces = result["groups"]["surfaces"]
        pairs, frames = plural(surfaces["pairs"], "pair"), plural(result["frames"], "frame")
        return f"Hydroelastic surfaces of {len(surfaces['listed'])} of {pairs} over {frames}."

    missing = _unless("it has no hydroelastic surfaces", lambda result: _groups(result, "surfaces").get("listed"))
    return ChartKind(partial(surfaces_chart, field=field, unit=unit, words=words), about, missing)


def _groups(result: ResultDict, name: str) -> ResultDict:
    return (result["groups"] or {}).get(name) or {}


Kinds = Mapping[str, ChartKind]
KINDS: Kinds = {
    "contacts": ChartKind(
        contacts_chart,
        lambda result: (
            f"Contacts in each of {plural(result['frames'], 'frame')}: {count(result['contacts'])} in all, "
            f"{count(max(result['series']['most'], default=0))} at most."
        ),
        _NO_CONTACTS,
    ),
    "depth": ChartKind(depth_chart, _deepest, _NO_PENETRATION),
    "pairs": ChartKind(pairs_chart, _of_pairs, _NO_CONTACTS),
    "pair-depths": ChartKind(pair_depths_chart, _of_pairs, _NO_PENETRATION),
    "depths": ChartKind(
        depths_chart,
        lambda result: f"Histogram of the depths of {plural(result['penetrating'], 'contact')}.",
        _NO_PENETRATION,
    ),
    "areas": _of_surface("area", "m²", "area"),
    "forces": _of_surface("force", "N", "nominal force"),
    "pressures": _of_surface("pressure", "Pa", "mean pressure"),
    "particles": ChartKind(
        particles_chart,
        _of_particles,
        _unless("it has no contacts of particles", lambda r: any(one["rows"] for one in _groups(r, "counts").values())),
    ),
    "stages": ChartKind(
        stages_chart,
        lambda result: (
            "Seconds of each stage: " + ", ".join(f"{one['stage']} {seconds(one['seconds'])}" for one in _timed(result))
        ),
        _unless("it has no timing of stages", _timed),
    ),
    "phases": ChartKind(
        phases_chart,
        lambda _: "Candidates, touching pairs and contacts of each broad phase.",
        _unless("it has no count of candidates", lambda r: r["profile"] or "candidate_count" in r["timing"]),
    ),
    "differences": ChartKind(
        differences_chart,
        lambda _: "Contacts missing, extra and changed, by pair of shapes.",
        _if_compared("no pair differs", lambda found: found["pairs"]["listed"]),
    ),
    "deviations": ChartKind(
        deviations_chart,
        lambda _: "Number of contacts by field and deviation.",
        _if_compared("no field differs", lambda found: (one["histogram"] for one in found["fields"])),
    ),
}
PAGE_KINDS: Kinds = {
    **KINDS,
    "audit": ChartKind(
        lambda result, canvas: audit_chart(result["audit"], canvas),
        lambda result: f"Greatest depth over time and limits: {audit_words(result['audit'])}.",
        _unless("it needs an audit; give --audit", lambda result: result.get("audit")),
    ),
    "labels": ChartKind(
        lambda result, canvas: label_chart(result["labels"], canvas),
        lambda result: f"When {plural(len(result['labels']['listed']), 'pair')} of labels touch.",
        _unless("it has no labels; give --labels", lambda result: (result.get("labels") or {}).get("listed")),
    ),
    "clearance": ChartKind(
        lambda result, canvas: clearance_chart(result["clearance"], canvas),
        lambda result: (
            f"Least distances over time; the least is {length(result['clearance']['listed'][0]['least_distance'])}."
        ),
        _unless("it has no distances; give --clearance", lambda r: (r.get("clearance") or {}).get("listed")),
    ),
}
"""Kinds of charts of a page: those of `collide plot`, and those of the results of other verbs."""


def chart_file(
    result: ResultDict, name: str, form: str, theme: str = "light", width: int = WIDE, kinds: Kinds = PAGE_KINDS
) -> bytes:
    """A chart as a "png" or "svg" file. result: of collide.report/1, or its part for a chart of another verb's result.

    width: [px] of a page; a PNG has twice as many. Raises InputError without matplotlib.
    """
    canvas, buffer, is_svg = Canvas(width, THEMES[theme]), io.BytesIO(), form == "svg"
    with drawing():
        figure = kinds[name].draw(printable_values(result), canvas)
        metadata = {"Date": None} if is_svg else {"Software": None}
        dpi = DPI if is_svg else 2.0 * DPI
        figure.savefig(buffer, format=form, dpi=dpi, facecolor=canvas.colours["paper"], metadata=metadata)
        text = buffer.getvalue()
        return with_hovers(text.decode(), figure, canvas.hovers).encode() if is_svg else text
