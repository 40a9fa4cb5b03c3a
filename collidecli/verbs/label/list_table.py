"""Columns of the labels of several contact sets."""

from __future__ import annotations

from collidecli.pages.several_inputs import ListTable, counted

LIST_TABLE = ListTable(
    "contact set",
    [
        *counted("frames", "worlds", "sensors", "partners", of="shape"),
        *counted("labelled", "runs"),
    ],
)
