"""Terminal table of a view."""

from __future__ import annotations

from rich.table import Table

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table
from collidecli.pages.written import group_lines
from collidecli.wording import count, memory, plural


def view_table(result: ResultDict) -> Table:
    """Table of collide.view/1."""
    rows = [
        ("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"),
        *group_lines(result),
    ]
    if result["worlds"] > 1:
        rows.append(("worlds", count(result["worlds"])))
    if result["scene"] is not None:
        scene = " ".join(result["scene"]) or result["trajectory"]
        rows.append(("scene", f"{scene}, {plural(result['shapes'], 'shape')}"))
        rows.append(("motion", result["trajectory"] or "the scene's own"))
    else:
        rows.append(("scene", "not found: only the contacts are drawn"))
    rows.append(("pairs", f"{count(result['touching_pairs'])} that touch"))
    if result["map_points"] is not None:
        rows.append(("map", plural(result["map_points"], "point")))
    return name_value_table(
        [*rows, ("written", f"{result['written']}, {memory(result['written_bytes'])}")]
    )
