"""The section of a report about least distances."""

from __future__ import annotations

from typing import Any

from collidecli.pages.pair_words import pair_words
from collidecli.pages.parts import part, section, table
from collidecli.pages.quantities import ResultDict, length
from collidecli.wording import plural


def clearance_section(result: ResultDict) -> dict[str, Any]:
    """The lines of least distance over time, and the nearest pairs, of collide.clearance/1."""
    of_bodies = result["by"] == "body"
    lead = (
        f"Without a cutoff, of {plural(result['pairs'], 'pair')} of shapes; negative is"
        " penetration."
    )
    if len(result["listed"]) < result["items"]:
        items = plural(result["items"], *(("body", "bodies") if of_bodies else ("pair",)))
        lead += f" The nearest {len(result['listed'])} of {items} are shown."
    rows = []
    for item in result["listed"]:
        row = [
            pair_words(item),
            length(item["least_distance"]),
            str(item["frame"]),
            str(item["world"]),
        ]
        rows.append([item["body"], *row] if of_bodies else row)
    columns = ("body," if of_bodies else "") + "pair,least distance>,in frame>,world>"
    parts = [part(table=table("Nearest", columns, rows))] if rows else []
    return section("clearance", "Clearance", part(chart="clearance"), *parts, lead=lead)
