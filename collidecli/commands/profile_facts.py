"""A profile as plain values: what --json prints, the table is made of, and the JSON file holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from collidecli.commands.profile import Measured, Profile
from collidecli.commands.timing import processor_name, versions
from collidecli.engine.pipeline import STAGES

PROFILE_SCHEMA = "collide.profile/1"


def profile_facts(result: Profile, trajectory: str | None) -> dict[str, Any]:
    """JSON-ready. Times [s], summed over workers but for wall_seconds; each with its median and extremes."""
    model = result.scene.model
    return {
        "schema": PROFILE_SCHEMA,
        "scene": result.scene.name,
        "scene_sha256": result.scene.sha256,
        "trajectory": trajectory,
        "trajectory_sha256": result.trajectory_sha256,
        "shapes": len(model.shapes),
        "worlds": model.world_count,
        "frames": result.frame_count,
        "device": result.device,
        "processor": processor_name(),
        "threads": result.threads,
        "chunk_cells": result.chunk_cells,
        "versions": versions(),
        "repeats": max(len(m.passes) for m in result.measured),
        "phases": [_phase(m) for m in result.measured],
        "identical": result.identical,
        "fastest": result.fastest,
        "auto": {"choice": result.choice.name, "reason": result.choice.reason, "agrees": result.agrees},
        "advice": result.advice,
        "warnings": list(result.warnings),
    }


def _phase(measured: Measured) -> dict[str, Any]:
    if measured.skipped:
        return {"name": measured.name, "skipped": measured.skipped}
    first = measured.passes[0]
    return {
        "name": measured.name,
        "skipped": None,
        "compute_seconds": _spread(measured.compute_seconds()),
        "wall_seconds": _spread(measured.wall_seconds()),
        "stages": {stage: _spread(measured.stage_seconds(stage)) for stage in STAGES},
        "candidates": first.candidate_count,
        "touching_pairs": first.touching_count,
        "false_positive_ratio": first.false_positive_ratio,
        "contacts": first.contact_count,
        "contacts_sha256": measured.contacts_sha256,
    }


def _spread(values: np.ndarray) -> dict[str, Any]:
    return {
        "median": float(np.median(values)),
        "least": float(values.min()),
        "most": float(values.max()),
        "repeats": values.tolist(),
    }
