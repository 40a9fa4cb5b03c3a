"""A converted recording, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from collidecli.report.words import facts_table, seconds
from collidecli.scene.text_format import count


def convert_table(facts: Mapping[str, Any]) -> RenderableType:
    """Of schema collide.traj.convert/1."""
    return facts_table(
        [
            ("recording", f"{facts['file']} ({facts['kind']})"),
            ("frames", count(facts["frames"])),
            ("worlds", count(facts["worlds"])),
            ("bodies", count(facts["bodies"])),
            ("duration", seconds(facts["duration"])),
            ("written", facts["output"]),
        ]
    )
