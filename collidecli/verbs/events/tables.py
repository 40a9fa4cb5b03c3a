"""Terminal tables of the intervals in which pairs touch, and their graph."""

from __future__ import annotations

import re
from functools import partial
from operator import itemgetter

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.escaping import dot_string
from collidecli.pages import quantities
from collidecli.pages.between_frames import least_text, time_text
from collidecli.pages.names import WORLD
from collidecli.pages.quantities import ResultDict, length, quantity, seconds_text
from collidecli.pages.tables import (
    Column,
    Fitting,
    Listing,
    more_text,
    name_value_table,
    pair_columns,
    rows_table,
)
from collidecli.scene.episodes import shown_name
from collidecli.scene.option_values import EVENT_COLUMNS
from collidecli.wording import count, plural

BEFORE = "<"
BEYOND = ">"
"""Marks of the first and last frame, at which the interval may continue outside the recording."""
COUNTS_LEFT_OUT = ("contacts", "touching in", "begin")
"""Columns that a narrow terminal lacks, the first first."""

WITHOUT_RADII = (
    "particle objects from each other are without the radii of their particles, which collide"
    " clearance subtracts"
)


def events_table(result: ResultDict) -> RenderableType:
    """Tables of collide.events/2: a summary, the listed intervals, and the graph if it is
    requested."""
    parts: list[RenderableType] = [_events_summary(result)]
    if result["listed"]:
        parts.append(Fitting(partial(_intervals, result), COUNTS_LEFT_OUT))
        if any(
            not (interval["begin_known"] and interval["end_known"]) for interval in result["listed"]
        ):
            marks = f"{BEFORE} touching in the first frame, {BEYOND} in the last one"
            parts.append(Text(f"{marks}: the begin or the end is not recorded"))
        if result["contacts"].get("of_objects"):
            parts.append(Text(f"distances of {WITHOUT_RADII}"))
    if result.get("between_frames"):
        parts.append(_between_frames(result))
    if result["graph"] is not None and result["graph"]["edges"]:
        parts.append(Fitting(partial(_graph, result), COUNTS_LEFT_OUT))
    return Group(*parts)


def _events_summary(result: ResultDict) -> RenderableType:
    frames = result["frames"]
    worlds = result["worlds"]
    intervals = result["intervals"]
    options = result["options"]
    span = ""
    if frames["count"]:
        begin, last = (
            f"{quantity(frames[name], '{:.6g}'.format)} s" for name in ("begin_time", "last_time")
        )
        span = f", from {begin} to {last}"
        if frames["count"] != frames["last"] + 1:
            span = f", frames {frames['first']} to {frames['last']}{span}"
    rows = [("contact set", result["file"]), ("frames", f"{count(frames['count'])}{span}")]
    if (demos := frames["episodes"]) is not None:
        demonstrations = plural(demos["count"], "demonstration")
        rows.append(
            (
                "recorded",
                (
                    f"{demonstrations}, {plural(demos['frames'], 'frame')},"
                    f" {quantities.seconds(demos['seconds'])}"
                ),
            )
        )
    if worlds["count"] > 1:
        rows.append(("worlds", f"{count(worlds['looked_at'])} of {count(worlds['count'])}"))
    contacts = result["contacts"]
    limit = options["threshold"]
    touching = f"{count(contacts['touching'])} of them touching"
    of_objects = contacts.get("of_objects", 0)
    which = "at any distance" if limit is None else f"distance at most {length(limit)}"
    if of_objects and limit is not None:
        which += f"; of particle objects with each other, {count(of_objects)}, any distance"
    rows.append(("contacts", f"{count(contacts['asked_for'])}, {touching} ({which})"))
    pairs = plural(intervals["pairs"], "pair") + f" of {options['by']}"
    if worlds["looked_at"] > 1:
        pairs += f", {count(intervals['pairs_and_worlds'])} over all worlds"
    rows += [("touching", pairs), ("touches", _intervals_line(intervals, options["merge_gap"]))]
    return name_value_table(
        [*rows, *(("written", path) for path in result["written"].values() if path)]
    )


def _intervals_line(intervals: ResultDict, gap: ResultDict) -> str:
    already = intervals["count"] - intervals["begins"]
    still = intervals["count"] - intervals["ends"]
    line = count(intervals["count"])
    line += f", {count(already)} already touching at the start" if already else ""
    line += f", {count(still)} still touching at the end" if still else ""
    if gap["seconds"] is not None:
        line += f"; pauses up to {quantities.seconds(gap['seconds'])} bridged"
    elif gap["frames"]:
        line += f"; pauses up to {plural(gap['frames'], 'frame')} bridged"
    return line


def _between_frames(result: ResultDict) -> RenderableType:
    between = result["between_frames"]
    names = EVENT_COLUMNS[result["options"]["by"]]
    touches = plural(between["count"], "touch", "touches")
    text = f"{touches} with times between frames, {count(between['missed'])} in no frame"
    text += f"; {count(between['undecided'])} undecided" if between["undecided"] else ""
    frames = result["frames"]
    steps = (frames["last"] or 0) - (frames["first"] or 0)
    time = time_text(frames["begin_time"], frames["last_time"], steps)
    columns: list[Column] = [
        ("frame", "right", lambda touch: count(touch["frame"])),
        ("world", "right", lambda touch: count(touch["world"])),
        ("begin", "right", lambda touch: time(touch["begin_time"])),
        ("end", "right", lambda touch: time(touch["end_time"])),
        ("least", "right", lambda touch: least_text(touch["least_distance"])),
        ("in frames", "left", lambda touch: "no" if touch["missed"] else "yes"),
        *((name, "left", itemgetter(name)) for name in names),
    ]
    more = more_text(between["count"] - len(between["listed"]), "touch", "touches")
    return Group(
        Text(text),
        *([rows_table(columns, between["listed"], "", more)] if between["listed"] else []),
    )


def _intervals(result: ResultDict, narrow: int) -> Listing:
    """narrow: the names of a pair in one column."""
    with_worlds = result["worlds"]["count"] > 1 or any(
        shown_name(interval.get("episode", "")) for interval in result["listed"]
    )
    more = more_text(result["intervals"]["count"] - len(result["listed"]), "touch", "touches")
    columns: list[Column] = [
        *([WORLD] if with_worlds else []),
        *_names_of_pair(result, narrow),
        *_kind_of_touch(result),
        ("frames", "right", _span),
        (
            "begin",
            "right",
            lambda interval: f"{quantity(interval['begin_time'], '{:.6g}'.format)} s",
        ),
        ("lasts", "right", lambda interval: seconds_text(interval["seconds"])),
        ("touching in", "right", lambda interval: plural(interval["touching_frames"], "frame")),
        ("contacts", "right", lambda interval: count(interval["contacts"])),
        *_distance(result["listed"], with_frame=True),
    ]
    return rows_table(columns, result["listed"], *([""] if with_worlds else []), more)


def _distance(rows: list[ResultDict], with_frame: bool) -> list[Column]:
    """The column of least distances, and of their frames; none if no distance is known."""

    def known(row: ResultDict, text: str) -> str:
        return "" if row["least_distance"] is None else text

    if all(row["least_distance"] is None for row in rows):
        return []
    columns: list[Column] = [
        ("distance", "right", lambda row: known(row, length(row["least_distance"] or 0.0)))
    ]
    if with_frame:
        columns.append(("in frame", "right", lambda row: known(row, str(row["deepest_frame"]))))
    return columns


def _names_of_pair(result: ResultDict, narrow: int) -> list[Column]:
    names = EVENT_COLUMNS[result["options"]["by"]]
    return pair_columns(narrow, [re.sub(r"(\d)$", r" \1", name) for name in names], names)


def _kind_of_touch(result: ResultDict) -> list[Column]:
    """A column for a set with triggers."""
    if not any("trigger" in interval for interval in result["listed"]):
        return []
    return [("kind", "left", lambda interval: "trigger" if interval["trigger"] else "contact")]


def _span(interval: ResultDict) -> str:
    begin = f"{'' if interval['begin_known'] else BEFORE}{interval['begin_frame']}"
    return f"{begin} to {interval['last_frame']}{'' if interval['end_known'] else BEYOND}"


def _graph(result: ResultDict, narrow: int) -> Listing:
    graph = result["graph"]
    worlds = result["worlds"]["looked_at"] > 1
    columns: list[Column] = [
        *_names_of_pair(result, narrow),
        *([("worlds", "right", lambda edge: count(edge["worlds"]))] if worlds else []),
        ("touches", "right", lambda edge: count(edge["intervals"])),
        ("in total", "right", lambda edge: seconds_text(edge["seconds"])),
        ("touching in", "right", lambda edge: plural(edge["touching_frames"], "frame")),
        ("contacts", "right", lambda edge: count(edge["contacts"])),
        *_distance(graph["edges"], with_frame=False),
    ]
    return rows_table(
        columns, graph["edges"][: graph["first"]], more_text(len(graph["edges"]) - graph["first"])
    )


def touch_dot(result: ResultDict) -> str:
    """Undirected graph of a collide.events/2 result with a graph, in the DOT language of Graphviz:
    an edge per pair."""
    graph = result["graph"]
    by = EVENT_COLUMNS[result["options"]["by"]]
    lines = [f"  {dot_string(node['path'])} [kind={node['kind']}];" for node in graph["nodes"]]
    for edge in graph["edges"]:
        label = dot_string(f"{plural(edge['intervals'], 'time')}, {seconds_text(edge['seconds'])}")
        numbers = ("intervals", "touching_frames", "contacts", "seconds", "worlds")
        values = " ".join(f"{name}={edge[name]}" for name in numbers)
        lines.append(
            f"  {' -- '.join(dot_string(edge[name]) for name in by)} [label={label} {values}];"
        )
    return "\n".join(["graph touches {", "  node [shape=box];", *lines, "}", ""])
