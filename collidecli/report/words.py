"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

from collidecli.scene.text_format import count

FEWEST_LETTERS = 8
"""A column of names is no narrower, where its names are not."""


def seconds(value: float) -> str:
    """Three significant digits and a unit that suits them."""
    if value >= 100.0:
        return f"{value:.0f} s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        digits = f"{value * factor:.3g}"
        if float(digits) >= 1.0:
            return f"{digits} {unit}"
    return "0 s" if value == 0.0 else f"{value * 1e9:.3g} ns"


def length(metres: float) -> str:
    """A length in a unit that suits it, its sign kept."""
    if abs(metres) >= 1e4:
        return f"{metres:.0f} m"
    for factor, unit in ((1.0, "m"), (1e3, "mm"), (1e6, "um")):
        digits = f"{metres * factor:.4g}"
        if abs(float(digits)) >= 1.0:
            return f"{digits} {unit}"
    return "0 m" if metres == 0.0 else f"{metres:.3g} m"


def rate(value: float) -> str:
    """So many a second: three significant digits, and whole above a hundred."""
    return f"{value:.3g}" if value < 99.95 else count(round(value))


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{100.0 * share:.1f}%"


def facts_table(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and values in two columns, without lines."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def listing(*columns: tuple[str, str]) -> Table:
    """An empty table with a line under its heading. columns: title, and "left" or "right".

    Where there is little room what stands to the left, names, is folded, and numbers to the right are not.
    """
    table = _Listing(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title, side in columns:
        table.add_column(
            title, justify="right" if side == "right" else "left", overflow="fold", no_wrap=side == "right"
        )
    return table


class _Listing(Table):
    """A table of which rich, where there is no room for all of it, leaves names some letters rather than none."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for column in self.columns:
            if not column.no_wrap:
                texts = (column.header, *column.cells)
                column.min_width = min(FEWEST_LETTERS, max(cell_len(str(text)) for text in texts))
        return super().__rich_console__(console, options)
