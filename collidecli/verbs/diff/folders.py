"""Verdicts of comparisons of the contact sets of two folders."""

from __future__ import annotations

from collections.abc import Mapping

from collidecli.analysis.differences import KINDS
from collidecli.escaping import markdown_code, markdown_text, printable_values
from collidecli.pages.quantities import ResultDict
from collidecli.pages.several_inputs import state_text
from collidecli.pages.verdicts import Finding, Suite, Verdict, markdown_rows, markdown_section
from collidecli.verbs.diff.list_table import diff_list_words
from collidecli.verbs.diff.words import findings, markdown, verdict
from collidecli.wording import count, plural

MAX_SECTIONS = 20
"""Number of different contact sets that have a section in Markdown: GitHub shows a summary of up to
1 MiB."""


def diff_list_verdict(result: ResultDict, seconds: Mapping[str, float]) -> Verdict:
    """The verdict of collide.diff_list/1, with a suite per contact set. seconds: durations by the
    names of inputs."""
    result = printable_values(result)
    suites = []
    failures = []
    for item in result["items"]:
        name = item["input"]
        diffed = item["result"]
        kind, case = ("error", "comparison") if item["error"] else ("failure", "in both folders")
        of_item = findings(diffed) if diffed else [Finding(case, [state_text(item)])]
        suites.append(Suite(f"collide diff: {name}", name, of_item, seconds.get(name, 0.0), kind))
        if diffed is None or not diffed["equal"]:
            failures.append((name, verdict(diffed) if diffed else state_text(item)))
    different = [item for item in result["items"] if item["result"] and not item["result"]["equal"]]
    head = markdown_section(
        f"collide diff: {'different' if failures else 'equal'}",
        [markdown_text(diff_list_words(result))],
        markdown_rows(["contact set", "result", *KINDS], [_row(item) for item in result["items"]]),
    )
    sections = [markdown(item["result"], item["input"]) for item in different[:MAX_SECTIONS]]
    more = len(different) - len(sections)
    rest = [f"and {plural(more, 'more different contact set')}\n"] if more else []
    return Verdict(
        "diff", diff_list_words(result), suites, failures, "\n".join([head, *sections, *rest])
    )


def _row(item: ResultDict) -> list[str]:
    result = item["result"]
    if result is None:
        return [markdown_code(item["input"]), markdown_text(state_text(item)), *[""] * len(KINDS)]
    numbers = [count(result["contacts"][kind]) for kind in KINDS]
    return [markdown_code(item["input"]), "equal" if result["equal"] else "different", *numbers]
