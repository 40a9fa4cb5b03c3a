"""Tables in a terminal, with fewer columns where it is narrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.containers import Lines
from rich.measure import Measurement
from rich.table import Column as TableColumn
from rich.table import Table
from rich.text import Text

from collidecli.pages.quantities import in_one_unit, seconds
from collidecli.wording import count, plural


def name_value_table(rows: Iterable[tuple[str, str]]) -> Table:
    """A table of names and values in two columns, without lines."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Name(value))
    return table


def listing(*columns: tuple[str, str]) -> Listing:
    """An empty table with a line under its heading. columns: title, and "left" for names or "right"
    for numbers.

    On a narrow terminal names are folded and numbers are not.
    """
    table = Listing(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title, side in columns:
        is_right = side == "right"
        table.add_column(
            title, justify="right" if is_right else "left", overflow="fold", no_wrap=is_right
        )
    return table


Column = tuple[str, str, Callable[[Any], str]]
"""Title, side as in `listing`, and text of a row."""


def stage_columns(stages: Iterable[Any]) -> list[Column]:
    """Columns of the stages of a run: name, time and, where it was measured, processor time."""
    columns: list[Column] = [
        ("stage", "left", lambda stage: stage["stage"].replace("_", " ")),
        ("time", "right", lambda stage: seconds(stage["seconds"])),
    ]
    if all(stage.get("processor_seconds") is not None for stage in stages):
        columns.append(("processor", "right", lambda stage: seconds(stage["processor_seconds"])))
    return columns


CALLS: Column = ("calls", "right", lambda stage: count(stage["calls"]))
"""Column of a stage's calls."""


def rows_table(columns: Sequence[Column], rows: Iterable[Any], *more: str) -> Listing:
    """A `listing` with a row for each of `rows`. more: the cells of a last row, about rows that are
    not listed."""
    table = listing(*(column[:2] for column in columns))
    rows = [*rows]
    for cells in zip(
        *(in_one_unit([text(row) for row in rows]) for _, _, text in columns), strict=True
    ):
        table.add_row(*cells)
    if any(more):
        table.add_row(*more)
    return table


def pair_columns(
    narrow: int,
    titles: Sequence[str] = ("shape 0", "shape 1"),
    names: Sequence[Any] = ("shape0", "shape1"),
) -> list[Column]:
    """The columns of a pair, which are `names` of a row. narrow: both in one column."""
    if narrow:
        return [(stacked(*titles), "left", lambda row: stacked(*(row[name] for name in names)))]
    return [(title, "left", itemgetter(name)) for title, name in zip(titles, names, strict=True)]


def more_text(number: int, noun: str = "pair", nouns: str = "") -> str:
    """A text about rows that are not listed; "" without any."""
    return f"and {plural(number, f'more {noun}', nouns and f'more {nouns}')}" if number > 0 else ""


class Name(Text):
    """A text whose words are folded after / and _, and elsewhere only where a part of a word is too
    long."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        def folded(word: re.Match[str]) -> str:
            lines = [""]
            for part in _PART.findall(word[0]) if cell_len(word[0]) > width else [word[0]]:
                if lines[-1] and cell_len(lines[-1] + part) > width:
                    lines.append("")
                lines[-1] += part
            return "\n".join(lines)

        return Text(re.sub(r"\S+", folded, self.plain), self.style).wrap(console, width, **options)


_PART = re.compile(r"[^\s/_]*[/_]+|[^\s/_]+")
LONGEST_PART = 24
"""Longest part of a name that a narrow table leaves whole [characters]."""
LEAST_NAMES = 12
"""Width of a column of names below which another column is left out instead."""


class Listing(Table):
    """A table of names, which are folded between their parts, and numbers.

    Numbers are folded only where the table does not fit otherwise: rich would cut them off.
    """

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Adds a row; the texts of columns of names are `Name`."""
        pairs = zip(self.columns, cells, strict=False)
        named = (
            Name(text) if isinstance(text, str) and not column.no_wrap else text
            for column, text in pairs
        )
        super().add_row(*named, **options)

    def least_width(self, names: int = 0) -> int:
        """Width of the table with numbers whole, and names folded, but not to less than `names`
        characters."""
        padding = sum(self._get_padding_width(k) for k in range(len(self.columns)))
        return (
            sum(_least_column_width(column, names) for column in self.columns)
            + padding
            + self._extra_width
        )

    def drop(self, title: str) -> list[str]:
        """Removes a column; the titles of what is removed."""
        kept = [column for column in self.columns if column.header != title]
        dropped = [title] if len(kept) < len(self.columns) else []
        self.columns = kept
        for index, column in enumerate(kept):
            column._index = index
        return dropped

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fits = self.least_width() <= options.max_width
        for column in self.columns:
            if not fits:
                column.no_wrap = False
            elif not column.no_wrap:
                column.min_width = _least_column_width(column)
        return super().__rich_console__(console, options)


def _least_column_width(column: TableColumn, names: int = 0) -> int:
    lines = [line for text in (column.header, *column.cells) for line in str(text).split("\n")]
    if column.no_wrap:
        return max(map(cell_len, lines))
    part = max(cell_len(part) for line in lines for part in _PART.findall(line) or [""])
    return min(LONGEST_PART, max(part, min(names, max(map(cell_len, lines)))))


UNLIMITED_WIDTH = 10_000
"""Width of a terminal on which no cell is folded [columns]."""


@dataclass(frozen=True)
class Fitting:
    """The widest form of a table that fits the terminal.

    `table(0)` is used if it fits without folding a name. Else `table(1)`, with fewer and narrower
    columns of names, is used without the first of `drops`, titles of columns, until no number is
    folded. A last line names what is left out.
    """

    table: Callable[[int], Listing]
    drops: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.table(0)
        dropped = []
        drops = [*self.drops]
        if (
            Measurement.get(console, options.update_width(UNLIMITED_WIDTH), shown).maximum
            > options.max_width
        ):
            shown = self.table(1)
            while drops and shown.least_width(LEAST_NAMES) > options.max_width:
                dropped += shown.drop(drops.pop(0))
        yield shown
        if dropped:
            yield Text(f"not in {options.max_width} columns: {', '.join(dropped)}", style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)


def stacked(*names: str) -> str:
    """Names on separate lines of one cell, in place of several columns."""
    return "\n".join(name for name in names if name)
