"""Columns of the audits of several inputs."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict
from collidecli.pages.several_inputs import ListTable, counted
from collidecli.verbs.audit.words import audit_state, depth_text
from collidecli.wording import count


def _deepest(result: ResultDict) -> str:
    return depth_text(result["pairs"][0]["depth"] if result["pairs"] else 0.0)


def _verdict(result: ResultDict) -> str:
    state = audit_state(result)
    return "over a limit" if state == "failed" else state


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
    verdict=_verdict,
)
