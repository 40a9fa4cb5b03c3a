"""Terminal tables of a comparison of two contact sets."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report.diff_words import (
    KINDS,
    at_limit_text,
    bins,
    cell_text,
    deviation,
    field_kind,
    frame_lines,
    group_lines,
    model_line,
    verdict,
)
from collidecli.report.fitting import Fitting, stacked
from collidecli.report.words import Listing, ResultDict, listing, name_value_table
from collidecli.scene.text_format import count, plural


def diff_table(result: ResultDict) -> RenderableType:
    """Tables of collide.diff/1: the verdict, then the differences."""
    parts: list[RenderableType] = [Text(verdict(result), style="bold")]
    if not result["by_hash"]:
        parts += [Text(), _summary(result)]
    lines = [model_line(one) for one in result["model"]["listed"]]
    more = result["model"]["differences"] - len(lines)
    lines += [f"and {plural(more, 'more difference')} of the model"] if more else []
    lines += frame_lines(result)
    if lines:
        parts += [Text(), Text("\n".join(lines))]
    if result["pairs"]["differing"]:
        parts.append(Fitting(partial(_pairs, result)))
    fields = [one for one in result["fields"] if one["differing"]]
    if fields:
        parts.append(_fields(fields))
        parts += [Text(f"{one['name']}: largest at {field_kind(one)}") for one in fields if one["worst"]]
        histogram = [one for one in fields if one["histogram"]]
        if histogram:
            parts.append(_histogram(histogram))
    parts += [Text(line) for line in group_lines(result)]
    if result["notes"]:
        parts += [Text(), *(Text(f"note: {note}") for note in result["notes"])]
    return Group(*parts)


def _summary(result: ResultDict) -> RenderableType:
    contacts, frames, worlds = result["contacts"], result["frames"], result["worlds"]
    of = "pairs" if contacts["what"] == "pairs" else "contacts"
    verb = "differs" if frames["differing"] == 1 else "differ"
    differing = f", {count(frames['differing'])} of them {verb}" if frames["differing"] else ""
    rows = [
        ("A", f"{result['a']['file']}, {plural(result['a']['contacts'], 'contact')}"),
        ("B", f"{result['b']['file']}, {plural(result['b']['contacts'], 'contact')}"),
        ("frames", f"{count(frames['compared'])} compared, by {frames['by']}{differing}"),
    ]
    if worlds["compared"] > 1 or worlds["a"] != worlds["b"]:
        names = ", ".join(map(str, worlds["listed"])) + (", ..." if worlds["differing"] > len(worlds["listed"]) else "")
        rows.append(("worlds", f"{count(worlds['compared'])} compared" + (f", these differ: {names}" if names else "")))
    rows.append((of, ", ".join(f"{count(contacts[kind])} {kind}" for kind in KINDS)))
    if of == "contacts" and (contacts["missing_pairs"] or contacts["extra_pairs"]):
        only_a, only_b = (count(contacts[f"{kind}_pairs"]) for kind in ("missing", "extra"))
        rows.append(("pairs", f"{only_a} in A only, {only_b} in B only, counted in every frame and world"))
    if contacts["ignored_shallow"]:
        rows.append(("ignored", f"{count(contacts['ignored_shallow'])} within --ignore-shallow of the gap"))
    if at_limit := at_limit_text(result):
        rows.append(
            ("at the limit", f"{at_limit}, not counted: their distance is within the tolerance of the pair's gap")
        )
        for pair in contacts["at_limit"]["pairs"]:
            rows.append(("", f"{count(pair['contacts'])} of {pair['shape0']} and {pair['shape1']}"))
    if result["first"] is not None:
        rows.append(("first", cell_text(result["first"])))
    return name_value_table(rows)


def _pairs(result: ResultDict, narrow: int) -> Listing:
    """narrow: the names of a pair in one column."""
    names = ["shape 0", "shape 1"]
    table = listing(
        *([(stacked(*names), "left")] if narrow else [(name, "left") for name in names]),
        *((kind, "right") for kind in KINDS),
        ("first in", "left"),
    )
    for pair in result["pairs"]["listed"]:
        counts = (count(pair[kind]) if pair[kind] else "" for kind in KINDS)
        paths = (pair["shape0"], pair["shape1"])
        table.add_row(*([stacked(*paths)] if narrow else paths), *counts, cell_text(pair["first"]))
    more = result["pairs"]["differing"] - len(result["pairs"]["listed"])
    if more:
        table.add_row(f"and {plural(more, 'more pair')}")
    return table


def _fields(fields: list[ResultDict]) -> RenderableType:
    table = listing(("field", "left"), ("differ", "right"), ("beyond tolerance", "right"), ("largest", "right"))
    for one in fields:
        table.add_row(
            one["name"], count(one["differing"]), count(one["changed"]), deviation(one["largest"], one["unit"])
        )
    return table


def _histogram(fields: list[ResultDict]) -> RenderableType:
    found = {one["name"]: dict(bins(one)) for one in fields}
    edges = [None, *sorted({b["from"] for one in fields for b in one["histogram"] if b["from"] is not None})]
    words = ["below 1e-09" if edge is None else f"from {edge:.0e}" for edge in edges]
    table = listing(("deviation", "left"), *((name, "right") for name in found))
    for word in words:
        if any(word in column for column in found.values()):
            table.add_row(word, *(count(column[word]) if word in column else "" for column in found.values()))
    return table
