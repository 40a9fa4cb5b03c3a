"""Terminal tables of the intervals in which pairs touch."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.escaping import dot_string
from collidecli.report.run import world_text
from collidecli.report.tables import Fitting, Listing, ResultDict, length, listing, name_value_table, seconds, stacked
from collidecli.scene.options import EVENT_COLUMNS
from collidecli.scene.text_format import count, plural

BEFORE, BEYOND = "<", ">"
"""Marks of the first and last frame, at which the interval may continue outside the recording."""


def events_table(result: ResultDict) -> RenderableType:
    """Tables of collide.events/2: a summary, the listed intervals, and the graph if it is requested."""
    parts: list[RenderableType] = [_summary(result)]
    if result["listed"]:
        parts.append(Fitting(partial(_intervals, result), forms=3))
        if any(not (one["begin_known"] and one["end_known"]) for one in result["listed"]):
            mark = (
                f"{BEFORE} touching in the first frame, {BEYOND} in the last one: the begin or the end is not recorded"
            )
            parts.append(Text(mark))
    if result.get("between_frames"):
        parts.append(_between_frames(result))
    if result["graph"] is not None and result["graph"]["edges"]:
        parts.append(Fitting(partial(_graph, result)))
    return Group(*parts)


def _summary(result: ResultDict) -> RenderableType:
    frames, worlds, found, options = result["frames"], result["worlds"], result["intervals"], result["options"]
    span = ""
    if frames["count"]:
        times = [f"{t} s" if isinstance(t, str) else f"{t:.6g} s" for t in (frames["begin_time"], frames["last_time"])]
        span = f", from {times[0]} to {times[1]}"
        if frames["count"] != frames["last"] + 1:
            span = f", frames {frames['first']} to {frames['last']}{span}"
    rows = [("contact set", result["file"]), ("frames", f"{count(frames['count'])}{span}")]
    if frames["episodes"] is not None:
        held = frames["episodes"]
        demonstrations = plural(held["count"], "demonstration")
        rows.append(("recorded", f"{demonstrations}, {plural(held['frames'], 'frame')}, {seconds(held['seconds'])}"))
    if worlds["count"] > 1:
        rows.append(("worlds", f"{count(worlds['looked_at'])} of {count(worlds['count'])}"))
    contacts = result["contacts"]
    limit = options["threshold"]
    touching = f"{count(contacts['touching'])} of them touching"
    which = "at any distance" if limit is None else f"distance at most {length(limit)}"
    rows.append(("contacts", f"{count(contacts['asked_for'])}, {touching} ({which})"))
    pairs = plural(found["pairs"], "pair") + f" of {options['by']}"
    if worlds["looked_at"] > 1:
        pairs += f", {count(found['pairs_and_worlds'])} over all worlds"
    rows.append(("touching", pairs))
    rows.append(("touches", _intervals_line(found, options["merge_gap"])))
    rows += [("written", path) for path in result["written"].values() if path]
    return name_value_table(rows)


def _between_frames(result: ResultDict) -> RenderableType:
    """Table of the touches between frames, and their counts."""
    found, names = result["between_frames"], EVENT_COLUMNS[result["options"]["by"]]
    text = (
        f"{plural(found['count'], 'touch', 'touches')} with times between frames, {count(found['missed'])} in no frame"
    )
    text += f"; {count(found['undecided'])} undecided" if found["undecided"] else ""
    table = listing(
        ("frame", "right"), ("world", "right"), ("begin", "right"), ("end", "right"), ("least", "right"),
        ("in frames", "left"), *((name, "left") for name in names),
    )  # fmt: skip
    for one in found["listed"]:
        times = (f"{one[name]:.6f} s" for name in ("begin_time", "end_time"))
        held = "no" if one["missed"] else "yes"
        cells = (count(one["frame"]), count(one["world"]), *times, length(one["least_distance"]), held)
        table.add_row(*cells, *(one[name] for name in names))
    if found["listed"] and (more := found["count"] - len(found["listed"])):
        table.add_row("", f"and {plural(more, 'more touch', 'more touches')}")
    return Group(Text(text), *([table] if found["listed"] else []))


def _intervals_line(found: ResultDict, gap: ResultDict) -> str:
    already, still = found["count"] - found["begins"], found["count"] - found["ends"]
    line = count(found["count"])
    line += f", {count(already)} already touching at the start" if already else ""
    line += f", {count(still)} still touching at the end" if still else ""
    if gap["seconds"] is not None:
        line += f"; pauses up to {seconds(gap['seconds'])} bridged"
    elif gap["frames"]:
        line += f"; pauses up to {plural(gap['frames'], 'frame')} bridged"
    return line


def _intervals(result: ResultDict, narrow: int) -> Listing:
    """narrow: 1 has the names of a pair in one column, and no counts of frames and contacts; 2 no begin either."""
    names = _pair_headings(result)
    table = listing(
        *([("world", "right")] if _shows_worlds(result) else []),
        *([(stacked(*names), "left")] if narrow else [(name, "left") for name in names]),
        ("frames", "right"),
        *([] if narrow > 1 else [("begin", "right")]),
        ("lasts", "right"),
        *([] if narrow else [("touching in", "right"), ("contacts", "right")]),
        ("deepest", "right"),
        ("in frame", "right"),
    )
    worlds = _shows_worlds(result)
    for one in result["listed"]:
        pair = _pair(result, one)
        table.add_row(
            *([world_text(one["world"], one.get("episode", ""))] if worlds else []),
            *([stacked(*pair)] if narrow else pair),
            _span(one),
            *([] if narrow > 1 else [_time(one["begin_time"])]),
            _lasting(one["seconds"]),
            *([] if narrow else [plural(one["touching_frames"], "frame"), count(one["contacts"])]),
            length(one["least_distance"]),
            str(one["deepest_frame"]),
        )
    more = result["intervals"]["count"] - len(result["listed"])
    if more:
        table.add_row(*([""] if worlds else []), f"and {plural(more, 'more touch', 'more touches')}")
    return table


def _shows_worlds(result: ResultDict) -> bool:
    return result["worlds"]["count"] > 1 or result["frames"]["episodes"] is not None


def _pair(result: ResultDict, one: ResultDict) -> tuple[str, str]:
    """Paths of the pair of an interval or of an edge of the graph."""
    name0, name1 = EVENT_COLUMNS[result["options"]["by"]]
    return one[name0], one[name1]


def _pair_headings(result: ResultDict) -> list[str]:
    return [re.sub(r"(\d)$", r" \1", name) for name in EVENT_COLUMNS[result["options"]["by"]]]


def _span(one: ResultDict) -> str:
    begin = f"{'' if one['begin_known'] else BEFORE}{one['begin_frame']}"
    last = f"{one['last_frame']}{'' if one['end_known'] else BEYOND}"
    return f"{begin} to {last}"


def _time(value: Any) -> str:
    return f"{value} s" if isinstance(value, str) else f"{value:.6g} s"


def _lasting(value: Any) -> str:
    return value if isinstance(value, str) else seconds(value)


def _graph(result: ResultDict, narrow: int) -> Listing:
    """narrow: the names of a pair in one column."""
    graph, worlds = result["graph"], result["worlds"]["looked_at"] > 1
    names = _pair_headings(result)
    table = listing(
        *([(stacked(*names), "left")] if narrow else [(name, "left") for name in names]),
        *([("worlds", "right")] if worlds else []),
        ("touches", "right"),
        ("in total", "right"),
        ("touching in", "right"),
        *([] if narrow else [("contacts", "right")]),
        ("deepest", "right"),
    )
    for edge in graph["edges"][: graph["first"]]:
        pair = _pair(result, edge)
        table.add_row(
            *([stacked(*pair)] if narrow else pair),
            *([count(edge["worlds"])] if worlds else []),
            count(edge["intervals"]),
            _lasting(edge["seconds"]),
            plural(edge["touching_frames"], "frame"),
            *([] if narrow else [count(edge["contacts"])]),
            length(edge["least_distance"]),
        )
    more = len(graph["edges"]) - graph["first"]
    if more > 0:
        table.add_row(f"and {plural(more, 'more pair')}")
    return table


# The graph of touching pairs in the DOT language of Graphviz.


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
