"""What was found of touches, as plain values (schema collide.events/1)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from collidecli.analysis.touch_graph import TouchGraph
from collidecli.commands.diff_facts import plain
from collidecli.commands.event_columns import interval_columns, interval_seconds
from collidecli.commands.event_stream import EventStream
from collidecli.storage.contact_sets.reader import ContactSet

if TYPE_CHECKING:
    from collidecli.commands.events import EventsRequest, Totals

EVENTS_SCHEMA = "collide.events/1"
MOST_WORLDS_LISTED = 20


def event_facts(
    request: EventsRequest, contacts: ContactSet, stream: EventStream, totals: Totals, graph: TouchGraph
) -> dict[str, Any]:
    """JSON-ready."""
    frames, longest = stream.frames, totals.longest
    return {
        "schema": EVENTS_SCHEMA,
        "file": contacts.path,
        "scene": contacts.scene,
        "options": _options(request),
        "frames": {
            "count": len(frames),
            "first": int(frames.number[0]) if len(frames) else None,
            "last": int(frames.number[-1]) if len(frames) else None,
            "begin_time": plain(float(frames.time[0])) if len(frames) else None,
            "last_time": plain(float(frames.time[-1])) if len(frames) else None,
        },
        "worlds": {
            "count": contacts.world_count,
            "looked_at": len(stream.worlds),
            "listed": stream.worlds[:MOST_WORLDS_LISTED].tolist(),
        },
        "contacts": {"asked_for": stream.contact_count, "touching": stream.touching_count},
        "intervals": {
            "count": totals.count,
            "pairs": len(graph.edges()),
            "pairs_and_worlds": graph.pairs_and_worlds,
            "begins": totals.begins,
            "ends": totals.ends,
            "unknown_begins": totals.count - totals.begins,
            "unknown_ends": totals.count - totals.ends,
            "longest": plain(float(interval_seconds(longest, frames)[0])) if len(longest) else None,
        },
        "listed": _listed(stream, totals),
        "graph": graph_facts(graph, stream, request.first) if request.graph else None,
        "written": {"csv": request.csv or None, "parquet": request.parquet or None},
    }


def _options(request: EventsRequest) -> dict[str, Any]:
    options = request.options
    return {
        "threshold": None if math.isinf(options.threshold) else options.threshold,
        "merge_gap": {"frames": options.merge_gap.frames, "seconds": options.merge_gap.seconds},
        "by": options.by,
        "include": list(options.include),
        "exclude": list(options.exclude),
        "body": list(options.bodies),
        "exclude_body": list(options.exclude_bodies),
        "between": list(options.between),
        "sort": request.order,
    }


def _listed(stream: EventStream, totals: Totals) -> list[dict[str, Any]]:
    columns = interval_columns(totals.listed, stream.frames, stream.keys)
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    listed = [{name: plain(value) for name, value in zip(columns, row, strict=True)} for row in rows]
    for row in listed:
        row["end_time"] = row["end_time"] if row["end_known"] else None
    return listed


def graph_facts(graph: TouchGraph, stream: EventStream, first: int) -> dict[str, Any]:
    """Nodes that touch anything, and every edge; `first` says how many of them a table shows."""
    edges = graph.edges()
    ends = graph.ends(edges)
    kinds = dict(zip(reversed(stream.keys.paths), reversed(stream.keys.kinds), strict=True))
    used = sorted({row for pair in ends for row in pair})
    columns = (edges.intervals, edges.unknown, edges.touching, edges.contacts, edges.seconds, edges.distance)
    rows = zip(ends, edges.worlds.tolist(), *(values.tolist() for values in columns), strict=True)
    return {
        "first": first,
        "nodes": [{"path": graph.names[row], "kind": kinds[graph.names[row]]} for row in used],
        "edges": [
            {
                "path0": graph.names[one],
                "path1": graph.names[other],
                "worlds": worlds,
                "intervals": intervals,
                "unknown_ends": unknown,
                "touching_frames": touching,
                "contacts": contacts,
                "seconds": plain(seconds),
                "least_distance": plain(distance),
            }
            for (one, other), worlds, intervals, unknown, touching, contacts, seconds, distance in rows
        ],
    }
