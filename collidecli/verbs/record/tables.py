"""Terminal table of a recorded simulation."""

from __future__ import annotations

from rich.table import Table

from collidecli.pages import quantities
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table
from collidecli.wording import plural


def record_table(result: ResultDict) -> Table:
    """Table of collide.record/1."""
    bodies = plural(result["bodies"], "body", "bodies")
    sizes = f"{plural(result['frames'], 'frame')}, {plural(result['worlds'], 'world')}, {bodies}"
    recorded = f"{sizes}, {quantities.seconds(result['duration'])} long"
    return name_value_table(
        [("scene", result["scene"]), ("recorded", recorded), ("written", result["output"])]
    )
