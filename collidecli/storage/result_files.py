"""Reader of results that a verb printed with --json."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from collidecli.errors import InputError

PAIR = {"shape0": str, "shape1": str}
DEPTHS = ("depth", "self_depth", "ground_depth")
SERIES = {"frame": [int], "time": [float]}
AUDIT = {
    **dict.fromkeys(("input", "scene_sha256", "trajectory_sha256"), str),
    **dict.fromkeys(("frames", "worlds", "cells"), int),
    "passed": bool,
    "limits": {"pairs": [dict]},
    "checks": [{"name": str, "limit": (float, None), "pairs": int, "deepest": float, "failing": int, "reason": str}],
    "usable": {"cells": int, "share": float, "unusable_from_start": int},
    "series": {**SERIES, **{name: [float] for name in DEPTHS}, "unusable": [bool]},
    "pairs": [
        {
            **PAIR, "check": str, "allowed": bool, "exceeds": [str], "depth": float, "start_depth": float, "frame": int,
            "world": int, "cells": int, "cells_over": int,
        }
    ],
    "tunnels": ([{**PAIR, "exceeds": bool, "steps": int, "frame": int, "world": int, "time": float}], None),
    "baseline": (dict, None),
}  # fmt: skip
"""The values of collide.audit/1 that a page shows, see `fits`."""
BASELINE_PAIRS = [{"baseline_depth": float, "worse": bool}]
"""Of the pairs of an audit with a baseline."""
LABELS = {
    **dict.fromkeys(("file", "scene_sha256", "trajectory_sha256"), str),
    **dict.fromkeys(("recorded", "labelled", "pairs"), int),
    "options": {"enter": float, "leave": float, "min_frames": int, "slip": bool},
    "shape": dict.fromkeys(("frames", "worlds", "sensors", "partners"), int),
    "listed": [{"sensor": str, "partner": str, "cells": int, "share": float, "least_distance": (float, str)}],
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


def read_result(path: str, schema: str, values: object) -> dict[str, Any]:
    """The object of a file of `--json`. schema: its name and version. values: what it must have, see `fits`.

    Raises InputError for another file, and for one without these values.
    """
    fix = f"give the output of collide {schema.split('/')[0].removeprefix('collide.')} --json"
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", path, fix) from error
    except (ValueError, RecursionError):
        raise InputError("is not JSON", path, fix) from None
    if not isinstance(found, dict) or found.get("schema") != schema:
        raise InputError(f"is not a result of {schema}", path, fix)
    if not fits(found, values):
        raise InputError("lacks values, or has damaged ones", path, fix)
    return found


def fits(value: object, wanted: Any) -> bool:
    """Whether a value of JSON has a form: a type (float: any finite number), [form] for a list of any length, a
    dictionary of the forms of its keys, which may be fewer than there are, or a tuple of forms of which one fits.
    """
    if isinstance(wanted, tuple):
        return any(fits(value, one) for one in wanted)
    if isinstance(wanted, list):
        return isinstance(value, list) and all(fits(one, wanted[0]) for one in value)
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(fits(value.get(name), one) for name, one in wanted.items())
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return value is None if wanted is None else type(value) is wanted
