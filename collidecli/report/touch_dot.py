"""Who touched whom, as Graphviz reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collidecli.report.words import seconds
from collidecli.scene.text_format import plural


def touch_dot(facts: Mapping[str, Any]) -> str:
    """An undirected graph in the DOT language; facts of schema collide.events/1 that have a graph."""
    graph = facts["graph"]
    lines = ["graph touches {", "  node [shape=box];"]
    for node in graph["nodes"]:
        lines.append(f"  {_quoted(node['path'])} [kind={node['kind']}];")
    for edge in graph["edges"]:
        lasting = edge["seconds"] if isinstance(edge["seconds"], str) else seconds(edge["seconds"])
        label = _quoted(f"{plural(edge['intervals'], 'time')}, {lasting}")
        numbers = {name: edge[name] for name in ("intervals", "touching_frames", "contacts", "seconds", "worlds")}
        values = " ".join(f"{name}={value}" for name, value in numbers.items())
        lines.append(f"  {_quoted(edge['path0'])} -- {_quoted(edge['path1'])} [label={label} {values}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """A quoted identifier. The backslash begins no escape that a label would know."""
    kept = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'
