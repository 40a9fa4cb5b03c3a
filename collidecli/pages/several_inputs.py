"""Terminal tables of the results of several inputs: a row per input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import Column, listing
from collidecli.scene.contact_columns import GROUPS_BY_NAME, group_words
from collidecli.wording import count

STATES = {
    "done": "done",
    "failed": "failed",
    "skipped": "output exists",
    "only_a": "only in A",
    "only_b": "only in B",
}
"""Words for the states of inputs."""
_COUNTED_STATES = {"done": "done", "failed": "failed", "skipped": "skipped, as the output exists"}


def counted(*names: str, of: str = "") -> list[Column]:
    """Columns of numbers, or of the lengths of lists; empty without one. of: the part of the
    result."""

    def text(result: ResultDict, name: str) -> str:
        value = (result[of] if of else result).get(name)
        return "" if value is None else count(value if isinstance(value, int) else len(value))

    return [(name, "right", partial(text, name=name)) for name in names]


def _depth(result: ResultDict) -> str:
    deepest = result["deepest"]
    return length(-deepest["distance"]) if deepest is not None and deepest["distance"] < 0.0 else ""


WRITTEN: Column = ("written", "left", lambda one: one["output"] or "")
DEEPEST: Column = ("deepest", "right", _depth)


def counts_line(result: ResultDict) -> str:
    """The numbers of inputs by state."""
    return ", ".join(
        f"{count(number)} {_COUNTED_STATES[state]}"
        for state, number in result["counts"].items()
        if number
    )


@dataclass(frozen=True)
class ListTable:
    """How a verb shows the results of several inputs.

    title: of the inputs. columns: of their results. verdict: of a result. has_groups: whether the
    numbers of rows of groups are further columns. lines: below the table, of an input with its
    result. total: the last line, of the whole list.
    """

    title: str
    columns: Sequence[Column]
    verdict: Callable[[ResultDict], str] = lambda _: "done"
    has_groups: bool = False
    lines: Callable[[ResultDict], Iterable[str]] = lambda _: ()
    total: Callable[[ResultDict], str | Text] = counts_line


def list_table(shown: ListTable, result: ResultDict) -> RenderableType:
    """Table of collide.<verb>_list/1: a row per input, lines of the inputs, totals, and the written
    tables."""
    columns = [*shown.columns, *(_group_columns(result) if shown.has_groups else ())]
    table = listing((shown.title, "left"), ("result", "left"), *(column[:2] for column in columns))
    ends: list[str] = []
    for item in result["items"]:
        name = item["name"] or item["input"]
        of_input = item["result"]
        if of_input is None:
            table.add_row(name, STATES[item["state"]])
            continue
        table.add_row(name, shown.verdict(of_input), *(text(of_input) for _, _, text in columns))
        ends += shown.lines(item)
    written = result.get("written") or {}
    paths = [written] if isinstance(written, str) else [path for path in written.values() if path]
    total = shown.total(result)
    return Group(
        table,
        *map(Text, ends),
        Text(total) if isinstance(total, str) else total,
        *(Text(f"written: {path}") for path in paths),
    )


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
