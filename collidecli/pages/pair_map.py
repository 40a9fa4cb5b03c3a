"""A map of values of pairs over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from collidecli.pages.canvas import LEAST_OPACITY, MAP_COLOUR
from collidecli.pages.names import pair_labels
from collidecli.pages.quantities import ResultDict, moment, plain
from collidecli.pages.time_axis import time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from collidecli.pages.canvas import Canvas


def pair_map(
    result: ResultDict,
    canvas: Canvas,
    field: str,
    words: str,
    factor: float,
    texts: Sequence[Sequence[str]],
) -> Figure:
    """Map of the pairs in `result["pairs"]` over time. field: name of the values, which are
    multiplied by a factor. words: title of their scale. texts: on hover, of each pair by bin.
    """
    pairs = result["pairs"]
    listed = result["pairs"]["listed"]
    height = max(3, len(listed)) * (17 if canvas.narrow else 20)
    figure, axes = canvas.axes(height + (66 if canvas.narrow else 76), grid="")
    touching = np.array([[c > 0 for c in pair["contacts_per_frame"]] for pair in listed], bool)
    values = np.array([pair[field] for pair in listed], float).clip(0.0) * factor
    most = float(values.max(initial=0.0))
    opacity = np.where(
        touching, LEAST_OPACITY + (1.0 - LEAST_OPACITY) * values / (most or 1.0), 0.0
    )
    image = np.zeros((*opacity.shape, 4))
    image[..., :3] = MAP_COLOUR
    image[..., 3] = opacity
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
        canvas.hover(axes, None, y, " and ".join(filter(None, (pair["shape0"], pair["shape1"]))))
        bins = enumerate(zip(of_bins, touching[row].tolist(), strict=True))
        for (text, shown), group in groupby(bins, itemgetter(1)):
            numbers = [number for number, _ in group]
            if shown:
                words = (
                    f"{labels[row]}, {moment(pairs, result['frames'], numbers[0], numbers[-1])}:"
                    f" {text}"
                )
                canvas.hover(axes, (ends[numbers[0]], ends[numbers[-1] + 1]), y, words)
    return figure


def _scale(axes: Axes, canvas: Canvas, most: float, words: str) -> None:
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, OffsetImage, TextArea

    strip = np.ones((8, 64, 4))
    strip[..., :3] = MAP_COLOUR
    strip[..., 3] = np.linspace(LEAST_OPACITY, 1.0, 64)
    style = {"color": canvas.colours["muted"], "fontsize": canvas.font - 1.0}
    texts = [TextArea(text, textprops=style) for text in ("0", f"{plain(most, 3)} {words}")]
    child = HPacker(
        children=[texts[0], OffsetImage(strip, zoom=1.0), texts[1]], align="center", pad=0, sep=6
    )
    place = canvas.above(axes)
    axes.add_artist(
        AnchoredOffsetbox("lower left", child=child, frameon=False, pad=0.3, borderpad=0, **place)
    )
