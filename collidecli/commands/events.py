"""When pairs touch: intervals with begin, end, depth and contacts, their sums, and who touched whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.touch_graph import TouchGraph
from collidecli.analysis.touch_intervals import Frames, Intervals
from collidecli.commands.event_columns import interval_rows, interval_seconds, interval_table
from collidecli.commands.event_facts import event_facts
from collidecli.commands.event_stream import EventOptions, EventStream, Progress
from collidecli.scene.option_choices import EVENT_ORDERS
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import Append, csv_table, parquet_table, require_pyarrow
from collidecli.storage.process_activity import reading


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
    with reading("contact set", request.path), ContactSet.open(request.path) as contacts:
        stream = EventStream(contacts, request.options)
        graph, totals = TouchGraph(stream.keys.paths), Totals(request.order, request.first)
        with _tables(request, stream) as tables:
            for found in stream.batches(progress):
                add_to_graph(graph, found, stream)
                totals.add(found, stream.frames)
                rows = interval_rows(found, stream.frames, stream.keys) if tables else {}
                for append in tables:
                    append(rows)
        return event_facts(request, contacts, stream, totals, graph)


@contextmanager
def _tables(request: EventsRequest, stream: EventStream) -> Iterator[list[Append]]:
    """The files that are asked for; they are in place, both of them, once the block is left without an error."""
    columns = interval_table(stream.keys)
    if request.parquet:
        require_pyarrow("--parquet")
    asked = [(path, table) for path, table in ((request.parquet, parquet_table), (request.csv, csv_table)) if path]
    with ExitStack() as opened:
        outputs = [opened.enter_context(AtomicOutput(path, request.force)) for path, _ in asked]
        with ExitStack() as written:
            yield [
                written.enter_context(table(output, columns)) for output, (_, table) in zip(outputs, asked, strict=True)
            ]
        for output in outputs:
            output.commit()


def add_to_graph(graph: TouchGraph, found: Intervals, stream: EventStream) -> None:
    """Adds intervals of a stream, in its order."""
    keys, frames = stream.keys, stream.frames
    unknown = (found.first == 0) | (found.last + 1 == len(frames))
    graph.add(
        keys.world(found.key),
        keys.items(found.key),
        found.touching,
        found.contacts,
        interval_seconds(found, frames),
        found.distance,
        unknown.astype(np.int64),
    )
