"""The graph of touching pairs in the DOT language of Graphviz."""

from __future__ import annotations

from collidecli.escaping import dot_string
from collidecli.report.words import ResultDict, seconds
from collidecli.scene.option_choices import EVENT_COLUMNS
from collidecli.scene.text_format import plural


def touch_dot(result: ResultDict) -> str:
    """Undirected graph of a collide.events/2 result with a graph: an edge per pair."""
    graph = result["graph"]
    name0, name1 = EVENT_COLUMNS[result["options"]["by"]]
    lines = ["graph touches {", "  node [shape=box];"]
    for node in graph["nodes"]:
        lines.append(f"  {dot_string(node['path'])} [kind={node['kind']}];")
    for edge in graph["edges"]:
        lasting = edge["seconds"] if isinstance(edge["seconds"], str) else seconds(edge["seconds"])
        label = dot_string(f"{plural(edge['intervals'], 'time')}, {lasting}")
        numbers = {name: edge[name] for name in ("intervals", "touching_frames", "contacts", "seconds", "worlds")}
        values = " ".join(f"{name}={value}" for name, value in numbers.items())
        lines.append(f"  {dot_string(edge[name0])} -- {dot_string(edge[name1])} [label={label} {values}];")
    return "\n".join([*lines, "}", ""])
