"""A recording's outcome as plain values: what --json prints and the table is made of."""

from __future__ import annotations

from typing import Any

from collidecli.commands.record import RecordSummary

RECORD_SCHEMA = "collide.record/1"


def record_facts(scene: str, summary: RecordSummary) -> dict[str, Any]:
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
