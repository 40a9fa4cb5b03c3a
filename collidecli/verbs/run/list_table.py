"""Columns of the runs of several inputs."""

from __future__ import annotations

from collidecli.pages.quantities import seconds
from collidecli.pages.several_inputs import DEEPEST, WRITTEN, ListTable, counted

LIST_TABLE = ListTable(
    "input",
    [
        *counted("frames", "contacts"),
        DEEPEST,
        ("time", "right", lambda one: seconds(one["wall_seconds"])),
        WRITTEN,
    ],
    has_groups=True,
)
