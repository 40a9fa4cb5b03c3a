"""The section of a report about an audit."""

from __future__ import annotations

from typing import Any

from collidecli.pages.pair_words import pair_words
from collidecli.pages.parts import columns_table, part, section
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import more_text
from collidecli.verbs.audit.tables import CHECK_COLUMNS, DEEPEST, OVER
from collidecli.verbs.audit.words import audit_words, findings, usable_text

MAX_PAIRS = 12


def audit_section(result: ResultDict) -> dict[str, Any]:
    """Depth over time with limits and the mask, the checks, the findings and the deepest pairs of
    collide.audit/1."""
    lead = f"{audit_words(result).capitalize()}. "
    lead += f"Usable frames: {usable_text(result)}; the others are shaded."
    failures = [line for finding in findings(result) for line in finding.lines]
    pairs = result["pairs"][:MAX_PAIRS]
    more = more_text(len(result["pairs"]) - MAX_PAIRS)
    deepest = columns_table(
        "Deepest pairs", [("pair", "left", pair_words), *DEEPEST, *OVER], pairs, more
    )
    parts = [
        *([] if result.get("touch_only") else [part(chart="audit")]),
        part(table=columns_table("Checks", CHECK_COLUMNS, result["checks"])),
    ]
    parts += [part(heading="Findings", lines=failures)] if failures else []
    parts += [part(heading="Deepest pairs", table=deepest)] if pairs else []
    return section("audit", "Audit", *parts, lead=lead)
