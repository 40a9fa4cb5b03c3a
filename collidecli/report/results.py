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

from collidecli.report import tables
from collidecli.report.diff import verdict
from collidecli.scene.options import EVENT_COLUMNS
from collidecli.scene.tables import group_words
from collidecli.texts import count, dot_string, markdown_code, markdown_text, memory, plural, printable_values

KEY_DIGITS = 12
KIND_NAMES = {"field": "signed distance field", "hull": "convex hull", "parts": "convex parts"}


def cache_table(result: tables.ResultDict) -> RenderableType:
    """Table of collide.cache/1: a line per entry, and the total size."""
    if "removed" in result:
        return Text(f"{result['folder']}: {_entry_counts(result['removed'])} removed, {memory(result['bytes'])}")
    entries, folder = result["entries"], result["folder"]
    line = Text(f"{folder}: {_entry_counts(entries)}, {memory(result['bytes'])} of {memory(result['limit'])}")
    columns: list[tables.Column] = [
        ("key", "left", lambda entry: entry["key"][:KEY_DIGITS]),
        ("kind", "left", lambda entry: KIND_NAMES[entry["kind"]]),
        ("last used, UTC", "right", lambda entry: entry["used"][:16].replace("T", " ")),
        ("size", "right", lambda entry: memory(entry["bytes"])),
    ]
    return Group(tables.rows_table(columns, entries), line) if entries else line


def _entry_counts(entries: Sequence[tables.ResultDict]) -> str:
    counts = Counter(entry["kind"] for entry in entries)
    texts = {kind: plural(counts[kind], KIND_NAMES[kind]) for kind in ("field", "hull")}
    texts["parts"] = f"convex parts of {plural(counts['parts'], 'mesh', 'meshes')}"
    return ", ".join(text for kind, text in texts.items() if counts[kind]) or "no entries"


def check_table(result: tables.ResultDict) -> RenderableType:
    """Text of collide.check/1: a line per finding and note."""
    words = f"good ({result['format']})" if result["good"] else "faulty"
    lines = [f"{finding['where']}: {finding['what']}" for finding in result["findings"]]
    lines += [f"note: {note['where']}: the engine's rows: {note['what']}" for note in result.get("notes") or ()]
    return Group(tables.verdict_text(f"{result['file']}: {words}", result["good"]), *map(Text, lines))


def convert_table(result: tables.ResultDict) -> Table:
    """Table of collide.traj.convert/1."""
    rows = [("recording", f"{result['file']} ({result['kind']})")]
    rows += [(name, count(result[name])) for name in ("frames", "worlds", "bodies")]
    return tables.name_value_table(
        [*rows, ("duration", tables.seconds(result["duration"])), ("written", result["output"])]
    )


def export_table(result: tables.ResultDict) -> Table:
    """Table of collide.export/1."""
    rows = [(group_words(result["group"]) or "contacts", _contacts_of_cells(result)), *_group_lines(result)]
    rows.append(("format", result["format"]))
    rows += [("left out" if k == 0 else "", text) for k, text in enumerate(result["left_out"])]
    return tables.name_value_table([*rows, _written(result)])


def pack_table(result: tables.ResultDict) -> Table:
    """Table of collide.engine_pack/1."""
    shapes, pairs = plural(result["shapes"], "shape"), plural(result["pairs"], "pair")
    packed = f"{shapes}, {pairs} in {plural(result['cells'], 'cell')}"
    return tables.name_value_table([("scene", result["scene"]), ("packed", packed), _written(result)])


def merge_table(result: tables.ResultDict) -> Table:
    """Table of collide.merge/1."""
    rows = [("merged" if k == 0 else "", path) for k, path in enumerate(result["files"])]
    rows += [("contacts", _contacts_of_cells(result)), *_group_lines(result), ("written", result["output"])]
    rows.append(("content", result["content_sha256"]))
    if result["parted_by"] == "frames" and result["recordings"] > 1:
        rows.append(("note", f"the frames are of {result['recordings']} recordings"))
    return tables.name_value_table(rows)


def _group_lines(result: tables.ResultDict) -> list[tuple[str, str]]:
    return [(group_words(name), count(rows)) for name, rows in result["group_rows"].items()]


def _contacts_of_cells(result: tables.ResultDict) -> str:
    return f"{count(result['contacts'])} in {plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"


def _written(result: tables.ResultDict) -> tuple[str, str]:
    return "written", f"{result['output']}, {memory(result['bytes'])}"


def record_table(result: tables.ResultDict) -> Table:
    """Table of collide.record/1."""
    bodies = plural(result["bodies"], "body", "bodies")
    sizes = f"{plural(result['frames'], 'frame')}, {plural(result['worlds'], 'world')}, {bodies}"
    recorded = f"{sizes}, {tables.seconds(result['duration'])} long"
    return tables.name_value_table([("scene", result["scene"]), ("recorded", recorded), ("written", result["output"])])


def group_figures(result: tables.ResultDict) -> list[tuple[str, str, str]]:
    """Name, number and comment of the surfaces of a report and of its contacts of particles, where there are any."""
    groups = result["groups"] or {"surfaces": None, "counts": {}}
    surfaces, listed = groups["surfaces"], []
    if surfaces is not None:
        listed.append(("surfaces", count(surfaces["rows"]), f"hydroelastic, of {plural(surfaces['pairs'], 'pair')}"))
    return listed + [(group_words(name), count(of_group["rows"]), "") for name, of_group in groups["counts"].items()]


def report_table(result: tables.ResultDict) -> Table:
    """Table of collide.report/1."""
    rows, groups = [("scene", result["scene"])], group_figures(result)
    if result["contacts"] or not groups:
        rows.append(("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"))
        rows.append(("pairs", f"{count(result['pairs']['count'])} with contacts"))
    rows += [(name, f"{number}, {more}" if more else number) for name, number, more in groups]
    deepest: dict[str, Any] | None = result["deepest"]
    if deepest is not None and deepest["distance"] < 0.0:
        depth, number = tables.length(-deepest["distance"]), deepest["world"]
        pair = f"{deepest['shape0']} and {deepest['shape1']}"
        world = tables.world_text(number, result["demonstrations"][number] if result["demonstrations"] else "")
        rows.append(("deepest", f"{depth}, frame {deepest['frame']}, world {world}: {pair}"))
    if result["difference"] is not None:
        rows.append(("baseline", verdict(result["difference"])))
    return tables.name_value_table([*rows, ("written", result["output"])])


def plot_table(result: tables.ResultDict) -> Table:
    """Table of collide.plot/1."""
    return tables.name_value_table([("shows", result["words"]), ("written", result["output"])])


def view_table(result: tables.ResultDict) -> Table:
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
    return tables.name_value_table([*rows, ("written", f"{result['written']}, {memory(result['written_bytes'])}")])


# Least distances of a motion, and labels of a contact set.


def clearance_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.clearance/1: a summary, and the nearest items."""
    cells = f"{plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"
    rows = [("scene", result["scene"]), ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}")]
    if result["between"]:
        rows.append(("between", " and ".join(result["between"])))
    rows.append(("pairs", f"{count(result['pairs'])}, {plural(result['measured'], 'distance')} measured"))
    if result["output"]:
        rows.append(_written(result))
    summary = tables.name_value_table(rows)
    return Group(summary, tables.Fitting(partial(_nearest, result))) if result["listed"] else summary


def _nearest(result: tables.ResultDict, narrow: int) -> tables.Listing:
    of_bodies = result["by"] == "body"
    columns: list[tables.Column] = [
        *([("body", "left", itemgetter("body"))] if of_bodies else []),
        *tables.pair_columns(narrow),
        ("distance", "right", lambda item: tables.length(item["least_distance"])),
        *([tables.WORLD] if result["worlds"] > 1 else []),
        ("in frame", "right", lambda item: str(item["frame"])),
        ("at", "right", lambda item: f"{item['time']:.6g} s"),
    ]
    more = result["items"] - len(result["listed"])
    return tables.rows_table(
        columns, result["listed"], tables.more_text(more, *(("body", "bodies") if of_bodies else ()))
    )


def label_table(result: tables.ResultDict) -> RenderableType:
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
    names: list[tables.Column] = [(name, "left", itemgetter(name)) for name in ("sensor", "partner")]
    columns = [*names, *label_columns(options)]
    summary, more = tables.name_value_table(rows), tables.more_text(result["pairs"] - len(result["listed"]))
    return Group(summary, tables.rows_table(columns, result["listed"], more)) if result["listed"] else summary


def label_columns(options: tables.ResultDict) -> list[tables.Column]:
    """The columns of a pair of collide.label/1, without its names."""
    return [
        ("frames", "right", lambda label: count(label["cells"])),
        ("share", "right", lambda label: tables.percent(label["share"])),
        ("distance", "right", lambda label: tables.quantity(label["least_distance"], tables.length)),
        *([("mean slip", "right", lambda label: tables.speed(label.get("mean_slip")))] if options["slip"] else []),
    ]


def label_rule(options: tables.ResultDict) -> str:
    """The distances at which labels begin and end, and their least length, as text."""
    rule = f"from {tables.length(options['enter'])} to beyond {tables.length(options['leave'])}"
    least = f", labels and pauses of at least {plural(options['min_frames'], 'frame')}"
    return rule + (least if options["min_frames"] > 1 else "")


# Batches of recordings.

FAILURES_SHOWN = 20
WARNINGS_SHOWN = 10


def state_table(result: tables.ResultDict) -> RenderableType:
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
        rows.append(("estimated time left", f"{tables.seconds(result['estimated_seconds_left'])} of one core"))
    parts: list[RenderableType] = [tables.name_value_table(rows)]
    if result["hosts"]:
        numbers = ("shards", "episodes", "worker time", "episodes/s")
        table = tables.listing(("host", "left"), ("processor", "left"), *((title, "right") for title in numbers))
        for host in result["hosts"]:
            spent, rate = host["seconds"], f"{host['episodes_per_second']:.3g}"
            time = tables.seconds(spent) if spent < 3600.0 else f"{spent / 3600.0:.2f} h"
            table.add_row(host["host"], host["processor"], count(host["shards"]), count(host["episodes"]), time, rate)
        parts.append(table)

    def list_first(table: tables.Listing, rows: list[tuple[str, ...]], most: int) -> None:
        for row in rows[:most]:
            table.add_row(*row)
        more = f"and {count(len(rows) - most)} more; --json lists all"
        parts.extend([table, Text(more)] if len(rows) > most else [table] if rows else [])

    warnings = [(count(entry["episodes"]), entry["message"], entry["motion"]) for entry in result["run_warnings"]]
    list_first(tables.listing(("episodes", "right"), ("warning", "left"), ("first", "left")), warnings, WARNINGS_SHOWN)
    failures = [
        (
            " ".join(filter(None, (entry["motion"], entry["demo"]))) or entry["job"],
            entry["message"].removeprefix(f"{entry['motion']}: "),
        )
        for entry in result["failures"]
    ]
    list_first(tables.listing(("failed episode", "left"), ("reason", "left")), failures, FAILURES_SHOWN)
    return Group(*parts)


def verify_table(result: tables.ResultDict) -> RenderableType:
    """Text of collide.batch_verify/1."""
    checked = plural(result["checked"], "contact set")
    if not result["different"]:
        return Text(f"{checked} computed again: all equal")
    return Text("\n".join([f"{checked} computed again, these differ:", *result["different"]]))


def gather_table(result: tables.ResultDict) -> RenderableType:
    """Table of collide.batch_gather/1."""
    rows = [("written", result["output"]), ("episodes", count(result["episodes"]))]
    if result["failed"]:
        rows.append(("failed", f"{count(result['failed'])}, without a row; collide batch status lists them"))
    rows.append(("contacts", count(result["contacts"])))
    rows += [(group_words(name), count(rows_of_group)) for name, rows_of_group in (result.get("groups") or {}).items()]
    rows.append(("content", result["dataset_sha256"]))
    if result.get("slots_left"):
        rows.append(("slots left", f"{count(result['slots_left'])}; the values are those of this slot"))
    return tables.name_value_table(rows)


# The intervals in which pairs touch.

BEFORE, BEYOND = "<", ">"
"""Marks of the first and last frame, at which the interval may continue outside the recording."""
COUNTS_LEFT_OUT = ("contacts", "touching in", "begin")
"""Columns that a narrow terminal lacks, the first first."""


def events_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.events/2: a summary, the listed intervals, and the graph if it is requested."""
    parts: list[RenderableType] = [_events_summary(result)]
    if result["listed"]:
        parts.append(tables.Fitting(partial(_intervals, result), COUNTS_LEFT_OUT))
        if any(not (interval["begin_known"] and interval["end_known"]) for interval in result["listed"]):
            marks = f"{BEFORE} touching in the first frame, {BEYOND} in the last one"
            parts.append(Text(f"{marks}: the begin or the end is not recorded"))
    if result.get("between_frames"):
        parts.append(_between_frames(result))
    if result["graph"] is not None and result["graph"]["edges"]:
        parts.append(tables.Fitting(partial(_graph, result), COUNTS_LEFT_OUT))
    return Group(*parts)


def _events_summary(result: tables.ResultDict) -> RenderableType:
    frames, worlds, intervals, options = result["frames"], result["worlds"], result["intervals"], result["options"]
    span = ""
    if frames["count"]:
        begin, last = (f"{tables.quantity(frames[name], '{:.6g}'.format)} s" for name in ("begin_time", "last_time"))
        span = f", from {begin} to {last}"
        if frames["count"] != frames["last"] + 1:
            span = f", frames {frames['first']} to {frames['last']}{span}"
    rows = [("contact set", result["file"]), ("frames", f"{count(frames['count'])}{span}")]
    if (demos := frames["episodes"]) is not None:
        demonstrations = plural(demos["count"], "demonstration")
        rows.append(
            ("recorded", f"{demonstrations}, {plural(demos['frames'], 'frame')}, {tables.seconds(demos['seconds'])}")
        )
    if worlds["count"] > 1:
        rows.append(("worlds", f"{count(worlds['looked_at'])} of {count(worlds['count'])}"))
    contacts, limit = result["contacts"], options["threshold"]
    touching = f"{count(contacts['touching'])} of them touching"
    which = "at any distance" if limit is None else f"distance at most {tables.length(limit)}"
    rows.append(("contacts", f"{count(contacts['asked_for'])}, {touching} ({which})"))
    pairs = plural(intervals["pairs"], "pair") + f" of {options['by']}"
    if worlds["looked_at"] > 1:
        pairs += f", {count(intervals['pairs_and_worlds'])} over all worlds"
    rows += [("touching", pairs), ("touches", _intervals_line(intervals, options["merge_gap"]))]
    return tables.name_value_table([*rows, *(("written", path) for path in result["written"].values() if path)])


def _intervals_line(intervals: tables.ResultDict, gap: tables.ResultDict) -> str:
    already, still = intervals["count"] - intervals["begins"], intervals["count"] - intervals["ends"]
    line = count(intervals["count"])
    line += f", {count(already)} already touching at the start" if already else ""
    line += f", {count(still)} still touching at the end" if still else ""
    if gap["seconds"] is not None:
        line += f"; pauses up to {tables.seconds(gap['seconds'])} bridged"
    elif gap["frames"]:
        line += f"; pauses up to {plural(gap['frames'], 'frame')} bridged"
    return line


def _between_frames(result: tables.ResultDict) -> RenderableType:
    between, names = result["between_frames"], EVENT_COLUMNS[result["options"]["by"]]
    touches = plural(between["count"], "touch", "touches")
    text = f"{touches} with times between frames, {count(between['missed'])} in no frame"
    text += f"; {count(between['undecided'])} undecided" if between["undecided"] else ""
    columns: list[tables.Column] = [
        ("frame", "right", lambda touch: count(touch["frame"])),
        ("world", "right", lambda touch: count(touch["world"])),
        ("begin", "right", lambda touch: f"{touch['begin_time']:.6f} s"),
        ("end", "right", lambda touch: f"{touch['end_time']:.6f} s"),
        ("least", "right", lambda touch: tables.length(touch["least_distance"])),
        ("in frames", "left", lambda touch: "no" if touch["missed"] else "yes"),
        *((name, "left", itemgetter(name)) for name in names),
    ]
    more = tables.more_text(between["count"] - len(between["listed"]), "touch", "touches")
    return Group(Text(text), *([tables.rows_table(columns, between["listed"], "", more)] if between["listed"] else []))


def _intervals(result: tables.ResultDict, narrow: int) -> tables.Listing:
    """narrow: the names of a pair in one column."""
    with_worlds = result["worlds"]["count"] > 1 or result["frames"]["episodes"] is not None
    more = tables.more_text(result["intervals"]["count"] - len(result["listed"]), "touch", "touches")
    columns: list[tables.Column] = [
        *([tables.WORLD] if with_worlds else []),
        *_names_of_pair(result, narrow),
        ("frames", "right", _span),
        ("begin", "right", lambda interval: f"{tables.quantity(interval['begin_time'], '{:.6g}'.format)} s"),
        ("lasts", "right", lambda interval: tables.seconds_text(interval["seconds"])),
        ("touching in", "right", lambda interval: plural(interval["touching_frames"], "frame")),
        ("contacts", "right", lambda interval: count(interval["contacts"])),
        ("distance", "right", lambda interval: tables.length(interval["least_distance"])),
        ("in frame", "right", lambda interval: str(interval["deepest_frame"])),
    ]
    return tables.rows_table(columns, result["listed"], *([""] if with_worlds else []), more)


def _names_of_pair(result: tables.ResultDict, narrow: int) -> list[tables.Column]:
    names = EVENT_COLUMNS[result["options"]["by"]]
    return tables.pair_columns(narrow, [re.sub(r"(\d)$", r" \1", name) for name in names], names)


def _span(interval: tables.ResultDict) -> str:
    begin = f"{'' if interval['begin_known'] else BEFORE}{interval['begin_frame']}"
    return f"{begin} to {interval['last_frame']}{'' if interval['end_known'] else BEYOND}"


def _graph(result: tables.ResultDict, narrow: int) -> tables.Listing:
    graph, worlds = result["graph"], result["worlds"]["looked_at"] > 1
    columns: list[tables.Column] = [
        *_names_of_pair(result, narrow),
        *([("worlds", "right", lambda edge: count(edge["worlds"]))] if worlds else []),
        ("touches", "right", lambda edge: count(edge["intervals"])),
        ("in total", "right", lambda edge: tables.seconds_text(edge["seconds"])),
        ("touching in", "right", lambda edge: plural(edge["touching_frames"], "frame")),
        ("contacts", "right", lambda edge: count(edge["contacts"])),
        ("distance", "right", lambda edge: tables.length(edge["least_distance"])),
    ]
    return tables.rows_table(
        columns, graph["edges"][: graph["first"]], tables.more_text(len(graph["edges"]) - graph["first"])
    )


def touch_dot(result: tables.ResultDict) -> str:
    """Undirected graph of a collide.events/2 result with a graph, in the DOT language of Graphviz: an edge per pair."""
    graph, by = result["graph"], EVENT_COLUMNS[result["options"]["by"]]
    lines = [f"  {dot_string(node['path'])} [kind={node['kind']}];" for node in graph["nodes"]]
    for edge in graph["edges"]:
        label = dot_string(f"{plural(edge['intervals'], 'time')}, {tables.seconds_text(edge['seconds'])}")
        numbers = ("intervals", "touching_frames", "contacts", "seconds", "worlds")
        values = " ".join(f"{name}={edge[name]}" for name in numbers)
        lines.append(f"  {' -- '.join(dot_string(edge[name]) for name in by)} [label={label} {values}];")
    return "\n".join(["graph touches {", "  node [shape=box];", *lines, "}", ""])


# Audits.

CHECKS = {
    "depth": "penetration",
    "self": "self-collision",
    "ground": "ground penetration",
    "own": "own limits of pairs",
    "start": "first frames",
    "tunnel": "tunnelling",
}
MAX_LINES = 20


def audit_words(result: tables.ResultDict) -> str:
    """Whether a motion passes, as one line."""
    if result["passed"]:
        has_limits = any(check["limit"] is not None for check in result["checks"]) or result["limits"]["pairs"]
        words = "within the limits" if has_limits else "no limit is given"
        if result["baseline"] is not None:
            words = "nothing is worse than in the baseline"
        return f"passed: {words}, {pairs_text(result)}"
    failing = sum(check["failing"] for check in result["checks"])
    return f"failed: {plural(failing, 'finding')}, {pairs_text(result)}"


def pairs_text(result: tables.ResultDict) -> str:
    """Number of penetrating pairs, and the deepest."""
    pairs = result["pairs"]
    if not pairs:
        return "no pair penetrates"
    deepest = tables.length(pairs[0]["depth"])
    return f"{plural(len(pairs), 'pair')} penetrate{'s' if len(pairs) == 1 else ''}, up to {deepest}"


def usable_text(result: tables.ResultDict) -> str:
    """Number and share of usable frames."""
    usable = result["usable"]
    text = f"{count(usable['cells'])} of {count(result['cells'])} ({tables.percent(usable['share'])})"
    if usable["unusable_from_start"]:
        first = f"the first {plural(usable['unusable_from_start'], 'frame')}"
        one = result["worlds"] == 1
        text += f"; {first} cannot be used" if one else f"; up to {first} of a world cannot be used"
    return text


def check_limit(check: tables.ResultDict) -> str:
    """The limit of depth of a check as text; no pair may tunnel."""
    if check["name"] == "tunnel":
        return "not allowed"
    if check["name"] == "own" and check["limit"] is None:
        return "of each pair"
    return "none" if check["limit"] is None else tables.length(check["limit"])


def failing_lines(result: tables.ResultDict, check: str) -> list[str]:
    """A line for each pair that fails a check."""
    is_start, compared = check == "start", result["baseline"] is not None
    lines = []
    for row in result["pairs"]:
        if (compared and not row["worse"]) or not (check in row["exceeds"] or (compared and check == row["check"])):
            continue
        depth = row["start_depth"] if is_start else row["depth"]
        where = "in a first frame" if is_start else f"in frame {row['frame']}, world {row['world']}"
        over = (
            ""
            if is_start or not row["cells_over"]
            else f", above its limit{_limit_text(row)} in {plural(row['cells_over'], 'frame')}"
        )
        before = f", in the baseline {tables.length(row['baseline_depth'])}" if compared else ""
        lines.append(f"{row['shape0']} and {row['shape1']}: {tables.length(depth)} {where}{over}{before}")
    return _first_lines(lines)


def _limit_text(row: tables.ResultDict) -> str:
    """The limit of a pair, which the row of its check has not if pairs have their own."""
    return f" of {tables.length(row['limit'])}" if row["check"] == "own" and row.get("limit") is not None else ""


def tunnel_lines(result: tables.ResultDict) -> list[str]:
    """A line for each pair that fails the check of tunnelling."""
    lines = []
    for tunnel in result.get("tunnels") or ():
        if tunnel["exceeds"]:
            first = f"the first after frame {tunnel['frame']}, world {tunnel['world']}, at {tunnel['time']:.6g} s"
            lines.append(f"{tunnel['shape0']} and {tunnel['shape1']}: {plural(tunnel['steps'], 'step')}, {first}")
    return _first_lines(lines)


def _first_lines(lines: list[str]) -> list[str]:
    return [*lines[:MAX_LINES], *filter(None, [tables.more_text(len(lines) - MAX_LINES)])]


def findings(result: tables.ResultDict) -> list[tables.Finding]:
    """Each check with a limit, or all against a baseline, with its failures."""
    listed = []
    for check in result["checks"]:
        lines = tunnel_lines(result) if check["name"] == "tunnel" else failing_lines(result, check["name"])
        listed.append(tables.Finding(CHECKS[check["name"]], [check["reason"], *lines] if check["failing"] else []))
    return listed


MOST_ROWS = 20
CHECK_COLUMNS: list[tables.Column] = [
    ("check", "left", lambda one: CHECKS[one["name"]]),
    ("limit", "right", check_limit),
    ("pairs", "right", lambda one: count(one["pairs"])),
    ("deepest", "right", lambda one: tables.length(one["deepest"])),
    ("failing", "right", lambda one: count(one["failing"])),
]
DEEPEST: list[tables.Column] = [
    ("check", "left", lambda one: "allowed" if one["allowed"] else CHECKS[one["check"]]),
    ("deepest", "right", lambda one: tables.length(one["depth"])),
    ("in frame", "right", lambda one: str(one["frame"])),
]
OVER: list[tables.Column] = [
    ("frames", "right", lambda one: count(one["cells"])),
    ("over limit", "right", lambda one: count(one["cells_over"])),
]
"""Of the deepest pairs."""


def audit_verdict(result: tables.ResultDict, seconds: float) -> tables.Verdict:
    """The verdict of collide.audit/1. seconds: duration of the audit."""
    result = printable_values(result)
    columns = [*CHECK_COLUMNS[:-1], ("result", "left", _state)]
    checks = [[text(row) for _, _, text in columns] for row in result["checks"]]
    failing = [row for row in result["pairs"] if row["exceeds"]]
    pairs = [
        [
            markdown_code(row["shape0"]), markdown_code(row["shape1"]), tables.length(row["depth"]), str(row["frame"]),
            str(row["world"]), count(row["cells_over"]),
        ]
        for row in failing[:MOST_ROWS]
    ]  # fmt: skip
    markdown = tables.markdown_section(
        f"collide audit: {'passed' if result['passed'] else 'failed'}",
        [markdown_text(audit_words(result))],
        [markdown_text(f"Usable frames: {usable_text(result)}")],
        tables.markdown_rows([title for title, _, _ in columns], checks),
        tables.markdown_rows(["shape 0", "shape 1", "deepest", "frame", "world", "frames over"], pairs),
        [tables.more_text(len(failing) - MOST_ROWS)] if len(failing) > MOST_ROWS else [],
        [f"- note: {markdown_text(note)}" for note in result["warnings"]],
    )
    return tables.Verdict.of("audit", audit_words(result), findings(result), seconds, markdown)


def _state(check: tables.ResultDict) -> str:
    if check["failing"]:
        return f"failed: {plural(check['failing'], 'pair')}"
    has_limit = check["limit"] is not None or check["name"] in ("tunnel", "own")
    return "passed" if has_limit else "no limit"


# Terminal tables of an audit.


def audit_table(first: int, result: tables.ResultDict) -> RenderableType:
    """Tables of collide.audit/1: the verdict, the checks and the deepest pairs. first: number of pairs."""
    checks = tables.rows_table(CHECK_COLUMNS, result["checks"])
    words = tables.verdict_text(audit_words(result), result["passed"])
    rows = [("input", result["input"])]
    if result["trajectory"]:
        rows.append(("recording", result["trajectory"]))
    frames = plural(result["frames"], "frame")
    rows.append(("motion", frames if result["worlds"] == 1 else f"{frames} of {plural(result['worlds'], 'world')}"))
    rows.append(("usable", usable_text(result)))
    if (base := result["baseline"]) is not None:
        rows.append(("baseline", f"{base['file']}: {count(base['worse'])} worse, {count(base['gone'])} gone"))
    rows += [("written", path) for path in (result.get("written") or {}).values()]
    parts: list[RenderableType] = [words, Text(), tables.name_value_table(rows), checks]
    if result["pairs"] and first:
        parts.append(tables.Fitting(partial(_pairs, result, first)))
    parts += [Text(f"tunnelling: {line}") for line in tunnel_lines(result)]
    if result["baseline"] is not None and result["baseline"]["note"]:
        parts.append(Text(f"note: {result['baseline']['note']}"))
    return Group(*parts)


def _pairs(result: tables.ResultDict, first: int, narrow: int) -> tables.Listing:
    columns = [*tables.pair_columns(narrow), *DEEPEST, *([tables.WORLD] if result["worlds"] > 1 else []), *OVER]
    if "deepest_point" in result["pairs"][0]:
        columns.append(
            (
                "deepest point",
                "right",
                lambda pair: tables.length(pair["deepest_point"]) if "deepest_point" in pair else "",
            )
        )
    if "overlap_volume" in result["pairs"][0]:
        columns.append(("volume", "right", _volume))
    return tables.rows_table(columns, result["pairs"][:first], tables.more_text(len(result["pairs"]) - first))


def _volume(pair: tables.ResultDict) -> str:
    """A volume in cubic centimetres with its bound, or the reason of none."""
    if pair.get("overlap_volume") is None:
        return pair.get("overlap_note", "")
    bound = pair["overlap_volume_error"] * 1e6
    return f"{pair['overlap_volume'] * 1e6:.4g} cm^3" + (f" +- {bound:.1g}" if bound else "")
