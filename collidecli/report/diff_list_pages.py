"""Comparisons of the contact sets of two folders as JUnit XML, Markdown and GitHub annotations."""

from __future__ import annotations

from collections.abc import Mapping

from collidecli.escaping import github_command, markdown_code, markdown_text, printable_values
from collidecli.report.diff_pages import (
    MAX_ANNOTATIONS,
    junit_document,
    junit_suite,
    markdown,
    markdown_rows,
    stages,
)
from collidecli.report.diff_words import KINDS, verdict
from collidecli.report.list_tables import diff_list_verdict, state_text
from collidecli.report.words import ResultDict
from collidecli.scene.text_format import count, plural

MAX_SECTIONS = 20
"""Number of different contact sets that have a section in Markdown: GitHub shows a summary of up to 1 MiB."""


def junit_list(result: ResultDict, seconds: Mapping[str, float]) -> bytes:
    """JUnit XML with a suite per contact set. seconds: duration of each comparison by the name of its input."""
    suites = []
    for item in printable_values(result)["items"]:
        name = item["input"]
        kind, case = ("error", "comparison") if item["error"] else ("failure", "in both folders")
        cases = stages(item["result"]) if item["result"] else [(case, [state_text(item)])]
        suites.append(junit_suite(f"collide diff: {name}", name, cases, seconds.get(name, 0.0), kind))
    return junit_document(suites)


def markdown_list(result: ResultDict) -> str:
    """Markdown for a step summary: a row per contact set, and a section for each of the first different ones."""
    result = printable_values(result)
    different = [item for item in result["items"] if item["result"] and not item["result"]["equal"]]
    lines = [
        f"### collide diff: {'different' if _is_different(result) else 'equal'}",
        "",
        markdown_text(diff_list_verdict(result)),
        "",
        *markdown_rows(["contact set", "result", *KINDS], [_row(item) for item in result["items"]]),
        "",
    ]
    sections = [markdown(item["result"], item["input"]) for item in different[:MAX_SECTIONS]]
    more = len(different) - len(sections)
    rest = [f"and {plural(more, 'more different contact set')}\n"] if more else []
    return "\n".join(["\n".join(lines), *sections, *rest])


def _row(item: ResultDict) -> list[str]:
    found = item["result"]
    if found is None:
        return [markdown_code(item["input"]), markdown_text(state_text(item)), *[""] * len(KINDS)]
    numbers = [count(found["contacts"][kind]) for kind in KINDS]
    return [markdown_code(item["input"]), "equal" if found["equal"] else "different", *numbers]


def _is_different(result: ResultDict) -> bool:
    return any(item["result"] is None or not item["result"]["equal"] for item in result["items"])


def github_list(result: ResultDict) -> list[str]:
    """Workflow commands of GitHub Actions: an error per contact set that differs or fails, or one notice."""
    result = printable_values(result)
    if not _is_different(result):
        return [github_command("notice", "collide diff", diff_list_verdict(result))]
    errors = [
        (item["input"], verdict(item["result"]) if item["result"] else state_text(item))
        for item in result["items"]
        if item["result"] is None or not item["result"]["equal"]
    ]
    found = [github_command("error", f"collide diff: {name}", text) for name, text in errors]
    if len(found) > MAX_ANNOTATIONS:
        rest = ", ".join(name for name, _ in errors[MAX_ANNOTATIONS - 1 :])
        found = [*found[: MAX_ANNOTATIONS - 1], github_command("error", "collide diff", f"and more: {rest}")]
    return found
