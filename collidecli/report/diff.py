"""Comparisons of contact sets: verdicts and terminal tables, and the tables of several inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report import tables
from collidecli.scene.tables import GROUPS_BY_NAME, group_words
from collidecli.texts import count, markdown_code, markdown_text, plural, printable_values

KINDS = ("missing", "extra", "changed")
MAX_CELL_LENGTH = 100
MEASURES = ("distance", "angle", "centre")
"""Differences of collide.diff_pairs/1 that have a spread."""
SPREAD = {"median": "median", "p99": "99 %", "worst": "worst"}


def verdict(result: tables.ResultDict) -> str:
    """Whether the sets are equal, as one line."""
    rows = "".join(f", {count(group['a'])} {group_words(group['name'])}" for group in result["groups"])
    contacts = result["contacts"]
    noun = "touching pairs" if contacts["what"] == "pairs" else "contacts"
    if not result["equal"]:
        return f"different: {', '.join(result['reasons'])}"
    differing = sum(contacts[kind] for kind in KINDS)
    at_limit = at_limit_text(result)
    if not differing and not contacts["within_tolerance"] and not at_limit:
        same = f"{plural(contacts['matched'], noun[:-1])}{rows}"
        return f"equal: the content hashes are equal ({same})" if result["by_hash"] else f"equal: {same}"
    matched = f"equal within what is allowed: {count(contacts['matched'])} {noun} matched"
    matched += f", {at_limit} at the limit" if at_limit else ""
    return matched if result["by_hash"] else f"{matched}; the content hashes differ"


def at_limit_text(result: tables.ResultDict) -> str:
    """Counts of the missing and extra contacts within the tolerance of the pair's gap; empty without any."""
    return " and ".join(_by_kind(result["contacts"]["at_limit"]))


def _by_kind(counts: tables.ResultDict) -> list[str]:
    """The numbers of differences of each kind that has any, as texts."""
    return [f"{count(counts[kind])} {kind}" for kind in KINDS if counts.get(kind)]


def cell_text(where: tables.ResultDict) -> str:
    """Frame, world and time of a cell, as text."""
    frame = f"frame {where['frame_a']}"
    if where["frame_b"] != where["frame_a"]:
        frame += f" (B: {where['frame_b']})"
    time = where["time"]
    world = tables.world_text(where["world"], where.get("episode", ""))
    return f"{frame}, world {world}, t = {time if isinstance(time, str) else f'{time:.6g}'} s"


def deviation(value: Any, unit: str) -> str:
    """A deviation with its unit, as text."""
    if isinstance(value, str):
        return value
    if unit == "m":
        return tables.length(value) if value >= 1e-6 or value == 0.0 else f"{value:.3g} m"
    return f"{tables.plain(value, 3)} {unit}".strip()


def model_line(difference: tables.ResultDict) -> str:
    """A difference of the models, as one line."""
    world = f" (world {difference['world']})" if difference["world"] is not None else ""
    if difference["kind"] == "renamed":
        return f"renamed: {difference['a']} is {difference['b']} in B{world}"
    if difference["kind"] in ("removed", "added"):
        return f"{difference['kind']}: {difference['path']}, a {difference['a'] or difference['b']}{world}"
    return f"changed: {difference['path']}: {difference['what']} {both_values(difference)}{world}"


def both_values(difference: tables.ResultDict) -> str:
    """The values `a` and `b` of a difference, with digits enough to tell them apart."""
    texts = [[short(difference[name], digits) for name in ("a", "b")] for digits in range(6, 18)]
    a, b = next((both for both in texts if both[0] != both[1]), texts[0])
    return f"{a} in A, {b} in B"


def short(value: Any, digits: int = 6) -> str:
    """A value as short text."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(short(item, digits) for item in value)})"
    return f"{value:.{digits}g}" if isinstance(value, float) else "none" if value == "" else str(value)


def frame_lines(result: tables.ResultDict) -> list[str]:
    """Lines about frames that only one file has, and about times that differ."""
    frames, lines = result["frames"], []
    for name in ("a", "b"):
        if (first := frames[f"first_only_{name}"]) is not None:
            many, when = plural(frames[f"only_{name}"], "frame"), f"t = {short(first['time'])} s"
            which = f"frame {first['frame']}, step {first['step']}, {when}"
            lines.append(f"{many} only in {name.upper()}, the first: {which}")
    if frames["times_changed"]:
        many = plural(frames["times_changed"], "frame")
        lines.append(f"another time in {many}, by up to {short(frames['largest_time_change'])} s")
    return lines


def group_lines(result: tables.ResultDict) -> list[str]:
    """A line for each group with differing rows, followed by one for each of its fields that differ."""
    lines = []
    for group in result["groups"]:
        if not (any(group[kind] for kind in KINDS) or group["fields"] or any(group["at_limit"].values())):
            continue
        words = [f"{count(group[kind])} {kind}" for kind in KINDS]
        words += [f"{text} at the limit" for text in _by_kind(group["at_limit"])]
        first = f", first in {cell_text(group['first'])}" if group["first"] is not None else ""
        lines.append(f"{group_words(group['name'])}: {', '.join(words)}{first}")
        for entry in group["objects"]:
            lines.append(f"  {' and '.join(dict.fromkeys(entry['paths']))}: {', '.join(_by_kind(entry))}")
        for entry in group["fields"]:
            beyond = f"{count(entry['changed'])} beyond tolerance"
            most = f"by up to {deviation(entry['largest'], entry['unit'])}"
            lines.append(f"  {entry['name']}: {count(entry['differing'])} differ, {beyond}, {most}")
    return lines


FIRST_IN: tables.Column = ("first in", "left", lambda one: cell_text(one["first"]))
FIELDS: list[tables.Column] = [
    ("field", "left", itemgetter("name")),
    ("differ", "right", lambda one: count(one["differing"])),
    ("beyond tolerance", "right", lambda one: count(one["changed"])),
    ("largest", "right", lambda one: deviation(one["largest"], one["unit"])),
]
"""Columns of a table of fields."""


def findings(result: tables.ResultDict) -> list[tables.Finding]:
    """The stages of the comparison, with their failures."""
    contacts, worlds = result["contacts"], result["worlds"]
    listed = [
        tables.Finding("model", [model_line(difference) for difference in result["model"]["listed"]]),
        tables.Finding("frames", frame_lines(result)),
        tables.Finding("worlds", [f"{worlds['a']} in A and {worlds['b']} in B"] if worlds["a"] != worlds["b"] else []),
    ]
    for kind in KINDS:
        lines = []
        if contacts[kind] > contacts["allowed"][kind]:
            lines.append(f"{count(contacts[kind])} {kind}, {count(contacts['allowed'][kind])} allowed")
            for pair in result["pairs"]["listed"]:
                if pair[kind]:
                    of_pair = f"{count(pair[kind])}, first in {cell_text(pair['first'])}"
                    lines.append(f"{pair['shape0']} and {pair['shape1']}: {of_pair}")
            for field in result["fields"] if kind == "changed" else ():
                if field["changed"]:
                    most = deviation(field["largest"], field["unit"])
                    lines.append(f"{field['name']}: {count(field['changed'])} changed, by up to {most}")
        listed.append(tables.Finding(f"{contacts['what']} {kind}", lines))
    for group in result["groups"]:
        over = any(group[kind] > group["allowed"][kind] for kind in KINDS)
        listed.append(tables.Finding(group_words(group["name"]), group_lines({"groups": [group]}) if over else []))
    return listed


def diff_verdict(result: tables.ResultDict, seconds: float) -> tables.Verdict:
    """The verdict of collide.diff/1. seconds: duration of the comparison."""
    result = printable_values(result)
    return tables.Verdict.of("diff", verdict(result), findings(result), seconds, markdown(result))


def markdown(result: tables.ResultDict, title: str = "collide diff") -> str:
    """A Markdown section for a step summary."""
    result = printable_values(result)
    contacts, pairs = result["contacts"], result["pairs"]["listed"]
    sides = [[name, *_sides(result, name)] for name in ("file", "frames", "worlds", "contacts")]
    wrong = [model_line(row) for row in result["model"]["listed"]] + frame_lines(result)
    of_pairs = [[*_pair_cells(row), cell_text(row["first"])] for row in pairs]
    more = result["pairs"]["differing"] - len(pairs)
    fields = [[text(row) for _, _, text in FIELDS] for row in result["fields"] if row["differing"]]
    ignored, at_limit = contacts["ignored_shallow"], at_limit_text(result)
    return tables.markdown_section(
        f"{_cell(title)}: {'equal' if result['equal'] else 'different'}",
        [_cell(verdict(result), most=1000)],
        tables.markdown_rows(["", "A", "B"], sides),
        [f"- {_cell(line, most=300)}" for line in wrong],
        tables.markdown_rows(["shape 0", "shape 1", *KINDS, "first in"], of_pairs),
        [tables.more_text(more)] if pairs and more else [],
        tables.markdown_rows([title for title, _, _ in FIELDS], fields),
        [f"- {_cell(line.strip(), most=300)}" for line in group_lines(result)],
        [f"Ignored: {plural(ignored, 'contact')} within --ignore-shallow of the gap."] if ignored else [],
        [f"At the limit, not counted: {at_limit} within the tolerance of the pair's gap."] if at_limit else [],
        [f"- note: {_cell(note, most=300)}" for note in result["notes"]],
    )


def _pair_cells(pair: tables.ResultDict) -> list[str]:
    return [_code(pair["shape0"]), _code(pair["shape1"]), *(count(pair[kind]) for kind in KINDS)]


def _sides(result: tables.ResultDict, name: str) -> list[str]:
    values = [result[side][name] for side in ("a", "b")]
    return [_code(value) if isinstance(value, str) else count(value) for value in values]


def _cell(text: str, most: int = MAX_CELL_LENGTH) -> str:
    return markdown_text(text if len(text) <= most else text[: most - 3] + "...")


def _code(text: str) -> str:
    return markdown_code(text if len(text) <= MAX_CELL_LENGTH else "..." + text[3 - MAX_CELL_LENGTH :])


# Comparisons by pair, of sets of any engines.


def pair_diff_words(result: tables.ResultDict) -> str:
    """Whether the sets agree by pair, as one line."""
    both = plural(result["counts"]["both"], "pair")
    return f"different: {', '.join(result['reasons'])}" if result["reasons"] else f"equal by pair: {both} in both"


def _worst(row: tables.ResultDict, name: str) -> str:
    return "" if row[name] is None else _measure(name, row[name]["worst"])


def _measure(name: str, value: float) -> str:
    return f"{value:.3g} deg" if name == "angle" else tables.length(value)


def _contacts_of_pair(row: tables.ResultDict) -> str:
    return (
        ""
        if row["contacts_a"] is None
        else " / ".join(tables.plain(row[name], 3) for name in ("contacts_a", "contacts_b"))
    )


def _by_pair(result: tables.ResultDict, narrow: int) -> tables.Listing:
    columns: list[tables.Column] = [
        *tables.pair_columns(narrow),
        ("both", "right", lambda row: count(row["both"])),
        *_kind_columns(),
        *((f"{name}, worst", "right", partial(_worst, name=name)) for name in MEASURES),
        ("contacts A / B", "right", _contacts_of_pair),
        FIRST_IN,
    ]
    return tables.rows_table(
        columns, result["pairs"], tables.more_text(result["differing_pairs"] - len(result["pairs"]))
    )


def pair_diff_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.diff_pairs/1."""
    words, totals = (
        tables.verdict_text(pair_diff_words(result), result["equal"]),
        tables.name_value_table(_pair_totals(result)),
    )
    parts: list[RenderableType] = [words, Text(), totals]
    if result["pairs"]:
        parts.append(tables.Fitting(partial(_by_pair, result), ("first in", f"{MEASURES[-1]}, worst")))
    return Group(*parts, *(Text(f"note: {note}") for note in result["notes"]))


def _pair_totals(result: tables.ResultDict) -> list[tuple[str, str]]:
    counts, frames = result["counts"], result["frames"]
    rows = []
    for name in ("a", "b"):
        pairs = f"{plural(counts[name], 'pair')} in all cells"
        rows.append((name.upper(), f"{result[name]['file']}, {result['engines'][name]}, {pairs}"))
    rows.append(("frames", f"{count(frames['compared'])} compared, by {frames['by']}"))
    words = [f"{count(counts[kind])} {kind}" for kind in ("both", *KINDS)]
    words += [f"{count(result['not_asked'])} not asked"] if result["not_asked"] else []
    rows.append(("pairs", ", ".join(words)))
    for name in MEASURES:
        if result[name] is not None:
            spread = ", ".join(f"{_measure(name, result[name][key])} {text}" for key, text in SPREAD.items())
            rows.append((name, spread))
    contacts = _contacts_of_pair(result)
    return [*rows, ("contacts", f"{contacts} a pair in A / B")] if contacts else rows


def pair_diff_verdict(result: tables.ResultDict, seconds: float) -> tables.Verdict:
    """The verdict of collide.diff_pairs/1. seconds: duration of the comparison."""
    result = printable_values(result)
    words = pair_diff_words(result)
    rows = [[*_pair_cells(row), *(_worst(row, name) for name in MEASURES)] for row in result["pairs"]]
    text = tables.markdown_section(
        f"collide diff --by-pair: {'equal' if result['equal'] else 'different'}",
        [_cell(words, most=1000)],
        tables.markdown_rows(["", "value"], [[name, _cell(value, most=300)] for name, value in _pair_totals(result)]),
        tables.markdown_rows(["shape 0", "shape 1", *KINDS, *MEASURES], rows),
    )
    return tables.Verdict.of("diff", words, [tables.Finding("by pair", result["reasons"])], seconds, text)


# Terminal tables of the results of several inputs: a row per input.

STATES = {"done": "done", "failed": "failed", "skipped": "output exists", "only_a": "only in A", "only_b": "only in B"}
"""Words for the states of inputs."""


def _kind_columns(counts: Callable[[tables.ResultDict], tables.ResultDict] = lambda row: row) -> list[tables.Column]:
    """Columns of the numbers of differences by kind; 0 is empty. counts: of a row."""

    def number(row: tables.ResultDict, kind: str) -> str:
        return count(counts(row)[kind]) if counts(row)[kind] else ""

    return [(kind, "right", partial(number, kind=kind)) for kind in KINDS]


def _of_counts(*names: str, of: str = "") -> list[tables.Column]:
    """Columns of numbers, or of the lengths of lists; empty without one. of: the part of the result."""

    def text(result: tables.ResultDict, name: str) -> str:
        value = (result[of] if of else result).get(name)
        return "" if value is None else count(value if isinstance(value, int) else len(value))

    return [(name, "right", partial(text, name=name)) for name in names]


def _nearest(title: str, side: str, name: str) -> tables.Column:
    return title, side, lambda result: str(result["listed"][0][name]) if result["listed"] else ""


def _depth(result: tables.ResultDict) -> str:
    deepest = result["deepest"]
    return tables.length(-deepest["distance"]) if deepest is not None and deepest["distance"] < 0.0 else ""


WRITTEN: tables.Column = ("written", "left", lambda one: one["output"] or "")
DEEPEST: tables.Column = ("deepest", "right", _depth)
FRAMES, PAIRS = _of_counts("frames", "pairs")
LISTS: dict[str, tuple[str, list[tables.Column]]] = {
    "run": (
        "input",
        [
            *_of_counts("frames", "contacts"),
            DEEPEST,
            ("time", "right", lambda o: tables.seconds(o["wall_seconds"])),
            WRITTEN,
        ],
    ),
    "check": (
        "file",
        [
            ("format", "left", lambda one: one["format"]),
            ("faults", "right", lambda one: count(len(one["findings"])) if one["findings"] else ""),
        ],
    ),
    "events": (
        "contact set",
        [
            ("frames", "right", lambda one: count(one["frames"]["count"])),
            ("pairs", "right", lambda one: count(one["intervals"]["pairs"])),
            ("touches", "right", lambda one: count(one["intervals"]["count"])),
            ("longest", "right", lambda one: tables.seconds_text(one["intervals"]["longest"])),
        ],
    ),
    "label": (
        "contact set",
        [
            *_of_counts("frames", "worlds", "sensors", "partners", of="shape"),
            *_of_counts("labelled", "runs"),
        ],
    ),
    "audit": (
        "input",
        [
            FRAMES,
            ("pairs", "right", lambda one: count(len(one["pairs"]))),
            ("deepest", "right", lambda one: tables.length(max((pair["depth"] for pair in one["pairs"]), default=0.0))),
            ("usable", "right", lambda one: f"{count(one['usable']['cells'])} of {count(one['cells'])}"),
        ],
    ),
    "clearance": (
        "recording",
        [
            FRAMES,
            PAIRS,
            ("least", "right", lambda one: tables.length(one["listed"][0]["least_distance"]) if one["listed"] else ""),
            _nearest("shape 0", "left", "shape0"),
            _nearest("shape 1", "left", "shape1"),
            _nearest("in frame", "right", "frame"),
            WRITTEN,
        ],
    ),
    "report": ("contact set", [*_of_counts("frames", "contacts"), DEEPEST, WRITTEN]),
    "inspect": (
        "file",
        [
            ("kind", "left", lambda one: _kind(one)),
            *_of_counts("shapes", "bodies", "worlds", "frames", "contacts"),
        ],
    ),
    "diff": (
        "contact set",
        [
            ("contacts", "right", lambda one: count(one["contacts"]["a"])),
            *_kind_columns(itemgetter("contacts")),
            ("reasons", "left", lambda one: ", ".join(one["reasons"])),
        ],
    ),
}
"""Title of the inputs, and columns of their results, by verb."""
VERDICTS = {
    "check": lambda one: "good" if one["good"] else "faulty",
    "audit": lambda one: "passed" if one["passed"] else "over a limit",
    "diff": lambda one: "equal" if one["equal"] else "different",
}


def list_table(result: tables.ResultDict) -> RenderableType:
    """Table of collide.<verb>_list/1: a row per input, of `check` the findings, totals, and the written tables."""
    verb = result["schema"].split(".")[1].removesuffix("_list/1")
    title, columns = LISTS[verb]
    if verb in ("run", "inspect"):
        columns = [*columns, *_group_columns(result)]
    verdict = VERDICTS.get(verb, lambda _: "done")
    table = tables.listing((title, "left"), ("result", "left"), *(column[:2] for column in columns))
    ends: list[str] = []
    for item in result["items"]:
        name, diffed = item["name"] or item["input"], item["result"]
        if diffed is None:
            table.add_row(name, STATES[item["state"]])
            continue
        table.add_row(name, verdict(diffed), *(text(diffed) for _, _, text in columns))
        if verb == "check":
            ends += [f"{item['input']}: {finding['where']}: {finding['what']}" for finding in diffed["findings"]]
    written = result.get("written") or {}
    paths = [written] if isinstance(written, str) else [path for path in written.values() if path]
    return Group(table, *map(Text, ends), _total(verb, result), *(Text(f"written: {path}") for path in paths))


def _total(verb: str, result: tables.ResultDict) -> Text:
    counts = result["counts"]
    if verb == "diff":
        return Text(diff_list_words(result), style="bold")
    if verb == "check":
        good = sum(bool(item["result"] and item["result"]["good"]) for item in result["items"])
        failed = f", {count(counts['failed'])} cannot be checked" if counts["failed"] else ""
        return Text(f"{count(good)} good, {count(counts['done'] - good)} faulty{failed}")
    words = {"done": "done", "failed": "failed", "skipped": "skipped, as the output exists"}
    return Text(", ".join(f"{count(number)} {words[state]}" for state, number in counts.items() if number))


def diff_list_words(result: tables.ResultDict) -> str:
    """Numbers of equal, different and unmatched contact sets of two folders, as one line."""
    counts = result["counts"]
    equal = sum(bool(item["result"] and item["result"]["equal"]) for item in result["items"])
    parts = [
        (equal, "equal"),
        (counts["done"] - equal, "different"),
        (counts["only_a"], "only in A"),
        (counts["only_b"], "only in B"),
        (counts["failed"], "cannot be compared"),
    ]
    parts_text = ", ".join(f"{count(number)} {words}" for number, words in parts if number)
    return f"{plural(len(result['items']), 'contact set')}: {parts_text}"


def state_text(item: tables.ResultDict) -> str:
    """The state of an input without a result, with the error of one that failed."""
    words = STATES[item["state"]]
    return f"{words}: {item['error']['what']}" if item["error"] is not None else words


def _group_columns(result: tables.ResultDict) -> list[tables.Column]:
    def rows(contact_set: tables.ResultDict, name: str) -> str:
        return count(contact_set["groups"][name]["rows"]) if name in (contact_set.get("groups") or {}) else ""

    names = {name for item in result["items"] for name in (item["result"] or {}).get("groups") or {}}
    return [(group_words(name), "right", partial(rows, name=name)) for name in GROUPS_BY_NAME if name in names]


def _kind(item: tables.ResultDict) -> str:
    if item["schema"] == "collide.inspect.recording/1":
        return item["label"]
    return {"scene": "scene", "trajectory": "trajectory", "contacts": "contact set"}[item["schema"].split(".")[2][:-2]]


# Comparisons of the contact sets of two folders.

MAX_SECTIONS = 20
"""Number of different contact sets that have a section in Markdown: GitHub shows a summary of up to 1 MiB."""


def diff_list_verdict(result: tables.ResultDict, seconds: Mapping[str, float]) -> tables.Verdict:
    """The verdict of collide.diff_list/1, with a suite per contact set. seconds: durations by the names of inputs."""
    result = printable_values(result)
    suites, failures = [], []
    for item in result["items"]:
        name, diffed = item["input"], item["result"]
        kind, case = ("error", "comparison") if item["error"] else ("failure", "in both folders")
        of_item = findings(diffed) if diffed else [tables.Finding(case, [state_text(item)])]
        suites.append(tables.Suite(f"collide diff: {name}", name, of_item, seconds.get(name, 0.0), kind))
        if diffed is None or not diffed["equal"]:
            failures.append((name, verdict(diffed) if diffed else state_text(item)))
    different = [item for item in result["items"] if item["result"] and not item["result"]["equal"]]
    head = tables.markdown_section(
        f"collide diff: {'different' if failures else 'equal'}",
        [markdown_text(diff_list_words(result))],
        tables.markdown_rows(["contact set", "result", *KINDS], [_row(item) for item in result["items"]]),
    )
    sections = [markdown(item["result"], item["input"]) for item in different[:MAX_SECTIONS]]
    more = len(different) - len(sections)
    rest = [f"and {plural(more, 'more different contact set')}\n"] if more else []
    return tables.Verdict("diff", diff_list_words(result), suites, failures, "\n".join([head, *sections, *rest]))


def _row(item: tables.ResultDict) -> list[str]:
    result = item["result"]
    if result is None:
        return [markdown_code(item["input"]), markdown_text(state_text(item)), *[""] * len(KINDS)]
    numbers = [count(result["contacts"][kind]) for kind in KINDS]
    return [markdown_code(item["input"]), "equal" if result["equal"] else "different", *numbers]


# Terminal tables of a comparison of two contact sets.


def diff_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.diff/1: the verdict, then the differences."""
    parts: list[RenderableType] = [tables.verdict_text(verdict(result), result["equal"])]
    if not (result["by_hash"] and result["equal"]):
        parts += [Text(), _summary(result)]
    lines = [model_line(row) for row in result["model"]["listed"]]
    more = result["model"]["differences"] - len(lines)
    lines += [f"and {plural(more, 'more difference')} of the model"] if more else []
    lines += frame_lines(result)
    if lines:
        parts += [Text(), Text("\n".join(lines))]
    if result["pairs"]["listed"]:
        parts.append(tables.Fitting(partial(_pairs, result)))
    fields = [row for row in result["fields"] if row["differing"]]
    if fields:
        parts.append(tables.rows_table(FIELDS, fields))
        for row in fields:
            if worst := row["worst"]:
                where = f"{worst['shape0']} and {worst['shape1']}, {cell_text(worst)}"
                parts.append(Text(f"{row['name']}: largest at {where}: {both_values(worst)}"))
        histogram = [row for row in fields if row["histogram"]]
        if histogram:
            columns = {row["name"]: {b["from"] or 0.0: b["contacts"] for b in row["histogram"]} for row in histogram}
            table = tables.listing(("deviation", "left"), *((name, "right") for name in columns))
            for edge in sorted({edge for column in columns.values() for edge in column}):
                numbers = (count(column[edge]) if edge in column else "" for column in columns.values())
                table.add_row(f"from {edge:.0e}" if edge else "below 1e-09", *numbers)
            parts.append(table)
    parts += [Text(line) for line in group_lines(result)]
    if result["notes"]:
        parts += [Text(), *(Text(f"note: {note}") for note in result["notes"])]
    return Group(*parts)


def _summary(result: tables.ResultDict) -> RenderableType:
    contacts, frames, worlds = result["contacts"], result["frames"], result["worlds"]
    noun = "pairs" if contacts["what"] == "pairs" else "contacts"
    verb = "differs" if frames["differing"] == 1 else "differ"
    differing = f", {count(frames['differing'])} of them {verb}" if frames["differing"] else ""
    sides = ((name.upper(), result[name]) for name in ("a", "b"))
    rows = [
        *((name, f"{side['file']}, {plural(side['contacts'], 'contact')}") for name, side in sides),
        ("frames", f"{count(frames['compared'])} compared, by {frames['by']}{differing}"),
    ]
    if worlds["compared"] > 1 or worlds["a"] != worlds["b"]:
        names = ", ".join(map(str, worlds["listed"])) + (", ..." if worlds["differing"] > len(worlds["listed"]) else "")
        rows.append(("worlds", f"{count(worlds['compared'])} compared" + (f", these differ: {names}" if names else "")))
    rows.append((noun, ", ".join(f"{count(contacts[kind])} {kind}" for kind in KINDS)))
    if noun == "contacts" and (contacts["missing_pairs"] or contacts["extra_pairs"]):
        only_a, only_b = (count(contacts[f"{kind}_pairs"]) for kind in ("missing", "extra"))
        rows.append(("pairs", f"{only_a} in A only, {only_b} in B only, counted in every frame and world"))
    if contacts["ignored_shallow"]:
        rows.append(("ignored", f"{count(contacts['ignored_shallow'])} within --ignore-shallow of the gap"))
    if at_limit := at_limit_text(result):
        reason = "their distance is within the tolerance of the pair's gap"
        rows.append(("at the limit", f"{at_limit}, not counted: {reason}"))
        for pair in contacts["at_limit"]["pairs"]:
            rows.append(("", f"{count(pair['contacts'])} of {pair['shape0']} and {pair['shape1']}"))
    if result["first"] is not None:
        rows.append(("first", cell_text(result["first"])))
    return tables.name_value_table(rows)


def _pairs(result: tables.ResultDict, narrow: int) -> tables.Listing:
    listed = result["pairs"]["listed"]
    columns = [*tables.pair_columns(narrow), *_kind_columns(), FIRST_IN]
    return tables.rows_table(columns, listed, tables.more_text(result["pairs"]["differing"] - len(listed)))
