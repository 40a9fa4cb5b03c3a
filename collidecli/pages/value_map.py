"""A map of values by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.pages.canvas import LEAST_OPACITY, MAP_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from collidecli.pages.canvas import Canvas


def value_map(
    axes: Axes,
    canvas: Canvas,
    values: np.ndarray,
    texts: Sequence[Sequence[str]],
    size: float,
    colour: tuple[float, float, float] = MAP_COLOUR,
) -> None:
    """A field for each value [rows, columns] from 0 to 1, which is its opacity; none for NaN.
    texts: of all fields.

    size: of the texts [px].
    """
    image = np.zeros((*values.shape, 4))
    image[..., :3] = colour
    image[..., 3] = np.where(
        np.isfinite(values), LEAST_OPACITY + (0.75 - LEAST_OPACITY) * values, 0.0
    )
    axes.imshow(image, aspect="auto", interpolation="none")
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "color": canvas.colours["ink"],
        "fontsize": size,
    }
    for row, column in np.ndindex(values.shape):
        if texts[row][column]:
            axes.text(column, row, str(texts[row][column]), **style)


def name_rows(
    axes: Axes, canvas: Canvas, names: Sequence[str], ends: Sequence[float], words: Sequence[str],
    positions: Sequence[float] = (),
) -> None:  # fmt: skip
    """Names to the left of bars and labels at their ends, the first bar on top, without other
    axes."""
    axes.grid(False)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", labelsize=canvas.font - 1.0, labelcolor=canvas.colours["ink"])
    axes.set_xticks([])
    most = max(ends, default=0.0) or 1.0
    axes.set_xlim(0, most * (1.28 if canvas.narrow else 1.12))
    axes.set_ylim(max(1, len(names)) - 0.5, -0.5)
    positions = positions or range(len(ends))
    style: dict[str, Any] = {
        "va": "center",
        "color": canvas.colours["muted"],
        "fontsize": canvas.font - 1.5,
    }
    for position, end, word in zip(positions, ends, words, strict=True):
        axes.text(end + most * 0.012, position, word, **style)
    for row, name in enumerate(names):
        row_words = [word for at, word in zip(positions, words, strict=True) if round(at) == row]
        canvas.hover(
            axes, axes.get_xlim(), (row - 0.5, row + 0.5), f"{name}: {', '.join(row_words)}"
        )
