"""Columns of the contents of several files."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict
from collidecli.pages.several_inputs import ListTable, counted

KINDS = {"scene": "scene", "trajectory": "trajectory", "contacts": "contact set"}
"""Words for what a file is, by the schema of its result."""


def _kind(item: ResultDict) -> str:
    if item["schema"] == "collide.inspect.recording/1":
        return item["label"]
    return KINDS[item["schema"].split(".")[2][:-2]]


LIST_TABLE = ListTable(
    "file",
    [("kind", "left", _kind), *counted("shapes", "bodies", "worlds", "frames", "contacts")],
    has_groups=True,
)
