"""Sections of a report about an audit, labels and least distances of the motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collidecli.report.audit_words import CHECKS, audit_verdict, check_limit, stages, usable_text
from collidecli.report.report_parts import part, section, table
from collidecli.report.words import ResultDict, length, percent
from collidecli.scene.text_format import count, plural

MAX_PAIRS = 12


def motion_sections(result: ResultDict, charts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sections of `--audit`, `--labels` and `--clearance`; none without them."""
    found = []
    if result.get("audit"):
        found.append(_audit(result["audit"], charts))
    if result.get("labels"):
        found.append(_labels(result["labels"], charts))
    if result.get("clearance"):
        found.append(_clearance(result["clearance"], charts))
    return found


def _audit(found: ResultDict, charts: Mapping[str, Any]) -> dict[str, Any]:
    """Depth over time with limits and the mask, the checks, the findings and the deepest pairs of collide.audit/1."""
    lead = f"{audit_verdict(found).capitalize()}. Usable frames: {usable_text(found)}; the others are shaded."
    checks = [
        (CHECKS[one["name"]], check_limit(one), count(one["pairs"]), length(one["deepest"]), count(one["failing"]))
        for one in found["checks"]
    ]
    findings = [line for _, lines in stages(found) for line in lines]
    more = len(found["pairs"]) - MAX_PAIRS
    pairs = table(
        "Deepest pairs",
        "pair,check,deepest>,in frame>,frames>,over limit>",
        [
            (
                f"{one['shape0']} and {one['shape1']}", "allowed" if one["allowed"] else CHECKS[one["check"]],
                length(one["depth"]), str(one["frame"]), count(one["cells"]), count(one["cells_over"]),
            )
            for one in found["pairs"][:MAX_PAIRS]
        ],
        f"and {plural(more, 'more pair')}" if more > 0 else "",
    )  # fmt: skip
    parts = [part(chart="audit" if "audit" in charts else "")]
    parts.append(part(table=table("Checks", "check,limit>,pairs>,deepest>,failing>", checks)))
    parts += [part(heading="Findings", lines=findings)] if findings else []
    parts += [part(heading="Deepest pairs", table=pairs)] if found["pairs"] else []
    return section("audit", "Audit", *parts, lead=lead)


def _labels(found: ResultDict, charts: Mapping[str, Any]) -> dict[str, Any]:
    """Labels over time and the share of each pair of collide.label/1."""
    options, per_bin = found["options"], found["series"]["frames_per_bin"]
    lead = f"{plural(found['labelled'], 'label')}, from {length(options['enter'])} to beyond {length(options['leave'])}"
    if options["min_frames"] > 1:
        lead += f", labels and pauses of at least {plural(options['min_frames'], 'frame')}"
    lead += f"; a column is {plural(per_bin, 'frame')}." if per_bin > 1 else "."
    if len(found["listed"]) < found["pairs"]:
        lead += f" {len(found['listed'])} of {plural(found['pairs'], 'pair')} are shown."
    rows = []
    for one in found["listed"]:
        deepest, slip = one["least_distance"], one.get("mean_slip")
        row = [f"{one['sensor']} and {one['partner']}", count(one["cells"]), percent(one["share"])]
        row.append(deepest if isinstance(deepest, str) else length(deepest))
        rows.append([*row, "" if slip is None else f"{slip:.4g} m/s"] if options["slip"] else row)
    columns = "pair,frames>,share>,deepest>" + (",mean slip>" if options["slip"] else "")
    parts = [part(chart="labels" if "labels" in charts else "")]
    parts += [part(table=table("Labels", columns, rows))] if rows else []
    return section("labels", "Labels", *parts, lead=lead)


def _clearance(found: ResultDict, charts: Mapping[str, Any]) -> dict[str, Any]:
    """Least distances over time and the nearest items of collide.clearance/1."""
    lead = f"Without a cutoff, of {plural(found['pairs'], 'pair')} of shapes; negative is penetration."
    if len(found["listed"]) < found["items"]:
        items = plural(found["items"], "body", "bodies") if found["by"] == "body" else plural(found["items"], "pair")
        lead += f" The nearest {len(found['listed'])} of {items} are shown."
    rows = []
    for one in found["listed"]:
        pair = f"{one['shape0']} and {one['shape1']}"
        row = [pair, length(one["least_distance"]), str(one["frame"]), str(one["world"])]
        rows.append([one["body"], *row] if found["by"] == "body" else row)
    columns = ("body," if found["by"] == "body" else "") + "pair,least distance>,in frame>,world>"
    parts = [part(chart="clearance" if "clearance" in charts else "")]
    parts += [part(table=table("Nearest", columns, rows))] if rows else []
    return section("clearance", "Clearance", *parts, lead=lead)
