"""Checks of an audit: depths and touches between frames against limits, and the frames that
pass."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.motion_depths import UNKNOWN_DEPTH, leading_run
from collidecli.errors import InputError
from collidecli.pages.quantities import length
from collidecli.storage.json_results import read_result
from collidecli.verbs.audit.limits import LENGTHS, AuditLimits
from collidecli.verbs.audit.sources import AuditSource
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.verbs.audit.request import AuditRequest

Baseline = dict[str, Any] | None
"""The result of an earlier audit, as JSON."""
DEPTH = "depth"
SELF = "self"
GROUND = "ground"
OWN = "own"
START = "start"
TUNNEL = "tunnel"
CHECKS = (DEPTH, SELF, GROUND, OWN, START)
"""Names of the checks: of all other pairs, of two bodies of one robot, of pairs with the ground, of
pairs with a limit of their own, of first frames. The second one is there only if robots are known,
the fourth only with such limits."""
MAX_RUNS_LISTED = 20


def checked_tunnels(tunnels: list[dict[str, Any]], baseline: Baseline) -> dict[str, Any]:
    """The check of tunnelling: every pair that is not allowed; with a baseline those with more
    steps than there."""
    before = {} if baseline is None else _steps_by_name(baseline)
    for row in tunnels:
        row["exceeds"] = not row["allowed"] and row["steps"] > before.get(
            (row["shape0"], row["shape1"]), 0
        )
    failing = [row for row in tunnels if row["exceeds"]]
    reason = ""
    if failing:
        first = failing[0]
        pair = f"{first['shape0']} and {first['shape1']}, after frame {first['frame']}"
        touch = "touches" if len(failing) == 1 else "touch"
        reason = f"{plural(len(failing), 'pair')} {touch} only between two frames: {pair}"
    deepest = max((row["depth"] for row in tunnels), default=0.0)
    check = {"name": TUNNEL, "limit": None, "pairs": len(tunnels), "failing": len(failing)}
    return check | {"deepest": deepest, "reason": reason}


def depths_by_name(baseline: dict[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Depth and start depth of each pair of a baseline; of equal names the greatest."""
    depths: dict[tuple[str, str], tuple[float, float]] = {}
    for pair in map(with_unknown_depths, baseline["pairs"]):
        names = pair["shape0"], pair["shape1"]
        before = depths.get(names, (0.0, 0.0))
        depths[names] = (
            max(before[0], float(pair["depth"])),
            max(before[1], float(pair["start_depth"])),
        )
    return depths


def _steps_by_name(baseline: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {
        (tunnel["shape0"], tunnel["shape1"]): int(tunnel["steps"])
        for tunnel in baseline.get("tunnels") or ()
    }


DEPTHS = ("depth", "start_depth", "baseline_depth", "deepest")
"""Fields of a pair and of a check that are None where the depth is not known."""


def without_unknown_depths(row: dict[str, Any]) -> None:
    """Sets the depths of a pair or a check that are not known to None."""
    row.update({name: None for name in DEPTHS if row.get(name) == UNKNOWN_DEPTH})


def with_unknown_depths(row: dict[str, Any]) -> dict[str, Any]:
    """A pair with UNKNOWN_DEPTH in place of None."""
    unknown = {name: float(UNKNOWN_DEPTH) for name in DEPTHS if row.get(name, 0.0) is None}
    return row | unknown


def check_known_depths(
    limits: AuditLimits, source: AuditSource, baseline: Baseline, against: str
) -> None:
    """Raises InputError for limits, and a baseline, that need depths in a set of touches, which has
    none."""
    if baseline is not None and bool(baseline.get("touch_only")) != source.touch_only:
        one = "the baseline" if source.touch_only else source.name
        other = source.name if source.touch_only else "the baseline"
        what = f"{one} has depths, and {other} is of a run with --touch-only, which has none"
        raise InputError(what, against, "compare two audits of one kind")
    if not source.touch_only:
        return
    given = [(f"--{name.replace('_', '-')}", getattr(limits, name)) for name in LENGTHS]
    given += [("a limit of --limits", limit) for _, limit in limits.pairs]
    for name, limit in given:
        if limit:
            what = f"{limit:g} m cannot be checked: {source.name} is of a run with --touch-only"
            raise InputError(
                what, name, "give 0, by which no pair may touch, or run without --touch-only"
            )


def read_baseline(path: str) -> dict[str, Any]:
    """The result of an earlier audit in a file of `--json`. Raises InputError for another file."""
    fix = "give the output of an earlier collide audit --json"
    baseline = read_result(path, SCHEMA, {}, fix)
    try:
        depths_by_name(baseline)
        _steps_by_name(baseline)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("has a list of pairs that is damaged", path, fix) from None
    return baseline


def limits_dict(limits: AuditLimits) -> dict[str, Any]:
    """Limits in the types of JSON."""
    values = asdict(limits)
    values["pairs"] = [
        {"between": list(pattern), "max_depth": limit} for pattern, limit in limits.pairs
    ]
    return values | {
        name: [list(v) if isinstance(v, tuple) else v for v in values[name]] for name in ("allow",)
    }


def checked_depths(
    name: str, limits: AuditLimits, pairs: list[dict[str, Any]], is_compared: bool
) -> dict[str, Any]:
    """One check: its pairs, the deepest, those that exceed a limit, and the reason to fail, or
    ""."""
    value = "start_depth" if name == START else "depth"
    checked = [row for row in pairs if row[value] > 0.0 and (name in (START, row["check"]))]
    checked.sort(key=lambda row: -row[value])
    failing = [row for row in checked if name in row["exceeds"]]
    if is_compared:
        without_limits = not limits.has_any and name != START
        failing = [
            row
            for row in (checked if without_limits else failing)
            if row["worse"] and not row["allowed"]
        ]
    limit = _limit_of(name, limits)
    reason = ""
    if failing:
        deepest = failing[0]
        words = {SELF: " of one robot", GROUND: " with the ground", START: " in a first frame"}
        words[OWN] = " with a limit of their own"
        what = "worse than in the baseline" if is_compared else "deeper than allowed"
        pair = f"{deepest['shape0']} and {deepest['shape1']}"
        pairs_text = f"{plural(len(failing), 'pair')}{words.get(name, '')}"
        reason = f"{pairs_text} {what}, up to {length(deepest[value])} deep: {pair}"
        if deepest[value] == UNKNOWN_DEPTH:
            verb = "touches" if len(failing) == 1 else "touch"
            new = ", and not in the baseline" if is_compared else ""
            reason = f"{pairs_text} {verb}{new}: {pair}"
    return {
        "name": name,
        "limit": limit,
        "pairs": len(checked),
        "failing": len(failing),
        "deepest": checked[0][value] if checked else 0.0,
        "reason": reason,
    }


def _limit_of(name: str, limits: AuditLimits) -> float | None:
    """The limit of every pair of a check [m]; None for none, and for pairs whose own limits
    differ."""
    if name == OWN:
        own = {limit for _, limit in limits.pairs}
        return own.pop() if len(own) == 1 else None
    if name == START:
        return limits.max_start
    limit = {DEPTH: limits.max_depth, SELF: limits.self, GROUND: limits.max_ground}[name]
    return limits.max_depth if limit is None else limit


def usable_cells(source: AuditSource, usable: np.ndarray, recorded: np.ndarray) -> dict[str, Any]:
    """Counts of usable cells, the runs of unusable frames, and the longest unusable beginning of a
    world."""
    bad = recorded & ~usable
    runs = []
    for world in np.flatnonzero(bad.any(axis=0)).tolist():
        edges = np.flatnonzero(np.diff(np.concatenate([[0], bad[:, world].astype(np.int8), [0]])))
        for first, end in edges.reshape(-1, 2).tolist():
            frames = source.frames.number[first], source.frames.number[end - 1]
            runs.append(
                {"world": world, "first_frame": int(frames[0]), "last_frame": int(frames[1])}
            )
    return {
        "cells": int(usable.sum()),
        "share": float(usable.sum() / max(1, recorded.sum())),
        "unusable_from_start": int(leading_run(bad.T).max(initial=0)),
        "runs": len(runs),
        "listed": runs[:MAX_RUNS_LISTED],
    }


def compared_with_baseline(
    request: AuditRequest,
    baseline: dict[str, Any],
    source: AuditSource,
    pairs: list[dict[str, Any]],
) -> dict[str, Any]:
    """What a baseline says of the same pairs, and which of its pairs are gone."""
    is_same = baseline.get("trajectory_sha256") == source.trajectory_sha256
    named_pairs = {(pair["shape0"], pair["shape1"]) for pair in pairs}
    return {
        "file": request.against,
        "tolerance": request.tolerance,
        "worse": sum(pair["worse"] for pair in pairs),
        "gone": len(depths_by_name(baseline).keys() - named_pairs),
        "note": "" if is_same else "the baseline is of another recording",
    }


SCHEMA = "collide.audit/1"
