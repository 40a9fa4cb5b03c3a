"""Terminal tables of the intervals in which pairs touch."""

from __future__ import annotations

import re
from functools import partial
from operator import itemgetter

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.escaping import dot_string
from collidecli.report.tables import (
    Column,
    Fitting,
    Listing,
    ResultDict,
    length,
    more_text,
    name_value_table,
    pair_columns,
    quantity,
    rows_table,
    seconds,
    seconds_text,
    world_text,
)
from collidecli.scene.options import EVENT_COLUMNS
from collidecli.scene.text_format import count, plural

BEFORE, BEYOND = "<", ">"
"""Marks of the first and last frame, at which the interval may continue outside the recording."""


def events_table(result: ResultDict) -> RenderableType:
    """Tables of collide.events/2: a summary, the listed intervals, and the graph if it is requested."""
    parts: list[RenderableType] = [_summary(result)]
    if result["listed"]:
        parts.append(Fitting(partial(_intervals, result), COUNTS_LEFT_OUT))
        if any(not (one["begin_known"] and one["end_known"]) for one in result["listed"]):
            mark = (
                f"{BEFORE} touching in the first frame, {BEYOND} in the last one: the begin or the end is not recorded"
            )
            parts.append(Text(mark))
    if result.get("between_frames"):
        parts.append(_between_frames(result))
    if result["graph"] is not None and result["graph"]["edges"]:
        parts.append(Fitting(partial(_graph, result), COUNTS_LEFT_OUT))
    return Group(*parts)


def _summary(result: ResultDict) -> RenderableType:
    frames, worlds, found, options = result["frames"], result["worlds"], result["intervals"], result["options"]
    span = ""
    if frames["count"]:
        times = [f"{quantity(frames[name], '{:.6g}'.format)} s" for name in ("begin_time", "last_time")]
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
    found, names = result["between_frames"], EVENT_COLUMNS[result["options"]["by"]]
    text = (
        f"{plural(found['count'], 'touch', 'touches')} with times between frames, {count(found['missed'])} in no frame"
    )
    text += f"; {count(found['undecided'])} undecided" if found["undecided"] else ""
    columns: list[Column] = [
        ("frame", "right", lambda one: count(one["frame"])),
        ("world", "right", lambda one: count(one["world"])),
        ("begin", "right", lambda one: f"{one['begin_time']:.6f} s"),
        ("end", "right", lambda one: f"{one['end_time']:.6f} s"),
        ("least", "right", lambda one: length(one["least_distance"])),
        ("in frames", "left", lambda one: "no" if one["missed"] else "yes"),
        *((name, "left", itemgetter(name)) for name in names),
    ]
    more = more_text(found["count"] - len(found["listed"]), "touch", "touches")
    return Group(Text(text), *([rows_table(columns, found["listed"], "", more)] if found["listed"] else []))


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
    """narrow: the names of a pair in one column."""
    columns: list[Column] = []
    more = [more_text(result["intervals"]["count"] - len(result["listed"]), "touch", "touches")]
    if result["worlds"]["count"] > 1 or result["frames"]["episodes"] is not None:
        columns.append(("world", "right", lambda one: world_text(one["world"], one.get("episode", ""))))
        more = ["", *more]
    columns += [
        *_names_of_pair(result, narrow),
        ("frames", "right", _span),
        ("begin", "right", lambda one: f"{quantity(one['begin_time'], '{:.6g}'.format)} s"),
        ("lasts", "right", lambda one: seconds_text(one["seconds"])),
        ("touching in", "right", lambda one: plural(one["touching_frames"], "frame")),
        ("contacts", "right", lambda one: count(one["contacts"])),
        ("distance", "right", lambda one: length(one["least_distance"])),
        ("in frame", "right", lambda one: str(one["deepest_frame"])),
    ]
    return rows_table(columns, result["listed"], *more)


COUNTS_LEFT_OUT = ("contacts", "touching in", "begin")
"""Columns that a narrow terminal lacks, the first first."""


def _names_of_pair(result: ResultDict, narrow: int) -> list[Column]:
    names = EVENT_COLUMNS[result["options"]["by"]]
    return pair_columns(narrow, [re.sub(r"(\d)$", r" \1", name) for name in names], names)


def _span(one: ResultDict) -> str:
    begin = f"{'' if one['begin_known'] else BEFORE}{one['begin_frame']}"
    last = f"{one['last_frame']}{'' if one['end_known'] else BEYOND}"
    return f"{begin} to {last}"


def _graph(result: ResultDict, narrow: int) -> Listing:
    graph, worlds = result["graph"], result["worlds"]["looked_at"] > 1
    columns: list[Column] = [
        *_names_of_pair(result, narrow),
        *([("worlds", "right", lambda edge: count(edge["worlds"]))] if worlds else []),
        ("touches", "right", lambda edge: count(edge["intervals"])),
        ("in total", "right", lambda edge: seconds_text(edge["seconds"])),
        ("touching in", "right", lambda edge: plural(edge["touching_frames"], "frame")),
        ("contacts", "right", lambda edge: count(edge["contacts"])),
        ("distance", "right", lambda edge: length(edge["least_distance"])),
    ]
    return rows_table(columns, graph["edges"][: graph["first"]], more_text(len(graph["edges"]) - graph["first"]))


# The graph of touching pairs in the DOT language of Graphviz.


def touch_dot(result: ResultDict) -> str:
    """Undirected graph of a collide.events/2 result with a graph: an edge per pair."""
    graph = result["graph"]
    name0, name1 = EVENT_COLUMNS[result["options"]["by"]]
    lines = ["graph touches {", "  node [shape=box];"]
    for node in graph["nodes"]:
        lines.append(f"  {dot_string(node['path'])} [kind={node['kind']}];")
    for edge in graph["edges"]:
        lasting = seconds_text(edge["seconds"])
        label = dot_string(f"{plural(edge['intervals'], 'time')}, {lasting}")
        numbers = {name: edge[name] for name in ("intervals", "touching_frames", "contacts", "seconds", "worlds")}
        values = " ".join(f"{name}={value}" for name, value in numbers.items())
        lines.append(f"  {dot_string(edge[name0])} -- {dot_string(edge[name1])} [label={label} {values}];")
    return "\n".join([*lines, "}", ""])
