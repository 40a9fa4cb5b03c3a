"""Formatting of numbers, and the two kinds of tables that the verbs print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table

from collidecli.scene.text_format import count, plural

ResultDict = Mapping[str, Any]
"""A result as a dictionary with the keys of `--json`, see `commands.result.Result.as_dict`; or a part of one."""
MIN_NAME_WIDTH = 8
"""Least width of a column of names, if the names are not shorter [characters]."""


def seconds(value: float) -> str:
    """A duration with three significant digits, in s, ms, us or ns."""
    if value >= 100.0:
        return f"{value:.0f} s"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        digits = f"{value * factor:.3g}"
        if float(digits) >= 1.0:
            return f"{digits} {unit}"
    return "0 s" if value == 0.0 else f"{value * 1e9:.3g} ns"


def length(metres: float) -> str:
    """A signed length with four significant digits, in m, mm or um."""
    if abs(metres) >= 1e4:
        return f"{metres:.0f} m"
    for factor, unit in ((1.0, "m"), (1e3, "mm"), (1e6, "um")):
        digits = f"{metres * factor:.4g}"
        if abs(float(digits)) >= 1.0:
            return f"{digits} {unit}"
    return "0 m" if metres == 0.0 else f"{metres:.3g} m"


def with_prefix(value: float, unit: str) -> str:
    """A quantity of at least zero with four significant digits and a prefix of its unit: 200 kPa."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m")):
        if value >= 0.99995 * factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def rate(value: float) -> str:
    """A rate with three significant digits, as a whole number above a hundred."""
    return f"{value:.3g}" if value < 99.95 else count(round(value))


def percent(fraction: float) -> str:
    """A fraction as a percentage."""
    return f"{100.0 * fraction:.1f} %"


def shape_counts(types: Mapping[str, int]) -> str:
    """Numbers of shapes by type, the most frequent first: `5 boxes, 1 convex mesh`."""
    found = []
    for label, number in sorted(types.items(), key=lambda item: (-item[1], item[0])):
        name = label.replace("_", " ")
        found.append(plural(number, name, f"{name}es" if name.endswith(("x", "sh")) else ""))
    return ", ".join(found)


def name_value_table(rows: Iterable[tuple[str, str]]) -> Table:
    """A table of names and values in two columns, without lines."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def listing(*columns: tuple[str, str]) -> Listing:
    """An empty table with a line under its heading. columns: title, and "left" for names or "right" for numbers.

    On a narrow terminal names are folded and numbers are not.
    """
    table = Listing(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title, side in columns:
        table.add_column(
            title, justify="right" if side == "right" else "left", overflow="fold", no_wrap=side == "right"
        )
    return table


class Listing(Table):
    """A table of names, which are folded, but not below a minimum width, and numbers.

    Numbers are folded only where the table does not fit otherwise: rich would cut them off.
    """

    def least_width(self) -> int:
        """Width of the table with names folded to their minimum, and numbers whole."""
        padding = sum(self._get_padding_width(k) for k in range(len(self.columns)))
        return sum(map(_least_column_width, self.columns)) + padding + self._extra_width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fits = self.least_width() <= options.max_width
        for column in self.columns:
            if not fits:
                column.no_wrap = False
            elif not column.no_wrap:
                column.min_width = _least_column_width(column)
        return super().__rich_console__(console, options)


def _least_column_width(column: Column) -> int:
    lines = (line for text in (column.header, *column.cells) for line in str(text).split("\n"))
    width = max(map(cell_len, lines))
    return width if column.no_wrap else min(MIN_NAME_WIDTH, width)
