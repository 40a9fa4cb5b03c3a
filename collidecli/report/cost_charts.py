"""Charts of collide.report/1 about costs and differences: stages, broad phases, differences from a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.report.chart_style import MAP_COLOUR, Canvas
from collidecli.report.charts import LEAST_OPACITY, short_length, short_number
from collidecli.report.short_names import pair_labels
from collidecli.report.words import ResultDict, seconds
from collidecli.scene.text_format import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEFORE = ("load", "compile")
"""Stages before the run, which are not part of its time."""
PHASE_COUNTS = {"candidates": "muted", "touching_pairs": "accent", "contacts": "warm"}
KINDS = {"missing": "accent", "extra": "third", "changed": "warm"}
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
    for kind, role in KINDS.items():
        values = np.array([pair[kind] for pair in pairs], float)
        axes.barh(range(len(pairs)), values, 0.62, left, color=canvas.colours[role], label=kind, linewidth=0, alpha=0.9)
        left += values
    names = pair_labels(pairs, 26 if canvas.narrow else 44)
    _rows(axes, canvas, names, left.tolist(), [short_number(value) for value in left])
    for row, pair in enumerate(pairs):
        counts = ", ".join(f"{count(pair[kind])} {kind}" for kind in KINDS)
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
    image = np.zeros((*counts.shape, 4))
    image[..., :3] = MAP_COLOUR
    scaled = np.log1p(counts) / np.log1p(counts.max(initial=1.0))
    image[..., 3] = np.where(counts > 0, LEAST_OPACITY + (0.75 - LEAST_OPACITY) * scaled, 0.0)
    axes.imshow(image, aspect="auto", interpolation="none")
    for (row, column), value in np.ndenumerate(counts):
        if value:
            words = short_number(value)
            axes.text(
                column, row, words, ha="center", va="center", color=canvas.colours["ink"], fontsize=canvas.font - 2
            )
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
