"""Words of an audit: checks, limits, findings, usable frames."""

from __future__ import annotations

from collections.abc import Sequence

from collidecli.pages.quantities import ResultDict, length, percent
from collidecli.pages.tables import more_text
from collidecli.pages.verdicts import Finding
from collidecli.wording import count, plural

CHECKS = {
    "depth": "penetration",
    "self": "self-collision",
    "ground": "ground penetration",
    "own": "own limits of pairs",
    "start": "first frames",
    "tunnel": "tunnelling",
}
MAX_LINES = 20


NO_LIMIT = "no limit is given"
LIMIT_OPTIONS = "--max-depth, --self, --max-ground, --max-start and --limits give limits"


def has_limit(check: ResultDict) -> bool:
    """Whether a check has a limit; no pair may tunnel."""
    return check["limit"] is not None or check["name"] in ("tunnel", "own")


def is_limited(checks: Sequence[ResultDict], baseline: ResultDict | None) -> bool:
    """Whether an audit compares depths with anything, so that it can fail."""
    return baseline is not None or any(map(has_limit, checks))


def audit_state(result: ResultDict) -> str:
    """One or two words for the verdict of collide.audit/1."""
    if not result["passed"]:
        return "failed"
    return "passed" if is_limited(result["checks"], result["baseline"]) else "no limit"


def audit_headline(result: ResultDict) -> tuple[str, str]:
    """The kind of the verdict on a page, and its words: "equal" is within the limits, "different"
    is not, "open" has none."""
    state = audit_state(result)
    words = audit_words(result)
    if state == "no limit":
        return "open", f"Audit: {words}."
    return ("equal" if result["passed"] else "different"), f"Audit {words}."


def audit_words(result: ResultDict) -> str:
    """Whether a motion passes, as one line; without a limit what was measured."""
    if not is_limited(result["checks"], result["baseline"]):
        return f"{NO_LIMIT}: {pairs_text(result)}; {LIMIT_OPTIONS}"
    if result["passed"]:
        if result["baseline"] is not None:
            return f"passed: nothing is worse than in the baseline, {pairs_text(result)}"
        without = _pairs_without_limit(result)
        ending = f", {count(without)} of them without a limit" if without else ""
        return f"passed: within the limits, {pairs_text(result)}{ending}"
    failing = sum(check["failing"] for check in result["checks"])
    return f"failed: {plural(failing, 'finding')}, {pairs_text(result)}"


def _pairs_without_limit(result: ResultDict) -> int:
    """Number of penetrating pairs that are allowed, or whose check has no limit."""
    limited = {check["name"] for check in result["checks"] if has_limit(check)}
    return sum(row["allowed"] or row["check"] not in limited for row in result["pairs"])


def pairs_text(result: ResultDict) -> str:
    """Number of penetrating pairs, and the deepest."""
    pairs = result["pairs"]
    if not pairs:
        return "no pair penetrates"
    if pairs[0]["depth"] is None:
        return f"{plural(len(pairs), 'pair')} touch{'es' if len(pairs) == 1 else ''}"
    deepest = length(pairs[0]["depth"])
    return (
        f"{plural(len(pairs), 'pair')} penetrate{'s' if len(pairs) == 1 else ''}, up to {deepest}"
    )


def depth_text(depth: float | None) -> str:
    """A depth as text; "touching" for one that is not known."""
    return "touching" if depth is None else length(depth)


def usable_text(result: ResultDict) -> str:
    """Number and share of usable frames."""
    usable = result["usable"]
    text = f"{count(usable['cells'])} of {count(result['cells'])} ({percent(usable['share'])})"
    if usable["unusable_from_start"]:
        number = usable["unusable_from_start"]
        first = "the first frame" if number == 1 else f"the first {plural(number, 'frame')}"
        one = result["worlds"] == 1
        of_worlds = "" if one else f" of {'some worlds' if number == 1 else 'a world'}"
        up_to = "" if one or number == 1 else "up to "
        text += f"; {up_to}{first}{of_worlds} cannot be used"
    return text


def check_limit(check: ResultDict) -> str:
    """The limit of depth of a check as text; no pair may tunnel."""
    if check["name"] == "tunnel":
        return "not allowed"
    if check["name"] == "own" and check["limit"] is None:
        return "of each pair"
    return "none" if check["limit"] is None else length(check["limit"])


def failing_lines(result: ResultDict, check: str) -> list[str]:
    """A line for each pair that fails a check."""
    is_start = check == "start"
    compared = result["baseline"] is not None
    lines = []
    for row in result["pairs"]:
        if (compared and not row["worse"]) or not (
            check in row["exceeds"] or (compared and check == row["check"])
        ):
            continue
        depth = row["start_depth"] if is_start else row["depth"]
        where = "in a first frame" if is_start else f"in frame {row['frame']}, world {row['world']}"
        over = (
            ""
            if is_start or not row["cells_over"]
            else f", above its limit{_limit_text(row)} in {plural(row['cells_over'], 'frame')}"
        )
        before = f", in the baseline {depth_text(row['baseline_depth'])}" if compared else ""
        deep = "touch" if depth is None else length(depth)
        lines.append(f"{row['shape0']} and {row['shape1']}: {deep} {where}{over}{before}")
    return _first_lines(lines)


def _limit_text(row: ResultDict) -> str:
    """The limit of a pair, which the row of its check has not if pairs have their own."""
    return (
        f" of {length(row['limit'])}"
        if row["check"] == "own" and row.get("limit") is not None
        else ""
    )


def tunnel_lines(result: ResultDict) -> list[str]:
    """A line for each pair that fails the check of tunnelling."""
    lines = []
    for tunnel in result.get("tunnels") or ():
        if tunnel["exceeds"]:
            first = (
                f"the first after frame {tunnel['frame']}, world {tunnel['world']}, at"
                f" {tunnel['time']:.6g} s"
            )
            lines.append(
                f"{tunnel['shape0']} and {tunnel['shape1']}: {plural(tunnel['steps'], 'step')},"
                f" {first}"
            )
    return _first_lines(lines)


def _first_lines(lines: list[str]) -> list[str]:
    return [*lines[:MAX_LINES], *filter(None, [more_text(len(lines) - MAX_LINES)])]


def findings(result: ResultDict) -> list[Finding]:
    """Each check with its failures. One without a limit is skipped, except against a baseline."""
    listed = []
    for check in result["checks"]:
        lines = (
            tunnel_lines(result)
            if check["name"] == "tunnel"
            else failing_lines(result, check["name"])
        )
        skipped = "" if result["baseline"] is not None or has_limit(check) else NO_LIMIT
        failures = [check["reason"], *lines] if check["failing"] else []
        listed.append(Finding(CHECKS[check["name"]], failures, skipped))
    return listed
