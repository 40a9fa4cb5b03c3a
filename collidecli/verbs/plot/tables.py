"""The lines that `collide plot` prints."""

from __future__ import annotations

from rich.table import Table

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table


def plot_table(result: ResultDict) -> Table:
    """Table of collide.plot/1."""
    return name_value_table([("shows", result["words"]), ("written", result["output"])])
