"""A run's outcome as plain values: what --json prints and the table is made of."""

from __future__ import annotations

from typing import Any

from collidecli.commands.run import RunSummary
from collidecli.commands.timing import RUN_STAGES, peak_memory
from collidecli.scene.model import Model

RUN_SCHEMA = "collide.run/1"
TOP_PAIRS = 10


def run_facts(summary: RunSummary, trajectory: str | None) -> dict[str, Any]:
    """JSON-ready. Lengths [m], times [s]; `deepest` is None without a contact; `top_pairs` is in order, most first."""
    model, timing = summary.scene.model, summary.timing
    return {
        "schema": RUN_SCHEMA,
        "scene": summary.scene.name,
        "scene_sha256": summary.scene.sha256,
        "trajectory": trajectory,
        "shapes": len(model.shapes),
        "bodies": len(model.bodies),
        "worlds": model.world_count,
        "frames": summary.frame_count,
        "device": summary.device,
        "threads": summary.threads,
        "chunk_cells": summary.chunk_cells,
        "broad_phase": summary.choice.name,
        "broad_phase_reason": summary.choice.reason,
        "contacts": timing.contact_count,
        "touching_pairs": timing.touching_count,
        "candidates": timing.candidate_count,
        "false_positive_ratio": timing.false_positive_ratio,
        "deepest": _deepest(summary),
        "contact_pair_count": len(summary.pair_contacts),
        "top_pairs": [
            {"shape0": shape_name(model, a), "shape1": shape_name(model, b), "contacts": count}
            for (a, b), count in list(summary.pair_contacts.items())[:TOP_PAIRS]
        ],
        "stages": [
            {"stage": stage, "seconds": timing.seconds[stage], "calls": timing.calls[stage]} for stage in RUN_STAGES
        ],
        "wall_seconds": timing.wall_seconds,
        "frames_per_second": summary.frame_count / timing.wall_seconds,
        "peak_memory_bytes": peak_memory(),
        "output": summary.output,
        "content_sha256": summary.content_sha256,
        "warnings": list(summary.warnings),
    }


def shape_name(model: Model, row: int) -> str:
    """A shape's path, with its template where the model has several and the path alone could mean two."""
    path, template = model.shapes.path[row], int(model.shapes.template[row])
    return f"{path} (template {template})" if template >= 0 and int(model.world_template.max()) > 0 else path


def _deepest(summary: RunSummary) -> dict[str, Any] | None:
    if summary.deepest is None:
        return None
    model = summary.scene.model
    distance, shape0, shape1, cell = summary.deepest
    frame, world = divmod(cell, model.world_count)
    return {
        "distance": distance,
        "shape0": shape_name(model, shape0),
        "shape1": shape_name(model, shape1),
        "frame": frame,
        "world": world,
    }
