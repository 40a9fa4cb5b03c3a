"""The verb `events`: intervals in which pairs touch, their totals, and the graph of touching
pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.event_stream import EventStream
from collidecli.analysis.interval_rows import DURATION, OF_DISTANCES, interval_seconds, is_known
from collidecli.analysis.pair_selection import EventOptions
from collidecli.analysis.swept_touches import (
    SweptTouches,
    swept_columns,
    swept_events,
    swept_touches,
)
from collidecli.analysis.touch_graph import TouchGraph
from collidecli.analysis.touch_intervals import Frames, Intervals
from collidecli.analysis.touching_rows import UNKNOWN_DISTANCE
from collidecli.errors import InputError
from collidecli.results.result import Progress, Result
from collidecli.scene.motion import check_seconds
from collidecli.scene.option_values import EVENT_COLUMNS, EVENT_ORDERS
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import (
    Append,
    TableColumn,
    csv_table,
    parquet_table,
    require_pyarrow,
)
from collidecli.storage.process_activity import reading

MAX_WORLDS_LISTED = 20
FILE = "file"
"""Name of the column of a table of intervals with the path of the contact set."""
KeepRows = Callable[[dict[str, np.ndarray], EventStream], None]
"""Function of rows of intervals and their stream."""


@dataclass(frozen=True)
class EventsRequest:
    """A contact set, options and outputs. order: one of EVENT_ORDERS; first: number of intervals
    and of touches between frames that are listed, and of pairs of the graph; 0 lists no interval
    and every pair.

    graph: list the edges of the graph. sweep: list the touches between frames. csv, parquet: files
    for every interval, "" is none; force: replace them.
    """

    path: str
    options: EventOptions = field(default_factory=EventOptions)
    order: str = EVENT_ORDERS[0]
    first: int = 20
    graph: bool = False
    sweep: bool = False
    csv: str = ""
    parquet: str = ""
    force: bool = False


@dataclass(frozen=True)
class EventsResult(Result, schema="collide.events/2", optional=("between_frames",)):
    """Intervals in which pairs of a contact set touch.

    contacts: number of contacts of the selected pairs, worlds and frames, and of those that touch;
    of_objects: of these, if there are any, those of particle objects with each other.
    intervals: counts and the longest [s]. listed: the first intervals in the requested order.
    graph: nodes and edges, or None. written: paths of the files. between_frames: touches between
    frames, see `swept_events`; None if not requested.
    """

    file: str
    scene: str
    options: dict[str, Any]
    frames: dict[str, Any]
    worlds: dict[str, Any]
    contacts: dict[str, int]
    intervals: dict[str, Any]
    listed: list[dict[str, Any]]
    graph: dict[str, Any] | None
    warnings: list[str]
    written: dict[str, str | None]
    between_frames: dict[str, Any] | None = None


class Totals:
    """Counts of all intervals of a stream, the longest interval, the first ones in the requested
    order (listed), and the graph of the pairs.
    """

    def __init__(self, stream: EventStream, order: str, first: int) -> None:
        self._stream = stream
        self._order = order
        self._first = first
        self.graph = TouchGraph(len(stream.keys.paths))
        self.count = self.begins = self.ends = 0
        self.longest = self.listed = Intervals.none()

    def add(self, intervals: Intervals) -> None:
        """Adds intervals, in the order of the stream."""
        frames = self._stream.frames
        keys = self._stream.keys
        begun, ended = is_known(intervals)
        self.count += len(intervals)
        self.begins += int(begun.sum())
        self.ends += int(ended.sum())
        self.listed = leading(
            Intervals.chained(self.listed, intervals), frames, self._order, self._first
        )
        self.longest = leading(Intervals.chained(self.longest, intervals), frames, "duration", 1)
        pairs = keys.world(intervals.key), keys.items(intervals.key)
        seconds = interval_seconds(intervals, frames)
        unknown = (~(begun & ended)).astype(np.int64)
        self.graph.add(
            *pairs, intervals.touching, intervals.contacts, seconds, intervals.distance, unknown
        )


def leading(
    intervals: Intervals, frames: Frames, order: str, first: int | None = None
) -> Intervals:
    """The first intervals in an order of EVENT_ORDERS; equal ones are ordered by begin, then by
    world and pair."""
    by = {
        "begin": intervals.first,
        "end": intervals.last,
        "duration": -interval_seconds(intervals, frames)
        if order == "duration"
        else intervals.first,
        "depth": intervals.distance,
        "contacts": -intervals.contacts,
    }[order]
    return intervals.take(np.lexsort((intervals.key, intervals.first, by))[:first])


def events(
    request: EventsRequest, progress: Progress = None, keep: KeepRows | None = None
) -> EventsResult:
    """Finds the intervals in which pairs touch, and writes the requested files.

    keep: called with the rows of some intervals (`interval_rows`) and their stream, in the order of
    the files' rows. Raises InputError for a file that is not a contact set and for options that do
    not fit it; OutputError.
    """
    with reading("contact set", request.path), ContactSet.open(request.path) as contacts:
        check_seconds(contacts.time_unit, f"{request.path}: {DURATION}")
        stream = EventStream(contacts, request.options)
        if request.order == "depth" and stream.without_values:
            what = "the contact set is of a run with --touch-only, in which depths are not known"
            raise InputError(what, f"{request.path}: --sort depth", "sort by begin or duration")
        totals = Totals(stream, request.order, request.first)
        swept = swept_touches(stream) if request.sweep else None
        columns = (TableColumn(FILE, np.dtype(np.int64), words=(request.path,)), *stream.table())
        columns = swept_columns(columns) if request.sweep else columns
        with written_tables(request.csv, request.parquet, request.force, columns) as tables:

            def append_rows(rows: dict[str, np.ndarray]) -> None:
                for append in tables:
                    append({FILE: np.zeros(len(rows[WORLD]), np.int64), **rows})

            def lower_least(touches: Intervals) -> None:
                if swept is not None:
                    swept.lower_least(touches, stream.frames.time)

            for intervals in stream.batches(progress, lower_least):
                totals.add(intervals)
                if tables and swept is not None:
                    rows = swept.rows(stream, intervals)
                else:
                    rows = stream.rows(intervals) if tables or keep else {}
                append_rows(rows)
                if keep is not None:
                    keep(rows, stream)
            if tables and swept is not None:
                append_rows(swept.missed_rows(stream))
        return _result(request, stream, totals, swept)


@contextmanager
def written_tables(
    csv: str, parquet: str, force: bool, columns: Sequence[TableColumn]
) -> Iterator[list[Append]]:
    """Functions that append rows to a CSV and a Parquet file, "" for none; none without columns.

    Both files appear when the block ends without an error. Raises InputError without the packages
    of Parquet, OutputError.
    """
    if parquet and columns:
        require_pyarrow("--parquet")
    requested = [
        (path, table)
        for path, table in ((parquet, parquet_table), (csv, csv_table))
        if path and columns
    ]
    with ExitStack() as opened:
        outputs = [opened.enter_context(AtomicOutput(path, force)) for path, _ in requested]
        with ExitStack() as written:
            tables = zip(outputs, requested, strict=True)
            yield [written.enter_context(table(output, columns)) for output, (_, table) in tables]
        for output in outputs:
            output.commit()


def _result(
    request: EventsRequest, stream: EventStream, totals: Totals, swept: SweptTouches | None
) -> EventsResult:
    contacts = stream.contacts
    graph = totals.graph
    frames = stream.frames
    longest = totals.longest
    columns = stream.columns(totals.listed, recorded_names=True)
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    listed = [dict(zip(columns, row, strict=True)) for row in rows]
    for row in listed:
        row["end_time"] = row["end_time"] if row["end_known"] else None
        if math.isnan(row["least_distance"]):
            row.update(dict.fromkeys(OF_DISTANCES))
    options = request.options
    return EventsResult(
        file=contacts.path,
        scene=contacts.scene,
        options={
            "threshold": None if math.isinf(options.threshold) else options.threshold,
            "merge_gap": {"frames": options.merge_gap.frames, "seconds": options.merge_gap.seconds},
            "by": options.by,
            "include": list(options.include),
            "exclude": list(options.exclude),
            "body": list(options.bodies),
            "exclude_body": list(options.exclude_bodies),
            "between": list(options.between),
            "sort": request.order,
        },
        frames={"count": len(frames), **_ends(frames), "episodes": _episode_totals(stream)},
        worlds={
            "count": contacts.world_count,
            "looked_at": len(stream.worlds),
            "listed": stream.worlds[:MAX_WORLDS_LISTED].tolist(),
        },
        contacts={
            "asked_for": stream.contact_count,
            "touching": stream.touching_count,
            **({"of_objects": stream.object_count} if stream.object_count else {}),
        },
        intervals={
            "count": totals.count,
            "pairs": len(graph.edges()),
            "pairs_and_worlds": graph.pairs_and_worlds,
            "begins": totals.begins,
            "ends": totals.ends,
            "unknown_begins": totals.count - totals.begins,
            "unknown_ends": totals.count - totals.ends,
            "longest": float(interval_seconds(longest, frames)[0]) if len(longest) else None,
        },
        listed=listed,
        graph=_graph(graph, stream, request) if request.graph else None,
        warnings=stream.notes,
        written={"csv": request.csv or None, "parquet": request.parquet or None},
        between_frames=(
            None if swept is None else swept_events(swept, stream, request.first, request.order)
        ),
    )


def _ends(frames: Frames) -> dict[str, Any]:
    if not len(frames):
        return dict.fromkeys(("first", "last", "begin_time", "last_time"))
    number = frames.number[[0, -1]].tolist()
    time = frames.time[[0, -1]].tolist()
    return {"first": number[0], "last": number[1], "begin_time": time[0], "last_time": time[1]}


def _episode_totals(stream: EventStream) -> dict[str, Any] | None:
    """Number, frames and seconds of the selected episodes; None without episodes."""
    episodes = stream.frames.episodes
    if episodes is None:
        return None
    of_selection = episodes.of_worlds(stream.worlds)
    seconds = float(of_selection.seconds(stream.frames.time).sum())
    return {
        "count": len(of_selection),
        "frames": int(of_selection.frame_count.sum()),
        "seconds": seconds,
    }


def _graph(graph: TouchGraph, stream: EventStream, request: EventsRequest) -> dict[str, Any]:
    """Nodes with an edge, and every edge; first: number of edges that a table shows."""
    edges = graph.edges()
    ends = graph.ends(edges)
    paths = stream.keys.paths
    kinds = stream.keys.kinds
    used = sorted({row for pair in ends for row in pair})
    name0, name1 = EVENT_COLUMNS[request.options.by]
    names = (
        name0,
        name1,
        "worlds",
        "intervals",
        "unknown_ends",
        "touching_frames",
        "contacts",
        "seconds",
    )
    columns = (
        edges.worlds,
        edges.intervals,
        edges.unknown,
        edges.touching,
        edges.contacts,
        edges.seconds,
    )
    both = ([paths[pair[k]] for pair in ends] for k in (0, 1))
    least = [
        None if distance == UNKNOWN_DISTANCE else distance for distance in edges.distance.tolist()
    ]
    rows = zip(*both, *(values.tolist() for values in columns), least, strict=True)
    return {
        "first": request.first or len(edges),
        "nodes": [{"path": paths[row], "kind": kinds[row]} for row in used],
        "edges": [dict(zip((*names, "least_distance"), row, strict=True)) for row in rows],
    }


WORLD = "world"
EPISODE = "episode"
