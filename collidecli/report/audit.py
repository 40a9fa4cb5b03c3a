"""Descriptions of an audit, for its table, pages and annotations."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.escaping import markdown_code, markdown_text, printable_values
from collidecli.report.tables import (
    WORLD,
    Column,
    Finding,
    Fitting,
    Listing,
    ResultDict,
    Verdict,
    length,
    markdown_rows,
    markdown_section,
    more_text,
    name_value_table,
    pair_columns,
    percent,
    rows_table,
    verdict_text,
)
from collidecli.scene.text_format import count, plural

CHECKS = {
    "depth": "penetration",
    "self": "self-collision",
    "ground": "ground penetration",
    "start": "first frames",
    "tunnel": "tunnelling",
}
MAX_LINES = 20


def audit_words(result: ResultDict) -> str:
    """Whether a motion passes, as one line."""
    if result["passed"]:
        has_limits = any(check["limit"] is not None for check in result["checks"]) or result["limits"]["pairs"]
        words = "within the limits" if has_limits else "no limit is given"
        if result["baseline"] is not None:
            words = "nothing is worse than in the baseline"
        return f"passed: {words}, {pairs_text(result)}"
    failing = sum(check["failing"] for check in result["checks"])
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


def check_limit(check: ResultDict) -> str:
    """The limit of depth of a check as text; no pair may tunnel."""
    if check["name"] == "tunnel":
        return "not allowed"
    return "none" if check["limit"] is None else length(check["limit"])


def failing_lines(result: ResultDict, check: str) -> list[str]:
    """A line for each pair that fails a check."""
    is_start, compared = check == "start", result["baseline"] is not None
    lines = []
    for row in result["pairs"]:
        if (compared and not row["worse"]) or not (check in row["exceeds"] or (compared and check == row["check"])):
            continue
        depth = row["start_depth"] if is_start else row["depth"]
        where = "in a first frame" if is_start else f"in frame {row['frame']}, world {row['world']}"
        over = "" if is_start or not row["cells_over"] else f", above its limit in {plural(row['cells_over'], 'frame')}"
        before = f", in the baseline {length(row['baseline_depth'])}" if compared else ""
        lines.append(f"{row['shape0']} and {row['shape1']}: {length(depth)} {where}{over}{before}")
    return _first_lines(lines)


def tunnel_lines(result: ResultDict) -> list[str]:
    """A line for each pair that fails the check of tunnelling."""
    lines = []
    for tunnel in result.get("tunnels") or ():
        if tunnel["exceeds"]:
            first = f"the first after frame {tunnel['frame']}, world {tunnel['world']}, at {tunnel['time']:.6g} s"
            lines.append(f"{tunnel['shape0']} and {tunnel['shape1']}: {plural(tunnel['steps'], 'step')}, {first}")
    return _first_lines(lines)


def _first_lines(lines: list[str]) -> list[str]:
    return [*lines[:MAX_LINES], *filter(None, [more_text(len(lines) - MAX_LINES)])]


def findings(result: ResultDict) -> list[Finding]:
    """Each check with a limit, or all against a baseline, with its failures."""
    listed = []
    for check in result["checks"]:
        lines = tunnel_lines(result) if check["name"] == "tunnel" else failing_lines(result, check["name"])
        listed.append(Finding(CHECKS[check["name"]], [check["reason"], *lines] if check["failing"] else []))
    return listed


MOST_ROWS = 20
CHECK_COLUMNS: list[Column] = [
    ("check", "left", lambda one: CHECKS[one["name"]]),
    ("limit", "right", check_limit),
    ("pairs", "right", lambda one: count(one["pairs"])),
    ("deepest", "right", lambda one: length(one["deepest"])),
    ("failing", "right", lambda one: count(one["failing"])),
]
DEEPEST: list[Column] = [
    ("check", "left", lambda one: "allowed" if one["allowed"] else CHECKS[one["check"]]),
    ("deepest", "right", lambda one: length(one["depth"])),
    ("in frame", "right", lambda one: str(one["frame"])),
]
OVER: list[Column] = [
    ("frames", "right", lambda one: count(one["cells"])),
    ("over limit", "right", lambda one: count(one["cells_over"])),
]
"""Of the deepest pairs."""


def audit_verdict(result: ResultDict, seconds: float) -> Verdict:
    """The verdict of collide.audit/1. seconds: duration of the audit."""
    result = printable_values(result)
    columns = [*CHECK_COLUMNS[:-1], ("result", "left", _state)]
    checks = [[text(row) for _, _, text in columns] for row in result["checks"]]
    failing = [row for row in result["pairs"] if row["exceeds"]]
    pairs = [
        [
            markdown_code(row["shape0"]), markdown_code(row["shape1"]), length(row["depth"]), str(row["frame"]),
            str(row["world"]), count(row["cells_over"]),
        ]
        for row in failing[:MOST_ROWS]
    ]  # fmt: skip
    markdown = markdown_section(
        f"collide audit: {'passed' if result['passed'] else 'failed'}",
        [markdown_text(audit_words(result))],
        [markdown_text(f"Usable frames: {usable_text(result)}")],
        markdown_rows([title for title, _, _ in columns], checks),
        markdown_rows(["shape 0", "shape 1", "deepest", "frame", "world", "frames over"], pairs),
        [more_text(len(failing) - MOST_ROWS)] if len(failing) > MOST_ROWS else [],
        [f"- note: {markdown_text(note)}" for note in result["warnings"]],
    )
    return Verdict.of("audit", audit_words(result), findings(result), seconds, markdown)


def _state(check: ResultDict) -> str:
    if check["failing"]:
        return f"failed: {plural(check['failing'], 'pair')}"
    return "no limit" if check["limit"] is None and check["name"] != "tunnel" else "passed"


# Terminal tables of an audit.


def audit_table(first: int, result: ResultDict) -> RenderableType:
    """Tables of collide.audit/1: the verdict, the checks and the deepest pairs. first: number of pairs."""
    checks = rows_table(CHECK_COLUMNS, result["checks"])
    words = verdict_text(audit_words(result), result["passed"])
    parts: list[RenderableType] = [words, Text(), _summary(result), checks]
    if result["pairs"] and first:
        parts.append(Fitting(partial(_pairs, result, first)))
    parts += [Text(f"tunnelling: {line}") for line in tunnel_lines(result)]
    if result["baseline"] is not None and result["baseline"]["note"]:
        parts.append(Text(f"note: {result['baseline']['note']}"))
    return Group(*parts)


def _summary(result: ResultDict) -> RenderableType:
    rows = [("input", result["input"])]
    if result["trajectory"]:
        rows.append(("recording", result["trajectory"]))
    frames = plural(result["frames"], "frame")
    rows.append(("motion", frames if result["worlds"] == 1 else f"{frames} of {plural(result['worlds'], 'world')}"))
    rows.append(("usable", usable_text(result)))
    if (base := result["baseline"]) is not None:
        rows.append(("baseline", f"{base['file']}: {count(base['worse'])} worse, {count(base['gone'])} gone"))
    rows += [("written", path) for path in (result.get("written") or {}).values()]
    return name_value_table(rows)


def _pairs(result: ResultDict, first: int, narrow: int) -> Listing:
    columns = [*pair_columns(narrow), *DEEPEST, *([WORLD] if result["worlds"] > 1 else []), *OVER]
    if "deepest_point" in result["pairs"][0]:
        columns.append(
            ("deepest point", "right", lambda pair: length(pair["deepest_point"]) if "deepest_point" in pair else "")
        )
    if "overlap_volume" in result["pairs"][0]:
        columns.append(("volume", "right", _volume))
    return rows_table(columns, result["pairs"][:first], more_text(len(result["pairs"]) - first))


def _volume(pair: ResultDict) -> str:
    """A volume in cubic centimetres with its bound, or the reason of none."""
    if pair.get("overlap_volume") is None:
        return pair.get("overlap_note", "")
    bound = pair["overlap_volume_error"] * 1e6
    return f"{pair['overlap_volume'] * 1e6:.4g} cm^3" + (f" +- {bound:.1g}" if bound else "")
