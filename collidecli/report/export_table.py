"""An export, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from collidecli.report.words import facts_table
from collidecli.scene.text_format import count, memory, plural


def export_table(facts: Mapping[str, Any]) -> RenderableType:
    """Of schema collide.export/1."""
    rows = [
        (
            "contacts",
            f"{count(facts['contacts'])} in {plural(facts['frames'], 'frame')} of {plural(facts['worlds'], 'world')}",
        ),
        ("format", facts["format"]),
    ]
    rows += [("left out" if k == 0 else "", text) for k, text in enumerate(facts["left_out"])]
    return facts_table([*rows, ("written", f"{facts['output']}, {memory(facts['bytes'])}")])
