"""Terminal tables and verdicts of comparisons by pair."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.analysis.differences import KINDS
from collidecli.escaping import printable_values
from collidecli.pages.quantities import ResultDict, length, plain
from collidecli.pages.tables import (
    Column,
    Fitting,
    Listing,
    more_text,
    name_value_table,
    pair_columns,
    rows_table,
)
from collidecli.pages.verdicts import (
    Finding,
    Verdict,
    markdown_rows,
    markdown_section,
    verdict_text,
)
from collidecli.verbs.diff.kind_columns import kind_columns
from collidecli.verbs.diff.words import FIRST_IN, MEASURES, SPREAD, markdown_cell, pair_cells
from collidecli.wording import count, plural


def pair_diff_words(result: ResultDict) -> str:
    """Whether the sets agree by pair, as one line."""
    both = plural(result["counts"]["both"], "pair")
    return (
        f"different: {', '.join(result['reasons'])}"
        if result["reasons"]
        else f"equal by pair: {both} in both"
    )


def _worst(row: ResultDict, name: str) -> str:
    return "" if row[name] is None else _measure(name, row[name]["worst"])


def _measure(name: str, value: float) -> str:
    return f"{value:.3g} deg" if name == "angle" else length(value)


def _contacts_of_pair(row: ResultDict) -> str:
    return (
        ""
        if row["contacts_a"] is None
        else " / ".join(plain(row[name], 3) for name in ("contacts_a", "contacts_b"))
    )


def _by_pair(result: ResultDict, narrow: int) -> Listing:
    columns: list[Column] = [
        *pair_columns(narrow),
        ("both", "right", lambda row: count(row["both"])),
        *kind_columns(),
        *((f"{name}, worst", "right", partial(_worst, name=name)) for name in MEASURES),
        ("contacts A / B", "right", _contacts_of_pair),
        FIRST_IN,
    ]
    return rows_table(
        columns, result["pairs"], more_text(result["differing_pairs"] - len(result["pairs"]))
    )


def pair_diff_table(result: ResultDict) -> RenderableType:
    """Tables of collide.diff_pairs/1."""
    words = verdict_text(pair_diff_words(result), result["equal"])
    totals = name_value_table(_pair_totals(result))
    parts: list[RenderableType] = [words, Text(), totals]
    if result["pairs"]:
        parts.append(Fitting(partial(_by_pair, result), ("first in", f"{MEASURES[-1]}, worst")))
    return Group(*parts, *(Text(f"note: {note}") for note in result["notes"]))


def _pair_totals(result: ResultDict) -> list[tuple[str, str]]:
    counts = result["counts"]
    frames = result["frames"]
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
            spread = ", ".join(
                f"{_measure(name, result[name][key])} {text}" for key, text in SPREAD.items()
            )
            rows.append((name, spread))
    contacts = _contacts_of_pair(result)
    return [*rows, ("contacts", f"{contacts} a pair in A / B")] if contacts else rows


def pair_diff_verdict(result: ResultDict, seconds: float) -> Verdict:
    """The verdict of collide.diff_pairs/1. seconds: duration of the comparison."""
    result = printable_values(result)
    words = pair_diff_words(result)
    rows = [
        [*pair_cells(row), *(_worst(row, name) for name in MEASURES)] for row in result["pairs"]
    ]
    text = markdown_section(
        f"collide diff --by-pair: {'equal' if result['equal'] else 'different'}",
        [markdown_cell(words, most=1000)],
        markdown_rows(
            ["", "value"],
            [[name, markdown_cell(value, most=300)] for name, value in _pair_totals(result)],
        ),
        markdown_rows(["shape 0", "shape 1", *KINDS, *MEASURES], rows),
    )
    return Verdict.of("diff", words, [Finding("by pair", result["reasons"])], seconds, text)
