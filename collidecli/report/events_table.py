"""When pairs touch, as tables for a terminal (schema collide.events/1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.report.fitting import Fitting, stacked
from collidecli.report.words import facts_table, length, listing, seconds
from collidecli.scene.text_format import count, plural

BEFORE, BEYOND = "<", ">"
"""Marks of a frame before or behind which there is nothing to look at: the touch may be longer."""


def events_table(facts: Mapping[str, Any]) -> RenderableType:
    """A summary, the intervals asked for, and the graph where it is."""
    parts: list[RenderableType] = [_summary(facts)]
    if facts["listed"]:
        parts.append(Fitting(partial(_intervals, facts)))
        if any(not (one["begin_known"] and one["end_known"]) for one in facts["listed"]):
            mark = (
                f"{BEFORE} touches in the first frame, {BEYOND} in the last one: begin or end is not in the recording"
            )
            parts.append(Text(mark))
    if facts["graph"] is not None and facts["graph"]["edges"]:
        parts.append(Fitting(partial(_graph, facts["graph"], facts["worlds"]["looked_at"] > 1)))
    return Group(*parts)


def _summary(facts: Mapping[str, Any]) -> RenderableType:
    frames, worlds, found, options = facts["frames"], facts["worlds"], facts["intervals"], facts["options"]
    span = ""
    if frames["count"]:
        times = [f"{t} s" if isinstance(t, str) else f"{t:.6g} s" for t in (frames["begin_time"], frames["last_time"])]
        span = f", {frames['first']} to {frames['last']}, {times[0]} to {times[1]}"
    rows = [("contact set", facts["file"]), ("frames", f"{count(frames['count'])}{span}")]
    if worlds["count"] > 1:
        rows.append(("worlds", f"{count(worlds['looked_at'])} of {count(worlds['count'])}"))
    contacts = facts["contacts"]
    which = "all" if options["threshold"] is None else f"with a distance of at most {length(options['threshold'])}"
    rows.append(("contacts", f"{count(contacts['asked_for'])}, {count(contacts['touching'])} {which}"))
    pairs = plural(found["pairs"], "pair") + f" of {options['by']}"
    if worlds["looked_at"] > 1:
        pairs += f", {count(found['pairs_and_worlds'])} over all worlds"
    rows.append(("touching", pairs))
    rows.append(("intervals", _intervals_line(found, options["merge_gap"])))
    rows += [("written", path) for path in facts["written"].values() if path]
    return facts_table(rows)


def _intervals_line(found: Mapping[str, Any], gap: Mapping[str, Any]) -> str:
    line = f"{count(found['count'])}, {count(found['begins'])} begin and {count(found['ends'])} end in the recording"
    if gap["seconds"] is not None:
        line += f"; pauses up to {seconds(gap['seconds'])} bridged"
    elif gap["frames"]:
        line += f"; pauses up to {plural(gap['frames'], 'frame')} bridged"
    return line


def _intervals(facts: Mapping[str, Any], narrow: bool) -> Table:
    """narrow: the pair's names one below the other, without how many frames and contacts the touch has."""
    noun = {"shapes": "shape", "bodies": "body"}[facts["options"]["by"]]
    names = [f"{noun} 0", f"{noun} 1"]
    table = listing(
        *([("world", "right")] if facts["worlds"]["count"] > 1 else []),
        *([(stacked(*names), "left")] if narrow else [(name, "left") for name in names]),
        ("frames", "right"),
        ("begin", "right"),
        ("lasts", "right"),
        *([] if narrow else [("touching", "right"), ("contacts", "right")]),
        ("deepest", "right"),
        ("in frame", "right"),
    )
    worlds = facts["worlds"]["count"] > 1
    for one in facts["listed"]:
        pair = (one["path0"], one["path1"])
        table.add_row(
            *([str(one["world"])] if worlds else []),
            *([stacked(*pair)] if narrow else pair),
            _span(one),
            _time(one["begin_time"]),
            _lasting(one["seconds"]),
            *([] if narrow else [count(one["touching_frames"]), count(one["contacts"])]),
            length(one["least_distance"]),
            str(one["deepest_frame"]),
        )
    more = facts["intervals"]["count"] - len(facts["listed"])
    if more:
        table.add_row(*([""] if worlds else []), f"and {count(more)} more")
    return table


def _span(one: Mapping[str, Any]) -> str:
    begin = f"{'' if one['begin_known'] else BEFORE}{one['begin_frame']}"
    last = f"{one['last_frame']}{'' if one['end_known'] else BEYOND}"
    return f"{begin} to {last}"


def _time(value: Any) -> str:
    return f"{value} s" if isinstance(value, str) else f"{value:.6g} s"


def _lasting(value: Any) -> str:
    return value if isinstance(value, str) else seconds(value)


def _graph(graph: Mapping[str, Any], worlds: bool, narrow: bool) -> Table:
    """narrow: who above whom."""
    table = listing(
        *([("who\nwhom", "left")] if narrow else [("who", "left"), ("whom", "left")]),
        *([("worlds", "right")] if worlds else []),
        ("times", "right"),
        ("together", "right"),
        ("touching", "right"),
        *([] if narrow else [("contacts", "right")]),
        ("deepest", "right"),
    )
    for edge in graph["edges"][: graph["first"]]:
        pair = (edge["path0"], edge["path1"])
        table.add_row(
            *([stacked(*pair)] if narrow else pair),
            *([count(edge["worlds"])] if worlds else []),
            count(edge["intervals"]),
            _lasting(edge["seconds"]),
            count(edge["touching_frames"]),
            *([] if narrow else [count(edge["contacts"])]),
            length(edge["least_distance"]),
        )
    more = len(graph["edges"]) - graph["first"]
    if more > 0:
        table.add_row(f"and {plural(more, 'more pair')}")
    return table
