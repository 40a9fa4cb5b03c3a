"""Words of a comparison: verdicts, deviations, and the lines of findings."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from collidecli.analysis.differences import KINDS
from collidecli.escaping import markdown_code, markdown_text, printable_values
from collidecli.pages.names import world_text
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Column, more_text
from collidecli.pages.verdicts import Finding, Verdict, markdown_rows, markdown_section
from collidecli.scene.contact_columns import group_words
from collidecli.verbs.diff.cause_words import cause_columns, cause_lines
from collidecli.verbs.diff.one_sided_pairs import one_sided_lines
from collidecli.verbs.diff.times import time_words
from collidecli.verbs.diff.value_words import both_values, largest_deviation, short
from collidecli.wording import count, plural

MAX_CELL_LENGTH = 100
MEASURES = ("distance", "angle", "centre")
"""Differences of collide.diff_pairs/1 that have a spread."""
SPREAD = {"median": "median", "p99": "99 %", "worst": "worst"}


def verdict(result: ResultDict) -> str:
    """Whether the sets are equal, as one line."""
    rows = "".join(
        f", {count(group['a'])} {group_words(group['name'])}" for group in result["groups"]
    )
    contacts = result["contacts"]
    noun = "touching pairs" if contacts["what"] == "pairs" else "contacts"
    if not result["equal"]:
        return f"different: {', '.join(result['reasons'])}"
    differing = sum(contacts[kind] for kind in KINDS)
    at_limit = at_limit_text(result)
    if not differing and not contacts["within_tolerance"] and not at_limit:
        same = f"{plural(contacts['matched'], noun[:-1])}{rows}"
        return (
            f"equal: the content hashes are equal ({same})"
            if result["by_hash"]
            else f"equal: {same}"
        )
    matched = f"equal within what is allowed: {count(contacts['matched'])} {noun} matched"
    matched += f", {at_limit} at the limit" if at_limit else ""
    return matched if result["by_hash"] else f"{matched}; the content hashes differ"


def at_limit_text(result: ResultDict) -> str:
    """Counts of the missing and extra contacts within the tolerance of the pair's gap; empty
    without any."""
    return " and ".join(_by_kind(result["contacts"]["at_limit"]))


def _by_kind(counts: ResultDict) -> list[str]:
    """The numbers of differences of each kind that has any, as texts."""
    return [f"{count(counts[kind])} {kind}" for kind in KINDS if counts.get(kind)]


def cell_text(where: ResultDict) -> str:
    """Frame, world and time of a cell, as text."""
    frame = f"frame {where['frame_a']}"
    if where["frame_b"] != where["frame_a"]:
        frame += f" (B: {where['frame_b']})"
    world = world_text(where["world"], where.get("episode", ""))
    return f"{frame}, world {world}{time_words(where['time'])}"


def model_line(difference: ResultDict) -> str:
    """A difference of the models, as one line."""
    world = f" (world {difference['world']})" if difference["world"] is not None else ""
    if difference["kind"] == "renamed":
        return f"renamed: {difference['a']} is {difference['b']} in B{world}"
    if difference["kind"] in ("removed", "added"):
        return (
            f"{difference['kind']}: {difference['path']}, a"
            f" {difference['a'] or difference['b']}{world}"
        )
    return f"changed: {difference['path']}: {difference['what']} {both_values(difference)}{world}"


def frame_lines(result: ResultDict) -> list[str]:
    """Lines about frames that only one file has, and about times that differ."""
    frames = result["frames"]
    lines = []
    for name in ("a", "b"):
        if (first := frames[f"first_only_{name}"]) is not None:
            many = plural(frames[f"only_{name}"], "frame")
            which = f"frame {first['frame']}, step {first['step']}{time_words(first['time'])}"
            lines.append(f"{many} only in {name.upper()}, the first: {which}")
    if frames["times_changed"]:
        many = plural(frames["times_changed"], "frame")
        most = f"by up to {short(frames['largest_time_change'])} s"
        fix = (
            "; --match-frames time compares frames of equal times" if frames["by"] != "time" else ""
        )
        lines.append(f"another time in {many}, {most}{fix}")
    return lines


def group_lines(result: ResultDict) -> list[str]:
    """A line for each group with differing rows, followed by one for each of its fields that
    differ."""
    lines = []
    for group in result["groups"]:
        if not (
            any(group[kind] for kind in KINDS) or group["fields"] or any(group["at_limit"].values())
        ):
            continue
        words = [f"{count(group[kind])} {kind}" for kind in KINDS]
        words += [f"{text} at the limit" for text in _by_kind(group["at_limit"])]
        first = f", first in {cell_text(group['first'])}" if group["first"] is not None else ""
        lines.append(f"{group_words(group['name'])}: {', '.join(words)}{first}")
        for entry in group["objects"]:
            lines.append(
                f"  {' and '.join(dict.fromkeys(entry['paths']))}: {', '.join(_by_kind(entry))}"
            )
        for entry in group["fields"]:
            beyond = f"{count(entry['changed'])} beyond tolerance"
            most = _by_up_to(entry)
            lines.append(f"  {entry['name']}: {count(entry['differing'])} differ, {beyond}{most}")
    return lines


def _by_up_to(field: ResultDict) -> str:
    most = largest_deviation(field)
    return f", by up to {most}" if most else ""


FIRST_IN: Column = ("first in", "left", lambda one: cell_text(one["first"]))
FIELDS: list[Column] = [
    ("field", "left", itemgetter("name")),
    ("differ", "right", lambda one: count(one["differing"])),
    ("beyond tolerance", "right", lambda one: count(one["changed"])),
    ("largest", "right", largest_deviation),
]
"""Columns of a table of fields."""


def findings(result: ResultDict) -> list[Finding]:
    """The stages of the comparison, with their failures."""
    contacts = result["contacts"]
    worlds = result["worlds"]
    listed = [
        Finding("model", [model_line(difference) for difference in result["model"]["listed"]]),
        Finding("frames", frame_lines(result)),
        Finding(
            "worlds",
            [f"{worlds['a']} in A and {worlds['b']} in B"] if worlds["a"] != worlds["b"] else [],
        ),
    ]
    for kind in KINDS:
        lines = []
        if contacts[kind] > contacts["allowed"][kind]:
            lines.append(
                f"{count(contacts[kind])} {kind}, {count(contacts['allowed'][kind])} allowed"
            )
            for pair in result["pairs"]["listed"]:
                if pair[kind]:
                    of_pair = f"{count(pair[kind])}, first in {cell_text(pair['first'])}"
                    lines.append(f"{pair['shape0']} and {pair['shape1']}: {of_pair}")
            for field in result["fields"] if kind == "changed" else ():
                if field["changed"]:
                    number = count(field["changed"])
                    lines.append(f"{field['name']}: {number} changed{_by_up_to(field)}")
        listed.append(Finding(f"{contacts['what']} {kind}", lines))
    for group in result["groups"]:
        over = any(group[kind] > group["allowed"][kind] for kind in KINDS)
        listed.append(
            Finding(group_words(group["name"]), group_lines({"groups": [group]}) if over else [])
        )
    return listed


def diff_verdict(result: ResultDict, seconds: float) -> Verdict:
    """The verdict of collide.diff/1. seconds: duration of the comparison."""
    result = printable_values(result)
    return Verdict.of("diff", verdict(result), findings(result), seconds, markdown(result))


def markdown(result: ResultDict, title: str = "collide diff") -> str:
    """A Markdown section for a step summary."""
    result = printable_values(result)
    contacts = result["contacts"]
    pairs = result["pairs"]["listed"]
    sides = [[name, *_sides(result, name)] for name in ("file", "frames", "worlds", "contacts")]
    wrong = [model_line(row) for row in result["model"]["listed"]] + frame_lines(result)
    of_causes = [title for title, _, _ in cause_columns(result)]
    of_pairs = [
        [
            *pair_cells(row),
            cell_text(row["first"]),
            *(markdown_cell(text(row)) for _, _, text in cause_columns(result)),
        ]
        for row in pairs
    ]
    more = result["pairs"]["differing"] - len(pairs)
    fields = [[text(row) for _, _, text in FIELDS] for row in result["fields"] if row["differing"]]
    ignored = contacts["ignored_shallow"]
    at_limit = at_limit_text(result)
    return markdown_section(
        f"{markdown_cell(title)}: {'equal' if result['equal'] else 'different'}",
        [markdown_cell(verdict(result), most=1000)],
        markdown_rows(["", "A", "B"], sides),
        _markdown_items(wrong),
        _markdown_items([*one_sided_lines(result), *cause_lines(result)]),
        markdown_rows(["shape 0", "shape 1", *KINDS, "first in", *of_causes], of_pairs),
        [more_text(more)] if pairs and more else [],
        markdown_rows([title for title, _, _ in FIELDS], fields),
        _markdown_items(group_lines(result)),
        (
            [f"Ignored: {plural(ignored, 'contact')} within --ignore-shallow of the gap."]
            if ignored
            else []
        ),
        (
            [f"At the limit, not counted: {at_limit} within the tolerance of the pair's gap."]
            if at_limit
            else []
        ),
        [f"- note: {markdown_cell(note, most=300)}" for note in result["notes"]],
    )


def _markdown_items(lines: Iterable[str]) -> list[str]:
    """The items of a list in Markdown; one of a line that begins with spaces is below the item
    before."""
    items = []
    for line in lines:
        text = line.lstrip(" ")
        indent = "  " if text != line and items else ""
        items.append(f"{indent}- {markdown_cell(text, most=300)}")
    return items


def pair_cells(pair: ResultDict) -> list[str]:
    """Cells of a row of Markdown: a pair and its numbers of differences by kind."""
    return [_code(pair["shape0"]), _code(pair["shape1"]), *(count(pair[kind]) for kind in KINDS)]


def _sides(result: ResultDict, name: str) -> list[str]:
    values = [result[side][name] for side in ("a", "b")]
    return [_code(value) if isinstance(value, str) else count(value) for value in values]


def markdown_cell(text: str, most: int = MAX_CELL_LENGTH) -> str:
    """A text as a cell of Markdown, shortened to `most` characters."""
    return markdown_text(text if len(text) <= most else text[: most - 3] + "...")


def _code(text: str) -> str:
    return markdown_code(
        text if len(text) <= MAX_CELL_LENGTH else "..." + text[3 - MAX_CELL_LENGTH :]
    )
