"""Charts of the time of stages, and of the counts of broad phases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.pages.quantities import ResultDict, seconds, short_number
from collidecli.pages.value_map import name_rows
from collidecli.wording import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collidecli.pages.canvas import Canvas

BEFORE = ("load", "compile")
"""Stages before the run, which are not part of its time."""
PHASE_COUNTS = {"candidates": "muted", "touching_pairs": "accent", "contacts": "warm"}


def timed_stages(result: ResultDict) -> list[ResultDict]:
    """The stages of a timing report that took time."""
    return [stage for stage in result["timing"].get("stages", []) if stage["seconds"]]


def stages_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Time of each stage of the run [s], and, with a scale of their own, of those before the
    run."""
    stages = timed_stages(result)
    parts = (
        ([stage for stage in stages if stage["stage"] not in BEFORE], "accent", "of the run"),
        (
            [stage for stage in stages if stage["stage"] in BEFORE],
            "muted",
            "before the run: scene and kernels",
        ),
    )
    shown = [stage for stage in parts if stage[0]]
    heights = [len(part) * 26 + 30 for part, _, _ in shown]
    figure = canvas.figure(sum(heights) + 10)
    grid = figure.subplots(len(shown), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, (part, role, words) in zip(grid.ravel(), shown, strict=True):
        canvas.plain(axes)
        values = [stage["seconds"] for stage in part]
        axes.barh(
            range(len(part)), values, 0.62, color=canvas.colours[role], linewidth=0, alpha=0.9
        )
        name_rows(
            axes,
            canvas,
            [stage["stage"].replace("_", " ") for stage in part],
            values,
            [*map(seconds, values)],
        )
        canvas.title(axes, words)
    return figure


def phases_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Candidates, touching pairs, contacts and compute time of each broad phase."""
    phases = phases_of(result)
    timed = [phase for phase in phases if phase.get("compute_seconds") is not None]
    height = len(phases) * 66 + 50
    of_times = len(timed) * 28 + 40
    beside = bool(timed) and not canvas.narrow
    figure = canvas.figure(height + (of_times if timed and canvas.narrow else 0))
    ratios = (
        {"width_ratios": [3, 2]}
        if beside
        else {"height_ratios": [height, of_times]}
        if timed
        else {}
    )
    axes_grid = figure.subplots(
        1 if beside or not timed else 2, 2 if beside else 1, squeeze=False, gridspec_kw=ratios
    )
    axes = axes_grid.ravel()[0]
    canvas.plain(axes, grid="")
    ends: list[tuple[float, float]] = []
    for k, (name, role) in enumerate(PHASE_COUNTS.items()):
        at = np.arange(len(phases)) + (k - 1) * 0.27
        values = [phase[name] for phase in phases]
        axes.barh(
            at,
            values,
            0.23,
            color=canvas.colours[role],
            label=name.replace("_", " "),
            linewidth=0,
            alpha=0.9,
        )
        ends += zip(at.tolist(), values, strict=True)
    positions, values = zip(*ends, strict=True) if ends else ((), ())
    name_rows(
        axes,
        canvas,
        [phase["name"] for phase in phases],
        values,
        [*map(short_number, values)],
        positions,
    )
    canvas.legend(axes, 3)
    for row, phase in enumerate(phases):
        counts = ", ".join(
            f"{count(phase[name])} {name.replace('_', ' ')}" for name in PHASE_COUNTS
        )
        canvas.hover(axes, axes.get_xlim(), (row - 0.5, row + 0.5), f"{phase['name']}: {counts}")
    if timed:
        axes = axes_grid.ravel()[1]
        canvas.plain(axes, grid="")
        values = [phase["compute_seconds"] for phase in timed]
        axes.barh(
            range(len(timed)), values, 0.5, color=canvas.colours["third"], alpha=0.9, linewidth=0
        )
        name_rows(axes, canvas, [phase["name"] for phase in timed], values, [*map(seconds, values)])
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


def missing_phases(result: ResultDict) -> str:
    """Why there is no chart of candidates; "" where there is one."""
    if result["profile"]:
        return ""
    candidates = result["timing"].get("candidate_count")
    if candidates is None:
        return "it has no count of candidates"
    return "" if candidates else "the run had no candidates"
