"""A kind of chart: how it is drawn, its text, why a result has none, its file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collidecli.escaping import printable_values
from collidecli.pages.canvas import DPI, THEMES, WIDE, Canvas, drawing, with_hovers
from collidecli.pages.quantities import ResultDict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ChartKind:
    """A kind of chart. draw: makes its figure. words: description. missing: why there is no data;
    "" if there is."""

    draw: Callable[[ResultDict, Canvas], Figure]
    words: Callable[[ResultDict], str]
    missing: Callable[[ResultDict], str]


def missing_unless(words: str, data: Callable[[ResultDict], object]) -> Callable[[ResultDict], str]:
    """The function `missing` of a kind of chart. data: of a result, false without any."""
    return lambda result: "" if data(result) else words


Kinds = Mapping[str, ChartKind]


def chart_file(
    result: ResultDict, kind: ChartKind, form: str, theme: str = "light", width: int = WIDE
) -> bytes:
    """A chart as a "png" or "svg" file. result: of collide.report/1, or its part for a chart of
    another verb's result.

    width: [px] of a page; a PNG has twice as many. Raises InputError without matplotlib.
    """
    canvas = Canvas(width, THEMES[theme])
    buffer = io.BytesIO()
    is_svg = form == "svg"
    with drawing():
        figure = kind.draw(printable_values(result), canvas)
        metadata = {"Date": None} if is_svg else {"Software": None}
        dpi = DPI if is_svg else 2.0 * DPI
        figure.savefig(
            buffer, format=form, dpi=dpi, facecolor=canvas.colours["paper"], metadata=metadata
        )
        text = buffer.getvalue()
        return with_hovers(text.decode(), figure, canvas.hovers).encode() if is_svg else text
