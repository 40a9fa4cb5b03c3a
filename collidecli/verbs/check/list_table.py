"""Columns of the checks of several files, with a line for each finding."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict
from collidecli.pages.several_inputs import ListTable
from collidecli.wording import count


def _findings(item: ResultDict) -> list[str]:
    return [
        f"{item['input']}: {finding['where']}: {finding['what']}"
        for finding in item["result"]["findings"]
    ]


def _total(result: ResultDict) -> str:
    counts = result["counts"]
    good = sum(bool(item["result"] and item["result"]["good"]) for item in result["items"])
    failed = f", {count(counts['failed'])} cannot be checked" if counts["failed"] else ""
    return f"{count(good)} good, {count(counts['done'] - good)} faulty{failed}"


LIST_TABLE = ListTable(
    "file",
    [
        ("format", "left", lambda one: one["format"]),
        ("faults", "right", lambda one: count(len(one["findings"])) if one["findings"] else ""),
    ],
    verdict=lambda one: "good" if one["good"] else "faulty",
    lines=_findings,
    total=_total,
)
