"""Descriptions of an audit, for its table, pages and annotations."""

from __future__ import annotations

from collidecli.report.words import ResultDict, length, percent
from collidecli.scene.text_format import count, plural

CHECKS = {
    "depth": "penetration",
    "self": "self-collision",
    "ground": "ground penetration",
    "start": "first frames",
    "tunnel": "tunnelling",
}
MAX_LINES = 20


def audit_verdict(result: ResultDict) -> str:
    """Whether a motion passes, as one line."""
    if result["passed"]:
        has_limits = any(one["limit"] is not None for one in result["checks"]) or result["limits"]["pairs"]
        words = "within the limits" if has_limits else "no limit is given"
        if result["baseline"] is not None:
            words = "nothing is worse than in the baseline"
        return f"passed: {words}, {pairs_text(result)}"
    failing = sum(one["failing"] for one in result["checks"])
    return f"failed: {plural(failing, 'finding')}, {pairs_text(result)}"


def pairs_text(result: ResultDict) -> str:
    """Number of penetrating pairs, and the deepest."""
    pairs = result["pairs"]
    if not pairs:
        return "no pair penetrates"
    return f"{plural(len(pairs), 'pair')} penetrate{'s' if len(pairs) == 1 else ''}, up to {length(pairs[0]['depth'])}"


def usable_text(result: ResultDict) -> str:
    """Number and share of usable frames."""
    usable = result["usable"]
    text = f"{count(usable['cells'])} of {count(result['cells'])} ({percent(usable['share'])})"
    if usable["unusable_from_start"]:
        text += f"; up to the first {plural(usable['unusable_from_start'], 'frame')} of a world cannot be used"
    return text


def limit_text(limit: float | None) -> str:
    """A limit of depth as text."""
    return "none" if limit is None else length(limit)


def check_limit(check: ResultDict) -> str:
    """The limit of a check as text; no pair may tunnel."""
    return "not allowed" if check["name"] == "tunnel" else limit_text(check["limit"])


def failing_lines(result: ResultDict, check: str) -> list[str]:
    """A line for each pair that fails a check."""
    found = []
    is_start, compared = check == "start", result["baseline"] is not None
    for one in result["pairs"]:
        if check not in one["exceeds"] and not (compared and one.get("worse") and check == one["check"]):
            continue
        if compared and not one["worse"]:
            continue
        depth = one["start_depth"] if is_start else one["depth"]
        where = "in a first frame" if is_start else f"in frame {one['frame']}, world {one['world']}"
        over = "" if is_start or not one["cells_over"] else f", above its limit in {plural(one['cells_over'], 'frame')}"
        before = f", in the baseline {length(one['baseline_depth'])}" if compared else ""
        found.append(f"{one['shape0']} and {one['shape1']}: {length(depth)} {where}{over}{before}")
    if len(found) > MAX_LINES:
        found = [*found[:MAX_LINES], f"and {plural(len(found) - MAX_LINES, 'more pair')}"]
    return found


def tunnel_lines(result: ResultDict) -> list[str]:
    """A line for each pair that fails the check of tunnelling."""
    failing = [one for one in result.get("tunnels") or () if one["exceeds"]]
    found = [
        f"{one['shape0']} and {one['shape1']}: {plural(one['steps'], 'step')}, the first after frame {one['frame']}, "
        f"world {one['world']}, at {one['time']:.6g} s"
        for one in failing[:MAX_LINES]
    ]
    more = len(failing) - len(found)
    return [*found, f"and {plural(more, 'more pair')}"] if more else found


def stages(result: ResultDict) -> list[tuple[str, list[str]]]:
    """Name and failures of each check with a limit, or of all against a baseline; one without failures has passed."""
    found = []
    for one in result["checks"]:
        own = tunnel_lines(result) if one["name"] == "tunnel" else failing_lines(result, one["name"])
        lines = [one["reason"], *own] if one["failing"] else []
        found.append((CHECKS[one["name"]], lines))
    return found
