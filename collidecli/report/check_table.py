"""What a check found, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text


def check_table(facts: Mapping[str, Any]) -> RenderableType:
    """One line a finding, or that there is none (schema collide.check/1)."""
    if facts["good"]:
        return Text(f"{facts['file']}: good ({facts['format']})")
    return Text("\n".join(f"{finding['where']}: {finding['what']}" for finding in facts["findings"]))
