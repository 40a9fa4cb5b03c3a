"""Terminal tables of the results of several inputs: a row per input."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report.diff_words import KINDS
from collidecli.report.words import ResultDict, length, listing, seconds
from collidecli.scene.contact_groups import GROUPS_BY_NAME, group_words
from collidecli.scene.text_format import count, plural

STATES = {
    "done": "done",
    "failed": "failed",
    "skipped": "output exists",
    "only_a": "only in A",
    "only_b": "only in B",
}
"""Words for the states of inputs."""
Column = tuple[str, str, Callable[[ResultDict], str]]
"""Title, side as in `listing`, and text of the result of an input."""


def run_list_table(result: ResultDict) -> RenderableType:
    """Table of collide.run_list/1."""
    columns: list[Column] = [
        ("frames", "right", lambda one: count(one["frames"])),
        ("contacts", "right", lambda one: count(one["contacts"])),
        *_group_columns(result),
        ("deepest", "right", lambda one: _depth(one["deepest"])),
        ("time", "right", lambda one: seconds(one["wall_seconds"])),
        ("written", "left", lambda one: one["output"]),
    ]
    return Group(_table(result, "input", columns), _totals(result))


def check_list_table(result: ResultDict) -> RenderableType:
    """Table of collide.check_list/1, and the findings about each faulty file."""
    columns: list[Column] = [
        ("format", "left", lambda one: one["format"]),
        ("faults", "right", lambda one: count(len(one["findings"])) if one["findings"] else ""),
    ]
    lines = [
        f"{item['input']}: {finding['where']}: {finding['what']}"
        for item in result["items"]
        for finding in (item["result"] or {"findings": ()})["findings"]
    ]
    table = _table(result, "file", columns, lambda one: "good" if one["good"] else "faulty")
    good = sum(bool(item["result"] and item["result"]["good"]) for item in result["items"])
    faulty = result["counts"]["done"] - good
    total = f"{count(good)} good, {count(faulty)} faulty" + _failures(result, "cannot be checked")
    return Group(table, *(Text(line) for line in lines), Text(total))


def events_list_table(result: ResultDict) -> RenderableType:
    """Table of collide.events_list/1."""
    columns: list[Column] = [
        ("frames", "right", lambda one: count(one["frames"]["count"])),
        ("pairs", "right", lambda one: count(one["intervals"]["pairs"])),
        ("touches", "right", lambda one: count(one["intervals"]["count"])),
        ("longest", "right", lambda one: _longest(one["intervals"]["longest"])),
    ]
    written = [Text(f"written: {path}") for path in result["written"].values() if path]
    return Group(_table(result, "contact set", columns), _totals(result), *written)


def report_list_table(result: ResultDict) -> RenderableType:
    """Table of collide.report_list/1."""
    columns: list[Column] = [
        ("frames", "right", lambda one: count(one["frames"])),
        ("contacts", "right", lambda one: count(one["contacts"])),
        ("deepest", "right", lambda one: _depth(one["deepest"])),
        ("written", "left", lambda one: one["output"]),
    ]
    return Group(_table(result, "contact set", columns), _totals(result))


def inspect_list_table(result: ResultDict) -> RenderableType:
    """Table of collide.inspect_list/1."""

    def number(name: str) -> Callable[[ResultDict], str]:
        return lambda one: _size(one.get(name))

    columns: list[Column] = [
        ("kind", "left", _kind),
        *((name, "right", number(name)) for name in ("shapes", "bodies", "worlds", "frames", "contacts")),
        *_group_columns(result),
    ]
    return Group(_table(result, "file", columns), _totals(result))


def diff_list_table(result: ResultDict) -> RenderableType:
    """Table of collide.diff_list/1."""

    def number(kind: str) -> Callable[[ResultDict], str]:
        return lambda one: count(one["contacts"][kind]) if one["contacts"][kind] else ""

    columns: list[Column] = [
        ("contacts", "right", lambda one: count(one["contacts"]["a"])),
        *((kind, "right", number(kind)) for kind in KINDS),
        ("reasons", "left", lambda one: ", ".join(one["reasons"])),
    ]
    table = _table(result, "contact set", columns, lambda one: "equal" if one["equal"] else "different")
    return Group(table, Text(diff_list_verdict(result), style="bold"))


def diff_list_verdict(result: ResultDict) -> str:
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
    found = ", ".join(f"{count(number)} {words}" for number, words in parts if number)
    return f"{plural(len(result['items']), 'contact set')}: {found}"


def _table(
    result: ResultDict, title: str, columns: list[Column], verdict: Callable[[ResultDict], str] = lambda _: "done"
) -> RenderableType:
    """A row per input: its path, its state or the verdict about its result, and the columns; a line per error."""
    table = listing((title, "left"), ("result", "left"), *(column[:2] for column in columns))
    for item in result["items"]:
        found = item["result"]
        if found is not None:
            table.add_row(item["input"], verdict(found), *(text(found) for _, _, text in columns))
        else:
            table.add_row(item["input"], STATES[item["state"]])
    failed = [item for item in result["items"] if item["error"] is not None]
    return Group(table, *(Text(f"{item['input']}: {item['error']['what']}") for item in failed))


def state_text(item: ResultDict) -> str:
    """The state of an input without a result, with the error of one that failed."""
    words = STATES[item["state"]]
    return f"{words}: {item['error']['what']}" if item["error"] is not None else words


def _group_columns(result: ResultDict) -> list[Column]:
    """Columns of the rows of each group of contacts beside the rigid ones that an input has."""

    def rows(name: str) -> Callable[[ResultDict], str]:
        return lambda one: count(one["groups"][name]["rows"]) if name in (one.get("groups") or {}) else ""

    held = {name for item in result["items"] for name in (item["result"] or {}).get("groups") or {}}
    return [(group_words(name), "right", rows(name)) for name in GROUPS_BY_NAME if name in held]


def _totals(result: ResultDict) -> Text:
    words = {"done": "done", "failed": "failed", "skipped": "skipped, as the output exists"}
    return Text(", ".join(f"{count(n)} {words[state]}" for state, n in result["counts"].items() if n))


def _failures(result: ResultDict, words: str) -> str:
    failed = result["counts"]["failed"]
    return f", {count(failed)} {words}" if failed else ""


def _depth(deepest: ResultDict | None) -> str:
    return length(-deepest["distance"]) if deepest is not None and deepest["distance"] < 0.0 else ""


def _longest(value: float | str | None) -> str:
    return value if isinstance(value, str) else "" if value is None else seconds(value)


def _kind(one: ResultDict) -> str:
    if one["schema"] == "collide.inspect.recording/1":
        return one["label"]
    return {"scene": "scene", "trajectory": "trajectory", "contacts": "contact set"}[one["schema"].split(".")[2][:-2]]


def _size(value: object) -> str:
    """A count, or the length of a list."""
    if value is None:
        return ""
    return count(value if isinstance(value, int) else len(value))  # type: ignore[arg-type]
