"""Reader of the results of `--json`."""

from __future__ import annotations

import math
from typing import Any

from collidecli.errors import InputError
from collidecli.storage.text_files import read_json

PAIR = {"shape0": str, "shape1": str}
DEPTHS = ("depth", "self_depth", "ground_depth")
SERIES = {"frame": [int], "time": [float]}
AUDIT = {
    **dict.fromkeys(("input", "scene_sha256", "trajectory_sha256"), str),
    **dict.fromkeys(("frames", "worlds", "cells"), int),
    "passed": bool,
    "limits": {"pairs": [dict]},
    "checks": [
        {
            "name": str,
            "limit": (float, None),
            "pairs": int,
            "deepest": float,
            "failing": int,
            "reason": str,
        }
    ],
    "usable": {"cells": int, "share": float, "unusable_from_start": int},
    "series": {**SERIES, **{name: [float] for name in DEPTHS}, "unusable": [bool]},
    "pairs": [
        {
            **PAIR,
            "check": str,
            "allowed": bool,
            "exceeds": [str],
            "depth": float,
            "start_depth": float,
            "frame": int,
            "world": int,
            "cells": int,
            "cells_over": int,
        }
    ],
    "tunnels": (
        [{**PAIR, "exceeds": bool, "steps": int, "frame": int, "world": int, "time": float}],
        None,
    ),
    "baseline": (dict, None),
}
"""The values of collide.audit/1 that a page shows, see `fits`."""
BASELINE_PAIRS = [{"baseline_depth": float, "worse": bool}]
"""Of the pairs of an audit with a baseline."""
LABELS = {
    **dict.fromkeys(("file", "scene_sha256", "trajectory_sha256"), str),
    **dict.fromkeys(("recorded", "labelled", "pairs"), int),
    "options": {"enter": float, "leave": float, "min_frames": int, "slip": bool},
    "shape": dict.fromkeys(("frames", "worlds", "sensors", "partners"), int),
    "listed": [
        {
            "sensor": str,
            "partner": str,
            "cells": int,
            "share": float,
            "least_distance": (float, str),
        }
    ],
    "series": {"frames_per_bin": int, **SERIES, "labelled": [[float]]},
}
"""The values of collide.label/1 that a page shows."""
CLEARANCE = {
    **dict.fromkeys(("scene", "scene_sha256", "trajectory_sha256", "by"), str),
    **dict.fromkeys(("frames", "worlds", "pairs", "items"), int),
    "listed": [{**PAIR, "least_distance": float, "frame": int, "world": int, "body": (str, None)}],
    "series": {"frames_per_bin": int, **SERIES, "least": [[(float, str)]]},
}
"""The values of collide.clearance/1 that a page shows."""
MOST = 2**63
"""Integers of JSON beyond this are damaged: arrays cannot hold them."""


def read_result(path: str, schema: str, values: object, fix: str = "") -> dict[str, Any]:
    """The object of a file of `--json`. schema: its name and version. values: what it must have,
    see `fits`. fix: of errors.

    Raises InputError for another file, and for one without these values.
    """
    verb = schema.split("/")[0].removeprefix("collide.")
    fix = fix or f"give the output of collide {verb} --json, in a file"
    content = read_json(path, fix)
    if not isinstance(content, dict) or content.get("schema") != schema:
        raise InputError(f"is not a result of {schema}", path, fix)
    if not fits(content, values):
        raise InputError("lacks values, or has damaged ones", path, fix)
    return content


def fits(value: object, wanted: Any) -> bool:
    """Whether a value of JSON has a form: a type (float: any finite number), [form] for a list of
    any length, a dictionary of the forms of its keys, which may be fewer than there are, or a tuple
    of forms of which one fits.
    """
    if isinstance(wanted, tuple):
        return any(fits(value, form) for form in wanted)
    if isinstance(wanted, list):
        return isinstance(value, list) and all(fits(form, wanted[0]) for form in value)
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            fits(value.get(name), form) for name, form in wanted.items()
        )
    if type(value) is int:
        return wanted in (int, float) and abs(value) < MOST
    if wanted is float:
        return isinstance(value, float) and math.isfinite(value)
    return value is None if wanted is None else type(value) is wanted
