"""Texts of numbers and names, terminal tables, and verdicts: what the reports of the verbs have in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
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

from collidecli.texts import count, github_command, plural

# Formatting of numbers, and the two kinds of tables that the verbs print.

ResultDict = Mapping[str, Any]
"""A result as a dictionary with the keys of `--json`, see `commands.results.Result.as_dict`; or a part of one."""


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
    """A signed length with four significant digits, in m, mm or µm."""
    if abs(metres) >= 1e4:
        return f"{metres:.0f} m"
    for factor, unit in ((1.0, "m"), (1e3, "mm"), (1e6, "µm")):
        digits = f"{metres * factor:.4g}"
        if abs(float(digits)) >= 1.0:
            return f"{digits} {unit}"
    return "0 m" if metres == 0.0 else f"{metres:.3g} m"


def length_unit(metres: float) -> tuple[float, str]:
    """(factor, unit) for a length: the largest unit in which it is at least 1."""
    for factor, unit in ((1.0, "m"), (1e3, "mm"), (1e6, "µm")):
        if metres * factor >= 1.0:
            return factor, unit
    return (1e3, "mm") if metres == 0.0 else (1e9, "nm")


def short_length(metres: float) -> str:
    """A power of ten with its unit, such as 10 µm."""
    factor, unit = length_unit(metres * (1.0 + 1e-9))
    return f"{metres * factor:.3g} {unit}"


def plain(value: float, digits: int = 4) -> str:
    """A number with some significant digits, and no exponent from 1 on: 1 020, 12.35, 1e-05."""
    text = f"{value:.{digits}g}"
    return count(round(value)) if "e+" in text else text


def short_number(value: float) -> str:
    """A count on an axis, such as 12, 3.4k or 5M."""
    for least, factor, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.4g}"


def moment(series: ResultDict, frame_count: int, first: int, last: int | None = None) -> str:
    """Frames and time of the bins from `first` to `last` of a series, as text. frame_count: of all bins."""
    starts = [*series["frame"], frame_count]
    low, high = starts[first], starts[(first if last is None else last) + 1] - 1
    text = f"frame {low}" if low == high else f"frames {low} to {high}"
    return f"{text}, {plain(series['time'][first])} s"


def gap_range_text(ends: Sequence[float]) -> str:
    """Least and greatest gap of pairs as text."""
    least, most = map(length, ends)
    return f"{most} of each pair" if least == most else f"{least} to {most} of a pair"


def with_prefix(value: float, unit: str) -> str:
    """A quantity of at least zero with four significant digits and a prefix of its unit: 200 kPa."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m")):
        if value >= 0.99995 * factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def rate(value: float) -> str:
    """A rate with three significant digits, as a whole number above a hundred."""
    return f"{value:.3g}" if value < 99.95 else count(round(value))


def quantity(value: float | str, words: Callable[[float], str]) -> str:
    """A number as text; one that is not finite is a text in a result."""
    return value if isinstance(value, str) else words(value)


def seconds_text(value: float | str | None) -> str:
    """A duration of a result as text; "" without one."""
    return "" if value is None else quantity(value, seconds)


def speed(value: float | None) -> str:
    """A speed as text; "" without one."""
    return "" if value is None else f"{plain(value)} m/s"


def percent(fraction: float) -> str:
    """A fraction as a percentage."""
    return f"{100.0 * fraction:.1f} %"


def shape_counts(types: Mapping[str, int]) -> str:
    """Numbers of shapes by type, the most frequent first: `5 boxes, 1 convex mesh`."""
    ordered = sorted((-number, label.replace("_", " ")) for label, number in types.items())
    return ", ".join(plural(-n, name, f"{name}es" if name.endswith(("x", "sh")) else "") for n, name in ordered)


def name_value_table(rows: Iterable[tuple[str, str]]) -> Table:
    """A table of names and values in two columns, without lines."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Name(value))
    return table


def listing(*columns: tuple[str, str]) -> Listing:
    """An empty table with a line under its heading. columns: title, and "left" for names or "right" for numbers.

    On a narrow terminal names are folded and numbers are not.
    """
    table = Listing(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title, side in columns:
        is_right = side == "right"
        table.add_column(title, justify="right" if is_right else "left", overflow="fold", no_wrap=is_right)
    return table


Column = tuple[str, str, Callable[[Any], str]]
"""Title, side as in `listing`, and text of a row."""


STAGE_COLUMNS: list[Column] = [
    ("stage", "left", lambda stage: stage["stage"].replace("_", " ")),
    ("time", "right", lambda stage: seconds(stage["seconds"])),
    ("calls", "right", lambda stage: count(stage["calls"])),
]
"""Columns of the stages of a run."""


def rows_table(columns: Sequence[Column], rows: Iterable[Any], *more: str) -> Listing:
    """A `listing` with a row for each of `rows`. more: the cells of a last row, about rows that are not listed."""
    table, rows = listing(*(column[:2] for column in columns)), [*rows]
    for cells in zip(*(in_one_unit([text(row) for row in rows]) for _, _, text in columns), strict=True):
        table.add_row(*cells)
    if any(more):
        table.add_row(*more)
    return table


_MEASURED = re.compile(r"(-?[0-9.]+) ([mµun]?)(m|s)")
_POWER = {"": 0, "m": -3, "µ": -6, "u": -6, "n": -9}
LEAST_IN_UNIT = 1e-4
"""Least value that a column shows in the unit of its greatest; with a lesser one its cells keep their units."""


def in_one_unit(cells: list[str]) -> list[str]:
    """The cells of a column with the unit of the greatest value, where all are lengths or all are times."""
    measured = {cell: _MEASURED.fullmatch(cell) for cell in cells if cell}
    if len({m and m[3] for m in measured.values()}) != 1 or not all(measured.values()):
        return cells
    parts = {cell: (Decimal(m[1]), _POWER[m[2]], f"{m[2]}{m[3]}") for cell, m in measured.items() if m}
    power, unit = max(((power, unit) for number, power, unit in parts.values() if number), default=(0, ""))
    numbers = {cell: number.scaleb(exponent - power) for cell, (number, exponent, _) in parts.items()}
    if not unit or any(0 < abs(number) < LEAST_IN_UNIT for number in numbers.values()):
        return cells
    return [cell and f"{numbers[cell].normalize():f} {unit}" for cell in cells]


def pair_columns(
    narrow: int, titles: Sequence[str] = ("shape 0", "shape 1"), names: Sequence[Any] = ("shape0", "shape1")
) -> list[Column]:
    """The columns of a pair, which are `names` of a row. narrow: both in one column."""
    if narrow:
        return [(stacked(*titles), "left", lambda row: stacked(*(row[name] for name in names)))]
    return [(title, "left", itemgetter(name)) for title, name in zip(titles, names, strict=True)]


def more_text(number: int, noun: str = "pair", nouns: str = "") -> str:
    """A text about rows that are not listed; "" without any."""
    return f"and {plural(number, f'more {noun}', nouns and f'more {nouns}')}" if number > 0 else ""


class Name(Text):
    """A text whose words are folded after / and _, and elsewhere only where a part of a word is too long."""

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
        named = (Name(text) if isinstance(text, str) and not column.no_wrap else text for column, text in pairs)
        super().add_row(*named, **options)

    def least_width(self, names: int = 0) -> int:
        """Width of the table with numbers whole, and names folded, but not to less than `names` characters."""
        padding = sum(self._get_padding_width(k) for k in range(len(self.columns)))
        return sum(_least_column_width(column, names) for column in self.columns) + padding + self._extra_width

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


# Tables with fewer columns on narrow terminals.

UNLIMITED_WIDTH = 10_000
"""Width of a terminal on which no cell is folded [columns]."""


@dataclass(frozen=True)
class Fitting:
    """The widest form of a table that fits the terminal.

    `table(0)` is used if it fits without folding a name. Else `table(1)`, with fewer and narrower columns of names, is
    used without the first of `drops`, titles of columns, until no number is folded. A last line names what is left out.
    """

    table: Callable[[int], Listing]
    drops: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown, dropped, drops = self.table(0), [], [*self.drops]
        if Measurement.get(console, options.update_width(UNLIMITED_WIDTH), shown).maximum > options.max_width:
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


def verdict_text(words: str, is_good: bool) -> Text:
    """A verdict for a terminal: green if it is good, else red; its words say which without colours."""
    return Text(words, style=f"bold {'green' if is_good else 'red'}")


def world_text(world: int, episode: str) -> str:
    """A world's number, with the name of its episode if there is one."""
    return f"{world} ({episode})" if episode else str(world)


WORLD: Column = ("world", "right", lambda one: world_text(one["world"], one.get("episode", "")))


# Short names of shapes that stay distinct: ends of paths, and texts shortened in the middle.

TAIL_SHARES = (0.6, 0.4, 0.8, 0.2, 1.0, 0.0)
"""Fractions of a shortened text that are its end, the preferred first."""


def short_names(paths: Sequence[str]) -> list[str]:
    """The shortest unique ends of paths, without the last parts that all of them share.

    A path that occurs twice gets its row as a suffix.
    """
    parts = [path.strip("/").split("/") for path in paths]
    if len(set(map(tuple, parts))) > 1:
        while all(len(part) > 1 for part in parts) and len({part[-1] for part in parts}) == 1:
            parts = [part[:-1] for part in parts]
    names: dict[int, str] = {}
    size = 1
    while len(names) < len(paths):
        tried = {row: "/".join(parts[row][-size:]) for row in range(len(paths)) if row not in names}
        counts = Counter(tried.values())
        for row, name in tried.items():
            if counts[name] == 1:
                names[row] = name
            elif size >= len(parts[row]):
                names[row] = f"{name} #{row}"
        size += 1
    return [names[row] for row in range(len(paths))]


def pair_labels(pairs: Sequence[ResultDict], most: int) -> list[str]:
    """Labels of pairs of shapes with at most `most` characters, distinct for distinct pairs."""
    paths = sorted({path for pair in pairs for path in (pair["shape0"], pair["shape1"])})
    short = dict(zip(paths, short_names(paths), strict=True))
    names = [(short[pair["shape0"]], short[pair["shape1"]]) for pair in pairs]
    distinct = len(set(names))
    for share in TAIL_SHARES:
        labels = [_label(*pair, most - 3, share) for pair in names]
        if len(set(labels)) == distinct:
            return labels
    number = {pair: n for n, pair in enumerate(dict.fromkeys(names), 1)}
    space = most - 5 - len(str(distinct))
    return [f"{_label(*pair, space, TAIL_SHARES[0])} #{number[pair]}" for pair in names]


def _label(one: str, other: str, most: int, share: float) -> str:
    """A label of two names; if one name is short, the other may use more than half of the length."""
    half = most // 2
    widths = max(half, most - len(other)), max(half, most - len(one))
    return f"{shortened(one, widths[0], share)} · {shortened(other, widths[1], share)}"


def shortened(text: str, most: int, share: float = TAIL_SHARES[0]) -> str:
    """A text of at most `most` characters, without its middle. share: fraction of the rest that is its end."""
    if len(text) <= most:
        return text
    tail = round((most - 1) * share)
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


# Verdicts of a verb as JUnit XML, a section of Markdown, and annotations of GitHub Actions.

MAX_ANNOTATIONS = 5
"""GitHub shows at most ten annotations of a step; the rest is left to other commands of the step."""


@dataclass(frozen=True)
class Finding:
    """What a verb has checked, and a line for each failure; without a line it has passed."""

    name: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Suite:
    """Findings about one input. kind: "failure", or "error" if the input cannot be checked. seconds: duration."""

    name: str
    classname: str
    findings: Sequence[Finding]
    seconds: float
    kind: str = "failure"


@dataclass(frozen=True)
class Verdict:
    """A verb's verdict. words: the verdict in one line. failures: title and text of each annotation.

    markdown: a section for a step summary.
    """

    verb: str
    words: str
    suites: Sequence[Suite]
    failures: Sequence[tuple[str, str]]
    markdown: str

    @classmethod
    def of(cls, verb: str, words: str, findings: Sequence[Finding], seconds: float, markdown: str) -> Verdict:
        """The verdict about one input. seconds: duration of the check."""
        failures = [(finding.name, "\n".join(finding.lines[:10])) for finding in findings if finding.lines]
        suite = Suite(f"collide {verb}", f"collide.{verb}", findings, seconds)
        return cls(verb, words, [suite], failures, markdown)

    def junit_xml(self) -> bytes:
        """JUnit XML of the suites, with a test case for each finding and with their totals."""
        from xml.etree import ElementTree

        names = ("tests", "failures", "errors")
        totals: Counter[str] = Counter(dict.fromkeys(names, 0))
        root = ElementTree.Element("testsuites")
        for part in self.suites:
            counts = Counter({"tests": len(part.findings), f"{part.kind}s": sum(bool(f.lines) for f in part.findings)})
            totals.update(counts)
            numbers = {name: str(counts[name]) for name in names} | {"time": f"{part.seconds:.3f}"}
            suite = ElementTree.SubElement(root, "testsuite", {"name": part.name, "skipped": "0", **numbers})
            for finding in part.findings:
                attributes = {"classname": part.classname, "name": finding.name, "time": "0"}
                case = ElementTree.SubElement(suite, "testcase", attributes)
                if finding.lines:
                    about = {"message": finding.lines[0], "type": "difference"}
                    ElementTree.SubElement(case, part.kind, about).text = "\n".join(finding.lines)
        seconds = sum(round(part.seconds, 3) for part in self.suites)
        root.attrib.update({name: str(totals[name]) for name in names} | {"time": f"{seconds:.3f}"})
        ElementTree.indent(root)
        return ElementTree.tostring(root, "utf-8", xml_declaration=True) + b"\n"

    def annotations(self) -> list[str]:
        """Workflow commands of GitHub Actions: an error for each of the first failures, or one notice."""
        title = f"collide {self.verb}"
        if not self.failures:
            return [github_command("notice", title, self.words)]
        found = [github_command("error", f"{title}: {name}", text) for name, text in self.failures]
        if len(found) > MAX_ANNOTATIONS:
            rest = ", ".join(name for name, _ in self.failures[MAX_ANNOTATIONS - 1 :])
            found = [*found[: MAX_ANNOTATIONS - 1], github_command("error", title, f"and more: {rest}")]
        return found


def markdown_section(heading: str, *blocks: Iterable[str]) -> str:
    """A section of blocks of lines; a block without lines is left out. heading, blocks: in Markdown."""
    parts = ["\n".join(lines) for lines in ([f"### {heading}"], *blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_rows(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """The lines of a Markdown table, of cells in Markdown; none without rows."""
    body = list(rows)
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)] if body else []
