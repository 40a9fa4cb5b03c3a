"""Charts of hydroelastic surfaces and of contacts of particles over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidecli.pages.names import pair_labels
from collidecli.pages.quantities import ResultDict, short_number
from collidecli.pages.time_axis import hover_bins, set_time_axes, time_axis
from collidecli.scene.contact_columns import group_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from collidecli.pages.canvas import Canvas


def surfaces_chart(result: ResultDict, canvas: Canvas, field: str, unit: str, words: str) -> Figure:
    """A quantity of the contact surfaces of pairs over time. field: its name in the result. words:
    its name."""
    listed = result["groups"]["surfaces"]["listed"]
    labels = pair_labels(listed, canvas.label_length)
    figure = _lines(
        result, canvas, dict(zip(labels, (surface[field] for surface in listed), strict=True)), unit
    )
    if not canvas.in_page:
        figure.axes[0].set_ylabel(f"{words} [{unit}]", fontsize=canvas.font - 1.0)
    return figure


def particles_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Contacts of particles with shapes and with each other in a frame."""
    counts = result["groups"]["counts"]
    return _lines(
        result,
        canvas,
        {group_words(name): of_group["per_frame"] for name, of_group in counts.items()},
        "",
    )


def _lines(result: ResultDict, canvas: Canvas, lines: dict[str, list[float]], unit: str) -> Figure:
    figure, axes = canvas.axes(220 if canvas.narrow else 250)
    series = result["groups"]
    for (name, values), role in zip(
        lines.items(), ("accent", "warm", "third", "muted"), strict=False
    ):
        axes.plot(
            time_axis(series)[0], values, color=canvas.colours[role], linewidth=1.8, label=name
        )
    set_time_axes(axes, canvas, series)
    canvas.legend(axes, 1 if canvas.narrow else 2)
    texts = (
        ", ".join(
            f"{name} {short_number(values[n])} {unit}".strip() for name, values in lines.items()
        )
        for n in range(len(series["frame"]))
    )
    hover_bins(axes, canvas, series, result["frames"], texts)
    return figure
