"""Results of `collide audit`, `collide label` and `collide clearance` that a report shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collidecli.errors import InputError
from collidecli.scene.model_source import SCENE_CONTENT
from collidecli.scene.option_values import CLEARANCE_THINGS
from collidecli.storage.json_results import (
    AUDIT,
    BASELINE_PAIRS,
    CLEARANCE,
    LABELS,
    fits,
    read_result,
)
from collidecli.storage.text_files import read_json
from collidecli.verbs.audit.checks import CHECKS, SCHEMA, TUNNEL
from collidecli.verbs.clearance.clearance import ClearanceResult
from collidecli.verbs.label.label import LabelResult
from collidecli.verbs.label.sensors import SensorResult

SENSORS = {
    **dict.fromkeys(("scene", "scene_sha256", "trajectory_sha256"), str),
    **dict.fromkeys(("recorded", "labelled"), int),
    "options": {"enter": float, "leave": float, "min_frames": int},
    "shape": dict.fromkeys(("frames", "worlds", "sensors"), int),
    "listed": [
        {
            **dict.fromkeys(("sensor", "declared"), str),
            "cells": int,
            "share": float,
            "most": (int, None),
            "least_distance": (float, str),
        }
    ],
    "series": LABELS["series"],
}
"""The values of collide.sensors/1 that a page shows."""


def read_verb_result(name: str, path: str) -> dict[str, Any] | None:
    """The object of a verb with --json; None for "". name: of VERB_RESULTS.

    Raises InputError for another file, and a damaged one.
    """
    if not path:
        return None
    schema, layout, is_whole, fix = VERB_RESULTS[name]
    if name == "labels" and is_sensors(path):
        schema = SensorResult.SCHEMA
        layout = SENSORS
    result = read_result(path, schema, layout)
    if not is_whole(result):
        raise InputError("lacks values, or has damaged ones", path, fix)
    return result


def is_sensors(path: str) -> bool:
    """Whether a file of --json has what sensors measure. Raises InputError for a file that is not
    JSON."""
    content = read_json(path, "give the output of collide label --json, in a file")
    return isinstance(content, dict) and content.get("schema") == SensorResult.SCHEMA


def _is_audit(result: Mapping[str, Any]) -> bool:
    checks = [
        *(entry["name"] for entry in result["checks"]),
        *(entry["check"] for entry in result["pairs"]),
    ]
    lengths = {len(values) for values in result["series"].values() if isinstance(values, list)}
    has_baseline = fits(result["pairs"], BASELINE_PAIRS) or result["baseline"] is None
    return len(lengths) == 1 and has_baseline and {*checks} <= {*CHECKS, TUNNEL}


def _is_labels(result: Mapping[str, Any]) -> bool:
    series = result["series"]
    bins = {len(series["frame"]), len(series["time"]), *map(len, series["labelled"])}
    return len(bins) == 1 and len(series["labelled"]) == len(result["listed"])


def _is_clearance(result: Mapping[str, Any]) -> bool:
    series = result["series"]
    listed = result["listed"]
    bins = {len(series["frame"]), len(series["time"]), *map(len, series["least"])}
    texts = {value for row in series["least"] for value in row if isinstance(value, str)}
    names_bodies = all(
        isinstance(entry.get("body"), str) == (result["by"] == "body") for entry in listed
    )
    is_even = len(bins) == 1 and len(series["least"]) == len(listed) and texts <= {"inf"}
    return is_even and names_bodies and result["by"] in CLEARANCE_THINGS


VERB_RESULTS: dict[str, tuple[str, Any, Callable[[Mapping[str, Any]], bool], str]] = {
    "audit": (SCHEMA, AUDIT, _is_audit, "make the audit again"),
    "labels": (LabelResult.SCHEMA, LABELS, _is_labels, "make the labels again"),
    "clearance": (ClearanceResult.SCHEMA, CLEARANCE, _is_clearance, "measure the distances again"),
}
"""Schema, keys and checks of the results that a report shows, by the name of their option, and how
to repair them."""


def other_motion(path: str, result: Mapping[str, Any], source: Mapping[str, Any]) -> list[str]:
    """A warning about a result of another scene or recording than that of the report."""
    for name, what in (("scene_sha256", "scene"), ("trajectory_sha256", "recording")):
        if result[name] != source[name]:
            of_scene = f" ({SCENE_CONTENT})" if what == "scene" else ""
            return [f"{path} is of another {what} than this one{of_scene}"]
    return []
