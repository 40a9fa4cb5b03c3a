"""The cache of signed distance fields and convex parts as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report.words import listing
from collidecli.scene.text_format import memory

KEY_DIGITS = 12
WORDS = {"field": "field", "parts": "convex parts"}


def cache_table(facts: Mapping[str, Any]) -> RenderableType:
    """A line an entry, and how much room all take (schema collide.cache/1)."""
    if "removed" in facts:
        return Text(f"{facts['folder']}: {_counted(facts['removed'])} removed, {memory(facts['bytes'])}")
    entries = facts["entries"]
    line = Text(f"{facts['folder']}: {_counted(entries)}, {memory(facts['bytes'])} of {memory(facts['limit'])}")
    if not entries:
        return line
    table = listing(("key", "left"), ("what", "left"), ("last used", "left"), ("size", "right"))
    for entry in entries:
        table.add_row(entry["key"][:KEY_DIGITS], WORDS[entry["kind"]], entry["used"], memory(entry["bytes"]))
    return Group(table, line)


def _counted(entries: list[Any]) -> str:
    fields = sum(entry["kind"] == "field" for entry in entries)
    words = "1 field" if fields == 1 else f"{fields} fields"
    meshes = len(entries) - fields
    if not meshes:
        return words
    return f"{words}, convex parts of " + ("1 mesh" if meshes == 1 else f"{meshes} meshes")
