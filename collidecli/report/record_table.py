"""What was recorded, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from collidecli.report.words import facts_table, seconds
from collidecli.scene.text_format import plural


def record_table(facts: Mapping[str, Any]) -> RenderableType:
    """The facts of a recording (schema collide.record/1)."""
    sizes = f"{plural(facts['frames'], 'frame')}, {plural(facts['worlds'], 'world')}, {facts['bodies']} bodies"
    return facts_table(
        [
            ("scene", facts["scene"]),
            ("recorded", f"{sizes}, {seconds(facts['duration'])} long"),
            ("written", facts["output"]),
        ]
    )
