"""Columns of the pages of several contact sets."""

from __future__ import annotations

from collidecli.pages.several_inputs import DEEPEST, WRITTEN, ListTable, counted

LIST_TABLE = ListTable("contact set", [*counted("frames", "contacts"), DEEPEST, WRITTEN])
