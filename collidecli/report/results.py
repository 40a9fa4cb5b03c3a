"""Terminal tables of results of one verb each, but for those of run, inspect, diff, audit and fidelity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.escaping import dot_string
from collidecli.report.diff import verdict
from collidecli.report.tables import (
    WORLD,
    Column,
    Fitting,
    Listing,
    ResultDict,
    length,
    listing,
    more_text,
    name_value_table,
    pair_columns,
    percent,
    quantity,
    rows_table,
    seconds,
    seconds_text,
    speed,
    verdict_text,
    world_text,
)
from collidecli.scene.options import EVENT_COLUMNS
from collidecli.scene.tables import group_words
from collidecli.scene.text_format import count, memory, plural

KEY_DIGITS = 12
KIND_NAMES = {"field": "signed distance field", "hull": "convex hull", "parts": "convex parts"}


def cache_table(result: ResultDict) -> RenderableType:
    """Table of collide.cache/1: a line per entry, and the total size."""
    if "removed" in result:
        return Text(f"{result['folder']}: {_entry_counts(result['removed'])} removed, {memory(result['bytes'])}")
    entries, folder = result["entries"], result["folder"]
    line = Text(f"{folder}: {_entry_counts(entries)}, {memory(result['bytes'])} of {memory(result['limit'])}")
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


def check_table(result: ResultDict) -> RenderableType:
    """Text of collide.check/1: a line per finding and note."""
    words = f"good ({result['format']})" if result["good"] else "faulty"
    lines = [f"{finding['where']}: {finding['what']}" for finding in result["findings"]]
    lines += [f"note: {note['where']}: the engine's rows: {note['what']}" for note in result.get("notes") or ()]
    return Group(verdict_text(f"{result['file']}: {words}", result["good"]), *map(Text, lines))


def convert_table(result: ResultDict) -> Table:
    """Table of collide.traj.convert/1."""
    rows = [("recording", f"{result['file']} ({result['kind']})")]
    rows += [(name, count(result[name])) for name in ("frames", "worlds", "bodies")]
    return name_value_table([*rows, ("duration", seconds(result["duration"])), ("written", result["output"])])


def export_table(result: ResultDict) -> Table:
    """Table of collide.export/1."""
    rows = [(group_words(result["group"]) or "contacts", _contacts_of_cells(result)), *_group_lines(result)]
    rows.append(("format", result["format"]))
    rows += [("left out" if k == 0 else "", text) for k, text in enumerate(result["left_out"])]
    return name_value_table([*rows, _written(result)])


def pack_table(result: ResultDict) -> Table:
    """Table of collide.engine_pack/1."""
    shapes, pairs = plural(result["shapes"], "shape"), plural(result["pairs"], "pair")
    packed = f"{shapes}, {pairs} in {plural(result['cells'], 'cell')}"
    return name_value_table([("scene", result["scene"]), ("packed", packed), _written(result)])


def merge_table(result: ResultDict) -> Table:
    """Table of collide.merge/1."""
    rows = [("merged" if k == 0 else "", path) for k, path in enumerate(result["files"])]
    rows += [("contacts", _contacts_of_cells(result)), *_group_lines(result), ("written", result["output"])]
    rows.append(("content", result["content_sha256"]))
    if result["parted_by"] == "frames" and result["recordings"] > 1:
        rows.append(("note", f"the frames are of {result['recordings']} recordings"))
    return name_value_table(rows)


def _group_lines(result: ResultDict) -> list[tuple[str, str]]:
    return [(group_words(name), count(rows)) for name, rows in result["group_rows"].items()]


def _contacts_of_cells(result: ResultDict) -> str:
    return f"{count(result['contacts'])} in {plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"


def _written(result: ResultDict) -> tuple[str, str]:
    return "written", f"{result['output']}, {memory(result['bytes'])}"


def record_table(result: ResultDict) -> Table:
    """Table of collide.record/1."""
    bodies = plural(result["bodies"], "body", "bodies")
    sizes = f"{plural(result['frames'], 'frame')}, {plural(result['worlds'], 'world')}, {bodies}"
    recorded = f"{sizes}, {seconds(result['duration'])} long"
    return name_value_table([("scene", result["scene"]), ("recorded", recorded), ("written", result["output"])])


def group_figures(result: ResultDict) -> list[tuple[str, str, str]]:
    """Name, number and comment of the surfaces of a report and of its contacts of particles, where there are any."""
    groups = result["groups"] or {"surfaces": None, "counts": {}}
    surfaces, listed = groups["surfaces"], []
    if surfaces is not None:
        listed.append(("surfaces", count(surfaces["rows"]), f"hydroelastic, of {plural(surfaces['pairs'], 'pair')}"))
    return listed + [(group_words(name), count(of_group["rows"]), "") for name, of_group in groups["counts"].items()]


def report_table(result: ResultDict) -> Table:
    """Table of collide.report/1."""
    rows, groups = [("scene", result["scene"])], group_figures(result)
    if result["contacts"] or not groups:
        rows.append(("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"))
        rows.append(("pairs", f"{count(result['pairs']['count'])} with contacts"))
    rows += [(name, f"{number}, {more}" if more else number) for name, number, more in groups]
    deepest: dict[str, Any] | None = result["deepest"]
    if deepest is not None and deepest["distance"] < 0.0:
        depth, number = length(-deepest["distance"]), deepest["world"]
        pair = f"{deepest['shape0']} and {deepest['shape1']}"
        world = world_text(number, result["demonstrations"][number] if result["demonstrations"] else "")
        rows.append(("deepest", f"{depth}, frame {deepest['frame']}, world {world}: {pair}"))
    if result["difference"] is not None:
        rows.append(("baseline", verdict(result["difference"])))
    return name_value_table([*rows, ("written", result["output"])])


def plot_table(result: ResultDict) -> Table:
    """Table of collide.plot/1."""
    return name_value_table([("shows", result["words"]), ("written", result["output"])])


def view_table(result: ResultDict) -> Table:
    """Table of collide.view/1."""
    rows = [("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"), *_group_lines(result)]
    if result["worlds"] > 1:
        rows.append(("worlds", count(result["worlds"])))
    if result["scene"] is not None:
        scene = " ".join(result["scene"]) or result["trajectory"]
        rows.append(("scene", f"{scene}, {plural(result['shapes'], 'shape')}"))
        rows.append(("motion", result["trajectory"] or "the scene's own"))
    else:
        rows.append(("scene", "not found: only the contacts are drawn"))
    rows.append(("pairs", f"{count(result['touching_pairs'])} that touch"))
    return name_value_table([*rows, ("written", f"{result['written']}, {memory(result['written_bytes'])}")])


# Least distances of a motion, and labels of a contact set.


def clearance_table(result: ResultDict) -> RenderableType:
    """Tables of collide.clearance/1: a summary, and the nearest items."""
    cells = f"{plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"
    rows = [("scene", result["scene"]), ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}")]
    if result["between"]:
        rows.append(("between", " and ".join(result["between"])))
    rows.append(("pairs", f"{count(result['pairs'])}, {plural(result['measured'], 'distance')} measured"))
    if result["output"]:
        rows.append(_written(result))
    summary = name_value_table(rows)
    return Group(summary, Fitting(partial(_nearest, result))) if result["listed"] else summary


def _nearest(result: ResultDict, narrow: int) -> Listing:
    of_bodies = result["by"] == "body"
    columns: list[Column] = [
        *([("body", "left", itemgetter("body"))] if of_bodies else []),
        *pair_columns(narrow),
        ("distance", "right", lambda item: length(item["least_distance"])),
        *([WORLD] if result["worlds"] > 1 else []),
        ("in frame", "right", lambda item: str(item["frame"])),
        ("at", "right", lambda item: f"{item['time']:.6g} s"),
    ]
    more = result["items"] - len(result["listed"])
    return rows_table(columns, result["listed"], more_text(more, *(("body", "bodies") if of_bodies else ())))


def label_table(result: ResultDict) -> RenderableType:
    """Tables of collide.label/1: a summary, and the listed pairs."""
    options, shape = result["options"], result["shape"]
    sizes = (plural(shape[name], name.removesuffix("s")) for name in ("frames", "worlds", "sensors", "partners"))
    rows = [
        ("contact set", result["file"]),
        ("array", ", ".join(sizes)),
        ("labels", f"{count(result['labelled'])}, {label_rule(options)}"),
        ("pairs", f"{count(result['pairs'])} of sensor and partner with a label"),
        _written(result),
        *([("written", result["chart"])] if result.get("chart") else []),
    ]
    names: list[Column] = [(name, "left", itemgetter(name)) for name in ("sensor", "partner")]
    columns = [*names, *label_columns(options)]
    summary, more = name_value_table(rows), more_text(result["pairs"] - len(result["listed"]))
    return Group(summary, rows_table(columns, result["listed"], more)) if result["listed"] else summary


def label_columns(options: ResultDict) -> list[Column]:
    """The columns of a pair of collide.label/1, without its names."""
    return [
        ("frames", "right", lambda label: count(label["cells"])),
        ("share", "right", lambda label: percent(label["share"])),
        ("distance", "right", lambda label: quantity(label["least_distance"], length)),
        *([("mean slip", "right", lambda label: speed(label.get("mean_slip")))] if options["slip"] else []),
    ]


def label_rule(options: ResultDict) -> str:
    """The distances at which labels begin and end, and their least length, as text."""
    rule = f"from {length(options['enter'])} to beyond {length(options['leave'])}"
    least = f", labels and pauses of at least {plural(options['min_frames'], 'frame')}"
    return rule + (least if options["min_frames"] > 1 else "")


# Batches of recordings.

FAILURES_SHOWN = 20
WARNINGS_SHOWN = 10


def state_table(result: ResultDict) -> RenderableType:
    """Table of collide.batch/1: counts, and the first failures with their messages."""
    failed = result["failed"]
    rows = [
        ("folder", result["folder"]),
        ("episodes", f"{count(result['episodes'])} in {plural(result['shards'], 'shard')}"),
        ("done", count(result["done"])),
        ("failed", f"{count(failed)}; --retry-failed of run and work tries again" if failed else "0"),
        ("left", count(result["left"])),
    ]
    if result.get("computed") is not None:
        rows.append(("computed now", count(result["computed"])))
    if result["left"]:
        rows.append(("estimated time left", f"{seconds(result['estimated_seconds_left'])} of one core"))
    parts: list[RenderableType] = [name_value_table(rows)]
    if result["hosts"]:
        numbers = ("shards", "episodes", "worker time", "episodes/s")
        table = listing(("host", "left"), ("processor", "left"), *((title, "right") for title in numbers))
        for host in result["hosts"]:
            spent, rate = host["seconds"], f"{host['episodes_per_second']:.3g}"
            time = seconds(spent) if spent < 3600.0 else f"{spent / 3600.0:.2f} h"
            table.add_row(host["host"], host["processor"], count(host["shards"]), count(host["episodes"]), time, rate)
        parts.append(table)

    def list_first(table: Listing, rows: list[tuple[str, ...]], most: int) -> None:
        for row in rows[:most]:
            table.add_row(*row)
        more = f"and {count(len(rows) - most)} more; --json lists all"
        parts.extend([table, Text(more)] if len(rows) > most else [table] if rows else [])

    warnings = [(count(entry["episodes"]), entry["message"], entry["motion"]) for entry in result["run_warnings"]]
    list_first(listing(("episodes", "right"), ("warning", "left"), ("first", "left")), warnings, WARNINGS_SHOWN)
    failures = [
        (
            " ".join(filter(None, (entry["motion"], entry["demo"]))) or entry["job"],
            entry["message"].removeprefix(f"{entry['motion']}: "),
        )
        for entry in result["failures"]
    ]
    list_first(listing(("failed episode", "left"), ("reason", "left")), failures, FAILURES_SHOWN)
    return Group(*parts)


def verify_table(result: ResultDict) -> RenderableType:
    """Text of collide.batch_verify/1."""
    checked = plural(result["checked"], "contact set")
    if not result["different"]:
        return Text(f"{checked} computed again: all equal")
    return Text("\n".join([f"{checked} computed again, these differ:", *result["different"]]))


def gather_table(result: ResultDict) -> RenderableType:
    """Table of collide.batch_gather/1."""
    rows = [("written", result["output"]), ("episodes", count(result["episodes"]))]
    if result["failed"]:
        rows.append(("failed", f"{count(result['failed'])}, without a row; collide batch status lists them"))
    rows.append(("contacts", count(result["contacts"])))
    rows += [(group_words(name), count(rows_of_group)) for name, rows_of_group in (result.get("groups") or {}).items()]
    rows.append(("content", result["dataset_sha256"]))
    if result.get("slots_left"):
        rows.append(("slots left", f"{count(result['slots_left'])}; the values are those of this slot"))
    return name_value_table(rows)


# The intervals in which pairs touch.

BEFORE, BEYOND = "<", ">"
"""Marks of the first and last frame, at which the interval may continue outside the recording."""
COUNTS_LEFT_OUT = ("contacts", "touching in", "begin")
"""Columns that a narrow terminal lacks, the first first."""


def events_table(result: ResultDict) -> RenderableType:
    """Tables of collide.events/2: a summary, the listed intervals, and the graph if it is requested."""
    parts: list[RenderableType] = [_events_summary(result)]
    if result["listed"]:
        parts.append(Fitting(partial(_intervals, result), COUNTS_LEFT_OUT))
        if any(not (interval["begin_known"] and interval["end_known"]) for interval in result["listed"]):
            marks = f"{BEFORE} touching in the first frame, {BEYOND} in the last one"
            parts.append(Text(f"{marks}: the begin or the end is not recorded"))
    if result.get("between_frames"):
        parts.append(_between_frames(result))
    if result["graph"] is not None and result["graph"]["edges"]:
        parts.append(Fitting(partial(_graph, result), COUNTS_LEFT_OUT))
    return Group(*parts)


def _events_summary(result: ResultDict) -> RenderableType:
    frames, worlds, intervals, options = result["frames"], result["worlds"], result["intervals"], result["options"]
    span = ""
    if frames["count"]:
        begin, last = (f"{quantity(frames[name], '{:.6g}'.format)} s" for name in ("begin_time", "last_time"))
        span = f", from {begin} to {last}"
        if frames["count"] != frames["last"] + 1:
            span = f", frames {frames['first']} to {frames['last']}{span}"
    rows = [("contact set", result["file"]), ("frames", f"{count(frames['count'])}{span}")]
    if (demos := frames["episodes"]) is not None:
        demonstrations = plural(demos["count"], "demonstration")
        rows.append(("recorded", f"{demonstrations}, {plural(demos['frames'], 'frame')}, {seconds(demos['seconds'])}"))
    if worlds["count"] > 1:
        rows.append(("worlds", f"{count(worlds['looked_at'])} of {count(worlds['count'])}"))
    contacts, limit = result["contacts"], options["threshold"]
    touching = f"{count(contacts['touching'])} of them touching"
    which = "at any distance" if limit is None else f"distance at most {length(limit)}"
    rows.append(("contacts", f"{count(contacts['asked_for'])}, {touching} ({which})"))
    pairs = plural(intervals["pairs"], "pair") + f" of {options['by']}"
    if worlds["looked_at"] > 1:
        pairs += f", {count(intervals['pairs_and_worlds'])} over all worlds"
    rows += [("touching", pairs), ("touches", _intervals_line(intervals, options["merge_gap"]))]
    return name_value_table([*rows, *(("written", path) for path in result["written"].values() if path)])


def _intervals_line(intervals: ResultDict, gap: ResultDict) -> str:
    already, still = intervals["count"] - intervals["begins"], intervals["count"] - intervals["ends"]
    line = count(intervals["count"])
    line += f", {count(already)} already touching at the start" if already else ""
    line += f", {count(still)} still touching at the end" if still else ""
    if gap["seconds"] is not None:
        line += f"; pauses up to {seconds(gap['seconds'])} bridged"
    elif gap["frames"]:
        line += f"; pauses up to {plural(gap['frames'], 'frame')} bridged"
    return line


def _between_frames(result: ResultDict) -> RenderableType:
    between, names = result["between_frames"], EVENT_COLUMNS[result["options"]["by"]]
    touches = plural(between["count"], "touch", "touches")
    text = f"{touches} with times between frames, {count(between['missed'])} in no frame"
    text += f"; {count(between['undecided'])} undecided" if between["undecided"] else ""
    columns: list[Column] = [
        ("frame", "right", lambda touch: count(touch["frame"])),
        ("world", "right", lambda touch: count(touch["world"])),
        ("begin", "right", lambda touch: f"{touch['begin_time']:.6f} s"),
        ("end", "right", lambda touch: f"{touch['end_time']:.6f} s"),
        ("least", "right", lambda touch: length(touch["least_distance"])),
        ("in frames", "left", lambda touch: "no" if touch["missed"] else "yes"),
        *((name, "left", itemgetter(name)) for name in names),
    ]
    more = more_text(between["count"] - len(between["listed"]), "touch", "touches")
    return Group(Text(text), *([rows_table(columns, between["listed"], "", more)] if between["listed"] else []))


def _intervals(result: ResultDict, narrow: int) -> Listing:
    """narrow: the names of a pair in one column."""
    with_worlds = result["worlds"]["count"] > 1 or result["frames"]["episodes"] is not None
    more = more_text(result["intervals"]["count"] - len(result["listed"]), "touch", "touches")
    columns: list[Column] = [
        *([WORLD] if with_worlds else []),
        *_names_of_pair(result, narrow),
        ("frames", "right", _span),
        ("begin", "right", lambda interval: f"{quantity(interval['begin_time'], '{:.6g}'.format)} s"),
        ("lasts", "right", lambda interval: seconds_text(interval["seconds"])),
        ("touching in", "right", lambda interval: plural(interval["touching_frames"], "frame")),
        ("contacts", "right", lambda interval: count(interval["contacts"])),
        ("distance", "right", lambda interval: length(interval["least_distance"])),
        ("in frame", "right", lambda interval: str(interval["deepest_frame"])),
    ]
    return rows_table(columns, result["listed"], *([""] if with_worlds else []), more)


def _names_of_pair(result: ResultDict, narrow: int) -> list[Column]:
    names = EVENT_COLUMNS[result["options"]["by"]]
    return pair_columns(narrow, [re.sub(r"(\d)$", r" \1", name) for name in names], names)


def _span(interval: ResultDict) -> str:
    begin = f"{'' if interval['begin_known'] else BEFORE}{interval['begin_frame']}"
    return f"{begin} to {interval['last_frame']}{'' if interval['end_known'] else BEYOND}"


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


def touch_dot(result: ResultDict) -> str:
    """Undirected graph of a collide.events/2 result with a graph, in the DOT language of Graphviz: an edge per pair."""
    graph, by = result["graph"], EVENT_COLUMNS[result["options"]["by"]]
    lines = [f"  {dot_string(node['path'])} [kind={node['kind']}];" for node in graph["nodes"]]
    for edge in graph["edges"]:
        label = dot_string(f"{plural(edge['intervals'], 'time')}, {seconds_text(edge['seconds'])}")
        numbers = ("intervals", "touching_frames", "contacts", "seconds", "worlds")
        values = " ".join(f"{name}={edge[name]}" for name in numbers)
        lines.append(f"  {' -- '.join(dot_string(edge[name]) for name in by)} [label={label} {values}];")
    return "\n".join(["graph touches {", "  node [shape=box];", *lines, "}", ""])
