"""Tables for terminals that are too narrow for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table

NATURAL = 10_000
"""Columns of a terminal in which no cell is folded."""


@dataclass(frozen=True)
class Fitting:
    """`table(False)` where the terminal has room for all of it, else `table(True)`, which has fewer columns."""

    table: Callable[[bool], Table]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide: RenderableType = self.table(False)
        needed = Measurement.get(console, options.update_width(NATURAL), wide).maximum
        yield wide if needed <= options.max_width else self.table(True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)


def stacked(*names: str) -> str:
    """Names one below the other: a column for what a wider table has several for."""
    return "\n".join(name for name in names if name)
