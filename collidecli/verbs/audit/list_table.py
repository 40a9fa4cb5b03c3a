"""Columns of the audits of several inputs."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict
from collidecli.pages.several_inputs import ListTable, counted
from collidecli.verbs.audit.words import depth_text
from collidecli.wording import count


def _deepest(result: ResultDict) -> str:
    return depth_text(result["pairs"][0]["depth"] if result["pairs"] else 0.0)


LIST_TABLE = ListTable(
    "input",
    [
        *counted("frames", "pairs"),
        ("deepest", "right", _deepest),
        (
            "usable",
            "right",
            lambda one: f"{count(one['usable']['cells'])} of {count(one['cells'])}",
        ),
    ],
    verdict=lambda one: "passed" if one["passed"] else "over a limit",
)
