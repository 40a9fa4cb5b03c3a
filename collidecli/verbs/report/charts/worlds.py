"""Small multiples: contacts over time of each world."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collidecli.pages.canvas import Canvas
from collidecli.pages.chart_kinds import ChartKind, missing_unless
from collidecli.pages.quantities import ResultDict, plain
from collidecli.pages.world_tables import depth_text
from collidecli.wording import part_of, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 6
NARROW_COLUMNS = 3
PANEL = 78
"""Height of a panel with its title [px]."""
FILL = 0.86
"""Part of a panel's width that is its line's; the rest is between two panels."""
LINE_HEIGHT = 0.58
"""Part of a panel's height that is its line's, below its title."""


def worlds_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """A panel for each listed world: its contacts in a frame over time, with one scale for all.

    The line of an outlier is in the warm colour; the grey line is the median of all worlds.
    """
    from matplotlib.collections import LineCollection

    given = result["by_world"]
    listed = given["listed"]
    columns = min(len(listed), NARROW_COLUMNS if canvas.narrow else COLUMNS)
    rows = -(-len(listed) // columns)
    figure, axes = canvas.axes(PANEL * rows + 12, grid="")
    series = np.array([row["series"] for row in listed], float)
    median = np.array(given["median"], float)
    top = max(float(series.max(initial=0.0)), float(median.max(initial=0.0)), 1.0)
    points = series.shape[1]
    x = np.linspace(0.0, FILL, points) if points > 1 else np.array([0.0, FILL])
    colours = canvas.colours
    lines = []
    roles = []
    medians = []
    for number, row in enumerate(listed):
        left = number % columns
        bottom = -(number // columns) - 1.0
        for values, kept in ((median, medians), (series[number], lines)):
            y = bottom + LINE_HEIGHT * (values if points > 1 else np.repeat(values, 2)) / top
            kept.append(np.column_stack([left + x, y]))
        roles.append(colours["warm" if row["outlier"] else "accent"])
        axes.plot([left, left + FILL], [bottom, bottom], color=colours["grid"], linewidth=1.0)
        words = f"{row['world']}: at most {plain(max(row['series'], default=0.0), 3)}"
        axes.text(
            left,
            bottom + LINE_HEIGHT + 0.1,
            words if not canvas.narrow else str(row["world"]),
            fontsize=canvas.font - 1.5,
            color=colours["warm" if row["outlier"] else "muted"],
        )
        about = f"world {row['world']}: {plural(row['contacts'], 'contact')}"
        about += f", deepest {depth}" if (depth := depth_text(row["deepest"])) else ""
        canvas.hover(
            axes,
            (left, left + FILL),
            (bottom, bottom + 0.9),
            about,
        )
    axes.add_collection(LineCollection(medians, colors=colours["muted"], linewidths=0.8, alpha=0.6))
    axes.add_collection(LineCollection(lines, colors=roles, linewidths=1.5))
    axes.set_xlim(-0.02, columns)
    axes.set_ylim(-rows - 0.08, 0.02)
    axes.set_xticks([])
    axes.set_yticks([])
    return figure


WORLDS_CHART = ChartKind(
    worlds_chart,
    lambda result: (
        "Contacts in a frame over time of"
        f" {part_of(len(result['by_world']['listed']), result['worlds'], 'world')}, the outliers"
        " first."
    ),
    missing_unless("it needs --by world", lambda result: result.get("by_world")),
)
