"""Terminal table of a merged contact set."""

from __future__ import annotations

from rich.table import Table

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table
from collidecli.pages.written import contacts_of_cells, group_lines


def merge_table(result: ResultDict) -> Table:
    """Table of collide.merge/1."""
    rows = [("merged" if k == 0 else "", path) for k, path in enumerate(result["files"])]
    rows += [
        ("contacts", contacts_of_cells(result)),
        *group_lines(result),
        ("written", result["output"]),
    ]
    rows.append(("content", result["content_sha256"]))
    if result["parted_by"] == "frames" and result["recordings"] > 1:
        rows.append(("note", f"the frames are of {result['recordings']} recordings"))
    return name_value_table(rows)
