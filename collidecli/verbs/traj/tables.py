"""Terminal table of a converted recording."""

from __future__ import annotations

from rich.table import Table

from collidecli.pages import quantities
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table
from collidecli.wording import count


def convert_table(result: ResultDict) -> Table:
    """Table of collide.traj.convert/1."""
    rows = [("recording", f"{result['file']} ({result['kind']})")]
    rows += [(name, count(result[name])) for name in ("frames", "worlds", "bodies")]
    return name_value_table(
        [*rows, ("duration", quantities.seconds(result["duration"])), ("written", result["output"])]
    )
