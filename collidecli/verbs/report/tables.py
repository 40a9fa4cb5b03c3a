"""Terminal table of a report."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from collidecli.pages.names import world_text
from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import name_value_table
from collidecli.scene.contact_columns import group_words
from collidecli.verbs.diff.words import verdict
from collidecli.wording import count, plural


def group_figures(result: ResultDict) -> list[tuple[str, str, str]]:
    """Name, number and comment of the surfaces of a report and of its contacts of particles, where
    there are any."""
    groups = result["groups"] or {"surfaces": None, "counts": {}}
    surfaces = groups["surfaces"]
    listed = []
    if surfaces is not None:
        listed.append(
            (
                "surfaces",
                count(surfaces["rows"]),
                f"hydroelastic, of {plural(surfaces['pairs'], 'pair')}",
            )
        )
    return listed + [
        (group_words(name), count(of_group["rows"]), "")
        for name, of_group in groups["counts"].items()
    ]


def report_table(result: ResultDict) -> Table:
    """Table of collide.report/1."""
    rows = [("scene", result["scene"])]
    groups = group_figures(result)
    if result["contacts"] or not groups:
        rows.append(
            ("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}")
        )
        rows.append(("pairs", f"{count(result['pairs']['count'])} with contacts"))
    rows += [(name, f"{number}, {more}" if more else number) for name, number, more in groups]
    deepest: dict[str, Any] | None = result["deepest"]
    if deepest is not None and deepest["distance"] < 0.0:
        depth = length(-deepest["distance"])
        number = deepest["world"]
        pair = f"{deepest['shape0']} and {deepest['shape1']}"
        world = world_text(
            number, result["demonstrations"][number] if result["demonstrations"] else ""
        )
        rows.append(("deepest", f"{depth}, frame {deepest['frame']}, world {world}: {pair}"))
    if result["difference"] is not None:
        rows.append(("baseline", verdict(result["difference"])))
    return name_value_table([*rows, ("written", result["output"])])
