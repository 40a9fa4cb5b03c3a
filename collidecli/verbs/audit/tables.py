"""Terminal tables and the verdict of an audit."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.escaping import markdown_code, markdown_text, printable_values
from collidecli.pages.names import WORLD
from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import (
    Column,
    Fitting,
    Listing,
    more_text,
    name_value_table,
    pair_columns,
    rows_table,
)
from collidecli.pages.verdicts import Verdict, markdown_rows, markdown_section, verdict_text
from collidecli.verbs.audit.words import (
    CHECKS,
    audit_state,
    audit_words,
    check_limit,
    depth_text,
    findings,
    has_limit,
    is_limited,
    tunnel_lines,
    usable_text,
)
from collidecli.wording import count, plural

MOST_ROWS = 20
CHECK_COLUMNS: list[Column] = [
    ("check", "left", lambda one: CHECKS[one["name"]]),
    ("limit", "right", check_limit),
    ("pairs", "right", lambda one: count(one["pairs"])),
    ("deepest", "right", lambda one: depth_text(one["deepest"])),
    ("failing", "right", lambda one: count(one["failing"])),
]
DEEPEST: list[Column] = [
    ("check", "left", lambda one: "allowed" if one["allowed"] else CHECKS[one["check"]]),
    ("deepest", "right", lambda one: depth_text(one["depth"])),
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
            markdown_code(row["shape0"]),
            markdown_code(row["shape1"]),
            depth_text(row["depth"]),
            str(row["frame"]),
            str(row["world"]),
            count(row["cells_over"]),
        ]
        for row in failing[:MOST_ROWS]
    ]
    markdown = markdown_section(
        f"collide audit: {audit_state(result)}",
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
    return "passed" if has_limit(check) else "no limit"


def audit_table(first: int, result: ResultDict) -> RenderableType:
    """Tables of collide.audit/1: the verdict, the checks and the deepest pairs. first: number of
    pairs."""
    checks = rows_table(CHECK_COLUMNS, result["checks"])
    words = Text(audit_words(result), style="bold")
    if is_limited(result["checks"], result["baseline"]):
        words = verdict_text(audit_words(result), result["passed"])
    rows = [("input", result["input"])]
    if result["trajectory"]:
        rows.append(("recording", result["trajectory"]))
    frames = plural(result["frames"], "frame")
    rows.append(
        (
            "motion",
            frames if result["worlds"] == 1 else f"{frames} of {plural(result['worlds'], 'world')}",
        )
    )
    rows.append(("usable", usable_text(result)))
    if result["baseline"] is not None:
        rows.append(("baseline", baseline_text(result)))
    rows += [("written", path) for path in (result.get("written") or {}).values()]
    parts: list[RenderableType] = [words, Text(), name_value_table(rows), checks]
    if result["pairs"] and first:
        parts.append(Fitting(partial(_pairs, result, first)))
    parts += [Text(f"tunnelling: {line}") for line in tunnel_lines(result)]
    if result["baseline"] is not None and result["baseline"]["note"]:
        parts.append(Text(f"note: {result['baseline']['note']}"))
    return Group(*parts)


def baseline_text(result: ResultDict) -> str:
    """The file of the baseline, and how many pairs are worse than in it or gone."""
    base = result["baseline"]
    return f"{base['file']}: {count(base['worse'])} worse, {count(base['gone'])} gone"


def _pairs(result: ResultDict, first: int, narrow: int) -> Listing:
    columns = [*pair_columns(narrow), *deepest_columns(result)]
    return rows_table(columns, result["pairs"][:first], more_text(len(result["pairs"]) - first))


def deepest_columns(result: ResultDict) -> list[Column]:
    """The columns of the deepest pairs beside their names, of which there is one at least."""
    columns = [*DEEPEST, *([WORLD] if result["worlds"] > 1 else []), *OVER]
    if "deepest_point" in result["pairs"][0]:
        columns.append(
            (
                "deepest point",
                "right",
                lambda pair: _point(pair.get("deepest_point")),
            )
        )
    if "overlap_volume" in result["pairs"][0]:
        columns.append(("volume", "right", _volume))
    return columns


def _point(depth: float | None) -> str:
    """A depth of the deepest point; empty for none."""
    return "" if depth is None else length(depth)


def _volume(pair: ResultDict) -> str:
    """A volume in cubic centimetres with its bound, or the reason of none."""
    if pair.get("overlap_volume") is None:
        return pair.get("overlap_note", "")
    bound = pair["overlap_volume_error"] * 1e6
    return f"{pair['overlap_volume'] * 1e6:.4g} cm^3" + (f" +- {bound:.1g}" if bound else "")
