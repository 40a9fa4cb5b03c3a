"""What `collide view` says before it serves, and of a page that it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from collidecli.report.words import facts_table
from collidecli.scene.text_format import count, memory, plural


def view_table(facts: Mapping[str, Any]) -> Table:
    """Facts of schema collide.view/1."""
    rows = [("contacts", f"{count(facts['contacts'])} in {plural(facts['frames'], 'frame')}")]
    if facts["worlds"] > 1:
        rows.append(("worlds", count(facts["worlds"])))
    if facts["scene"] is not None:
        rows.append(("scene", f"{' '.join(facts['scene']) or facts['trajectory']}, {plural(facts['shapes'], 'shape')}"))
        rows.append(("motion", facts["trajectory"] or "the scene's own"))
    else:
        rows.append(("scene", "none: contacts alone"))
    rows.append(("pairs", f"{count(facts['touching_pairs'])} that touch"))
    if facts.get("written"):
        rows.append(("written", f"{facts['written']}, {memory(facts['written_bytes'])}"))
    if facts.get("url"):
        rows.append(("view", f"{facts['url']}, Ctrl-C ends it"))
    return facts_table(rows)
