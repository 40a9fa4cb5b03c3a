"""Text of the faults of a file."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.pages.quantities import ResultDict
from collidecli.pages.verdicts import verdict_text


def check_table(result: ResultDict) -> RenderableType:
    """Text of collide.check/1: a line per finding and note."""
    words = f"good ({result['format']})" if result["good"] else "faulty"
    lines = [f"{finding['where']}: {finding['what']}" for finding in result["findings"]]
    lines += [
        f"note: {note['where']}: the engine's rows: {note['what']}"
        for note in result.get("notes") or ()
    ]
    return Group(verdict_text(f"{result['file']}: {words}", result["good"]), *map(Text, lines))
