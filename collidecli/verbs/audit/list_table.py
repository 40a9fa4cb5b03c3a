"""Columns of the audits of several inputs."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.several_inputs import ListTable, counted
from collidecli.wording import count


def _deepest(result: ResultDict) -> str:
    return length(max((pair["depth"] for pair in result["pairs"]), default=0.0))


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
