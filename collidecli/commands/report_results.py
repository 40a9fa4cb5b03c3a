"""Results of `collide audit`, `collide label` and `collide clearance` that a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collidecli.commands.audit import CHECKS, SCHEMA, TUNNEL
from collidecli.commands.clearance import ClearanceResult
from collidecli.commands.label import LabelResult
from collidecli.errors import InputError
from collidecli.scene.option_choices import CLEARANCE_THINGS
from collidecli.storage.result_files import AUDIT, BASELINE_PAIRS, CLEARANCE, LABELS, fits, read_result


def read_audit(path: str) -> dict[str, Any] | None:
    """The object of `collide audit --json`; None for "". Raises InputError for another file, and a damaged one."""
    if not path:
        return None
    found = read_result(path, SCHEMA, AUDIT)
    checks = [*(one["name"] for one in found["checks"]), *(one["check"] for one in found["pairs"])]
    is_whole = fits(found["pairs"], BASELINE_PAIRS) or found["baseline"] is None
    if not (_is_even(found["series"]) and is_whole and {*checks} <= {*CHECKS, TUNNEL}):
        raise InputError("lacks values, or has damaged ones", path, "make the audit again")
    return found


def read_labels(path: str) -> dict[str, Any] | None:
    """The object of `collide label --json`; None for "". Raises InputError as `read_audit`."""
    if not path:
        return None
    found = read_result(path, LabelResult.SCHEMA, LABELS)
    series = found["series"]
    bins = {len(series["frame"]), len(series["time"]), *map(len, series["labelled"])}
    if len(bins) > 1 or len(series["labelled"]) != len(found["listed"]):
        raise InputError("lacks values, or has damaged ones", path, "make the labels again")
    return found


def read_clearance(path: str) -> dict[str, Any] | None:
    """The object of `collide clearance --json`; None for "". Raises InputError as `read_audit`."""
    if not path:
        return None
    found = read_result(path, ClearanceResult.SCHEMA, CLEARANCE)
    series, listed = found["series"], found["listed"]
    bins = {len(series["frame"]), len(series["time"]), *map(len, series["least"])}
    texts = {value for row in series["least"] for value in row if isinstance(value, str)}
    names_bodies = all(isinstance(one.get("body"), str) == (found["by"] == "body") for one in listed)
    is_even = len(bins) == 1 and len(series["least"]) == len(listed) and texts <= {"inf"}
    if not (is_even and names_bodies and found["by"] in CLEARANCE_THINGS):
        raise InputError("lacks values, or has damaged ones", path, "measure the distances again")
    return found


def other_motion(path: str, found: Mapping[str, Any], source: Mapping[str, Any]) -> list[str]:
    """A warning about a result of another scene or recording than that of the report."""
    for name, what in (("scene_sha256", "scene"), ("trajectory_sha256", "recording")):
        if found[name] != source[name]:
            return [f"{path} is of another {what} than this one"]
    return []


def _is_even(series: Mapping[str, Any]) -> bool:
    return len({len(values) for values in series.values() if isinstance(values, list)}) == 1
