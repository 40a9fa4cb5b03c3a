"""One table of the intervals of several contact sets, with a column of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np

from collidecli.commands.event_selection import EventOptions
from collidecli.commands.event_stream import EventStream, interval_table
from collidecli.commands.events import FILE, EventsRequest, EventsResult, events, written_tables
from collidecli.commands.result import Progress
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import Append, TableColumn
from collidecli.storage.process_activity import reading

WORLD, EPISODE = "world", "episode"


class IntervalTable:
    """Columns for the intervals of all files; a file that cannot be used has no rows.

    columns: the file, then those of one file with the words of all, with EPISODE if any file has episodes; empty if no
    file can be used.
    """

    def __init__(self, files: Sequence[str], options: EventOptions) -> None:
        self._by = options.by
        self._file_row = {file: row for row, file in enumerate(files)}
        self._word_row: dict[str, dict[str, int]] = {}
        found: dict[str, TableColumn] = {}
        for file in files:
            # The error of a file that cannot be used is reported where its intervals are computed.
            with suppress(Exception), reading("contact set", file), ContactSet.open(file) as contacts:
                stream = EventStream(contacts, options)
                for column in interval_table(stream.keys, stream.frames.episodes, self._by):
                    found.setdefault(column.name, column)
                    rows = self._word_row.setdefault(column.name, {})
                    for word in column.words or ():
                        rows.setdefault(word, len(rows))
        names = [FILE, WORLD, EPISODE] if EPISODE in found else [FILE, WORLD]
        if found:
            found[FILE] = TableColumn(FILE, np.dtype(np.int64), words=tuple(files))
            self._word_row[FILE] = self._file_row
        self.columns = tuple(
            replace(found[name], words=tuple(self._word_row[name])) if found[name].words is not None else found[name]
            for name in (dict.fromkeys([*names, *found]) if found else ())
        )

    def events(self, request: EventsRequest, tables: Sequence[Append], progress: Progress = None) -> EventsResult:
        """The result of `events` for one of the files; its rows are appended to the tables when all are known."""
        kept: list[dict[str, np.ndarray]] = []

        def keep(rows: dict[str, np.ndarray], stream: EventStream) -> None:
            kept.append(self._joined(request.path, rows, stream))

        result = events(request, progress, keep if tables else None)
        for rows in kept:
            for append in tables:
                append(rows)
        return result

    def _joined(self, file: str, rows: dict[str, np.ndarray], stream: EventStream) -> dict[str, np.ndarray]:
        """Rows of a file, whose texts are indices into the words of all files. Without episodes their name is ""."""
        number = len(rows[WORLD])
        joined = {EPISODE: np.zeros(number, np.int64), **rows, FILE: np.full(number, self._file_row[file])}
        for column in interval_table(stream.keys, stream.frames.episodes, self._by):
            if column.words is not None:
                row_of = self._word_row[column.name]
                joined[column.name] = np.array([row_of[word] for word in column.words], np.int64)[rows[column.name]]
        return joined


@contextmanager
def interval_tables(table: IntervalTable, csv: str, parquet: str, force: bool) -> Iterator[list[Append]]:
    """Functions that append rows to a CSV and a Parquet file, "" for none; none if no file can be used.

    Both files appear when the block ends without an error. Raises InputError without the packages of Parquet.
    """
    if not table.columns:
        yield []
        return
    with written_tables(csv, parquet, force, table.columns) as tables:
        yield tables
