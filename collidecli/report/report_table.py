"""What `collide report` and `collide plot` print: where the page or picture is, and its first numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from collidecli.report.diff_words import verdict
from collidecli.report.words import facts_table, length
from collidecli.scene.text_format import count, plural


def report_table(facts: Mapping[str, Any]) -> RenderableType:
    """Of schema collide.report/1, with `output`."""
    rows = [
        ("scene", facts["scene"]),
        ("contacts", f"{count(facts['contacts'])} in {plural(facts['frames'], 'frame')}"),
        ("pairs", count(facts["pairs"]["count"])),
    ]
    deepest = facts["deepest"]
    if deepest is not None and deepest["distance"] < 0.0:
        pair = f"{deepest['shape0']} and {deepest['shape1']}"
        rows.append(
            ("deepest", f"{length(-deepest['distance'])}, frame {deepest['frame']}, world {deepest['world']}: {pair}")
        )
    if facts["difference"] is not None:
        rows.append(("baseline", verdict(facts["difference"])))
    rows.append(("written", facts["output"]))
    return facts_table(rows)


def plot_table(facts: Mapping[str, Any]) -> RenderableType:
    """Of schema collide.plot/1."""
    return facts_table([("shows", facts["words"]), ("written", facts["output"])])
