"""Tables with fewer columns on narrow terminals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table

UNLIMITED_WIDTH = 10_000
"""Width of a terminal on which no cell is folded [columns]."""


@dataclass(frozen=True)
class Fitting:
    """`table(False)` if it fits the terminal, else `table(True)`, which has fewer columns."""

    table: Callable[[bool], Table]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide: RenderableType = self.table(False)
        needed = Measurement.get(console, options.update_width(UNLIMITED_WIDTH), wide).maximum
        yield wide if needed <= options.max_width else self.table(True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)


def stacked(*names: str) -> str:
    """Names on separate lines of one cell, in place of several columns."""
    return "\n".join(name for name in names if name)
