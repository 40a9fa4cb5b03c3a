"""Tables with fewer columns on narrow terminals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement

from collidecli.report.words import Listing

UNLIMITED_WIDTH = 10_000
"""Width of a terminal on which no cell is folded [columns]."""


@dataclass(frozen=True)
class Fitting:
    """The widest form of a table that fits the terminal.

    `table(0)` has every column and fits if no name is folded; `table(1)` to `table(forms - 1)` have fewer columns each,
    and fit if no number is folded. The last form is used where none fits.
    """

    table: Callable[[int], Listing]
    forms: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = self.table(0)
        needed = Measurement.get(console, options.update_width(UNLIMITED_WIDTH), wide).maximum
        form = 0
        while needed > options.max_width and form < self.forms - 1:
            form += 1
            needed = self.table(form).least_width()
        yield self.table(form)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)


def stacked(*names: str) -> str:
    """Names on separate lines of one cell, in place of several columns."""
    return "\n".join(name for name in names if name)
