"""Terminal table of an exported contact set."""

from __future__ import annotations

from rich.table import Table

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table
from collidecli.pages.written import contacts_of_cells, group_lines, written_line
from collidecli.scene.contact_columns import group_words


def export_table(result: ResultDict) -> Table:
    """Table of collide.export/1."""
    rows = [
        (group_words(result["group"]) or "contacts", contacts_of_cells(result)),
        *group_lines(result),
    ]
    rows.append(("format", result["format"]))
    rows += [("left out" if k == 0 else "", text) for k, text in enumerate(result["left_out"])]
    return name_value_table([*rows, written_line(result)])
