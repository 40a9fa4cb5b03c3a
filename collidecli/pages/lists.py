"""Terminal tables of the results of several inputs: a row per input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.analysis.differences import KINDS
from collidecli.pages import quantities
from collidecli.pages.quantities import ResultDict, length, seconds_text
from collidecli.pages.tables import Column, listing
from collidecli.scene.tables import GROUPS_BY_NAME, group_words
from collidecli.wording import count, plural

STATES = {
    "done": "done",
    "failed": "failed",
    "skipped": "output exists",
    "only_a": "only in A",
    "only_b": "only in B",
}
"""Words for the states of inputs."""


def kind_columns(counts: Callable[[ResultDict], ResultDict] = lambda row: row) -> list[Column]:
    """Columns of the numbers of differences by kind; 0 is empty. counts: of a row."""

    def number(row: ResultDict, kind: str) -> str:
        return count(counts(row)[kind]) if counts(row)[kind] else ""

    return [(kind, "right", partial(number, kind=kind)) for kind in KINDS]


def _of_counts(*names: str, of: str = "") -> list[Column]:
    """Columns of numbers, or of the lengths of lists; empty without one. of: the part of the
    result."""

    def text(result: ResultDict, name: str) -> str:
        value = (result[of] if of else result).get(name)
        return "" if value is None else count(value if isinstance(value, int) else len(value))

    return [(name, "right", partial(text, name=name)) for name in names]


def _nearest(title: str, side: str, name: str) -> Column:
    return title, side, lambda result: str(result["listed"][0][name]) if result["listed"] else ""


def _depth(result: ResultDict) -> str:
    deepest = result["deepest"]
    return length(-deepest["distance"]) if deepest is not None and deepest["distance"] < 0.0 else ""


WRITTEN: Column = ("written", "left", lambda one: one["output"] or "")
DEEPEST: Column = ("deepest", "right", _depth)
FRAMES, PAIRS = _of_counts("frames", "pairs")
LISTS: dict[str, tuple[str, list[Column]]] = {
    "run": (
        "input",
        [
            *_of_counts("frames", "contacts"),
            DEEPEST,
            ("time", "right", lambda o: quantities.seconds(o["wall_seconds"])),
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
            ("longest", "right", lambda one: seconds_text(one["intervals"]["longest"])),
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
            (
                "deepest",
                "right",
                lambda one: length(max((pair["depth"] for pair in one["pairs"]), default=0.0)),
            ),
            (
                "usable",
                "right",
                lambda one: f"{count(one['usable']['cells'])} of {count(one['cells'])}",
            ),
        ],
    ),
    "clearance": (
        "recording",
        [
            FRAMES,
            PAIRS,
            (
                "least",
                "right",
                lambda one: length(one["listed"][0]["least_distance"]) if one["listed"] else "",
            ),
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
            *kind_columns(itemgetter("contacts")),
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


def list_table(result: ResultDict) -> RenderableType:
    """Table of collide.<verb>_list/1: a row per input, of `check` the findings, totals, and the
    written tables."""
    verb = result["schema"].split(".")[1].removesuffix("_list/1")
    title, columns = LISTS[verb]
    if verb in ("run", "inspect"):
        columns = [*columns, *_group_columns(result)]
    verdict = VERDICTS.get(verb, lambda _: "done")
    table = listing((title, "left"), ("result", "left"), *(column[:2] for column in columns))
    ends: list[str] = []
    for item in result["items"]:
        name = item["name"] or item["input"]
        diffed = item["result"]
        if diffed is None:
            table.add_row(name, STATES[item["state"]])
            continue
        table.add_row(name, verdict(diffed), *(text(diffed) for _, _, text in columns))
        if verb == "check":
            ends += [
                f"{item['input']}: {finding['where']}: {finding['what']}"
                for finding in diffed["findings"]
            ]
    written = result.get("written") or {}
    paths = [written] if isinstance(written, str) else [path for path in written.values() if path]
    return Group(
        table, *map(Text, ends), _total(verb, result), *(Text(f"written: {path}") for path in paths)
    )


def _total(verb: str, result: ResultDict) -> Text:
    counts = result["counts"]
    if verb == "diff":
        return Text(diff_list_words(result), style="bold")
    if verb == "check":
        good = sum(bool(item["result"] and item["result"]["good"]) for item in result["items"])
        failed = f", {count(counts['failed'])} cannot be checked" if counts["failed"] else ""
        return Text(f"{count(good)} good, {count(counts['done'] - good)} faulty{failed}")
    words = {"done": "done", "failed": "failed", "skipped": "skipped, as the output exists"}
    return Text(
        ", ".join(f"{count(number)} {words[state]}" for state, number in counts.items() if number)
    )


def diff_list_words(result: ResultDict) -> str:
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


def state_text(item: ResultDict) -> str:
    """The state of an input without a result, with the error of one that failed."""
    words = STATES[item["state"]]
    return f"{words}: {item['error']['what']}" if item["error"] is not None else words


def _group_columns(result: ResultDict) -> list[Column]:
    def rows(contact_set: ResultDict, name: str) -> str:
        return (
            count(contact_set["groups"][name]["rows"])
            if name in (contact_set.get("groups") or {})
            else ""
        )

    names = {
        name for item in result["items"] for name in (item["result"] or {}).get("groups") or {}
    }
    return [
        (group_words(name), "right", partial(rows, name=name))
        for name in GROUPS_BY_NAME
        if name in names
    ]


def _kind(item: ResultDict) -> str:
    if item["schema"] == "collide.inspect.recording/1":
        return item["label"]
    return {"scene": "scene", "trajectory": "trajectory", "contacts": "contact set"}[
        item["schema"].split(".")[2][:-2]
    ]
