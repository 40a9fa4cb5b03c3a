"""An audit as HTML: the section of a report, and a page of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from collidecli.escaping import printable_values
from collidecli.pages.pair_words import pair_words
from collidecli.pages.parts import (
    INDENT,
    columns_table,
    figure_list,
    html_page,
    page_charts,
    part,
    section,
    table,
)
from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import Column, more_text
from collidecli.pages.time_axis import time_axis
from collidecli.verbs.audit.chart import AUDIT_CHART, LINES
from collidecli.verbs.audit.tables import CHECK_COLUMNS, baseline_text, deepest_columns
from collidecli.verbs.audit.words import audit_headline, audit_words, findings, usable_text
from collidecli.wording import count, plural

MAX_PAIRS = 12
"""Pairs in the section of a report."""
PAGE_PAIRS = 500
"""Pairs in the table of a page of its own."""


def audit_section(result: ResultDict, most: int = MAX_PAIRS) -> dict[str, Any]:
    """Depth over time with limits and the mask, the checks, the findings and the `most` deepest
    pairs of collide.audit/1."""
    lead = f"{audit_words(result).capitalize()}. "
    lead += f"Usable frames: {usable_text(result)}; the others are shaded."
    failures = []
    for finding in findings(result):
        failures += [*finding.lines[:1], *(f"{INDENT}{line}" for line in finding.lines[1:])]
    pairs = result["pairs"][:most]
    parts = [
        *([] if result.get("touch_only") else [part(chart="audit")]),
        part(table=columns_table("Checks", CHECK_COLUMNS, result["checks"])),
    ]
    parts += [part(heading="Findings", lines=failures)] if failures else []
    if pairs:
        columns: list[Column] = [("pair", "left", pair_words), *deepest_columns(result)]
        more = more_text(len(result["pairs"]) - most)
        deepest = columns_table("Deepest pairs", columns, pairs, more)
        parts.append(part(heading="Deepest pairs", table=deepest))
    return section("audit", "Audit", *parts, lead=lead)


def audit_page(result: ResultDict) -> str:
    """The page of collide.audit/1, with escaped names. Raises InputError without jinja2 and
    matplotlib."""
    result = printable_values(result)
    kind, words = audit_headline(result)
    verdict = {
        "kind": kind,
        "words": words,
        "section": "audit",
        "link": "Checks",
    }
    return html_page(
        title=result["scene"] or Path(result["input"]).name,
        subtitle=f"Audit of {Path(result['trajectory'] or result['input']).name}",
        what="audit",
        generator="collide",
        headlines=[verdict],
        selection="",
        groups=[],
        charts=page_charts({"audit": result}, {"audit": AUDIT_CHART}),
        tables={"audit": _depths(result)},
        figures=_figures(result),
        sections=[audit_section(result, PAGE_PAIRS), _source(result)],
    )


def _figures(result: ResultDict) -> list[dict[str, str]]:
    usable = result["usable"]
    worlds = plural(result["worlds"], "world")
    listed = [
        ("penetrating pairs", count(len(result["pairs"])), ""),
        ("frames", count(result["frames"]), "" if result["worlds"] == 1 else f"of {worlds}"),
        ("usable", count(usable["cells"]), f"of {plural(result['cells'], 'frame')} of all worlds"),
    ]
    if result["pairs"]:
        deepest = result["pairs"][0]
        where = f"{pair_words(deepest)}, frame {deepest['frame']}"
        listed.insert(0, ("deepest", length(deepest["depth"]), where))
    return figure_list(listed)


def _depths(result: ResultDict) -> dict[str, Any]:
    """The table of the chart's numbers."""
    series = result["series"]
    times, label = time_axis(series)
    rows = [
        (
            f"{times[n]:.6g}",
            *(length(series[name][n]) for name, *_ in LINES),
            "no" if series["unusable"][n] else "yes",
        )
        for n in range(len(times))
    ]
    titles = [label, *(f"{words}>" for _, words, *_ in LINES), "usable"]
    return table("Greatest depth over time", titles, rows)


def _source(result: ResultDict) -> dict[str, Any]:
    rows = [
        ("input", result["input"], True),
        ("scene", result["scene"], True),
        ("scene_sha256", result["scene_sha256"], True),
        ("recording", result["trajectory"] or "none", True),
        ("trajectory_sha256", result["trajectory_sha256"] or "none", True),
    ]
    if result["baseline"] is not None:
        rows.append(("baseline", baseline_text(result), False))
    return section("source", "Source", part(properties=rows), part(lines=result["warnings"]))
