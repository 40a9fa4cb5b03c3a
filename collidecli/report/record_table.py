"""What was recorded, as plain values and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rich.console import RenderableType

from collidecli.report.words import facts_table, plural, seconds

RECORD_SCHEMA = "collide.record/1"


class Recorded(Protocol):
    """See app.record.RecordSummary."""

    path: str
    frame_count: int
    world_count: int
    body_count: int
    duration: float
    warnings: tuple[str, ...]


def record_facts(scene: str, summary: Recorded) -> dict[str, Any]:
    """JSON-ready. duration: simulated time of the last frame [s]."""
    return {
        "schema": RECORD_SCHEMA,
        "scene": scene,
        "output": summary.path,
        "frames": summary.frame_count,
        "worlds": summary.world_count,
        "bodies": summary.body_count,
        "duration": summary.duration,
        "warnings": list(summary.warnings),
    }


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
