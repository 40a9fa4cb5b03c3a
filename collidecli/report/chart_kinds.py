"""Kinds of charts: title, drawing function, text for screen readers, and whether a result has data for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.escaping import printable_values
from collidecli.report.audit import audit_words
from collidecli.report.charts import (
    LEAST_OPACITY,
    MAP_COLOUR,
    PAGE,
    THEMES,
    Canvas,
    along_time,
    areas_chart,
    contacts_chart,
    depth_chart,
    depths_chart,
    drawing,
    edges_of,
    file_bytes,
    forces_chart,
    length_unit,
    moment,
    page_svg,
    pair_depths_chart,
    pair_map,
    pairs_chart,
    particles_chart,
    pressures_chart,
    short_length,
    short_number,
    time_axis,
)
from collidecli.report.tables import ResultDict, length, pair_labels, percent, seconds, shortened
from collidecli.scene.tables import group_words
from collidecli.scene.text_format import count, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDE, NARROW = 920, 320
FILE_SCALE = 2.0


# Chart of an audit: the greatest depth over time, with the limits and the unusable frames.

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


# Chart of least distances over time.

STYLES = [(colour, line) for line in ("-", "--") for colour in ("accent", "warm", "third")]
"""Colours by role and styles of the lines; as many lines are drawn."""


def clearance_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Least distances of the first listed items of collide.clearance/1 over time."""
    series, most = result["series"], 26 if canvas.narrow else 44
    figure, axes = canvas.axes(300)
    listed = result["listed"][: len(STYLES)]
    times, label = time_axis(series)
    values = np.array([[float(value) for value in row] for row in series["least"][: len(listed)]])
    values = values.reshape(len(listed), len(times))
    finite = np.abs(values[np.isfinite(values)])
    factor, unit = length_unit(float(finite.max(initial=0.0)))
    pairs = pair_labels(listed, most)
    for one, pair, row, (colour, line) in zip(listed, pairs, values, STYLES, strict=False):
        name = shortened(one["body"], most) if "body" in one else pair
        shown = np.where(np.isfinite(row), row * factor, np.nan)
        axes.plot(times, shown, color=canvas.colours[colour], linestyle=line, linewidth=1.6, label=name)
    axes.axhline(0.0, color=canvas.colours["muted"], linewidth=0.8)
    along_time(axes, times, label, canvas)
    axes.set_ylabel(f"least distance [{unit}]", fontsize=canvas.font - 1.0)
    if listed:
        canvas.legend(axes, 1 if canvas.narrow else 2)
    for n, x in enumerate(pairwise(edges_of(times))):
        if np.isfinite(least := values[:, n].min(initial=np.inf)):
            canvas.hover(axes, x, axes.get_ylim(), f"{moment(series, result['frames'], n)}: {length(float(least))}")
    return figure


# Charts of collide.report/1 about costs and differences: stages, broad phases, differences from a baseline.

BEFORE = ("load", "compile")
"""Stages before the run, which are not part of its time."""
PHASE_COUNTS = {"candidates": "muted", "touching_pairs": "accent", "contacts": "warm"}
DIFFERENCE_KINDS = {"missing": "accent", "extra": "third", "changed": "warm"}
MAX_PAIRS = 12


def stages_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Time of each stage of the run [s], and, with a scale of their own, of those before the run."""
    stages = [one for one in result["timing"].get("stages", []) if one["seconds"] > 0.0]
    during = [one for one in stages if one["stage"] not in BEFORE]
    before = [one for one in stages if one["stage"] in BEFORE]
    shown = [(part, role, words) for part, role, words in (
        (during, "accent", "of the run"), (before, "muted", "before the run: scene and kernels")) if part]  # fmt: skip
    heights = [len(part) * 26 + 30 for part, _, _ in shown]
    figure = canvas.figure(sum(heights) + 10)
    grid = figure.subplots(len(shown), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (part, role, words) in zip(grid.ravel(), shown, strict=True):
        canvas.plain(axes)
        values = [one["seconds"] for one in part]
        axes.barh(range(len(part)), values, 0.62, color=canvas.colours[role], linewidth=0, alpha=0.9)
        names = [one["stage"].replace("_", " ") for one in part]
        _rows(axes, canvas, names, values, [seconds(value) for value in values])
        canvas.title(axes, words)
    return figure


def phases_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Candidates, touching pairs, contacts and compute time of each broad phase."""
    phases = phases_of(result)
    timed = [one for one in phases if one.get("compute_seconds") is not None]
    height = len(phases) * 66 + 50
    beside = bool(timed) and not canvas.narrow
    figure = canvas.figure(height + (len(timed) * 28 + 40 if timed and canvas.narrow else 0))
    ratios = {"width_ratios": [3, 2]} if beside else {"height_ratios": [height, len(timed) * 28 + 40]} if timed else {}
    found = figure.subplots(1 if beside or not timed else 2, 2 if beside else 1, squeeze=False, gridspec_kw=ratios)
    axes = found.ravel()[0]
    canvas.plain(axes, grid="")
    labels = []
    for k, (name, role) in enumerate(PHASE_COUNTS.items()):
        at = np.arange(len(phases)) + (k - 1) * 0.27
        values = [one[name] for one in phases]
        axes.barh(at, values, 0.23, color=canvas.colours[role], label=name.replace("_", " "), linewidth=0, alpha=0.9)
        labels += list(zip(at.tolist(), values, strict=True))
    _rows(axes, canvas, [one["name"] for one in phases], [v for _, v in labels], [short_number(v) for _, v in labels],
          [at for at, _ in labels])  # fmt: skip
    canvas.legend(axes, 3)
    for row, one in enumerate(phases):
        counts = ", ".join(f"{count(one[name])} {name.replace('_', ' ')}" for name in PHASE_COUNTS)
        canvas.hover(axes, axes.get_xlim(), (row - 0.5, row + 0.5), f"{one['name']}: {counts}")
    if timed:
        axes = found.ravel()[1]
        canvas.plain(axes, grid="")
        values = [one["compute_seconds"] for one in timed]
        axes.barh(range(len(timed)), values, 0.5, color=canvas.colours["third"], alpha=0.9, linewidth=0)
        _rows(axes, canvas, [one["name"] for one in timed], values, [seconds(value) for value in values])
        canvas.title(axes, "time of the engine")
    return figure


def phases_of(result: ResultDict) -> list[dict[str, Any]]:
    """The measured broad phases of the profile, or else the broad phase of the run."""
    if result["profile"] is not None:
        return [one for one in result["profile"]["phases"] if not one["skipped"]]
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
    names = pair_labels(pairs, 26 if canvas.narrow else 44)
    _rows(axes, canvas, names, left.tolist(), [short_number(value) for value in left])
    for row, pair in enumerate(pairs):
        counts = ", ".join(f"{count(pair[kind])} {kind}" for kind in DIFFERENCE_KINDS)
        text = f"{pair['shape0']} and {pair['shape1']}: {counts}"
        for x in (None, axes.get_xlim()):
            canvas.hover(axes, x, (row - 0.5, row + 0.5), text)
    canvas.legend(axes, 3)
    return figure


def deviations_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts by field and decade of the deviation."""
    fields = [one for one in result["difference"]["fields"] if one["histogram"]]
    edges = sorted({b["from"] or 0.0 for one in fields for b in one["histogram"]})
    figure = canvas.figure(len(fields) * 30 + 50)
    axes = figure.add_subplot()
    canvas.plain(axes, grid="")
    counts = np.array([[_bin(one, edge) for edge in edges] for one in fields], float)
    scaled = np.log1p(counts) / np.log1p(counts.max(initial=1.0))
    texts = [[short_number(value) if value else "" for value in row] for row in counts]
    value_map(axes, canvas, np.where(counts > 0, scaled, np.nan), texts, canvas.font - 2)
    for (row, column), value in np.ndenumerate(counts):
        if value:
            cell = (column - 0.5, column + 0.5), (row - 0.5, row + 0.5)
            canvas.hover(axes, *cell, f"{fields[row]['name']}: {count(int(value))} contacts")
    units = {one["unit"] for one in fields}
    words = ["<1e-9" if edge == 0.0 else short_length(edge) if units == {"m"} else f"{edge:.0e}" for edge in edges]
    axes.set_xticks(range(len(edges)), [word.replace("e-0", "e-").replace("e+00", "") for word in words])
    axes.set_yticks(range(len(fields)), [one["name"] for one in fields])
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
    for row, column in np.ndindex(values.shape):
        if texts[row][column]:
            axes.text(
                column,
                row,
                str(texts[row][column]),
                ha="center",
                va="center",
                color=canvas.colours["ink"],
                fontsize=size,
            )


def _bin(one: Mapping[str, Any], edge: float) -> int:
    return next((b["contacts"] for b in one["histogram"] if (b["from"] or 0.0) == edge), 0)


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
    for position, end, word in zip(positions or range(len(ends)), ends, words, strict=True):
        axes.text(
            end + most * 0.012, position, word, va="center", color=canvas.colours["muted"], fontsize=canvas.font - 1.5
        )
    for row, name in enumerate(names):
        here = [word for at, word in zip(positions or range(len(ends)), words, strict=True) if round(at) == row]
        canvas.hover(axes, axes.get_xlim(), (row - 0.5, row + 0.5), f"{name}: {', '.join(here)}")


# Chart of labels: which sensor touches which partner over time.


def label_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of the listed pairs of collide.label/1 over time: the fraction of the recorded frames that have the label."""
    series = result["series"]
    listed = [
        {"shape0": one["sensor"], "shape1": one["partner"], "contacts_per_frame": labelled}
        for one, labelled in zip(result["listed"], series["labelled"], strict=True)
    ]
    pairs = {"listed": listed, "frame": series["frame"], "time": series["time"]}
    frames = series["frame"][0] + result["shape"]["frames"] if series["frame"] else 0
    shown = {"pairs": pairs, "frames": frames}
    return pair_map(shown, canvas, "contacts_per_frame", "of the frames labelled", 1.0, _texts)


def _texts(pair: ResultDict) -> list[str]:
    return ["touching" if share == 1.0 else f"touching in {percent(share)}" for share in pair["contacts_per_frame"]]


# Kinds of charts, of a page and as files.


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart. draw: makes its figure. words: description. missing: why there is no data; "" if there is."""

    title: str
    draw: Callable[[ResultDict, Canvas], Figure]
    words: Callable[[ResultDict], str]
    missing: Callable[[ResultDict], str]


def _no_contacts(result: ResultDict) -> str:
    return "" if result["contacts"] else "it has no contacts"


def _no_penetration(result: ResultDict) -> str:
    return "" if result["penetrating"] else "no contact penetrates"


def _no_surfaces(result: ResultDict) -> str:
    surfaces = (result["groups"] or {}).get("surfaces")
    return "" if surfaces and surfaces["listed"] else "it has no hydroelastic surfaces"


def _no_particles(result: ResultDict) -> str:
    counts = (result["groups"] or {}).get("counts", {})
    return "" if any(held["rows"] for held in counts.values()) else "it has no contacts of particles"


def _no_phases(result: ResultDict) -> str:
    has_phases = result["profile"] is not None or "candidate_count" in result["timing"]
    return "" if has_phases else "it has no count of candidates"


def _no_difference(result: ResultDict, rows: Callable[[ResultDict], Iterable[object]], words: str) -> str:
    if result["difference"] is None:
        return "it needs a baseline; give --against"
    return "" if any(rows(result["difference"])) else words


def _of_surfaces(result: ResultDict) -> str:
    surfaces = result["groups"]["surfaces"]
    pairs = plural(surfaces["pairs"], "pair")
    return f"Hydroelastic surfaces of {len(surfaces['listed'])} of {pairs} over {plural(result['frames'], 'frame')}."


def _of_particles(result: ResultDict) -> str:
    words = (f"{count(held['rows'])} {group_words(name)}" for name, held in result["groups"]["counts"].items())
    return f"Contacts of particles in each of {plural(result['frames'], 'frame')}: {', '.join(words)} in all."


def _over_time(result: ResultDict) -> str:
    most = max(result["series"]["most"], default=0)
    sums = f"{count(result['contacts'])} in all, {count(most)} at most"
    return f"Contacts in each of {plural(result['frames'], 'frame')}: {sums}."


def _deepest(result: ResultDict) -> str:
    deepest = result["deepest"]
    if deepest is None or deepest["distance"] >= 0.0:
        return "Deepest penetration over time: none."
    return f"Deepest penetration over time: at most {length(-deepest['distance'])}, in frame {deepest['frame']}."


def _of_pairs(result: ResultDict) -> str:
    listed, pairs = len(result["pairs"]["listed"]), plural(result["pairs"]["count"], "pair")
    return f"When {listed} of {pairs} touch, over {plural(result['frames'], 'frame')}."


def _timed(result: ResultDict) -> list[ResultDict]:
    return [one for one in result["timing"].get("stages", []) if one["seconds"]]


KINDS = {
    "contacts": ChartKind("Contacts over time", contacts_chart, _over_time, _no_contacts),
    "depth": ChartKind("Depth over time", depth_chart, _deepest, _no_penetration),
    "pairs": ChartKind("Pairs over time", pairs_chart, _of_pairs, _no_contacts),
    "pair-depths": ChartKind("Depth of pairs over time", pair_depths_chart, _of_pairs, _no_penetration),
    "depths": ChartKind(
        "Depths",
        depths_chart,
        lambda result: f"Histogram of the depths of {plural(result['penetrating'], 'contact')}.",
        _no_penetration,
    ),
    "areas": ChartKind("Areas over time", areas_chart, _of_surfaces, _no_surfaces),
    "forces": ChartKind("Forces over time", forces_chart, _of_surfaces, _no_surfaces),
    "pressures": ChartKind("Pressures over time", pressures_chart, _of_surfaces, _no_surfaces),
    "particles": ChartKind("Contacts of particles over time", particles_chart, _of_particles, _no_particles),
    "stages": ChartKind(
        "Stages of the run",
        stages_chart,
        lambda result: (
            "Seconds of each stage: " + ", ".join(f"{one['stage']} {seconds(one['seconds'])}" for one in _timed(result))
        ),
        lambda result: "" if _timed(result) else "it has no timing of stages",
    ),
    "phases": ChartKind(
        "Broad phases",
        phases_chart,
        lambda _: "Candidates, touching pairs and contacts of each broad phase.",
        _no_phases,
    ),
    "differences": ChartKind(
        "Differences by pair",
        differences_chart,
        lambda _: "Contacts missing, extra and changed, by pair of shapes.",
        lambda result: _no_difference(result, lambda found: found["pairs"]["listed"], "no pair differs"),
    ),
    "deviations": ChartKind(
        "Deviations of fields",
        deviations_chart,
        lambda _: "Number of contacts by field and deviation.",
        lambda result: _no_difference(
            result, lambda found: (one["histogram"] for one in found["fields"]), "no field differs"
        ),
    ),
}
PAGE_KINDS = KINDS | {
    "audit": ChartKind(
        "Audit",
        lambda result, canvas: audit_chart(result["audit"], canvas),
        lambda result: f"Greatest depth over time and limits: {audit_words(result['audit'])}.",
        lambda result: "" if result.get("audit") else "it needs an audit; give --audit",
    ),
    "labels": ChartKind(
        "Labels",
        lambda result, canvas: label_chart(result["labels"], canvas),
        lambda result: f"When {plural(len(result['labels']['listed']), 'pair')} of labels touch.",
        lambda result: "" if (result.get("labels") or {}).get("listed") else "it has no labels; give --labels",
    ),
    "clearance": ChartKind(
        "Clearance",
        lambda result, canvas: clearance_chart(result["clearance"], canvas),
        lambda result: (
            f"Least distances over time; the least is {length(result['clearance']['listed'][0]['least_distance'])}."
        ),
        lambda result: "" if (result.get("clearance") or {}).get("listed") else "it has no distances; give --clearance",
    ),
}
"""Kinds of charts of a page: those of `collide plot`, and those of the results of other verbs."""


def page_charts(result: ResultDict, kinds: Mapping[str, ChartKind] = PAGE_KINDS) -> dict[str, dict[str, str]]:
    """SVG elements, "wide" and "narrow", by kind of chart, for all kinds with data."""
    found = {}
    with drawing():
        for name, kind in kinds.items():
            if kind.missing(result):
                continue
            found[name] = {}
            for size, width in (("wide", WIDE), ("narrow", NARROW)):
                canvas = Canvas(width, PAGE)
                figure = kind.draw(result, canvas)
                found[name][size] = page_svg(figure, f"{name}-{size}", kind.words(result), canvas.hovers)
    return found


def chart_file(
    result: ResultDict,
    name: str,
    form: str,
    theme: str = "light",
    width: int = WIDE,
    kinds: Mapping[str, ChartKind] = PAGE_KINDS,
) -> bytes:
    """A chart as a "png" or "svg" file. result: of collide.report/1, or its part for a chart of another verb's result.

    width: [px] of a page; a PNG has twice as many. Raises InputError without matplotlib.
    """
    colours = THEMES[theme]
    with drawing():
        canvas = Canvas(width, colours)
        figure = kinds[name].draw(printable_values(result), canvas)
        return file_bytes(figure, form, colours["paper"], FILE_SCALE if form == "png" else 1.0, canvas.hovers)
