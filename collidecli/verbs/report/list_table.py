"""Columns of the pages of several contact sets."""

from __future__ import annotations

from collidecli.pages.lists import DEEPEST, WRITTEN, ListTable, counted

LIST_TABLE = ListTable("contact set", [*counted("frames", "contacts"), DEEPEST, WRITTEN])
