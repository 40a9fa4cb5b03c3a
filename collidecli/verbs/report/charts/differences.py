"""Charts of differences from a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collidecli.pages.names import pair_labels
from collidecli.pages.quantities import ResultDict, short_length, short_number
from collidecli.pages.value_map import name_rows, value_map
from collidecli.wording import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collidecli.pages.canvas import Canvas

DIFFERENCE_KINDS = {"missing": "accent", "extra": "third", "changed": "warm"}
MAX_PAIRS = 12


def differences_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Missing, extra and changed contacts of the pairs that differ."""
    pairs = result["difference"]["pairs"]["listed"][:MAX_PAIRS]
    figure, axes = canvas.axes(len(pairs) * 28 + 40)
    left = np.zeros(len(pairs))
    for kind, role in DIFFERENCE_KINDS.items():
        values = np.array([pair[kind] for pair in pairs], float)
        axes.barh(
            range(len(pairs)),
            values,
            0.62,
            left,
            color=canvas.colours[role],
            label=kind,
            linewidth=0,
            alpha=0.9,
        )
        left += values
    name_rows(
        axes,
        canvas,
        pair_labels(pairs, canvas.label_length),
        left.tolist(),
        [*map(short_number, left)],
    )
    for row, pair in enumerate(pairs):
        counts = ", ".join(f"{count(pair[kind])} {kind}" for kind in DIFFERENCE_KINDS)
        for x in (None, axes.get_xlim()):
            canvas.hover(
                axes, x, (row - 0.5, row + 0.5), f"{pair['shape0']} and {pair['shape1']}: {counts}"
            )
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
    words = [
        "<1e-9" if edge == 0.0 else short_length(edge) if units == {"m"} else f"{edge:.0e}"
        for edge in edges
    ]
    axes.set_xticks(
        range(len(edges)), [word.replace("e-0", "e-").replace("e+00", "") for word in words]
    )
    axes.set_yticks(range(len(fields)), [entry["name"] for entry in fields])
    axes.tick_params(axis="x", labelsize=canvas.font - (3.0 if canvas.narrow else 1.0))
    unit = units.pop() if len(units) == 1 else "m or rad"
    canvas.title(axes, f"deviation from [{unit}] to ten times that")
    return figure
