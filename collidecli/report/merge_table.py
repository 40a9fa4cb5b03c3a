"""Merged contact sets, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType

from collidecli.report.words import facts_table
from collidecli.scene.text_format import count, plural


def merge_table(facts: Mapping[str, Any]) -> RenderableType:
    """Of schema collide.merge/1."""
    files = facts["files"]
    rows = [("merged" if k == 0 else "", path) for k, path in enumerate(files)]
    joined = f"{count(facts['contacts'])} in {plural(facts['frames'], 'frame')} of {plural(facts['worlds'], 'world')}"
    rows += [("contacts", joined), ("written", facts["output"]), ("content", facts["content_sha256"])]
    if facts["parted_by"] == "frames" and facts["recordings"] > 1:
        rows.append(("note", f"the frames are of {facts['recordings']} recordings"))
    return facts_table(rows)
