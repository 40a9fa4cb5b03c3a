"""Terminal tables of a comparison of two contact sets."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import (
    Fitting,
    Listing,
    listing,
    more_text,
    name_value_table,
    pair_columns,
    rows_table,
)
from collidecli.pages.verdicts import verdict_text
from collidecli.verbs.diff.cause_words import cause_columns, cause_lines
from collidecli.verbs.diff.kind_columns import kind_columns
from collidecli.verbs.diff.one_sided_pairs import one_sided_lines
from collidecli.verbs.diff.value_words import worst_words
from collidecli.verbs.diff.words import (
    FIELDS,
    FIRST_IN,
    KINDS,
    at_limit_text,
    cell_text,
    frame_lines,
    group_lines,
    model_line,
    verdict,
)
from collidecli.wording import count, plural


def diff_table(result: ResultDict) -> RenderableType:
    """Tables of collide.diff/1: the verdict, then the differences."""
    parts: list[RenderableType] = [verdict_text(verdict(result), result["equal"])]
    if not (result["by_hash"] and result["equal"]):
        parts += [Text(), _summary(result)]
    lines = [model_line(row) for row in result["model"]["listed"]]
    more = result["model"]["differences"] - len(lines)
    lines += [f"and {plural(more, 'more difference')} of the model"] if more else []
    lines += frame_lines(result)
    if lines:
        parts += [Text(), Text("\n".join(lines))]
    if result["pairs"]["listed"]:
        parts.append(Fitting(partial(_pairs, result)))
    parts += [Text(line) for line in (*one_sided_lines(result), *cause_lines(result))]
    fields = [row for row in result["fields"] if row["differing"]]
    if fields:
        parts.append(rows_table(FIELDS, fields))
        for row in fields:
            if worst := row["worst"]:
                where = f"{worst['shape0']} and {worst['shape1']}, {cell_text(worst)}"
                parts.append(Text(worst_words(row, where)))
        histogram = [row for row in fields if row["histogram"]]
        if histogram:
            columns = {
                row["name"]: {b["from"] or 0.0: b["contacts"] for b in row["histogram"]}
                for row in histogram
            }
            table = listing(("deviation", "left"), *((name, "right") for name in columns))
            for edge in sorted({edge for column in columns.values() for edge in column}):
                numbers = (
                    count(column[edge]) if edge in column else "" for column in columns.values()
                )
                table.add_row(f"from {edge:.0e}" if edge else "below 1e-09", *numbers)
            parts.append(table)
    parts += [Text(line) for line in group_lines(result)]
    if result["notes"]:
        parts += [Text(), *(Text(f"note: {note}") for note in result["notes"])]
    return Group(*parts)


def _summary(result: ResultDict) -> RenderableType:
    contacts = result["contacts"]
    frames = result["frames"]
    worlds = result["worlds"]
    noun = "pairs" if contacts["what"] == "pairs" else "contacts"
    verb = "differs" if frames["differing"] == 1 else "differ"
    differing = f", {count(frames['differing'])} of them {verb}" if frames["differing"] else ""
    sides = ((name.upper(), result[name]) for name in ("a", "b"))
    rows = [
        *((name, f"{side['file']}, {plural(side['contacts'], 'contact')}") for name, side in sides),
        ("frames", f"{count(frames['compared'])} compared, by {frames['by']}{differing}"),
    ]
    if worlds["compared"] > 1 or worlds["a"] != worlds["b"]:
        names = ", ".join(map(str, worlds["listed"])) + (
            ", ..." if worlds["differing"] > len(worlds["listed"]) else ""
        )
        rows.append(
            (
                "worlds",
                f"{count(worlds['compared'])} compared"
                + (f", these differ: {names}" if names else ""),
            )
        )
    rows.append((noun, ", ".join(f"{count(contacts[kind])} {kind}" for kind in KINDS)))
    if contacts["ignored_shallow"]:
        rows.append(
            ("ignored", f"{count(contacts['ignored_shallow'])} within --ignore-shallow of the gap")
        )
    if at_limit := at_limit_text(result):
        reason = "their distance is within the tolerance of the pair's gap"
        rows.append(("at the limit", f"{at_limit}, not counted: {reason}"))
        for pair in contacts["at_limit"]["pairs"]:
            rows.append(("", f"{count(pair['contacts'])} of {pair['shape0']} and {pair['shape1']}"))
    if result["first"] is not None:
        rows.append(("first", cell_text(result["first"])))
    return name_value_table(rows)


def _pairs(result: ResultDict, narrow: int) -> Listing:
    listed = result["pairs"]["listed"]
    columns = [*pair_columns(narrow), *kind_columns(), FIRST_IN, *cause_columns(result)]
    return rows_table(columns, listed, more_text(result["pairs"]["differing"] - len(listed)))
