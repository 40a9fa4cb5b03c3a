"""Terminal tables: their columns and texts, and the tables of small results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.measure import Measurement
from rich.table import Column as TableColumn
from rich.table import Table
from rich.text import Text

from collidecli.scene.tables import group_words
from collidecli.scene.text_format import count, memory, plural

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
        table.add_row(name, Name(value))
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


Column = tuple[str, str, Callable[[Any], str]]
"""Title, side as in `listing`, and text of a row."""


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
    found = {cell: _MEASURED.fullmatch(cell) for cell in cells if cell}
    if len({each and each[3] for each in found.values()}) != 1 or not all(found.values()):
        return cells
    parts = {cell: (Decimal(each[1]), _POWER[each[2]], f"{each[2]}{each[3]}") for cell, each in found.items() if each}
    power, unit = max(((power, unit) for number, power, unit in parts.values() if number), default=(0, ""))
    numbers = {cell: number.scaleb(of - power) for cell, (number, of, _) in parts.items()}
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
        folds = [not column.no_wrap for column in self.columns[: len(cells)]]
        named = (
            Name(cell) if fold and isinstance(cell, str) else cell for fold, cell in zip(folds, cells, strict=True)
        )
        super().add_row(*named, **options)

    def least_width(self, names: int = 0) -> int:
        """Width of the table with numbers whole, and names folded, but not to less than `names` characters."""
        padding = sum(self._get_padding_width(k) for k in range(len(self.columns)))
        return sum(_least_column_width(column, names) for column in self.columns) + padding + self._extra_width

    def drop(self, title: str) -> list[str]:
        """Removes a column; the titles of what is removed."""
        kept = [column for column in self.columns if column.header != title]
        found = [title] if len(kept) < len(self.columns) else []
        self.columns = kept
        for index, column in enumerate(kept):
            column._index = index
        return found

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


# Descriptions of differences of contact sets, for tables, pages and annotations.

KINDS = ("missing", "extra", "changed")


def verdict_text(words: str, is_good: bool) -> Text:
    """A verdict for a terminal: green if it is good, else red; its words say which without colours."""
    return Text(words, style=f"bold {'green' if is_good else 'red'}")


def verdict(result: ResultDict) -> str:
    """Whether the sets are equal, as one line."""
    rows = "".join(f", {count(group['a'])} {group_words(group['name'])}" for group in result["groups"])
    contacts = result["contacts"]
    noun = "touching pairs" if contacts["what"] == "pairs" else "contacts"
    if not result["equal"]:
        return f"different: {', '.join(result['reasons'])}"
    found = sum(contacts[kind] for kind in KINDS)
    at_limit = at_limit_text(result)
    if not found and not contacts["within_tolerance"] and not at_limit:
        same = f"{plural(contacts['matched'], noun[:-1])}{rows}"
        return f"equal: the content hashes are equal ({same})" if result["by_hash"] else f"equal: {same}"
    matched = f"equal within what is allowed: {count(contacts['matched'])} {noun} matched"
    matched += f", {at_limit} at the limit" if at_limit else ""
    return matched if result["by_hash"] else f"{matched}; the content hashes differ"


def at_limit_text(result: ResultDict) -> str:
    """Counts of the missing and extra contacts within the tolerance of the pair's gap; empty without any."""
    at_limit = result["contacts"]["at_limit"]
    return " and ".join(f"{count(at_limit[kind])} {kind}" for kind in KINDS if at_limit.get(kind))


def world_text(world: int, episode: str) -> str:
    """A world's number, with the name of its episode if there is one."""
    return f"{world} ({episode})" if episode else str(world)


def shapes_text(shapes: int, templates: int) -> str:
    """Number of shapes, of all templates."""
    return plural(shapes, "shape") + (f" in {count(templates)} templates" if templates > 1 else "")


def cell_text(where: ResultDict) -> str:
    """Frame, world and time of a cell, as text."""
    frame = f"frame {where['frame_a']}"
    if where["frame_b"] != where["frame_a"]:
        frame += f" (B: {where['frame_b']})"
    time = where["time"]
    world = world_text(where["world"], where.get("episode", ""))
    return f"{frame}, world {world}, t = {time if isinstance(time, str) else f'{time:.6g}'} s"


def deviation(value: Any, unit: str) -> str:
    """A deviation with its unit, as text."""
    if isinstance(value, str):
        return value
    if unit == "m":
        return length(value) if value >= 1e-6 or value == 0.0 else f"{value:.3g} m"
    return f"{value:.3g} {unit}".strip()


def model_line(one: ResultDict) -> str:
    """A difference of the models, as one line."""
    world = f" (world {one['world']})" if one["world"] is not None else ""
    if one["kind"] == "renamed":
        return f"renamed: {one['a']} is {one['b']} in B{world}"
    if one["kind"] in ("removed", "added"):
        return f"{one['kind']}: {one['path']}, a {one['a'] or one['b']}{world}"
    return f"changed: {one['path']}: {one['what']} {both_values(one)}{world}"


def both_values(one: ResultDict) -> str:
    """The values `a` and `b` of a difference, with digits enough to tell them apart."""
    texts = [[short(one[name], digits) for name in ("a", "b")] for digits in range(6, 18)]
    a, b = next((both for both in texts if both[0] != both[1]), texts[0])
    return f"{a} in A, {b} in B"


def short(value: Any, digits: int = 6) -> str:
    """A value as short text."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(short(one, digits) for one in value)})"
    return "none" if value == "" else str(value)


def frame_lines(result: ResultDict) -> list[str]:
    """Lines about frames that only one file has, and about times that differ."""
    frames = result["frames"]
    lines = []
    for name in ("a", "b"):
        first = frames[f"first_only_{name}"]
        if first is not None:
            many = plural(frames[f"only_{name}"], "frame")
            lines.append(
                f"{many} only in {name.upper()}, the first: frame {first['frame']}, step {first['step']}, "
                f"t = {short(first['time'])} s"
            )
    if frames["times_changed"]:
        many = plural(frames["times_changed"], "frame")
        lines.append(f"another time in {many}, by up to {short(frames['largest_time_change'])} s")
    return lines


def group_lines(result: ResultDict) -> list[str]:
    """A line for each group with differing rows, followed by one for each of its fields that differ."""
    lines = []
    for group in result["groups"]:
        if not (any(group[kind] for kind in KINDS) or group["fields"] or any(group["at_limit"].values())):
            continue
        words = [f"{count(group[kind])} {kind}" for kind in KINDS]
        words += [
            f"{count(group['at_limit'][kind])} {kind} at the limit" for kind in KINDS if group["at_limit"].get(kind)
        ]
        first = f", first in {cell_text(group['first'])}" if group["first"] is not None else ""
        lines.append(f"{group_words(group['name'])}: {', '.join(words)}{first}")
        for one in group["objects"]:
            words = [f"{count(one[kind])} {kind}" for kind in KINDS if one[kind]]
            lines.append(f"  {' and '.join(dict.fromkeys(one['paths']))}: {', '.join(words)}")
        for one in group["fields"]:
            beyond = f"{count(one['changed'])} beyond tolerance"
            lines.append(
                f"  {one['name']}: {count(one['differing'])} differ, {beyond}, "
                f"by up to {deviation(one['largest'], one['unit'])}"
            )
    return lines


def field_kind(field: ResultDict) -> str:
    """Shapes and cell of the largest deviation of a field, and its two values, as text."""
    worst = field["worst"]
    if worst is None:
        return ""
    return f"{worst['shape0']} and {worst['shape1']}, {cell_text(worst)}: {both_values(worst)}"


def bins(field: ResultDict) -> list[tuple[str, int]]:
    """Description and contact count of each bin of a histogram; a bin is a decade."""
    return [
        ("below 1e-09" if one["from"] is None else f"from {one['from']:.0e}", one["contacts"])
        for one in field["histogram"]
    ]


KEY_DIGITS = 12
KIND_NAMES = {"field": "signed distance field", "hull": "convex hull", "parts": "convex parts"}


def cache_table(result: ResultDict) -> RenderableType:
    """Table of collide.cache/1: a line per entry, and the total size."""
    if "removed" in result:
        return Text(f"{result['folder']}: {_entry_counts(result['removed'])} removed, {memory(result['bytes'])}")
    entries, folder = result["entries"], result["folder"]
    line = Text(f"{folder}: {_entry_counts(entries)}, {memory(result['bytes'])} of {memory(result['limit'])}")
    if not entries:
        return line
    columns: list[Column] = [
        ("key", "left", lambda entry: entry["key"][:KEY_DIGITS]),
        ("kind", "left", lambda entry: KIND_NAMES[entry["kind"]]),
        ("last used, UTC", "right", lambda entry: entry["used"][:16].replace("T", " ")),
        ("size", "right", lambda entry: memory(entry["bytes"])),
    ]
    return Group(rows_table(columns, entries), line)


def _entry_counts(entries: Sequence[ResultDict]) -> str:
    fields = sum(entry["kind"] == "field" for entry in entries)
    hulls = sum(entry["kind"] == "hull" for entry in entries)
    meshes = len(entries) - fields - hulls
    counts = [
        *([plural(fields, "signed distance field")] if fields else []),
        *([plural(hulls, "convex hull")] if hulls else []),
        *([f"convex parts of {plural(meshes, 'mesh', 'meshes')}"] if meshes else []),
    ]
    return ", ".join(counts) or "no entries"


def check_table(result: ResultDict) -> RenderableType:
    """Text of collide.check/1: a line per finding and note."""
    words = f"good ({result['format']})" if result["good"] else "faulty"
    lines = [f"{finding['where']}: {finding['what']}" for finding in result["findings"]]
    lines += [f"note: {one['where']}: the engine's rows: {one['what']}" for one in result.get("notes") or ()]
    return Group(verdict_text(f"{result['file']}: {words}", result["good"]), *(Text(line) for line in lines))


def convert_table(result: ResultDict) -> Table:
    """Table of collide.traj.convert/1."""
    return name_value_table(
        [
            ("recording", f"{result['file']} ({result['kind']})"),
            ("frames", count(result["frames"])),
            ("worlds", count(result["worlds"])),
            ("bodies", count(result["bodies"])),
            ("duration", seconds(result["duration"])),
            ("written", result["output"]),
        ]
    )


def export_table(result: ResultDict) -> Table:
    """Table of collide.export/1."""
    rows = [(group_words(result["group"]) or "contacts", _contacts_of_cells(result)), ("format", result["format"])]
    rows[1:1] = _group_lines(result)
    rows += [("left out" if k == 0 else "", text) for k, text in enumerate(result["left_out"])]
    return name_value_table([*rows, ("written", f"{result['output']}, {memory(result['bytes'])}")])


def pack_table(result: ResultDict) -> Table:
    """Table of collide.engine_pack/1."""
    sizes = (
        f"{plural(result['shapes'], 'shape')}, {plural(result['pairs'], 'pair')} in {plural(result['cells'], 'cell')}"
    )
    written = f"{result['output']}, {memory(result['bytes'])}"
    return name_value_table([("scene", result["scene"]), ("packed", sizes), ("written", written)])


def merge_table(result: ResultDict) -> Table:
    """Table of collide.merge/1."""
    rows = [("merged" if k == 0 else "", path) for k, path in enumerate(result["files"])]
    rows += [("contacts", _contacts_of_cells(result)), *_group_lines(result), ("written", result["output"])]
    rows.append(("content", result["content_sha256"]))
    if result["parted_by"] == "frames" and result["recordings"] > 1:
        rows.append(("note", f"the frames are of {result['recordings']} recordings"))
    return name_value_table(rows)


def _group_lines(result: ResultDict) -> list[tuple[str, str]]:
    return [(group_words(name), count(rows)) for name, rows in result["group_rows"].items()]


def _contacts_of_cells(result: ResultDict) -> str:
    return f"{count(result['contacts'])} in {plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"


def record_table(result: ResultDict) -> Table:
    """Table of collide.record/1."""
    bodies = plural(result["bodies"], "body", "bodies")
    sizes = f"{plural(result['frames'], 'frame')}, {plural(result['worlds'], 'world')}, {bodies}"
    return name_value_table(
        [
            ("scene", result["scene"]),
            ("recorded", f"{sizes}, {seconds(result['duration'])} long"),
            ("written", result["output"]),
        ]
    )


def group_figures(result: ResultDict) -> list[tuple[str, str, str]]:
    """Name, number and comment of the surfaces of a report and of its contacts of particles, where there are any."""
    groups = result["groups"] or {"surfaces": None, "counts": {}}
    surfaces, found = groups["surfaces"], []
    if surfaces is not None:
        found.append(("surfaces", count(surfaces["rows"]), f"hydroelastic, of {plural(surfaces['pairs'], 'pair')}"))
    return found + [(group_words(name), count(held["rows"]), "") for name, held in groups["counts"].items()]


def report_table(result: ResultDict) -> Table:
    """Table of collide.report/1."""
    rows, groups = [("scene", result["scene"])], group_figures(result)
    if result["contacts"] or not groups:
        rows.append(("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"))
        rows.append(("pairs", f"{count(result['pairs']['count'])} with contacts"))
    rows += [(name, f"{number}, {more}" if more else number) for name, number, more in groups]
    deepest: dict[str, Any] | None = result["deepest"]
    if deepest is not None and deepest["distance"] < 0.0:
        depth, pair = length(-deepest["distance"]), f"{deepest['shape0']} and {deepest['shape1']}"
        world = world_text(
            deepest["world"], result["demonstrations"][deepest["world"]] if result["demonstrations"] else ""
        )
        rows.append(("deepest", f"{depth}, frame {deepest['frame']}, world {world}: {pair}"))
    if result["difference"] is not None:
        rows.append(("baseline", verdict(result["difference"])))
    return name_value_table([*rows, ("written", result["output"])])


def plot_table(result: ResultDict) -> Table:
    """Table of collide.plot/1."""
    return name_value_table([("shows", result["words"]), ("written", result["output"])])


def view_table(result: ResultDict) -> Table:
    """Table of collide.view/1."""
    rows = [("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"), *_group_lines(result)]
    if result["worlds"] > 1:
        rows.append(("worlds", count(result["worlds"])))
    if result["scene"] is not None:
        scene = " ".join(result["scene"]) or result["trajectory"]
        rows.append(("scene", f"{scene}, {plural(result['shapes'], 'shape')}"))
        rows.append(("motion", result["trajectory"] or "the scene's own"))
    else:
        rows.append(("scene", "not found: only the contacts are drawn"))
    rows.append(("pairs", f"{count(result['touching_pairs'])} that touch"))
    rows.append(("written", f"{result['written']}, {memory(result['written_bytes'])}"))
    return name_value_table(rows)


# Short names of shapes that stay distinct: ends of paths, and texts shortened in the middle.

TAIL_SHARES = (0.6, 0.4, 0.8, 0.2, 1.0, 0.0)
"""Fractions of a shortened text that are its end, the preferred first."""


def short_names(paths: Sequence[str]) -> list[str]:
    """The shortest unique ends of paths, without the last parts that all of them share.

    A path that occurs twice gets its row as a suffix.
    """
    parts = _without_common_end([path.strip("/").split("/") for path in paths])
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


def _without_common_end(parts: list[list[str]]) -> list[list[str]]:
    if len({tuple(one) for one in parts}) < 2:
        return parts
    while all(len(one) > 1 for one in parts) and len({one[-1] for one in parts}) == 1:
        parts = [one[:-1] for one in parts]
    return parts


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


# Terminal table of the least distances of a motion.


def clearance_table(result: ResultDict) -> RenderableType:
    """Tables of collide.clearance/1: a summary, and the nearest items."""
    cells = f"{plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"
    rows = [("scene", result["scene"]), ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}")]
    if result["between"]:
        rows.append(("between", " and ".join(result["between"])))
    rows.append(("pairs", f"{count(result['pairs'])}, {plural(result['measured'], 'distance')} measured"))
    if result["output"]:
        rows.append(("written", f"{result['output']}, {memory(result['bytes'])}"))
    summary = name_value_table(rows)
    if not result["listed"]:
        return summary
    return Group(summary, Fitting(partial(_listed, result)))


def _world(one: ResultDict) -> str:
    return world_text(one["world"], one.get("episode", ""))


def _listed(result: ResultDict, narrow: int) -> Listing:
    of_bodies = result["by"] == "body"
    columns: list[Column] = [
        *([("body", "left", itemgetter("body"))] if of_bodies else []),
        *pair_columns(narrow),
        ("distance", "right", lambda one: length(one["least_distance"])),
        *([("world", "right", _world)] if result["worlds"] > 1 else []),
        ("in frame", "right", lambda one: str(one["frame"])),
        ("at", "right", lambda one: f"{one['time']:.6g} s"),
    ]
    more = result["items"] - len(result["listed"])
    return rows_table(columns, result["listed"], more_text(more, *(("body", "bodies") if of_bodies else ())))


# Terminal table of the labels of a contact set.


def label_table(result: ResultDict) -> RenderableType:
    """Tables of collide.label/1: a summary, and the listed pairs."""
    shape, options = result["shape"], result["options"]
    sizes = (plural(shape[name], name.removesuffix("s")) for name in ("frames", "worlds", "sensors", "partners"))
    rule = f"from {length(options['enter'])} to beyond {length(options['leave'])}"
    if options["min_frames"] > 1:
        rule += f", labels and pauses of at least {plural(options['min_frames'], 'frame')}"
    summary = name_value_table(
        [
            ("contact set", result["file"]),
            ("array", ", ".join(sizes)),
            ("labels", f"{count(result['labelled'])}, {rule}"),
            ("pairs", f"{count(result['pairs'])} of sensor and partner with a label"),
            ("written", f"{result['output']}, {memory(result['bytes'])}"),
            *([("written", result["chart"])] if result.get("chart") else []),
        ]
    )
    if not result["listed"]:
        return summary
    columns: list[Column] = [
        ("sensor", "left", itemgetter("sensor")),
        ("partner", "left", itemgetter("partner")),
        ("frames", "right", lambda one: count(one["cells"])),
        ("share", "right", lambda one: percent(one["share"])),
        ("distance", "right", lambda one: quantity(one["least_distance"], length)),
        *([("mean slip", "right", lambda one: speed(one["mean_slip"]))] if options["slip"] else []),
    ]
    more = more_text(result["pairs"] - len(result["listed"]))
    return Group(summary, rows_table(columns, result["listed"], more))


def speed(value: float | None) -> str:
    """A speed as text; "" without one."""
    return "" if value is None else f"{value:.4g} m/s"


# Terminal tables of `collide batch`.

FAILURES_SHOWN = 20
WARNINGS_SHOWN = 10


def state_table(result: ResultDict) -> RenderableType:
    """Table of collide.batch/1: counts, and the first failures with their messages."""
    failed = result["failed"]
    rows = [
        ("folder", result["folder"]),
        ("episodes", f"{count(result['episodes'])} in {plural(result['shards'], 'shard')}"),
        ("done", count(result["done"])),
        ("failed", f"{count(failed)}; --retry-failed of run and work tries again" if failed else "0"),
        ("left", count(result["left"])),
    ]
    if result.get("computed") is not None:
        rows.append(("computed now", count(result["computed"])))
    if result["left"]:
        rows.append(("estimated time left", f"{seconds(result['estimated_seconds_left'])} of one core"))
    parts: list[RenderableType] = [name_value_table(rows)]
    if result["hosts"]:
        table = listing(
            ("host", "left"), ("processor", "left"), ("shards", "right"), ("episodes", "right"),
            ("worker time", "right"), ("episodes/s", "right"),
        )  # fmt: skip
        for host in result["hosts"]:
            speed = f"{host['episodes_per_second']:.3g}"
            spent = host["seconds"]
            time = seconds(spent) if spent < 3600.0 else f"{spent / 3600.0:.2f} h"
            table.add_row(host["host"], host["processor"], count(host["shards"]), count(host["episodes"]), time, speed)
        parts.append(table)
    if result["run_warnings"]:
        table = listing(("episodes", "right"), ("warning", "left"), ("first", "left"))
        for warning in result["run_warnings"][:WARNINGS_SHOWN]:
            table.add_row(count(warning["episodes"]), warning["message"], warning["motion"])
        parts.append(table)
        if len(result["run_warnings"]) > WARNINGS_SHOWN:
            parts.append(Text(f"and {count(len(result['run_warnings']) - WARNINGS_SHOWN)} more; --json lists all"))
    if result["failures"]:
        table = listing(("failed episode", "left"), ("reason", "left"))
        for failure in result["failures"][:FAILURES_SHOWN]:
            name = " ".join(filter(None, (failure["motion"], failure["demo"]))) or failure["job"]
            table.add_row(name, failure["message"].removeprefix(f"{failure['motion']}: "))
        parts.append(table)
        if len(result["failures"]) > FAILURES_SHOWN:
            parts.append(Text(f"and {count(len(result['failures']) - FAILURES_SHOWN)} more; --json lists all"))
    return Group(*parts)


def verify_table(result: ResultDict) -> RenderableType:
    """Text of collide.batch_verify/1."""
    checked = plural(result["checked"], "contact set")
    if not result["different"]:
        return Text(f"{checked} computed again: all equal")
    return Text("\n".join([f"{checked} computed again, these differ:", *result["different"]]))


def gather_table(result: ResultDict) -> RenderableType:
    """Table of collide.batch_gather/1."""
    rows = [("written", result["output"]), ("episodes", count(result["episodes"]))]
    if result["failed"]:
        rows.append(("failed", f"{count(result['failed'])}, without a row; collide batch status lists them"))
    rows.append(("contacts", count(result["contacts"])))
    rows += [(group_words(name), count(held)) for name, held in (result.get("groups") or {}).items()]
    rows.append(("content", result["dataset_sha256"]))
    if result.get("slots_left"):
        rows.append(("slots left", f"{count(result['slots_left'])}; the values are those of this slot"))
    return name_value_table(rows)
