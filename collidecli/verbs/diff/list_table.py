"""Columns of the comparisons of two folders' contact sets."""

from __future__ import annotations

from operator import itemgetter

from rich.text import Text

from collidecli.pages.quantities import ResultDict
from collidecli.pages.several_inputs import ListTable
from collidecli.verbs.diff.kind_columns import kind_columns
from collidecli.wording import count, plural


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


LIST_TABLE = ListTable(
    "contact set",
    [
        ("contacts", "right", lambda one: count(one["contacts"]["a"])),
        *kind_columns(itemgetter("contacts")),
        ("reasons", "left", lambda one: ", ".join(one["reasons"])),
    ],
    verdict=lambda one: "equal" if one["equal"] else "different",
    total=lambda result: Text(diff_list_words(result), style="bold"),
)
