"""When pairs touch: intervals with begin, end, depth and contacts, their sums, and who touched whom."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.touch_graph import TouchGraph
from collidecli.analysis.touch_intervals import Frames, Intervals
from collidecli.app.event_columns import interval_columns, interval_seconds
from collidecli.app.event_facts import event_facts
from collidecli.app.event_stream import EventOptions, EventStream, Progress
from collidecli.files.activity import reading
from collidecli.files.contacts.reader import ContactSet
from collidecli.files.flat_tables import CsvTable, FlatTable, ParquetTable
from collidecli.model.choices import EVENT_ORDERS


@dataclass(frozen=True)
class EventsRequest:
    """What is asked. order: of EVENT_ORDERS, and `first`: how many intervals are listed so; graph: are edges listed?

    csv, parquet: files that take every interval, "" is none; force: they may be there already.
    """

    path: str
    options: EventOptions = field(default_factory=EventOptions)
    order: str = EVENT_ORDERS[0]
    first: int = 20
    graph: bool = False
    csv: str = ""
    parquet: str = ""
    force: bool = False


class Totals:
    """What all intervals come to. listed: the first ones in the order asked for."""

    def __init__(self, order: str, first: int) -> None:
        self._order, self._first = order, first
        self.count = self.begins = self.ends = 0
        self.longest = self.listed = Intervals.none()

    def add(self, found: Intervals, frames: Frames) -> None:
        self.count += len(found)
        self.begins += int((found.first > 0).sum())
        self.ends += int((found.last + 1 < len(frames)).sum())
        self.listed = leading(Intervals.chained(self.listed, found), frames, self._order, self._first)
        self.longest = leading(Intervals.chained(self.longest, found), frames, "duration", 1)


def leading(found: Intervals, frames: Frames, order: str, first: int | None = None) -> Intervals:
    """The first so many in an order of EVENT_ORDERS; those that are equal in it by begin, then world and pair."""
    by = {
        "begin": found.first,
        "end": found.last,
        "duration": -interval_seconds(found, frames) if order == "duration" else found.first,
        "depth": found.distance,
        "contacts": -found.contacts,
    }[order]
    return found.take(np.lexsort((found.key, found.first, by))[:first])


def events(request: EventsRequest, progress: Progress = None) -> dict[str, Any]:
    """JSON-ready, schema collide.events/1. Writes the files that are asked for.

    Raises InputError for a file that is no contact set and for options that mean nothing in it; OutputError.
    """
    with reading("contact set", request.path), ContactSet.open(request.path) as contacts, ExitStack() as stack:
        stream = EventStream(contacts, request.options)
        tables: Sequence[FlatTable] = [stack.enter_context(table) for table in _tables(request)]
        graph, totals = TouchGraph(stream.keys.paths), Totals(request.order, request.first)
        for found in stream.batches(progress):
            add_to_graph(graph, found, stream)
            totals.add(found, stream.frames)
            columns = interval_columns(found, stream.frames, stream.keys) if tables else {}
            for table in tables:
                table.append(columns)
        for table in tables:
            table.finish()
        return event_facts(request, contacts, stream, totals, graph)


def _tables(request: EventsRequest) -> list[FlatTable]:
    tables: list[FlatTable] = []
    if request.parquet:
        tables.append(ParquetTable(request.parquet, request.force, "--parquet"))
    if request.csv:
        tables.append(CsvTable(request.csv, request.force))
    return tables


def add_to_graph(graph: TouchGraph, found: Intervals, stream: EventStream) -> None:
    """Adds intervals of a stream, in its order."""
    keys, frames = stream.keys, stream.frames
    unknown = (found.first == 0) | (found.last + 1 == len(frames))
    graph.add(
        keys.world(found.key),
        keys.things(found.key),
        found.touching,
        found.contacts,
        interval_seconds(found, frames),
        found.distance,
        unknown.astype(np.int64),
    )
