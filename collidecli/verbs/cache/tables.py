"""Terminal table of the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Column, rows_table
from collidecli.wording import memory, plural

KEY_DIGITS = 12
KIND_NAMES = {"field": "signed distance field", "hull": "convex hull", "parts": "convex parts"}


def cache_table(result: ResultDict) -> RenderableType:
    """Table of collide.cache/1: a line per entry, and the total size."""
    if "removed" in result:
        return Text(
            f"{result['folder']}: {_entry_counts(result['removed'])} removed,"
            f" {memory(result['bytes'])}"
        )
    entries = result["entries"]
    folder = result["folder"]
    line = Text(
        f"{folder}: {_entry_counts(entries)}, {memory(result['bytes'])} of"
        f" {memory(result['limit'])}"
    )
    columns: list[Column] = [
        ("key", "left", lambda entry: entry["key"][:KEY_DIGITS]),
        ("kind", "left", lambda entry: KIND_NAMES[entry["kind"]]),
        ("last used, UTC", "right", lambda entry: entry["used"][:16].replace("T", " ")),
        ("size", "right", lambda entry: memory(entry["bytes"])),
    ]
    return Group(rows_table(columns, entries), line) if entries else line


def _entry_counts(entries: Sequence[ResultDict]) -> str:
    counts = Counter(entry["kind"] for entry in entries)
    texts = {kind: plural(counts[kind], KIND_NAMES[kind]) for kind in ("field", "hull")}
    texts["parts"] = f"convex parts of {plural(counts['parts'], 'mesh', 'meshes')}"
    return ", ".join(text for kind, text in texts.items() if counts[kind]) or "no entries"
