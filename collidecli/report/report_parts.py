"""Tables, parts and sections of a report, for the template of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(name: str, columns: str, rows: Iterable[Sequence[str]], more: str = "") -> dict[str, Any]:
    """A table for the template. columns: titles separated by commas; those that end with > are right-aligned."""
    titles = [{"title": one.rstrip(">"), "right": one.endswith(">")} for one in columns.split(",")]
    return {"name": name, "columns": titles, "rows": [list(row) for row in rows], "more": more}


def part(**given: Any) -> dict[str, Any]:
    """A part of a section; by default its entries are empty."""
    return {"heading": "", "lead": "", "chart": "", "lines": [], "table": None, "properties": [], **given}


def section(name: str, title: str, *parts: dict[str, Any], lead: str = "") -> dict[str, Any]:
    """A section of the page."""
    return {"id": name, "title": title, "lead": lead, "parts": list(parts)}
